"""Storages of Optuna that several workers share: a journal file, a gRPC proxy, and what is none."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import optuna
import pytest
from optuna.storages import get_storage
from optuna.storages._grpc.server import make_server
from optuna.trial import TrialState

from selftrain.errors import ConfigError, RunError
from selftrain.experiments import storage
from selftrain.experiments.storage import lost_storage, open_storage, requeue_stopped
from small_sweep import complete

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.fixture
def port() -> int:
    """One that is free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def server(tmp_path, port):
    """Optuna's gRPC server in front of an SQLite file."""
    behind = get_storage(f"sqlite:///{tmp_path / 'behind.db'}")
    started = make_server(behind, "127.0.0.1", port)
    started.start()
    yield started
    started.stop(grace=None).wait()


@pytest.fixture
def proxy(server, port) -> str:
    return f"grpc://127.0.0.1:{port}"


@pytest.fixture(params=["journal", "proxy"])
def address(request, tmp_path) -> str:
    """A storage without heartbeats of Optuna's own."""
    if request.param == "journal":
        return f"journal://{tmp_path / 'sweep'}"
    return request.getfixturevalue("proxy")


def study_at(address: str) -> optuna.Study:
    opened = open_storage(address, heartbeats=True)
    return optuna.create_study(storage=opened, study_name="one", load_if_exists=True)


def test_a_path_that_ends_like_a_journal_is_one(tmp_path):
    for name in ("a.journal", "b.log"):
        study_at(str(tmp_path / name))
        assert json.loads((tmp_path / name).read_text().splitlines()[0])["op_code"] == 0


def test_workers_of_one_storage_share_the_trials(make_sweep, untrained, address):
    one, two = (make_sweep(name, storage=address, seeds=(12,)) for name in ("one", "two"))
    first = one.run(4)
    begun = [next(first), next(first)]
    rest = list(two.run(4))
    assert list(first) == []
    assert [each.number for each in begun + rest] == [0, 1, 2, 3]
    assert len(complete(one.trials())) == 4


def test_the_trial_of_a_worker_whose_heart_stopped_is_queued_again(address, monkeypatch):
    monkeypatch.setattr(storage, "GRACE", 0.05)
    killed = study_at(address).ask()  # beside `optimize`, where no heart beats
    killed.suggest_categorical("alpha", (0.5,))
    study = study_at(address)
    optuna.storages.fail_stale_trials(study)
    assert study.trials[0].state == TrialState.RUNNING  # seen for the first time
    time.sleep(0.1)
    optuna.storages.fail_stale_trials(study)
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.FAIL, TrialState.WAITING]
    assert study.trials[1].params == {"alpha": 0.5}
    requeue_stopped(study, lambda _: True)  # it is queued already
    assert len(study.trials) == 2


def test_the_trial_of_a_worker_that_lives_is_left_to_it(address, monkeypatch):
    monkeypatch.setattr(storage, "GRACE", 0.3)
    monkeypatch.setattr(storage, "BEAT", 0.02)
    others = study_at(address)
    states = []

    def long(_trial):
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            optuna.storages.fail_stale_trials(others)
            time.sleep(0.05)
        states.append(others.trials[0].state)
        return 1.0

    study_at(address).optimize(long, n_trials=1)
    assert states == [TrialState.RUNNING]
    assert [trial.state for trial in others.trials] == [TrialState.COMPLETE]


def test_a_proxy_that_is_gone_is_one_line(proxy, server):
    study = study_at(proxy)

    def score(_trial):
        server.stop(grace=None).wait()
        return 1.0

    with pytest.raises(RunError, match="the storage does not answer any more"), lost_storage():
        study.optimize(score, n_trials=1)


def test_a_server_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(storage, "CONNECT_SECONDS", 0.5)
    with socket.socket() as silent:  # takes connections, and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"grpc://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConfigError, match=r"nothing answers within 0\.5 s") as error:
            open_storage(address, heartbeats=True)
    assert "run_grpc_proxy_server" in error.value.hint


def test_a_server_of_another_kind_is_no_storage():
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with pytest.raises(ConfigError, match="what answers there is no storage of Optuna"):
        open_storage(f"grpc://127.0.0.1:{port}", heartbeats=True)
    server.stop(grace=None).wait()


@pytest.mark.parametrize("content", ["epoch 1 of 3\n", '{"level": "info"}\n', "[1]\n", "no end"])
def test_a_file_that_is_no_journal_is_refused_and_stays_as_it_is(tmp_path, content):
    path = tmp_path / "training.log"
    path.write_text(content)
    with pytest.raises(ConfigError, match="it is no journal of Optuna"):
        open_storage(str(path), heartbeats=True)
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("journal://nowhere/sweep", "cannot use the journal nowhere/sweep: No such file"),
        ("journal://.", "Is a directory"),
        ("grpc://host", "names no host and port"),
        ("grpc://host:ninety", "names no host and port"),
        ("redis://host", "cannot use that storage: Can't load plugin"),
    ],
)
def test_a_storage_that_cannot_be_used_is_named(tmp_path, monkeypatch, address, problem):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(storage, "POLL", 0.0)
    with pytest.raises(ConfigError, match=problem) as error:
        open_storage(address, heartbeats=True)
    assert "--storage" in error.value.hint
    assert list(Path().iterdir()) == []
