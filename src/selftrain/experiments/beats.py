"""Heartbeats for the storages of Optuna that have none: the journal file and the gRPC proxy.

Optuna (5.0) gives heartbeats to databases only: elsewhere the trial of a killed worker would stay
`running` for ever. Here a worker writes another token to its trial every ``BEAT`` seconds. Who sees
the same token for ``GRACE`` seconds, by a clock of its own, takes the worker for killed: the clocks
of the machines need not agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from optuna.storages import (
    BaseStorage,
    GrpcStorageProxy,
    JournalStorage,
    RetryHeartbeatStaleTrialCallback,
)
from optuna.storages._heartbeat import BaseHeartbeat  # what Optuna asks a storage for
from optuna.trial import TrialState

from selftrain.experiments import storage

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

TOKEN = "heartbeat"  # noqa: S105  (the name of an attribute)


class Beating(BaseStorage, BaseHeartbeat):
    """A storage whose workers leave a new token on their trials again and again."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._seen: dict[int, tuple[str, float]] = {}
        """The last token of each running trial, and when it was first seen."""

    def record_heartbeat(self, trial_id: int) -> None:
        """Leave a new token on a trial."""
        with suppress(Exception):  # a lost beat is no error: what the trial writes next is
            self.set_trial_system_attr(trial_id, TOKEN, token_hex(4))

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        """The running trials whose token did not change for too long."""
        now = time.monotonic()
        stale = []
        for trial in self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,)):
            token = trial.system_attrs.get(TOKEN, "")
            last, since = self._seen.get(trial._trial_id, (None, now))
            if last != token:
                since = now
                self._seen[trial._trial_id] = (token, now)
            if now - since > storage.GRACE:
                stale.append(trial._trial_id)
        return stale

    def get_heartbeat_interval(self) -> int:
        """The seconds between two beats."""
        return storage.BEAT

    def get_heartbeat_stale_trial_callback(self) -> Callable[[Study, FrozenTrial], None]:
        """What queues the trial of a killed worker again."""
        with storage.experimental():
            return RetryHeartbeatStaleTrialCallback()


class Journal(Beating, JournalStorage):
    """A journal file with heartbeats."""


class Proxy(Beating, GrpcStorageProxy):
    """A gRPC proxy with heartbeats."""
