"""Files from strangers, nearly right: each is read, or is one line and a hint. Never a trace."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from command import QUICK, csv, sentences
from fuzz import changed_bytes, changed_json, check_done_or_refused, fuzzed
from selftrain.cli import config
from selftrain.data.read import Columns, read_labelled, read_texts, read_unlabelled
from selftrain.data.rows import Notes
from selftrain.data.task import Task, find
from selftrain.estimator import read_facts
from selftrain.experiments.gridfile import read_grid
from selftrain.method.changes import method_of
from selftrain.model.card import read_card
from selftrain.runs.estimates import read_estimate
from selftrain.runs.lessons import read_lesson
from selftrain.runs.manifest import Manifest
from selftrain.runs.read import caveats, records
from selftrain.runs.record import Record

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def read_or_refused(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Writes bytes to a file and reads it: anything but our own errors is a finding."""

    def check(raw: bytes) -> None:
        path.write_bytes(raw)
        check_done_or_refused(lambda: read(path))

    return check


def check_file(path: Path, read: Callable[[Path], object], valid: bytes) -> None:
    """Changes of a valid file, and of the JSON in it where it is JSON."""
    check = read_or_refused(path, read)
    check(valid)
    strategy: st.SearchStrategy[bytes] = changed_bytes(valid)
    with suppress(ValueError):
        strategy = strategy | changed_json(json.loads(valid))
    assert fuzzed(strategy, check) > 5


# ── data ─────────────────────────────────────────────────────────────────────────────────────

ROWS = sentences(6)
LINES = "".join(
    json.dumps({"id": n, "text": t, "label": c}) + "\n" for n, (t, c) in enumerate(ROWS)
)
DATA = {
    "rows.csv": csv(ROWS, "text", "label").encode(),
    "quoted.csv": b'\xef\xbb\xbftext,label\r\n"a ""great"" film, yes",good\r\n"a\nb",bad\r\n',
    "rows.tsv": csv(ROWS, "text", "label").replace(",", "\t").encode(),
    "rows.jsonl": LINES.encode(),
    "rows.csv.gz": gzip.compress(csv(ROWS, "text", "label").encode(), mtime=0),
}


def rows(path: Path) -> None:
    notes = Notes()
    for read in (read_labelled, read_texts):
        check_done_or_refused(partial(read, path, Columns(), notes=notes))
    for _ in read_unlabelled(path, Columns(), notes=notes):
        pass


@pytest.mark.parametrize("name", DATA)
def test_rows(name: str, tmp_path: Path) -> None:
    check_file(tmp_path / name, rows, DATA[name])


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, labels = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), tmp_path / "valid.parquet")
    check_file(tmp_path / "rows.parquet", rows, (tmp_path / "valid.parquet").read_bytes())


# ── a run folder ─────────────────────────────────────────────────────────────────────────────


def test_manifests(folder: Path) -> None:
    path = folder / "manifest.json"
    check_file(path, lambda _: list(caveats(folder)), path.read_bytes())
    check_file(path, Manifest.read, json.dumps({"format": 2}).encode())


def test_round_records(folder: Path) -> None:
    path = folder / "rounds" / "1" / "round.json"

    def read(_: Path) -> None:
        Record.read(path.parent)
        records(folder)
        list(caveats(folder, 1))

    check_file(path, read, path.read_bytes())


def test_model_cards(folder: Path) -> None:
    path = folder / "rounds" / "1" / "model.json"
    check_file(path, lambda _: read_card(path.parent), path.read_bytes())


def test_lessons(folder: Path) -> None:
    path = folder / "rounds" / "1" / "lesson.parquet"
    check_file(path, lambda _: list(read_lesson(path, ["good", "bad"])), path.read_bytes())


ESTIMATE = {
    "format": 1,
    "models": {"0": "a" * 64},
    "constants": [0.5, 0.5, 0.1],
    "estimate": {
        "rounds": [
            {
                "number": 0,
                "expected": {"accuracy": 0.8, "low": 0.7, "high": 0.9},
                "temperature": 1.5,
            }
        ],
        "hits": 0.8,
        "hit_rows": 12.5,
        "doubts": [{"row": 3, "label": "good", "answer": "bad", "probability": 0.9}],
    },
}


def test_estimates(folder: Path) -> None:
    raw = json.dumps(ESTIMATE).encode()
    check_file(folder / "estimate.json", lambda _: read_estimate(folder), raw)


def test_facts_of_a_saved_classifier(tmp_path: Path) -> None:
    facts = {"params": {"seed": 5}, "classes": ["bad", "good"], "type": None, "temperature": 1.5}
    labels = ("bad", "good")
    raw = json.dumps(facts).encode()
    check_file(tmp_path / "estimator.json", lambda path: read_facts(path, labels), raw)
    numbers = json.dumps({**facts, "classes": [1, 2], "type": "int8"}).encode()
    check_file(tmp_path / "numbers.json", lambda path: read_facts(path, ("1", "2")), numbers)


# ── configuration ────────────────────────────────────────────────────────────────────────────

CONFIG = f"""\
backbone = "minilm"
seed = 12
threads = 2
columns.text = "review"
task.template = "{{text}} It was {{mask}} ."
task.words = {{ positive = "great", negative = "terrible" }}
{QUICK}
"""
TASK = 'name = "t"\nlabels = ["no", "yes"]\ntemplate = "{text} {mask}"\nwords = { no = "No" }\n'
GRID = 'tasks = ["sst2"]\nmethods = ["probe"]\nshots = [16]\nseeds = [12]\n'


def settings_of(path: Path) -> None:
    found = config.read(path)
    method_of(found.method, found.preset)
    Task("any", ("no", "yes")).changed({k: v for k, v in found.task.items() if k != "name"})


def test_config_files(tmp_path: Path) -> None:
    check_file(tmp_path / "config.toml", settings_of, CONFIG.encode())


def test_task_files(tmp_path: Path) -> None:
    check_file(tmp_path / "task.toml", find, TASK.encode())


def test_grid_files(tmp_path: Path) -> None:
    check_file(tmp_path / "grid.toml", read_grid, GRID.encode())


def test_entries_of_a_method() -> None:
    from selftrain.method.recipes import DEFAULT, recipe
    from selftrain.method.spec import to_plain

    def check(raw: bytes) -> None:
        changes: Any = json.loads(raw)
        table = changes if isinstance(changes, dict) else {"rounds": changes}
        check_done_or_refused(lambda: method_of(table))

    plain = {**to_plain(recipe(DEFAULT)), "name": DEFAULT}
    assert fuzzed(changed_json(plain), check) > 5
