"""Folds of the gold labels: held-out beliefs, their temperature, and the pool's prior."""

from __future__ import annotations

import math

import pytest
import torch

from selftrain.training.folds import (
    Folds,
    Rows,
    cuts_of,
    drift,
    fitted_scale,
    fitted_temperature,
    folds_of,
    pool_prior,
)


def clouds(counts: list[int], seed: int = 0, spread: float = 0.5):
    """Vectors around one corner for each class, and their classes."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.tensor([c for c, count in enumerate(counts) for _ in range(count)])
    vectors = torch.eye(len(counts))[labels]
    return vectors + spread * torch.randn(vectors.shape, generator=generator), labels


def test_folds_answer_the_gold_rows_they_did_not_see():
    gold, labels = clouds([16, 16])
    pool, truth = clouds([300, 300], seed=1)
    folds = folds_of(Rows(gold, labels), pool, 2, seed=3)
    assert float((folds.belief.argmax(1) == truth).double().mean()) > 0.85
    assert folds.belief.sum(1) == pytest.approx(torch.ones(600))


def test_the_prior_of_a_skewed_pool_is_found_from_equal_labels():
    """Sixteen labels of each class, a pool of 88 : 12."""
    gold, labels = clouds([16, 16])
    pool, _ = clouds([880, 120], seed=1)
    folds = folds_of(Rows(gold, labels), pool, 2, seed=3)
    assert float(folds.prior[0]) == pytest.approx(0.88, abs=0.06)


def test_the_shares_of_the_labels_are_taken_out_of_the_belief():
    """Labels of 44 : 6 and a balanced pool: the prior is the pool's, not the labels'."""
    gold, labels = clouds([44, 6])
    pool, _ = clouds([500, 500], seed=1)
    folds = folds_of(Rows(gold, labels), pool, 2, seed=3)
    assert float(folds.prior[0]) == pytest.approx(0.5, abs=0.15)


def test_every_fold_learns_from_the_rows_of_class_names():
    """Labels that say nothing, names that say all: with the names the folds know the classes."""
    noise = torch.randn(16, 2, generator=torch.Generator().manual_seed(4))
    gold = Rows(noise, torch.tensor([0, 1] * 8))
    pool, truth = clouds([200, 200], seed=1, spread=0.2)
    names = Rows(torch.eye(2).repeat(20, 1), torch.tensor([0, 1] * 20))

    def right(folds: Folds) -> float:
        return float((folds.belief.argmax(1) == truth).double().mean())

    without, informed = (folds_of(gold, pool, 2, seed=3, names=each) for each in (None, names))
    assert right(without) < 0.8 < 0.95 < right(informed)
    assert len(informed.gold) == 16, "a name is no row to be judged by"


def test_the_shares_of_the_names_are_taken_out_of_the_belief_too():
    gold, labels = clouds([8, 8])
    pool, _ = clouds([500, 500], seed=1)
    names = Rows(torch.eye(2)[[0] * 24], torch.tensor([0] * 24))
    folds = folds_of(Rows(gold, labels), pool, 2, seed=3, names=names)
    assert float(folds.prior[0]) == pytest.approx(0.5, abs=0.15)


def test_folds_know_something_where_they_beat_chance_by_a_standard_error():
    """Of 32 rows in two classes guessing gets half; one standard error more is 0.588: 19 rows."""
    labels = torch.tensor([0, 1] * 16)
    equal = torch.tensor([0.5, 0.5], dtype=torch.float64)
    for right, know in ((18, False), (19, True)):
        answers = torch.where(torch.arange(32) < right, labels, 1 - labels)
        gold = torch.eye(2, dtype=torch.float64)[answers]
        assert Folds(gold, equal, gold, labels).know_something is know


def test_two_labels_a_class_are_two_folds_and_one_label_is_none():
    gold, labels = clouds([2, 2])
    assert folds_of(Rows(gold, labels), gold, 2, seed=3) is not None
    gold, labels = clouds([1, 3])
    assert folds_of(Rows(gold, labels), gold, 2, seed=3) is None


def test_every_fold_learns_from_each_class_and_is_asked_about_each():
    """Three labels beside forty: three folds, and no class is missing from one."""
    _, labels = clouds([40, 3])
    folds = cuts_of(labels, 2, seed=3)
    assert len(folds) == 3
    for seen, unseen in folds:
        assert labels[seen].bincount().tolist() in ([26, 2], [27, 2])
        assert int((labels[unseen] == 1).sum()) == 1
    assert sorted(torch.cat([unseen for _, unseen in folds]).tolist()) == list(range(43))


def test_a_text_that_is_there_twice_is_never_learnt_and_asked_by_the_same_fold():
    """Of 16 rows, 3 and 12 are the first one again; whichever fold is asked one is asked all."""
    _, labels = clouds([8, 8])
    keys = [str(row) for row in range(16)]
    keys[3] = keys[12] = "0"
    for seed in range(10):
        folds = cuts_of(labels, 2, seed=seed, keys=keys)
        assert len(folds) == 4
        for seen, unseen in folds:
            assert {keys[row] for row in seen}.isdisjoint(keys[row] for row in unseen)
            assert len(seen) + len(unseen) == 16
        assert [{0, 3, 12} & {*unseen.tolist()} for _, unseen in folds].count({0, 3, 12}) == 1


def test_without_a_text_twice_the_folds_are_those_of_scikit_learn():
    from sklearn.model_selection import StratifiedKFold

    gold, labels = clouds([8, 9, 5])
    keys = tuple(f"text {row}" for row in range(22))
    reference = [*StratifiedKFold(4, shuffle=True, random_state=5).split(gold, labels)]
    for given in ((), keys):
        folds = cuts_of(labels, 3, seed=5, keys=given)
        found = [[seen.tolist(), unseen.tolist()] for seen, unseen in folds]
        assert found == [[seen.tolist(), unseen.tolist()] for seen, unseen in reference]


def test_two_labels_of_the_same_text_are_one_and_leave_nothing_to_hold_out():
    gold, labels = clouds([2, 4])
    keys = ("same", "same", "a", "b", "c", "d")
    assert folds_of(Rows(gold, labels, keys), gold, 2, seed=3) is None


def test_the_same_seed_cuts_the_same_folds():
    gold, labels = clouds([8, 8, 8])
    one, other, another = (folds_of(Rows(gold, labels), gold, 3, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(one.belief, other.belief)
    assert not torch.equal(one.belief, another.belief)


def test_beliefs_that_are_too_sure_are_softened_and_modest_ones_sharpened():
    """Logits of 4 are right in 73 of 100 rows, as logits of 1 should be: the temperature is 4."""
    labels = torch.tensor([0] * 731 + [1] * 269)
    for scale in (4.0, 0.25):
        logits = torch.tensor([[scale, 0.0]]).repeat(1000, 1)
        assert fitted_temperature(logits, labels) == pytest.approx(scale, rel=0.05)


def test_without_an_error_the_weak_prior_keeps_the_temperature_away_from_zero():
    labels = torch.tensor([0] * 8 + [1] * 8)
    logits = 3 * torch.eye(2)[labels]
    assert 0.2 < fitted_temperature(logits, labels) < 1


def test_em_of_certain_beliefs_counts_them_shrunk_by_32_rows():
    belief = torch.tensor([[1.0, 0.0]] * 300 + [[0.0, 1.0]] * 100)
    assert pool_prior(belief).tolist() == pytest.approx([316 / 432, 116 / 432])


def test_beliefs_that_know_nothing_leave_equal_shares():
    assert pool_prior(torch.full((50, 4), 0.25)).tolist() == pytest.approx([0.25] * 4)


def test_tilted_belief_is_bayes_by_hand():
    """0.5 and 0.4 with a prior of 0.8 : 0.2 are 0.8 and 8/11 for the first class."""
    belief = torch.tensor([[0.5, 0.5], [0.4, 0.6]], dtype=torch.float64)
    folds = Folds(
        belief, torch.tensor([0.8, 0.2], dtype=torch.float64), belief, torch.zeros(0).long()
    )
    assert folds.tilted(torch.tensor([0, 0])) == pytest.approx((0.8 + 8 / 11) / 2)
    assert folds.tilted(torch.tensor([1, 0])) == pytest.approx((0.2 + 8 / 11) / 2)


def test_drift_is_half_the_sum_of_the_differences():
    assert drift(["a"] * 6 + ["b"] * 4, ["a"] * 4 + ["b"] * 5 + ["c"]) == pytest.approx(0.2)
    assert drift(["a", "b"], ["b", "a"]) == 0


def test_the_scale_of_equal_labels_is_a_temperature_alone() -> None:
    logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 0.5], [0.3, 0.0]])
    scale = fitted_scale(logits, torch.tensor([0, 0, 1, 1]))
    assert scale.shift.tolist() == [0, 0]
    assert scale.temperature == fitted_temperature(logits, torch.tensor([0, 0, 1, 1]))


def test_the_scale_of_uneven_labels_is_the_best_of_its_kind() -> None:
    """Three rows of one class and one of another: no other shift or temperature has less loss."""
    logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.5, 0.0], [0.6, 0.0]])
    labels = torch.tensor([0, 0, 0, 1])
    scale = fitted_scale(logits, labels)
    weights = torch.tensor([2 / 3, 2 / 3, 2 / 3, 2.0])

    def loss(log: float, shift: float) -> float:
        p = (logits / torch.tensor(log).exp() + torch.tensor([-shift, shift])).softmax(1)
        chosen = p[torch.arange(4), labels]
        return float(-(weights * chosen.log()).sum() + (log**2 + 2 * shift**2) / 2)

    log, shift = math.log(scale.temperature), float(scale.shift[1])
    assert shift > 0.2, "the class with one row is believed more"
    assert float(scale.shift[0]) == pytest.approx(-shift, abs=1e-4)
    around = [(log + a, shift + b) for a in (-0.1, 0, 0.1) for b in (-0.1, 0, 0.1) if a or b]
    assert all(loss(log, shift) < loss(*other) for other in around)
