"""``selftrain publish``: a run in object storage; and ``fit --publish``, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftrain.cli import options
from selftrain.cli.bundles import with_options
from selftrain.cli.talk import Watch, say, warn
from selftrain.errors import SelftrainError

if TYPE_CHECKING:
    from selftrain.runs.publish import Store


@with_options
def publish(
    *,
    run: options.RunFolder,
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="Where it goes: s3://BUCKET/PREFIX."),
    ],
) -> None:
    """Copy a run folder to object storage, without texts; only what is missing there.

    selftrain publish run s3://bucket/reviews

    Nothing is written over: a file that is there with other content is an error. A round is there
    when its round.json is. Give the command again after an interruption.
    """
    from selftrain.runs.publish import Store, publish
    from selftrain.runs.read import caveats, read_manifest

    store = Store.at(address)
    read_manifest(run)
    with Watch() as watch, watch.busy("publishing"):
        copied = publish(run, store)
    warn(caveats(run))
    say(f"published: {address}, {copied} files copied" if copied else f"complete: {address}")


@dataclass(slots=True)
class Copies:
    """The copy of a run that `fit` trains; where it fails, the training goes on."""

    run: Path
    address: str
    store: Store
    problem: str = ""
    """What went wrong last: the same is not said after each round."""

    @classmethod
    def of(cls, run: Path, address: str | None) -> Copies | None:
        """The copy that was asked for; an error for an address that no store has."""
        from selftrain.runs.publish import Store

        return None if address is None else cls(run, address, Store.at(address))

    def update(self, *, rounds_only: bool) -> None:
        """Copy what is finished; a failure is one warning."""
        from selftrain.runs.publish import publish

        try:
            publish(self.run, self.store, rounds_only=rounds_only)
        except SelftrainError as error:
            if error.message != self.problem:
                hint = f"selftrain publish {self.run} {self.address}"
                warn([f"{error.message}; the training goes on, later: {hint}"])
            self.problem = error.message
        else:
            self.problem = ""
            if not rounds_only:
                say(f"published: {self.address}")
