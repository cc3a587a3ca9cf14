"""doccano: JSON lines with a text and a list of labels; its export ``JSONL`` comes back.

Labels that are imported there look like those of a person. doccano shows one text: the second of
a pair is among the metadata.
"""

from __future__ import annotations

import json
from pathlib import Path

from selftrain.data.delimited import Row
from selftrain.data.files import Records, records
from selftrain.disk import replacing
from selftrain.interop.tool import (
    LABEL,
    UID,
    AnnotatedRow,
    Outgoing,
    Tool,
    label_value,
)


def write(path: Path, out: Outgoing) -> None:
    """Write a row on each line, in ASCII; there is no key ``id``, which doccano sets itself."""
    with replacing(path.resolve()) as temporary, temporary.open("x", encoding="ascii") as file:
        for row in out.rows:
            facts = {UID: row.example.uid, **row.texts(), LABEL: [row.label], **row.numbers()}
            file.write(json.dumps(facts) + "\n")


def open_lines(path: Path) -> Records:
    """The rows of a file, whatever its ending: doccano also names JSON lines ``.json``."""
    return records(path, form="jsonl")


def fits(row: Row) -> bool:
    """Whether a row is one of doccano: its label is a list, or there is none."""
    return isinstance(label_value(row, None), list | None) and not {"data", "fields"} & {*row}


def annotated(found: Records, number: int, row: Row, label: str | None) -> AnnotatedRow:
    """The fields of a row and its labels: where people share a project, one of each of them."""
    value = label_value(row, label)
    labels = [value] if isinstance(value, str) else [] if value is None else value
    if not (isinstance(labels, list) and all(isinstance(each, str) for each in labels)):
        hint = "choose a project of text classification, and its format JSONL"
        raise found.error(number, f"the label is {value!r:.40}; expected a list of names", hint)
    fields = {name: value for name, value in row.items() if name != "id"}
    return AnnotatedRow(fields, tuple(labels))


TOOL = Tool(
    title="doccano",
    endings=(".jsonl",),
    write=write,
    open=open_lines,
    fits=fits,
    row=annotated,
)
