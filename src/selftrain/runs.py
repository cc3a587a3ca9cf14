"""The run folder: everything a round gave is on disk before its line is printed.

    run/
      manifest.json          what was asked (task, method, seed, data, backbone), and where it ran
      rounds/0/              the teacher; rounds/1/ … the students
        model.safetensors    the trained tensors only, and model.json: what they belong to
        lesson.parquet       what the teacher thought of each pool row, and what became of it
        round.json           figures, verdict, and the sha256 of the other files

A round is written as ``N.tmp``, brought to disk and renamed: a folder with a number for a name is
whole. So a run killed at any moment goes on from its last whole round, and since every draw is
named by seed and round, it ends with the same bits as if nothing had happened.

A folder may come from anyone. Reading one follows no link, opens only files whose names stand
here, and takes no number on trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache, reduce
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from filelock import FileLock, Timeout
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError
from pydantic_core import from_json

from selftrain.audit import HELD
from selftrain.data import Example, Judged, Labeled, Lesson, Lines, Split
from selftrain.disk import refusals, remove, replacing, sync
from selftrain.errors import RunError
from selftrain.fewshot import fingerprint
from selftrain.task import Task

if TYPE_CHECKING:
    from selftrain.backbone import Backbone
    from selftrain.classifier import Classifier
    from selftrain.loop import Round
    from selftrain.machine import Machine
    from selftrain.method import Method

FORMAT = 1
MANIFEST, LOCK, ROUNDS = "manifest.json", ".lock", "rounds"
RECORD, LESSON, MODEL = "round.json", "lesson.parquet", ("model.json", "model.safetensors")
LARGEST_JSON = 16 * 2**20  # bytes: room for the counts of a hundred thousand classes
LARGEST_LESSON = 100_000_000  # rows: minutes to check, in the memory of a short one
LARGEST_TABLE = 2**30  # bytes of a lesson unpacked at once: all of a short one, a group of a long
LARGEST_GROUP = 2**20  # rows of a lesson packed together, as pyarrow does it by itself
GROUP = 16_384  # rows of a long lesson packed together; a short one is packed as a whole
BATCH = 8_192  # rows of a lesson read together
PACKAGES = (
    "selftrain",
    "torch",
    "transformers",
    "tokenizers",
    "peft",
    "accelerate",
    "numpy",
    "scikit-learn",
)
"""Those whose version may decide the last bits of a result."""

T = TypeVar("T")
Number = Annotated[int, Field(ge=-(2**63), lt=2**63)] | FiniteFloat
Figure = Number | dict[str, int] | list[dict[str, Number | None]]
"""A number, counts by class, or what each fit of the round had to say."""


# ── what the files say ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Base:
    """The backbone a run stands on."""

    name: str
    revision: str | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was asked for, which decides the result, and where it runs, which decides last bits."""

    format: int
    task: dict[str, Any]
    method: dict[str, Any]
    seed: int
    data: dict[str, str]
    """Fingerprints of the labelled rows and their order, the dev rows, and the pool."""
    backbone: Base
    versions: dict[str, str]
    device: str
    threads: int
    created: str

    @classmethod
    def of(
        cls,
        task: Task,
        split: Split,
        method: Method,
        *,
        backbone: Backbone,
        seed: int,
        on: Machine | None = None,
    ) -> Manifest:
        """The manifest of a run about to start here; the pool is read once, as a stream.

        Raises for a round larger than a run folder may hold: before anything is trained.
        """
        import torch

        from selftrain.machine import Machine
        from selftrain.method import to_plain

        on = on or Machine()
        _check_fits(split.unlabeled, method)
        packages = {name: version(name) for name in PACKAGES}
        return cls(
            format=FORMAT,
            task=TypeAdapter(Task).dump_python(task, mode="json"),
            method=to_plain(method),
            seed=seed,
            data={
                "labelled": fingerprint(split.labeled),
                "order of labelled": _order(split.labeled),
                "dev": fingerprint(split.dev),
                "pool": fingerprint(split.unlabeled),
            },
            backbone=Base(backbone.name, backbone.revision, backbone.sha256),
            versions={"python": platform.python_version(), **packages},
            device=on.accelerator().device.type,
            threads=on.threads or torch.get_num_threads(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def asked(self) -> dict[str, Any]:
        """What must be the same for a run to go on; of a backbone its weights, not its name."""
        return {
            "task": self.task,
            "method": self.method,
            "seed": self.seed,
            "data": self.data,
            "backbone": {"sha256": self.backbone.sha256},
        }

    def machine(self) -> dict[str, Any]:
        """What may differ when a run goes on, at the price of the last bits."""
        return {**self.versions, "device": self.device, "threads": self.threads}


def _order(labelled: Sequence[Labeled]) -> str:
    """Names an order of rows: batches are drawn by place, so another order is another result.

    Of dev rows the order decides nothing, nor of a pool, unless it is too long to be held and a
    round takes all of it.
    """
    uids = json.dumps([row.example.uid for row in labelled])
    return hashlib.sha256(uids.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Record:
    """What ``round.json`` says of a round."""

    number: int
    accepted: bool
    why: str
    last: bool
    figures: dict[str, Figure]
    files: dict[str, str]
    """The sha256 of every other file of the round."""

    @property
    def failed(self) -> bool:
        """Whether the training broke off: no other refused round ends the loop.

        Such a round has no model of its own: the last accepted one stays the result.
        """
        return self.last and not self.accepted


# ── writing ──────────────────────────────────────────────────────────────────────────────────


class Run:
    """A run folder being written, locked against every other writer until it is closed."""

    def __init__(
        self, folder: Path, manifest: Manifest, notes: tuple[str, ...], held: ExitStack
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.notes = notes
        """What the user should be told before the run goes on."""
        self._held = held

    @classmethod
    def start(cls, folder: str | Path, manifest: Manifest) -> Run:
        """Begin a run in a new or empty folder, or go on with a run of the same configuration.

        A run begun here is taken back after an error, unless it holds a round by then.
        """
        folder = Path(folder)
        _existing(folder)  # before the lock is made, so that a foreign folder stays as it is
        with refusals(folder, "write"), ExitStack() as held:
            made = [place for place in (folder, *folder.parents) if not place.exists()]
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held.enter_context(_locked(folder))
            earlier = _existing(folder)
            if earlier is None:
                held.enter_context(_begun(folder, made))
                with replacing(folder / MANIFEST, private=True) as path:
                    _write_json(path, manifest)
                sync(folder.parent)
            else:
                _check_same(folder, earlier, manifest)
            _clear_rounds(folder)
            return cls(folder, manifest, _notes(earlier or manifest, manifest), held.pop_all())

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.__exit__(*error)

    def done(self, backbone: Backbone) -> list[Round]:
        """The whole rounds so far, in order: what ``self_train`` goes on from."""
        from selftrain.classifier import Classifier
        from selftrain.loop import Round

        rounds: list[Round] = []
        for record in _records(self.folder):
            here = _verified(self.folder, record, record.files)
            if record.failed:
                model = [round_.model for round_ in rounds if round_.accepted][-1]
            else:
                model = Classifier.load(here, backbone)
            lesson = Lesson(gold=(), audit=_read_lesson(here / LESSON, self.manifest))
            verdict = (record.accepted, record.why, record.last)
            rounds.append(Round(record.number, model, lesson, record.figures, *verdict))
        return rounds

    def save(self, round_: Round) -> None:
        """Write a round; when this returns, all of it is on disk."""
        verdict = (round_.accepted, round_.why, round_.last)
        record = Record(round_.number, *verdict, figures=dict(round_.figures), files={})
        with replacing(self.folder / ROUNDS / str(round_.number), private=True) as here:
            here.mkdir(mode=0o700)
            if not record.failed:
                round_.model.save(here)
            _write_lesson(here / LESSON, round_.lesson)
            files = {path.name: _sha256(path) for path in sorted(here.iterdir())}
            _write_json(here / RECORD, replace(record, files=files))


def _locked(folder: Path) -> AbstractContextManager[object]:
    path = folder / LOCK
    if path.is_symlink():
        raise _damaged(path, "is a link")
    try:
        return FileLock(path, mode=0o600).acquire(blocking=False)
    except Timeout:
        raise RunError(
            f"{folder} is being written by another process",
            "wait until that one has ended, or begin in another folder: -o NEW",
        ) from None


@contextmanager
def _begun(folder: Path, made: Sequence[Path]) -> Iterator[None]:
    """Take back a run without a round, and the folders made for it, if an error ends this."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # a folder that holds something, a round or anything else, stays
            if (folder / ROUNDS).exists():
                (folder / ROUNDS).rmdir()
            for name in (MANIFEST, LOCK):
                remove(folder / name)
            for place in made:
                place.rmdir()
        raise


def _clear_rounds(folder: Path) -> None:
    """Make the folder of rounds, and remove what a killed writer left in it."""
    rounds = folder / ROUNDS
    if not os.path.lexists(rounds):
        rounds.mkdir(mode=0o700)
        sync(folder)
    for leftover in _plain_folder(rounds).glob("*.tmp"):
        remove(leftover)


def _check_same(folder: Path, was: Manifest, now: Manifest) -> None:
    for place, before, after in _differences(was.asked(), now.asked()):
        raise RunError(
            f"{folder} holds a run of another configuration: "
            f"{place} was {before!r:.60}, is now {after!r:.60}",
            "give what it was started with to go on, or begin in another folder: -o NEW",
        )


def _notes(was: Manifest, now: Manifest) -> tuple[str, ...]:
    return tuple(
        f"the run was started with {place} {before}, goes on with {after}: "
        "its result may differ in the last bits"
        for place, before, after in _differences(was.machine(), now.machine())
    )


def _differences(was: Any, now: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ: the place, what stood there, and what stands there now."""
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        was, now = dict(enumerate(was)), dict(enumerate(now))
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            inner = f"{place}.{key}" if place else str(key)
            yield from _differences(was.get(key), now.get(key), inner)
    elif was != now:
        yield place, was, now


def _write_json(path: Path, value: Manifest | Record) -> None:
    path.write_text(json.dumps(asdict(value), indent=2, allow_nan=False) + "\n", "utf-8")


def _check_fits(pool: Iterable[Example], method: Method) -> None:
    """Raise unless the lesson of a round can be read back."""
    if method.rounds and (method.pool == "all" or method.pool > LARGEST_LESSON):
        size = len(pool) if isinstance(pool, Sized) else sum(1 for _ in pool)
        if size > LARGEST_LESSON:
            raise RunError(
                f"a round would judge {size:,} rows; a run folder holds at most "
                f"{LARGEST_LESSON:,} of a round",
                "draw some of them in each round: pool = 4096 in the method",
            )


def _write_lesson(path: Path, lesson: Lesson) -> None:
    import pyarrow
    import pyarrow.parquet

    schema, lines, count = _lesson_schema(), iter(lesson.audit), len(lesson.audit)
    size = GROUP if count > HELD else max(1, count)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for _ in range(0, max(1, count), size):  # a lesson without lines has a group without rows
            group = list(islice(lines, size))
            columns = {name: [getattr(line, name) for line in group] for name in schema.names}
            writer.write_table(pyarrow.table(columns, schema=schema))
    if excess := _excess(pyarrow.parquet.read_metadata(path)):
        raise RunError(
            f"the lesson of a round {excess}, more than is ever read back",
            "give the pool shorter ids, or none: texts are then named by their hash",
        )


@cache
def _lesson_schema() -> Any:
    """The columns of a lesson: the fields of ``Judged``, none of which may be empty."""
    import pyarrow

    kinds = {"str": pyarrow.string(), "float": pyarrow.float64()}
    return pyarrow.schema(
        [pyarrow.field(each.name, kinds[str(each.type)], nullable=False) for each in fields(Judged)]
    )


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def load(
    folder: str | Path, number: int | None = None, *, backbone: str | None = None
) -> Classifier:
    """The model of the last accepted round, or of the given one.

    An embedded backbone is found by itself; any other must be given, because a path or a name
    that stands in a folder is not followed out of it.
    """
    folder = Path(folder)
    here = _verified(folder, _chosen(folder, number), MODEL)

    from selftrain import backbone as backbones
    from selftrain.classifier import Classifier

    return Classifier.load(here, None if backbone is None else backbones.load(backbone))


def history(folder: str | Path) -> list[dict[str, Any]]:
    """What is known of each round, in order: the contents of its ``round.json``."""
    return [asdict(record) for record in _records(Path(folder))]


def lessons(folder: str | Path) -> Iterator[tuple[int, Lines]]:
    """What the teacher thought of each pool row: number and audit of every whole round, checked."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    labels = manifest.task.get("labels")
    if not (isinstance(labels, list) and all(isinstance(label, str) for label in labels)):
        raise _damaged(folder / MANIFEST, "names no classes")
    for record in _records(folder):
        here = _verified(folder, record, [LESSON])
        yield record.number, _read_lesson(here / LESSON, manifest)


def check_place(folder: str | Path) -> None:
    """Raise unless a run may begin in this folder, or go on in it."""
    _existing(Path(folder))


def read_manifest(folder: str | Path) -> Manifest:
    """What a run was started with."""
    found = _existing(Path(folder))
    if found is None:
        raise RunError(
            f"{folder} is not a run folder: it has no {MANIFEST}",
            "write one: selftrain fit labelled.csv --unlabelled pool.csv -o run",
        )
    return found


def _existing(folder: Path) -> Manifest | None:
    """The manifest of a run folder; None where a run may begin; any other folder is an error."""
    with refusals(folder, "read"):
        if not folder.exists():
            return None
        if not folder.is_dir():
            raise RunError(f"{folder} is a file; a run is a folder", "choose another: -o NEW")
        names = {path.name for path in folder.iterdir()}
        if MANIFEST in names:
            return _manifest(folder / MANIFEST)
    foreign = sorted(names - {LOCK, f"{MANIFEST}.tmp"})  # a killed start may leave these two
    if foreign:
        raise RunError(
            f"{folder} is neither empty nor a run folder: it holds {foreign[0]!r}",
            "choose another folder: -o NEW",
        )
    return None


def _manifest(path: Path) -> Manifest:
    raw = _plain_file(path, LARGEST_JSON).read_bytes()
    try:
        facts = from_json(raw)
    except ValueError as error:
        raise _damaged(path, f"is not JSON: {error}") from None
    found = facts.get("format") if isinstance(facts, dict) else None
    if not isinstance(found, int):
        raise RunError(
            f"{path} was not written by selftrain: it names no format",
            "choose another folder: -o NEW",
        )
    if found != FORMAT:
        raise RunError(
            f"{path} has format {found}; this version reads format {FORMAT}",
            "take the version that wrote it: pip install --upgrade selftrain",
        )
    return _valid(Manifest, raw, path)


def _records(folder: Path) -> list[Record]:
    """The records of all whole rounds: 0, 1, 2 … without a gap."""
    read_manifest(folder)
    rounds = folder / ROUNDS
    if not os.path.lexists(rounds):  # killed after the manifest, before anything else
        return []
    with refusals(rounds, "read"):
        names = [path.name for path in _plain_folder(rounds).iterdir()]
        numbers = sorted(int(name) for name in names if re.fullmatch("0|[1-9][0-9]*", name))
        for place, number in enumerate(numbers):
            if place != number:
                raise _damaged(rounds / str(number), f"is there, but round {place} is not")
        return [_record(rounds / str(number)) for number in numbers]


def _record(here: Path) -> Record:
    path = _plain_folder(here) / RECORD
    record = _valid(Record, _plain_file(path, LARGEST_JSON).read_bytes(), path)
    if str(record.number) != here.name:
        raise _damaged(path, f"is that of round {record.number}")
    if record.number == 0 and not record.accepted:
        raise _damaged(path, "refuses round 0, which has no teacher to fall back on")
    if set(record.files) != {LESSON, *(() if record.failed else MODEL)}:
        raise _damaged(path, f"lists the files {sorted(record.files)}")
    return record


def _chosen(folder: Path, number: int | None) -> Record:
    """The round whose model is asked for."""
    records = _records(folder)
    if not records:
        raise RunError(
            f"{folder} has no whole round yet", "give the command that started it once more"
        )
    if number is None:
        return [record for record in records if record.accepted][-1]
    hint = "leave the number out: that gives the last accepted round"
    if not 0 <= number < len(records):
        raise RunError(f"{folder} has no round {number}; its last one is {len(records) - 1}", hint)
    if records[number].failed:
        why = _printable(records[number].why)
        raise RunError(f"round {number} of {folder} has no model: {why}", hint)
    return records[number]


def _verified(folder: Path, record: Record, names: Collection[str]) -> Path:
    """The folder of a round in which the named files are those that were written."""
    here = folder / ROUNDS / str(record.number)
    with refusals(here, "read"):
        for name in names:
            if _sha256(_plain_file(here / name)) != record.files[name]:
                raise _damaged(here / name, "is not what was written: its sha256 differs")
    return here


@dataclass(frozen=True, slots=True)
class _Kept:
    """The audit in a round's folder: read, and checked, each time it is gone through."""

    path: Path
    labels: frozenset[str]
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Judged]:
        for batch in _batches(self.path, self.labels):
            yield from map(Judged, *map(_values, batch.columns))


def _read_lesson(path: Path, manifest: Manifest) -> Lines:
    """The audit of a round, all of it checked; a short one is a tuple."""
    labels = frozenset(manifest.task["labels"])
    audit = _Kept(path, labels, sum(batch.num_rows for batch in _batches(path, labels)))
    return tuple(audit) if len(audit) <= HELD else audit


def _batches(path: Path, labels: Collection[str]) -> Iterator[Any]:
    """The rows of a lesson, some thousand at a time, each of them one that a round writes."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(_plain_file(path)) as file:
            if not file.schema_arrow.equals(_lesson_schema()):
                raise _damaged(path, f"has the columns {file.schema_arrow.names}")
            if excess := _excess(file.metadata):
                raise _damaged(path, excess)
        names = [field.name for field in _lesson_schema() if field.type == pyarrow.string()]
        with pyarrow.parquet.ParquetFile(path, read_dictionary=names, buffer_size=2**16) as file:
            for group in range(file.num_row_groups):  # at once, pyarrow would hold the whole file
                for batch in file.iter_batches(BATCH, row_groups=[group], use_threads=False):
                    _check_lines(path, batch, labels)
                    yield batch
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(path, f"is not Parquet: {error}".partition("\n")[0]) from None


def _excess(about: Any) -> str:
    """What of a lesson is more than is ever read; nothing if it can be read."""
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows > LARGEST_LESSON:
        return f"has {rows:,} rows"
    largest = max((group.num_rows for group in groups), default=0)
    if largest > LARGEST_GROUP:
        return f"has {largest:,} rows in one group"
    sizes = [group.total_byte_size for group in groups]
    at_once = sum(sizes) if rows <= HELD else max(sizes)
    return f"has {at_once:,} bytes unpacked" if at_once > LARGEST_TABLE else ""


def _check_lines(path: Path, batch: Any, labels: Collection[str]) -> None:
    """Raise unless each line is one that a round may write."""
    import pyarrow.compute

    _used(batch["uid"])[0].validate(full=True)  # that its bytes are text
    numbers = [batch[name] for name in ("confidence", "certainty", "weight")]
    finite = pyarrow.compute.is_finite(reduce(pyarrow.compute.add, numbers)).to_pylist()
    lines = zip(_values(batch["label"]), _values(batch["role"]), finite, strict=True)
    for place, (label, role, counts) in enumerate(lines):
        if not (counts and label in labels and role in ("easy", "hard", "left")):
            (line,) = map(Judged, *map(_values, batch.slice(place, 1).columns))
            raise _damaged(path, f"holds a line no round writes: {line!r:.120}")


def _values(column: Any) -> list[Any]:
    """A column as a list in which equal texts are one object, so that none grows by repetition."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    used, places = _used(column)
    texts = used.to_pylist()
    return [texts[place] for place in places.to_pylist()]


def _used(column: Any) -> tuple[Any, Any]:
    """The texts that stand in a column, each once, and for each row which; both as they are packed.

    A dictionary may serve many more rows than those of this column.
    """
    encoded = column.indices.dictionary_encode()
    return column.dictionary.take(encoded.dictionary), encoded.indices


def _valid(kind: type[T], raw: bytes, path: Path) -> T:
    try:
        return TypeAdapter(kind).validate_json(raw, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise _damaged(path, f"is damaged: {place}: {first['msg']}") from None


def _plain_folder(path: Path) -> Path:
    """The path, if a folder stands there and not a link to one: that could lead anywhere."""
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise _damaged(path, "is not a plain folder")
    return path


def _plain_file(path: Path, largest: int | None = None) -> Path:
    """The path, if a file stands there: a link could lead anywhere, and a pipe never end."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise _damaged(path, "is not a plain file")
    if largest is not None and found.st_size > largest:
        raise _damaged(path, f"has {found.st_size:,} bytes; expected at most {largest:,}")
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(path: Path, problem: str) -> RunError:
    hint = "copy the folder again, or begin in another one: -o NEW"
    return RunError(f"{path} {_printable(problem)}", hint)


def _printable(text: str) -> str:
    """A stranger's text, fit for one line of a terminal."""
    return "".join(char if char.isprintable() else "�" for char in text)
