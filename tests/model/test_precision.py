"""An encoder in 16 bits: it runs everywhere that a run needs it, and answers closely."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import small_run
from selftrain.errors import ConfigError, RunError
from selftrain.method.spec import Method
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone
from selftrain.model.build import build
from selftrain.model.pel import Adapter
from selftrain.model.precision import check_precision, precision_named
from selftrain.runs.read import load
from selftrain.runs.train import train


def test_bf16_answers_closely_and_in_fp32_numbers(
    tiny_backbone: Callable[[str], Backbone],
) -> None:
    backbone = tiny_backbone("bert")
    whole = build(small_run.TASK, backbone, Architecture(Adapter(width=4)), seed=1)
    short = build(
        small_run.TASK, replace(backbone, precision="bf16"), Architecture(Adapter(width=4)), seed=1
    )
    exact, close = small_run.probabilities(whole), small_run.probabilities(short)
    assert close.dtype == torch.float32
    assert not torch.equal(exact, close)
    assert torch.allclose(exact, close, rtol=0, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("method", [small_run.METHOD, small_run.CONTRAST], ids=["upet", "supcon"])
def test_a_run_in_bf16_trains_resumes_and_answers_in_bf16(
    tiny_backbone: Callable[[str], Backbone], tmp_path: Path, method: Method
) -> None:
    backbone = replace(tiny_backbone("bert"), precision="bf16")
    job = small_run.job(backbone, method)
    rounds = list(train(tmp_path / "run", job, small_run.MACHINE))
    assert (
        json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["precision"] == "bf16"
    )
    answers = small_run.probabilities(rounds[0].model)
    read = load(tmp_path / "run", 0, backbone=tiny_backbone("bert"))
    assert read.precision == "bf16", "a reader need not know"
    assert torch.equal(small_run.probabilities(read), answers)
    with pytest.raises(RunError, match="a run in bf16, this one would go on in fp32") as error:
        next(
            train(tmp_path / "run", small_run.job(tiny_backbone("bert"), method), small_run.MACHINE)
        )
    assert "--precision bf16" in error.value.hint


def test_a_precision_that_is_unknown_or_without_effect_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected fp32, tf32, bf16"):
        precision_named("fp16")
    with pytest.raises(ConfigError, match="elsewhere tf32 changes nothing"):
        check_precision("tf32", torch.device("cpu"))
    check_precision("bf16", torch.device("cpu"))
