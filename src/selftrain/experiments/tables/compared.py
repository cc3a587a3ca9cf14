"""Is a difference more than chance? Two methods on the same tasks and seeds, with a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from selftrain.errors import DataError
from selftrain.experiments.names import MODULES, is_upet, reader_of, shown
from selftrain.experiments.references import REFERENCES
from selftrain.experiments.results import Result, Shots
from selftrain.experiments.stats import MISSING, holm, sign_flip
from selftrain.experiments.tables.board import Board, shots_of
from selftrain.experiments.tables.choice import Choice
from selftrain.experiments.tables.sheet import Sheet
from selftrain.method.upet import Reader

FEWEST = 6  # pairs: with 5 that all agree, p is 2/32, and no test can say more
RIVALS: dict[Reader | None, tuple[str, ...]] = {
    "head": ("head-ft", "head-st", "ust", "ust-hard", "cest"),
    "prompt": ("prompt-ft", "prompt-st", "list"),
}
"""By reader: what UPET must beat, its teacher without a student first."""

Duel = tuple[str, str]
"""A method and the one it is compared with."""
Side = tuple[str, Shots]
"""A method, and its number of labels a class."""
CLAIMS: tuple[Duel, ...] = (
    ("head-st", "head-ft"),
    ("prompt-st", "prompt-ft"),
    *((f"upet-prompt-{module}", f"upet-head-{module}") for module in MODULES),
    ("prompt-ft", "head-ft"),
)
"""What the paper says beside "UPET is best": self-training helps, and a prompt beats a head."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two methods where both have a cell: the same task, seed and backbone."""

    backbone: str
    shots: Shots
    method: str
    other: str
    other_shots: Shots
    """Those of the first, unless a method is compared with itself."""
    differences: tuple[float, ...]
    """In points, one for each task and seed."""
    not_learnt: tuple[Sequence[str], Sequence[str]]
    """Of each of the two, the compared tasks on which it is not above the majority class."""
    rounds: tuple[int, int]
    """Of each of the two, the largest setting of a run; 0 where there is no student."""

    @property
    def wins(self) -> int:
        """How often the first is above the other."""
        return sum(difference > 0 for difference in self.differences)


def compare(board: Board, duels: Iterable[Duel], shots: Shots) -> Iterator[Compared]:
    """Every duel of which the board has both sides; only the chosen one, if there is one."""
    chosen = board.choice.compare
    for method, other in [chosen] if chosen else duels:
        yield from _compared(board, (method, shots), (other, shots))


def compare_shots(board: Board) -> Iterator[Compared]:
    """Every method against itself with the next smaller number of labels; none if one is chosen."""
    methods = [] if board.choice.compare else board.methods
    for method in (name for name in methods if name not in REFERENCES):
        for fewer, more in pairwise(shots_of(board.cells_of(method))):
            yield from _compared(board, (method, more), (method, fewer))


def _compared(board: Board, one: Side, other: Side) -> Iterator[Compared]:
    """The two sides of a duel, if the board has both."""
    if board.cells_of(*one) and board.cells_of(*other):
        by_task = differences(board, one, other)
        points = tuple(point for points in by_task.values() for point in points)
        (method, shots), (rival, fewer), tasks = one, other, list(by_task)
        unlearnt = (board.not_learnt(method, tasks, shots), board.not_learnt(rival, tasks, fewer))
        rounds = (max_rounds(board.cells_of(*one)), max_rounds(board.cells_of(*other)))
        yield Compared(board.backbone, shots, method, rival, fewer, points, unlearnt, rounds)


def max_rounds(cells: Iterable[Result]) -> int:
    """The largest number of rounds in the settings of these cells, or done: old cells lack it."""
    every = (len(cell.by_round) - 1 if cell.rounds is None else cell.rounds for cell in cells)
    return max([0, *every])


def differences(board: Board, one: Side, other: Side) -> dict[str, list[float]]:
    """Points by which one side is above the other, by task, for each seed that both have."""
    pairs = {}
    for task in board.tasks:
        first, second = (board.scores.get((m, task, shots), {}) for m, shots in (one, other))
        shared = sorted(first.keys() & second.keys())
        if shared:
            pairs[task] = [100 * (first[seed] - second[seed]) for seed in shared]
    return pairs


def claims(methods: Iterable[str]) -> list[Duel]:
    """Every UPET against the rivals that are read the same way; then the paper's other claims."""
    against_rivals = [
        (method, rival)
        for method in methods
        if is_upet(method)
        for rival in RIVALS[reader_of(method)]
    ]
    return [*against_rivals, *CLAIMS]


def compared_sheet(duels: Sequence[Compared], choice: Choice) -> list[Sheet]:
    """The comparisons as a sheet, with p values corrected for their number; none for none."""
    chosen = choice.compare
    if chosen and not duels:
        raise DataError(
            f"`{chosen[0]}` and `{chosen[1]}` have no cells of this table on the same backbone",
            "selftrain bench writes them",
        )
    if not duels:
        return []
    tested = [duel for duel in duels if len(duel.differences) >= FEWEST]
    raw = [sign_flip(duel.differences) for duel in tested]
    p_of = dict(zip(map(id, tested), holm(raw), strict=True))
    head = ("method", "compared with", "backbone", "shots", "points", "pairs", "wins", "p")
    rows = tuple(
        (
            shown(duel.method) + _unlearnt(duel.not_learnt[0]),
            shown(duel.other) + _unlearnt(duel.not_learnt[1]),
            duel.backbone,
            _shots(duel),
            _points(duel.differences),
            str(len(duel.differences)),
            str(duel.wins),
            _p(p_of.get(id(duel))),
        )
        for duel in duels
    )
    title = "Compared"
    if chosen:
        title += (
            f": {shown(chosen[0])} with {shown(chosen[1])}, the only comparison, named by the user"
        )
    notes = tuple(_notes(duels, tested, chosen=bool(chosen)))
    return [Sheet(title, head, rows, notes, words=3)]


def _notes(duels: Sequence[Compared], tested: Sequence[Compared], *, chosen: bool) -> Iterator[str]:
    yield "Points: mean difference over the pairs of task and seed that both methods have."
    if any(any(duel.not_learnt) for duel in duels):
        yield "Not learnt: not above the majority class on these tasks, so no claim holds there."
    unlike = {
        f"{shown(duel.method)} ({duel.rounds[0]}) with {shown(duel.other)} ({duel.rounds[1]})"
        for duel in duels
        if all(duel.rounds) and duel.rounds[0] != duel.rounds[1]
    }
    if unlike:
        yield f"Of different numbers of rounds: {'; '.join(sorted(unlike))}."
    if not tested:
        return
    number = len(tested)
    family = f"Holm-corrected over {number} comparisons" if number > 1 else "of one comparison"
    yield (
        f"p: two-sided sign-flip test of that mean, {family}. "
        "Pairs of one task share its rows, so they are less independent than the test assumes."
    )
    # Nothing is less likely than all signs alike; the correction multiplies that.
    smallest = number * min(2 / 2 ** len(duel.differences) for duel in tested)
    if smallest > 0.05:
        yield f"Many comparisons of few pairs: no p can fall below {min(1, smallest):.2f}."
    if smallest > 0.05 and not chosen:
        yield "One comparison may be tested as a family of its own: --compare A B."
    if chosen:
        yield "A comparison that was named after a look at the numbers has too small a p."


def _unlearnt(tasks: Sequence[str]) -> str:
    return f" (not learnt: {', '.join(tasks)})" if tasks else ""


def _shots(compared: Compared) -> str:
    fewer = compared.other_shots
    return f"{compared.shots}" + (f" with {fewer}" if fewer != compared.shots else "")


def _points(differences: Sequence[float]) -> str:
    if not differences:
        return MISSING
    return f"{round(fmean(differences), 1) + 0.0:+.1f}"  # + 0.0 turns -0.0 into 0.0


def _p(p: float | None) -> str:
    if p is None:
        return f"fewer than {FEWEST} pairs"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
