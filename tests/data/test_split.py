"""The split of a run: checked, and without texts that stand on two sides."""

import pytest

from formats import gold, message_and_hint, texts_of
from selftrain.data.rows import Labelled, Notes, examples
from selftrain.data.split import check_labels, make_split
from selftrain.errors import DataError

TWO = (("good", "pos"), ("great", "pos"), ("bad", "neg"), ("awful", "neg"))


def test_no_text_of_a_split_is_on_two_sides():
    notes = Notes()
    labelled = gold(*TWO, ("good", "pos"))
    split = make_split(
        labelled,
        examples(["GOOD", "fine", "so so"]),
        gold(("fine", "pos"), ("bad", "neg")),
        notes=notes,
    )
    assert texts_of(list(split.labelled)) == list(TWO)
    assert texts_of(list(split.dev)) == [("fine", "pos")]
    assert [row.text for row in split.unlabelled] == ["so so"]
    assert dict(notes) == {
        "duplicate labelled rows dropped": 1,
        "labelled texts inside dev removed": 1,
        "labelled or dev texts inside the pool removed": 2,
    }


def test_numeric_labels_are_kept_as_strings_and_noted():
    notes = Notes()
    split = make_split(
        gold(("a", "0"), ("b", "0"), ("c", "-1.5"), ("d", "-1.5")), examples(["e"]), notes=notes
    )
    assert {row.label for row in split.labelled} == {"0", "-1.5"}
    assert dict(notes) == {"numeric labels kept as strings": 4}


POOL = examples(["something else"])


@pytest.mark.parametrize(
    ("labelled", "pool", "dev", "message", "hint"),
    [
        ([], POOL, [], "the labelled rows have no class; expected at least 2", "--label"),
        ([("a", "x"), ("b", "x")], POOL, [], "one class: `x`; expected at least 2", "--label"),
        ([*TWO, ("c", "odd")], POOL, [], "class `odd` has 1 labelled example", "label one more"),
        ([*TWO, ("bad", "pos")], POOL, [], "'bad' has two labels: `neg` and `pos`", "keep one"),
        (TWO, POOL, [("d", "Neg")], "label `Neg` in dev was never seen", "did you mean `neg`?"),
        (TWO, POOL, [("d", "other")], "it has `neg`, `pos`", "label some training rows `other`"),
        (TWO, POOL, [("good", "pos")], "every dev row is also a labelled row", "no dev set"),
        (TWO, [], [], "the pool is empty", "--unlabelled FILE"),
        (TWO, examples(["", "Good", " "]), [], "the pool is empty", "--unlabelled FILE"),
        (TWO, examples(["a"], ["b"]), [], "some rows are pairs", "--pair COLUMN"),
    ],
)
def test_a_split_that_cannot_be_learnt_from_is_an_error(labelled, pool, dev, message, hint):
    with pytest.raises(DataError) as error:
        make_split(gold(*labelled), pool, gold(*dev), notes=Notes())
    shown_message, shown_hint = message_and_hint(error)
    assert message in shown_message
    assert hint in shown_hint


def test_test_rows_leave_the_pool_and_are_no_part_of_the_split():
    notes = Notes()
    pool = examples(["Fine", "so so", "bad"])
    split = make_split(gold(*TWO), pool, test=gold(("fine", "pos"), ("BAD", "neg")), notes=notes)
    assert texts_of(list(split.labelled)) == list(TWO)
    assert split.dev == ()
    assert [row.text for row in split.unlabelled] == ["so so"]
    assert dict(notes) == {
        "test rows that are also in the training data: the score is too optimistic": 1,
        "test texts inside the pool removed": 2,
    }


@pytest.mark.parametrize(
    ("test", "message", "hint"),
    [
        (gold(("fine", "Pos")), "label `Pos` in test was never seen", "did you mean `pos`?"),
        ([Labelled(examples(["a"], ["b"])[0], "pos")], "some rows are pairs", "--pair COLUMN"),
        (gold(("Something  else", "pos")), "or also a labelled, dev or test row", "--unlabelled"),
    ],
)
def test_test_rows_that_do_not_fit_the_split_are_an_error(test, message, hint):
    with pytest.raises(DataError) as error:
        make_split(gold(*TWO), POOL, test=test, notes=Notes())
    shown_message, shown_hint = message_and_hint(error)
    assert message in shown_message
    assert hint in shown_hint


def test_labels_of_a_test_set_must_be_known():
    check_labels(gold(*TWO), {"pos", "neg"}, "test")
    with pytest.raises(DataError, match="label `neg` in test was never seen in training"):
        check_labels(gold(*TWO), {"pos"}, "test")
