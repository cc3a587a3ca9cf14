"""Collect the audit of a round: one line for each pool row, with its role in the lesson.

A short audit is a tuple. A long one is kept in an unnamed temporary file, which nobody else can
open and which vanishes with it, so memory does not grow with the pool.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise, repeat
from pathlib import Path
from typing import IO, Any
from weakref import finalize

from selftrain.data.rows import AuditLine, AuditLines
from selftrain.errors import RunError

MAX_LINES_IN_MEMORY = 100_000
"""A longer audit is written to a file."""
CHUNK = 8_192
"""Lines that are written to the file, and read back, together."""
NOT_SELECTED = "left"
"""The role of a row that is neither easy nor hard."""


class AuditBuilder:
    """Collects the lines of an audit while their roles are not known yet."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lines: list[AuditLine] = []
        self._file: _LineFile | None = None

    def __iter__(self) -> Iterator[AuditLine]:
        if self._file is not None:
            yield from self._file
        yield from self._lines

    def add(self, line: AuditLine) -> None:
        """Add a line; when there are too many for memory, write them to a file."""
        self._lines.append(line)
        if len(self._lines) > (MAX_LINES_IN_MEMORY if self._file is None else CHUNK):
            self._flush()

    def with_roles(self, roles: Mapping[str, str]) -> AuditLines:
        """The audit with the roles of easy and hard rows by uid.

        A short audit is sorted by uid; a long one keeps the order in which lines were added.
        """
        if self._file is not None:
            return _LongAudit(self._flush(), roles)
        lines = (_with_role(line, roles) for line in self._lines)
        return tuple(sorted(lines, key=lambda line: line.uid))

    def _flush(self) -> _LineFile:
        self._file = self._file or _LineFile(self._folder)
        for start in range(0, len(self._lines), CHUNK):
            self._file.write(self._lines[start : start + CHUNK])
        self._lines.clear()
        return self._file


class _LongAudit:
    """An audit in a file, whose lines get their roles when they are read."""

    def __init__(self, file: _LineFile, roles: Mapping[str, str]) -> None:
        self._file = file
        self._size = file.size
        self._roles = roles

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[AuditLine]:
        return (_with_role(line, self._roles) for line in islice(self._file, self._size))


def _with_role(line: AuditLine, roles: Mapping[str, str]) -> AuditLine:
    return replace(line, role=roles.get(line.uid, NOT_SELECTED))


class _LineFile:
    """Lines without roles in an unnamed temporary file, in the order they were added."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder or Path(tempfile.gettempdir())
        self._file = self._open()
        self._ends = [0]  # of each chunk in the file
        self.size = 0
        finalize(self, _close, self._file)

    def write(self, lines: Sequence[AuditLine]) -> None:
        """Append a chunk of lines."""
        import pyarrow

        columns = [
            [_encoded(line.uid) for line in lines],
            *([getattr(line, name) for line in lines] for name in _schema().names[1:]),
        ]
        batch = pyarrow.record_batch(columns, schema=_schema())
        try:
            self._file.seek(self._ends[-1])
            self._file.write(batch.serialize())
            self._file.flush()  # so that a full disk is an error now
        except OSError as error:
            raise self._write_error(error) from None
        self._ends.append(self._file.tell())
        self.size += len(lines)

    def __iter__(self) -> Iterator[AuditLine]:
        import pyarrow

        for start, end in pairwise(tuple(self._ends)):
            self._file.seek(start)  # each time: another reader may have moved it
            raw = pyarrow.py_buffer(self._file.read(end - start))
            batch = pyarrow.ipc.read_record_batch(raw, _schema())
            encoded, *others = (column.to_pylist() for column in batch.columns)
            uids = (uid.decode("utf-8", "surrogatepass") for uid in encoded)
            yield from map(AuditLine, uids, *others, repeat(NOT_SELECTED))

    def _open(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self._folder, prefix="selftrain-")
        except OSError as error:
            raise self._write_error(error) from None

    def _write_error(self, error: OSError) -> RunError:
        return RunError(
            f"cannot write the audit of a long pool to {self._folder}: {error.strerror}",
            "choose another folder: --cache FOLDER",
        )


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # a full disk was already an error when lines were written
        file.close()


def _encoded(uid: str) -> bytes:
    # The uid of an example made in Python may be any string, even half a surrogate pair.
    return uid.encode("utf-8", "surrogatepass")


@cache
def _schema() -> Any:
    import pyarrow

    number = pyarrow.float64()
    return pyarrow.schema(
        {
            "uid": pyarrow.binary(),
            "label": pyarrow.string(),
            "confidence": number,
            "certainty": number,
            "weight": number,
        }
    )
