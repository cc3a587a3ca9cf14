"""What a run costs: seconds by method and task, and against self-training of all parameters."""

from __future__ import annotations

from collections.abc import Sequence

from selftrain.experiments.closing import MISSING
from selftrain.experiments.results import Result
from selftrain.experiments.tables.board import Board, boards, possible, seconds, setting, tunable
from selftrain.experiments.tables.choice import Choice, choose, with_shots
from selftrain.experiments.tables.names import REFERENCES, reading, shown, variant
from selftrain.experiments.tables.remarks import NOISY, remarks
from selftrain.experiments.tables.sheet import Sheet


def speed(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Mean seconds of a run, a sheet for each backbone; references, untimed, are left out."""
    timed = [r for r in results if r.seconds is not None]
    whole = [r for r in timed if not variant(r.method)[1]]
    cells = choose(with_shots(whole, choice), choice)
    others = {r.method for r in timed} - {r.method for r in whole}
    left_out = f"{len(others)} ablations and alphas that were timed are left out."
    notes = [left_out] if others else []
    return [speed_sheet(board, notes) for board in boards(cells, choice)]


def speed_sheet(board: Board, more: Sequence[str] = ()) -> Sheet:
    """The sheet of one backbone: every method that was timed."""
    rows = tuple(
        (
            shown(method),
            tunable(board.of(method), teacher=True),
            *(seconds(board.of(method, task=task)) for task in board.tasks),
            ratio(board, method),
            str(len(board.of(method))),
        )
        for method in board.methods
    )
    head = ("method", "teacher + student", *board.tasks, "of full self-training", "cells")
    what = f"Speed: mean seconds of a run, {setting(board, board.choice.shots)}"
    notes = [
        NOISY,
        "Of full self-training: time against Head ST or Prompt ST, whichever reads alike, over "
        "the tasks and seeds that both have.",
        *more,
        *remarks(board, rows, methods=[m for m in possible(board) if m not in REFERENCES]),
    ]
    return Sheet(what, head, rows, tuple(notes))


def ratio(board: Board, method: str) -> str:
    """A method's time as a multiple of plain self-training's, on the tasks and seeds both have."""
    mine, plain = (times(board, name) for name in (method, f"{reading(method)}-st"))
    shared = mine.keys() & plain.keys()
    whole = sum(plain[pair] for pair in shared)
    return f"{sum(mine[pair] for pair in shared) / whole:.2f} ×" if whole else MISSING


def times(board: Board, method: str) -> dict[tuple[str, int], float]:
    """Seconds of each run of a method, by task and seed."""
    return {(c.task, c.seed): c.seconds for c in board.of(method) if c.seconds is not None}
