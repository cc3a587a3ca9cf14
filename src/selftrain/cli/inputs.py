"""From files and settings to what a run is made of: split, task, backbone and machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from selftrain.cli.config import Config
    from selftrain.cli.talk import Watch
    from selftrain.data.rows import Labelled, Notes, Split
    from selftrain.data.task import Task
    from selftrain.method.spec import Method
    from selftrain.model.backbone import Backbone
    from selftrain.training.machine import Machine


@dataclass(frozen=True, slots=True)
class Files:
    """Where the rows of a run come from."""

    labelled: Path
    unlabelled: Path
    dev: Path | None = None
    test: Path | None = None

    def read(self, settings: Config, notes: Notes) -> tuple[Split, list[Labelled]]:
        """What the run may see, and the test rows it may not; nothing heavy is loaded for it."""
        from selftrain.data.fewshot import sample
        from selftrain.data.read import Columns, read_labelled, read_unlabelled
        from selftrain.data.split import make_split

        columns = Columns(**settings.columns)
        gold = read_labelled(self.labelled, columns, notes=notes)
        if settings.shots is not None:
            gold, _ = sample(gold, settings.shots, settings.seed, notes=notes)
        pool = read_unlabelled(self.unlabelled, columns, notes=notes)
        dev = read_labelled(self.dev, columns, notes=notes) if self.dev else []
        test = read_labelled(self.test, columns, notes=notes) if self.test else []
        return make_split(gold, pool, dev, test=test, notes=notes), test


def task_of(changes: Mapping[str, Any], split: Split, start: Task | None = None) -> Task:
    """The task that ``name`` names, else ``start``, else one of the labels seen; then changed."""
    from selftrain.data.task import find, from_labels

    labels = {row.label for row in split.labelled}
    pair = split.labelled[0].example.pair is not None
    if "name" in changes:
        start = find(changes["name"])
    begun = start or from_labels(labels, pair=pair)
    differs = {key: value for key, value in changes.items() if key != "name"}
    return begun.changed(differs).checked(labels, pair)


def words_of(items: Sequence[str] | None) -> dict[str, str]:
    """``--word positive=great`` for each class."""
    found = {}
    for item in items or ():
        label, equals, word = item.rpartition("=")
        if not (label and equals and word):
            raise ConfigError(f"--word is {item!r}; expected LABEL=WORD", "--word positive=great")
        found[label] = word
    return found


def seeds_of(text: str) -> list[int]:
    """Seeds from a list with commas, each once."""
    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise ConfigError(
            f"--seeds is {text!r}; expected whole numbers with commas", "--seeds 12,21,42"
        ) from None


def check_tasks(data: Path, names: Sequence[str], *, instead: str = "") -> None:
    """Raise unless a folder has rows of each task to learn from; nothing is read or loaded."""
    from selftrain.data.task import find
    from selftrain.experiments.tasksets import find as find_file

    if not data.is_dir():
        raise ConfigError(
            f"{data} is no folder",
            f"give one with a folder for each task: DATA/sst2/train.jsonl{instead}",
        )
    for name in names:
        find_file(data / find(name).name, "train")


def machine_of(settings: Config, watch: Watch) -> Machine:
    """Where a run happens, with its progress shown."""
    from selftrain.training.machine import Machine

    return Machine(
        device=settings.device,
        threads=settings.threads,
        progress=watch.progress,
        cache=Path(settings.cache) if settings.cache else None,
        cache_mb=settings.cache_mb,
    )


def backbone_of(settings: Config, method: Method) -> Backbone:
    """The backbone asked for, else the embedded one that the method can use."""
    from selftrain.method.changes import backbone_for
    from selftrain.model.backbone import load

    return load(settings.backbone or backbone_for(method), revision=settings.revision)
