"""One model thread, batches that fill while it is busy, and clients that leave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from selftrain_lite.serve.batcher import Batcher
from selftrain_lite.serve.refusal import RefusedError
from served import FakeModel

Test = Callable[[Batcher, FakeModel], Awaitable[None]]


def run(test: Test, **more: Any) -> FakeModel:
    """Run a test with a batcher; the model that it asked."""
    model = FakeModel()

    async def inside() -> None:
        batcher = Batcher(model.predict_proba, **more)
        async with asyncio.timeout(20), batcher.running():
            await test(batcher, model)

    try:
        asyncio.run(inside())
    finally:
        model.gate.set()
    return model


async def until_busy(model: FakeModel) -> None:
    """Wait until a batch is in the model."""
    while not model.started.is_set():
        await asyncio.sleep(0.001)


def test_while_the_model_is_busy_the_next_batch_fills() -> None:
    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        first = batcher.submit(["first"])
        await until_busy(model)
        others = [batcher.submit([f"{number}"]) for number in range(40)]
        await asyncio.sleep(0.01)
        assert batcher.waiting == 40
        model.gate.set()
        await asyncio.gather(first, *others)
        assert batcher.waiting == 0

    assert [len(batch) for batch in run(test).batches] == [1, 32, 8]


def test_a_lone_text_waits_for_nobody() -> None:
    async def test(batcher: Batcher, _: FakeModel) -> None:
        for _ in range(3):
            assert await batcher.submit(["ab"]) == [[0.98, 0.02]]

    assert [len(batch) for batch in run(test).batches] == [1, 1, 1]


def test_a_short_request_does_not_wait_for_all_of_a_long_one() -> None:
    finished: list[str] = []

    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        blocker = batcher.submit(["first"])
        await until_busy(model)
        long = batcher.submit(["x"] * 100)
        short = batcher.submit(["y"])
        long.add_done_callback(lambda _: finished.append("long"))
        short.add_done_callback(lambda _: finished.append("short"))
        model.gate.set()
        await asyncio.gather(blocker, long, short)
        await asyncio.sleep(0)

    model = run(test, max_batch=8)
    assert finished == ["short", "long"]
    assert "y" in model.batches[1]


def test_a_full_queue_refuses_and_loses_nothing() -> None:
    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        first = batcher.submit(["first"])
        await until_busy(model)
        waiting = batcher.submit(["a", "b", "c"])
        for texts in (["d", "e"], ["d", "e", "f", "g"]):
            with pytest.raises(RefusedError) as refusal:
                batcher.submit(texts)
            assert refusal.value.status == 429
            assert refusal.value.message == "3 texts are waiting already; try again"
            assert refusal.value.headers == {"Retry-After": "1"}
        last = batcher.submit(["d"])
        with pytest.raises(RefusedError, match="a request has 5 texts; expected at most 4"):
            batcher.submit(["x"] * 5)
        model.gate.set()
        assert len(await first) + len(await waiting) + len(await last) == 5

    run(test, queue=4)


def test_a_client_that_leaves_while_it_waits_is_not_computed() -> None:
    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        first = batcher.submit(["first"])
        await until_busy(model)
        leaves, stays = batcher.submit(["leaves"] * 3), batcher.submit(["stays"])
        leaves.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        model.gate.set()
        await first
        assert await stays == [model.row("stays")]

    assert run(test).batches == [["first"], ["stays"]]


def test_a_client_that_leaves_its_batch_does_not_spoil_it() -> None:
    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        blocker = batcher.submit(["first"])
        await until_busy(model)
        model.started.clear()
        both = batcher.submit(["leaves"]), batcher.submit(["stays"])
        model.gate.set()
        await blocker
        model.gate.clear()
        await until_busy(model)
        both[0].cancel()
        model.gate.set()
        assert await both[1] == [model.row("stays")]
        assert await batcher.submit(["next"]) == [model.row("next")]

    run(test)


def test_a_text_that_the_model_cannot_answer_fails_alone() -> None:
    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        first = batcher.submit(["first"])
        await until_busy(model)
        bad, good = batcher.submit(["poison", "a"]), batcher.submit(["good", "b"])
        model.gate.set()
        await first
        assert await good == [model.row("good"), model.row("b")]
        with pytest.raises(RefusedError, match="the model cannot answer this text"):
            await bad
        assert batcher.waiting == 0

    run(test)


def test_the_end_finishes_what_waits_and_takes_no_more() -> None:
    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        first = batcher.submit(["first"])
        await until_busy(model)
        waiting = batcher.submit(["a"] * 40)
        batcher.close(after=5)
        with pytest.raises(RefusedError, match="the server is about to end"):
            batcher.submit(["late"])
        model.gate.set()
        assert len(await first) == 1
        assert len(await waiting) == 40

    run(test)


def test_what_still_waits_after_the_time_is_refused_and_the_running_batch_finished() -> None:
    async def test(batcher: Batcher, model: FakeModel) -> None:
        model.gate.clear()
        first = batcher.submit(["first"])
        await until_busy(model)
        waiting = batcher.submit(["a"])
        batcher.close(after=0.02)
        with pytest.raises(RefusedError, match="the server ended before its turn") as refusal:
            await waiting
        assert refusal.value.status == 503
        model.gate.set()
        assert await first == [model.row("first")]

    run(test)
