"""``ladder.json``: simple models beside those of a run; and the choice of the model that answers.

It is written after the models and their estimate, rung by rung, and belongs to them by their
sha256: a model never waits for it, and a killed command goes on with the next rung.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from selftrain.data.fewshot import fingerprint
from selftrain.data.rows import Labelled
from selftrain.disk import LARGEST_JSON, plain_file, refusals, remove, replacing
from selftrain.errors import ConfigError, LockedError, RunError, check_format, parsed
from selftrain.method.recipes import recipe
from selftrain.runs.estimates import constants, estimated, models_of
from selftrain.runs.keep import FORMAT as KEEP_FORMAT
from selftrain.runs.keep import KEEP, LAST, OF_FROZEN, TEACHER, Choice, frozen_folder
from selftrain.runs.manifest import MANIFEST
from selftrain.runs.read import Answering, answering, of_rung, records
from selftrain.runs.train import train
from selftrain.runs.write import locked
from selftrain.training.job import Job
from selftrain.training.ladder import Models, Rung, Scorer, climb, has_frozen_rungs, names_of
from selftrain.training.machine import Machine

LADDER = "ladder.json"
FORMAT = 1
AGAIN = "remove ladder.json: the same `selftrain fit` writes it again"


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of ``ladder.json``."""

    format: int
    models: dict[int, str]
    """The sha256 of the tensors of each round's model."""
    frozen: dict[int, str]
    """The same of the run in ``rungs/frozen``; empty where there is none."""
    constants: tuple[float, ...]
    """Those of expected accuracy."""
    test: str
    """The fingerprint of the test rows; empty without any."""
    rungs: tuple[Rung, ...]

    def belongs_to(self, identity: Stored) -> bool:
        """Whether its rungs are those of the same models and test rows."""
        return replace(self, rungs=()) == identity

    @property
    def names(self) -> list[str]:
        """The rungs it has, in order."""
        return [rung.name for rung in self.rungs]


def laddered(
    folder: Path, job: Job, models: Models, test: Sequence[Labelled], machine: Machine
) -> list[Rung]:
    """The ladder of a run: rungs of these models that are on disk are read, the others written."""
    wanted, with_frozen = names_of(job, models.rounds), has_frozen_rungs(job)
    stored = read_ladder(folder)
    identity = Stored(
        FORMAT,
        models_of(records(folder)[: len(models.rounds)]),
        frozen_models(folder) if with_frozen else {},
        constants() if models.estimate is not None else (),
        fingerprint(test) if test else "",
        (),
    )
    if stored is not None and stored.belongs_to(identity) and stored.names == wanted:
        return list(stored.rungs)
    frozen = trained_frozen(folder, job, machine) if with_frozen else None
    identity = replace(identity, frozen=frozen_models(folder) if with_frozen else {})
    fits = stored is not None and stored.belongs_to(identity)
    done = stored.rungs if stored and fits and stored.names == wanted[: len(stored.names)] else ()
    rungs: list[Rung] = []
    for rung in climb(job, models, frozen, Scorer(test, machine), done):
        rungs.append(rung)
        if len(rungs) > len(done):
            write_ladder(folder, replace(identity, rungs=tuple(rungs)))
    return rungs


def trained_frozen(folder: Path, job: Job, machine: Machine) -> Models:
    """The models of the recipe ``frozen`` on the same split and seed: trained, resumed or read."""
    place = frozen_folder(folder)
    job = replace(job, method=recipe("frozen"))
    with can_be_removed(place), refusals(place, "write"), silence():
        place.parent.mkdir(mode=0o700, exist_ok=True)
        rounds = list(train(place, job, machine))
        return Models(rounds, estimated(place, job, rounds, machine))


def frozen_models(folder: Path) -> dict[int, str]:
    """The sha256 of the models of the frozen encoder; none where it was not trained yet."""
    place = frozen_folder(folder)
    with can_be_removed(place):
        return models_of(records(place)) if os.path.lexists(place / MANIFEST) else {}


@contextmanager
def can_be_removed(place: Path) -> Iterator[None]:
    """Say of a rung that is damaged, or of another configuration, that it costs little."""
    try:
        yield
    except LockedError:
        raise
    except RunError as error:
        hint = f"remove {place}: the same command trains it again, in seconds"
        raise RunError(error.message, hint) from error


@contextmanager
def silence() -> Iterator[None]:
    """Log nothing within a ``with`` block: the lines of another run would confuse a reader."""
    log = logging.getLogger("selftrain")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def read_ladder(folder: Path) -> Stored | None:
    """The ladder in a run folder, which may come from anyone; None where there is none."""
    path = folder / LADDER
    if not os.path.lexists(path):
        return None
    with refusals(path, "read"):
        raw = plain_file(path, LARGEST_JSON).read_bytes()
    check_format(raw, str(path), FORMAT, RunError)
    return parsed(Stored, raw, f"{path} is damaged", RunError, AGAIN, strict=True)


def write_ladder(folder: Path, stored: Stored) -> None:
    """Write what there is of a ladder."""
    raw, target = TypeAdapter(Stored).dump_json(stored, indent=2), folder / LADDER
    with refusals(folder, "write"), locked(folder), replacing(target, private=True) as path:
        path.write_bytes(raw + b"\n")


# ── which model answers ──────────────────────────────────────────────────────────────────────


def check_can_keep(rung: str, job: Job) -> None:
    """Raise, before anything is trained, for a rung that this run will not have."""
    if rung in OF_FROZEN and not has_frozen_rungs(job):
        raise ConfigError(
            f"there is no rung `{rung}`: the run itself is of the frozen encoder",
            "its first model: --keep teacher",
        )
    last = job.method.total_rounds
    if rung not in (*OF_FROZEN, TEACHER, LAST) and int(rung) > last:
        raise ConfigError(
            f"there is no round {rung} to keep: the method has {last} rounds",
            f"--keep {last or TEACHER}",
        )


def keep(folder: Path, rung: str) -> Answering:
    """Let the model of this rung answer for a run; an error changes nothing."""
    path = folder / KEEP
    with refusals(folder, "write"), locked(folder):
        if rung == LAST:
            remove(path)
            return answering(folder)
        chosen = of_rung(folder, rung)
        raw = TypeAdapter(Choice).dump_json(Choice(KEEP_FORMAT, rung), indent=2)
        with replacing(path, private=True) as temporary:
            temporary.write_bytes(raw + b"\n")
    return chosen
