"""A few labelled rows drawn from many, and the fingerprint of what was drawn.

The draw is hashed from the seed and each row's uid: neither the order of the file nor a row added
elsewhere changes who else is drawn, and 16 per class are always among the 32 of the same seed.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable

from selftrain.data.rows import Example, Labelled, Notes, uid_of
from selftrain.errors import require
from selftrain.seeds import child, uniform


def sample(
    labelled: Iterable[Labelled], k: int, seed: int, *, notes: Notes | None = None
) -> tuple[list[Labelled], list[Example]]:
    """k rows of each class by seed, and all others as a pool without labels.

    A class with fewer rows gives all it has. A text that stands there twice is one text; one with
    two labels is never drawn, only left in the pool.
    """
    require(k >= 1, "k, the labelled rows of each class,", k, "at least 1", "--shots 16")
    noted = Notes() if notes is None else notes
    draw = child(seed, "fewshot")
    texts = _grouped(labelled, lambda row: uid_of(row.example.text, row.example.pair)).values()
    rows = sorted((min(same, key=_uid) for same in texts), key=lambda r: uniform(draw, _uid(r)))
    torn = {min(map(_uid, same)) for same in texts if len({row.label for row in same}) > 1}
    noted.add("texts with two labels left unlabelled", len(torn))

    few: list[Labelled] = []
    sure = (row for row in rows if _uid(row) not in torn)
    for label, ranked in sorted(_grouped(sure, lambda row: row.label).items()):
        few += ranked[:k]
        if len(ranked) < k:
            noted.add(f"class `{label}` has fewer than {k} rows: all taken", len(ranked))
    taken = set(map(_uid, few))
    return few, [row.example for row in rows if _uid(row) not in taken]


def fingerprint(rows: Iterable[Labelled | Example]) -> str:
    """A sha256 that names a set of rows, whatever their order.

    Row hashes are added up, so a pool is read as a stream and never sorted. The texts count too:
    a file changed under the same ids is another file.
    """
    total = count = 0
    for row in rows:
        count += 1
        label, example = (row.label, row.example) if isinstance(row, Labelled) else (None, row)
        line = json.dumps([example.uid, example.text, example.pair, label])
        total += int.from_bytes(hashlib.sha256(line.encode()).digest(), "big")
    return hashlib.sha256(f"{count}/{total % 2**256}".encode()).hexdigest()


def _uid(row: Labelled) -> str:
    return row.example.uid


def _grouped(rows: Iterable[Labelled], key: Callable[[Labelled], str]) -> dict[str, list[Labelled]]:
    groups: dict[str, list[Labelled]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
