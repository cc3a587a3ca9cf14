"""A grid of cells: what is computed, what is shared, and what a killed grid goes on with."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from by_hand import MACHINE, METHOD, STUDENT
from command import config, sentences
from command import selftrain as command
from selftrain import bench, loop, results, runs, shared, tasksets
from selftrain.annotate import annotate
from selftrain.bench import Bench
from selftrain.data import examples
from selftrain.disk import slug
from selftrain.errors import ConfigError, RunError, TrainingError
from selftrain.evaluate import answered
from selftrain.experiment import train
from selftrain.fit import fit
from selftrain.grid import Grid, Group
from selftrain.loop import drawn
from selftrain.losses import CrossEntropy
from selftrain.pel import Adapter, BitFit
from selftrain.recipes import recipe
from selftrain.scores import Votes
from selftrain.shared import read_about, read_votes, write_votes
from selftrain.tables import KINDS, Choice
from selftrain.task import find

LABELS = {"good": "positive", "bad": "negative"}
FT = replace(METHOD, name="ft", student=(), rounds=0)
ST = replace(METHOD, name="st", student=(replace(STUDENT, loss=CrossEntropy(), contrast=None),))


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """A folder with one small task, and few rows set aside for design."""
    monkeypatch.setattr(tasksets, "DESIGN", 20)
    folder = tmp_path / "data" / "sst2"
    folder.mkdir(parents=True)
    for part, count, first in (("train", 100, 0), ("test", 30, 500)):
        lines = [
            json.dumps({"text": text, "label": LABELS[label]})
            for text, label in sentences(count, first)
        ]
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder.parent


@pytest.fixture
def made(data, tmp_path, tiny_folder):
    """A bench of two methods and two seeds on the tiny task."""

    def make(out="out", **more) -> Bench:
        given = {
            "methods": {"upet": METHOD, "st": ST, "ft": FT},
            "tasks": ("sst2",),
            "backbones": (str(tiny_folder("bert")),),
            "seeds": (12, 21),
            "shots": (4,),
            **more,
        }
        return Bench(Grid(**given), data, tmp_path / out, on=MACHINE)

    return make


def test_each_cell_is_a_run_folder_and_a_line(made):
    found = list(made().run())
    assert len(found) == 2 * (2 + 3)  # seeds x (majority and frozen-lr, three methods)
    assert results.read(made().out / "cells.jsonl") == found
    for result in found:
        if result.run is None:
            assert result.method in ("majority", "frozen-lr")
            continue
        folder = made().out / result.run
        assert runs.read_manifest(folder).seed == result.seed
        assert len(result.by_round) == len(runs.history(folder))
        assert result.by_round[result.kept] == result.accuracy
        assert result.rows == 30
        assert result.seconds > 0


def test_a_finished_grid_computes_nothing(made, monkeypatch):
    list(made().run())
    monkeypatch.setattr(bench, "train", None)
    assert made().missing() == []
    assert list(made().run()) == []


def test_a_grid_goes_on_where_it_was_stopped(made):
    whole = list(made("whole").run())
    first = made("parts").run()
    begun = [next(first) for _ in range(4)]
    first.close()
    rest = list(made("parts").run())
    told = [replace(result, seconds=None) for result in begun + rest]
    assert told == [replace(result, seconds=None) for result in whole]


def test_another_method_under_the_same_name_is_another_cell(made):
    list(made().run())
    changed = made(methods={"upet": replace(METHOD, passes=2), "st": ST, "ft": FT})
    assert {name for _, name in changed.missing()} == {"upet"}
    assert [result.method for result in changed.run()] == ["upet", "upet"]
    assert len(results.read(changed.out / "cells.jsonl")) == 12


def test_fewer_scored_rows_are_another_cell(made):
    list(made(seeds=(12,), methods={}).run())
    few = made(seeds=(12,), methods={}, rows=5)
    assert [result.rows for result in few.run()] == [5, 5]


def test_cells_of_other_rows_or_weights_are_never_taken_for_these(made, data, tiny_folder):
    one = {"seeds": (12,), "methods": {}}
    (first, _) = made(**one).run()
    weights = made(**one)
    results.append(weights.out / "cells.jsonl", replace(first, weights="other"))
    with pytest.raises(RunError, match="the weights of"):
        list(replace(weights, grid=replace(weights.grid, seeds=(21,))).run())
    results.append(weights.out / "cells.jsonl", first)
    path = data / "sst2" / "test.jsonl"
    path.write_text(path.read_text() + json.dumps({"text": "one more", "label": "positive"}) + "\n")
    with pytest.raises(RunError, match="the rows of `sst2` were not what they are now"):
        made(**one).missing()


def test_the_estimate_counts_a_shared_teacher_and_its_votes_once(made, monkeypatch):
    monkeypatch.setattr(bench, "seconds_a_row", lambda *_: 1.0)  # so that seconds are rows

    def rows(**methods):
        return made(methods=methods, seeds=(12,), references=()).seconds()

    scored, teacher = 30, rows(ft=FT) - 30
    assert rows(upet=METHOD, ft=FT) == rows(upet=METHOD) + scored
    assert rows(upet=METHOD, st=ST) < rows(upet=METHOD) + rows(st=ST) - teacher
    other = replace(ST, passes=ST.passes + 1)
    both = rows(upet=METHOD) + rows(st=other)
    assert rows(upet=METHOD, st=other) == both - teacher - scored


def test_a_teacher_that_methods_share_is_scored_once(made, monkeypatch):
    asked = []

    def watched(model, held):
        asked.append(model.model)
        return answered(model, held)

    monkeypatch.setattr(bench, "answered", watched)
    upet, st = made(seeds=(12,), references=(), methods={"upet": METHOD, "st": ST}).run()
    assert upet.by_round[0] == st.by_round[0]
    assert len(asked) == 1 + 2 * METHOD.rounds
    alone = made("alone", seeds=(12,), references=(), methods={"st": ST})
    assert [result.by_round for result in alone.run()] == [st.by_round]


def test_a_task_file_of_ones_own_is_called_by_its_name(made, data, tmp_path):
    path = tmp_path / "files" / "mine.toml"
    path.parent.mkdir()
    path.write_text('name = "letters"\nlabels = ["negative", "positive"]\n', "utf-8")
    (data / "sst2").rename(data / "letters")
    found = list(made(methods={"ft": FT}, tasks=(str(path),)).run())
    assert {result.task for result in found} == {"letters"}
    assert [each.name for each in (made().out / "runs").iterdir()] == ["letters"]
    assert "files" not in (made().out / "cells.jsonl").read_text("utf-8")
    assert not list(made(methods={"ft": FT}, tasks=(str(path),)).run())
    with (data / "letters" / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "one more", "label": "positive"}\n')
    with pytest.raises(RunError, match="the rows of `letters`"):
        made(methods={"ft": FT}, tasks=(str(path),)).written()


def test_a_cell_that_says_nothing_of_its_rows_counts(made):
    (first, second) = made(seeds=(12,), methods={}).run()
    for result in (first, second):
        results.append(made().out / "cells.jsonl", replace(result, data="", weights=""))
    assert made(seeds=(12,), methods={}).missing() == []


def test_the_majority_class_is_that_of_the_scored_rows(made, data):
    lines = [json.dumps({"text": f"text {n}", "label": "positive"}) for n in range(9)]
    lines.append(json.dumps({"text": "other", "label": "negative"}))
    (data / "sst2" / "test.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (only,) = made(seeds=(12,), methods={}, references=("majority",)).run()
    assert only.accuracy == 0.9


def test_a_cell_that_fails_is_passed_over_and_told_at_the_end(made):
    far = replace(METHOD, name="far", teacher=replace(METHOD.teacher, rate=1e30, head_rate=None))
    here = made(seeds=(12,), references=(), methods={"far": far, "upet": METHOD})
    with pytest.raises(
        TrainingError, match="cells that failed: 1, the first far on sst2: the loss"
    ):
        list(here.run())
    assert [result.method for result in results.read(here.out / "cells.jsonl")] == ["upet"]


def test_a_method_that_a_backbone_cannot_do_is_passed_over(made, tiny_folder):
    """Here a family without biases: what comes after it in the grid is computed all the same."""
    student = replace(STUDENT, changes=BitFit())
    methods = {"bias": replace(METHOD, name="bias", student=(student,)), "ft": FT}
    here = made(
        seeds=(12,), references=(), methods=methods, backbones=(str(tiny_folder("modernbert")),)
    )
    with pytest.raises(ConfigError, match="cells that failed: 1, the first bias on sst2"):
        list(here.run())
    assert [result.method for result in results.read(here.out / "cells.jsonl")] == ["ft"]


def test_what_another_process_writes_is_left_to_it_and_counted(made):
    said = []
    here = replace(made(seeds=(12,), references=(), methods={"ft": FT}), say=said.append)
    (group,) = here.grid.groups()
    folder = here.folder(group, "ft", FT)
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"):
        assert list(here.run()) == []
    assert said[-1] == "cells left to other processes: 1"


def test_a_class_with_fewer_rows_than_asked_for_is_told(made):
    said = []
    here = replace(made(seeds=(12,), shots=(40,), methods={}), say=said.append)
    list(here.run())
    place = f"sst2/{slug(here.grid.backbones[0])}/40-shot/seed-12"
    assert f"{place}: class `negative` has fewer than 40 rows: all taken: 39" in said


def test_a_student_that_breaks_off_is_no_quiet_copy_of_its_teacher(made):
    """Its rate is absurd: the teacher's score stands, and the cell and its table say why."""
    wild = replace(METHOD, rounds=2, student=(replace(STUDENT, rate=1e37),))
    grid = {"methods": {"upet-head-adapter": wild, "head-ft": FT}, "references": ("majority",)}
    broken, plain = [cell for cell in made(**grid, seeds=(12,)).run() if cell.method != "majority"]
    assert (broken.kept, broken.refused, broken.rounds) == (0, (1,), 2)
    assert (broken.by_round, broken.accuracy) == ((plain.accuracy, None), plain.accuracy)
    assert (plain.refused, plain.rounds, plain.device) == ((), 0, "cpu")
    (sheet, *_) = KINDS["main"]([broken, plain], Choice(shots=4))
    assert any("in 1 of 1 runs, in 1 because training broke off" in note for note in sheet.notes)


def test_a_broken_student_has_the_time_of_its_votes_once(made):
    wild = replace(METHOD, rounds=1, student=(replace(STUDENT, rate=1e37),))
    (only,) = made(methods={"wild": wild}, seeds=(12,), references=()).run()
    rounds = made().out / only.run / "rounds"
    told = [json.loads((rounds / number / "round.json").read_text("utf-8")) for number in "01"]
    spent = sum(each["figures"]["seconds"] for each in told)
    assert only.seconds == pytest.approx(spent, abs=0.011)  # it made them itself: two decimals


def test_nothing_that_is_trained_depends_on_the_labels_that_are_scored(made, data):
    """Test rows with their labels turned round: every model and every lesson has the same bits."""
    grid = {"methods": {"upet": METHOD}, "seeds": (12,), "references": ()}
    (first,) = made(**grid).run()
    path = data / "sst2" / "test.jsonl"
    turned = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in turned:
        row["label"] = {"positive": "negative", "negative": "positive"}[row["label"]]
    path.write_text("".join(json.dumps(row) + "\n" for row in turned), "utf-8")
    (second,) = made("turned", **grid).run()
    assert second.accuracy == pytest.approx(1 - first.accuracy)
    one, two = (made(out).out / cell.run for out, cell in (("out", first), ("turned", second)))
    for name in ("model.safetensors", "model.json", "lesson.parquet"):
        for number in range(METHOD.rounds + 1):
            same = f"rounds/{number}/{name}"
            assert (one / same).read_bytes() == (two / same).read_bytes()


def test_the_last_model_is_counted(made):
    (only,) = made(seeds=(12,), references=(), methods={"upet": METHOD}).run()
    teacher, student = only.tuned
    assert student < teacher < only.total


def test_a_shared_teacher_and_shared_votes_change_no_bit(made):
    """The same method beside others, and by itself in a folder of its own."""
    here = made(seeds=(12,), references=())
    list(here.run())
    alone = made("alone", seeds=(12,), references=(), methods={"upet": METHOD})
    (group,) = alone.grid.groups()
    rows = tasksets.Taskset.read(alone.data, find("sst2"))
    backbone = bench.load(group.backbone)
    split = rows.split(group.shots, group.seed)
    by_itself = list(
        train(
            alone.out / "run",
            rows.task,
            split,
            METHOD,
            backbone=backbone,
            seed=group.seed,
            on=MACHINE,
        )
    )
    folder = here.folder(group, "upet", METHOD)
    for round_ in by_itself:
        beside = runs.load(folder, round_.number, backbone=group.backbone).state()
        mine = round_.model.state()
        assert all(torch.equal(mine[name], beside[name]) for name in mine)


def test_more_rounds_go_on_from_fewer_and_fewer_are_read_from_more(made, monkeypatch):
    def of(out, rounds):
        methods = {"upet": replace(METHOD, rounds=rounds)}
        here = made(out, seeds=(12,), references=(), methods=methods)
        return [replace(result, seconds=None) for result in here.run()]

    (one,), (two,) = of("apart", 1), of("at once", 2)
    assert [len(cell.by_round) for cell in (one, two)] == [2, 3]
    assert of("out", 1) == [one]
    fitted = []
    monkeypatch.setattr(loop, "fit", lambda *a, **k: fitted.append(a) or fit(*a, **k))
    assert of("out", 2) == [two]
    assert len(fitted) == 1  # the student of round 2 alone
    assert of("at once", 1) == [one]
    assert len(fitted) == 1


def test_methods_of_one_teacher_train_it_once(made, monkeypatch):
    here = made(seeds=(12,), references=())
    list(here.run())
    assert len(list((here.out / "shared" / "teachers").iterdir())) == 1
    # upet and st have the same pool and passes, so they have the same first votes
    assert len(list((here.out / "shared" / "votes").iterdir())) == 1


def test_a_teacher_is_shared_by_methods_that_annotate_otherwise(made):
    more = replace(METHOD, name="more", pool=20, passes=2)
    here = made(seeds=(12,), references=(), methods={"upet": METHOD, "more": more})
    assert len(list(here.run())) == 2
    assert len(list((here.out / "shared" / "teachers").iterdir())) == 1
    assert len(list((here.out / "shared" / "votes").iterdir())) == 2


def test_another_teacher_is_not_shared(made):
    other = replace(METHOD, name="other", teacher=replace(METHOD.teacher, rate=1e-3))
    here = made(seeds=(12,), references=(), methods={"upet": METHOD, "other": other})
    list(here.run())
    assert len(list((here.out / "shared" / "teachers").iterdir())) == 2
    assert len(list((here.out / "shared" / "votes").iterdir())) == 2


def test_votes_of_other_rows_or_damaged_ones_are_not_taken(made, data):
    here = made(seeds=(12,), references=(), methods={"upet": METHOD})
    list(here.run())
    (path,) = (here.out / "shared" / "votes").iterdir()
    rows = tasksets.Taskset.read(data, find("sst2"))
    split = rows.split(4, 12)
    pool = drawn(split, METHOD, 1, 12)
    found = read_votes(path, pool, 2, METHOD.passes)
    assert found is not None
    assert read_votes(path, pool[::-1], 2, METHOD.passes) is None
    assert read_votes(path, pool, 3, METHOD.passes) is None
    assert read_votes(path, pool, 2, METHOD.passes + 1) is None
    spoilt = replace(found, mean=found.mean * float("nan"))
    write_votes(path, pool, spoilt, seconds=1.0, by="x")
    assert read_votes(path, pool, 2, METHOD.passes) is None
    path.write_bytes(path.read_bytes()[:-9])
    assert read_votes(path, pool, 2, METHOD.passes) is None
    assert read_about(path) is None


def test_votes_of_another_teacher_are_not_taken(made, monkeypatch):
    """Its folder was removed, say, and newer code has trained another in its place."""
    here = made(seeds=(12,), references=(), methods={"upet": METHOD})
    list(here.run())
    (path,) = (here.out / "shared" / "votes").iterdir()
    before = read_about(path)
    shutil.rmtree(here.out / "shared" / "teachers")
    first_fit = loop.fit

    def otherwise(model, *given, **more):
        first_fit(model, *given, **more)
        return first_fit(model, *given, **more)

    monkeypatch.setattr(loop, "fit", otherwise)
    list(made(seeds=(12,), references=(), methods={"st": ST}).run())
    assert read_about(path).by != before.by


def test_a_pipe_in_the_place_of_votes_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "votes")
    monkeypatch.setattr(shared, "safe_open", lambda *_: pytest.fail("it was opened"))
    assert read_votes(tmp_path / "votes", [], 2, 4) is None
    assert read_about(tmp_path / "votes") is None


def test_votes_that_are_not_there_or_of_another_shape_or_type_are_not_taken(tmp_path):
    rows, path = examples(["a", "b", "c"]), tmp_path / "votes.safetensors"
    right = {name: torch.zeros(3, 2, dtype=torch.float64) for name in shared.PARTS}
    right["entropy"] = torch.zeros(3, dtype=torch.float64)
    assert read_votes(path, rows, 2, 4) is None
    for changes, taken in (
        ({}, True),
        ({"mean": torch.zeros(3, 3, dtype=torch.float64)}, False),
        ({"entropy": torch.zeros(3, 1, dtype=torch.float64)}, False),
        ({"wins": torch.zeros(3, 2)}, False),
    ):
        write_votes(path, rows, Votes(**{**right, **changes}, passes=4), seconds=1.0, by="x")
        assert (read_votes(path, rows, 2, 4) is not None) == taken


def test_the_time_of_shared_votes_counts_for_whoever_did_not_make_them(made, monkeypatch):
    """Also for the one that made them and was killed before its round was whole."""

    def slowly(*given, **more):
        time.sleep(1)
        yield from annotate(*given, **more)

    monkeypatch.setattr(shared, "annotate", slowly)
    both = {name: replace(method, rounds=1) for name, method in (("upet", METHOD), ("st", ST))}
    here = made(seeds=(12,), references=(), methods=both)
    first, second = here.run()
    annotating = [annotated(here.out / each.run) for each in (first, second)]
    assert annotating[0] > 1 > annotating[1]
    assert min(first.seconds, second.seconds) > 1
    (here.out / "cells.jsonl").unlink()
    shutil.rmtree(here.out / first.run / "rounds" / "1")
    again, _ = here.run()
    assert annotated(here.out / again.run) < 1 < again.seconds


def annotated(folder: Path) -> float:
    """Seconds of round 1."""
    return runs.history(folder)[1]["figures"]["seconds annotating"]


@pytest.mark.parametrize("lost", ["fit", "seconds"])
def test_a_run_that_does_not_say_what_it_took_is_passed_over(made, monkeypatch, lost):
    """A run folder may come from anyone."""
    here = made(seeds=(12,), references=(), methods={"ft": FT})

    def poor(*given, **more):
        for round_ in train(*given, **more):
            yield replace(round_, figures={k: v for k, v in round_.figures.items() if k != lost})

    monkeypatch.setattr(bench, "train", poor)
    with pytest.raises(RunError, match=r"round 0 of .* does not say what its training took"):
        list(here.run())


def test_a_teacher_with_a_trunk_is_not_shared(made):
    low = replace(METHOD.teacher, changes=Adapter(width=2, layers=1))
    here = made(seeds=(12,), references=(), methods={"low": replace(METHOD, teacher=low)})
    assert len(list(here.run())) == 1
    assert not (here.out / "shared").exists()


def test_one_method_under_two_names_is_computed_once(made, monkeypatch):
    both = {"upet": METHOD, "again": replace(METHOD, name="again")}
    here = made(seeds=(12,), references=(), methods=both)
    one, other = here.run()
    assert other == replace(one, method="again")
    assert len(list((here.out / "runs").glob("*/*/*/*/*"))) == 1


def test_one_method_of_two_presets_is_computed_once_and_stands_in_the_table_of_each(made):
    given = {"seeds": (12,), "methods": {"upet": METHOD}}
    *references, one = made(**given, preset="paper").run()
    (other,) = made(**given, preset="published").run()
    assert other == replace(one, preset="published")
    for preset in ("paper", "published"):
        (sheet,) = KINDS["main"](
            results.read(made().out / "cells.jsonl"), Choice(shots=4, preset=preset)
        )
        assert {row[0] for row in sheet.rows} >= {"upet", "majority class"}
    assert len(references) == 2


def test_what_a_method_will_do_to_rows_and_models_is_said_once(made):
    said = []
    methods = {"a": METHOD, "b": ST, "c": replace(METHOD, passes=2)}
    methods = {name: replace(each, pool=500, rounds=1) for name, each in methods.items()}
    here = made(seeds=(12,), references=(), methods=methods)
    list(replace(here, say=said.append).run())
    place = f"sst2/{slug(here.grid.backbones[0])}/4-shot/seed-12"
    told = "pool smaller than asked: 72 texts, a round draws 500; all are taken"
    assert said.count(f"{place}: {told}") == 1
    assert [line.endswith("is finished: these are its rounds") for line in said].count(True) == 1


# ── who competes ─────────────────────────────────────────────────────────────────────────────


def names(grid: Grid, group: Group) -> list[str]:
    return grid.names(group)


def test_a_grid_scores_test_rows_or_design_rows():
    with pytest.raises(ConfigError, match="on is 'dev'; expected test or design"):
        Grid(methods={}, tasks=("sst2",), on="dev")


def test_what_cannot_be_is_left_out():
    methods = {name: recipe(name) for name in ("head-ft", "prompt-ft", "upet-head-adapter")}
    grid = Grid(methods, ("sst2", "rte"))
    assert names(grid, Group("sst2", "minilm", 16, 12)) == [
        "majority",
        "frozen-lr",
        "head-ft",
        "upet-head-adapter",
    ]
    assert "frozen-lr-apart" in names(grid, Group("rte", "minilm", 16, 12))
    assert "prompt-ft" in names(grid, Group("sst2", "minilm-mlm", 16, 12))


def test_all_labels_leave_no_pool_to_train_on(made):
    here = made(shots=("full",), seeds=(12,))
    assert [result.method for result in here.run()] == ["majority", "frozen-lr", "ft"]


def test_design_rows_and_test_rows_are_different_cells(made):
    here, there = made(seeds=(12,), methods={}), made(seeds=(12,), methods={}, on="design")
    assert [result.rows for result in here.run()] == [30, 30]
    assert [result.rows for result in there.run()] == [20, 20]
    assert len(results.read(here.out / "cells.jsonl")) == 4


def test_the_rows_scored_are_the_same_for_every_seed(data):
    rows = tasksets.Taskset.read(data, find("sst2"))
    assert rows.test(10) == rows.test()[:10]
    held = {row.example.uid for row in rows.design}
    for seed in (1, 2):
        split = rows.split(4, seed)
        assert not held & {row.example.uid for row in split.labeled}
        assert not held & {example.uid for example in split.unlabeled}


# ── the command ──────────────────────────────────────────────────────────────────────────────

GRID = """\
tasks = ["sst2"]
seeds = [12]
shots = [4]
references = ["majority"]
methods = []

[[variant]]
name = "upet-head-adapter"
as = "mine"
"""


def write_grid(folder: Path, more: str = "") -> Path:
    path = folder / "grid.toml"
    changes = config().replace("method.", "") + "student.head_start = 'random'\n" + more
    path.write_text(GRID + changes, "utf-8")
    return path


def test_the_command_writes_cells_and_goes_on(data, tmp_path, tiny_folder):
    grid, out = write_grid(tmp_path), tmp_path / "out"
    line = f"bench {data} -o {out} --grid {grid} --backbone {tiny_folder('bert')} --threads 1"
    first = command(line)
    assert first.code == 0, first.err
    assert "2 of 2 cells to do" in first.err
    assert "2 cells written" in first.err
    assert first.out == ""
    again = command(line + " --json")
    assert "0 of 2 cells to do" in again.err
    assert json.loads(again.out) == []
    assert [result.method for result in results.read(out / "cells.jsonl")] == ["majority", "mine"]


def test_a_dry_run_says_the_cost_and_writes_nothing(data, tmp_path, tiny_folder):
    out = tmp_path / "out"
    said = command(
        f"bench {data} -o {out} --task sst2 --seeds 12 --shots 4 --dry-run "
        f"--backbone {tiny_folder('bert')} --threads 1"
    )
    assert said.code == 0, said.err
    assert "3 of 3 cells to do: about" in said.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ("--method uts", "there is no method `uts`"),
        ("--task sst3", "task `sst3` is neither known nor a file"),
        ("--task sst2", "two tasks are called `sst2`"),
        ("--shots none", "shots is 'none'"),
        ("--seeds a", "--seeds is 'a'"),
        ("--preset huge", "there is no preset `huge`"),
        ("--preset paper --as-published", "--as-published is a preset of its own"),
        ("--rows 0", "rows is 0"),
        ("--rounds 0", "rounds is 0"),
        ("--shots ²", "shots is '²'"),
        ("--grid nowhere.toml", "cannot read nowhere.toml"),
    ],
)
def test_a_wrong_flag_is_named(data, tmp_path, flags, problem):
    said = command(f"bench {data} -o {tmp_path / 'out'} --task sst2 {flags}")
    assert (said.code, problem in said.err) == (1, True), said.err
    assert "hint: " in said.err


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("methods = [1]", "`methods.0` is 1"),
        ('seeds = ["a"]', "`seeds.0` is 'a'"),
        ("tasks = 3", "`tasks` is 3"),
        ("sleep = 3", "unknown entry `sleep`"),
        ("variant = [1]", "`variant.0` is 1"),
        ('[[variant]]\nname = "head-ft"', "a variant needs the name"),
        ('[[variant]]\nname = "head-ft"\nas = "majority"', "the name of a method is 'majority'"),
        ('[[variant]]\nname = "head-ft"\nas = ".."', "the name of a method is '..'"),
        (
            'methods = ["head-ft"]\n[[variant]]\nname = "head-ft"\nas = "head-ft"',
            "two methods are called `head-ft`",
        ),
    ],
)
def test_a_wrong_grid_is_one_line_and_a_hint(data, tmp_path, lines, problem):
    (tmp_path / "grid.toml").write_text(lines + "\n", "utf-8")
    grid = f"--grid {tmp_path / 'grid.toml'} --task sst2"
    said = command(f"bench {data} -o {tmp_path / 'out'} {grid}")
    assert (said.code, problem in said.err) == (1, True), said.err
    assert "hint: " in said.err


def test_a_task_without_its_folder_is_named(data, tmp_path, tiny_folder):
    said = command(
        f"bench {data} -o {tmp_path / 'out'} --task rte --backbone {tiny_folder('bert')}"
    )
    assert said.code == 1
    assert "has no train file" in said.err
