"""Labels that are not as many of each class: which of them an encoder learns from.

An encoder learns its few rows by heart. Of a rare class it has seen too few, so new rows of that
class look to it like those of the others, and it answers the class too rarely. Fewer rows of the
large classes help more than they cost (benchmarks/development/README.md, section 14).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from selftrain.data.rows import Labelled

LEAST = 8
"""So many labels of a class are always learnt: fewer teach an encoder too little."""


def most_of_a_class(rarest: int, classes: int) -> int:
    """How many gold rows of one class are learnt, where the rarest class has ``rarest``.

    A class stands against all others together. So it may have half of the rows that there would be
    if each class had as few as the rarest: with two classes both have the same.

    >>> [most_of_a_class(rarest=10, classes=classes) for classes in (2, 3, 6)]
    [10, 15, 30]
    """
    return max(LEAST, rarest * classes // 2)


def balanced(gold: Sequence[Labelled], seed: int) -> tuple[Labelled, ...]:
    """The gold rows without those of a class that has too many, drawn at random; order stays."""
    of_class: dict[str, list[int]] = {}
    for place, row in enumerate(gold):
        of_class.setdefault(row.label, []).append(place)
    most = most_of_a_class(min(map(len, of_class.values())), len(of_class))
    random = Random(seed)  # noqa: S311
    drawn: set[int] = set()
    for places in of_class.values():
        drawn |= {*random.sample(places, min(most, len(places)))}
    return tuple(row for place, row in enumerate(gold) if place in drawn)
