"""Bytes that can be read again: of a file, a named pipe, standard input, or a store elsewhere.

A pipe can be read only once, but a pool is read twice: it is copied to a temporary file. Text is
decoded line by line, so an error names its line. A file may come from anyone: a small compressed
file can hold a line larger than memory, and is refused. A file that changes between two passes is
refused too: the rows of both would be mixed.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from selftrain.data.places import Place
from selftrain.data.remote import Remote, changed
from selftrain.errors import DataError, closest

FIELD_LIMIT = 16 * 2**20
"""Bytes of one line or one Parquet cell, characters of one CSV record. A longer record nearly
always has a quote that was never closed."""
FIRST_BYTES = 2**16
"""Bytes from which the ends of lines are known."""
CUT_TEXT = "cut the text: a model reads no more than its first few hundred words"
AS_CSV = "open it and save it again: File > Save As > CSV UTF-8 (Comma delimited)"
GZIP = b"\x1f\x8b"
WORKBOOK = b"PK\x03\x04"  # of any zip archive

OTHER_KINDS = {
    GZIP: ("gzipped", "give it the ending it needs: mv {file} {file}.gz"),
    WORKBOOK: ("an Excel workbook or another zip archive", "mv {file} {stem}.xlsx, or " + AS_CSV),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Excel or Office file", AS_CSV),
    b"PAR1": ("a Parquet file", "give it the ending it needs: mv {file} {stem}.parquet"),
    b"ARROW1": ("an Arrow file", "write it as Parquet: pandas.read_feather(…).to_parquet(…)"),
    b"SQLite format 3": ("an SQLite database", "sqlite3 -header -csv {file} 'SELECT …' > rows.csv"),
    b"%PDF-": ("a PDF", "give the table it was made of, as CSV in UTF-8"),
    b"BZh": ("packed by bzip2", "unpack it: bunzip2 -k {file}"),
    b"\xfd7zXZ": ("packed by xz", "unpack it: unxz -k {file}"),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "unpack it: zstd -d {file}"),
    b"\x89HDF": ("an HDF5 file", "write the table as CSV: pandas.read_hdf(…).to_csv(…)"),
    b"\x80\x04\x95": ("a pickle", "write the table as CSV: frame.to_csv(…, index=False)"),
    b"<!doctype html": ("a web page", "download the file itself, not the page that shows it"),
    b"<html": ("a web page", "download the file itself, not the page that shows it"),
    b"{\\rtf": ("rich text", "save it as plain text in UTF-8"),
}
"""The first bytes of files that are no plain text: what they are, and what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes with a name for messages, which can be read again and again."""

    name: str
    path: Path
    """What is opened: the file, or the copy of a pipe; of a file in a store its name alone."""
    gzipped: bool = False
    copy: object = None
    """The copy of a pipe: removed when nobody has this source any more."""
    stamp: tuple[int, int] | None = None
    """The size of a file and the time of its last change, as they were first seen."""
    remote: Remote | None = None
    """The file in a store; None where it is on this machine."""

    @contextmanager
    def open(self, *, by_turns: bool = False) -> Iterator[IO[bytes]]:
        """The bytes, unpacked if they are gzipped. ``by_turns``: several parts of them are read."""
        try:
            with self._raw(by_turns=by_turns) as raw:
                if not self.gzipped:
                    yield raw
                    return
                with gzip.open(raw) as file:
                    yield file  # type: ignore[misc]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(
                f"{self.name} is not a whole gzip file: {error}",
                f"see what it is: file {quoted(self.path)}",
            ) from None
        except OSError as error:
            raise DataError(
                f"{self.name} cannot be read: {error.strerror or error}",
                f"look at its rights: ls -l {quoted(self.path)}",
            ) from None

    @contextmanager
    def _raw(self, *, by_turns: bool) -> Iterator[IO[bytes]]:
        if self.remote is not None:
            with self.remote.open(by_turns=by_turns) as raw:
                yield raw
            return
        with self.path.open("rb") as raw:
            if self.stamp is not None and _stamp(os.fstat(raw.fileno())) != self.stamp:
                raise changed(self.name)
            yield raw

    def error(self, number: int, problem: str, hint: str, unit: str = "line") -> DataError:
        """An error that names the source and the line."""
        return DataError(f"{self.name}, {unit} {number}: {problem}", hint)

    def lines(self) -> Iterator[str]:
        """The lines of a text, without the byte order mark."""
        with self.open() as file:
            for number, raw in enumerate(_raw_lines(file), 1):
                if len(raw) > FIELD_LIMIT:
                    raise self.error(number, f"more than {FIELD_LIMIT:,} bytes", CUT_TEXT)
                line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
                yield _decoded(self, line, number)

    def parts(self) -> Iterator[str]:
        """A text in parts of some thousand characters, for one that has no lines."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        with self.open() as file:
            for number, raw in enumerate(iter(partial(file.read, FIRST_BYTES), b"")):
                try:
                    text = decoder.decode(raw)
                except UnicodeDecodeError as error:
                    place = number * FIRST_BYTES + error.start + 1
                    raise DataError(
                        f"{self.name}: the byte at about {place:,} is not UTF-8",
                        _convert(self, _encoding(raw)),
                    ) from None
                if text:  # not if it is the first byte of a character alone
                    yield text

    def start(self) -> bytes:
        """The first bytes, without a byte order mark and blanks."""
        with self.open() as file:
            return file.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()

    def check_text(self) -> None:
        """Raise for a file of another kind that was given the name of a text."""
        start = self.start().lower()
        for magic, (kind, hint) in OTHER_KINDS.items():
            if start.startswith(magic.lower()):
                names = {"file": quoted(self.path), "stem": quoted(self.path.with_suffix(""))}
                raise DataError(
                    f"{self.name} is {kind}, whatever its name says; expected text in UTF-8",
                    hint.format(**names),
                )


def source_of(source: Place | Path) -> Source:
    """The source of a single file; ``-`` is standard input. A pipe is read to its end."""
    place = Place.of(source)
    if place.is_address:
        name = Path(place.name)
        return Source(str(place), name, name.suffix.lower() == ".gz", remote=Remote.of(place.text))
    if place.is_stdin:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None or sys.stdin.closed:
            raise DataError("standard input is closed", "give a file, or feed it: … | selftrain")
        return _copied(stream, "standard input")
    path = place.path
    try:
        facts = _facts(path)
    except (OSError, ValueError) as error:  # a folder without permission, or a text for a path
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{str(path)[:80]} cannot be opened: {reason}",
            "a string is a path; texts come as a list",
        ) from None
    if stat.S_ISFIFO(facts.st_mode):
        with Source(str(path), path).open() as pipe:
            return _copied(pipe, str(path))
    if not stat.S_ISREG(facts.st_mode):
        raise DataError(
            f"{path} is a device or a socket; expected a file",
            "give a file, a pipe, or - for standard input",
        )
    return Source(str(path), path, path.suffix.lower() == ".gz", stamp=_stamp(facts))


def _stamp(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_size, facts.st_mtime_ns


def _facts(path: Path) -> os.stat_result:
    """What a path leads to; an error where it is a folder, or leads nowhere."""
    if path.is_dir():
        inside = sorted(entry for entry in path.iterdir() if entry.suffix and entry.is_file())
        raise DataError(
            f"{path} is a folder; expected a file",
            f"try {quoted(inside[0])}" if inside else f"see what it holds: ls {quoted(path)}",
        )
    if path.exists():
        return path.stat()
    if path.is_symlink():
        raise DataError(
            f"{path} is a link to {path.readlink()}, which does not exist",
            f"see where it leads: ls -l {quoted(path)}",
        )
    folder = path.parent
    if address := re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/+", str(path)):
        raise DataError(
            f"{path} is an address that was made a path, which loses a slash",
            f'give it as a string: "{address[1]}://{str(path)[address.end() :]}"',
        )
    near = closest(path.name, [p.name for p in folder.iterdir()] if folder.is_dir() else [])
    raise DataError(
        f"{path} does not exist",
        f"did you mean {quoted(folder / near)}?" if near else f"see: ls {quoted(folder)}",
    )


def _copied(stream: IO[bytes], name: str) -> Source:
    """A copy of all that a pipe gives; who may read it is its owner alone."""
    # Open as long as the source lives: closing it removes it.
    copy = tempfile.NamedTemporaryFile(prefix="selftrain-")  # noqa: SIM115
    try:
        shutil.copyfileobj(stream, copy)
        copy.flush()
    except OSError as error:
        raise DataError(
            f"{name} cannot be copied to {tempfile.gettempdir()}: {error.strerror}",
            "write it to a file and give that, or choose another place: TMPDIR=FOLDER",
        ) from None
    path = Path(copy.name)
    with path.open("rb") as file:
        return Source(name, path, file.read(2) == GZIP, copy)


def quoted(path: Path | str) -> str:
    """A path as it is typed in a shell, in quotes where it needs them."""
    return shlex.quote(str(path))


# ── lines ────────────────────────────────────────────────────────────────────────────────────


def _raw_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines with their ends, each no longer than one byte over the limit.

    Old Macs ended a line by a carriage return alone; so do some exports of today.
    """
    start = file.read(FIRST_BYTES)
    file.seek(0)
    if b"\r" in start and b"\n" not in start:
        return _ended_by_returns(file)
    return iter(partial(file.readline, FIELD_LIMIT + 1), b"")


def _ended_by_returns(file: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while part := file.read(FIRST_BYTES):
        *lines, rest = (rest + part).split(b"\r")
        yield from (line + b"\n" for line in lines)
        if len(rest) > FIELD_LIMIT:
            yield rest
            return
    if rest:
        yield rest


def _decoded(source: Source, raw: bytes, number: int) -> str:
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, column = raw[error.start], error.start + 1
        raise source.error(
            number,
            f"byte 0x{byte:02x} at {column} is not UTF-8",
            _convert(source, _encoding(raw)),
        ) from None
    if "\0" in line:
        often = 4 * line.count("\0") > len(line)  # UTF-16 has one in each plain character
        hint = _convert(source, "UTF-16") if often else _without_nul(source)
        raise source.error(number, "a NUL byte; expected text in UTF-8", hint)
    return line


def _encoding(raw: bytes) -> str:
    """A guess at how bytes are coded that are not UTF-8."""
    utf16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "UTF-16" if utf16 else "WINDOWS-1252"


def _convert(source: Source, encoding: str) -> str:
    path = source.path
    return f"iconv -f {encoding} -t UTF-8 {quoted(path)} > {quoted(f'utf8-{path.name}')}"


def _without_nul(source: Source) -> str:
    path = source.path
    return f"remove it: tr -d '\\000' < {quoted(path)} > {quoted(f'clean-{path.name}')}"
