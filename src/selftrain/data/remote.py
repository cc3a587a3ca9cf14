"""Files in a store elsewhere, such as S3, by fsspec: the one door to it.

Bytes are streamed and read again in each pass; a copy would need a disk as big as the pool, and of
Parquet most bytes are never asked for. What the store says of a file when it is first seen (its
size, its ETag) must hold each time it is opened, so that all passes read the same rows.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from selftrain.data.places import File, Place, fixed_part
from selftrain.errors import DataError, SelftrainError, listing

INSTALL = {
    "s3": "pip install 'selftrain[s3]'",
    "gs": "pip install 'selftrain[gcs]'",
    "hf": "pip install --upgrade huggingface-hub",
    "memory": "pip install fsspec",
}
"""The stores that are read, and what brings the package for each."""
LOG_IN = {
    "s3": "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "log in: gcloud auth application-default login",
    "hf": "log in: hf auth login",
}
BLOCK = 4 * 2**20
"""Bytes that are asked for together."""
BLOCKS = 16
"""Blocks of one Parquet file in memory: its columns are read by turns."""
TAGS = ("ETag", "etag", "generation", "blob_id", "LastModified", "mtime", "created")
"""Entries of a file, of which a store has at least one; they change with its bytes."""
PACKAGES = (
    *("botocore", "aiobotocore", "s3fs", "gcsfs", "google", "huggingface_hub"),
    *("aiohttp", "httpx", "requests", "fsspec"),
)
"""Whose errors tell of the store, and not of a mistake of ours."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file in a store, as it was when it was first seen."""

    address: str
    size: int
    tag: str
    """What the store says of this version of the file."""

    @classmethod
    def of(cls, address: str) -> Remote:
        """The file of an address, as it is now."""
        with refusals(address):
            store, path = store_of(address)
            store.invalidate_cache()
            facts = store.info(path)
        if facts["type"] != "file":
            raise DataError(f"{address} is not a file", f"a folder ends in a slash: {address}/")
        tag = next((str(facts[name]) for name in TAGS if facts.get(name) is not None), "")
        return cls(address, facts["size"], tag)

    @contextmanager
    def open(self, *, by_turns: bool = False) -> Iterator[IO[bytes]]:
        """Its bytes; an error if it changed since. ``by_turns``: several parts of it are read."""
        if Remote.of(self.address) != self:
            raise changed(self.address)
        with refusals(self.address):
            store, path = store_of(self.address)
            cache: dict[str, Any] = {"cache_type": "readahead"}
            if by_turns:
                cache = {"cache_type": "blockcache", "cache_options": {"maxblocks": BLOCKS}}
            with store.open(path, "rb", block_size=BLOCK, **cache) as raw:
                yield raw if by_turns else io.BufferedReader(raw, 2**18)


def files(address: str) -> Iterable[File] | None:
    """The files of a folder or a glob in a store; None where the address is a single file."""
    with refusals(address):
        store, path = store_of(address)
        store.invalidate_cache()
        if Place(address).is_glob and not store.exists(path):
            folder = fixed_part(path)
            paths = [
                found
                for found, facts in store.glob(path, detail=True).items()
                if facts["type"] == "file"
            ]
        elif address.endswith("/") or store.isdir(path):
            folder, paths = path.rstrip("/") + "/", store.find(path)
        else:
            return None
    if not paths:
        raise DataError(f"{address} has no files, or there is no such bucket or folder", SPELLING)
    start = address.partition("://")[0] + "://"
    return [
        (Place(start + found.lstrip("/")), str(PurePosixPath(found.removeprefix(folder))))
        for found in sorted(paths)
    ]


SPELLING = "compare the name of the bucket and of the folder, letter by letter"


def store_of(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    protocol = address.partition("://")[0]
    if protocol not in INSTALL:
        known = listing([f"{name}://" for name in INSTALL])
        raise DataError(
            f"{address} is in a store that is not read; expected one of {known}",
            "download it first, and give the file",
        )
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        store, path = url_to_fs(address)
    except ImportError:
        raise DataError(
            f"{address} needs a package that is not installed", INSTALL[protocol]
        ) from None
    return store, str(path)


def changed(name: str) -> DataError:
    """The error for a file that is not what it was."""
    return DataError(
        f"{name} changed while it was in use",
        "wait until nobody writes it, and give the same command again",
    )


@contextmanager
def refusals(address: str) -> Iterator[None]:
    """Turn what a store refuses into one line and a hint."""
    try:
        yield
    except SelftrainError:
        raise
    except Exception as error:
        raise _refusal(address, error) from None


def _refusal(address: str, error: Exception) -> Exception:
    """An error of a store as one of ours; any other error as it is."""
    protocol, name = address.partition("://")[0], type(error).__name__
    log_in = LOG_IN.get(protocol, SPELLING)
    if name == "FileExpired":
        return changed(address)
    if isinstance(error, FileNotFoundError):
        return DataError(f"{address} does not exist", SPELLING)
    if "Credentials" in name or "Token" in name:
        return DataError(f"{address} cannot be read: no valid credentials were found", log_in)
    if isinstance(error, PermissionError):
        return DataError(f"{address} cannot be read: the store forbids it", log_in)
    if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in PACKAGES:
        reason = " ".join(str(error).split())[:200] or name
        return DataError(f"{address} cannot be read: {reason}", "try again, or download it first")
    return error
