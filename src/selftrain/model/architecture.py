"""How a classifier is made from a backbone, as plain data without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from selftrain.model.pel import AnyTuning


@dataclass(frozen=True, slots=True)
class Architecture:
    """What of the encoder is tuned, and how its hidden states become logits."""

    tuning: AnyTuning
    reader: Literal["head", "prompt"] = "head"
    head: Literal["linear", "dense"] = "linear"
    lm_head: Literal["frozen", "tuned"] = "frozen"
    dropout: float | None = None
    """In place of the backbone's own rates; None leaves them (0.1 where they are all 0)."""
