"""What a reader of a table should know: what is missing in it, and what is not alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from selftrain.experiments.results import Result
from selftrain.experiments.tables.board import NOT_LEARNT, Board, f1_class, in_order
from selftrain.experiments.tables.choice import listed
from selftrain.experiments.tables.names import REFERENCES, shown

NOISY = (
    "Seconds are training and annotating of one run, wall clock, on a machine that also did other "
    "work: small differences mean nothing."
)


def remarks(
    board: Board,
    rows: Iterable[Sequence[str]],
    *,
    methods: Iterable[str] = (),
    tasks: Iterable[str] = (),
) -> list[str]:
    """What to know of a board's table: ``methods`` and ``tasks`` are those a reader looks for."""
    cells = board.cells
    every = [
        _absent("No cells of", [shown(m) for m in methods if m not in board.methods]),
        _absent("No cells on", [task for task in tasks if task not in board.tasks]),
        "Not learnt: not above the majority class, so it supports no claim."
        if any(NOT_LEARNT in cell for row in rows for cell in row)
        else "",
        _seeds(board),
        *_f1(board),
        *_reduced(board),
        _tunable(cells),
        _rounds(cells),
        _refused(cells),
        _scored(cells),
        _commits(cells),
        *_unlike(cells),
    ]
    return [note for note in every if note]


def _absent(what: str, names: Sequence[str]) -> str:
    return f"{what}: {', '.join(names)}." if names else ""


def _seeds(board: Board) -> str:
    """Means over different seeds mislead: a seed that is easy for all lifts only some."""
    every = [set(by_seed) for by_seed in board.scores.values()]
    shared = set.intersection(*every) if every else set()
    if all(seeds == shared for seeds in every):
        return ""
    if not shared:
        return "Not all have the same seeds, and none is common to all."
    given = ",".join(map(str, sorted(shared)))
    return f"Not all have the same seeds; those that all have: --seeds {given}."


def _f1(board: Board) -> Iterator[str]:
    if board.choice.metric != "f1":
        return
    named = {task: f1_class(task) for task in board.tasks}
    yield "F1 of: " + ", ".join(f"{c} ({task})" for task, c in named.items() if c) + "."
    yield _absent("Without a class whose F1 is asked for", [t for t, c in named.items() if not c])


REDUCED = (
    (
        "cest",
        "",
        "CEST (reconstruction): its similarity graph is not public; ours is rebuilt from its text.",
    ),
    (
        "list",
        "laptop",
        "LiST: in the preset laptop its adapters are 64 wide instead of 128, and its stages share "
        "the steps of a round.",
    ),
    (
        "tapt-head-ft",
        "",
        "TAPT: a few hundred steps over as much of the pool as a round draws, the MLM head frozen.",
    ),
)
"""A baseline, the preset it is so in (empty: all), and what it leaves out of what was published;
docs/deviations.md has all of it."""


def _reduced(board: Board) -> Iterator[str]:
    for method, preset, told in REDUCED:
        if any(preset in ("", cell.preset) for cell in board.of(method)):
            yield told


def _tunable(cells: Iterable[Result]) -> str:
    """A count without its head is none: the paper's 14M and <1M have different ones."""
    told = (
        "Tunable, with a module: read by a head, the module and the classifier; by a prompt, the "
        "module alone, and in LiST the MLM head. Without one: everything."
    )
    return told if any(cell.tuned for cell in cells) else ""


def _rounds(cells: Iterable[Result]) -> str:
    """How long they self-train: one that stops early is not quite comparable."""
    done: dict[str, list[int]] = defaultdict(list)
    for cell in cells:
        if len(cell.by_round) > 1:
            done[cell.method].append(len(cell.by_round) - 1)
    by_span: dict[tuple[int, int], list[str]] = defaultdict(list)
    for method, rounds in done.items():
        by_span[min(rounds), max(rounds)].append(shown(method))
    alone = len(by_span) == 1
    told = (
        (f"{least}" if least == most else f"{least} to {most}")
        + ("" if alone else f" ({', '.join(names)})")
        for (least, most), names in sorted(by_span.items())
    )
    return f"Rounds: {'; '.join(told)}." if by_span else ""


def _refused(cells: Iterable[Result]) -> str:
    """Whose rounds were refused: a student that failed hides behind the model before it."""
    runs: dict[str, list[Result]] = defaultdict(list)
    for cell in cells:
        runs[cell.method].append(cell)
    told = []
    for method, every in runs.items():
        some = [cell for cell in every if cell.stayed]
        broken = sum(cell.broke_off for cell in some)
        if some:
            how = f", in {broken} because training broke off" if broken else ""
            told.append(f"{shown(method)} in {len(some)} of {len(every)} runs{how}")
    return f"Rounds refused, so that the model before them stayed: {'; '.join(told)}." * bool(told)


def _scored(cells: Sequence[Result]) -> str:
    """How many rows stand behind a figure."""
    told = (
        f"{task} {next(cell.rows for cell in cells if cell.task == task):,}"
        for task in _tasks(cells)
    )
    return f"Rows scored: {', '.join(told)}."


def _commits(cells: Sequence[Result]) -> str:
    """The code that computed them, as far as a cell knows."""
    found = list(dict.fromkeys(cell.commit for cell in cells if cell.commit))
    unknown = "some cells do not say at which" if any(not cell.commit for cell in cells) else ""
    return f"Commits: {', '.join([*found, unknown] if unknown else found)}." if found else ""


def _tasks(cells: Sequence[Result]) -> list[str]:
    return in_order(cell.task for cell in cells)


def _unlike(cells: Sequence[Result]) -> Iterator[str]:
    for task in _tasks(cells):
        mine = [cell for cell in cells if cell.task == task]
        known = max(cell.also_in_train for cell in mine)
        if known:
            yield f"Of the scored rows of {task}, up to {known} are also labelled or in the pool."
    versions = {cell.version for cell in cells if cell.version}
    if len(versions) > 1:
        yield f"Cells were written by versions {listed(versions)}."
    devices = {cell.device for cell in cells if cell.device}
    if len(devices) > 1:
        yield f"Runs were on {listed(devices)}: their seconds do not compare."
    threads = {str(cell.threads) for cell in cells if cell.method not in REFERENCES}
    if len(threads) > 1:
        yield f"Runs had {listed(threads)} threads: their seconds do not compare."
