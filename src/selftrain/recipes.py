"""Named methods: UPET's six students under two presets, and fine-tuning on the labels alone.

A method is data; a new one is a line here. ``paper`` keeps the paper's values (the authors'
where the paper gives none); ``laptop`` is what we measured to work on two CPU cores and says so
in docs/deviations.md, value by value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

from selftrain.errors import ConfigError
from selftrain.losses import PHCE, CrossEntropy, EasyHard
from selftrain.method import Method, Tune
from selftrain.pel import Adapter, AnyTuning, Full, Prefix, PTuning
from selftrain.selection import Reliable, Selection

Preset = Literal["laptop", "paper"]
Reads = Literal["head", "prompt"]

PAPER = Method(
    name="upet-head-adapter",
    teacher=Tune(changes=Full(), loss=CrossEntropy(), steps=None, epochs=100, batch=8, rate=1e-5),
    student=(
        Tune(
            changes=Adapter(width=128),
            loss=PHCE(tau=10),
            contrast=EasyHard(weight=0.1, negatives=4, temperature=0.1),
            head="dense",
            steps=None,
            epochs=100,
            batch=16,
            rate=1e-4,
        ),
    ),
    rounds=5,
    pool=4096,
    passes=20,
    select=Selection(score=Reliable(alpha=0.4), count=1024, how="sample"),
)

LAPTOP = Method(
    name="upet-head-adapter",
    teacher=Tune(
        changes=Full(),
        loss=CrossEntropy(),
        head_start="regression",
        steps=60,
        batch=16,
        rate=2e-5,
        head_rate=1e-3,
    ),
    student=(
        Tune(
            changes=Adapter(width=64),
            loss=PHCE(tau=10),
            contrast=EasyHard(weight=0.01, negatives=2, temperature=0.1),
            head_start="regression",
            steps=80,
            batch=32,
            gold=0.25,
            rate=1e-3,
        ),
    ),
    rounds=3,
    pool=2048,
    passes=4,
    passes_in="last",
    select=Selection(
        score=Reliable(alpha=0.4), count=None, shares=(0.25, 0.35, 0.5), how="topk", hard="bottom"
    ),
)

PRESETS: dict[Preset, Method] = {"laptop": LAPTOP, "paper": PAPER}

TUNINGS: dict[str, dict[Preset, tuple[AnyTuning, float]]] = {
    "adapter": {
        "laptop": (Adapter(width=64), 1e-3),
        "paper": (Adapter(width=128), 1e-4),
    },
    "prefix": {"laptop": (Prefix(length=16), 5e-3), "paper": (Prefix(length=16), 5e-3)},
    "ptuning": {"laptop": (PTuning(length=16), 5e-3), "paper": (PTuning(length=16), 5e-3)},
}
"""The paper's three parameter-efficient modules, with the learning rate of each."""


def upet(reads: Reads, tuning: str, preset: Preset = "laptop") -> Method:
    """UPET with one of the six students, for example ``upet("prompt", "prefix")``."""
    base = PRESETS[preset]
    changes, rate = TUNINGS[tuning][preset]
    student = replace(base.student[0], changes=changes, rate=rate)
    return replace(
        base,
        name=f"upet-{reads}-{tuning}",
        teacher=reading(base.teacher, reads),
        student=(reading(student, reads),),
    )


def reading(how: Tune, reads: Reads) -> Tune:
    """The same tuning by head or by prompt; a prompt has no head to start or to shape."""
    if reads == "head":
        return replace(how, reads=reads)
    return replace(how, reads=reads, head="linear", head_start="random")


def fine_tuning(reads: Reads, preset: Preset = "laptop") -> Method:
    """The labels alone, all parameters: UPET's teacher without a student."""
    base = upet(reads, "adapter", preset)
    return replace(base, name=f"{reads}-ft", student=(), rounds=0)


READS: tuple[Reads, ...] = get_args(Reads)
BY_NAME: dict[str, Callable[[Preset], Method]] = {
    **{f"upet-{r}-{t}": partial(upet, r, t) for r in READS for t in TUNINGS},
    **{f"{r}-ft": partial(fine_tuning, r) for r in READS},
}
DEFAULT = "upet-head-adapter"


def recipe(name: str, preset: str = "laptop") -> Method:
    """The method of that name, with the values of that preset."""
    if name not in BY_NAME:
        raise ConfigError(
            f"there is no method `{name}`", f"one of: {', '.join(BY_NAME)} (selftrain methods)"
        )
    if preset not in PRESETS:
        raise ConfigError(f"there is no preset `{preset}`", f"one of: {', '.join(PRESETS)}")
    return BY_NAME[name](preset)
