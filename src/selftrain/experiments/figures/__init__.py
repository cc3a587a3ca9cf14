"""The paper's figures: first their numbers, then the drawing.

One file for each figure turns cells, or features, into frozen values; ``drawing`` draws them.
``rows`` of each value is the data file that stands beside the figure.
"""

from __future__ import annotations

from selftrain.experiments.figures.before_after import BeforeAfter, CalibratedRun, curve
from selftrain.experiments.figures.calibration import Calibration, calibration
from selftrain.experiments.figures.datafile import Row, write
from selftrain.experiments.figures.plane import Plane, chosen, features, view
from selftrain.experiments.figures.rounds import Rounds, by_round
from selftrain.experiments.figures.wanted import Wanted

__all__ = [
    "BeforeAfter",
    "CalibratedRun",
    "Calibration",
    "Plane",
    "Rounds",
    "Row",
    "Wanted",
    "by_round",
    "calibration",
    "chosen",
    "curve",
    "features",
    "view",
    "write",
]
