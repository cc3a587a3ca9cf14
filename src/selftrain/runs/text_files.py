"""The files that are answered, as they are when a command begins: a file, a folder, addresses.

Who goes on with the work of a killed command must read the same rows: a local file is named by its
hash, a file in a store by what the store says of this version of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selftrain.data.files import listed_files
from selftrain.data.places import Place
from selftrain.data.remote import Remote
from selftrain.data.sources import source_of
from selftrain.disk import refusals, sha256
from selftrain.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine."""

    path: Path
    stamp: tuple[int, int]
    sha256: str

    @classmethod
    def of(cls, place: Place) -> LocalFile:
        """Read a file once for its hash; an error for what can be read only once."""
        path = place.path
        if place.is_stdin or (path.exists() and not path.is_file() and not path.is_dir()):
            raise ConfigError(
                f"{path} can be read only once; answers in parts go on after a kill",
                "write the texts to a file first, or the answers to a file: -o answers.parquet",
            )
        source_of(place)  # its errors say more
        with refusals(path, "read"):
            stamp = _stamp(path)
            return cls(path, stamp, sha256(path))

    def facts(self) -> dict[str, Any]:
        """What a manifest says of it: a file may have another name next time."""
        return {"bytes": self.stamp[0], "sha256": self.sha256}

    def is_same(self) -> bool:
        """Whether nobody has written to it since."""
        with refusals(self.path, "read"):
            return _stamp(self.path) == self.stamp


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a store."""

    version: Remote

    def facts(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {"bytes": self.version.size, "tag": self.version.tag}

    def is_same(self) -> bool:
        """Whether the store still has this version."""
        return Remote.of(self.version.address) == self.version


@dataclass(frozen=True, slots=True)
class TextFiles:
    """All files of a place, in the order in which they are read."""

    place: Place
    files: tuple[LocalFile | StoredFile, ...]

    @classmethod
    def of(cls, source: Path | Place, form: str | None = None) -> TextFiles:
        """The files of a place; ``form`` is the format of those whose names do not say it."""
        place = Place.of(source)
        return cls(
            place,
            tuple(
                StoredFile(Remote.of(file.text)) if file.is_address else LocalFile.of(file)
                for file in listed_files(place, form).files
            ),
        )

    def facts(self) -> dict[str, Any]:
        """What a manifest says of them."""
        return {"files": [file.facts() for file in self.files]}

    def check_same(self) -> None:
        """Raise where a file was written to since the command began."""
        if not all(file.is_same() for file in self.files):
            raise self.changed()

    def changed(self) -> DataError:
        """The error for texts that are others than those that were counted."""
        return DataError(
            f"{self.place} has changed while it was answered; the finished parts stay",
            "put the old file back and give the same command again, or choose another folder: "
            "-o NEW/",
        )


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns
