"""Better, or luck? Two methods on the same tasks and seeds, with a test of their differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from selftrain.errors import DataError
from selftrain.experiments.closing import MISSING
from selftrain.experiments.results import Result, Shots
from selftrain.experiments.stats import holm, sign_flip
from selftrain.experiments.tables.board import Board, numbers
from selftrain.experiments.tables.choice import Choice
from selftrain.experiments.tables.names import MODULES, REFERENCES, reading, shown
from selftrain.experiments.tables.sheet import Sheet

FEWEST = 6  # pairs: with 5 that all agree, p is 2/32, and no test can say more
RIVALS = {
    "head": ("head-ft", "head-st", "ust", "ust-hard", "cest"),
    "prompt": ("prompt-ft", "prompt-st", "list"),
}
"""By reading: what UPET must beat, its teacher without a student first."""

Duel = tuple[str, str]
"""A method and the one it is compared with."""
Side = tuple[str, Shots]
"""A method with so many labels a class."""
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
    """Of each of the two, the most that a run was asked for; 0 where there is no student."""

    @property
    def wins(self) -> int:
        """How often the first is above the other."""
        return sum(difference > 0 for difference in self.differences)


def compare(board: Board, duels: Iterable[Duel], shots: Shots) -> Iterator[Compared]:
    """Every duel of which the board has both sides; the one that was asked for, if one was."""
    asked = board.choice.compare
    for method, other in [asked] if asked else duels:
        yield from _compared(board, (method, shots), (other, shots))


def compare_shots(board: Board) -> Iterator[Compared]:
    """Every method against itself with the next fewer labels that it has, unless one was asked."""
    methods = [] if board.choice.compare else board.methods
    for method in (each for each in methods if each not in REFERENCES):
        for fewer, more in pairwise(numbers(board.of(method))):
            yield from _compared(board, (method, more), (method, fewer))


def _compared(board: Board, one: Side, other: Side) -> Iterator[Compared]:
    """The two sides of a duel, if the board has both."""
    if board.of(*one) and board.of(*other):
        found = differences(board, one, other)
        points = tuple(point for points in found.values() for point in points)
        (method, shots), (rival, fewer), on = one, other, list(found)
        unlearnt = (board.not_learnt(method, on, shots), board.not_learnt(rival, on, fewer))
        rounds = (asked_for(board.of(*one)), asked_for(board.of(*other)))
        yield Compared(board.backbone, shots, method, rival, fewer, points, unlearnt, rounds)


def asked_for(cells: Iterable[Result]) -> int:
    """The most rounds that one of these cells was asked for, or has: older ones do not say."""
    every = (len(cell.by_round) - 1 if cell.rounds is None else cell.rounds for cell in cells)
    return max([0, *every])


def differences(board: Board, one: Side, other: Side) -> dict[str, list[float]]:
    """Points by which one side is above the other, by task, for each seed that both have."""
    pairs = {}
    for task in board.tasks:
        mine, theirs = (board.scores.get((m, task, shots), {}) for m, shots in (one, other))
        shared = sorted(mine.keys() & theirs.keys())
        if shared:
            pairs[task] = [100 * (mine[seed] - theirs[seed]) for seed in shared]
    return pairs


def claims(methods: Iterable[str]) -> list[Duel]:
    """Every UPET among the methods against what it is said to beat, by the same reading.

    Then what else the paper claims.
    """
    against_rivals = [
        (method, rival)
        for method in methods
        if method.startswith("upet-")
        for rival in RIVALS[reading(method)]
    ]
    return [*against_rivals, *CLAIMS]


def compared_sheet(found: Sequence[Compared], choice: Choice) -> list[Sheet]:
    """The comparisons as a sheet, with p values corrected for their number; none for none."""
    asked = choice.compare
    if asked and not found:
        raise DataError(
            f"`{asked[0]}` and `{asked[1]}` have no cells of this table on the same backbone",
            "selftrain bench writes them",
        )
    if not found:
        return []
    tested = [each for each in found if len(each.differences) >= FEWEST]
    raw = [sign_flip(each.differences) for each in tested]
    p_of = dict(zip(map(id, tested), holm(raw), strict=True))
    head = ("method", "compared with", "backbone", "shots", "points", "pairs", "wins", "p")
    rows = tuple(
        (
            shown(each.method) + _named(each.not_learnt[0]),
            shown(each.other) + _named(each.not_learnt[1]),
            each.backbone,
            _shots(each),
            _points(each.differences),
            str(len(each.differences)),
            str(each.wins),
            _p(p_of.get(id(each))),
        )
        for each in found
    )
    title = "Compared"
    if asked:
        title += (
            f": {shown(asked[0])} with {shown(asked[1])}, the only comparison, named by the user"
        )
    notes = tuple(_notes(found, tested, asked=bool(asked)))
    return [Sheet(title, head, rows, notes, words=3)]


def _notes(found: Sequence[Compared], tested: Sequence[Compared], *, asked: bool) -> Iterator[str]:
    yield "Points: mean difference over the pairs of task and seed that both methods have."
    if any(any(each.not_learnt) for each in found):
        yield "Not learnt: not above the majority class on these tasks, so no claim holds there."
    unlike = {
        f"{shown(each.method)} ({each.rounds[0]}) with {shown(each.other)} ({each.rounds[1]})"
        for each in found
        if all(each.rounds) and each.rounds[0] != each.rounds[1]
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
    least = number * min(2 / 2 ** len(each.differences) for each in tested)
    if least > 0.05:
        yield f"So many comparisons of so few pairs: no p can fall below {min(1, least):.2f}."
    if least > 0.05 and not asked:
        yield "One comparison may be tested as a family of its own: --compare A B."
    if asked:
        yield "A comparison that was named after a look at the figures has too small a p."


def _named(tasks: Sequence[str]) -> str:
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
