"""Tasks: the seven, one's own, and what does not make one."""

from __future__ import annotations

from pathlib import Path

import pytest

from selftrain.data.task import Task, find, from_labels, known
from selftrain.errors import ConfigError, DataError
from selftrain.model.prompt import template_of

SEVEN = {
    "sst2": ("negative positive", "{text} It was {mask} .", "terrible great", None),
    "mrpc": ("not_equivalent equivalent", "{a} {mask} , {b}", "No Yes", "equivalent"),
    "mnli": ("entailment neutral contradiction", "{a} ? {mask} , {b}", "Yes Maybe No", None),
    "qnli": ("entailment not_entailment", "{a} ? {mask} , {b}", "Yes No", "entailment"),
    "rte": ("entailment not_entailment", "{a} ? {mask} , {b}", "Yes No", None),
    "cb": ("entailment contradiction neutral", "{a} ? {mask} , {b}", "Yes No Maybe", "macro"),
    "agnews": (
        "World Sports Business Sci/Tech",
        "{mask} News: {text}",
        "World Sports Business Tech",
        None,
    ),
}


@pytest.mark.parametrize("name", SEVEN)
def test_the_seven_tasks_are_those_of_the_paper(name: str) -> None:
    labels, template, words, f1_of = SEVEN[name]
    task = find(name)
    assert task.name == name
    assert task.labels == tuple(labels.split())
    assert task.template == template
    assert [task.words[label] for label in task.labels] == [(word,) for word in words.split()]
    assert task.pair == ("{b}" in template)
    assert task.max_length == (256 if name in ("mnli", "rte", "cb") else 128)
    assert task.f1_of == f1_of
    template_of(task)


def test_the_seven_are_all_there_is() -> None:
    assert set(known()) == set(SEVEN)


def test_a_task_from_labels_does_not_depend_on_their_order() -> None:
    assert from_labels(["b", "a", "b"]) == from_labels(["a", "b"])
    assert from_labels(["b", "a"]).labels == ("a", "b")


def test_one_class_is_no_task() -> None:
    with pytest.raises(DataError, match="1 class; expected at least 2"):
        from_labels(["spam", "spam"])


def test_a_class_cannot_be_there_twice() -> None:
    with pytest.raises(ConfigError, match="each class once"):
        Task("twice", ("a", "a"))


def test_a_task_comes_from_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\nlabels = ["no", "yes"]\n[words]\nno = "bad"\nyes = ["good", "fine"]'
    )
    task = find(path)
    assert task.words == {"no": ("bad",), "yes": ("good", "fine")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = ", "is not TOML"),
        ("name = " + "[" * 10_000, "is not TOML"),
        ("max_length = 1" + "0" * 5_000, "is not TOML"),
        ('name = "x"\nlabels = ["a", "b"]\ntemplat = "{mask}"', "unknown entry `templat`"),
        ('name = "x"\nlabels = "ab"', "odd.toml`: `labels` is 'ab': input should be a valid tuple"),
        ('name = "x"', "odd.toml`: `labels`: field required"),
        ('name = "x"\nlabels = ["a", "b"]\nmax_length = 2', "max_length is 2"),
        ('name = "x"\nlabels = ["a", "b"]\nwords = 5', "`words` is 5"),
        ('name = "x"\nlabels = ["a", 5]', "`labels.1` is 5"),
    ],
)
def test_a_file_that_says_something_else_is_an_error(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        find(path)


def test_a_class_too_many_is_found_among_many_at_once() -> None:
    """One comparison of each with each would take hours."""
    many = [str(number) for number in range(40_000)]
    assert len(Task("many", tuple(many)).labels) == 40_000
    with pytest.raises(ConfigError, match="each class once"):
        Task("many", (*many, "7"))


@pytest.mark.parametrize("kind", ["a text for a name", "a folder"])
def test_what_cannot_be_opened_is_no_task(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find(tmp_path if kind == "a folder" else "so long a text is no name " * 50)
    assert len(caught.value.message) < 200
    assert "agnews, cb, mnli" in caught.value.hint


def test_an_unknown_task_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="neither known nor a file") as caught:
        find("sst3")
    assert "agnews, cb, mnli" in caught.value.hint


def test_a_changed_task_keeps_the_rest() -> None:
    task = find("sst2").changed({"words": {"negative": "bad", "positive": ["good"]}})
    assert task.words == {"negative": ("bad",), "positive": ("good",)}
    assert task.template == find("sst2").template
    assert find("sst2").changed({}) == find("sst2")


def test_data_of_other_classes_is_an_error() -> None:
    task = find("sst2")
    assert task.checked(["positive", "negative"], pair=False) is task
    with pytest.raises(DataError, match="label `neutral` is no class of task `sst2`"):
        task.checked(["positive", "negative", "neutral"], pair=False)
    with pytest.raises(DataError, match="class `positive` of task `sst2` has no labelled example"):
        task.checked(["negative"], pair=False)


def test_pairs_and_single_texts_are_not_mixed_up() -> None:
    with pytest.raises(ConfigError, match="reads one text, the data has pairs"):
        find("sst2").checked(find("sst2").labels, pair=True)
    with pytest.raises(ConfigError, match="reads pairs, the data has one text"):
        find("rte").checked(find("rte").labels, pair=False)


# ── names of classes ─────────────────────────────────────────────────────────────────────────

CAFE, IN_PIECES = "Caf\xe9", "Cafe\u0301"


def test_the_classes_of_a_task_file_are_cleaned_as_those_of_data(tmp_path: Path) -> None:
    path = tmp_path / "places.toml"
    lines = (f'name = "places"\nlabels = ["{IN_PIECES}", " bar\u200b "]', f'f1_of = "{IN_PIECES}"')
    words = f'[words]\n"{IN_PIECES} " = "coffee"\nbar = ["beer", "wine"]'
    path.write_text("\n".join((*lines, words)), "utf-8")
    task = find(path)
    assert task.labels == (CAFE, "bar")
    assert task.words == {CAFE: ("coffee",), "bar": ("beer", "wine")}
    assert task.f1_of == CAFE
    assert task.checked([CAFE, "bar"], pair=False) == task


def test_a_word_for_a_class_reaches_it_however_it_is_typed() -> None:
    task = from_labels([CAFE, "bar"]).changed({"words": {IN_PIECES: "coffee", "bar ": "beer"}})
    assert task.words == {CAFE: ("coffee",), "bar": ("beer",)}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"words": {CAFE: "coffee", IN_PIECES: "tea"}}, "class `Caf\xe9` has its words twice"),
        ({"labels": [CAFE, IN_PIECES]}, "each class once"),
        ({"labels": [CAFE, "\u200b"]}, "a class has an empty name"),
        ({"words": {" ": "tea"}}, "a class has an empty name"),
    ],
)
def test_names_that_are_the_same_or_empty_after_cleaning_are_refused(
    changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        from_labels([CAFE, "bar"]).changed(changes)
    assert caught.value.hint
