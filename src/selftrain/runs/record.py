"""The record of a round, ``round.json``: its numbers, the verdict, and hashes of its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, FiniteFloat

from selftrain.disk import LARGEST_JSON, damaged, plain_file, plain_folder, valid

RECORD, LESSON, MODEL = "round.json", "lesson.parquet", ("model.json", "model.safetensors")

Scalar = Annotated[int, Field(ge=-(2**63), lt=2**63)] | FiniteFloat
Number = Scalar | dict[str, Scalar] | list[dict[str, Scalar | None]]
"""A number, counts or shares by class, or the numbers of each fit of the round."""


@dataclass(frozen=True, slots=True)
class Record:
    """The content of ``round.json``."""

    number: int
    """0 for the teacher, then 1, 2 and so on."""
    accepted: bool
    """Whether its model became the next teacher."""
    why: str
    """Why it was refused, or why the loop ended here; empty otherwise."""
    last: bool
    """Whether the loop ended here before its last round."""
    numbers: dict[str, Number]
    """Counts, means and seconds, by name."""
    files: dict[str, str]
    """The sha256 of every other file of the round."""
    encoder_of: int | None = None
    """The earlier round whose encoder this model has: its own tensors are the head alone."""

    @classmethod
    def read(cls, folder: Path) -> Record:
        """The record in the folder of a round, which may come from anyone."""
        path = plain_folder(folder) / RECORD
        record = valid(cls, plain_file(path, LARGEST_JSON).read_bytes(), path)
        if str(record.number) != folder.name:
            raise damaged(path, f"is that of round {record.number}")
        if record.number == 0 and not record.accepted:
            raise damaged(path, "refuses round 0, which has no teacher to fall back on")
        if record.encoder_of is not None and not 0 <= record.encoder_of < record.number:
            raise damaged(path, f"has the encoder of round {record.encoder_of}")
        if set(record.files) != {LESSON, *(() if record.failed else MODEL)}:
            raise damaged(path, f"lists the files {sorted(record.files)}")
        return record

    @property
    def encoder(self) -> int:
        """The number of the round that trained the encoder of the model."""
        return self.number if self.encoder_of is None else self.encoder_of

    @property
    def failed(self) -> bool:
        """Whether the training failed: no other refused round ends the loop.

        Such a round has no model: the last accepted one stays the result.
        """
        return self.last and not self.accepted
