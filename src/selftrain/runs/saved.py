"""A run on disk as one value: what it is, its rounds, its estimate and its ladder.

Nothing here loads a model. The folder may come from anyone and is checked as it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from selftrain import html
from selftrain.disk import damaged
from selftrain.runs.estimates import ESTIMATE, models_of, read_estimate
from selftrain.runs.keep import title
from selftrain.runs.ladders import read_ladder
from selftrain.runs.lines import expected_line, share
from selftrain.runs.manifest import MANIFEST, Manifest
from selftrain.runs.read import Answering, answering, read_manifest, records
from selftrain.runs.record import Record
from selftrain.training.estimate import Estimate
from selftrain.training.ladder import Rung, name_of


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run folder that was read; in a notebook it shows its rounds and its ladder."""

    folder: Path
    """Where it is."""
    manifest: Manifest
    """Its configuration, and the machine it ran on."""
    labels: tuple[str, ...]
    """The classes, in the order of every probability."""
    records: tuple[Record, ...]
    """Its finished rounds."""
    answering: Answering
    """The model that answers: of the last accepted round, unless a person keeps another."""
    estimate: Estimate | None
    """What is expected of its rounds; None where there is no estimate of these models."""
    rungs: tuple[Rung, ...]
    """Simple models beside its rounds; empty where there is no ladder of these models."""

    @property
    def answering_estimate(self) -> Estimate | None:
        """The estimate that has the model that answers: of this run, or of the rung's own run."""
        if self.answering.folder == self.folder:
            return self.estimate
        return _estimate(self.answering.folder, records(self.answering.folder), self.labels)

    @property
    def model_name(self) -> str:
        """The name of the model that answers, as the ladder has it."""
        if self.answering.rung is not None:
            return title(self.answering.rung)
        return name_of(self.records[self.answering.number])

    def _repr_html_(self) -> str:
        estimate = self.answering_estimate
        lines = [Markup("<p><b>{}</b>, {}</p>").format(self.folder.name, self.model_name)]
        if estimate is not None:
            sentence = expected_line(estimate, self.answering.number)
            lines.append(Markup("<p>{}</p>").format(sentence))
        expected = [_expected(self.estimate, record) for record in self.records]
        lines.append(html.sparkline(expected, "expected accuracy by round"))
        rows = [
            [name_of(record), *_numbers(record), share(value), "yes" if record.accepted else "no"]
            for record, value in zip(self.records, expected, strict=True)
        ]
        head = ["round", "picked", "seconds", "expected", "accepted"]
        lines.append(html.table(head, rows))
        if self.rungs:
            ladder = [[r.name, share(r.accuracy), share(r.low), share(r.high)] for r in self.rungs]
            lines.append(html.table(["ladder", "accuracy", "from", "to"], ladder))
        return str(html.joined(lines))


def read_run(folder: str | Path) -> SavedRun:
    """A run on disk as a value; an estimate or a ladder of other models is left out."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    labels = manifest.task.get("labels")
    if not (isinstance(labels, list) and all(isinstance(label, str) for label in labels)):
        raise damaged(folder / MANIFEST, "names no classes")
    answers = answering(folder)
    rounds = records(folder)
    estimate = _estimate(folder, rounds, labels)
    ladder = read_ladder(folder)
    rungs = ladder.rungs if ladder and ladder.models == models_of(rounds) else ()
    return SavedRun(folder, manifest, tuple(labels), tuple(rounds), answers, estimate, rungs)


def _estimate(
    folder: Path, rounds: list[Record], labels: tuple[str, ...] | list[str]
) -> Estimate | None:
    stored = read_estimate(folder)
    if stored is None or stored.models != models_of(rounds):
        return None
    shares = [stored.estimate.prior, *(each.prior for each in stored.estimate.rounds)]
    if any(len(each) not in (0, len(labels)) for each in shares):
        raise damaged(folder / ESTIMATE, f"has no share for each of {len(labels)} classes")
    return stored.estimate


def _expected(estimate: Estimate | None, record: Record) -> float | None:
    known = estimate is not None and not record.failed
    return estimate.of(record.number).expected.accuracy if known and estimate else None


def _numbers(record: Record) -> list[Any]:
    picked, pool = (record.numbers.get(name) for name in ("picked", "pool"))
    seconds = record.numbers.get("seconds")
    return [
        f"{picked} of {pool}" if isinstance(picked, int) and isinstance(pool, int) else "–",
        f"{seconds:.0f}" if isinstance(seconds, int | float) else "–",
    ]
