"""How fast this machine is, measured without a trace."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import small_run
from selftrain.data.rows import Example
from selftrain.method.recipes import recipe
from selftrain.model.pel import Adapter, Full
from selftrain.training import calibration
from selftrain.training.calibration import Speed, Watched, calibrate, sampled
from selftrain.training.cost import Stage, Work
from selftrain.training.job import new_model
from selftrain.training.loop import self_train


def test_a_calibration_leaves_every_random_state_and_every_frozen_weight_as_it_was(tiny_backbone):
    bert = tiny_backbone("bert")
    weights = {name: tensor.clone() for name, tensor in bert.encoder.state_dict().items()}
    torch.manual_seed(5)
    before = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    calibrate(small_run.job(bert, small_run.CONTRAST), small_run.MACHINE)
    after = torch.random.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    now = bert.encoder.state_dict()
    assert all(torch.equal(tensor, now[name]) for name, tensor in weights.items())


def test_a_run_after_a_calibration_has_the_same_bits(tiny_backbone):
    job = small_run.job(tiny_backbone("bert"), small_run.CONTRAST)
    plain = [round_.model.digest() for round_ in self_train(job, machine=small_run.MACHINE)]
    calibrate(job, small_run.MACHINE)
    measured = [round_.model.digest() for round_ in self_train(job, machine=small_run.MACHINE)]
    assert measured == plain


def test_every_tuning_that_takes_steps_is_timed_on_the_texts_it_learns_from(tiny_backbone):
    bert = tiny_backbone("bert")

    def timed(method):
        return set(calibrate(small_run.job(bert, method), small_run.MACHINE).training)

    teacher = (Full(), "gold")
    assert timed(small_run.CONTRAST) == {teacher, (Full(), "pool")}
    assert timed(small_run.LAPTOP) == {teacher, (Adapter(width=4), "pool")}
    assert timed(replace(small_run.LAPTOP, rounds=0)) == {teacher}
    assert timed(recipe("frozen")) == set()


def test_tokens_are_the_mean_over_the_rows_that_a_run_reads(tiny_backbone):
    job = small_run.job(tiny_backbone("bert"))
    model = new_model(job, job.method.teacher, seed=0)
    lengths = [len(row.ids) for row in model.encode([row.example for row in job.split.labelled])]
    speed = calibrate(job, small_run.MACHINE)
    assert speed.tokens["gold"] == sum(lengths) / len(lengths)
    assert speed.tokens.keys() == {"gold", "pool"}  # no dev rows, no test rows
    assert speed.lesson_rows == 8


def test_seconds_follow_the_tokens_of_the_rows_not_their_number():
    speed = Speed(0.01, {(Full(), "pool"): 0.02}, {"gold": 10, "pool": 100}, lesson_rows=8)
    assert speed.seconds(Stage("reading", 1, (Work(3, "gold"),))) == pytest.approx(0.3)
    assert speed.seconds(Stage("reading", 1, (Work(3, "pool"),))) == pytest.approx(3.0)
    trained = Work(3, "pool", Full(), placeholders=16)
    assert speed.seconds(Stage("teacher", 0, (trained,))) == pytest.approx(3 * 116 * 0.02)


def test_a_sample_has_rows_of_every_length(tiny_backbone, monkeypatch):
    job = small_run.job(tiny_backbone("bert"))
    model = new_model(job, job.method.teacher, seed=0)
    examples = [Example(str(words), "good " * words) for words in range(1, 31)]
    lengths = [len(row.ids) for row in model.encode(examples)]
    monkeypatch.setattr(calibration, "READ_TOKENS", sum(lengths) // 3)
    taken = [int(example.uid) for example in sampled(examples, model)]
    assert taken == [*range(2, 31, 3)]  # every third


def test_the_first_step_warms_up_and_of_the_others_the_fastest_counts():
    watched = Watched(started=[0.0, 0.1, 1.1, 3.1], tokens=[50, 20, 10])
    assert watched.seconds_a_token == pytest.approx(1 / 20)


def test_long_steps_end_a_calibration_after_the_second():
    assert not Watched([0.0, 50.0], [1, 1]).long_enough
    assert Watched([0.0, 50.0, 100.0], [1, 1, 1]).long_enough
    assert not Watched([0.0, 0.1, 0.2], [1, 1, 1]).long_enough


@pytest.mark.parametrize(("seconds", "read"), [(0.001, 64), (2.0, 8)])
def test_on_a_busy_machine_a_few_texts_are_read_and_no_more(
    tiny_backbone, monkeypatch, seconds, read
):
    job = small_run.job(tiny_backbone("bert"))
    model = new_model(job, job.method.teacher, seed=0)
    texts = [Example(str(place), "it rains") for place in range(64)]
    asked = []

    def timed(_model, examples):
        asked.append(len(examples))
        return seconds * len(examples)

    monkeypatch.setattr(calibration, "seconds_reading", timed)
    tokens = calibration.lengths_of(model, texts[:1])[0]
    assert calibration.seconds_a_read_token(model, texts) == pytest.approx(seconds / tokens)
    assert asked[-1] == read
