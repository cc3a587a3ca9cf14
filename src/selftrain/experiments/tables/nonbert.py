"""AGNews beside semi-supervised systems that have no pretrained encoder. The paper's Table 6."""

from __future__ import annotations

from collections.abc import Sequence

from selftrain.data import task
from selftrain.errors import ConfigError
from selftrain.experiments import published
from selftrain.experiments.names import UPET, shown
from selftrain.experiments.references import MAJORITY
from selftrain.experiments.results import Result
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tables.board import (
    Board,
    boards,
    possible,
    seconds,
    setting,
    shots_of,
    tunable,
)
from selftrain.experiments.tables.choice import Choice, choose
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Sheet, Texts

AGNEWS = "agnews"


def beside_nonbert(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Every UPET on AGNews, by labels in all, below what others published."""
    if choice.metric != "accuracy":
        raise ConfigError(
            "the published scores on AGNews are accuracies", "leave the metric as it is"
        )
    wanted = [
        r
        for r in results
        if r.task == AGNEWS and r.shots != "full" and (r.method in UPET or r.method == MAJORITY)
    ]
    every_board = boards(choose(wanted, choice), choice)
    rows: list[Texts] = [
        (system.name, "published", str(system.labels), f"{system.accuracy:.1f}", *[MISSING] * 3)
        for system in published.numbers().nonbert
    ]
    for board in every_board:
        rows += our_rows(board)
    notes = dict.fromkeys(
        note
        for board in every_board
        for note in remarks(board, rows, methods=[m for m in possible(board) if m in UPET])
    )
    head = ("system", "backbone", "labels in all", "accuracy", "tunable", "seconds", "cells")
    where = "; ".join(setting(board) for board in every_board)
    what = f"AGNews: accuracy on {choice.scored_on} rows, {where}"
    about = published.numbers().notes["nonbert"]
    return [Sheet(what, head, tuple(rows), (*about, *notes), words=2)]


def our_rows(board: Board) -> list[Texts]:
    """The majority class and every UPET of a board, fewest labels first."""
    classes = len(task.find(AGNEWS).labels)
    return [
        (
            shown(method),
            board.backbone,
            str(shots * classes),
            board.score(method, [AGNEWS], shots),
            tunable(cells),
            seconds(cells),
            str(len(cells)),
        )
        for shots in shots_of(board.cells)
        for method in board.methods
        if (cells := board.cells_of(method, shots))
    ]
