"""AGNews beside semi-supervised systems that have no pretrained encoder. The paper's Table 6."""

from __future__ import annotations

from collections.abc import Sequence

from selftrain.data import task
from selftrain.errors import ConfigError
from selftrain.experiments import published
from selftrain.experiments.closing import MAJORITY, MISSING
from selftrain.experiments.results import Result
from selftrain.experiments.tables.board import (
    Board,
    boards,
    numbers,
    possible,
    seconds,
    setting,
    tunable,
)
from selftrain.experiments.tables.choice import Choice, choose
from selftrain.experiments.tables.names import UPET, shown
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Cells, Sheet

AGNEWS = "agnews"


def beside_nonbert(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Every UPET on AGNews, by labels in all, below what others published."""
    if choice.metric != "accuracy":
        raise ConfigError(
            "the published figures on AGNews are accuracies", "leave the metric as it is"
        )
    wanted = [
        r
        for r in results
        if r.task == AGNEWS and r.shots != "full" and (r.method in UPET or r.method == MAJORITY)
    ]
    made = boards(choose(wanted, choice), choice)
    rows: list[Cells] = [
        (each.name, "published", str(each.labels), f"{each.accuracy:.1f}", *[MISSING] * 3)
        for each in published.figures().nonbert
    ]
    for board in made:
        rows += our_rows(board)
    notes = dict.fromkeys(
        note
        for board in made
        for note in remarks(board, rows, methods=[m for m in possible(board) if m in UPET])
    )
    head = ("system", "backbone", "labels in all", "accuracy", "tunable", "seconds", "cells")
    where = "; ".join(setting(board) for board in made)
    what = f"AGNews: accuracy on {choice.on} rows, {where}"
    every = (*published.figures().notes["nonbert"], *notes)
    return [Sheet(what, head, tuple(rows), every, words=2)]


def our_rows(board: Board) -> list[Cells]:
    """The majority class and every UPET of a board, fewest labels first."""
    classes = len(task.find(AGNEWS).labels)
    return [
        (
            shown(method),
            board.backbone,
            str(number * classes),
            board.told(method, AGNEWS, number),
            tunable(board.of(method, number)),
            seconds(board.of(method, number)),
            str(len(board.of(method, number))),
        )
        for number in numbers(board.cells)
        for method in board.methods
        if board.of(method, number)
    ]
