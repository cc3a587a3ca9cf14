"""Input that is odd but usable: it is corrected, counted and reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import pytest

from bad_input import labelled
from command import FIT, config, csv, selftrain, sentences


@dataclass(frozen=True)
class Note:
    """A command that works, what is odd about its files, and the warning that says so."""

    said: str
    files: Mapping[str, str] = field(default_factory=dict)
    flags: str = ""
    config: str = ""


def pool(*texts: str) -> dict[str, str]:
    return {
        "pool.csv": csv([(text,) for text, _ in sentences(30, first=100)] + [*zip(texts)], "text")
    }


LONG = "film " * 100
NUMBERS = {"good": "1", "bad": "0"}
NOTES = {
    "text cut": Note(
        "texts cut to the model's length, 64 tokens: 2 of 40 seen",
        {**labelled((LONG + "a", "good")), **pool(LONG + "b")},
        config="method.pool = 1000",
    ),
    "pool smaller than asked": Note(
        "pool smaller than asked: 30 texts, a round draws 1000; all are taken",
        config="method.pool = 1000",
    ),
    "pool smaller than N_r": Note(
        "pool smaller than asked: N_r is 200, half of the pool is 12",
        config="method.select.count = 200",
    ),
    "empty pool rows": Note("empty pool rows dropped: 2", pool('" "', '""')),
    "duplicate pool rows": Note("duplicate pool rows dropped: 1", pool("a film", "a film")),
    "labelled text in the pool": Note(
        "labelled or dev texts inside the pool removed: 1", pool(sentences(1)[0][0].upper())
    ),
    "test text in the pool": Note(
        "test texts inside the pool removed: 1",
        pool(sentences(1, first=300)[0][0]),
        flags="--test test.csv",
    ),
    "labelled text in the test rows": Note(
        "test rows that are also in the training data: the score is too optimistic: 1",
        {"test.csv": csv([*sentences(1), *sentences(4, first=300)], "text", "label")},
        flags="--test test.csv",
    ),
    "label column in the pool": Note(
        "label column `label` in the pool ignored: 1",
        {"pool.csv": csv(sentences(30, first=100), "text", "label")},
    ),
    "numeric labels": Note(
        "numeric labels kept as strings: 8",
        {"labelled.csv": csv([(t, NUMBERS[label]) for t, label in sentences(8)], "text", "label")},
    ),
    "blanks around labels": Note(
        "labels with blanks around them trimmed: 1", labelled(("a film", " good "))
    ),
    "a rare class": Note(
        "class `bad` has fewer than 5 rows: all taken: 4",
        labelled(("a film", "good"), ("b film", "good")),
        flags="--shots 5",
    ),
    "no dropout of its own": Note(
        "has no dropout of its own, and certainty needs some: 0.1 is set",
        flags="--backbone {modernbert}",
    ),
}


@pytest.mark.parametrize("name", NOTES)
def test_what_is_put_right_is_counted_and_said(
    name: str, folder: Path, tiny_folder: Callable[[str], Path]
) -> None:
    note = NOTES[name]
    for file, content in note.files.items():
        (folder / file).write_text(content, encoding="utf-8")
    (folder / "quick.toml").write_text(config(note.config), encoding="utf-8")
    places = {"bert": tiny_folder("bert"), "modernbert": tiny_folder("modernbert")}

    fit = FIT.removesuffix(" --backbone {bert}") if "--backbone" in note.flags else FIT
    said = selftrain(f"{fit} {note.flags}".format(**places))

    assert said.code == 0, said.err
    before_training = takewhile(lambda line: line.startswith("warning: "), said.lines)
    assert any(note.said in line for line in before_training), said.err
    assert "warning" not in said.out


def test_predict_answers_every_row_and_says_what_is_odd(
    folder: Path, done: Path, bert: Path
) -> None:
    (folder / "new.csv").write_text(csv([(LONG,), ('""',), ("a film",)], "text"), "utf-8")
    said = selftrain(f"predict {done} new.csv --backbone {bert} -o answers.csv")
    assert said.code == 0
    assert "warning: empty texts answered like any other: 1" in said.lines
    assert "warning: texts cut to the model's length, 64 tokens: 1 of 3 seen" in said.lines
    assert len((folder / "answers.csv").read_text().splitlines()) == 4
