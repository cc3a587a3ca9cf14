"""A lesson on disk: short or long it comes back, and one from elsewhere is not trusted."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import small_run
from damage import moved_behind_a_link, refusal, relisted, swapped
from selftrain.data.rows import AuditLine, Lesson
from selftrain.disk import sha256
from selftrain.errors import RunError
from selftrain.model.backbone import Backbone
from selftrain.runs import lessons
from selftrain.runs.manifest import Manifest
from selftrain.runs.write import Run
from selftrain.training.loop import Round


def test_a_short_lesson_has_the_bytes_of_one_table(folder: Path, rounds: list[Round]) -> None:
    """Written group by group, it is the same file as one written at once: runs stay comparable."""
    schema = lessons._schema()
    for round_ in rounds:
        lines = [asdict(line) for line in round_.lesson.audit]
        table = pyarrow.Table.from_pylist(lines, schema=schema)
        pyarrow.parquet.write_table(table, folder / "whole.parquet")
        written = folder / f"rounds/{round_.number}/lesson.parquet"
        assert written.read_bytes() == (folder / "whole.parquet").read_bytes()


@pytest.fixture
def all_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lessons of 24 lines that are treated like one of a million."""
    monkeypatch.setattr(lessons, "MAX_LINES_IN_MEMORY", 5)
    monkeypatch.setattr(lessons, "GROUP", 7)
    monkeypatch.setattr(lessons, "BATCH", 3)


@pytest.mark.usefixtures("all_long")
def test_a_long_lesson_is_written_in_groups_and_read_as_it_is_asked_for(
    folder: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    about = pyarrow.parquet.read_metadata(folder / "rounds/1/lesson.parquet")
    assert [about.row_group(n).num_rows for n in range(about.num_row_groups)] == [7, 7, 7, 3]
    with Run.start(folder, manifest) as run:
        audit = run.done(backbone)[1].lesson.audit
    assert not isinstance(audit, tuple)
    assert len(audit) == 24
    assert tuple(audit) == tuple(audit) == rounds[1].lesson.audit
    assert [a is not b and a == b for a, b in zip(audit, audit, strict=True)] == [True] * 24


def test_of_a_long_lesson_a_few_groups_are_in_memory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty groups, and never more than the room of ten: pyarrow by itself would hold them all."""
    monkeypatch.setattr(lessons, "MAX_LINES_IN_MEMORY", 100)
    monkeypatch.setattr(lessons, "GROUP", 1_000)
    random = Random(0)
    lines = tuple(
        AuditLine(f"{n}", "good", random.random(), random.random(), random.random(), "left")
        for n in range(40_000)
    )
    lessons.write_lesson(tmp_path / "lesson", Lesson(gold=(), audit=lines))
    whole = (tmp_path / "lesson").stat().st_size
    before = pyarrow.total_allocated_bytes()
    held = [
        pyarrow.total_allocated_bytes() - before
        for _ in lessons._batches(tmp_path / "lesson", {"good"})
    ]
    assert 0 < max(held) < whole / 4


# ── lessons from elsewhere ──


def relessoned(folder: Path, **column: list[Any]) -> None:
    """Put one line of someone's own making into the lesson of round 1."""
    line = {"uid": ["x"], "label": ["good"], "confidence": [0.5], "certainty": [0.5]}
    line |= {"weight": [0.5], "role": ["easy"], **column}
    path = folder / "rounds/1/lesson.parquet"
    pyarrow.parquet.write_table(pyarrow.table(line, schema=lessons._schema()), path)
    relisted(folder, **{"lesson.parquet": sha256(path)})


def repacked(folder: Path, codec: str) -> str:
    """Put round 1's own lesson into the folder again, packed in another way."""
    path = folder / "rounds/1/lesson.parquet"
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table, path, compression=codec)
    return sha256(path)


def belittled(path: Path) -> None:
    """Let a lesson of one group say that it has 100 bytes unpacked."""
    about = pyarrow.parquet.read_metadata(path).row_group(0)
    size = 2 * about.total_byte_size  # a whole number in a footer: twice, by 7 bits, the low first
    true = bytes(size >> at & 127 | 128 for at in range(0, size.bit_length(), 7))
    true = true[:-1] + bytes([true[-1] & 127])
    small = bytes([200, 129]).ljust(len(true) - 1, b"\x80") + b"\0"
    path.write_bytes(path.read_bytes().replace(true, small))
    assert pyarrow.parquet.read_metadata(path).row_group(0).total_byte_size == 100


def other_columns(folder: Path) -> tuple[Path, bytes]:
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), folder / "other")
    return folder / "rounds/1/lesson.parquet", (folder / "other").read_bytes()


def torn_text(folder: Path) -> tuple[Path, bytes]:
    """The lesson of round 1 with half a character in a uid."""
    relessoned(folder, uid=["half a \u00e9"])
    path = folder / "rounds/1/lesson.parquet"
    return path, path.read_bytes().replace(b"half a \xc3\xa9", b"half a \xc3\x28")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "lesson cut short": (
        lambda f: os.truncate(f / "rounds/1/lesson.parquet", 100),
        "lesson.parquet is not what was written",
    ),
    "lesson not Parquet": (
        lambda f: relisted(f, **{"lesson.parquet": swapped(f / "rounds/1/lesson.parquet")}),
        "lesson.parquet is not Parquet",
    ),
    "lesson with a foreign label": (
        lambda f: relessoned(f, label=["ugly"]),
        "lesson.parquet holds a line no round writes",
    ),
    "lesson with a foreign role": (
        lambda f: relessoned(f, role=["boss"]),
        "lesson.parquet holds a line no round writes",
    ),
    "lesson with NaN": (
        lambda f: relessoned(f, weight=[float("nan")]),
        "lesson.parquet holds a line no round writes",
    ),
    "lesson with a foreign line far down": (
        lambda f: relessoned(
            f,
            uid=[str(n) for n in range(20_000)],
            label=["good"] * 19_999 + ["ugly"],
            role=["left"] * 20_000,
            **{name: [0.5] * 20_000 for name in ("confidence", "certainty", "weight")},
        ),
        "lesson.parquet holds a line no round writes: AuditLine(uid='19999'",
    ),
    "lesson with other columns": (
        lambda f: relisted(f, **{"lesson.parquet": swapped(*other_columns(f))}),
        "lesson.parquet has the columns ['text']",
    ),
    "lesson packed as no round packs it": (
        lambda f: relisted(f, **{"lesson.parquet": repacked(f, "zstd")}),
        "lesson.parquet is packed with ZSTD",
    ),
    "lesson with a text that is none": (
        lambda f: relisted(f, **{"lesson.parquet": swapped(*torn_text(f))}),
        "lesson.parquet is not Parquet: Invalid UTF8",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_lesson_is_one_line_and_a_hint(
    damage: str, folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    harm, said = DAMAGES[damage]
    harm(folder)
    assert said in refusal(folder, manifest, backbone).message


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.usefixtures("all_long")
def test_a_damaged_lesson_is_noticed_at_once_also_where_it_is_long(
    damage: str, folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    test_a_damaged_or_foreign_lesson_is_one_line_and_a_hint(damage, folder, manifest, backbone)


@pytest.mark.usefixtures("all_long")
def test_a_long_lesson_is_checked_each_time_it_is_read(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    with Run.start(folder, manifest) as run:
        audit = run.done(backbone)[1].lesson.audit
    path = folder / "rounds/1/lesson.parquet"
    moved_behind_a_link(path)
    with pytest.raises(RunError, match="is not a plain file"):
        list(audit)
    path.unlink()
    with pytest.raises(RunError, match="No such file"):
        list(audit)
    relessoned(folder, role=["boss"])
    with pytest.raises(RunError, match="a line no round writes"):
        list(audit)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("LARGEST_LESSON", "has 24 rows"),
        ("LARGEST_GROUP", "has 24 rows in one group"),
        ("LARGEST_TABLE", "bytes unpacked"),
    ],
)
def test_a_lesson_that_would_not_fit_into_memory_is_not_read(
    limit: str,
    said: str,
    folder: Path,
    manifest: Manifest,
    backbone: Backbone,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lessons, limit, 23)
    with pytest.raises(RunError, match=said), Run.start(folder, manifest) as run:
        run.done(backbone)


@pytest.mark.usefixtures("all_long")
def test_of_a_long_lesson_no_group_may_be_too_large_to_unpack(
    folder: Path, manifest: Manifest, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups are unpacked one at a time: their sum may be larger than any memory."""
    about = pyarrow.parquet.read_metadata(folder / "rounds/1/lesson.parquet")
    largest = max(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
    monkeypatch.setattr(lessons, "LARGEST_TABLE", 2 * largest)
    with Run.start(folder, manifest) as run:
        assert len(run.done(backbone)) == 3
    monkeypatch.setattr(lessons, "LARGEST_TABLE", largest - 1)
    with pytest.raises(RunError, match=f"has {largest:,} bytes unpacked"):
        Run.start(folder, manifest).done(backbone)


@pytest.mark.parametrize(
    ("limit", "said"),
    [(100_000, r"has 14\d,\d+ bytes packed"), (2_000_000, "has ids of 3,000,0")],
)
def test_what_a_lesson_says_of_its_size_is_not_believed(
    limit: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the smaller limit it is refused as it is packed, by the larger one as it is read."""
    path = tmp_path / "lesson.parquet"
    lines = [AuditLine("x" * 3_000_000, "good", 0.5, 0.5, 0.5, "easy")]
    lessons.write_lesson(path, Lesson(gold=(), audit=tuple(lines)))
    belittled(path)
    monkeypatch.setattr(lessons, "LARGEST_TABLE", limit)
    with pytest.raises(RunError, match=said):
        lessons.read_lesson(path, ["good"])
    monkeypatch.setattr(lessons, "LARGEST_TABLE", 4_000_000)
    assert lessons.read_lesson(path, ["good"]) == tuple(lines)


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_a_lesson_may_be_packed_or_not(codec: str, folder: Path, rounds: list[Round]) -> None:
    repacked(folder, codec)
    read = lessons.read_lesson(folder / "rounds/1/lesson.parquet", small_run.TASK.labels)
    assert read == rounds[1].lesson.audit


def test_a_text_repeated_in_a_lesson_takes_its_room_once(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    """Packed, a text takes no more room a million times than once."""
    line = {"label": ["good"], "confidence": [0.5], "certainty": [0.5], "weight": [0.5]}
    line |= {"uid": ["x" * 100_000], "role": ["easy"]}
    relessoned(folder, **{name: column * 100 for name, column in line.items()})
    with Run.start(folder, manifest) as run:
        audit = run.done(backbone)[1].lesson.audit
    assert len(audit) == 100
    assert len({id(each.uid) for each in audit}) == 1
