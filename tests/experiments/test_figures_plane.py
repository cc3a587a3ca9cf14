"""Features on a plane: which rows, how they are laid out, and how far classes are apart."""

from __future__ import annotations

from random import Random

import pytest
import torch

from by_hand import GOLD
from selftrain.data.rows import Example, Labelled
from selftrain.errors import DataError
from selftrain.experiments.figures import (
    chosen,
    view,
)
from selftrain.experiments.figures.plane import View, perplexity


def clusters(apart: float, rows: int = 24) -> tuple[torch.Tensor, list[str]]:
    """Features around two directions, and the class of each."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(rows, 8, generator=generator)
    noise[:, 0] += apart * torch.tensor([1.0, -1.0]).repeat(rows // 2)
    return noise, ["a", "b"] * (rows // 2)


def seen(x: torch.Tensor, gold: list[str]) -> View:
    return view("runs/x", "m", x, gold, seed=1, number=2)


def test_the_silhouette_is_that_of_the_features_by_cosine():
    """Two classes at right angles: distance 0 within, 1 between, whatever the length."""
    x = torch.tensor([[1.0, 0.0], [5.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    assert seen(x, ["a", "a", "b", "b"]).silhouette == 1
    assert seen(x, ["a", "b", "a", "b"]).silhouette == -0.5


def test_classes_further_apart_have_a_higher_silhouette():
    near, far = (seen(*clusters(apart)).silhouette for apart in (0.5, 5.0))
    assert -0.2 < near < 0.5 < far <= 1


def test_the_same_features_are_laid_out_the_same():
    assert seen(*clusters(2.0)) == seen(*clusters(2.0))


def test_features_that_say_nothing_are_refused():
    for x in (torch.ones(6, 4), torch.full((6, 4), torch.nan)):
        with pytest.raises(DataError, match="features of runs/x are the same"):
            seen(x, ["a", "b"] * 3)


def test_few_rows_have_few_neighbours():
    assert perplexity(4) == 1
    assert all(perplexity(n) < n for n in range(3, 200))


def test_the_rows_drawn_do_not_depend_on_their_order():
    rows = [Labelled(Example(f"uid-{n % 40}", f"text {n % 40}"), f"{n % 3}") for n in range(60)]
    shuffled = Random(1).sample(rows, len(rows))
    assert chosen(shuffled, 20) == chosen(rows, 20)
    assert len(chosen(rows, 20)) == 20
    assert len(chosen(rows, 1000)) == 60


def test_one_class_has_no_border():
    with pytest.raises(DataError, match="4 rows of 1 classes"):
        chosen([row for row in GOLD if row.label == "good"], 10)
