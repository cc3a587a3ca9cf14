"""What a step of a fit is made of: gold and easy rows, and the company they need."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from by_hand import GOLD, POOL, TASK, steps, table
from selftrain.data.rows import Labelled, Lesson
from selftrain.method.losses import EasyHard, Smooth, SupCon
from selftrain.method.spec import Tune
from selftrain.model.architecture import Architecture
from selftrain.model.batches import collate
from selftrain.model.build import build
from selftrain.model.pel import Adapter, Full
from selftrain.training.steps import Table, final_mean

quick = settings(max_examples=60, deadline=None, derandomize=True)
CLASSES = st.lists(st.integers(0, 2), max_size=9)
EASY = st.lists(st.integers(0, 2), min_size=1, max_size=9)


CONTRAST = EasyHard(negatives=2)


def test_a_quarter_of_every_batch_is_gold():
    of = table(gold=[0, 1], easy=[0, 1] * 6, hard=[0, 1])
    for step in steps(of, Tune(batch_size=8, gold_share=0.25), 20):
        assert step.learn == len(step.rows) == 8
        assert sum(row in of.gold for row in step.rows) == 2
        assert sum(row in of.easy for row in step.rows) == 6


def test_gold_rows_fill_the_batch_where_there_are_no_easy_ones():
    of = table(gold=[0, 1, 2], easy=[], hard=[])
    for step in steps(of, Tune(batch_size=4, gold_share=0.25, contrast=CONTRAST), 10):
        assert all(row in of.gold for row in step.rows)
        assert step.anchors == []


@pytest.mark.parametrize("gold", [0.0, 0.5])
def test_every_easy_row_is_learnt_from_once_in_an_epoch(gold):
    """Algorithm 1, line 10: twelve rows, four or two in a step."""
    of = table(gold=[0, 1], easy=[0, 1] * 6, hard=[])
    take = 4 if gold == 0 else 2
    seen = [
        row
        for step in steps(of, Tune(batch_size=4, gold_share=gold), 12 // take * 3)
        for row in step.rows
        if row in of.easy
    ]
    for epoch in range(3):
        assert sorted(seen[12 * epoch : 12 * epoch + 12]) == list(of.easy)
    assert seen[:12] != seen[12:24], "each epoch has an order of its own"


def test_without_contrast_the_same_batches_are_learnt_from():
    """An ablation differs in what it leaves out, not in the order of its rows."""
    of = table(gold=[0, 1, 0], easy=[0, 1, 2] * 5, hard=[0, 1, 2, 0])
    plain = Tune(batch_size=4, gold_share=0.25)
    without = steps(of, plain, 20)
    together = steps(of, replace(plain, contrast=CONTRAST), 20)
    assert [step.rows for step in without] == [step.rows[: step.learn] for step in together]
    assert all(len(step.rows) > step.learn for step in together)


@quick
@given(CLASSES, EASY, CLASSES, st.integers(1, 8), st.sampled_from([0.0, 0.25, 0.5]))
def test_an_anchor_goes_without_a_term_only_when_the_hard_rows_lack_its_class(
    gold, easy, hard, batch, share
):
    """Eq. 10 and Algorithm 1, line 11, on any lesson and any batch.

    The positive is another easy row of the class, or, where the class has only one, the same
    row at another place; the negatives are N_n hard rows of the class; gold rows are no anchors.
    """
    of = table(gold, easy, hard)
    assume(batch - round(share * batch) > 0)
    how = Tune(batch_size=batch, gold_share=share, contrast=CONTRAST)
    for step in steps(of, how, 6):
        label = [int(of.labels[row]) for row in step.rows]
        want = [p for p in range(step.easy) if label[p] in of.by_class["hard"]]
        assert sorted(anchor for anchor, _, _ in step.anchors) == want
        for anchor, positive, negatives in step.anchors:
            assert anchor != positive
            assert label[positive] == label[anchor]
            assert step.rows[positive] in of.easy
            alone = len(of.by_class["easy"][label[anchor]]) == 1
            assert (step.rows[positive] == step.rows[anchor]) == alone
            assert len(negatives) == 2
            assert all(step.rows[n] in of.hard and label[n] == label[anchor] for n in negatives)
            assert all(n >= step.learn for n in negatives), "hard rows are not learnt from"


def test_a_class_without_hard_rows_is_skipped():
    """Eq. 10: class 1 has no hard row, so half of the anchors go without."""
    of = table(gold=[], easy=[0, 0, 1, 1], hard=[0])
    (step,) = steps(of, Tune(batch_size=4, contrast=CONTRAST), 1)
    assert {int(of.labels[step.rows[anchor]]) for anchor, _, _ in step.anchors} == {0}


def test_a_class_with_a_single_easy_row_uses_its_second_dropout_view():
    """Eq. 10: row 0 is encoded twice, at two places of the batch, under two dropout masks."""
    of = table(gold=[], easy=[0], hard=[0, 0])
    (step,) = steps(of, Tune(batch_size=1, contrast=CONTRAST), 1)
    ((anchor, positive, negatives),) = step.anchors
    assert (step.rows[anchor], step.rows[positive]) == (0, 0)
    assert (anchor, positive) == (0, 1)
    assert sorted(step.rows[n] for n in negatives) == [1, 2]
    assert step.learn == 1, "the second view is not learnt from"


def test_two_views_of_one_row_differ_and_are_equal_without_dropout(tiny_backbone):
    model = build(TASK, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    of = Table.of(model, Lesson(gold=(), easy=(Labelled(POOL[0], "bad"),)))
    batch = collate([of.rows[0], of.rows[0]], model.pad)
    with torch.no_grad():
        still = model(batch).features
        shaken = model.train()(batch).features
    torch.testing.assert_close(still[0], still[1])
    assert not torch.allclose(shaken[0], shaken[1], atol=1e-3)


def test_a_lone_row_of_a_class_in_a_batch_is_given_a_partner():
    of = table(gold=[], easy=[0, 0, 0, 0], hard=[0])
    for step in steps(of, Tune(batch_size=1, contrast=CONTRAST), 8):
        ((anchor, positive, _),) = step.anchors
        assert step.rows[anchor] != step.rows[positive]
        assert positive >= step.learn


def test_hard_rows_are_shared_by_the_anchors_of_their_class():
    """Each row is encoded once: 4 easy rows of one class bring 2 hard ones, not 8."""
    of = table(gold=[], easy=[0] * 4, hard=[0] * 9)
    (step,) = steps(of, Tune(batch_size=4, contrast=CONTRAST), 1)
    assert len(step.rows) == 4 + 2
    assert len({tuple(negatives) for _, _, negatives in step.anchors}) == 1


def test_one_easy_row_stays_in_a_batch_however_much_gold_is_asked_for():
    of = table(gold=[0, 1], easy=[0, 1] * 6, hard=[])
    (step,) = steps(of, Tune(batch_size=4, gold_share=1.0), 1)
    assert sum(row in of.easy for row in step.rows) == 1


def test_batches_depend_on_the_seed_alone():
    of = table(gold=[0, 1], easy=[0, 1, 2] * 3, hard=[0, 1])
    how = Tune(batch_size=4, gold_share=0.25, contrast=CONTRAST)
    assert steps(of, how, 9, seed=1) == steps(of, how, 9, seed=1) != steps(of, how, 9, seed=2)


def test_each_row_of_a_contrast_of_labels_has_a_partner_and_classes_take_turns():
    of = table(gold=[0] * 9 + [1] * 4 + [2] * 5, easy=[], hard=[])
    how = Tune(tuning=Full(), supcon=SupCon(), batch_size=4)
    batches = [[int(of.labels[row]) for row in step.rows] for step in steps(of, how, 30)]
    assert all(a == b for batch in batches for a, b in (batch[:2], batch[2:]))
    pairs_of_class = Counter(batch[place] for batch in batches for place in (0, 2))
    assert pairs_of_class == {0: 20, 1: 20, 2: 20}  # whatever the number of its labels


def test_a_contrast_of_pseudo_labels_keeps_the_shares_of_their_classes():
    """24 rows of one class and 6 of another: 4 of 5 pairs in an epoch of pairs, and partners."""
    of = table(gold=[0, 1], easy=[0] * 24 + [1] * 6, hard=[], classes=2)
    how = Tune(tuning=Full(), supcon=SupCon(), batch_size=5, gold_share=0.2)
    batches = [[int(of.labels[row]) for row in step.rows] for step in steps(of, how, 15)]
    pairs_of_class = Counter(batch[place] for batch in batches for place in (0, 2))
    assert pairs_of_class == {0: 24, 1: 6}
    assert all(batch[0] == batch[1] and batch[2] == batch[3] for batch in batches)


def test_the_only_row_of_a_class_is_its_own_partner():
    of = table(gold=[0, 1, 1], easy=[], hard=[], classes=2)
    (step,) = steps(of, Tune(tuning=Full(), supcon=SupCon(), batch_size=4), 1)
    assert step.rows.count(0) == 2


# ── the lesson as a table ────────────────────────────────────────────────────────────────────


def test_the_table_holds_gold_then_easy_then_hard(tiny_backbone):
    model = build(TASK, tiny_backbone("bert"), Architecture(Adapter(width=4)), seed=1)
    easy = (Labelled(POOL[0], "good", weight=0.5, soft=(0.25, 0.75)),)
    hard = (Labelled(POOL[1], "bad", soft=(0.5, 0.5)),)
    of = Table.of(model, Lesson(gold=GOLD[:2], easy=easy, hard=hard))
    assert (of.gold, of.easy, of.hard, of.learn) == (range(2), range(2, 3), range(3, 4), of.easy)
    assert of.labels.tolist() == [0, 1, 1, 0]
    assert of.soft.tolist() == [[1, 0], [0, 1], [0.25, 0.75], [0.5, 0.5]], "gold is one-hot"
    assert of.weights.tolist() == [1, 1, 0.5, 1]
    assert of.by_class == {"easy": {1: [2]}, "hard": {0: [3]}}
    assert of.rows == model.encode([i.example for i in (*GOLD[:2], *easy, *hard)])


# ── neighbours ───────────────────────────────────────────────────────────────────────────────


def test_an_easy_row_without_a_neighbour_in_the_batch_brings_one():
    of = replace(table(gold=[0], easy=[0] * 6, hard=[]), near=((1,), (0,), (3,), (2,), (5,), (4,)))
    for step in steps(of, Tune(batch_size=4, gold_share=0.25, smooth=Smooth()), 20):
        easy, added = step.rows[: step.easy], step.rows[step.learn :]
        assert [step.rows[place] for place in step.neighbours] == easy + added
        assert all(of.near[row - 1][0] + 1 in easy + added for row in easy)
        assert len(set(added)) == len(added)
        assert not set(added) & set(easy)


def test_a_row_is_never_pushed_away_from_its_own_second_copy():
    """Where an epoch ends a batch may hold a row twice: two views of one text."""
    of = replace(table(gold=[], easy=[0, 1], hard=[]), near=((1,), (0,)))
    assert of.tied([0, 1, 0]).triu(1).nonzero().tolist() == [[0, 2]]


def test_rows_without_neighbours_bring_none():
    of = replace(table(gold=[], easy=[0], hard=[]), near=((),))
    (step,) = steps(of, Tune(batch_size=1, smooth=Smooth()), 1)
    assert (step.rows, step.neighbours) == ([0], (0,))


def test_only_neighbours_of_one_pseudo_label_are_tied():
    of = replace(table(gold=[1], easy=[0, 1, 0, 0], hard=[]), near=((1,), (0,), (0,), ()))
    tied = of.tied([1, 2, 3, 4])  # rows 1 and 3: row 3 names row 1, and both are of class 0
    assert tied.triu(1).nonzero().tolist() == [[0, 2]]
    assert bool((tied == tied.T).all())


def test_a_lesson_without_neighbours_gives_the_steps_it_always_gave():
    of = table(gold=[0, 1], easy=[0, 1] * 3, hard=[0, 1])
    plain, smooth = Tune(batch_size=4), Tune(batch_size=4, smooth=Smooth())
    assert steps(of, plain, 5) == steps(of, smooth, 5)


def test_final_losses_are_means_over_the_last_tenth():
    assert final_mean([float(i) for i in range(40)]) == 37.5
    assert final_mean([3.0]) == 3.0
