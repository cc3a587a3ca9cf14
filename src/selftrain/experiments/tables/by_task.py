"""Methods down, tasks across: the main result, teachers and students, the ablation.

The paper's Tables 1, 2 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from selftrain.experiments import published
from selftrain.experiments.names import (
    PEL,
    ablation_of,
    ablations,
    base_of,
    is_main,
    is_upet,
    is_variant,
    plain_self_training,
    reader_of,
    shown,
)
from selftrain.experiments.references import MAJORITY, REFERENCES
from selftrain.experiments.results import Result, Shots
from selftrain.experiments.stats import MISSING
from selftrain.experiments.tables.board import Board, boards, possible, seconds, title, tunable
from selftrain.experiments.tables.choice import METRICS, Choice, choose, no_cell, with_shots
from selftrain.experiments.tables.compared import Compared, Duel, claims, compare, compared_sheet
from selftrain.experiments.tables.remarks import remarks
from selftrain.experiments.tables.sheet import Sheet, Texts

PUBLISHED = "as published"
PAPERS_SHOTS = 16
"""Labels a class behind the paper's numbers, where its table does not say."""
ABLATED = "upet-prompt-ptuning"
"""The UPET of the paper's ablation."""
WITHOUT_SAMPLING = (
    "W/o reliable sampling, twice, for the paper contradicts itself. All: every row of the pool "
    "drawn, so no contrast. Uniform: as many rows as UPET, and as many of each pseudo class, "
    "drawn by chance; the rest is hard."
)


class Line(NamedTuple):
    """A row of a table: its labels, and the method whose cells it shows."""

    labels: Texts
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
        notes = remarks(board, rows, methods=possible(board), tasks=published.numbers().tasks)
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
    return [Line((shown(m, shots),), m, shots) for m, shots in pairs if board.cells_of(m, shots)]


def teachers_and_students(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """Teacher and student, each full or with an adapter (Table 2); tunable is of both."""
    names = {name for methods in PEL.values() for name in methods.values()}
    of_table = [r for r in results if r.method in names]
    # The paper's own choice is in the main table too: alone, it is no comparison.
    where = {(r.backbone, reader_of(r.method)) for r in of_table if not is_main(r.method)}
    wanted = [r for r in of_table if (r.backbone, reader_of(r.method)) in where]
    floor = [r for r in results if where and r.method == MAJORITY]
    cells = choose(with_shots([*wanted, *floor], choice), choice)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        changed = [method for method in board.methods if not is_main(method)]
        tasks = {cell.task for method in changed for cell in board.cells_of(method)}
        if tasks:
            part = board.restricted(board.methods, tasks)
            sheets.append(pel_sheet(part))
            duels += compare(part, pel_duels(), choice.shots)
    if not sheets:
        raise no_cell()
    return sheets + compared_sheet(duels, choice)


def pel_sheet(board: Board) -> Sheet:
    """The sheet of one backbone."""
    floor = Line((shown(MAJORITY), MISSING, MISSING), MAJORITY, board.choice.shots)
    rows = [scored(board, floor, board.tasks)] if board.cells_of(MAJORITY) else []
    rows += [
        row
        for line in pel_lines(board)
        for row in (
            scored(board, line, board.tasks, both=True),
            *(published_pel(line, len(board.tasks)) if board.choice.paper else ()),
        )
    ]
    notes = remarks(board, rows, tasks=published.numbers().tasks)
    notes += paper_notes(board.choice, "pel")
    head = ("reader", "teacher", "student", "teacher + student")
    what = title(board, "Teacher and student", board.choice.shots)
    return sheet(what, head, board.tasks, rows, notes)


def pel_lines(board: Board) -> list[Line]:
    """The four choices of each reader that has some of them."""
    return [
        Line((reader, *tunings), method, board.choice.shots)
        for reader, methods in PEL.items()
        if any(map(board.cells_of, methods.values()))
        for tunings, method in methods.items()
    ]


def pel_duels() -> list[Duel]:
    """The paper's choice, a full teacher and an adapter student, against the other three."""
    papers_choice = ("full", "adapter")
    return [
        (methods[papers_choice], method)
        for methods in PEL.values()
        for tunings, method in methods.items()
        if tunings != papers_choice
    ]


def ablation(results: Sequence[Result], choice: Choice) -> list[Sheet]:
    """UPET with one part left out at a time (Table 5): a sheet for each that has such cells."""
    bases = {base_of(r.method) for r in results if ablation_of(r.method)}
    names = {name for base in bases for name in ablation_names(base)}
    cells = choose(with_shots([r for r in results if r.method in names], choice), choice)
    sheets: list[Sheet] = []
    duels: list[Compared] = []
    for board in boards(cells, choice):
        for base in sorted(bases):
            changed = list(ablations(base))
            tasks = {cell.task for method in changed for cell in board.cells_of(method)}
            if tasks:
                part = board.restricted(ablation_names(base), tasks)
                sheets.append(ablation_sheet(part, base))
                duels += compare(part, [(base, other) for other in changed], choice.shots)
    if not sheets:
        raise no_cell()
    return sheets + compared_sheet(duels, choice)


def ablation_sheet(board: Board, base: str) -> Sheet:
    """One UPET and its ablations; what was not run is shown as missing."""
    rows = []
    for method, name in ablation_names(base).items():
        line = Line((name,), method, board.choice.shots)
        rows += [scored(board, line, board.tasks), *beside(board, line, board.tasks, ablated=True)]
    notes = [WITHOUT_SAMPLING, *remarks(board, rows, tasks=published.numbers().tasks)]
    notes += paper_notes(board.choice, "ablation", board.tasks)
    what = title(board, f"Ablation of {shown(base)}", board.choice.shots)
    return sheet(what, ("method", "tunable"), board.tasks, rows, notes)


def ablation_names(base: str) -> dict[str, str]:
    """The rows of an ablation, in the paper's order: method → its name."""
    plain = plain_self_training(reader_of(base))
    whole = [method for method in (MAJORITY, plain, base) if method]
    parts = {method: part.title for method, part in ablations(base).items()}
    return {method: shown(method) for method in whole} | parts


# ── rows ─────────────────────────────────────────────────────────────────────────────────────


def sheet(
    what: str, head: Texts, tasks: Sequence[str], rows: Sequence[Texts], notes: Sequence[str]
) -> Sheet:
    """A sheet with a column for each task, their average, the time and the number of cells."""
    names = (*head, *tasks, "average", "seconds", "cells")
    return Sheet(what, names, tuple(rows), tuple(notes), words=len(head) - 1)


def scored(board: Board, line: Line, tasks: Sequence[str], *, both: bool = False) -> Texts:
    """The row of a method: its tunable parameters, scores, time of a run and number of cells."""
    method, shots = line.method, line.shots
    cells = [cell for cell in board.cells_of(method, shots) if cell.task in tasks]
    first, *labels = line.labels
    return (
        first + board.mark(method, tasks, shots),
        *labels,
        tunable(cells, teacher=both),
        *(board.score(method, [task], shots) for task in tasks),
        board.average(method, tasks, shots),
        seconds(cells, tasks),
        str(len(cells)),
    )


def beside(board: Board, line: Line, tasks: Sequence[str], *, ablated: bool = False) -> list[Texts]:
    """The paper's own row below ours, where the choice wants it and the paper has one."""
    if not board.choice.paper:
        return []
    method = in_ablation(line.method) if ablated else line.method
    table: Literal["main", "ablation"] = "ablation" if is_variant(method) else "main"
    paper = published.row(table, method, line.shots)
    if paper is None:
        return []
    scores = [published.score(paper, task) or MISSING for task in tasks]
    tunable = paper.tunable or MISSING
    return [(PUBLISHED, tunable, *scores, published_average(paper, tasks), MISSING, MISSING)]


def in_ablation(method: str) -> str:
    """The method of the paper's ablation that leaves out the same part, whatever our UPET is.

    >>> in_ablation("upet-head-adapter-wo-phce"), in_ablation("head-st")
    ('upet-prompt-ptuning-wo-phce', 'prompt-st')
    """
    if method == plain_self_training(reader_of(method)):
        return plain_self_training(reader_of(ABLATED)) or method
    if not is_upet(method):
        return method
    same = (name for name, part in ablations(ABLATED).items() if part == ablation_of(method))
    return next(same, ABLATED)


def published_average(row: published.Row, tasks: Sequence[str]) -> str:
    """The printed average where all seven tasks are shown; otherwise the mean of the shown ones."""
    every = published.numbers().tasks
    if not set(tasks) <= set(every):
        return MISSING
    if set(tasks) == set(every):
        return f"{row.average:.1f}"
    return f"{fmean(row.mean[every.index(task)] for task in tasks):.1f}"


def published_pel(line: Line, tasks: int) -> list[Texts]:
    """The paper's row of a teacher and a student: it prints averages and hours alone."""
    if line.shots != PAPERS_SHOTS:
        return []
    paper = next(row for row in published.numbers().pel if row.method == line.method)
    scores = [MISSING] * tasks
    hours = f"{paper.hours:.1f} hours"
    return [(PUBLISHED, "", "", paper.tunable, *scores, f"{paper.average:.1f}", hours, MISSING)]


def paper_notes(choice: Choice, table: str, tasks: Sequence[str] | None = None) -> list[str]:
    """Notes on the paper's numbers, where they are shown."""
    if not choice.paper:
        return []
    some = tasks is not None and set(tasks) != set(published.numbers().tasks)
    over = ["The paper's averages here are over the tasks shown."] if some else []
    metric = METRICS[choice.metric]
    other = f"The paper's numbers stand beside {metric} of ours: they do not compare."
    return [
        *published.numbers().notes[table],
        *over,
        *([other] if choice.metric != "accuracy" else []),
    ]
