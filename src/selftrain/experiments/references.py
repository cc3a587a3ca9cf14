"""The titles of the references: the simple models that a comparison shows beside its methods."""

from __future__ import annotations

from selftrain.training.baselines import FROZEN, FROZEN_APART, MAJORITY

__all__ = ["FROZEN", "FROZEN_APART", "MAJORITY", "REFERENCES"]

REFERENCES = {
    MAJORITY: "majority class",
    FROZEN: "frozen encoder + logistic regression",
    FROZEN_APART: "frozen encoder, sentences apart + logistic regression",
}
"""Name → title, in the order of tables."""
