"""The simple models that a comparison shows beside its methods, by name."""

from __future__ import annotations

MAJORITY = "majority"
FROZEN = "frozen-lr"
FROZEN_APART = "frozen-lr-apart"
"""Two sentences encoded separately: for tasks of pairs alone."""

REFERENCES = {
    MAJORITY: "majority class",
    FROZEN: "frozen encoder + logistic regression",
    FROZEN_APART: "frozen encoder, sentences apart + logistic regression",
}
"""Name → title, in the order of tables."""
