"""Read a run folder without trusting it.

    run/
      manifest.json          task, method, seed, data and backbone, and the machine
      rounds/0/              the teacher; rounds/1/ … the students
        model.safetensors    the trained tensors only, and model.json: what they belong to;
                             of a probe round the head alone, round.json names its encoder
        lesson.parquet       the teacher's answer on each pool row, and the role of the row
        round.json           numbers, verdict, and the sha256 of the other files
      estimate.json          what is expected of the models, and labels that look wrong
      opinions.parquet       what models that did not see a row say of it, without its text
      ladder.json            simple models beside those of the run: accuracy and seconds
      rungs/frozen/          a run of its own: the same split and seed with the encoder as it is
      report.html            the page of the run, without texts, and report.json: its numbers
      keep.json              which model answers, where it is not that of the last accepted round
      parts/                 votes that other processes gave, for the round that is trained next

A folder may come from anyone. Reading one follows no link, opens only files with these names, and
checks every number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.data.rows import AuditLines
from selftrain.disk import check_local, damaged, plain_file, plain_folder, refusals, sha256
from selftrain.errors import RunError
from selftrain.escape import brief
from selftrain.runs.keep import (
    FROZEN,
    KEEP,
    OF_FROZEN,
    RUNGS,
    TEACHER,
    forget,
    frozen_folder,
    read_kept,
)
from selftrain.runs.lessons import read_lesson
from selftrain.runs.manifest import MANIFEST, Manifest
from selftrain.runs.record import LESSON, MODEL, RECORD, Record

if TYPE_CHECKING:
    from selftrain.model.backbone import Backbone
    from selftrain.model.classifier import Classifier

LOCK, ROUNDS, PARTS = ".lock", "rounds", "parts"
PAGES = ("report.html", "report.json")
RUN_FILES = frozenset(
    (
        *(MANIFEST, ROUNDS, PARTS, LOCK, KEEP, RUNGS),
        *("estimate.json", "opinions.parquet", "ladder.json", *PAGES),
    )
)
"""What a run folder holds at its top; nothing else may write there."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Which model answers for a run."""

    folder: Path
    """The run that has it: that of a rung, where one is kept."""
    number: int
    """Its round in there."""
    rung: str | None
    """The rung that a person keeps; None where the last accepted round answers."""


def load(
    folder: str | Path, number: int | None = None, *, backbone: Backbone | str | Path | None = None
) -> Classifier:
    """The model that answers for a run, or that of the given round, calibrated by its estimate.

    An embedded backbone needs no name; any other must be given, because a path or a name in a run
    folder is not trusted.
    """
    folder = Path(folder)
    if number is None:
        chosen = answering(folder)
        folder, number = chosen.folder, chosen.number
    record = _chosen(folder, number)
    place = verified(folder, record, MODEL)

    from selftrain.model.build import load as load_model
    from selftrain.model.build import with_saved_head
    from selftrain.runs.estimates import temperature_of

    if record.encoder_of is None:
        model = load_model(place, backbone)
    else:
        base = records(folder)[record.encoder_of]
        model = with_saved_head(load_model(verified(folder, base, MODEL), backbone), place)
    model.temperature = temperature_of(folder, record)
    model.precision = read_manifest(folder).precision
    return model


def answering(folder: str | Path) -> Answering:
    """The model that answers for a run: that of the last accepted round, unless one is kept."""
    folder = Path(folder)
    return of_rung(folder, read_kept(folder))


def of_rung(folder: Path, rung: str | None) -> Answering:
    """The model of a rung, or of the last accepted round; an error where there is none."""
    if rung is None:
        return Answering(folder, _chosen(folder, None).number, None)
    if rung not in OF_FROZEN:
        number = 0 if rung == TEACHER else int(rung)
        return Answering(folder, _chosen(folder, number, forget(folder)).number, rung)
    place = frozen_folder(folder)
    if not (place / MANIFEST).exists():
        raise RunError(f"{folder} keeps `{rung}`, but {place} has no run", forget(folder))
    if read_manifest(place).task != read_manifest(folder).task:
        raise damaged(place, "is a run of another task")
    number = _chosen(place, 0 if rung == FROZEN else None).number
    return Answering(place, number, rung)


def caveats(folder: str | Path, number: int | None = None) -> Iterator[str]:
    """What to know before the model of a round is used, or else the one that answers.

    A run may be unfinished, and a round may have been refused.
    """
    folder = Path(folder)
    if number is None:
        model = answering(folder)
        folder, number = model.folder, model.number
    chosen, last = _chosen(folder, number), records(folder)[-1]
    asked = read_manifest(folder).total_rounds
    if not last.last and last.number < asked:
        yield (
            f"{folder} is not finished: it has {last.number} of {asked} rounds; "
            "the `selftrain fit` that started it goes on"
        )
    if not chosen.accepted:
        yield f"round {chosen.number} of {folder} was refused: {brief(chosen.why)}"


def lessons(folder: str | Path) -> Iterator[tuple[int, AuditLines]]:
    """The number and the audit of every finished round, checked as they are read."""
    folder = Path(folder)
    labels = labels_of(folder)
    for record in records(folder):
        place = verified(folder, record, [LESSON])
        yield record.number, read_lesson(place / LESSON, labels)


def labels_of(folder: Path) -> tuple[str, ...]:
    """The classes of a run, in the order of its probabilities."""
    labels = read_manifest(folder).task.get("labels")
    if not (isinstance(labels, list) and all(isinstance(label, str) for label in labels)):
        raise damaged(folder / MANIFEST, "names no classes")
    return tuple(labels)


def check_place(folder: str | Path) -> None:
    """Raise unless a run may start in this folder, or resume in it."""
    existing(Path(folder))


def read_manifest(folder: str | Path) -> Manifest:
    """The manifest of a run folder; an error where the folder is none."""
    place = Path(folder)
    with refusals(place, "read"):
        is_run = place.is_dir() and os.path.lexists(place / MANIFEST)
        is_model = place.is_dir() and os.path.lexists(place / MODEL[0])
    manifest = existing(place) if is_run else None
    if manifest is None:
        what = "is a saved model" if is_model else "is not a run folder"
        hint = (
            f"read it in Python: SelfTrainingClassifier.load({str(folder)!r})"
            if is_model
            else "write one: selftrain fit labelled.csv --unlabelled pool.csv -o run"
        )
        raise RunError(f"{folder} {what}: it has no {MANIFEST}", hint)
    return manifest


def existing(folder: Path) -> Manifest | None:
    """The manifest of a run folder; None where a run may start; any other folder is an error."""
    check_local(folder, "a run folder")
    with refusals(folder, "read"):
        if not folder.exists():
            return None
        if not folder.is_dir():
            raise RunError(f"{folder} is a file; a run is a folder", "choose another: -o NEW")
        names = {path.name for path in folder.iterdir()}
        if MANIFEST in names:
            return Manifest.read(folder / MANIFEST)
    foreign = sorted(names - {LOCK, f"{MANIFEST}.tmp"})  # a killed start may leave these two
    if foreign:
        raise RunError(
            f"{folder} is neither empty nor a run folder: it holds {foreign[0]!r}",
            "choose another folder: -o NEW",
        )
    return None


def belongs_to(folder: Path, path: Path) -> bool:
    """Whether a path leads to a part of a run folder, which nothing else may write."""
    place, inside = (Path(os.path.realpath(each)) for each in (folder, path))
    if not inside.is_relative_to(place) or inside == place:
        return False
    return inside.relative_to(place).parts[0] in RUN_FILES


def records(folder: Path) -> list[Record]:
    """The records of all finished rounds: 0, 1, 2 … without a gap."""
    read_manifest(folder)
    rounds = folder / ROUNDS
    if not os.path.lexists(rounds):  # killed after the manifest, before anything else
        return []
    with refusals(rounds, "read"):
        names = [path.name for path in plain_folder(rounds).iterdir()]
        numbers = sorted(int(name) for name in names if re.fullmatch("0|[1-9][0-9]*", name))
        for place, number in enumerate(numbers):
            if place != number:
                raise damaged(rounds / str(number), f"is there, but round {place} is not")
        found = [Record.read(rounds / str(number)) for number in numbers]
    for record in found:
        base = record if record.encoder_of is None else found[record.encoder_of]
        if base.encoder_of is not None or (base is not record and base.failed):
            path = rounds / str(record.number) / RECORD
            raise damaged(path, f"has the encoder of round {base.number}, which trained none")
    return found


def verified(folder: Path, record: Record, names: Collection[str]) -> Path:
    """The folder of a round, after the sha256 of each named file was compared with its record."""
    place = folder / ROUNDS / str(record.number)
    with refusals(place, "read"):
        for name in names:
            if sha256(plain_file(place / name)) != record.files[name]:
                raise damaged(place / name, "is not what was written: its sha256 differs")
    return place


LEAVE_OUT = "leave the round out: that gives the last accepted one"


def _chosen(folder: Path, number: int | None, hint: str = LEAVE_OUT) -> Record:
    """The record of the given round, or of the last accepted one."""
    rounds = records(folder)
    if not rounds:
        raise RunError(f"{folder} has no whole round yet", "give the command that started it again")
    if number is None:
        return [record for record in rounds if record.accepted][-1]
    if not 0 <= number < len(rounds):
        raise RunError(f"{folder} has no round {number}; its last one is {len(rounds) - 1}", hint)
    if rounds[number].failed:
        why = brief(rounds[number].why)
        raise RunError(f"round {number} of {folder} has no model: {why}", hint)
    return rounds[number]
