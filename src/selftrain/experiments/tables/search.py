"""The values searched by the paper and by a sweep of ours. The paper's Table 8."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from selftrain.errors import DataError, parsed
from selftrain.experiments.published import numbers
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tables.sheet import Sheet, Texts

HINT = "--sweep FILE, as selftrain sweep reports it"
LARGEST = 16 * 2**20  # bytes of a sweep's report

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """What ``selftrain sweep`` reports: the space, its best point, and how many were tried."""

    space: dict[str, list[Value]]
    best: dict[str, Value] = field(default_factory=dict)
    trials: int | None = None
    states: dict[str, int] = field(default_factory=dict)
    """How many trials are complete, how many were pruned, and so on."""


def read_sweep(path: Path) -> Sweep:
    """A sweep's report; keys that ``Sweep`` does not have are ignored."""
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} has more than {LARGEST:,} bytes: no report of a sweep", HINT)
        return parsed(Sweep, path.read_bytes(), str(path), DataError, HINT)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}", HINT) from None


def search(sweep: Sweep | None = None) -> Sheet:
    """The paper's search space, and beside it what a sweep searched and found best."""
    ours = sweep or Sweep({})
    rows: list[Texts] = []
    placed: set[str] = set()
    keys = [*ours.space, *(key for key in ours.best if key not in ours.space)]
    for searched in numbers().grid:
        same = [key for key in keys if key not in placed and searched.known_as(key)]
        placed |= set(same)
        values = _listed(list(searched.values))
        rows += [(searched.name, values, *_of_sweep(ours, key)) for key in same] or [
            (searched.name, values, MISSING, MISSING, MISSING)
        ]
    rows += [(key, MISSING, *_of_sweep(ours, key)) for key in keys if key not in placed]
    if sweep is None:
        rows = [row[:2] for row in rows]
    head: Texts = ("value", "paper", "its name here", "searched", "best")
    tried = [f"The sweep tried {ours.trials} points."] if ours.trials is not None else []
    if pruned := ours.states.get("pruned"):
        tried.append(f"Stopped early, without a score: {pruned}.")
    notes = (*numbers().notes["grid"], *tried)
    head = head[: len(rows[0])]
    return Sheet("Search", head, tuple(rows), notes, words=len(head))


def _of_sweep(sweep: Sweep, key: str) -> Texts:
    searched = _listed(sweep.space[key]) if key in sweep.space else MISSING
    return key, searched, _listed([sweep.best[key]]) if key in sweep.best else MISSING


def _listed(values: list[Value] | list[int | float]) -> str:
    return ", ".join(map(str, values)) or MISSING
