"""Where a run happens, never what it computes: not part of a run's fingerprint."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch

from selftrain.errors import require
from selftrain.seeds import child

if TYPE_CHECKING:
    from accelerate import Accelerator

T = TypeVar("T")
Track = Callable[[Iterable[T], str, int], Iterable[T]]


def silent(steps: Iterable[T], _what: str, _total: int) -> Iterable[T]:
    """No progress bar: the steps as they are."""
    return steps


def unheard(_note: str) -> None:
    """Where nobody wants to be told."""


def once(say: Callable[[str], object]) -> Callable[[str], object]:
    """The same listener, who hears a line but the first time."""
    told: set[str] = set()

    def tell(line: str) -> None:
        if line not in told:
            told.add(line)
            say(line)

    return tell


@dataclass(frozen=True, slots=True)
class Machine:
    """Device, threads, disk, and how progress is shown."""

    device: str | None = None
    """cpu, cuda or mps; None lets accelerate choose."""
    threads: int | None = None
    """Threads of torch on the CPU; None leaves its own choice."""
    track: Track[int] = silent
    """Wraps a loop of many steps: gets the steps, what they are, and how many."""
    note: Callable[[str], object] = unheard
    """Is told what a run is about to take of this machine."""
    cache: Path | None = None
    """The folder for what is computed once and kept while a run goes on (nothing stays there
    afterwards); None for the system's temporary one."""
    cache_mb: int = 4096
    """The most megabytes kept there; 0 keeps nothing and computes it each time."""

    def __post_init__(self) -> None:
        if self.device is not None:  # accelerate would quietly take another
            here = devices()
            expected = f"what this machine has: {', '.join(here)}"
            require(self.device in here, "device", self.device, expected, "--device cpu")
        fine = self.threads is None or self.threads >= 1
        require(fine, "threads", self.threads, "1 or more", "--threads 2")
        require(self.cache_mb >= 0, "cache_mb", self.cache_mb, "0 or more", "--cache-mb 1000")

    def accelerator(self) -> Accelerator:
        """The one Accelerator of this process."""
        if self.threads is not None and self.threads != torch.get_num_threads():
            torch.set_num_threads(self.threads)
        return _accelerator(self.device)


def devices() -> list[str]:
    """What torch can compute on here."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return ["cpu", *(name for name, found in there.items() if found)]


@cache
def _accelerator(device: str | None) -> Accelerator:
    from accelerate import Accelerator

    if device == "mps":
        # An operation Metal lacks should run on the CPU rather than end a long run.
        os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    made = Accelerator(cpu=device == "cpu")
    # Accelerate's own state is one for a process: a second device would quietly be the first.
    fine = device is None or made.device.type == device
    here = made.device.type
    expected = f"{here}, on which this process already computes"
    require(fine, "device", device, expected, f"--device {here}, or another process")
    return made


@contextmanager
def randomness(seed: int, *names: str | int) -> Iterator[None]:
    """Torch's global generators seeded for one purpose, and put back as they were afterwards."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(child(seed, *names))
        yield
