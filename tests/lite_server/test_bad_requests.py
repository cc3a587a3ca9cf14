"""Requests that get no answer: one line, a status code, and nothing lost for the others."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from selftrain_lite import Model
from selftrain_lite.serve import body
from served import FakeModel, ask, client_of

SHAPES = 'expected "text", ["a", "b"] for a pair, or [["text"], ["text"]] for several'
BAD_JSON = "the request is not JSON in UTF-8"

BAD_BODIES = [
    (b"", 422, BAD_JSON),
    (b"great film", 422, BAD_JSON),
    (b'{"inputs": "great', 422, BAD_JSON),
    (b'{"inputs": NaN}', 422, BAD_JSON),
    (b'{"inputs": ' + b"[" * 100_000, 422, BAD_JSON),
    (b'{"inputs": ' + b"9" * 10_000 + b"}", 422, BAD_JSON),
    ('{"inputs": "é"}'.encode("latin-1"), 422, BAD_JSON),
    ('{"inputs": "x"}'.encode("utf-16"), 422, BAD_JSON),
    (b'["great"]', 422, "the request has no `inputs`"),
    (b"{}", 422, "the request has no `inputs`"),
    (b'{"inputs": "\\ud800"}', 422, "text 1 has half a character"),
    (
        b'{"inputs": "x", "raw_scores": true}',
        422,
        "raw_scores is not offered: scores are calibrated probabilities",
    ),
]

BAD_INPUTS = [
    (None, 422, f"`inputs` is null; {SHAPES}"),
    (7, 422, f"`inputs` is a number; {SHAPES}"),
    (True, 422, f"`inputs` is true or false; {SHAPES}"),
    ({"text": "great"}, 422, f"`inputs` is an object; {SHAPES}"),
    ([], 400, "`inputs` is empty"),
    ([[]], 422, "entry 1 of `inputs` has 0 texts; the model reads single texts"),
    ([["great"], "dull"], 422, f"entry 2 of `inputs` is a text; {SHAPES}"),
    ([["great"], [3]], 422, f"entry 2 of `inputs` has a number; {SHAPES}"),
    (["a", 3], 422, f"entry 1 of `inputs` has a number; {SHAPES}"),
    (["a", "b"], 422, "entry 1 of `inputs` has 2 texts; the model reads single texts"),
    (["a", "b", "c"], 422, "entry 1 of `inputs` has 3 texts; the model reads single texts"),
    ([["a"]] * 100_000, 413, "a request has 100,000 texts; expected at most 1,024"),
    ("a" * 100_001, 413, "text 1 has 100,001 characters; expected at most 100,000"),
    ([["a"], ["b" * 100_001]], 413, "text 2 has 100,001 characters; expected at most 100,000"),
]


def refused(response: Any, status: int, message: str) -> None:
    """One line in the shape of text-embeddings-inference, and the next request has its answer."""
    assert (response.status_code, response.json()["error"]) == (status, message)
    assert set(response.json()) == {"error", "error_type"}
    assert "\n" not in message


@pytest.mark.parametrize(("content", "status", "message"), BAD_BODIES)
def test_a_body_that_cannot_be_read(
    model: Model, content: bytes, status: int, message: str
) -> None:
    with client_of(model) as client:
        refused(client.post("/predict", content=content), status, message)
        assert ask(client, "great")[0]["label"] == "positive"


@pytest.mark.parametrize(("inputs", "status", "message"), BAD_INPUTS)
def test_inputs_of_another_shape(model: Model, inputs: Any, status: int, message: str) -> None:
    with client_of(model) as client:
        refused(client.post("/predict", json={"inputs": inputs}), status, message)
        assert ask(client, "great")[0]["label"] == "positive"


def test_kinds_of_errors_are_those_of_text_embeddings_inference(model: Model) -> None:
    with client_of(model) as client:
        kinds = [
            client.post("/predict", json={"inputs": inputs}).json()["error_type"]
            for inputs in ([], 3, "a" * 100_001)
        ]
    assert kinds == ["Empty", "Validation", "Validation"]


def test_a_single_text_is_refused_by_a_model_of_pairs() -> None:
    with client_of(FakeModel(pair=True)) as client:
        response = client.post("/predict", json={"inputs": "great"})
        refused(response, 422, "entry 1 of `inputs` has 1 texts; the model reads pairs of texts")


def parts(count: int, size: int = 2**16) -> Any:
    """A body that comes in parts, without a length."""
    yield b'{"inputs": "'
    for _ in range(count):
        yield b"x" * size
    yield b'"}'


@pytest.mark.parametrize("count", [100, 400])
def test_a_body_over_the_limit_is_refused_while_it_is_read(model: Model, count: int) -> None:
    with client_of(model) as client:
        response = client.post("/predict", content=parts(count))
        refused(response, 413, "a request has at most 4,194,304 bytes")
        assert response.headers["connection"] == "close"


@pytest.mark.parametrize("length", ["-1", "x", "9" * 30, "٣"])
def test_a_content_length_that_is_no_number(model: Model, length: str) -> None:
    with client_of(model) as client:
        headers = {"Content-Length": length.encode()}
        response = client.post("/predict", content=b"{}", headers=headers)
        refused(response, 422, "the content length is no number")


def test_a_body_that_does_not_end_is_given_up(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setattr(body, "SECONDS", 0.05)

    async def half() -> Any:
        await asyncio.sleep(60)

    with pytest.raises(body.RefusedError) as refusal:
        asyncio.run(body.json_of({}, half))
    assert (refusal.value.status, refusal.value.message) == (
        408,
        "the request was not complete in 0.05 s",
    )


def test_a_text_that_the_model_cannot_answer_spoils_no_other(
    capfd: pytest.CaptureFixture[str],
) -> None:
    model = FakeModel()
    with client_of(model) as client:
        response = client.post("/predict", json={"inputs": [["a"], ["poison"], ["b"]]})
        refused(response, 424, "the model cannot answer this text")
        assert ask(client, "abc")[0] == {"label": "short", "score": 0.97}
    assert "secret" not in "".join(capfd.readouterr())


def test_an_error_of_ours_shows_no_text(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("secret words of a text")

    monkeypatch.setattr("selftrain_lite.serve.tei.answer", broken)
    with client_of(FakeModel()) as client:
        response = client.post("/predict", json={"inputs": "secret words of a text"})
    refused(response, 500, "the server has an error; its log says where")
    captured = "".join(capfd.readouterr())
    assert "error: KeyError in " in captured
    assert "secret" not in captured


@pytest.mark.parametrize(
    ("method", "address", "status", "message"),
    [
        ("GET", "/nothing", 404, "there is nothing here; see /docs"),
        ("GET", "/page/../settings.py", 404, "there is nothing here; see /docs"),
        ("GET", "/page/%2e%2e/app.py", 404, "there is nothing here; see /docs"),
        ("GET", "/predict", 405, "this address takes another method; see /docs"),
        ("DELETE", "/info", 405, "this address takes another method; see /docs"),
    ],
)
def test_an_address_that_is_none(
    model: Model, method: str, address: str, status: int, message: str
) -> None:
    with client_of(model) as client:
        refused(client.request(method, address), status, message)


def test_a_fuzzed_body_is_refused_or_answered_and_never_an_error_of_ours(model: Model) -> None:
    from random import Random

    random = Random(7)
    pieces = [*'{}[]",:', "inputs", '"inputs":', "null", "1e999", "\\u0000", "\\ud83d", "a", " "]
    with client_of(model) as client:
        for _ in range(60):
            text = "".join(random.choices(pieces, k=random.randint(1, 12)))
            for content in (text, f'{{"inputs": {text}}}'):
                check_no_error(client, content)


def check_no_error(client: TestClient, content: str) -> None:
    response = client.post("/predict", content=content.encode("utf-8", "surrogatepass"))
    assert response.status_code in (200, 400, 413, 422), content
    assert len(response.text.splitlines()) == 1
