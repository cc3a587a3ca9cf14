"""What a person reads of a run: the line of each round, and where the log goes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from selftrain.errors import in_percent

if TYPE_CHECKING:
    from selftrain.data.rows import Labelled
    from selftrain.runs.record import Record
    from selftrain.training.estimate import Estimate
    from selftrain.training.ladder import Rung
    from selftrain.training.loop import Round


def round_line(number: int, rounds: int, numbers: Mapping[str, Any], why: str = "") -> str:
    """One line for one round; numbers that are missing or wrong are left out.

    `round 2/3   picked 410 of 1024   confidence 0.94   certainty 0.98   …   41 s`
    """
    fits = numbers.get("fit")
    fitted = fits[-1] if isinstance(fits, list) and fits else {}
    parts = [
        f"round {number}/{rounds}" if number else "teacher  ",
        phrase("picked {} of {}", numbers, "picked", "pool"),
        phrase("confidence {:.2f}", numbers, "confidence"),
        phrase("certainty {:.2f}", numbers, "certainty"),
        prior_phrase(numbers.get("prior")),
        phrase("changed {:.0%}", numbers, "changed"),
        phrase("masked-word loss {:.2f}", numbers, "adapted"),
        phrase("class-name rows {}", fitted, "name_rows"),
        phrase("loss {:.3f}", fitted, "loss"),
        phrase("contrast {:.2f}", fitted, "contrast"),
        phrase("{} of {} trained", fitted, "tuned", "total", shown=count),
        phrase("dev {:.1f}", numbers, "dev", shown=lambda share: 100 * share),
        phrase("{:.0f} s", numbers, "seconds"),
        why,
    ]
    return "   ".join(part for part in parts if part)


def phrase(
    form: str,
    numbers: Mapping[str, Any],
    *names: str,
    shown: Callable[[Any], object] = lambda number: number,
) -> str:
    """The form with these numbers filled in; empty where one of them is missing or no number.

    >>> phrase("picked {} of {}", {"picked": 3, "pool": 9}, "picked", "pool")
    'picked 3 of 9'
    """
    values = [numbers.get(name) for name in names]
    if not all(isinstance(value, int | float) for value in values):
        return ""
    return form.format(*map(shown, values))


def prior_phrase(prior: object) -> str:
    """The estimated class shares of the pool, where they are numbers.

    >>> prior_phrase({"ham": 0.88, "spam": 0.12})
    'pool 88:12'
    """
    if not (isinstance(prior, Mapping) and prior):
        return ""
    shares = list(prior.values())
    if not all(isinstance(share, int | float) for share in shares):
        return ""
    return f"pool {in_percent(shares)}"


def line_of(round_: Round, rounds: int, *, dev: float | None = None) -> str:
    """The line of a round as the loop yields it, with its accuracy on dev rows if there are any."""
    numbers = round_.numbers if dev is None else {**round_.numbers, "dev": dev}
    why = round_.why if round_.accepted else f"refused: {round_.why}"
    return round_line(round_.number, rounds, numbers, why)


NO_ESTIMATE = "no expected accuracy: the labels tell simple models too little"
SHOWN_DOUBTS = 5
DOUBTFUL = 0.8
"""A label is named to a person where models believe another by this much; all are on disk."""


def estimate_lines(
    estimate: Estimate | None, final: int, labelled: Sequence[Labelled]
) -> Iterator[str]:
    """What is expected of the final model, and at most five labelled rows that look wrong.

    Their texts are for the terminal alone: no file of a run has one.
    """
    if estimate is None:
        yield no_estimate(labelled)
        return
    yield expected_line(estimate, final)
    doubts = [doubt for doubt in estimate.doubts if doubt.probability >= DOUBTFUL]
    for doubt in doubts[:SHOWN_DOUBTS]:
        text = labelled[doubt.row - 1].example.text
        yield (
            f'check a label: "{shorten(text, 60, placeholder=" …")}" is labelled `{doubt.label}`; '
            f"a model that did not see it says `{doubt.answer}`, {doubt.probability:.2f}"
        )


def expected_line(estimate: Estimate, number: int) -> str:
    """What is expected of the model of a round, and how often such intervals were right."""
    expected = estimate.of(number).expected
    right, judged = intervals_of(estimate)
    return (
        f"expected accuracy {expected.accuracy:.2f}, "
        f"between {expected.low:.2f} and {expected.high:.2f} (such intervals were right for "
        f"{right} of {judged} models of other tasks)"
    )


def intervals_of(estimate: Estimate) -> tuple[int, int]:
    """How many intervals like those of this estimate had the truth in them, and of how many."""
    from selftrain.training.expected import FROZEN_INTERVALS, TRAINED_INTERVALS

    return FROZEN_INTERVALS if estimate.frozen else TRAINED_INTERVALS


def no_estimate(labelled: Sequence[Labelled]) -> str:
    """Why nothing is expected of a run: too few labels to leave some out, or none that help."""
    from selftrain.data.split import fewest_labels
    from selftrain.training.estimate import FEWEST_LABELS

    label, number = fewest_labels(labelled)
    if number >= FEWEST_LABELS:
        return NO_ESTIMATE
    return (
        f"no expected accuracy: no folds, because `{label}` has {number} labels; "
        f"{FEWEST_LABELS} of each class are needed"
    )


# ── the ladder ───────────────────────────────────────────────────────────────────────────────


def ladder_lines(rungs: Sequence[Rung], chosen: str) -> Iterator[str]:
    """The rungs as a table of at most 80 columns, none where no rung has a number."""
    if all(rung.accuracy is None and rung.measured is None for rung in rungs):
        return
    columns = "{:21}{:>8}  {:13}{:13}{:>7}{:>10}"
    measured = any(rung.measured is not None for rung in rungs)
    head = ("ladder", "accuracy", "between", "how", "seconds", "measured" if measured else "")
    yield columns.format(*head).rstrip()
    for rung in rungs:
        interval = "–" if rung.low is None else f"{rung.low:.2f} - {rung.high:.2f}"
        numbers = (share(rung.accuracy), interval, rung.how, seconds(rung.seconds))
        mark = "* " if rung.name == chosen else "  "
        last = share(rung.measured) if measured else ""
        yield columns.format(mark + rung.name, *numbers, last).rstrip()


def verdict(rungs: Sequence[Rung], chosen: str) -> Iterator[str]:
    """Whether a simpler rung is as good as the chosen one, and how to keep it."""
    from selftrain.runs.keep import YARDSTICKS, rung_named
    from selftrain.training.ladder import TEACHER, TEACHER_LOOKED_BETTER, as_good

    found = [rung for rung in rungs if rung.name == chosen and rung.low is not None]
    if not found:
        return
    simpler = as_good(rungs, chosen)
    models = [rung for rung in simpler if rung.name not in YARDSTICKS]
    if models:
        best = max(models, key=lambda rung: rung.accuracy or 0)
        yield (
            f"{best.name} is probably as good: {share(best.accuracy)} after "
            f"{seconds(best.seconds)} s, {chosen} {share(found[0].accuracy)} after "
            f"{seconds(found[0].seconds)} s"
        )
        yield f"to keep it: the same command with --keep {rung_named(best.name)}"
    elif simpler:
        yield f"{simpler[-1].name} is probably as good: a simple model of yours may do"
    else:
        yield "no simpler model is expected to be as good"
    teachers = [rung.accuracy or 0 for rung in rungs if rung.name == TEACHER != chosen]
    if any(accuracy > (found[0].accuracy or 0) for accuracy in teachers):
        not_worse, runs = TEACHER_LOOKED_BETTER
        yield (
            f"the estimate favours the teacher; in {not_worse} of {runs} such runs of ours "
            "the last round was as good or better"
        )


def shown_rungs(
    rungs: Sequence[Rung], rounds: Sequence[Round] | Sequence[Record], chosen: str
) -> list[Rung]:
    """The rungs without those rounds of a head between the first and the last on its encoder."""
    from selftrain.training.ladder import name_of

    accepted = [round_ for round_ in rounds if round_.accepted]
    last = {round_.encoder: round_ for round_ in accepted}
    between = {
        name_of(round_)
        for round_ in accepted
        if round_.encoder_of is not None and last[round_.encoder] is not round_
    }
    return [rung for rung in rungs if rung.name not in between - {chosen}]


def share(value: float | None) -> str:
    """A share as people read it, or a dash."""
    return "–" if value is None else f"{value:.2f}"


def seconds(value: float) -> str:
    """A length of time, with a decimal where it is short.

    >>> seconds(0.31), seconds(41.2)
    ('0.3', '41')
    """
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def count(number: int) -> str:
    """A number of parameters in short: 0.4M, 12k.

    >>> count(22_713_216), count(12_345), count(770)
    ('22.7M', '12k', '770')
    """
    if number >= 100_000:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 10_000 else str(number)


@contextmanager
def logged_to(handler: logging.Handler) -> Iterator[None]:
    """Send the log of this package to a handler, within a ``with`` block."""
    log = logging.getLogger("selftrain")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
