"""An Optuna storage that several processes share: open it, and queue stopped trials again."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.errors import ConfigError, RunError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage, GrpcStorageProxy, JournalStorage, RDBStorage
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)

BEAT = 30  # seconds between two heartbeats of a worker
GRACE = 120  # seconds without a heartbeat after which a worker counts as killed
POLL = 1.0  # seconds between two looks at the trials of other workers
SQLITE_TIMEOUT = 60  # seconds that a process waits for another one to finish writing
CONNECT_SECONDS = 10  # how long a server may take until it answers
LONGEST_LINE = 2**20  # bytes of a journal's first line that are read to know it
WITH_TIMEOUT = {
    *("postgresql", "postgresql+psycopg2", "postgresql+psycopg"),
    *("mysql", "mysql+mysqldb", "mysql+pymysql"),
}
"""The database drivers that know ``connect_timeout``."""
JOURNAL_HINT = "name a new file in a folder that all workers reach: --storage journal://FILE"
PROXY_HINT = (
    'start one: python -c "from optuna.storages import *; '
    "run_grpc_proxy_server(get_storage('sqlite:///sweep.db'), host='0.0.0.0', port=13000)\""
)
HISTORY = "retry_history"  # Optuna's name for the numbers of the trials that a trial repeats


def open_storage(url: str, *, heartbeats: bool) -> BaseStorage:
    """Open an Optuna storage: a database, a journal file, or a gRPC proxy before either.

    With heartbeats of its workers, a trial whose heartbeats stop is failed and queued again. A
    journal and a proxy always have them.
    """
    scheme, separator, rest = url.partition("://")
    if scheme == "journal" and separator:
        return open_journal(Path(rest))
    if not separator and url.endswith((".journal", ".log")):
        return open_journal(Path(url))
    if scheme == "grpc" and separator:
        return open_proxy(rest)
    return open_database(url, heartbeats=heartbeats)


def open_journal(path: Path) -> JournalStorage:
    """Open a journal file, which workers on several machines append to, also over NFS."""
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    from selftrain.experiments.beats import Journal

    try:
        check_journal(path)
        # The lock that Optuna names for NFS 3 and later; a lock that a killed worker left is
        # broken after half a minute.
        backend = JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path)))
        with experimental():
            return Journal(backend)
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, LookupError, TypeError):
        reason = "it is no journal of Optuna, or a damaged one"
    raise ConfigError(f"cannot use the journal {path}: {reason}", JOURNAL_HINT)


def check_journal(path: Path) -> None:
    """Raise a ValueError for a file with something else in it, which would get our lines too."""
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            first = json.loads(file.readline(LONGEST_LINE))
        if not (isinstance(first, dict) and "op_code" in first):
            raise ValueError


def open_proxy(address: str) -> GrpcStorageProxy:
    """Connect to Optuna's gRPC server, which keeps the trials in a storage of its own."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # or its lines would stand between ours
    try:
        grpc = import_module("grpc")
    except ImportError:
        raise ConfigError(
            "grpcio is not installed; the extra `sweep` has it", "pip install 'selftrain[sweep]'"
        ) from None
    from selftrain.experiments.beats import Proxy

    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise ConfigError(
            f"cannot use that storage: `grpc://{address}` names no host and port",
            "--storage grpc://HOST:13000",
        )
    with experimental():
        storage = Proxy(host=host, port=int(port))
    try:
        storage.wait_server_ready(timeout=CONNECT_SECONDS)
        storage.get_all_studies()  # something else may listen there
    except (ConnectionError, grpc.RpcError) as error:
        storage.close()
        reason = (
            f"nothing answers within {CONNECT_SECONDS} s"
            if isinstance(error, ConnectionError)
            else "what answers there is no storage of Optuna"
        )
        raise ConfigError(
            f"cannot use the storage grpc://{address}: {reason}", PROXY_HINT
        ) from None
    return storage


def open_database(url: str, *, heartbeats: bool) -> RDBStorage:
    """Open a database by its SQLAlchemy address, with heartbeats of its workers or without."""
    from optuna.exceptions import StorageInternalError
    from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
    from sqlalchemy import make_url
    from sqlalchemy.exc import SQLAlchemyError

    refusals = (ImportError, RuntimeError, SQLAlchemyError, StorageInternalError)
    options: dict[str, Any] = {}
    with experimental():
        if heartbeats:
            options |= {"heartbeat_interval": BEAT, "grace_period": GRACE}
            options["heartbeat_stale_trial_callback"] = RetryHeartbeatStaleTrialCallback()
        try:
            address = make_url(url)
            if "@" in (address.host or ""):  # the end of a password: a driver would show it
                raise ValueError
            options["engine_kwargs"] = {"connect_args": time_limits(address.drivername)}
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
                "--storage sqlite:///FILE.db, one of PostgreSQL or MySQL, journal://FILE, "
                "or grpc://HOST:PORT",
            ) from None


def time_limits(driver: str) -> dict[str, int]:
    """How long a database driver waits, as it names it; a server that is off would take minutes.

    >>> time_limits("sqlite"), time_limits("postgresql+psycopg2"), time_limits("oracle")
    ({'timeout': 60}, {'connect_timeout': 10}, {})
    """
    if driver.startswith("sqlite"):
        return {"timeout": SQLITE_TIMEOUT}
    return {"connect_timeout": CONNECT_SECONDS} if driver in WITH_TIMEOUT else {}


@contextmanager
def lost_storage() -> Iterator[None]:
    """Within it a storage that stops answering is an error with a hint."""
    from optuna.exceptions import StorageInternalError

    grpc = sys.modules.get("grpc")
    losses = (StorageInternalError, *((grpc.RpcError,) if grpc else ()))
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, losses):
            cause = cause.__context__  # Optuna, left without an answer, may stumble over another
        if cause is None:
            raise
        raise RunError(
            "the storage does not answer any more",
            "start it again, then give the same command: what is finished stays",
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
