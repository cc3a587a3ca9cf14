"""The search for hyper-parameters (Table 8), on design rows, which come from train.

    out/
      sweep.db                  every trial, in Optuna's tables
      sweep.json                the report
      trials/INPUTS/HASH/       the cells of one point: a line and a run folder each
      shared/                   teachers and first votes that several points share

The score of a point is its mean accuracy over all tasks and seeds, on design rows: nothing is
chosen for one cell, and no test row is read. A killed sweep resumes. A point depends on the seed of
the sweep, its number and the trials before it; a stopped trial is queued again, and its runs resume
from their last finished round. With ``prune`` a point may end after any round (``pruning.py``): it
is stored as pruned, has no score and is not queued again.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from filelock import FileLock, Timeout

from selftrain.data.task import find
from selftrain.disk import replacing, short_hash
from selftrain.errors import ConfigError, DataError, RunError, TrainingError, extra_package, require
from selftrain.experiments import tasksets
from selftrain.experiments.bench import Bench
from selftrain.experiments.grid import SEEDS, Grid
from selftrain.experiments.pruning import PRUNED, Progress, Prune
from selftrain.experiments.results import Result
from selftrain.experiments.space import Space, Value, changed, check_space
from selftrain.experiments.stats import spread
from selftrain.experiments.storage import (
    HISTORY,
    count_trials,
    experimental,
    lost_storage,
    open_storage,
    optuna_logged,
    requeue_stopped,
    wait_for_stale_trial,
)
from selftrain.method.changes import can_use
from selftrain.method.spec import Method, digest, to_plain
from selftrain.model.backbone import load
from selftrain.seeds import child
from selftrain.training.machine import Machine

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial

Sampler = Literal["tpe", "random", "grid"]

IMPORTANCE_TRIALS = 10  # trials that the importance of entries needs: fewer show only chance
POLL = 2.0  # seconds between two looks at a teacher that another worker trains
REPORT, DATABASE, LOCK = "sweep.json", "sweep.db", ".sweep.lock"
NOTE = (
    "The best of {} points ({} trials) is also the luckiest: its score is optimistic. "
    "Confirm it on rows that decided nothing, once: selftrain bench --on test"
)


# ── the search ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Cell:
    """The accuracy of one point on one task with one seed."""

    task: str
    seed: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class Tried:
    """One trial: a point and its score."""

    number: int
    state: str
    params: dict[str, Value]
    value: float | None = None
    """Mean accuracy over tasks and seeds, a share from 0 to 1; None unless it is complete: of a
    pruned point Optuna keeps the last number before it was stopped, which is of fewer rounds."""
    recipe: str | None = None
    """A hash of the method at this point: its cells are in ``trials`` under that name."""
    cells: tuple[Cell, ...] = ()
    why: str = ""
    """Why there is no value: the point cannot be trained, or it was pruned."""

    def by_seed(self) -> list[float]:
        """The mean accuracy over the tasks, for each seed."""
        seeds = dict.fromkeys(cell.seed for cell in self.cells)
        return [fmean(c.accuracy for c in self.cells if c.seed == seed) for seed in seeds]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A search: a method, the values to try, and the rows that score them."""

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
    """The address of the storage that several workers share; None: in ``out``, for one worker."""
    prune: Prune = "none"
    """Whether a point below the median of the points before it is stopped after a round."""
    machine: Machine = Machine()

    def __post_init__(self) -> None:
        extra_package("optuna", "sweep")  # first, so that its error comes at once
        hint = "--space FILE, with entries such as student.learning_rate = [1e-4, 1e-3]"
        require(bool(self.space), "the space", self.space, "one entry or more", hint)
        check_space(self.space, self.method)
        self.bench(self.method, self.out)  # its grid checks names and tasks
        if not can_use(self.method, self.backbone):
            raise ConfigError(
                f"method `{self.method.name}` cannot use backbone `{self.backbone}`: "
                "it has no MLM head",
                "--backbone minilm-mlm",
            )

    def check_rows(self) -> None:
        """Raise for a task without design rows, before anything is trained."""
        for name in self.tasks:
            taskset = tasksets.Taskset.read(self.data, find(name))
            if not taskset.design:
                raise DataError(
                    f"task `{name}` has {len(taskset.rows)} train rows; a sweep needs "
                    f"{2 * tasksets.DESIGN}: it sets some aside to score on",
                    "leave it out: --tasks sst2,agnews",
                )

    def bench(self, method: Method, folder: Path) -> Bench:
        """The cells of one point, in a folder."""
        grid = Grid(
            methods={method.name: method},
            tasks=self.tasks,
            backbones=(self.backbone,),
            seeds=self.seeds,
            shots=(self.shots,),
            references=(),
            preset=self.preset,
            scored_on="design",
        )
        return Bench(grid, self.data, folder, self.out / "shared", self.machine)

    @property
    def points(self) -> int:
        """The number of points in the space."""
        return prod(map(len, self.space.values()))

    @property
    def name(self) -> str:
        """The name of the study: a hash of all that decides its scores."""
        question = [
            {**to_plain(self.method), "name": ""},
            {name: list(values) for name, values in self.space.items()},
            self.tasks,
            self.backbone,
            self.inputs_hash,
            self.seeds,
            self.shots,
            self.sampler,
            self.seed,
            *((self.prune,) if self.prune != "none" else ()),  # a stopped point moves later draws
        ]
        return f"sweep-{short_hash(question)}"

    @property
    def inputs_hash(self) -> str:
        """A hash of the rows and of the backbone's weights."""
        rows = [tasksets.fingerprint(self.data, find(task)) for task in self.tasks]
        return short_hash([rows, _weights(self.backbone)])

    def run(self, trials: int) -> Iterator[Tried]:
        """Try points until the study has this number of trials, those of other workers included.

        With several workers there may be a few more: each counts before it starts one.
        """
        require(trials >= 1, "trials", trials, "1 or more", "--trials 20")
        self.check_rows()
        numbers: list[int] = []

        def score(trial: Trial) -> float:
            numbers.append(trial.number)
            return self.score(trial)

        with self.locked(), optuna_logged(), lost_storage():
            study = self.study()
            self.requeue_stopped(study)
            if self.sampler == "grid":
                study.sampler = self.sampler_of(0)
            while self.trials_left(study, trials):
                study.optimize(score, n_trials=1, catch=(TrainingError,))
                yield tried(study.trials[numbers[-1]])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, unless several workers share a storage."""
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
                f"for several workers: --storage {sqlite_url(self.out / 'workers.db')}",
            ) from None
        try:
            yield
        finally:
            lock.release()

    def study(self) -> Study:
        """The study with the trials of this sweep; created if there is none."""
        from optuna import create_study
        from optuna.samplers import RandomSampler

        several = self.storage is not None
        return create_study(
            storage=open_storage(
                self.storage or sqlite_url(self.out / DATABASE), heartbeats=several
            ),
            study_name=self.name,
            sampler=RandomSampler(),
            direction="maximize",
            load_if_exists=True,
        )

    def requeue_stopped(self, study: Study) -> None:
        """Queue stopped trials again, but not points that cannot be trained."""
        from optuna.trial import TrialState

        if self.storage is None:  # one worker alone: a trial that still runs there was killed
            for trial in study.get_trials(states=[TrialState.RUNNING]):
                study.tell(trial.number, state=TrialState.FAIL)
        requeue_stopped(
            study, lambda trial: "why" not in trial.user_attrs and trial.state.name != "PRUNED"
        )

    def trials_left(self, study: Study, trials: int) -> bool:
        """Whether there is a point to try; the trials of other workers count as done."""
        from optuna.samplers import GridSampler

        if count_trials(study, "WAITING"):
            return True
        so_far = study.get_trials(deepcopy=False)
        if isinstance(study.sampler, GridSampler):
            started = {trial.system_attrs.get("grid_id") for trial in so_far} - {None}
            if len(started) >= self.points:
                return wait_for_stale_trial(study)
        counted = sum(
            trial.state.name in ("COMPLETE", "RUNNING", "PRUNED") or "why" in trial.user_attrs
            for trial in so_far
        )
        return counted < trials or wait_for_stale_trial(study)

    def score(self, trial: Trial) -> float:
        """The mean accuracy of one point."""
        if self.sampler != "grid":
            trial.study.sampler = self.sampler_of(point_number(trial))
        point: dict[str, Any] = {}
        for name, values in self.space.items():
            point[name] = trial.suggest_categorical(name, values)
        method = changed(self.method, point)
        trial.set_user_attr("recipe", digest(method))
        try:
            results = self.cells(method, None if self.prune == "none" else trial)
        except TrainingError as error:
            trial.set_user_attr("why", error.message)
            raise
        cells = [Cell(result.task, result.seed, result.accuracy) for result in results]
        trial.set_user_attr("cells", [asdict(cell) for cell in cells])
        return fmean(cell.accuracy for cell in cells)

    def sampler_of(self, number: int) -> BaseSampler:
        """The sampler of one point: a new one for each, so a kill changes no draw."""
        from optuna.samplers import GridSampler, RandomSampler, TPESampler

        if self.sampler == "grid":
            return GridSampler(self.space, seed=self.seed)
        seed = child(self.seed, "trial", number) % 2**32
        if self.sampler == "random":
            return RandomSampler(seed=seed)
        # Entry by entry: a multivariate sampler would draw before the trial has its number.
        with experimental():
            return TPESampler(seed=seed, multivariate=False, constant_liar=True)

    def cells(self, method: Method, prunable: Trial | None = None) -> list[Result]:
        """The cells of a point; missing ones are computed, unless the trial is pruned."""
        folder = self.out / "trials" / self.inputs_hash / digest(method)
        bench = self.bench(method, folder)
        groups = {bench.key(group, method.name): group for group in bench.grid.groups()}
        progress = None
        if prunable is not None:
            progress = Progress(prunable, tuple(groups.values()), method.total_rounds + 1)
            bench = replace(bench, after_round=progress.after_round)
        written = {result.key: result for result in bench.written()}
        check_trained(list(written.values()))
        for key, group in groups.items():
            if progress is not None and key in written:
                progress.after_cell(group, written[key])
        while missing := len(bench.missing()):
            for result in bench.run():
                check_trained([result])
                if progress is not None:
                    progress.after_cell(groups[result.key], result)
            if len(bench.missing()) == missing:  # another worker trains the same teacher or point
                time.sleep(POLL)
        return [result for result in bench.written() if result.key in groups]

    def trials(self) -> list[Tried]:
        """Every trial so far, of every worker."""
        with optuna_logged(), lost_storage():
            return [tried(trial) for trial in self.study().trials]

    def trials_done(self) -> int:
        """How many points are tried to the end; a look creates no database."""
        if self.storage is None and not (self.out / DATABASE).exists():
            return 0
        return sum(trial.state in ("complete", "pruned") for trial in self.trials())

    def report(self) -> dict[str, Any]:
        """The search, the best point and every trial; written to ``sweep.json``."""
        with optuna_logged(), lost_storage():
            study = self.study()
            trials, importances = [tried(trial) for trial in study.trials], importance(study)
        ranked = best_first(trials)
        report: dict[str, Any] = {
            "method": self.method.name,
            "preset": self.preset,
            "backbone": self.backbone,
            "shots": self.shots,
            "tasks": [find(task).name for task in self.tasks],
            "seeds": list(self.seeds),
            "on": "design",
            "sampler": self.sampler,
            "prune": self.prune,
            "space": {name: list(values) for name, values in self.space.items()},
            "best": ranked[0].params if ranked else {},
            "value": ranked[0].value if ranked else None,
            "trials": sum(trial.state == "complete" for trial in trials),
            "states": dict(Counter(trial.state for trial in trials)),
        }
        if importances:
            report["importance"] = importances
        report["tried"] = [
            asdict(trial) | {"cells": [asdict(cell) for cell in trial.cells]} for trial in trials
        ]
        report["note"] = NOTE.format(len(ranked), report["trials"])
        self.out.mkdir(parents=True, exist_ok=True)
        with replacing(self.out / REPORT) as path:
            path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", "utf-8")
        return report


@cache
def _weights(backbone: str) -> str:
    """The hash of a backbone's weights, read once."""
    return load(backbone).sha256


def sqlite_url(path: Path) -> str:
    """The address of a database file; braces are doubled, because Optuna formats addresses.

    >>> sqlite_url(Path("runs/{x}/sweep.db"))
    'sqlite:///runs/{{x}}/sweep.db'
    """
    return f"sqlite:///{path}".replace("{", "{{").replace("}", "}}")


def point_number(trial: Trial) -> int:
    """The number of new points before this trial; trials that repeat one are not counted."""
    before = trial.study.get_trials(deepcopy=False)[: trial.number]
    return sum(HISTORY not in earlier.system_attrs for earlier in before)


def tried(trial: FrozenTrial) -> Tried:
    """A trial of the storage, as a plain value."""
    state, attributes = trial.state.name.lower(), trial.user_attrs
    return Tried(
        trial.number,
        state,
        dict(trial.params),
        trial.value if state == "complete" else None,
        attributes.get("recipe"),
        tuple(Cell(**cell) for cell in attributes.get("cells", ())),
        attributes.get(PRUNED if state == PRUNED else "why", ""),
    )


def check_trained(results: Sequence[Result]) -> None:
    """Raise if a student's training broke off: then the score is that of its teacher."""
    for result in results:
        if result.broke_off:
            raise TrainingError(
                f"a student's training broke off on {result.task}, seed {result.seed}",
                "leave such values out of the space: try a lower learning rate",
            )


def best_first(trials: Sequence[Tried]) -> list[Tried]:
    """The complete trials from best to worst, each point once; of equals the earlier first."""
    points: dict[str | None, Tried] = {}
    for trial in trials:
        if trial.value is not None:
            points.setdefault(trial.recipe, trial)
    return sorted(points.values(), key=lambda trial: -(trial.value or 0))


def mean_of(trial: Tried) -> str:
    """Mean over tasks and seeds ± sd over the seeds, in percent."""
    return str(spread([100 * share for share in trial.by_seed()]))


def importance(study: Study) -> dict[str, float]:
    """The share of the scores' variance that each entry explains (fANOVA); none for few trials."""
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    values = [trial.value for trial in map(tried, study.trials) if trial.value is not None]
    if len(values) < IMPORTANCE_TRIALS or len(set(values)) < 2:
        return {}
    return get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
