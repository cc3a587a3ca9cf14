"""Label Studio: tasks with predictions go out; its exports ``JSON`` and ``JSON-MIN`` come back.

A folder goes out: ``tasks.json`` is imported, and ``labeling.xml`` is the labelling interface.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from selftrain.data.delimited import Row
from selftrain.data.files import Records
from selftrain.data.rows import uid_of
from selftrain.disk import replacing
from selftrain.errors import DataError, parsed
from selftrain.interop.tool import (
    LABEL,
    PAIR,
    TEXT,
    UID,
    AnnotatedRow,
    Outgoing,
    Suggestion,
    Tool,
    label_value,
    open_json,
    write_json,
)

TASKS, INTERFACE = "tasks.json", "labeling.xml"
OF_JSON_MIN = frozenset({"annotator", "annotation_id", "lead_time"})
"""Names that JSON-MIN puts beside the fields of a task."""
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
EXPORT = "export the project again: Export > JSON"

# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write(path: Path, out: Outgoing) -> None:
    """Write the tasks with their predictions, and the interface that shows them."""
    interface = interface_of(out)  # first: a label that it cannot hold is found before any work
    with replacing(path.resolve()) as folder:
        folder.mkdir()
        write_json(folder / TASKS, map(task_of, out.rows))
        (folder / INTERFACE).write_text(interface, "utf-8")


def task_of(row: Suggestion) -> dict[str, Any]:
    """A task: the data that is shown, and the suggested label as a prediction."""
    result = {
        "id": uid_of(row.example.uid)[:10],
        "from_name": LABEL,
        "to_name": TEXT,
        "type": "choices",
        "value": {"choices": [row.label]},
    }
    model = "selftrain" if row.round is None else f"selftrain round {row.round}"
    prediction: dict[str, Any] = {"model_version": model, "result": [result]}
    if row.score is not None:
        prediction["score"] = round(row.score, 6)
    data = {UID: row.example.uid, **row.texts(), **row.numbers()}
    return {"data": data, "predictions": [prediction]}


def interface_of(out: Outgoing) -> str:
    """The labelling interface: the text, or both, and one choice for each class."""
    for label in out.labels:
        if NOT_XML.search(label):
            raise DataError(
                f"label {label!a:.60} holds a character that XML cannot; Label Studio needs it",
                "choose a tool without XML: --to doccano",
            )
    view = ElementTree.Element("View")
    for name in (TEXT, PAIR) if out.pair else (TEXT,):
        ElementTree.SubElement(view, "Text", name=name, value=f"${name}")
    choices = ElementTree.SubElement(view, "Choices", name=LABEL, toName=TEXT, choice="single")
    for label in out.labels:
        ElementTree.SubElement(choices, "Choice", value=label)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


# ── back ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Result:
    """One answer in an annotation or a prediction."""

    value: dict[str, Any]
    type: str = ""
    from_name: str = LABEL


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one person, or one model, answered."""

    result: list[Result]
    was_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """A task in the export ``JSON``."""

    data: dict[str, Any]
    annotations: list[Annotation] = field(default_factory=list)
    predictions: list[Annotation] = field(default_factory=list)


def fits(row: Row) -> bool:
    """Whether a row is a task of one of the two exports."""
    return isinstance(row.get("data"), Mapping) or not OF_JSON_MIN.isdisjoint(row)


def annotated(records: Records, number: int, row: Row, label: str | None) -> AnnotatedRow:
    """The fields of a task and what people answered."""
    if not isinstance(row.get("data"), Mapping):
        return _of_json_min(records, number, row, label)
    where = f"{records.name}, {records.unit} {number}"
    task = parsed(Exported, dict(row), where, DataError, EXPORT)
    chosen = [choices(each, label) for each in task.annotations if not each.was_cancelled]
    suggested = [found for each in task.predictions if len(found := choices(each, label)) == 1]
    return AnnotatedRow(
        fields=task.data,
        labels=tuple(each[0] for each in chosen if len(each) == 1),
        skipped=sum(each.was_cancelled for each in task.annotations),
        several=sum(len(each) > 1 for each in chosen),
        suggested=suggested[-1][0] if suggested else None,
    )


def choices(annotation: Annotation, label: str | None) -> list[str]:
    """The labels that one annotation chooses, under this name, if one is given."""
    found = [result for result in annotation.result if result.type == "choices"]
    if label is None and any(result.from_name == LABEL for result in found):
        label = LABEL
    return [
        str(choice)
        for result in found
        if label in (None, result.from_name)
        for choice in _listed(result.value.get("choices"))
    ]


def _of_json_min(records: Records, number: int, row: Row, label: str | None) -> AnnotatedRow:
    """A row of JSON-MIN: one annotation beside the fields; ``id`` is Label Studio's, not ours."""
    value = label_value(row, label)
    chosen = _listed(value.get("choices") if isinstance(value, Mapping) else value)
    if not all(isinstance(each, str) for each in chosen):
        raise records.error(number, f"the label is {value!r:.40}; expected a name", EXPORT)
    fields = {name: value for name, value in row.items() if name != "id"}
    return AnnotatedRow(fields, tuple(chosen) if len(chosen) == 1 else (), several=len(chosen) > 1)


def _listed(value: object) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


TOOL = Tool(
    title="Label Studio",
    endings=(),
    write=write,
    open=open_json,
    fits=fits,
    row=annotated,
    has_suggestions=True,
)
