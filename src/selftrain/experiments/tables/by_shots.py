"""More labels: the same methods with 16, 32 or 64 of each class. The paper's Table 3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from selftrain.errors import DataError
from selftrain.experiments import published
from selftrain.experiments.names import is_main, shown
from selftrain.experiments.references import MAJORITY, REFERENCES
from selftrain.experiments.results import Result
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tables.board import Board, boards, seconds, shots_of, title, tunable
from selftrain.experiments.tables.by_task import PUBLISHED, paper_notes
from selftrain.experiments.tables.choice import Choice, choose
from selftrain.experiments.tables.compared import (
    Compared,
    claims,
    compare,
    compare_shots,
    compared_sheet,
)
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Sheet, Texts

AVERAGE = "average"


def more_labels(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Methods and tasks down, labels a class across, where a method has two numbers of them."""
    wanted = [r for r in results if is_main(r.method) and r.shots != "full"]
    cells = choose(wanted, choice)
    check_one_recipe(cells)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        part = with_several(board)
        if part.cells:
            sheets.append(shots_sheet(part, board))
            for shots in shots_of(part.cells):
                duels += compare(part, claims(part.methods), shots)
            duels += compare_shots(part)
    if not sheets:
        raise DataError(
            "no method has cells with two numbers of labels a class",
            "selftrain bench DATA --shots 16 --shots 32 --shots 64",
        )
    return sheets + compared_sheet(duels, choice)


def check_one_recipe(cells: Sequence[Result]) -> None:
    """Raise where a method has other settings with more labels: a table compares it with itself."""
    shots_by: dict[tuple[str, str], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for cell in cells:
        if isinstance(cell.shots, int):
            shots_by[cell.method, cell.backbone][cell.recipe].add(cell.shots)
    for (method, backbone), by_recipe in shots_by.items():
        if len(by_recipe) > 1:
            recipes = "; ".join(
                f"{recipe} with {', '.join(map(str, sorted(shots)))} labels a class"
                for recipe, shots in by_recipe.items()
            )
            raise DataError(
                f"`{method}` on {backbone} has cells of several recipes: {recipes}",
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
        if len(shots_of(board.cells_of(method, task=task))) > 1
    ]
    tasks = {task for method, task in pairs if method not in REFERENCES}
    return board.restricted([MAJORITY, *(method for method, task in pairs if task in tasks)], tasks)


def shots_sheet(board: Board, full_board: Board) -> Sheet:
    """The sheet of one backbone; notes name what else is on its full board."""
    methods = [m for m in board.methods if len(shots_of(board.cells_of(m))) > 1]
    theirs = [row.shots for row in published.numbers().shots if isinstance(row.shots, int)]
    shots = sorted({*shots_of(cell for cell in board.cells if cell.method != MAJORITY), *theirs})
    rows: list[Texts] = []
    for method in methods:
        for task in board.tasks:
            scores = [board.score(method, [task], number) for number in shots]
            cells = [cell for number in shots for cell in board.cells_of(method, number, task)]
            cost = (tunable(cells), seconds(cells), str(len(cells)))
            rows.append((shown(method), task, *scores, *cost))
            rows += published_row(method, task, shots) if board.choice.paper else []
        means = [board.score(method, board.tasks, number) for number in shots]
        cells = [cell for number in shots for cell in board.cells_of(method, number)]
        cost = (tunable(cells), seconds(cells, board.tasks), str(len(cells)))
        rows.append((shown(method), AVERAGE, *means, *cost))
        rows += published_row(method, AVERAGE, shots) if board.choice.paper else []
    left_out = [m for m in full_board.methods if m not in {*board.methods, *REFERENCES}]
    single = [shown(m) for m in left_out]
    single += [task for task in full_board.tasks if task not in board.tasks]
    absent = [task for task in published.numbers().tasks if task not in full_board.tasks]
    notes = remarks(board, rows, tasks=absent)
    notes += [f"With one number of labels only: {', '.join(single)}."] if single else []
    notes += paper_notes(board.choice, "shots")
    labels = (f"{number} a class" for number in shots)
    head = ("method", "task", *labels, "tunable", "seconds", "cells")
    return Sheet(title(board, "Labels a class"), head, tuple(rows), tuple(notes), words=2)


def published_row(method: str, task: str, shots: Sequence[int]) -> list[Texts]:
    """The paper's own row below ours, if it has one; its average is over all seven tasks."""
    rows = [published.row("shots", method, number) for number in shots]
    if not any(rows):
        return []
    nothing = [MISSING] * 3
    if task == AVERAGE:
        means = [f"{fmean(row.mean):.1f}" if row else MISSING for row in rows]
        return [(PUBLISHED, "average of seven", *means, *nothing)]
    scores = [(row and published.score(row, task)) or MISSING for row in rows]
    return [(PUBLISHED, task, *scores, *nothing)]
