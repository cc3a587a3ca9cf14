"""Rows that go to annotation tools and come back, and files as the tools export them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from selftrain.data.read import Columns
from selftrain.data.rows import Example, Labelled, Notes
from selftrain.interop.annotations import Known, labelled_rows
from selftrain.interop.formats import TOOLS
from selftrain.interop.tool import Outgoing, Suggestion

EXPORTED = Path(__file__).parents[1] / "interop" / "exported"
"""Files as the tools write them."""
LABELS = ("bad", "good")
SUGGESTIONS = (
    Suggestion(
        Example("7", 'a fine "film", really\nYes'),
        "good",
        "easy",
        round=2,
        confidence=0.91,
        certainty=0.875,
        probability=0.75,
        probabilities=(0.25, 0.75),
    ),
    Suggestion(Example("8", "=1+1; längst <b>dull</b>"), "bad", "left", 1, 0.5, 0.25),
    Suggestion(
        Example("g1", "two hours I want back"),
        "bad",
        "gold",
        probability=0.625,
        probabilities=(0.625, 0.375),
    ),
)
OUT = Outgoing(LABELS, SUGGESTIONS)
GOLD = Outgoing(LABELS, SUGGESTIONS[2:])
"""The labelled row alone, which is what cleanlab's file has."""
PAIRS = Outgoing(
    LABELS, (Suggestion(Example("p", "is it open", "until five"), "good", "hard", 3, 0.5, 1.0),)
)


def returned(
    path: Path, name: str, known: Known = Known(), columns: Columns = Columns(), **how: bool
) -> tuple[list[Labelled], dict[str, int]]:
    """The labelled rows of a tool's file, and the counts of those left out."""
    notes = Notes()
    rows = labelled_rows(path, TOOLS[name], columns, known, notes=notes, **how)
    return rows, dict(notes)


def labels_by_uid(rows: list[Labelled]) -> dict[str, str]:
    return {row.example.uid: row.label for row in rows}


def task(uid: str, *chosen: list[str] | None, predicted: str = "bad") -> dict[str, Any]:
    """A task as Label Studio exports it; None is an annotation that was skipped."""
    return {
        "id": 1,
        "data": {"text": f"text {uid}", "uid": uid},
        "annotations": [
            {"result": [] if each is None else [result(each)], "was_cancelled": each is None}
            for each in chosen
        ],
        "predictions": [{"result": [result([predicted])]}],
    }


def result(labels: list[str], name: str = "label") -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": labels}}


def tasks(folder: Path, *rows: object) -> Path:
    path = folder / "export.json"
    path.write_text(json.dumps(rows))
    return path
