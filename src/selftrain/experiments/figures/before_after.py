"""The probabilities of a run's model before and after calibration, beside how often it is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from selftrain.experiments.figures.calibration import BINS
from selftrain.experiments.figures.datafile import Row
from selftrain.training.metrics import Bin, debiased_calibration_error, equal_parts

BARE, CALIBRATED = "as trained", "calibrated"


@dataclass(frozen=True, slots=True)
class Curve:
    """Confidence beside accuracy, and how the answers spread over confidence."""

    name: str
    bins: tuple[Bin, ...]
    """Of as many answers each, the least confident first."""
    counts: tuple[int, ...]
    """Answers in ten bins of confidence that are equally wide."""
    error: float
    """The calibration error over bins of as many answers, without what chance adds."""


@dataclass(frozen=True, slots=True)
class CalibratedRun:
    """The model of a run: its curve as it was trained, and by the temperature of its estimate."""

    run: str
    method: str
    seed: int
    number: int
    """The round whose model it is, 0 for the teacher."""
    classes: int
    temperature: float
    curves: tuple[Curve, Curve]


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """The same rows under one or more runs."""

    panels: tuple[CalibratedRun, ...]
    setting: str

    def rows(self) -> list[Row]:
        """One for each bin of a curve, then one for each bar of its histogram."""
        return [
            {
                "run": panel.run,
                "method": panel.method,
                "seed": panel.seed,
                "round": panel.number,
                "temperature": panel.temperature,
                "probabilities": curve.name,
                "calibration_error": curve.error,
                **numbers,
            }
            for panel in self.panels
            for curve in panel.curves
            for numbers in _numbers(curve)
        ]


def _numbers(curve: Curve) -> Iterator[Row]:
    for each in curve.bins:
        mean = {"confidence": each.confidence, "accuracy": each.accuracy}
        yield {"drawn": "curve", "from": None, "to": None, "answers": each.rows, **mean}
    for place, count in enumerate(curve.counts):
        ends = {"from": place / BINS, "to": (place + 1) / BINS}
        yield {"drawn": "bar", **ends, "answers": count, "confidence": None, "accuracy": None}


def curve(name: str, p: Tensor, gold: Tensor) -> Curve:
    """The curve of probabilities [N, C] for rows of these gold classes [N]."""
    bins = tuple(
        Bin(len(part), float(part.mean()), float(right.mean()))
        for part, right in equal_parts(p, gold, BINS)
    )
    places = (p.double().max(1).values * BINS).long().clamp(max=BINS - 1)
    counts = tuple(places.bincount(minlength=BINS).tolist())
    return Curve(name, bins, counts, debiased_calibration_error(p, gold, BINS))
