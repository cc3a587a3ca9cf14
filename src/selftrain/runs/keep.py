"""``keep.json``: the model that answers for a run, where a person chose one.

The choice stays until another is made: the same `selftrain fit` without ``--keep`` changes nothing
of it, and ``--keep last`` takes it back.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from selftrain.disk import LARGEST_JSON, damaged, plain_file, plain_folder, refusals
from selftrain.errors import ConfigError, RunError, check_format, closest, parsed

KEEP = "keep.json"
FORMAT = 1
RUNGS = "rungs"
FROZEN, FROZEN_SELF_TRAINED, TEACHER = "frozen", "frozen-self-trained", "teacher"
LAST = "last"
"""The last accepted round: no choice."""
OF_FROZEN = (FROZEN, FROZEN_SELF_TRAINED)
"""The first and the last accepted round of the run in ``rungs/frozen``."""
NAMES = (*OF_FROZEN, TEACHER, LAST)
YARDSTICKS = ("majority", "tf-idf")
ROUND = re.compile("0|[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Choice:
    """The content of ``keep.json``."""

    format: int
    rung: str
    """``frozen``, ``frozen-self-trained``, ``teacher``, or the number of a round."""


def rung_named(text: str) -> str:
    """The rung that a person names, as ``keep.json`` has it; an error where none is meant.

    >>> rung_named("frozen self-trained"), rung_named("round 3"), rung_named("0")
    ('frozen-self-trained', '3', 'teacher')
    """
    name = "-".join(re.split(r"[\s_]+", text.strip().lower()))
    name = "tf-idf" if name == "tfidf" else name
    if name in YARDSTICKS:
        raise ConfigError(
            f"`{name}` cannot be kept: it is a yardstick, and no model of it is stored",
            "the simplest model that can answer: --keep frozen",
        )
    number = name.removeprefix("round-")
    if ROUND.fullmatch(number):
        return number if int(number) else TEACHER
    if name not in NAMES:
        near = closest(name, NAMES)
        rungs = f"one of: {', '.join(NAMES)}, or the number of a round"
        hint = f"did you mean `{near}`? {rungs}" if near else rungs
        raise ConfigError(f"there is no rung `{text:.40}` to keep", hint)
    return name


def title(rung: str) -> str:
    """A rung as a ladder names it.

    >>> title("frozen-self-trained"), title("3")
    ('frozen self-trained', 'round 3')
    """
    return f"round {rung}" if ROUND.fullmatch(rung) else rung.replace("-", " ", 1)


def read_kept(folder: Path) -> str | None:
    """The rung that a run folder, which may come from anyone, keeps; None where nothing is said."""
    path = folder / KEEP
    if not os.path.lexists(path):
        return None
    with refusals(path, "read"):
        raw = plain_file(path, LARGEST_JSON).read_bytes()
    check_format(raw, str(path), FORMAT, RunError)
    choice = parsed(Choice, raw, f"{path} is damaged", RunError, forget(folder), strict=True)
    if choice.rung not in (*OF_FROZEN, TEACHER) and not ROUND.fullmatch(choice.rung):
        raise damaged(path, f"keeps {choice.rung!r:.40}, which is no rung")
    return choice.rung


def forget(folder: Path) -> str:
    """A hint: how the last accepted round answers again."""
    return f"remove {folder / KEEP}: then the last accepted round answers"


def frozen_folder(folder: Path) -> Path:
    """Where the run of the frozen encoder is, inside the folder of a run; no link leads there."""
    place = folder / RUNGS / FROZEN
    with refusals(place, "read"):
        for each in (place.parent, place):
            if os.path.lexists(each):
                plain_folder(each)
    return place
