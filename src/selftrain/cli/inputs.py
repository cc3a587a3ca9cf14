"""From files and settings to what a run is made of: split, task, backbone, model and machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.cli.config import settings_of
from selftrain.cli.talk import Watch, say, warn
from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from selftrain.cli.again import Earlier
    from selftrain.cli.config import Config
    from selftrain.cli.options import DataOptions, DeviceOptions
    from selftrain.data.draws import Draw
    from selftrain.data.places import Place
    from selftrain.data.pool import Draws
    from selftrain.data.rows import Example, Labelled, Notes, Split
    from selftrain.data.task import Task
    from selftrain.method.spec import Method
    from selftrain.model.backbone import Backbone
    from selftrain.model.classifier import Classifier
    from selftrain.training.job import Job
    from selftrain.training.machine import Machine


# ── what a run learns from ──


def read_rows(
    files: DataOptions, settings: Config, notes: Notes, draws: Draws = tuple
) -> tuple[Split, list[Labelled]]:
    """The split a run learns from, and the test rows; nothing heavy is loaded for a short pool."""
    from selftrain.data.fewshot import sample
    from selftrain.data.read import Columns, open_pool, read_labelled
    from selftrain.data.split import make_split

    check_one_stdin(files.gold, *files.unlabelled, files.dev, files.test)
    check_format_used(settings.format, files.gold, *files.unlabelled, files.dev, files.test)
    columns, how = Columns(**settings.columns), settings.reading()
    gold = read_labelled(files.gold, columns, how, notes=notes)
    if settings.shots is not None:
        gold, _ = sample(gold, settings.shots, settings.seed, notes=notes)
    pool = open_pool(files.unlabelled, columns, how, notes=notes)
    dev = read_labelled(files.dev, columns, how, notes=notes) if files.dev else []
    test = read_labelled(files.test, columns, how, notes=notes) if files.test else []
    return make_split(gold, pool, dev, test=test, notes=notes, draws=draws), test


def check_one_stdin(*files: Place | None) -> None:
    """Raise where standard input stands for two files: the second would be empty."""
    if sum(file is not None and file.is_stdin for file in files) > 1:
        raise ConfigError("standard input, -, is given for two files", "write one of them to disk")


def absolute(place: Place) -> Place:
    """The place for another process, which may work in another folder."""
    from selftrain.data.places import Place

    here = place.is_address or place.is_stdin
    return place if here else Place(str(place.path.absolute()))


def tell(notes: Notes, *, columns: bool = False) -> None:
    """Print what was found out about files, if asked the columns taken, and then the warnings."""
    for line in (*(notes.columns if columns else ()), *notes.remarks):
        say(line)
    warn(notes)


def is_same(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also by links."""
    try:
        return path.samefile(other)
    except OSError:  # one of them does not exist, or nobody may look
        return False


def check_format_used(form: str | None, *files: Place | None) -> None:
    """Raise where a format is given and the name of every file already says its own."""
    from selftrain.data.files import format_by_name

    names = (Path(file.name) for file in files if file is not None)
    if form is not None and all(map(format_by_name, names)):
        raise ConfigError(
            f"--format is {form}, and the name of every file says its format",
            "leave out --format, or give the file another ending",
        )


def check_spared(outs: Sequence[Path | None], *given: Path | Place | None) -> None:
    """Raise where a command would write over one of its own inputs, also through a link.

    The inputs may be run folders, or folders of files. A result inside such a folder would be an
    input of the next command.
    """
    from selftrain.data.places import Place, files_here
    from selftrain.runs.read import belongs_to

    for out, each in product(filter(None, outs), given):
        if isinstance(each, Place) and each.would_have(out):
            raise ConfigError(
                f"{out} lies in {each}, which this command reads: it would be read the next time",
                "choose a place outside of it: -o NEW",
            )
    sources: list[Path] = []
    for each in given:
        if each is not None:
            sources += [each] if isinstance(each, Path) else files_here(each)
    for out in filter(None, outs):
        for source in sources:
            if is_same(out, source) or belongs_to(source, out):
                raise ConfigError(
                    f"{out} is read by this command: writing it would destroy it",
                    "choose another name: -o NEW",
                )


def task_of(changes: Mapping[str, Any], split: Split, start: Task | None = None) -> Task:
    """The task that ``name`` names, else ``start``, else one of the labels seen; then changed."""
    from selftrain.data.task import find, from_labels

    labels = {row.label for row in split.labelled}
    pair = split.labelled[0].example.pair is not None
    if "name" in changes:
        start = find(changes["name"])
    task = start or from_labels(labels, pair=pair)
    differs = {key: value for key, value in changes.items() if key != "name"}
    return task.changed(differs).checked(labels, pair)


def backbone_of(settings: Config, method: Method) -> Backbone:
    """The backbone asked for, else the embedded one that the method can use."""
    from selftrain.method.changes import backbone_for
    from selftrain.model.backbone import load

    return load(settings.backbone or backbone_for(method), revision=settings.revision)


def machine_of(settings: Config, watch: Watch) -> Machine:
    """Where a run happens, with its progress shown."""
    from selftrain.training.machine import Machine

    return Machine(
        device=settings.device,
        threads=settings.threads,
        progress=watch.progress,
        cache=Path(settings.cache) if settings.cache else None,
        cache_mb=settings.cache_mb,
        checkpointing=settings.checkpointing,
        accumulate=settings.accumulate,
    )


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


# ── a finished run ──


def check_fits(run: Path, examples: Sequence[Example]) -> None:
    """Raise where a run was trained on pairs and the rows are single texts, or the reverse."""
    from selftrain.data.split import check_kind
    from selftrain.runs.read import read_manifest

    check_kind(examples, pair=bool(read_manifest(run).task.get("pair")), who=str(run))


def load_model(
    run: Path,
    number: int | None,
    backbone: str | None,
    device: DeviceOptions,
    examples: Iterable[Example],
    watch: Watch,
) -> tuple[Classifier, Machine]:
    """The model of a round on its machine; warns of texts that it will cut.

    ``examples`` are read twice.
    """
    with watch.busy("loading"):
        from selftrain.runs.read import caveats, load

        warn(caveats(run, number))
        model = load(run, number, backbone=backbone)  # first: damage is found before torch loads

        from selftrain.training.preflight import hard_to_read, texts_cut

        machine = machine_of(settings_of(None, device), watch)
        warn([*texts_cut(model, examples), *hard_to_read(model.backbone, examples)])
        return model.to(machine.torch_device()), machine


def prepare(
    files: DataOptions, settings: Config, watch: Watch, earlier: Earlier | None = None
) -> tuple[Job, list[Labelled], Machine]:
    """Read and check everything before training: the job, the test rows, and the machine."""
    from selftrain.data.rows import Notes

    notes = Notes()

    def method_asked() -> Method:
        from selftrain.method.changes import method_of

        if earlier is not None:
            return earlier.method(settings)
        return method_of(settings.method, settings.preset)

    def draws() -> Iterable[Draw]:
        from selftrain.training.draw import draws_of

        return draws_of(method_asked(), settings.seed)

    with watch.busy("reading"):
        split, test = read_rows(files, settings, notes, draws)
        if earlier is not None:
            split = earlier.split(split, files.unlabelled, notes)
    tell(notes, columns=True)
    with watch.busy("loading"):
        from selftrain.model.precision import check_precision, precision_named
        from selftrain.training.job import Job
        from selftrain.training.preflight import preflight, prompt_unused

        machine = machine_of(settings, watch)
        precision = precision_named(settings.precision)
        method = method_asked()
        start = None if earlier is None else earlier.task(row.label for row in split.labelled)
        warn(prompt_unused(settings.task, method))
        task = task_of(settings.task, split, start)
        find_backbone = backbone_of if earlier is None else earlier.backbone
        check_precision(precision, machine.torch_device())
        backbone = replace(find_backbone(settings, method), precision=precision)
        job = Job(task, split, method, backbone, settings.seed)
        warn(preflight(job))
    return job, test, machine
