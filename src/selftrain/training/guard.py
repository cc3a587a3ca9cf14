"""Accept or refuse a round: self-training must not make a classifier forget a class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a student may become the next teacher, and why not."""

    accept: bool
    why: str = ""


def no_class_lost(labels: Sequence[str], before: Sequence[str], after: Sequence[str]) -> Verdict:
    """Refuse a student that never answers a class that its teacher answers (collapse alarm).

    ``before`` and ``after`` are the answers of teacher and student on the same fixed rows of the
    pool; no gold label is needed.
    """
    teacher, student = Counter(before), Counter(after)
    lost = [label for label in labels if teacher[label] and not student[label]]
    if not lost:
        return Verdict(True)
    names = ", ".join(f"`{label}` ({teacher[label]} before)" for label in lost)
    return Verdict(False, f"collapse: on {len(after)} pool rows the student never answers {names}")
