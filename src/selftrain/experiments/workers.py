"""Many processes, one grid: each takes groups of cells that nobody else has.

Who takes what is decided by Optuna in a storage that all of them reach, or by a Ray cluster; there
is no queue of our own. A group (task, backbone, shots, seed) is taken as a whole, because its
methods share a teacher. The folders of data and results are one for all: a worker that is killed
leaves its whole rounds there, and whoever takes its group next goes on from them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.data.task import known
from selftrain.disk import short_hash
from selftrain.errors import ConfigError, SelftrainError
from selftrain.experiments.bench import Bench
from selftrain.experiments.grid import Group
from selftrain.experiments.results import Result
from selftrain.method.spec import digest
from selftrain.training.machine import silent

if TYPE_CHECKING:
    from optuna import Study, Trial
from selftrain.experiments.storage import (
    count,
    extra_package,
    freed,
    opened,
    optuna_logged,
    take_up,
)

log = logging.getLogger(__name__)

GROUP, GRID = "group", "grid"


# ── groups, through an Optuna storage ────────────────────────────────────────────────────────


def optuna_groups(bench: Bench, storage: str, name: str | None = None) -> Iterator[Result]:
    """Compute the groups that no other worker with the same storage has taken.

    Every worker is started with the same command. The cells of a group are handed on when it is
    done. The group of a killed worker is taken up after ``GRACE`` seconds. A group with a cell that
    fails is left for another time; the error is raised when there is nothing else to do.
    """
    optuna = extra_package("optuna", "sweep")
    groups = list(bench.grid.groups())
    found: list[Result] = []
    failed: list[SelftrainError] = []

    def take(trial: Trial) -> float:
        place = trial.suggest_categorical(GROUP, range(len(groups)))
        if has_other(trial, place):
            raise optuna.TrialPruned("another worker has it")
        try:
            found.extend(bench.run([groups[place]]))
        except SelftrainError as error:
            failed.append(error)
            raise
        if groups[place] in waiting(bench):
            raise optuna.TrialPruned("some of its cells are left to another process")
        return float(len(found))

    with optuna_logged():
        sampler = optuna.samplers.GridSampler({GROUP: range(len(groups))}, seed=0)
        study = optuna.create_study(
            storage=opened(storage, beats=True),
            study_name=name or f"bench-{mark(bench)}",
            sampler=optuna.samplers.RandomSampler(),  # a grid's would end what has not begun
            load_if_exists=True,
        )
        check_same(study, mark(bench))
        missing = waiting(bench)
        # What is complete counts by its cells: they may be those of another folder, or lost.
        take_up(study, lambda trial: groups[trial.params.get(GROUP, 0)] in missing, "COMPLETE")
        study.sampler = sampler
        while left(study, len(groups)) or freed(study):
            study.optimize(take, n_trials=1, catch=(SelftrainError,))
            yield from found
            found.clear()
        if others := count(study, "RUNNING"):
            log.info(f"{others} of {len(groups)} groups are with other workers")
        if failed:
            raise failed[0]


def mark(bench: Bench) -> str:
    """A hash of what a grid compares: workers with another grid are no workers of this one."""
    grid = bench.grid
    methods = {name: digest(method) for name, method in grid.methods.items()}
    plain = [
        methods,
        grid.tasks,
        grid.backbones,
        grid.seeds,
        grid.shots,
        grid.references,
        grid.on,
        grid.rows,
        grid.preset,
    ]
    return short_hash(plain)


def check_same(study: Study, wanted: str) -> None:
    """Raise for a study of another grid: its numbers would mean other groups."""
    found = study.user_attrs.get(GRID)
    if found is None:
        study.set_user_attr(GRID, wanted)
    elif found != wanted:
        raise ConfigError(
            f"study `{study.study_name}` is of another grid",
            "give this one a name of its own, or none: --study OTHER",
        )


def waiting(bench: Bench) -> set[Group]:
    """The groups that have a cell without a line."""
    return {group for group, _ in bench.missing()}


def left(study: Study, groups: int) -> bool:
    """Whether there is a group that nobody has begun, or one to take up again."""
    trials = study.get_trials(deepcopy=False)
    begun = {trial.system_attrs.get("grid_id") for trial in trials} - {None}
    return len(begun) < groups or any(trial.state.name == "WAITING" for trial in trials)


def has_other(trial: Trial, place: int) -> bool:
    """Whether a worker that came earlier has the group; of one that is done no cell is missing."""
    return any(
        each.number < trial.number
        and each.params.get(GROUP) == place
        and each.state.name == "RUNNING"
        for each in trial.study.get_trials(deepcopy=False)
    )


# ── groups, through Ray ──────────────────────────────────────────────────────────────────────


def ray_groups(bench: Bench, address: str) -> Iterator[Result]:
    """Compute the groups on a Ray cluster; the cells of a group are handed on when it is done.

    ``address`` is ``local`` for one made here, ``auto`` for the one running here, or that of its
    head. Every machine has to see the folders of data and results under the same path. What fails
    in a group is raised when the others are done.
    """
    ray = extra_package("ray", "cluster")
    todo = waiting(bench)
    if not todo:
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        cards = 1 if bench.machine.device == "cuda" else 0
        task = ray.remote(num_cpus=bench.machine.threads or 1, num_gpus=cards)(computed)
        there = portable(bench)
        pairs = zip(bench.grid.groups(), there.grid.groups(), strict=True)
        going = [task.remote(there, theirs) for group, theirs in pairs if group in todo]
        failed: list[SelftrainError] = []
        while going:
            done, going = ray.wait(going)
            try:
                yield from ray.get(done[0])
            except ray.exceptions.RayTaskError as error:
                if not isinstance(error.cause, SelftrainError):
                    raise
                failed.append(error.cause)
        if failed:
            raise failed[0]
    finally:
        ray.shutdown()


def computed(bench: Bench, group: Group) -> list[Result]:
    """The missing cells of one group, wherever this runs."""
    return list(bench.run([group]))


def portable(bench: Bench) -> Bench:
    """The bench as another machine can take it: absolute paths, and no progress shown here."""
    # A task of one's own is a file, called by its name in every cell, wherever that file lies.
    files = [task if task in known() else str(Path(task).resolve()) for task in bench.grid.tasks]
    return replace(
        bench,
        grid=replace(bench.grid, tasks=tuple(files)),
        data=bench.data.resolve(),
        out=bench.out.resolve(),
        shared=bench.shared and bench.shared.resolve(),
        machine=replace(
            bench.machine,
            progress=silent,
            cache=bench.machine.cache and bench.machine.cache.resolve(),
        ),
    )
