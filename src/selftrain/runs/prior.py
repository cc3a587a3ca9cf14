"""Answers for other class shares than a model believes: the pool's, or shares that someone knows.

Bayes: calibrated probabilities are multiplied by the new share of each class over the share that
the model believes, and normalised. It changes answers, so nobody gets it unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.disk import damaged
from selftrain.errors import ConfigError, RunError, closest, in_percent, listing, require
from selftrain.runs.estimates import ESTIMATE, round_estimate

if TYPE_CHECKING:
    from selftrain.model.classifier import Classifier

MODEL, POOL = "model", "pool"
"""The model's own shares, which change nothing, and those of the pool."""
ROUNDING = 0.011
"""How far shares may be from adding up to 1: someone writes 0.33 three times."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each class, in the order of the labels."""

    believed: Sequence[float]
    """By the model, of the pool."""
    wanted: Sequence[float]

    def apply_to(self, model: Classifier) -> None:
        """Let the model answer for the wanted shares."""
        import torch

        model.prior_shift = (torch.tensor(self.wanted) / torch.tensor(self.believed)).log()

    def __str__(self) -> str:
        return (
            f"answers corrected to class shares {in_percent(self.wanted)}; "
            f"the model believes {in_percent(self.believed)}"
        )


def shares(run: Path, number: int | None, labels: Sequence[str], prior: str) -> Shares:
    """The shares that the model of a round believes, and those that are wanted."""
    found = round_estimate(run, number)
    if found is None or not found.belief:
        raise RunError(
            f"{run} has no estimate of the class shares that this model believes",
            "give the same `selftrain fit` again, which writes one if the labels allow it; "
            f"or --prior {MODEL}",
        )
    if any(len(each) != len(labels) or min(each) <= 0 for each in (found.belief, found.prior)):
        raise damaged(run / ESTIMATE, f"has no share for each of {len(labels)} classes")
    return Shares(found.belief, found.prior if prior == POOL else given(prior, labels))


def given(text: str, labels: Sequence[str]) -> list[float]:
    """Shares as someone writes them, in the order of the labels, divided by their sum.

    >>> given("no=0.8,yes=0.2", ("yes", "no"))
    [0.2, 0.8]
    """
    example = "--prior " + ",".join(f"{label}={1 / len(labels):.2g}" for label in labels)
    by_label: dict[str, float] = {}
    for part in text.split(","):
        label, equals, number = part.rpartition("=")
        if not equals:
            expected = f"`{MODEL}`, `{POOL}` or a share for each class"
            raise ConfigError(f"--prior is {text!r}; expected {expected}", example)
        if label not in labels:
            near = closest(label, labels)
            hint = f"did you mean `{near}`?" if near else example
            raise ConfigError(f"--prior names `{label}`; the model knows {listing(labels)}", hint)
        try:
            by_label[label] = float(number)
        except ValueError:
            raise ConfigError(f"--prior gives `{label}` the share {number!r}", example) from None
        require(
            0 < by_label[label] < 1, f"the share of `{label}`", by_label[label], "0 to 1", example
        )
    missing = [label for label in labels if label not in by_label]
    if missing:
        raise ConfigError(f"--prior gives no share for {listing(missing)}", example)
    total = sum(by_label.values())
    require(abs(total - 1) <= ROUNDING, "the sum of --prior", round(total, 4), "1", example)
    return [by_label[label] / total for label in labels]
