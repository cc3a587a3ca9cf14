"""The tasks in a folder of data beside what the paper had. The paper's Table 7."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from selftrain.data.files import records
from selftrain.errors import DataError
from selftrain.experiments.published import numbers
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tables.board import in_order
from selftrain.experiments.tables.sheet import Sheet, Texts
from selftrain.experiments.tasksets import find

PARTS = ("train", "test")
TEXTS = ("text", "text_a", "text_b")


@dataclass(frozen=True, slots=True)
class Part:
    """What a file of labelled rows holds."""

    rows: int
    classes: int
    words: float
    """In a row, on average, separated by spaces."""


def corpora(data: Path) -> Sheet:
    """Classes and rows of every task of a folder, counted line by line, beside the paper's."""
    try:
        inside = sorted(entry for entry in data.iterdir() if entry.is_dir())
    except OSError as error:
        raise DataError(f"cannot read the folder {data}: {error.strerror}", "--data DIR") from None
    folders = [entry.name for entry in inside if any(file_of(entry, part) for part in PARTS)]
    if not folders:
        raise DataError(
            f"{data} has no folder with a train or a test file",
            "one folder for each task: DIR/sst2/train.jsonl, DIR/sst2/test.jsonl",
        )
    known = numbers().data
    rows = tuple(row(data / task, task) for task in in_order([*folders, *known]))
    ours = ("task", "classes", "train", "test", "words in a train row")
    head = (*ours, *(f"{name}, paper" for name in ("classes", "train", "test")))
    missing = [task for task in known if task not in folders]
    notes = [f"Not in the folder: {', '.join(missing)}."] if missing else []
    return Sheet("Data", head, rows, (*notes, *numbers().notes["data"]))


def row(folder: Path, task: str) -> Texts:
    """One task: what is in its folder, and what the paper says."""
    paths = (file_of(folder, part) for part in PARTS)
    train, test = (counted(path) if path else None for path in paths)
    paper = numbers().data.get(task)
    theirs = (paper.classes, paper.train, paper.test) if paper else (None, None, None)
    return (
        task,
        _number(train.classes if train else None),
        _number(train.rows if train else None),
        _number(test.rows if test else None),
        f"{train.words:.0f}" if train else MISSING,
        *map(_number, theirs),
    )


def file_of(folder: Path, part: str) -> Path | None:
    """The file of a part, whatever its format; None where there is none."""
    try:
        return find(folder, part)
    except DataError:
        return None


def counted(path: Path) -> Part:
    """What a file of labelled rows holds, read row by row."""
    rows, words, labels = 0, 0, set()
    for _, record in records(path):
        rows += 1
        texts = (str(record[name]) for name in TEXTS if name in record)
        words += sum(len(text.split()) for text in texts)
        labels.add(str(record.get("label")))
    return Part(rows, len(labels), words / rows)


def _number(number: int | None) -> str:
    return MISSING if number is None else f"{number:,}"
