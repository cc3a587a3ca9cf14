"""The split of a run: labelled rows, dev rows and a pool, checked and free of overlap."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from selftrain.data.pool import Draws, clean_pool, plain_of, text_key
from selftrain.data.rows import Example, Labelled, Notes, Split, uid_of
from selftrain.errors import DataError, closest, listing


def make_split(
    labelled: Sequence[Labelled],
    unlabelled: Iterable[Example],
    dev: Sequence[Labelled] = (),
    *,
    test: Sequence[Labelled] = (),
    notes: Notes,
    draws: Draws = tuple,
) -> Split:
    """Check the rows of a run and remove overlaps, so that no score comes from a text learnt from.

    Labelled, dev and test texts leave the pool, and labelled texts leave dev. Test rows are only
    compared: they are not part of the split, and one that is also labelled is noted. ``draws`` says
    what the run will draw from a pool that is too long for memory.

    >>> from selftrain.data.rows import examples
    >>> gold = [Labelled(each, each.text[0]) for each in examples(["a1", "a2", "b1", "b2"])]
    >>> test = [Labelled(each, "a") for each in examples(["a3"])]
    >>> split = make_split(gold, examples(["A1", "a3", "new"]), test=test, notes=Notes())
    >>> [row.text for row in split.unlabelled]
    ['new']
    """
    gold = _distinct(labelled, "labelled", notes)
    _check_classes(gold)
    notes.add("numeric labels kept as strings", sum(_is_number(row.label) for row in gold))
    classes = {row.label for row in gold}
    dev_rows = _without_labelled(_distinct(dev, "dev", notes), gold, notes)
    check_labels(dev_rows, classes, "dev")
    check_labels(test, classes, "test")
    check_pairs(row.example for row in (*gold, *dev_rows, *test))
    _note_labelled_test_rows(test, gold, notes)
    others = [("test", test), ("labelled or dev", [*gold, *dev_rows])]
    excluded = [(what, frozenset(map(plain_of, rows))) for what, rows in others]
    pool = clean_pool(unlabelled, excluded, notes=notes, draws=draws)
    if not len(pool):
        raise DataError(
            "the pool is empty: every row is empty, repeated, or also a labelled, dev or test row",
            "give other texts: --unlabelled FILE",
        )
    check_pairs([gold[0].example, next(iter(pool))])
    return Split(tuple(gold), pool, tuple(dev_rows))


# ── checks ───────────────────────────────────────────────────────────────────────────────────


def check_labels(rows: Iterable[Labelled], known: Collection[str], where: str) -> None:
    """Raise for a label of dev or test that no labelled row has."""
    unknown = next((row.label for row in rows if row.label not in known), None)
    if unknown is not None:
        near = closest(unknown, known)
        raise DataError(
            f"label `{unknown}` in {where} was never seen in training; "
            f"it has {listing(sorted(known))}",
            f"did you mean `{near}`?" if near else f"label some training rows `{unknown}`",
        )


def check_pairs(rows: Iterable[Example]) -> None:
    """Raise where some examples are pairs and others are not."""
    if len({example.pair is None for example in rows}) > 1:
        raise DataError(
            "some rows are pairs of texts and others single texts",
            "name the columns that all files share: --text COLUMN --pair COLUMN",
        )


def check_kind(examples: Sequence[Example], *, pair: bool, who: str) -> None:
    """Raise unless the examples are pairs for a model of pairs, and single texts otherwise."""
    are_pairs = any(example.pair is not None for example in examples)
    if examples and are_pairs != pair:
        kinds = ("single texts", "pairs of texts")
        raise DataError(
            f"{who} was trained on {kinds[pair]}, these rows are {kinds[are_pairs]}",
            "name the columns: --text COLUMN" + " --pair COLUMN" * pair,
        )


def fewest_labels(rows: Iterable[Labelled]) -> tuple[str, int]:
    """The class with the fewest rows, and how many it has."""
    counts = Counter(row.label for row in rows)
    return min(counts.items(), key=lambda item: (item[1], item[0]))


def _check_classes(gold: Sequence[Labelled]) -> None:
    counts = Counter(row.label for row in gold)
    if len(counts) < 2:
        classes = "".join(f"one class: `{label}`" for label in counts) or "no class"
        raise DataError(
            f"the labelled rows have {classes}; expected at least 2",
            "add rows of another class, or name the right column: --label COLUMN",
        )
    label, count = fewest_labels(gold)
    if count < 2:
        raise DataError(
            f"class `{label}` has {count} labelled example; expected at least 2",
            f"label one more text as `{label}`, or leave the class out",
        )


# ── repeated rows ────────────────────────────────────────────────────────────────────────────


def _distinct(rows: Iterable[Labelled], where: str, notes: Notes) -> list[Labelled]:
    """Each text once; a text with two labels is an error."""
    by_text: dict[str, Labelled] = {}
    for row in rows:
        text, label = row.example.text, row.label
        first = by_text.setdefault(uid_of(text, row.example.pair), row)
        if first.label != label:
            raise DataError(
                f"the {where} text {text!r:.60} has two labels: `{first.label}` and `{label}`",
                "keep one of the two rows",
            )
        notes.add(f"duplicate {where} rows dropped", int(first is not row))
    return list(by_text.values())


def _without_labelled(
    dev: list[Labelled], gold: Iterable[Labelled], notes: Notes
) -> list[Labelled]:
    """Dev rows that are not labelled rows: a model is not scored on texts it has learnt."""
    learnt = set(map(text_key, gold))
    others = [row for row in dev if text_key(row) not in learnt]
    if dev and not others:
        raise DataError("every dev row is also a labelled row", "give other rows, or no dev set")
    notes.add("labelled texts inside dev removed", len(dev) - len(others))
    return others


def _note_labelled_test_rows(
    test: Iterable[Labelled], gold: Iterable[Labelled], notes: Notes
) -> None:
    learnt = set(map(text_key, gold))
    notes.add(
        "test rows that are also in the training data: the score is too optimistic",
        sum(text_key(row) in learnt for row in test),
    )


def _is_number(label: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?", label) is not None
