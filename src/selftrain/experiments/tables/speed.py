"""What a run costs: seconds by method and task, and against self-training of all parameters."""

from __future__ import annotations

from collections.abc import Sequence

from selftrain.experiments.names import is_variant, plain_self_training, reader_of, shown
from selftrain.experiments.references import REFERENCES
from selftrain.experiments.results import Result
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tables.board import Board, boards, possible, seconds, setting, tunable
from selftrain.experiments.tables.choice import Choice, choose, with_shots
from selftrain.experiments.tables.remarks import NOISY, remarks
from selftrain.experiments.tables.sheet import Sheet


def speed(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Mean seconds of a run, a sheet for each backbone; references have no time."""
    timed = [r for r in results if r.seconds is not None]
    cells = choose(with_shots([r for r in timed if not is_variant(r.method)], choice), choice)
    variants = {r.method for r in timed if is_variant(r.method)}
    left_out = f"{len(variants)} ablations and alphas that were timed are left out."
    notes = [left_out] if variants else []
    return [speed_sheet(board, notes) for board in boards(cells, choice)]


def speed_sheet(board: Board, notes: Sequence[str] = ()) -> Sheet:
    """The sheet of one backbone: every method that was timed."""
    rows = tuple(
        (
            shown(method),
            tunable(board.cells_of(method), teacher=True),
            *(seconds(board.cells_of(method, task=task)) for task in board.tasks),
            ratio(board, method),
            str(len(board.cells_of(method))),
        )
        for method in board.methods
    )
    head = ("method", "teacher + student", *board.tasks, "of full self-training", "cells")
    what = f"Speed: mean seconds of a run, {setting(board, board.choice.shots)}"
    every_note = [
        NOISY,
        "Of full self-training: time against Head ST or Prompt ST, whichever reads alike, over "
        "the tasks and seeds that both have.",
        *notes,
        *remarks(board, rows, methods=[m for m in possible(board) if m not in REFERENCES]),
    ]
    return Sheet(what, head, rows, tuple(every_note))


def ratio(board: Board, method: str) -> str:
    """A method's time as a multiple of plain self-training's, on the tasks and seeds both have."""
    plain = plain_self_training(reader_of(method))
    if plain is None:
        return MISSING
    ours, theirs = times(board, method), times(board, plain)
    shared = ours.keys() & theirs.keys()
    total = sum(theirs[pair] for pair in shared)
    return f"{sum(ours[pair] for pair in shared) / total:.2f} ×" if total else MISSING


def times(board: Board, method: str) -> dict[tuple[str, int], float]:
    """Seconds of each run of a method, by task and seed."""
    return {(c.task, c.seed): c.seconds for c in board.cells_of(method) if c.seconds is not None}
