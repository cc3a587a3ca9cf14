"""The paper's figures: what is drawn, as numbers, and the drawing of it.

A room for each figure makes frozen values from cells, or from features, by pure functions;
``drawing`` shows them and nothing else. ``rows`` of each is the data file that stands beside it.
"""

from __future__ import annotations

from selftrain.figures.calibration import Calibration, calibration
from selftrain.figures.datafile import Row, write
from selftrain.figures.plane import Plane, chosen, features, view
from selftrain.figures.rounds import Rounds, by_round
from selftrain.figures.wanted import Wanted

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
