"""Answers for many clients from one model thread, in batches without a timer.

While the model is busy, the next batch fills by itself: a lone text waits for nobody, and the more
clients there are the larger the batches. Each waiting request gives one text in turn, so a long
request does not hold up a short one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from selftrain_lite.serve.refusal import RefusedError

Text = str | tuple[str, str]
Row = list[float]
"""The probability of each class."""
LATER = {"Retry-After": "1"}


class Watch(Protocol):
    """Who counts batches."""

    def batch(self, texts: int, seconds: float) -> None:
        """A batch was answered."""


class Job:
    """The texts of one request, and their answers as they come."""

    __slots__ = ("answer", "left", "next", "rows", "texts")

    def __init__(self, texts: Sequence[Text], answer: asyncio.Future[list[Row]]) -> None:
        self.texts = texts
        self.answer = answer
        self.rows: list[Row] = [[]] * len(texts)
        self.next = 0
        """The first text that still waits."""
        self.left = len(texts)
        """Texts without an answer."""

    @property
    def waits(self) -> bool:
        """Whether a text of it waits for a batch."""
        return self.next < len(self.texts) and not self.answer.done()

    def put(self, place: int, row: Row | RefusedError) -> None:
        """Note the answer to one text; a client that left is not waited for."""
        if self.answer.done():
            return
        if isinstance(row, RefusedError):
            self.answer.set_exception(row)
            return
        self.rows[place] = row
        self.left -= 1
        if not self.left:
            self.answer.set_result(self.rows)


class Batcher:
    """The one way to the model."""

    def __init__(
        self,
        predict: Callable[[Sequence[Text]], Any],
        *,
        max_batch: int = 32,
        queue: int = 1024,
        watch: Watch | None = None,
    ) -> None:
        self.max_batch, self.queue = max_batch, queue
        self._predict, self._watch = predict, watch
        self._jobs: deque[Job] = deque()
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self.waiting = 0
        """Texts that wait for the next batches."""
        self.computing = 0
        """Texts that the model answers now."""
        self.closing = False
        """Whether it takes no more texts."""

    def submit(self, texts: Sequence[Text]) -> asyncio.Future[list[Row]]:
        """Let texts wait for their answers; raises where there is no room for them.

        Cancel the future, and its texts are not computed any more.
        """
        if self.closing:
            raise RefusedError(503, "the server is about to end", LATER)
        if len(texts) > self.queue:
            raise RefusedError(
                413, f"a request has {len(texts):,} texts; expected at most {self.queue:,}"
            )
        if self.waiting + len(texts) > self.queue:
            raise RefusedError(429, f"{self.waiting:,} texts are waiting already; try again", LATER)
        job = Job(texts, asyncio.get_running_loop().create_future())
        job.answer.add_done_callback(lambda _: self._forget(job))
        self._jobs.append(job)
        self.waiting += len(texts)
        self._wake.set()
        return job.answer

    def _forget(self, job: Job) -> None:
        """The texts of a request that has its answer, or whose client left, wait no more."""
        self.waiting -= len(job.texts) - job.next
        job.next = len(job.texts)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer while this is open; a batch that runs is finished."""
        worker = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self.close()
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker
            self._thread.shutdown()

    def close(self, after: float = 0.0) -> None:
        """Take no more texts; those that still wait after so many seconds are refused."""
        self.closing = True
        if after:
            asyncio.get_running_loop().call_later(after, self.close)
            return
        for job in self._jobs:
            if job.waits:
                job.answer.set_exception(
                    RefusedError(503, "the server ended before its turn", LATER)
                )
        self._jobs.clear()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            await asyncio.sleep(0)  # what arrives in the same moment comes along
            batch = self._take()
            if not batch:
                self._wake.clear()
                continue
            texts = [job.texts[place] for job, place in batch]
            started, self.computing = time.perf_counter(), len(texts)
            rows = await loop.run_in_executor(self._thread, self._compute, texts)
            self.computing = 0
            if self._watch is not None:
                self._watch.batch(len(texts), time.perf_counter() - started)
            for (job, place), row in zip(batch, rows, strict=True):
                job.put(place, row)

    def _take(self) -> list[tuple[Job, int]]:
        """The next texts: one of each request in turn, oldest request first."""
        batch: list[tuple[Job, int]] = []
        while self._jobs and len(batch) < self.max_batch:
            job = self._jobs.popleft()
            if not job.waits:
                continue
            batch.append((job, job.next))
            job.next += 1
            self.waiting -= 1
            if job.waits:
                self._jobs.append(job)
        return batch

    def _compute(self, texts: Sequence[Text]) -> list[Row | RefusedError]:
        """In the model thread: a text that the model cannot answer spoils no other."""
        try:
            rows: list[Row | RefusedError] = self._predict(texts).tolist()
        except Exception:
            if len(texts) == 1:
                return [RefusedError(424, "the model cannot answer this text")]
            return [row for text in texts for row in self._compute([text])]
        return rows
