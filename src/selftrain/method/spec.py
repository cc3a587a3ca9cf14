"""A method as data: what teacher and student read, change and minimise, and how rounds go on.

``Method`` holds everything that decides a result, nothing of where it is computed. It goes to
and from plain TOML; a baseline or an ablation is ``replace(upet(…), …)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from selftrain.disk import short_hash
from selftrain.errors import ENTRIES, ConfigError, closest, parsed, require
from selftrain.method.losses import AnyLoss, CrossEntropy, EasyHard, Smooth
from selftrain.method.selection import Selection
from selftrain.model.architecture import Architecture
from selftrain.model.pel import Adapter, AnyTuning, Full, Layers, check_layers


@dataclass(frozen=True, slots=True)
class Agreement:
    """Rows count by how far their gradient points where the labels' does (LiST)."""

    after: float = 0.6
    """The share of the steps before it begins; until then all rows count the same."""

    def __post_init__(self) -> None:
        require(0 <= self.after <= 1, "after (reweigh)", self.after, "a share from 0 to 1")


@dataclass(frozen=True, slots=True)
class TAPT:
    """The encoder goes on guessing masked words, now those of the pool (TAPT)."""

    steps: int = 200
    batch_size: int = 32
    learning_rate: float = 5e-5
    share: float = 0.15
    """Of the words of a row, those that are masked."""

    def __post_init__(self) -> None:
        require(self.steps >= 1, "steps (tapt)", self.steps, "1 or more")
        require(self.batch_size >= 1, "batch_size (tapt)", self.batch_size, "1 or more")
        require(
            self.learning_rate > 0, "learning_rate (tapt)", self.learning_rate, "a number above 0"
        )
        require(0 < self.share < 1, "share (tapt)", self.share, "above 0 and below 1")


@dataclass(frozen=True, slots=True)
class Tune:
    """How one model is fitted: what it reads, what of it moves, and towards what."""

    reader: Literal["head", "prompt"] = "head"
    tuning: AnyTuning = Adapter()
    loss: AnyLoss = CrossEntropy()
    contrast: EasyHard | None = None
    smooth: Smooth | None = None
    reweigh: Agreement | None = None
    train_on: Literal["gold"] | None = None
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
    batch_size: int = 16
    """Rows of the lesson in a step; rows added for the contrast come on top."""
    gold_share: float = 0.0
    """The share of a student's batch that comes from D_l."""
    learning_rate: float = 1e-3
    head_learning_rate: float | None = None
    """Learning rate of the head; None: the same as the rest."""
    weight_decay: float = 0.01
    warmup: float = 0.06
    """The share of the steps over which the rate rises."""
    max_grad_norm: float = 1.0
    states: Literal["fp32", "fp16"] = "fp32"
    """How the states below the tuned layers are kept; fp16 takes half the disk and changes answers
    a little."""

    def __post_init__(self) -> None:
        one = (self.steps is None) != (self.epochs is None)
        require(one, "steps and epochs", (self.steps, self.epochs), "exactly one of them")
        length = self.epochs if self.steps is None else self.steps
        require((length or 0) >= 1, "steps or epochs", length, "1 or more")
        require(self.batch_size >= 1, "batch_size", self.batch_size, "1 or more")
        require(0 <= self.gold_share <= 1, "gold_share", self.gold_share, "a share from 0 to 1")
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "a number above 0")
        if self.head_learning_rate is not None:
            require(
                self.head_learning_rate > 0,
                "head_learning_rate",
                self.head_learning_rate,
                "a number above 0",
            )
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "0 or more")
        require(self.max_grad_norm > 0, "max_grad_norm", self.max_grad_norm, "a number above 0")
        require(0 <= self.warmup <= 1, "warmup", self.warmup, "a share from 0 to 1")
        if self.dropout is not None:
            require(0 <= self.dropout < 1, "dropout", self.dropout, "0 or more and below 1")
        if self.head_start == "regression":
            linear = self.reader == "head" and self.head == "linear"
            require(linear, "head_start", "regression", "a linear head to start", "head = linear")

    @property
    def architecture(self) -> Architecture:
        """How the model is made; the other entries decide how it learns."""
        return Architecture(self.tuning, self.reader, self.head, self.lm_head, self.dropout)


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
    dropout_layers: Layers = None
    """The layers in which its passes differ; what is below them is computed once. None: all."""
    select: Selection = Selection()
    tapt: TAPT | None = None
    """What the teacher's encoder does before it sees a label; students start without it."""
    converged: float = 0.01
    """Stop when a round changes less than this share of the labels on a fixed slice; 0: never."""

    def __post_init__(self) -> None:
        require(self.rounds >= 0, "rounds", self.rounds, "0 or more")
        require(self.pool == "all" or self.pool >= 2, "pool", self.pool, "2 or more, or `all`")
        require(self.passes >= 1, "T (passes)", self.passes, "1 or more")
        check_layers(self.dropout_layers, "dropout_layers")
        require(0 <= self.converged < 1, "converged", self.converged, "0 or more and below 1")
        require(bool(self.student) or not self.rounds, "student", self.student, "a Tune or more")
        for later in self.student[1:]:
            fine = later.head_start == "random"
            expected = "random after the first stage, or what that learnt would be lost"
            require(fine, "head_start", later.head_start, expected)
        for first in self.student[:1]:
            fine = first.starts_from != "teacher" or first.architecture == self.teacher.architecture
            expected = "a student that is made like its teacher: " + ", ".join(
                entry.name for entry in fields(Architecture)
            )
            require(fine, "starts_from", "teacher", expected)
        if self.tapt is not None:
            alone = not self.rounds and isinstance(self.teacher.tuning, Full)
            require(alone, "tapt", self.tapt, "no rounds, and a teacher that changes all of it")

    @property
    def prompts(self) -> bool:
        """Whether a template and label words are needed."""
        return any(tune.reader == "prompt" for tune in (self.teacher, *self.student))


def to_plain(method: Method, *, whole: bool = False) -> dict[str, Any]:
    """The method as plain tables, lists, strings and numbers; None is left out unless ``whole``."""
    plain: dict[str, Any] = _kind().dump_python(method, mode="json", exclude_none=not whole)
    return plain


@cache
def _kind() -> TypeAdapter[Method]:
    return TypeAdapter(Method)


OLD_NAMES = {
    "batch_size": "batch",
    "dropout_layers": "passes_in",
    "gold_share": "gold",
    "head_learning_rate": "head_rate",
    "learning_rate": "rate",
    "max_grad_norm": "clip",
    "reader": "reads",
    "tapt": "adapt",
    "train_on": "only",
    "tuning": "changes",
    "weight_decay": "decay",
}
"""New names of entries and the names they had when the first results were written.

The hash of a recipe goes on using the old ones, so that every committed result is found by it.
"""
OLD_QUOTAS = {"equal": True, "none": False}


def digest(method: Method) -> str:
    """A short hash of all that a method decides; its name decides nothing."""
    plain = {key: value for key, value in to_plain(method).items() if key != "name"}
    plain["select"]["per_class"] = OLD_QUOTAS.get(method.select.per_class, method.select.per_class)
    return short_hash(_with_old_names(plain))


def _with_old_names(plain: Any) -> Any:
    """The same tables with the names that entries had before."""
    if isinstance(plain, dict):
        return {OLD_NAMES.get(key, key): _with_old_names(value) for key, value in plain.items()}
    return [_with_old_names(value) for value in plain] if isinstance(plain, list) else plain


def from_plain(plain: dict[str, Any]) -> Method:
    """The method a plain table describes; a wrong or unknown entry is a ConfigError."""
    method = parsed(_kind(), _explicit(plain), "method", ConfigError, ENTRIES)
    for place in _unknown(plain, to_plain(method, whole=True)):
        if place.endswith("tuning.layers"):
            raise ConfigError(
                f"method: `{place}` is given, but full and ptuning change what every layer reads",
                "leave it out, or take adapter, prefix, lora, bitfit or ia3",
            )
        raise ConfigError(f"method: `{place}` is no entry of a method", _meant(place))
    return method


def _meant(place: str) -> str:
    """A hint for an unknown entry: the new name of an old one, or the nearest name there is."""
    inner = place.rpartition(".")[2]
    new_names = {old: new for new, old in OLD_NAMES.items()}
    every = {field.name for kind in (Method, Tune, Selection, TAPT) for field in fields(kind)}
    near = new_names.get(inner) or closest(inner, sorted(every))
    return f"did you mean `{near}`? {ENTRIES}" if near else ENTRIES


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
