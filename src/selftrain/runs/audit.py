"""How many pseudo labels of a run were right, measured afterwards with gold labels from a file.

Training and selection never see these labels: finished rounds are read from a run folder, and the
teacher's label of each pool row is compared with the gold label. A row without a gold label is
counted and left out.
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
"""The scores by which a row may be trusted."""
BINS = 10
"""Equal bins of confidence from 0 to 1, as in ``metrics.calibration_error``."""


# ── the result ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class OfClass:
    """One class among some rows."""

    gold: int
    """Rows that belong to it."""
    pseudo: int
    """Rows with its pseudo label."""
    right: int
    """Rows that belong to it and have its pseudo label."""

    @property
    def accuracy(self) -> float | None:
        """The share of its rows that have its pseudo label; None where it has no row."""
        return _share(self.right, self.gold)

    @property
    def precision(self) -> float | None:
        """The share of the rows with its pseudo label that belong to it; None for no rows."""
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
    """How many pseudo labels of one round were right. Scores are shares from 0 to 1.

    None is a value that does not exist: the accuracy of no rows, or the area where no row is wrong.
    """

    audit_line: int
    """Rows with a pseudo label, with or without a gold label."""
    effective: float | None
    """(Σ w)² / Σ w² of the selection weights of all judged rows: the number of rows where all have
    the same weight, and close to 1 where one row has nearly all of it."""
    parts: Mapping[str, Part]
    """``all``, and each role: ``easy``, ``hard``, ``left``."""
    calibration_error: float | None
    bins: tuple[Bin, ...]
    """From the least confident up; an empty bin is left out."""
    areas: Mapping[str, float | None]
    """By score, the chance that a right label scores higher than a wrong one: 0.5 is chance."""

    @property
    def rows(self) -> int:
        """Judged rows that have a gold label: every other number is about them."""
        return self.parts[ALL].rows

    @property
    def effective_share(self) -> float | None:
        """The effective size as a share of the judged rows."""
        return None if self.effective is None else _share(self.effective, self.audit_line)


def plain(number: int, result: Truth) -> dict[str, Any]:
    """The result for a round as plain JSON, with shares beside the counts they come from."""
    return {
        "round": number,
        "judged": result.audit_line,
        "with gold": result.rows,
        "without gold": result.audit_line - result.rows,
        "effective size": result.effective,
        "effective share": result.effective_share,
        "calibration error": result.calibration_error,
        "bins": [asdict(each) for each in result.bins],
        "areas": dict(result.areas),
        "rows": {name: _plain_part(part) for name, part in result.parts.items()},
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


# ── the comparison ───────────────────────────────────────────────────────────────────────────


def truth(lines: Iterable[AuditLine], gold: Mapping[str, str]) -> Truth:
    """How many pseudo labels of a round were right, by gold labels for each uid.

    The lines are read once. Nearly everything is a running sum; the areas compare each right row
    with each wrong one, so each row with a gold label takes 13 bytes: three scores of 32 bits, and
    whether it was right. Two scores that differ by less count as a tie. While an area is computed
    it takes some 60 bytes a row.

    >>> easy, left = ("yes", 0.9, 1.0, 0.96, "easy"), ("no", 0.6, 0.9, 0.78, "left")
    >>> result = truth([AuditLine("a", *easy), AuditLine("b", *left)], {"a": "yes", "b": "yes"})
    >>> result.parts["all"].accuracy, result.parts["easy"].accuracy, result.areas["confidence"]
    (0.5, 1.0, 1.0)
    """
    audit_line, weights, squares = 0, 0.0, 0.0
    counts: Counter[tuple[str, str, str]] = Counter()  # role, gold label, pseudo label
    binned = [(0, 0.0, 0)] * BINS  # rows, their confidence added up, those that are right
    scores, right = {name: array("f") for name in SCORES}, array("b")
    for line in lines:
        audit_line += 1
        weights += line.weight
        squares += line.weight * line.weight
        label = gold.get(line.uid)
        if label is None:
            continue
        hit = label == line.label
        counts[line.role, label, line.label] += 1
        # A mean over passes may be 1.0000000000000002, and a file from elsewhere any number.
        confidence = min(max(line.confidence, 0.0), 1.0)
        place = min(int(confidence * BINS), BINS - 1)
        rows, total, hits = binned[place]
        binned[place] = (rows + 1, total + confidence, hits + hit)
        right.append(hit)
        for name in SCORES:
            scores[name].append(getattr(line, name))
    gaps = math.fsum(abs(hits - total) for _, total, hits in binned)
    return Truth(
        audit_line=audit_line,
        effective=_effective(weights, squares),
        parts=_parts(counts),
        calibration_error=_share(gaps, len(right)),
        bins=tuple(Bin(n, total / n, hits / n) for n, total, hits in binned if n),
        areas={name: _area(values, right) for name, values in scores.items()},
    )


def by_round(folder: str | Path, gold: Mapping[str, str]) -> list[tuple[int, Truth]]:
    """The number and the result of every finished round of a run that has pseudo labels.

    Raises for a gold label that is no class of the run, and where no pool row has a gold label:
    then the two files do not belong together.
    """
    _check_known(gold.values(), classes(folder))
    results = [(number, truth(lines, gold)) for number, lines in lessons(folder) if len(lines)]
    if not results:
        raise RunError(
            f"{folder} has no round with pseudo labels",
            "wait for the first one, or use a method that has rounds: selftrain methods",
        )
    if not any(result.rows for _, result in results):
        judged = max(result.audit_line for _, result in results)
        raise DataError(
            f"none of the {judged} rows judged in a round of {folder} has a gold label; "
            "rows are joined by their id, or where the pool had none by their exact text",
            "give labels of the pool's own texts, and name the columns: --id COLUMN --text COLUMN",
        )
    return results


def classes(folder: str | Path) -> tuple[str, ...]:
    """The classes of a run, in its order."""
    named = read_manifest(folder).task.get("labels")
    where = f"the manifest of {folder} names no classes"
    return parsed(tuple[str, ...], named, where, RunError, "copy the folder again")


def gold_labels(rows: Iterable[Labelled], *, notes: Notes) -> dict[str, str]:
    """Gold labels by every uid that a pool may have for their texts: the id, and the text's hash.

    So a file with ids fits a run whose pool had none. A uid with two labels has no gold label.
    """
    labels: dict[str, str] = {}
    ambiguous: set[str] = set()
    for row in rows:
        example = row.example
        for name in (example.uid, uid_of(example.text, example.pair)):
            if labels.setdefault(name, row.label) != row.label:
                ambiguous.add(name)
    notes.add("gold texts with two labels, not joined by their text", len(ambiguous))
    return {name: label for name, label in labels.items() if name not in ambiguous}


def _check_known(gold: Iterable[str], known: Sequence[str]) -> None:
    for strange in sorted(set(gold).difference(known)):
        near = closest(strange, known)
        raise DataError(
            f"gold label `{strange:.60}` is no class of the run; it has {listing(known)}",
            f"did you mean `{near}`?" if near else "name the right column: --label COLUMN",
        )


def _parts(counts: Counter[tuple[str, str, str]]) -> dict[str, Part]:
    """All rows and the rows of each role, each with every class that any row has."""
    labels = sorted({label for _, gold, pseudo in counts for label in (gold, pseudo)})
    tables = {
        name: {kind: dict.fromkeys(labels, 0) for kind in ("gold", "pseudo", "right")}
        for name in (ALL, *ROLES)
    }
    for (role, gold, pseudo), rows in counts.items():
        for name in (ALL, role):
            tables[name]["gold"][gold] += rows
            tables[name]["pseudo"][pseudo] += rows
            tables[name]["right"][gold] += rows * (gold == pseudo)
    return {
        name: Part({c: OfClass(**{kind: table[kind][c] for kind in table}) for c in labels})
        for name, table in tables.items()
    }


def _effective(weights: float, squares: float) -> float | None:
    """The effective size (Σw)² / Σw²; None where w² is too large for a float."""
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


def _share(part: float, total: int) -> float | None:
    return part / total if total else None
