"""The protocol of KServe, version 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from selftrain_lite import Model
from served import client_of

NAME = "film-reviews"
INFER = f"/v2/models/{NAME}/infer"


def tensor(data: Any, name: str = "text", **more: Any) -> dict[str, Any]:
    shape = [len(data)] if isinstance(data, list) else [1]
    return {"name": name, "datatype": "BYTES", "shape": shape, "data": data} | more


def test_the_answer_has_labels_scores_and_probabilities(model: Model) -> None:
    texts = ["great film", "dull"]
    with client_of(model) as client:
        answer = client.post(INFER, json={"id": "7", "inputs": [tensor(texts)]}).json()
    tensors = {each["name"]: each for each in answer["outputs"]}
    assert (answer["model_name"], answer["id"]) == (NAME, "7")
    assert tensors["label"]["data"] == model.predict(texts)
    assert tensors["probabilities"]["shape"] == [2, 2]
    expected = model.predict_proba(texts)
    found = np.reshape(tensors["probabilities"]["data"], (2, 2))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(tensors["score"]["data"], expected.max(1), atol=1e-6)


def test_a_column_of_texts_and_chosen_outputs(model: Model) -> None:
    request = {
        "inputs": [tensor([["great"], ["dull"]], shape=[2, 1])],
        "outputs": [{"name": "label"}],
    }
    with client_of(model) as client:
        answer = client.post(INFER, json=request).json()
    assert [each["name"] for each in answer["outputs"]] == ["label"]
    assert answer["outputs"][0]["data"] == ["positive", "negative"]


def test_pairs_come_in_two_tensors(other_model: Callable[..., Model]) -> None:
    pairs = other_model(pair=True)
    request = {"inputs": [tensor(["dull"], "pair"), tensor(["great film"])]}
    with client_of(pairs) as client:
        answer = client.post(INFER, json=request).json()
        described = client.get(f"/v2/models/{NAME}").json()
    expected = pairs.predict_proba([("great film", "dull")])[0]
    np.testing.assert_allclose(answer["outputs"][2]["data"], expected, atol=1e-6)
    assert [each["name"] for each in described["inputs"]] == ["text", "pair"]


def test_below_the_threshold_the_label_is_empty(model: Model) -> None:
    with client_of(model, abstain=0.7) as client:
        answer = client.post(INFER, json={"inputs": [tensor(["film", "great"])]}).json()
    assert answer["outputs"][0]["data"] == ["", "positive"]


BAD = [
    ([], 422, "`inputs` is no list of tensors"),
    ({"inputs": "great"}, 422, "`inputs` is no list of tensors"),
    ({"inputs": []}, 422, "expected the tensors text, each once"),
    ({"inputs": [tensor(["a"], "texts")]}, 422, "expected the tensors text, each once"),
    ({"inputs": [tensor(["a"]), tensor(["b"])]}, 422, "expected the tensors text, each once"),
    ({"inputs": [tensor([])]}, 400, "tensor text is empty"),
    ({"inputs": [tensor("a")]}, 422, "the data of tensor text is a text; expected a list"),
    ({"inputs": [tensor([1])]}, 422, "text 1 is a number"),
    ({"inputs": [tensor([["a", "b"]])]}, 422, "text 1 is a list"),
    (
        {"inputs": [tensor(["a"], datatype="FP32")]},
        422,
        "tensor text has another datatype than BYTES",
    ),
    (
        {"inputs": [tensor(["a"], shape=[2])]},
        422,
        "the shape of tensor text is not [1], as its data is",
    ),
    (
        {"inputs": [tensor(["a"] * 100_000)]},
        413,
        "a request has 100,000 texts; expected at most 1,024",
    ),
    (
        {"inputs": [tensor(["a" * 100_001])]},
        413,
        "text 1 has 100,001 characters; expected at most 100,000",
    ),
    (
        {"inputs": [tensor(["a"])], "outputs": [{"name": "x"}]},
        422,
        "`outputs` may name label, score, probabilities",
    ),
    (
        {"inputs": [tensor(["a"])], "outputs": 3},
        422,
        "`outputs` may name label, score, probabilities",
    ),
]


@pytest.mark.parametrize(("request_", "status", "message"), BAD)
def test_a_request_of_another_shape_is_refused(
    model: Model, request_: Any, status: int, message: str
) -> None:
    with client_of(model) as client:
        response = client.post(INFER, json=request_)
    assert (response.status_code, response.json()["error"]) == (status, message)


def test_an_unknown_model_is_refused_by_name(model: Model) -> None:
    with client_of(model) as client:
        for response in (
            client.get("/v2/models/other"),
            client.get("/v2/models/other/ready"),
            client.post("/v2/models/other/infer", json={"inputs": [tensor(["a"])]}),
        ):
            assert response.status_code == 404
            assert response.json()["error"] == f"there is no such model; this server has {NAME}"


def test_probes_say_that_the_server_lives_and_takes_texts(model: Model) -> None:
    with client_of(model) as client:
        for address in ("/v2/health/live", "/v2/health/ready", f"/v2/models/{NAME}/ready"):
            assert client.get(address).status_code == 200
        assert client.get("/v2").json()["name"] == "selftrain-lite"
