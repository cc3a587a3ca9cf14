"""Ids and texts of a file are those of `selftrain predict`, or both refuse it."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from selftrain.data import read
from selftrain.data.rows import Notes, uid_of
from selftrain.errors import DataError
from selftrain_lite import files, sources
from selftrain_lite.errors import LiteError

Found = list[tuple[str, str]] | str
REFUSED = "refused"


def numbered(*texts: str) -> Found:
    """Texts with the ids 1, 2, …"""
    return [(str(number), text) for number, text in enumerate(texts, 1)]


def by_selftrain(path: Path, id: str | None) -> Found:
    try:
        texts = read.open_texts(path, read.Columns(id=id), notes=Notes())
        rows = [(each.uid, each.text) for each in texts]
        if texts.id_column is None:
            rows = [(str(number), text) for number, (_, text) in enumerate(rows, 1)]
        return REFUSED if any(each.pair is not None for each in texts) else rows
    except DataError:
        return REFUSED


def by_lite(path: Path, id: str | None) -> Found:
    try:
        with files.reading(str(path), None, files.Columns(id=id), pair=False) as reader:
            return [(name, text) for name, text in reader.rows if isinstance(text, str)]
    except LiteError:
        return REFUSED


LONG = "x" * 40_000
CSV: dict[str, tuple[str | bytes, Found | None]] = {
    "a blank before a quote": ('n, text\n1, "good film"\n', numbered("good film")),
    "blanks without a quote": ("n,text\n1, good film\n", numbered(" good film")),
    "blanks in the header alone": ("n, text\n1, good film\n", numbered(" good film")),
    "a quote in a text": ('n,text\n1,good "film"\n', numbered('good "film"')),
    "a quote that is not doubled": ('n,text\n1,"good "film""\n', REFUSED),
    "a quote that is not closed": ('n,text\n1,"good film\n2,bad\n', REFUSED),
    "repeated ids": ("id,text\n7,good\n7,bad\n8,film\n", numbered("good", "bad", "film")),
    "repeated rows": ("id,text\n7,good\n7,good\n", [("7", "good"), ("7", "good")]),
    "an id with blanks": ("id,text\n 1 ,good\n", numbered("good")),
    "empty ids": ("id,text\n1,good\n,bad\n,bad\n", None),
    "the id of another text": (f"id,text\n,good\n{uid_of('good')},bad\n", None),
    "a NUL": ("n,text\n1,go\0od\n", REFUSED),
    "not UTF-8": (b"n,text\n1,\xff\n", REFUSED),
    "a mark at the start": ("\ufeffn,text\n1,good\n", numbered("good")),
    "a mark inside": ("n,text\n1,good\n2,\ufeffbad\n", numbered("good", "\ufeffbad")),
    "ends of old Macs": ("n,text\r1,good\r2,bad\r", numbered("good", "bad")),
    "a return inside quotes": ('n,text\n1,"good\rfilm"\n', numbered("good\rfilm")),
    "a return outside quotes": ("n,text\n1,good\rfilm\n", REFUSED),
    "other line ends": ("n,text\n1,a\u2028b\x0bc\x85\n", numbered("a\u2028b\x0bc\x85")),
    "blank lines": ("\n \nn,text\n\n1,good\n\r\n2,bad", None),
    "no rows": ("n,text\n", REFUSED),
    "nothing": ("", REFUSED),
    "columns without a name": ("n,text,,\n1,good,2,3\n", numbered("good")),
    "two columns of a name": ("text,text\n1,good\n", REFUSED),
    "a ragged row": ("n,text\n1,good,film\n", REFUSED),
    "a label that names the separator": ("label;text\n1;good, film\n", numbered("good, film")),
    "rows that show the separator": ("text,a;b\ngood;1;2\n", None),
    "a stated separator": ("sep=;\nn;text\n1;good, film\n", numbered("good, film")),
    "a stated separator in quotes": ('"sep=|"\nn|text\n1|good\n', numbered("good")),
    "upper case": ("ID,TEXT\n1,good\n", numbered("good")),
    "a pair": ("text,pair\ngood,bad\n", REFUSED),
    "long cells": (f"n,text\n1,{LONG}\n", numbered(LONG)),
    "a record over the limit": (f'n,text\n1,"{LONG}\n{LONG}\n{LONG}"\n', REFUSED),
    "a line over the limit": (f"n,text\n1,{LONG * 3}\n", REFUSED),
}  # fmt: skip
TSV: dict[str, tuple[str | bytes, Found | None]] = {
    "quoted cells": ('n\ttext\n1\t"other ""x"""\n', numbered('other "x"')),
    "a tab inside quotes": ('n\ttext\n1\t"good\tfilm"\n2\tbad\n', numbered("good\tfilm", "bad")),
    "a line inside quotes": ('n\ttext\n1\t"good\nfilm"\n', numbered("good\nfilm")),
    "a quote that is only a quote": ('n\ttext\n1\t"a" b\n2\t"c\n', numbered('"a" b', '"c')),
    "a header in quotes": ('"n"\t"text"\n1\t"good\tfilm"\n', numbered("good\tfilm")),
    "a quote after a blank": ('n\ttext\n1\t "good"\n', None),
    "commas in a TSV": ("n,text\n1,good\n", numbered("good")),
    "repeated ids": ('id\ttext\n7\t"good"\n7\tbad\n', numbered("good", "bad")),
    "a return in a cell": ("n\ttext\n1\tgood\rfilm\n", None),
}  # fmt: skip
JSONL: dict[str, tuple[str | bytes, Found | None]] = {
    "an id of a float": ('{"id": 1.0, "text": "good"}', numbered("good")),
    "other ids": (
        '{"id": true, "text": "a"}\n{"id": [1], "text": "b"}\n{"id": 1e22, "text": "c"}\n'
        '{"id": 1e400, "text": "d"}\n{"id": 0.5, "text": "e"}\n',
        None,
    ),
    "an id of null": ('{"id": 1, "text": "good"}\n{"id": null, "text": "bad"}', None),
    "an id that is not there": ('{"id": 1, "text": "good"}\n{"text": "bad"}', None),
    "an id that is no number": ('{"id": NaN, "text": "good"}', None),
    "an id with blanks": ('{"id": " 1 ", "text": "good"}', numbered("good")),
    "half a character in an id": ('{"id": "\\ud800", "text": "good"}', REFUSED),
    "half a character in a text": ('{"n": 1, "text": "\\udc00"}', REFUSED),
    "a pair of halves": ('{"n": 1, "text": "\\ud83d\\ude00"}', numbered("\U0001f600")),
    "a NUL byte": ('{"text": "go\0od"}', REFUSED),
    "a NUL in the text": ('{"text": "go\\u0000od"}', numbered("go\0od")),
    "two entries of a name": ('{"text": "good", "text": "bad"}', REFUSED),
    "two inner entries of a name": ('{"text": "good", "x": {"a": 1, "a": 2}}', REFUSED),
    "a text of NaN": ('{"text": NaN}\n{"text": null}', numbered("", "")),
    "a text of a number": ('{"text": 3}', REFUSED),
    "no text in a later row": ('{"text": "good"}\n{"body": "bad"}', REFUSED),
    "no object": ('{"text": "good"}\n["bad"]', REFUSED),
    "a long number": ('{"text": "good", "n": ' + "9" * 5000 + "}", REFUSED),
    "deep": ('{"text": "good", "n": ' + "[" * 100_000 + "}", REFUSED),
    "ends of old Macs": ('{"text": "good"}\r{"text": "bad"}', numbered("good", "bad")),
    "a return inside an object": ('{"text":\r"good"}\n{"text": "bad"}', numbered("good", "bad")),
    "repeated ids": ('{"id": 1, "text": "a"}\n{"id": 1.0, "text": "b"}', numbered("a", "b")),
}  # fmt: skip
ALL = {
    f"{name}.{ending}": (ending, *case)
    for ending, table in (("csv", CSV), ("tsv", TSV), ("jsonl", JSONL))
    for name, case in table.items()
}


@pytest.mark.parametrize(("ending", "content", "expected"), ALL.values(), ids=ALL.keys())
@pytest.mark.parametrize("id", [None, "id"])
def test_a_nasty_file_has_the_rows_of_selftrain_or_is_refused_by_both(
    *,
    ending: str,
    content: str | bytes,
    expected: Found | None,
    id: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from selftrain.data import sources as full_sources

    for module in (sources, full_sources):
        monkeypatch.setattr(module, "FIELD_LIMIT", 100_000)
    path = tmp_path / f"new.{ending}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = by_lite(path, id)
    assert found == by_selftrain(path, id)
    if id is None and expected is not None:
        assert found == expected


def test_an_id_of_two_texts_is_an_error_where_its_column_was_named(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,text\n7,good\n8,film\n7,bad\n")
    with (
        pytest.raises(LiteError, match="the id `7` names two texts"),
        files.reading(str(tmp_path / "new.csv"), None, files.Columns(id="id"), pair=False),
    ):
        pass


def test_standard_input_is_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(b'id\ttext\n7\t"good\tfilm"\n7\tbad\n')
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content, closed=False))
    with files.reading("-", "tsv", files.Columns(), pair=False) as reader:
        assert (reader.id, list(reader.rows)) == (None, [("1", "good\tfilm"), ("2", "bad")])
