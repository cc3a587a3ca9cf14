"""A round annotated in parts is the round of one process; other parts are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import small_run
from command import snapshot
from selftrain.data import audit_lines
from selftrain.data.pool import clean_pool
from selftrain.data.rows import Notes
from selftrain.disk import sha256
from selftrain.errors import ConfigError, RunError
from selftrain.method.selection import Reliable
from selftrain.model.backbone import Backbone
from selftrain.runs.annotate import StoredVotes, annotate_part, check_has_parts, check_same_run
from selftrain.runs.train import train
from selftrain.training import annotate as annotating
from selftrain.training.annotate import Part
from selftrain.training.job import Job

MACHINE = small_run.MACHINE
METHODS = {
    **{name: small_run.METHODS[name] for name in ("sampled", "laptop")},
    "ranks": replace(
        small_run.METHOD,
        select=replace(small_run.METHOD.select, score=Reliable(scale="rank"), align=True),
    ),
}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of 24 rows has five chunks, the last one shorter."""
    monkeypatch.setattr(annotating, "CHUNK", 5)


@pytest.fixture(scope="module")
def whole(
    tiny_backbone: Callable[[str], Backbone], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A run of one process, by the name of its method."""
    root = tmp_path_factory.mktemp("whole")

    @cache
    def of(name: str) -> Path:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(annotating, "CHUNK", 5)
            list(train(root / name, job_of(tiny_backbone("bert"), name), MACHINE))
        return root / name

    return of


def job_of(backbone: Backbone, name: str = "sampled") -> Job:
    return small_run.job(backbone, METHODS[name])


def begun(run: Path, job: Job, rounds: int = 1) -> Path:
    """A run that was stopped after so many rounds, round 0 among them."""
    training = train(run, job, MACHINE)
    for _ in range(rounds):
        next(training)
    training.close()
    return run


def annotate_all(job: Job, run: Path, parts: Path, of: int) -> None:
    for number in range(of):
        annotate_part(job, run, parts, Part(number, of), MACHINE)


def go_on(job: Job, run: Path, parts: Path) -> None:
    """Train the next round from its parts."""
    votes = StoredVotes(run, parts)
    training = train(run, job, MACHINE, annotate=votes)
    for round_ in training:
        if votes.why_stop(round_.number + 1):
            break
    training.close()


def results(run: Path) -> dict[str, bytes]:
    """The models and lessons of all rounds."""
    names = ("model.safetensors", "lesson.parquet")
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.name in names
    }


class Stopped:
    """A run with its teacher, and the folder of its parts."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.run, self.parts = job, folder / "run", folder / "parts"

    def annotate(self, number: int, of: int) -> bool:
        return annotate_part(self.job, self.run, self.parts, Part(number, of), MACHINE)

    def card(self, number: int, of: int) -> Path:
        return self.parts / "1" / f"{number}-of-{of}.json"


@pytest.fixture(scope="module")
def teacher_alone(
    tiny_backbone: Callable[[str], Backbone], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return begun(tmp_path_factory.mktemp("begun") / "run", job_of(tiny_backbone("bert")))


@pytest.fixture
def stopped(teacher_alone: Path, backbone: Backbone, tmp_path: Path) -> Stopped:
    shutil.copytree(teacher_alone, tmp_path / "run")
    return Stopped(job_of(backbone), tmp_path)


# ── equal to one process ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "of"),
    [*(("sampled", of) for of in (1, 2, 3, 5)), ("laptop", 2), ("laptop", 7), ("ranks", 3)],
)
def test_a_run_in_parts_is_the_run_of_one_process_bit_for_bit(
    name: str, of: int, whole: Callable[[str], Path], backbone: Backbone, tmp_path: Path
) -> None:
    """Lessons and models of both rounds, with more parts than chunks too."""
    job, run, parts = job_of(backbone, name), tmp_path / "run", tmp_path / "parts"
    begun(run, job)
    for _ in range(2):
        annotate_all(job, run, parts, of)
        go_on(job, run, parts)
    assert results(run) == results(whole(name))
    assert len(results(run)) == 6


def test_the_parts_of_a_streamed_pool_give_the_run_of_one_process(
    backbone: Backbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool that is too long for memory, in the order of its source, with a long audit."""
    monkeypatch.setattr("selftrain.data.pool.MAX_ROWS_IN_MEMORY", 7)
    monkeypatch.setattr(audit_lines, "MAX_LINES_IN_MEMORY", 7)
    job = job_of(backbone)
    pool = clean_pool(list(job.split.unlabelled), notes=Notes())
    assert not pool.in_memory
    method = replace(job.method, pool="all", rounds=1)
    job = replace(job, method=method, split=replace(job.split, unlabelled=pool))
    list(train(tmp_path / "whole", job, MACHINE))

    run, parts = begun(tmp_path / "run", job), tmp_path / "parts"
    annotate_all(job, run, parts, 3)
    go_on(job, run, parts)
    assert results(run) == results(tmp_path / "whole")


def test_parts_hold_every_chunk_once() -> None:
    for rows in (1, 5, 24, 25, 26):
        for of in (1, 2, 3, 8):
            parts = [Part(number, of) for number in range(of)]
            assert [place for part in parts for place in part.rows(rows)] == list(range(rows))
            sizes = [size for part in parts for size in part.chunk_sizes(rows)]
            assert sizes == [5] * (rows // 5) + [rows % 5] * (rows % 5 > 0)


def test_a_part_has_no_text(stopped: Stopped) -> None:
    annotate_all(stopped.job, stopped.run, stopped.parts, 1)
    content = b"".join(content or b"" for content in snapshot(stopped.parts).values())
    assert b"good-4" in content  # a uid
    assert not any(row.text.encode() in content for row in stopped.job.split.unlabelled)


# ── going on ─────────────────────────────────────────────────────────────────────────────────


def test_a_finished_part_is_not_computed_again(stopped: Stopped) -> None:
    assert stopped.annotate(1, 2)
    before = {path: path.stat().st_mtime_ns for path in stopped.parts.rglob("*")}
    assert not stopped.annotate(1, 2)
    assert {path: path.stat().st_mtime_ns for path in stopped.parts.rglob("*")} == before


def test_votes_without_their_card_are_no_part(stopped: Stopped) -> None:
    """A process that was killed between the two files left it."""
    stopped.annotate(0, 2)
    stopped.card(0, 2).unlink()
    assert stopped.annotate(0, 2)


def test_a_run_stops_before_a_round_without_parts(stopped: Stopped) -> None:
    votes = StoredVotes(stopped.run, stopped.parts)
    assert "has no part of round 1" in votes.why_stop(1)
    assert votes.why_stop(0) == votes.why_stop(3) == ""  # on disk; after the last round
    stopped.annotate(0, 2)
    assert votes.why_stop(1) == ""


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ([0, 1, 2, 4, 5, 6], "parts 3 and 7 of 8 of round 1 are missing"),
        ([1, 2, 3, 4, 5, 6, 7], "part 0 of 8 of round 1 is missing"),
        ([], "has no part of round 1"),
    ],
)
def test_missing_parts_are_named(there: list[int], said: str, stopped: Stopped) -> None:
    for number in there:
        stopped.annotate(number, 8)
    with pytest.raises(RunError, match=said):
        go_on_anyway(stopped)


def go_on_anyway(stopped: Stopped) -> None:
    votes = StoredVotes(stopped.run, stopped.parts)
    list(train(stopped.run, stopped.job, MACHINE, annotate=votes))


def test_parts_of_two_counts_overlap(stopped: Stopped) -> None:
    for number, of in ((0, 2), (1, 2), (2, 3)):
        stopped.annotate(number, of)
    with pytest.raises(RunError, match="has parts of 2 and parts of 3: they overlap"):
        go_on_anyway(stopped)


# ── a part of something else ─────────────────────────────────────────────────────────────────


def test_a_part_of_another_run_round_or_teacher_is_refused(stopped: Stopped) -> None:
    stopped.annotate(0, 1)
    card = stopped.card(0, 1)
    facts = json.loads(card.read_text())
    for name, value, said in (
        ("run", "0" * 64, "is a part of another run"),
        ("round", 2, "is a part of round 2; expected round 1"),
        ("teacher", "0" * 64, "was annotated by another teacher"),
    ):
        card.write_text(json.dumps({**facts, "origin": {**facts["origin"], name: value}}))
        with pytest.raises(RunError, match=said):
            go_on_anyway(stopped)
        with pytest.raises(RunError, match=said):  # nor is it written over
            stopped.annotate(0, 1)


def test_another_seed_is_another_run(stopped: Stopped, backbone: Backbone, tmp_path: Path) -> None:
    other = replace(stopped.job, seed=8)
    begun(tmp_path / "other", other)
    annotate_all(other, tmp_path / "other", stopped.parts, 2)
    with pytest.raises(RunError, match="is a part of another run"):
        go_on_anyway(stopped)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unlabelled": 1}, "the pool rows are not those that"),
        ({"labelled": 1}, "the labelled rows are not those that"),
    ],
)
def test_parts_of_other_files_are_not_computed(
    change: dict[str, int], said: str, stopped: Stopped
) -> None:
    check_same_run(stopped.run, stopped.job, MACHINE)
    split = stopped.job.split
    rows = {name: tuple(getattr(split, name))[count:] for name, count in change.items()}
    with pytest.raises(RunError, match=said):
        check_same_run(stopped.run, replace(stopped.job, split=replace(split, **rows)), MACHINE)


def test_another_machine_is_a_warning(stopped: Stopped) -> None:
    (warning,) = check_same_run(stopped.run, stopped.job, replace(MACHINE, cache_mb=1))
    assert "cache_mb 4096" in warning


def test_a_text_that_changed_meanwhile_under_its_id_is_found(stopped: Stopped) -> None:
    job = stopped.job
    other = tuple(replace(row, text=f"{row.text} no") for row in job.split.unlabelled)
    annotate_all(
        replace(job, split=replace(job.split, unlabelled=other)), stopped.run, stopped.parts, 2
    )
    with pytest.raises(RunError, match="other rows than the pool has: it changed meanwhile"):
        go_on_anyway(stopped)


def test_a_finished_run_has_nothing_to_annotate(
    whole: Callable[[str], Path], backbone: Backbone, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match="is finished: no round is left"):
        annotate_part(job_of(backbone), whole("sampled"), tmp_path, Part(0, 1), MACHINE)


@pytest.mark.parametrize("name", ["probe", "contrast"])
def test_a_method_with_probe_rounds_has_no_parts(name: str) -> None:
    with pytest.raises(ConfigError, match="one machine is enough") as error:
        check_has_parts(small_run.METHODS[name])
    assert "--method upet-head-adapter" in error.value.hint


# ── a part from anyone ───────────────────────────────────────────────────────────────────────


def rewritten(path: Path, change: Callable[[Any], Any]) -> None:
    """Change the votes of a part, and let its card agree."""
    card = path.with_suffix(".json")
    table = change(pyarrow.parquet.read_table(path))
    pyarrow.parquet.write_table(table, path, row_group_size=5)
    card.write_text(json.dumps({**json.loads(card.read_text()), "sha256": sha256(path)}))


def with_column(name: str, value: float) -> Callable[[Any], Any]:
    def change(table: Any) -> Any:
        place = table.schema.get_field_index(name)
        column = table[name].combine_chunks()
        flat = column.flatten() if name != "entropy" else column
        numbers = pyarrow.array([value, *flat.to_pylist()[1:]], pyarrow.float64())
        if name != "entropy":
            numbers = pyarrow.FixedSizeListArray.from_arrays(numbers, type=column.type)
        return table.set_column(place, table.schema.field(name), numbers)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_column("mean", float("nan")), "holds votes no teacher gives: mean"),
        (with_column("plain", 1.5), "holds votes no teacher gives: plain"),
        (with_column("wins", 4.0), "holds votes no teacher gives: wins"),
        (with_column("variance", -1.0), "holds votes no teacher gives: variance"),
        (with_column("entropy", float("inf")), "holds an entropy that is no number"),
        (lambda table: table.drop_columns(["wins"]), "has the columns"),
        (lambda table: table.slice(1), "has 23 rows in 5 chunks"),
        (lambda table: table.take([1, 0, *range(2, 24)]), "other rows than the pool has"),
    ],
)
def test_votes_that_were_changed_with_their_card_are_refused(
    change: Callable[[Any], Any], said: str, stopped: Stopped
) -> None:
    stopped.annotate(0, 1)
    rewritten(stopped.card(0, 1).with_suffix(".parquet"), change)
    with pytest.raises(RunError, match=said):
        go_on_anyway(stopped)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def link(path: Path) -> None:
    shutil.move(path, path.with_name("moved"))
    path.symlink_to("moved")


@pytest.mark.parametrize(
    ("spoil", "name", "said"),
    [
        (half, "parquet", "is not what was written: its sha256 differs"),
        (half, "json", "is damaged"),
        (link, "parquet", "is not a plain file"),
        (link, "json", "is not a plain file"),
        (Path.unlink, "parquet", "cannot read"),
    ],
)
def test_a_damaged_part_is_named(
    spoil: Callable[[Path], object], name: str, said: str, stopped: Stopped
) -> None:
    stopped.annotate(0, 1)
    spoil(stopped.card(0, 1).with_suffix(f".{name}"))
    with pytest.raises(RunError, match=said):
        go_on_anyway(stopped)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "has format 2"),
        ({"shard": 1, "of": 1}, "is part 1 of 1"),
        ({"shard": 0, "of": 2}, "is that of part 0 of 2"),
        ({"rows": 23}, "has 23 rows from chunk 0; expected 24"),
        ({"first_chunk": 1}, "has 24 rows from chunk 1; expected 24 from chunk 0"),
        ({"rows": "24"}, "is damaged"),
    ],
)
def test_a_forged_card_is_refused(changes: dict[str, Any], said: str, stopped: Stopped) -> None:
    stopped.annotate(0, 1)
    card = stopped.card(0, 1)
    card.write_text(json.dumps({**json.loads(card.read_text()), **changes}))
    with pytest.raises(RunError, match=said):
        go_on_anyway(stopped)
