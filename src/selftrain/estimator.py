"""The scikit-learn face: fit, predict, predict_proba, save, load.

from selftrain import SelfTrainingClassifier

model = SelfTrainingClassifier().fit(texts, labels, unlabelled=pool)
model.predict(["a fine film"])
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from markupsafe import Markup
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from selftrain import html
from selftrain.data.columns import clean_label
from selftrain.data.python_labels import (
    changed_by_cleaning,
    class_name,
    classes_of,
    from_plain,
    to_plain,
)
from selftrain.data.read import PoolFiles, open_pool
from selftrain.data.rows import Example, Labelled, Notes, Split, example_of, is_empty, missing
from selftrain.data.split import make_split
from selftrain.disk import check_new_folder, plain_file, refusals, replacing
from selftrain.errors import DataError, ModelError, RunError
from selftrain.runs.manifest import MANIFEST

if TYPE_CHECKING:
    from selftrain.data.pool import Draws
    from selftrain.data.task import Task
    from selftrain.method.spec import Method
    from selftrain.model.classifier import Classifier
    from selftrain.runs.watch import Watch
    from selftrain.training.estimate import Estimate
    from selftrain.training.loop import Round

Texts = Iterable[str] | Iterable[tuple[str, str]]
log = logging.getLogger(__name__)

FACTS = "estimator.json"
LARGEST_FACTS = 1_000_000  # bytes
SAME_CLASS = "labels that differ by blanks, invisible characters or coded accents alone: one class"


class SelfTrainingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier from a few labels and many unlabelled texts.

    Texts are strings, or pairs of strings. Unlabelled texts are ``unlabelled=``, or texts in ``X``
    with a label of None or NaN. Labels are strings, numbers or truth values; predictions have the
    same type, also after ``save`` and ``load``. Parameters are those of ``selftrain fit``;
    ``changes`` is its method table. ``progress`` shows bars with the time left; None shows them in
    a terminal or a notebook alone.

    After ``fit``: ``classes_``, ``model_``, ``rounds_`` (what each round gave), ``estimate_`` (the
    expected accuracy of each round, labels that look wrong; None where the labels tell too little),
    and ``notes_`` (counts of dropped or changed rows; also given as warnings).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [str],
        "preset": [StrOptions({"laptop", "paper"})],
        "backbone": [str, Path, None],
        "rounds": [Interval(Integral, 0, None, closed="left"), None],
        "changes": [Mapping, None],
        "template": [str, None],
        "words": [Mapping, None],
        "seed": [Integral],
        "device": [StrOptions({"cpu", "cuda", "mps"}), None],
        "threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["boolean"],
        "progress": ["boolean", None],
    }

    def __init__(
        self,
        method: str = "supcon",
        *,
        preset: str = "laptop",
        backbone: str | Path | None = None,
        rounds: int | None = None,
        changes: Mapping[str, Any] | None = None,
        template: str | None = None,
        words: Mapping[Any, str] | None = None,
        seed: int = 12,
        device: str | None = None,
        threads: int | None = None,
        verbose: bool = False,
        progress: bool | None = None,
    ) -> None:
        self.method = method
        self.preset = preset
        self.backbone = backbone
        self.rounds = rounds
        self.changes = changes
        self.template = template
        self.words = words
        self.seed = seed
        self.device = device
        self.threads = threads
        self.verbose = verbose
        self.progress = progress

    def fit(
        self,
        X: Texts,  # noqa: N803  (scikit-learn's name)
        y: Iterable[Any],
        unlabelled: Texts | str | None = None,
    ) -> SelfTrainingClassifier:
        """Train on labelled texts, and on unlabelled ones: ``unlabelled``, or with label None.

        A string with ``://`` is the address of a file, a folder or a glob with the unlabelled ones.
        """
        from selftrain.method.changes import backbone_for
        from selftrain.model.backbone import load
        from selftrain.runs.lines import line_of, logged_to
        from selftrain.training.draw import draws_of
        from selftrain.training.estimate import estimate
        from selftrain.training.job import Job
        from selftrain.training.loop import last_accepted, self_train
        from selftrain.training.machine import Machine
        from selftrain.training.preflight import preflight, prompt_unused

        self._validate_params()
        labels = labels_of(y)
        classes = classes_of(labels)
        notes = Notes()
        notes.add(SAME_CLASS, changed_by_cleaning(labels, classes))
        method = self._method()
        draws = partial(draws_of, method, self.seed)
        split = split_of(examples_of(X), labels, pool_of(unlabelled, notes), notes, draws)
        task = self._task(classes, pair=split.labelled[0].example.pair is not None)
        backbone = load(self.backbone or backbone_for(method))
        counted = [f"{what}: {count}" for what, count in notes]
        job = Job(task, split, method, backbone, self.seed)
        unused = prompt_unused({"template": self.template, "words": self.words}, method)
        for note in (*counted, *unused, *preflight(job)):
            warnings.warn(note, stacklevel=2)
        rounds: list[Round] = []
        lines = logged_to(logging.StreamHandler()) if self.verbose else nullcontext()
        with lines, self._watch() as watch:
            machine = Machine(self.device, self.threads, watch.progress)
            for round_ in self_train(job, machine=machine):
                log.info(line_of(round_, method.total_rounds))
                rounds.append(round_)
            self.estimate_ = estimate(job, rounds, machine)
        self.notes_ = dict(notes)
        final = last_accepted(rounds)
        self.model_: Classifier = final.model
        self.rounds_ = [replace(round_, readings=None) for round_ in rounds]  # no pool is kept
        if self.estimate_ is not None:
            self.model_.temperature = self.estimate_.of(final.number).temperature
        self.classes_ = classes
        return self

    def _watch(self) -> Watch:
        from selftrain.runs.watch import Watch, is_watched

        shown = is_watched() if self.progress is None else self.progress
        return Watch(quiet=not shown, later=True)

    def _task(self, classes: Sequence[Any], *, pair: bool) -> Task:
        from selftrain.data.task import Task

        words = {class_name(label): word for label, word in (self.words or {}).items()}
        task = Task("task", tuple(map(class_name, classes)), pair=pair)
        return task.changed({"template": self.template, "words": words})

    def _method(self) -> Method:
        from selftrain.method.changes import given, method_of

        flags = given({"name": self.method, "rounds": self.rounds})
        return method_of({**(self.changes or {}), **flags}, self.preset)

    def predict_proba(self, X: Texts) -> Any:  # noqa: N803
        """The probability of each class, [N, C], in the order of ``classes_``."""
        check_is_fitted(self, "model_")
        examples = examples_of(X)
        if any((example.pair is not None) != self.model_.task.pair for example in examples):
            expected = "pairs of strings" if self.model_.task.pair else "strings"
            raise DataError(f"the model was trained on {expected}", f"give a list of {expected}")
        with self._watch() as watch:
            return self.model_.probabilities(examples, watch.progress).double().numpy()

    def predict(self, X: Texts) -> Any:  # noqa: N803
        """The most probable label of each text."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def save(self, folder: str | Path) -> None:
        """Write the model to a new folder: labels, trained tensors, which backbone it needs."""
        check_is_fitted(self, "model_")
        check_new_folder(Path(folder), "a saved model")
        place = Path(folder).resolve()
        with refusals(place, "write"):
            place.parent.mkdir(parents=True, exist_ok=True)
        facts = {
            "params": plain_params(self.get_params()),
            **to_plain(self.classes_),
            "temperature": self.model_.temperature,
        }
        text = json.dumps(facts, indent=2, default=plain_value) + "\n"
        with replacing(place) as target:
            self.model_.save(target)
            (target / FACTS).write_text(text, "utf-8")

    @classmethod
    def load(
        cls, folder: str | Path, *, backbone: str | Path | None = None
    ) -> SelfTrainingClassifier:
        """A fitted classifier, from what ``save`` wrote or from a run of ``selftrain fit``.

        A backbone that is not embedded must be given: a name in a file is not followed.
        """
        from selftrain.model.build import load as load_model
        from selftrain.model.embedded import EMBEDDED
        from selftrain.runs import read as runs

        place = Path(folder)
        is_run = (place / MANIFEST).exists()
        model = runs.load(place, backbone=backbone) if is_run else load_model(place, backbone)
        facts = place / FACTS
        if not is_run:  # a model may be in a hub's cache, which is made of links
            facts = Path(os.path.realpath(facts))
        params, classes, temperature = read_facts(facts, model.labels)
        for caveat in runs.caveats(place) if is_run else ():
            warnings.warn(caveat, stacklevel=2)
        if params.get("backbone") not in EMBEDDED:  # the next fit would follow it
            params["backbone"] = backbone
        self = cls(**params)
        self.model_, self.classes_ = model, classes
        if not is_run:
            model.temperature = temperature
        return self

    def _html_repr(self) -> str:
        """What a notebook shows: of a fitted classifier its rounds, else scikit-learn's diagram."""
        if not hasattr(self, "rounds_"):
            return str(estimator_html_repr(self))
        accuracies = [expected_of(self.estimate_, round_) for round_ in self.rounds_]
        return rounds_html(repr(self), self.rounds_, accuracies)

    def _repr_html_(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._html_repr()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


# ── in a notebook ────────────────────────────────────────────────────────────────────────────


def expected_of(estimate: Estimate | None, round_: Round) -> float | None:
    """The expected accuracy of the model of a round; None where nothing is expected."""
    if estimate is None or round_.failed:
        return None
    return estimate.of(round_.number).expected.accuracy


def rounds_html(title: str, rounds: Sequence[Round], accuracies: Sequence[float | None]) -> str:
    """A small table of rounds, with a line through what is expected of them."""
    rows = [
        [
            f"round {round_.number}" if round_.number else "teacher",
            round_.numbers.get("picked", html.NOTHING),
            html.NOTHING if accuracy is None else f"{accuracy:.2f}",
            "yes" if round_.accepted else "no",
        ]
        for round_, accuracy in zip(rounds, accuracies, strict=True)
    ]
    table = html.table(["round", "picked", "expected accuracy", "accepted"], rows)
    line = html.sparkline(accuracies, "expected accuracy by round")
    return str(Markup("<p><b>{}</b></p>{}{}").format(html.shortened(title), line, table))


# ── texts and labels as people have them ─────────────────────────────────────────────────────


def pool_of(unlabelled: Texts | str | None, notes: Notes) -> Sequence[Example] | PoolFiles:
    """The unlabelled texts that ``fit`` is given; those at an address are not read yet."""
    if isinstance(unlabelled, str) and "://" in unlabelled:
        return open_pool([unlabelled], notes=notes)
    return () if unlabelled is None else examples_of(unlabelled)


def split_of(
    examples: Sequence[Example],
    labels: Sequence[Any],
    more: Sequence[Example] | PoolFiles,
    notes: Notes,
    draws: Draws,
) -> Split:
    """The split of a run: labelled rows, and the pool of rows without a label."""
    if len(examples) != len(labels):
        raise DataError(
            f"{len(examples)} texts have {len(labels)} labels; expected one for each",
            "fit(texts, labels, unlabelled=pool)",
        )
    gold, pool = [], []
    for number, (example, label) in enumerate(zip(examples, labels, strict=True), 1):
        if missing(label):
            pool.append(example)
        elif is_empty(example):
            raise DataError(f"text {number} is empty, and labelled {label!r}", "leave it out")
        else:
            gold.append(Labelled(example, class_name(label)))
    if not pool and not isinstance(more, PoolFiles) and not more:
        raise DataError(
            "there are no unlabelled texts to learn from",
            "fit(texts, labels, unlabelled=pool), or give some texts the label None",
        )
    if isinstance(more, PoolFiles) and pool:
        raise DataError(
            f"{len(pool)} texts have no label, and the pool has an address",
            "put them into the pool, or leave them out",
        )
    every = more if isinstance(more, PoolFiles) else [*pool, *more]
    split = make_split(gold, every, notes=notes, draws=draws)
    notes.counts.pop("numeric labels kept as strings", None)  # here they come back as numbers
    return split


def examples_of(texts: Texts) -> list[Example]:
    """Strings, or pairs of strings, as examples; two columns of a frame or an array are a pair."""
    if isinstance(texts, str):
        raise DataError(f"texts are one string, {texts!r:.40}; expected a list", "[text]")
    if not isinstance(texts, Iterable):
        raise DataError(f"texts are {texts!r:.40}; expected a list of strings", "[text]")
    rows = texts.itertuples(index=False) if hasattr(texts, "itertuples") else texts
    return [example_of(number, row) for number, row in enumerate(rows, 1)]


def labels_of(y: Iterable[Any]) -> list[Any]:
    """The labels as a list."""
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise DataError(
            f"the labels are {y!r:.40}; expected a list, a label for each text",
            "fit(texts, labels, unlabelled=pool)",
        )
    return list(y)


# ── a fitted classifier on disk ──────────────────────────────────────────────────────────────


def plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters for a file; label words go by the names of their classes, as in the model."""
    words = params["words"]
    named = words and {class_name(label): word for label, word in words.items()}
    return {**params, "words": named}


def plain_value(value: object) -> object:
    """A value of a parameter that JSON does not know, as one that it does; else an error."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise RunError(
        f"a parameter holds {value!r:.60}, which no file brings back",
        "give plain values: texts, numbers, lists and dicts",
    )


def read_facts(path: Path, labels: Sequence[str]) -> tuple[dict[str, Any], Any, float]:
    """Parameters, original labels (strings where a model was saved without them), temperature."""
    if not os.path.lexists(path):
        return {}, np.asarray(labels), 1.0
    try:
        facts = json.loads(plain_file(path, LARGEST_FACTS).read_text("utf-8"))
        params = dict(facts["params"])
        classes = from_plain(list(facts["classes"]), facts.get("type"))
        if not params.keys() <= SelfTrainingClassifier().get_params().keys():
            raise ValueError("it has unknown parameters")
        if [class_name(label) for label in classes] != list(map(clean_label, labels)):
            raise ValueError("its classes are not those of the model")
        temperature = float(facts.get("temperature", 1.0))
        if not 0.01 < temperature < 100:  # as ``expected.Temperature``, without torch
            raise ValueError(f"its temperature is {temperature}")
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}", "copy the folder again") from None
    return params, classes, temperature
