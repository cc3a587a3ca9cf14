"""Very few labels or texts: a sentence, no trace."""

from __future__ import annotations

from pathlib import Path

import command
from command import FIT, selftrain
from selftrain.runs.lines import NO_ESTIMATE


def test_three_labels_a_class_give_a_model_and_no_estimate(folder: Path, bert: Path) -> None:
    (folder / "labelled.csv").write_text(command.csv(command.sentences(6), "text", "label"))
    said = selftrain(FIT.format(bert=bert))
    assert said.code == 0
    assert said.lines[-2] == (
        "no expected accuracy: no folds, because `bad` has 3 labels; 4 of each class are needed"
    )
    assert not (folder / "run" / "estimate.json").exists()


def test_a_pool_of_ten_texts_gives_a_model_and_an_estimate(folder: Path, bert: Path) -> None:
    texts = [(text,) for text, _ in command.sentences(10, first=100)]
    (folder / "pool.csv").write_text(command.csv(texts, "text"))
    said = selftrain(FIT.format(bert=bert))
    assert said.code == 0, said.err
    assert said.lines[0].startswith("warning: pool smaller than asked: 10 texts")
    assert any(line.startswith("expected accuracy 0.") for line in said.lines)
    assert selftrain(f"predict run test.csv --prior pool --backbone {bert}").code == 0


def test_labels_that_differ_in_case_alone_are_one_text_for_the_folds(
    folder: Path, bert: Path
) -> None:
    """Four labels of each class, but those of `bad` are one text: nothing of it can be held out."""
    good = [row for row in command.sentences(8) if row[1] == "good"]
    same = [(text, "bad") for text in ("Dull story", "dull story", "dull  story", "DULL STORY")]
    (folder / "labelled.csv").write_text(command.csv([*good, *same], "text", "label"))
    said = selftrain(FIT.format(bert=bert))
    assert said.code == 0, said.err
    assert said.lines[-2] == NO_ESTIMATE
