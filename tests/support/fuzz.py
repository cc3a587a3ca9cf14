"""Files that are nearly right: bytes and JSON with random changes, for a fixed time."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from selftrain.errors import SelftrainError

SECONDS = float(os.environ.get("SELFTRAIN_FUZZ_SECONDS", "5"))
"""For each property; a long run sets it higher."""

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["", "0", "..", "/etc/passwd", "\x00", "\ud800", 1e308, 10**9, -1]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def refusal(act: Callable[[], object]) -> SelftrainError | None:
    try:
        act()
    except SelftrainError as error:
        return error
    return None


def check_done_or_refused(act: Callable[[], object]) -> None:
    """Anything but one line and a hint is a finding."""
    error = refusal(act)
    if error is not None:
        assert "\n" not in error.message, error.message
        assert len(error.message) < 2000
        assert error.hint


class Enough(Exception):
    """The time is up."""


def fuzzed(strategy: st.SearchStrategy[Any], check: Callable[[Any], object]) -> int:
    """Check drawn values until the time is up; how many were checked."""
    ends, count = 0.0, 0

    @given(strategy)
    @settings(
        max_examples=10**6,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def checked(value: Any) -> None:
        nonlocal count, ends
        ends = ends or time.monotonic() + SECONDS  # what hypothesis prepares is not counted
        if time.monotonic() > ends:
            raise Enough
        check(value)
        count += 1

    with suppress(Enough):
        checked()
    return count


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every entry of a JSON value."""
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    else:
        inner = []
    return [path, *(each for key, part in inner for each in places(part, (*path, key)))]


@st.composite
def changed_json(draw: st.DrawFn, valid: Any) -> bytes:
    """JSON with some entries replaced, removed or added."""
    value = {"": copy.deepcopy(valid)}
    for _ in range(draw(st.integers(1, 3))):
        place = ("", *draw(st.sampled_from(places(value[""]))))
        parent: Any = value
        for key in place[:-1]:
            parent = parent[key]
        kind = draw(st.sampled_from(["replace", "remove", "add"]))
        if kind == "add" and isinstance(parent, dict):
            parent[draw(st.text(max_size=8))] = draw(values)
        elif kind == "remove" and len(place) > 1:
            del parent[place[-1]]
        else:
            parent[place[-1]] = draw(values)
        if "" not in value:
            break
    text = json.dumps(value.get(""))
    return text.encode("utf-8", "surrogatepass")


@st.composite
def changed_bytes(draw: st.DrawFn, valid: bytes) -> bytes:
    """Bytes with a piece removed, repeated or replaced."""
    raw = valid
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        end = min(len(raw), start + draw(st.integers(0, 40)))
        new = draw(st.binary(max_size=12) | st.just(raw[start:end] * 2) | st.just(b""))
        raw = raw[:start] + new + raw[end:]
    return raw
