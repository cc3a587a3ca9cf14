"""Write a run folder: a round is on disk before its line is printed.

A round is written as ``N.tmp``, synced and renamed: a folder whose name is a number is complete.
A killed run resumes from its last finished round. Every draw is named by seed and round, so the run
ends with the same bits as one that was never killed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from selftrain.data.rows import Lesson
from selftrain.disk import damaged, plain_folder, refusals, remove, replacing, sha256, sync
from selftrain.errors import LockedError, RunError
from selftrain.runs.lessons import read_lesson, write_lesson
from selftrain.runs.manifest import MANIFEST, NOISE, Manifest, differences
from selftrain.runs.read import LOCK, ROUNDS, existing, records, verified
from selftrain.runs.record import LESSON, RECORD, Record

if TYPE_CHECKING:
    from selftrain.model.backbone import Backbone
    from selftrain.training.loop import Round


class Run:
    """A run folder that is written, locked against other writers until it is closed."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        warnings: tuple[str, ...] = (),
        resources: ExitStack | None = None,
    ) -> None:
        """Without ``resources`` another process has the lock, and this one writes nothing."""
        self.folder = folder
        self.manifest = manifest
        self.warnings = warnings
        """What the user should know before the run resumes."""
        self._resources = resources

    @classmethod
    def start(cls, folder: str | Path, manifest: Manifest, *, part: bool = False) -> Run:
        """Start a run in a new or empty folder, or resume a run of the same configuration.

        A resumed run may ask for another number of rounds, but not for fewer than it has: that is
        another result, and an error unless ``part`` says that the first rounds are enough. An error
        removes a run that starts here, unless it has a round by then.
        """
        folder = Path(folder)
        existing(folder)  # before the lock file exists, so that a foreign folder stays as it is
        with refusals(folder, "write"), ExitStack() as resources:
            new_folders = [place for place in (folder, *folder.parents) if not place.exists()]
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            resources.enter_context(locked(folder))
            earlier = existing(folder)
            if earlier is None:
                resources.enter_context(_removed_after_error(folder, new_folders))
                _write_manifest(folder, manifest)
                sync(folder.parent)
            else:
                check_resumes(folder, manifest, part=part)
                if not _has_more_rounds(folder, manifest) and earlier.method != manifest.method:
                    _write_manifest(folder, replace(earlier, method=manifest.method))
            _clear_rounds(folder)
            warnings = machine_warnings(earlier or manifest, manifest)
            return cls(folder, manifest, warnings, resources.pop_all())

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._resources is not None:
            self._resources.__exit__(*error)

    def done(self, backbone: Backbone) -> list[Round]:
        """The finished rounds that are asked for, in order: ``self_train`` resumes after them."""
        from selftrain.model.build import load as load_model
        from selftrain.model.build import with_saved_head
        from selftrain.training.loop import Round, last_accepted

        rounds: list[Round] = []
        for record in records(self.folder)[: self.manifest.total_rounds + 1]:
            place = verified(self.folder, record, record.files)
            if record.failed:
                model = last_accepted(rounds).model
            elif record.encoder_of is not None:
                model = with_saved_head(rounds[record.encoder_of].model, place)
            else:
                model = load_model(place, backbone)
            audit = read_lesson(place / LESSON, self.manifest.task["labels"])
            lesson = Lesson(gold=(), audit=audit)
            verdict = (record.accepted, record.why, record.last, record.encoder_of)
            rounds.append(Round(record.number, model, lesson, record.numbers, *verdict))
        return rounds

    def save(self, round_: Round) -> None:
        """Write a round; when this returns, all of it is on disk."""
        if self._resources is None:
            return
        verdict = (round_.accepted, round_.why, round_.last)
        numbers = dict(round_.numbers)
        record = Record(round_.number, *verdict, numbers, files={}, encoder_of=round_.encoder_of)
        with replacing(self.folder / ROUNDS / str(round_.number), private=True) as place:
            place.mkdir(mode=0o700)
            if not record.failed:
                round_.model.save(place, head_alone=round_.encoder_of is not None)
            write_lesson(place / LESSON, round_.lesson)
            files = {path.name: sha256(path) for path in sorted(place.iterdir())}
            _write_json(place / RECORD, replace(record, files=files))


def check_resumes(folder: Path, manifest: Manifest, *, part: bool = False) -> None:
    """Raise where a folder has a run that does not resume as this one; nothing is written."""
    earlier = existing(folder)
    if earlier is not None:
        any_rounds = part or not _has_more_rounds(folder, manifest)
        _check_same(folder, earlier, manifest, any_rounds=any_rounds)


def _has_more_rounds(folder: Path, manifest: Manifest) -> bool:
    """Whether a folder has more rounds than are asked for."""
    return os.path.lexists(folder / ROUNDS / str(manifest.total_rounds + 1))


def locked(folder: Path) -> AbstractContextManager[object]:
    """Keeps other writers out of a run folder."""
    path = folder / LOCK
    if path.is_symlink():
        raise damaged(path, "is a link")
    try:
        return FileLock(path, mode=0o600).acquire(blocking=False)
    except Timeout:
        raise LockedError(
            f"{folder} is being written by another process",
            "wait until it has ended, or start in another folder: -o NEW",
        ) from None


@contextmanager
def _removed_after_error(folder: Path, new_folders: Sequence[Path]) -> Iterator[None]:
    """Remove a run without a round, and the folders created for it, if an error ends this."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # a folder that is not empty stays
            if (folder / ROUNDS).exists():
                (folder / ROUNDS).rmdir()
            for name in (MANIFEST, LOCK):
                remove(folder / name)
            for place in new_folders:
                place.rmdir()
        raise


def _clear_rounds(folder: Path) -> None:
    """Create the folder of rounds, and remove what a killed writer left in it."""
    rounds = folder / ROUNDS
    if not os.path.lexists(rounds):
        rounds.mkdir(mode=0o700)
        sync(folder)
    for leftover in plain_folder(rounds).iterdir():
        if re.fullmatch(r"(0|[1-9][0-9]*)\.tmp", leftover.name):  # others are somebody's own
            remove(leftover)


def _check_same(folder: Path, old: Manifest, new: Manifest, *, any_rounds: bool) -> None:
    if old.precision != new.precision:
        raise RunError(
            f"{folder} holds a run in {old.precision}, this one would go on in {new.precision}",
            f"--precision {old.precision}, or start in another folder: -o NEW",
        )
    for place, before, after in differences(old.configuration(), new.configuration()):
        if any_rounds and place == "method.rounds":
            continue
        raise RunError(
            f"{folder} holds a run of another configuration: "
            f"{place} was {before!r:.60}, is now {after!r:.60}",
            "give the same configuration to resume, or start in another folder: -o NEW",
        )


def machine_warnings(old: Manifest, new: Manifest) -> tuple[str, ...]:
    """Warnings where a run goes on with another machine or other packages."""
    effects = dict.fromkeys(NOISE, "its dropout draws other noise")
    return tuple(
        f"the run was started with {place} {before}, goes on with {after}: "
        f"{effects.get(place, 'its result may differ in the last bits')}"
        for place, before, after in differences(old.machine(), new.machine())
    )


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    with replacing(folder / MANIFEST, private=True) as path:
        _write_json(path, manifest)


def _write_json(path: Path, value: Manifest | Record) -> None:
    path.write_text(json.dumps(asdict(value), indent=2, allow_nan=False) + "\n", "utf-8")
