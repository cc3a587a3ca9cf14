"""The comparisons that were named before the cells of ``paper/small`` were computed.

    python benchmarks/named_claims.py benchmarks/paper/small

A pair is a task and a seed that has all cells of a comparison. p is that of a sign-flip test,
corrected (Holm) for all comparisons of the list, computed yet or not: those without a pair count
too. What they are, and when they were named: benchmarks/paper/README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import lines

from selftrain.experiments import results
from selftrain.experiments.results import Result, Shots
from selftrain.experiments.stats import holm, sign_flip
from selftrain.method.upet import ABLATIONS

HEADS = tuple(f"upet-head-{module}" for module in ("ptuning", "prefix", "adapter"))
PROMPTS = tuple(f"upet-prompt-{module}" for module in ("ptuning", "prefix", "adapter"))
ADAPTERS = ("upet-head-adapter", "upet-prompt-adapter")
TABLE4 = "upet-prompt-ptuning-alpha-{}-raw-topk"
ONE, FIVE = "one_round.jsonl", "five_rounds.jsonl"


@dataclass(frozen=True, slots=True)
class Side:
    """Whose mean accuracy is compared."""

    methods: tuple[str, ...]
    shots: Shots = 16
    round: int | None = None
    """A round of a run of five; None: the end of a run of one."""

    def scores(self, cells: dict[str, list[Result]]) -> dict[tuple[str, int], float]:
        """By task and seed, the mean in points; only where no cell is missing."""
        found: dict[tuple[str, int], list[float]] = {}
        for cell in cells[ONE if self.round is None else FIVE]:
            if cell.method in self.methods and cell.shots == self.shots:
                score = cell.accuracy if self.round is None else reached(cell, self.round)
                found.setdefault((cell.task, cell.seed), []).append(100 * score)
        complete = len(self.methods)
        return {pair: fmean(each) for pair, each in found.items() if len(each) == complete}


@dataclass(frozen=True, slots=True)
class Named:
    """A claim of the paper as a comparison of two sides."""

    claim: str
    better: Side
    worse: Side

    def gains(self, cells: dict[str, list[Result]]) -> list[float]:
        """In points, of each pair that has both sides."""
        one, other = self.better.scores(cells), self.worse.scores(cells)
        return [one[pair] - other[pair] for pair in sorted(one.keys() & other.keys())]


def reached(cell: Result, number: int) -> float:
    """The accuracy of the last accepted round up to this one: a run may converge before it."""
    rounds = range(min(number + 1, len(cell.by_round)))
    score = cell.by_round[[n for n in rounds if n not in cell.rejected][-1]]
    assert score is not None
    return score


def comparisons() -> Iterator[Named]:
    """In the order of the page that names them."""
    for reader in ("head", "prompt"):
        yield named(f"A: self-training beats fine-tuning, {reader}", f"{reader}-st", f"{reader}-ft")
    for ours, others in (
        ("upet-head-adapter", ("head-st", "ust", "cest")),
        ("upet-prompt-adapter", ("prompt-st", "list")),
    ):
        for other in others:
            yield named(f"B: {ours} beats {other}", ours, other)
    yield Named("C: prompts beat heads", Side(PROMPTS), Side(HEADS))
    six = (*HEADS, *PROMPTS)
    yield Named("D: gains until round 4", Side(six, round=4), Side(six, round=1))
    for part in ABLATIONS:
        whole = "upet-prompt-ptuning"
        yield named(f"E: it loses {part.title}", whole, f"{whole}-wo-{part.part}")
    best, rest = (
        (TABLE4.format(a) for a in each) for each in (("0.2", "0.4"), ["0", "0.6", "0.8", "1"])
    )
    yield Named("F: alpha is best at 0.2 to 0.4", Side(tuple(best)), Side(tuple(rest)))
    more = ("list", "upet-prompt-adapter")
    yield Named("G: more labels help, 64 over 16", Side(more, shots=64), Side(more))
    small_teacher = tuple(f"{name}-pel-teacher" for name in ADAPTERS)
    yield Named("H: a teacher with a module costs score", Side(ADAPTERS), Side(small_teacher))
    full = tuple(name.replace("adapter", "full") for name in ADAPTERS)
    yield Named("I: a student with a module costs score", Side(full), Side(ADAPTERS))


def named(claim: str, better: str, worse: str) -> Named:
    """A comparison of two methods."""
    return Named(claim, Side((better,)), Side((worse,)))


def table(cells: dict[str, list[Result]]) -> list[Sequence[object]]:
    """A row for each comparison: pairs, points, how many pairs agree, p, p corrected."""
    every = [(each.claim, each.gains(cells)) for each in comparisons()]
    p_values = [sign_flip(gains) if gains else 1.0 for _, gains in every]
    rows: list[Sequence[object]] = []
    for (claim, gains), p, corrected in zip(every, p_values, holm(p_values), strict=True):
        if gains:
            above = sum(gain > 0 for gain in gains)
            numbers = (f"{fmean(gains):+.1f}", above, f"{p:.3f}", f"{corrected:.2f}")
            rows.append((claim, len(gains), *numbers))
        else:
            rows.append((claim, 0, "–", "–", "–", "–"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    files = {name: folder / name for name in (ONE, FIVE)}
    cells = {name: results.read(path) if path.exists() else [] for name, path in files.items()}
    head = ("claim", "pairs", "points", "of these above 0", "p", "p, Holm")
    lines.show_table(head, table(cells))


if __name__ == "__main__":
    main()
