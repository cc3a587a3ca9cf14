"""A review in progress: the rows in some order, and what a person decides on them."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from selftrain.data.rows import uid_of
from selftrain.errors import ConfigError
from selftrain.review.rows import Row, Rows, belief, why
from selftrain.runs.corrections import Correction, Journal, Verdict, by_row, in_order

SNIPPET = 240
"""Characters of a text in the list."""
LONGEST_TEXT = 50_000
"""Characters of a text in the open row; the rest is counted."""
PAGE = 200
"""Rows that are sent at once, at most."""
VIEWS = 8
"""Orders and filters whose rows are remembered."""

ORDERS = ("worth", "doubt", "sure", "file")
STATES = ("all", "open", "done")
ROLES = ("all", "easy", "hard", "left")

Given = Literal["accept", "label", "drop"]


@dataclass(frozen=True, slots=True)
class View:
    """Which rows are listed, and in which order."""

    order: str = "worth"
    text: str = ""
    label: int | None = None
    role: str = "all"
    state: str = "all"

    def __post_init__(self) -> None:
        known = ((self.order, ORDERS), (self.role, ROLES), (self.state, STATES))
        for value, values in known:
            if value not in values:
                raise ConfigError(f"{value!r:.40} is no choice", f"one of {', '.join(values)}")


class Session:
    """The rows of a run, the verdicts on them, and the file that has these."""

    def __init__(self, found: Rows, worth: Sequence[int], journal: Journal, digest: str) -> None:
        self.labels = found.labels
        self.rows = found.rows
        self.journal = journal
        self._digest = digest
        self._worth = worth
        self._places = {row.uid: place for place, row in enumerate(found.rows)}
        self._views: OrderedDict[View, list[int]] = OrderedDict()
        # Kept row by row: a verdict costs the same after a hundred thousand others.
        known = [each for each in journal.corrections if each.uid in self._places]
        self._in_order = in_order(known)
        self._by_row = by_row(self._in_order)
        self.verdicts = {uid: verdicts[-1] for uid, verdicts in self._by_row.items()}
        self._kinds = Counter(each.verdict for each in self.verdicts.values())

    # ── what is listed ──

    def listed(self, view: View) -> list[int]:
        """The places of the rows of a view; the same list until the view is asked for anew."""
        if view not in self._views:
            self._views[view] = self._select(view)
            while len(self._views) > VIEWS:
                self._views.popitem(last=False)
        return self._views[view]

    def refreshed(self, view: View) -> list[int]:
        """The same, computed anew: rows that have a verdict by now may leave it."""
        self._views.pop(view, None)
        return self.listed(view)

    def _select(self, view: View) -> list[int]:
        orders: Mapping[str, Callable[[], Sequence[int]]] = {
            "worth": lambda: self._worth,
            "file": lambda: range(len(self.rows)),
            "doubt": lambda: sorted(range(len(self.rows)), key=self._sureness),
            "sure": lambda: sorted(range(len(self.rows)), key=lambda i: -self._sureness(i)),
        }
        if view == View(view.order):
            return list(orders[view.order]())
        wanted = view.text.casefold()
        label = None if view.label is None else self.labels[view.label]
        return [
            place
            for place in orders[view.order]()
            if self._is_listed(self.rows[place], view, label, wanted)
        ]

    def _is_listed(self, row: Row, view: View, label: str | None, wanted: str) -> bool:
        verdict = self.verdicts.get(row.uid)
        if view.state != "all" and (verdict is not None) != (view.state == "done"):
            return False
        if view.role not in ("all", row.line.role):
            return False
        if label is not None and label != (row.label if verdict is None else verdict.now):
            return False
        texts = (row.example.text, row.example.pair or "")
        return not wanted or any(wanted in text.casefold() for text in texts)

    def _sureness(self, place: int) -> float:
        row = self.rows[place]
        known = belief(row, self.labels)
        return row.line.confidence if known is None else known

    def next_worth(self, after: int) -> int | None:
        """The place in the order of worth of the next row without a verdict; None at the end."""
        listed = self.listed(View())
        places = [*range(after + 1, len(listed)), *range(min(after + 1, len(listed)))]
        open_ = (at for at in places if self.rows[listed[at]].uid not in self.verdicts)
        return next(open_, None)

    # ── what is shown ──

    def brief(self, place: int) -> list[Any]:
        """A row of the list, as a short record: the page knows what stands where."""
        row = self.rows[place]
        known = belief(row, self.labels)
        return [
            place,
            self.labels.index(row.label),
            None if known is None else round(known, 3),
            round(row.line.confidence, 3),
            row.line.role,
            row.example.text[:SNIPPET],
            self.verdict_of(place),
        ]

    def verdict_of(self, place: int) -> list[Any] | None:
        """The verdict on a row and the label it gives, as a number; None where there is none."""
        found = self.verdicts.get(self.rows[place].uid)
        if found is None:
            return None
        return [found.verdict, None if found.now is None else self.labels.index(found.now)]

    def detail(self, place: int) -> dict[str, Any]:
        """All that is known of a row."""
        row, text = self.rows[place], self.rows[place].example
        opinion = row.opinion
        return {
            "place": place,
            "uid": row.uid,
            "text": text.text[:LONGEST_TEXT],
            "pair": None if text.pair is None else text.pair[:LONGEST_TEXT],
            "cut": sum(max(len(side) - LONGEST_TEXT, 0) for side in (text.text, text.pair or "")),
            "label": self.labels.index(row.label),
            "answer": self.labels.index(row.answer),
            "confidence": row.line.confidence,
            "certainty": row.line.certainty,
            "round": row.round,
            "role": row.line.role,
            "why": why(row),
            "folds": None if opinion is None else opinion.folds,
            "model": None if opinion is None else opinion.model or None,
            "verdict": self.verdict_of(place),
        }

    def progress(self) -> dict[str, int]:
        """How many rows there are, and how many have which verdict."""
        names: tuple[Verdict, ...] = ("accept", "label", "drop")
        return {"rows": len(self.rows), **{name: self._kinds[name] for name in names}}

    # ── what is decided ──

    def decide(self, place: int, verdict: Given, label: int | None = None) -> None:
        """Write a verdict to disk; from then on it counts."""
        now = {"accept": self.rows[place].label, "drop": None}.get(verdict)
        if verdict == "label":
            assert label is not None
            now = self.labels[label]
        written = self._write(place, verdict, now)
        self._in_order.append(written)
        self._by_row.setdefault(written.uid, []).append(written)
        self._count(written.uid)

    def undo(self) -> int | None:
        """Take the last verdict back: the place of its row, or None where there is nothing."""
        if not self._in_order:
            return None
        uid = self._in_order[-1].uid
        place = self._places[uid]
        self._write(place, "undo", None)
        self._in_order.pop()
        self._by_row[uid].pop()
        self._count(uid)
        return place

    def _write(self, place: int, verdict: Verdict, now: str | None) -> Correction:
        row = self.rows[place]
        content = uid_of(row.example.text, row.example.pair)
        line = Correction(row.uid, content, row.label, now, verdict, row.round, self._digest)
        self.journal.add(line)
        return line

    def _count(self, uid: str) -> None:
        """Let the last verdict on a row count, in place of the one that did."""
        if before := self.verdicts.pop(uid, None):
            self._kinds[before.verdict] -= 1
        if verdicts := self._by_row[uid]:
            self.verdicts[uid] = verdicts[-1]
            self._kinds[verdicts[-1].verdict] += 1
