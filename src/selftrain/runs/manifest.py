"""The manifest of a run, ``manifest.json``: its configuration, and the machine it runs on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter
from pydantic_core import from_json

from selftrain.data.fewshot import fingerprint, order_fingerprint
from selftrain.data.pool import fingerprint_of_pool
from selftrain.data.task import Task
from selftrain.disk import COPY_AGAIN, LARGEST_JSON, damaged, plain_file, short_hash, valid
from selftrain.errors import RunError, check_format
from selftrain.model.card import Source
from selftrain.runs.lessons import check_fits

if TYPE_CHECKING:
    from selftrain.training.job import Job
    from selftrain.training.machine import Machine

FORMAT = 2
MANIFEST = "manifest.json"
PACKAGES = (
    "selftrain",
    "torch",
    "transformers",
    "tokenizers",
    "peft",
    "numpy",
    "scikit-learn",
)
"""Packages whose version may decide the last bits of a result."""
NOISE = ("processes", "accumulate")
"""What says how the rows of a training step are dealt, and so which dropout noise each gets."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The configuration, which decides the result, and the machine, which decides last bits."""

    format: int
    task: dict[str, Any]
    method: dict[str, Any]
    seed: int
    data: dict[str, str]
    """Fingerprints of the labelled rows and their order, the dev rows, and the pool."""
    backbone: Source
    versions: dict[str, str]
    device: str
    threads: int
    created: str
    cache_mb: int = 4096
    processes: int = 1
    accumulate: int = 1
    precision: Literal["fp32", "tf32", "bf16"] = "fp32"

    @classmethod
    def of(cls, job: Job, machine: Machine | None = None) -> Manifest:
        """The manifest of a run that starts on this machine; the pool is known from its cleaning.

        Raises, before anything is trained, for a round larger than a run folder can store.
        """
        import torch

        from selftrain.method.spec import to_plain
        from selftrain.training.machine import Machine

        machine = machine or Machine()
        split, backbone = job.split, job.backbone
        check_fits(split.unlabelled, job.method)
        packages = {name: version(name) for name in PACKAGES}
        return cls(
            format=FORMAT,
            task=TypeAdapter(Task).dump_python(job.task, mode="json"),
            method=to_plain(job.method),
            seed=job.seed,
            data={
                "labelled": fingerprint(split.labelled),
                # Batches are drawn by place: another order of these rows gives another result.
                "order of labelled": order_fingerprint(row.example for row in split.labelled),
                "dev": fingerprint(split.dev),
                "pool": fingerprint_of_pool(split.unlabelled),
            },
            backbone=Source(backbone.name, backbone.revision, backbone.sha256),
            versions={"python": platform.python_version(), **packages},
            device=machine.torch_device().type,
            threads=machine.threads or torch.get_num_threads(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            cache_mb=machine.cache_mb,
            processes=machine.ranks.count,
            accumulate=machine.accumulate,
            precision=backbone.precision,
        )

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """The manifest in a file, which may come from anyone."""
        raw = plain_file(path, LARGEST_JSON).read_bytes()
        try:
            facts = from_json(raw)
        except ValueError as error:
            raise damaged(path, f"is not JSON: {error}") from None
        number = facts.get("format") if isinstance(facts, dict) else None
        if not isinstance(number, int):
            raise RunError(
                f"{path} was not written by selftrain: it names no format",
                "choose another folder: -o NEW",
            )
        check_format(raw, str(path), FORMAT, RunError)
        return valid(cls, raw, path)

    @property
    def total_rounds(self) -> int:
        """How many rounds the method asks for, after round 0."""
        from selftrain.method.spec import total_rounds

        probe = self.method.get("probe")
        rounds = self.method.get("rounds")
        probes = probe.get("rounds") if isinstance(probe, dict) else 0
        if not (isinstance(rounds, int) and isinstance(probes, int)):
            raise RunError(f"{MANIFEST} is damaged: its method has no rounds", COPY_AGAIN)
        return total_rounds(rounds, probes)

    def configuration(self) -> dict[str, Any]:
        """What must be the same for a run to resume, except the number of rounds.

        Of a backbone its weights count, not its name.
        """
        return {
            "task": self.task,
            "method": self.method,
            "seed": self.seed,
            "data": self.data,
            "backbone": {"sha256": self.backbone.sha256},
        }

    def digest(self, length: int = 16) -> str:
        """A name for a run: the same after it resumes with more rounds, another for other data."""
        method = {name: value for name, value in self.method.items() if name != "rounds"}
        return short_hash({**self.configuration(), "method": method}, length)

    def machine(self) -> dict[str, Any]:
        """What may differ when a run resumes; the last bits of the result may then differ."""
        names = ("device", "threads", "cache_mb", *NOISE)
        settings = {name: getattr(self, name) for name in names}
        return {**self.versions, **settings}


def differences(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ: the place, the old value, and the new one."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{place}.{key}" if place else str(key)
            yield from differences(old.get(key), new.get(key), inner)
    elif old != new:
        yield place, old, new
