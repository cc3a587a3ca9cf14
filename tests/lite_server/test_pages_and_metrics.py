"""The pages come from files of the package, and the counters have no word of a text."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import selftrain_lite.serve
from selftrain_lite import Model
from served import ask, client_of

PACKAGE = Path(selftrain_lite.serve.__file__).parent
OURS = sorted((PACKAGE / "page").iterdir())


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_a_page_loads_nothing_from_elsewhere_and_writes_no_html(path: Path) -> None:
    text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//cdn|@import|innerHTML|outerHTML|document\.write", text)
    assert not re.search(r"<script>|<style|\son\w+=|\sstyle=", text)


@pytest.mark.parametrize("address", ["/", "/docs"])
def test_all_that_a_page_names_is_there(model: Model, address: str) -> None:
    with client_of(model) as client:
        page = client.get(address)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        for name in re.findall(r'(?:src|href)="([^"]+)"', page.text):
            assert client.get(name).status_code == 200


def test_swagger_ui_is_the_file_that_was_published() -> None:
    folder = PACKAGE / "swagger"
    lines = re.findall(r"([0-9a-f]{64})  (\S+)", (folder / "README.md").read_text("utf-8"))
    assert len(lines) == 2
    for digest, name in lines:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_the_interface_is_described_with_examples_that_work(model: Model) -> None:
    with client_of(model) as client:
        paths = client.get("/openapi.json").json()["paths"]
        assert {"/predict", "/info", "/health", "/metrics", "/v2/models/{name}/infer"} <= set(paths)
        for path in ("/predict", "/v2/models/{name}/infer"):
            content = paths[path]["post"]["requestBody"]["content"]["application/json"]
            address = path.replace("{name}", "film-reviews")
            assert client.post(address, json=content["example"]).status_code == 200
            assert {"200", "413", "422", "429"} <= set(paths[path]["post"]["responses"])


def test_the_interface_asks_for_the_token_where_there_is_one(model: Model) -> None:
    with client_of(model) as client:
        assert "security" not in client.get("/openapi.json").json()
    with client_of(model, token="correct-horse-battery") as client:
        described = client.get("/openapi.json").json()
    assert described["security"] == [{"token": []}]
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def metric(text: str, name: str) -> float:
    (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.M)
    return float(value)


def test_counters_show_labels_confidence_batches_and_refusals(model: Model) -> None:
    with client_of(model, abstain=0.7) as client:
        ask(client, [["great"], ["good great"], ["dull"], ["film"]])
        client.post("/predict", json={"inputs": []})
        response = client.get("/metrics")
    text = response.text
    assert response.headers["content-type"].startswith("text/plain")
    assert metric(text, 'selftrain_confidence_count{label="positive"}') == 2
    expected = model.predict_proba(["great", "good great"]).max(1).sum()
    total = metric(text, 'selftrain_confidence_sum{label="positive"}')
    assert total == pytest.approx(expected, abs=1e-6)
    assert metric(text, "selftrain_abstained_total") == 1
    assert metric(text, "selftrain_batch_texts_sum") == 4
    assert metric(text, "selftrain_waiting_texts") == 0
    assert metric(text, "selftrain_model_seconds_count") == 1
    refused = 'selftrain_request_seconds_count{address="/predict",status="400"}'
    assert metric(text, refused) == 1


def test_no_text_and_no_address_of_a_client_is_in_metrics_or_logs(
    model: Model, capfd: pytest.CaptureFixture[str]
) -> None:
    with client_of(model) as client:
        ask(client, "wintergreen")
        client.post("/predict", content=b"wintergreen")
        client.post("/v2/models/wintergreen/infer", json={})
        client.get("/wintergreen?text=wintergreen")
        text = client.get("/metrics").text
    assert "wintergreen" not in text + "".join(capfd.readouterr())
