"""Templates and label words: filling one, cutting long text by tokens, finding the mask.

The mask is known by its place in the template, never by its name, so a text that happens to
contain ``[MASK]`` or ``</s>`` is ordinary text.
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
TEMPLATE_WORDS = -1  # the owner of a token that belongs to no field


class Reader(Protocol):
    """What a prompt needs of a backbone: its name, for errors, and its tokenizer."""

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def tokenizer(self) -> Any:
        """A fast tokenizer of transformers."""


class Piece(NamedTuple):
    """A stretch of a template: its own words, or a field of the example."""

    text: str
    field: bool = False
    bare: bool = False
    """The template brings the punctuation behind this field, so the field's own is dropped."""
    lower: bool = False
    """The field goes on a sentence the template began, so it starts in lower case."""


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
    for _, name, *rest in parts:
        if any(rest):
            raise ConfigError(f"template `{template}` says more of {{{name}}} than its name", hint)
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
    """The task's template, read; a prompt cannot do without."""
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

    What is too long loses tokens from the end of its longest text; the template's words and
    the mask are never cut.
    """
    # A mask swallows the blank before it; left standing it would be a token of its own.
    before = [_render(template.before, example, strip=True) for example in examples]
    after = [_render(template.after, example) for example in examples]
    rows = zip(_tokenise(before, tokenizer), _tokenise(after, tokenizer), strict=True)
    fields = sum(piece.field for piece in template.before)
    return [_join(left, right, fields, tokenizer.mask_token_id, room) for left, right in rows]


class _Text(NamedTuple):
    text: str
    fields: list[range]
    """Where each field stands in the text."""


class _Tokens(NamedTuple):
    ids: list[int]
    owners: list[int]
    """For each token the number of the field it came from."""


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

    A "[MASK]" in a user's text is split like any word. SentencePiece models hold their special
    tokens as whole pieces and find them all the same: there it is an unknown word.
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
    places = _kept(owners, shorten(lengths, spare))
    return Filled(
        [ids[place] for place in places], places.index(len(left.ids)), len(ids) - len(places)
    )


def _kept(owners: Sequence[int], room: Sequence[int]) -> list[int]:
    """Places of the template's tokens, and of the first ``room[f]`` tokens of each field f."""
    used: Counter[int] = Counter()
    places = []
    for place, owner in enumerate(owners):
        used[owner] += 1
        if owner == TEMPLATE_WORDS or used[owner] <= room[owner]:
            places.append(place)
    return places


def shorten(lengths: Sequence[int], room: int) -> list[int]:
    """How many tokens each of one or two texts keeps in ``room``: the longest gives first.

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
    """What a tokenizer makes of one label word."""

    label: str
    word: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    problem: str | None = None

    @property
    def ok(self) -> bool:
        """One known token that no other class has."""
        return self.problem is None


def check(task: Task, backbone: Reader) -> list[Word]:
    """Every label word with its tokens, and what is wrong with it.

    Ids are those of the middle of a sentence: with a blank before the word, which BPE and
    SentencePiece make part of the token. A template that starts with its mask keeps that form,
    because it is the one those models saw far more often.
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


def _problem(row: Word, before: Sequence[Word], backbone: Reader) -> str | None:
    what = f"label word `{row.word}` of class `{row.label}`"
    if not row.ids or backbone.tokenizer.unk_token_id in row.ids:
        return f"{what} is unknown to `{backbone.name}`; prompts need a known word"
    if len(row.ids) > 1:
        return f"{what} is {len(row.ids)} tokens for `{backbone.name}`; prompts need 1"
    for other in before:
        if other.ids == row.ids:
            return (
                f"{what} is the same token as `{other.word}` of class `{other.label}` "
                f"for `{backbone.name}`; each word must be its own"
            )
    return None


def word_ids(task: Task, backbone: Reader) -> tuple[tuple[int, ...], ...]:
    """The token ids of every class's label words, in the task's order; or the first problem."""
    rows = check(task, backbone)
    for row in rows:
        if row.problem is not None:
            raise ConfigError(row.problem, WORD_HINT)
    return tuple(tuple(row.ids[0] for row in rows if row.label == label) for label in task.labels)
