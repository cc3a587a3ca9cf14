"""The body of a request, never more of it in memory than the limit, and not for ever."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from selftrain_lite.serve.refusal import RefusedError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

LARGEST_BODY = 4 * 2**20  # bytes
LARGEST_REST = 16 * 2**20
"""Bytes of a body too long that are read and dropped, so that its client hears the reason."""
SECONDS = 20.0
"""For a whole body; a client that is slower is refused."""


class LeftError(Exception):
    """The client is gone; nobody waits for an answer."""


async def json_of(headers: Mapping[str, str], receive: Receive) -> Any:
    """The body of a request as JSON."""
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal() and len(length) <= 12):
        raise RefusedError(422, "the content length is no number")
    try:
        async with asyncio.timeout(SECONDS):
            raw = await _body(receive, too_long=int(length) > LARGEST_BODY)
    except TimeoutError:
        close = {"Connection": "close"}
        raise RefusedError(408, f"the request was not complete in {SECONDS:g} s", close) from None
    if raw is None:
        close = {"Connection": "close"}
        raise RefusedError(413, f"a request has at most {LARGEST_BODY:,} bytes", close)
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):  # the reason would repeat what was sent
        raise RefusedError(422, "the request is not JSON in UTF-8") from None


def _no_number(_: str) -> Any:
    raise ValueError


async def _body(receive: Receive, *, too_long: bool) -> bytes | None:
    """All bytes of a body; None where there are too many."""
    body, dropped = bytearray(), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise LeftError
        body += message.get("body", b"")
        too_long = too_long or len(body) > LARGEST_BODY
        if too_long:
            dropped += len(body)
            body.clear()
            if dropped > LARGEST_REST:
                return None
        if not message.get("more_body"):
            return None if too_long else bytes(body)
