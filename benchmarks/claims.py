"""The paper's claims in words, as far as cells can decide them: gains, pair by pair.

    python benchmarks/claims.py benchmarks/paper/cells.jsonl [--backbone minilm]

With ``--before OTHER.jsonl``: how far the same rounds of an earlier file are from these.

A pair is a task and a seed. p is that of a sign-flip test of these pairs alone, not corrected for
the other lines: whoever reads several of them should ask for more than 0.05.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean

import lines

from selftrain.experiments import results
from selftrain.experiments.names import (
    PEL,
    ablation_of,
    base_of,
    is_main,
    ordered,
    shown,
    weighing_of,
)
from selftrain.experiments.results import Result
from selftrain.experiments.stats import sign_flip
from selftrain.experiments.tables.compared import claims
from selftrain.method.upet import ALPHAS, Weighing

UPET = {"head": "upet-head-adapter", "prompt": "upet-prompt-adapter"}
PLAIN = "head-st"
TEACHER = 0
OF_ALPHA: dict[str, tuple[tuple[float | str, ...], tuple[float | str, ...]]] = {
    "alpha 0.2 and 0.4, over all others": (ALPHAS[1:3], (ALPHAS[0], *ALPHAS[3:])),
    "alpha 0.4, over 0": ((0.4,), (0.0,)),
    "alpha 0.4, over 1": ((0.4,), (1.0,)),
    "top k, over drawn by weight": (("topk",), ("sample",)),
    "raw weights, over ranks": (("raw",), ("rank",)),
}
"""Table 4: the mean of the entries with one of these, over the mean of those with one of those."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=Path)
    parser.add_argument("--before", type=Path, help="cells of the same methods, computed earlier")
    parser.add_argument("--backbone", help="cells of this one alone")
    options = parser.parse_args()
    cells = [c for c in on_test(options.cells) if options.backbone in (None, c.backbone)]
    if options.before is not None:
        again(cells, on_test(options.before))
        return
    head = ("what, over what", "pairs", "points", "of these above 0", "p")
    lines.show_table(head, [(name, *summary(gains)) for name, gains in compared(cells) if gains])


def on_test(path: Path) -> list[Result]:
    """The cells that are compared."""
    return [cell for cell in results.read(path) if (cell.scored_on, cell.shots) == ("test", 16)]


def again(cells: list[Result], before: list[Result]) -> None:
    """Round by round, what the same method, task, seed and backbone scored twice."""
    earlier = {(c.method, c.task, c.seed, c.backbone): c for c in before if c.by_round}
    both = [
        (earlier[key], cell)
        for cell in cells
        if cell.by_round and (key := (cell.method, cell.task, cell.seed, cell.backbone)) in earlier
    ]
    rows = []
    for number, name in enumerate(("teacher", "round 1")):
        moved = [score(now, number) - score(then, number) for then, now in both]
        size = f"{100 * fmean(map(abs, moved)):.1f}", f"{100 * max(map(abs, moved)):.1f}"
        rows.append((name, *summary(moved), *size))
    head = ("computed again", "cells", "points", "of these above 0", "p", "distance", "largest")
    lines.show_table(head, rows)


def compared(cells: list[Result]) -> Iterator[tuple[str, list[float]]]:
    """Each comparison by name, and its gains."""
    for backbone in sorted({cell.backbone for cell in cells}):
        by_reader = {
            reader: {
                (cell.task, cell.seed): cell
                for cell in cells
                if (cell.method, cell.backbone) == (method, backbone)
            }
            for reader, method in UPET.items()
        }
        for reader, mine in by_reader.items():
            what = f"{reader} on `{backbone}`"
            yield f"{what}: the kept round, over the teacher", ends(mine.values(), TEACHER)
            for before, after in ((0, 1), (1, 2), (2, 3)):
                name = f"round {before}" if before else "the teacher"
                yield f"{what}: round {after}, over {name}", steps(mine.values(), before, after)
        head, prompt = by_reader["head"], by_reader["prompt"]
        yield (
            f"`{backbone}`: the prompt's teacher, over the head's",
            [
                score(prompt[pair], TEACHER) - score(head[pair], TEACHER)
                for pair in sorted(head.keys() & prompt.keys())
            ],
        )
        here = [cell for cell in cells if cell.backbone == backbone]
        yield from between(here, backbone)
        yield from by_module(here, backbone)
        yield from by_alpha(here, backbone)


def between(cells: list[Result], backbone: str) -> Iterator[tuple[str, list[float]]]:
    """Two methods by their kept rounds: what the paper says of them, and UPET without a part."""
    by_method = {
        method: {(cell.task, cell.seed): cell.accuracy for cell in cells if cell.method == method}
        for method in ordered(cell.method for cell in cells)
    }
    parts = [(base_of(method), method) for method in by_method if ablation_of(method)]
    for method, other in (*claims(filter(is_main, by_method)), *parts):
        mine, theirs = by_method.get(method, {}), by_method.get(other, {})
        both = sorted(mine.keys() & theirs.keys())
        name = f"`{backbone}`: {shown(method)}, over {shown(other)}"
        yield name, [mine[pair] - theirs[pair] for pair in both]


def by_module(cells: list[Result], backbone: str) -> Iterator[tuple[str, list[float]]]:
    """Table 2: all parameters over an adapter, in the teacher and in the student."""
    by_pair: dict[tuple[str, int], dict[str, Result]] = {}
    for cell in cells:
        by_pair.setdefault((cell.task, cell.seed), {})[cell.method] = cell
    four = list(PEL["head"].values())
    teacher_gains, student_gains, gains_by_teacher, gains_over_plain = [], [], [], []
    for _, by_method in sorted(by_pair.items()):
        if not {*four, PLAIN} <= {*by_method}:
            continue
        all_all, all_few, few_all, few_few = (by_method[name].accuracy for name in four)
        full, small = (score(by_method[name], TEACHER) for name in (four[0], four[2]))
        teacher_gains.append(full - small)
        student_gains.append((all_all - all_few + few_all - few_few) / 2)
        gains_by_teacher.append((all_all - few_all + all_few - few_few) / 2)
        gains_over_plain.append(all_all - by_method[PLAIN].accuracy)
    of = "all parameters, over an adapter"
    yield f"`{backbone}`: the teacher itself: {of}", teacher_gains
    yield f"`{backbone}`: students: {of} in the student", student_gains
    yield f"`{backbone}`: students: {of} in the teacher", gains_by_teacher
    yield f"`{backbone}`: {shown(four[0])}, over {shown(PLAIN)}", gains_over_plain


def by_alpha(cells: list[Result], backbone: str) -> Iterator[tuple[str, list[float]]]:
    """Means over entries of Table 4, for each task and seed that has all of its entries."""
    by_pair: dict[tuple[str, int], dict[Weighing, float]] = {}
    for cell in cells:
        if weighing := weighing_of(cell.method):
            by_pair.setdefault((cell.task, cell.seed), {})[weighing] = cell.accuracy
    largest = max(map(len, by_pair.values()), default=0)
    complete = [entries for _, entries in sorted(by_pair.items()) if len(entries) == largest]
    for name, (these, those) in OF_ALPHA.items():
        gains = [mean_of(entries, these) - mean_of(entries, those) for entries in complete]
        yield f"`{backbone}`: {name}", gains


def mean_of(entries: dict[Weighing, float], values: Iterable[float | str]) -> float:
    """Of the entries whose alpha, scale or draw is one of these."""
    return fmean(
        accuracy
        for entry, accuracy in entries.items()
        if {*values} & {entry.alpha, entry.scale, entry.how}
    )


def ends(cells: Iterable[Result], before: int) -> list[float]:
    """What the kept round is above an earlier one."""
    return [cell.accuracy - score(cell, before) for cell in cells]


def steps(cells: Iterable[Result], before: int, after: int) -> list[float]:
    """What one round is above another, where a run has both."""
    return [
        score(cell, after) - score(cell, before)
        for cell in cells
        if len(cell.by_round) > after and cell.by_round[after] is not None
    ]


def score(cell: Result, number: int) -> float:
    found = cell.by_round[number]
    assert found is not None
    return found


def summary(gains: list[float]) -> tuple[int, str, int, str]:
    """How many, their mean in points, how many are gains, and p."""
    above = sum(gain > 0 for gain in gains)
    return len(gains), f"{100 * fmean(gains):+.1f}", above, f"{sign_flip(gains):.3f}"


if __name__ == "__main__":
    main()
