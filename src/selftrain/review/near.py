"""The labelled texts nearest to a row, by the vectors of the run's model.

The model is loaded in a thread of its own, so that no one waits for it; a row is read when it is
opened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from selftrain.data.rows import Example, Labelled
from selftrain.errors import SelftrainError

if TYPE_CHECKING:
    from torch import Tensor

NEAREST = 3
CHARACTERS = 2_000
"""Of a labelled text that are sent."""

Read = Callable[[Sequence[Example]], "Tensor"]
"""Vectors of texts, [N, D]."""


class Neighbours:
    """Finds the nearest labelled texts of a row; each row is read once."""

    def __init__(self, gold: Sequence[Labelled], load: Callable[[], Read]) -> None:
        self.gold = gold
        self._load = load
        self._found: dict[str, list[dict[str, Any]]] = {}
        self._thread = ThreadPoolExecutor(1, "nearest")
        self._ready: Future[tuple[Read, Tensor]] | None = None
        self._lock = threading.Lock()

    def of(self, example: Example) -> dict[str, Any]:
        """The state of the search, and the nearest texts as soon as they are known."""
        if not self.gold:
            return {"state": "none"}
        with self._lock:
            if self._ready is None:
                self._ready = self._thread.submit(self._prepare)
            ready = self._ready
        if not ready.done():
            return {"state": "loading"}
        problem = ready.exception()
        if isinstance(problem, SelftrainError):
            return {"state": "failed", "why": f"{problem.message}. {problem.hint}"}
        if example.uid not in self._found:
            read, gold = ready.result()
            self._found[example.uid] = self._thread.submit(
                self._nearest, read, gold, example
            ).result()
        return {"state": "ready", "near": self._found[example.uid]}

    def close(self) -> None:
        """Let go of the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _prepare(self) -> tuple[Read, Tensor]:
        read = self._load()
        return read, _unit(read([row.example for row in self.gold]))

    def _nearest(self, read: Read, gold: Tensor, example: Example) -> list[dict[str, Any]]:
        similarity = gold @ _unit(read([example]))[0]  # [N]
        best = similarity.topk(min(NEAREST, len(self.gold)))
        return [
            {
                "text": self.gold[place].example.text[:CHARACTERS],
                "pair": (self.gold[place].example.pair or "")[:CHARACTERS] or None,
                "label": self.gold[place].label,
                "similarity": round(value, 3),
            }
            for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]


def _unit(vectors: Tensor) -> Tensor:
    import torch.nn.functional as F

    return F.normalize(vectors, dim=1)
