"""Verdicts of a person: on disk as they are made, read again, and learnt from."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

import reviewed
from selftrain.data.rows import Example, Labelled, Notes, Split, examples, uid_of
from selftrain.errors import DataError, RunError, SelftrainError
from selftrain.runs.corrections import (
    Correction,
    Journal,
    Verdict,
    corrected,
    read_corrections,
    repeated,
    standing,
)

RUN = Path("run")
MANIFEST = reviewed.manifest()


def correction(
    text: str, verdict: Verdict = "accept", now: str | None = "good", run: str = ""
) -> Correction:
    digest = run or MANIFEST.digest()
    return Correction(uid_of(text), uid_of(text), "good", now, verdict, 1, digest)


ACCEPT, LABEL = correction("a"), correction("b", "label", "bad")
DROP, UNDO = correction("c", "drop", None), correction("b", "undo", None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "corrections.jsonl"


def write(file: Path, *lines: Correction) -> None:
    journal = Journal(file, MANIFEST, RUN)
    for each in lines:
        journal.add(each)
    journal.close()


def test_a_second_review_reads_what_the_first_wrote(file: Path) -> None:
    write(file, ACCEPT, LABEL)
    write(file, DROP)
    assert read_corrections(file, MANIFEST, RUN) == [ACCEPT, LABEL, DROP]
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_the_file_has_no_text(file: Path) -> None:
    write(file, correction("a very private sentence"))
    assert "private" not in file.read_text("utf-8")


def test_a_review_without_a_verdict_leaves_no_file(file: Path) -> None:
    write(file)
    assert not file.exists()


@pytest.mark.parametrize("cut", [2, 20, 60, 151])
def test_half_a_line_of_a_killed_review_is_no_verdict_and_is_repaired(file: Path, cut: int) -> None:
    write(file, ACCEPT, LABEL)
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    assert read_corrections(file, MANIFEST, RUN) == [ACCEPT]
    write(file, DROP)
    assert read_corrections(file, MANIFEST, RUN) == [ACCEPT, DROP]


def test_a_last_verdict_without_its_newline_counts_and_stays(file: Path) -> None:
    write(file, ACCEPT, LABEL)
    file.write_bytes(file.read_bytes()[:-1])
    assert read_corrections(file, MANIFEST, RUN) == [ACCEPT, LABEL]
    write(file, DROP)
    assert read_corrections(file, MANIFEST, RUN) == [ACCEPT, LABEL, DROP]


@pytest.mark.parametrize(
    "text",
    ["a note", '[{"text":"mine"}]', '{"text": "mine"', '{"uid": "7", "text": "mine"}', "id,text"],
)
def test_a_file_that_no_review_wrote_is_refused_and_stays_as_it_is(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")
    for act in (read_corrections, Journal):
        with pytest.raises(RunError, match="is no corrections file") as refused:
            act(file, MANIFEST, RUN)  # type: ignore[operator]
        assert refused.value.hint == "begin another file: --corrections NEW.jsonl"
    assert file.read_text("utf-8") == text


def test_a_note_under_the_verdicts_is_named_by_its_line(file: Path) -> None:
    write(file, ACCEPT)
    with file.open("a") as opened:
        opened.write("a note")
    with pytest.raises(RunError, match="no review wrote its line 2") as refused:
        Journal(file, MANIFEST, RUN)
    assert "remove the line" in refused.value.hint


def test_an_empty_file_that_was_there_before_stays(file: Path) -> None:
    file.touch()
    write(file)
    assert file.exists()


def test_a_full_disk_loses_the_verdict_and_not_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(file, MANIFEST, RUN)
    journal.add(ACCEPT)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(RunError, match="No space left"):
            journal.add(LABEL)
    journal.add(DROP)
    journal.close()
    assert read_corrections(file, MANIFEST, RUN) == [ACCEPT, DROP]


def test_two_reviews_do_not_write_one_file(file: Path) -> None:
    first = Journal(file, MANIFEST, RUN)
    with pytest.raises(RunError, match="open in another `selftrain review`"):
        Journal(file, MANIFEST, RUN)
    first.close()
    Journal(file, MANIFEST, RUN).close()


def test_the_last_verdict_on_a_row_counts_and_an_undo_brings_the_one_before_back() -> None:
    again = correction("b", "accept", "good")
    assert standing([LABEL, again])[LABEL.uid] is again
    assert standing([LABEL, again, UNDO])[LABEL.uid] is LABEL
    assert standing([LABEL, again, UNDO, UNDO, UNDO]) == {}


def test_a_row_that_was_corrected_twice_is_counted() -> None:
    again = correction("b", "accept", "good")
    assert repeated([ACCEPT, LABEL, again]) == (
        "1 row was corrected more than once: the last verdict counts"
    )
    assert repeated([ACCEPT, LABEL, LABEL]) == ""


def test_more_rounds_leave_the_digest_of_a_run_and_other_data_change_it() -> None:
    digest = MANIFEST.digest()
    assert replace(MANIFEST, method={**MANIFEST.method, "rounds": 9}).digest() == digest
    assert replace(MANIFEST, data={"pool": "other"}).digest() != digest


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no json\n", "line 1, is no correction"),
        ("{}\n", "line 1, is no correction"),
        ("[" * 9000 + "\n", "line 1, is no correction"),
        ('{"uid": 1}\n', "line 1, is no correction"),
    ],
)
def test_a_line_that_no_review_writes_is_named(file: Path, text: str, problem: str) -> None:
    file.write_text(text, "utf-8")
    with pytest.raises(RunError, match=problem) as refused:
        read_corrections(file, MANIFEST, RUN)
    assert "remove the line" in refused.value.hint


def test_corrections_of_another_run_are_refused(file: Path) -> None:
    write(file, ACCEPT)
    other = reviewed.manifest(seed=8)
    for act in (read_corrections, Journal):
        with pytest.raises(RunError, match="holds corrections of another run") as refused:
            act(file, other, RUN)  # type: ignore[operator]
        assert "--corrections NEW" in refused.value.hint


def test_a_label_that_the_run_does_not_have_is_refused(file: Path) -> None:
    journal = Journal(file, MANIFEST, RUN)
    journal.add(correction("a", "label", "odd"))
    journal.close()
    with pytest.raises(RunError, match=r"gives the label `odd`; run has `bad`, `good`"):
        read_corrections(file, MANIFEST, RUN)


def test_a_file_that_is_not_there_names_the_command_that_writes_it(file: Path) -> None:
    with pytest.raises(SelftrainError, match="there is no file") as refused:
        read_corrections(file, MANIFEST, RUN)
    assert refused.value.hint == "write one: selftrain review run --unlabelled pool.csv"


# ── learning from them ──

GOLD = tuple(Labelled(each, "good") for each in examples(["gold 1", "gold 2"]))
SPLIT = Split(GOLD, examples(["a", "b", "c", "d"]))


def test_accepted_and_labelled_rows_become_gold_and_dropped_ones_leave_the_pool() -> None:
    notes = Notes()
    split = corrected(SPLIT, standing([ACCEPT, LABEL, DROP]), notes)
    gold = {row.example.text: row.label for row in split.labelled}
    assert gold == {"gold 1": "good", "gold 2": "good", "a": "good", "b": "bad"}
    assert [row.text for row in split.unlabelled] == ["d"]
    assert split.labelled[:2] == GOLD
    assert notes.counts == {}


def test_the_order_of_verdicts_changes_nothing() -> None:
    one = corrected(SPLIT, standing([ACCEPT, LABEL]), Notes())
    assert one.labelled == corrected(SPLIT, standing([LABEL, ACCEPT]), Notes()).labelled


def test_a_text_that_changed_under_its_id_is_left_out_and_counted() -> None:
    pool = [Example("7", "new words"), *examples(["a", "b"])]
    old = Correction("7", uid_of("old words"), "good", "bad", "label", 1, "")
    notes = Notes()
    split = corrected(replace(SPLIT, unlabelled=pool), {"7": old, ACCEPT.uid: ACCEPT}, notes)
    assert len(split.labelled) == 3
    assert notes.counts == {"corrected rows whose text has changed left out": 1}


def test_corrected_rows_that_are_not_in_the_pool_are_counted() -> None:
    notes = Notes()
    corrected(SPLIT, standing([ACCEPT, correction("gone")]), notes)
    assert notes.counts == {"corrected rows that are not in the pool left out": 1}


def test_a_pool_with_none_of_the_corrected_rows_is_an_error() -> None:
    with pytest.raises(DataError, match="the pool has none of the 1 corrected rows"):
        corrected(SPLIT, standing([correction("gone")]), Notes())


def test_a_pool_of_corrected_rows_alone_is_an_error() -> None:
    small = Split(GOLD, examples(["a"]))
    with pytest.raises(DataError, match="the pool is empty"):
        corrected(small, standing([ACCEPT]), Notes())
