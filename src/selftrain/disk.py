"""Bytes on disk, whole or not at all: through a kill, a full disk or a power cut.

Everything is written beside its place and renamed into it, so whoever reads finds the old state
or the new one, never half of either.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Literal, TypeVar

from safetensors import SafetensorError

from selftrain.errors import RunError, first_problem
from selftrain.escape import brief


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a place to write a file or a folder; it becomes ``path`` once it is whole and on disk.

    After an error nothing is left of it; after a kill perhaps a hidden file or folder. ``private``,
    in folders of our own: files are for their owner only, and what a kill left, a ``.tmp``, is
    known by its name and removed by the next writer. Elsewhere who may read the old file may read
    the new one, and a device or a pipe is not replaced.
    """
    name = f"{path.name}.tmp" if private else f".{path.name}.{token_hex(8)}"
    temporary = path.with_name(name)
    with refusals(path, "write"):
        old = path.stat() if path.exists() else None
        if old is not None and not (stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode)):
            raise RunError(f"{path} is neither a file nor a folder", "choose another name")
        if private:  # elsewhere a name that can be foreseen may be that of someone's own file
            remove(temporary)
        try:
            yield temporary
            seal(temporary, private=private)
            if old is not None and not private and temporary.is_file():
                temporary.chmod(stat.S_IMODE(old.st_mode))
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):  # what went wrong first is what the user should hear
                remove(temporary)
            raise
        sync(path.parent)  # a name is on disk when its folder's list of names is


def seal(path: Path, *, private: bool) -> None:
    """Bring a file, or a folder and the files in it, to disk."""
    for file in path.iterdir() if path.is_dir() else [path]:
        if private:
            file.chmod(0o600)
        sync(file)
    if path.is_dir():
        sync(path)


def sync(path: Path) -> None:
    """Return when the disk has what was written to this file, or this folder's list of names."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folder like a file, and journals its names by itself
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a file or a folder, if there is one; of a link, the link alone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def refusals(path: Path, doing: Literal["read", "write"]) -> Iterator[None]:
    """Turn what the system refuses into one line and a hint."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        path = Path(getattr(error, "filename", None) or path)
        told = re.search(r"os error (\d+)", str(error))  # all that safetensors says of it
        code = getattr(error, "errno", None) or (int(told[1]) if told else 0)
        reason = os.strerror(code) if code else str(error).partition("\n")[0]
        parent = shlex.quote(str(path.parent))
        raise RunError(
            f"cannot {doing} {path}: {reason}",
            f"make room, then give the same command again: df -h {parent}"
            if code == errno.ENOSPC
            else f"look at the folder and its rights: ls -la {parent}",
        ) from error


def slug(name: str) -> str:
    """A name as one part of a path.

    >>> slug("models/my bert"), slug("minilm-mlm"), slug("../..")
    ('models-my-bert', 'minilm-mlm', '')
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")


LARGEST_JSON = 16 * 2**20  # bytes: room for the counts of a hundred thousand classes

T = TypeVar("T")


def plain_folder(path: Path) -> Path:
    """The path, if a folder stands there and not a link to one: that could lead anywhere."""
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise damaged(path, "is not a plain folder")
    return path


def plain_file(path: Path, largest: int | None = None) -> Path:
    """The path, if a file stands there: a link could lead anywhere, and a pipe never end."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise damaged(path, "is not a plain file")
    if largest is not None and found.st_size > largest:
        raise damaged(path, f"has {found.st_size:,} bytes; expected at most {largest:,}")
    return path


def valid(kind: type[T], raw: bytes, path: Path) -> T:
    """The JSON of a file as a value of this kind, if each part of it has the right type."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_json(raw, strict=True)
    except ValidationError as error:
        wrong = first_problem(error)
        raise damaged(path, f"is damaged: {wrong.place}: {wrong.told}") from None


def sha256(path: Path) -> str:
    """The digest that tells a file from every other."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged(path: Path, problem: str) -> RunError:
    """The error of a file or folder that is not what was written."""
    hint = "copy the folder again, or begin in another one: -o NEW"
    return RunError(f"{path} {brief(problem)}", hint)
