"""Rows drawn from a pool that is not in memory: every draw of a run in one pass."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from selftrain.data.rows import Example

MAX_ROWS_DRAWN = 2**20
"""Rows of several draws that are kept together; larger draws have a pass of their own."""


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows that are drawn uniformly: which seed draws them, and how many."""

    seed: int
    size: int


class Drawing:
    """Several draws from one stream of rows: the uids with the smallest ``seeds.uniform``."""

    def __init__(self, draws: Iterable[Draw]) -> None:
        self._smallest = [_Smallest(draw) for draw in draws]

    def add(self, uid: str, text: str, pair: str | None) -> None:
        """Offer the next row to every draw."""
        raw = uid.encode("utf-8", "surrogatepass")
        for each in self._smallest:
            digest = blake2b(each.prefix + raw, digest_size=8).digest()
            if digest < each.limit:
                each.add(digest, uid, text, pair)

    def read(self, rows: Iterable[Example]) -> dict[Draw, list[Example]]:
        """The rows of each draw, after all of these have been offered."""
        for row in rows:
            self.add(row.uid, row.text, row.pair)
        return {each.draw: each.rows() for each in self._smallest}


def drawn_together(draws: Iterable[Draw]) -> list[Draw]:
    """The first of these draws, each once, whose rows may be kept at the same time."""
    found: list[Draw] = []
    room = MAX_ROWS_DRAWN
    for draw in draws:
        if draw.size <= room and draw not in found:
            found.append(draw)
            room -= draw.size
    return found


class _Smallest:
    """The rows of one draw so far, and a quarter more: sorting them each time would be slow."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.prefix = f"{draw.seed}/".encode()
        self.limit = b"\xff" * 9
        """A row whose hash is not below it is no part of the draw."""
        self._room = draw.size + max(64, draw.size // 4)
        self._found: list[tuple[int, str, str, str | None]] = []

    def add(self, digest: bytes, uid: str, text: str, pair: str | None) -> None:
        """Add a row by the hash of its seed and uid."""
        # The bits of ``seeds.uniform``; of equal ones the uid decides.
        self._found.append((int.from_bytes(digest, "big") >> 12, uid, text, pair))
        if len(self._found) > self._room:
            self._cut()
            largest = self._found[-1][0] << 12 | 0xFFF  # with all that a number does not use
            self.limit = largest.to_bytes(8, "big") + b"\0"  # a longer one is above an equal one

    def rows(self) -> list[Example]:
        """The rows in the order of their hashes."""
        self._cut()
        return [Example(uid, text, pair) for _, uid, text, pair in self._found]

    def _cut(self) -> None:
        self._found.sort(key=lambda row: row[:2])
        del self._found[self.draw.size :]
