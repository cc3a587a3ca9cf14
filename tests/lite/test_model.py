"""selftrain-lite answers: labels, probabilities, pairs, batches, and nothing heavy is loaded."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lite_folder
from lite_folder import BAD, GOOD
from selftrain_lite import LiteError, load
from selftrain_lite.model import Model, grouped

LITE = Path(__file__).parents[2] / "lite" / "src"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lite_folder.write(tmp_path_factory.mktemp("lite") / "model")


@pytest.fixture(scope="module")
def model(place: Path) -> Model:
    return load(place)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_answers_are_those_computed_by_hand(model: Model) -> None:
    texts = ["good film", "bad good", "bad", "film"]
    assert model.labels == ("good", "bad")
    assert model.predict(texts) == ["good", "bad", "bad", "good"]
    expected = [sigmoid(score) for score in (GOOD, GOOD + BAD, BAD, 0)]
    found = model.predict_proba(texts)
    assert found.shape == (4, 2)
    assert np.allclose(found[:, 0], expected)
    assert np.allclose(found.sum(1), 1)


def test_an_answer_does_not_depend_on_the_texts_beside_it(model: Model) -> None:
    texts = ["good film " * n for n in range(40)]
    together = model.predict_proba(texts)
    alone = np.concatenate([model.predict_proba([text]) for text in texts])
    assert np.allclose(together, alone)


def test_a_text_is_cut_after_the_longest_row(model: Model) -> None:
    (row,) = model.rows(["good " * 30])
    assert len(row.ids) == 12 == model.info["max_tokens"]
    assert (row.ids[0], row.ids[-1]) == (2, 3)


def test_a_special_token_that_a_user_types_is_an_unknown_word(model: Model) -> None:
    ((first, *middle, last),) = [row.ids for row in model.rows(["[MASK] good"])]
    assert (first, last) == (2, 3)
    assert 4 not in middle
    assert middle[-1] == lite_folder.WORDS.index("good")


def test_no_texts_have_no_answers(model: Model) -> None:
    assert model.predict([]) == []
    assert model.predict_proba([]).shape == (0, 2)


def test_info_says_what_a_server_must_know(model: Model) -> None:
    info = model.info
    assert info["task"] == "films"
    assert info["labels"] == ["good", "bad"]
    assert info["expected"]["accuracy"] == 0.9
    assert info["abstain"] == [{"above": 0.8, "share": 0.6, "right": 0.9}]
    assert (info["weights"], info["pair"], info["max_batch"]) == ("fp32", False, 32)


def test_int8_answers_one_text_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(lite_folder.write(tmp_path / "model", weights="int8", max_batch=1))
    sizes = []
    run = Model._run
    monkeypatch.setattr(
        Model, "_run", lambda self, rows: sizes.append(len(rows)) or run(self, rows)
    )
    model.predict(["good"] * 5)
    assert sizes == [1] * 5


def test_batches_have_rows_of_similar_length_and_a_bounded_size() -> None:
    lengths = [100, 3, 90, 3, 5] * 20
    batches = list(grouped(lengths, max_batch=32))
    assert sorted(place for batch in batches for place in batch) == list(range(100))
    assert all(len(batch) <= 32 for batch in batches)
    assert all(len(batch) * max(lengths[i] for i in batch) <= 512 for batch in batches)


def test_a_model_of_pairs_reads_pairs(tmp_path: Path) -> None:
    model = load(lite_folder.write(tmp_path / "model", pair=True))
    assert model.predict([("good", "film"), ["bad", "bad film"]]) == ["good", "bad"]
    (row,) = model.rows([("good " * 30, "bad")])
    assert len(row.ids) == 12
    assert row.types == (0,) * 10 + (1,) * 2


def test_a_prompt_is_filled_and_its_mask_stays(tmp_path: Path) -> None:
    tokens = {"template": "{text} it was [MASK] {mask} ."}
    model = load(lite_folder.write(tmp_path / "model", reader="prompt", tokens=tokens))
    for text in ("good film", "good " * 50, "", "[MASK]"):
        (row,) = model.rows([text])
        assert row.ids.count(4) == 1
        assert len(row.ids) <= 12


BAD_TEXTS = {
    "one text": ("good", "got one text"),
    "a number": ([3], "row 1 is 3"),
    "a pair for single texts": ([("a", "b")], "row 1 is ('a', 'b'); expected a text"),
    "half a character": (["good", "\ud800"], "row 2 has half a character"),
    "nothing": ([None], "row 1 is None"),
}


@pytest.mark.parametrize(("texts", "problem"), BAD_TEXTS.values(), ids=BAD_TEXTS.keys())
def test_a_text_that_is_none_is_named(model: Model, texts: list[str], problem: str) -> None:
    with pytest.raises(LiteError) as raised:
        model.predict(texts)
    assert problem in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("pair", ["good", ("good",), ("a", "b", "c"), ("a", 3)])
def test_a_pair_that_is_none_is_named(tmp_path: Path, pair: object) -> None:
    model = load(lite_folder.write(tmp_path / "model", pair=True))
    with pytest.raises(LiteError, match="expected a pair of texts"):
        model.predict([pair])  # type: ignore[list-item]


def test_answering_loads_neither_torch_nor_transformers_nor_selftrain(place: Path) -> None:
    script = (
        "import sys; from selftrain_lite import load; import selftrain_lite.cli\n"
        f"assert load({str(place)!r}).predict(['good']) == ['good']\n"
        "heavy = {'torch', 'transformers', 'selftrain', 'onnx', 'pydantic', 'pandas', 'typer'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(LITE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_answering_leaves_no_trace_of_telemetry(place: Path, tmp_path: Path) -> None:
    """Without the opt-out onnxruntime keeps a name for the machine in the user's cache."""
    script = f"from selftrain_lite import load; load({str(place)!r}).predict(['good'])"
    environment = {"PYTHONPATH": str(LITE), "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []
