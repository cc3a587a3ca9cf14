"""Every number of a report as one value: the page is drawn from it, and report.json is it.

Nothing here has a text, a path or a time of day: the same run gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from selftrain.data.rows import Labelled
from selftrain.report import lessons, trust
from selftrain.runs.estimates import opinions_of
from selftrain.runs.lines import NO_ESTIMATE, intervals_of, no_estimate, shown_rungs, verdict
from selftrain.runs.read import caveats, records
from selftrain.runs.saved import SavedRun
from selftrain.training.estimate import Opinion
from selftrain.training.label_check import Doubt
from selftrain.training.ladder import Rung

FORMAT = 1
UNFINISHED = (
    "no expected accuracy yet: the `selftrain fit` that started the run writes it at its end"
)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Which run it is."""

    name: str
    """The name of its folder."""
    task: str
    pair: bool
    classes: int
    method: str
    backbone: str
    seed: int
    created: str
    rounds: int
    """How many rounds are finished, without the teacher."""
    of_rounds: int
    """How many the method asks for."""
    finished: bool


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Which model answers."""

    name: str
    number: int
    rung: str | None
    """The rung that a person chose; None where the last accepted round answers."""
    accepted: bool


@dataclass(frozen=True, slots=True)
class ExpectedFacts:
    """How good the model that answers probably is."""

    accuracy: float
    low: float
    high: float
    intervals_right: int
    """How many such intervals had the truth in them …"""
    intervals: int
    """… of this many, for models of other tasks."""
    belief: float
    """The mean belief of the check models in its answers."""
    agreement: float
    """The share of its answers that they give too."""
    hits: float
    """The share of your labels that check models which did not see them answer right."""
    temperature: float


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """One class: what you labelled, what the pool probably has, and how often it is found."""

    label: str
    labels: int | None
    """Your labels of it; None where the run does not say."""
    share_of_labels: float | None
    share_of_picked: float | None
    """Among the rows that the last round learnt from."""
    pool_by_answers: float | None
    """Its share of the pool, by the answers of the model."""
    pool_by_folds: float | None
    """The same by the check models."""
    found: float | None
    """The share of its labels that check models answer right without having seen them."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """How many labelled rows of one class the check models take for a class."""

    label: str
    answer: str
    rows: int


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a report shows."""

    format: int
    selftrain: str
    """The version that wrote it."""
    run: RunFacts
    model: ModelFacts
    expected: ExpectedFacts | None
    no_estimate: str
    """Why nothing is expected; empty where something is."""
    ladder: tuple[Rung, ...]
    verdict: tuple[str, ...]
    """Whether a simpler model is as good."""
    labelled_rows: int | None
    classes: tuple[ClassFacts, ...]
    rounds: tuple[lessons.RoundFacts, ...]
    lesson: lessons.LessonFacts | None
    """Confidence and certainty of the rows that the last lesson judged."""
    pool_reliability: tuple[trust.Bin, ...]
    gold_reliability: tuple[trust.Bin, ...]
    thresholds: tuple[trust.Threshold, ...]
    confusions: tuple[Confusion, ...]
    doubts: tuple[Doubt, ...]
    caveats: tuple[str, ...]
    settings: Mapping[str, Any]

    def plain(self) -> dict[str, Any]:
        """The same as plain tables, lists and values."""
        return asdict(self)


def facts_of(run: SavedRun, labelled: Sequence[Labelled] | None = None) -> Facts:
    """The facts of a run; ``labelled`` are its labelled rows, where they are at hand."""
    gold, pool = opinions_of(run.answering.folder, run.labels)
    if labelled is not None:
        counts = Counter(row.label for row in labelled)
    else:
        counts = Counter(opinion.label for opinion in gold)
    estimate = run.answering_estimate
    rounds = lessons.rounds_of(run)
    bins = trust.pool_bins(pool, run.labels) if _answers_for_pool(run) else ()
    return Facts(
        format=FORMAT,
        selftrain=version("selftrain"),
        run=_run_facts(run),
        model=_model_facts(run),
        expected=_expected(run),
        no_estimate="" if estimate else _why_none(run, labelled),
        ladder=tuple(shown_rungs(run.rungs, run.records, run.model_name)),
        verdict=tuple(verdict(run.rungs, run.model_name)) if run.answering.rung is None else (),
        labelled_rows=counts.total() or None,
        classes=tuple(_classes(run, counts, gold, rounds)),
        rounds=rounds,
        lesson=lessons.lesson_of(run),
        pool_reliability=bins,
        gold_reliability=trust.gold_bins(gold, run.labels),
        thresholds=trust.thresholds(pool) if bins else (),
        confusions=_confusions(gold, run.labels),
        doubts=() if estimate is None else estimate.doubts,
        caveats=tuple(caveats(run.folder)),
        settings=_settings(run),
    )


def _run_facts(run: SavedRun) -> RunFacts:
    manifest, last = run.manifest, run.records[-1]
    return RunFacts(
        name=run.folder.resolve().name,
        task=str(manifest.task.get("name", "")),
        pair=bool(manifest.task.get("pair")),
        classes=len(run.labels),
        method=str(manifest.method.get("name", "")),
        backbone=PurePath(manifest.backbone.name).name,  # a shared page names no folder
        seed=manifest.seed,
        created=manifest.created,
        rounds=last.number,
        of_rounds=manifest.total_rounds,
        finished=last.last or last.number >= manifest.total_rounds,
    )


def _model_facts(run: SavedRun) -> ModelFacts:
    number, folder = run.answering.number, run.answering.folder
    accepted = records(folder)[number].accepted
    return ModelFacts(run.model_name, number, run.answering.rung, accepted)


def _answers_for_pool(run: SavedRun) -> bool:
    """Whether the model that answers is the one whose probabilities of pool rows are on disk."""
    found = records(run.answering.folder)
    last = [record.number for record in found if record.accepted][-1]
    return run.answering.number == last


def _expected(run: SavedRun) -> ExpectedFacts | None:
    estimate = run.answering_estimate
    if estimate is None:
        return None
    found = estimate.of(run.answering.number)
    expected = found.expected
    return ExpectedFacts(
        expected.accuracy,
        expected.low,
        expected.high,
        *intervals_of(estimate),
        expected.belief,
        expected.agreement,
        estimate.hits,
        found.temperature,
    )


def _why_none(run: SavedRun, labelled: Sequence[Labelled] | None) -> str:
    last = run.records[-1]
    if not (last.last or last.number >= run.manifest.total_rounds):
        return UNFINISHED
    return NO_ESTIMATE if not labelled else no_estimate(labelled)


def _classes(
    run: SavedRun,
    counts: Mapping[str, int],
    gold: Sequence[Opinion],
    rounds: Sequence[lessons.RoundFacts],
) -> list[ClassFacts]:
    total = sum(counts.values())
    estimate = run.answering_estimate
    by_answers = estimate.of(run.answering.number).prior if estimate else ()
    by_folds = estimate.prior if estimate else ()
    picked: Mapping[str, int] = next((r.picked_by_class for r in reversed(rounds) if r.picked), {})
    found = trust.found_by_class(gold, run.labels)
    return [
        ClassFacts(
            label,
            counts.get(label, 0) if total else None,
            counts.get(label, 0) / total if total else None,
            picked.get(label, 0) / sum(picked.values()) if picked else None,
            by_answers[at] if by_answers else None,
            by_folds[at] if by_folds else None,
            found.get(label),
        )
        for at, label in enumerate(run.labels)
    ]


def _confusions(gold: Sequence[Opinion], labels: Sequence[str]) -> tuple[Confusion, ...]:
    counts = Counter((row.label, trust.answer_of(row.folds, labels)) for row in gold)
    order = {label: at for at, label in enumerate(labels)}
    found = sorted(counts.items(), key=lambda item: (-item[1], *(order[x] for x in item[0])))
    return tuple(Confusion(label, answer, rows) for (label, answer), rows in found)


def _settings(run: SavedRun) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "method": manifest.method,
        "data": manifest.data,
        "backbone": {
            "name": PurePath(manifest.backbone.name).name,
            "revision": manifest.backbone.revision,
            "sha256": manifest.backbone.sha256,
        },
        "versions": manifest.versions,
        "device": manifest.device,
        "threads": manifest.threads,
        "max_length": manifest.task.get("max_length"),
    }
