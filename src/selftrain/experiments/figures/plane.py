"""The features of some rows on a plane, for two or more runs. The paper's Figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from selftrain.data.rows import Labelled
from selftrain.errors import DataError
from selftrain.experiments.figures.datafile import Row
from selftrain.experiments.tasksets import by_hash

if TYPE_CHECKING:
    from selftrain.model.classifier import Classifier
    from selftrain.training.machine import Machine

PERPLEXITY = 30.0
SLICE = 256  # rows read between two steps of a progress bar


@dataclass(frozen=True, slots=True)
class View:
    """The features of one run: where each row lies, and how well the classes are separated."""

    run: str
    method: str
    seed: int
    number: int
    """The round whose model it is, 0 for the teacher."""
    places: tuple[tuple[float, float], ...]
    """[N, 2]; neither axis has a meaning, and distances only near by."""
    silhouette: float
    """Of the features as they are, by gold class and cosine: 1 far apart, 0 one upon another."""


@dataclass(frozen=True, slots=True)
class Plane:
    """The same rows in the features of two or more runs."""

    uids: tuple[str, ...]
    gold: tuple[str, ...]
    views: tuple[View, ...]
    setting: str

    @property
    def labels(self) -> list[str]:
        """The classes of the rows."""
        return sorted(set(self.gold))

    def rows(self) -> list[Row]:
        """One for each row of each run."""
        return [
            {
                "run": view.run,
                "method": view.method,
                "seed": view.seed,
                "round": view.number,
                "silhouette": view.silhouette,
                "id": uid,
                "label": label,
                "x": x,
                "y": y,
            }
            for view in self.views
            for uid, label, (x, y) in zip(self.uids, self.gold, view.places, strict=True)
        ]


def chosen(rows: Sequence[Labelled], max_rows: int) -> list[Labelled]:
    """At most this many of the rows; their order in the file does not change which."""
    # Equal texts have equal hashes: sorted before, their labels do not depend on the order either.
    drawn = by_hash(sorted(rows, key=lambda row: row.label))[:max_rows]
    classes = {row.label for row in drawn}
    if not 2 <= len(classes) < len(drawn):
        raise DataError(
            f"{len(drawn)} rows of {len(classes)} classes: "
            "expected two classes or more, and more rows than classes",
            "give more labelled rows, or draw more of them: --rows 1000",
        )
    return drawn


def features(model: Classifier, rows: Sequence[Labelled], machine: Machine) -> Tensor:
    """The input of the classifier's last layer for each row, dropout off: [N, D]."""
    starts = range(0, len(rows), SLICE)
    return torch.cat(
        [
            model.read([row.example for row in rows[start : start + SLICE]]).features
            for start in machine.progress(starts, "reading features", len(starts))
        ]
    )


def view(
    run: str, method: str, vectors: Tensor, gold: Sequence[str], *, seed: int, number: int
) -> View:
    """The features [N, D] of one run on the plane by t-SNE, and their silhouette.

    Both measure by cosine, as the contrast does. The same features give the same picture.
    """
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score
    from threadpoolctl import threadpool_limits

    x = vectors.double().numpy()
    if not x.std(0).sum() > 0:  # NaN too
        raise DataError(
            f"the features of {run} are the same for all rows, or no numbers",
            "look at its rounds: selftrain evaluate RUN FILE",
        )
    tsne = TSNE(
        metric="cosine", perplexity=perplexity(len(x)), init="pca", random_state=0, n_jobs=1
    )
    with threadpool_limits(1):  # sums over threads differ in their last bits, and t-SNE magnifies
        plane = tsne.fit_transform(x)  # [N, 2]
        silhouette = float(silhouette_score(x, list(gold), metric="cosine"))
    places = tuple((float(a), float(b)) for a, b in plane)
    return View(run, method, seed, number, places, silhouette)


def perplexity(rows: int) -> float:
    """About how many neighbours of a row t-SNE keeps near it; fewer for few rows.

    >>> perplexity(1000), perplexity(31)
    (30.0, 10.0)
    """
    return min(PERPLEXITY, (rows - 1) / 3)
