"""An Optuna storage that workers and sweeps share: opening it, trials to take up again."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)

BEAT = 30  # seconds between two signs of life of a worker
GRACE = 120  # seconds without one after which a worker counts as killed
LOOK = 1.0  # seconds between two looks at what the others do
PATIENCE = 60  # seconds that a process waits for another one to finish writing to SQLite
HISTORY = "retry_history"  # Optuna's name for the numbers of the trials that one takes up again


# ── what every study needs ───────────────────────────────────────────────────────────────────


def extra_package(name: str, extra: str) -> Any:
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
def optuna_logged() -> Iterator[None]:
    """Within it Optuna's warnings go to our own log, each on one line."""

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.warning(f"optuna: {record.getMessage()}")

    from optuna.logging import disable_default_handler, enable_default_handler, get_logger

    logger, handler = get_logger("optuna"), Forward(logging.WARNING)
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
