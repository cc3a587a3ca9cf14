"""Confidence or certainty? UPET by alpha, on each scale and by each way to draw (Table 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selftrain.experiments import published
from selftrain.experiments.names import ablations, base_of, shown, weighing_of
from selftrain.experiments.references import MAJORITY
from selftrain.experiments.results import Result
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tables.board import Board, boards, seconds, title, tunable
from selftrain.experiments.tables.by_task import PAPERS_SHOTS, paper_notes
from selftrain.experiments.tables.choice import Choice, choose, no_cell, with_shots
from selftrain.experiments.tables.compared import Compared, compare, compared_sheet
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Sheet, Texts
from selftrain.method.upet import Weighing

NONE = "None"
"""How the paper prints its row without selection: all of the pool is easy."""


def by_alpha(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Alpha down, scale and draw across, for each backbone and UPET with such cells.

    A sheet of averages over the tasks, and where there are several tasks a sheet for each.
    """
    bases = {base_of(r.method) for r in results if weighing_of(r.method)}
    unselected = {base: without_selection(base) for base in bases}
    wanted = [
        r
        for r in results
        if (base_of(r.method) in bases and weighing_of(r.method))
        or r.method in unselected.values()
        or (bases and r.method == MAJORITY)
    ]
    cells = choose(with_shots(wanted, choice), choice)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        for base, none in sorted(unselected.items()):
            methods = [m for m in board.methods if base_of(m) == base and weighing_of(m)]
            if methods:
                tasks = {cell.task for method in methods for cell in board.cells_of(method)}
                part = board.restricted([*methods, none, MAJORITY], tasks)
                sheets.append(alpha_sheet(part, base, methods, part.tasks))
                if len(tasks) > 1:
                    sheets += [alpha_sheet(part, base, methods, [task]) for task in part.tasks]
                duels += compare(part, [(method, none) for method in methods], choice.shots)
    if not sheets:
        raise no_cell()
    return sheets + compared_sheet(duels, choice)


def without_selection(base: str) -> str:
    """The ablation of a UPET that learns from all of the pool.

    >>> without_selection("upet-head-adapter")
    'upet-head-adapter-wo-res-all'
    """
    return next(method for method, part in ablations(base).items() if part.part == "res-all")


def alpha_sheet(board: Board, base: str, methods: Sequence[str], tasks: Sequence[str]) -> Sheet:
    """The sheet of one UPET on these tasks; the paper's averages stand beside ours of them all."""
    by_weighing = {found: method for method in methods if (found := weighing_of(method))}
    shots = board.choice.shots
    with_paper = board.choice.paper and set(tasks) == set(board.tasks) and shots == PAPERS_SHOTS
    board = board.restricted(board.methods, tasks)
    columns = sorted({(found.scale, found.how) for found in by_weighing})
    paper = published.numbers().alpha
    printed = {float(alpha): score for alpha, score in paper.items() if alpha != NONE}
    rows: list[Texts] = []
    if floor := board.cells_of(MAJORITY):
        scores = [board.average(MAJORITY, tasks, shots)] * len(columns)
        rows.append((shown(MAJORITY), *scores, *[MISSING] * with_paper, str(len(floor))))
    lines: dict[str, tuple[list[str], float | None]] = {
        NONE: ([without_selection(base)] * len(columns), paper[NONE])
    }
    for alpha in sorted({found.alpha for found in by_weighing} | printed.keys()):
        entries = [by_weighing.get(Weighing(alpha, *column), "") for column in columns]
        lines[f"{alpha:g}"] = entries, printed.get(alpha)
    for label, (entries, published_score) in lines.items():
        count = sum(len(board.cells_of(method)) for method in dict.fromkeys(entries))
        scores = [board.score(method, tasks, shots) for method in entries]
        theirs = MISSING if published_score is None else f"{published_score:.1f}"
        rows.append((label, *scores, *([theirs] if with_paper else []), str(count)))
    notes = [
        f"Averages over {', '.join(tasks)}." if len(tasks) > 1 else f"On {tasks[0]} alone.",
        "None selects nothing, so it is the same in every column.",
        cost(cell for method in methods for cell in board.cells_of(method, shots)),
        *remarks(board, rows),
        *(paper_notes(board.choice, "alpha") if with_paper else ()),
    ]
    names = (f"{scale}, {how}" for scale, how in columns)
    head = ("alpha", *names, *(["as published"] if with_paper else []), "cells")
    where = "" if len(tasks) > 1 else f" on {tasks[0]}"
    what = title(board, f"Alpha of {shown(base)}{where}", shots)
    return Sheet(what, head, tuple(rows), tuple(notes))


def cost(cells: Iterable[Result]) -> str:
    """Parameters and time, which all entries have in common: a note, not a column."""
    every = list(cells)
    return f"Tunable: {tunable(every)}. Seconds of a run, on the mean: {seconds(every)}."
