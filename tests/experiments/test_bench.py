"""A grid of cells: what is computed, what it says, and what a killed grid goes on with."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest
from filelock import FileLock

from by_hand import METHOD, STUDENT
from selftrain.data.task import find
from selftrain.disk import slug
from selftrain.errors import ConfigError, RunError, TrainingError
from selftrain.experiments import bench, results, tasksets
from selftrain.experiments.grid import Grid, Group, grid_of
from selftrain.experiments.tables import KINDS, Choice
from selftrain.method.recipes import recipe
from selftrain.model.pel import BitFit
from selftrain.runs import read as runs
from selftrain.runs.train import train
from selftrain.training import loop
from selftrain.training.fit import fit
from small_bench import FT, ST


def test_each_cell_is_a_run_folder_and_a_line(small_bench):
    found = list(small_bench().run())
    assert len(found) == 2 * (2 + 3)  # seeds x (majority and frozen-lr, three methods)
    assert results.read(small_bench().out / "cells.jsonl") == found
    for result in found:
        if result.run is None:
            assert result.method in ("majority", "frozen-lr")
            continue
        folder = small_bench().out / result.run
        assert runs.read_manifest(folder).seed == result.seed
        assert len(result.by_round) == len(runs.records(folder))
        assert result.by_round[result.final_round] == result.accuracy
        assert result.rows == 30
        assert result.seconds > 0


def test_a_finished_grid_computes_nothing(small_bench, monkeypatch):
    list(small_bench().run())
    monkeypatch.setattr(bench, "train", None)
    assert small_bench().missing() == []
    assert list(small_bench().run()) == []


def test_a_grid_goes_on_where_it_was_stopped(small_bench):
    whole = list(small_bench("whole").run())
    first = small_bench("parts").run()
    begun = [next(first) for _ in range(4)]
    first.close()
    rest = list(small_bench("parts").run())
    resumed = [replace(result, seconds=None) for result in begun + rest]
    assert resumed == [replace(result, seconds=None) for result in whole]


def test_another_method_under_the_same_name_is_another_cell(small_bench):
    list(small_bench().run())
    changed = small_bench(methods={"upet": replace(METHOD, passes=2), "st": ST, "ft": FT})
    assert {name for _, name in changed.missing()} == {"upet"}
    assert [result.method for result in changed.run()] == ["upet", "upet"]
    assert len(results.read(changed.out / "cells.jsonl")) == 12


def test_fewer_scored_rows_are_another_cell(small_bench):
    list(small_bench(seeds=(12,), methods={}).run())
    few = small_bench(seeds=(12,), methods={}, max_rows=5)
    assert [result.rows for result in few.run()] == [5, 5]


def test_cells_of_other_rows_or_weights_are_never_taken_for_these(small_bench, data, tiny_folder):
    one = {"seeds": (12,), "methods": {}}
    (first, _) = small_bench(**one).run()
    weights = small_bench(**one)
    results.append(weights.out / "cells.jsonl", replace(first, weights="other"))
    with pytest.raises(RunError, match="before the weights of"):
        list(replace(weights, grid=replace(weights.grid, seeds=(21,))).run())
    results.append(weights.out / "cells.jsonl", first)
    path = data / "sst2" / "test.jsonl"
    path.write_text(path.read_text() + json.dumps({"text": "one more", "label": "positive"}) + "\n")
    with pytest.raises(RunError, match="before the rows of `sst2` changed"):
        small_bench(**one).missing()


def test_a_task_file_of_ones_own_is_called_by_its_name(small_bench, data, tmp_path):
    path = tmp_path / "files" / "mine.toml"
    path.parent.mkdir()
    path.write_text('name = "letters"\nlabels = ["negative", "positive"]\n', "utf-8")
    (data / "sst2").rename(data / "letters")
    found = list(small_bench(methods={"ft": FT}, tasks=(str(path),)).run())
    assert {result.task for result in found} == {"letters"}
    assert [each.name for each in (small_bench().out / "runs").iterdir()] == ["letters"]
    assert "files" not in (small_bench().out / "cells.jsonl").read_text("utf-8")
    assert not list(small_bench(methods={"ft": FT}, tasks=(str(path),)).run())
    with (data / "letters" / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "one more", "label": "positive"}\n')
    with pytest.raises(RunError, match="the rows of `letters`"):
        small_bench(methods={"ft": FT}, tasks=(str(path),)).written()


def test_a_cell_that_says_nothing_of_its_rows_counts(small_bench):
    (first, second) = small_bench(seeds=(12,), methods={}).run()
    for result in (first, second):
        results.append(small_bench().out / "cells.jsonl", replace(result, data="", weights=""))
    assert small_bench(seeds=(12,), methods={}).missing() == []


def test_the_majority_class_is_that_of_the_scored_rows(small_bench, data):
    lines = [json.dumps({"text": f"text {n}", "label": "positive"}) for n in range(9)]
    lines.append(json.dumps({"text": "other", "label": "negative"}))
    (data / "sst2" / "test.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (only,) = small_bench(seeds=(12,), methods={}, references=("majority",)).run()
    assert only.accuracy == 0.9


def test_a_cell_that_fails_is_passed_over_and_told_at_the_end(small_bench):
    far = replace(
        METHOD,
        name="far",
        teacher=replace(METHOD.teacher, learning_rate=1e30, head_learning_rate=None),
    )
    here = small_bench(seeds=(12,), references=(), methods={"far": far, "upet": METHOD})
    with pytest.raises(
        TrainingError, match="cells that failed: 1, the first far on sst2: the loss"
    ):
        list(here.run())
    assert [result.method for result in results.read(here.out / "cells.jsonl")] == ["upet"]


def test_a_method_that_a_backbone_cannot_do_is_passed_over(small_bench, tiny_folder):
    """Here a family without biases: what comes after it in the grid is computed all the same."""
    student = replace(STUDENT, tuning=BitFit())
    methods = {"bias": replace(METHOD, name="bias", student=(student,)), "ft": FT}
    here = small_bench(
        seeds=(12,), references=(), methods=methods, backbones=(str(tiny_folder("modernbert")),)
    )
    with pytest.raises(ConfigError, match="cells that failed: 1, the first bias on sst2"):
        list(here.run())
    assert [result.method for result in results.read(here.out / "cells.jsonl")] == ["ft"]


def test_what_another_process_writes_is_left_to_it_and_counted(small_bench, caplog):
    caplog.set_level(logging.INFO, logger="selftrain")
    here = small_bench(seeds=(12,), references=(), methods={"ft": FT})
    (group,) = here.grid.groups()
    folder = here.folder(group, "ft", FT)
    folder.mkdir(parents=True)
    with FileLock(folder / ".lock"):
        assert list(here.run()) == []
    assert caplog.messages[-1] == "cells left to other processes: 1"


def test_a_class_with_fewer_rows_than_asked_for_is_logged(small_bench, caplog):
    here = small_bench(seeds=(12,), shots=(40,), methods={})
    list(here.run())
    place = f"sst2/{slug(here.grid.backbones[0])}/40-shot/seed-12"
    assert f"{place}: class `negative` has fewer than 40 rows: all taken: 39" in caplog.messages


def test_a_student_that_breaks_off_is_no_quiet_copy_of_its_teacher(small_bench):
    """Its rate is absurd: the teacher's score stands, and the cell and its table say why."""
    wild = replace(METHOD, rounds=2, student=(replace(STUDENT, learning_rate=1e37),))
    grid = {"methods": {"upet-head-adapter": wild, "head-ft": FT}, "references": ("majority",)}
    broken, plain = [
        cell for cell in small_bench(**grid, seeds=(12,)).run() if cell.method != "majority"
    ]
    assert (broken.final_round, broken.refused, broken.rounds) == (0, (1,), 2)
    assert (broken.by_round, broken.accuracy) == ((plain.accuracy, None), plain.accuracy)
    assert (plain.refused, plain.rounds, plain.device) == ((), 0, "cpu")
    (sheet, *_) = KINDS["main"]([broken, plain], Choice(shots=4))
    assert any("in 1 of 1 runs, in 1 because training broke off" in note for note in sheet.notes)


def test_nothing_that_is_trained_depends_on_the_labels_that_are_scored(small_bench, data):
    """Test rows with their labels turned round: every model and every lesson has the same bits."""
    grid = {"methods": {"upet": METHOD}, "seeds": (12,), "references": ()}
    (first,) = small_bench(**grid).run()
    path = data / "sst2" / "test.jsonl"
    turned = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in turned:
        row["label"] = {"positive": "negative", "negative": "positive"}[row["label"]]
    path.write_text("".join(json.dumps(row) + "\n" for row in turned), "utf-8")
    (second,) = small_bench("turned", **grid).run()
    assert second.accuracy == pytest.approx(1 - first.accuracy)
    one, two = (
        small_bench(out).out / cell.run for out, cell in (("out", first), ("turned", second))
    )
    for name in ("model.safetensors", "model.json", "lesson.parquet"):
        for number in range(METHOD.rounds + 1):
            same = f"rounds/{number}/{name}"
            assert (one / same).read_bytes() == (two / same).read_bytes()


def test_the_last_model_is_counted(small_bench):
    (only,) = small_bench(seeds=(12,), references=(), methods={"upet": METHOD}).run()
    teacher, student = only.tuned
    assert student < teacher < only.total


def test_more_rounds_go_on_from_fewer_and_fewer_are_read_from_more(small_bench, monkeypatch):
    def of(out, rounds):
        methods = {"upet": replace(METHOD, rounds=rounds)}
        here = small_bench(out, seeds=(12,), references=(), methods=methods)
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


@pytest.mark.parametrize("lost", ["fit", "seconds"])
def test_a_run_that_does_not_say_what_it_took_is_passed_over(small_bench, monkeypatch, lost):
    """A run folder may come from anyone."""
    here = small_bench(seeds=(12,), references=(), methods={"ft": FT})

    def poor(*given, **more):
        for round_ in train(*given, **more):
            yield replace(round_, numbers={k: v for k, v in round_.numbers.items() if k != lost})

    monkeypatch.setattr(bench, "train", poor)
    with pytest.raises(RunError, match=r"round 0 of .* does not say what its training took"):
        list(here.run())


def test_one_method_under_two_names_is_computed_once(small_bench, monkeypatch):
    both = {"upet": METHOD, "again": replace(METHOD, name="again")}
    here = small_bench(seeds=(12,), references=(), methods=both)
    one, other = here.run()
    assert other == replace(one, method="again")
    assert len(list((here.out / "runs").glob("*/*/*/*/*"))) == 1


def test_one_method_of_two_presets_is_computed_once_and_stands_in_the_table_of_each(small_bench):
    given = {"seeds": (12,), "methods": {"upet": METHOD}}
    *references, one = small_bench(**given, preset="paper").run()
    (other,) = small_bench(**given, preset="published").run()
    assert other == replace(one, preset="published")
    for preset in ("paper", "published"):
        (sheet,) = KINDS["main"](
            results.read(small_bench().out / "cells.jsonl"), Choice(shots=4, preset=preset)
        )
        assert {row[0] for row in sheet.rows} >= {"upet", "majority class"}
    assert len(references) == 2


def test_what_a_method_will_do_to_rows_and_models_is_logged_once(small_bench, caplog):
    caplog.set_level(logging.INFO, logger="selftrain")
    methods = {"a": METHOD, "b": ST, "c": replace(METHOD, passes=2)}
    methods = {name: replace(each, pool=500, rounds=1) for name, each in methods.items()}
    here = small_bench(seeds=(12,), references=(), methods=methods)
    list(here.run())
    place = f"sst2/{slug(here.grid.backbones[0])}/4-shot/seed-12"
    warning = "pool smaller than asked: 72 texts, a round draws 500; all are taken"
    assert caplog.messages.count(f"{place}: {warning}") == 1
    finished = [
        line for line in caplog.messages if line.endswith("is finished: these are its rounds")
    ]
    assert len(finished) == 2  # the later methods take the teacher of the first


# ── who competes ─────────────────────────────────────────────────────────────────────────────


def test_a_grid_scores_test_rows_or_design_rows():
    with pytest.raises(ConfigError, match="scored_on is 'dev'; expected test or design"):
        Grid(methods={}, tasks=("sst2",), scored_on="dev")


def test_what_cannot_be_is_left_out():
    methods = {name: recipe(name) for name in ("head-ft", "prompt-ft", "upet-head-adapter")}
    grid = Grid(methods, ("sst2", "rte"))
    assert grid.names(Group("sst2", "minilm", 16, 12)) == [
        "majority",
        "frozen-lr",
        "head-ft",
        "upet-head-adapter",
    ]
    assert "frozen-lr-apart" in grid.names(Group("rte", "minilm", 16, 12))
    assert "prompt-ft" in grid.names(Group("sst2", "minilm-mlm", 16, 12))


def test_all_labels_leave_no_pool_for_probe_rounds_either():
    grid = grid_of({"shots": ["full"], "methods": ["probe", "head-ft"]}, "test")
    for group in grid.groups():
        assert [name for name in grid.names(group) if name in grid.methods] == ["head-ft"]


def test_all_labels_leave_no_pool_to_train_on(small_bench):
    here = small_bench(shots=("full",), seeds=(12,))
    assert [result.method for result in here.run()] == ["majority", "frozen-lr", "ft"]


def test_design_rows_and_test_rows_are_different_cells(small_bench):
    here, there = (
        small_bench(seeds=(12,), methods={}),
        small_bench(seeds=(12,), methods={}, scored_on="design"),
    )
    assert [result.rows for result in here.run()] == [30, 30]
    assert [result.rows for result in there.run()] == [20, 20]
    assert len(results.read(here.out / "cells.jsonl")) == 4


def test_the_rows_scored_are_the_same_for_every_seed(data):
    rows = tasksets.Taskset.read(data, find("sst2"))
    assert rows.test(10) == rows.test()[:10]
    design = {row.example.uid for row in rows.design}
    for seed in (1, 2):
        split = rows.split(4, seed)
        assert not design & {row.example.uid for row in split.labelled}
        assert not design & {example.uid for example in split.unlabelled}
