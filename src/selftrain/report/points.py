"""The rows of a report: their place on a map, the model's answer, their role, and their text.

A run folder holds no text, so the files of the run are given again and joined by uid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from selftrain.data.rows import AuditLine, Example, Labelled
from selftrain.html import shortened
from selftrain.report.lessons import MOST_ROWS
from selftrain.runs.estimates import opinions_of
from selftrain.runs.lessons import read_lesson
from selftrain.runs.read import records, verified
from selftrain.runs.record import LESSON
from selftrain.runs.saved import SavedRun
from selftrain.runs.texts import texts_of
from selftrain.training.estimate import Opinion

if TYPE_CHECKING:
    from torch import Tensor

    from selftrain.model.classifier import Classifier, Progress

MOST_POINTS = 2_000
"""Pool rows on the map and in the table; as many labelled rows at most."""
FEWEST_POINTS = 8
"""Fewer rows make no map."""
ROLES = ("gold", "easy", "hard", "left", "unused")
"""Labelled by a person; learnt from; used for contrast; judged and left; never judged."""


@dataclass(frozen=True, slots=True)
class Given:
    """The files of a run, given again."""

    pool: Iterable[Example] | None = None
    where: str = "the pool"
    """The name of the pool's file."""
    labelled: Sequence[Labelled] = ()
    texts: bool = True
    """Whether texts may stand on the page; the map needs them only to compute places."""


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the map and of the table."""

    uid: str
    label: str
    """Of a labelled row its label, of a pool row the answer of the model."""
    probability: float
    """Of that label, by the model."""
    role: str
    round: int | None
    """The last round in which it had that role."""
    certainty: float | None
    folds_answer: str | None
    folds_probability: float | None
    place: tuple[float, float] | None = None
    """On the map, from 0 to 1; None without a map."""
    text: str | None = None
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Points:
    """The rows that a page shows."""

    points: tuple[Point, ...]
    pool_rows: int
    """How many rows of the run they were drawn from."""
    warning: str
    """Rows whose text the file does not have; empty where all were found."""

    @property
    def labelled_rows(self) -> int:
        """How many of them a person labelled."""
        return sum(point.role == "gold" for point in self.points)

    @property
    def shown_rows(self) -> int:
        """How many of them are rows of the pool."""
        return len(self.points) - self.labelled_rows

    @property
    def has_map(self) -> bool:
        """Whether the rows have a place on a map."""
        return any(point.place is not None for point in self.points)


@dataclass(frozen=True, slots=True)
class _Known:
    """What a run says of its rows, by uid."""

    lines: Mapping[str, tuple[int, AuditLine]]
    """Of pool rows that were judged: the round, and its line."""
    pool: Mapping[str, Opinion]
    gold: Mapping[str, Opinion]


def points_of(
    run: SavedRun, given: Given, model: Classifier, progress: Progress | None = None
) -> Points:
    """The rows of a run with what its model answers and where they lie beside each other."""
    known = _known(run)
    uids = _chosen(known)
    texts = texts_of(uids, given.pool or (), given.where)
    found = [uid for uid in uids if uid in texts.by_uid]
    labelled = list(given.labelled)[:MOST_POINTS]
    examples = [*(row.example for row in labelled), *(texts.by_uid[uid] for uid in found)]
    total = len(known.lines.keys() | known.pool.keys())
    if not examples:
        return Points((), total, texts.warning)
    out = model.read(examples, progress)
    probabilities = (out.logits / model.temperature).softmax(1).tolist()
    places = map_of(out.features)
    names = [*((row.example.uid, row.label) for row in labelled), *((uid, None) for uid in found)]
    parts = zip(names, examples, probabilities, places, strict=True)
    points = [
        replace(_point(uid, label, p, known, run.labels), place=place)
        for (uid, label), _, p, place in parts
    ]
    if given.texts:
        points = [_with_text(each, row) for each, row in zip(points, examples, strict=True)]
    return Points(tuple(points), total, texts.warning)


def _point(
    uid: str, label: str | None, p: Sequence[float], known: _Known, labels: Sequence[str]
) -> Point:
    """One row: a labelled one has its label, a pool row the answer of the model."""
    if label is not None:
        vote = _vote(known.gold.get(uid), labels)
        return Point(uid, label, p[labels.index(label)], "gold", None, None, *vote)
    best = max(range(len(labels)), key=p.__getitem__)
    vote = _vote(known.pool.get(uid), labels)
    if uid not in known.lines:
        return Point(uid, labels[best], p[best], "unused", None, None, *vote)
    number, line = known.lines[uid]
    return Point(uid, labels[best], p[best], line.role, number, line.certainty, *vote)


def _with_text(point: Point, row: Example) -> Point:
    pair = None if row.pair is None else shortened(row.pair)
    return replace(point, text=shortened(row.text), pair=pair)


def _known(run: SavedRun) -> _Known:
    gold, pool = opinions_of(run.answering.folder, run.labels)
    return _Known(_lines(run), {row.uid: row for row in pool}, {row.uid: row for row in gold})


def _lines(run: SavedRun) -> dict[str, tuple[int, AuditLine]]:
    """The line of each judged row: of the last round that learnt from it, else that judged it."""
    rank = {"easy": 2, "hard": 1, "left": 0}
    found: dict[str, tuple[int, AuditLine]] = {}
    for record in records(run.answering.folder):
        pool = record.numbers.get("pool")
        if not isinstance(pool, int) or pool > MOST_ROWS:
            continue
        place = verified(run.answering.folder, record, [LESSON])
        for line in read_lesson(place / LESSON, run.labels):
            before = found.get(line.uid)
            if before is None or rank[line.role] >= rank[before[1].role]:
                found[line.uid] = (record.number, line)
    return found


def _chosen(known: _Known) -> list[str]:
    """At most 2,000 rows: first those that were judged and have votes, then the others by turns."""
    both = [uid for uid in known.pool if uid in known.lines]
    voted = [uid for uid in known.pool if uid not in known.lines]
    judged = [uid for uid in known.lines if uid not in known.pool]
    turns = [uid for pair in zip(judged, voted, strict=False) for uid in pair]
    rest = [*judged[len(turns) // 2 :], *voted[len(turns) // 2 :]]
    return [*both, *turns, *rest][:MOST_POINTS]


def _vote(opinion: Opinion | None, labels: Sequence[str]) -> tuple[str | None, float | None]:
    """What the check models say of a row: their answer and its probability."""
    if opinion is None:
        return None, None
    best = max(range(len(labels)), key=opinion.folds.__getitem__)
    return labels[best], opinion.folds[best]


def map_of(features: Tensor) -> list[tuple[float, float] | None]:
    """Places from 0 to 1 where rows with similar vectors [N, D] lie close: PCA, then t-SNE."""
    count = len(features)
    if count < FEWEST_POINTS:
        return [None] * count
    import numpy as np
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    vectors = features.numpy().astype("float64")
    if np.ptp(vectors, axis=0).max() == 0:  # all the same: there is nothing to lay out
        return [None] * count
    vectors = PCA(min(50, *vectors.shape), random_state=0).fit_transform(vectors)
    perplexity = min(30.0, (count - 1) / 3)
    with np.errstate(all="ignore"):
        flat = TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors)
    low, high = flat.min(0), flat.max(0)
    flat = (flat - low) / np.maximum(high - low, 1e-9)
    return [(round(float(x), 4), round(float(y), 4)) for x, y in flat]


def data_of(points: Points, labels: Sequence[str]) -> dict[str, Any]:
    """The rows as the script of the page reads them: lists, with places of names in lists."""
    place = {label: at for at, label in enumerate(labels)}
    return {
        "labels": [shortened(label, 60) for label in labels],
        "roles": list(ROLES),
        "rows": [_row(point, place) for point in points.points],
    }


def _row(point: Point, place: Mapping[str, int]) -> list[Any]:
    x, y = point.place or (None, None)
    folds = None if point.folds_answer is None else place[point.folds_answer]
    numbers = (point.probability, point.certainty, point.folds_probability)
    p, certainty, folds_p = (None if each is None else round(each, 3) for each in numbers)
    role = ROLES.index(point.role)
    start = [x, y, place[point.label], p, role, point.round, certainty, folds, folds_p]
    return [*start, point.text, point.pair]
