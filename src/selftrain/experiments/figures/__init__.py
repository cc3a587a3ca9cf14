"""The paper's figures: what is drawn, as numbers, and the drawing of it.

A room for each figure makes frozen values from cells, or from features, by pure functions;
``drawing`` shows them and nothing else. ``rows`` of each is the data file that stands beside it.
"""

from __future__ import annotations

from selftrain.experiments.figures.calibration import Calibration, calibration
from selftrain.experiments.figures.datafile import Row, write
from selftrain.experiments.figures.plane import Plane, chosen, features, view
from selftrain.experiments.figures.rounds import Rounds, by_round
from selftrain.experiments.figures.wanted import Wanted

__all__ = [
    "Calibration",
    "Plane",
    "Rounds",
    "Row",
    "Wanted",
    "by_round",
    "calibration",
    "chosen",
    "features",
    "view",
    "write",
]
