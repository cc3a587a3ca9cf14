"""Find the columns of text, pair, label and id, and check what a cell holds.

A column is found by the name the user gave, else by the usual names in the order below. Nothing
else is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal

from selftrain.data.delimited import Row
from selftrain.data.files import Records
from selftrain.data.names import ID_NAMES, LABEL_NAMES, PAIR_NAMES, TEXT_NAMES
from selftrain.data.rows import missing
from selftrain.errors import DataError, closest, listing

# ── columns ──────────────────────────────────────────────────────────────────────────────────


def text_columns(
    records: Records, text: str | None, pair: str | None, flag: str = "--text"
) -> tuple[str, str | None]:
    """The column of the text and that of its pair, which is None without a given or usual name."""
    second = None if pair is None else _by_given_name(records, pair, "--pair")
    if text is not None:
        return _by_given_name(records, text, flag), second
    for names in PAIR_NAMES:
        a, b = (_by_usual_name(records, [name]) for name in names)
        if a is not None and b is not None and second in (None, b):
            return a, b
    column = _by_usual_name(records, TEXT_NAMES)
    if column is None:
        raise _no_column(records, "text", TEXT_NAMES, flag)
    return column, second


def label_column(records: Records, label: str | None) -> str:
    """The column of the label; labelled data must have one."""
    if label is not None:
        return _by_given_name(records, label, "--label")
    column = _by_usual_name(records, LABEL_NAMES)
    if column is None:
        raise _no_column(records, "label", LABEL_NAMES, "--label")
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


def _no_column(records: Records, role: str, names: Sequence[str], flag: str) -> DataError:
    hint = f"name the column: {flag} COLUMN (the first line of a file names its columns)"
    return DataError(
        f"{records.name} has no {role} column (one of {', '.join(names)}); "
        f"it has {listing(records.columns) or 'none'}",
        hint,
    )


# ── cells ────────────────────────────────────────────────────────────────────────────────────


def text_cell(records: Records, number: int, row: Row, column: str) -> str:
    """The text in a cell; an empty cell is an empty text."""
    return text_of(records, number, column, _cell(records, number, row, column))


def text_of(records: Records, number: int, column: str, value: object) -> str:
    """The text that a cell holds."""
    if missing(value):
        return ""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise records.error(
            number, f"`{column}` holds {value!r:.40} ({kind}); expected text", "--text COLUMN"
        )
    return _valid_text(records, number, column, value)


EMPTY = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None", "NaN", "nan"})
"""Words that programs write for "no label"; ``none``, which people write, is a class."""
INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u180e\u200b\u200e\u200f\u2060\ufeff"))
"""Characters without width and meaning. Joiners (U+200C, U+200D) have one inside a word."""
LONGEST_LABEL = 1_000  # characters


def label_cell(
    records: Records, number: int, row: Row, column: str, *, keep_na: bool = False
) -> str:
    """The label in a cell, cleaned; an empty cell is an error, as is ``NA`` unless it is kept."""
    value = _cell(records, number, row, column)
    if isinstance(value, list | dict):
        raise records.error(
            number, f"the label is {value!r:.40}; expected one name", "--label COLUMN"
        )
    label = clean_label(_valid_text(records, number, column, name_of(value)))
    if not label:
        hint = "delete the row, or move it to the unlabelled file"
        raise records.error(number, "the label is empty", hint)
    if label in EMPTY and not keep_na:
        hint = "delete the row, or move it to the unlabelled file; for a class: --keep-na"
        raise records.error(number, f"the label is {label}, which stands for none", hint)
    if len(label) > LONGEST_LABEL:
        problem = f"the label has {len(label):,} characters: {label[:30]!r}…; expected a name"
        raise records.error(number, problem, "name the right column: --label COLUMN")
    return label


def clean_label(label: str) -> str:
    """A label as it is stored: accents composed, no invisible characters, no blanks around it.

    >>> clean_label(" cafe\u0301\u200b ") == "caf\xe9"
    True
    """
    plain = unicodedata.normalize("NFC", label.translate(INVISIBLE))
    return re.sub(r"^[\s\u200c\u200d]+|[\s\u200c\u200d]+$", "", plain)


EXACT = "write both the same way, or keep them as two classes: --exact-labels"


def check_look_alikes(name: str, labels: Iterable[str], hint: str = EXACT) -> None:
    """Raise for two labels that a reader takes for one: `Good` and `good`, `1` and `1.0`."""
    first_of: dict[str, str] = {}
    for label in labels:
        first = first_of.setdefault(_look(label), label)
        if first != label:
            how = "in case" if first.casefold() == label.casefold() else "in how they are written"
            raise DataError(
                f"{name}: the labels `{first}` and `{label}` differ only {how}",
                hint,
            )


def _look(label: str) -> str:
    if re.fullmatch(r"[+-]?\d+(\.\d+)?", label):
        return str(Decimal(label).normalize())
    shown = unicodedata.normalize("NFKC", label).casefold()
    joined = shown.replace("\u200c", "").replace("\u200d", "")
    return " ".join(joined.split())


def id_cell(records: Records, number: int, row: Row, column: str) -> str:
    """The id in a cell, as a string; an empty cell is an empty string."""
    return id_of(records, number, column, row.get(column))


def id_of(records: Records, number: int, column: str, value: object) -> str:
    """The id that a cell holds."""
    return _valid_text(records, number, column, name_of(value))


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
