"""Answers for millions of texts: a folder of Parquet parts, written by one process or by several.

    answers/
      _answers.json          what decides the answers: model, options, texts and their number
      _finished/00000.json   of each finished part: rows, labels given, sha256
      part-00000.parquet     the answers of rows 1 to 102,400; then part-00001.parquet, …

A part appears when it is complete, and its record after it. A killed process goes on after the
finished parts. A part is a whole number of chunks, so its answers have the same bits whoever
computes it, and whatever parts were computed before.
Readers of Parquet folders pass by names that begin with an underscore.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from selftrain.data.read import Counted, open_texts
from selftrain.data.write import write_table
from selftrain.disk import (
    LARGEST_JSON,
    check_local,
    plain_file,
    refusals,
    remove,
    replacing,
    sha256,
    sync,
)
from selftrain.errors import RunError, check_format, parsed
from selftrain.escape import brief
from selftrain.runs.manifest import differences
from selftrain.runs.predict import Answer, AnswerOptions, Count, answers, columns
from selftrain.runs.text_files import TextFiles

if TYPE_CHECKING:
    from selftrain.data.read import Columns, Reading, Texts
    from selftrain.data.rows import Notes
    from selftrain.model.classifier import Classifier
    from selftrain.training.machine import Machine

FORMAT = 1
MANIFEST, FINISHED = "_answers.json", "_finished"
PART_ROWS = 100 * 1024  # a hundred chunks
ANOTHER = "choose another folder: -o NEW/"


# ── what the answers are made of ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AnswersManifest:
    """The content of ``_answers.json``: all that decides the answers, and how they are cut."""

    format: int
    model: dict[str, Any]
    """The hash of the model, and what its probabilities are corrected by."""
    options: dict[str, Any]
    """The options of the command that change an answer."""
    texts: dict[str, Any]
    """Of each file its size, and its sha256 or what its store says of this version."""
    rows: int
    id_column: str | None
    part_rows: int

    @property
    def parts(self) -> int:
        """How many parts the rows are cut into."""
        return -(-self.rows // self.part_rows)

    def places(self, part: int) -> range:
        """The rows of a part, counted from 0."""
        return range(part * self.part_rows, min((part + 1) * self.part_rows, self.rows))


def model_facts(model: Classifier) -> dict[str, Any]:
    """What a manifest says of a model that is ready to answer."""
    shift = model.prior_shift
    return {
        "sha256": model.digest(),
        "temperature": model.temperature,
        "prior_shift": None if shift is None else shift.tolist(),
    }


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several processes that write a folder together."""

    number: int = 0
    """From 0, as Slurm and Kubernetes count."""
    of: int = 1

    def parts(self, total: int) -> range:
        """The parts that it writes: neighbours, so that it reads no further than it must.

        >>> [list(Shard(number, 3).parts(7)) for number in range(3)]
        [[0, 1], [2, 3], [4, 5, 6]]
        """
        return range(total * self.number // self.of, total * (self.number + 1) // self.of)


# ── the folder ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Finished:
    """The record of a finished part."""

    rows: int
    labelled: int
    confidence: float
    """The sum over the labels given."""
    sha256: str


def existing(folder: Path) -> AnswersManifest | None:
    """The manifest of a folder; None where answers may begin; any other folder is an error."""
    check_local(folder, "a folder to write")
    path = folder / MANIFEST
    with refusals(folder, "read"):
        if folder.exists() and not folder.is_dir():
            raise RunError(f"{folder} is a file; answers in parts are a folder", ANOTHER)
        names = sorted(each.name for each in folder.iterdir()) if folder.exists() else []
        if not os.path.lexists(path):  # asked after the names: another process may begin just now
            foreign = [name for name in names if not name.startswith(f".{MANIFEST}.")]
            if foreign:
                raise RunError(
                    f"{folder} is neither empty nor a folder of answers: it holds "
                    f"{brief(foreign[0])!r}",
                    ANOTHER,
                )
            return None
        raw = plain_file(path, LARGEST_JSON).read_bytes()
    check_format(raw, str(path), FORMAT, RunError)
    return parsed(AnswersManifest, raw, f"{path} is damaged", RunError, ANOTHER, strict=True)


WHAT = {"model": "of another model", "options": "with other options", "texts": "of other texts"}


def check_same(folder: Path, earlier: AnswersManifest, asked: Mapping[str, Any]) -> None:
    """Raise where a folder has answers of another model, with other options or of other texts."""
    entries = asdict(earlier)
    for place, old, new in differences({name: entries[name] for name in asked}, dict(asked)):
        what = WHAT.get(place.partition(".")[0], "of another command")
        raise RunError(
            f"{folder} has answers {what}: {place} was {brief(str(old))}, now {brief(str(new))}",
            f"give the command that began it, or {ANOTHER}",
        )


def begin(folder: Path, manifest: AnswersManifest) -> None:
    """Write the manifest of a new folder, or compare it with the one that is there.

    Of several processes that begin at once, one writes it and the others compare.
    """
    with refusals(folder, "write"):
        folder.mkdir(parents=True, exist_ok=True)
        if existing(folder) is None:
            _write_new(folder / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
        (folder / FINISHED).mkdir(exist_ok=True)
    earlier = existing(folder)
    assert earlier is not None
    check_same(folder, earlier, asdict(manifest))


def _write_new(path: Path, text: str) -> None:
    """Write a whole file at once, unless another process has written one."""
    temporary = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        temporary.write_text(text, encoding="utf-8")
        sync(temporary)
        with suppress(FileExistsError):
            os.link(temporary, path)  # unlike a rename it replaces nothing
        sync(path.parent)
    finally:
        remove(temporary)


def finished(folder: Path) -> dict[int, Finished]:
    """The records of all finished parts, by their numbers."""
    records = {}
    with refusals(folder, "read"):
        for path in sorted((folder / FINISHED).glob("*.json")):
            if not re.fullmatch("[0-9]{5,}", path.stem):
                continue
            raw, hint = plain_file(path, LARGEST_JSON).read_bytes(), write_again(path)
            records[int(path.stem)] = parsed(
                Finished, raw, f"{path} is damaged", RunError, hint, strict=True
            )
    return records


def check_part(folder: Path, number: int, record: Finished) -> None:
    """Raise where a finished part is not there, or is not as it was written."""
    path = part_path(folder, number)
    with refusals(path, "read"):
        if not os.path.lexists(path):
            problem = "is not there, but was finished"
        elif sha256(plain_file(path)) == record.sha256:
            return
        else:
            problem = "is not what was written: its sha256 differs"
    raise RunError(f"{path} {problem}", write_again(record_path(folder, number)))


def write_again(record: Path) -> str:
    """The hint that has a part written again."""
    return f"remove its record and give the same command again: rm {shlex.quote(str(record))}"


def part_path(folder: Path, number: int) -> Path:
    """The file of a part."""
    return folder / f"part-{number:05}.parquet"


def record_path(folder: Path, number: int) -> Path:
    """The record of a finished part."""
    return folder / FINISHED / f"{number:05}.json"


# ── answering ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Order:
    """What to answer into which folder."""

    folder: Path
    source: TextFiles
    options: Mapping[str, Any]
    """What changes an answer, or which rows are read, by name."""
    shard: Shard = Shard()

    def open(self, columns: Columns, reading: Reading, notes: Notes) -> Texts:
        """The texts; all are read and counted unless a process before this one has done so."""
        earlier = existing(self.folder)
        if earlier is None:
            return open_texts(self.source.place, columns, reading, notes=notes)
        check_same(self.folder, earlier, {"options": self.options, "texts": self.source.facts()})
        counted = Counted(earlier.rows, earlier.id_column)
        return open_texts(self.source.place, columns, reading, notes=notes, counted=counted)

    def manifest(self, model: Classifier, texts: Texts) -> AnswersManifest:
        """The manifest of a folder that is begun with this model."""
        return AnswersManifest(
            format=FORMAT,
            model=model_facts(model),
            options=dict(self.options),
            texts=self.source.facts(),
            rows=len(texts),
            id_column=texts.id_column,
            part_rows=PART_ROWS,
        )


def write_parts(
    model: Classifier, texts: Texts, order: Order, wanted: AnswerOptions, *, machine: Machine
) -> int:
    """Write the parts of a shard that are not finished, and return the number of all parts.

    Finished parts are compared with their hash. Of a row that is not answered no cell is read.
    """
    from selftrain.training.machine import silent

    manifest = order.manifest(model, texts)
    begin(order.folder, manifest)
    wanted_parts, done = order.shard.parts(manifest.parts), finished(order.folder)
    for number in wanted_parts:
        if number in done:
            check_part(order.folder, number, done[number])
    missing = {number: manifest.places(number) for number in wanted_parts if number not in done}
    total = sum(map(len, missing.values()))
    steps = iter(machine.progress(range(total), "answering texts", total))
    quiet = replace(machine, progress=silent)
    for number, table in zip(missing, texts.parts(missing.values()), strict=True):
        names, count = columns(model, table, texts=wanted.texts), Count()
        # Without its number of rows it shows no progress.
        rows = answers(model, replace(table, rows=None), wanted, count, machine=quiet)
        _write_part(
            order.folder, number, names, _checked(rows, steps, order.source, table.rows), count
        )
    next(steps, None)  # the last step is done
    return manifest.parts


def _checked(
    rows: Iterator[Answer], steps: Iterator[int], source: TextFiles, expected: int | None
) -> Iterator[Answer]:
    """The answers of a part; an error at its end where the texts have changed meanwhile."""
    count = 0
    for row in rows:
        next(steps, None)
        count += 1
        yield row
    source.check_same()
    if count != expected:
        raise source.changed()


def _write_part(
    folder: Path, number: int, names: list[str], rows: Iterator[Answer], count: Count
) -> None:
    path, record = part_path(folder, number), record_path(folder, number)
    for place in (path, record):
        for rest in place.parent.glob(f".{place.name}.*"):  # of a process that was killed
            remove(rest)
    write_table(path, names, rows)
    facts = Finished(count.texts, count.labelled, count.confidence, sha256(path))
    with replacing(record) as temporary:
        temporary.write_text(json.dumps(asdict(facts)) + "\n", encoding="utf-8")


def counted(records: Iterable[Finished]) -> Count:
    """The count of several parts together."""
    total = Count()
    for record in records:
        total.texts += record.rows
        total.labelled += record.labelled
        total.confidence += record.confidence
    return total
