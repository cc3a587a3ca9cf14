"""A small HTTP client for load: many connections of one process, each answer with its time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Check = Callable[[int, int, Any], str]
"""From the number of a request, the status and the JSON: `right`, `refused` or `wrong`."""


@dataclass
class Load:
    """What became of the requests."""

    seconds: list[float] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, verdict: str, seconds: float = 0.0) -> None:
        """Note one request."""
        self.counts[verdict] = self.counts.get(verdict, 0) + 1
        self.seconds.append(seconds)

    def percentile(self, share: float) -> float:
        """The time that this share of the requests stays below, in milliseconds."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def request_of(inputs: Any) -> bytes:
    """A whole request, in bytes."""
    body = json.dumps({"inputs": inputs}).encode()
    head = (
        "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """The status and the JSON of the next answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    body = await reader.readexactly(int(headers["content-length"]))
    return int(lines[0].split()[1]), json.loads(body)


async def drive(
    port: int, texts: Sequence[str], numbers: Sequence[int], connections: int, check: Check
) -> Load:
    """Send each request once, over so many connections; every one of them gets a verdict."""
    load, waiting = Load(), iter(numbers)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in waiting:
            started = time.perf_counter()
            try:
                writer.write(request_of(texts[number % len(texts)]))
                async with asyncio.timeout(60):
                    status, found = await answer(reader)
            except (OSError, EOFError, TimeoutError):
                load.add("lost")
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            load.add(check(number, status, found), time.perf_counter() - started)
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return load
