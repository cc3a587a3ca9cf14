"""A task as data: its classes, its template, its label words and its metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from selftrain.data.toml import read_tables
from selftrain.errors import ConfigError, DataError, first_problem, require

TASKS = Path(__file__).parent / "tasks"
HINT = "correct the task file, or task.NAME in the config"
HUB = "hub"
"""The table of a task file that says where rows are to be had; it changes nothing of the task."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be told apart. Label names live here, and so in every saved model."""

    name: str
    labels: tuple[str, ...]
    """The classes in a fixed order: column c of every probability is ``labels[c]``."""
    template: str | None = None
    """For prompts, with one ``{mask}`` and ``{text}``, or ``{a}`` and ``{b}`` for a pair."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """One label word (or several, whose probabilities add) for each class."""
    metric: str = "accuracy"
    f1_of: str | None = None
    """The class whose F1 the paper reports too, or ``macro``; ``evaluate`` gives them all."""
    pair: bool = False
    max_length: int = 128
    """Tokens of a row, special tokens and template included; longer text is cut."""

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise DataError(
                f"task `{self.name}` has {len(self.labels)} class; expected at least 2",
                "label a few examples of every class you want to tell apart",
            )
        once = len(set(self.labels)) == len(self.labels)
        require(once, "labels", list(self.labels), "each class once", HINT)
        require(self.max_length >= 8, "max_length", self.max_length, "at least 8", HINT)

    def changed(self, changes: Mapping[str, Any]) -> Task:
        """The same task with some fields replaced, as flags and config files do.

        >>> find("sst2").changed({"words": {"negative": "bad", "positive": "good"}}).words
        {'negative': ('bad',), 'positive': ('good',)}
        """
        return _parse(asdict(self) | dict(changes), f"task `{self.name}`")

    def checked(self, labels: Iterable[str], pair: bool) -> Task:
        """This task, if it fits the data: the same classes, and one text or two as declared."""
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
            given, wanted = ("pairs", "one text") if pair else ("one text", "pairs")
            raise ConfigError(
                f"task `{self.name}` reads {wanted}, the data has {given}",
                "name the second column: --pair COLUMN" if self.pair else "leave out --pair",
            )
        return self


def from_labels(labels: Iterable[str], *, name: str = "task", pair: bool = False) -> Task:
    """A task from the labels seen, in sorted order, so that the order of rows changes nothing.

    >>> from_labels(["no", "yes", "no"]).labels
    ('no', 'yes')
    """
    return Task(name, tuple(sorted(set(labels))), pair=pair)


def find(name: str | Path) -> Task:
    """One of the tasks that come with the package by name, or a task from a TOML file.

    >>> find("sst2").labels
    ('negative', 'positive')
    """
    facts, where = read(name)
    return _parse({key: value for key, value in facts.items() if key != HUB}, where)


def read(name: str | Path) -> tuple[dict[str, Any], str]:
    """What stands in the file of a task, and how to call that file in an error."""
    path = TASKS / f"{name}.toml" if str(name) in known() else Path(str(name))
    hint = f"choose one of {', '.join(known())}, or give a TOML file"
    try:
        found = path.is_file()
    except OSError as error:  # a folder we may not enter, or a text given where a name belongs
        raise ConfigError(f"cannot read {str(path)[:80]}: {error.strerror}", hint) from None
    if not found:
        raise ConfigError(f"task `{name}` is neither known nor a file", hint)
    facts = read_tables(path, unread=hint, wrong='texts stand in quotes: labels = ["no", "yes"]')
    return facts, f"task file `{path}`"


def known() -> list[str]:
    """Names of the tasks that come with the package."""
    return sorted(path.stem for path in TASKS.glob("*.toml"))


def _parse(facts: Mapping[str, Any], where: str) -> Task:
    names = [each.name for each in fields(Task)]
    for key in facts:
        if key not in names:
            raise ConfigError(f"{where} has an unknown key `{key}`", f"known: {', '.join(names)}")
    try:
        return TypeAdapter(Task).validate_python({**facts, "words": _words(facts.get("words"))})
    except ValidationError as error:
        wrong = first_problem(error)
        raise ConfigError(f"{where}, `{wrong.place}`: {wrong.told.lower()}", HINT) from None


def _words(words: Any) -> Any:
    """One word may be written without its list."""
    if not isinstance(words, Mapping):
        return words or {}
    return {label: [word] if isinstance(word, str) else word for label, word in words.items()}
