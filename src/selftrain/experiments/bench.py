"""Method x task x shots x seed x backbone: each cell a run folder and one line of JSON.

    out/
      cells.jsonl                          one line for each finished cell
      runs/TASK/BACKBONE/16-shot/seed-12/  a run folder for each method and recipe
      shared/teachers, shared/votes        what several cells define alike, computed once

A killed grid goes on: cells that have a line are not computed again, and a run goes on from its
last whole round, also if it was asked for fewer rounds before. The scored rows are handed to the
evaluation that closes a cell and to nothing that trains, selects or stops: they decide nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from selftrain.data.pool import text_key
from selftrain.data.rows import Labelled, Notes, Split
from selftrain.data.task import Task, find
from selftrain.disk import slug
from selftrain.errors import (
    ConfigError,
    DataError,
    LockedError,
    ModelError,
    RunError,
    SelftrainError,
    TrainingError,
)
from selftrain.experiments import results, tasksets
from selftrain.experiments.commit import commit
from selftrain.experiments.estimate import rows_read, seconds_a_row
from selftrain.experiments.grid import REFERENCES, Grid, Group
from selftrain.experiments.results import Result
from selftrain.experiments.shared import Shared
from selftrain.method.recipes import with_all_labels
from selftrain.method.spec import Method, digest
from selftrain.model.backbone import Backbone, load
from selftrain.model.classifier import Classifier
from selftrain.runs.lines import line_of
from selftrain.runs.read import read_manifest
from selftrain.runs.train import train
from selftrain.training.evaluate import Predictor, answered, score
from selftrain.training.job import Job
from selftrain.training.loop import Round, last_accepted
from selftrain.training.machine import Machine
from selftrain.training.metrics import Bin, accuracy, reliability
from selftrain.training.preflight import preflight

log = logging.getLogger(__name__)

CELLS = "cells.jsonl"
SAMPLE = 128  # rows on which the speed of a backbone is measured


@dataclass(frozen=True, slots=True)
class Ground:
    """What the cells of a group stand on: read, cut and loaded once."""

    group: Group
    task: Task
    split: Split
    held: tuple[Labelled, ...]
    """The rows that are scored."""
    backbone: Backbone
    also_in_train: int
    """Scored rows whose text is also labelled or in the pool."""
    known: dict[str, float] = field(default_factory=dict)
    """Accuracies by what a model is made of: many methods share a teacher."""
    warned: set[str] = field(default_factory=set)
    """Warnings about its rows and models that are logged already."""

    def warn_once(self, warning: str) -> None:
        """Log a warning, unless it is logged already."""
        if warning not in self.warned:
            self.warned.add(warning)
            log.warning(f"{self.group.place}: {warning}")


@dataclass(frozen=True, slots=True)
class Bench:
    """A grid on the rows of a folder, written to another."""

    grid: Grid
    data: Path
    out: Path
    shared: Path | None = None
    """Where teachers and first votes are kept; None: in ``out``."""
    machine: Machine = Machine()

    def written(self) -> list[Result]:
        """The cells that have a line; an error where one is of other rows than those given."""
        path = self.out / CELLS
        found = results.read(path) if path.exists() else []
        for task in map(find, self.grid.tasks):
            here = {result.data for result in found if result.task == task.name and result.data}
            if here and here != {tasksets.fingerprint(self.data, task)}:
                raise other_cells(path, f"the rows of `{task.name}`")
        return found

    def load(self, name: str) -> Backbone:
        """A backbone; an error where a cell is of other weights by that name."""
        backbone = load(name)
        for result in self.written():
            if result.backbone == name and result.weights not in ("", backbone.sha256):
                raise other_cells(self.out / CELLS, f"the weights of `{name}`")
        return backbone

    def missing(self) -> list[tuple[Group, str]]:
        """The cells that have no line yet, in the order they are computed."""
        done = {result.key for result in self.written()}
        return [
            (group, name)
            for group in self.grid.groups()
            for name in self.grid.names(group)
            if self.key(group, name) not in done
        ]

    def key(self, group: Group, name: str) -> results.Key:
        """What the line of a cell is found by."""
        return results.Key(
            task=group.named,
            method=name,
            recipe=self.recipe(group, name),
            preset="" if name in REFERENCES else self.grid.preset,
            backbone=group.backbone,
            shots=group.shots,
            seed=group.seed,
            scored_on=self.grid.on,
            max_rows=self.most,
        )

    @property
    def most(self) -> int | None:
        """The most rows that a cell is scored on; design rows are scored all."""
        return self.grid.rows if self.grid.on == "test" else None

    def method(self, group: Group, name: str) -> Method | None:
        """The method of that name with so many labels; a reference is none."""
        method = self.grid.methods.get(name)
        return with_all_labels(method) if method and group.shots == "full" else method

    def recipe(self, group: Group, name: str) -> str:
        """The hash of a method."""
        method = self.method(group, name)
        return results.REFERENCE if method is None else digest(method)

    def run(self, groups: Iterable[Group] | None = None) -> Iterator[Result]:
        """Compute the missing cells, each on disk when it is handed on.

        A cell that fails, or that its backbone cannot do, is told and passed over; at the end an
        error says how many were. What another process writes is left to it.
        """
        commit()  # asked now: later the checkout may have moved away from what is loaded
        failed: list[tuple[str, SelftrainError]] = []
        locked = 0
        wanted = None if groups is None else set(groups)
        backbones: dict[str, Backbone] = {}
        ground: Ground | None = None
        twins = {result.key.twin: result for result in self.written() if result.run}
        for group, name in self.missing():
            if wanted is not None and group not in wanted:
                continue
            same = twins.get(self.key(group, name).twin)
            if same is not None:  # another name for what is computed already
                result = replace(same, method=name, preset=self.grid.preset)
                results.append(self.out / CELLS, result)
                yield result
                continue
            if group.backbone not in backbones:
                backbones[group.backbone] = self.load(group.backbone)
            if ground is None or ground.group != group:
                ground = self.ground(group, backbones[group.backbone])
            try:
                result = self.cell(ground, name)
            except LockedError as error:
                log.info(f"{error.message}: left to it")
                locked += 1
                continue
            except (ConfigError, DataError, ModelError, RunError, TrainingError) as error:
                log.warning(f"{group.place / slug(name)} failed: {error.message}")
                failed.append((f"{name} on {group.named}", error))
                continue
            results.append(self.out / CELLS, result)
            if result.run:
                twins[result.key.twin] = result
            yield result
        if locked:
            log.info(f"cells left to other processes: {locked}")
        if failed:
            which, first = failed[0]
            raise type(first)(
                f"cells that failed: {len(failed)}, the first {which}: {first.message}",
                first.hint,
            )

    def seconds(self) -> float:
        """About how long the missing cells take, from what one row takes on this machine."""
        whole = 0.0
        tasks: dict[str, tuple[tasksets.Taskset, int]] = {}
        speeds: dict[tuple[str, str], float] = {}
        backbones: dict[str, Backbone] = {}
        counted = {result.key.twin for result in self.written() if result.run}
        there: set[object] = set()  # teachers and first votes that another method will have made
        for group, name in self.missing():
            if self.key(group, name).twin in counted:
                continue
            if name in self.grid.methods:
                counted.add(self.key(group, name).twin)
            if group.task not in tasks:
                rows = tasksets.Taskset.read(self.data, find(group.task))
                tasks[group.task] = rows, len(self.scored(rows))
            rows, held = tasks[group.task]
            if group.backbone not in backbones:
                backbones[group.backbone] = self.load(group.backbone)
            backbone, pair = backbones[group.backbone], (group.task, group.backbone)
            if pair not in speeds:
                speeds[pair] = seconds_a_row(rows.task, backbone, rows.rows[:SAMPLE])
            classes = len(rows.task.labels)
            labelled = len(rows.rows) if group.shots == "full" else classes * group.shots
            method = self.method(group, name)
            work = float(held + labelled)
            if method is not None:
                teacher = (group, method.teacher, method.tapt)
                votes = (*teacher, method.pool, method.passes, method.dropout_layers)
                work = rows_read(
                    method,
                    backbone,
                    labelled=labelled,
                    pool=len(rows.rows) - labelled,
                    scored=held,
                    classes=classes,
                    taught=teacher in there,
                    voted=votes in there,
                )
                there |= {teacher, votes}
            whole += work * speeds[pair]
        return whole

    def scored(self, rows: tasksets.Taskset) -> tuple[Labelled, ...]:
        """The rows that a cell is scored on."""
        held = rows.test(self.most) if self.grid.on == "test" else rows.design
        if not held:
            raise DataError(
                f"task `{rows.task.name}` has too few rows to set some aside for design",
                "score its test rows, once everything is decided: --on test",
            )
        return held

    def ground(self, group: Group, backbone: Backbone) -> Ground:
        """What the cells of a group stand on."""
        rows = tasksets.Taskset.read(self.data, find(group.task))
        notes = Notes()
        split, held = rows.split(group.shots, group.seed, notes), self.scored(rows)
        for text, times in notes:
            log.warning(f"{group.place}: {text}: {times}")
        seen = {*map(text_key, split.labelled), *map(text_key, split.unlabelled)}
        also = sum(text_key(row) in seen for row in held)
        return Ground(group, rows.task, split, held, backbone, also)

    def cell(self, ground: Ground, name: str) -> Result:
        """Train where there is something to train, then score."""
        group, task, split, backbone = ground.group, ground.task, ground.split, ground.backbone
        method = self.method(group, name)
        if method is None:
            model = REFERENCES[name](task, backbone, split.labelled, ground.held)
            return self.result(ground, name, model)
        job = Job(task, split, method, backbone, group.seed)
        for warning in preflight(job):
            ground.warn_once(warning)
        folder = self.folder(group, name, method)
        shared = Shared.of(self.shared or self.out / "shared", job)
        rounds = []
        for round_ in train(
            folder,
            job,
            self.machine,
            teacher=shared.teacher_of(job, self.machine),
            annotate=shared.annotate,
            part=True,
        ):
            log.info(f"{group.place / slug(name)}   {line_of(round_, method.rounds)}")
            rounds.append(round_)
        whole = [round_ for round_ in rounds if not round_.failed]
        best = last_accepted(rounds)
        check_numbers(folder, whole)
        made = read_manifest(folder)
        scored = self.result(ground, name, best.model)
        ground.known[best.model.digest()] = scored.accuracy
        by_round = [
            scored.accuracy if round_ is best else self.accuracy(ground, round_.model)
            for round_ in whole
        ]
        return replace(
            scored,
            by_round=(*by_round, *[None] * (len(rounds) - len(whole))),
            final_round=best.number,
            refused=tuple(round_.number for round_ in rounds if not round_.accepted),
            rounds=method.rounds,
            tuned=tuned(rounds),
            total=fits(rounds)[-1]["total"],
            seconds=round(sum(r.numbers["seconds"] for r in rounds) + shared.spared(rounds), 2),
            device=made.device,
            threads=made.threads,
            run=folder.relative_to(self.out).as_posix(),
        )

    def folder(self, group: Group, name: str, method: Method) -> Path:
        """Where its run is: the same for any number of rounds, so that more go on from fewer."""
        recipe = digest(replace(method, rounds=0))
        return self.out / "runs" / group.place / f"{slug(name)}-{recipe}"

    def accuracy(self, ground: Ground, model: Classifier) -> float:
        """Of one round; a model that many methods share is asked once."""
        made = model.digest()
        if made not in ground.known:
            p, gold = answered(model, ground.held, self.machine)
            ground.known[made] = accuracy(p.argmax(1), gold)
        return ground.known[made]

    def result(self, ground: Ground, name: str, model: Predictor) -> Result:
        """The line of a cell, as far as one model tells it."""
        group = ground.group
        p, gold = answered(model, ground.held, self.machine)
        found = score(p, gold, model.labels)
        return Result(
            task=ground.task.name,
            method=name,
            recipe=self.recipe(group, name),
            preset=self.grid.preset,
            backbone=group.backbone,
            shots=group.shots,
            seed=group.seed,
            scored_on=self.grid.on,
            rows=len(ground.held),
            max_rows=self.most,
            accuracy=found["accuracy"],
            macro_f1=found["macro_f1"],
            f1={label: found[f"f1 {label}"] for label in model.labels},
            calibration_error=found["calibration_error"],
            bins=tuple(Bin(*each) for each in reliability(p, gold)),
            also_in_train=ground.also_in_train,
            data=tasksets.fingerprint(self.data, ground.task),
            weights=ground.backbone.sha256,
            version=version("selftrain"),
            commit=commit(),
        )


def other_cells(path: Path, what: str) -> RunError:
    """What to say where cells of another comparison would be taken for these."""
    return RunError(
        f"{path} was computed when {what} were not what they are now",
        "another folder for what is computed now: -o FOLDER",
    )


def tuned(rounds: Sequence[Round]) -> tuple[int, ...]:
    """Parameters trained in the teacher, and in the last student there is."""
    first, *later = fits(rounds)
    return tuple(each["tuned"] for each in (first, *later[-1:]))


def check_numbers(folder: Path, rounds: Iterable[Round]) -> None:
    """Raise unless each round says what its cell repeats: a run folder may come from anyone."""
    for round_ in rounds:
        found = round_.numbers.get("fit")
        told = isinstance(found, list) and all(
            isinstance(each, dict) and {"tuned", "total"} <= each.keys() for each in found
        )
        if not (found and told and "seconds" in round_.numbers):
            raise RunError(
                f"round {round_.number} of {folder} does not say what its training took",
                "remove the folder: its cell is computed again",
            )


def fits(rounds: Sequence[Round]) -> list[dict[str, int]]:
    """What the last fit of each round had to say; a round that broke off has none."""
    return [round_.numbers["fit"][-1] for round_ in rounds if "fit" in round_.numbers]
