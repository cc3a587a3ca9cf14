"""How an example becomes a row of token ids: as plain text for a head, in a template for a prompt.

Teachers and students read the same texts again and again: ``TokenCache`` remembers their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from selftrain.data.rows import Example, uid_of
from selftrain.errors import ModelError
from selftrain.model.batches import Row
from selftrain.model.prompt import Template, fill, shorten, tokenise

MAX_ROWS = 32_768  # of a cache, about two kilobytes each: memory stays flat


class TokenCache:
    """Rows of token ids that a backbone's tokenizer made; the oldest go first."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, Row] = {}

    def encode(
        self,
        examples: Sequence[Example],
        settings: Hashable,
        tokenise_new: Callable[[Sequence[Example]], list[Row]],
    ) -> list[Row]:
        """The rows of examples; ``tokenise_new`` makes those that are not in the cache.

        ``settings`` is everything besides the text that decides a row.
        """
        keys = [_key(settings, example) for example in examples]
        known = {key: self._rows.get(key) for key in keys}  # other threads may remove some
        new = {
            key: example for key, example in zip(keys, examples, strict=True) if known[key] is None
        }
        added = dict(zip(new, tokenise_new(list(new.values())), strict=True)) if new else {}
        self._rows |= added
        for key in list(self._rows)[: max(0, len(self._rows) - MAX_ROWS)]:
            self._rows.pop(key, None)
        found = known | added
        return [row for key in keys if (row := found[key]) is not None]


def _key(settings: Hashable, example: Example) -> Hashable:
    """The key of a row. It has hashes of both texts, so a long text takes no more memory."""
    pair = None if example.pair is None else uid_of(example.pair)
    return settings, uid_of(example.text), pair


@dataclass(frozen=True, slots=True)
class Frame:
    """The special tokens that a tokenizer puts around one text or two, and the longest row."""

    first: tuple[int, ...]
    between: tuple[int, ...]
    last: tuple[int, ...]
    typed: bool
    """The second text of a pair has its own segment id."""
    room: int
    """The largest number of tokens in a row, with special tokens, without placeholders."""


def frame(tokenizer: Any, *, room: int, types: int) -> Frame:
    """The frame of a tokenizer, found by tokenising a pair of one-letter texts."""
    pair = tokenizer("a", "a", return_special_tokens_mask=True, return_token_type_ids=True)
    marked = zip(pair["input_ids"], pair["special_tokens_mask"], strict=True)
    runs = [tuple(i for i, _ in run) for special, run in groupby(marked, lambda m: m[1]) if special]
    if len(runs) != 3 or tokenizer.pad_token_id is None:
        raise ModelError(
            "the tokenizer frames a pair of texts with "
            f"{len(runs)} runs of special tokens and pads with {tokenizer.pad_token}; "
            "expected 3 and a token",
            "use the tokenizer the encoder was trained with, as its authors published it",
        )
    first, between, last = runs
    typed = types > 1 and 1 in pair["token_type_ids"]
    return Frame(first, between, last, typed, room)


def plain(examples: Sequence[Example], tokenizer: Any, frame: Frame) -> list[Row]:
    """Rows for a head: the text, or both texts of a pair, cut to the frame's room."""
    texts, _ = tokenise([example.text for example in examples], tokenizer)
    if not any(example.pair is not None for example in examples):
        return [_single(ids, frame) for ids in texts]
    pairs, _ = tokenise([example.pair or "" for example in examples], tokenizer)
    return [_pair(a, b, frame) for a, b in zip(texts, pairs, strict=True)]


def prompted(
    template: Template, examples: Sequence[Example], tokenizer: Any, frame: Frame
) -> list[Row]:
    """Rows for a prompt: the filled template, with the place of its mask."""
    room = frame.room - len(frame.first) - len(frame.last)
    return [
        Row(
            (*frame.first, *filled.ids, *frame.last),
            mask_at=len(frame.first) + filled.mask_at,
            cut=filled.cut,
        )
        for filled in fill(template, examples, tokenizer, room)
    ]


def with_placeholders(row: Row, count: int) -> Row:
    """The row with ``count`` tokens after its first, whose embeddings a tuning overwrites.

    They repeat the first token, so they are never mistaken for padding. They stand behind it,
    so the pooled position 0 stays the same.
    """
    ids = (row.ids[0],) * (count + 1) + row.ids[1:]
    types = None if row.types is None else (row.types[0],) * count + row.types
    mask_at = row.mask_at + count if row.mask_at >= 0 else row.mask_at
    return Row(ids, types, mask_at, row.cut)


def _single(ids: list[int], frame: Frame) -> Row:
    room = frame.room - len(frame.first) - len(frame.last)
    return Row((*frame.first, *ids[:room], *frame.last), cut=max(0, len(ids) - room))


def _pair(a: list[int], b: list[int], frame: Frame) -> Row:
    room = frame.room - len(frame.first) - len(frame.between) - len(frame.last)
    keep_a, keep_b = shorten([len(a), len(b)], room)
    opening = (*frame.first, *a[:keep_a], *frame.between)
    closing = (*b[:keep_b], *frame.last)
    types = (0,) * len(opening) + (1,) * len(closing) if frame.typed else None
    return Row(opening + closing, types, cut=len(a) + len(b) - keep_a - keep_b)
