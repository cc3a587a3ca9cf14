"""What a person reads: one line a round, and the closing table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from selftrain.metrics import spread

if TYPE_CHECKING:
    from rich.table import Table

    from selftrain.loop import Round


def round_line(number: int, rounds: int, figures: Mapping[str, Any], why: str = "") -> str:
    """One line for one round, with its numbers.

    `round 2/3   picked 410 of 1024   confidence 0.94   certainty 0.98   …   41 s`
    """
    parts = [f"round {number}/{rounds}" if number else "teacher  "]
    if "picked" in figures:
        parts += [
            f"picked {figures['picked']} of {figures['pool']}",
            f"confidence {figures['confidence']:.2f}",
            f"certainty {figures['certainty']:.2f}",
            f"changed {figures['changed']:.0%}" if "changed" in figures else "",
        ]
    for fitted in figures.get("fit", [])[-1:]:
        parts.append(f"loss {fitted['loss']:.3f}")
        if fitted["contrast"] is not None:
            parts.append(f"contrast {fitted['contrast']:.2f}")
        parts.append(f"{count(fitted['tuned'])} of {count(fitted['total'])} trained")
    parts += [f"{figures['seconds']:.0f} s", why]
    return "   ".join(part for part in parts if part)


def line_of(round_: Round, rounds: int) -> str:
    """The line of a round as the loop yields it."""
    return round_line(round_.number, rounds, round_.figures, round_.why)


def count(number: int) -> str:
    """A number of parameters as people say it: 0.4M, 12k.

    >>> count(22_713_216), count(12_345), count(770)
    ('22.7M', '12k', '770')
    """
    if number >= 100_000:
        return f"{number / 1e6:.1f}M"
    return f"{number / 1e3:.0f}k" if number >= 10_000 else str(number)


def closing_table(title: str, scores: Mapping[str, Sequence[float]], seeds: Sequence[int]) -> Table:
    """Accuracy in percent: a row for each system, a column for each seed, then mean ± sd."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("system")
    for seed in seeds:
        table.add_column(f"seed {seed}", justify="right")
    if len(seeds) > 1:
        table.add_column("mean ± sd", justify="right")
    for system, values in scores.items():
        percents = [100 * value for value in values]
        cells = [f"{value:.1f}" for value in percents]
        table.add_row(system, *cells, *([str(spread(percents))] if len(seeds) > 1 else []))
    return table


def markdown(scores: Mapping[str, Sequence[float]], seeds: Sequence[int]) -> str:
    """The closing table as Markdown."""
    head = ["system", *(f"seed {seed}" for seed in seeds), "mean ± sd"]
    rows = [head, ["---"] * len(head)]
    for system, values in scores.items():
        percents = [100 * value for value in values]
        rows.append([system, *(f"{value:.1f}" for value in percents), str(spread(percents))])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
