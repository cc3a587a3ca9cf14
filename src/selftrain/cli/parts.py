"""Options of work that several processes share: parts of a round, and answers in a folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import options
from selftrain.cli.inputs import absolute
from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from selftrain.data.places import Place


def numbers_of(shard: str) -> tuple[int, int]:
    """Which process of how many ``--shard I/N`` names.

    >>> numbers_of("3/8")
    (3, 8)
    """
    found = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", shard)
    if found is None or int(found[1]) >= int(found[2]):
        raise ConfigError(
            f"--shard is {shard!r}; expected I/N with I from 0 to N - 1",
            "of eight processes the first is --shard 0/8 and the last --shard 7/8",
        )
    return int(found[1]), int(found[2])


def is_folder(out: str | None) -> bool:
    """Whether answers go into a folder of parts: one that is begun, or a name with / at its end."""
    from selftrain.runs.answer_folder import MANIFEST

    return out is not None and (out.endswith(("/", os.sep)) or (Path(out) / MANIFEST).is_file())


def answers_target(out: str | None) -> str | None:
    """A file or a folder of parts to write; an error where it could not be written."""
    if out is not None:
        (options.local_folder if is_folder(out) else options.target)(Path(out))
    return out


@dataclass(frozen=True, slots=True)
class PartsOptions:
    """Where a round is annotated, if not by the process that trains."""

    parts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Take each round from the parts that `selftrain annotate` writes there; stop "
            "before a round that has none.",
            rich_help_panel=options.MACHINE,
        ),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Annotate on a Ray cluster: local, auto or HOST:PORT. All its machines need the "
            "pool and the run folder under the same path.",
            rich_help_panel=options.MACHINE,
        ),
    ] = None

    def places(self, unlabelled: list[Place]) -> list[Place]:
        """The files of the pool as other machines find them; what they cannot read is refused."""
        if self.ray is None:
            return unlabelled
        for each in unlabelled:
            if each.is_stdin or (not each.is_address and each.path.is_fifo()):
                raise ConfigError(
                    f"--ray lets other machines read the pool, and {each} can be read here alone",
                    "write it to a disk that all share, or leave out --ray",
                )
        return [*map(absolute, unlabelled)]

    def check_goes_with(
        self, minutes: float | None, corrections: Path | None, *, processes: int
    ) -> None:
        """Raise for options that other ones contradict."""
        if processes > 1 and (self.parts is not None or self.ray is not None):
            raise ConfigError(
                "--parts and --ray annotate for one process, and torchrun started "
                f"{processes}, which deal the pool among themselves",
                "leave out torchrun, or --parts and --ray",
            )
        if self.parts is not None and self.ray is not None:
            raise ConfigError(
                "--parts takes parts that are there, --ray lets a cluster compute them",
                "leave out one of them",
            )
        if minutes is not None and (self.parts is not None or self.ray is not None):
            raise ConfigError(
                "--minutes plans rounds that this machine annotates alone",
                "leave out --minutes, or --parts and --ray",
            )
        if self.parts is not None and corrections is not None:
            raise ConfigError(
                "--parts needs labelled rows from files, and --corrections adds others",
                "leave out one of them",
            )
