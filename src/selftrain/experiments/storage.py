"""An Optuna storage that several processes share: open it, and queue stopped trials again."""

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

BEAT = 30  # seconds between two heartbeats of a worker
GRACE = 120  # seconds without a heartbeat after which a worker counts as killed
POLL = 1.0  # seconds between two looks at the trials of other workers
SQLITE_TIMEOUT = 60  # seconds that a process waits for another one to finish writing
HISTORY = "retry_history"  # Optuna's name for the numbers of the trials that a trial repeats


def extra_package(name: str, extra: str) -> Any:
    """An optional package; an error with the install command if it is missing."""
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            f"{name} is not installed; the extra `{extra}` has it", f"pip install {name}"
        ) from None


def open_storage(url: str, *, heartbeats: bool) -> RDBStorage:
    """Open an Optuna storage, with heartbeats of its workers or without.

    When the heartbeats of a worker stop, Optuna fails its trial and queues it again.
    """
    from optuna.exceptions import StorageInternalError
    from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
    from sqlalchemy import make_url
    from sqlalchemy.exc import SQLAlchemyError

    refusals = (ImportError, RuntimeError, SQLAlchemyError, StorageInternalError)
    options: dict[str, Any] = {}
    if url.startswith("sqlite"):
        options["engine_kwargs"] = {"connect_args": {"timeout": SQLITE_TIMEOUT}}
    with experimental():
        if heartbeats:
            options |= {"heartbeat_interval": BEAT, "grace_period": GRACE}
            options["heartbeat_stale_trial_callback"] = RetryHeartbeatStaleTrialCallback()
        try:
            if "@" in (make_url(url).host or ""):  # the end of a password: a driver would show it
                raise ValueError
            return RDBStorage(url, **options)
        except refusals:  # two workers that start together both create the tables
            time.sleep(POLL)
        except (ValueError, LookupError):  # their texts have parts of the address
            raise ConfigError(
                "cannot use that storage: its address cannot be read",
                "in a password write %40 for @, %7B for { and %7D for }",
            ) from None
        try:
            return RDBStorage(url, **options)
        except refusals as error:
            reason = str(error).partition("\n")[0]  # without the address: it may hold a password
            raise ConfigError(
                f"cannot use that storage: {reason}",
                "--storage sqlite:///FILE.db, or one of PostgreSQL or MySQL",
            ) from None


@contextmanager
def experimental() -> Iterator[None]:
    """Within it Optuna does not warn that heartbeats are experimental."""
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


@contextmanager
def optuna_logged() -> Iterator[None]:
    """Within it Optuna's warnings go to our log, each on one line."""

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


def requeue_stopped(study: Study, wanted: Callable[[FrozenTrial], bool], *also: str) -> None:
    """Queue trials again that Ctrl-C or an error stopped, unless they are queued already.

    ``also`` names further states of trials to queue.
    """
    from optuna.storages import RetryHeartbeatStaleTrialCallback

    trials = study.get_trials(deepcopy=False)
    repeated = {number for trial in trials for number in trial.system_attrs.get(HISTORY, ())}
    with experimental():
        queue_again = RetryHeartbeatStaleTrialCallback()
    for trial in study.get_trials():
        ended = trial.state.name in ("FAIL", "PRUNED", *also)
        if ended and trial.number not in repeated and wanted(trial):
            queue_again(study, trial)


def wait_for_stale_trial(study: Study) -> bool:
    """Whether a killed worker leaves a trial to repeat; waits until its grace period is over."""
    from optuna.storages import fail_stale_trials

    end = time.monotonic() + BEAT + GRACE
    while count_trials(study, "RUNNING") and time.monotonic() < end:
        with experimental():
            fail_stale_trials(study)
        if count_trials(study, "WAITING"):
            return True
        time.sleep(POLL)
    return False


def count_trials(study: Study, state: str) -> int:
    """The number of trials in a state."""
    return sum(trial.state.name == state for trial in study.get_trials(deepcopy=False))
