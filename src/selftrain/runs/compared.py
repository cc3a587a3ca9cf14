"""What changed between two runs: expected accuracy, class shares, and answers on the pool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from selftrain.data.fewshot import fingerprint
from selftrain.data.pool import fingerprint_of_pool
from selftrain.data.rows import Split
from selftrain.errors import DataError, in_percent
from selftrain.runs.estimates import opinions_of, round_estimate
from selftrain.runs.read import lessons, read_manifest
from selftrain.runs.texts import texts_of
from selftrain.training.estimate import RoundEstimate


@dataclass(frozen=True, slots=True)
class Compared:
    """An earlier run beside a later one; None stands for what is not known."""

    expected: tuple[float | None, float | None]
    """The expected accuracy of both."""
    shares: tuple[tuple[float, ...], tuple[float, ...]]
    """The share of each class in the answers on the pool, of both; empty if unknown."""
    rows: int
    """Pool rows that both have answered."""
    changed: int
    """Those among them with another answer."""


def compared(earlier: Path, later: Path) -> Compared:
    """What a later run answers differently."""
    both = [round_estimate(folder) for folder in (earlier, later)]
    before, after = (_answers(folder) for folder in (earlier, later))
    common = before.keys() & after.keys()
    changed = sum(before[uid] != after[uid] for uid in common)
    first, second = both
    return Compared(
        (_accuracy(first), _accuracy(second)),
        (first.prior if first else (), second.prior if second else ()),
        len(common),
        changed,
    )


def compared_lines(found: Compared, earlier: Path) -> Iterator[str]:
    """The same as lines for a person."""
    before, after = found.expected
    if before is None or after is None:
        yield f"against {earlier}: one of the two runs has no expected accuracy"
    else:
        yield f"against {earlier}: expected accuracy {before:.2f}, now {after:.2f}"
    if all(found.shares):
        one, other = map(in_percent, found.shares)
        yield f"class shares of the pool {one}, now {other}"
    if found.rows:
        yield f"other answers on {found.changed} of {found.rows} pool rows"


def _answers(folder: Path) -> dict[str, str]:
    labels = read_manifest(folder).task.get("labels") or []
    return {each.uid: each.label for each in opinions_of(folder, labels)[1]}


def _accuracy(found: RoundEstimate | None) -> float | None:
    return None if found is None else found.expected.accuracy


# ── are these the files of a run? ────────────────────────────────────────────────────────────


def differing_rows(run: Path, split: Split, pool_name: str) -> Iterator[str]:
    """Warnings where labelled rows or a pool are not those of a run; an error where none are.

    The fingerprints of a run say whether rows differ, and the uids that it has on disk how many.
    """
    manifest = read_manifest(run)
    if fingerprint(split.labelled) != manifest.data.get("labelled"):
        labels = manifest.task.get("labels") or []
        yield _differing_labelled(run, split, [each.uid for each in opinions_of(run, labels)[0]])
    if fingerprint_of_pool(split.unlabelled) != manifest.data.get("pool"):
        judged = {line.uid for _, audit in lessons(run) for line in audit}
        found = len(texts_of(judged, split.unlabelled, pool_name).by_uid)
        yield (
            f"the pool is not that of {run}: "
            f"it has {found} of the {len(judged)} texts that the run judged"
        )


def _differing_labelled(run: Path, split: Split, known: Sequence[str]) -> str:
    if not known:
        return f"the labelled rows are not those of {run}"
    given = {row.example.uid for row in split.labelled}
    common = len(given.intersection(known))
    if not common:
        raise DataError(
            f"none of the {len(given)} labelled rows is one of {run}",
            "give the labelled file of that run, and --shots, --id or --text as it had them",
        )
    return (
        f"the labelled rows are not those of {run}: "
        f"{common} of its {len(known)} are among the {len(given)} given"
    )
