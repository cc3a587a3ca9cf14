"""`selftrain fit --from`: a run is learnt again with what a person corrected in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import csv, selftrain, sentences
from selftrain.data.rows import uid_of
from selftrain.runs.corrections import Correction, Journal, Verdict
from selftrain.runs.read import lessons, read_manifest

AGAIN = (
    "fit --from run --labelled labelled.csv -u pool.csv --dev dev.csv "
    "--corrections corrections.jsonl -o run2 --backbone {bert}"
)
TEXTS = {uid_of(text): text for text, _ in sentences(30, first=100)}


def correct(life: Path, *verdicts: tuple[Verdict, str | None], run: str = "run") -> list[str]:
    """Decide on the first rows of a run; their uids."""
    manifest = read_manifest(life / run)
    (_, audit) = list(lessons(life / run))[-1]
    journal = Journal(life / "corrections.jsonl", manifest, Path(run))
    lines = list(audit)[: len(verdicts)]
    for line, (verdict, now) in zip(lines, verdicts, strict=True):
        facts = (line.uid, line.uid, line.label, now, verdict, 1, manifest.digest())
        journal.add(Correction(*facts))
    journal.close()
    return [line.uid for line in lines]


def fitted(line: str, bert: Path) -> Any:
    said = selftrain(line.format(bert=bert))
    assert said.code == 0, said.err
    return said


def test_corrections_become_gold_and_it_says_what_changed(life: Path, bert: Path) -> None:
    uids = correct(life, ("accept", "good"), ("label", "bad"), ("drop", None))
    said = fitted(AGAIN + " --json", bert)
    assert "corrections: 1 accepted, 1 labelled, 1 dropped" in said.err
    assert "against run: " in said.err
    assert "warning" not in said.err, "these are the files of the run"
    before, after = read_manifest("run"), read_manifest("run2")
    assert after.method == before.method, "with the method of the run, though no config is given"
    assert (after.seed, after.task) == (before.seed, before.task)
    assert after.data["dev"] == before.data["dev"]
    assert after.data["labelled"] != before.data["labelled"]
    judged = {line.uid for _, audit in lessons(life / "run2") for line in audit}
    assert not judged & set(uids)
    compared = json.loads(said.out)["compared"]
    assert {"expected", "shares", "rows", "changed"} == set(compared)


def test_the_same_command_resumes_the_second_run(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    fitted(AGAIN, bert)
    assert "run2 is finished: these are its rounds" in fitted(AGAIN, bert).err


def test_flags_change_what_the_earlier_run_had(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    fitted(AGAIN + " --rounds 0 --seed 5", bert)
    manifest = read_manifest("run2")
    assert (manifest.seed, manifest.total_rounds) == (5, 0)
    assert manifest.method["teacher"] == read_manifest("run").method["teacher"]


def test_a_row_that_was_corrected_twice_is_said(life: Path, bert: Path) -> None:
    correct(life, ("label", "bad"))
    correct(life, ("accept", "good"))
    said = fitted(AGAIN + " --rounds 0", bert)
    assert "1 row was corrected more than once: the last verdict counts" in said.err
    assert "corrections: 1 accepted, 0 labelled, 0 dropped" in said.err


def test_other_files_are_a_warning_with_counts(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    extra = csv([(text,) for text, _ in sentences(4, first=700)], "text").partition("\n")[2]
    with (life / "pool.csv").open("a") as file:
        file.write(extra)
    with (life / "labelled.csv").open("a") as file:
        file.write("one more film,good\n")
    said = fitted(AGAIN + " --rounds 0", bert)
    assert "warning: the pool is not that of run: it has 24 of the 24 texts" in said.err
    assert "warning: the labelled rows are not those of run: 8 of its 8" in said.err


def refused(line: str, bert: Path) -> tuple[str, str]:
    said = selftrain(line.format(bert=bert))
    assert said.code == 1, said.err
    (error,) = [line for line in said.lines if line.startswith("error: ")]
    (hint,) = [line for line in said.lines if line.startswith("hint: ")]
    assert not Path("run2").exists()
    return error, hint


def test_a_pool_with_none_of_the_texts_is_an_error(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    (life / "pool.csv").write_text(csv([(t,) for t, _ in sentences(9, first=900)], "text"))
    error, hint = refused(AGAIN, bert)
    assert "pool.csv has none of the 24 texts of the run" in error
    assert "give the file of that run" in hint


def test_labelled_rows_of_which_none_is_the_runs_are_an_error(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    (life / "labelled.csv").write_text(csv(sentences(8, first=800), "text", "label"))
    error, hint = refused(AGAIN, bert)
    assert "none of the 8 labelled rows is one of run" in error
    assert "--shots" in hint


def test_corrections_of_another_run_are_refused(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    path = life / "run" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "seed": 99}))
    error, hint = refused(AGAIN, bert)
    assert "corrections.jsonl holds corrections of another run" in error
    assert "--corrections NEW" in hint


@pytest.mark.parametrize(
    ("line", "problem", "solution"),
    [
        (AGAIN, "there is no file corrections.jsonl", "selftrain review run"),
        (AGAIN.replace("--from run ", ""), "no --from is given", "--from run"),
        (AGAIN.replace("--from run", "--from nowhere"), "is not a run folder", "selftrain fit"),
        (AGAIN.replace("--labelled labelled.csv", ""), "are not given", "fit labelled.csv"),
        (AGAIN + " labelled.csv", "are given twice", "fit labelled.csv"),
    ],
)
@pytest.mark.usefixtures("life")
def test_what_is_missing_is_named(line: str, problem: str, solution: str, bert: Path) -> None:
    error, hint = refused(line, bert)
    assert problem in error
    assert solution in hint


def test_the_earlier_run_is_never_written(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    said = selftrain(AGAIN.replace("-o run2", "-o run").format(bert=bert))
    assert said.code == 1
    assert "run is the earlier run, which never changes" in said.err


def test_a_backbone_that_only_the_run_names_is_not_followed(life: Path, bert: Path) -> None:
    correct(life, ("accept", "good"))
    error, hint = refused(AGAIN.replace(" --backbone {bert}", ""), bert)
    assert "is not embedded" in error
    assert "--backbone " in hint
