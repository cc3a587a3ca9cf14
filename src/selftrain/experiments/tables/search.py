"""What was searched, by the paper and by a sweep of ours. The paper's Table 8."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from selftrain.errors import DataError, parsed
from selftrain.experiments.closing import MISSING
from selftrain.experiments.published import figures
from selftrain.experiments.tables.sheet import Cells, Sheet

HINT = "--sweep FILE, as selftrain sweep reports it"
LARGEST = 16 * 2**20  # bytes of a sweep's report

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """What ``selftrain sweep`` reports: the space, its best point, and how many were tried."""

    space: dict[str, list[Value]]
    best: dict[str, Value] = field(default_factory=dict)
    trials: int | None = None


def read_sweep(path: Path) -> Sweep:
    """A sweep's report; keys beside those of ``Sweep`` are its own affair."""
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} has more than {LARGEST:,} bytes: no report of a sweep", HINT)
        return parsed(Sweep, path.read_bytes(), str(path), DataError, HINT)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}", HINT) from None


def search(sweep: Sweep | None = None) -> Sheet:
    """The paper's search space, and beside it what a sweep searched and found best."""
    ours = sweep or Sweep({})
    rows: list[Cells] = []
    placed: set[str] = set()
    keys = [*ours.space, *(key for key in ours.best if key not in ours.space)]
    for each in figures().grid:
        mine = [key for key in keys if key not in placed and each.known_as(key)]
        placed |= set(mine)
        values = _told(list(each.values))
        rows += [(each.name, values, *_found(ours, key)) for key in mine] or [
            (each.name, values, MISSING, MISSING, MISSING)
        ]
    rows += [(key, MISSING, *_found(ours, key)) for key in keys if key not in placed]
    if sweep is None:
        rows = [row[:2] for row in rows]
    head: Cells = ("value", "paper", "its name here", "searched", "best")
    tried = [f"The sweep tried {ours.trials} points."] if ours.trials is not None else []
    notes = (*figures().notes["grid"], *tried)
    head = head[: len(rows[0])]
    return Sheet("Search", head, tuple(rows), notes, words=len(head))


def _found(sweep: Sweep, key: str) -> Cells:
    searched = _told(sweep.space[key]) if key in sweep.space else MISSING
    return key, searched, _told([sweep.best[key]]) if key in sweep.best else MISSING


def _told(values: list[Value] | list[int | float]) -> str:
    return ", ".join(map(str, values)) or MISSING
