"""``selftrain fit``: learn a classifier from one's own files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from selftrain.cli import inputs, options
from selftrain.cli.again import AgainOptions, Earlier
from selftrain.cli.bundles import with_options
from selftrain.cli.config import settings_of
from selftrain.cli.parts import PartsOptions
from selftrain.cli.talk import Watch, one_voice, resumable, say, show_evaluation, show_json, warn

if TYPE_CHECKING:
    from selftrain.cli.copies import Copies
    from selftrain.data.rows import Labelled
    from selftrain.model.classifier import Classifier
    from selftrain.runs.read import Answering
    from selftrain.training.annotate import Annotate
    from selftrain.training.job import Job
    from selftrain.training.ladder import Models, Rung
    from selftrain.training.loop import Round
    from selftrain.training.machine import Machine


class Stop(Protocol):
    """What stops a run between two rounds."""

    @property
    def hint(self) -> str:
        """How a run that was stopped goes on."""

    def why_stop(self, number: int) -> str:
        """Why the round of this number is not trained; empty where it is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks of a run beside its method."""

    rung: str | None
    """The one to keep; None leaves that as it is."""
    stop: Stop | None
    """What stops it early; None lets it train to its end."""
    copies: Copies | None = None
    """Where finished rounds are copied to; None for nowhere."""
    annotate: Annotate | None = None
    """Where the votes on the pool come from; None computes them in this process."""


@with_options
def fit(
    *,
    files: options.DataOptions,
    again: AgainOptions,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The run folder to write.",
            callback=options.local_folder,
        ),
    ],
    columns: options.RunColumns,
    reading: options.ReadingOptions,
    method: options.TrainingOptions,
    prompt: options.PromptOptions,
    hardware: options.FitMachineOptions,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="RUNG",
            help="The model that answers: frozen, frozen-self-trained, teacher, the number of a "
            "round, or last (the last accepted round). It stays until you choose again.",
        ),
    ] = None,
    publish: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Copy each finished round to object storage, without texts: s3://BUCKET/PREFIX.",
        ),
    ] = None,
    limits: options.TimeOptions,
    elsewhere: PartsOptions,
    as_json: options.Json = False,
) -> None:
    """Learn a classifier from labelled and unlabelled texts.

    selftrain fit labelled.csv --unlabelled pool.csv -o run

    Every round is on disk when its line is printed. A run that was stopped or killed resumes
    from its last finished round: give the same command again, with more rounds if you like.

    selftrain fit --from run --labelled labelled.csv --unlabelled pool.csv
    --corrections corrections.jsonl -o run2
    """
    from selftrain.cli.copies import Copies
    from selftrain.runs.keep import rung_named
    from selftrain.runs.read import check_place
    from selftrain.training.ranks import joined, launched

    started = time.monotonic()
    rung = None if keep is None else rung_named(keep)
    files = replace(files, unlabelled=elsewhere.places(files.unlabelled))
    with one_voice(launched()) as ranks, Watch(quiet=not ranks.first) as watch:
        elsewhere.check_goes_with(limits.minutes, again.corrections, processes=ranks.count)
        earlier = Earlier.of(again, out)
        start = None if earlier is None else earlier.settings(method.method)
        bundles = (files, columns, reading, method, prompt, hardware)
        settings = settings_of(method.config, *bundles, start=start)
        check_place(out)
        inputs.check_spared([out], files.gold, *files.unlabelled, files.dev, files.test)
        copies = Copies.of(out, publish)
        job, test, machine = inputs.prepare(files, settings, watch, earlier)
        machine, pace = replace(machine, ranks=ranks), None
        if limits.dry_run or limits.minutes is not None:
            from selftrain.cli.plan import Limits, in_time

            default = None if settings.method or earlier else settings.preset
            given = Limits(limits, started, default, as_json)
            job, pace = in_time(out, job, test, machine, watch, given)
            if limits.dry_run:
                return
        asked = in_parts(out, job, elsewhere, Asked(rung, pace, copies))
        with joined(ranks, machine.torch_device()):
            if not ranks.first:
                train_along(out, job, machine)
                return
            result = learn(out, job, test, machine, watch, asked)
        if earlier is not None:
            result["compared"] = earlier.compare(out)
    if as_json:
        show_json(result)
    elif "test" in result:
        show_evaluation(result["test"], f"{files.test}, {result['model']}")


def train_along(out: Path, job: Job, machine: Machine) -> None:
    """Train every round together with the first process, which writes and judges them."""
    from selftrain.runs.train import train

    for _ in train(out, job, machine):
        pass


def in_parts(out: Path, job: Job, elsewhere: PartsOptions, asked: Asked) -> Asked:
    """The same, with rounds that other processes annotate if that is what is asked."""
    if elsewhere.parts is None and elsewhere.ray is None:
        return asked
    from selftrain.runs.annotate import StoredVotes, check_has_parts
    from selftrain.runs.read import PARTS

    check_has_parts(job.method)
    if elsewhere.ray is not None:
        from selftrain.runs.cluster import ClusterVotes

        run = out.resolve()
        return replace(asked, annotate=ClusterVotes(job, run, run / PARTS, elsewhere.ray))
    assert elsewhere.parts is not None
    votes = StoredVotes(out, elsewhere.parts)
    return replace(asked, stop=votes, annotate=votes)


def train_rounds(
    out: Path, job: Job, machine: Machine, asked: Asked
) -> tuple[list[Round], list[dict[str, Any]], str]:
    """Train with a line for each round: the rounds, their facts, and why it stopped early."""
    from selftrain.runs.lines import line_of
    from selftrain.runs.train import train
    from selftrain.training.annotate import annotate
    from selftrain.training.evaluate import evaluate

    rounds, facts, stop = [], [], asked.stop
    with closing(train(out, job, machine, annotate=asked.annotate or annotate)) as training:
        for round_ in training:
            scores = evaluate(round_.model, job.split.dev, machine) if job.split.dev else {}
            say(line_of(round_, job.method.total_rounds, dev=scores.get("accuracy")))
            facts.append({**plain(round_), **({"dev": scores} if scores else {})})
            rounds.append(round_)
            if asked.copies is not None:
                asked.copies.update(rounds_only=True)
            if stop and not round_.last and (why := stop.why_stop(round_.number + 1)):
                say(f"{why}; {stop.hint}")
                return rounds, facts, why
    return rounds, facts, ""


def learn(
    out: Path,
    job: Job,
    test: Sequence[Labelled],
    machine: Machine,
    watch: Watch,
    asked: Asked,
) -> dict[str, Any]:
    """Train round by round, with a line for each; estimate; compare; score the model that answers.

    What is asked may stop it after any round.
    """
    from selftrain.runs.estimates import estimated, round_estimate
    from selftrain.runs.keep import LAST, read_kept
    from selftrain.runs.ladders import check_can_keep, keep, laddered
    from selftrain.runs.lines import estimate_lines
    from selftrain.runs.read import answering
    from selftrain.training.evaluate import evaluation
    from selftrain.training.ladder import Models
    from selftrain.training.loop import last_accepted
    from selftrain.training.ranks import ALONE

    answers_now, copies = asked.rung or read_kept(out) or LAST, asked.copies
    check_can_keep(answers_now, job)
    with resumable(watch):
        rounds, facts, stopped = train_rounds(out, job, machine, asked)
        machine = replace(machine, ranks=ALONE)  # the other processes end with the last round
        final = last_accepted(rounds)
        if answers_now == LAST:
            say(f"model: {out}, round {final.number}")
        models = Models(rounds, estimated(out, job, rounds, machine))
        if answers_now == LAST:
            say_each(estimate_lines(models.estimate, final.number, job.split.labelled))
        rungs = laddered(out, job, models, test, machine)
    chosen = answering(out) if asked.rung is None else keep(out, asked.rung)
    result: dict[str, Any] = {"run": str(out), "final_round": final.number, "rounds": facts}
    if stopped:
        result["stopped"] = stopped
    result |= conclude(out, chosen, models, rungs, job)
    result |= write_page(out, job)
    if copies is not None:
        copies.update(rounds_only=False)
    if test:
        result["test"] = evaluation(answering_model(out, chosen, models, job), test, machine)
        expected = round_estimate(out)
        if expected is not None:
            result["test"]["expected"] = asdict(expected.expected)
    return result


def conclude(
    out: Path, chosen: Answering, models: Models, rungs: Sequence[Rung], job: Job
) -> dict[str, Any]:
    """Say which model a person keeps, and whether a simpler one would do."""
    from selftrain.runs.estimates import read_estimate
    from selftrain.runs.keep import title
    from selftrain.runs.lines import estimate_lines, ladder_lines, shown_rungs, verdict
    from selftrain.training.ladder import name_of

    name = name_of(models.rounds[chosen.number]) if chosen.rung is None else title(chosen.rung)
    if chosen.rung is not None:
        estimate = models.estimate
        if chosen.folder != out:
            stored = read_estimate(chosen.folder)
            estimate = None if stored is None else stored.estimate
        elif not models.rounds[chosen.number].accepted:
            warn([f"{name} was refused: {models.rounds[chosen.number].why}"])
        say(f"model: {out}, {name}, as you chose; --keep last chooses the last accepted round")
        say_each(estimate_lines(estimate, chosen.number, job.split.labelled))
    say_each(ladder_lines(shown_rungs(rungs, models.rounds, name), name))
    if chosen.rung is None:  # who chose needs no advice
        say_each(verdict(rungs, name))
    result: dict[str, Any] = {"kept": chosen.rung, "model": name}
    if models.estimate is not None:
        result["estimate"] = asdict(models.estimate)
    return {**result, "ladder": [asdict(each) for each in rungs]}


def write_page(out: Path, job: Job) -> dict[str, Any]:
    """Write the report of a run into its folder, and say where; without one say why."""
    from selftrain.report.write import write_report

    page, problem = write_report(out, job.split.labelled)
    if page is None:
        warn([problem])
        return {}
    say(f"report: {page}; with texts and a map: selftrain report {out} -u POOL")
    return {"report": str(page)}


def say_each(lines: Iterable[str]) -> None:
    """Each line on stderr."""
    for line in lines:
        say(line)


def answering_model(out: Path, chosen: Answering, models: Models, job: Job) -> Classifier:
    """The model that answers for a run, calibrated; one that was just trained is not read again."""
    from selftrain.runs.read import load

    if chosen.folder != out:
        return load(out, backbone=job.backbone)
    model = models.rounds[chosen.number].model
    if models.estimate is not None:
        model.temperature = models.estimate.of(chosen.number).temperature
    return model


def plain(round_: Round) -> dict[str, Any]:
    """A round as plain data, for ``--json``."""
    return {
        "number": round_.number,
        "accepted": round_.accepted,
        "why": round_.why,
        "numbers": dict(round_.numbers),
    }
