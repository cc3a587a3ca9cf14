"""The systems that the paper compares UPET with: fine-tuning, self-training, UST, CEST, LiST."""

from __future__ import annotations

from dataclasses import replace

from selftrain.method.losses import CrossEntropy, Smooth, Soft
from selftrain.method.selection import Certain, LowVariance, Selection, Uniform
from selftrain.method.spec import TAPT, Agreement, Method, Tune
from selftrain.method.upet import Preset, Reader, all_parameters, tuned, upet


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
