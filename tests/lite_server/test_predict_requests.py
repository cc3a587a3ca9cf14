"""The protocol of text-embeddings-inference, on a tiny exported model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from selftrain_lite import Model, rows
from selftrain_lite.rows import RowMaker
from served import FakeModel, ask, client_of

TEXTS = ["great film", "dull bad story", "", "good " * 40, "Great, dull and unknown words", "film"]


def scores(answer: list[dict[str, Any]], labels: tuple[str, ...]) -> list[float]:
    """Scores in the order of the labels."""
    by_label = {each["label"]: each["score"] for each in answer}
    return [by_label[label] for label in labels]


def test_answers_equal_those_of_the_predictor(model: Model) -> None:
    expected = model.predict_proba(TEXTS)
    with client_of(model) as client:
        several = ask(client, [[text] for text in TEXTS])
        single = [ask(client, text) for text in TEXTS]
    for answers in (several, single):
        found = [scores(answer, model.labels) for answer in answers]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [answer[0]["label"] for answer in single] == model.predict(TEXTS)


def test_the_best_label_comes_first(model: Model) -> None:
    with client_of(model) as client:
        answer = ask(client, "dull")
    assert [each["label"] for each in answer] == ["negative", "positive"]
    assert answer[0]["score"] > answer[1]["score"]
    assert sum(each["score"] for each in answer) == pytest.approx(1, abs=1e-6)


def test_a_text_in_a_list_is_one_text_and_a_list_of_lists_several(model: Model) -> None:
    with client_of(model) as client:
        assert ask(client, ["great"]) == ask(client, "great")
        assert ask(client, [["great"]]) == [ask(client, "great")]


def test_two_texts_in_one_list_are_a_pair(other_model: Callable[..., Model]) -> None:
    pairs = other_model(pair=True)
    expected = pairs.predict_proba([("great film", "dull")])[0]
    with client_of(pairs) as client:
        found = scores(ask(client, ["great film", "dull"]), pairs.labels)
        assert ask(client, [["great film", "dull"]]) == [ask(client, ["great film", "dull"])]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_below_the_threshold_an_empty_label_comes_first(model: Model) -> None:
    with client_of(model, abstain=0.7) as client:
        unsure, certain = ask(client, [["film"], ["great"]])
        info = client.get("/info").json()
    assert [each["label"] for each in unsure] == ["", "negative", "positive"]
    assert unsure[0]["score"] == unsure[1]["score"]
    assert certain[0]["label"] == "positive"
    assert info["abstain"] == 0.7


def test_int8_models_answer_one_text_at_a_time() -> None:
    careful = FakeModel(max_batch=1)
    with client_of(careful, max_batch=32) as client:
        ask(client, [["a"], ["b"], ["c"]])
    assert careful.batches == [["a"], ["b"], ["c"]]


def test_a_request_with_many_texts_is_answered_in_batches_and_in_order() -> None:
    model = FakeModel()
    texts = ["x" * (number % 100) for number in range(200)]
    with client_of(model, max_batch=32) as client:
        answers = ask(client, [[text] for text in texts])
    found = [scores(answer, model.labels) for answer in answers]
    assert found == [pytest.approx(model.row(text)) for text in texts]
    assert max(map(len, model.batches)) == 32


def test_info_says_what_clients_of_text_embeddings_inference_ask_for(model: Model) -> None:
    with client_of(model) as client:
        info = client.get("/info").json()
    assert info["model_type"]["classifier"]["id2label"] == {"0": "negative", "1": "positive"}
    assert (info["max_client_batch_size"], info["auto_truncate"]) == (1024, True)
    assert info["selftrain"]["expected"]["accuracy"] == 0.9
    assert info["model_id"] == "film-reviews"


@pytest.mark.parametrize(
    "text", ["great " * 3000, "dull" * 9000, " " * 50_000 + "good", "電影" * 9000]
)
def test_a_long_text_is_cut_before_it_is_tokenised_and_its_row_is_the_same(
    model: Model, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    tokenise = RowMaker._tokenise

    def counted(self: RowMaker, texts: Any) -> Any:
        seen.extend(map(len, texts))
        return tokenise(self, texts)

    monkeypatch.setattr(RowMaker, "_tokenise", counted)
    cut = model.rows([text])
    monkeypatch.setattr(rows, "CHARACTERS", 10**9)
    assert model.rows([text]) == cut
    assert seen[1] == len(text)
    assert seen[0] <= 16 * (16 + rows.SPARE) or " " * 9 in text or " " not in text
