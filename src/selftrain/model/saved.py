"""A model folder: its card in JSON and its tensors in safetensors, written and read.

The folder may come from anyone. The names, shapes and types of its tensors are compared with
those of the expected model before any is read, and nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from selftrain.errors import ModelError
from selftrain.model.card import CARD, HINT, Card, to_json

TENSORS = "model.safetensors"
TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def digest(card: Card, tensors: Mapping[str, Tensor]) -> str:
    """A hash of a model: another card or another bit gives another."""
    sha256 = hashlib.sha256(to_json(card))
    for name, tensor in sorted(tensors.items()):
        sha256.update(name.encode())
        sha256.update(tensor.cpu().flatten().view(torch.uint8).numpy().data)
    return sha256.hexdigest()


def write(folder: Path, card: Card, tensors: Mapping[str, Tensor]) -> None:
    """Write ``model.json`` and ``model.safetensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: t.cpu().contiguous() for name, t in tensors.items()}, folder / TENSORS)
    (folder / CARD).write_bytes(to_json(card, indent=2) + b"\n")


def read_tensors(folder: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a model folder, if their names, shapes and types are the expected ones."""
    path = folder / TENSORS
    try:
        if not path.is_file():  # reading a pipe would block; the hub's cache has links to files
            raise ModelError(f"`{path}` cannot be read: it is no file", HINT)
        with safe_open(path, "pt") as file:
            names = list(file.keys())
            slices = {name: file.get_slice(name) for name in names}
            compare(
                {name: (part.get_shape(), part.get_dtype()) for name, part in slices.items()},
                {name: (list(t.shape), TYPES.get(t.dtype)) for name, t in expected.items()},
                f"`{path}`",
            )
            tensors = {name: file.get_tensor(name) for name in names}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"`{path}` cannot be read: {error}", HINT) from None
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ModelError(f"tensor `{name}` of `{path}` has values that are no numbers", HINT)
    return tensors


def compare(actual: Mapping[str, Any], expected: Mapping[str, Any], what: str) -> None:
    """Raise unless both have the same names, and the same shape and type for each name."""
    for name in sorted(actual.keys() ^ expected.keys()):
        verb = "lacks" if name in expected else "has an unknown"
        raise ModelError(f"{what} {verb} tensor `{name}`", HINT)
    for name, (shape, kind) in expected.items():
        if actual[name] != (shape, kind):
            raise ModelError(
                f"tensor `{name}` of {what} is {actual[name][1]} {list(actual[name][0])}; "
                f"expected {kind} {list(shape)}",
                HINT,
            )
