"""Confidence or certainty? UPET by alpha, on each scale and by each way to draw (Table 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selftrain.experiments import published
from selftrain.experiments.closing import MAJORITY, MISSING
from selftrain.experiments.results import Result
from selftrain.experiments.tables.board import Board, boards, seconds, title, tunable
from selftrain.experiments.tables.by_task import PAPERS_SHOTS, paper_notes
from selftrain.experiments.tables.choice import Choice, choose, no_cell, with_shots
from selftrain.experiments.tables.compared import Compared, compare, compared_sheet
from selftrain.experiments.tables.names import Alpha, alpha_of, shown, variant
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Cells, Sheet

NONE = "None"
WITHOUT = "wo-res-all"
"""What alpha None is: all of the pool, nothing selected."""


def by_alpha(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Alpha down, scale and draw across, for each backbone and UPET with such cells.

    A sheet of averages over the tasks, and where there are several tasks a sheet for each.
    """
    bases = {variant(r.method)[0] for r in results if alpha_of(r.method)}
    wanted = [
        r
        for r in results
        if (variant(r.method)[0] in bases and (alpha_of(r.method) or _is_none(r.method)))
        or (bases and r.method == MAJORITY)
    ]
    cells = choose(with_shots(wanted, choice), choice)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        for base in sorted(bases):
            methods = [m for m in board.methods if variant(m)[0] == base and alpha_of(m)]
            if methods:
                none = f"{base}-{WITHOUT}"
                tasks = {cell.task for method in methods for cell in board.of(method)}
                mine = board.only([*methods, none, MAJORITY], tasks)
                sheets.append(alpha_sheet(mine, base, methods, mine.tasks))
                if len(tasks) > 1:
                    sheets += [alpha_sheet(mine, base, methods, [task]) for task in mine.tasks]
                duels += compare(mine, [(method, none) for method in methods], choice.shots)
    if not sheets:
        raise no_cell()
    return sheets + compared_sheet(duels, choice)


def alpha_sheet(board: Board, base: str, methods: Sequence[str], tasks: Sequence[str]) -> Sheet:
    """The sheet of one UPET on these tasks; the paper's averages stand beside ours of them all."""
    named = {found: m for m in methods if (found := alpha_of(m))}
    shots = board.choice.shots
    with_paper = board.choice.paper and set(tasks) == set(board.tasks) and shots == PAPERS_SHOTS
    board = board.only(board.methods, tasks)
    columns = sorted({(found.scale, found.how) for found in named})
    paper = published.figures().alpha
    here = {found.alpha for found in named}
    there = {alpha for alpha in paper if alpha != NONE and float(alpha) not in map(float, here)}
    alphas = sorted(here | there, key=lambda text: (float(text), text))
    rows: list[Cells] = []
    if floor := board.of(MAJORITY):
        told = [board.average(MAJORITY, tasks, shots)] * len(columns)
        rows.append((shown(MAJORITY), *told, *[MISSING] * with_paper, str(len(floor))))
    for alpha in (NONE, *alphas):
        cells = [
            f"{base}-{WITHOUT}" if alpha == NONE else named.get(Alpha(alpha, *column), "")
            for column in columns
        ]
        count = sum(len(board.of(method)) for method in dict.fromkeys(cells))
        told = [board.told_of(method, tasks, shots) for method in cells]
        theirs = [_published(paper, alpha)] if with_paper else []
        rows.append((alpha, *told, *theirs, str(count)))
    notes = [
        f"Averages over {', '.join(tasks)}." if len(tasks) > 1 else f"On {tasks[0]} alone.",
        "None selects nothing, so it is the same in every column.",
        cost(cell for method in methods for cell in board.of(method, shots)),
        *remarks(board, rows),
        *(paper_notes(board.choice, "alpha") if with_paper else ()),
    ]
    theirs = ["as published"] if with_paper else []
    head = ("alpha", *(f"{scale}, {how}" for scale, how in columns), *theirs, "cells")
    where = "" if len(tasks) > 1 else f" on {tasks[0]}"
    what = title(board, f"Alpha of {shown(base)}{where}", shots)
    return Sheet(what, head, tuple(rows), tuple(notes))


def cost(cells: Iterable[Result]) -> str:
    """What all of these have in common: it is a note and no column."""
    every = list(cells)
    return f"Tunable: {tunable(every)}. Seconds of a run, on the mean: {seconds(every)}."


def _is_none(method: str) -> bool:
    return variant(method)[1] == WITHOUT


def _published(paper: dict[str, float], alpha: str) -> str:
    if alpha == NONE:
        return f"{paper[NONE]:.1f}"
    by_number = {float(printed): score for printed, score in paper.items() if printed != NONE}
    found = by_number.get(float(alpha))
    return MISSING if found is None else f"{found:.1f}"
