"""A source is a file, a folder, a glob or an address: a folder means all its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats import as_csv, as_parquet, message_and_hint
from selftrain.data.places import Place
from selftrain.data.read import read_labelled, read_pool, read_texts, read_unlabelled
from selftrain.data.rows import Notes, examples
from selftrain.errors import DataError


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder as programs leave it: parts, one of them empty, and their own notes."""
    folder = tmp_path / "parts"
    (folder / "date=2").mkdir(parents=True)
    (folder / "_temporary").mkdir()
    (folder / "part-1.parquet").write_bytes(as_parquet([{"text": "b"}, {"text": "c"}]))
    (folder / "part-0.csv").write_bytes(as_csv([{"text": "a"}, {"text": "b"}]))
    (folder / "part-2.csv").write_bytes(b"text\n")
    (folder / "date=2" / "part-0.csv").write_bytes(as_csv([{"text": "d"}]))
    (folder / "_temporary" / "part-9.csv").write_bytes(as_csv([{"text": "never"}]))
    (folder / ".part-0.csv").write_bytes(b"\x00")
    (folder / "_SUCCESS").touch()
    (folder / "notes.pdf").touch()
    return folder


def test_a_folder_means_all_its_parts_in_the_order_of_their_names(parts: Path) -> None:
    notes = Notes()
    pool = read_unlabelled(parts, notes=notes)
    assert list(pool) == examples(["d", "a", "b", "c"])
    assert notes.columns == [f"{parts} (4 files): text from `text`"]
    assert notes.remarks == [f"{parts} (4 files): other files are ignored: `notes.pdf`"]
    assert dict(notes) == {"duplicate pool rows dropped": 1}


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [("*.csv", "ab"), ("*.parquet", "bc"), ("**/*.csv", "dab"), ("*", "dabc"), ("date=?", "d")],
)
def test_a_glob_means_all_that_it_matches(parts: Path, pattern: str, texts: str) -> None:
    assert list(read_pool([str(parts / pattern)], notes=Notes())) == examples(list(texts))


@pytest.mark.parametrize(
    ("source", "path", "would"),
    [
        ("parts", "parts/new.csv", True),
        ("parts", "parts/answers/part-0.parquet", True),
        ("parts", "parts/_answers/part-0.parquet", False),
        ("parts", "parts", False),
        ("parts", "answers.csv", False),
        ("parts/link/..", "parts/new.csv", True),
        ("parts/*.csv", "parts/new.csv", True),
        ("parts/*.csv", "parts/new.parquet", False),
        ("parts/*", "parts/answers/part-0.parquet", True),
        ("*/part-?.csv", "parts/part-9.csv", True),
        ("*/part-?.csv", "part-9.csv", False),
        ("**/*.csv", "parts/answers", True),
        ("parts/part-0.csv", "parts/new.csv", False),
        ("-", "new.csv", False),
        ("s3://parts", "s3:/parts/new.csv", False),
    ],
)
def test_whether_a_new_file_would_be_one_of_a_place(
    parts: Path, monkeypatch: pytest.MonkeyPatch, source: str, path: str, would: bool
) -> None:
    monkeypatch.chdir(parts.parent)
    (parts / "link").symlink_to(parts / "date=2")
    assert Place(source).would_have(Path(path)) is would


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_bytes(as_csv([{"text": "a"}]))
    (tmp_path / "a1.csv").write_bytes(as_csv([{"text": "b"}]))
    assert list(read_pool([tmp_path / "a[1].csv"], notes=Notes())) == examples(["a"])


def test_parts_without_an_ending_are_read_where_the_format_is_given(tmp_path: Path) -> None:
    from selftrain.data.read import Reading

    (tmp_path / "part-00000").write_bytes(as_csv([{"text": "a"}]))
    with pytest.raises(DataError, match="no file whose ending says") as error:
        read_unlabelled(tmp_path, notes=Notes())
    assert "--format" in message_and_hint(error)[1]
    assert list(read_unlabelled(tmp_path, how=Reading("csv"), notes=Notes())) == examples(["a"])


def test_labelled_and_new_texts_come_in_parts_too(tmp_path: Path) -> None:
    for name, text in (("b", "y"), ("a", "x")):
        (tmp_path / f"{name}.csv").write_bytes(as_csv([{"text": text, "label": text}]))
    rows = read_labelled(tmp_path, notes=Notes())
    assert [(row.example.text, row.label) for row in rows] == [("x", "x"), ("y", "y")]
    assert [row.text for row in read_texts(tmp_path, notes=Notes()).examples] == ["x", "y"]


def test_a_part_with_other_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv([{"id": 1, "text": "a"}]))
    (tmp_path / "b.csv").write_bytes(as_csv([{"text": "b"}]))
    with pytest.raises(DataError, match=r"b\.csv has other columns than .*a\.csv: it lacks `id`"):
        read_unlabelled(tmp_path, notes=Notes())


def test_a_bad_row_is_named_by_its_part(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text\na\n")
    (tmp_path / "b.csv").write_bytes(b"text\nb\nb,c\n")
    with pytest.raises(DataError, match=r"b\.csv, line 3: 2 fields"):
        read_unlabelled(tmp_path, notes=Notes())


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none/*.csv", "no file is named like"),
        ("empty", "no file whose ending says"),
        ("hollow", "none of its files has a row"),
    ],
)
def test_a_place_without_rows_is_one_line_and_a_hint(
    tmp_path: Path, name: str, problem: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow").mkdir()
    (tmp_path / "hollow" / "a.csv").write_bytes(b"text\n")
    with pytest.raises(DataError, match=problem) as error:
        read_unlabelled(str(tmp_path / name), notes=Notes())
    assert message_and_hint(error)[1]


def test_a_file_that_changes_between_two_reads_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("selftrain.data.pool.MAX_ROWS_IN_MEMORY", 0)
    path = tmp_path / "pool.csv"
    path.write_bytes(as_csv([{"text": "a"}]))
    pool = read_unlabelled(path, notes=Notes())
    path.write_bytes(as_csv([{"text": "a"}, {"text": "b"}]))
    with pytest.raises(DataError, match="changed while it was in use") as error:
        list(pool)
    assert "give the same command again" in message_and_hint(error)[1]


def test_an_address_keeps_its_slashes_and_a_file_address_is_a_path() -> None:
    assert str(Place.of("s3://bucket//a.csv")) == "s3://bucket//a.csv"
    assert str(Place.of("file:///pool/a.csv")) == "/pool/a.csv"
    with pytest.raises(DataError, match="made a path") as error:
        read_unlabelled(Path("s3://bucket/a.csv"), notes=Notes())
    assert message_and_hint(error)[1] == 'give it as a string: "s3://bucket/a.csv"'
