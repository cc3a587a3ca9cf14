"""UPET's six students with the values of each preset, and UPET without one of its parts.

``paper`` keeps the paper's values (the authors' where the paper gives none); ``laptop`` is what we
measured to work on two CPU cores and says so in docs/deviations.md, value by value. Under
``laptop`` every method has the same pool, rounds and steps; ``paper`` counts epochs, so a method
that learns from more rows takes more steps there. ``published`` is ``paper`` with each baseline's
own published sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from selftrain.method.losses import PHCE, CrossEntropy, EasyHard
from selftrain.method.selection import Reliable, Selection, Uniform
from selftrain.method.spec import Method, Tune
from selftrain.model.pel import Adapter, AnyTuning, Full, Prefix, PTuning

Preset = Literal["laptop", "paper", "published"]
Reader = Literal["head", "prompt"]
Scale = Literal["raw", "rank"]
Take = Literal["sample", "topk"]

PAPER = Method(
    name="upet-head-adapter",
    teacher=Tune(
        tuning=Full(),
        loss=CrossEntropy(),
        head="dense",
        steps=None,
        epochs=100,
        batch_size=8,
        learning_rate=1e-5,
    ),
    student=(
        Tune(
            tuning=Adapter(width=128),
            loss=PHCE(tau=10),
            contrast=EasyHard(weight=0.1, negatives=4, temperature=0.1),
            head="dense",
            steps=None,
            epochs=100,
            batch_size=16,
            learning_rate=1e-4,
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
        tuning=Full(),
        loss=CrossEntropy(),
        head_start="regression",
        steps=60,
        batch_size=16,
        learning_rate=2e-5,
        head_learning_rate=1e-3,
    ),
    student=(
        Tune(
            tuning=Adapter(width=64),
            loss=PHCE(tau=10),
            contrast=EasyHard(weight=0.01, negatives=2, temperature=0.1),
            head_start="regression",
            steps=80,
            batch_size=32,
            gold_share=0.25,
            learning_rate=1e-3,
        ),
    ),
    rounds=3,
    pool=2048,
    passes=4,
    dropout_layers="last",
    select=Selection(
        score=Reliable(alpha=0.4), count=None, shares=(0.25, 0.35, 0.5), how="topk", hard="bottom"
    ),
)

PRESETS: dict[Preset, Method] = {"laptop": LAPTOP, "paper": PAPER, "published": PAPER}

TUNINGS: dict[str, dict[Preset, tuple[AnyTuning, float]]] = {
    "adapter": {
        "laptop": (Adapter(width=64), 1e-3),
        "paper": (Adapter(width=128), 1e-4),
    },
    # In 80 steps a weight moves by 41 times its rate; the keys of MiniLM have an rms of 0.9 to 1.3.
    "prefix": {"laptop": (Prefix(length=16), 5e-2), "paper": (Prefix(length=64), 5e-3)},
    "ptuning": {"laptop": (PTuning(length=16), 5e-3), "paper": (PTuning(length=16), 5e-3)},
}
"""The paper's three parameter-efficient modules, with the learning rate of each."""


def upet(reader: Reader, tuning: str, preset: Preset = "laptop") -> Method:
    """UPET with one of the six students, for example ``upet("prompt", "prefix")``."""
    base = PRESETS[preset] if tuning == "adapter" else with_linear_heads(PRESETS[preset])
    module, learning_rate = tuned(tuning, preset)
    first = base.student[0]
    # A module that needs a higher rate must not shake the head.
    head_learning_rate = first.learning_rate if learning_rate != first.learning_rate else None
    student = replace(
        first, tuning=module, learning_rate=learning_rate, head_learning_rate=head_learning_rate
    )
    return replace(
        base,
        name=f"upet-{reader}-{tuning}",
        teacher=read_by(base.teacher, reader),
        student=(read_by(student, reader),),
    )


def tuned(tuning: str, preset: Preset) -> tuple[AnyTuning, float]:
    """A module and its learning rate; ``published`` changes the sizes of baselines alone."""
    return TUNINGS[tuning]["paper" if preset == "published" else preset]


def with_linear_heads(method: Method) -> Method:
    """One linear layer above teacher and student.

    A dense head on RoBERTa-large has 1.05M parameters; Table 1 counts below 1M for P-tuning.
    """
    teacher = replace(method.teacher, head="linear")
    return replace(_change_student(method, head="linear"), teacher=teacher)


def read_by(tune: Tune, reader: Reader) -> Tune:
    """The same tuning by head or by prompt; a prompt has no head to start or to shape.

    Beside a module, the language model's head takes the place of a dense one: its own layer is
    tuned. ``Full`` tunes it anyway.
    """
    if reader == "head":
        return replace(tune, reader=reader)
    dense = tune.head == "dense" and not isinstance(tune.tuning, Full)
    lm_head = "tuned" if dense else tune.lm_head
    return replace(tune, reader=reader, head="linear", head_start="random", lm_head=lm_head)


def all_parameters(method: Method) -> Method:
    """The student trains all its parameters, with the teacher's rates and head: no module."""
    full = method.teacher
    student = replace(
        method.student[0],
        tuning=full.tuning,
        learning_rate=full.learning_rate,
        head_learning_rate=full.head_learning_rate,
        head=full.head,
        lm_head=full.lm_head,
    )
    return replace(method, student=(student,))


# ── what one part of UPET is worth ───────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ablation:
    """UPET without one of its parts (Table 5)."""

    part: str
    """As names of methods have it: ``upet-head-adapter-wo-PART``."""
    title: str
    """As tables show it."""
    change: Callable[[Method], Method]


def _change_student(method: Method, **changes: object) -> Method:
    return replace(method, student=tuple(replace(tune, **changes) for tune in method.student))  # type: ignore[arg-type]


def _with_alpha(method: Method, alpha: float) -> Method:
    return replace(method, select=replace(method.select, score=Reliable(alpha=alpha)))


def _select_all(method: Method) -> Method:
    """Nothing is selected: all of D_u' is easy, and no hard row is left to contrast with."""
    select = replace(method.select, score=Uniform(), count=None, shares=(1.0,))
    return _change_student(replace(method, select=select), contrast=None)


def _select_uniformly(method: Method) -> Method:
    """The same number of easy rows, drawn uniformly; all other rows are hard."""
    return replace(
        method, select=replace(method.select, score=Uniform(), how="sample", hard="rest")
    )


ABLATIONS = (
    Ablation("res-all", "w/o reliable sampling (all)", _select_all),
    Ablation("res-uniform", "w/o reliable sampling (uniform)", _select_uniformly),
    Ablation("certainty", "w/o certainty", partial(_with_alpha, alpha=1.0)),
    Ablation("confidence", "w/o confidence", partial(_with_alpha, alpha=0.0)),
    Ablation("phce", "w/o PHCE", partial(_change_student, loss=CrossEntropy())),
    Ablation("contrast", "w/o easy-hard contrast", partial(_change_student, contrast=None)),
)
"""In the paper's order. It contradicts itself on what "without reliable example sampling" is, so
there are two of it."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """How UPET weighs and takes reliable examples (Table 4)."""

    alpha: float
    scale: Scale
    how: Take

    def __str__(self) -> str:
        return f"alpha-{self.alpha:g}-{self.scale}-{self.how}"

    def change(self, method: Method) -> Method:
        """The method with this score and this way to take rows by it."""
        # Of one part alone, ranks keep the order and the ties: the largest are the same rows.
        one_part = self.how == "topk" and self.alpha in (0, 1)
        score = Reliable(alpha=self.alpha, scale="raw" if one_part else self.scale)
        return replace(method, select=replace(method.select, score=score, how=self.how))


ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WEIGHINGS = tuple(
    Weighing(alpha, scale, how)
    for alpha in ALPHAS
    for scale in get_args(Scale)
    for how in get_args(Take)
)
