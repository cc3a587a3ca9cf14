"""Our own errors: one line, and what to try."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass

import pytest
from pydantic import TypeAdapter

from selftrain.errors import (
    ENTRIES,
    ConfigError,
    DataError,
    LockedError,
    SelftrainError,
    closest,
    listing,
    parsed,
    require,
)


@dataclass(frozen=True)
class Point:
    x: int
    names: tuple[str, ...] = ()


def test_an_error_is_read_as_its_message_and_says_what_to_try() -> None:
    error = ConfigError("alpha is 2; expected 0 to 1", "--set alpha=0.4")
    assert (str(error), error.hint) == ("alpha is 2; expected 0 to 1", "--set alpha=0.4")


def test_an_error_of_another_process_keeps_its_hint() -> None:
    sent = LockedError("run is being written", "wait for it")
    for received in (copy.copy(sent), pickle.loads(pickle.dumps(sent))):
        assert isinstance(received, LockedError)
        assert (received.message, received.hint) == (sent.message, sent.hint)


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_a_value_of_a_method_is_named_and_the_hint_leads_to_the_others(value: float) -> None:
    with pytest.raises(SelftrainError, match=rf"rate is {value!r}; expected above 0") as caught:
        require(value > 0, "rate", value, "above 0")
    assert caught.value.hint == ENTRIES


def test_json_and_plain_tables_become_values() -> None:
    expected = Point(3, ("a",))
    for raw in (b'{"x": 3, "names": ["a"]}', {"x": 3, "names": ["a"]}):
        for kind in (Point, TypeAdapter(Point)):
            assert parsed(kind, raw, "here", DataError, "try this") == expected


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"x": 3', "here: invalid JSON: EOF while parsing"),
        (b"{}", "here: `x`: field required"),
        (b'{"x": null}', "here: `x` is None: input should be a valid integer"),
        (b'{"x": "many"}', "here: `x` is 'many': input should be a valid integer"),
        (b'{"x": 3, "names": ["a", 5]}', "here: `names.1` is 5: input should be a valid string"),
        (b'{"x": [1]}', "here: `x` is [1]: input should be a valid integer"),
        ("x = 3", "here: input should be a dictionary or an instance of Point"),
    ],
)
def test_the_first_wrong_entry_is_named_with_its_value(raw: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(Point, raw, "here", ConfigError, "try this")
    assert caught.value.message.startswith(message)
    assert caught.value.hint == "try this"


def test_strict_converts_nothing() -> None:
    assert parsed(Point, b'{"x": "3"}', "here", DataError, "hint") == Point(3)
    with pytest.raises(DataError, match="`x` is '3'"):
        parsed(Point, b'{"x": "3"}', "here", DataError, "hint", strict=True)


def test_a_long_or_unprintable_place_or_value_is_cut_and_escaped() -> None:
    raw = json.dumps({"a\x1b[2J" + "b" * 500: "c\x1b" + "d" * 500}).encode()
    with pytest.raises(DataError) as caught:
        parsed(dict[str, int], raw, "here", DataError, "hint")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 250
    assert r"`a\x1b[2Jbbb" in caught.value.message
    assert r"is 'c\x1bddd" in caught.value.message


def test_a_number_without_end_is_not_shown() -> None:
    with pytest.raises(DataError, match="here: `x`: input should be a valid string"):
        parsed(dict[str, str], {"x": 10**5000}, "here", DataError, "hint")


def test_did_you_mean_ignores_case_and_is_silent_where_nothing_is_near() -> None:
    assert closest("LABLE", ["text", "Label"]) == "Label"
    assert closest("zzz", ["text", "label"]) is None


def test_a_listing_is_short_whatever_the_names() -> None:
    assert listing(["a", "b"]) == "`a`, `b`"
    assert listing(["x" * 100] * 100) == ", ".join(["`" + "x" * 39 + "…`"] * 8) + " and 92 more"


def test_a_message_is_one_line_whatever_a_file_or_a_library_brings() -> None:
    error = DataError("rows.parquet cannot be read: invalid\nDeserializing failed.", "try again")
    assert str(error) == "rows.parquet cannot be read: invalid Deserializing failed."
