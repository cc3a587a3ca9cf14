"""What can go wrong through no fault of ours, said in one line with a hint that can be typed.

The command line catches this family only and prints it; anything else is a bug of ours and
shows its trace.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pydantic import ValidationError
import difflib
from collections.abc import Iterable, Sequence

ENTRIES = "selftrain methods --json shows every entry of every method"
"""What to try where a value of a method is wrong."""


class SelftrainError(Exception):
    """A problem the user can act on: what was found, what was expected, and what to try."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)  # both: one that comes from another process has them too
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class DataError(SelftrainError):
    """A file, a column, a label or a text that cannot be learnt from."""


class ConfigError(SelftrainError):
    """A method, a template or a number outside what the method can mean."""


class ModelError(SelftrainError):
    """A backbone that is missing, damaged, or cannot do what the method asks of it."""


class RunError(SelftrainError):
    """A run folder that is locked, foreign, damaged, newer, or of another configuration."""


class LockedError(RunError):
    """A run folder that another process is writing."""


class TrainingError(SelftrainError):
    """A training that cannot go on, such as a loss that is no longer a number."""


def require(holds: bool, what: str, value: object, expected: str, hint: str = ENTRIES) -> None:
    """Raise a ConfigError naming the value unless the condition holds; infinity is never meant."""
    if not holds or (isinstance(value, float) and not math.isfinite(value)):
        raise ConfigError(f"{what} is {value!r}; expected {expected}", hint)


class Problem(NamedTuple):
    """What is wrong with a value from a file."""

    place: str  # with dots between the parts
    told: str
    found: object


def first_problem(error: ValidationError, whole: str = "all of it") -> Problem:
    """The first of what pydantic found: one is enough to go and look."""
    first = error.errors()[0]
    return Problem(".".join(map(str, first["loc"])) or whole, first["msg"], first.get("input"))


def closest(wanted: str, known: Iterable[str]) -> str | None:
    """The known name nearest to the wanted one, for "did you mean"; None if all are far."""
    by_fold = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(wanted.casefold(), by_fold, n=1)
    return by_fold[near[0]] if near else None


def listing(names: Sequence[str], most: int = 8) -> str:
    """Names for an error message; a file without header offers whole texts, so they are cut."""
    shown = ", ".join(f"`{name if len(name) <= 40 else name[:39] + '…'}`" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
