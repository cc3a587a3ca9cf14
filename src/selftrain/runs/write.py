"""A run folder being written: everything a round gave is on disk before its line is printed.

A round is written as ``N.tmp``, brought to disk and renamed: a folder with a number for a name is
whole. So a run killed at any moment goes on from its last whole round, and since every draw is
named by seed and round, it ends with the same bits as if nothing had happened.
"""

from __future__ import annotations

import json
import os
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
from selftrain.runs.manifest import MANIFEST, Manifest, differences
from selftrain.runs.read import LOCK, ROUNDS, existing, records, verified
from selftrain.runs.record import LESSON, RECORD, Record

if TYPE_CHECKING:
    from selftrain.model.backbone import Backbone
    from selftrain.training.loop import Round


class Run:
    """A run folder being written, locked against every other writer until it is closed."""

    def __init__(
        self, folder: Path, manifest: Manifest, notes: tuple[str, ...], held: ExitStack
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.notes = notes
        """What the user should be told before the run goes on."""
        self._held = held

    @classmethod
    def start(cls, folder: str | Path, manifest: Manifest, *, part: bool = False) -> Run:
        """Begin a run in a new or empty folder, or go on with a run of the same configuration.

        Another number of rounds may be asked of it, but not fewer than it has: that would be
        another result, and is refused unless a ``part`` of what the folder holds is enough.
        A run begun here is taken back after an error, unless it holds a round by then.
        """
        folder = Path(folder)
        existing(folder)  # before the lock is made, so that a foreign folder stays as it is
        with refusals(folder, "write"), ExitStack() as held:
            made = [place for place in (folder, *folder.parents) if not place.exists()]
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held.enter_context(_locked(folder))
            earlier = existing(folder)
            if earlier is None:
                held.enter_context(_begun(folder, made))
                _write_manifest(folder, manifest)
                sync(folder.parent)
            else:
                beyond = folder / ROUNDS / str(manifest.method["rounds"] + 1)
                fewer = os.path.lexists(beyond)  # rounds are asked for than there are
                _check_same(folder, earlier, manifest, any_rounds=part or not fewer)
                if not fewer and earlier.method != manifest.method:
                    _write_manifest(folder, replace(earlier, method=manifest.method))
            _clear_rounds(folder)
            return cls(folder, manifest, _notes(earlier or manifest, manifest), held.pop_all())

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: Any) -> None:
        self._held.__exit__(*error)

    def done(self, backbone: Backbone) -> list[Round]:
        """The whole rounds of those asked for, in order: what ``self_train`` goes on from."""
        from selftrain.model.build import load as load_model
        from selftrain.training.loop import Round, last_accepted

        rounds: list[Round] = []
        for record in records(self.folder)[: self.manifest.method["rounds"] + 1]:
            here = verified(self.folder, record, record.files)
            model = last_accepted(rounds).model if record.failed else load_model(here, backbone)
            audit = read_lesson(here / LESSON, self.manifest.task["labels"])
            lesson = Lesson(gold=(), audit=audit)
            verdict = (record.accepted, record.why, record.last)
            rounds.append(Round(record.number, model, lesson, record.numbers, *verdict))
        return rounds

    def save(self, round_: Round) -> None:
        """Write a round; when this returns, all of it is on disk."""
        verdict = (round_.accepted, round_.why, round_.last)
        record = Record(round_.number, *verdict, numbers=dict(round_.numbers), files={})
        with replacing(self.folder / ROUNDS / str(round_.number), private=True) as here:
            here.mkdir(mode=0o700)
            if not record.failed:
                round_.model.save(here)
            write_lesson(here / LESSON, round_.lesson)
            files = {path.name: sha256(path) for path in sorted(here.iterdir())}
            _write_json(here / RECORD, replace(record, files=files))


def _locked(folder: Path) -> AbstractContextManager[object]:
    path = folder / LOCK
    if path.is_symlink():
        raise damaged(path, "is a link")
    try:
        return FileLock(path, mode=0o600).acquire(blocking=False)
    except Timeout:
        raise LockedError(
            f"{folder} is being written by another process",
            "wait until that one has ended, or begin in another folder: -o NEW",
        ) from None


@contextmanager
def _begun(folder: Path, made: Sequence[Path]) -> Iterator[None]:
    """Take back a run without a round, and the folders made for it, if an error ends this."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # a folder that holds something, a round or anything else, stays
            if (folder / ROUNDS).exists():
                (folder / ROUNDS).rmdir()
            for name in (MANIFEST, LOCK):
                remove(folder / name)
            for place in made:
                place.rmdir()
        raise


def _clear_rounds(folder: Path) -> None:
    """Make the folder of rounds, and remove what a killed writer left in it."""
    rounds = folder / ROUNDS
    if not os.path.lexists(rounds):
        rounds.mkdir(mode=0o700)
        sync(folder)
    for leftover in plain_folder(rounds).glob("*.tmp"):
        remove(leftover)


def _check_same(folder: Path, was: Manifest, now: Manifest, *, any_rounds: bool) -> None:
    for place, before, after in differences(was.asked(), now.asked()):
        if any_rounds and place == "method.rounds":
            continue
        raise RunError(
            f"{folder} holds a run of another configuration: "
            f"{place} was {before!r:.60}, is now {after!r:.60}",
            "give what it was last asked for to go on, or begin in another folder: -o NEW",
        )


def _notes(was: Manifest, now: Manifest) -> tuple[str, ...]:
    return tuple(
        f"the run was started with {place} {before}, goes on with {after}: "
        "its result may differ in the last bits"
        for place, before, after in differences(was.machine(), now.machine())
    )


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    with replacing(folder / MANIFEST, private=True) as path:
        _write_json(path, manifest)


def _write_json(path: Path, value: Manifest | Record) -> None:
    path.write_text(json.dumps(asdict(value), indent=2, allow_nan=False) + "\n", "utf-8")
