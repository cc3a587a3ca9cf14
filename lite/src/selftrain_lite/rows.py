"""How a text becomes a row of token ids: the same rows as selftrain makes.

The rule, in selftrain's ``model/tokens.py`` and ``model/prompt.py``: a row that is too long loses
tokens at the end of its longest text, special tokens and words of a template are never cut, and a
special token that a user types is ordinary text. Tests compare both, row for row.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from selftrain_lite.errors import LiteError

PUNCTUATION = ".,;:!?…"
CHARACTERS, SPARE = 16, 128
"""Of a long text its start is tokenised: so many characters for each token of a row and for the
spare ones, which are more than a word that is cut in the middle can change."""
TEMPLATE_WORDS = -1  # in place of a field's number, for a token of the template

Text = tuple[str, str | None]
"""A text and, in a pair, the second one."""


@dataclass(frozen=True, slots=True)
class Row:
    """One text as input of the graph."""

    ids: tuple[int, ...]
    types: tuple[int, ...] | None = None
    """Segment ids, where the graph reads them."""


class Piece(NamedTuple):
    """A part of a template: words, or a field."""

    text: str
    field: bool = False
    bare: bool = False
    """The template has punctuation behind this field, so the field loses its last."""
    lower: bool = False
    """The field continues a sentence of the template, so it starts in lower case."""


class Template(NamedTuple):
    """A template cut at its mask."""

    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """All that decides a row besides the text and the tokenizer."""

    first: tuple[int, ...]
    """Special tokens before a text."""
    between: tuple[int, ...]
    """Those between the texts of a pair."""
    last: tuple[int, ...]
    typed: bool
    """Whether the second text of a pair has another segment id."""
    room: int
    """The largest number of tokens in a row, special tokens included."""
    special: frozenset[int]
    """Ids that stand in no text: they become ``unknown``."""
    unknown: int
    mask: int | None
    template: Template | None
    """None for a head, which reads plain texts."""


class RowMaker:
    """Token rows of texts, by a tokenizer and a rule."""

    def __init__(self, tokenizer: Any, rule: Rule) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # "[MASK]" in a text is split like any word
        self._tokenizer = tokenizer
        self.rule = rule

    def rows(self, texts: Sequence[Text], *, pair: bool) -> list[Row]:
        """One row for each text, in order."""
        texts = [(self._start(a), None if b is None else self._start(b)) for a, b in texts]
        if self.rule.template is not None:
            return self._prompted(self.rule.template, texts)
        first = [ids for ids, _ in self._tokenise([text for text, _ in texts])]
        if not pair:
            return [self._single(ids) for ids in first]
        second = [ids for ids, _ in self._tokenise([other or "" for _, other in texts])]
        return [self._pair(a, b) for a, b in zip(first, second, strict=True)]

    def _start(self, text: str) -> str:
        """As much of a text as fills a row: nobody waits for the tokens of a whole book."""
        tokens = self.rule.room + SPARE
        length = CHARACTERS * tokens
        while length < len(text):
            words = text[:length].rsplit(None, 1)
            start = words[0] if len(words) == 2 else text[:length]
            if len(self._tokenizer.encode(start, add_special_tokens=False)) >= tokens:
                return start
            length *= 4
        return text

    def _tokenise(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Token ids of each text, and where each token stands in it."""
        special, unknown = self.rule.special, self.rule.unknown
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            ([unknown if i in special else i for i in each.ids], each.offsets) for each in found
        ]

    def _single(self, ids: list[int]) -> Row:
        rule = self.rule
        room = rule.room - len(rule.first) - len(rule.last)
        return Row((*rule.first, *ids[:room], *rule.last))

    def _pair(self, a: list[int], b: list[int]) -> Row:
        rule = self.rule
        room = rule.room - len(rule.first) - len(rule.between) - len(rule.last)
        keep_a, keep_b = shorten([len(a), len(b)], room)
        opening = (*rule.first, *a[:keep_a], *rule.between)
        closing = (*b[:keep_b], *rule.last)
        types = (0,) * len(opening) + (1,) * len(closing) if rule.typed else None
        return Row(opening + closing, types)

    def _prompted(self, template: Template, texts: Sequence[Text]) -> list[Row]:
        # The blank before a mask is part of the mask; alone it would become one more token.
        left = self._rendered(template.before, texts, strip=True)
        right = self._rendered(template.after, texts)
        fields = sum(piece.field for piece in template.before)
        return [self._joined(a, b, fields) for a, b in zip(left, right, strict=True)]

    def _rendered(
        self, pieces: Sequence[Piece], texts: Sequence[Text], *, strip: bool = False
    ) -> list[_Tokens]:
        filled = [_render(pieces, text, strip=strip) for text in texts]
        tokens = self._tokenise([each.text for each in filled])
        return [
            _Tokens(ids, [_owner(end - 1, each.fields) for _, end in offsets])
            for (ids, offsets), each in zip(tokens, filled, strict=True)
        ]

    def _joined(self, left: _Tokens, right: _Tokens, fields: int) -> Row:
        """Both sides around the mask, with the fields shortened until everything fits."""
        rule = self.rule
        assert rule.mask is not None
        room = rule.room - len(rule.first) - len(rule.last)
        shifted = [owner if owner == TEMPLATE_WORDS else owner + fields for owner in right.owners]
        ids = [*left.ids, rule.mask, *right.ids]
        owners = [*left.owners, TEMPLATE_WORDS, *shifted]
        lengths = [owners.count(field) for field in range(max(owners) + 1)]
        spare = room - owners.count(TEMPLATE_WORDS)
        if spare < 1:
            raise LiteError(
                f"the template alone is {room - spare} tokens; a row has room for {room}",
                "export the model again: its selftrain.json was changed",
            )
        places = _places_left(owners, shorten(lengths, spare))
        return Row((*rule.first, *(ids[place] for place in places), *rule.last))


class _Text(NamedTuple):
    text: str
    fields: list[range]
    """The place of each field in the text."""


class _Tokens(NamedTuple):
    ids: list[int]
    owners: list[int]
    """For each token the number of its field."""


def parse(template: str, *, pair: bool) -> Template:
    """Read a template: one ``{mask}``, and ``{text}``, or ``{a}`` and ``{b}`` for a pair.

    >>> parse("{text} It was {mask} .", pair=False).after
    (Piece(text=' .', field=False, bare=False, lower=False),)
    """
    wanted = ("a", "b", "mask") if pair else ("text", "mask")
    parts = [(words, name) for words, name, *_ in string.Formatter().parse(template)]
    if sorted(name for _, name in parts if name is not None) != sorted(wanted):
        raise ValueError(f"the template has other fields than {', '.join(wanted)}")
    pieces: list[Piece] = []
    for number, (words, name) in enumerate(parts):
        behind = parts[number + 1][0].lstrip() if number + 1 < len(parts) else ""
        if words:
            pieces.append(Piece(words))
        if name == "mask":
            pieces.append(Piece(name, field=True))
        elif name is not None:
            bare = behind.startswith(tuple(PUNCTUATION))
            lower = name == "b" and words.rstrip().endswith(",")
            pieces.append(Piece(name, field=True, bare=bare, lower=lower))
    at = pieces.index(Piece("mask", field=True))
    return Template(tuple(pieces[:at]), tuple(pieces[at + 1 :]))


def shorten(lengths: Sequence[int], room: int) -> list[int]:
    """How many tokens remain of one or two texts in ``room``: the longest is cut first.

    >>> shorten([10, 3], 9), shorten([10, 9], 9), shorten([4], 9)
    ([6, 3], [5, 4], [4])
    """
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    first, second = lengths
    half = room // 2
    if second <= half:
        return [room - second, second]
    if first <= room - half:
        return [first, room - first]
    return [room - half, half]


def _render(pieces: Sequence[Piece], text: Text, *, strip: bool) -> _Text:
    filled, fields = "", []
    for piece in pieces:
        words = _field(piece, text) if piece.field else piece.text
        if piece.field:
            fields.append(range(len(filled), len(filled) + len(words)))
        filled += words
    return _Text(filled.rstrip() if strip else filled, fields)


def _field(piece: Piece, text: Text) -> str:
    words = (text[1] or "") if piece.text == "b" else text[0]
    if piece.bare:
        words = words.rstrip(PUNCTUATION + string.whitespace)
    if piece.lower:
        words = words[:1].lower() + words[1:]
    return words


def _owner(at: int, fields: Sequence[range]) -> int:
    # The last character decides: some tokenizers count the blank before a word as its first.
    return next((n for n, field in enumerate(fields) if at in field), TEMPLATE_WORDS)


def _places_left(owners: Sequence[int], room: Sequence[int]) -> list[int]:
    """Places of the template's tokens, and of the first ``room[f]`` tokens of each field f."""
    used: Counter[int] = Counter()
    places = []
    for place, owner in enumerate(owners):
        used[owner] += 1
        if owner == TEMPLATE_WORDS or used[owner] <= room[owner]:
            places.append(place)
    return places
