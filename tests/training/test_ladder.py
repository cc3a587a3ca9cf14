"""The rungs of a ladder: numbers by hand, on tiny models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

import small_run
from selftrain.data.rows import Example, Labelled, Split
from selftrain.data.task import Task
from selftrain.method.recipes import recipe
from selftrain.model.backbone import Backbone
from selftrain.model.classifier import Classifier
from selftrain.model.heads import Output
from selftrain.training import readings as readings_module
from selftrain.training.baselines import TfidfLogistic
from selftrain.training.draw import slice_rows
from selftrain.training.estimate import Estimate, RoundEstimate, estimate
from selftrain.training.evaluate import evaluate
from selftrain.training.expected import Expected, wilson
from selftrain.training.folds import cuts_of, hits
from selftrain.training.job import Job
from selftrain.training.ladder import (
    Models,
    Rung,
    Scorer,
    as_good,
    climb,
    has_frozen_rungs,
    names_of,
    tfidf,
)
from selftrain.training.loop import Round, self_train
from selftrain.training.readings import Readings

NO_TEST = Scorer((), small_run.MACHINE)
TASK = Task("two", ("a", "b"))


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture(scope="module")
def job(backbone: Backbone) -> Job:
    return small_run.job(backbone, small_run.PROBE)


@pytest.fixture(scope="module")
def rounds(job: Job) -> list[Round]:
    return list(self_train(job, machine=small_run.MACHINE))


@pytest.fixture(scope="module")
def frozen(job: Job) -> Models:
    method = recipe("frozen")
    own = replace(job, method=method)
    rounds = list(self_train(own, machine=small_run.MACHINE))
    return Models(rounds, estimate(own, rounds, small_run.MACHINE))


def estimated(numbers: range, prior: tuple[float, ...]) -> Estimate:
    """Round n has an expected accuracy of 0.5 + n / 100, up to a tenth lower or higher."""
    rounds = tuple(
        RoundEstimate(n, Expected(0.5 + n / 100, 0.4 + n / 100, 0.6 + n / 100, 0.5, 0.5), 1.0)
        for n in numbers
    )
    return Estimate(rounds, 0.75, 8.0, (), prior)


def test_the_ladder_has_the_simple_models_the_teacher_and_each_accepted_round(
    job: Job, rounds: list[Round], frozen: Models
) -> None:
    accepted = [round_.number for round_ in rounds if round_.accepted]
    own = Models(rounds, estimated(range(len(rounds)), (0.7, 0.3)))
    rungs = list(climb(job, own, frozen, NO_TEST))
    assert [rung.name for rung in rungs] == names_of(job, rounds)
    assert names_of(job, rounds) == [
        *("majority", "tf-idf", "frozen", "frozen self-trained", "teacher"),
        *(f"round {number}" for number in accepted[1:]),
    ]
    for rung, number in zip(rungs[4:], accepted, strict=True):
        assert (rung.accuracy, rung.how) == (0.5 + number / 100, "expected")
        assert (rung.low, rung.high) == (0.4 + number / 100, 0.6 + number / 100)
        seconds = sum(each.numbers["seconds"] for each in rounds[: number + 1])
        assert rung.seconds == pytest.approx(seconds)
    assert all(rung.measured is None for rung in rungs)


def test_the_majority_is_the_largest_share_of_the_pool(job: Job, rounds: list[Round]) -> None:
    """The pool is 0.3 : 0.7, and all test rows but one in four are of the second class."""
    own = Models(rounds, estimated(range(len(rounds)), (0.3, 0.7)))
    first, second = job.task.labels
    test = [Labelled(Example(f"{n}", "text"), first if n == 0 else second) for n in range(4)]
    rung = next(climb(job, own, None, Scorer(test, small_run.MACHINE)))
    assert rung == Rung("majority", 0.7, None, None, "expected", 0.0, 0.75)


def test_frozen_has_the_hits_of_the_folds_and_its_last_round_the_expected_accuracy(
    job: Job, rounds: list[Round], frozen: Models
) -> None:
    accepted = [each for each in frozen.rounds if each.accepted]
    known = Models(frozen.rounds, estimated(range(len(frozen.rounds)), (0.5, 0.5)))
    rungs = list(climb(job, Models(rounds, None), known, NO_TEST))
    assert (rungs[2].accuracy, rungs[2].low, rungs[2].high) == (0.75, *wilson(0.75, 8.0))
    assert rungs[2].how == "out of fold"
    assert rungs[3].accuracy == 0.5 + accepted[-1].number / 100
    assert rungs[3].how == "expected"


def test_the_ends_of_wilsons_interval_solve_its_equation() -> None:
    """Six hits of eight: (p - end)² = z² end (1 - end) / n at both ends; all hits leave doubt."""
    for share in (0.75, 1.0):
        low, high = wilson(share, 8)
        for end in (low, high):
            assert (share - end) ** 2 == pytest.approx(1.6449**2 * end * (1 - end) / 8, rel=1e-3)
        assert low < share <= high


def word_job(job: Job, texts: dict[str, list[str]]) -> Job:
    rows = tuple(
        Labelled(Example(f"{label}{n}", text), label)
        for label, each in texts.items()
        for n, text in enumerate(each)
    )
    return replace(job, task=TASK, split=Split(rows, [Example("p", "pool")]))


def test_tfidf_is_scored_on_texts_that_its_fold_did_not_see_weighed_by_the_pool(job: Job) -> None:
    """Class a always says red, and so does one text of b: a hit everywhere but there.

    The pool is 0.9 : 0.1, each class has four labels: 0.9 + 0.1 x 3 / 4 = 0.975.
    """
    times = range(1, 5)
    reds, seas = ([" ".join([word] * n) for n in times] for word in ("red", "sea"))
    texts = {"a": reds, "b": [*seas[:3], "red red red red red"]}
    rung = tfidf(word_job(job, texts), estimated(range(1), (0.9, 0.1)), NO_TEST)
    assert rung.accuracy == pytest.approx(0.975)
    rows = 1 / (4 * 0.225**2 + 4 * 0.025**2)
    assert (rung.low, rung.high) == pytest.approx(wilson(0.975, rows))
    assert (rung.how, rung.name) == ("out of fold", "tf-idf")
    assert tfidf(word_job(job, texts), None, NO_TEST).accuracy is None


def test_the_cuts_of_tfidf_are_those_of_the_folds() -> None:
    labels = torch.tensor([0, 1] * 4)
    cuts = cuts_of(labels, 2, seed=5)
    assert len(cuts) == 4
    assert sorted(at for _, unseen in cuts for at in unseen) == list(range(8))
    again = cuts_of(labels, 2, seed=5)
    assert [list(unseen) for _, unseen in cuts] == [list(unseen) for _, unseen in again]
    assert cuts_of(torch.tensor([0, 1, 1]), 2, seed=5) == []


def test_hits_count_by_a_prior() -> None:
    """Right on all of the first class and half of the second; the pool is 0.8 : 0.2."""
    share, rows = hits(
        torch.tensor([0, 0, 1, 0]), torch.tensor([0, 0, 1, 1]), torch.tensor([0.8, 0.2]).double()
    )
    assert share == pytest.approx(0.9)
    assert rows == pytest.approx(1 / (2 * 0.4**2 + 2 * 0.1**2))


@pytest.mark.parametrize("texts", [("!!", "??"), ("a", "b"), ("😀", "😡")])
def test_texts_without_a_word_of_two_letters_are_learnt_by_their_signs(
    texts: tuple[str, str],
) -> None:
    rows = [Labelled(Example(text, text), label) for text, label in zip(texts, "ab", strict=True)]
    model = TfidfLogistic(TASK, rows)
    answers = model.probabilities([row.example for row in rows])
    assert answers.argmax(1).tolist() == [0, 1]


def test_the_texts_of_a_pair_are_read_as_one() -> None:
    """The first texts are equal: the second ones decide."""
    rows = [
        Labelled(Example(word, "it is", word), label) for word, label in (("on", "a"), ("off", "b"))
    ]
    answers = TfidfLogistic(TASK, rows).probabilities([row.example for row in rows])
    assert answers.argmax(1).tolist() == [0, 1]


def test_rungs_without_an_estimate_have_no_accuracy(
    job: Job, rounds: list[Round], frozen: Models
) -> None:
    rungs = climb(job, Models(rounds, None), Models(frozen.rounds, None), NO_TEST)
    assert {(rung.accuracy, rung.low, rung.high) for rung in rungs} == {(None, None, None)}


def test_finished_rungs_are_not_computed_again(job: Job, rounds: list[Round]) -> None:
    done = [Rung("majority", 0.1, None, None, "expected", 7.0)]
    rungs = list(climb(job, Models(rounds, None), None, NO_TEST, done))
    assert rungs[0] is done[0]
    assert [rung.name for rung in rungs][:3] == ["majority", "tf-idf", "teacher"]


def test_every_rung_is_measured_on_test_rows_and_rounds_as_evaluate_does(
    job: Job, rounds: list[Round], frozen: Models
) -> None:
    """Rounds on one encoder read the rows once, and still have their own accuracy."""
    test = [
        Labelled(small_run.example(label, n), label)
        for n in range(30, 45)
        for label in ["good", "bad"]
    ]
    rungs = list(climb(job, Models(rounds, None), frozen, Scorer(test, small_run.MACHINE)))
    accepted = [each for each in rounds if each.accepted]
    models = [frozen.rounds[0], *[each for each in frozen.rounds if each.accepted][-1:], *accepted]
    expected = [evaluate(each.model, test, small_run.MACHINE)["accuracy"] for each in models]
    assert [rung.measured for rung in rungs[2:]] == expected
    assert rungs[0].measured == 0.5
    assert rungs[1].measured is not None


def test_the_folds_of_the_frozen_encoder_read_nothing_twice_and_say_the_same(
    job: Job, frozen: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = replace(job, method=recipe("frozen"))
    lists: list[int] = []

    def watched(model: Classifier, examples: Sequence[Example], *progress: Any) -> Output:
        lists.append(len(examples))
        return read(model, examples, *progress)

    read = Classifier.read
    monkeypatch.setattr(Classifier, "read", watched)
    readings = Readings(own, slice_rows(own), frozen.rounds, small_run.MACHINE)
    readings.vectors(frozen.rounds[0])
    shared = readings.folds
    assert lists.count(40) == 1, "the forty texts of the pool"
    monkeypatch.setattr(
        readings_module, "CHUNK", 39
    )  # the pool is read in parts: not the same bits
    alone = Readings(own, slice_rows(own), frozen.rounds, small_run.MACHINE).folds
    assert lists.count(40) == 2
    assert shared is not None
    assert alone is not None
    assert torch.equal(shared.belief, alone.belief)


def test_a_run_of_the_frozen_encoder_or_without_a_pool_has_no_frozen_rungs(job: Job) -> None:
    assert has_frozen_rungs(job)
    assert not has_frozen_rungs(replace(job, method=recipe("frozen")))
    assert not has_frozen_rungs(replace(job, split=Split(job.split.labelled, [])))


def test_a_simpler_rung_is_as_good_where_it_is_at_most_a_point_below() -> None:
    rungs = [
        Rung("majority", 0.5, None, None, "expected", 0),
        Rung("tf-idf", 0.7901, 0.6, 0.8, "out of fold", 0),
        Rung("frozen", 0.7899, 0.6, 0.8, "out of fold", 0),
        Rung("teacher", 0.9, 0.8, 1.0, "expected", 0),
        Rung("round 1", 0.8, 0.7, 0.9, "expected", 0),
    ]
    assert [rung.name for rung in as_good(rungs, "round 1")] == ["tf-idf"]
    assert as_good(rungs, "teacher") == []
