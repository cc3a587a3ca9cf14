"""Several processes train one model: what they compute is what one process computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import small_run
import two_processes
from selftrain.errors import ConfigError
from selftrain.training.ranks import ALONE, Ranks, launched


def test_the_rows_of_a_step_are_dealt_once_and_by_length() -> None:
    lengths = [3, 30, 8, 8, 29, 4, 12]
    shares = [Ranks(index, 3).dealt(lengths) for index in range(3)]
    assert sorted(place for share in shares for place in share) == list(range(7))
    assert shares[0] == [0, 1, 2]  # of 30, 29, 12 | 8, 8, 4 | 3
    assert ALONE.dealt(lengths) == list(range(7))


def test_a_process_alone_gets_back_what_it_gives() -> None:
    part = torch.ones(2, 3, requires_grad=True)
    assert ALONE.with_others(part, [0, 1], 2) is part
    assert list(ALONE.mapped(str, [1, 2])) == [(1, "1"), (2, "2")]
    assert ALONE.gathered("x") == ["x"]
    ALONE.require_same("anything", object())
    assert launched({}) == launched({"WORLD_SIZE": "1", "RANK": "0"}) == ALONE
    assert launched({"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}) == Ranks(3, 4, 1)


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"ACCELERATE_USE_FSDP": "true"}, "FSDP splits weights over processes"),
        ({"ACCELERATE_USE_DEEPSPEED": "true"}, "DeepSpeed splits weights"),
        ({"ACCELERATE_MIXED_PRECISION": "bf16"}, "which selftrain does not read"),
        ({"WORLD_SIZE": "two"}, "is no number"),
        ({"WORLD_SIZE": "2", "RANK": "2"}, "RANK is 2; expected below WORLD_SIZE"),
    ],
)
def test_a_launch_that_cannot_train_is_refused_with_a_reason(
    variables: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        launched(variables)
    assert "torchrun" in error.value.hint or "--precision bf16" in error.value.hint


def test_a_step_with_fewer_rows_than_processes_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch_size is 4; expected at least 8") as error:
        Ranks(0, 8).require_rows(4)
    assert "--nproc_per_node 4" in error.value.hint


# ── two processes over gloo ──────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, tiny_folder: Callable[[str], Path]
) -> list[dict[str, Any]]:
    return two_processes.run(tmp_path_factory.mktemp("two"), tiny_folder("bert"))


@pytest.mark.slow
@pytest.mark.parametrize("loss", two_processes.TUNES)
def test_ten_steps_on_uneven_texts_give_the_weights_of_one_process(
    both: list[dict[str, Any]], tiny_backbone: Callable[[str], Any], loss: str
) -> None:
    tune = two_processes.TUNES[loss]
    alone = two_processes.ten_steps(tiny_backbone("bert"), tune, small_run.MACHINE).state()
    for name, tensor in alone.items():
        assert torch.equal(both[0][loss][name], both[1][loss][name])
        assert torch.allclose(both[0][loss][name], tensor, rtol=0, atol=1e-4), name


@pytest.mark.slow
def test_two_processes_give_the_votes_of_one(
    both: list[dict[str, Any]], tiny_backbone: Callable[[str], Any]
) -> None:
    """Every bit: so the lesson of the same teacher is the same."""
    alone = two_processes.votes(tiny_backbone("bert"), small_run.MACHINE)
    for each in both:
        assert all(map(torch.equal, each["votes"], alone))


@pytest.mark.slow
def test_an_error_of_one_process_ends_both_in_seconds(both: list[dict[str, Any]]) -> None:
    for each in both:
        assert each["bad item"] == "DataError: the second item is bad"
        assert each["differs"].startswith("RanksError: process 2 of 2 differs from the first")
    assert both[0]["left alone"].startswith("RanksError: process 1 of 2 waited for another")
    assert both[0]["seconds"] < 60
