"""Drawings of a report: SVG as text, without a style or a script of their own.

Colours are classes that the style sheet of the page knows, for light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from selftrain.html import at, joined
from selftrain.report.lessons import ROLES, RoundFacts
from selftrain.report.trust import Bin

SIDE = 260
"""Of a square drawing, in pixels: it fits a phone."""
EDGE = 34
"""Room for the numbers at its left and below."""


def reliability(bins: Sequence[Bin], title: str, side: str) -> Markup:
    """Confidence to the right, the share that is right upwards; the diagonal is perfect."""
    if not bins:
        return Markup("")
    most = max(each.rows for each in bins)
    dots = joined(
        Markup('<circle class="dot" cx="{}" cy="{}" r="{}"><title>{}</title></circle>').format(
            f"{_x(each.confidence):.1f}",
            f"{_y(each.right):.1f}",
            f"{3 + 6 * (each.rows / most) ** 0.5:.1f}",
            f"{each.rows} rows: confidence {each.confidence:.2f}, right {each.right:.2f}",
        )
        for each in bins
    )
    diagonal = Markup('<line class="diagonal" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        _x(0), _y(0), _x(1), _y(1)
    )
    return _square(title, joined([_axes("confidence", side), diagonal, dots]))


def _square(title: str, inside: Markup) -> Markup:
    return Markup(
        '<svg class="chart" width="{0}" height="{0}" viewBox="0 0 {0} {0}" role="img" '
        'aria-label="{1}">{2}</svg>'
    ).format(SIDE, title, inside)


def _x(share: float) -> float:
    return EDGE + (SIDE - EDGE - 8) * share


def _y(share: float) -> float:
    return SIDE - EDGE - (SIDE - EDGE - 8) * share


def _axes(across: str, upwards: str) -> Markup:
    marks = joined(
        Markup(
            '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            '<text class="tick end" x="{}" y="{}">{}</text>'
            '<text class="tick mid" x="{}" y="{}">{}</text>'
        ).format(
            *(_x(0), _x(1), _y(share), _y(share)),
            *(EDGE - 6, f"{_y(share) + 4:.0f}", f"{share:.1f}" if share else "0"),
            *(f"{_x(share):.0f}", SIDE - EDGE + 15, f"{share:.1f}" if share else "0"),
        )
        for share in (0, 0.5, 1)
    )
    names = Markup(
        '<text class="tick mid" x="{}" y="{}">{}</text><text class="tick" x="{}" y="{}">{}</text>'
    ).format(f"{_x(0.5):.0f}", SIDE - 4, across, EDGE + 4, 18, upwards)
    return joined([marks, names])


WIDE, HIGH, BASE = 320, 132, 112


def histogram(counts: Mapping[str, Sequence[int]], title: str) -> Markup:
    """Rows by their share from 0 to 1, the roles on top of each other."""
    bins = len(counts[ROLES[0]])
    totals = [sum(counts[role][at] for role in ROLES) for at in range(bins)]
    most = max(totals, default=0)
    if not most:
        return Markup("")
    wide = WIDE / bins
    parts = []
    for place in range(bins):
        top = float(BASE)
        for role in ROLES:
            high = (BASE - 8) * counts[role][place] / most
            top -= high
            if high:
                parts.append(
                    Markup(
                        '<rect class="{}" x="{}" y="{}" width="{}" height="{}">'
                        "<title>{}</title></rect>"
                    ).format(
                        f"role-{role}",
                        f"{place * wide + 1:.1f}",
                        f"{top:.1f}",
                        f"{wide - 2:.1f}",
                        f"{high:.1f}",
                        f"{place / bins:.2f} to {(place + 1) / bins:.2f}: "
                        f"{counts[role][place]} {role}",
                    )
                )
    scale = joined(
        Markup('<text class="tick {}" x="{}" y="{}">{}</text>').format(anchor, x, HIGH - 4, name)
        for anchor, x, name in (("", 1, "0"), ("mid", WIDE / 2, "0.5"), ("end", WIDE - 1, "1"))
    )
    ground = Markup('<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>').format(WIDE, BASE, BASE)
    return Markup(
        '<svg class="chart" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" '
        'aria-label="{2}">{3}{4}{5}</svg>'
    ).format(WIDE, HIGH, title, joined(parts), ground, scale)


def rounds(found: Sequence[RoundFacts]) -> Markup:
    """Expected accuracy by round with its interval; a refused round is hollow."""
    known = [
        (each, each.expected, each.low, each.high)
        for each in found
        if each.expected is not None and each.low is not None and each.high is not None
    ]
    if len(known) < 2:
        return Markup("")
    floor = min(0.9, max(0.0, min(low for _, _, low, _ in known) - 0.05))
    last = max(each.number for each, *_ in known)
    every = 1 + last // 16  # numbers below that do not touch
    parts, path = [], []
    for each, expected, low, high in known:
        x = f"{40 + (WIDE - 52) * each.number / last:.1f}"
        y = f"{_height(expected, floor):.1f}"
        parts.append(
            Markup(
                '<line class="range" x1="{0}" x2="{0}" y1="{1:.1f}" y2="{2:.1f}"/>'
                '<circle class="{3}" cx="{0}" cy="{4}" r="4"><title>{5}</title></circle>'
                '<text class="tick mid" x="{0}" y="176">{6}</text>'
            ).format(
                *(x, _height(low, floor), _height(high, floor)),
                *("dot" if each.accepted else "dot refused", y),
                f"round {each.number}: {expected:.2f}, {low:.2f} to {high:.2f}",
                "" if each.number % every else each.number,
            )
        )
        path += [f"{x},{y}"] if each.accepted else []
    line = Markup('<polyline class="trend" points="{}"/>').format(" ".join(path))
    return Markup(
        '<svg class="chart" width="{0}" height="180" viewBox="0 0 {0} 180" role="img" '
        'aria-label="expected accuracy by round">{1}{2}{3}</svg>'
    ).format(WIDE, _levels(floor), line, joined(parts))


def _levels(floor: float) -> Markup:
    """Three lines across a drawing of rounds, with their numbers."""
    return joined(
        Markup(
            '<line class="grid" x1="36" x2="{0}" y1="{1:.1f}" y2="{1:.1f}"/>'
            '<text class="tick end" x="32" y="{2:.1f}">{3:.2f}</text>'
        ).format(WIDE - 6, _height(share, floor), _height(share, floor) + 4, share)
        for share in (floor, (1 + floor) / 2, 1.0)
    )


def _height(share: float, floor: float) -> float:
    return 158 - 148 * (share - floor) / (1 - floor)


def scale(value: float, low: float, high: float) -> Markup:
    """The large interval at the top of the page, with its three numbers below it."""
    ends = joined(
        Markup('<text class="tick mid" x="{}" y="42">{}</text>').format(at(share), text)
        for share, text in ((low, f"{100 * low:.0f}"), (high, f"{100 * high:.0f}"))
    )
    return Markup(
        '<svg class="interval chosen large" width="100%" height="48" role="img" aria-label="{}">'
        '<line class="scale" x1="1%" x2="99%" y1="16" y2="16"/>'
        '<line class="range" x1="{}" x2="{}" y1="16" y2="16"/>'
        '<circle cx="{}" cy="16" r="8"/>{}</svg>'
    ).format(
        f"{100 * value:.0f} of 100, between {100 * low:.0f} and {100 * high:.0f}",
        *(at(low), at(high), at(value), ends),
    )
