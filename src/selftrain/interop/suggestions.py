"""From a run to what goes out: the pseudo labels of its pool, and its labelled rows.

A run folder holds no texts: the files are given again, and joined by uid.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.data.rows import AuditLine, Example, Notes
from selftrain.disk import check_new_folder, check_target
from selftrain.errors import DataError, RunError
from selftrain.interop.tool import Outgoing, Suggestion, Tool
from selftrain.runs.read import labels_of, lessons
from selftrain.runs.texts import texts_of

if TYPE_CHECKING:
    from selftrain.training.estimate import Opinion

GOLD = "gold"
"""The role of a labelled row."""
ROLES = ("easy", "hard", "left")


def outgoing(
    folder: Path,
    pool: Iterable[Example] | None,
    labelled: Iterable[Example] | None,
    *,
    role: str | None = None,
    notes: Notes,
) -> Outgoing:
    """The rows of a run whose texts are given; ``role`` leaves out pool rows of other roles.

    Rows are in the order of the files, those of the pool first.
    """
    from selftrain.runs.estimates import opinions_of

    labels = labels_of(folder)
    of_labelled, of_pool = opinions_of(folder, labels)
    rows: list[Suggestion] = []
    if pool is not None:
        lines = pseudo_labels(folder, role)
        texts = texts_of(lines, pool, "the pool")
        notes.add("rows of the run without a text in the pool left out", texts.missing)
        known = {each.uid: each.model for each in of_pool}
        rows += _judged(texts.by_uid, lines, known, labels)
    if labelled is not None:
        gold = gold_rows(folder, of_labelled, labels)
        texts = texts_of(gold, labelled, "the labelled file")
        notes.add("labelled rows of the run without a text in the file left out", texts.missing)
        rows += [
            replace(gold[uid], example=replace(example, uid=uid))
            for uid, example in texts.by_uid.items()
        ]
    return Outgoing(labels, rows)


def without_texts(folder: Path) -> Outgoing:
    """The labelled rows of a run alone, with uid, label and probabilities."""
    from selftrain.runs.estimates import opinions_of

    labels = labels_of(folder)
    of_labelled, _ = opinions_of(folder, labels)
    return Outgoing(labels, list(gold_rows(folder, of_labelled, labels).values()))


def pseudo_labels(folder: Path, role: str | None = None) -> dict[str, tuple[int, AuditLine]]:
    """By uid: the last round that judged a row, and its line in the audit of that round."""
    latest = {line.uid: (number, line) for number, audit in lessons(folder) for line in audit}
    if not latest:
        raise RunError(
            f"{folder} has no pseudo labels: no round of it has judged the pool",
            f"let the model answer instead: selftrain predict {folder} pool.csv -o answers.csv",
        )
    found = {uid: last for uid, last in latest.items() if role in (None, last[1].role)}
    if not found:
        roles = ", ".join(sorted({line.role for _, line in latest.values()}))
        raise RunError(f"{folder} has no row with the role `{role}`; it has {roles}", "no --role")
    return found


def uids_of(folder: Path) -> frozenset[str]:
    """The rows that a run knows: those of the pool that it judged, and its labelled rows."""
    from selftrain.runs.estimates import opinions_of

    of_labelled, _ = opinions_of(folder, labels_of(folder))
    judged = (line.uid for _, audit in lessons(folder) for line in audit)
    return frozenset(judged) | {each.uid for each in of_labelled}


def gold_rows(
    folder: Path, opinions: Sequence[Opinion], labels: Sequence[str]
) -> dict[str, Suggestion]:
    """By uid: the labelled rows of a run, still without texts, as the folds see them."""
    if not opinions:
        raise RunError(
            f"{folder} knows no probabilities of its labelled rows: it has no estimate",
            "label at least 4 texts of each class, and fit again: -o NEW",
        )
    return {
        each.uid: Suggestion(
            Example(each.uid, ""),
            each.label,
            GOLD,
            probability=each.folds[labels.index(each.label)],
            probabilities=each.folds,
        )
        for each in opinions
    }


def _judged(
    texts: dict[str, Example],
    lines: dict[str, tuple[int, AuditLine]],
    known: dict[str, tuple[float, ...]],
    labels: Sequence[str],
) -> Iterator[Suggestion]:
    for uid, example in texts.items():
        number, line = lines[uid]
        shares = known.get(uid, ())
        yield Suggestion(
            replace(example, uid=uid),
            line.label,
            line.role,
            number,
            line.confidence,
            line.certainty,
            shares[labels.index(line.label)] if shares else None,
            shares,
        )


# ── where it is written ──────────────────────────────────────────────────────────────────────


def check_place(path: Path, tool: Tool) -> None:
    """Raise unless a tool's file or folder can be written here, before any work is done."""
    if tool.endings:
        if path.suffix.lower() not in tool.endings:
            raise DataError(
                f"{path} ends in `{path.suffix}`; a file for {tool.title} ends in "
                f"{' or '.join(tool.endings)}",
                f"-o {path.with_suffix(tool.endings[0]).name}",
            )
        check_target(path)
        return
    check_new_folder(path, f"what {tool.title} takes")
    parent = path.resolve().parent
    if not parent.is_dir():
        raise RunError(
            f"cannot write {path}: there is no folder {parent}",
            f"make it first: mkdir -p {shlex.quote(str(parent))}",
        )
