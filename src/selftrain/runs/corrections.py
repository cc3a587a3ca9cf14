"""``corrections.jsonl``: what a person decides on the labels of a run, one line for each verdict.

Lines are only added, and each is on disk before the next begins. The last verdict on a row counts;
an undo takes the last one back. The file has no texts, only their hashes.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from selftrain.data.pool import remove_overlap
from selftrain.data.rows import Example, Labelled, Notes, Split, uid_of
from selftrain.disk import check_target, plain_file, refusals, remove, sync
from selftrain.errors import ConfigError, DataError, RunError, first_problem, listing
from selftrain.runs.manifest import Manifest

CORRECTIONS = "corrections.jsonl"
LARGEST_CORRECTIONS = 256 * 2**20  # bytes
NEW_FILE = "begin another file: --corrections NEW.jsonl"
BEGINNING = b'{"uid": "'
"""How each line begins that a review writes."""

Verdict = Literal["accept", "label", "drop", "undo"]


@dataclass(frozen=True, slots=True)
class Correction:
    """A line of the file: one verdict of a person on one row."""

    uid: str
    text: str
    """The hash of its text."""
    was: str
    """The pseudo label."""
    now: str | None
    """The label after it; None for a row that is dropped, or where a verdict is taken back."""
    verdict: Verdict
    round: int
    """The last round that judged the row."""
    run: str
    """The digest of the run."""


# ── which verdict counts ─────────────────────────────────────────────────────────────────────


def in_order(corrections: Sequence[Correction]) -> list[Correction]:
    """The verdicts that were not taken back, in the order in which they were made."""
    undos: Counter[str] = Counter()  # of each row, still to be matched with a verdict before them
    counted = []
    for each in reversed(corrections):
        if each.verdict == "undo":
            undos[each.uid] += 1
        elif undos[each.uid]:
            undos[each.uid] -= 1
        else:
            counted.append(each)
    return counted[::-1]


def by_row(corrections: Sequence[Correction]) -> dict[str, list[Correction]]:
    """The verdicts on each row that were not taken back, in order."""
    rows: dict[str, list[Correction]] = {}
    for each in in_order(corrections):
        rows.setdefault(each.uid, []).append(each)
    return rows


def standing(corrections: Sequence[Correction]) -> dict[str, Correction]:
    """The verdict that counts for each row: the last one that was not taken back."""
    return {uid: verdicts[-1] for uid, verdicts in by_row(corrections).items()}


def repeated(corrections: Sequence[Correction]) -> str:
    """A sentence on rows with several verdicts; empty where each row has one."""
    count = sum(len({each.now for each in all_}) > 1 for all_ in by_row(corrections).values())
    rows = "1 row was" if count == 1 else f"{count} rows were"
    return f"{rows} corrected more than once: the last verdict counts" if count else ""


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_corrections(path: Path, manifest: Manifest, run: Path) -> list[Correction]:
    """The verdicts in a file; an error where they belong to another run.

    Half a line at the end, as a kill may leave it, is no verdict; a line that lacks its newline is.
    """
    if not os.path.lexists(path):
        raise ConfigError(
            f"there is no file {path}", f"write one: selftrain review {run} --unlabelled pool.csv"
        )
    with refusals(path, "read"):
        raw = plain_file(path.resolve(), LARGEST_CORRECTIONS).read_bytes()
    found, _ = _parsed(raw, path)
    check_belongs(found, manifest, path, run)
    return found


def check_belongs(
    corrections: Iterable[Correction], manifest: Manifest, path: Path, run: Path
) -> None:
    """Raise where a verdict is on another run, or names a class that the run does not have."""
    digest, labels = manifest.digest(), manifest.task.get("labels") or []
    for each in corrections:
        if each.run != digest:
            raise RunError(
                f"{path} holds corrections of another run: {each.run:.20}, {run} is {digest}",
                f"give the file of that run, or {NEW_FILE}",
            )
        if each.now is not None and each.now not in labels:
            raise RunError(
                f"{path} gives the label `{each.now:.40}`; {run} has {listing(labels)}", NEW_FILE
            )


def _parsed(raw: bytes, path: Path) -> tuple[list[Correction], int]:
    """The verdicts of a file, and how many of its bytes they are: half a line is left out."""
    *lines, rest = raw.split(b"\n")
    kind = TypeAdapter(Correction)
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(kind.validate_json(line, strict=True))
        except ValidationError as error:
            raise RunError(
                f"{path}, line {number}, is no correction: {first_problem(error)}",
                f"remove the line, or {NEW_FILE}",
            ) from None
    if not rest:
        return found, len(raw)
    try:
        return [*found, kind.validate_json(rest, strict=True)], len(raw)
    except ValidationError as error:
        if _is_half_a_line(rest, error):
            return found, len(raw) - len(rest)
    raise RunError(
        f"{path} is no corrections file: no review wrote its line {len(found) + 1}",
        f"remove the line, or {NEW_FILE}" if found else NEW_FILE,
    )


def _is_half_a_line(rest: bytes, error: ValidationError) -> bool:
    """Whether a review that was killed left this: it begins like a line, and is no whole JSON."""
    begins = rest[: len(BEGINNING)] == BEGINNING[: len(rest)]
    return begins and error.errors()[0]["type"] == "json_invalid"


# ── writing ──────────────────────────────────────────────────────────────────────────────────


class Journal:
    """The file of a review while it is open: a verdict is on disk when ``add`` returns."""

    def __init__(self, path: Path, manifest: Manifest, run: Path) -> None:
        check_target(path)
        self.path = path
        self._lock = FileLock(path.with_name(f".{path.name}.lock"))
        with refusals(path, "write"):
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                raise RunError(f"{path} is open in another `selftrain review`", NEW_FILE) from None
            try:
                self.corrections = self._opened(manifest, run)
            except BaseException:
                self._release()
                raise

    def _opened(self, manifest: Manifest, run: Path) -> list[Correction]:
        """Open the file and repair its end; what it already has."""
        found: list[Correction] = []
        raw, whole = b"", 0
        self._is_ours = not os.path.lexists(self.path)
        if self.path.exists():
            raw = plain_file(self.path.resolve(), LARGEST_CORRECTIONS).read_bytes()
            found, whole = _parsed(raw, self.path)
            check_belongs(found, manifest, self.path, run)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if whole < len(raw):  # half a line of a killed review
            os.ftruncate(self._file, whole)
        elif raw and not raw.endswith(b"\n"):
            whole += os.write(self._file, b"\n")
        os.fsync(self._file)
        sync(self.path.resolve().parent)
        self._size = whole
        return found

    def add(self, correction: Correction) -> None:
        """Append a verdict and force it to disk; after an error the file is as it was."""
        line = json.dumps(asdict(correction), ensure_ascii=True).encode() + b"\n"
        with refusals(self.path, "write"):
            try:
                rest = memoryview(line)
                while rest:
                    rest = rest[os.write(self._file, rest) :]
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, self._size)
                raise
        self._size += len(line)
        self.corrections.append(correction)

    def close(self) -> None:
        """Let another review open the file; a new one without a verdict is removed."""
        os.close(self._file)
        if self._is_ours and not self._size:
            remove(self.path)
        self._release()

    def _release(self) -> None:
        self._lock.release()
        remove(Path(self._lock.lock_file))


# ── learning from them ───────────────────────────────────────────────────────────────────────


def corrected(split: Split, verdicts: Mapping[str, Correction], notes: Notes) -> Split:
    """The split with accepted and corrected rows among the labelled ones, and without dropped ones.

    A row is found by its uid; one whose text has changed since is left out and noted.
    """
    found: dict[str, Example] = {}
    changed = 0
    for row in split.unlabelled:
        content = uid_of(row.text, row.pair)
        uid = row.uid if row.uid in verdicts else content
        if uid in verdicts:
            if verdicts[uid].text == content:
                found[uid] = row
            else:
                changed += 1
    if verdicts and not found:
        raise DataError(
            f"the pool has none of the {len(verdicts)} corrected rows",
            "give the files of that run, and name their columns: --id COLUMN --text COLUMN",
        )
    notes.add("corrected rows whose text has changed left out", changed)
    missing = len(verdicts) - len(found) - changed
    notes.add("corrected rows that are not in the pool left out", missing)
    labelled = [
        Labelled(found[uid], label)
        for uid in sorted(found)
        if (label := verdicts[uid].now) is not None
    ]
    pool = remove_overlap(split.unlabelled, found.values(), Notes())
    if not len(pool):
        raise DataError(
            "the pool is empty: every row of it is corrected", "give more texts: --unlabelled FILE"
        )
    return replace(split, labelled=(*split.labelled, *labelled), unlabelled=pool)


def counts(verdicts: Iterable[Correction]) -> str:
    """How many rows were accepted, labelled and dropped, in words.

    >>> line = Correction("1", "", "bad", "good", "label", 1, "")
    >>> counts([line, line])
    '0 accepted, 2 labelled, 0 dropped'
    """
    kinds: Sequence[Verdict] = [each.verdict for each in verdicts]
    names = (("accept", "accepted"), ("label", "labelled"), ("drop", "dropped"))
    return ", ".join(f"{kinds.count(kind)} {name}" for kind, name in names)
