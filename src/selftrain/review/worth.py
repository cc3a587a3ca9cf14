"""Which rows are most worth a label: models that did not see them doubt the answer.

Half of them are rows that a round learnt from although the folds vote against their label: an error
there was learnt. The others are those that the folds doubt most. Both are spread out, so that a
person does not label the same sentence ten times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from selftrain.review.rows import Row
from selftrain.seeds import child

SUGGESTED = 256
"""Rows that are chosen with care; all others follow by doubt."""
SHORTLIST = 4
"""They are spread out over this many times as many doubtful rows."""
CHARACTERS = 400
"""Of a text that decide how far it is from another."""

Array = Any  # of numpy


def most_worth(rows: Sequence[Row], labels: Sequence[str], suggested: int = SUGGESTED) -> list[int]:
    """The places of all rows, those first that are most worth a label."""
    doubts = np.array([doubt(row, labels) for row in rows])
    ranked = np.argsort(-doubts, kind="stable").tolist()
    judged = [place for place in ranked if rows[place].opinion is not None] or ranked
    against = [place for place in judged if learnt_against(rows[place], labels)]
    others = [place for place in judged if not learnt_against(rows[place], labels)]
    half = suggested // 2
    parts = [
        spread(part[: SHORTLIST * suggested], rows, doubts, suggested)
        for part in (against[: SHORTLIST * half], others)
    ]
    first = list(taken_in_turn(parts))[:suggested]
    chosen = set(first)
    return [*first, *(place for place in ranked if place not in chosen)]


def doubt(row: Row, labels: Sequence[str]) -> float:
    """How little models that did not see a row believe its answer, from 0 to 1.

    By the folds where they judged it; otherwise by the confidence of its teacher.
    """
    if row.opinion is None:
        return 1 - min(max(row.line.confidence, 0.0), 1.0)
    return 1 - row.opinion.folds[labels.index(row.answer)]


def learnt_against(row: Row, labels: Sequence[str]) -> bool:
    """Whether a round learnt from a label that the folds vote against."""
    if row.opinion is None or row.line.role != "easy":
        return False
    return max(row.opinion.folds) > row.opinion.folds[labels.index(row.label)]


def spread(places: Sequence[int], rows: Sequence[Row], doubts: Array, count: int) -> list[int]:
    """At most ``count`` of these places, doubtful ones that are unlike each other first.

    As k-means++ draws its centres: each next one with a probability that grows with its doubt and
    its squared distance to those chosen. Where texts share no words, classes take turns.
    """
    vectors = vectors_of([rows[place] for place in places])
    if vectors is None:
        by_class: dict[str, list[int]] = defaultdict(list)
        for place in places:
            by_class[rows[place].answer].append(place)
        return list(taken_in_turn(by_class.values()))[:count]
    weights = np.maximum(doubts[list(places)], 1e-6)
    return [places[at] for at in plus_plus(vectors, weights, count)]


def plus_plus(vectors: Array, weights: Array, count: int) -> list[int]:
    """Places of unit vectors [N, D], the heaviest first, then far and heavy ones by a seeded draw.

    >>> import numpy as np
    >>> plus_plus(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0.9, 0.8, 0.1]), 2)
    [0, 2]
    """
    random = np.random.default_rng(child(0, "most worth a label"))
    chosen = [int(np.argmax(weights))]
    nearest = np.full(len(weights), 2.0)  # distance to the closest one chosen: 1 - cosine
    for _ in range(min(count, len(weights)) - 1):
        last = vectors[chosen[-1]]
        similarity = vectors @ last.T
        if hasattr(similarity, "toarray"):
            similarity = similarity.toarray()
        nearest = np.minimum(nearest, np.maximum(1 - similarity.ravel(), 0))
        nearest[chosen] = 0
        scores = weights * nearest**2
        if scores.sum() < 1e-9:  # all others are copies of those chosen
            rest = np.setdiff1d(np.arange(len(weights)), chosen)
            chosen.append(int(rest[np.argmax(weights[rest])]))
        else:
            chosen.append(int(random.choice(len(weights), p=scores / scores.sum())))
    return chosen


def vectors_of(rows: Sequence[Row]) -> Array | None:
    """A sparse unit vector of each text, by its pieces of words; None where they share nothing."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [f"{row.example.text} {row.example.pair or ''}"[:CHARACTERS] for row in rows]
    try:
        return TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=2).fit_transform(
            texts
        )
    except ValueError:  # no piece is in two texts
        return None


def taken_in_turn(parts: Iterable[Iterable[int]]) -> Iterable[int]:
    """One of each part by turns, until all are empty.

    >>> list(taken_in_turn([[1, 2, 3], [9]]))
    [1, 9, 2, 3]
    """
    rounds = zip_longest(*parts)
    return (each for each in chain.from_iterable(rounds) if each is not None)
