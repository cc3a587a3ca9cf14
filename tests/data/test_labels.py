"""Labels that look alike: one class where nobody could see a difference, else an error."""

from __future__ import annotations

import pytest

from formats import message_and_hint, texts_of
from selftrain.data import task as task_room
from selftrain.data.columns import clean_label
from selftrain.data.read import Reading, read_labelled
from selftrain.data.rows import Notes
from selftrain.data.task import from_labels
from selftrain.errors import DataError

PLAINLY = "labels with invisible characters, or with accents in pieces, written plainly"
TRIMMED = "labels with blanks around them trimmed"


def test_spellings_that_nobody_can_see_are_one_class_and_counted() -> None:
    accents = ["caf\xe9", "cafe\u0301", "caf\xe9\u200b", "\ufeffcaf\xe9", "ca\u00adf\xe9"]
    spellings = [*accents, " caf\xe9\u00a0"]
    notes = Notes()
    rows = read_labelled([(f"text {n}", each) for n, each in enumerate(spellings)], notes=notes)
    assert {row.label for row in rows} == {"caf\xe9"}
    assert dict(notes) == {PLAINLY: 4, TRIMMED: 1}


@pytest.mark.parametrize("label", ["نمی‌دانم", "👩‍💻", "Sci/Tech", "none", "-1", "n.a.", "C++"])
def test_a_label_that_means_what_it_shows_stays_as_it_is(label: str) -> None:
    notes = Notes()
    assert texts_of(read_labelled([("a", label)], notes=notes)) == [("a", label)]
    assert dict(notes) == {}
    assert clean_label(clean_label(label)) == label


@pytest.mark.parametrize(
    "word", ["NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None", "nan"]
)
def test_a_word_for_no_label_is_empty_unless_it_is_kept(word: str) -> None:
    with pytest.raises(DataError) as error:
        read_labelled([("a", word)], notes=Notes())
    message, hint = message_and_hint(error)
    assert f"the label is {word}, which stands for none" in message
    assert "--keep-na" in hint
    kept = read_labelled([("a", word)], how=Reading(keep_na=True), notes=Notes())
    assert texts_of(kept) == [("a", word)]


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        ("Good", "good", "in case"),
        ("STRASSE", "straße", "in case"),
        ("1", "1.0", "in how they are written"),
        ("+1", "1", "in how they are written"),
        ("0.5", "0.50", "in how they are written"),
        ("very good", "very  good", "in how they are written"),
        ("A", "Ａ", "in how they are written"),
        ("می‌شود", "میشود", "in how they are written"),
    ],
)
def test_labels_that_look_alike_are_an_error_that_names_both_and_the_flag(
    first: str, second: str, how: str
) -> None:
    rows = [("a", first), ("b", second)]
    with pytest.raises(DataError) as error:
        read_labelled(rows, notes=Notes())
    message, hint = message_and_hint(error)
    assert f"the labels `{first}` and `{second}` differ only {how}" in message
    assert "--exact-labels" in hint
    assert texts_of(read_labelled(rows, how=Reading(exact_labels=True), notes=Notes())) == rows


@pytest.mark.parametrize(("first", "second"), [("1", "10"), ("a", "b"), ("1", "1st"), ("-1", "1")])
def test_labels_that_differ_are_two_classes(first: str, second: str) -> None:
    rows = [("a", first), ("b", second)]
    assert texts_of(read_labelled(rows, notes=Notes())) == rows


def test_classes_that_a_model_card_could_not_hold_are_refused_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(DataError, match="the names of 2 classes have 1,000,0") as error:
        from_labels(["a", "x" * 1_000_000])
    assert "--label COLUMN" in error.value.hint
    monkeypatch.setattr(task_room, "LARGEST_NAMES", 100)
    assert from_labels(["a", "b"]).labels == ("a", "b")
