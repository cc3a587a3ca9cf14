"""Methods by name: UPET and its variants, what the paper compares it with, and our own.

A method is data; a new one is a function in ``upet``, ``systems`` or ``ours`` and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

from selftrain.errors import ConfigError
from selftrain.method.ours import frozen, probe, supcon
from selftrain.method.spec import Method
from selftrain.method.systems import cest, fine_tuning, list_, self_training, tapt, ust
from selftrain.method.upet import (
    ABLATIONS,
    ALPHAS,
    PRESETS,
    TUNINGS,
    WEIGHINGS,
    Ablation,
    Preset,
    Reader,
    Weighing,
    all_parameters,
    tuned,
    upet,
)

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
