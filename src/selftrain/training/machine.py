"""The machine of a run: device, threads, disk and progress, never what the run computes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from selftrain.errors import require
from selftrain.model.classifier import Progress
from selftrain.seeds import TORCH_GENERATOR, child
from selftrain.training.ranks import ALONE, Ranks

MOST_THREADS = 256  # a system that cannot start so many ends the process without a word


def silent(steps: Iterable[int], _description: str, _total: int) -> Iterable[int]:
    """Show no progress."""
    return steps


@dataclass(frozen=True, slots=True)
class Machine:
    """Device, threads, disk, and how progress is shown."""

    device: str | None = None
    """cpu, cuda or mps; None takes the best there is."""
    threads: int | None = None
    """Threads of torch on the CPU; None leaves its own choice."""
    progress: Progress = silent
    """Wraps a loop of many steps: gets the steps, their description, and how many there are."""
    cache: Path | None = None
    """The folder for states of frozen layers while a run lasts (nothing stays there afterwards);
    None for the system's temporary folder."""
    cache_mb: int = 4096
    """The most megabytes stored there; 0 stores nothing and computes the states each time."""
    ranks: Ranks = ALONE
    """Which process this is, where several train one model."""
    checkpointing: bool = False
    """Whether a step of training keeps what one batch needs, and encodes each batch again."""
    accumulate: int = 1
    """Into how many batches the rows of a step are dealt at least; above 1 the same holds."""

    def __post_init__(self) -> None:
        if self.device is not None:
            available = devices()
            expected = f"what this machine has: {', '.join(available)}"
            require(self.device in available, "device", self.device, expected, "--device cpu")
        most = max(MOST_THREADS, os.cpu_count() or 1)
        valid = self.threads is None or 1 <= self.threads <= most
        require(valid, "threads", self.threads, f"from 1 to {most}", "--threads 2")
        require(self.cache_mb >= 0, "cache_mb", self.cache_mb, "0 or more", "--cache-mb 1000")
        parts = self.accumulate
        require(parts >= 1, "accumulate", parts, "1 or more", "--accumulate 4")

    @property
    def encodes_twice(self) -> bool:
        """Whether the gradients of a step come batch by batch."""
        return self.checkpointing or self.accumulate > 1

    def torch_device(self) -> torch.device:
        """The device of this process, ready to compute with the threads asked for."""
        if self.threads is not None and self.threads != torch.get_num_threads():
            torch.set_num_threads(self.threads)
        name = self.device or devices()[-1]
        if name == "mps":
            # An operation Metal lacks should run on the CPU rather than end a long run.
            os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
        if name != "cuda":
            return torch.device(name)
        here, gpus = self.ranks.local, torch.cuda.device_count()
        expected = f"one of the {gpus} of this machine"
        require(here < gpus, "GPU", here, expected, f"torchrun --nproc_per_node {gpus} …")
        device = torch.device("cuda", here)
        torch.cuda.set_device(device)
        return device


PLAIN = Machine()
"""As torch finds it, with no options."""


def devices() -> list[str]:
    """What torch can compute on here."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return ["cpu", *(name for name, found in available.items() if found)]


@contextmanager
def randomness(seed: int, *names: str | int) -> Iterator[None]:
    """Torch's global generators seeded for one purpose, and put back as they were afterwards.

    Other threads wait that long: their draws would change this one's numbers.
    """
    # The GPU of this process: to look at the others would take memory on each of them.
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with TORCH_GENERATOR, torch.random.fork_rng(devices):
        torch.manual_seed(child(seed, *names))
        yield
