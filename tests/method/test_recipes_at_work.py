"""What named methods pick and train; the grids of the paper's tables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from by_hand import MACHINE, SPLIT, TASK, random_votes, same
from methods import differences
from selftrain.data.rows import Example
from selftrain.experiments.grid import grid_of
from selftrain.experiments.gridfile import read_grid
from selftrain.experiments.names import MAIN, PEL, ablations
from selftrain.experiments.references import REFERENCES
from selftrain.method.recipes import BASES, recipe
from selftrain.method.scores import joined
from selftrain.method.selection import Reliable, RoundDraw, Selection, Uniform
from selftrain.method.spec import Method, digest
from selftrain.method.upet import ABLATIONS
from selftrain.training.job import Job
from selftrain.training.loop import self_train

GRIDS = sorted((Path(__file__).parents[2] / "benchmarks" / "paper").glob("*.toml"))


def small(method: Method, **more) -> Method:
    """The method in a second's work."""
    short = {"steps": 3, "epochs": None, "batch_size": 4}
    return replace(
        method,
        teacher=replace(method.teacher, **short),
        student=tuple(replace(how, **short) for how in method.student),
        rounds=min(method.rounds, 2),
        pool=16,
        passes=min(method.passes, 2),
        converged=0,
        **more,
    )


# ── on what it computes ──────────────────────────────────────────────────────────────────────


def lesson_of(pick: Selection, seen):
    examples = [Example(f"row {i}", f"text {i}") for i in range(len(seen.mean))]
    return pick([(examples, seen)], ["a", "b", "c"], (), RoundDraw(len(examples), 1, 12))


def test_ust_with_equal_variances_is_plain_class_quota_sampling():
    """Where the passes agree, certainty is 1 for every row and every weight is the same."""
    seen = random_votes(60, 3, passes=4, seed=3, noise=0.0)
    ust, plain = recipe("ust").select, replace(recipe("ust").select, score=Uniform(), weigh=None)
    drawn, uniform = lesson_of(ust, seen), lesson_of(plain, seen)
    assert [row.example for row in drawn.easy] == [row.example for row in uniform.easy]
    (weight,) = {row.weight for row in drawn.easy}
    assert weight == pytest.approx(-0.1 * math.log(1e-10))
    assert {row.weight for row in uniform.easy} == {1.0}


@pytest.mark.parametrize("per_class", ["proportional", "equal", "none"])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_of_one_part_alone_ranks_take_the_same_easy_and_hard_rows(alpha, per_class):
    """With ties, which share a rank: a third of the rows has the votes of another."""
    order = torch.cat([torch.arange(200), torch.arange(100)])
    tied = joined([random_votes(200, 3, passes=4, seed=6)], order)
    pick = replace(recipe("upet-head-adapter").select, per_class=per_class)
    raw, rank = (
        lesson_of(replace(pick, score=Reliable(alpha=alpha, scale=scale)), tied)
        for scale in ("raw", "rank")
    )
    assert (pick.how, pick.hard) == ("topk", "bottom")
    assert raw.hard
    assert (rank.easy, rank.hard) == (raw.easy, raw.hard)
    mixed = (
        lesson_of(replace(pick, score=Reliable(alpha=0.4, scale=scale)), tied)
        for scale in ("raw", "rank")
    )
    assert len({lesson.easy for lesson in mixed}) == 2


def test_self_training_learns_from_every_row_and_keeps_no_hard_one():
    seen = random_votes(40, 3, passes=1, seed=4)
    lesson = lesson_of(recipe("head-st").select, seen)
    assert (len(lesson.easy), len(lesson.hard)) == (40, 0)
    expected = [("a", "b", "c")[c] for c in seen.plain.argmax(1).tolist()]
    found = {row.example.uid: row.label for row in lesson.easy}
    assert [found[f"row {i}"] for i in range(40)] == expected


def test_without_sampling_all_of_it_is_easy_and_nothing_is_left_to_contrast_with():
    method = recipe("upet-head-adapter-wo-res-all")
    lesson = lesson_of(method.select, random_votes(40, 3, passes=4, seed=4))
    assert (len(lesson.easy), len(lesson.hard)) == (40, 0)
    assert method.student[0].contrast is None


def test_without_sampling_as_many_rows_are_drawn_by_chance_and_the_rest_is_hard():
    """Which rows they are depends on no vote but for the classes' quotas."""
    whole, uniform = (recipe(f"upet-head-adapter{part}").select for part in ("", "-wo-res-uniform"))
    seen, others = (random_votes(80, 3, passes=4, seed=4, noise=noise) for noise in (0.5, 2))
    lesson = lesson_of(uniform, seen)
    assert len(lesson.easy) == len(lesson_of(whole, seen).easy) == 20
    easy, hard = ({row.example for row in part} for part in (lesson.easy, lesson.hard))
    assert len(hard) == 60
    assert not easy & hard
    one, other = (lesson_of(replace(uniform, per_class="none"), votes) for votes in (seen, others))
    assert {row.example for row in one.easy} == {row.example for row in other.easy}


def test_soft_labels_of_list_are_the_plain_answers():
    seen = random_votes(20, 3, passes=1, seed=5)
    lesson = lesson_of(recipe("list").select, seen)
    soft = {row.example.uid: row.soft for row in lesson.easy}
    assert all(soft[f"row {i}"] == pytest.approx(seen.plain[i].tolist()) for i in range(20))


@pytest.mark.parametrize(
    "name",
    [
        *BASES,
        *(f"upet-head-adapter-wo-{each.part}" for each in ABLATIONS),
        *(f"upet-head-adapter-alpha-0.2-{end}" for end in ("rank-topk", "raw-sample")),
    ],
)
def test_every_method_runs_through_the_one_loop(tiny_backbone, name):
    method = small(recipe(name))
    job = Job(TASK, SPLIT, method, tiny_backbone("bert"), 1)
    rounds = list(self_train(job, machine=MACHINE))
    assert len(rounds) == method.total_rounds + 1
    assert all(not round_.last for round_ in rounds)


def test_ust_students_go_on_from_their_teacher(tiny_backbone):
    method = small(recipe("ust"))
    still = replace(method.student[0], learning_rate=1e-60, head_learning_rate=None)
    job = Job(TASK, SPLIT, replace(method, student=(still,)), tiny_backbone("bert"), 1)
    teacher, student, *_ = self_train(job, machine=MACHINE)
    assert same(teacher.model, student.model)


# ── the grids of the paper's tables ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_a_grid_of_the_paper_can_be_run_by_the_command_in_its_first_lines(path):
    """Unknown methods, tasks and references are errors."""
    grid = grid_of(read_grid(path), "test")
    assert grid.methods
    assert list(grid.groups())
    for name, method in grid.methods.items():
        assert name == method.name
    head = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    assert head[-1].startswith("#     selftrain bench DATA -o runs/")
    assert head[-1].endswith(f" --grid benchmarks/paper/{path.name}")


def methods_of(name: str) -> dict[str, Method]:
    (path,) = (path for path in GRIDS if path.stem == name)
    return dict(grid_of(read_grid(path), "test").methods)


def test_the_grids_cover_the_tables_they_are_for():
    assert set(methods_of("main")) == set(MAIN) - set(REFERENCES) - {"ust-hard"}
    assert set(methods_of("pel")) == set(PEL["head"].values())
    assert ablations("upet-head-adapter").keys() < methods_of("ablation").keys()


def test_the_grid_of_alpha_computes_none_twice():
    """Six alphas on two scales by two draws, of which two are raw and rank alike."""
    alphas = methods_of("alpha").values()
    assert len(alphas) == 24
    assert len(set(map(digest, alphas))) == 22


def test_the_grids_of_modules_differ_in_a_rate_or_a_length_alone():
    rates = methods_of("prefix_rate")
    faster = {
        "upet-prompt-prefix": ("prompt-2e-2", "prompt-5e-2"),
        "upet-head-prefix": ("upet-head-prefix-5e-2",),
    }
    for name, variants in faster.items():
        for variant in variants:
            assert differences(rates[variant], rates[name]) == {"student.0.learning_rate"}
        assert digest(rates[variants[-1]]) == digest(replace(recipe(name), rounds=1))
    lengths = methods_of("ptuning_length")
    for name in ("upet-head-ptuning", "upet-prompt-ptuning"):
        assert differences(lengths[f"{name}-4"], lengths[name]) == {"student.0.tuning.length"}
        assert [lengths[each].student[0].tuning.length for each in (name, f"{name}-4")] == [16, 4]


def test_the_trunks_differ_in_the_layers_of_the_student_alone():
    whole, *cut = methods_of("trunk").values()
    (half,) = methods_of("states").values()
    assert [method.student[0].tuning.layers for method in (whole, *cut)] == [None, 3, 1]
    for method in cut:
        assert differences(method, whole) == {"student.0.tuning.layers"}
    assert half.student[0].states == "fp16"
    assert differences(half, cut[0]) == {"student.0.states"}
