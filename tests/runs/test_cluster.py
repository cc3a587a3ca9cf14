"""A round annotated on a Ray cluster is the round of one process, whoever is killed on the way."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import small_run
from selftrain.data.pool import clean_pool
from selftrain.data.rows import Notes, Split
from selftrain.errors import ConfigError, RunError
from selftrain.model.backbone import Backbone
from selftrain.runs.annotate import StoredVotes
from selftrain.runs.cluster import ClusterVotes, PartAnnotator, connected, parts_of, room
from selftrain.runs.train import train
from selftrain.training import annotate as annotating
from selftrain.training.annotate import CHUNK, Part
from selftrain.training.job import Job

MACHINE = small_run.MACHINE
PARTS = 3


# ── without a cluster ────────────────────────────────────────────────────────────────────────


def test_the_parts_of_a_round_depend_on_its_rows_alone() -> None:
    assert [str(part) for part in parts_of(CHUNK + 1)] == ["0/2", "1/2"]
    assert len(parts_of(1)) == 1
    assert len(parts_of(100_000_000)) == 1_000


def test_a_gpu_is_asked_for_beside_the_cores() -> None:
    assert room({"CPU": 16.0, "GPU": 3.0}, {"num_cpus": 4, "num_gpus": 1}) == 3
    assert room({"CPU": 16.0}, {"num_cpus": 4, "num_gpus": 0}) == 4
    assert room({"CPU": 1.0}, {"num_cpus": 4, "num_gpus": 0}) == 1  # it waits for a machine


def test_a_cluster_that_is_gone_is_one_line_at_once(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cluster `127\.0\.0\.1:1` does not answer") as error:
        connected("127.0.0.1:1", tmp_path).__enter__()
    assert "goes on from the finished parts" in error.value.hint


@pytest.mark.parametrize("address", ["nonsense", "host:", ":6379", "host:99999", "host:६३"])
def test_an_address_that_is_none_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected local, auto or HOST:PORT"):
        connected(address, tmp_path).__enter__()


def test_without_ray_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="ray is not installed") as error:
        connected("local", tmp_path).__enter__()
    assert error.value.hint == "pip install 'selftrain[cluster]'"


def test_actors_that_got_the_job_by_pickle_give_the_parts_of_one_process(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them by turns, forwards and backwards, on a pool that is read as a stream."""
    monkeypatch.setattr(annotating, "CHUNK", 5)
    monkeypatch.setattr("selftrain.data.pool.MAX_ROWS_IN_MEMORY", 7)
    pool = clean_pool(small_run.split().unlabelled, notes=Notes())
    method = replace(small_run.METHOD, pool="all", rounds=1)
    job = small_run.job(backbone, method)
    job = replace(job, split=replace(job.split, unlabelled=pool))
    list(train(tmp_path / "whole", job, MACHINE))
    run, settings = tmp_path / "run", {"device": "cpu", "threads": 1, "cache_mb": 4096}
    training = train(run, job, MACHINE)
    next(training)
    training.close()

    sent = pickle.dumps((job, run, run / "parts", settings))
    first, second = (PartAnnotator(*pickle.loads(sent)) for _ in range(2))
    parts = parts_of(len(pool))
    for part in parts[::2]:
        first.annotate(part)
    for part in reversed(parts):
        second.annotate(part)
    list(train(run, job, MACHINE, annotate=StoredVotes(run, run / "parts")))
    assert results(run) == results(tmp_path / "whole")


def test_a_device_is_checked_where_it_is_used(backbone: Backbone, tmp_path: Path) -> None:
    settings = {"device": "tpu", "threads": 1, "cache_mb": 0}
    actor = PartAnnotator(small_run.job(backbone), tmp_path, tmp_path, settings)
    with pytest.raises(ConfigError, match="device is 'tpu'"):
        actor.annotate(Part(0, 1))


# ── on a cluster ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def job(tiny_backbone: Callable[[str], Backbone]) -> Job:
    """One round over a pool of three chunks."""
    backbone = tiny_backbone("bert")
    rows = [small_run.example(label, n) for n in range(4, 1100) for label in small_run.WORDS]
    method = replace(small_run.METHOD, pool="all", rounds=1, passes=2)
    return replace(
        small_run.job(backbone, method), split=Split(small_run.split().labelled, tuple(rows))
    )


@pytest.fixture(scope="module")
def whole(job: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    list(train(folder, job, MACHINE))
    return folder


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of two workers, that finds what this process imports."""
    import ray

    start = ray.init
    monkeypatch.setattr(
        ray, "init", lambda address, **how: start(address=address, num_cpus=2, **how)
    )


def results(run: Path) -> dict[str, bytes]:
    names = ("model.safetensors", "lesson.parquet")
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.name in names}


def after_the_first_part(parts: Path, do: Callable[[], object]) -> threading.Thread:
    """Do something when the first part is on disk."""

    def watch() -> None:
        while not list(parts.glob("1/*.json")):
            time.sleep(0.05)
        do()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def actors() -> Iterator[int]:
    """The processes of our actors, by the name that Ray gives them."""
    for entry in Path("/proc").iterdir():
        try:
            name = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if name.startswith(b"ray::PartAnnotator"):
            yield int(entry.name)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_cluster_gives_the_run_of_one_process_though_an_actor_is_killed(
    job: Job, whole: Path, two_cpus: None, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    killer = after_the_first_part(
        run / "parts", lambda: os.kill(next(iter(actors())), signal.SIGKILL)
    )
    votes = ClusterVotes(job, run, run / "parts", "local")
    list(train(run, job, MACHINE, annotate=votes))
    killer.join(timeout=60)
    assert not killer.is_alive()
    assert len(list((run / "parts" / "1").glob("*.json"))) == PARTS
    assert results(run) == results(whole)


@pytest.mark.slow
def test_a_node_that_is_lost_on_the_way_changes_nothing(
    job: Job, whole: Path, tmp_path: Path
) -> None:
    from ray.cluster_utils import Cluster

    run = tmp_path / "run"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        remover = after_the_first_part(
            run / "parts", lambda: cluster.remove_node(node, allow_graceful=False)
        )
        votes = ClusterVotes(job, run, run / "parts", cluster.address)
        list(train(run, job, MACHINE, annotate=votes))
        remover.join(timeout=60)
        assert not remover.is_alive()
    finally:
        cluster.shutdown()
    assert results(run) == results(whole)


@pytest.mark.slow
def test_an_error_on_a_worker_is_the_line_it_is_there(
    job: Job, two_cpus: None, tmp_path: Path
) -> None:
    """The device is checked where it is used."""
    run = tmp_path / "run"
    training = train(run, job, MACHINE)
    next(training)
    training.close()
    (run / "rounds" / "0" / "model.safetensors").write_bytes(b"half")
    votes = ClusterVotes(job, run, run / "parts", "local")
    with pytest.raises(RunError, match="is not what was written"):
        list(votes(None, job.split.unlabelled, 2, seed=1, machine=MACHINE))
