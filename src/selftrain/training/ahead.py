"""The next item is prepared by a thread while this one is computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
T = TypeVar("T")


def prepared(
    items: Iterable[Item], prepare: Callable[[Item], T]
) -> Iterator[tuple[Item, Future[T]]]:
    """Each item with what ``prepare`` gives for it; a thread is one item ahead, never more.

    An error of ``prepare`` is raised by ``result`` of its item, after those before it.
    """
    with ThreadPoolExecutor(1, "preparing") as thread:
        waiting: deque[tuple[Item, Future[T]]] = deque()
        for item in items:
            waiting.append((item, thread.submit(prepare, item)))
            if len(waiting) > 1:
                yield waiting.popleft()
        yield from waiting
