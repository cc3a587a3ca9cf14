"""Download the rows of tasks from the hub, once, into the folder that a comparison reads.

The table ``hub`` of a task file says where its rows are; the paper's seven tasks have one, and any
other task file may. The files are Parquet: no dataset script runs.
The hub's sst2 is GLUE's, with 67,349 phrases in train; the paper's has 6,920 sentences. Development
rows serve as test rows, as in the paper, because the labels of GLUE's own test rows are not public.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from selftrain.data.files import records
from selftrain.data.task import HUB, Task, find, read
from selftrain.disk import replacing, slug
from selftrain.errors import ConfigError, DataError, parsed, require


@dataclass(frozen=True, slots=True)
class Source:
    """Where a task's rows are. Labels are names, or numbers in the order of the task's labels."""

    repository: str
    texts: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]
    """The column of the text, or both of a pair."""
    folder: str = ""
    """Of the repository, with ``train-*.parquet`` in it."""
    train: str = "train"
    test: str = "test"
    label: str = "label"
    revision: str | None = None
    """A commit, a branch or a tag; None: the latest."""


ORIGIN = "hub.json"
"""Beside the rows of a task: where they come from."""
OTHERWISE = "give a folder with train.jsonl and test.jsonl for each task"
EXAMPLE = '[hub] repository = "fancyzhx/ag_news", folder = "data", texts = ["text"]'


def source(name: str) -> Source:
    """Where the rows of a task are, from the table ``hub`` of its file.

    >>> source("sst2").repository
    'nyu-mll/glue'
    """
    facts, where = read(name)
    if HUB not in facts:
        raise ConfigError(
            f"{where} has no table `{HUB}` that says where its rows are",
            f"{EXAMPLE}; or give a folder of your own",
        )
    known = [each.name for each in fields(Source)]
    place = parsed(Source, facts[HUB], f"{where}, `{HUB}`", ConfigError, EXAMPLE)
    strange = [key for key in facts[HUB] if key not in known]
    if strange:
        raise ConfigError(
            f"{where}, `{HUB}` has an unknown key `{strange[0]}`", f"known: {', '.join(known)}"
        )
    if len(place.texts) != 1 + find(name).pair:
        raise ConfigError(
            f"{where}, `{HUB}` names {len(place.texts)} columns of texts",
            "one for a text; two for a pair, with pair = true",
        )
    return place


def fetch(name: str, folder: Path) -> Path:
    """The folder of a task with its train and test rows, downloaded unless both exist."""
    place, task = source(name), find(name)
    fine = bool(task.name) and slug(task.name) == task.name
    require(fine, "the name of a task", task.name, "letters, a part of a path", 'name = "letters"')
    target = folder / task.name
    _check_same(target, place)
    parts = {target / "train.jsonl": place.train, target / "test.jsonl": place.test}
    if all(path.exists() for path in parts):
        return target
    target.mkdir(parents=True, exist_ok=True)
    for path, split in parts.items():  # one alone may come from a wrong source
        with replacing(path) as new, new.open("w", encoding="utf-8") as file:
            for row in rows(task, place, split):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    with replacing(target / ORIGIN) as new:
        new.write_text(json.dumps(asdict(place), indent=2) + "\n", "utf-8")
    return target


def _check_same(folder: Path, place: Source) -> None:
    """Raise where the folder holds rows of another source; rows without a source are accepted."""
    path = folder / ORIGIN
    try:
        origin = TypeAdapter(Source).validate_json(path.read_bytes())
    except (OSError, ValidationError):  # not from the hub, or damaged: no reason to refuse
        return
    if origin != place:
        raise DataError(
            f"{folder} holds the rows of another place on the hub",
            f"remove it, and they are fetched again; {path.name} says where they come from",
        )


def rows(task: Task, source: Source, split: str) -> Iterator[dict[str, str]]:
    """The rows of a split under our names; rows without a label are left out."""
    names = ("text_a", "text_b") if task.pair else ("text",)
    place = f"{source.repository}, {split}"
    for path in _download(source, split):
        for number, row in records(path):
            label = row.get(source.label)
            if label in (-1, None):
                continue
            if isinstance(label, int) and 0 <= label < len(task.labels):
                label = task.labels[label]
            if label not in task.labels:
                raise DataError(
                    f"{place}, row {number}: {source.label} is {label!r}; expected a number "
                    f"from 0 to {len(task.labels) - 1}, or one of: {', '.join(task.labels)}",
                    OTHERWISE,
                )
            texts = [row.get(column) for column in source.texts]
            if not all(isinstance(text, str) for text in texts):
                raise DataError(f"{place}, row {number}: a text is missing", OTHERWISE)
            yield {**dict(zip(names, map(str, texts), strict=True)), "label": label}


def _download(source: Source, split: str) -> list[Path]:
    from huggingface_hub import hf_hub_download, list_repo_files
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    where: dict[str, Any] = {
        "repo_id": source.repository,
        "repo_type": "dataset",
        "revision": source.revision,
    }
    start = f"{source.folder}/{split}" if source.folder else split
    parts = re.compile(
        re.escape(start) + r"(-[^/]*)?\.parquet"
    )  # train.parquet, train-0-of-2.parquet
    try:
        files = filter(parts.fullmatch, list_repo_files(**where))
        found = [Path(hf_hub_download(filename=name, **where)) for name in sorted(files)]
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(
            f"could not download `{source.repository}` from the hub: {reason}",
            f"check the network; or {OTHERWISE}",
        ) from None
    if not found:
        raise DataError(
            f"`{source.repository}` has no {start}.parquet and no {start}-*.parquet", OTHERWISE
        )
    return found
