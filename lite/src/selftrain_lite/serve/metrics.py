"""What an operator watches, for Prometheus: times, batches, the queue, and signs of drift.

No metric has a word of a text. The names of labels are those of the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from selftrain_lite.serve.batcher import Batcher, Row

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """The counters of one server."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self._requests = Histogram(
            "selftrain_request_seconds",
            "Time from a complete request to its answer.",
            ("address", "status"),
            buckets=SECONDS,
            registry=r,
        )
        self._batches = Histogram(
            "selftrain_batch_texts", "Texts answered together.", buckets=SIZES, registry=r
        )
        self._model = Histogram(
            "selftrain_model_seconds", "Time of the model for a batch.", buckets=SECONDS, registry=r
        )
        self._waiting = Gauge(
            "selftrain_waiting_texts", "Texts that wait for the model.", registry=r
        )
        self._running = Gauge(
            "selftrain_running_texts", "Texts that the model answers now.", registry=r
        )
        confidence = Summary(
            "selftrain_confidence",
            "Answers by label, and the sum of their probabilities: drift shows in both.",
            ("label",),
            registry=r,
        )
        self._confidence = [confidence.labels(label) for label in labels]  # so that all are listed
        self._abstained = Counter(
            "selftrain_abstained", "Texts that got no label: too little confidence.", registry=r
        )

    def look_at(self, batcher: Batcher) -> None:
        """Let the gauges ask how many texts wait and run."""
        self._waiting.set_function(lambda: batcher.waiting)
        self._running.set_function(lambda: batcher.computing)

    def batch(self, texts: int, seconds: float) -> None:
        """A batch was answered."""
        self._batches.observe(texts)
        self._model.observe(seconds)

    def answers(self, rows: Sequence[Row], abstain: float) -> None:
        """Texts were answered."""
        for row in rows:
            best = max(row)
            self._confidence[row.index(best)].observe(best)
            if best < abstain:
                self._abstained.inc()

    def request(self, address: str, status: int, seconds: float) -> None:
        """A request was answered or refused; the address is one of ours, not what was sent."""
        self._requests.labels(address, str(status)).observe(seconds)

    def text(self) -> bytes:
        """All of them, in the format of Prometheus."""
        return generate_latest(self.registry)
