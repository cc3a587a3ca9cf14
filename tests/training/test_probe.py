"""Probe rounds: Algorithm 1 on stored vectors, where the head alone learns."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from by_hand import GOLD, MACHINE, METHOD, POOL, SPLIT, TASK, TEACHER, same
from selftrain.data.rows import Labelled, Lesson, Split
from selftrain.errors import ConfigError
from selftrain.method.losses import PHCE, CrossEntropy, EasyHard, Soft
from selftrain.method.selection import LowVariance, Selection
from selftrain.method.spec import Method, ProbeRounds, Tune, from_plain, to_plain
from selftrain.model.build import build, with_copied_head
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Full, Probe
from selftrain.training.folds import Folds
from selftrain.training.job import Job
from selftrain.training.loop import self_train
from selftrain.training.probe import Vectors, fit_probe, logits_of, shares, shift_to
from small_loop import SEED, accept, run

PROBE = ProbeRounds(rounds=2, select=Selection(count=None, shares=(0.5, 1.0), how="topk"))
HEAD_ALONE = replace(METHOD, teacher=TEACHER, student=(), rounds=0, probe=PROBE)
FULL_STUDENT = replace(TEACHER, steps=5, gold_share=0.25)
WITH_STUDENT = replace(HEAD_ALONE, student=(FULL_STUDENT,), rounds=1, select=Selection(count=12))


@pytest.fixture
def bert(tiny_backbone):
    return tiny_backbone("bert")


def encoder_of(model: Classifier) -> dict[str, torch.Tensor]:
    return {name: t for name, t in model.state().items() if not name.startswith("head.")}


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


# ── which rounds there are ───────────────────────────────────────────────────────────────────


def test_probe_rounds_follow_the_teacher_and_each_student():
    method = replace(WITH_STUDENT, rounds=2)
    assert method.total_rounds == 2 + 3 * 2
    kinds = ["probe" if method.is_probe(n) else "student" for n in range(1, 9)]
    assert kinds == ["probe", "probe", "student"] * 2 + ["probe", "probe"]
    assert [method.turn(n) for n in range(1, 9)] == [1, 2, 1, 1, 2, 2, 1, 2]
    assert method.selection(1) is PROBE.select
    assert method.selection(3) is method.select


def test_a_method_without_them_has_the_rounds_it_had():
    assert (METHOD.total_rounds, METHOD.is_probe(1), METHOD.turn(2)) == (2, False, 2)
    assert METHOD.selection(1) is METHOD.select


# ── the head alone moves ─────────────────────────────────────────────────────────────────────


def test_only_the_head_moves_and_the_encoder_stays_the_teachers(bert):
    teacher, *students = run(bert, HEAD_ALONE)
    assert [student.encoder_of for student in students] == [0, 0]
    for student in students:
        assert equal(encoder_of(student.model), encoder_of(teacher.model))
        assert not torch.equal(student.model.head.out.weight, teacher.model.head.out.weight)
        assert student.numbers["fit"][0]["tuned"] == sum(
            tensor.numel() for tensor in student.model.head_state().values()
        )


def test_a_student_after_probe_rounds_trains_an_encoder_and_probe_rounds_go_on_from_it(bert):
    rounds = run(bert, WITH_STUDENT)
    assert [round_.encoder_of for round_ in rounds] == [None, 0, 0, None, 3, 3]
    assert not equal(encoder_of(rounds[3].model), encoder_of(rounds[0].model))
    assert equal(encoder_of(rounds[5].model), encoder_of(rounds[3].model))
    # The shares start again: half of the pool, then all of it.
    picked = [round_.numbers["picked"] for round_ in rounds[1:]]
    assert picked == [12, 24, 12, 12, 24]


def test_each_text_is_read_once_for_an_encoder(bert, monkeypatch):
    read = []
    original = Classifier.read

    def watched(model, examples, *more):
        read.extend(example.uid for example in examples)
        return original(model, examples, *more)

    monkeypatch.setattr(Classifier, "read", watched)
    run(bert, replace(HEAD_ALONE, probe=replace(PROBE, rounds=5)))
    assert len(read) == len(set(read)) == HEAD_ALONE.pool + len(GOLD)


def test_all_rounds_read_one_draw_of_the_pool_and_the_audit_covers_it(bert):
    _, *students = run(bert, WITH_STUDENT)
    drawn = [{line.uid for line in student.lesson.audit} for student in students]
    assert all(uids == drawn[0] for uids in drawn)
    assert len(drawn[0]) == HEAD_ALONE.pool


def test_votes_rest_on_dropout_of_the_vectors(bert):
    """T small matrix products: certainty is below 1, and the plain pass is the model's answer."""
    model = build(TASK, bert, TEACHER.architecture, seed=1)
    with torch.no_grad():
        model.head.out.weight.mul_(100)
    vectors = Vectors(model, POOL, GOLD, MACHINE)
    ((rows, votes),) = vectors.annotate(model, POOL, 5, seed=3, machine=MACHINE)
    assert rows == POOL
    assert votes.passes == 5
    assert float(votes.variance.max()) > 0
    assert votes.plain.float() == pytest.approx(model.probabilities(POOL), abs=1e-5)
    ((_, again),) = vectors.annotate(model, POOL, 5, seed=3, machine=MACHINE)
    assert torch.equal(votes.mean, again.mean)
    ((_, other),) = vectors.annotate(model, POOL, 5, seed=4, machine=MACHINE)
    assert not torch.equal(votes.mean, other.mean)


# ── the regression of a round ────────────────────────────────────────────────────────────────


def lesson_of(model: Classifier) -> Lesson:
    easy = tuple(
        Labelled(row, "bad" if row.uid.startswith("bad") else "good", soft=(0.7, 0.3))
        for row in POOL
    )
    return Lesson(gold=GOLD, easy=easy)


@pytest.mark.parametrize("loss", [CrossEntropy(), PHCE(tau=4), Soft()])
def test_the_head_learns_the_lesson_by_any_loss(bert, loss):
    model = build(TASK, bert, TEACHER.architecture, seed=1)
    vectors = Vectors(model, POOL, GOLD, MACHINE)
    student = with_copied_head(model)
    probe = replace(PROBE, loss=loss, prior=0.0, penalty=1e-4)
    fitted = fit_probe(student, lesson_of(model), probe, vectors)
    assert fitted.steps >= 1
    assert fitted.contrast is None
    rows = torch.cat([vectors.gold, vectors.pool])
    labels = torch.tensor([TASK.labels.index(row.label) for row in (*GOLD, *lesson_of(model).easy)])
    soft = torch.tensor([[0.7, 0.3]]).repeat(len(labels), 1)
    soft[: len(GOLD)] = torch.eye(2)[labels[: len(GOLD)]]
    before, after = (
        float(loss(logits_of(each, rows), labels, soft).mean()) for each in (model, student)
    )
    assert after < before
    assert fitted.loss == pytest.approx(after, abs=1e-4)


def test_rows_are_weighed_as_the_lesson_says(bert):
    method = replace(HEAD_ALONE, probe=replace(PROBE, select=replace(PROBE.select, weigh=None)))
    weighed = replace(PROBE, select=replace(PROBE.select, weigh=LowVariance()))
    one = run(bert, method)[-1]
    other = run(bert, replace(method, probe=weighed))[-1]
    assert not same(one.model, other.model)


def test_the_prior_held_wholly_keeps_the_class_shares_that_round_0_answers(bert):
    model = build(TASK, bert, TEACHER.architecture, seed=1)
    vectors = Vectors(model, POOL, GOLD, MACHINE)
    wanted = vectors.answered
    only_bad = Lesson(gold=GOLD, easy=tuple(Labelled(row, "bad") for row in POOL))
    found = {}
    for prior in (0.0, 0.5, 1.0):
        student = with_copied_head(model)
        fit_probe(student, only_bad, replace(PROBE, prior=prior), vectors)
        found[prior] = logits_of(student, vectors.pool).softmax(1).mean(0)
    assert found[1.0] == pytest.approx(wanted, abs=1e-3)
    distances = [float((found[prior] - wanted).abs().sum()) for prior in (0.0, 0.5, 1.0)]
    assert distances == sorted(distances, reverse=True)


def test_the_shift_of_logits_is_found_by_hand():
    """A mean belief of one half, wanted 0.8: each row's odds are multiplied by four."""
    shift = shift_to(torch.zeros(10, 2), torch.tensor([0.8, 0.2]))
    assert float((shift[0] - shift[1]).exp()) == pytest.approx(4.0)
    assert shares(torch.tensor([0, 0, 0, 1]), 2).tolist() == pytest.approx([4 / 6, 2 / 6])


# ── resume, refusals, streams ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("finished", [1, 2, 3, 4, 5])
def test_resuming_equals_the_uninterrupted_run(bert, finished):
    whole = run(bert, WITH_STUDENT)
    rest = run(bert, WITH_STUDENT, done=whole[:finished])
    assert [round_.number for round_ in rest] == list(range(finished, 6))
    for one, other in zip(rest, whole[finished:], strict=True):
        assert same(one.model, other.model)
        assert one.lesson == other.lesson
        assert one.encoder_of == other.encoder_of


def test_after_a_refused_round_the_head_before_it_is_the_teacher_again(bert):
    def second_refused(labels, answers):
        verdict = accept(labels, answers)
        judged.append(answers)
        return replace(verdict, accept=len(judged) != 2, why="no")

    judged = []
    three = replace(HEAD_ALONE, probe=replace(PROBE, rounds=3))
    rounds = run(bert, three, guard=second_refused)
    assert [round_.accepted for round_ in rounds] == [True, True, False, True]
    assert judged[2].before == judged[1].before
    assert all(answers.first == judged[0].before for answers in judged)


def test_after_a_refused_student_probe_rounds_go_on_from_the_head_before_it_also_resumed(bert):
    def student_refused(labels, answers):
        judged.append(answers)
        return replace(accept(labels, answers), accept=len(judged) + finished != 3, why="no")

    judged, finished = [], 0
    whole = run(bert, WITH_STUDENT, guard=student_refused)
    assert [round_.accepted for round_ in whole] == [True, True, True, False, True, True]
    assert [round_.encoder_of for round_ in whole] == [None, 0, 0, None, 0, 0]
    judged, finished = [], 3
    rest = run(bert, WITH_STUDENT, done=whole[:4], guard=student_refused)
    assert [same(a.model, b.model) for a, b in zip(rest, whole[4:], strict=True)] == [True, True]


def test_a_head_left_on_another_device_than_its_encoder_is_asked_where_it_is(bert):
    """After a resume the encoder moves to the device, the heads of later rounds do not."""
    model = build(TASK, bert, TEACHER.architecture, seed=1)
    vectors = Vectors(model, POOL, GOLD, MACHINE)
    second = with_copied_head(model)
    second.encoder.to("meta")
    assert second.device.type == "meta"
    assert logits_of(second, vectors.pool).shape == (len(POOL), 2)


def test_tapt_reads_the_same_rows_with_and_without_probe_rounds(bert):
    """A grid trains the teacher alone and shares it."""
    from selftrain.training.draw import pool_of_round

    with_probe = Job(TASK, SPLIT, HEAD_ALONE, bert, SEED)
    alone = Job(TASK, SPLIT, replace(HEAD_ALONE, probe=None), bert, SEED)
    assert pool_of_round(with_probe, 0) == pool_of_round(alone, 0)


def test_pairs_and_prompts_have_a_folds_guard_too(bert, monkeypatch):
    monkeypatch.setattr(Folds, "know_something", True)  # a tiny encoder tells them little
    prompt = replace(METHOD, guard="folds", rounds=1)
    prompt = replace(
        prompt,
        teacher=replace(TEACHER, reader="prompt"),
        student=(replace(METHOD.student[0], reader="prompt"),),
    )
    pairs = Split(
        tuple(replace(row, example=replace(row.example, pair="it was fine")) for row in GOLD),
        [replace(row, pair="it was bad") for row in POOL],
    )
    task = replace(TASK, pair=True, template="{a} ? {mask} , {b}")
    for job in (
        Job(TASK, SPLIT, prompt, bert, SEED),
        Job(task, pairs, replace(HEAD_ALONE, guard="folds"), bert, SEED),
    ):
        rounds = list(self_train(job, machine=MACHINE))
        assert "belief gain" in rounds[1].numbers


def test_a_probe_round_that_changes_nothing_does_not_end_the_run(bert):
    method = replace(HEAD_ALONE, converged=0.9)
    rounds = run(bert, method)
    assert len(rounds) == 3
    assert not any(round_.last for round_ in rounds)


def test_the_order_of_the_pool_changes_nothing(bert):
    one, other = run(bert, HEAD_ALONE), run(bert, HEAD_ALONE, Split(GOLD, POOL[::-1]))
    assert all(same(a.model, b.model) for a, b in zip(one, other, strict=True))


def test_all_of_a_pool_is_a_bounded_draw(bert, monkeypatch):
    """Nothing is as big as the pool: a vector is stored for at most so many rows."""
    from selftrain.training import draw

    monkeypatch.setattr(draw, "MAX_VECTORS", 30)
    (_, first, _) = run(bert, replace(HEAD_ALONE, pool="all"))
    assert first.numbers["pool"] == 30


def test_with_the_folds_guard_the_numbers_name_the_prior_and_what_the_verdict_rests_on(
    bert, monkeypatch
):
    monkeypatch.setattr(Folds, "know_something", True)
    job = Job(TASK, SPLIT, replace(HEAD_ALONE, guard="folds"), bert, SEED)
    _, first, _ = self_train(job, machine=MACHINE)
    assert set(first.numbers) >= {"drift", "belief gain", "prior", "prior by folds"}
    for name in ("prior", "prior by folds"):
        assert set(first.numbers[name]) == set(TASK.labels)
        assert sum(first.numbers[name].values()) == pytest.approx(1)


def test_folds_that_know_nothing_do_not_judge(bert, monkeypatch):
    monkeypatch.setattr(Folds, "know_something", False)
    job = Job(TASK, SPLIT, replace(HEAD_ALONE, guard="folds"), bert, SEED)
    _, first, _ = self_train(job, machine=MACHINE)
    assert "drift" in first.numbers
    assert "belief gain" not in first.numbers


# ── what a method may not ask for ────────────────────────────────────────────────────────────


def test_a_contrast_is_refused_because_fixed_vectors_have_no_gradient():
    plain = to_plain(HEAD_ALONE)
    plain["probe"]["contrast"] = {"weight": 0.1}
    with pytest.raises(ConfigError, match="no gradient"):
        from_plain(plain)
    with pytest.raises(ConfigError, match="vectors stay fixed"):
        Tune(tuning=Probe(), contrast=EasyHard())


def test_a_method_with_probe_rounds_survives_toml():
    assert from_plain(to_plain(WITH_STUDENT)) == WITH_STUDENT


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"teacher": replace(TEACHER, head="dense")}, "a linear head"),
        ({"teacher": replace(TEACHER, reader="prompt")}, "a linear head"),
        (
            {"student": (replace(FULL_STUDENT, head="dense"), FULL_STUDENT), "rounds": 1},
            "a linear head",
        ),
        ({"student": (Tune(tuning=Probe()),), "rounds": 1}, "the entry `probe`"),
    ],
)
def test_probe_rounds_need_a_linear_head(change, match):
    with pytest.raises(ConfigError, match=match):
        replace(HEAD_ALONE, **change)


def test_a_teacher_that_is_a_probe_leaves_the_pretrained_encoder_as_it_is(bert):
    frozen = replace(HEAD_ALONE, teacher=Tune(tuning=Probe()))
    teacher, first, _ = run(bert, frozen)
    assert teacher.model.state().keys() == teacher.model.head_state().keys()
    assert teacher.numbers["fit"][0]["steps"] == 0
    assert first.encoder_of == 0
    untouched = build(TASK, bert, TEACHER.architecture, seed=1).read(POOL).features
    assert torch.equal(teacher.model.read(POOL).features, untouched)


def test_min_epochs_lengthen_a_fit_with_many_labels(bert):
    """Eight labels in batches of two: three epochs are twelve steps."""
    tune = Tune(tuning=Full(), steps=5, batch_size=2, min_epochs=3)
    method = Method("teacher", tune, (), rounds=0)
    (teacher,) = self_train(Job(TASK, SPLIT, method, bert, SEED), machine=MACHINE)
    assert teacher.numbers["fit"][0]["steps"] == 12
