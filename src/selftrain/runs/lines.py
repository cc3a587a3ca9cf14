"""What a person reads: one line a round, and the closing table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from selftrain.training.metrics import spread

if TYPE_CHECKING:
    from rich.table import Table

    from selftrain.training.loop import Round

Scores = Mapping[str, Mapping[int, float | None]]
"""System → seed → accuracy, a share from 0 to 1; None or left out where a run has no such round."""

MAJORITY = "majority"
MISSING = "–"


def round_line(number: int, rounds: int, figures: Mapping[str, Any], why: str = "") -> str:
    """One line for one round, with its numbers: those it has, for a run folder may be anyone's.

    `round 2/3   picked 410 of 1024   confidence 0.94   certainty 0.98   …   41 s`
    """
    fits = figures.get("fit")
    fitted = fits[-1] if isinstance(fits, list) and fits else {}
    parts = [
        f"round {number}/{rounds}" if number else "teacher  ",
        told("picked {} of {}", figures, "picked", "pool"),
        told("confidence {:.2f}", figures, "confidence"),
        told("certainty {:.2f}", figures, "certainty"),
        told("changed {:.0%}", figures, "changed"),
        told("masked-word loss {:.2f}", figures, "adapted"),
        told("loss {:.3f}", fitted, "loss"),
        told("contrast {:.2f}", fitted, "contrast"),
        told("{} of {} trained", fitted, "tuned", "total", shown=count),
        told("dev {:.1f}", figures, "dev", shown=lambda share: 100 * share),
        told("{:.0f} s", figures, "seconds"),
        why,
    ]
    return "   ".join(part for part in parts if part)


def told(
    form: str,
    figures: Mapping[str, Any],
    *names: str,
    shown: Callable[[Any], object] = lambda number: number,
) -> str:
    """The form with these figures filled in; nothing where one of them is missing or no number.

    >>> told("picked {} of {}", {"picked": 3, "pool": 9}, "picked", "pool")
    'picked 3 of 9'
    """
    values = [figures.get(name) for name in names]
    if not all(isinstance(value, int | float) for value in values):
        return ""
    return form.format(*map(shown, values))


def line_of(round_: Round, rounds: int, *, dev: float | None = None) -> str:
    """The line of a round as the loop yields it, with its accuracy on dev rows if there are any."""
    figures = round_.figures if dev is None else {**round_.figures, "dev": dev}
    return round_line(round_.number, rounds, figures, round_.why)


def count(number: int) -> str:
    """A number of parameters as people say it: 0.4M, 12k.

    >>> count(22_713_216), count(12_345), count(770)
    ('22.7M', '12k', '770')
    """
    if number >= 100_000:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 10_000 else str(number)


# ── the closing table ────────────────────────────────────────────────────────────────────────


def closing_rows(scores: Scores, seeds: Sequence[int]) -> list[list[str]]:
    """The closing table as text, its head first.

    A run may end early, so a system can lack a seed: its place stays empty, and the mean says over
    how many seeds it was taken.
    """
    several = ["mean ± sd"] if len(seeds) > 1 else []
    rows = [["system", *(f"seed {seed}" for seed in seeds), *several]]
    for system, by_seed in scores.items():
        values = [by_seed.get(seed) for seed in seeds]
        shown = [MISSING if value is None else f"{100 * value:.1f}" for value in values]
        summary = [mean_of(values)] if several else []
        rows.append([system + learnt(system, scores, seeds), *shown, *summary])
    return rows


def mean_of(values: Sequence[float | None]) -> str:
    """Mean ± sd in percent, of how many seeds where some are missing.

    >>> mean_of([0.80, 0.82]), mean_of([0.80, None, 0.82]), mean_of([None, None])
    ('81.0 ± 1.4', '81.0 ± 1.4 (2 of 3)', '–')
    """
    there = [100 * value for value in values if value is not None]
    if not there:
        return MISSING
    some = f" ({len(there)} of {len(values)})" if len(there) < len(values) else ""
    return f"{spread(there)}{some}"


def learnt(system: str, scores: Scores, seeds: Sequence[int]) -> str:
    """A mark for what is not above the majority class: such a row supports no claim."""
    pairs = [
        (mine, base)
        for mine, base in ((scores[system].get(s), scores.get(MAJORITY, {}).get(s)) for s in seeds)
        if mine is not None and base is not None
    ]
    if system == MAJORITY or not pairs or fmean(a - b for a, b in pairs) > 0:
        return ""
    return " (not learnt)"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    figures: bool = False,
) -> Table:
    """A table for a terminal; where it holds figures, all but its first column stand right."""
    from rich.table import Table

    made = Table(title=title, title_justify="left")
    for place, name in enumerate(head):
        made.add_column(name, justify="right" if figures and place else "left")
    for row in rows:
        made.add_row(*row)
    return made
