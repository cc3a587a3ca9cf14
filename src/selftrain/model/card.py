"""A saved model: a card in JSON, tensors in safetensors, and reading both from a stranger.

Nothing in the files is trusted before it is compared: the card is limited in size and
validated, the tensors' names, shapes and types are held against a plan before any is read,
and nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from selftrain.data.task import Task
from selftrain.errors import ModelError, first_problem
from selftrain.model.pel import AnyTuning

CARD, TENSORS = "model.json", "model.safetensors"
LARGEST_CARD = 1_000_000  # bytes; a real one has a few hundred
HINT = "point at a model folder that selftrain wrote, or copy it again"


@dataclass(frozen=True, slots=True)
class Source:
    """The backbone a model belongs to."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    name: str
    revision: str | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Card:
    """Everything about a model but its numbers."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    task: Task
    tuning: AnyTuning
    reader: Literal["head", "prompt"]
    backbone: Source
    head: Literal["linear", "dense"] = "linear"
    lm_head: Literal["frozen", "tuned"] = "frozen"
    dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    """In place of the backbone's own rates; None leaves them."""
    format: Literal[1] = 1


def digest(card: Card, tensors: Mapping[str, Tensor]) -> str:
    """A hash of a model: another card or another bit gives another."""
    whole = hashlib.sha256(TypeAdapter(Card).dump_json(card))
    for name, tensor in sorted(tensors.items()):
        whole.update(name.encode())
        whole.update(tensor.cpu().flatten().view(torch.uint8).numpy().data)
    return whole.hexdigest()


def write(folder: Path, card: Card, tensors: Mapping[str, Tensor]) -> None:
    """Write ``model.json`` and ``model.safetensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: t.cpu().contiguous() for name, t in tensors.items()}, folder / TENSORS)
    (folder / CARD).write_bytes(TypeAdapter(Card).dump_json(card, indent=2) + b"\n")


def read_card(folder: Path) -> Card:
    """The card of a model folder, validated."""
    path = folder / CARD
    if not path.is_file():
        raise ModelError(f"`{folder}` has no {CARD}", HINT)
    size = path.stat().st_size
    if size > LARGEST_CARD:
        raise ModelError(f"`{path}` has {size} bytes; expected at most {LARGEST_CARD}", HINT)
    try:
        return TypeAdapter(Card).validate_json(path.read_bytes())
    except ValidationError as error:
        wrong = first_problem(error)
        if wrong.place == "format":
            raise ModelError(
                f"`{path}` has format {wrong.value}; this version reads 1",
                "a newer selftrain wrote it: pip install -U selftrain",
            ) from None
        raise ModelError(f"`{path}` is no model card: {wrong}", HINT) from None


def read_tensors(folder: Path, plan: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a model folder, if they are exactly those of the plan."""
    path = folder / TENSORS
    try:
        if not path.is_file():  # or a pipe would be waited for; a link is how a hub's cache has it
            raise ModelError(f"`{path}` cannot be read: it is no file", HINT)
        with safe_open(path, "pt") as file:
            names = list(file.keys())
            parts = {name: file.get_slice(name) for name in names}
            compare(
                {name: (part.get_shape(), part.get_dtype()) for name, part in parts.items()},
                {name: (list(t.shape), TYPES.get(t.dtype)) for name, t in plan.items()},
                f"`{path}`",
            )
            tensors = {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"`{path}` cannot be read: {error}", HINT) from None
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ModelError(f"tensor `{name}` of `{path}` has values that are no numbers", HINT)
    return tensors


TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def compare(found: Mapping[str, Any], expected: Mapping[str, Any], what: str) -> None:
    """Raise unless both have the same names, with the same shape and type for each."""
    for name in sorted(found.keys() ^ expected.keys()):
        verb = "lacks" if name in expected else "has an unknown"
        raise ModelError(f"{what} {verb} tensor `{name}`", HINT)
    for name, (shape, kind) in expected.items():
        if found[name] != (shape, kind):
            raise ModelError(
                f"tensor `{name}` of {what} is {found[name][1]} {list(found[name][0])}; "
                f"expected {kind} {list(shape)}",
                HINT,
            )
