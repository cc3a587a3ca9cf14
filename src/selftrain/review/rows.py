"""The rows of a review: the last verdict of a run on each pool row, and why it was trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from selftrain.data.rows import AuditLine, AuditLines, Example
from selftrain.errors import RunError
from selftrain.runs.estimates import opinions_of
from selftrain.runs.read import lessons, read_manifest
from selftrain.runs.texts import Texts, texts_of
from selftrain.training.estimate import Opinion

MAX_ROWS = 320_000
"""A page shows at most this many: a browser cannot scroll further.

A row is 52 pixels high. Firefox cuts an element at 17.9 million pixels, Chromium on a screen with
doubled pixels at 16.8 million: rows below could not be reached.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A pool row as the last round that judged it saw it."""

    example: Example
    uid: str
    """Its name in the run; a file given again may have other ids."""
    round: int
    line: AuditLine
    opinion: Opinion | None
    """What the folds and the calibrated model say; None for a row outside of their slice."""

    @property
    def label(self) -> str:
        """The pseudo label."""
        return self.line.label

    @property
    def answer(self) -> str:
        """What the model answers now, where that is known; else the pseudo label."""
        return self.line.label if self.opinion is None else self.opinion.label


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a run, in the order of the file that has their texts."""

    labels: tuple[str, ...]
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]
    """What a person should know before they begin."""


def read_rows(run: Path, pool: Iterable[Example], where: str) -> Rows:
    """Join the lessons of a run, its opinions and the texts of a file; ``where`` names the file."""
    labels = tuple(read_manifest(run).task.get("labels") or ())
    judged = last_judged(lessons(run))
    if not judged:
        raise RunError(
            f"{run} has no lesson yet: no round has judged a text of the pool",
            "give the command that started it again, with --rounds 1 or more",
        )
    texts = texts_of(judged, pool, where)
    opinions = {each.uid: each for each in opinions_of(run, labels)[1]}
    return joined(labels, judged, texts, opinions)


def last_judged(found: Iterable[tuple[int, AuditLines]]) -> dict[str, tuple[int, AuditLine]]:
    """For each row its line in the latest round that judged it, and the number of that round."""
    return {line.uid: (number, line) for number, audit in found for line in audit}


def joined(
    labels: tuple[str, ...],
    judged: Mapping[str, tuple[int, AuditLine]],
    texts: Texts,
    opinions: Mapping[str, Opinion],
) -> Rows:
    """Rows with their texts; those beyond the limit of a page are left out and counted."""
    every = [
        Row(example, uid, *judged[uid], opinions.get(uid)) for uid, example in texts.by_uid.items()
    ]
    warnings = [texts.warning] if texts.warning else []
    if len(every) > MAX_ROWS:
        warnings.append(f"the page shows {MAX_ROWS:,} of {len(every):,} rows")
    return Rows(labels, tuple(every[:MAX_ROWS]), tuple(warnings))


def why(row: Row) -> str:
    """Why the run used a row as it did, in a plain sentence."""
    sizes = f"confidence {row.line.confidence:.2f}, certainty {row.line.certainty:.2f}"
    if row.line.role == "easy":
        return (
            f"Round {row.round} trusted this label and learnt from it. The more confident and "
            f"certain the teacher, the sooner a row is picked; here: {sizes}."
        )
    if row.line.role == "hard":
        return (
            f"Round {row.round} did not trust this label: the text was only a contrast to rows "
            f"that it trusted ({sizes})."
        )
    return f"Round {row.round} did not use this text: other rows were picked ({sizes})."


def belief(row: Row, labels: Sequence[str]) -> float | None:
    """The calibrated probability of the pseudo label, where it is known."""
    if row.opinion is None or not row.opinion.model:
        return None
    return row.opinion.model[labels.index(row.label)]
