"""A method as data: how teacher and student are built and trained, and how rounds go on.

``Method`` has everything that decides a result, nothing of where it is computed. It is written to
and read from plain TOML; a baseline or an ablation is ``replace(upet(…), …)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from selftrain.disk import short_hash
from selftrain.errors import ENTRIES, ConfigError, closest, parsed, require, require_up_to
from selftrain.method.losses import AnyLoss, CrossEntropy, EasyHard, Smooth, SupCon
from selftrain.method.selection import Reliable, Selection
from selftrain.model.architecture import Architecture
from selftrain.model.pel import Adapter, AnyTuning, Full, Layers, Probe, check_layers

LARGEST_BATCH = 65_536
MOST_ROUNDS = 10_000
"""Beyond these a run would end for want of memory, or never."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Weigh each row by how far its gradient agrees with that of the gold labels (LiST)."""

    after: float = 0.6
    """The share of the steps before it begins; until then all rows count the same."""

    def __post_init__(self) -> None:
        require(0 <= self.after <= 1, "after (reweigh)", self.after, "a share from 0 to 1")


@dataclass(frozen=True, slots=True)
class TAPT:
    """Before it sees a label, the encoder predicts masked words of the pool (TAPT)."""

    steps: int = 200
    """Optimiser steps."""
    batch_size: int = 32
    """Rows in a step."""
    learning_rate: float = 5e-5
    """The rate at the first step; it falls to 0 in a straight line."""
    share: float = 0.15
    """The share of the words of a row that are masked."""

    def __post_init__(self) -> None:
        require(self.steps >= 1, "steps (tapt)", self.steps, "1 or more")
        require_up_to(LARGEST_BATCH, "batch_size (tapt)", self.batch_size)
        require(
            self.learning_rate > 0, "learning_rate (tapt)", self.learning_rate, "a number above 0"
        )
        require(0 < self.share < 1, "share (tapt)", self.share, "above 0 and below 1")


@dataclass(frozen=True, slots=True)
class Tune:
    """How one model is built and trained: its reader, what is tuned, the loss, the optimiser."""

    reader: Literal["head", "prompt"] = "head"
    """Answer with a classification head, or with label words at the mask of a prompt."""
    tuning: AnyTuning = Adapter()
    """Which parameters are trained."""
    loss: AnyLoss = CrossEntropy()
    """The loss of a row and its label."""
    supcon: SupCon | None = None
    """Train the encoder by supervised contrast in place of ``loss``; the head is then a regression
    on the trained features. Left out, ``loss`` trains both."""
    class_names: bool | None = None
    """Train also on short texts made of the class names, if the encoder answers the labelled rows
    by them better than by chance. Left out, names are not read."""
    balance_labels: bool | None = None
    """Leave some gold rows of large classes to the rounds: with two classes learn from as many of
    each, with more of them from a few more of the large ones. Left out, learn from all."""
    contrast: EasyHard | None = None
    """The easy-hard contrast, added to the loss. Left out, there is none."""
    smooth: Smooth | None = None
    """The smoothness of neighbours, added to the loss. Left out, there is none."""
    reweigh: Agreement | None = None
    """How rows are weighed by their gradients. Left out, the weights of the lesson count."""
    train_on: Literal["gold"] | None = None
    """``gold`` trains on the gold rows D_l alone. Left out, the model trains on the easy rows D_r
    of the lesson, or on D_l where it has none."""
    starts_from: Literal["pretrained", "teacher"] = "pretrained"
    """A student starts from the pretrained weights, or from those of its teacher."""
    head: Literal["linear", "dense"] = "linear"
    """One linear layer, or a dense layer with tanh below it."""
    head_start: Literal["random", "regression"] = "random"
    """A linear head may start from logistic regression on the features as they are at the start."""
    lm_head: Literal["frozen", "tuned"] = "frozen"
    """Whether a prompt trains the language model's head too."""
    dropout: float | None = None
    """The dropout rate. Left out, the backbone's own rate (0.1 where that is 0)."""
    steps: int | None = 300
    """Optimiser steps. Exactly one of ``steps`` and ``epochs`` is set."""
    epochs: int | None = None
    """Passes over the rows that the model trains on, in place of ``steps``."""
    min_epochs: int | None = None
    """Take more than ``steps`` where they are fewer than this many passes over the rows."""
    batch_size: int = 16
    """Rows of the lesson in a step; the rows of the contrast are added to them."""
    gold_share: float = 0.0
    """The share of a student's batch that comes from D_l."""
    learning_rate: float = 1e-3
    """The highest rate of the schedule: up over the warm-up, then straight down to 0."""
    head_learning_rate: float | None = None
    """The rate of the head. Left out, the same as ``learning_rate``."""
    weight_decay: float = 0.01
    """The weight decay of AdamW."""
    warmup: float = 0.06
    """The share of the steps over which the rate rises."""
    interpolation: float | None = None
    """How much of the way from their start the trained weights keep: 0.75 takes a quarter of it
    back (WiSE-FT). Left out, they stay as trained."""
    max_grad_norm: float = 1.0
    """A gradient with a larger norm is scaled down to this norm."""
    states: Literal["fp32", "fp16"] = "fp32"
    """How the states below the tuned layers are stored; fp16 takes half the disk and changes
    answers a little."""

    def __post_init__(self) -> None:
        one = (self.steps is None) != (self.epochs is None)
        require(one, "steps and epochs", (self.steps, self.epochs), "exactly one of them")
        length = self.epochs if self.steps is None else self.steps
        require((length or 0) >= 1, "steps or epochs", length, "1 or more")
        if self.min_epochs is not None:
            require(self.min_epochs >= 1, "min_epochs", self.min_epochs, "1 or more")
        require_up_to(LARGEST_BATCH, "batch_size", self.batch_size)
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
        if self.interpolation is not None:
            share = self.interpolation
            require(0 < share <= 1, "interpolation", share, "a share above 0, at most 1")
        if self.dropout is not None:
            require(0 <= self.dropout < 1, "dropout", self.dropout, "0 or more and below 1")
        if isinstance(self.tuning, Probe):
            linear = (self.reader, self.head) == ("head", "linear")
            require(linear, "tuning", "probe", "a linear head, the only part that learns")
            plain = self.contrast is None and self.smooth is None and self.reweigh is None
            require(plain, "tuning", "probe", "no contrast, smooth or reweigh: vectors stay fixed")
            still = self.interpolation is None
            require(still, "tuning", "probe", "no interpolation: the encoder does not move")
        if self.supcon is not None:
            linear = (self.reader, self.head) == ("head", "linear")
            require(linear, "supcon", (self.reader, self.head), "a linear head, set by regression")
            encoder = not isinstance(self.tuning, Probe)
            require(encoder, "supcon", self.supcon, "a tuning of the encoder: probe has none")
            expected = "it to be left out: supcon trains the encoder, a regression sets the head"
            require(self.loss == CrossEntropy(), "loss", self.loss.kind, expected)
            require(self.head_start == "random", "head_start", self.head_start, expected)
            rate = self.head_learning_rate
            require(rate is None, "head_learning_rate", rate, expected)
            plain = self.contrast is None and self.smooth is None and self.reweigh is None
            require(plain, "supcon", self.supcon, "no contrast, smooth or reweigh beside it")
            fine = self.batch_size >= 4
            require(fine, "batch_size", self.batch_size, "4 or more: rows of two classes, in pairs")
        if self.head_start == "regression":
            linear = self.reader == "head" and self.head == "linear"
            require(linear, "head_start", "regression", "a linear head to start", "head = linear")

    @property
    def architecture(self) -> Architecture:
        """How the model is made; the other entries decide how it learns."""
        return Architecture(self.tuning, self.reader, self.head, self.lm_head, self.dropout)


PROBE_SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class ProbeRounds:
    """Rounds of the head alone, on vectors of the pool that the encoder computes once.

    They are Algorithm 1 except for line 6: the student starts from its teacher. Its head is a
    regression on the gold and the easy rows; the encoder stays as it is.
    """

    rounds: int = 5
    """How many there are after the teacher, and again after each student of ``rounds``."""
    select: Selection = Selection(
        score=Reliable(alpha=0.4), count=None, shares=PROBE_SHARES, how="topk"
    )
    """Which rows the head learns from; the shares start again after each student."""
    loss: AnyLoss = CrossEntropy()
    """The loss of a row. Cross entropy is scikit-learn's regression, any other torch's L-BFGS."""
    penalty: float = 1e-3
    """The factor of half the squared weights, added to the mean loss; vectors have a mean length
    of 1. The same for any number of rows."""
    prior: float = 0.5
    """How far a round's mean belief is moved back to the class shares that the round before the
    first of them answers: 0 leaves it, 1 holds it there."""

    def __post_init__(self) -> None:
        require_up_to(MOST_ROUNDS, "rounds (probe)", self.rounds)
        require(self.penalty > 0, "penalty", self.penalty, "a number above 0")
        require(0 <= self.prior <= 1, "prior", self.prior, "a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class Method:
    """Algorithm 1 with every choice made."""

    name: str
    """The recipe it starts from; nothing that a run computes depends on the name."""
    teacher: Tune
    """How the teacher of round 0 is trained, on the gold labels."""
    student: tuple[Tune, ...]
    """How the student of a round is trained: one stage, or several one after the other. It decides
    nothing where ``rounds`` is 0, and neither does ``select``."""
    rounds: int = 3
    """Rounds with a student of their own; 0 trains the teacher alone, and its probe rounds."""
    probe: ProbeRounds | None = None
    """Rounds of the head alone, after the teacher and after each student. Left out, there are
    none. With them all rounds read one draw of the pool."""
    pool: int | Literal["all"] = 1024
    """D_u': rows drawn from the pool in each round; with probe rounds at most 65,536."""
    passes: int = 10
    """T: dropout passes of the annotating teacher."""
    dropout_layers: Layers = None
    """The top layers in which the passes have dropout; the layers below them are computed once.
    Left out, all layers have dropout."""
    select: Selection = Selection()
    """Which rows of the pool become easy and hard."""
    tapt: TAPT | None = None
    """Pretraining of the teacher's encoder on the pool. Left out, there is none."""
    guard: Literal["folds", "classes"] | None = None
    """``folds`` refuses a round that regressions on the pretrained vectors, each without a part of
    the gold labels, believe less than round 0, or that answers other class shares. ``classes``, or
    left out, refuses only a round that loses a class."""
    converged: float = 0.01
    """Stop when a round changes less than this share of the answers on a fixed slice of the pool
    (256 rows, 2,048 with folds); 0 never stops. With probe rounds no round stops a run."""

    def __post_init__(self) -> None:
        fine = 0 <= self.rounds <= MOST_ROUNDS
        require(fine, "rounds", self.rounds, f"from 0 to {MOST_ROUNDS:,}")
        require(self.pool == "all" or self.pool >= 2, "pool", self.pool, "2 or more, or `all`")
        require(self.passes >= 1, "T (passes)", self.passes, "1 or more")
        check_layers(self.dropout_layers, "dropout_layers")
        require(0 <= self.converged < 1, "converged", self.converged, "0 or more and below 1")
        require(bool(self.student) or not self.rounds, "student", self.student, "a Tune or more")
        for later in self.student[1:]:
            fine = later.head_start == "random"
            expected = "random after the first stage, or what that stage learnt would be lost"
            require(fine, "head_start", later.head_start, expected)
        for first in self.student[:1]:
            fine = first.starts_from != "teacher" or first.architecture == self.teacher.architecture
            expected = "a student that is built like its teacher: " + ", ".join(
                entry.name for entry in fields(Architecture)
            )
            require(fine, "starts_from", "teacher", expected)
        if self.probe is not None:
            for tune in (self.teacher, *self.student[:1]):
                linear = (tune.reader, tune.head) == ("head", "linear")
                expected = "a linear head in teacher and student"
                require(linear, "probe rounds", (tune.reader, tune.head), expected)
        for tune in self.student:
            expected = "a tuning of the encoder; rounds of the head alone are the entry `probe`"
            require(not isinstance(tune.tuning, Probe), "student.tuning", "probe", expected)
        if self.tapt is not None:
            full = isinstance(self.teacher.tuning, Full)
            require(full, "tapt", self.tapt, "a teacher of which all parameters are tuned")
            expected = "students that start from their teacher: others would not be adapted"
            adapted = all(tune.starts_from == "teacher" for tune in self.student[:1])
            require(adapted or not self.rounds, "tapt", self.tapt, expected)

    @property
    def total_rounds(self) -> int:
        """All rounds after round 0: those with a student of their own, and the probe rounds."""
        return total_rounds(self.rounds, self.probe.rounds if self.probe else 0)

    @property
    def is_frozen(self) -> bool:
        """Whether the encoder stays as it was pretrained: no teacher and no student trains it."""
        return isinstance(self.teacher.tuning, Probe) and not self.rounds

    def is_probe(self, number: int) -> bool:
        """Whether the round of this number, from 1, trains the head alone."""
        return self.probe is not None and number % (self.probe.rounds + 1) != 0

    def turn(self, number: int) -> int:
        """The place of a round among those of its kind, from 1: it chooses the share."""
        if self.probe is None:
            return number
        turn, place = divmod(number, self.probe.rounds + 1)
        return place or turn

    def selection(self, number: int) -> Selection:
        """How the round of this number takes its easy and hard rows."""
        return self.probe.select if self.probe and self.is_probe(number) else self.select

    @property
    def prompts(self) -> bool:
        """Whether a template and label words are needed."""
        return any(tune.reader == "prompt" for tune in (self.teacher, *self.student))


def total_rounds(rounds: int, probes: int) -> int:
    """All rounds, where so many probe rounds follow the teacher and each of ``rounds`` students.

    >>> total_rounds(1, 5), total_rounds(3, 0)
    (11, 3)
    """
    return rounds * (1 + probes) + probes


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
                f"method: `{place}` is given, but full and ptuning change what every layer reads, "
                "and probe changes no layer",
                "leave it out, or use adapter, prefix, lora, bitfit or ia3",
            )
        if place == "probe.contrast":
            raise ConfigError(
                "method: `probe.contrast` is given, but the vectors of probe rounds are fixed: "
                "a contrast has no gradient there",
                "leave it out, or give it to a student: method.student.contrast",
            )
        raise ConfigError(f"method: `{place}` is no entry of a method", _meant(place))
    return method


def _meant(place: str) -> str:
    """A hint for an unknown entry: the new name of an old one, or the nearest name there is."""
    inner = place.rpartition(".")[2]
    new_names = {old: new for new, old in OLD_NAMES.items()}
    kinds = (Method, Tune, Selection, TAPT, ProbeRounds)
    names = {field.name for kind in kinds for field in fields(kind)}
    name = new_names.get(inner) or closest(inner, sorted(names))
    return f"did you mean `{name}`? {ENTRIES}" if name else ENTRIES


def _explicit(plain: dict[str, Any]) -> dict[str, Any]:
    """None where TOML cannot say it: ``epochs`` unsets the default steps, ``shares`` the count."""

    def unset(table: Any, entry: str, by: str) -> Any:
        return {entry: None, **table} if isinstance(table, dict) and by in table else table

    student = plain.get("student", ())
    if isinstance(student, list | tuple):  # anything else is left for the validator to name
        student = tuple(unset(tune, "steps", by="epochs") for tune in student)
    probe = plain.get("probe")
    if isinstance(probe, dict) and isinstance(probe.get("select"), dict):
        default = {"count": None, "shares": PROBE_SHARES, "how": "topk"}
        probe = {**probe, "select": {**default, **unset(probe["select"], "shares", by="count")}}
    return {
        **plain,
        "teacher": unset(plain.get("teacher", {}), "steps", by="epochs"),
        "student": student,
        "select": unset(plain.get("select", {}), "count", by="shares"),
        **({} if probe is None else {"probe": probe}),
    }


def _unknown(given: Any, known: Any, place: str = "") -> Iterator[str]:
    """The entries that validation ignores: a misspelt one would change nothing."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            if key not in known:
                yield f"{place}{key}"
            else:
                yield from _unknown(value, known[key], f"{place}{key}.")
    elif isinstance(given, list | tuple) and isinstance(known, list):
        for number, (value, known_value) in enumerate(zip(given, known, strict=True)):
            yield from _unknown(value, known_value, f"{place}{number}.")
