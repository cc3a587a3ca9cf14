"""The notes below a table: what is missing in it, and what does not compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from selftrain.experiments.names import shown
from selftrain.experiments.references import REFERENCES
from selftrain.experiments.results import Result
from selftrain.experiments.tables.board import NOT_LEARNT, Board, f1_class, in_order
from selftrain.experiments.tables.choice import listed

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
    """Notes on a board's table; ``methods`` and ``tasks`` are those a reader expects there."""
    cells = board.cells
    every = [
        _list("No cells of", [shown(m) for m in methods if m not in board.methods]),
        _list("No cells on", [task for task in tasks if task not in board.tasks]),
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


def _list(what: str, entries: Sequence[str], between: str = ", ") -> str:
    return f"{what}: {between.join(entries)}." if entries else ""


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
    yield _list("Without a class whose F1 is asked for", [t for t, c in named.items() if not c])


REDUCED = (
    (
        "cest",
        "",
        "CEST (reconstruction): its graph formula was not at hand; ours is rebuilt from its text.",
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
"""A baseline, the preset (empty: all), and how ours is smaller than what was published;
docs/deviations.md has every difference."""


def _reduced(board: Board) -> Iterator[str]:
    for method, preset, note in REDUCED:
        if any(preset in ("", cell.preset) for cell in board.cells_of(method)):
            yield note


def _tunable(cells: Iterable[Result]) -> str:
    """What the counts include: the paper's 14M and <1M do not include the same."""
    note = (
        "Tunable, with a module: read by a head, the module and the classifier; by a prompt, the "
        "module alone, and in LiST the MLM head. Without one: everything."
    )
    return note if any(cell.tuned for cell in cells) else ""


def _rounds(cells: Iterable[Result]) -> str:
    """How many rounds the methods ran: one that stops early is not quite comparable."""
    rounds_of: dict[str, list[int]] = defaultdict(list)
    for cell in cells:
        if len(cell.by_round) > 1:
            rounds_of[cell.method].append(len(cell.by_round) - 1)
    by_span: dict[tuple[int, int], list[str]] = defaultdict(list)
    for method, rounds in rounds_of.items():
        by_span[min(rounds), max(rounds)].append(shown(method))
    spans = (
        (f"{fewest}" if fewest == largest else f"{fewest} to {largest}")
        + ("" if len(by_span) == 1 else f" ({', '.join(names)})")
        for (fewest, largest), names in sorted(by_span.items())
    )
    return f"Rounds: {'; '.join(spans)}." if by_span else ""


def _refused(cells: Iterable[Result]) -> str:
    """Which methods had rounds refused: the score of such a run is that of an earlier model."""
    runs: dict[str, list[Result]] = defaultdict(list)
    for cell in cells:
        runs[cell.method].append(cell)
    lines = []
    for method, cells_of in runs.items():
        rejected = [cell for cell in cells_of if cell.rejected]
        broken = sum(cell.broke_off for cell in rejected)
        if rejected:
            why = f", in {broken} because training broke off" if broken else ""
            lines.append(f"{shown(method)} in {len(rejected)} of {len(cells_of)} runs{why}")
    return _list("Rounds refused, so that the model before them stayed", lines, "; ")


def _scored(cells: Sequence[Result]) -> str:
    """How many rows stand behind a score."""
    counts = (
        f"{task} {next(cell.rows for cell in cells if cell.task == task):,}"
        for task in _tasks(cells)
    )
    return f"Rows scored: {', '.join(counts)}."


def _commits(cells: Sequence[Result]) -> str:
    """The code that computed them, where cells name it."""
    commits = list(dict.fromkeys(cell.commit for cell in cells if cell.commit))
    unknown = ["some cells do not say at which"] if any(not cell.commit for cell in cells) else []
    return _list("Commits", [*commits, *unknown]) if commits else ""


def _tasks(cells: Sequence[Result]) -> list[str]:
    return in_order(cell.task for cell in cells)


def _unlike(cells: Sequence[Result]) -> Iterator[str]:
    for task in _tasks(cells):
        known = max(cell.also_in_train for cell in cells if cell.task == task)
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
