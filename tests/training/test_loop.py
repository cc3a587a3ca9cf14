"""Algorithm 1, line by line, on a tiny BERT."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch

from by_hand import GOLD, MACHINE, METHOD, POOL, SPLIT, STUDENT, TASK, TEACHER, same
from selftrain.data.rows import Lesson, Split
from selftrain.errors import TrainingError
from selftrain.model.architecture import Architecture
from selftrain.model.build import build
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter, Full
from selftrain.seeds import child
from selftrain.training.draw import draw
from selftrain.training.fit import fit
from selftrain.training.guard import Verdict
from selftrain.training.job import Job
from selftrain.training.loop import lesson_numbers, self_train
from small_loop import SEED, UNMOVED, Watched, accept, one_sided, run


@pytest.fixture(scope="module")
def whole(tiny_backbone):
    """One uninterrupted run, and what its annotator saw."""
    watched = Watched()
    return run(tiny_backbone("bert"), annotate=watched), watched


# ── the lines ────────────────────────────────────────────────────────────────────────────────────


def test_zero_rounds_is_plain_fine_tuning(tiny_backbone):
    """Algorithm 1, lines 1-2: PLM, all parameters, D_l, cross entropy; and nothing else."""
    (only,) = run(tiny_backbone("bert"), replace(METHOD, rounds=0, student=()))
    teacher = build(TASK, tiny_backbone("bert"), Architecture(Full()), seed=child(SEED, "teacher"))
    fit(teacher, Lesson(gold=GOLD), TEACHER, seed=child(SEED, "fit", 0), machine=MACHINE)
    assert same(only.model, teacher)
    assert (only.number, only.accepted, only.last) == (0, True, False)
    assert only.lesson == Lesson(gold=GOLD)


def test_zero_rounds_need_no_pool(tiny_backbone):
    none = replace(METHOD, rounds=0, student=())
    (only,) = run(tiny_backbone("bert"), none, Split(GOLD, []))
    (with_pool,) = run(tiny_backbone("bert"), none)
    assert same(only.model, with_pool.model)


def test_there_are_as_many_rounds_as_asked_for(whole):
    """Algorithm 1, line 3: the teacher is round 0."""
    rounds, watched = whole
    assert [round_.number for round_ in rounds] == [0, 1, 2]
    assert watched.passes == [3, 3]


def test_a_teacher_is_asked_once_about_the_slice(tiny_backbone, monkeypatch):
    """What a student said when it was compared is what it says as the next teacher."""
    asked = []
    read = Classifier.read

    def watched(model, rows, *more):
        asked.append(len(rows))
        return read(model, rows, *more)

    monkeypatch.setattr(Classifier, "read", watched)
    rounds = run(tiny_backbone("bert"))
    assert all(round_.accepted for round_ in rounds)
    assert len(asked) == 1 + METHOD.rounds
    (resumed,) = run(tiny_backbone("bert"), done=rounds[:2])
    assert resumed.numbers["changed"] == rounds[2].numbers["changed"]


def test_each_round_draws_its_own_part_of_the_pool(whole):
    """Algorithm 1, line 4: D_u' has the asked size, lies in D_u, and is drawn anew."""
    _, watched = whole
    first, second = ({example.uid for example in pool} for pool in watched.pools)
    assert len(first) == len(second) == METHOD.pool
    assert first | second <= {example.uid for example in POOL}
    assert first != second


def test_one_more_pass_does_not_move_the_pool_draw(tiny_backbone, whole):
    """Algorithm 1, line 4: named seeds; a draw in one stage moves no other."""
    more = Watched()
    run(tiny_backbone("bert"), replace(METHOD, passes=4), annotate=more)
    assert more.passes == [4, 4]
    assert more.pools == whole[1].pools


def test_student_starts_from_pretrained_each_round(tiny_backbone):
    """Algorithm 1, line 6: a student that is not moved is the PLM with a fresh module."""
    rounds = run(tiny_backbone("bert"), replace(METHOD, student=(UNMOVED,)))
    for number in (1, 2):
        new = build(
            TASK,
            tiny_backbone("bert"),
            Architecture(Adapter(width=4)),
            seed=child(SEED, "student", number),
        )
        assert same(rounds[number].model, new)
    assert not same(rounds[1].model, rounds[2].model), "each round has a fresh module of its own"


def test_student_may_go_on_from_the_teacher_where_the_method_says(tiny_backbone):
    """UST: the same weights go on, so a student that is not moved is its teacher."""
    going = replace(UNMOVED, tuning=Full(), starts_from="teacher")
    rounds = run(tiny_backbone("bert"), replace(METHOD, student=(going,)))
    assert same(rounds[1].model, rounds[0].model)
    assert same(rounds[2].model, rounds[0].model)
    assert len({id(round_.model) for round_ in rounds}) == 3, "a copy each time"


def test_the_student_becomes_the_teacher_of_the_next_round(whole):
    """Algorithm 1, line 13: from round 2 on the annotator is a frozen PLM plus a small module."""
    rounds, watched = whole
    assert same(watched.teachers[0], rounds[0].model)
    assert same(watched.teachers[1], rounds[1].model)
    assert watched.teachers[0].tuning == Full()
    assert watched.teachers[1].tuning == Adapter(width=4)


def test_the_teacher_is_a_copy_of_the_student(tiny_backbone, whole):
    """Algorithm 1, line 13: what a reader does to a student it was given changes no later round."""
    seen = []
    for round_ in self_train(
        Job(TASK, SPLIT, METHOD, tiny_backbone("bert"), SEED), guard=accept, machine=MACHINE
    ):
        if round_.number == 1:
            with torch.no_grad():
                for parameter in round_.model.trainable().values():
                    parameter.zero_()
        seen.append(round_)
    assert same(seen[2].model, whole[0][2].model)


def test_easy_and_hard_do_not_overlap_and_the_audit_covers_the_pool(whole):
    """Algorithm 1, lines 5 and 7-9."""
    rounds, watched = whole
    for round_, pool in zip(rounds[1:], watched.pools, strict=True):
        easy = {item.example.uid for item in round_.lesson.easy}
        hard = {item.example.uid for item in round_.lesson.hard}
        assert len(easy) == 10
        assert not easy & hard
        assert easy | hard == {example.uid for example in pool}, "`rest`: nothing is left over"
        assert [line.uid for line in round_.lesson.audit] == sorted(e.uid for e in pool)
        roles = {"easy": easy, "hard": hard}
        assert all(line.uid in roles[line.role] for line in round_.lesson.audit)
        assert round_.lesson.gold == GOLD


def test_numbers_say_what_the_lesson_holds(whole):
    rounds, _ = whole
    for round_ in rounds[1:]:
        numbers, audit = round_.numbers, round_.lesson.audit
        easy = [line for line in audit if line.role == "easy"]
        assert (numbers["pool"], numbers["picked"], numbers["hard"]) == (24, 10, 14)
        assert numbers["classes"] == Counter(line.label for line in audit)
        assert numbers["classes picked"] == Counter(line.label for line in easy)
        mean = sum(line.confidence for line in easy) / len(easy)
        assert numbers["confidence"] == pytest.approx(mean)
        assert 0 <= numbers["changed"] <= 1
        assert numbers["fit"][0]["steps"] == 5


def test_a_class_that_no_text_of_the_pool_was_taken_for_is_a_warning(tiny_backbone, caplog):
    run(tiny_backbone("bert"), replace(METHOD, rounds=1), annotate=one_sided)
    (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert warning.getMessage() == f"round 1: no text of the pool was taken for `{TASK.labels[1]}`"


def test_several_tunes_fit_the_same_student_one_after_the_other(tiny_backbone):
    """LiST fits twice a round; the second fit goes on where the first ended."""
    (_, round_) = run(tiny_backbone("bert"), replace(METHOD, rounds=1, student=(STUDENT, STUDENT)))
    assert [fitted["steps"] for fitted in round_.numbers["fit"]] == [5, 5]
    (_, once) = run(tiny_backbone("bert"), replace(METHOD, rounds=1))
    assert not same(round_.model, once.model)


def test_the_audit_is_read_once_for_the_numbers_of_a_round(whole):
    lesson = whole[0][1].lesson
    once = iter(lesson.audit)
    assert lesson_numbers(replace(lesson, audit=once)) == lesson_numbers(lesson)


# ── same seed, same bits ─────────────────────────────────────────────────────────────────────────


def test_the_same_seed_gives_the_same_bits_whatever_the_order_or_the_global_state(
    tiny_backbone, whole
):
    torch.manual_seed(99)
    again = run(tiny_backbone("bert"), split=Split(GOLD, POOL[::-1]))
    for one, other in zip(again, whole[0], strict=True):
        assert same(one.model, other.model)
        assert one.lesson == other.lesson


def test_another_seed_gives_another_run(tiny_backbone, whole):
    other = run(tiny_backbone("bert"), replace(METHOD, rounds=1), seed=21)
    assert not same(other[0].model, whole[0][0].model)
    assert not same(other[1].model, whole[0][1].model)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_resuming_equals_the_uninterrupted_run(tiny_backbone, whole, rounds):
    """After 1, 2 or all 3 rounds were done: the rest is the same, bit for bit."""
    rest = run(tiny_backbone("bert"), done=whole[0][:rounds])
    assert [round_.number for round_ in rest] == [0, 1, 2][rounds:]
    for one, other in zip(rest, whole[0][rounds:], strict=True):
        assert same(one.model, other.model)
        assert one.lesson == other.lesson


def test_stopping_early_is_a_break(tiny_backbone, whole):
    for round_ in self_train(
        Job(TASK, SPLIT, METHOD, tiny_backbone("bert"), SEED), machine=MACHINE
    ):
        if round_.number == 0:
            break
    assert same(round_.model, whole[0][0].model)


# ── when a round goes wrong, and when it is enough ───────────────────────────────────────────────


def test_a_broken_loss_stops_the_loop_and_keeps_the_last_whole_round(tiny_backbone, whole):
    """The student's rate is absurd: its loss is no number, and the teacher stands."""
    wild = replace(METHOD, student=(replace(STUDENT, learning_rate=1e37),))
    rounds = run(tiny_backbone("bert"), wild)
    assert [round_.number for round_ in rounds] == [0, 1]
    broken = rounds[1]
    assert (broken.accepted, broken.last) == (False, True)
    assert "the loss is" in broken.why
    assert same(broken.model, whole[0][0].model)
    assert all(torch.isfinite(tensor).all() for tensor in broken.model.state().values())
    assert run(tiny_backbone("bert"), wild, done=rounds) == [], "and it stays stopped"


def test_a_teacher_that_breaks_is_an_error(tiny_backbone):
    """There is no whole round to keep."""
    poisoned = (*GOLD[:7], replace(GOLD[7], weight=math.nan))
    with pytest.raises(TrainingError, match="the loss is nan at step 1"):
        run(tiny_backbone("bert"), split=Split(poisoned, POOL))


def test_a_student_that_forgets_a_class_is_refused_and_its_teacher_goes_on(tiny_backbone):
    """The collapse alarm: every pseudo label is `bad`, so the student answers nothing else."""
    method = replace(
        METHOD,
        teacher=replace(TEACHER, steps=12),
        student=(replace(STUDENT, steps=12, contrast=None, gold_share=0),),
    )
    watched = Watched()

    def blind(teacher, pool, passes, *, seed, machine):
        watched(teacher, pool, passes, seed=seed, machine=machine)
        return one_sided(teacher, pool, passes, seed=seed, machine=machine)

    job = Job(TASK, SPLIT, method, tiny_backbone("bert"), SEED)
    rounds = list(self_train(job, annotate=blind, machine=MACHINE))
    assert [round_.number for round_ in rounds] == [0, 1, 2], "the loop goes on"
    for round_ in rounds[1:]:
        assert not round_.accepted
        assert not round_.last
        assert "the student never answers `good`" in round_.why
    assert all(same(teacher, rounds[0].model) for teacher in watched.teachers)
    answers = rounds[1].model.probabilities(POOL).argmax(1)
    assert set(answers.tolist()) == {0}, "the refused student is shown as it is"


def test_after_a_refused_round_the_run_resumes_from_the_last_accepted_one(tiny_backbone, whole):
    rounds, _ = whole
    refused = replace(rounds[1], accepted=False, why="collapse")
    watched = Watched()
    run(tiny_backbone("bert"), done=[rounds[0], refused], annotate=watched)
    assert same(watched.teachers[0], rounds[0].model)


def test_a_round_that_changes_few_labels_is_the_last(tiny_backbone):
    """Algorithm 1, line 3: or until converged. A student that is its teacher changes none."""
    going = replace(UNMOVED, tuning=Full(), starts_from="teacher")
    method = replace(METHOD, student=(going,), converged=0.01, rounds=5)
    rounds = run(tiny_backbone("bert"), method)
    assert [round_.number for round_ in rounds] == [0, 1]
    assert (rounds[1].accepted, rounds[1].last) == (True, True)
    assert rounds[1].why == "converged: 0.0% of 40 labels changed"
    assert run(tiny_backbone("bert"), method, done=rounds) == []


def test_convergence_of_zero_never_stops(tiny_backbone):
    going = replace(UNMOVED, tuning=Full(), starts_from="teacher", steps=1)
    rounds = run(tiny_backbone("bert"), replace(METHOD, student=(going,), converged=0, rounds=3))
    assert [round_.numbers.get("changed") for round_ in rounds] == [None, 0, 0, 0]
    assert not any(round_.last for round_ in rounds)


def test_the_guard_compares_answers_on_a_fixed_slice(tiny_backbone):
    """Teacher's answers before, student's after, the same rows in every round."""
    seen = []

    def guard(labels, answers):
        seen.append((labels, answers.first, answers.before, answers.after))
        return Verdict(True)

    rounds = run(tiny_backbone("bert"), guard=guard)
    rows = draw(POOL, 256, seed=child(SEED, "slice"))
    named = [
        [TASK.labels[c] for c in round_.model.probabilities(rows).argmax(1).tolist()]
        for round_ in rounds
    ]
    assert seen == [
        (TASK.labels, named[0], named[0], named[1]),
        (TASK.labels, named[0], named[1], named[2]),
    ]
