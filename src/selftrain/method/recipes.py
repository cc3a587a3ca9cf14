"""Named methods: UPET's six students, what the paper compares them with, and their ablations.

A method is data; a new one is a line here. ``paper`` keeps the paper's values (the authors'
where the paper gives none); ``laptop`` is what we measured to work on two CPU cores and says so
in docs/deviations.md, value by value. Under ``laptop`` every method has the same pool, rounds and
steps; ``paper`` counts epochs, so a method that learns from more rows takes more steps there.
``published`` is ``paper`` with each baseline's own published sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

from selftrain.errors import ConfigError
from selftrain.method.losses import PHCE, CrossEntropy, EasyHard, Smooth, Soft
from selftrain.method.selection import Certain, LowVariance, Reliable, Selection, Uniform
from selftrain.method.spec import TAPT, Agreement, Method, Tune
from selftrain.model.pel import Adapter, AnyTuning, Full, Prefix, PTuning

Preset = Literal["laptop", "paper", "published"]
Reader = Literal["head", "prompt"]

PAPER = Method(
    name="upet-head-adapter",
    teacher=Tune(
        tuning=Full(), loss=CrossEntropy(), steps=None, epochs=100, batch_size=8, learning_rate=1e-5
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
    "prefix": {"laptop": (Prefix(length=16), 5e-3), "paper": (Prefix(length=16), 5e-3)},
    "ptuning": {"laptop": (PTuning(length=16), 5e-3), "paper": (PTuning(length=16), 5e-3)},
}
"""The paper's three parameter-efficient modules, with the learning rate of each."""


# ── UPET ─────────────────────────────────────────────────────────────────────────────────────


def upet(reader: Reader, tuning: str, preset: Preset = "laptop") -> Method:
    """UPET with one of the six students, for example ``upet("prompt", "prefix")``."""
    base = PRESETS[preset]
    module, learning_rate = tuned(tuning, preset)
    first = base.student[0]
    # A module that needs a higher rate must not shake a head that starts from regression.
    head_learning_rate = (
        first.learning_rate
        if first.head_start == "regression" and learning_rate != first.learning_rate
        else None
    )
    student = replace(
        first, tuning=module, learning_rate=learning_rate, head_learning_rate=head_learning_rate
    )
    return replace(
        base,
        name=f"upet-{reader}-{tuning}",
        teacher=reading(base.teacher, reader),
        student=(reading(student, reader),),
    )


def tuned(tuning: str, preset: Preset) -> tuple[AnyTuning, float]:
    """A module and its rate; a baseline's published sizes are not those of UPET's modules."""
    return TUNINGS[tuning]["paper" if preset == "published" else preset]


def reading(how: Tune, reader: Reader) -> Tune:
    """The same tuning by head or by prompt; a prompt has no head to start or to shape."""
    if reader == "head":
        return replace(how, reader=reader)
    return replace(how, reader=reader, head="linear", head_start="random")


def whole(method: Method) -> Method:
    """All of the student moves, with the teacher's rates and head: no module."""
    full = method.teacher
    student = replace(
        method.student[0],
        tuning=full.tuning,
        learning_rate=full.learning_rate,
        head_learning_rate=full.head_learning_rate,
        head=full.head,
    )
    return replace(method, student=(student,))


# ── what the paper compares it with ──────────────────────────────────────────────────────────


def fine_tuning(reader: Reader, preset: Preset = "laptop") -> Method:
    """The labels alone, all parameters: UPET's teacher without a student."""
    base = upet(reader, "adapter", preset)
    return replace(base, name=f"{reader}-ft", student=(), rounds=0)


def with_all_labels(method: Method) -> Method:
    """Fine-tuning where every row has its label (ours): three epochs of 32 rows."""
    teacher = replace(method.teacher, steps=None, epochs=3, batch_size=32)
    return replace(method, teacher=teacher)


def adapted(preset: Preset = "laptop") -> Method:
    """TAPT: the encoder first guesses masked words of the pool, then learns from the labels."""
    return replace(fine_tuning("head", preset), name="tapt-head-ft", tapt=TAPT())


def self_training(reader: Reader, preset: Preset = "laptop") -> Method:
    """Plain self-training: all of D_u' by its hard labels, cross entropy, all parameters."""
    base = whole(upet(reader, "adapter", preset))
    student = replace(base.student[0], loss=CrossEntropy(), contrast=None)
    return replace(
        base,
        name=f"{reader}-st",
        student=(student,),
        passes=1,
        select=Selection(score=Uniform(), count=None, shares=(1.0,), label="deterministic"),
    )


def ust(*, hard: bool, preset: Preset = "laptop") -> Method:
    """UST: as many of each class, drawn by certainty (or its opposite), weighed by low variance.

    The same weights go on from round to round, and D_l is not seen again. Its own sizes: 30
    passes, 4,096 of 16,384 rows, and every round is gone through.
    """
    base = whole(upet("head", "adapter", preset))
    student = replace(
        base.student[0],
        loss=CrossEntropy(),
        contrast=None,
        gold_share=0.0,
        head_start="random",
        starts_from="teacher",
    )
    select = replace(
        base.select,
        score=Certain(invert=hard),
        how="sample",
        per_class="equal",
        weigh=LowVariance(scale=0.1),
    )
    method = replace(base, name="ust-hard" if hard else "ust", student=(student,), select=select)
    if preset != "published":
        return method
    select = replace(select, count=4096)
    return replace(method, passes=30, pool=16384, select=select, converged=0.0)


def cest(preset: Preset = "laptop") -> Method:
    """CEST, a reconstruction: its graph formula was not at hand. See ``losses.Smooth``.

    Drawn by certainty; PHCE, and neighbours of one pseudo label are held close.
    """
    base = whole(upet("head", "adapter", preset))
    student = replace(base.student[0], contrast=None, smooth=Smooth(neighbours=2))
    select = replace(base.select, score=Certain(), how="sample")
    return replace(base, name="cest", student=(student,), select=select)


def list_(preset: Preset = "laptop") -> Method:
    """LiST: adapters and the MLM head are all that moves, in the teacher too; soft labels.

    All of D_u' is learnt from. After 60 % of the steps rows count by how far they agree with D_l;
    then D_l itself. Its own sizes: 6 rounds, all gone through. Where a round has a number of steps,
    its two stages share them, three to one.
    """
    base = upet("prompt", "adapter", preset)
    module, learning_rate = tuned("adapter", preset)
    soft = replace(
        base.student[0],
        loss=Soft(),
        contrast=None,
        gold_share=0.0,
        lm_head="tuned",
        reweigh=Agreement(after=0.6),
    )
    gold = replace(
        soft, loss=CrossEntropy(), reweigh=None, train_on="gold", batch_size=base.teacher.batch_size
    )
    if base.student[0].steps is not None:
        few = base.student[0].steps // 4
        soft, gold = replace(soft, steps=base.student[0].steps - few), replace(gold, steps=few)
    method = replace(
        base,
        name="list",
        teacher=replace(base.teacher, tuning=module, learning_rate=learning_rate, lm_head="tuned"),
        student=(soft, gold),
        passes=1,
        select=Selection(score=Uniform(), count=None, shares=(1.0,), label="deterministic"),
    )
    return replace(method, rounds=6, converged=0.0) if preset == "published" else method


# ── what one part of UPET is worth ───────────────────────────────────────────────────────────


def _student(method: Method, **changes: object) -> Method:
    return replace(method, student=tuple(replace(how, **changes) for how in method.student))  # type: ignore[arg-type]


def _alpha(method: Method, alpha: float) -> Method:
    return replace(method, select=replace(method.select, score=Reliable(alpha=alpha)))


def _all_of_it(method: Method) -> Method:
    """Nothing is selected: all of D_u' is easy, and no hard row is left to contrast with."""
    select = replace(method.select, score=Uniform(), count=None, shares=(1.0,))
    return _student(replace(method, select=select), contrast=None)


def _any_of_it(method: Method) -> Method:
    """As many easy rows as ever, but drawn uniformly; the rest is hard."""
    return replace(
        method, select=replace(method.select, score=Uniform(), how="sample", hard="rest")
    )


WITHOUT: dict[str, Callable[[Method], Method]] = {
    "res-all": _all_of_it,
    "res-uniform": _any_of_it,
    "certainty": partial(_alpha, alpha=1.0),
    "confidence": partial(_alpha, alpha=0.0),
    "phce": partial(_student, loss=CrossEntropy()),
    "contrast": partial(_student, contrast=None),
}
"""UPET without one of its parts, as ``NAME-wo-PART``. The paper contradicts itself on what "without
reliable example sampling" is, so there are two of it."""


# ── by name ──────────────────────────────────────────────────────────────────────────────────

READERS: tuple[Reader, ...] = get_args(Reader)


def _full(reader: Reader, preset: Preset) -> Method:
    return replace(whole(upet(reader, "adapter", preset)), name=f"upet-{reader}-full")


def _pel_teacher(reader: Reader, preset: Preset, *, full: bool) -> Method:
    """The teacher has a module too, instead of all its parameters (Table 2)."""
    method = _full(reader, preset) if full else upet(reader, "adapter", preset)
    module, learning_rate = tuned("adapter", preset)
    teacher = replace(method.teacher, tuning=module, learning_rate=learning_rate)
    return replace(method, name=f"{method.name}-pel-teacher", teacher=teacher)


BY_NAME: dict[str, Callable[[Preset], Method]] = {
    **{f"upet-{r}-{t}": partial(upet, r, t) for r in READERS for t in TUNINGS},
    **{f"{r}-ft": partial(fine_tuning, r) for r in READERS},
    "tapt-head-ft": adapted,
    **{f"{r}-st": partial(self_training, r) for r in READERS},
    "ust": lambda preset: ust(hard=False, preset=preset),
    "ust-hard": lambda preset: ust(hard=True, preset=preset),
    "cest": cest,
    "list": list_,
    **{f"upet-{r}-full": partial(_full, r) for r in READERS},
    **{f"upet-{r}-adapter-pel-teacher": partial(_pel_teacher, r, full=False) for r in READERS},
    **{f"upet-{r}-full-pel-teacher": partial(_pel_teacher, r, full=True) for r in READERS},
}
DEFAULT = "upet-head-adapter"


def recipe(name: str, preset: str = "laptop") -> Method:
    """The method of that name, with the values of that preset.

    UPET's may end on ``-wo-PART``, or on ``-alpha-A-SCALE-HOW`` for Table 4.

    >>> recipe("upet-head-prefix-wo-contrast").student[0].contrast is None
    True
    >>> recipe("upet-head-adapter-alpha-0.2-rank-sample").select.score
    Reliable(alpha=0.2, scale='rank', kind='reliable')
    """
    if preset not in PRESETS:
        raise ConfigError(f"there is no preset `{preset}`", f"one of: {', '.join(PRESETS)}")
    base, change = _ending(name)
    if base not in BY_NAME:
        raise ConfigError(
            f"there is no method `{name}`", f"one of: {', '.join(BY_NAME)} (selftrain methods)"
        )
    method = BY_NAME[base](preset)
    return method if change is None else replace(change(method), name=name)


def _ending(name: str) -> tuple[str, Callable[[Method], Method] | None]:
    """The recipe a name begins with, and what its ending changes in it."""
    found = re.fullmatch(r"(upet-.+)-wo-(.+)", name)
    if found and found[2] in WITHOUT:
        return found[1], WITHOUT[found[2]]
    found = re.fullmatch(r"(upet-.+)-alpha-([0-9.]+)-(raw|rank)-(sample|topk)", name)
    if found and re.fullmatch(r"0(\.\d+)?|1(\.0+)?", found[2]):
        scale: Literal["raw", "rank"] = "raw" if found[3] == "raw" else "rank"
        how: Literal["sample", "topk"] = "sample" if found[4] == "sample" else "topk"
        return found[1], partial(_drawn_by, alpha=float(found[2]), scale=scale, how=how)
    if "-wo-" in name or "-alpha-" in name:
        parts = ", ".join(f"-wo-{part}" for part in WITHOUT)
        raise ConfigError(
            f"there is no method `{name}`",
            f"a UPET method may end on one of: {parts}, -alpha-0.2-rank-topk",
        )
    return name, None


def _drawn_by(
    method: Method, alpha: float, scale: Literal["raw", "rank"], how: Literal["sample", "topk"]
) -> Method:
    # Of one part alone, ranks keep the order and the ties: the largest are the same rows.
    one_part = how == "topk" and alpha in (0, 1)
    score = Reliable(alpha=alpha, scale="raw" if one_part else scale)
    return replace(method, select=replace(method.select, score=score, how=how))
