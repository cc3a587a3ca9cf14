"""Small pieces of HTML as strings, for the report and for notebooks.

Every value goes through ``Markup.format``, which escapes it. There are no style attributes and no
scripts: the report forbids them, and a notebook needs none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup

LONGEST_LABEL = 60
LONGEST_TEXT = 400
"""Characters of a label or a text that a page shows."""
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that a reader does not see, or that turn the text around them."""


def visible(text: str) -> str:
    r"""A text whose control characters and marks of direction can be seen; line ends stay.

    >>> visible("fine\x1b[2J \u202egnp.exe")
    'fine␛[2J ⟨202E⟩gnp.exe'
    """
    return HIDDEN.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩"


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text that is visible, and cut with a note of its length.

    >>> shortened("a" * 1000, 5)
    'aaaaa … (1,000 characters)'
    """
    if len(text) <= longest:
        return visible(text)
    return f"{visible(text[:longest])} … ({len(text):,} characters)"


def label(name: str) -> Markup:
    """The name of a class: its direction stays inside, and a long one is cut.

    >>> print(label("<b>"))
    <bdi class="label">&lt;b&gt;</bdi>
    """
    return Markup('<bdi class="label">{}</bdi>').format(shortened(name, LONGEST_LABEL))


def joined(parts: Iterable[Markup]) -> Markup:
    """Pieces of HTML one after the other."""
    return Markup("").join(parts)


def table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str = "") -> Markup:
    """A table; plain values are escaped, numbers stand on the right.

    >>> print(table(["round", "picked"], [["<1>", 20]]))
    <table><thead><tr><th scope="col">round</th><th scope="col" class="n">picked</th></tr></thead>\
<tbody><tr><td>&lt;1&gt;</td><td class="n">20</td></tr></tbody></table>
    """
    body = [list(row) for row in rows]
    numeric = [
        any(_is_number(row[at]) for row in body) and all(_fits(row[at]) for row in body)
        for at in range(len(head))
    ]
    heads = joined(
        Markup('<th scope="col"{}>{}</th>').format(_class(right), _cell(cell))
        for cell, right in zip(head, numeric, strict=True)
    )
    lines = joined(
        Markup("<tr>{}</tr>").format(
            joined(
                Markup("<td{}>{}</td>").format(_class(right), _cell(cell))
                for cell, right in zip(row, numeric, strict=True)
            )
        )
        for row in body
    )
    named = Markup("<caption>{}</caption>").format(caption) if caption else ""
    return Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        named, heads, lines
    )


def _class(right: bool) -> Markup:
    return Markup(' class="n"') if right else Markup("")


def _cell(cell: object) -> object:
    return shortened(cell) if isinstance(cell, str) and not isinstance(cell, Markup) else cell


NOTHING = "–"
NUMBER = re.compile(r"[+\-−]?[\d.,:]+(?: ?(?:%|s|k|M))?|\d[\d,]* of \d[\d,]*")


def _is_number(cell: object) -> bool:
    if isinstance(cell, Markup):
        return False
    return isinstance(cell, int | float) or (
        isinstance(cell, str) and NUMBER.fullmatch(cell) is not None
    )


def _fits(cell: object) -> bool:
    return cell in ("", NOTHING) or _is_number(cell)


def percent(share: float | None) -> str:
    """A share in percent, with a decimal where it is small, or a dash.

    >>> percent(0.785), percent(0.002), percent(0), percent(None)
    ('78 %', '0.2 %', '0 %', '–')
    """
    if share is None:
        return NOTHING
    return f"{100 * share:.1f} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


# ── small drawings ───────────────────────────────────────────────────────────────────────────


def sparkline(values: Sequence[float | None], title: str) -> Markup:
    """A line through numbers, without axes; places without a number are left out."""
    points = [(at, value) for at, value in enumerate(values) if value is not None]
    if len(points) < 2:
        return Markup("")
    low, high = (pick(value for _, value in points) for pick in (min, max))
    span = (high - low) or 1.0
    last = max(len(values) - 1, 1)
    places = [(4 + 112 * at / last, 24 - 20 * (value - low) / span) for at, value in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    return Markup(
        '<svg class="spark" width="120" height="28" viewBox="0 0 120 28" role="img" '
        'aria-label="{}"><polyline points="{}" fill="none" stroke="currentColor" '
        'stroke-width="1.5"/><circle cx="{}" cy="{}" r="2.5" fill="currentColor"/></svg>'
    ).format(title, line, f"{x:.1f}", f"{y:.1f}")


def interval(
    value: float | None, low: float | None, high: float | None, *, chosen: bool = False
) -> Markup:
    """A dot for a share with a line for its interval, on a scale from 0 to 1."""
    if value is None:
        return Markup("")
    mark = "chosen" if chosen else "other"
    line = Markup("")
    if low is not None and high is not None:
        line = Markup('<line class="range" x1="{}" x2="{}" y1="9" y2="9"/>').format(
            at(low), at(high)
        )
    return Markup(
        '<svg class="interval {}" width="100%" height="18" aria-hidden="true">'
        '<line class="scale" x1="1%" x2="99%" y1="9" y2="9"/>{}'
        '<circle cx="{}" cy="9" r="5"/></svg>'
    ).format(mark, line, at(value))


def bar(share: float, kind: str = "") -> Markup:
    """A bar as wide as a share."""
    return Markup(
        '<svg class="bar {}" width="100%" height="10" aria-hidden="true">'
        '<rect class="scale" width="100%" height="10" rx="3"/>'
        '<rect class="part" width="{}" height="10" rx="3"/></svg>'
    ).format(kind, f"{100 * min(1.0, max(0.0, share)):.1f}%")


def at(share: float) -> str:
    """A share as a place on a scale that leaves a little room at its ends.

    >>> at(0.5)
    '50.0%'
    """
    return f"{1 + 98 * min(1.0, max(0.0, share)):.1f}%"
