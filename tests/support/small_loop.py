"""The loop on a tiny backbone, and annotators that watch it or answer one class."""

from __future__ import annotations

from dataclasses import replace

from by_hand import MACHINE, METHOD, SPLIT, STUDENT, TASK, votes
from selftrain.model.build import copy
from selftrain.training.annotate import annotate
from selftrain.training.guard import Verdict
from selftrain.training.job import Job
from selftrain.training.loop import self_train

SEED = 12
UNMOVED = replace(STUDENT, learning_rate=1e-60)  # no step: zero in the float32 of the weights


def accept(labels, answers) -> Verdict:
    """A guard that lets every student through: five steps do not make a good one."""
    return Verdict(True)


def run(backbone, method=METHOD, split=SPLIT, seed=SEED, guard=accept, **more):
    given = {"guard": guard, "machine": MACHINE, **more}
    return list(self_train(Job(TASK, split, method, backbone, seed), **given))


class Watched:
    """An annotator that remembers what it was given: the seam an LLM would use."""

    def __init__(self) -> None:
        self.teachers, self.pools, self.passes = [], [], []

    def __call__(self, teacher, pool, passes, *, seed, machine):
        self.teachers.append(copy(teacher))
        self.pools.append(list(pool))
        self.passes.append(passes)
        return annotate(teacher, pool, passes, seed=seed, machine=machine)


def one_sided(teacher, pool, passes, *, seed, machine):
    """An annotator that takes everything for the first class."""
    yield list(pool), votes([[[0.9, 0.1]] * len(pool)] * passes)
