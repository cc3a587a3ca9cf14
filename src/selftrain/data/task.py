"""A task: its classes, its template and its label words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from selftrain.data.columns import clean_label
from selftrain.data.toml import check_name, read_tables
from selftrain.errors import ConfigError, DataError, parsed, require

TASKS = Path(__file__).parent / "tasks"
HINT = "correct the task file, or task.NAME in the config"
LARGEST_NAMES = 900_000
"""Bytes of labels, words and template as JSON: a model card with more is never read back."""
HUB = "hub"
"""The table of a task file that says where to download rows; it is no part of the task."""


@dataclass(frozen=True, slots=True)
class Task:
    """The classes to tell apart. Label names live here, and so in every saved model."""

    name: str
    """Its name in tables and folders."""
    labels: tuple[str, ...]
    """The classes in a fixed order: column c of every probability is ``labels[c]``."""
    template: str | None = None
    """For prompts: one ``{mask}``, and ``{text}``, or ``{a}`` and ``{b}`` for a pair."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """One label word (or several, whose probabilities add) for each class."""
    f1_of: str | None = None
    """The class whose F1 the paper reports too, or ``macro``; ``evaluate`` gives them all."""
    pair: bool = False
    """Whether a row is a pair of texts."""
    max_length: int = 128
    """Tokens of a row, special tokens and template included; longer text is cut."""

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise DataError(
                f"task `{self.name}` has {len(self.labels)} class; expected at least 2",
                "label a few examples of every class you want to tell apart",
            )
        distinct = len(set(self.labels)) == len(self.labels)
        require(distinct, "labels", list(self.labels), "each class once", HINT)
        require(self.max_length >= 8, "max_length", self.max_length, "at least 8", HINT)
        words = {label: list(self.words[label]) for label in self.words}
        size = len(json.dumps([self.labels, words, self.template], indent=4))
        if size > LARGEST_NAMES:
            raise DataError(
                f"the names of {len(self.labels)} classes have {size:,} bytes; a model is stored "
                f"with at most {LARGEST_NAMES:,}",
                "name the right column: --label COLUMN, or give the classes shorter names",
            )

    def changed(self, changes: Mapping[str, Any]) -> Task:
        """The same task with some fields replaced, as flags and config files do.

        >>> find("sst2").changed({"words": {"negative": "bad", "positive": "good"}}).words
        {'negative': ('bad',), 'positive': ('good',)}
        """
        return _parse(asdict(self) | dict(changes), f"task `{self.name}`")

    def checked(self, labels: Iterable[str], pair: bool) -> Task:
        """This task, if it fits the data: the same classes, and pairs only if it reads pairs."""
        seen = set(labels)
        expected = ", ".join(f"`{label}`" for label in self.labels)
        for label in sorted(seen - set(self.labels)):
            raise DataError(
                f"label `{label}` is no class of task `{self.name}`; expected {expected}",
                "correct the label, or leave the task out to learn the labels seen",
            )
        for label in self.labels:
            if label not in seen:
                raise DataError(
                    f"class `{label}` of task `{self.name}` has no labelled example",
                    "label at least 2 examples of it, or leave the task out",
                )
        if pair != self.pair:
            in_data, in_task = ("pairs", "one text") if pair else ("one text", "pairs")
            raise ConfigError(
                f"task `{self.name}` reads {in_task}, the data has {in_data}",
                "name the second column: --pair COLUMN" if self.pair else "leave out --pair",
            )
        return self


def from_labels(labels: Iterable[str], *, name: str = "task", pair: bool = False) -> Task:
    """A task from the labels of the data, sorted, so that the order of rows changes nothing.

    >>> from_labels(["no", "yes", "no"]).labels
    ('no', 'yes')
    """
    return Task(name, tuple(sorted(set(labels))), pair=pair)


def find(name: str | Path) -> Task:
    """A task of the package, by its name, or a task from a TOML file.

    >>> find("sst2").labels
    ('negative', 'positive')
    """
    facts, where = read(name)
    return _parse({key: value for key, value in facts.items() if key != HUB}, where)


def read(name: str | Path) -> tuple[dict[str, Any], str]:
    """The tables of a task file, and a name for that file in error messages."""
    path = TASKS / f"{name}.toml" if str(name) in known() else Path(str(name))
    hint = f"choose one of {', '.join(known())}, or give a TOML file"
    try:
        is_file = path.is_file()
    except OSError as error:  # a folder without permission, or a text in place of a name
        raise ConfigError(f"cannot read {str(path)[:80]}: {error.strerror}", hint) from None
    if not is_file:
        raise ConfigError(f"task `{name}` is neither known nor a file", hint)
    example = 'texts stand in quotes: labels = ["no", "yes"]'
    facts = read_tables(path, read_hint=hint, syntax_hint=example)
    return facts, f"task file `{path}`"


def known() -> list[str]:
    """The names of the tasks in the package."""
    return sorted(path.stem for path in TASKS.glob("*.toml"))


def _parse(facts: Mapping[str, Any], where: str) -> Task:
    for key in facts:
        check_name(key, [field.name for field in fields(Task)], where)
    cleaned = {**facts, "words": _word_lists(facts.get("words"), where)}
    cleaned["f1_of"] = _cleaned(facts.get("f1_of"))
    if isinstance(facts.get("labels"), list | tuple):
        cleaned["labels"] = [_cleaned(label) for label in facts["labels"]]
    for names in (cleaned["words"], cleaned.get("labels")):
        if isinstance(names, Mapping | list) and "" in names:
            raise ConfigError(f"{where}: a class has an empty name", HINT)
    return parsed(Task, cleaned, where, ConfigError, HINT)


def _cleaned(label: Any) -> Any:
    """The name of a class as it is in files of data; what is no name is left to be refused."""
    return clean_label(label) if isinstance(label, str) else label


def _word_lists(words: Any, where: str) -> Any:
    """Label words by the names of their classes, with a single word put into a list."""
    if not isinstance(words, Mapping):
        return words or {}
    by_name = {_cleaned(label): word for label, word in words.items()}
    if len(by_name) < len(words):
        twice, _ = Counter(map(_cleaned, words)).most_common(1)[0]
        raise ConfigError(f"{where}: class `{twice}` has its words twice", HINT)
    return {label: [word] if isinstance(word, str) else word for label, word in by_name.items()}
