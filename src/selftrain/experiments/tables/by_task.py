"""Methods down, tasks across: the main result, full or small teachers and students, the ablation.

The paper's Tables 1, 2 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from selftrain.experiments import published
from selftrain.experiments.closing import MAJORITY, MISSING
from selftrain.experiments.results import Result, Shots
from selftrain.experiments.tables.board import Board, boards, possible, seconds, title, tunable
from selftrain.experiments.tables.choice import METRICS, Choice, choose, no_cell, with_shots
from selftrain.experiments.tables.compared import Compared, Duel, claims, compare, compared_sheet
from selftrain.experiments.tables.names import (
    ABLATIONS,
    PEL,
    READINGS,
    REFERENCES,
    is_main,
    reading,
    shown,
    variant,
)
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Cells, Sheet

PUBLISHED = "as published"
PAPERS_SHOTS = 16
"""Labels a class behind the paper's figures, where its table names no number."""
ABLATED = "upet-prompt-ptuning"
"""The one UPET that the paper leaves parts out of."""
WITHOUT_SAMPLING = (
    "W/o reliable sampling, twice, for the paper contradicts itself. All: every row of the pool "
    "drawn, so no contrast. Uniform: as many rows as UPET, and as many of each pseudo class, "
    "drawn by chance; the rest is hard."
)


class Line(NamedTuple):
    """A row of a table: what it is called, and whose cells stand in it."""

    labels: Cells
    method: str
    shots: Shots


def main_result(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Every method on every task (Table 1), and the comparisons behind the paper's claims."""
    wanted = [r for r in results if is_main(r.method)]
    cells = choose(with_shots(wanted, choice, full=True), choice)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        lines = main_lines(board)
        head = ("method", "tunable")
        rows = [
            row
            for line in lines
            for row in (scored(board, line, board.tasks), *beside(board, line, board.tasks))
        ]
        notes = remarks(board, rows, methods=possible(board), tasks=published.figures().tasks)
        notes += paper_notes(choice, "main", board.tasks)
        what = title(board, "Main result", choice.shots)
        sheets.append(sheet(what, head, board.tasks, rows, notes))
        duels += compare(board, claims(board.methods), choice.shots)
    return sheets + compared_sheet(duels, choice)


def main_lines(board: Board) -> list[Line]:
    """References first, then the full data, then the few labels, each in the paper's order."""
    few, methods = board.choice.shots, board.methods
    pairs: list[tuple[str, Shots]] = [
        *((m, few) for m in methods if m in REFERENCES),
        *((m, "full") for m in methods),
        *((m, few) for m in methods if m not in REFERENCES),
    ]
    return [Line((shown(m, shots),), m, shots) for m, shots in pairs if board.of(m, shots)]


def teachers_and_students(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Teacher and student, each full or with an adapter (Table 2); tunable is of both."""
    names = {form.format(reader) for form in PEL.values() for reader in READINGS}
    found = [r for r in results if r.method in names]
    # The paper's own choice is in the main table too: alone, it is no comparison.
    where = {(r.backbone, reading(r.method)) for r in found if not is_main(r.method)}
    wanted = [r for r in found if (r.backbone, reading(r.method)) in where]
    floor = [r for r in results if where and r.method == MAJORITY]
    cells = choose(with_shots([*wanted, *floor], choice), choice)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        changed = [method for method in board.methods if not is_main(method)]
        tasks = {cell.task for method in changed for cell in board.of(method)}
        if tasks:
            mine = board.only(board.methods, tasks)
            sheets.append(pel_sheet(mine))
            duels += compare(mine, pel_duels(), choice.shots)
    if not sheets:
        raise no_cell()
    return sheets + compared_sheet(duels, choice)


def pel_sheet(board: Board) -> Sheet:
    """The sheet of one backbone."""
    floor = Line((shown(MAJORITY), MISSING, MISSING), MAJORITY, board.choice.shots)
    rows = [scored(board, floor, board.tasks)] if board.of(MAJORITY) else []
    rows += [
        row
        for line in pel_lines(board)
        for row in (
            scored(board, line, board.tasks, both=True),
            *(published_pel(line, len(board.tasks)) if board.choice.paper else ()),
        )
    ]
    notes = remarks(board, rows, tasks=published.figures().tasks)
    notes += paper_notes(board.choice, "pel")
    head = ("reading", "teacher", "student", "teacher + student")
    what = title(board, "Teacher and student", board.choice.shots)
    return sheet(what, head, board.tasks, rows, notes)


def pel_lines(board: Board) -> list[Line]:
    """The four choices of each reading that has some of them."""
    kinds = ("full", "adapter")
    return [
        Line((reader, kinds[teacher], kinds[student]), form.format(reader), board.choice.shots)
        for reader in READINGS
        if any(board.of(form.format(reader)) for form in PEL.values())
        for (teacher, student), form in PEL.items()
    ]


def pel_duels() -> list[Duel]:
    """The paper's choice, a full teacher and an adapter student, against the other three."""
    ours = PEL[False, True]
    return [
        (ours.format(reader), form.format(reader))
        for reader in READINGS
        for form in PEL.values()
        if form != ours
    ]


def ablation(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """UPET with one part left out at a time (Table 5): a sheet for each that has such cells."""
    variants = {variant(r.method) for r in results}
    bases = {base for base, change in variants if change in ABLATIONS}
    wanted = [r for r in results if r.method == MAJORITY or _ablated(r.method) in bases]
    plain = [r for r in results if r.method in {f"{reading(base)}-st" for base in bases}]
    cells = choose(with_shots([*wanted, *plain] if bases else [], choice), choice)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        for base in sorted(bases):
            changed = [f"{base}-{change}" for change in ABLATIONS]
            tasks = {cell.task for method in changed for cell in board.of(method)}
            if tasks:
                mine = board.only(ablation_names(base), tasks)
                sheets.append(ablation_sheet(mine, base))
                duels += compare(mine, [(base, other) for other in changed], choice.shots)
    if not sheets:
        raise no_cell()
    return sheets + compared_sheet(duels, choice)


def ablation_sheet(board: Board, base: str) -> Sheet:
    """One UPET and what it is without each of its parts; what was not run is shown as missing."""
    rows = []
    for method, name in ablation_names(base).items():
        line = Line((name,), method, board.choice.shots)
        rows += [scored(board, line, board.tasks), *beside(board, line, board.tasks, ablated=True)]
    notes = [WITHOUT_SAMPLING, *remarks(board, rows, tasks=published.figures().tasks)]
    notes += paper_notes(board.choice, "ablation", board.tasks)
    what = title(board, f"Ablation of {shown(base)}", board.choice.shots)
    return sheet(what, ("method", "tunable"), board.tasks, rows, notes)


def ablation_names(base: str) -> dict[str, str]:
    """The rows of an ablation, in the paper's order: method → its name."""
    plain = f"{reading(base)}-st"
    parts = {f"{base}-{change}": name for change, name in ABLATIONS.items()}
    return {MAJORITY: shown(MAJORITY), plain: shown(plain), base: shown(base), **parts}


def _ablated(method: str) -> str | None:
    """The UPET that a row of an ablation is about: itself, or what it was before the change."""
    base, change = variant(method)
    return base if not change or change in ABLATIONS else None


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


def sheet(
    what: str, head: Cells, tasks: Sequence[str], rows: Sequence[Cells], notes: Sequence[str]
) -> Sheet:
    """A sheet with a column for each task, their average, the time and the number of cells."""
    names = (*head, *tasks, "average", "seconds", "cells")
    return Sheet(what, names, tuple(rows), tuple(notes), words=len(head) - 1)


def scored(board: Board, line: Line, tasks: Sequence[str], *, both: bool = False) -> Cells:
    """The row of a method: what it tunes, its scores, the time of a run, how many cells."""
    method, shots = line.method, line.shots
    cells = [cell for cell in board.of(method, shots) if cell.task in tasks]
    first, *others = line.labels
    return (
        first + board.mark(method, tasks, shots),
        *others,
        tunable(cells, teacher=both),
        *(board.told(method, task, shots) for task in tasks),
        board.average(method, tasks, shots),
        seconds(cells, tasks),
        str(len(cells)),
    )


def beside(board: Board, line: Line, tasks: Sequence[str], *, ablated: bool = False) -> list[Cells]:
    """The paper's own row below ours, if it is asked for and there is one."""
    if not board.choice.paper:
        return []
    method = in_ablation(line.method) if ablated else line.method
    table: Literal["main", "ablation"] = "ablation" if variant(method)[1] else "main"
    found = published.row(table, method, line.shots)
    if found is None:
        return []
    scores = [published.score(found, task) or MISSING for task in tasks]
    tunable = found.tunable or MISSING
    return [(PUBLISHED, tunable, *scores, published_average(found, tasks), MISSING, MISSING)]


def in_ablation(method: str) -> str:
    """Whose row of the paper's ablation stands below a method's: by the part that is left out.

    >>> in_ablation("upet-head-adapter-wo-phce"), in_ablation("head-st")
    ('upet-prompt-ptuning-wo-phce', 'prompt-st')
    """
    base, change = variant(method)
    if not base.startswith("upet-"):
        return method.replace("head-", "prompt-", 1)
    return f"{ABLATED}-{change}" if change else ABLATED


def published_average(row: published.Row, tasks: Sequence[str]) -> str:
    """The printed average where all seven tasks are shown; else the mean of those that are."""
    every = published.figures().tasks
    if not set(tasks) <= set(every):
        return MISSING
    if set(tasks) == set(every):
        return f"{row.average:.1f}"
    return f"{fmean(row.mean[every.index(task)] for task in tasks):.1f}"


def published_pel(line: Line, tasks: int) -> list[Cells]:
    """The paper's own figures of a teacher and a student: averages and hours alone."""
    if line.shots != PAPERS_SHOTS:
        return []
    found = next(each for each in published.figures().pel if each.method == line.method)
    scores = [MISSING] * tasks
    hours = f"{found.hours:.1f} hours"
    return [(PUBLISHED, "", "", found.tunable, *scores, f"{found.average:.1f}", hours, MISSING)]


def paper_notes(choice: Choice, table: str, tasks: Sequence[str] | None = None) -> list[str]:
    """What to know of the paper's figures, where they are shown."""
    if not choice.paper:
        return []
    some = tasks is not None and set(tasks) != set(published.figures().tasks)
    over = ["The paper's averages here are over the tasks shown."] if some else []
    metric = METRICS[choice.metric]
    other = f"The paper's figures stand beside {metric} of ours: they do not compare."
    return [
        *published.figures().notes[table],
        *over,
        *([other] if choice.metric != "accuracy" else []),
    ]
