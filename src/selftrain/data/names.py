"""The usual names of columns, in the order in which they are looked for."""

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
ID_NAMES = ("id", "uid", "guid")

USUAL = frozenset(
    {*TEXT_NAMES, *(name for pair in PAIR_NAMES for name in pair), *LABEL_NAMES, *ID_NAMES}
)
