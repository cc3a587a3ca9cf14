"""A run in object storage: whole rounds, nothing written over, no text, and a copy that goes on."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

import small_run
from finished_run import finish
from object_store import object_store
from selftrain.errors import ConfigError, RunError
from selftrain.model.backbone import load
from selftrain.runs.publish import Store, publish

__all__ = ["object_store"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, tiny_folder) -> Path:
    """A finished run of two rounds, with all that `fit` leaves behind but the page."""
    job = small_run.job(load(tiny_folder("bert")), small_run.METHOD)
    return finish(tmp_path_factory.mktemp("published") / "run", job)


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of the run that a test may change."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def store() -> Store:
    """A new place in memory."""
    return Store.at(f"memory://{uuid4()}/run")


def names(store: Store) -> list[str]:
    """Every object, in the order of its name."""
    root = store.files._strip_protocol(store.prefix)
    return sorted(name.removeprefix(root).lstrip("/") for name in store.files.find(root))


def files(run: Path) -> list[str]:
    """Every file of a run but its lock."""
    found = (path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file())
    return sorted(name for name in found if not name.endswith(".lock"))


def order_of(monkeypatch) -> list[str]:
    """The files that are copied, as they are."""
    copied, create = [], Store._create

    def noted(self, path, target):
        create(self, path, target)
        copied.append(target.removeprefix(self.prefix + "/"))

    monkeypatch.setattr(Store, "_create", noted)
    return copied


def test_the_copy_is_the_run_without_its_lock(run, store):
    assert publish(run, store) == len(files(run))
    assert names(store) == files(run)
    for name in files(run):
        assert store.files.cat_file(f"{store.prefix}/{name}") == (run / name).read_bytes()


def test_the_manifest_comes_first_and_the_record_of_a_round_after_its_files(
    run, store, monkeypatch
):
    copied = order_of(monkeypatch)
    publish(run, store)
    assert copied[0] == "manifest.json"
    places = {name: place for place, name in enumerate(copied)}
    records = [name for name in copied if name.endswith("round.json")]
    assert len(records) > 2
    for record in records:
        folder = record.removesuffix("round.json")
        assert all(places[name] <= places[record] for name in copied if name.startswith(folder))
    last_round = max(place for name, place in places.items() if "rounds/" in name)
    assert places["estimate.json"] > last_round


def test_what_is_there_is_not_copied_again(run, store, monkeypatch):
    publish(run, store)
    copied = order_of(monkeypatch)
    assert publish(run, store) == 0
    assert copied == []


@pytest.mark.parametrize("stop", [0, 1, 3, 4, 7])
def test_an_interrupted_copy_goes_on(run, store, monkeypatch, stop):
    create, done = Store._create, []

    def breaking(self, path, target):
        if len(done) == stop:
            raise ConnectionResetError("the network is gone")
        done.append(target)
        create(self, path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_create", breaking)
        with pytest.raises(RunError, match=r"cannot publish to memory://.*: the network is gone"):
            publish(run, store)
    assert len(names(store)) == stop
    assert publish(run, store) == len(files(run)) - stop
    assert names(store) == files(run)


def test_a_second_run_is_refused_by_its_manifest(run, store):
    publish(run, store)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"seed": 8}))
    with pytest.raises(RunError, match=r"run/manifest\.json is there already, with other content"):
        publish(run, store)


def test_an_object_with_other_content_is_refused_by_its_name(run, store):
    store.files.pipe_file(f"{store.prefix}/rounds/1/lesson.parquet", b"of somebody else")
    with pytest.raises(RunError, match=r"rounds/1/lesson\.parquet is there already"):
        publish(run, store)
    assert "rounds/0/round.json" in names(store)
    assert "rounds/1/round.json" not in names(store)


def test_a_damaged_round_does_not_leave(run, store):
    with (run / "rounds" / "1" / "lesson.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(RunError, match="its sha256 differs"):
        publish(run, store)
    assert not any(name.startswith("rounds/1/") for name in names(store))


def test_a_run_that_goes_on_has_rounds_alone(run, store):
    publish(run, store, rounds_only=True)
    assert {name.partition("/")[0] for name in names(store)} == {"manifest.json", "rounds"}


def test_the_end_of_an_unfinished_run_is_not_copied(run, store):
    number = max(int(path.name) for path in (run / "rounds").iterdir())
    shutil.rmtree(run / "rounds" / str(number))
    publish(run, store)
    assert "estimate.json" not in names(store)


def test_no_text_leaves(finished, store):
    publish(finished, store)
    texts = [row.text for row in small_run.split().unlabelled]
    texts += [row.example.text for row in small_run.split().labelled]
    objects = [store.files.cat_file(f"{store.prefix}/{name}") for name in names(store)]
    assert not [text for text in texts for each in objects if text.encode() in each]


def test_a_folder_takes_a_run_as_a_bucket_does(run, tmp_path):
    store = Store.at(f"file://{tmp_path / 'shared' / 'copy'}")
    publish(run, store)
    assert files(tmp_path / "shared" / "copy") == files(run)
    with pytest.raises(FileExistsError):
        store._create(run / "manifest.json", f"{store.prefix}/manifest.json")
    assert publish(run, store) == 0


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("bucket/run", "expected one of s3://…, gs://…"),
        ("ftp://host/run", "cannot publish to `ftp://host/run`"),
        ("s3://", "no bucket with a prefix"),
        ("s3://key:secret@bucket/run", "no bucket with a prefix"),
        ("s3://bucket/../other", "no bucket with a prefix"),
    ],
)
def test_an_address_that_no_store_has_is_named(address, problem):
    with pytest.raises(ConfigError) as error:
        Store.at(address)
    assert problem in error.value.message
    assert "secret" not in error.value.message
    assert "s3://BUCKET/PREFIX" in error.value.hint


def test_without_its_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(ConfigError, match="s3fs is not installed") as error:
        Store.at("s3://bucket/run")
    assert error.value.hint == "pip install 'selftrain[s3]'"


# ── S3 itself, as moto has it ────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_s3_has_the_run_and_a_second_writer_is_refused_by_the_store(run, object_store, monkeypatch):
    store = Store.at(f"{object_store}/team/run")
    assert publish(run, store) == len(files(run))
    assert names(store) == files(run)
    assert publish(run, store) == 0
    manifest = store.files.cat_file(f"{store.prefix}/manifest.json")
    other = run.with_name("other.json")
    other.write_text("{}")
    with pytest.raises(OSError, match="pre-conditions"):  # If-None-Match, not a look before
        store._create(other, f"{store.prefix}/manifest.json")
    with pytest.raises(RunError, match=r"manifest\.json is there already"):
        store.create(other, "manifest.json")
    assert store.files.cat_file(f"{store.prefix}/manifest.json") == manifest


@pytest.mark.slow
def test_of_two_writers_that_both_saw_nothing_one_is_refused(run, object_store, monkeypatch):
    """The second looks before the first writes: only the store can refuse it."""
    store, other = (Store.at(f"{object_store}/race") for _ in range(2))
    own = run.with_name("other.json")
    own.write_text("{}")
    create = Store._create

    def late(self, path, target):
        monkeypatch.setattr(Store, "_create", create)
        publish(run, other)
        create(self, path, target)

    monkeypatch.setattr(Store, "_create", late)
    with pytest.raises(RunError, match=r"manifest\.json is there already, with other content"):
        store.create(own, "manifest.json")
    assert names(other) == files(run)


@pytest.mark.slow
def test_a_file_in_parts_is_created_only_once_too(object_store, tmp_path):
    """s3fs sends files of 100 MB and more in parts: the condition is on the call that ends them."""
    large = tmp_path / "model.safetensors"
    with large.open("wb") as file:
        file.truncate(101 * 2**20)
    store = Store.at(f"{object_store}/large")
    assert store.create(large, "model.safetensors")
    with pytest.raises(OSError, match="pre-conditions"):
        store._create(large, f"{store.prefix}/model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "credentials"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "127.0.0.1:9"),
        ({}, "bucket does not exist"),
    ],
)
def test_what_a_store_refuses_is_one_line(run, object_store, monkeypatch, changes, problem):
    monkeypatch.setenv("HOME", str(run))  # no credentials of a person
    for name, value in changes.items():
        with suppress(KeyError):
            monkeypatch.delenv(name)
        if value is not None:
            monkeypatch.setenv(name, value)
    place = f"{object_store}/run" if changes else "s3://nobodys/run"
    with pytest.raises(RunError, match=problem) as error:
        publish(run, Store.at(place))
    assert "\n" not in error.value.message
    assert "selftrain publish" in error.value.hint
