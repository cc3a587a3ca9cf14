"""Many processes, one grid: each takes groups of cells that nobody else has.

Who takes what is decided by Optuna in a storage that all of them reach, or by a Ray cluster; there
is no queue of our own. A group (task, backbone, shots, seed) is taken as a whole, because its
methods share a teacher. The folders of data and results are one for all: a worker that is killed
leaves its whole rounds there, and whoever takes its group next goes on from them.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.data.task import known
from selftrain.disk import short_hash
from selftrain.errors import ConfigError, SelftrainError
from selftrain.experiments.bench import Bench
from selftrain.experiments.grid import Group
from selftrain.experiments.results import Result
from selftrain.method.spec import digest
from selftrain.training.machine import silent, unheard

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

BEAT = 30  # seconds between two signs of life of a worker
GRACE = 120  # seconds without one after which a worker counts as killed
LOOK = 1.0  # seconds between two looks at what the others do
PATIENCE = 60  # seconds that a process waits for another one to finish writing to SQLite
GROUP, GRID = "group", "grid"
HISTORY = "retry_history"  # Optuna's name for the numbers of the trials that one takes up again


# ── groups, through an Optuna storage ────────────────────────────────────────────────────────


def optuna_groups(bench: Bench, storage: str, name: str | None = None) -> Iterator[Result]:
    """Compute the groups that no other worker with the same storage has taken.

    Every worker is started with the same command. The cells of a group are handed on when it is
    done. The group of a killed worker is taken up after ``GRACE`` seconds. A group with a cell that
    fails is left for another time; the error is raised when there is nothing else to do.
    """
    optuna = brought("optuna", "sweep")
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

    with heard(bench.say):
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
            bench.say(f"{others} of {len(groups)} groups are with other workers")
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
    ray = brought("ray", "cluster")
    todo = waiting(bench)
    if not todo:
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        cards = 1 if bench.on.device == "cuda" else 0
        task = ray.remote(num_cpus=bench.on.threads or 1, num_gpus=cards)(computed)
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
    """The bench as another machine can take it: whole paths, and nobody here to talk to."""
    # A task of one's own is a file, called by its name in every cell, wherever that file lies.
    files = [task if task in known() else str(Path(task).resolve()) for task in bench.grid.tasks]
    return replace(
        bench,
        grid=replace(bench.grid, tasks=tuple(files)),
        data=bench.data.resolve(),
        out=bench.out.resolve(),
        shared=bench.shared and bench.shared.resolve(),
        on=replace(
            bench.on,
            track=silent,
            note=unheard,
            cache=bench.on.cache and bench.on.cache.resolve(),
        ),
        say=unheard,
    )


# ── what every study needs ───────────────────────────────────────────────────────────────────


def brought(name: str, extra: str) -> Any:
    """A package that not everyone has installed."""
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            f"{name} is not installed; the extra `{extra}` has it", f"pip install {name}"
        ) from None


def opened(url: str, *, beats: bool) -> RDBStorage:
    """An Optuna storage; with ``beats`` its workers give signs of life.

    The trial of a worker that gives none any more is failed and queued again, by Optuna itself.
    """
    from optuna.exceptions import StorageInternalError
    from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
    from sqlalchemy import make_url
    from sqlalchemy.exc import SQLAlchemyError

    refusals = (ImportError, RuntimeError, SQLAlchemyError, StorageInternalError)
    more: dict[str, Any] = {}
    if url.startswith("sqlite"):
        more["engine_kwargs"] = {"connect_args": {"timeout": PATIENCE}}
    with experimental():
        if beats:
            again = RetryHeartbeatStaleTrialCallback()
            more |= {"heartbeat_interval": BEAT, "grace_period": GRACE}
            more["heartbeat_stale_trial_callback"] = again
        try:
            if "@" in (make_url(url).host or ""):  # the end of a password: a driver would show it
                raise ValueError
            return RDBStorage(url, **more)
        except refusals:  # of two workers that start together, both make the tables
            time.sleep(LOOK)
        except (ValueError, LookupError):  # their texts have parts of the address
            raise ConfigError(
                "cannot use that storage: its address cannot be read",
                "in a password write %40 for @, %7B for { and %7D for }",
            ) from None
        try:
            return RDBStorage(url, **more)
        except refusals as error:
            reason = str(error).partition("\n")[0]  # without the address: it may hold a password
            raise ConfigError(
                f"cannot use that storage: {reason}",
                "--storage sqlite:///FILE.db, or one of PostgreSQL or MySQL",
            ) from None


@contextmanager
def experimental() -> Iterator[None]:
    """Optuna calls signs of life an experiment, in a warning each time; that is said here once."""
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


@contextmanager
def heard(say: Callable[[str], object]) -> Iterator[None]:
    """Optuna's warnings go the way of all talk, each on one line."""

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"optuna: {record.getMessage()}")

    from optuna.logging import disable_default_handler, enable_default_handler, get_logger

    logger, handler = get_logger("optuna"), Said(logging.WARNING)
    disable_default_handler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        enable_default_handler()


def take_up(study: Study, wanted: Callable[[FrozenTrial], bool], *also: str) -> None:
    """Queue again what was stopped, by Ctrl-C or an error, and has not been queued since.

    ``also`` names further states of trials to queue.
    """
    from optuna.storages import RetryHeartbeatStaleTrialCallback

    trials = study.get_trials(deepcopy=False)
    since = {number for trial in trials for number in trial.system_attrs.get(HISTORY, ())}
    with experimental():
        again = RetryHeartbeatStaleTrialCallback()
    for trial in study.get_trials():
        ended = trial.state.name in ("FAIL", "PRUNED", *also)
        if ended and trial.number not in since and wanted(trial):
            again(study, trial)


def freed(study: Study) -> bool:
    """Whether a killed worker left something to take up; waits as long as it takes to tell."""
    from optuna.storages import fail_stale_trials

    end = time.monotonic() + BEAT + GRACE
    while count(study, "RUNNING") and time.monotonic() < end:
        with experimental():
            fail_stale_trials(study)
        if count(study, "WAITING"):
            return True
        time.sleep(LOOK)
    return False


def count(study: Study, state: str) -> int:
    """How many trials are in that state."""
    return sum(trial.state.name == state for trial in study.get_trials(deepcopy=False))
