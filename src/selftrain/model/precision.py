"""The numbers an encoder computes with. Weights, heads, losses and the optimiser stay in fp32."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, get_args

import torch

from selftrain.errors import ConfigError, require

Precision = Literal["fp32", "tf32", "bf16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def precision_named(name: str) -> Precision:
    """The precision of this name."""
    for each in PRECISIONS:
        if each == name:
            return each
    raise ConfigError(
        f"precision is {name!r}; expected {', '.join(PRECISIONS)}", "--precision fp32"
    )


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise for a precision that this device does not have."""
    if precision == "tf32":
        expected = "cuda: elsewhere tf32 changes nothing"
        require(
            device.type == "cuda", "the device for tf32", device.type, expected, "--precision fp32"
        )
    if precision == "bf16" and device.type == "cuda":
        able = torch.cuda.is_bf16_supported()
        require(able, "precision", "bf16", "fp32 or tf32 on this GPU", "--precision fp32")


def computing(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Surrounds the encoder: with bf16 its matrix products are rounded to 16 bits."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    if precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
    return nullcontext()
