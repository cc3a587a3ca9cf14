"""The search for hyper-parameters (Table 8), on rows that were cut from train.

    out/
      sweep.db                  every trial, in Optuna's tables
      sweep.json                the report
      trials/ROWS/HASH/         the cells of one point: a line and a run folder each
      shared/                   teachers and first votes that many points have in common

A point is judged by its mean accuracy over all tasks and seeds, on design rows: nothing is chosen
for one cell, and no test row is read. A killed sweep goes on: a point depends on the sweep's seed,
its number and the trials before it, a trial that was stopped is queued again, and its runs go on
from their last whole round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock, Timeout

from selftrain.data.task import find
from selftrain.disk import replacing, short_hash
from selftrain.errors import ConfigError, DataError, RunError, TrainingError, require
from selftrain.experiments import tasksets
from selftrain.experiments.bench import Bench
from selftrain.experiments.grid import SEEDS, Grid
from selftrain.experiments.results import Result
from selftrain.experiments.space import Space, Value, changed, check_space
from selftrain.experiments.stats import spread
from selftrain.experiments.storage import (
    HISTORY,
    count,
    experimental,
    extra_package,
    freed,
    opened,
    optuna_logged,
    take_up,
)
from selftrain.method.spec import Method, digest, to_plain
from selftrain.model.backbone import load
from selftrain.seeds import child
from selftrain.training.machine import Machine

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

Sampler = Literal["tpe", "random", "grid"]

ENOUGH = 10  # trials before it is said which entry matters: a forest fitted to fewer tells of luck
LOOK = 2.0  # seconds between two looks at a teacher that another worker is training
REPORT, DATABASE, LOCK = "sweep.json", "sweep.db", ".sweep.lock"
NOTE = (
    "The best of {} points ({} trials) is also the luckiest: its score is optimistic. "
    "Confirm it on rows that decided nothing, once: selftrain bench --on test"
)


# ── the search ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Cell:
    """What one point reached on one task with one seed."""

    task: str
    seed: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial: a point, and what it was worth."""

    number: int
    state: str
    params: dict[str, Value]
    value: float | None = None
    """Mean accuracy over tasks and seeds, a share from 0 to 1; None unless it is complete."""
    recipe: str | None = None
    """A hash of the method at this point: its cells are in ``trials`` under that name."""
    cells: tuple[Cell, ...] = ()
    why: str = ""
    """Why there is no value, where the point itself is the reason."""

    def by_seed(self) -> list[float]:
        """The mean over the tasks, of each seed."""
        seeds = dict.fromkeys(cell.seed for cell in self.cells)
        return [fmean(c.accuracy for c in self.cells if c.seed == seed) for seed in seeds]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A method, the space around it, and the rows that judge."""

    method: Method
    space: Space
    data: Path
    out: Path
    tasks: tuple[str, ...]
    backbone: str
    seeds: tuple[int, ...] = SEEDS
    shots: int = 16
    preset: str = "laptop"
    sampler: Sampler = "tpe"
    seed: int = 0
    """Of the sampler."""
    storage: str | None = None
    """Where the trials of several workers meet; None: in ``out``, for one worker alone."""
    machine: Machine = Machine()

    def __post_init__(self) -> None:
        extra_package("optuna", "sweep")  # first: whoever lacks it hears so at once
        hint = "--space FILE, with entries such as student.learning_rate = [1e-4, 1e-3]"
        require(bool(self.space), "the space", self.space, "one entry or more", hint)
        check_space(self.space, self.method)
        one = self.bench(self.method, self.out)
        for group in one.grid.groups():
            if not one.grid.names(group):
                raise ConfigError(
                    f"method `{self.method.name}` cannot use backbone `{self.backbone}`",
                    "--backbone minilm-mlm",
                )

    def check_rows(self) -> None:
        """Raise for a task without design rows, before anything is trained."""
        for name in self.tasks:
            rows = tasksets.Taskset.read(self.data, find(name))
            if not rows.design:
                raise DataError(
                    f"task `{name}` has {len(rows.rows)} train rows; a sweep needs "
                    f"{2 * tasksets.DESIGN}: it is judged on some that nothing is learnt from",
                    "leave it out: --tasks sst2,agnews",
                )

    def bench(self, method: Method, place: Path) -> Bench:
        """The cells of one point, and where they are written."""
        grid = Grid(
            methods={method.name: method},
            tasks=self.tasks,
            backbones=(self.backbone,),
            seeds=self.seeds,
            shots=(self.shots,),
            references=(),
            preset=self.preset,
            on="design",
        )
        return Bench(grid, self.data, place, self.out / "shared", self.machine)

    @property
    def points(self) -> int:
        """How many there are in the space."""
        return prod(map(len, self.space.values()))

    @property
    def name(self) -> str:
        """That of the study: another question is another study, in the same storage or not."""
        asked = [
            {**to_plain(self.method), "name": ""},
            {name: list(values) for name, values in self.space.items()},
            self.tasks,
            self.backbone,
            self.ground,
            self.seeds,
            self.shots,
            self.sampler,
            self.seed,
        ]
        return f"sweep-{short_hash(asked)}"

    @property
    def ground(self) -> str:
        """A hash of the rows and the weights: others by the same names are another question."""
        rows = [tasksets.fingerprint(self.data, find(task)) for task in self.tasks]
        return short_hash([rows, _weights(self.backbone)])

    def run(self, trials: int) -> Iterator[Tried]:
        """Try points until there are so many trials, those of earlier and other workers included.

        With several workers there may be a few more: each counts before it begins.
        """
        require(trials >= 1, "trials", trials, "1 or more", "--trials 20")
        self.check_rows()
        made: list[int] = []

        def judge(trial: Trial) -> float:
            made.append(trial.number)
            return self.judge(trial)

        with self.held(), optuna_logged():
            study = self.study()
            self.take_up(study)
            if self.sampler == "grid":
                study.sampler = self.drawn(0)
            while self.left(study, trials):
                study.optimize(judge, n_trials=1, catch=(TrainingError,))
                yield tried(study.trials[made[-1]])

    @contextmanager
    def held(self) -> Iterator[None]:
        """Without a storage for several, nobody else may work here: what runs was killed."""
        if self.storage is not None:
            yield
            return
        self.out.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.out / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise RunError(
                f"{self.out} is being written by another process",
                f"for several workers: --storage {sqlite(self.out / 'workers.db')}",
            ) from None
        try:
            yield
        finally:
            lock.release()

    def study(self) -> Study:
        """The trials of this sweep, as far as there are any."""
        from optuna import create_study
        from optuna.samplers import RandomSampler

        several = self.storage is not None
        return create_study(
            storage=opened(self.storage or sqlite(self.out / DATABASE), beats=several),
            study_name=self.name,
            sampler=RandomSampler(),
            direction="maximize",
            load_if_exists=True,
        )

    def take_up(self, study: Study) -> None:
        """Queue again what was stopped; a point that cannot be trained stays where it is."""
        from optuna.trial import TrialState

        if self.storage is None:
            for trial in study.get_trials(states=[TrialState.RUNNING]):
                study.tell(trial.number, state=TrialState.FAIL)
        take_up(study, lambda trial: "why" not in trial.user_attrs)

    def left(self, study: Study, trials: int) -> bool:
        """Whether there is anything to try; the trials of other workers count as done."""
        from optuna.samplers import GridSampler

        def whole() -> int:
            return sum(
                trial.state.name in ("COMPLETE", "RUNNING") or "why" in trial.user_attrs
                for trial in study.get_trials(deepcopy=False)
            )

        if count(study, "WAITING"):
            return True
        if isinstance(study.sampler, GridSampler):
            begun = {each.system_attrs.get("grid_id") for each in study.get_trials(deepcopy=False)}
            if len(begun - {None}) >= self.points:
                return freed(study)
        return whole() < trials or freed(study)

    def judge(self, trial: Trial) -> float:
        """The mean accuracy of one point."""
        if self.sampler != "grid":
            trial.study.sampler = self.drawn(place(trial))
        point: dict[str, Any] = {}
        for name, values in self.space.items():
            point[name] = trial.suggest_categorical(name, values)
        method = changed(self.method, point)
        trial.set_user_attr("recipe", digest(method))
        try:
            found = self.cells(method)
        except TrainingError as error:
            trial.set_user_attr("why", error.message)
            raise
        cells = [Cell(result.task, result.seed, result.accuracy) for result in found]
        trial.set_user_attr("cells", [asdict(cell) for cell in cells])
        return fmean(cell.accuracy for cell in cells)

    def drawn(self, number: int) -> BaseSampler:
        """Who draws the point of that number: afresh each time, so a kill moves no draw."""
        from optuna.samplers import GridSampler, RandomSampler, TPESampler

        if self.sampler == "grid":
            return GridSampler(self.space, seed=self.seed)
        seed = child(self.seed, "trial", number) % 2**32
        if self.sampler == "random":
            return RandomSampler(seed=seed)
        # One entry after the other: all at once would be drawn before the trial has its number.
        with experimental():
            return TPESampler(seed=seed, multivariate=False, constant_liar=True)

    def cells(self, method: Method) -> list[Result]:
        """The cells of a point, computed where they are missing."""
        place = self.out / "trials" / self.ground / digest(method)
        made = self.bench(method, place)
        check_whole(made.written())
        while made.missing():
            before = len(made.missing())
            for result in made.run():
                check_whole([result])
            if len(made.missing()) == before:  # another worker trains the same teacher, or point
                time.sleep(LOOK)
        wanted = {made.key(group, method.name) for group in made.grid.groups()}
        return [result for result in made.written() if result.key in wanted]

    def trials(self) -> list[Tried]:
        """Every trial so far, of every worker."""
        with optuna_logged():
            return [tried(trial) for trial in self.study().trials]

    def report(self) -> dict[str, Any]:
        """What was searched, what is best, and every trial; written to ``sweep.json``."""
        with optuna_logged():
            study = self.study()
            every, matters = [tried(trial) for trial in study.trials], importance(study)
        ranked = best_first(every)
        told: dict[str, Any] = {
            "method": self.method.name,
            "preset": self.preset,
            "backbone": self.backbone,
            "shots": self.shots,
            "tasks": [find(task).name for task in self.tasks],
            "seeds": list(self.seeds),
            "on": "design",
            "sampler": self.sampler,
            "space": {name: list(values) for name, values in self.space.items()},
            "best": ranked[0].params if ranked else {},
            "value": ranked[0].value if ranked else None,
            "trials": sum(each.state == "complete" for each in every),
            "states": {
                state: sum(each.state == state for each in every)
                for state in dict.fromkeys(each.state for each in every)
            },
        }
        if matters:
            told["importance"] = matters
        told["tried"] = [asdict(each) | {"cells": list(map(asdict, each.cells))} for each in every]
        told["note"] = NOTE.format(len(ranked), told["trials"])
        self.out.mkdir(parents=True, exist_ok=True)
        with replacing(self.out / REPORT) as path:
            path.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", "utf-8")
        return told


@cache
def _weights(backbone: str) -> str:
    """The hash of a backbone's weights, read once."""
    return load(backbone).sha256


def sqlite(path: Path) -> str:
    """The address of a database file; Optuna would fill in what stands in single braces.

    >>> sqlite(Path("runs/{x}/sweep.db"))
    'sqlite:///runs/{{x}}/sweep.db'
    """
    return f"sqlite:///{path}".replace("{", "{{").replace("}", "}}")


def place(trial: Trial) -> int:
    """Which new point this is: trials that take up an earlier one are not counted."""
    before = trial.study.get_trials(deepcopy=False)[: trial.number]
    return sum(HISTORY not in each.system_attrs for each in before)


def tried(trial: FrozenTrial) -> Tried:
    """A trial as its storage has it."""
    return Tried(
        trial.number,
        trial.state.name.lower(),
        dict(trial.params),
        trial.value,
        trial.user_attrs.get("recipe"),
        tuple(Cell(**cell) for cell in trial.user_attrs.get("cells", ())),
        trial.user_attrs.get("why", ""),
    )


def check_whole(found: Sequence[Result]) -> None:
    """Raise where a student's training broke off: the model before it is no merit of a point."""
    for result in found:
        if result.broke_off:
            raise TrainingError(
                f"a student's training broke off on {result.task}, seed {result.seed}",
                "leave such values out of the space: a lower rate, say",
            )


def best_first(every: Sequence[Tried]) -> list[Tried]:
    """The complete trials, each point once; of equal ones the earlier first."""
    points: dict[str | None, Tried] = {}
    for each in every:
        if each.value is not None:
            points.setdefault(each.recipe, each)
    return sorted(points.values(), key=lambda each: -(each.value or 0))


def mean_of(each: Tried) -> str:
    """Mean over tasks and seeds ± sd over the seeds, in percent."""
    return str(spread([100 * share for share in each.by_seed()]))


def importance(study: Study) -> dict[str, float]:
    """How far each entry explains the scores (fANOVA), adding up to 1; nothing for few trials."""
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    values = [trial.value for trial in study.trials if trial.value is not None]
    if len(values) < ENOUGH or len(set(values)) < 2:
        return {}
    return get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
