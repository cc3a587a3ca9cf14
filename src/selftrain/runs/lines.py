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
    from selftrain.training.estimate import Estimate
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
    from selftrain.data.split import fewest_labels
    from selftrain.training.estimate import FEWEST_LABELS
    from selftrain.training.expected import INTERVALS_JUDGED, INTERVALS_RIGHT

    if estimate is None:
        label, fewest = fewest_labels(labelled)
        too_few = f"no expected accuracy: `{label}` has {fewest} labels, {FEWEST_LABELS} are needed"
        yield too_few if fewest < FEWEST_LABELS else NO_ESTIMATE
        return
    expected = estimate.of(final).expected
    yield (
        f"expected accuracy {expected.accuracy:.2f}, "
        f"between {expected.low:.2f} and {expected.high:.2f} (such intervals were right for "
        f"{INTERVALS_RIGHT} of {INTERVALS_JUDGED} models of other tasks)"
    )
    doubts = [doubt for doubt in estimate.doubts if doubt.probability >= DOUBTFUL]
    for doubt in doubts[:SHOWN_DOUBTS]:
        text = labelled[doubt.row - 1].example.text
        yield (
            f'check a label: "{shorten(text, 60, placeholder=" …")}" is labelled `{doubt.label}`; '
            f"a model that did not see it says `{doubt.answer}`, {doubt.probability:.2f}"
        )


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
