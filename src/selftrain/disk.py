"""Files on disk: written completely or not at all, and checked when they are read.

A writer makes a temporary file beside the target and renames it, so a reader finds the old state
or the new one, never half of either: after a kill, a full disk or a power cut.
Files that are read may come from anyone, so links, pipes and oversized files are refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
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

from selftrain.errors import RunError, parsed
from selftrain.escape import brief, printable

T = TypeVar("T")

LARGEST_JSON = 16 * 2**20  # bytes: room for the counts of a hundred thousand classes
COPY_AGAIN = "copy the folder again, or begin in another one: -o NEW"


# ── writing ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write a file or a folder; at the end it replaces ``path``.

    An error leaves nothing behind; a kill may leave a hidden file or folder. With ``private``, for
    folders that only we write: only their owner may read the files, and the next writer removes a
    ``.tmp`` that a kill left. Without it, the new file has the permissions of the old one, and a
    device or a pipe is not replaced.
    """
    name = f"{path.name}.tmp" if private else f".{path.name}.{token_hex(8)}"
    temporary = path.with_name(name)
    with refusals(path, "write"):
        old = path.stat() if path.exists() else None
        if old is not None and not (stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode)):
            raise RunError(f"{path} is neither a file nor a folder", "choose another name")
        if private:  # elsewhere a file of that name may belong to somebody
            remove(temporary)
        try:
            yield temporary
            _seal(temporary, private=private)
            if old is not None and not private and temporary.is_file():
                temporary.chmod(stat.S_IMODE(old.st_mode))
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):  # the first error is the one to report
                remove(temporary)
            raise
        sync(path.parent)  # a name is on disk when its folder's list of names is


def _seal(path: Path, *, private: bool) -> None:
    """Force a file, or a folder and the files in it, to disk."""
    for file in path.iterdir() if path.is_dir() else [path]:
        if private:
            file.chmod(0o600)
        sync(file)
    if path.is_dir():
        sync(path)


def sync(path: Path) -> None:
    """Force the bytes of a file, or a folder's list of names, to disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open a folder like a file, and journals its names by itself
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists; of a link, only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def refusals(path: Path, doing: Literal["read", "write"]) -> Iterator[None]:
    """Turn errors of the operating system into a RunError with a hint."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        path = Path(getattr(error, "filename", None) or path)
        number = re.search(r"os error (\d+)", str(error))  # safetensors has it in its text only
        code = getattr(error, "errno", None) or (int(number[1]) if number else 0)
        reason = os.strerror(code) if code else str(error).partition("\n")[0]
        parent = shlex.quote(str(path.parent))
        raise RunError(
            f"cannot {doing} {path}: {reason}",
            f"make room, then give the same command again: df -h {parent}"
            if code == errno.ENOSPC
            else f"look at the folder and its rights: ls -la {parent}",
        ) from error


# ── where something may be written ───────────────────────────────────────────────────────────


def check_local(path: Path, what: str) -> None:
    """Raise unless a path is a local one that every library can write.

    ``what`` names the thing to be written. Libraries take ``s3://…`` and ``file:///…`` for another
    place than Python does, and some write no name that is not UTF-8.
    """
    shown = printable(str(path))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
        raise RunError(
            f"{shown} is an address; {what} has a local path", f"name it without one: {path.name}"
        )
    if not _is_utf8(str(path)):
        raise RunError(f"{shown} is not UTF-8; {what} needs a name that is", "choose another name")
    if "\0" in str(path):
        raise RunError(f"{shown} has a NUL character in its name", "choose another name")


def check_new_folder(path: Path, what: str) -> None:
    """Raise unless a path is free for a new folder: nothing is there, or an empty folder.

    ``what`` names the thing to be written.
    """
    check_local(path, what)
    new = "choose a new folder"
    with refusals(path, "write"):
        try:
            place = path.resolve()
        except RuntimeError:
            raise RunError(f"{path} is a link that leads to itself", new) from None
        if place.exists() and not place.is_dir():
            raise RunError(f"{path} is a file; {what} is a folder", new)
        if place.is_dir() and (names := sorted(each.name for each in place.iterdir())):
            raise RunError(f"{path} is not empty: it holds {brief(names[0])!r}", new)
        if place == Path.cwd():  # replacing it would leave the process in a removed folder
            raise RunError(f"{path} is the working folder", f"{new} in it")


def check_target(path: Path) -> None:
    """Raise unless a file can be written here, so that it is known before the work is done."""
    check_local(path, "a file to write")
    with refusals(path, "write"):
        try:
            target = path.resolve()
        except RuntimeError:
            raise RunError(f"{path} is a link that leads to itself", "remove it") from None
        parent = target.parent
        if target.exists() and not (target.is_file() or target.is_dir()):
            raise RunError(f"{path} is neither a file nor a folder", "choose another name")
        if target.is_dir():
            raise RunError(
                f"{path} is a folder; expected a file", f"name a file in it: {path / 'out.csv'}"
            )
        if not parent.is_dir():
            raise RunError(
                f"cannot write {path}: there is no folder {parent}",
                f"make it first: mkdir -p {shlex.quote(str(parent))}",
            )
        if not os.access(parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # Python keeps other bytes of a name as halves of characters
        return False
    return True


# ── reading what anyone may have written ─────────────────────────────────────────────────────


def plain_folder(path: Path) -> Path:
    """The path, if it is a folder and not a link, which could lead anywhere."""
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise damaged(path, "is not a plain folder")
    return path


def plain_file(path: Path, max_bytes: int | None = None) -> Path:
    """The path, if it is a file: a link could lead anywhere, and a pipe may never end."""
    facts = path.lstat()
    if not stat.S_ISREG(facts.st_mode):
        raise damaged(path, "is not a plain file")
    if max_bytes is not None and facts.st_size > max_bytes:
        raise damaged(path, f"has {facts.st_size:,} bytes; expected at most {max_bytes:,}")
    return path


def valid(kind: type[T], raw: bytes, path: Path) -> T:
    """The JSON of a file as a value of this type, if each part of it has the right type."""
    return parsed(kind, raw, f"{path} is damaged", RunError, COPY_AGAIN, strict=True)


def damaged(path: Path, problem: str) -> RunError:
    """The error for a file or folder that is not as we wrote it."""
    return RunError(f"{path} {brief(problem)}", COPY_AGAIN)


# ── hashes and names ─────────────────────────────────────────────────────────────────────────


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def short_hash(value: object, length: int = 12) -> str:
    """A name for a value of plain tables, lists and numbers: the start of its sha256 as JSON.

    Results, sweeps and cached teachers on disk are found by it, so it must never change.

    >>> short_hash({"b": 1, "a": [2.0, None]})
    '7480fd3a598d'
    """
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def slug(name: str) -> str:
    """A name as one part of a path: other signs become a dash.

    >>> slug("models/my bert"), slug("minilm-mlm"), slug("../..")
    ('models-my-bert', 'minilm-mlm', '')
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")
