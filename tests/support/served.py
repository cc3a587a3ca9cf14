"""A server in a test: a model whose batches wait for the test, and a client without a port."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from selftrain_lite.serve.app import app_of, service_of
from selftrain_lite.serve.settings import Settings

HOST = "http://127.0.0.1:8080"


class FakeModel:
    """Answers with the length of a text; `poison` raises, and a closed gate makes it wait."""

    labels = ("short", "long")
    info: dict[str, Any]

    def __init__(self, *, pair: bool = False, max_batch: int = 32) -> None:
        self.pair, self.max_batch = pair, max_batch
        self.batches: list[list[Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.info = {
            "task": "lengths",
            "labels": list(self.labels),
            "pair": pair,
            "weights": "fp32",
            "max_tokens": 128,
            "sha256": "0" * 64,
            "expected": None,
            "abstain": [],
        }

    def predict_proba(self, texts: Sequence[Any]) -> Any:
        self.batches.append(list(texts))
        self.started.set()
        assert self.gate.wait(20)
        if "poison" in texts:
            raise ValueError("secret words of a text")
        return np.array([self.row(text) for text in texts])

    @staticmethod
    def row(text: Any) -> list[float]:
        """What it answers to one text."""
        share = min(len("".join(text)), 100) / 100
        return [1 - share, share]


@contextmanager
def client_of(model: Any, **settings: Any) -> Iterator[TestClient]:
    """A client of a server that has this model."""
    app = app_of(service_of(model, Settings(**settings)))
    with TestClient(app, base_url=HOST, raise_server_exceptions=False) as client:
        yield client


def ask(client: TestClient, inputs: Any, **more: Any) -> Any:
    """The answer to a request that must succeed."""
    response = client.post("/predict", json={"inputs": inputs}, **more)
    assert response.status_code == 200, response.text
    return response.json()
