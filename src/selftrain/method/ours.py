"""Our own methods: rounds of the head alone, with a guard. ``supcon`` is the default of ``fit``."""

from __future__ import annotations

from dataclasses import replace

from selftrain.method.losses import SupCon
from selftrain.method.selection import Reliable, Selection
from selftrain.method.spec import Method, ProbeRounds, Tune
from selftrain.method.upet import PRESETS, Preset
from selftrain.model.pel import Probe


def probe(preset: Preset = "laptop") -> Method:
    """The teacher of UPET, then rounds of its head alone, with a guard: a part of the default.

    The paper trains a new student from the pretrained weights in each round (line 6). A student
    that ``rounds`` asks for starts from its teacher, and learns from 95 % of each pseudo class.
    """
    base = PRESETS[preset]
    teacher = replace(base.teacher, head="linear", head_start="regression", balance_labels=True)
    if teacher.steps is not None:
        teacher = replace(teacher, min_epochs=4)
    student = replace(
        teacher,
        head_start="random",
        balance_labels=None,
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
            contrast,
            balance_labels=None,
            starts_from="teacher",
            steps=60,
            min_epochs=None,
            gold_share=0.25,
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
