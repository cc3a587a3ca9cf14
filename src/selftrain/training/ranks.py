"""Several processes that train one model, as ``torchrun`` starts them.

All run the same program on the same data and take the same steps. What costs time is dealt: the
rows of a step, and chunks of the pool; the results go to all. There is no wrapper around the model:
each process has the whole loss and the gradient of its own rows, and gradients are added up.

A process alone is rank 0 of 1: then every method here gives back what it gets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from selftrain.errors import ConfigError, RanksError, SelftrainError, out_of_memory, require

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

T = TypeVar("T")
Item = TypeVar("Item")

PATIENCE = timedelta(minutes=30)
"""How long a process waits for the others before it ends with an error."""
TORCHRUN = "torchrun --nproc_per_node 2 -m selftrain fit …"
SHARDING = {"ACCELERATE_USE_FSDP": "FSDP", "ACCELERATE_USE_DEEPSPEED": "DeepSpeed"}
"""What `accelerate launch` sets to split the weights of a model over processes."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Which process this is, of how many that train together."""

    index: int = 0
    """Rank 0 is the one that writes and prints."""
    count: int = 1
    local: int = 0
    """The place among the processes of this machine, and so the number of its GPU."""

    def __post_init__(self) -> None:
        require(0 <= self.index < self.count, "RANK", self.index, "below WORLD_SIZE", TORCHRUN)

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.index == 0

    def require_rows(self, batch_size: int) -> None:
        """Raise where a step has fewer rows than there are processes."""
        expected = f"at least {self.count}, a row for each process"
        hint = f"torchrun --nproc_per_node {batch_size} …"
        require(batch_size >= self.count, "batch_size", batch_size, expected, hint)

    def dealt(self, lengths: Sequence[int]) -> list[int]:
        """The places of the rows that this process encodes: long and short ones, as the others."""
        by_length = sorted(range(len(lengths)), key=lambda place: (-lengths[place], place))
        return sorted(by_length[self.index :: self.count])

    def with_others(self, encoded: Tensor, places: Sequence[int], rows: int) -> Tensor:
        """The outputs for all rows of a step, from those for this process's places: [rows, ...].

        A gradient flows through this process's rows alone: the sum over all processes is the whole
        gradient, each part of it counted once.
        """
        if self.count == 1:
            return encoded
        import torch
        import torch.distributed as dist

        where = torch.tensor(places, device=encoded.device)
        everyone = encoded.new_zeros(rows, *encoded.shape[1:])
        everyone.index_copy_(0, where, encoded.detach())
        with meeting(self):
            dist.all_reduce(everyone)  # of the other rows this one has zeros: adding is exact
        return everyone.index_copy(0, where, encoded)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each gradient by its sum over all processes.

        Each process has rows, and a row reaches every parameter that the loss reaches: all have
        gradients of the same parameters.
        """
        if self.count == 1:
            return
        import torch
        import torch.distributed as dist

        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with meeting(self):
            dist.all_reduce(flat)
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))

    def takes(self, place: int) -> bool:
        """Whether this process works at the item at this place, from 0."""
        return place % self.count == self.index

    def mapped(self, work: Callable[[Item], T], items: Iterable[Item]) -> Iterator[tuple[Item, T]]:
        """Each item with its result, in their order; every process works at a share of the items.

        An error that a user can act on is raised by all processes.
        """
        stream = iter(items)
        while turn := list(islice(stream, self.count)):  # an item for each process
            if self.count == 1:
                yield from ((item, work(item)) for item in turn)
                continue
            try:
                share = turn[self.index : self.index + 1]  # none where the items end
                outcome: list[T] | SelftrainError = [work(item) for item in share]
            except SelftrainError as error:
                outcome = error
            outcomes = self.gathered(outcome)
            for each in outcomes:
                if isinstance(each, SelftrainError):
                    raise each
            results = chain.from_iterable(each for each in outcomes if isinstance(each, list))
            yield from zip(turn, results, strict=True)

    def gathered(self, value: T) -> list[T]:
        """The value of every process, in their order."""
        if self.count == 1:
            return [value]
        import torch.distributed as dist

        values: list[T] = [value] * self.count
        with meeting(self):
            dist.all_gather_object(values, value)
        return values

    def of_first(self, value: T) -> T:
        """The value of the first process."""
        return self.gathered(value)[0]

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Give every process the numbers of the first, in place."""
        if self.count == 1:
            return
        import torch.distributed as dist

        with meeting(self):
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def require_same(self, what: str, value: object, hint: str = "") -> None:
        """Raise in all processes unless they have the same value."""
        values = self.gathered(value)
        for index, each in enumerate(values):
            if each != values[0]:
                raise RanksError(
                    f"process {index + 1} of {self.count} differs from the first in {what}",
                    hint or "train on equal devices with equal software, or in one process",
                )


ALONE = Ranks()


def launched(environ: Mapping[str, str] = os.environ) -> Ranks:
    """Which process this is, by the variables that ``torchrun`` sets; alone without them."""
    try:
        count, index, local = (
            int(environ.get(name, default))
            for name, default in (("WORLD_SIZE", "1"), ("RANK", "0"), ("LOCAL_RANK", "0"))
        )
    except ValueError:
        raise ConfigError("WORLD_SIZE, RANK or LOCAL_RANK is no number", TORCHRUN) from None
    for name, what in SHARDING.items():
        if environ.get(name, "").lower() in ("1", "true", "yes"):
            raise ConfigError(
                f"{name} is set: {what} splits weights over processes, but the teacher and the "
                "student share the frozen weights of their encoder whole",
                TORCHRUN,
            )
    chosen = environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if chosen not in ("", "no", "fp32"):
        raise ConfigError(
            f"ACCELERATE_MIXED_PRECISION is {chosen}, which selftrain does not read",
            "unset it, and choose by an option that the run remembers: --precision bf16",
        )
    return ALONE if count == 1 else Ranks(index, count, local)


@contextmanager
def joined(ranks: Ranks, device: torch.device) -> Iterator[None]:
    """Within it the processes can exchange values; one that fails ends the others."""
    if ranks.count == 1:
        yield
        return
    import torch.distributed as dist

    expected = "cpu or cuda where several processes train"
    require(device.type in ("cpu", "cuda"), "device", device.type, expected, "--device cpu")
    # Plain values travel over the CPU, tensors where they are.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, timeout=PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise RanksError(f"the {ranks.count} processes do not meet: {error}", TORCHRUN) from None
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def meeting(ranks: Ranks) -> Iterator[None]:
    """Raise our own error where another process has ended, or is not coming."""
    try:
        yield
    except RuntimeError as error:
        if out_of_memory(error):
            raise
        raise RanksError(
            f"process {ranks.index + 1} of {ranks.count} waited for another that has ended, or "
            f"took longer than {PATIENCE.total_seconds() / 60:.0f} minutes",
            "that one says why; the same command resumes from the last finished round",
        ) from None
