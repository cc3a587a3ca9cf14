"""Rows drawn from a pool that is not in memory: every draw of a run in one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from selftrain.data.rows import Example, uid_of


@dataclass(frozen=True, slots=True)
class Draw:
    """Rows that are drawn uniformly: which seed draws them, and how many."""

    seed: int
    size: int


def draw_together(
    rows: Iterable[tuple[str | None, str, str | None]], draws: Sequence[Draw]
) -> dict[Draw, list[Example]]:
    """The rows of each draw, of all uids those with the smallest ``seeds.uniform``."""
    smallest = [_Smallest(draw) for draw in draws]
    blake2b = hashlib.blake2b
    for uid, text, pair in rows:
        name = uid or uid_of(text, pair)
        raw = name.encode("utf-8", "surrogatepass")
        for each in smallest:
            digest = blake2b(each.prefix + raw, digest_size=8).digest()
            if digest < each.limit:
                each.add(digest, name, text, pair)
    return {each.draw: each.rows() for each in smallest}


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
