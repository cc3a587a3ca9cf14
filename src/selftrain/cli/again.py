"""``fit --from``: learn again from an earlier run, with what a person corrected in it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selftrain.cli import options
from selftrain.cli.config import Config
from selftrain.cli.inputs import backbone_of, is_same
from selftrain.cli.talk import say, warn
from selftrain.errors import ConfigError, RunError, parsed

if TYPE_CHECKING:
    from selftrain.data.places import Place
    from selftrain.data.rows import Notes, Split
    from selftrain.data.task import Task
    from selftrain.method.spec import Method
    from selftrain.model.backbone import Backbone
    from selftrain.runs.corrections import Correction
    from selftrain.runs.manifest import Manifest


AS_BEFORE = ""
"""Stands for the preset of a run, which is part of its method."""


@dataclass(frozen=True, slots=True)
class AgainOptions:
    """An earlier run to learn from, and its corrections."""

    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Learn again as this run did: its method, backbone and seed unless given.",
            rich_help_panel=options.DATA,
        ),
    ] = None
    corrections: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Verdicts of `selftrain review` on that run, taken as gold labels.",
            rich_help_panel=options.DATA,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.corrections is not None and self.earlier is None:
            raise ConfigError(
                "--corrections belong to a run, and no --from is given",
                "name the run that was reviewed: --from run",
            )


@dataclass(frozen=True, slots=True)
class Earlier:
    """A run that is learnt again."""

    run: Path
    manifest: Manifest
    corrections: Sequence[Correction]

    @classmethod
    def of(cls, asked: AgainOptions, out: Path) -> Earlier | None:
        """The run and the corrections that are asked for; None where no run is."""
        if asked.earlier is None:
            return None
        from selftrain.runs.corrections import read_corrections
        from selftrain.runs.read import read_manifest

        run = asked.earlier
        manifest = read_manifest(run)
        if is_same(run, out):
            raise ConfigError(
                f"{out} is the earlier run, which never changes", "choose another folder: -o NEW"
            )
        found = (
            read_corrections(asked.corrections, manifest, run)
            if asked.corrections is not None
            else []
        )
        return cls(run, manifest, found)

    def settings(self, method: str | None) -> Config:
        """What holds unless a file or a flag says otherwise; ``method`` is one that is named."""
        from selftrain.model.embedded import EMBEDDED

        name = self.manifest.backbone.name
        known = name if name in EMBEDDED and method is None else None
        return Config(
            seed=self.manifest.seed,
            backbone=known,
            preset=AS_BEFORE,
            precision=self.manifest.precision,
        )

    def split(self, split: Split, pool: Iterable[Place], notes: Notes) -> Split:
        """The split with the corrections in it, after a check that it is the one of the run."""
        from selftrain.runs.compared import differing_rows
        from selftrain.runs.corrections import corrected, counts, repeated, standing

        for text in differing_rows(self.run, split, ", ".join(map(str, pool))):
            notes.add(text)
        verdicts = standing(self.corrections)
        if self.corrections:
            say(f"corrections: {counts(verdicts.values())}")
        if more := repeated(self.corrections):
            say(more)
        return corrected(split, verdicts, notes) if verdicts else split

    def method(self, settings: Config) -> Method:
        """The method of the run with what differs from it, unless one is named or a preset."""
        from selftrain.method.changes import merged, method_of
        from selftrain.method.spec import from_plain

        changes = dict(settings.method)
        if "name" not in changes and settings.preset == AS_BEFORE:
            return from_plain(merged(self.manifest.method, changes))
        name = str(self.manifest.method.get("name"))
        return method_of({"name": name, **changes}, settings.preset or Config().preset)

    def task(self, labels: Iterable[str]) -> Task | None:
        """The task of the run; None where the labelled rows have other classes."""
        from selftrain.data.task import Task

        task = parsed(Task, self.manifest.task, f"{self.run}: task", RunError, "copy it again")
        return task if set(task.labels) == set(labels) else None

    def backbone(self, settings: Config, method: Method) -> Backbone:
        """The backbone asked for; a warning where it is not that of the run."""
        from selftrain.model.embedded import EMBEDDED

        name = self.manifest.backbone.name
        if settings.backbone is None and name not in EMBEDDED:
            raise ConfigError(
                f"{self.run} was trained on `{name}`, which is not embedded; a name in a run "
                "folder is not followed automatically",
                f"give it yourself: --backbone {shlex.quote(name)}",
            )
        backbone = backbone_of(settings, method)
        if backbone.sha256 != self.manifest.backbone.sha256:
            warn([f"{self.run} was trained on `{name}`; the backbone `{backbone.name}` is another"])
        return backbone

    def compare(self, later: Path) -> dict[str, Any]:
        """Say what changed since the run, and give it as plain data."""
        from selftrain.runs.compared import compared, compared_lines

        found = compared(self.run, later)
        for line in compared_lines(found, self.run):
            say(line)
        return asdict(found)
