"""A method as data: what teacher and student read, change and minimise, and how rounds go on.

``Method`` holds everything that decides a result, nothing of where it is computed. It goes to
and from plain TOML; a baseline or an ablation is ``replace(upet(…), …)``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from selftrain.errors import ENTRIES, ConfigError, first_problem, require
from selftrain.method.losses import AnyLoss, CrossEntropy, EasyHard, Smooth
from selftrain.method.selection import Selection
from selftrain.model.pel import Adapter, AnyTuning, Full, Layers, check_layers

MADE = ("reads", "changes", "head", "lm_head", "dropout")
"""What of a Tune a model is made by; the rest is how it learns."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Rows count by how far their gradient points where the labels' does (LiST)."""

    after: float = 0.6
    """The share of the steps before it begins; until then all rows count the same."""

    def __post_init__(self) -> None:
        require(0 <= self.after <= 1, "after (reweigh)", self.after, "a share from 0 to 1")


@dataclass(frozen=True, slots=True)
class Masked:
    """The encoder goes on guessing masked words, now those of the pool (TAPT)."""

    steps: int = 200
    batch: int = 32
    rate: float = 5e-5
    share: float = 0.15
    """Of the words of a row, those that are masked."""

    def __post_init__(self) -> None:
        require(self.steps >= 1, "steps (adapt)", self.steps, "1 or more")
        require(self.batch >= 1, "batch (adapt)", self.batch, "1 or more")
        require(self.rate > 0, "rate (adapt)", self.rate, "a number above 0")
        require(0 < self.share < 1, "share (adapt)", self.share, "above 0 and below 1")


@dataclass(frozen=True, slots=True)
class Tune:
    """How one model is fitted: what it reads, what of it moves, and towards what."""

    reads: Literal["head", "prompt"] = "head"
    changes: AnyTuning = Adapter()
    loss: AnyLoss = CrossEntropy()
    contrast: EasyHard | None = None
    smooth: Smooth | None = None
    reweigh: Agreement | None = None
    only: Literal["gold"] | None = None
    """Learn from D_l alone, whatever else the lesson holds."""
    starts_from: Literal["pretrained", "teacher"] = "pretrained"
    head: Literal["linear", "dense"] = "linear"
    head_start: Literal["random", "regression"] = "random"
    """A linear head may start from logistic regression on the features as they are at the start."""
    lm_head: Literal["frozen", "tuned"] = "frozen"
    dropout: float | None = None
    """None keeps the backbone's own rate (0.1 where that is 0)."""
    steps: int | None = 300
    epochs: int | None = None
    """Passes over the lesson's own rows; exactly one of steps and epochs is set."""
    batch: int = 16
    """Rows of the lesson in a step; rows added for the contrast come on top."""
    gold: float = 0.0
    """The share of a student's batch that comes from D_l."""
    rate: float = 1e-3
    head_rate: float | None = None
    """Learning rate of the head; None: the same as the rest."""
    decay: float = 0.01
    warmup: float = 0.06
    """The share of the steps over which the rate rises."""
    clip: float = 1.0
    states: Literal["fp32", "fp16"] = "fp32"
    """How the states below the tuned layers are kept; fp16 takes half the disk and changes answers
    a little."""

    def __post_init__(self) -> None:
        one = (self.steps is None) != (self.epochs is None)
        require(one, "steps and epochs", (self.steps, self.epochs), "exactly one of them")
        length = self.epochs if self.steps is None else self.steps
        require((length or 0) >= 1, "steps or epochs", length, "1 or more")
        require(self.batch >= 1, "batch", self.batch, "1 or more")
        require(0 <= self.gold <= 1, "gold", self.gold, "a share from 0 to 1")
        require(self.rate > 0, "rate", self.rate, "a number above 0")
        if self.head_rate is not None:
            require(self.head_rate > 0, "head_rate", self.head_rate, "a number above 0")
        require(self.decay >= 0, "decay", self.decay, "0 or more")
        require(self.clip > 0, "clip", self.clip, "a number above 0")
        require(0 <= self.warmup <= 1, "warmup", self.warmup, "a share from 0 to 1")
        if self.dropout is not None:
            require(0 <= self.dropout < 1, "dropout", self.dropout, "0 or more and below 1")
        if self.head_start == "regression":
            linear = self.reads == "head" and self.head == "linear"
            require(linear, "head_start", "regression", "a linear head to start", "head = linear")


@dataclass(frozen=True, slots=True)
class Method:
    """Algorithm 1 with every choice made."""

    name: str
    teacher: Tune
    student: tuple[Tune, ...]
    rounds: int = 3
    pool: int | Literal["all"] = 1024
    """D_u': rows drawn from the pool in each round."""
    passes: int = 10
    """T: dropout passes of the annotating teacher."""
    passes_in: Layers = None
    """The layers in which its passes differ; what is below them is computed once. None: all."""
    select: Selection = Selection()
    adapt: Masked | None = None
    """What the teacher's encoder does before it sees a label; students start without it."""
    converged: float = 0.01
    """Stop when a round changes less than this share of the labels on a fixed slice; 0: never."""

    def __post_init__(self) -> None:
        require(self.rounds >= 0, "rounds", self.rounds, "0 or more")
        require(self.pool == "all" or self.pool >= 2, "pool", self.pool, "2 or more, or `all`")
        require(self.passes >= 1, "T (passes)", self.passes, "1 or more")
        check_layers(self.passes_in, "passes_in")
        require(0 <= self.converged < 1, "converged", self.converged, "0 or more and below 1")
        require(bool(self.student) or not self.rounds, "student", self.student, "a Tune or more")
        for later in self.student[1:]:
            fine = later.head_start == "random"
            expected = "random after the first stage, or what that learnt would be lost"
            require(fine, "head_start", later.head_start, expected)
        for first in self.student[:1]:
            fine = first.starts_from != "teacher" or _made(first) == _made(self.teacher)
            expected = "a student that is made like its teacher: " + ", ".join(MADE)
            require(fine, "starts_from", "teacher", expected)
        if self.adapt is not None:
            alone = not self.rounds and isinstance(self.teacher.changes, Full)
            require(alone, "adapt", self.adapt, "no rounds, and a teacher that changes all of it")

    @property
    def prompts(self) -> bool:
        """Whether a template and label words are needed."""
        return any(tune.reads == "prompt" for tune in (self.teacher, *self.student))


def _made(how: Tune) -> list[object]:
    return [getattr(how, name) for name in MADE]


def to_plain(method: Method, *, whole: bool = False) -> dict[str, Any]:
    """The method as plain tables, lists, strings and numbers; None is left out unless ``whole``."""
    plain: dict[str, Any] = _kind().dump_python(method, mode="json", exclude_none=not whole)
    return plain


@cache
def _kind() -> TypeAdapter[Method]:
    return TypeAdapter(Method)


def digest(method: Method) -> str:
    """A short hash of all that a method decides; its name decides nothing."""
    plain = {key: value for key, value in to_plain(method).items() if key != "name"}
    before = {"equal": True, "none": False}  # what cells computed before there was a third say
    per_class = plain["select"]["per_class"]
    plain["select"]["per_class"] = before.get(per_class, per_class)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]


def from_plain(plain: dict[str, Any]) -> Method:
    """The method a plain table describes; a wrong or unknown entry is a ConfigError."""
    try:
        method = _kind().validate_python(_explicit(plain))
    except ValidationError as error:
        wrong = first_problem(error)
        raise ConfigError(
            f"method: `{wrong.place}` is {wrong.found!r}: {wrong.told}", ENTRIES
        ) from None
    for place in _unknown(plain, to_plain(method, whole=True)):
        if place.endswith("changes.layers"):
            raise ConfigError(
                f"method: `{place}` is given, but full and ptuning change what every layer reads",
                "leave it out, or take adapter, prefix, lora, bitfit or ia3",
            )
        raise ConfigError(f"method: `{place}` is no entry of a method", ENTRIES)
    return method


def _explicit(plain: dict[str, Any]) -> dict[str, Any]:
    """Say None where TOML cannot: ``epochs`` unsets the default steps, ``shares`` the count."""

    def unset(table: Any, what: str, by: str) -> Any:
        return {what: None, **table} if isinstance(table, dict) and by in table else table

    student = plain.get("student", ())
    if isinstance(student, list | tuple):  # anything else is left for the validator to name
        student = tuple(unset(tune, "steps", by="epochs") for tune in student)
    return {
        **plain,
        "teacher": unset(plain.get("teacher", {}), "steps", by="epochs"),
        "student": student,
        "select": unset(plain.get("select", {}), "count", by="shares"),
    }


def _unknown(given: Any, known: Any, place: str = "") -> Iterator[str]:
    """The entries that validation passed over in silence: a misspelt one would change nothing."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            if key not in known:
                yield f"{place}{key}"
            else:
                yield from _unknown(value, known[key], f"{place}{key}.")
    elif isinstance(given, list | tuple) and isinstance(known, list):
        for number, (value, there) in enumerate(zip(given, known, strict=True)):
            yield from _unknown(value, there, f"{place}{number}.")
