"""What is exported: the model of a run, and what the run folder knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.errors import RunError
from selftrain.runs.estimates import opinions_of, read_estimate, round_estimate
from selftrain.runs.ladders import read_ladder
from selftrain.runs.manifest import Manifest
from selftrain.runs.read import Answering, answering, load, read_manifest, records
from selftrain.runs.record import Record
from selftrain.training.expected import FROZEN_INTERVALS, TRAINED_INTERVALS

if TYPE_CHECKING:
    from selftrain.model.backbone import Backbone
    from selftrain.model.classifier import Classifier
    from selftrain.training.estimate import Opinion
    from selftrain.training.ladder import Rung

THRESHOLDS = (0.6, 0.7, 0.8, 0.9, 0.95)
FEWEST_OPINIONS = 100
"""Pool rows from which shares above a threshold are counted."""


@dataclass(frozen=True, slots=True)
class ExpectedAccuracy:
    """The accuracy that is expected of the model, and how often such intervals were right."""

    accuracy: float
    low: float
    high: float
    right: int
    judged: int

    def numbers(self) -> dict[str, float]:
        """As plain numbers by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return (
            f"{self.accuracy:.2f}, between {self.low:.2f} and {self.high:.2f} (such intervals "
            f"were right for {self.right} of {self.judged} models of other tasks)"
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """A model with what its run knows of it; no text of the run is among it."""

    model: Classifier
    manifest: Manifest
    record: Record
    number: int
    """Its round."""
    rung: str | None
    """The rung that a person keeps; None where the last accepted round answers."""
    expected: ExpectedAccuracy | None
    abstain: list[dict[str, float]]
    rungs: tuple[Rung, ...]
    """The ladder; empty without one."""
    gold: dict[str, int]
    """Labelled texts of each class; empty where the run does not say."""
    rounds: tuple[Record, ...]


def read_origin(
    run: Path, number: int | None, backbone: Backbone | str | Path | None = None
) -> Origin:
    """The model that answers for a run, or that of the given round, and what is known of it."""
    chosen = _chosen(run, number)
    folder = chosen.folder
    found = records(folder)
    manifest = read_manifest(folder)
    model = load(folder, chosen.number, backbone=backbone)
    model.precision = "fp32"  # a graph has the types of its weights
    labelled, pool = opinions_of(folder, model.labels)
    is_last = chosen.number == [record for record in found if record.accepted][-1].number
    ladder = read_ladder(run)
    return Origin(
        model=model,
        manifest=manifest,
        record=found[chosen.number],
        number=chosen.number,
        rung=chosen.rung,
        expected=_expected(folder, chosen.number),
        abstain=abstain_hints(pool) if is_last else [],
        rungs=() if ladder is None else ladder.rungs,
        gold=_counts(model.labels, labelled),
        rounds=tuple(found[: chosen.number + 1]),
    )


def _chosen(run: Path, number: int | None) -> Answering:
    """The round to export; an unfinished run must be asked for one by its number."""
    if number is not None:
        read_manifest(run)
        return Answering(run, number, None)
    found, asked = records(run), read_manifest(run).total_rounds
    chosen = answering(run)
    if chosen.rung is None and not found[-1].last and found[-1].number < asked:
        raise RunError(
            f"{run} is not finished: it has {found[-1].number} of {asked} rounds",
            f"let `selftrain fit` end, or take what is there: --round {chosen.number}",
        )
    return chosen


def _expected(folder: Path, number: int) -> ExpectedAccuracy | None:
    estimate, stored = round_estimate(folder, number), read_estimate(folder)
    if estimate is None or stored is None:
        return None
    right, judged = FROZEN_INTERVALS if stored.estimate.frozen else TRAINED_INTERVALS
    found = estimate.expected
    return ExpectedAccuracy(found.accuracy, found.low, found.high, right, judged)


def abstain_hints(pool: Sequence[Opinion]) -> list[dict[str, float]]:
    """For some thresholds: the share of texts above it, and how many of those should be right."""
    confidences = [max(opinion.model) for opinion in pool if opinion.model]
    if len(confidences) < FEWEST_OPINIONS:
        return []
    hints = []
    for threshold in THRESHOLDS:
        above = [p for p in confidences if p >= threshold]
        if above:
            share, right = len(above) / len(confidences), sum(above) / len(above)
            hints.append({"above": threshold, "share": round(share, 3), "right": round(right, 3)})
    return hints


def _counts(labels: Sequence[str], labelled: Sequence[Opinion]) -> dict[str, int]:
    answers: list[Any] = [opinion.label for opinion in labelled]
    return {label: answers.count(label) for label in labels} if answers else {}
