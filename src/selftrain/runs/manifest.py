"""What ``manifest.json`` says of a run: what was asked, which decides it, and where it ran."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from selftrain.data.fewshot import fingerprint
from selftrain.data.rows import Labelled
from selftrain.data.task import Task
from selftrain.disk import LARGEST_JSON, damaged, plain_file, valid
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
    "accelerate",
    "numpy",
    "scikit-learn",
)
"""Those whose version may decide the last bits of a result."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was asked for, which decides the result, and where it runs, which decides last bits."""

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

    @classmethod
    def of(cls, job: Job, machine: Machine | None = None) -> Manifest:
        """The manifest of a run about to start here; the pool is read once, as a stream.

        Raises for a round larger than a run folder may hold: before anything is trained.
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
                "order of labelled": _order(split.labelled),
                "dev": fingerprint(split.dev),
                "pool": fingerprint(split.unlabelled),
            },
            backbone=Source(backbone.name, backbone.revision, backbone.sha256),
            versions={"python": platform.python_version(), **packages},
            device=machine.accelerator().device.type,
            threads=machine.threads or torch.get_num_threads(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            cache_mb=machine.cache_mb,
        )

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """The manifest in a file, which may come from anyone."""
        raw = plain_file(path, LARGEST_JSON).read_bytes()
        try:
            facts = from_json(raw)
        except ValueError as error:
            raise damaged(path, f"is not JSON: {error}") from None
        found = facts.get("format") if isinstance(facts, dict) else None
        if not isinstance(found, int):
            raise RunError(
                f"{path} was not written by selftrain: it names no format",
                "choose another folder: -o NEW",
            )
        check_format(raw, str(path), FORMAT, RunError)
        return valid(cls, raw, path)

    def asked(self) -> dict[str, Any]:
        """What must be the same for a run to go on, but for the number of rounds.

        Of a backbone its weights count, not its name.
        """
        return {
            "task": self.task,
            "method": self.method,
            "seed": self.seed,
            "data": self.data,
            "backbone": {"sha256": self.backbone.sha256},
        }

    def machine(self) -> dict[str, Any]:
        """What may differ when a run goes on, at the price of the last bits."""
        here = {"device": self.device, "threads": self.threads, "cache_mb": self.cache_mb}
        return {**self.versions, **here}


def _order(labelled: Sequence[Labelled]) -> str:
    """Names an order of rows: batches are drawn by place, so another order is another result.

    Of dev rows the order decides nothing, nor of a pool, unless it is too long to be held and a
    round takes all of it.
    """
    uids = json.dumps([row.example.uid for row in labelled])
    return hashlib.sha256(uids.encode()).hexdigest()


def differences(was: Any, now: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ: the place, what stood there, and what stands there now."""
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        was, now = dict(enumerate(was)), dict(enumerate(now))
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            inner = f"{place}.{key}" if place else str(key)
            yield from differences(was.get(key), now.get(key), inner)
    elif was != now:
        yield place, was, now
