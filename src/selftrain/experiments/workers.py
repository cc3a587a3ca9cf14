"""Many processes compute one grid: each takes groups of cells that no other has.

Optuna distributes the groups through a storage that all workers reach, or a Ray cluster does. A
worker takes a whole group (task, backbone, shots, seed), because its methods share a teacher. All
workers share the folders of data and results. A killed worker leaves its finished rounds there, and
the next worker that takes its group resumes from them.
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
from selftrain.experiments.storage import (
    count_trials,
    extra_package,
    open_storage,
    optuna_logged,
    requeue_stopped,
    wait_for_stale_trial,
)
from selftrain.method.spec import digest
from selftrain.training.machine import silent

if TYPE_CHECKING:
    from optuna import Study, Trial

log = logging.getLogger(__name__)

GROUP, GRID = "group", "grid"


# ── groups, through an Optuna storage ────────────────────────────────────────────────────────


def optuna_groups(bench: Bench, storage: str, name: str | None = None) -> Iterator[Result]:
    """Compute the groups that no other worker with the same storage has taken.

    Start every worker with the same command. The cells of a group are yielded when all are done.
    After ``GRACE`` seconds another worker takes the group of a killed one. A group with a cell that
    fails is skipped; its error is raised after the last group.
    """
    optuna = extra_package("optuna", "sweep")
    groups = list(bench.grid.groups())
    cells: list[Result] = []
    failed: list[SelftrainError] = []

    def compute(trial: Trial) -> float:
        index = trial.suggest_categorical(GROUP, range(len(groups)))
        if taken_earlier(trial, index):
            raise optuna.TrialPruned("another worker has it")
        try:
            cells.extend(bench.run([groups[index]]))
        except SelftrainError as error:
            failed.append(error)
            raise
        if groups[index] in unfinished(bench):
            raise optuna.TrialPruned("some of its cells are left to another process")
        return float(len(cells))

    with optuna_logged():
        sampler = optuna.samplers.GridSampler({GROUP: range(len(groups))}, seed=0)
        study = optuna.create_study(
            storage=open_storage(storage, heartbeats=True),
            study_name=name or f"bench-{grid_hash(bench)}",
            sampler=optuna.samplers.RandomSampler(),  # a GridSampler would end the study too early
            load_if_exists=True,
        )
        check_same_grid(study, grid_hash(bench))
        todo = unfinished(bench)
        # A complete trial counts only if its cells are in this folder: they may be lost.
        requeue_stopped(study, lambda trial: groups[trial.params.get(GROUP, 0)] in todo, "COMPLETE")
        study.sampler = sampler
        while groups_left(study, len(groups)) or wait_for_stale_trial(study):
            study.optimize(compute, n_trials=1, catch=(SelftrainError,))
            yield from cells
            cells.clear()
        if others := count_trials(study, "RUNNING"):
            log.info(f"{others} of {len(groups)} groups are with other workers")
        if failed:
            raise failed[0]


def grid_hash(bench: Bench) -> str:
    """A hash of all that a grid compares: workers share a study only if it is the same."""
    grid = bench.grid
    methods = {name: digest(method) for name, method in grid.methods.items()}
    plain = [
        methods,
        grid.tasks,
        grid.backbones,
        grid.seeds,
        grid.shots,
        grid.references,
        grid.scored_on,
        grid.max_rows,
        grid.preset,
    ]
    return short_hash(plain)


def check_same_grid(study: Study, expected: str) -> None:
    """Raise for a study of another grid: its numbers would mean other groups."""
    stored = study.user_attrs.get(GRID)
    if stored is None:
        study.set_user_attr(GRID, expected)
    elif stored != expected:
        raise ConfigError(
            f"study `{study.study_name}` is of another grid",
            "choose another name, or leave it out: --study OTHER",
        )


def unfinished(bench: Bench) -> set[Group]:
    """The groups with cells to compute."""
    return {group for group, _ in bench.missing()}


def groups_left(study: Study, groups: int) -> bool:
    """Whether there is a group that no worker has started, or one to repeat."""
    trials = study.get_trials(deepcopy=False)
    started = {trial.system_attrs.get("grid_id") for trial in trials} - {None}
    return len(started) < groups or any(trial.state.name == "WAITING" for trial in trials)


def taken_earlier(trial: Trial, group: int) -> bool:
    """Whether a worker that started earlier computes the group now."""
    return any(
        other.number < trial.number
        and other.params.get(GROUP) == group
        and other.state.name == "RUNNING"
        for other in trial.study.get_trials(deepcopy=False)
    )


# ── groups, through Ray ──────────────────────────────────────────────────────────────────────


def ray_groups(bench: Bench, address: str) -> Iterator[Result]:
    """Compute the groups on a Ray cluster; the cells of a group are yielded when all are done.

    ``address`` is ``local`` to start a cluster, ``auto`` for the running one, or the address of its
    head. Every machine needs the folders of data and results under the same path. The error of a
    failed group is raised after the last group.
    """
    ray = extra_package("ray", "cluster")
    todo = unfinished(bench)
    if not todo:
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        gpus = 1 if bench.machine.device == "cuda" else 0
        task = ray.remote(num_cpus=bench.machine.threads or 1, num_gpus=gpus)(compute_group)
        remote = portable(bench)
        pairs = zip(bench.grid.groups(), remote.grid.groups(), strict=True)
        running = [task.remote(remote, its_group) for group, its_group in pairs if group in todo]
        failed: list[SelftrainError] = []
        while running:
            done, running = ray.wait(running)
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


def compute_group(bench: Bench, group: Group) -> list[Result]:
    """Compute the missing cells of one group, on any machine."""
    return list(bench.run([group]))


def portable(bench: Bench) -> Bench:
    """The bench for another machine: absolute paths, and no progress bar."""
    # A task of the user is a file; cells have the name in it, whatever its path.
    tasks = [task if task in known() else str(Path(task).resolve()) for task in bench.grid.tasks]
    return replace(
        bench,
        grid=replace(bench.grid, tasks=tuple(tasks)),
        data=bench.data.resolve(),
        out=bench.out.resolve(),
        shared=bench.shared and bench.shared.resolve(),
        machine=replace(
            bench.machine,
            progress=silent,
            cache=bench.machine.cache and bench.machine.cache.resolve(),
        ),
    )
