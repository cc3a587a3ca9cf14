"""The texts of a run, given again."""

from __future__ import annotations

import pytest

from selftrain.data.rows import Example, uid_of
from selftrain.errors import DataError
from selftrain.runs.texts import texts_of


def test_rows_are_joined_by_id_or_by_the_hash_of_their_text() -> None:
    by_id, by_text = Example("7", "with an id"), Example("8", "without one")
    texts = texts_of(["7", uid_of("without one", None)], [by_id, by_text], "pool.csv")
    assert texts.by_uid == {"7": by_id, uid_of("without one", None): by_text}
    assert texts.missing == 0
    assert texts.warning == ""


def test_rows_without_a_text_are_counted() -> None:
    texts = texts_of(["7", "9"], [Example("7", "a"), Example("8", "b")], "pool.csv")
    assert list(texts.by_uid) == ["7"]
    assert texts.warning == "1 of 2 rows of the run have no text in the file: left out"


def test_a_file_of_another_run_is_an_error_that_names_it() -> None:
    with pytest.raises(DataError, match=r"other\.csv has none of the 2 texts of the run"):
        texts_of(["7", "9"], [Example("8", "b")], "other.csv")
