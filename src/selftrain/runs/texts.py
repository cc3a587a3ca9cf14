"""Bring the texts of a run back: its folder holds none, so the files are given again.

Rows are joined by their uid: their id, or where the file had no ids the hash of their text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from selftrain.data.rows import Example, uid_of
from selftrain.errors import DataError


@dataclass(frozen=True, slots=True)
class Texts:
    """The rows of a file that belong to a run."""

    by_uid: dict[str, Example]
    missing: int
    """Rows of the run whose text the file does not have."""

    @property
    def warning(self) -> str:
        """What a person should know before they go on; empty where every text was found."""
        if not self.missing:
            return ""
        total = len(self.by_uid) + self.missing
        return f"{self.missing} of {total} rows of the run have no text in the file: left out"


def texts_of(uids: Collection[str], rows: Iterable[Example], where: str) -> Texts:
    """The texts of these rows of a run; an error where the file has none of them.

    A file with ids fits a run whose pool had none. ``where`` names the file.
    """
    wanted, found = set(uids), {}
    for row in rows:
        for uid in (row.uid, uid_of(row.text, row.pair)):
            if uid in wanted:
                found[uid] = row
    if wanted and not found:
        raise DataError(
            f"{where} has none of the {len(wanted)} texts of the run; "
            "rows are joined by their id, or where the pool had none by their exact text",
            "give the file of that run, and name its columns: --id COLUMN --text COLUMN",
        )
    return Texts(found, len(wanted) - len(found))
