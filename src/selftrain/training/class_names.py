"""What the names of the classes say: short texts made of them, as rows to learn from.

A name such as `sports` or `very negative` is a label that costs nothing. Whether the encoder knows
what it means is asked of the labelled rows before it counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor

from selftrain.data.rows import Example, Labelled
from selftrain.model.classifier import Classifier

TEMPLATES = ("{}", "This is {}.", "The text is {}.", "It was {}.")


def words_of(label: str) -> str:
    """A class name as a reader would say it.

    >>> words_of("very_negative"), words_of("EducationalInstitution"), words_of("Sci/Tech")
    ('very negative', 'educational institution', 'sci tech')
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)
    return " ".join(re.sub(r"[\W_]+", " ", spaced).lower().split())


def class_name_rows(model: Classifier, gold: Sequence[Labelled]) -> tuple[Labelled, ...]:
    """A row for each class and template; none for pairs, or where the names say too little.

    Names without a word, or two that read alike, say nothing. The others must answer the gold rows
    better than chance, by one standard error: each row is given the class whose names are nearest
    to it (cosine, minus each name's mean over the rows), by the features as they now are.
    """
    names = {label: words_of(label) for label in model.labels}
    if model.task.pair or "" in names.values() or len({*names.values()}) < len(names):
        return ()
    rows = tuple(
        Labelled(Example(f"class name {number}: {label}", template.format(name)), label)
        for number, template in enumerate(TEMPLATES)
        for label, name in names.items()
    )
    by_names = F.normalize(model.read([row.example for row in rows]).features, dim=1)
    by_names = by_names.reshape(len(TEMPLATES), len(model.labels), -1).mean(0)  # [C, D]
    texts = F.normalize(model.read([row.example for row in gold]).features, dim=1)
    similarity = texts @ F.normalize(by_names, dim=1).T  # [K, C]
    labels = torch.tensor([model.labels.index(row.label) for row in gold])
    classes_seen = len({*labels.tolist()})
    weights = 1 / (classes_seen * labels.bincount()[labels])  # each class counts the same
    answers = (similarity - weights @ similarity).argmax(1)
    return rows if better_than_chance(answers == labels, weights, len(model.labels)) else ()


def better_than_chance(right: Tensor, weights: Tensor, classes: int) -> bool:
    """Whether answers [K] are right more often than by chance, by one standard error or more.

    The weights of the answers, [K], add up to 1.
    """
    chance = 1 / classes
    error = sqrt(chance * (1 - chance) * float(weights.square().sum()))
    return float(weights[right].sum()) >= chance + error - 1e-6
