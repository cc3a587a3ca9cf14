"""Copy a run folder to object storage, round by round.

    s3://bucket/prefix/
      manifest.json                first: it says whose run this is
      rounds/0/…, round.json       the files of a round, and its ``round.json`` last
      rungs/frozen/…               a run of its own, in the same order
      estimate.json, report.json … what `fit` writes at its end

A round is there when its ``round.json`` is. No object is ever written over: each is created only if
there is none of that name, which the store itself decides, so two writers cannot mix their runs.
What is there already with the same content is left alone, so an interrupted copy goes on; what is
there with other content is an error that names it. A run folder holds no texts, so none leave it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import Any

from selftrain.disk import plain_file, refusals, sha256
from selftrain.errors import ConfigError, RunError, SelftrainError
from selftrain.escape import brief
from selftrain.runs.keep import KEEP, frozen_folder
from selftrain.runs.manifest import MANIFEST
from selftrain.runs.read import PAGES, ROUNDS, read_manifest, records, verified
from selftrain.runs.record import RECORD, Record

STORES = {"s3": "s3fs", "gs": "gcsfs", "file": "", "memory": ""}
"""Kinds of stores that create an object only if there is none, and the package each needs."""
EXTRAS = {"s3fs": "s3", "gcsfs": "gcs"}
CLOSING = ("estimate.json", "opinions.parquet", "ladder.json", KEEP, *PAGES)
"""What `fit` writes after the last round, none of it with a text."""
S3_SETTINGS: dict[str, Any] = {
    "config_kwargs": {
        "connect_timeout": 10,
        "read_timeout": 60,
        "retries": {"max_attempts": 2},
    },
    "use_listings_cache": False,
    "skip_instance_cache": True,
}
"""A store that does not answer is known in a minute or two; what it holds is always asked anew."""
BLOCK = 2**20  # bytes of an object that are read at a time
HINT = "look at the address, the credentials and the network, then: selftrain publish RUN ADDRESS"


@dataclass(frozen=True, slots=True)
class Store:
    """A place in object storage."""

    kind: str
    prefix: str
    """The bucket and what comes before each name, without a slash at the end."""
    files: Any
    """The store as a file system of fsspec, which has no types."""

    @classmethod
    def at(cls, address: str) -> Store:
        """The place at an address; an error for one that no store has. Nothing is asked yet."""
        kind, separator, rest = address.partition("://")
        if not separator or kind not in STORES:
            raise ConfigError(
                f"cannot publish to `{brief(address)}`: expected one of "
                f"{', '.join(f'{name}://…' for name in STORES)}",
                "s3://BUCKET/PREFIX",
            )
        prefix = rest.rstrip("/")
        parts = prefix.split("/")
        if not prefix or "@" in parts[0] or {".", ".."} & set(parts):  # @: a key and its secret
            raise ConfigError(
                "cannot publish there: the address is no bucket with a prefix",
                "s3://BUCKET/PREFIX, with the credentials in the environment",
            )
        if package := STORES[kind]:
            try:
                import_module(package)
            except ImportError:
                extra = EXTRAS[package]
                raise ConfigError(
                    f"{package} is not installed; the extra `{extra}` has it",
                    f"pip install 'selftrain[{extra}]'",
                ) from None
        settings = S3_SETTINGS if kind == "s3" else {}
        return cls(kind, prefix, import_module("fsspec").filesystem(kind, **settings))

    def create(self, path: Path, name: str) -> bool:
        """Copy a file to an object; False if it is there already, an error if another is."""
        target = f"{self.prefix}/{name}"
        if self.holds(path, name):
            return False
        try:
            self._create(path, target)
        except Exception:
            if self.holds(path, name):  # another writer of the same run was first
                return False
            raise
        return True

    def holds(self, path: Path, name: str) -> bool:
        """Whether a file is there already; an error if another one is there under its name."""
        target = f"{self.prefix}/{name}"
        try:
            size = self.files.info(target)["size"]
        except FileNotFoundError:
            return False
        if size == path.stat().st_size and self._sha256(target) == sha256(path):
            return True
        raise RunError(
            f"{self.kind}://{target} is there already, with other content: it is of another run, "
            "or of an earlier state of this one",
            "choose another prefix, or remove what is there",
        )

    def _create(self, path: Path, target: str) -> None:
        """Write an object, unless there is one: of two writers the store refuses the second."""
        if self.kind == "file":
            self._link(path, target)
        elif self.kind == "memory":
            self.files.pipe_file(target, path.read_bytes(), mode="create")
        else:  # s3: If-None-Match: *; gs: if-generation-match 0
            self.files.put_file(str(path), target, mode="create")

    @staticmethod
    def _link(path: Path, target: str) -> None:
        """Write a file beside its place and link it there, which fails where there is one."""
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(f"{target}.{token_hex(4)}.tmp")
        try:
            shutil.copyfile(path, temporary)
            os.link(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def _sha256(self, target: str) -> str:
        """The sha256 of an object."""
        hashed = hashlib.sha256()
        with self.files.open(target, "rb") as file:
            while block := file.read(BLOCK):
                hashed.update(block)
        return hashed.hexdigest()


def publish(folder: Path, store: Store, *, rounds_only: bool = False) -> int:
    """Copy what a store lacks of a run, and return the number of files copied.

    Whole rounds are copied, and what `fit` writes at its end if the run is finished. With
    ``rounds_only`` that end is left out: an earlier end may lie there while a run goes on.
    """
    with reaching(store):
        return _publish(folder, store, "", rounds_only=rounds_only)


def _publish(folder: Path, store: Store, above: str, *, rounds_only: bool) -> int:
    """Copy a run, and the run of its frozen encoder in it; ``above`` comes before each name."""
    total = read_manifest(folder).total_rounds
    rounds = records(folder)
    copied = int(store.create(plain_file(folder / MANIFEST), above + MANIFEST))
    copied += sum(_publish_round(folder, record, store, above) for record in rounds)
    finished = bool(rounds) and (rounds[-1].last or rounds[-1].number >= total)
    if rounds_only or not finished:
        return copied
    frozen = frozen_folder(folder)
    if (frozen / MANIFEST).exists():
        below = f"{above}{frozen.relative_to(folder).as_posix()}/"
        copied += _publish(frozen, store, below, rounds_only=False)
    with refusals(folder, "read"):
        closing = [plain_file(folder / n) for n in CLOSING if os.path.lexists(folder / n)]
    return copied + sum(store.create(path, above + path.name) for path in closing)


def _publish_round(folder: Path, record: Record, store: Store, above: str) -> int:
    """Copy a round, its ``round.json`` last: where that is there, the others are too."""
    place, target = folder / ROUNDS / str(record.number), f"{above}{ROUNDS}/{record.number}"
    if store.holds(plain_file(place / RECORD), f"{target}/{RECORD}"):
        return 0
    verified(folder, record, record.files)
    names = (*sorted(record.files), RECORD)
    return sum(store.create(place / name, f"{target}/{name}") for name in names)


@contextmanager
def reaching(store: Store) -> Iterator[None]:
    """Turn what a store or its library says into one line with a hint.

    Each library has errors of its own, and none may cost a training: so all of them are caught.
    """
    try:
        yield
    except SelftrainError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        problem = f"cannot publish to {store.kind}://{store.prefix}: {brief(lines[0])}"
        raise RunError(problem, HINT) from error
