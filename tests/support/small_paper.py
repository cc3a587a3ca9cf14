"""For `benchmarks/paper/reproduce.sh`: tiny tasks, and its grids with two steps a model."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from random import Random

from selftrain.data.task import find
from selftrain.experiments.tasksets import DESIGN
from selftrain.method.recipes import recipe

TASKS = ("mnli", "rte", "agnews")
"""Those that Figures 3 and 4 show."""
SEARCHED = "agnews"
"""The task with enough rows for a search, which scores on some of them."""
FEW = {"pool": 24, "passes": 2, "teacher.steps": 2}
OF_STUDENTS = {"student.steps": 2}
WORDS = (
    "great good fine story film",
    "terrible bad dull long acting",
    "World news day yes",
    "Sports Tech no but",
)


def write_tasks(data: Path) -> None:
    """Rows of the tasks, more than 64 of each class, with words that tell the classes apart."""
    for name in TASKS:
        train = 2 * DESIGN + 400 if name == SEARCHED else 70 * len(find(name).labels)
        (data / name).mkdir(parents=True)
        for part, rows in {"train": range(train), "test": range(train, train + 24)}.items():
            lines = [json.dumps(row_of(name, number)) for number in rows]
            (data / name / f"{part}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def row_of(name: str, number: int) -> dict[str, str]:
    """A row of a task, as its file has it; no text twice."""
    task = find(name)
    label = number % len(task.labels)
    words = Random(number).choices(WORDS[label].split(), k=3)
    texts = [f"{' '.join(words)} {number}", "the film was long"]
    columns = ("text_a", "text_b") if task.pair else ("text",)
    return {**dict(zip(columns, texts, strict=False)), "label": task.labels[label]}


def write_few_steps(grids: Path, folder: Path) -> None:
    """The same grids, where every method takes two steps."""
    folder.mkdir()
    for path in grids.glob("*.toml"):
        grid = tomllib.loads(path.read_text("utf-8"))
        methods = grid.pop("methods")
        lines = [
            f"{name} = {json.dumps(value)}" for name, value in (grid | {"methods": []}).items()
        ]
        for name in methods:
            changes = FEW | (OF_STUDENTS if recipe(name).rounds else {})
            lines += ["[[variant]]", f'name = "{name}"', f'as = "{name}"']
            lines += [f"{entry} = {value}" for entry, value in changes.items()]
        (folder / path.name).write_text("\n".join(lines) + "\n", "utf-8")


def write_space(path: Path) -> None:
    """Table 8 with one value of most entries, so that a point costs little."""
    few = {**FEW, **OF_STUDENTS}
    values = {entry: [value] for entry, value in few.items()} | {"select.score.alpha": [0.1, 0.9]}
    lines = [f'"{entry}" = {json.dumps(value)}' for entry, value in values.items()]
    path.write_text("\n".join(lines) + "\n", "utf-8")
