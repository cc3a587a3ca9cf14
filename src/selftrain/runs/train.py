"""A method on a task over seeds, beside the references that keep it honest.

The test rows are read here once, after the run, by ``evaluate``; nothing is chosen by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from selftrain.data.rows import Example, Split
from selftrain.data.task import Task
from selftrain.method.spec import Method
from selftrain.model.backbone import Backbone
from selftrain.runs.manifest import Manifest
from selftrain.runs.write import Run
from selftrain.training.annotate import Annotate, annotate
from selftrain.training.evaluate import Predictor
from selftrain.training.loop import Round, finished, self_train
from selftrain.training.machine import Machine, unheard


def train(
    folder: Path,
    task: Task,
    split: Split,
    method: Method,
    *,
    backbone: Backbone,
    seed: int,
    on: Machine,
    say: Callable[[str], object] = unheard,
    teacher: Callable[[], Round] | None = None,
    annotate: Annotate = annotate,
    part: bool = False,
) -> Iterator[Round]:
    """Self-training with every round on disk before it is handed on; goes on where it stopped.

    Rounds already in the folder are handed on first. ``say`` is told, before any round, what is
    found there. A run begun here is taken back after an error, unless it holds a round by then.
    ``teacher`` gives a round 0 that is there already, made by the same definition. With ``part``
    a run of more rounds will do, of which the first are handed on.
    """
    manifest = Manifest.of(task, split, method, backbone=backbone, seed=seed, on=on)
    on = on if on.cache else replace(on, cache=folder)  # where the run is, there is room for it
    with Run.start(folder, manifest, part=part) as run:
        done = run.done(backbone)
        for note in (*run.notes, *standing(folder, done, method)):
            say(note)
        if not done and teacher is not None:
            done = [teacher()]
            run.save(done[0])
        yield from done
        for round_ in self_train(
            task,
            split,
            method,
            backbone=backbone,
            seed=seed,
            done=done,
            annotate=annotate,
            on=on,
        ):
            run.save(round_)
            yield round_


def standing(folder: Path, done: Sequence[Round], method: Method) -> Iterator[str]:
    """How far a run found in its folder has come."""
    if finished(done, method):
        yield f"{folder} is finished: these are its rounds"
    elif done:
        yield f"{folder} goes on after round {done[-1].number}"


@dataclass(frozen=True, slots=True)
class Watched:
    """A predictor that answers in slices, so that a machine can show how far it has come."""

    model: Predictor
    on: Machine
    rows: int = 256
    """Of a slice."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the model."""
        return self.model.labels

    def probabilities(self, examples: Sequence[Example]) -> Tensor:
        """Those of the model, [N, C]."""
        starts = range(0, len(examples), self.rows)
        return torch.cat(
            [
                self.model.probabilities(examples[start : start + self.rows])
                for start in self.on.track(starts, "evaluating", len(starts))
            ]
        )
