"""Many workers on one grid: every cell once, whoever is killed or comes late."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from filelock import FileLock

from by_hand import MACHINE
from cells import CELL
from command import selftrain as command
from selftrain.errors import ConfigError, RunError
from selftrain.experiments import results, storage, workers
from selftrain.experiments.bench import Bench
from selftrain.experiments.workers import optuna_groups, ray_groups
from small_bench import FT, three, write_grid

TESTS = str(Path(__file__).parents[1] / "support")


@pytest.fixture
def make_bench(data, tmp_path, tiny_folder):
    def make(out="out", **more) -> Bench:
        return three(data, tmp_path / out, tiny_folder("bert"), **more)

    return make


@pytest.fixture
def address(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'workers.db'}"


@pytest.fixture
def impatient(monkeypatch):
    """Signs of life every second, and none for two seconds is death."""
    for name, seconds in (("BEAT", 1), ("GRACE", 2), ("POLL", 0.2)):
        monkeypatch.setattr(storage, name, seconds)


WORKER = """\
import logging, os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from selftrain.experiments import storage, tasksets, workers
from small_bench import three
tasksets.DESIGN, storage.BEAT, storage.GRACE, storage.POLL = 20, 1, {grace}, 0.2
class KillInRound1(logging.Handler):
    def emit(self, record):
        if "round 1/1" in record.getMessage():
            os.kill(os.getpid(), signal.SIGKILL)
if {killed}:
    logging.getLogger("selftrain").setLevel(logging.INFO)
    logging.getLogger("selftrain").addHandler(KillInRound1())
bench = three(Path({data!r}), Path({out!r}), {backbone!r})
print(len(list(workers.optuna_groups(bench, {address!r}))))
"""


def worker(
    bench: Bench, address: str, *, killed: bool = False, grace: int = 60
) -> subprocess.Popen:
    script = WORKER.format(
        tests=TESTS,
        killed=killed,
        grace=grace,
        data=str(bench.data),
        out=str(bench.out),
        backbone=bench.grid.backbones[0],
        address=address,
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def lines(bench: Bench) -> list[str]:
    return (bench.out / "cells.jsonl").read_text().splitlines()


# ── through a storage ────────────────────────────────────────────────────────────────────────


def test_two_workers_compute_each_cell_once(make_bench, address):
    """They start together: the tables, the study and the groups are made or taken once."""
    here = make_bench()
    both = [worker(here, address) for _ in range(2)]
    counts = [int(each.communicate(timeout=250)[0]) for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert sum(counts) == len(lines(here)) == 9
    assert len({result.key for result in results.read(here.out / "cells.jsonl")}) == 9
    assert here.missing() == []


def test_one_worker_finds_what_a_bench_finds(make_bench, address):
    alone = {result.key: result.accuracy for result in make_bench("alone").run()}
    found = {result.key: result.accuracy for result in optuna_groups(make_bench(), address)}
    assert found == alone


def test_the_group_of_a_killed_worker_is_taken_up(make_bench, address, impatient):
    here = make_bench()
    victim = worker(here, address, killed=True, grace=2)
    victim.communicate(timeout=250)
    assert victim.returncode == -signal.SIGKILL
    whole = {path: path.stat().st_mtime_ns for path in here.out.rglob("round.json")}
    assert whole
    list(optuna_groups(here, address))
    assert here.missing() == []
    assert len(lines(here)) == 9
    assert all(path.stat().st_mtime_ns == then for path, then in whole.items())


def test_a_group_stopped_by_an_error_is_taken_up(make_bench, address, monkeypatch):
    here = make_bench(seeds=(12, 21), methods={})

    def broken(*_):
        raise RunError("the disk is full", "make room")

    with monkeypatch.context() as patch:
        patch.setattr(Bench, "cell", broken)
        with pytest.raises(RunError):
            list(optuna_groups(here, address))
    assert len(list(optuna_groups(here, address))) == 2
    assert list(optuna_groups(here, address)) == []


def test_groups_whose_cells_are_lost_or_in_another_folder_are_computed_again(make_bench, address):
    """The storage says that they are done; what counts is whether the cells are there."""
    here, there = (make_bench(out, seeds=(12, 21), methods={}) for out in ("out", "there"))
    assert len(list(optuna_groups(here, address))) == 2
    (here.out / "cells.jsonl").unlink()
    assert len(list(optuna_groups(here, address))) == 2
    assert len(list(optuna_groups(there, address))) == 2
    assert here.missing() == there.missing() == []
    assert list(optuna_groups(here, address)) == []


def test_a_group_that_fails_ends_no_worker(make_bench, address, monkeypatch):
    here, whole = make_bench(methods={}), Bench.cell

    def broken(self, inputs, name):
        if inputs.group.seed == 21:
            raise RunError("its folder is damaged", "remove it")
        return whole(self, inputs, name)

    monkeypatch.setattr(Bench, "cell", broken)
    with pytest.raises(RunError, match="its folder is damaged"):
        list(optuna_groups(here, address))
    assert [group.seed for group, _ in here.missing()] == [21]
    assert len(lines(here)) == 2


def test_a_run_that_another_process_writes_is_left_to_it(make_bench, address):
    here = make_bench(seeds=(12,), methods={"ft": FT})
    (group,) = here.grid.groups()
    folder = here.folder(group, "ft", FT)
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"):
        assert [result.method for result in optuna_groups(here, address)] == ["majority"]
    assert [result.method for result in optuna_groups(here, address)] == ["ft"]


def test_a_larger_grid_is_another_study_unless_it_is_named(make_bench, address):
    small, large = make_bench(seeds=(12,), methods={}), make_bench(seeds=(12, 21), methods={})
    assert len(list(optuna_groups(small, address, "mine"))) == 1
    assert len(list(optuna_groups(large, address))) == 1
    with pytest.raises(ConfigError, match="study `mine` is of another grid"):
        list(optuna_groups(large, address, "mine"))


def test_a_grid_of_another_preset_has_cells_of_its_own_and_so_a_study(make_bench):
    assert workers.grid_hash(make_bench(preset="published")) != workers.grid_hash(
        make_bench(preset="paper")
    )
    assert workers.grid_hash(make_bench(preset="paper")) == workers.grid_hash(
        make_bench(preset="paper")
    )


@pytest.mark.parametrize("url", ["nonsense", "sqlite:////nowhere/at/all.db", "oracle+x://me:pw@h"])
def test_a_storage_that_cannot_be_used_is_named_without_its_password(make_bench, url, monkeypatch):
    monkeypatch.setattr(storage, "POLL", 0)
    with pytest.raises(ConfigError, match="cannot use that storage") as error:
        next(optuna_groups(make_bench(), url))
    assert "pw" not in error.value.message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:p@ss:w0rd@host/db",
        "postgresql://user:p@ssw0rd@host/db",
        "postgresql://user:pw{ssw0rd}@host/db",
        "postgresql://user:pw{0}ssw0rd@host/db",
        "postgresql://user:pw}ssw0rd@host/db",
    ],
)
def test_an_address_that_cannot_be_read_is_not_shown(url):
    with pytest.raises(ConfigError, match="its address cannot be read") as error:
        storage.open_storage(url, heartbeats=False)
    shown = error.value.message + error.value.hint
    assert not any(part in shown for part in ("user", "ss:", "w0rd", "pw", "host"))
    assert error.value.__suppress_context__


def test_what_is_not_installed_is_named_with_how_to_get_it(make_bench, monkeypatch):
    for name, extra, start in (
        ("ray", "cluster", lambda: ray_groups(make_bench(), "local")),
        ("optuna", "sweep", lambda: optuna_groups(make_bench(), "sqlite://")),
    ):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ConfigError, match=f"{name} is not installed") as error:
            next(start())
        assert f"the extra `{extra}`" in error.value.message
        assert error.value.hint == f"pip install {name}"


def test_a_bench_travels_without_its_progress_bar(make_bench):
    import pickle

    here = replace(make_bench(), machine=replace(MACHINE, progress=lambda steps, *_: steps))
    there = pickle.loads(pickle.dumps(workers.portable(here)))
    assert there.missing() == here.missing()
    assert there.out.is_absolute()


def test_a_task_file_is_found_from_any_folder(make_bench, tmp_path, monkeypatch):
    text = 'name = "sst2"\nlabels = ["negative", "positive"]\n'
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    here = make_bench(tasks=("mine.toml",), methods={})
    there = workers.portable(here)
    monkeypatch.chdir("/")
    assert there.grid.tasks == (str(tmp_path / "mine.toml"),)
    assert {group.task_name for group, _ in there.missing()} == {"sst2"}
    assert workers.portable(make_bench(tasks=("sst2",))).grid.tasks == ("sst2",)


# ── one file of cells ────────────────────────────────────────────────────────────────────────


def test_lines_of_several_writers_are_all_there(tmp_path):
    path = tmp_path / "cells.jsonl"
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda seed: results.append(path, replace(CELL, seed=seed)), range(100)))
    assert sorted(result.seed for result in results.read(path)) == list(range(100))


def test_half_a_line_that_is_being_written_is_not_taken_off(tmp_path):
    path = tmp_path / "cells.jsonl"
    whole = json.dumps(asdict(CELL)) + "\n"
    with ThreadPoolExecutor(1) as other:
        with FileLock(f"{path}.lock"):
            path.write_text(whole[:20])
            later = other.submit(results.append, path, replace(CELL, seed=21))
            assert not wait([later], timeout=0.3).done
            path.write_text(whole)
        later.result(timeout=60)
    assert [result.seed for result in results.read(path)] == [12, 21]


# ── the command ──────────────────────────────────────────────────────────────────────────────


def test_the_command_shares_a_grid_through_a_storage(data, tmp_path, tiny_folder, address):
    line = (
        f"bench {data} -o {tmp_path / 'out'} --grid {write_grid(tmp_path)} --on design "
        f"--backbone {tiny_folder('bert')} --threads 1 --storage {address} --study mine"
    )
    first = command(line)
    assert first.code == 0, first.err
    assert "2 cells written" in first.err
    assert first.out == ""
    assert "0 cells written" in command(line).err


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ("--storage sqlite:///x.db --ray local", "--storage and --ray are both given"),
        ("--study mine", "--study names a grid in a storage"),
    ],
)
def test_flags_that_do_not_go_together_are_named(data, tmp_path, flags, problem):
    outcome = command(f"bench {data} -o {tmp_path / 'out'} {flags}")
    assert (outcome.code, problem in outcome.err) == (1, True), outcome.err
    assert "hint: " in outcome.err
