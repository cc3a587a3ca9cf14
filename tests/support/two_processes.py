"""Two processes that train one model, on this machine and over gloo: see ``test_ranks``."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import small_run
from selftrain.data.rows import Example, Labelled, Lesson
from selftrain.errors import DataError, SelftrainError
from selftrain.method.losses import PHCE, EasyHard, SupCon
from selftrain.method.spec import Tune
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter
from selftrain.training.annotate import annotate
from selftrain.training.fit import fit
from selftrain.training.machine import Machine
from selftrain.training.ranks import joined, launched

SECONDS = 600
"""How long two processes may take, on a busy machine."""
TUNES = {
    "contrast": Tune(
        tuning=Adapter(width=4), loss=PHCE(), contrast=EasyHard(negatives=2), steps=10, batch_size=8
    ),
    "supcon": Tune(tuning=Adapter(width=4), supcon=SupCon(), steps=10, batch_size=8),
}


def uneven(label: str, number: int) -> Example:
    """A text of one to thirty words."""
    words = small_run.WORDS[label].split()
    return Example(f"{label}-{number}", " ".join(words[n % 5] for n in range(1 + 7 * number % 30)))


ROWS = [Labelled(uneven(label, n), label) for n in range(12) for label in small_run.WORDS]
LESSON = Lesson(gold=tuple(ROWS[:4]), easy=tuple(ROWS[4:16]), hard=tuple(ROWS[16:]))
POOL = [uneven(label, number) for number in range(700) for label in small_run.WORDS]
"""Two chunks: what one process annotates in two steps."""


def ten_steps(backbone: Backbone, tune: Tune, machine: Machine) -> Classifier:
    """A model after ten steps without dropout."""
    architecture = Architecture(tune.tuning, dropout=0.0)
    model = build(small_run.TASK, backbone, architecture, seed=1)
    fit(model, LESSON, tune, seed=3, machine=machine)
    return model


def votes(backbone: Backbone, machine: Machine) -> list[torch.Tensor]:
    """What two dropout passes of a teacher say of the pool."""
    teacher = build(small_run.TASK, backbone, Architecture(Adapter(width=4)), seed=1)
    found = annotate(teacher, POOL, 2, seed=5, machine=machine)
    return [part for _, each in found for part in (each.plain, each.mean, each.wins)]


def complaint(action: Callable[[], object]) -> str:
    """The message of the error that an action ends with."""
    try:
        action()
    except SelftrainError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def fails_on_second(number: int) -> int:
    if number:
        raise DataError("the second item is bad", "leave it out")
    return number


def work(index: int, port: int, folder: Path, backbone: Path) -> None:
    """All that the tests look at, in one of two processes; the second ends without a word."""
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(index), "LOCAL_RANK": str(index), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = launched()
    machine = replace(small_run.MACHINE, ranks=ranks)
    found: dict[str, Any] = {}
    with joined(ranks, machine.torch_device()):
        loaded = load(backbone)
        for name, tune in TUNES.items():
            found[name] = ten_steps(loaded, tune, machine).state()
        found["votes"] = votes(loaded, machine)
        found["bad item"] = complaint(lambda: list(ranks.mapped(fails_on_second, range(2))))
        found["differs"] = complaint(lambda: ranks.require_same("its number", ranks.index))
        if index == 1:
            torch.save(found, folder / "1.pt")
            os._exit(3)
        started = time.monotonic()
        found["left alone"] = complaint(lambda: ranks.gathered(0))
        found["seconds"] = time.monotonic() - started
        torch.save(found, folder / "0.pt")


def run(folder: Path, backbone: Path) -> list[dict[str, Any]]:
    """What each of two processes found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn = multiprocessing.get_context("spawn")
    processes = [
        spawn.Process(target=work, args=(index, port, folder, backbone)) for index in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
    assert [process.exitcode for process in processes] == [0, 3]
    return [torch.load(folder / f"{index}.pt") for index in range(2)]
