"""Find the columns of text, pair, label and id, and check what a cell holds.

A column is found by the name the user gave, else by the usual names in the order below. Nothing
else is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selftrain.data.files import Records, Row
from selftrain.data.rows import missing
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


# ── columns ──────────────────────────────────────────────────────────────────────────────────


def text_columns(records: Records, text: str | None, pair: str | None) -> tuple[str, str | None]:
    """The column of the text and that of its pair, which is None without a given or usual name."""
    second = None if pair is None else _by_given_name(records, pair, "--pair")
    if text is not None:
        return _by_given_name(records, text, "--text"), second
    for names in PAIR_NAMES:
        a, b = (_by_usual_name(records, [name]) for name in names)
        if a is not None and b is not None and second in (None, b):
            return a, b
    column = _by_usual_name(records, TEXT_NAMES)
    if column is None:
        raise _no_column(records, "text", TEXT_NAMES)
    return column, second


def label_column(records: Records, label: str | None) -> str:
    """The column of the label; labelled data must have one."""
    if label is not None:
        return _by_given_name(records, label, "--label")
    column = _by_usual_name(records, LABEL_NAMES)
    if column is None:
        raise _no_column(records, "label", LABEL_NAMES)
    return column


def stray_label_column(records: Records, label: str | None) -> str | None:
    """A label column in a pool, where it is ignored."""
    return _by_usual_name(records, LABEL_NAMES if label is None else [label])


def id_column(records: Records, id: str | None) -> str | None:
    """The column of the id, if one has a given or usual name."""
    return _by_usual_name(records, ID_NAMES) if id is None else _by_given_name(records, id, "--id")


def _by_usual_name(records: Records, names: Iterable[str]) -> str | None:
    by_fold = {column.casefold(): column for column in reversed(records.columns)}
    return next((by_fold[name.casefold()] for name in names if name.casefold() in by_fold), None)


def _by_given_name(records: Records, wanted: str, flag: str) -> str:
    if wanted in records.columns:
        return wanted
    near = closest(wanted, records.columns)
    raise DataError(
        f"{records.name} has no column `{wanted}`; it has {listing(records.columns)}",
        f"did you mean {flag} {near}?" if near else f"name one of these: {flag} COLUMN",
    )


def _no_column(records: Records, role: str, names: Sequence[str]) -> DataError:
    only_column = "".join(records.columns) if len(records.columns) == 1 else ""
    if "\t" in only_column:
        hint = "its fields are separated by tabs: give the file a name ending in .tsv"
    elif ";" in only_column:
        hint = "its fields are separated by `;`: save it with commas, or as .tsv with tabs"
    else:
        hint = f"name the column: --{role} COLUMN (the first line of a file names its columns)"
    return DataError(
        f"{records.name} has no {role} column (one of {', '.join(names)}); "
        f"it has {listing(records.columns) or 'none'}",
        hint,
    )


# ── cells ────────────────────────────────────────────────────────────────────────────────────


def text_cell(records: Records, number: int, row: Row, column: str) -> str:
    """The text in a cell; an empty cell is an empty text."""
    value = _cell(records, number, row, column)
    if missing(value):
        return ""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise records.error(
            number, f"`{column}` holds {value!r:.40} ({kind}); expected text", "--text COLUMN"
        )
    return _valid_text(records, number, column, value)


def label_cell(records: Records, number: int, row: Row, column: str) -> str:
    """The label in a cell, as a string; an empty cell is an error."""
    value = _cell(records, number, row, column)
    if isinstance(value, list | dict):
        raise records.error(
            number, f"the label is {value!r:.40}; expected one name", "--label COLUMN"
        )
    label = name_of(value)
    if label in ("", "nan", "NaN"):
        raise records.error(
            number,
            "the label is NaN" if label else "the label is empty",
            "delete the row, or move it to the unlabelled file",
        )
    return _valid_text(records, number, column, label)


def id_cell(records: Records, number: int, row: Row, column: str) -> str:
    """The id in a cell, as a string; an empty cell is an empty string."""
    return _valid_text(records, number, column, name_of(row.get(column)))


def name_of(value: object) -> str:
    """A label or an id as a string; 1.0, which pandas makes of 1 beside a gap, is 1 again.

    >>> name_of(1.0), name_of(" Sci/Tech "), name_of(None)
    ('1', 'Sci/Tech', '')
    """
    if missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _cell(records: Records, number: int, row: Row, column: str) -> object:
    if column not in row:
        hint = f'every row has the same columns: write {{"{column}": …}}'
        raise records.error(number, f"no `{column}`; it has {listing(list(row))}", hint)
    return row[column]


def _valid_text(records: Records, number: int, column: str, value: str) -> str:
    """The text as a plain string, also where numpy has another type of string."""
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can hold half a character, which no tokenizer reads
        raise records.error(
            number, f"`{column}` holds half a character: {value!a:.40}", "delete the row"
        ) from None
    return str(value)
