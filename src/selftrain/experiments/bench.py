"""Compute the cells of a grid: each is a run folder and one line of JSON.

    out/
      cells.jsonl                          one line for each finished cell
      runs/TASK/BACKBONE/16-shot/seed-12/  a run folder for each method and recipe
      shared/teachers, shared/votes        what several cells share, computed once

A cell is a method on a task with one backbone, seed and number of shots. A killed grid resumes:
cells with a line are not computed again, and a run resumes from its last finished round, even if
it was asked for fewer rounds before. Only the evaluation at the end of a cell sees the scored rows:
nothing that trains, selects or stops reads them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
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
from selftrain.experiments.cell_times import CellTimes
from selftrain.experiments.commit import commit
from selftrain.experiments.grid import Grid, Group
from selftrain.experiments.results import Result
from selftrain.experiments.shared import Shared
from selftrain.method.spec import Method, digest
from selftrain.method.systems import with_all_labels
from selftrain.model.backbone import Backbone, load
from selftrain.runs.lines import line_of
from selftrain.runs.read import read_manifest
from selftrain.runs.train import train
from selftrain.training.baselines import REFERENCES
from selftrain.training.evaluate import Predictor, answered, score
from selftrain.training.job import Job
from selftrain.training.loop import Round, last_accepted
from selftrain.training.machine import Machine
from selftrain.training.metrics import Bin, accuracy, reliability
from selftrain.training.preflight import preflight

log = logging.getLogger(__name__)

CELLS = "cells.jsonl"
FAILURES = (ConfigError, DataError, ModelError, RunError, TrainingError)
"""Errors that end one cell; the others are computed."""


@dataclass(frozen=True, slots=True)
class GroupInputs:
    """Rows and backbone of a group: read, split and loaded once for all its cells."""

    group: Group
    task: Task
    split: Split
    scored_rows: tuple[Labelled, ...]
    backbone: Backbone
    also_in_train: int
    """Scored rows whose text is also labelled or in the pool."""
    accuracies: dict[str, float] = field(default_factory=dict)
    """By the digest of a model: many methods share a teacher."""
    warned: set[str] = field(default_factory=set)
    """Warnings that are logged already."""

    def warn_once(self, warning: str) -> None:
        """Log a warning, unless it is logged already."""
        if warning not in self.warned:
            self.warned.add(warning)
            log.warning(f"{self.group.place}: {warning}")


@dataclass(frozen=True, slots=True)
class Bench:
    """A grid, the folder of its data, and the folder of its results."""

    grid: Grid
    data: Path
    out: Path
    shared: Path | None = None
    """The folder of teachers and first votes; None: ``out/shared``."""
    machine: Machine = Machine()
    after_round: Callable[[Group, float | None, bool], None] | None = None
    """Gets the accuracy of each round on the scored rows, and whether it was accepted; what it
    raises ends the cell, whose finished rounds stay."""

    def written(self) -> list[Result]:
        """The finished cells; an error if some were computed on other rows than the given ones."""
        path = self.out / CELLS
        cells = results.read(path) if path.exists() else []
        for task in map(find, self.grid.tasks):
            hashes = {cell.data for cell in cells if cell.task == task.name and cell.data}
            if hashes and hashes != {tasksets.fingerprint(self.data, task)}:
                raise other_inputs(path, f"the rows of `{task.name}`")
        return cells

    def load(self, name: str) -> Backbone:
        """A backbone; an error if a finished cell used other weights of the same name."""
        backbone = load(name)
        for cell in self.written():
            if cell.backbone == name and cell.weights not in ("", backbone.sha256):
                raise other_inputs(self.out / CELLS, f"the weights of `{name}`")
        return backbone

    def missing(self) -> list[tuple[Group, str]]:
        """Group and method of each cell that is not finished, in the order of computation."""
        finished = {cell.key for cell in self.written()}
        return [
            (group, name)
            for group in self.grid.groups()
            for name in self.grid.names(group)
            if self.key(group, name) not in finished
        ]

    def key(self, group: Group, name: str) -> results.Key:
        """The key of a cell in the file of cells."""
        return results.Key(
            task=group.task_name,
            method=name,
            recipe=self.recipe(group, name),
            preset="" if name in REFERENCES else self.grid.preset,
            backbone=group.backbone,
            shots=group.shots,
            seed=group.seed,
            scored_on=self.grid.scored_on,
            max_rows=self.max_rows,
        )

    @property
    def max_rows(self) -> int | None:
        """The largest number of rows to score; design rows are all scored."""
        return self.grid.max_rows if self.grid.scored_on == "test" else None

    def method(self, group: Group, name: str) -> Method | None:
        """The method of a cell; None for a reference."""
        method = self.grid.methods.get(name)
        return with_all_labels(method) if method and group.shots == "full" else method

    def recipe(self, group: Group, name: str) -> str:
        """The hash of a cell's method."""
        method = self.method(group, name)
        return results.REFERENCE if method is None else digest(method)

    def run(self, groups: Iterable[Group] | None = None) -> Iterator[Result]:
        """Compute the missing cells, of these groups or of all, and yield each when it is on disk.

        A cell that fails is logged and skipped; at the end an error gives the number of failures.
        A cell that another process computes is left to that process.
        """
        commit()  # read now: later the checkout may differ from the loaded code
        load = cache(self.load)
        inputs: GroupInputs | None = None
        failed: list[tuple[str, SelftrainError]] = []
        locked = 0
        computed = {cell.key.twin: cell for cell in self.written() if cell.run}
        wanted = None if groups is None else set(groups)
        for group, name in self.missing():
            if wanted is not None and group not in wanted:
                continue
            key = self.key(group, name).twin
            if key in computed:  # the same method under another name
                result = replace(computed[key], method=name, preset=self.grid.preset)
            else:
                if inputs is None or inputs.group != group:
                    inputs = self.inputs(group, load(group.backbone))
                try:
                    result = self.cell(inputs, name)
                except LockedError as error:
                    log.info(f"{error.message}: left to it")
                    locked += 1
                    continue
                except FAILURES as error:
                    log.warning(f"{group.place / slug(name)} failed: {error.message}")
                    failed.append((f"{name} on {group.task_name}", error))
                    continue
            results.append(self.out / CELLS, result)
            if result.run:
                computed[key] = result
            yield result
        if locked:
            log.info(f"cells left to other processes: {locked}")
        if failed:
            cell, first = failed[0]
            message = f"cells that failed: {len(failed)}, the first {cell}: {first.message}"
            raise type(first)(message, first.hint)

    def cell_times(self) -> CellTimes:
        """What measures the cells of this bench, and of others on the same rows."""
        return CellTimes(self.read, self.load, self.machine)

    def seconds(self, cell_times: CellTimes | None = None) -> float:
        """About how long the missing cells take on this machine.

        With the times of an earlier bench, what its cells have in common with these counts once.
        """
        cell_times = cell_times or self.cell_times()
        computed = cell_times.computed
        computed |= {cell.key.twin for cell in self.written() if cell.run}
        total = 0.0
        for group, name in self.missing():
            key = self.key(group, name).twin
            if key in computed:
                continue
            if name in self.grid.methods:
                computed.add(key)
            total += cell_times.seconds(group, self.method(group, name))
        return total

    def read(self, task: str) -> tuple[tasksets.Taskset, int]:
        """The rows of a task, and the number of scored rows."""
        taskset = tasksets.Taskset.read(self.data, find(task))
        return taskset, len(self.scored_rows(taskset))

    def scored_rows(self, taskset: tasksets.Taskset) -> tuple[Labelled, ...]:
        """The rows on which cells of a task are scored."""
        rows = taskset.test(self.max_rows) if self.grid.scored_on == "test" else taskset.design
        if not rows:
            raise DataError(
                f"task `{taskset.task.name}` has too few rows to set some aside for design",
                "score its test rows, once everything is decided: --on test",
            )
        return rows

    def inputs(self, group: Group, backbone: Backbone) -> GroupInputs:
        """Read and split the rows of a group."""
        taskset = tasksets.Taskset.read(self.data, find(group.task))
        notes = Notes()
        split = taskset.split(group.shots, group.seed, notes)
        scored_rows = self.scored_rows(taskset)
        for text, times in notes:
            log.warning(f"{group.place}: {text}: {times}")
        in_train = {*map(text_key, split.labelled), *map(text_key, split.unlabelled)}
        also_in_train = sum(text_key(row) in in_train for row in scored_rows)
        return GroupInputs(group, taskset.task, split, scored_rows, backbone, also_in_train)

    def cell(self, inputs: GroupInputs, name: str) -> Result:
        """Train a method, or make a reference, and score it."""
        method = self.method(inputs.group, name)
        if method is not None:
            return self.trained_cell(inputs, name, method)
        labelled, scored_rows = inputs.split.labelled, inputs.scored_rows
        model = REFERENCES[name](inputs.task, inputs.backbone, labelled, scored_rows)
        return self.result(inputs, name, model)

    def trained_cell(self, inputs: GroupInputs, name: str, method: Method) -> Result:
        """Train a method in its run folder, and score the last accepted round and the others."""
        group = inputs.group
        job = Job(inputs.task, inputs.split, method, inputs.backbone, group.seed)
        for warning in preflight(job):
            inputs.warn_once(warning)
        folder = self.folder(group, name, method)
        shared = Shared.of(self.shared or self.out / "shared", job)
        rounds = []
        training = train(
            folder,
            job,
            self.machine,
            teacher=shared.teacher_of(job, self.machine),
            annotate=shared.annotate,
            part=True,
        )
        with closing(training):  # or the run would stay locked where a round ends the cell
            for round_ in training:
                log.info(f"{group.place / slug(name)}   {line_of(round_, method.total_rounds)}")
                rounds.append(round_)
                if self.after_round is not None:
                    self.after_round(group, self.accuracy(inputs, round_), round_.accepted)
        check_numbers(folder, rounds)
        final = last_accepted(rounds)
        result = self.result(inputs, name, final.model)
        inputs.accuracies[final.model.digest()] = result.accuracy
        seconds = sum(round_.numbers["seconds"] for round_ in rounds)
        manifest = read_manifest(folder)
        return replace(
            result,
            by_round=tuple(self.accuracy(inputs, round_) for round_ in rounds),
            final_round=final.number,
            refused=tuple(round_.number for round_ in rounds if not round_.accepted),
            rounds=method.total_rounds,
            tuned=tuned(rounds),
            total=fits(rounds)[-1]["total"],
            seconds=round(seconds + shared.seconds_saved(rounds), 2),
            device=manifest.device,
            threads=manifest.threads,
            run=folder.relative_to(self.out).as_posix(),
        )

    def folder(self, group: Group, name: str, method: Method) -> Path:
        """The run folder of a cell: the same for any number of rounds, so that a run can grow."""
        recipe = digest(replace(method, rounds=0))
        return self.out / "runs" / group.place / f"{slug(name)}-{recipe}"

    def accuracy(self, inputs: GroupInputs, round_: Round) -> float | None:
        """The accuracy of one round, or None if its training broke off.

        A model that many methods share is scored once.
        """
        if round_.failed:
            return None
        model = round_.model.digest()
        if model not in inputs.accuracies:
            p, gold = answered(round_.model, inputs.scored_rows, self.machine)
            inputs.accuracies[model] = accuracy(p.argmax(1), gold)
        return inputs.accuracies[model]

    def result(self, inputs: GroupInputs, name: str, model: Predictor) -> Result:
        """The scores of one model, with the provenance of the cell."""
        group = inputs.group
        p, gold = answered(model, inputs.scored_rows, self.machine)
        scores = score(p, gold, model.labels)
        return Result(
            task=inputs.task.name,
            method=name,
            recipe=self.recipe(group, name),
            preset=self.grid.preset,
            backbone=group.backbone,
            shots=group.shots,
            seed=group.seed,
            scored_on=self.grid.scored_on,
            rows=len(inputs.scored_rows),
            max_rows=self.max_rows,
            accuracy=scores["accuracy"],
            macro_f1=scores["macro_f1"],
            f1={label: scores[f"f1 {label}"] for label in model.labels},
            calibration_error=scores["calibration_error"],
            bins=tuple(Bin(*row) for row in reliability(p, gold)),
            also_in_train=inputs.also_in_train,
            data=tasksets.fingerprint(self.data, inputs.task),
            weights=inputs.backbone.sha256,
            version=version("selftrain"),
            commit=commit(),
        )


def other_inputs(path: Path, changed: str) -> RunError:
    """The error for a file of cells that were computed on other rows or weights."""
    return RunError(
        f"{path} was computed before {changed} changed",
        "write the new cells to another folder: -o FOLDER",
    )


def tuned(rounds: Sequence[Round]) -> tuple[int, ...]:
    """The number of parameters trained in the teacher, and in the last student."""
    teacher, *students = fits(rounds)
    return tuple(fit["tuned"] for fit in (teacher, *students[-1:]))


def check_numbers(folder: Path, rounds: Iterable[Round]) -> None:
    """Raise unless each round has the numbers a cell needs: a run folder may come from anyone."""
    for round_ in rounds:
        if round_.failed:
            continue
        fits = round_.numbers.get("fit")
        counted = isinstance(fits, list) and all(
            isinstance(fit, dict) and {"tuned", "total"} <= fit.keys() for fit in fits
        )
        if not (fits and counted and "seconds" in round_.numbers):
            raise RunError(
                f"round {round_.number} of {folder} does not say what its training took",
                "remove the folder: its cell is computed again",
            )


def fits(rounds: Sequence[Round]) -> list[dict[str, int]]:
    """The numbers of the last fit of each round; a round that broke off has none."""
    return [round_.numbers["fit"][-1] for round_ in rounds if "fit" in round_.numbers]
