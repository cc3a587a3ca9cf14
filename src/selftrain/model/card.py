"""The card of a saved model: a JSON file that says how to build it, validated when read.

A model folder may come from anyone: the card is limited in size, and an unknown or wrong entry
is an error. Nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from selftrain.data.task import Task
from selftrain.errors import ModelError, check_format, parsed
from selftrain.model.pel import AnyTuning

CARD = "model.json"
FORMAT = 2
LARGEST_CARD = 1_000_000  # bytes; a real one has a few hundred
HINT = "point at a model folder that selftrain wrote, or copy it again"


@dataclass(frozen=True, slots=True)
class Source:
    """The backbone that a model or a run uses: its name, its commit on the hub, its weights."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: str
    revision: str | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Card:
    """Everything about a model except its weights."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    task: Task
    tuning: AnyTuning
    reader: Literal["head", "prompt"]
    backbone: Source
    head: Literal["linear", "dense"] = "linear"
    lm_head: Literal["frozen", "tuned"] = "frozen"
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    """In place of the backbone's own rates; None leaves them."""
    format: int = FORMAT


def to_json(card: Card, *, indent: int | None = None) -> bytes:
    """The card as JSON."""
    return TypeAdapter(Card).dump_json(card, indent=indent)


def read_card(folder: Path) -> Card:
    """The card of a model folder, validated."""
    path = folder / CARD
    if not path.is_file():
        raise ModelError(f"`{folder}` has no {CARD}", HINT)
    size = path.stat().st_size
    if size > LARGEST_CARD:
        raise ModelError(f"`{path}` has {size} bytes; expected at most {LARGEST_CARD}", HINT)
    raw = path.read_bytes()
    check_format(raw, f"`{path}`", FORMAT, ModelError)
    return parsed(Card, raw, f"`{path}` is no model card", ModelError, HINT)
