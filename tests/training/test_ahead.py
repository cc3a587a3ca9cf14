"""Items that a thread prepares while others are computed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from selftrain.training.ahead import prepared


def test_each_item_comes_in_order_with_what_was_prepared_for_it() -> None:
    found = [(item, result.result()) for item, result in prepared(range(50), str)]
    assert found == [(number, str(number)) for number in range(50)]
    assert list(prepared([], str)) == []


def test_the_next_item_is_prepared_while_this_one_is_used() -> None:
    begun = [threading.Event() for _ in range(3)]

    def prepare(number: int) -> str:
        begun[number].set()
        return threading.current_thread().name

    stream = prepared(range(3), prepare)
    _, first = next(stream)
    assert begun[1].wait(10), "the second item waits for the first to be used"
    assert first.result() != threading.current_thread().name
    assert not begun[2].wait(0.05), "two items ahead"
    assert [item for item, _ in stream] == [1, 2]


def test_an_error_comes_in_its_place_and_no_further_item_is_read() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    stream = prepared(items(), lambda number: 1 // (3 - number))
    good = [next(stream)[1].result() for _ in range(3)]
    assert good == [0, 0, 1]
    _, bad = next(stream)
    with pytest.raises(ZeroDivisionError):
        bad.result()
    stream.close()
    assert read == [*range(5)]


def test_the_readers_own_error_comes_as_it_is() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("the file is gone")

    stream = prepared(items(), str)
    assert next(stream)[1].result() == "1"
    with pytest.raises(OSError, match="gone"):
        list(stream)
