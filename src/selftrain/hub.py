"""The seven tasks by hub name: fetched once as Parquet, written as the folder a comparison reads.

No dataset script is run and no library of its own is needed: the files are tables. The hub's sst2
is GLUE's, with 67,349 phrases in train; the paper's has 6,920 sentences. Development rows serve as
test rows, as in the paper, because the labels of GLUE's own test rows are not public.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selftrain.disk import replacing
from selftrain.errors import ConfigError, DataError
from selftrain.files import records
from selftrain.task import Task


@dataclass(frozen=True, slots=True)
class Source:
    """Where a task's rows are. Labels are numbers there, in the order of the task's own."""

    repository: str
    folder: str
    texts: tuple[str, ...]
    test: str = "validation"


OTHERWISE = "give a folder with train.jsonl and test.jsonl for each task"
SOURCES = {
    "sst2": Source("nyu-mll/glue", "sst2", ("sentence",)),
    "mrpc": Source("nyu-mll/glue", "mrpc", ("sentence1", "sentence2")),
    "mnli": Source("nyu-mll/glue", "mnli", ("premise", "hypothesis"), "validation_matched"),
    "qnli": Source("nyu-mll/glue", "qnli", ("question", "sentence")),
    "rte": Source("nyu-mll/glue", "rte", ("sentence1", "sentence2")),
    "cb": Source("aps/super_glue", "cb", ("premise", "hypothesis")),
    "agnews": Source("fancyzhx/ag_news", "data", ("text",), "test"),
}


def fetch(task: Task, folder: Path) -> Path:
    """The folder of a task with its train and test rows; nothing is fetched that is there."""
    source = SOURCES.get(task.name)
    if source is None:
        raise ConfigError(
            f"task `{task.name}` has no known place on the hub",
            f"one of: {', '.join(SOURCES)}; or give a folder of your own",
        )
    here = folder / task.name
    for part, split in (("train", "train"), ("test", source.test)):
        path = here / f"{part}.jsonl"
        if path.exists():
            continue
        here.mkdir(parents=True, exist_ok=True)
        with replacing(path) as place, place.open("w", encoding="utf-8") as file:
            for row in rows(task, source, split):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return here


def rows(task: Task, source: Source, split: str) -> Iterator[dict[str, str]]:
    """The rows of a split under our names; rows without a label are left out."""
    names = ("text_a", "text_b") if task.pair else ("text",)
    place = f"{source.repository}, {split}"
    for path in _download(source, split):
        for number, row in records(path):
            label = row.get("label")
            if label == -1:
                continue
            if not isinstance(label, int) or not 0 <= label < len(task.labels):
                raise DataError(
                    f"{place}, row {number}: label {label!r}; "
                    f"expected a number from 0 to {len(task.labels) - 1}",
                    OTHERWISE,
                )
            texts = [row.get(column) for column in source.texts]
            if not all(isinstance(text, str) for text in texts):
                raise DataError(f"{place}, row {number}: a text is missing", OTHERWISE)
            yield {**dict(zip(names, map(str, texts), strict=True)), "label": task.labels[label]}


def _download(source: Source, split: str) -> list[Path]:
    from huggingface_hub import hf_hub_download, list_repo_files
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    where: dict[str, Any] = {"repo_id": source.repository, "repo_type": "dataset"}
    start = f"{source.folder}/{split}-"
    try:
        files = [name for name in list_repo_files(**where) if name.startswith(start)]
        found = [
            Path(hf_hub_download(filename=name, **where))
            for name in sorted(files)
            if name.endswith(".parquet")
        ]
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"`{source.repository}` could not be had from the hub: {reason}",
            f"check the network; or {OTHERWISE}",
        ) from None
    if not found:
        raise DataError(f"`{source.repository}` has no {start}*.parquet", OTHERWISE)
    return found
