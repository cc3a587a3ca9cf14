"""Draw a few labelled rows of each class, and name a set of rows by a hash.

The draw is hashed from the seed and the uid of each row. Neither the order of the file nor a row
added elsewhere changes which rows are drawn, and the 16 rows of a class are always among the 32
of the same seed.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring_ascii as quoted

from selftrain.data.rows import Example, Labelled, Notes, uid_of
from selftrain.errors import listing, require
from selftrain.seeds import child, uniform


def sample(
    labelled: Iterable[Labelled], k: int, seed: int, *, notes: Notes | None = None
) -> tuple[list[Labelled], list[Example]]:
    """Draw k rows of each class; all other rows are the pool, without labels.

    Of a class with fewer rows all are drawn. A repeated text counts once. A text with two labels
    is never drawn and goes to the pool.
    """
    require(k >= 1, "k, the labelled rows of each class,", k, "at least 1", "--shots 16")
    notes = Notes() if notes is None else notes
    draw = child(seed, "fewshot")
    texts = _grouped(labelled, lambda row: uid_of(row.example.text, row.example.pair)).values()
    rows = sorted((min(same, key=_uid) for same in texts), key=lambda r: uniform(draw, _uid(r)))
    ambiguous = {min(map(_uid, same)) for same in texts if len({row.label for row in same}) > 1}
    notes.add("texts with two labels left unlabelled", len(ambiguous))

    few: list[Labelled] = []
    short: dict[str, int] = {}
    candidates = (row for row in rows if _uid(row) not in ambiguous)
    for label, ranked in sorted(_grouped(candidates, lambda row: row.label).items()):
        few += ranked[:k]
        if len(ranked) < k:
            short[label] = len(ranked)
    if len(short) > 1:
        notes.add(f"classes with fewer than {k} rows, {listing([*short])}: all taken", len(short))
    for label, count in short.items() if len(short) == 1 else ():
        notes.add(f"class `{label}` has fewer than {k} rows: all taken", count)
    drawn = set(map(_uid, few))
    return few, [row.example for row in rows if _uid(row) not in drawn]


def fingerprint(rows: Iterable[Labelled | Example]) -> str:
    """A sha256 that names a set of rows, whatever their order.

    The hashes of the rows are added up, so a pool is read as a stream and never sorted. A text
    that changes under the same id changes the fingerprint.
    """
    total = count = 0
    for row in rows:
        count += 1
        label, example = (row.label, row.example) if isinstance(row, Labelled) else (None, row)
        total += row_hash(example.uid, example.text, example.pair, label)
    return fingerprint_of(count, total)


def row_hash(uid: str, text: str, pair: str | None, label: str | None = None) -> int:
    """The number that a row adds to a fingerprint: a sha256 of its fields as a JSON array."""
    sides = f"{quoted(uid)}, {quoted(text)}, {'null' if pair is None else quoted(pair)}"
    line = f"[{sides}, {'null' if label is None else quoted(label)}]"
    return int.from_bytes(hashlib.sha256(line.encode()).digest(), "big")


def fingerprint_of(count: int, total: int) -> str:
    """The fingerprint of rows, from their number and the sum of their hashes."""
    return hashlib.sha256(f"{count}/{total % 2**256}".encode()).hexdigest()


def order_fingerprint(rows: Iterable[Example]) -> str:
    """A sha256 that names rows in their order, by uid."""
    return hashlib.sha256(json.dumps([row.uid for row in rows]).encode()).hexdigest()


def _uid(row: Labelled) -> str:
    return row.example.uid


def _grouped(rows: Iterable[Labelled], key: Callable[[Labelled], str]) -> dict[str, list[Labelled]]:
    groups: dict[str, list[Labelled]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
