"""The audit of a round: what the teacher thought of each pool row, and what became of it.

A short audit is a tuple. A long one lies in a file without a name, which nobody else can open and
which vanishes with it: memory does not grow with the pool.
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

HELD = 100_000
"""Lines kept in memory; a longer audit is written to a file."""
CHUNK = 8_192
"""Lines written to it, and read back, together."""
LEFT = "left"
"""What becomes of a row that is neither easy nor hard."""


class Draft:
    """An audit being written: its lines are known, what becomes of them is not yet."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lines: list[AuditLine] = []
        self._spool: _Spool | None = None

    def __iter__(self) -> Iterator[AuditLine]:
        if self._spool is not None:
            yield from self._spool
        yield from self._lines

    def add(self, line: AuditLine) -> None:
        """One more line; beyond what is held, lines go to a file."""
        self._lines.append(line)
        if len(self._lines) > (HELD if self._spool is None else CHUNK):
            self._spill()

    def settled(self, roles: Mapping[str, str]) -> AuditLines:
        """The audit, with a role for each uid that is not left: by uid, or as it came if long."""
        if self._spool is not None:
            return _Spooled(self._spill(), roles)
        lines = (_settled(line, roles) for line in self._lines)
        return tuple(sorted(lines, key=lambda line: line.uid))

    def _spill(self) -> _Spool:
        self._spool = self._spool or _Spool(self._folder)
        for start in range(0, len(self._lines), CHUNK):
            self._spool.write(self._lines[start : start + CHUNK])
        self._lines.clear()
        return self._spool


class _Spooled:
    """A long audit: lines from a file, each with its role, to be gone through again and again."""

    def __init__(self, spool: _Spool, roles: Mapping[str, str]) -> None:
        self._spool = spool
        self._size = spool.size
        self._roles = roles

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[AuditLine]:
        return (_settled(line, self._roles) for line in islice(self._spool, self._size))


def _settled(line: AuditLine, roles: Mapping[str, str]) -> AuditLine:
    return replace(line, role=roles.get(line.uid, LEFT))


class _Spool:
    """Lines without a role in a file without a name, in the order they came."""

    def __init__(self, folder: Path | None) -> None:
        self._place = folder or Path(tempfile.gettempdir())
        self._file = self._opened()
        self._ends = [0]  # of each chunk in the file
        self.size = 0
        finalize(self, _close, self._file)

    def write(self, lines: Sequence[AuditLine]) -> None:
        """One more chunk."""
        import pyarrow

        columns = [
            [_name(line.uid) for line in lines],
            *([getattr(line, name) for line in lines] for name in _schema().names[1:]),
        ]
        batch = pyarrow.record_batch(columns, schema=_schema())
        try:
            self._file.seek(self._ends[-1])
            self._file.write(batch.serialize())
            self._file.flush()  # a full disk is an error here, not when the lines are read
        except OSError as error:
            raise self._refused(error) from None
        self._ends.append(self._file.tell())
        self.size += len(lines)

    def __iter__(self) -> Iterator[AuditLine]:
        import pyarrow

        for start, end in pairwise(tuple(self._ends)):
            self._file.seek(start)  # each time: someone else may read in between
            raw = pyarrow.py_buffer(self._file.read(end - start))
            batch = pyarrow.ipc.read_record_batch(raw, _schema())
            names, *others = (column.to_pylist() for column in batch.columns)
            uids = (name.decode("utf-8", "surrogatepass") for name in names)
            yield from map(AuditLine, uids, *others, repeat(LEFT))

    def _opened(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self._place, prefix="selftrain-")
        except OSError as error:
            raise self._refused(error) from None

    def _refused(self, error: OSError) -> RunError:
        return RunError(
            f"{self._place} does not take the audit of a long pool: {error.strerror}",
            "keep it elsewhere: --cache FOLDER",
        )


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # what a full disk did not take was told when it was written
        file.close()


def _name(uid: str) -> bytes:
    # An example made by hand may be named by any string, half a surrogate pair included.
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
