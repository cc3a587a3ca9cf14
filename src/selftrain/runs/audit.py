"""How right pseudo labels were, told after the fact by gold labels from a file of their own.

No training and no selection comes through here: a round is read from its run folder, where it lies
finished, and what its teacher said of each pool row is laid beside a label that was kept apart.
A row without a gold label is counted and left out; nothing is guessed for it.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from selftrain.data.audit_lines import NOT_SELECTED
from selftrain.data.rows import AuditLine, Labelled, Notes, uid_of
from selftrain.errors import DataError, RunError, closest, listing, parsed
from selftrain.runs.read import lessons, read_manifest
from selftrain.training.metrics import Bin

ALL = "all"
ROLES = ("easy", "hard", NOT_SELECTED)
SCORES = ("confidence", "certainty", "weight")
"""What a row is trusted by."""
BINS = 10
"""Equal bins of confidence from 0 to 1, as in ``metrics.calibration_error``."""


# ── what is told ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class OfClass:
    """One class among some rows."""

    gold: int
    """Rows that belong to it."""
    pseudo: int
    """Rows that were given its label."""
    right: int
    """Rows that both is true of."""

    @property
    def accuracy(self) -> float | None:
        """The share of its own rows that were found; None where it has no row."""
        return _share(self.right, self.gold)

    @property
    def precision(self) -> float | None:
        """The share of the rows given its label that are its own; None where there is none."""
        return _share(self.right, self.pseudo)


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows with a gold label: all of them, or those of one role."""

    classes: Mapping[str, OfClass]

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(each.gold for each in self.classes.values())

    @property
    def right(self) -> int:
        """How many have the right pseudo label."""
        return sum(each.right for each in self.classes.values())

    @property
    def accuracy(self) -> float | None:
        """The share of right pseudo labels; None where there is no row."""
        return _share(self.right, self.rows)

    @property
    def prior(self) -> dict[str, float | None]:
        """The share of each class among the gold labels."""
        rows = self.rows
        return {label: _share(each.gold, rows) for label, each in self.classes.items()}

    @property
    def histogram(self) -> dict[str, float | None]:
        """The share of each class among the pseudo labels of the same rows."""
        rows = self.rows
        return {label: _share(each.pseudo, rows) for label, each in self.classes.items()}


@dataclass(frozen=True, slots=True)
class Truth:
    """How right the pseudo labels of one round were. Scores are shares from 0 to 1.

    None stands for what cannot be said: the accuracy of no rows, or the area where no row is wrong.
    """

    audit_line: int
    """Rows the teacher gave a pseudo label, with or without a gold one."""
    effective: float | None
    """(Σ w)² / Σ w² of the selection weights of all judged rows: equal weights count each row as
    one, and where a few rows have all the weight it is as if there were only those."""
    parts: Mapping[str, Part]
    """``all``, and each role: ``easy``, ``hard``, ``left``."""
    calibration_error: float | None
    bins: tuple[Bin, ...]
    """From the least confident up; an empty bin is left out."""
    areas: Mapping[str, float | None]
    """By score, the chance that a right label is trusted more than a wrong one: 0.5 is blind."""

    @property
    def rows(self) -> int:
        """Judged rows that have a gold label: those all the rest is said of."""
        return self.parts[ALL].rows

    @property
    def effective_share(self) -> float | None:
        """The effective size as a share of the judged rows."""
        return None if self.effective is None else _share(self.effective, self.audit_line)


def plain(number: int, found: Truth) -> dict[str, Any]:
    """The truth about a round as JSON has it, with shares beside the counts they come from."""
    return {
        "round": number,
        "judged": found.audit_line,
        "with gold": found.rows,
        "without gold": found.audit_line - found.rows,
        "effective size": found.effective,
        "effective share": found.effective_share,
        "calibration error": found.calibration_error,
        "bins": [asdict(each) for each in found.bins],
        "areas": dict(found.areas),
        "rows": {name: _plain_part(part) for name, part in found.parts.items()},
    }


def _plain_part(part: Part) -> dict[str, Any]:
    prior, histogram = part.prior, part.histogram
    return {
        "rows": part.rows,
        "right": part.right,
        "accuracy": part.accuracy,
        "classes": {
            label: {
                **asdict(each),
                "accuracy": each.accuracy,
                "precision": each.precision,
                "prior": prior[label],
                "share": histogram[label],
            }
            for label, each in part.classes.items()
        },
    }


# ── telling it ───────────────────────────────────────────────────────────────────────────────


def truth(lines: Iterable[AuditLine], gold: Mapping[str, str]) -> Truth:
    """How right the pseudo labels of a round were, by gold labels that are named by uid.

    The lines are gone through once. Nearly everything is a running sum; the areas compare each
    right row with each wrong one, so of a row with a gold label 13 bytes are kept: its three scores
    in 32 bits, and whether it was right. Two scores that differ by less count as a tie. While an
    area is computed it is some 60 bytes a row.

    >>> sure, unsure = ("yes", 0.9, 1.0, 0.96, "easy"), ("no", 0.6, 0.9, 0.78, "left")
    >>> found = truth([AuditLine("a", *sure), AuditLine("b", *unsure)], {"a": "yes", "b": "yes"})
    >>> found.parts["all"].accuracy, found.parts["easy"].accuracy, found.areas["confidence"]
    (0.5, 1.0, 1.0)
    """
    audit_line, weights, squares = 0, 0.0, 0.0
    counts: Counter[tuple[str, str, str]] = Counter()  # role, gold label, pseudo label
    binned = [(0, 0.0, 0)] * BINS  # rows, their confidence added up, those that are right
    kept, right = {name: array("f") for name in SCORES}, array("b")
    for line in lines:
        audit_line += 1
        weights += line.weight
        squares += line.weight * line.weight
        label = gold.get(line.uid)
        if label is None:
            continue
        hit = label == line.label
        counts[line.role, label, line.label] += 1
        # A mean over passes may be 1.0000000000000002, and a stranger's file may say anything.
        sure = min(max(line.confidence, 0.0), 1.0)
        place = min(int(sure * BINS), BINS - 1)
        rows, total, hits = binned[place]
        binned[place] = (rows + 1, total + sure, hits + hit)
        right.append(hit)
        for name in SCORES:
            kept[name].append(getattr(line, name))
    gaps = math.fsum(abs(hits - total) for _, total, hits in binned)
    return Truth(
        audit_line=audit_line,
        effective=_effective(weights, squares),
        parts=_parts(counts),
        calibration_error=_share(gaps, len(right)),
        bins=tuple(Bin(n, total / n, hits / n) for n, total, hits in binned if n),
        areas={name: _area(scores, right) for name, scores in kept.items()},
    )


def by_round(folder: str | Path, gold: Mapping[str, str]) -> list[tuple[int, Truth]]:
    """The truth about every whole round of a run that has pseudo labels, with its number.

    Raises for a gold label that is no class of the run, and where no pool row has a gold label:
    then the two files do not belong together.
    """
    _check_known(gold.values(), classes(folder))
    told = [(number, truth(lines, gold)) for number, lines in lessons(folder) if len(lines)]
    if not told:
        raise RunError(
            f"{folder} has no round with pseudo labels",
            "wait for the first one, or take a method that has rounds: selftrain methods",
        )
    if not any(found.rows for _, found in told):
        audit_line = max(found.audit_line for _, found in told)
        raise DataError(
            f"none of the {audit_line} rows judged in a round of {folder} has a gold label; "
            "rows are joined by their id, or where the pool had none by their exact text",
            "give labels of the pool's own texts, and name the columns: --id COLUMN --text COLUMN",
        )
    return told


def classes(folder: str | Path) -> tuple[str, ...]:
    """The classes a run tells apart, in its own order."""
    named = read_manifest(folder).task.get("labels")
    where = f"the manifest of {folder} names no classes"
    return parsed(tuple[str, ...], named, where, RunError, "copy the folder again")


def gold_labels(rows: Iterable[Labelled], *, notes: Notes) -> dict[str, str]:
    """Gold labels by every name a pool may have for their texts: the id, and the hash of the text.

    So a file with ids serves a run whose pool had none. A name with two labels has no gold label.
    """
    found: dict[str, str] = {}
    torn: set[str] = set()
    for row in rows:
        example = row.example
        for name in (example.uid, uid_of(example.text, example.pair)):
            if found.setdefault(name, row.label) != row.label:
                torn.add(name)
    notes.add("gold texts with two labels, not joined by their text", len(torn))
    return {name: label for name, label in found.items() if name not in torn}


def _check_known(gold: Iterable[str], known: Sequence[str]) -> None:
    for strange in sorted(set(gold).difference(known)):
        near = closest(strange, known)
        raise DataError(
            f"gold label `{strange:.60}` is no class of the run; it has {listing(known)}",
            f"did you mean `{near}`?" if near else "name the right column: --label COLUMN",
        )


def _parts(counts: Counter[tuple[str, str, str]]) -> dict[str, Part]:
    """The whole and each role, every one with all classes that any row has or was given."""
    labels = sorted({label for _, was, said in counts for label in (was, said)})
    tables = {
        name: {kind: dict.fromkeys(labels, 0) for kind in ("gold", "pseudo", "right")}
        for name in (ALL, *ROLES)
    }
    for (role, was, said), rows in counts.items():
        for name in (ALL, role):
            tables[name]["gold"][was] += rows
            tables[name]["pseudo"][said] += rows
            tables[name]["right"][was] += rows * (was == said)
    return {
        name: Part({c: OfClass(**{kind: table[kind][c] for kind in table}) for c in labels})
        for name, table in tables.items()
    }


def _effective(weights: float, squares: float) -> float | None:
    """How many equal weights would say as much, (Σw)² / Σw²; None where w² is beyond a float."""
    size = weights * weights / squares if squares else 0.0
    return size if math.isfinite(size) else None


def _area(scores: array[float], right: array[int]) -> float | None:
    if not scores:
        return None
    import torch

    from selftrain.training.metrics import error_detection_area

    trust, good = (
        torch.frombuffer(scores, dtype=torch.float32),
        torch.frombuffer(right, dtype=torch.int8),
    )
    area = error_detection_area(trust, good)
    return None if math.isnan(area) else area


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
