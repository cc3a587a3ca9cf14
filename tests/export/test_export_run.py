"""A run that was exported: the same answers, the layout of the Hub, and nothing of this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import small_run
from command import snapshot
from selftrain.data.rows import Example
from selftrain.export.card import card, plain
from selftrain.export.origin import ExpectedAccuracy, abstain_hints, read_origin
from selftrain.export.parity import Parity
from selftrain.model.backbone import Backbone
from selftrain.runs import read as runs
from selftrain.training.estimate import Opinion
from selftrain_lite import load

TEXTS = [row.example.text for row in small_run.split().labelled]
TEXTS += ["", "great " * 100, "[MASK] [SEP] </s>", "Ünïcode \u4e2d\u6587 \U0001f600", "a\tb\nc"]
FILES = {"README.md", "config.json", "onnx/model.onnx", "tokenizer.json", "tokenizer_config.json"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {name: content for name, content in snapshot(folder).items() if content is not None}


def test_lite_answers_as_the_run_does(exported: Path, small: Path, backbone: Backbone) -> None:
    ours, theirs = load(exported, threads=1), runs.load(small, backbone=backbone)
    examples = [Example(str(n), text) for n, text in enumerate(TEXTS)]
    expected = theirs.probabilities(examples).numpy()
    assert np.abs(ours.predict_proba(TEXTS) - expected).max() < 1e-5
    assert ours.predict(TEXTS) == [ours.labels[best] for best in expected.argmax(1)]
    assert [row.ids for row in ours.rows(TEXTS)] == [row.ids for row in theirs.encode(examples)]


def test_the_folder_has_the_layout_of_the_hub(exported: Path) -> None:
    files = contents(exported)
    assert set(files) == {*FILES, "selftrain.json"}
    facts = json.loads(files["selftrain.json"])
    assert facts["files"] == {
        name: hashlib.sha256(files[name]).hexdigest() for name in sorted(FILES)
    }
    config = json.loads(files["config.json"])
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "good", "1": "bad"}
    assert config["label2id"] == {"good": 0, "bad": 1}
    assert facts["parity"]["difference"] < 1e-4


def test_nothing_in_the_folder_names_a_place_on_this_machine_or_a_text(
    exported: Path, tiny_folder: Callable[[str], Path]
) -> None:
    for name, content in contents(exported).items():
        for place in (exported.parent, tiny_folder("bert"), Path(__file__).parents[2]):
            assert str(place).encode() not in content, name
        assert b"site-packages" not in content
        assert not any(text.encode() in content for text in TEXTS[:8]), name


def test_the_card_says_what_it_is_and_where_it_fails(exported: Path) -> None:
    text = (exported / "README.md").read_text()
    assert text.startswith("---\n")
    for heading in ("How good it is", "What it was trained on", "Limits", "How to cite"):
        assert f"## {heading}" in text
    assert "Nothing is known of its accuracy" in text
    assert "Round 2: 12 pseudo labels of 24 unlabelled texts." in text


def test_the_card_has_the_estimate_and_no_markup_of_a_label(
    small: Path, backbone: Backbone
) -> None:
    origin = read_origin(small, None, backbone)
    expected = ExpectedAccuracy(0.9, 0.8, 0.95, 108, 116)
    hints = [{"above": 0.8, "share": 0.61, "right": 0.9}]
    known = replace(origin, expected=expected, abstain=hints, gold={"<script>|x": 4, "bad": 4})
    text = card(known, "onnx", "int8", Parity(200, 1e-3, 0.99, real=True))
    assert "Expected accuracy 0.90, between 0.80 and 0.95" in text
    assert "108 of 116" in text
    assert "| 0.80 | 61% | 90% |" in text
    assert "8 labelled texts: \\<script\\>\\|x 4, bad 4." in text
    assert "int8: give it one text at a time" in text


def test_a_name_is_no_markup() -> None:
    assert plain("a\n# b [c](d)") == r"a\\n\# b \[c\]\(d\)"


def test_hints_to_abstain_count_the_pool() -> None:
    pool = [Opinion("", "a", (), (p, 1 - p)) for p in [0.65] * 50 + [0.95] * 50]
    assert abstain_hints(pool)[:3] == [
        {"above": 0.6, "share": 1.0, "right": 0.8},
        {"above": 0.7, "share": 0.5, "right": 0.95},
        {"above": 0.8, "share": 0.5, "right": 0.95},
    ]
    assert abstain_hints(pool[:10]) == []


def test_the_model_that_is_exported_stays_as_it_is(
    exported: Path, small: Path, backbone: Backbone, rounds: list[small_run.Classifier]
) -> None:
    again = runs.load(small, backbone=backbone)
    assert again.digest() == rounds[-1].model.digest()  # type: ignore[attr-defined]
    assert backbone.encoder.config._attn_implementation == "sdpa"
    assert exported.is_dir()


@pytest.mark.parametrize("number", [0, 1])
def test_a_round_is_chosen_by_its_number(small: Path, backbone: Backbone, number: int) -> None:
    origin = read_origin(small, number, backbone)
    assert (origin.number, origin.rung) == (number, None)
    assert origin.model.tuning.kind == ("full", "adapter")[number]
