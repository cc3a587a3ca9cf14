"""Which column holds the text, its pair, the label and the id, and what one cell may hold.

A column is taken by the name the user gave, else by the usual names, in the order listed here;
nothing else is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selftrain.data.files import Records, Row, missing
from selftrain.errors import DataError, closest, listing

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


def text_columns(found: Records, text: str | None, pair: str | None) -> tuple[str, str | None]:
    """The column of the text and that of its pair; there is a pair only if named or usual."""
    second = None if pair is None else _named(found, pair, "--pair")
    if text is not None:
        return _named(found, text, "--text"), second
    for names in PAIR_NAMES:
        a, b = (_usual(found, [name]) for name in names)
        if a is not None and b is not None and second in (None, b):
            return a, b
    usual = _usual(found, TEXT_NAMES)
    if usual is None:
        raise _unfound(found, "text", TEXT_NAMES)
    return usual, second


def label_column(found: Records, label: str | None) -> str:
    """The column of the label, which labelled data must have."""
    if label is not None:
        return _named(found, label, "--label")
    usual = _usual(found, LABEL_NAMES)
    if usual is None:
        raise _unfound(found, "label", LABEL_NAMES)
    return usual


def stray_label_column(found: Records, label: str | None) -> str | None:
    """A label column where none is wanted: in a pool."""
    return _usual(found, LABEL_NAMES if label is None else [label])


def id_column(found: Records, id: str | None) -> str | None:
    """The column of the id, if one is named or usual."""
    return _usual(found, ID_NAMES) if id is None else _named(found, id, "--id")


def _usual(found: Records, names: Iterable[str]) -> str | None:
    by_fold = {column.casefold(): column for column in reversed(found.columns)}
    return next((by_fold[name.casefold()] for name in names if name.casefold() in by_fold), None)


def _named(found: Records, wanted: str, flag: str) -> str:
    if wanted in found.columns:
        return wanted
    near = closest(wanted, found.columns)
    raise DataError(
        f"{found.name} has no column `{wanted}`; it has {listing(found.columns)}",
        f"did you mean {flag} {near}?" if near else f"name one of these: {flag} COLUMN",
    )


def _unfound(found: Records, role: str, names: Sequence[str]) -> DataError:
    alone = "".join(found.columns) if len(found.columns) == 1 else ""
    if "\t" in alone:
        hint = "its fields are separated by tabs: give the file a name ending in .tsv"
    elif ";" in alone:
        hint = "its fields are separated by `;`: save it with commas, or as .tsv with tabs"
    else:
        hint = f"name the column: --{role} COLUMN (the first line of a file names its columns)"
    return DataError(
        f"{found.name} has no {role} column (one of {', '.join(names)}); "
        f"it has {listing(found.columns) or 'none'}",
        hint,
    )


# ── what a cell may hold ──


def text_cell(rows: Records, number: int, row: Row, column: str) -> str:
    """The text in a cell; an empty one is an empty text."""
    value = _cell(rows, number, row, column)
    if missing(value):
        return ""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise rows.error(
            number, f"`{column}` holds {value!r:.40} ({kind}); expected text", "--text COLUMN"
        )
    return _whole(rows, number, column, value)


def label_cell(rows: Records, number: int, row: Row, column: str) -> str:
    """The label in a cell, as a string; none at all is an error."""
    value = _cell(rows, number, row, column)
    if isinstance(value, list | dict):
        raise rows.error(number, f"the label is {value!r:.40}; expected one name", "--label COLUMN")
    label = name_of(value)
    if label in ("", "nan", "NaN"):
        raise rows.error(
            number,
            "the label is NaN" if label else "the label is empty",
            "delete the row, or move it to the unlabelled file",
        )
    return _whole(rows, number, column, label)


def id_cell(rows: Records, number: int, row: Row, column: str) -> str:
    """The id in a cell, as a string; none at all is an empty one."""
    return _whole(rows, number, column, name_of(row.get(column)))


def name_of(value: object) -> str:
    """A label or an id as a string: 1.0, which tables make of 1 beside a gap, is 1 again."""
    if missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _cell(rows: Records, number: int, row: Row, column: str) -> object:
    if column not in row:
        hint = f'every row has the same columns: write {{"{column}": …}}'
        raise rows.error(number, f"no `{column}`; it has {listing(list(row))}", hint)
    return row[column]


def _whole(rows: Records, number: int, column: str, value: str) -> str:
    """The string itself, plain where numpy gave its own kind."""
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can spell half a character, which no tokenizer takes
        raise rows.error(
            number, f"`{column}` holds half a character: {value!a:.40}", "delete the row"
        ) from None
    return str(value)
