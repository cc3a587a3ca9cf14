"""The usual names of columns: those of selftrain's ``data/names.py``, as tests make sure."""

from __future__ import annotations

TEXT_NAMES = ("text", "sentence", "review", "content", "comment", "message", "tweet", "document")
PAIR_NAMES = (
    ("text", "pair"),
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
)
LABEL_NAMES = ("label", "labels", "class", "category", "target", "sentiment", "gold")
"""No label is read, but its column tells by which separator a header is split."""
ID_NAMES = ("id", "uid", "guid")

USUAL = frozenset(
    {*TEXT_NAMES, *(name for pair in PAIR_NAMES for name in pair), *LABEL_NAMES, *ID_NAMES}
)
