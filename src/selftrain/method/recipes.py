"""Named methods: UPET's six students, what the paper compares them with, and their ablations.

A method is data; a new one is a line here. ``paper`` keeps the paper's values (the authors'
where the paper gives none); ``laptop`` is what we measured to work on two CPU cores and says so
in docs/deviations.md, value by value. Under ``laptop`` every method has the same pool, rounds and
steps; ``paper`` counts epochs, so a method that learns from more rows takes more steps there.
``published`` is ``paper`` with each baseline's own published sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from selftrain.errors import ConfigError
from selftrain.method.losses import PHCE, CrossEntropy, EasyHard, Smooth, Soft, SupCon
from selftrain.method.selection import Certain, LowVariance, Reliable, Selection, Uniform
from selftrain.method.spec import TAPT, Agreement, Method, ProbeRounds, Tune
from selftrain.model.pel import Adapter, AnyTuning, Full, Prefix, Probe, PTuning

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


# ── UPET ─────────────────────────────────────────────────────────────────────────────────────


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


# ── ours ─────────────────────────────────────────────────────────────────────────────────────


def probe(preset: Preset = "laptop") -> Method:
    """The teacher of UPET, then rounds of its head alone, with a guard: a part of the default.

    The paper trains a new student from the pretrained weights in each round (line 6). A student
    that ``rounds`` asks for starts from its teacher, and learns from 95 % of each pseudo class.
    """
    base = PRESETS[preset]
    teacher = replace(base.teacher, head="linear", head_start="regression")
    if teacher.steps is not None:
        teacher = replace(teacher, min_epochs=4)
    student = replace(
        teacher,
        head_start="random",
        starts_from="teacher",
        steps=80,
        epochs=None,
        min_epochs=None,
        gold_share=0.25,
    )
    return replace(
        base,
        name="probe",
        teacher=teacher,
        student=(student,),
        rounds=0,
        probe=ProbeRounds(),
        passes=10,
        dropout_layers=None,
        select=Selection(score=Reliable(alpha=0.4), count=None, shares=(0.95,), how="topk"),
        guard="folds",
    )


def supcon(preset: Preset = "laptop") -> Method:
    """The default: a teacher by supervised contrast, head rounds, one student, head rounds again.

    The teacher learns by a contrast of the labels, and of the class names where they say something.
    The student starts from it and learns by a contrast of half of each pseudo class. A guard judges
    every round. Measured on MiniLM: a preset for another encoder keeps its own teacher and rates.
    """
    base = probe(preset)
    if preset == "laptop":
        contrast = replace(
            base.teacher,
            supcon=SupCon(temperature=0.1),
            head_start="random",
            learning_rate=5e-5,
            head_learning_rate=None,
        )
        teacher = replace(contrast, class_names=True, interpolation=0.5)
        student = replace(
            contrast, starts_from="teacher", steps=60, min_epochs=None, gold_share=0.25
        )
        base = replace(base, teacher=teacher, student=(student,), pool=1024)
    select = replace(base.select, shares=(0.5,))
    return replace(base, name="supcon", rounds=1, select=select)


def frozen(preset: Preset = "laptop") -> Method:
    """The encoder as it is: a regression on its vectors, then rounds of the head. Seconds, no more.

    The regression learns from the class names too, where they say something.
    """
    base = probe(preset)
    pool = supcon(preset).pool
    teacher = Tune(tuning=Probe(), class_names=True)
    return replace(base, name="frozen", teacher=teacher, student=(), pool=pool)


# ── what the paper compares it with ──────────────────────────────────────────────────────────


def fine_tuning(reader: Reader, preset: Preset = "laptop") -> Method:
    """The labels alone, all parameters: UPET's teacher without a student."""
    base = upet(reader, "adapter", preset)
    return replace(base, name=f"{reader}-ft", student=(), rounds=0)


def with_all_labels(method: Method) -> Method:
    """Fine-tuning where every row has its label (ours): three epochs of 32 rows."""
    teacher = replace(method.teacher, steps=None, epochs=3, batch_size=32)
    return replace(method, teacher=teacher)


def tapt(preset: Preset = "laptop") -> Method:
    """TAPT: the encoder first guesses masked words of the pool, then learns from the labels."""
    return replace(fine_tuning("head", preset), name="tapt-head-ft", tapt=TAPT())


def self_training(reader: Reader, preset: Preset = "laptop") -> Method:
    """Plain self-training: all of D_u' by its hard labels, cross entropy, all parameters."""
    base = all_parameters(upet(reader, "adapter", preset))
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

    A plain pass gives the labels. Each student continues from the weights before it and does not
    see D_l again. Published sizes (``_published_ust``): 25 rounds, 30 passes, 4,096 of 16,384 rows.
    """
    base = all_parameters(upet("head", "adapter", preset))
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
        label="deterministic",
        weigh=LowVariance(scale=0.1),
    )
    method = replace(base, name="ust-hard" if hard else "ust", student=(student,), select=select)
    return _published_ust(method) if preset == "published" else method


def _published_ust(method: Method) -> Method:
    """UST with the sizes of its code; no round ends the run early.

    Its code drops half of what the head reads. Ours has one dropout rate, that of the encoder.
    """

    def sized(tune: Tune, epochs: int, batch_size: int) -> Tune:
        resized = replace(tune, epochs=epochs, batch_size=batch_size, learning_rate=3e-5)
        return replace(resized, head="linear", dropout=0.3)

    return replace(
        method,
        teacher=sized(method.teacher, epochs=70, batch_size=4),
        student=tuple(sized(tune, epochs=25, batch_size=32) for tune in method.student),
        rounds=25,
        passes=30,
        pool=16384,
        select=replace(method.select, count=4096),
        converged=0.0,
    )


def cest(preset: Preset = "laptop") -> Method:
    """CEST, a reconstruction: its graph formula was not at hand. See ``losses.Smooth``.

    Rows are drawn by certainty; PHCE, and a loss that pulls neighbours of one label together.
    """
    base = all_parameters(upet("head", "adapter", preset))
    student = replace(base.student[0], contrast=None, smooth=Smooth(neighbours=2))
    select = replace(base.select, score=Certain(), how="sample")
    return replace(base, name="cest", student=(student,), select=select)


def list_(preset: Preset = "laptop") -> Method:
    """LiST: trains adapters and the MLM head alone, in the teacher too, on soft labels.

    It learns from all of D_u'. After 60 % of the steps, rows count by how far they agree with D_l;
    a second stage learns from D_l itself. Published sizes: 6 rounds, none ends the run early. Where
    a round has a number of steps, its two stages share them, three to one.
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
        gold_steps = base.student[0].steps // 4
        soft = replace(soft, steps=base.student[0].steps - gold_steps)
        gold = replace(gold, steps=gold_steps)
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


# ── by name ──────────────────────────────────────────────────────────────────────────────────

READERS: tuple[Reader, ...] = get_args(Reader)
System = Literal["upet", "supcon", "probe", "frozen", "ft", "tapt", "st", "ust", "cest", "list"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named method: what it is, as fields, and how to build it with the values of a preset."""

    name: str
    system: System
    reader: Reader
    build: Callable[[Preset], Method]
    tuning: str = "full"
    """What the student trains; the teacher where there is no student."""
    teacher_tuning: str = "full"
    base: str = ""
    """The recipe it differs from in one part; empty where it is no ablation and no weighing."""
    ablation: Ablation | None = None
    weighing: Weighing | None = None

    def variants(self) -> Iterator[Recipe]:
        """This UPET without each of its parts, and with each weighing of Table 4."""
        for ablation in ABLATIONS:
            yield replace(self._variant(f"wo-{ablation.part}", ablation.change), ablation=ablation)
        for weighing in WEIGHINGS:
            yield replace(self._variant(str(weighing), weighing.change), weighing=weighing)

    def _variant(self, ending: str, change: Callable[[Method], Method]) -> Recipe:
        name = f"{self.name}-{ending}"

        def build(preset: Preset) -> Method:
            return replace(change(self.build(preset)), name=name)

        return replace(self, name=name, base=self.name, build=build)


def _full(reader: Reader, preset: Preset) -> Method:
    return replace(all_parameters(upet(reader, "adapter", preset)), name=f"upet-{reader}-full")


def _pel_teacher(reader: Reader, preset: Preset, *, full: bool) -> Method:
    """The teacher has a module too, instead of all its parameters (Table 2)."""
    method = _full(reader, preset) if full else upet(reader, "adapter", preset)
    module, learning_rate = tuned("adapter", preset)
    teacher = replace(
        method.teacher,
        tuning=module,
        learning_rate=learning_rate,
        lm_head=upet(reader, "adapter", preset).student[0].lm_head,
    )
    return replace(method, name=f"{method.name}-pel-teacher", teacher=teacher)


def _bases() -> Iterator[Recipe]:
    for r in READERS:
        for t in TUNINGS:
            yield Recipe(f"upet-{r}-{t}", "upet", r, partial(upet, r, t), tuning=t)
    for r in READERS:
        yield Recipe(f"{r}-ft", "ft", r, partial(fine_tuning, r))
    yield Recipe("supcon", "supcon", "head", supcon)
    yield Recipe("probe", "probe", "head", probe)
    yield Recipe("frozen", "frozen", "head", frozen, tuning="probe", teacher_tuning="probe")
    yield Recipe("tapt-head-ft", "tapt", "head", tapt)
    for r in READERS:
        yield Recipe(f"{r}-st", "st", r, partial(self_training, r))
    yield Recipe("ust", "ust", "head", lambda preset: ust(hard=False, preset=preset))
    yield Recipe("ust-hard", "ust", "head", lambda preset: ust(hard=True, preset=preset))
    yield Recipe("cest", "cest", "head", cest)
    yield Recipe("list", "list", "prompt", list_, tuning="adapter", teacher_tuning="adapter")
    for r in READERS:
        yield Recipe(f"upet-{r}-full", "upet", r, partial(_full, r))
    for full, tuning in ((False, "adapter"), (True, "full")):
        for r in READERS:
            name, build = f"upet-{r}-{tuning}-pel-teacher", partial(_pel_teacher, r, full=full)
            yield Recipe(name, "upet", r, build, tuning=tuning, teacher_tuning="adapter")


BASES = {recipe.name: recipe for recipe in _bases()}
"""The recipes that are no variant of another."""
RECIPES = BASES | {
    variant.name: variant
    for recipe in BASES.values()
    if recipe.system == "upet"
    for variant in recipe.variants()
}
"""Every recipe by name; UPET's with their ablations and weighings."""
DEFAULT = "supcon"
"""What ``fit``, the estimator and the demo use."""
QUICK = "frozen"
"""What takes seconds: ``fit --minutes`` uses it where the teacher of the default does not fit."""
THE_PAPERS = "upet-head-adapter"
"""Where the paper's own method is meant: a sweep over its grid."""


def recipe(name: str, preset: str = "laptop") -> Method:
    """The method of that name, with the values of that preset.

    UPET's may end on ``-wo-PART`` (Table 5), or on ``-alpha-A-SCALE-HOW`` (Table 4).

    >>> recipe("upet-head-prefix-wo-contrast").student[0].contrast is None
    True
    >>> recipe("upet-head-adapter-alpha-0.2-rank-sample").select.score
    Reliable(alpha=0.2, scale='rank', kind='reliable')
    """
    if preset not in PRESETS:
        raise ConfigError(f"there is no preset `{preset}`", f"one of: {', '.join(PRESETS)}")
    if name not in RECIPES:
        raise ConfigError(f"there is no method `{name}`", _hint(name))
    return RECIPES[name].build(preset)


def _hint(name: str) -> str:
    """What may stand in the place of an unknown name."""
    if "-alpha-" in name:
        alphas = ", ".join(f"{alpha:g}" for alpha in ALPHAS)
        return (
            f"the alpha of a UPET name is one of: {alphas}, as in -alpha-0.2-rank-topk; "
            "give any other in a file: --config FILE with method.select.score.alpha = 0.3"
        )
    if "-wo-" in name:
        parts = ", ".join(f"-wo-{each.part}" for each in ABLATIONS)
        return f"a UPET name may end on one of: {parts}"
    return f"one of: {', '.join(BASES)} (selftrain methods)"
