"""Better, or luck? Two methods on the same tasks and seeds, with a test of their differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from selftrain.metrics import holm, sign_flip
from selftrain.report import MISSING
from selftrain.results import Shots
from selftrain.tables.board import Board
from selftrain.tables.names import reading, shown
from selftrain.tables.sheet import Sheet

FEWEST = 6  # pairs: with 5 that all agree, p is 2/32, and no test can say more
RIVALS = {
    "head": ("head-ft", "head-st", "ust", "ust-hard", "cest"),
    "prompt": ("prompt-ft", "prompt-st", "list"),
}
"""By reading: what UPET must beat, its teacher without a student first."""

Duel = tuple[str, str]
"""A method and the one it is compared with."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two methods where both have a cell: the same task, seed, shots and backbone."""

    backbone: str
    shots: Shots
    method: str
    other: str
    differences: tuple[float, ...]
    """In points, one for each task and seed."""
    learnt: str
    """A mark where the first is not above the majority class."""

    @property
    def wins(self) -> int:
        """How often the first is above the other."""
        return sum(difference > 0 for difference in self.differences)


def compare(board: Board, duels: Iterable[Duel], shots: Shots) -> Iterator[Compared]:
    """Every duel of which the board has both sides."""
    for method, other in duels:
        if board.of(method, shots) and board.of(other, shots):
            found = differences(board, method, other, shots)
            mark = board.mark(method, board.tasks, shots)
            yield Compared(board.backbone, shots, method, other, tuple(found), mark)


def differences(board: Board, method: str, other: str, shots: Shots) -> list[float]:
    """Points by which a method is above another, for each task and seed that both have."""
    pairs = []
    for task in board.tasks:
        mine = board.scores.get((method, task, shots), {})
        theirs = board.scores.get((other, task, shots), {})
        pairs += [100 * (mine[seed] - theirs[seed]) for seed in sorted(mine.keys() & theirs.keys())]
    return pairs


def against_rivals(methods: Iterable[str]) -> list[Duel]:
    """Every UPET among the methods against what the paper says it beats, by the same reading."""
    return [
        (method, rival)
        for method in methods
        if method.startswith("upet-")
        for rival in RIVALS[reading(method)]
    ]


def compared_sheet(found: Sequence[Compared]) -> list[Sheet]:
    """The comparisons as a sheet, with p values corrected for their number; none for none."""
    if not found:
        return []
    tested = [each for each in found if len(each.differences) >= FEWEST]
    raw = [sign_flip(each.differences) for each in tested]
    p_of = dict(zip(map(id, tested), holm(raw), strict=True))
    head = ("method", "compared with", "backbone", "shots", "points", "pairs", "wins", "p")
    rows = tuple(
        (
            shown(each.method) + each.learnt,
            shown(each.other),
            each.backbone,
            str(each.shots),
            _points(each.differences),
            str(len(each.differences)),
            str(each.wins),
            _p(p_of.get(id(each))),
        )
        for each in found
    )
    # Nothing is less likely than all signs alike; the correction multiplies that.
    least = len(tested) * min((2 / 2 ** len(each.differences) for each in tested), default=0)
    notes = [
        "Points: mean difference over the pairs of task and seed that both methods have.",
        f"p: two-sided sign-flip test of that mean, Holm-corrected over {len(tested)} comparisons. "
        "Pairs of one task share its rows, so they are less independent than the test assumes."
        if tested
        else "",
        f"So many comparisons of so few pairs: no p can fall below {min(1, least):.2f}."
        if least > 0.05
        else "",
    ]
    return [Sheet("Compared", head, rows, tuple(note for note in notes if note), words=3)]


def _points(differences: Sequence[float]) -> str:
    if not differences:
        return MISSING
    return f"{round(fmean(differences), 1) + 0.0:+.1f}"  # + 0.0 turns -0.0 into 0.0


def _p(p: float | None) -> str:
    if p is None:
        return f"fewer than {FEWEST} pairs"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
