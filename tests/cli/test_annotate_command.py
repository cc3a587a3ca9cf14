"""`selftrain annotate --shard I/N` on several machines, and `selftrain fit --parts`."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import FIT, selftrain

PARTS = " --parts parts"
ANNOTATE = "annotate run labelled.csv -u pool.csv --backbone {bert} -o parts --threads 1"


def fit(bert: Path, more: str = "", out: str = "run") -> str:
    return FIT.format(bert=bert).replace("-o run", f"-o {out}") + f" --threads 1{more}"


@pytest.fixture
def stopped(folder: Path, bert: Path) -> Path:
    """A folder with a run that waits for the parts of its first round."""
    said = selftrain(fit(bert, PARTS))
    assert said.code == 0, said.err
    assert "stopped after round 0: parts has no part of round 1" in said.err
    assert "selftrain annotate run labelled.csv" in said.err
    return folder


def test_fit_goes_on_from_parts_as_one_process_does(stopped: Path, bert: Path) -> None:
    for shard in ("0/2", "1/2"):
        said = selftrain(f"{ANNOTATE.format(bert=bert)} --shard {shard}")
        assert said.code == 0, said.err
        assert f"written: parts, part {shard}" in said.err
    assert "already there: parts" in selftrain(f"{ANNOTATE.format(bert=bert)} --shard 1/2").err
    said = selftrain(fit(bert, PARTS))
    assert said.code == 0, said.err
    assert "stopped" not in said.err

    assert selftrain(fit(bert, out="whole")).code == 0
    for name in ("model.safetensors", "lesson.parquet"):
        parts, whole = (Path(run) / "rounds" / "1" / name for run in ("run", "whole"))
        assert parts.read_bytes() == whole.read_bytes()


def test_parts_are_annotated_in_the_precision_of_the_run(folder: Path, bert: Path) -> None:
    assert selftrain(fit(bert, f"{PARTS} --precision bf16")).code == 0
    assert selftrain(f"{ANNOTATE.format(bert=bert)} --shard 0/1").code == 0
    assert selftrain(fit(bert, f"{PARTS} --precision bf16")).code == 0
    assert selftrain(fit(bert, " --precision bf16", out="whole")).code == 0
    parts, whole = (Path(run) / "rounds" / "1" / "lesson.parquet" for run in ("run", "whole"))
    assert parts.read_bytes() == whole.read_bytes()


def test_what_is_missing_is_named_with_the_command_for_it(stopped: Path, bert: Path) -> None:
    assert selftrain(f"{ANNOTATE.format(bert=bert)} --shard 1/3").code == 0
    said = selftrain(fit(bert, PARTS))
    assert said.code == 1
    assert "error: parts 0 and 2 of 3 of round 1 are missing in parts" in said.lines
    assert "hint: selftrain annotate" in said.err
    assert "--shard 0/3" in said.err


@pytest.mark.parametrize("shard", ["8/8", "-1/8", "1", "1/0", "a/b", "0/100001"])
def test_a_shard_out_of_range_is_refused(shard: str, stopped: Path, bert: Path) -> None:
    said = selftrain(f"{ANNOTATE.format(bert=bert)} --shard={shard}")
    assert said.code == 1
    assert "expected I/N with I from 0 to N - 1" in said.err
    assert "--shard 0/8" in said.err


def test_other_files_than_those_of_the_run_are_refused(stopped: Path, bert: Path) -> None:
    pool = stopped / "pool.csv"
    pool.write_text(pool.read_text() + "one more text\n")
    said = selftrain(f"{ANNOTATE.format(bert=bert)} --shard 0/1")
    assert said.code == 1
    assert "error: the pool rows are not those that run was started with" in said.lines
    assert "Traceback" not in said.err


def test_a_run_without_a_teacher_has_nothing_to_annotate(folder: Path, bert: Path) -> None:
    said = selftrain(f"{ANNOTATE.format(bert=bert)} --shard 0/1")
    assert (said.code, "run is not a run folder" in said.err) == (1, True)


def test_the_default_method_has_no_parts(folder: Path, bert: Path) -> None:
    line = f"fit labelled.csv -u pool.csv -o run --backbone {bert} --parts parts"
    said = selftrain(line)
    assert said.code == 1
    assert "one machine is enough" in said.err
    assert not (folder / "run").exists()


def test_parts_and_minutes_do_not_go_together(folder: Path, bert: Path) -> None:
    said = selftrain(fit(bert, f"{PARTS} --minutes 5"))
    assert (said.code, "leave out --minutes" in said.err) == (1, True)
    assert not (folder / "run").exists()
