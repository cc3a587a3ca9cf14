"""What a person should worry about, and what to do next, in plain words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from selftrain.errors import MOST_SHARES, in_percent, listing
from selftrain.method.recipes import DEFAULT
from selftrain.report.facts import Facts
from selftrain.runs.keep import YARDSTICKS, rung_named
from selftrain.runs.lines import DOUBTFUL
from selftrain.training.ladder import MAJORITY, as_good

FEW_LABELS = 8
"""Of each class: with fewer the estimate is rough."""
SKEW = 0.15
"""How far the class shares of the pool may be from those of the labels."""
LITTLE_OVER_MAJORITY = 0.1
MEASURED_WITH = ("minilm",)
"""The encoder that the intervals were measured with."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do, and the command for it."""

    why: str
    command: str = ""


def worries(facts: Facts) -> list[str]:
    """What to worry about, the gravest first; empty where nothing stands out."""
    return [*facts.caveats, *_weak(facts), *_labels(facts), *_shares(facts), *_rounds(facts)]


def _weak(facts: Facts) -> Iterator[str]:
    if facts.no_estimate:
        yield f"{facts.no_estimate}. Measure it on texts that you label for that."
        return
    majority = [rung.accuracy for rung in facts.ladder if rung.name == MAJORITY]
    least = majority[0] if majority and majority[0] is not None else 0.0
    if facts.expected and facts.expected.accuracy < least + LITTLE_OVER_MAJORITY:
        yield (
            f"The model is expected to be hardly better than always giving the most frequent "
            f"class ({least:.2f})."
        )
    measured = facts.run.method == DEFAULT and facts.run.backbone in MEASURED_WITH
    frozen = facts.run.method == "frozen" or facts.model.rung in ("frozen", "frozen-self-trained")
    if not measured and not frozen:
        yield (
            "How often the interval is right was measured with the default method and encoder; "
            "this run has others, so take the interval as a hint."
        )


def _labels(facts: Facts) -> Iterator[str]:
    doubts = [doubt for doubt in facts.doubts if doubt.probability >= DOUBTFUL]
    if doubts:
        rows = ", ".join(str(doubt.row) for doubt in doubts[:5])
        more = f" and {len(doubts) - 5} more" if len(doubts) > 5 else ""
        one = len(doubts) == 1
        yield (
            f"{len(doubts)} of your labels {'looks' if one else 'look'} wrong: "
            f"labelled row{'' if one else 's'} {rows}{more}. See “Where does it err?”."
        )
    few = [each for each in facts.classes if each.labels is not None and each.labels < FEW_LABELS]
    if few:
        names = listing([each.label for each in few], max_names=3)
        yield (
            f"Few labels: {names} {'has' if len(few) == 1 else 'have'} fewer than {FEW_LABELS}. "
            "Our figures are for 16 of each class."
        )


def _shares(facts: Facts) -> Iterator[str]:
    shares = [(each.share_of_labels, each.pool_by_answers) for each in facts.classes]
    known = [(a, b) for a, b in shares if a is not None and b is not None]
    if len(known) < len(shares):
        return
    if sum(abs(a - b) for a, b in known) / 2 <= SKEW:
        return
    if len(known) <= MOST_SHARES:
        of_labels, of_pool = (in_percent(each) for each in zip(*known, strict=True))
        differ = f"Your labels have the class shares {of_labels}, the pool probably {of_pool}"
    else:
        differ = "The classes have other shares in the pool than among your labels"
    yield (
        f"{differ}. The model learns the shares of the pool: if new texts have others, give them "
        "with --prior."
    )


def _rounds(facts: Facts) -> Iterator[str]:
    students = [each for each in facts.rounds if each.number]
    refused = [each for each in students if not each.accepted]
    if refused and len(refused) == len(students):
        yield (
            "The guard refused every round: the model is the teacher, which learnt from your "
            "labels alone. Other unlabelled texts, or more labels, may help."
        )
    elif refused:
        numbers = ", ".join(str(each.number) for each in refused)
        yield (
            f"The guard refused {len(refused)} of {len(students)} rounds ({numbers}), because "
            "they looked worse. The model does not contain them."
        )


# ── what to do next ──────────────────────────────────────────────────────────────────────────


def steps(facts: Facts, *, texts: bool) -> list[Step]:
    """What to do next, each with the command; commands name the folder as it is called."""
    return [*_steps(facts, texts=texts)]


def _steps(facts: Facts, *, texts: bool) -> Iterator[Step]:
    run = shlex.quote(facts.run.name)
    if not facts.run.finished:
        yield Step("Finish the run: give the `selftrain fit` that started it again.")
    simpler = as_good(facts.ladder, facts.model.name) if _has_rung(facts) else []
    models = [rung for rung in simpler if rung.name not in YARDSTICKS]
    if models and facts.model.rung is None:
        best = max(models, key=lambda rung: rung.accuracy or 0)
        yield Step(
            f"A simpler model, {best.name}, is probably as good. To let it answer:",
            f"selftrain fit labelled.csv --unlabelled pool.csv -o {run} "
            f"--keep {rung_named(best.name)}",
        )
    yield Step(
        "Check the labels that it gave itself, and label what helps most:",
        f"selftrain review {run} --unlabelled pool.csv",
    )
    yield Step("Label new texts:", f"selftrain predict {run} new.csv -o answers.csv")
    yield Step(
        "Measure it on texts that you labelled and it never saw:",
        f"selftrain evaluate {run} test.csv",
    )
    if not texts:
        yield Step(
            "See this page with your texts and a map of them:",
            f"selftrain report {run} --unlabelled pool.csv --labelled labelled.csv",
        )


def _has_rung(facts: Facts) -> bool:
    return any(rung.name == facts.model.name for rung in facts.ladder)
