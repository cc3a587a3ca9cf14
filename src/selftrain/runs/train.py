"""Train a job in a run folder: a round is on disk before it is yielded, and a run resumes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path

from selftrain.method.spec import Method
from selftrain.runs.manifest import Manifest
from selftrain.runs.write import Run
from selftrain.training.annotate import Annotate, annotate
from selftrain.training.job import Job
from selftrain.training.loop import Round, finished, self_train
from selftrain.training.machine import Machine

log = logging.getLogger(__name__)


def train(
    folder: Path,
    job: Job,
    machine: Machine,
    *,
    teacher: Callable[[], Round] | None = None,
    annotate: Annotate = annotate,
    part: bool = False,
) -> Generator[Round, None, None]:
    """Self-training with every round on disk before it is yielded; a stopped run resumes.

    Rounds already in the folder are yielded first. An error removes a run that starts here, unless
    it has a round by then. Where several processes train, the first writes. ``teacher`` gives a
    finished round 0 of the same definition. With ``part`` the folder may have a run of more rounds:
    its first rounds are yielded. Close it to stop earlier.
    """
    manifest = Manifest.of(job, machine)
    machine = machine if machine.cache else replace(machine, cache=folder)  # that disk has space
    ranks = machine.ranks
    for tune in (job.method.teacher, *job.method.student):
        ranks.require_rows(tune.batch_size)
    ranks.require_same("what it trains", manifest.configuration(), "give all the same files")
    with Run.start(folder, manifest, part=part) if ranks.first else Run(folder, manifest) as run:
        ranks.of_first(None)  # from here on the folder is there for all
        done = run.done(job.backbone)
        ranks.require_same(f"the rounds of {folder}", len(done), "use a disk that all share")
        for warning in run.warnings:
            log.warning(warning)
        log_progress(folder, done, job.method)
        if not done and teacher is not None:
            done = [teacher()]
            run.save(done[0])
        yield from done
        for round_ in self_train(job, done=done, annotate=annotate, machine=machine):
            run.save(round_)
            yield round_


def log_progress(folder: Path, done: Sequence[Round], method: Method) -> None:
    """Log whether a run in its folder is finished or resumes."""
    if finished(done, method):
        log.info(f"{folder} is finished: these are its rounds")
    elif done:
        log.info(f"{folder} resumes after round {done[-1].number}")
