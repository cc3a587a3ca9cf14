"""The run folder: what is written comes back, and what came from elsewhere is not trusted."""

from __future__ import annotations

import ctypes
import errno
import json
import multiprocessing
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

import small_run
from selftrain import runs
from selftrain.backbone import Backbone, load
from selftrain.classifier import Classifier
from selftrain.data import Judged, Lesson, Split
from selftrain.errors import RunError, SelftrainError
from selftrain.loop import Round, self_train
from selftrain.runs import Manifest, Run

forks = multiprocessing.get_context("forkserver")
forks.set_forkserver_preload(["selftrain.experiment"])


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture(scope="module")
def rounds(backbone: Backbone) -> list[Round]:
    split = small_run.split()
    task, method, on = small_run.TASK, small_run.METHOD, small_run.MACHINE
    return list(self_train(task, split, method, backbone=backbone, seed=7, on=on))


@pytest.fixture(scope="module")
def manifest(backbone: Backbone) -> Manifest:
    return small_run.manifest(backbone)


@pytest.fixture
def folder(tmp_path: Path, rounds: list[Round], manifest: Manifest) -> Path:
    """A finished run."""
    with Run.start(tmp_path / "run", manifest) as run:
        for round_ in rounds:
            run.save(round_)
    return tmp_path / "run"


def probabilities(model: Classifier) -> torch.Tensor:
    return model.probabilities([row.example for row in small_run.split().labeled])


# ── what is written comes back ──


def test_saved_rounds_come_back_with_their_models_lessons_and_figures(
    folder: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    with Run.start(folder, manifest) as run:
        done = run.done(backbone)
    for was, now in zip(rounds, done, strict=True):
        assert torch.equal(probabilities(was.model), probabilities(now.model))
        assert now.lesson == Lesson(gold=(), audit=was.lesson.audit)
        assert now.figures == was.figures
        assert (now.number, now.accepted, now.why, now.last) == (
            was.number,
            was.accepted,
            was.why,
            was.last,
        )


def test_history_tells_what_each_round_gave(folder: Path, rounds: list[Round]) -> None:
    told = runs.history(folder)
    assert [line["number"] for line in told] == [0, 1, 2]
    assert [line["figures"] for line in told] == [round_.figures for round_ in rounds]


def test_load_gives_the_last_accepted_model_or_the_one_asked_for(
    tmp_path: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    with Run.start(tmp_path / "run", manifest) as run:
        run.save(rounds[0])
        run.save(replace(rounds[1], accepted=True))
        run.save(replace(rounds[2], accepted=False, why="collapse"))
    last = runs.load(tmp_path / "run", backbone=backbone.name)
    assert torch.equal(probabilities(last), probabilities(rounds[1].model))
    for round_ in rounds:  # the refused one too: it is kept, for whoever wants to know why
        asked = runs.load(tmp_path / "run", round_.number, backbone=backbone.name)
        assert torch.equal(probabilities(asked), probabilities(round_.model))


def test_a_round_whose_training_failed_has_no_model_of_its_own(
    tmp_path: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    teacher = rounds[0].model
    failed = Round(1, teacher, rounds[1].lesson, {}, False, "the loss is nan", last=True)
    with Run.start(tmp_path / "run", manifest) as run:
        run.save(rounds[0])
        run.save(failed)
        done = run.done(backbone)
    assert sorted(p.name for p in (tmp_path / "run/rounds/1").iterdir()) == [
        "lesson.parquet",
        "round.json",
    ]
    assert torch.equal(probabilities(done[1].model), probabilities(teacher))
    kept = runs.load(tmp_path / "run", backbone=backbone.name)
    assert torch.equal(probabilities(kept), probabilities(teacher))
    with pytest.raises(RunError, match=r"round 1 of .* has no model: the loss is nan"):
        runs.load(tmp_path / "run", 1)


def test_a_finished_run_started_again_has_nothing_left_to_do(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}
    small_run.go(folder, Path(backbone.name))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_short_lesson_has_the_bytes_of_one_table(folder: Path, rounds: list[Round]) -> None:
    """Written group by group, it is the same file as one written at once: runs stay comparable."""
    import pyarrow
    import pyarrow.parquet

    schema = runs._lesson_schema()
    for round_ in rounds:
        lines = [asdict(line) for line in round_.lesson.audit]
        table = pyarrow.Table.from_pylist(lines, schema=schema)
        pyarrow.parquet.write_table(table, folder / "whole.parquet")
        written = folder / f"rounds/{round_.number}/lesson.parquet"
        assert written.read_bytes() == (folder / "whole.parquet").read_bytes()


@pytest.fixture
def all_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lessons of 24 lines that are treated like one of a million."""
    monkeypatch.setattr(runs, "HELD", 5)
    monkeypatch.setattr(runs, "GROUP", 7)
    monkeypatch.setattr(runs, "BATCH", 3)


@pytest.mark.usefixtures("all_long")
def test_a_long_lesson_is_written_in_groups_and_read_as_it_is_asked_for(
    folder: Path, rounds: list[Round], manifest: Manifest, backbone: Backbone
) -> None:
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(folder / "rounds/1/lesson.parquet")
    assert [about.row_group(n).num_rows for n in range(about.num_row_groups)] == [7, 7, 7, 3]
    with Run.start(folder, manifest) as run:
        audit = run.done(backbone)[1].lesson.audit
    assert not isinstance(audit, tuple)
    assert len(audit) == 24
    assert tuple(audit) == tuple(audit) == rounds[1].lesson.audit
    assert [a is not b and a == b for a, b in zip(audit, audit, strict=True)] == [True] * 24


def test_of_a_long_lesson_a_few_groups_are_in_memory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty groups, and never more than the room of ten: pyarrow by itself would hold them all."""
    import pyarrow

    monkeypatch.setattr(runs, "HELD", 100)
    monkeypatch.setattr(runs, "GROUP", 1_000)
    random = Random(0)
    lines = tuple(
        Judged(f"{n}", "good", random.random(), random.random(), random.random(), "left")
        for n in range(40_000)
    )
    runs._write_lesson(tmp_path / "lesson", Lesson(gold=(), audit=lines))
    whole = (tmp_path / "lesson").stat().st_size
    before = pyarrow.total_allocated_bytes()
    held = [
        pyarrow.total_allocated_bytes() - before
        for _ in runs._batches(tmp_path / "lesson", {"good"})
    ]
    assert 0 < max(held) < whole / 4


@pytest.mark.usefixtures("all_long")
def test_a_long_lesson_is_checked_each_time_it_is_read(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    with Run.start(folder, manifest) as run:
        audit = run.done(backbone)[1].lesson.audit
    path = folder / "rounds/1/lesson.parquet"
    moved_behind_a_link(path)
    with pytest.raises(RunError, match="is not a plain file"):
        list(audit)
    path.unlink()
    with pytest.raises(RunError, match="No such file"):
        list(audit)
    relessoned(folder, role=["boss"])
    with pytest.raises(RunError, match="a line no round writes"):
        list(audit)


def test_everything_in_a_run_folder_is_for_its_owner_only(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_model_keeps_only_what_was_trained(folder: Path) -> None:
    teacher, student = (folder / f"rounds/{n}/model.safetensors" for n in (0, 1))
    assert student.stat().st_size < teacher.stat().st_size / 5


# ── who may go on ──


def test_a_run_may_begin_in_an_empty_folder(tmp_path: Path, manifest: Manifest) -> None:
    with Run.start(tmp_path, manifest) as run:
        assert runs.read_manifest(tmp_path) == run.manifest == manifest


def test_a_second_writer_is_refused_until_the_first_has_ended(
    tmp_path: Path, manifest: Manifest
) -> None:
    with Run.start(tmp_path / "run", manifest):
        process = forks.Process(target=refused_as_second, args=(tmp_path / "run", manifest))
        process.start()
        process.join()
        assert process.exitcode == 0
    with Run.start(tmp_path / "run", manifest):
        pass


def refused_as_second(folder: Path, manifest: Manifest) -> None:
    with pytest.raises(RunError, match="being written by another process") as caught:
        Run.start(folder, manifest)
    assert caught.value.hint


def changed(value: Any, place: str, new: Any) -> Any:
    """A manifest with another value at a place such as ``method.student.0.rate``."""
    plain = json.loads(json.dumps(asdict(value)))
    *path, name = place.split(".")
    inner = plain
    for step in path:
        inner = inner[int(step) if step.isdigit() else step]
    inner[name] = new
    return Manifest(**{**plain, "backbone": runs.Base(**plain["backbone"])})


@pytest.mark.parametrize(
    ("place", "new", "said"),
    [
        ("seed", 8, "seed was 7, is now 8"),
        ("method.student.0.rate", 0.5, "method.student.0.rate was 0.003, is now 0.5"),
        ("method.student.0.epochs", 3, "method.student.0.epochs was None, is now 3"),
        ("task.labels", ["good", "bad", "ugly"], "task.labels was ['good', 'bad'], is now"),
        ("data.labelled", "x", "data.labelled was '"),
        ("data.pool", "x", "data.pool was '"),
        ("backbone.sha256", "x", "backbone.sha256 was '"),
    ],
)
def test_another_configuration_is_refused_by_its_first_difference(
    folder: Path, manifest: Manifest, place: str, new: object, said: str
) -> None:
    with pytest.raises(RunError, match="another configuration") as caught:
        Run.start(folder, changed(manifest, place, new))
    assert said in caught.value.message
    assert caught.value.hint
    with Run.start(folder, manifest):  # and the lock was given back
        pass


@pytest.mark.parametrize(
    ("differs", "other"),
    [
        ("pool", lambda s: replace(s, unlabeled=[*s.unlabeled, small_run.example("good", 99)])),
        (
            "labelled",
            lambda s: replace(s, labeled=(replace(s.labeled[0], label="bad"), *s.labeled[1:])),
        ),
        ("order of labelled", lambda s: replace(s, labeled=s.labeled[::-1])),
        ("dev", lambda s: replace(s, dev=s.labeled[:1])),
        (None, lambda s: replace(s, unlabeled=s.unlabeled[::-1])),
    ],
)
def test_other_rows_are_another_configuration(
    differs: str | None, other: Callable[[Any], Split], manifest: Manifest, backbone: Backbone
) -> None:
    split = other(small_run.split())
    now = Manifest.of(small_run.TASK, split, small_run.METHOD, backbone=backbone, seed=7)
    places = [name for name in manifest.data if manifest.data[name] != now.data[name]]
    assert places == ([differs] if differs else [])


@pytest.mark.parametrize(
    ("place", "new"),
    [
        ("threads", 99),
        ("device", "abacus"),
        *((f"versions.{name}", "1.0") for name in ("python", *runs.PACKAGES)),
    ],
)
def test_another_machine_is_noted_and_not_refused(
    folder: Path, manifest: Manifest, place: str, new: object
) -> None:
    with Run.start(folder, changed(manifest, place, new)) as run:
        [note] = run.notes
    assert f"goes on with {new}: its result may differ in the last bits" in note


@pytest.mark.parametrize("place", ["backbone.name", "created"])
def test_a_backbone_found_elsewhere_is_the_same_by_its_weights(
    folder: Path, manifest: Manifest, place: str
) -> None:
    with Run.start(folder, changed(manifest, place, "elsewhere")) as run:
        assert run.notes == ()


# ── folders from elsewhere ──


def rewritten(path: Path, **new: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **new}))


def relisted(folder: Path, **files: str) -> None:
    """Change what round 1 says its files are."""
    path = folder / "rounds/1/round.json"
    rewritten(path, files={**json.loads(path.read_text())["files"], **files})


def swapped(path: Path, new: bytes = b"PAR1") -> str:
    path.write_bytes(new)
    return runs._sha256(path)


def made_anew(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def moved_behind_a_link(path: Path) -> None:
    elsewhere = path.parent.parent / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def relessoned(folder: Path, **column: list[Any]) -> None:
    """Put one line of someone's own making into the lesson of round 1."""
    import pyarrow  # not above: its threads would forbid ``small_disk`` a namespace of its own
    import pyarrow.parquet

    line = {"uid": ["x"], "label": ["good"], "confidence": [0.5], "certainty": [0.5]}
    line |= {"weight": [0.5], "role": ["easy"], **column}
    path = folder / "rounds/1/lesson.parquet"
    pyarrow.parquet.write_table(pyarrow.table(line, schema=runs._lesson_schema()), path)
    relisted(folder, **{"lesson.parquet": runs._sha256(path)})


def other_columns(folder: Path) -> tuple[Path, bytes]:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"]}), folder / "other")
    return folder / "rounds/1/lesson.parquet", (folder / "other").read_bytes()


def torn_text(folder: Path) -> tuple[Path, bytes]:
    """The lesson of round 1 with half a character in a uid."""
    relessoned(folder, uid=["half a \u00e9"])
    path = folder / "rounds/1/lesson.parquet"
    return path, path.read_bytes().replace(b"half a \xc3\xa9", b"half a \xc3\x28")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (
        lambda f: (f / "manifest.json").unlink(),
        "neither empty nor a run folder: it holds 'rounds'",
    ),
    "manifest not JSON": (
        lambda f: (f / "manifest.json").write_text('{"format": 1,'),
        "manifest.json is not JSON",
    ),
    "manifest not an object": (
        lambda f: (f / "manifest.json").write_text("[1]"),
        "not written by selftrain",
    ),
    "manifest of a web page": (
        lambda f: (f / "manifest.json").write_text('{"name": "app", "icons": []}'),
        "not written by selftrain",
    ),
    "newer format": (
        lambda f: rewritten(f / "manifest.json", format=2),
        "has format 2; this version reads format 1",
    ),
    "manifest without seed": (
        lambda f: (f / "manifest.json").write_text('{"format": 1}'),
        "manifest.json is damaged",
    ),
    "manifest nested without end": (
        lambda f: (f / "manifest.json").write_text("[" * 100_000),
        "manifest.json is not JSON: recursion",
    ),
    "oversized manifest": (
        lambda f: os.truncate(f / "manifest.json", 2**40),  # sparse: it takes no room here
        "has 1,099,511,627,776 bytes; expected at most",
    ),
    "manifest a link": (
        lambda f: moved_behind_a_link(f / "manifest.json"),
        "manifest.json is not a plain file",
    ),
    "manifest a folder": (
        lambda f: made_anew(f / "manifest.json", os.mkdir),
        "manifest.json is not a plain file",
    ),
    "manifest a pipe": (
        lambda f: made_anew(f / "manifest.json", os.mkfifo),
        "manifest.json is not a plain file",
    ),
    "rounds a link": (lambda f: moved_behind_a_link(f / "rounds"), "rounds is not a plain folder"),
    "round a link": (
        lambda f: moved_behind_a_link(f / "rounds/1"),
        "rounds/1 is not a plain folder",
    ),
    "model a link": (
        lambda f: moved_behind_a_link(f / "rounds/1/model.safetensors"),
        "model.safetensors is not a plain file",
    ),
    "round missing": (
        lambda f: (f / "rounds/1").rename(f / "gone"),
        "rounds/2 is there, but round 1 is not",
    ),
    "record missing": (
        lambda f: (f / "rounds/1/round.json").unlink(),
        "round.json: No such file",
    ),
    "record cut short": (
        lambda f: os.truncate(f / "rounds/1/round.json", 40),
        "round.json is damaged: : Invalid JSON",
    ),
    "record of another round": (
        lambda f: rewritten(f / "rounds/1/round.json", number=2),
        "round.json is that of round 2",
    ),
    "record with text for a number": (
        lambda f: rewritten(f / "rounds/1/round.json", figures={"seconds": "x"}),
        "round.json is damaged: figures.seconds",
    ),
    "record with an infinite number": (
        lambda f: rewritten(f / "rounds/1/round.json", figures={"seconds": float("inf")}),
        "round.json is damaged: figures.seconds",
    ),
    "record with a number without end": (
        lambda f: rewritten(f / "rounds/1/round.json", figures={"seconds": 10**4000}),
        "round.json is damaged: figures.seconds",
    ),
    "record with a name that would move the cursor": (
        lambda f: rewritten(f / "rounds/1/round.json", figures={"a\n\x1b[2J": "x"}),
        "round.json is damaged: figures.a��[2J",
    ),
    "record naming a file outside": (
        lambda f: relisted(f, **{"../../manifest.json": "0" * 64}),
        "lists the files ['../../manifest.json'",
    ),
    "teacher refused": (
        lambda f: rewritten(f / "rounds/0/round.json", accepted=False),
        "refuses round 0",
    ),
    "model missing": (
        lambda f: (f / "rounds/1/model.safetensors").unlink(),
        "model.safetensors: No such file",
    ),
    "model cut short": (
        lambda f: os.truncate(f / "rounds/1/model.safetensors", 100),
        "model.safetensors is not what was written",
    ),
    "lesson cut short": (
        lambda f: os.truncate(f / "rounds/1/lesson.parquet", 100),
        "lesson.parquet is not what was written",
    ),
    "lesson not Parquet": (
        lambda f: relisted(f, **{"lesson.parquet": swapped(f / "rounds/1/lesson.parquet")}),
        "lesson.parquet is not Parquet",
    ),
    "lesson with a foreign label": (
        lambda f: relessoned(f, label=["ugly"]),
        "lesson.parquet holds a line no round writes",
    ),
    "lesson with a foreign role": (
        lambda f: relessoned(f, role=["boss"]),
        "lesson.parquet holds a line no round writes",
    ),
    "lesson with NaN": (
        lambda f: relessoned(f, weight=[float("nan")]),
        "lesson.parquet holds a line no round writes",
    ),
    "lesson with a foreign line far down": (
        lambda f: relessoned(
            f,
            uid=[str(n) for n in range(20_000)],
            label=["good"] * 19_999 + ["ugly"],
            role=["left"] * 20_000,
            **{name: [0.5] * 20_000 for name in ("confidence", "certainty", "weight")},
        ),
        "lesson.parquet holds a line no round writes: Judged(uid='19999'",
    ),
    "lesson with other columns": (
        lambda f: relisted(f, **{"lesson.parquet": swapped(*other_columns(f))}),
        "lesson.parquet has the columns ['text']",
    ),
    "lesson with a text that is none": (
        lambda f: relisted(f, **{"lesson.parquet": swapped(*torn_text(f))}),
        "lesson.parquet is not Parquet: Invalid UTF8",
    ),
    "lock a link": (lambda f: moved_behind_a_link(f / ".lock"), ".lock is a link"),
}


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name.startswith("lesson")])
@pytest.mark.usefixtures("all_long")
def test_a_damaged_lesson_is_noticed_at_once_also_where_it_is_long(
    damage: str, folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    test_a_damaged_or_foreign_folder_is_one_line_and_a_hint(damage, folder, manifest, backbone)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_folder_is_one_line_and_a_hint(
    damage: str, folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    harm, said = DAMAGES[damage]
    harm(folder)
    with pytest.raises(RunError) as caught, Run.start(folder, manifest) as run:
        run.done(backbone)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("LARGEST_LESSON", "has 24 rows"),
        ("LARGEST_GROUP", "has 24 rows in one group"),
        ("LARGEST_TABLE", "bytes unpacked"),
    ],
)
def test_a_lesson_that_would_not_fit_into_memory_is_not_read(
    limit: str,
    said: str,
    folder: Path,
    manifest: Manifest,
    backbone: Backbone,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, limit, 23)
    with pytest.raises(RunError, match=said), Run.start(folder, manifest) as run:
        run.done(backbone)


@pytest.mark.usefixtures("all_long")
def test_of_a_long_lesson_no_group_may_be_too_large_to_unpack(
    folder: Path, manifest: Manifest, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups are unpacked one at a time: their sum may be larger than any memory."""
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(folder / "rounds/1/lesson.parquet")
    largest = max(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
    monkeypatch.setattr(runs, "LARGEST_TABLE", 2 * largest)
    with Run.start(folder, manifest) as run:
        assert len(run.done(backbone)) == 3
    monkeypatch.setattr(runs, "LARGEST_TABLE", largest - 1)
    with pytest.raises(RunError, match=f"has {largest:,} bytes unpacked"):
        Run.start(folder, manifest).done(backbone)


class Uncounted:
    """A pool that can be read again, but has no length."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


@pytest.mark.parametrize("kind", [list, Uncounted])
def test_a_round_too_large_to_be_read_back_is_refused_before_training(
    kind: Callable[[Any], Any], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LARGEST_LESSON", 39)
    split = replace(small_run.split(), unlabeled=kind(small_run.split().unlabeled))
    given = {"backbone": backbone, "seed": 7, "on": small_run.MACHINE}
    for method in (replace(small_run.METHOD, pool=size) for size in ("all", 40)):
        with pytest.raises(RunError, match=r"would judge 40 rows; .* at most 39") as caught:
            Manifest.of(small_run.TASK, split, method, **given)
        assert caught.value.hint
    for fine in ({"pool": 39}, {"pool": "all", "rounds": 0}):
        Manifest.of(small_run.TASK, split, replace(small_run.METHOD, **fine), **given)


def test_a_lesson_that_could_not_be_read_back_is_not_written(
    begun: Run, rounds: list[Round], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(runs, "LARGEST_TABLE", 23)
        with pytest.raises(RunError, match="bytes unpacked, more than is ever read") as caught:
            begun.save(rounds[1])
    assert caught.value.hint
    check_only_the_teacher_is_there(begun, backbone)


def test_a_text_repeated_in_a_lesson_takes_its_room_once(
    folder: Path, manifest: Manifest, backbone: Backbone
) -> None:
    """Packed, a text takes no more room a million times than once."""
    line = {"label": ["good"], "confidence": [0.5], "certainty": [0.5], "weight": [0.5]}
    line |= {"uid": ["x" * 100_000], "role": ["easy"]}
    relessoned(folder, **{name: column * 100 for name, column in line.items()})
    with Run.start(folder, manifest) as run:
        audit = run.done(backbone)[1].lesson.audit
    assert len(audit) == 100
    assert len({id(each.uid) for each in audit}) == 1


def test_any_changed_byte_of_a_model_is_noticed(folder: Path, backbone: Backbone) -> None:
    random = Random(0)
    for name in ("model.safetensors", "model.json"):
        path = folder / "rounds/2" / name
        whole = path.read_bytes()
        for _ in range(10):
            place = random.randrange(len(whole))
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(RunError, match="its sha256 differs"):
                runs.load(folder)
        path.write_bytes(whole)
    assert runs.load(folder, backbone=backbone.name)


def test_a_backbone_named_in_a_folder_is_not_followed_out_of_it(
    folder: Path, backbone: Backbone
) -> None:
    with pytest.raises(SelftrainError, match="is not embedded") as caught:
        runs.load(folder)
    assert caught.value.hint == f"give it yourself: --backbone {backbone.name}"


def test_a_model_made_to_fit_its_own_digest_is_still_compared_with_the_backbone(
    folder: Path, backbone: Backbone
) -> None:
    teacher, student = (folder / f"rounds/{n}/model.safetensors" for n in (0, 1))
    relisted(folder, **{"model.safetensors": swapped(student, teacher.read_bytes())})
    with pytest.raises(SelftrainError, match="tensor"):
        runs.load(folder, 1, backbone=backbone.name)


def test_a_foreign_folder_is_left_as_it_is(tmp_path: Path, manifest: Manifest) -> None:
    (tmp_path / "holiday").write_bytes(b"beach")
    with pytest.raises(RunError, match="it holds 'holiday'"):
        Run.start(tmp_path, manifest)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday"]


@pytest.mark.parametrize("reads", [runs.load, runs.history, runs.read_manifest])
@pytest.mark.parametrize("place", ["missing", "empty", "file"])
def test_what_is_no_run_folder_is_said_to_be_none(
    reads: Callable[[Path], object], place: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"not a run folder|a run is a folder"):
        reads(tmp_path / place)


def test_a_run_without_a_whole_round_has_no_model(tmp_path: Path, manifest: Manifest) -> None:
    with Run.start(tmp_path, manifest):
        assert runs.history(tmp_path) == []
        with pytest.raises(RunError, match="no whole round yet"):
            runs.load(tmp_path)


def test_a_round_that_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(RunError, match="has no round 3; its last one is 2"):
        runs.load(folder, 3)


# ── errors while writing ──


@pytest.fixture
def begun(tmp_path: Path, rounds: list[Round], manifest: Manifest) -> Iterator[Run]:
    """A run with its teacher saved."""
    with Run.start(tmp_path / "run", manifest) as run:
        run.save(rounds[0])
        yield run


def check_only_the_teacher_is_there(run: Run, backbone: Backbone) -> None:
    assert [path.name for path in (run.folder / "rounds").iterdir()] == ["0"]
    assert [round_.number for round_ in run.done(backbone)] == [0]


@pytest.mark.parametrize(
    "step",
    [
        "selftrain.classifier.Classifier.save",
        "pyarrow.parquet.ParquetWriter.write_table",
        "os.fsync",
        "pathlib.Path.replace",
    ],
)
def test_a_full_disk_at_any_step_leaves_the_earlier_rounds_whole(
    step: str,
    begun: Run,
    rounds: list[Round],
    backbone: Backbone,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(step, full)
        with pytest.raises(RunError, match=r"cannot write .*: No space left on device") as caught:
            begun.save(rounds[1])
    assert caught.value.hint is not None
    assert "df -h" in caught.value.hint
    check_only_the_teacher_is_there(begun, backbone)
    begun.save(rounds[1])
    assert len(begun.done(backbone)) == 2


def test_what_a_killed_save_left_gives_way_to_the_next(
    begun: Run, rounds: list[Round], backbone: Backbone
) -> None:
    (begun.folder / "rounds" / "1.tmp").mkdir()
    (begun.folder / "rounds" / "1.tmp" / "half").touch()
    begun.save(rounds[1])
    assert [path.name for path in sorted((begun.folder / "rounds").iterdir())] == ["0", "1"]
    assert len(begun.done(backbone)) == 2


def test_an_interrupted_save_leaves_nothing_behind(
    begun: Run, rounds: list[Round], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "_write_lesson", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begun.save(rounds[1])
    check_only_the_teacher_is_there(begun, backbone)


def test_a_really_full_disk_leaves_the_earlier_rounds_whole(
    tmp_path: Path, backbone: Backbone
) -> None:
    process = forks.Process(target=save_on_a_small_disk, args=(tmp_path, Path(backbone.name)))
    process.start()
    process.join()
    assert process.exitcode == 0


def save_on_a_small_disk(place: Path, bert: Path) -> None:
    """Save a round where there is room for one, in a process that can be thrown away."""
    fill_up = small_disk(place)  # first: a process with threads may not move to a new namespace
    torch.set_num_threads(1)
    backbone = load(bert)
    split, on = small_run.split(), small_run.MACHINE
    loop = self_train(small_run.TASK, split, small_run.METHOD, backbone=backbone, seed=7, on=on)
    with Run.start(place / "run", small_run.manifest(backbone)) as run:
        run.save(next(loop))
        fill_up()
        student = next(loop)
        with pytest.raises(RunError, match=r"cannot write .*: (No space left|File too large)"):
            run.save(student)
        check_only_the_teacher_is_there(run, backbone)


def small_disk(place: Path) -> Callable[[], object]:
    """Mount a disk of 1 MB that only this process sees; gives what fills it to the last block.

    Where mounting is forbidden, a limit on the size of files stands in for it.
    """
    new_user, new_mount = 0x10000000, 0x00020000  # CLONE_NEWUSER, CLONE_NEWNS
    root = {"setgroups": "deny", "uid_map": f"0 {os.getuid()} 1", "gid_map": f"0 {os.getgid()} 1"}
    libc = ctypes.CDLL(None)
    if libc.unshare(new_user | new_mount) == 0:
        for name, line in root.items():
            Path("/proc/self", name).write_text(line)
        if libc.mount(b"tmpfs", str(place).encode(), b"tmpfs", 0, b"size=1m") == 0:
            return lambda: fill(place / "filler")
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
