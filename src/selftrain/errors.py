"""The errors a user can act on: one line that says what is wrong, and a hint that can be typed.

The command line catches this family only and prints it. Anything else is a bug of ours and shows
its trace.
"""

from __future__ import annotations

import difflib
import json
import math
import reprlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

ENTRIES = "selftrain methods --json shows every entry of every method"
"""The hint where a value of a method is wrong."""
LONGEST_NAME = 40  # characters of a name in a message
LONGEST_VALUE = 60  # characters of a value
LONGEST_PLACE = 80  # characters of a place inside a file


class SelftrainError(Exception):
    """A problem the user can act on: what is there, what is expected, and what to try."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)  # both, so that pickling keeps the hint
        # One line, also where a library or a name from a file brings several.
        self.message = " ".join(message.splitlines())
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class DataError(SelftrainError):
    """A file, a column, a label or a text that a model cannot learn from."""


class ConfigError(SelftrainError):
    """A method, a template or a number outside what the method can mean."""


class ModelError(SelftrainError):
    """A backbone that is missing, damaged, or cannot do what the method needs."""


class NoNumberError(ModelError):
    """A model that answers with no number: its weights are too large, or damaged."""


class RunError(SelftrainError):
    """A run folder that is locked, foreign, damaged, newer, or of another configuration."""


class LockedError(RunError):
    """A run folder that another process is writing."""


class TrainingError(SelftrainError):
    """A training that cannot continue, such as a loss that is no longer a number."""


# ── checks ───────────────────────────────────────────────────────────────────────────────────


def require(holds: bool, what: str, value: object, expected: str, hint: str = ENTRIES) -> None:
    """Raise a ConfigError that names the value, unless the condition holds and it is finite."""
    if not holds or (isinstance(value, float) and not math.isfinite(value)):
        raise ConfigError(f"{what} is {value!r}; expected {expected}", hint)


def require_up_to(most: int, what: str, value: int) -> None:
    """Raise a ConfigError unless a number is 1 or more, and not more than this."""
    require(1 <= value <= most, what, value, f"from 1 to {most:,}")


NO_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "not enough memory",
    "std::bad_alloc",
    "can't start new thread",
)


def out_of_memory(error: Exception) -> bool:
    """Whether the system gave no more memory; torch and threads say so in words alone.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("can't start new thread"))
    (True, True)
    """
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


def no_number(texts: int, of: int) -> NoNumberError:
    """The error for answers of a model that are no numbers: finite weights may be too large."""
    return NoNumberError(
        f"the model answers {texts} of {of} texts with no number: its weights are damaged",
        "copy the run and the backbone again, or train anew: -o NEW",
    )


def parsed(
    kind: type[T] | TypeAdapter[T],
    raw: object,
    where: str,
    error: type[SelftrainError],
    hint: str,
    *,
    strict: bool = False,
) -> T:
    """Outside data as a value of a type, or an error that names the first wrong entry.

    Bytes are read as JSON; anything else is taken as plain tables, lists and values. ``where``
    names the source. ``strict`` converts nothing, so that ``"3"`` is no number.

    >>> parsed(dict[str, int], b'{"a": 1, "b": "two"}', "numbers.json", DataError, "b = 2")
    Traceback (most recent call last):
    ...
    selftrain.errors.DataError: numbers.json: `b` is 'two': input should be a valid integer, \
unable to parse string as an integer
    """
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[T] = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
    try:
        if isinstance(raw, bytes):
            return adapter.validate_json(raw, strict=strict)
        return adapter.validate_python(raw, strict=strict)
    except ValidationError as problems:
        raise error(f"{where}: {first_problem(problems)}", hint) from None


class Problem(NamedTuple):
    """One wrong entry of a file, as pydantic reports it."""

    place: str
    """Names and numbers that lead to the entry, with dots between them; empty for all of it."""
    reason: str
    value: str
    """A short form of what stands there; empty where nothing does."""

    def __str__(self) -> str:
        place = repr(_cut(self.place, LONGEST_PLACE))[1:-1]  # escaped: anyone may have written it
        value = self.value and f" is {self.value}"
        return f"`{place}`{value}: {self.reason}" if place else self.reason


def first_problem(error: ValidationError) -> Problem:
    """The first wrong entry; one is enough to go and look."""
    first = error.errors(include_url=False)[0]
    reason = first["msg"][:1].lower() + first["msg"][1:]
    value = "" if first["type"] == "missing" else _short_repr(first.get("input"))
    return Problem(".".join(map(str, first["loc"])), reason, value)


def _short_repr(value: object) -> str:
    try:
        return _cut(reprlib.repr(value), LONGEST_VALUE)
    except ValueError:  # Python prints no number of many thousand digits
        return ""


# ── words for messages ───────────────────────────────────────────────────────────────────────


def closest(wanted: str, known: Iterable[str]) -> str | None:
    """The known name nearest to the wanted one, for "did you mean"; None if all are far.

    >>> closest("Lable", ["text", "label"])
    'label'
    """
    by_fold = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(wanted.casefold(), by_fold, n=1)
    return by_fold[near[0]] if near else None


def listing(names: Sequence[str], max_names: int = 8) -> str:
    """Names for a message. Long ones are cut: the "columns" of a file without header are texts.

    >>> listing(["text", "label", "id"], max_names=2)
    '`text`, `label` and 1 more'
    """
    shown = ", ".join(f"`{_cut(name, LONGEST_NAME)}`" for name in names[:max_names])
    return shown if len(names) <= max_names else f"{shown} and {len(names) - max_names} more"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def check_format(raw: bytes, where: str, reads: int, error: type[SelftrainError]) -> None:
    """Raise for JSON of another format than this version reads: its entries may have other names.

    JSON that names no format passes, as does what is not JSON: whoever reads it next says why.
    """
    try:
        facts = json.loads(raw)
    except (ValueError, RecursionError):
        return
    found = facts.get("format", reads) if isinstance(facts, dict) else reads
    if found != reads:
        older = isinstance(found, int) and found < reads
        hint = (
            "an earlier version wrote it: compute it again, in another folder"
            if older
            else "a newer version wrote it: pip install --upgrade selftrain"
        )
        raise error(f"{where} has format {found!r:.40}; this version reads format {reads}", hint)


MOST_SHARES = 6


def in_percent(shares: Sequence[float]) -> str:
    """Class shares in percent; of many classes the largest alone.

    >>> in_percent([0.5, 0.3, 0.2])
    '50:30:20'
    """
    if len(shares) > MOST_SHARES:
        return f"largest class {max(shares):.0%}"
    return ":".join(f"{100 * share:.0f}" for share in shares)
