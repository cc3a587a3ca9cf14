"""Annotate on a Ray cluster: actors take parts of a round, and give part files.

The part files are the interface, as without Ray: Ray carries the job once to each actor and the
numbers of parts, never votes or lines of an audit. All machines need the run folder, the folder of
parts and the pool under the same path.
"""

from __future__ import annotations

import logging
import math
import os
import shlex
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from selftrain.data.rows import Example
from selftrain.errors import ConfigError, RunError, SelftrainError, extra_package
from selftrain.method.scores import Votes
from selftrain.model.classifier import Classifier
from selftrain.runs.annotate import StoredVotes, annotator
from selftrain.runs.parts import is_finished, next_round
from selftrain.training import annotate as annotating
from selftrain.training.annotate import Part
from selftrain.training.job import Job
from selftrain.training.machine import Machine
from selftrain.training.preflight import size_of

log = logging.getLogger(__name__)

MOST_DEALT = 1_000
"""Parts of a round at most: each loses a little time, and a lost one is little work."""
CONNECT = 10  # seconds to wait for the head of a cluster


@dataclass(frozen=True, slots=True)
class ClusterVotes:
    """Annotates each round on a Ray cluster, then reads its part files."""

    job: Job
    run: Path
    parts: Path
    address: str
    """``local`` to start a cluster here, ``auto`` for the running one, or HOST:PORT of its head."""

    def __call__(
        self,
        teacher: Classifier,
        pool: Iterable[Example],
        passes: int,
        *,
        seed: int,
        machine: Machine,
    ) -> Iterator[tuple[list[Example], Votes]]:
        """The votes on each example, chunk by chunk, in the order of the pool."""
        origin, _ = next_round(self.run)
        parts = parts_of(size_of(pool))
        missing = [part for part in parts if not is_finished(self.parts, origin, part)]
        if missing:
            with connected(self.address, self.parts) as ray:
                self.deal(ray, missing, machine)
        stored = StoredVotes(self.run, self.parts)
        yield from stored(teacher, pool, passes, seed=seed, machine=machine)

    def deal(self, ray: Any, parts: list[Part], machine: Machine) -> None:
        """Let actors annotate parts, each the next one that is left.

        Ray starts a lost actor again, and gives it its part again, where there is room. An actor
        without work leaves, so that there is room.
        """
        kind = machine.torch_device().type
        threads = machine.threads or torch.get_num_threads()
        needs = {"num_cpus": threads, "num_gpus": 1 if kind == "cuda" else 0}
        actor = ray.remote(max_restarts=-1, max_task_retries=-1, **needs)(PartAnnotator)
        settings = {"device": kind, "threads": threads, "cache_mb": machine.cache_mb}
        job = ray.put(self.job)
        left = iter(parts)

        def started(part: Part) -> tuple[Any, Any]:
            worker = actor.remote(job, self.run, self.parts, settings)
            return worker.annotate.remote(part), worker

        first = islice(left, room(ray.cluster_resources(), needs))
        running = dict(started(part) for part in first)
        log.info(f"{len(parts)} parts on {len(running)} actors")
        while running:
            (done, *_), _ = ray.wait(list(running))
            ray.get(done)
            following = next(left, None)
            # No other name may hold an actor: one that is done would not leave its room.
            if following is not None:
                running[running[done].annotate.remote(following)] = running[done]
            del running[done]


class PartAnnotator:
    """An actor that annotates parts of one round; it loads the teacher once."""

    def __init__(self, job: Job, run: Path, parts: Path, settings: dict[str, Any]) -> None:
        self._begin: Callable[[], AbstractContextManager[Callable[[Part], bool]]]
        self._begin = lambda: annotator(job, run, parts, Machine(**settings))
        self._resources = ExitStack()

    def annotate(self, part: Part) -> None:
        """Annotate a part, unless it is on disk."""
        self._annotate(part)

    @cached_property
    def _annotate(self) -> Callable[[Part], bool]:
        # Not in the constructor: Ray would bring its errors as an actor that died. The device is
        # checked here, on the machine that has it or not.
        return self._resources.enter_context(self._begin())


def parts_of(rows: int) -> list[Part]:
    """The parts of a round with so many rows; they depend on nothing else, so they are found again
    by a run that resumes."""
    chunks = math.ceil(rows / annotating.CHUNK)
    count = min(max(chunks, 1), MOST_DEALT)
    return [Part(number, count) for number in range(count)]


def room(resources: dict[str, float], needs: dict[str, int]) -> int:
    """How many actors with these needs a cluster has room for; at least 1.

    >>> room({"CPU": 8.0, "GPU": 2.0}, {"num_cpus": 2, "num_gpus": 1})
    2
    """
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    rooms = (resources.get(names[need], 0) // count for need, count in needs.items() if count)
    return max(1, int(min(rooms)))


@contextmanager
def connected(address: str, parts: Path) -> Iterator[Any]:
    """Within it Ray is connected to a cluster; one that is not there, or goes, is one line."""
    ray = extra_package("ray", "cluster")
    check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # the rest is in its own files
    try:
        ray.init(
            address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
        )
    except Exception as error:  # a node that starts too slowly is no more than that
        raise gone(address, f"{error}".partition("\n")[0]) from None
    try:
        yield ray
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SelftrainError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        problem = f"{type(error).__name__}; finished parts stay in {parts}"
        raise gone(address, problem) from None
    finally:
        ray.shutdown()


def check_reachable(address: str) -> None:
    """Raise unless the head of a cluster answers: Ray itself would wait for minutes."""
    if address in ("local", "auto"):
        return
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ConfigError(
            f"--ray is {address!r:.60}; expected local, auto or HOST:PORT", "--ray auto"
        )
    try:
        socket.create_connection((host, int(port)), CONNECT).close()
    except OSError as error:
        raise gone(address, error.strerror or str(error)) from None


def gone(address: str, problem: str) -> RunError:
    """The error for a cluster that does not answer."""
    return RunError(
        f"the Ray cluster `{address}` does not answer: {problem}",
        f"look at it: ray status --address {shlex.quote(address)}; then give the same command, "
        "which goes on from the finished parts",
    )
