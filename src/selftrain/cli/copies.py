"""The copy of a run in object storage that ``fit --publish`` makes, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from selftrain.cli.talk import say, warn
from selftrain.errors import SelftrainError

if TYPE_CHECKING:
    from selftrain.runs.publish import Store


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
