"""Argilla 2: a dataset as ``rg.Dataset.to_disk`` writes it, for ``from_disk``; the same comes back.

A folder goes out: ``records.json``, and the questions and fields in ``.argilla``. The folder that
comes back is named, or the ``records.json`` in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selftrain.data.delimited import Row
from selftrain.data.files import Records
from selftrain.disk import plain_file, plain_folder, refusals, replacing, sync
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
    open_json,
    write_json,
)

RECORDS, SETTINGS, DATASET = "records.json", ".argilla/settings.json", ".argilla/dataset.json"
OVERLAP = {"strategy": "overlap", "min_submitted": 1}
NUMBERS = {"round": "integer", "confidence": "float", "certainty": "float", "probability": "float"}
MOST_OPTIONS_SHOWN = 20
AGAIN = "write the dataset again: dataset.to_disk(FOLDER)"

# ── out ──────────────────────────────────────────────────────────────────────────────────────


def write(path: Path, out: Outgoing) -> None:
    """Write the records with their suggestions, and the settings of the dataset."""
    with replacing(path.resolve()) as folder:
        (folder / ".argilla").mkdir(parents=True)
        write_json(folder / RECORDS, map(record_of, out.rows))
        for name, facts in ((SETTINGS, settings_of(out)), (DATASET, dataset())):
            (folder / name).write_text(json.dumps(facts, indent=2) + "\n", "ascii")
            sync(folder / name)


def record_of(row: Suggestion) -> dict[str, Any]:
    """A record: its fields, and the suggested label."""
    agent = "selftrain" if row.round is None else f"selftrain round {row.round}"
    score = None if row.score is None else round(row.score, 6)
    return {
        "id": row.example.uid,
        "fields": row.texts(),
        "metadata": row.numbers(),
        "suggestions": {LABEL: {"value": row.label, "score": score, "agent": agent}},
        "responses": {},
        "vectors": {},
    }


def settings_of(out: Outgoing) -> dict[str, Any]:
    """The fields that are shown, the one question, and numbers to sort and filter by."""
    options = [{"value": each, "text": each, "description": None} for each in out.labels]
    question: dict[str, Any] = {"type": "label_selection", "options": options}
    if len(options) > MOST_OPTIONS_SHOWN:
        question["visible_options"] = MOST_OPTIONS_SHOWN
    text = {"type": "text", "use_markdown": False}
    role = {"name": "role", "title": "role", "settings": {"type": "terms", "values": None}}
    numbers = [
        {"name": name, "title": name, "settings": {"type": kind, "min": None, "max": None}}
        for name, kind in NUMBERS.items()
    ]
    return {
        "guidelines": None,
        "allow_extra_metadata": True,
        "distribution": OVERLAP,
        "fields": [
            {"name": name, "title": name, "required": True, "settings": text}
            for name in ((TEXT, PAIR) if out.pair else (TEXT,))
        ],
        "questions": [{"name": LABEL, "title": LABEL, "required": True, "settings": question}],
        "metadata": [role, *numbers],
        "vectors": [],
    }


def dataset() -> dict[str, Any]:
    """The dataset itself; ``from_disk(name=…)`` gives it another name."""
    return {
        "name": "selftrain",
        "guidelines": None,
        "allow_extra_metadata": True,
        "distribution": OVERLAP,
    }


# ── back ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Given:
    """A response of a person, or a suggestion."""

    value: Any
    status: str | None = None
    """Argilla's ``to_disk`` leaves it out: drafts then look like answers."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A record in ``records.json``."""

    fields: dict[str, Any]
    id: Any = None
    responses: dict[str, list[Given]] = field(default_factory=dict)
    suggestions: dict[str, Given] = field(default_factory=dict)


def open_records(path: Path) -> Records:
    """The records of a dataset on disk: its folder, or the file in it."""
    if not path.is_dir():
        return open_json(path)
    file = path / RECORDS
    with refusals(path, "read"):
        if not file.exists():
            raise DataError(f"{path} has no {RECORDS}: it is no dataset of Argilla 2", AGAIN)
        return open_json(plain_file(plain_folder(path.resolve()) / RECORDS))


def fits(row: Row) -> bool:
    """Whether a row is a record of Argilla."""
    return isinstance(row.get("fields"), Mapping)


def annotated(records: Records, number: int, row: Row, label: str | None) -> AnnotatedRow:
    """The fields of a record and what people answered; the record's id is the uid."""
    where = f"{records.name}, {records.unit} {number}"
    record = parsed(Exported, dict(row), where, DataError, AGAIN)
    question = label or question_of(record)
    given = [each for each in record.responses.get(question, ()) if each.status != "draft"]
    answers = [each for each in given if each.status != "discarded" and each.value is not None]
    suggested = record.suggestions.get(question)
    return AnnotatedRow(
        fields={UID: record.id, **record.fields},
        labels=tuple(str(each.value) for each in answers if not isinstance(each.value, list)),
        skipped=len(given) - len(answers),
        several=sum(isinstance(each.value, list) for each in answers),
        suggested=suggested.value if suggested and isinstance(suggested.value, str) else None,
    )


def question_of(record: Exported) -> str:
    """The question of the label: ours, or the only one that a record has."""
    names = {*record.responses, *record.suggestions}
    return LABEL if LABEL in names or len(names) != 1 else names.pop()


TOOL = Tool(
    title="Argilla",
    endings=(),
    write=write,
    open=open_records,
    fits=fits,
    row=annotated,
    has_suggestions=True,
)
