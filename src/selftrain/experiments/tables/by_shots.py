"""More labels: the same methods with 16, 32 or 64 of each class. The paper's Table 3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from selftrain.errors import DataError
from selftrain.experiments import published
from selftrain.experiments.closing import MAJORITY, MISSING
from selftrain.experiments.results import Result
from selftrain.experiments.tables.board import Board, boards, numbers, seconds, title, tunable
from selftrain.experiments.tables.by_task import PUBLISHED, paper_notes
from selftrain.experiments.tables.choice import Choice, choose
from selftrain.experiments.tables.compared import (
    Compared,
    claims,
    compare,
    compare_shots,
    compared_sheet,
)
from selftrain.experiments.tables.names import REFERENCES, is_main, shown
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Cells, Sheet

AVERAGE = "average"


def more_labels(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Methods and tasks down, labels a class across, where a method has two numbers of them."""
    wanted = [r for r in results if is_main(r.method) and r.shots != "full"]
    cells = choose(wanted, choice)
    check_one_recipe(cells)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        mine = with_several(board)
        if mine.cells:
            sheets.append(shots_sheet(mine, board))
            for number in numbers(mine.cells):
                duels += compare(mine, claims(mine.methods), number)
            duels += compare_shots(mine)
    if not sheets:
        raise DataError(
            "no method has cells with two numbers of labels a class",
            "selftrain bench DATA --shots 16 --shots 32 --shots 64",
        )
    return sheets + compared_sheet(duels, choice)


def check_one_recipe(cells: Sequence[Result]) -> None:
    """Raise where a method with more labels is another method: it is compared with itself."""
    found: dict[tuple[str, str], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for cell in cells:
        if isinstance(cell.shots, int):
            found[cell.method, cell.backbone][cell.recipe].add(cell.shots)
    for (method, backbone), by_recipe in found.items():
        if len(by_recipe) > 1:
            told = "; ".join(
                f"{recipe} with {', '.join(map(str, sorted(shots)))} labels a class"
                for recipe, shots in by_recipe.items()
            )
            raise DataError(
                f"`{method}` on {backbone} has cells of several recipes: {told}",
                "compute those of one of them again, in another folder: -o FOLDER",
            )


def with_several(board: Board) -> Board:
    """The methods with two numbers of labels on some task, those tasks, and the majority class.

    A reference alone is no reason to show a task.
    """
    pairs = [
        (method, task)
        for method in board.methods
        for task in board.tasks
        if len(numbers(board.of(method, task=task))) > 1
    ]
    tasks = {task for method, task in pairs if method not in REFERENCES}
    return board.only([MAJORITY, *(method for method, task in pairs if task in tasks)], tasks)


def shots_sheet(board: Board, whole: Board) -> Sheet:
    """The sheet of one backbone; what else is on its whole board is named below."""
    methods = [m for m in board.methods if len(numbers(board.of(m))) > 1]
    theirs = [row.shots for row in published.figures().shots if isinstance(row.shots, int)]
    shots = sorted({*numbers(cell for cell in board.cells if cell.method != MAJORITY), *theirs})
    rows: list[Cells] = []
    for method in methods:
        for task in board.tasks:
            told = [board.told(method, task, number) for number in shots]
            some = [cell for number in shots for cell in board.of(method, number, task)]
            rows.append((shown(method), task, *told, tunable(some), seconds(some), str(len(some))))
            rows += published_row(method, task, shots) if board.choice.paper else []
        means = [board.told_of(method, board.tasks, number) for number in shots]
        every = [cell for number in shots for cell in board.of(method, number)]
        rows.append(
            (
                shown(method),
                AVERAGE,
                *means,
                tunable(every),
                seconds(every, board.tasks),
                str(len(every)),
            )
        )
        rows += published_row(method, AVERAGE, shots) if board.choice.paper else []
    single = [shown(m) for m in whole.methods if m not in board.methods and m not in REFERENCES]
    single += [task for task in whole.tasks if task not in board.tasks]
    absent = [task for task in published.figures().tasks if task not in whole.tasks]
    notes = remarks(board, rows, tasks=absent)
    notes += [f"With one number of labels only: {', '.join(single)}."] if single else []
    notes += paper_notes(board.choice, "shots")
    labels = (f"{number} a class" for number in shots)
    head = ("method", "task", *labels, "tunable", "seconds", "cells")
    return Sheet(title(board, "Labels a class"), head, tuple(rows), tuple(notes), words=2)


def published_row(method: str, task: str, shots: Sequence[int]) -> list[Cells]:
    """The paper's own row below ours, if it has one; its average is over all seven tasks."""
    found = [published.row("shots", method, number) for number in shots]
    if not any(found):
        return []
    nothing = [MISSING] * 3
    if task == AVERAGE:
        told = [f"{fmean(row.mean):.1f}" if row else MISSING for row in found]
        return [(PUBLISHED, "average of seven", *told, *nothing)]
    scores = [(row and published.score(row, task)) or MISSING for row in found]
    return [(PUBLISHED, task, *scores, *nothing)]
