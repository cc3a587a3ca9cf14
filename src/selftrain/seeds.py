"""Random numbers by name: a new draw in one stage does not change those of another.

The noise of an example is hashed from its uid, so neither the order of a pool nor the way it is
cut into shards changes what is drawn.
"""

from __future__ import annotations

import hashlib
import math
import threading

TORCH_GENERATOR = threading.RLock()
"""Held by whoever seeds torch's generator and draws from it: a process has only one of it.

A second thread waits, so fits in threads of one process give the numbers that each gives alone."""


def child(seed: int, *names: str | int) -> int:
    """A separate seed for one purpose, for example ``child(seed, "pool", 3)``.

    >>> child(12, "pool", 1) == child(12, "pool", 1)
    True
    >>> child(12, "pool", 1) == child(12, "pool", 2)
    False
    """
    path = "/".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "big") >> 1


def uniform(seed: int, uid: str) -> float:
    """A number strictly between 0 and 1, the same for this seed and this example each time."""
    # The uid of an example made in Python may be any string, even half a surrogate pair.
    name = f"{seed}/{uid}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(name, digest_size=8).digest()
    # 52 bits and the half are 53, all that a double has: with one more, the largest would be 1.
    return ((int.from_bytes(digest, "big") >> 12) + 0.5) / 2**52


def gumbel(seed: int, uid: str) -> float:
    """Standard Gumbel noise for this seed and this example: -log(-log(u))."""
    return -math.log(-math.log(uniform(seed, uid)))
