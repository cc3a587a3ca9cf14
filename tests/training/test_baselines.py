"""The references: what they compute, beside a computation by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression

from by_hand import GOLD, POOL, TASK
from selftrain.data.rows import Example, Labelled
from selftrain.data.task import find
from selftrain.model.backbone import Backbone
from selftrain.training.baselines import FrozenLogistic, Majority

PAIRS = [
    Labelled(Example(f"pair-{n}", f"a film {'good ' * n}", f"it was {'bad ' * (n % 3)}"), label)
    for n, label in enumerate(["entailment", "not_entailment"] * 4)
]


def by_hand(backbone: Backbone, texts: list[str]) -> torch.Tensor:
    """Each text alone through the plain encoder: the pooled vector, of length 1."""
    rows = []
    for text in texts:
        inputs = backbone.tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = backbone.encoder(**inputs).last_hidden_state
        rows.append(states.mean(1) if backbone.pooling == "mean" else states[:, 0])
    return F.normalize(torch.cat(rows), dim=1)


def test_the_majority_is_the_most_frequent_label_and_of_several_the_first():
    rows = [GOLD[1], GOLD[0], GOLD[3]]
    assert Majority(TASK, rows).probabilities(POOL[:2]).tolist() == [[0, 1]] * 2
    assert Majority(TASK, GOLD).winner == 0


def test_a_frozen_encoder_is_regression_on_its_vectors_of_length_one(backbone):
    found = FrozenLogistic(TASK, backbone, GOLD)
    texts = [item.example.text for item in GOLD]
    vectors = by_hand(backbone, texts)
    assert found.embed([item.example for item in GOLD]).numpy() == pytest.approx(
        vectors.numpy(), abs=1e-5
    )
    labels = [TASK.labels.index(item.label) for item in GOLD]
    regression = LogisticRegression(max_iter=1000).fit(vectors.numpy(), labels)
    expected = regression.predict_proba(by_hand(backbone, [each.text for each in POOL]).numpy())
    assert found.probabilities(POOL).numpy() == pytest.approx(expected, abs=1e-4)


def test_two_sides_apart_are_both_their_distance_and_their_product(backbone):
    found = FrozenLogistic(find("rte"), backbone, PAIRS, separate=True)
    examples = [item.example for item in PAIRS]
    u = by_hand(backbone, [each.text for each in examples])
    v = by_hand(backbone, [each.pair or "" for each in examples])
    expected = torch.cat([u, v, (u - v).abs(), u * v], 1)
    assert found.embed(examples).numpy() == pytest.approx(expected.numpy(), abs=1e-5)


def test_a_class_without_a_labelled_row_has_no_probability(backbone):
    rows = [Labelled(item.example, ("Sports", "World")[n % 2]) for n, item in enumerate(GOLD)]
    task = find("agnews")
    p = FrozenLogistic(task, backbone, rows).probabilities(POOL[:3])
    assert p.shape == (3, 4)
    there = [task.labels.index(label) for label in ("Sports", "World")]
    assert p[:, there].sum(1).tolist() == pytest.approx([1, 1, 1])
    assert (p > 0).sum(1).tolist() == [2, 2, 2]
