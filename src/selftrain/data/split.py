"""What a run may see: labelled rows, dev rows and a pool, checked and free of overlap."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from selftrain.data.pool import remove_overlap, text_key
from selftrain.data.rows import Example, Labelled, Notes, Split, uid_of
from selftrain.errors import DataError, closest, listing

# ── the split ──


def make_split(
    labelled: Sequence[Labelled],
    unlabelled: Iterable[Example],
    dev: Sequence[Labelled] = (),
    *,
    notes: Notes,
) -> Split:
    """What a run may see, checked: classes that can be learnt, and a pool apart from them."""
    gold = _distinct(labelled, "labelled", notes)
    _check_classes(gold)
    notes.add("numeric labels kept as strings", sum(_is_number(row.label) for row in gold))
    held_out = _without(_distinct(dev, "dev", notes), gold, notes)
    check_labels(held_out, {row.label for row in gold}, "dev")
    pool = remove_overlap(unlabelled, [*gold, *held_out], notes, "labelled or dev")
    if not len(pool):
        raise DataError(
            "the pool is empty: every row is empty, repeated, or also labelled",
            "give other texts: --unlabelled FILE",
        )
    check_pairs([*(row.example for row in (*gold, *held_out)), next(iter(pool))])
    return Split(tuple(gold), pool, tuple(held_out))


def check_labels(rows: Iterable[Labelled], known: Collection[str], where: str) -> None:
    """Every label of dev or test must have been seen in training."""
    strange = next((row.label for row in rows if row.label not in known), None)
    if strange is not None:
        near = closest(strange, known)
        raise DataError(
            f"label `{strange}` in {where} was never seen in training; "
            f"it has {listing(sorted(known))}",
            f"did you mean `{near}`?" if near else f"label some training rows `{strange}`",
        )


def check_kind(examples: Sequence[Example], *, pair: bool, who: str) -> None:
    """Whoever was trained on pairs answers pairs, and single texts otherwise."""
    given = any(example.pair is not None for example in examples)
    if examples and given != pair:
        kinds = ("single texts", "pairs of texts")
        raise DataError(
            f"{who} was trained on {kinds[pair]}, these rows are {kinds[given]}",
            "name the columns: --text COLUMN" + " --pair COLUMN" * pair,
        )


def _distinct(rows: Iterable[Labelled], where: str, notes: Notes) -> list[Labelled]:
    first: dict[str, Labelled] = {}
    for row in rows:
        text, label = row.example.text, row.label
        kept = first.setdefault(uid_of(text, row.example.pair), row)
        if kept.label != label:
            raise DataError(
                f"the {where} text {text!r:.60} has two labels: `{kept.label}` and `{label}`",
                "keep one of the two rows",
            )
        notes.add(f"duplicate {where} rows dropped", int(kept is not row))
    return list(first.values())


def _check_classes(gold: Sequence[Labelled]) -> None:
    counts = Counter(row.label for row in gold)
    if len(counts) < 2:
        found = "".join(f"one class: `{label}`" for label in counts) or "no class"
        raise DataError(
            f"the labelled rows have {found}; expected at least 2",
            "add rows of another class, or name the right column: --label COLUMN",
        )
    label, count = min(counts.items(), key=lambda item: (item[1], item[0]))
    if count < 2:
        raise DataError(
            f"class `{label}` has {count} labelled example; expected at least 2",
            f"label one more text as `{label}`, or leave the class out",
        )


def _without(dev: list[Labelled], gold: Iterable[Labelled], notes: Notes) -> list[Labelled]:
    """Dev rows that were not learnt from: measured on its own lessons, any model looks good."""
    learnt = {text_key(row) for row in gold}
    rest = [row for row in dev if text_key(row) not in learnt]
    if dev and not rest:
        raise DataError("every dev row is also a labelled row", "give other rows, or no dev set")
    notes.add("labelled texts inside dev removed", len(dev) - len(rest))
    return rest


def check_pairs(found: Iterable[Example]) -> None:
    """Raise where some examples are pairs and others are not."""
    if len({example.pair is None for example in found}) > 1:
        raise DataError(
            "some rows are pairs of texts and others single texts",
            "name the columns that all files share: --text COLUMN --pair COLUMN",
        )


def _is_number(label: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?", label) is not None
