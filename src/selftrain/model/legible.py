"""Whether an encoder can read some texts: how much of them its tokenizer has pieces for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LETTERS_SEEN = 400  # of each text
LONG = 4  # letters of a word that an encoder of its language has as one piece
SPELT = 0.8
"""Pieces for each letter from which a word is spelt out letter by letter."""


@dataclass(frozen=True, slots=True)
class Legibility:
    """What a tokenizer makes of some texts."""

    texts: int
    hard: int
    """Texts most of whose letters are in words that are unknown, or spelt letter by letter."""
    words: int
    """Longer words, of four letters or more."""
    broken: int
    """Those that are no single piece."""


def legibility(texts: Sequence[str], tokenizer: Any) -> Legibility:
    """How much of these texts a tokenizer has pieces for; nothing of one that gives no offsets."""
    if not texts or not tokenizer.is_fast:
        return Legibility(0, 0, 0, 0)
    begun = [text[:LETTERS_SEEN] for text in texts]
    encoded = tokenizer(begun, add_special_tokens=False)
    hard, words, broken = 0, 0, 0
    for place, text in enumerate(begun):
        letters, lost = 0, 0
        for word, pieces, unknown in words_of(text, encoded, place, tokenizer.unk_token_id):
            size = sum(map(str.isalpha, word)) or int(unknown)
            letters += size
            spelt = size >= 3 and pieces >= SPELT * size
            lost += size * (unknown or spelt)
            words += size >= LONG
            broken += size >= LONG and pieces > 1
        hard += letters > 0 and lost > letters / 2
    return Legibility(len(begun), hard, words, broken)


def words_of(
    text: str, encoded: Any, place: int, unknown_id: int
) -> Iterator[tuple[str, int, bool]]:
    """Each word of a text, the number of its pieces, and whether one of them is unknown."""
    row = encoded[place]
    counts: dict[int, int] = {}
    unknown: set[int] = set()
    for word, piece in zip(row.word_ids, row.ids, strict=True):
        if word is not None:
            counts[word] = counts.get(word, 0) + 1
            if piece == unknown_id:
                unknown.add(word)
    for word, count in counts.items():
        start, end = encoded.word_to_chars(place, word)
        yield text[start:end], count, word in unknown
