"""The tables and drawings of a page, as pieces of HTML, from its facts alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from selftrain import html
from selftrain.data.rows import Example
from selftrain.html import percent
from selftrain.report import drawing
from selftrain.report.facts import Facts
from selftrain.runs.lines import seconds, share

MOST_ROWS = 20
"""Of a table by class: of more the largest are shown, with a count of the others."""
MATRIX = 8
"""Up to so many classes the confusions are a matrix."""


@dataclass(frozen=True, slots=True)
class Words:
    """The pieces that the template puts together; an empty one is left out."""

    scale: Markup
    small_ladder: Markup
    ladder: Markup
    rounds: Markup
    rounds_chart: Markup
    pool_reliability: Markup
    gold_reliability: Markup
    thresholds: Markup
    classes: Markup
    picked: Markup
    confidence: Markup
    certainty: Markup
    confusion: Markup
    doubts: Markup
    settings: Markup
    rerun: str


def words_of(facts: Facts, gold: Mapping[str, Example]) -> Words:
    """The pieces of a page; ``gold`` has the texts of labelled rows that may be shown."""
    expected = facts.expected
    lesson = facts.lesson
    empty = Markup("")
    return Words(
        drawing.scale(expected.accuracy, expected.low, expected.high) if expected else empty,
        ladder(facts, small=True),
        ladder(facts),
        rounds(facts),
        drawing.rounds(facts.rounds),
        drawing.reliability(facts.pool_reliability, "confidence on the pool", "believed right"),
        drawing.reliability(facts.gold_reliability, "confidence on your labels", "right"),
        thresholds(facts),
        classes(facts),
        picked(facts),
        drawing.histogram(lesson.confidence, "rows by confidence") if lesson else empty,
        drawing.histogram(lesson.certainty, "rows by certainty") if lesson else empty,
        confusion(facts),
        doubts(facts, gold),
        settings(facts),
        rerun(facts),
    )


def folded(head: Sequence[object], rows: Sequence[Sequence[object]], what: str) -> Markup:
    """A table that scrolls on a small screen; of many rows the first, with a count of the rest."""
    shown = html.table(head, islice(rows, MOST_ROWS))
    more = len(rows) - MOST_ROWS
    note = Markup('<p class="small">{} more {} in report.json</p>').format(f"{more:,}", what)
    scroll = Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>')
    return html.joined([scroll.format(what, shown), *([note] if more > 0 else [])])


def ladder(facts: Facts, *, small: bool = False) -> Markup:
    """The simple models beside those of the run; the one that answers is marked."""
    rungs = [
        each for each in facts.ladder if each.accuracy is not None or each.measured is not None
    ]
    if not rungs:
        return Markup("")
    measured = any(rung.measured is not None for rung in rungs)
    rows = []
    for rung in rungs:
        chosen = rung.name == facts.model.name
        shown = html.shortened(rung.name, html.LONGEST_LABEL)
        name = Markup('<b class="chosen">{}\u00a0★</b>').format(shown) if chosen else shown
        drawn = html.interval(rung.accuracy, rung.low, rung.high, chosen=chosen)
        if small:
            rows.append([name, drawn, percent(rung.accuracy)])
            continue
        between = "–" if rung.low is None else f"{share(rung.low)}\u00a0to\u00a0{share(rung.high)}"
        cells = [name, drawn, share(rung.accuracy), between, rung.how, seconds(rung.seconds)]
        rows.append([*cells, share(rung.measured)] if measured else cells)
    if small:
        return html.table(["model", "0 to 100", "right"], rows)
    head = ["model", "0 to 1", "accuracy", "between", "how it is known", "seconds"]
    return folded([*head, "measured"] if measured else head, rows, "models")


def rounds(facts: Facts) -> Markup:
    """A line for each round, and what the guard decided."""
    rows = [
        [
            f"round {each.number}" if each.number else "teacher",
            "–" if each.picked is None else f"{each.picked:,} of {each.pool or 0:,}",
            share(each.confidence),
            share(each.certainty),
            percent(each.changed),
            share(each.expected),
            "–" if each.seconds is None else seconds(each.seconds),
            Markup('<span class="{}">{}</span>').format(*_decision(each.accepted, each.why)),
        ]
        for each in facts.rounds
    ]
    head = ["round", "learnt from", "confidence", "certainty", "answers changed", "expected"]
    return folded([*head, "seconds", "guard"], rows, "rounds")


def _decision(accepted: bool, why: str) -> tuple[str, str]:
    if not accepted:
        return "bad", f"refused: {html.shortened(why)}"
    return "good", f"accepted; {html.shortened(why)}" if why else "accepted"


def thresholds(facts: Facts) -> Markup:
    """How many texts get a label above each probability, and how right these should be."""
    rows = [
        ["all" if not each.above else f"{each.above:.2f}", percent(each.share), percent(each.right)]
        for each in facts.thresholds
    ]
    head = ["abstain below", "texts with a label", "of these right"]
    return html.table(head, rows) if rows else Markup("")


def classes(facts: Facts) -> Markup:
    """What you labelled, what was picked, and what the pool probably has, for each class."""
    order = sorted(facts.classes, key=lambda each: -(each.pool_by_answers or each.labels or 0))
    rows = [
        [
            html.label(each.label),
            "–" if each.labels is None else each.labels,
            percent(each.share_of_labels),
            percent(each.share_of_picked),
            percent(each.pool_by_answers),
            percent(each.pool_by_folds),
            html.bar(each.pool_by_answers) if each.pool_by_answers is not None else "",
        ]
        for each in order
    ]
    head = ["class", "labels", "of labels", "of rows learnt from", "of pool, by model"]
    return folded([*head, "of pool, by check models", "of pool"], rows, "classes")


def picked(facts: Facts) -> Markup:
    """How many rows of each class every round learnt from."""
    learnt = [each for each in facts.rounds if each.picked_by_class]
    if not learnt:
        return Markup("")
    shown = learnt if len(learnt) <= MOST_ROWS else learnt[-MOST_ROWS:]
    totals = {
        each.label: sum(round_.picked_by_class.get(each.label, 0) for round_ in learnt)
        for each in facts.classes
    }
    rows = [
        [
            html.label(label),
            *(round_.picked_by_class.get(label, 0) for round_ in shown),
            html.sparkline([round_.picked_by_class.get(label, 0) for round_ in shown], "by round"),
        ]
        for label in sorted(totals, key=lambda name: -totals[name])
    ]
    head = ["class", *(f"r{each.number}" for each in shown), "trend"]
    return folded(head, rows, "classes by round")


def confusion(facts: Facts) -> Markup:
    """Which labels the check models take for which; of many classes the most frequent errors."""
    if not facts.confusions:
        return Markup("")
    if len(facts.classes) <= MATRIX:
        return _matrix(facts)
    wrong = [each for each in facts.confusions if each.label != each.answer]
    rows = [[html.label(each.label), html.label(each.answer), each.rows] for each in wrong]
    return folded(["your label", "taken for", "rows"], rows, "confusions")


def _matrix(facts: Facts) -> Markup:
    counts = {(each.label, each.answer): each.rows for each in facts.confusions}
    labels = [each.label for each in facts.classes]
    rows = []
    for label in labels:
        total = sum(counts.get((label, answer), 0) for answer in labels)
        cells = [
            Markup('<span class="cell {}">{}</span>').format(
                _heat(counts.get((label, answer), 0), total, right=label == answer),
                counts.get((label, answer), 0),
            )
            for answer in labels
        ]
        rows.append([html.label(label), *cells])
    head = [Markup("your label ↓ taken for →"), *map(html.label, labels)]
    return Markup('<div class="narrow">{}</div>').format(folded(head, rows, "confusions"))


def _heat(count: int, total: int, *, right: bool) -> str:
    level = 0 if not count else min(4, 1 + int(3.99 * count / total))
    return f"{'right' if right else 'wrong'}{level}"


def doubts(facts: Facts, gold: Mapping[str, Example]) -> Markup:
    """The labels that look wrong, the most doubtful first."""
    if not facts.doubts:
        return Markup("")
    rows: list[list[Any]] = []
    for doubt in facts.doubts:
        row = [doubt.row, html.label(doubt.label), html.label(doubt.answer)]
        example = gold.get(doubt.uid)
        both = () if example is None else filter(None, (example.text, example.pair))
        text = Markup(" <b>·</b> ").join(map(_text, both))
        rows.append([*row, share(doubt.probability), *([text] if gold else [])])
    head = ["labelled row", "your label", "a model without it says", "believed"]
    return folded([*head, "text"] if gold else head, rows, "doubts")


def _text(text: str) -> Markup:
    return Markup('<bdi class="text">{}</bdi>').format(html.shortened(text))


def settings(facts: Facts) -> Markup:
    """Every entry of the method, and what it ran on."""
    rows = [[place, str(value)] for place, value in _flat(facts.settings)]
    return html.table(["entry", "value"], rows)


def _flat(value: Any, place: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        for at, inner in enumerate(value):
            yield from _flat(inner, f"{place}.{at}")
    else:
        yield place, value


def rerun(facts: Facts) -> str:
    """The command that trains the same run again, from the same files."""
    run = facts.run
    return (
        f"selftrain fit labelled.csv --unlabelled pool.csv -o new-run --method {run.method} "
        f"--backbone {run.backbone} --seed {run.seed}"
    )
