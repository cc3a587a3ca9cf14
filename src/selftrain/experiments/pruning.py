"""Stop a point of a search early, when it does worse than most points before it.

The cells of a point, one for each task and seed, are computed in a fixed order, and each has its
rounds: a *step* is a round of a cell. After each step the accuracy on design rows so far is
reported. Rounds that are on disk already are reported again, so a killed search decides as one that
was never killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal

from selftrain.experiments.grid import Group
from selftrain.experiments.results import Result

if TYPE_CHECKING:
    from optuna import Trial

Prune = Literal["none", "median"]

FIRST_POINTS = 5  # complete points that are needed before one is stopped
PRUNED = "pruned"  # Optuna's state in small letters, and our reason among the trial's attributes


def hopeless(value: float, others: Sequence[float]) -> bool:
    """Whether a point is below the median of the complete points at the same step.

    >>> hopeless(0.6, [0.7, 0.7, 0.8, 0.9, 0.5]), hopeless(0.6, [0.7, 0.8])
    (True, False)
    """
    return len(others) >= FIRST_POINTS and value < median(others)


@dataclass(slots=True)
class Progress:
    """How far the cells of one trial are, for the rule that stops it."""

    trial: Trial
    groups: tuple[Group, ...]
    """Of the cells, in the order of computation."""
    rounds: int
    """Of a cell, the teacher's among them: so many steps it has at most."""
    finished: dict[Group, float] = field(default_factory=dict)
    """The accuracy of each finished cell."""
    current: list[float] = field(default_factory=list)
    """Of the cell that is computed: the accuracy of the last accepted model, after each round."""

    def after_round(self, group: Group, accuracy: float | None, accepted: bool) -> None:
        """Report a round; raise Optuna's TrialPruned where the point is hopeless."""
        from optuna import TrialPruned

        usable = accepted and accuracy is not None
        self.current.append(accuracy if usable and accuracy is not None else self.current[-1])
        before = self.groups[: self.groups.index(group)]
        if not self.finished.keys() >= set(before):  # another worker computes one of them
            return
        value = fmean([*(self.finished[each] for each in before), self.current[-1]])
        step = len(before) * self.rounds + len(self.current) - 1
        self.trial.report(value, step)
        others = [
            other.intermediate_values[step]
            for other in self.trial.study.get_trials(deepcopy=False)
            if other.state.name == "COMPLETE" and step in other.intermediate_values
        ]
        if hopeless(value, others):
            why = (
                f"stopped after round {len(self.current) - 1} of {group.task_name}, seed "
                f"{group.seed}: {100 * value:.1f}, the median is {100 * median(others):.1f}"
            )
            self.trial.set_user_attr(PRUNED, why)
            raise TrialPruned(why)

    def after_cell(self, group: Group, result: Result) -> None:
        """Note the accuracy of a finished cell; report its rounds where they were on disk."""
        if not self.current:
            for number, accuracy in enumerate(result.by_round):
                self.after_round(group, accuracy, number not in result.refused)
        self.finished[group] = result.accuracy
        self.current.clear()
