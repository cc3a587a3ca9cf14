"""Where rows come from, as a user writes it: a file, a folder, a glob, standard input, an address.

A folder or a glob stands for all files in it that have an ending we read, in the order of their
names. Files and folders that start with a dot or an underscore are notes of the program that wrote
them (``_SUCCESS``, ``.part-0.crc``): they are left out.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from selftrain.errors import DataError, listing

LOCAL = "file://"


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from; an address keeps its ``//``, which a path would lose."""

    text: str
    """As it was written."""

    @classmethod
    def of(cls, source: str | Path | Place) -> Place:
        """The place of a path or a string; ``file://`` is a path of this machine."""
        text = source.text if isinstance(source, Place) else str(source)
        return cls(text.removeprefix(LOCAL))

    def __str__(self) -> str:
        return self.text if self.is_address else str(self.path)

    @property
    def is_address(self) -> bool:
        """Whether it is in a store, such as ``s3://bucket/pool``."""
        return "://" in self.text

    @property
    def is_stdin(self) -> bool:
        """Whether it stands for standard input."""
        return self.text == "-"

    @property
    def is_glob(self) -> bool:
        """Whether its last parts stand for several names."""
        return glob.has_magic(self.text)

    @property
    def path(self) -> Path:
        """The path on this machine."""
        return Path(self.text)

    @property
    def name(self) -> str:
        """The last part of it, whose ending says the format."""
        return PurePosixPath(self.text).name

    def would_have(self, path: Path) -> bool:
        """Whether a file at this path, or in it, would be one of the files of a folder or a glob.

        >>> Place("pool/part-*.csv").would_have(Path("pool/part-9.csv"))
        True
        >>> Place("pool/part-*.csv").would_have(Path("pool/answers.csv"))
        False
        """
        if self.is_address or self.is_stdin:
            return False
        is_pattern = self.is_glob and not self.path.exists()
        start = fixed_part(self.text) if is_pattern else self.text
        folder, inside = (Path(os.path.realpath(each)) for each in (start or ".", path))
        if not inside.is_relative_to(folder) or inside == folder:
            return False
        parts = inside.relative_to(folder).parts
        signs = PurePosixPath(self.text.removeprefix(start)).parts if is_pattern else ()
        if "**" in signs:  # what follows may match at any depth
            signs = signs[: signs.index("**")]
        matches = len(signs) <= len(parts) and all(map(fnmatchcase, parts, signs))
        return matches and not any(part.startswith((".", "_")) for part in parts)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files that a place stands for."""

    files: tuple[Place, ...]
    ignored: tuple[str, ...] = ()
    """Names of other files there, of a kind that is not read."""
    several: bool = False
    """Whether the place is a folder or a glob, which may have any number of files."""


def listed(place: Place, is_read: Callable[[str], bool]) -> Listing:
    """The files of a place, sorted by name; ``is_read`` says by a name whether it is one of them.

    A place that is one file is not looked at: who opens it says what is wrong with it.
    """
    if place.is_address:
        from selftrain.data import remote

        found = remote.files(place.text)
    else:
        found = _local_files(place)
    if found is None:
        return Listing((place,))
    visible = [file for file in found if not _is_hidden(file)]
    files = tuple(place for place, inside in visible if is_read(inside))
    ignored = tuple(inside for _, inside in visible if not is_read(inside))
    if not files:
        raise _nothing_to_read(place, ignored)
    return Listing(files, ignored, several=True)


def files_here(source: Path | Place) -> list[Path]:
    """The files of this machine that a place stands for, whether there are any or not."""
    place = Place.of(source)
    if place.is_address or place.is_stdin:
        return []
    return [place.path, *(file.path for file, _ in _local_files(place) or ())]


File = tuple[Place, str]
"""A file, and its name as seen from the folder or the fixed part of a glob."""


def _local_files(place: Place) -> Iterable[File] | None:
    """The files of a folder or a glob; None where the place is a single file."""
    if place.is_stdin:
        return None
    try:
        if place.path.is_dir():
            return [
                (Place(str(file)), file.relative_to(place.path).as_posix())
                for file in sorted(_below(place.path))
            ]
        if not place.is_glob or place.path.exists():
            return None
    except (OSError, ValueError):  # no permission, or a text for a path: who opens it says so
        return None
    start = fixed_part(place.text)
    folder = Path(start or ".")
    try:
        matches = list(folder.glob(place.text.removeprefix(start)))
    except (ValueError, NotImplementedError) as error:
        raise DataError(f"{place} is no pattern of names: {error}", "parts/*.parquet") from None
    if not matches:
        raise DataError(f"no file is named like {place}", f"see what there is: ls {folder}")
    files = {file for match in matches for file in (_below(match) if match.is_dir() else [match])}
    return [(Place(str(file)), file.relative_to(folder).as_posix()) for file in sorted(files)]


def fixed_part(pattern: str) -> str:
    """The folder of a glob that no sign of it changes, with its last slash.

    >>> fixed_part("pool/2024/part-*.csv"), fixed_part("*.csv")
    ('pool/2024/', '')
    """
    start = pattern[: min(pattern.find(sign) for sign in "*?[" if sign in pattern)]
    return start[: start.rfind("/") + 1]


def _below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _is_hidden(file: File) -> bool:
    return any(part.startswith((".", "_")) for part in PurePosixPath(file[1]).parts)


def _nothing_to_read(place: Place, ignored: Iterable[str]) -> DataError:
    names = listing([*ignored])
    return DataError(
        f"{place} has no file whose ending says how to read it"
        + (f"; it has {names}" * bool(names)),
        "name the files .csv, .tsv, .jsonl, .json, .parquet or .xlsx, or give --format",
    )
