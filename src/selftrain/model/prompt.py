"""Prompts: fill a template, cut long texts by tokens, find the mask, check the label words.

The mask is found by its place in the template, never by its name, so a text that contains
``[MASK]`` or ``</s>`` is ordinary text.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from selftrain.data.rows import Example
from selftrain.data.task import Task
from selftrain.errors import ConfigError

HEAD_METHOD = "use a head method: --method upet-head-adapter"
WORD_HINT = f"choose one common word per class: --word LABEL=WORD, or {HEAD_METHOD}"
PUNCTUATION = ".,;:!?…"
TEMPLATE_WORDS = -1  # in place of a field's number, for a token of the template


class Tokenizing(Protocol):
    """What a prompt needs of a backbone: its name, for errors, and its tokenizer."""

    @property
    def name(self) -> str:
        """The name that the user gave."""

    @property
    def tokenizer(self) -> Any:
        """A fast tokenizer of transformers."""


class Piece(NamedTuple):
    """A part of a template: literal text, or a field of the example."""

    text: str
    field: bool = False
    bare: bool = False
    """The template has punctuation behind this field, so the field loses its own."""
    lower: bool = False
    """The field continues a sentence of the template, so it starts in lower case."""


class Template(NamedTuple):
    """A template cut at its mask."""

    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


class Filled(NamedTuple):
    """A filled template as token ids, without the special tokens around it."""

    ids: list[int]
    mask_at: int
    cut: int
    """Tokens of the example that did not fit."""


def parse(template: str, *, pair: bool) -> Template:
    """Read a template: one ``{mask}``, and ``{text}``, or ``{a}`` and ``{b}`` for a pair.

    >>> parse("{text} It was {mask} .", pair=False).after
    (Piece(text=' .', field=False, bare=False, lower=False),)
    """
    wanted = ("a", "b", "mask") if pair else ("text", "mask")
    hint = f'write each of {", ".join(wanted)} once in braces: --template "{_example(pair)}"'
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(f"template `{template}` cannot be read: {error}", hint) from None
    for _, name, *formatting in parts:
        if any(formatting):
            raise ConfigError(f"template `{template}` has more in {{{name}}} than a name", hint)
    names = Counter(name for _, name, _, _ in parts if name is not None)
    for name in (*wanted, *names):
        if names[name] != (name in wanted):
            raise ConfigError(
                f"template `{template}` has {names[name]} {{{name}}}; expected {name in wanted:d}",
                hint,
            )
    pieces = _pieces([(words, name) for words, name, _, _ in parts])
    at = pieces.index(Piece("mask", field=True))
    return Template(tuple(pieces[:at]), tuple(pieces[at + 1 :]))


def template_of(task: Task) -> Template:
    """The template of a task, parsed; an error if it has none."""
    if task.template is None:
        raise ConfigError(
            f"task `{task.name}` has no template; prompts need one",
            f'write one: --template "{_example(task.pair)}", or {HEAD_METHOD}',
        )
    return parse(task.template, pair=task.pair)


def _example(pair: bool) -> str:
    return "{a} ? {mask} , {b}" if pair else "{text} It was {mask} ."


def _pieces(parts: Sequence[tuple[str, str | None]]) -> list[Piece]:
    pieces = []
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
    return pieces


def fill(
    template: Template, examples: Sequence[Example], tokenizer: Any, room: int
) -> list[Filled]:
    """Fill a template with each example, in at most ``room`` tokens, the mask included.

    A row that is too long loses tokens at the end of its longest text; the words of the template
    and the mask are never cut.
    """
    # The blank before a mask is part of the mask; alone it would become one more token.
    before = [_render(template.before, example, strip=True) for example in examples]
    after = [_render(template.after, example) for example in examples]
    rows = zip(_tokenise(before, tokenizer), _tokenise(after, tokenizer), strict=True)
    fields = sum(piece.field for piece in template.before)
    return [_join(left, right, fields, tokenizer.mask_token_id, room) for left, right in rows]


class _Text(NamedTuple):
    text: str
    fields: list[range]
    """The place of each field in the text."""


class _Tokens(NamedTuple):
    ids: list[int]
    owners: list[int]
    """For each token the number of its field."""


def _render(pieces: Sequence[Piece], example: Example, *, strip: bool = False) -> _Text:
    text, fields = "", []
    for piece in pieces:
        words = _field(piece, example) if piece.field else piece.text
        if piece.field:
            fields.append(range(len(text), len(text) + len(words)))
        text += words
    return _Text(text.rstrip() if strip else text, fields)


def _field(piece: Piece, example: Example) -> str:
    words = (example.pair or "") if piece.text == "b" else example.text
    if piece.bare:
        words = words.rstrip(PUNCTUATION + string.whitespace)
    if piece.lower:
        words = words[:1].lower() + words[1:]
    return words


def tokenise(texts: Sequence[str], tokenizer: Any) -> tuple[list[list[int]], list[Any]]:
    """Token ids of plain texts, without a frame, and where each token stands in its text.

    A "[MASK]" in a user's text is split like any word. SentencePiece models still recognise their
    special tokens: there it becomes an unknown word.
    """
    encoded = tokenizer(
        list(texts),
        add_special_tokens=False,
        split_special_tokens=True,
        return_offsets_mapping=True,
        verbose=False,
    )
    special, unknown = set(tokenizer.all_special_ids), tokenizer.unk_token_id
    ids = [[unknown if i in special else i for i in row] for row in encoded["input_ids"]]
    return ids, encoded["offset_mapping"]


def _tokenise(texts: Sequence[_Text], tokenizer: Any) -> list[_Tokens]:
    rows, offsets = tokenise([text.text for text in texts], tokenizer)
    return [
        _Tokens(ids, [_owner(end - 1, text.fields) for _, end in where])
        for ids, where, text in zip(rows, offsets, texts, strict=True)
    ]


def _owner(at: int, fields: Sequence[range]) -> int:
    # The last character decides: some tokenizers count the blank before a word as its first.
    return next((n for n, field in enumerate(fields) if at in field), TEMPLATE_WORDS)


def _join(left: _Tokens, right: _Tokens, fields: int, mask: int, room: int) -> Filled:
    """Both sides around the mask, with the fields shortened until everything fits."""
    shifted = [owner if owner == TEMPLATE_WORDS else owner + fields for owner in right.owners]
    ids = [*left.ids, mask, *right.ids]
    owners = [*left.owners, TEMPLATE_WORDS, *shifted]
    lengths = [owners.count(field) for field in range(max(owners) + 1)]
    spare = room - owners.count(TEMPLATE_WORDS)
    if spare < 1:
        raise ConfigError(
            f"the template alone is {room - spare} tokens; max_length leaves room for {room}",
            "raise max_length, or write a shorter template",
        )
    places = _places_left(owners, shorten(lengths, spare))
    return Filled(
        [ids[place] for place in places], places.index(len(left.ids)), len(ids) - len(places)
    )


def _places_left(owners: Sequence[int], room: Sequence[int]) -> list[int]:
    """Places of the template's tokens, and of the first ``room[f]`` tokens of each field f."""
    used: Counter[int] = Counter()
    places = []
    for place, owner in enumerate(owners):
        used[owner] += 1
        if owner == TEMPLATE_WORDS or used[owner] <= room[owner]:
            places.append(place)
    return places


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


@dataclass(frozen=True, slots=True)
class Word:
    """A label word and its tokens."""

    label: str
    word: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    problem: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it is one known token that no other class has."""
        return self.problem is None


def check(task: Task, backbone: Tokenizing) -> list[Word]:
    """Every label word with its tokens, and its problem if it has one.

    Ids are those of a word in the middle of a sentence: with a blank before it, which BPE and
    SentencePiece make part of the token. A template that starts with its mask uses the same ids,
    because models saw this form of a word far more often.
    """
    template_of(task)
    for label in task.labels:
        if not task.words.get(label):
            raise ConfigError(f"class `{label}` has no label word; prompts need 1", WORD_HINT)
    for label in task.words:
        if label not in task.labels:
            expected = ", ".join(f"`{name}`" for name in task.labels)
            raise ConfigError(
                f"a label word is given for `{label}`, which is no class; expected {expected}",
                WORD_HINT,
            )
    rows: list[Word] = []
    for label in task.labels:
        for word in task.words[label]:
            ((ids,), _) = tokenise([f" {word.strip()}"], backbone.tokenizer)
            pieces = backbone.tokenizer.convert_ids_to_tokens(ids)
            row = Word(label, word, tuple(ids), tuple(pieces))
            rows.append(replace(row, problem=_problem(row, rows, backbone)))
    return rows


def _problem(row: Word, before: Sequence[Word], backbone: Tokenizing) -> str | None:
    subject = f"label word `{row.word}` of class `{row.label}`"
    if not row.ids or backbone.tokenizer.unk_token_id in row.ids:
        return f"{subject} is unknown to `{backbone.name}`; prompts need a known word"
    if len(row.ids) > 1:
        return f"{subject} is {len(row.ids)} tokens for `{backbone.name}`; prompts need 1"
    for other in before:
        if other.ids == row.ids:
            return (
                f"{subject} is the same token as `{other.word}` of class `{other.label}` "
                f"for `{backbone.name}`; each word must be another token"
            )
    return None


def word_ids(task: Task, backbone: Tokenizing) -> tuple[tuple[int, ...], ...]:
    """The token ids of the label words, class by class; raises the first problem."""
    rows = check(task, backbone)
    for row in rows:
        if row.problem is not None:
            raise ConfigError(row.problem, WORD_HINT)
    return tuple(tuple(row.ids[0] for row in rows if row.label == label) for label in task.labels)
