"""Fits in threads of one process: each gives the numbers that it gives alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from transformers.utils import logging as transformers_logging

import small_run
from selftrain.errors import LockedError
from selftrain.model.backbone import load
from selftrain.model.build import build
from selftrain.runs.train import train
from selftrain.training.loop import self_train
from selftrain.training.machine import randomness


def test_a_thread_that_draws_waits_until_another_has_drawn() -> None:
    with randomness(5, "alone"):
        alone = torch.rand(3)
    second: list[torch.Tensor] = []

    def draw() -> None:
        with randomness(5, "alone"):
            second.append(torch.rand(3))

    other = threading.Thread(target=draw)
    with randomness(5, "alone"):
        other.start()
        other.join(0.2)  # long enough to seed and draw, were it not kept waiting
        waited = not second
        first = torch.rand(3)
    other.join()
    assert waited
    assert torch.equal(first, alone)
    assert torch.equal(second[0], alone)


@pytest.mark.parametrize("name", ["laptop", "contrast"])
def test_four_fits_in_threads_give_the_numbers_of_one_alone(
    name: str, tiny_folder: Callable[[str], Path]
) -> None:
    def models(_: int = 0) -> list[str]:
        job = small_run.job(load(tiny_folder("bert")), small_run.METHODS[name])
        return [round_.model.digest() for round_ in self_train(job, machine=small_run.MACHINE)]

    alone = models()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(models, range(4))) == [alone] * 4


def test_models_built_in_threads_have_the_weights_of_their_seed(
    tiny_folder: Callable[[str], Path],
) -> None:
    backbone = load(tiny_folder("bert"))
    tune = small_run.METHOD.teacher

    def digest(seed: int) -> str:
        return build(small_run.TASK, backbone, tune.architecture, seed=seed).digest()

    alone = [digest(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(digest, [*range(8)] * 4)) == alone * 4


def test_one_run_folder_takes_one_thread_and_refuses_the_others(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    job = small_run.job(load(tiny_folder("bert")))
    first = train(tmp_path / "run", job, small_run.MACHINE)
    next(first)
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(next, train(tmp_path / "run", job, small_run.MACHINE))
        with pytest.raises(LockedError):
            second.result()
    assert len(list(first)) == job.method.total_rounds


def test_loading_in_threads_leaves_transformers_as_talkative_as_it_was(
    tiny_folder: Callable[[str], Path],
) -> None:
    before = transformers_logging.get_verbosity()
    transformers_logging.enable_progress_bar()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(load, [tiny_folder("bert")] * 8))
    assert transformers_logging.is_progress_bar_enabled()
    assert transformers_logging.get_verbosity() == before
