"""The page a figure stands on: its style, its panels, and the words around them.

Nothing of this machine shows in it: the font comes with matplotlib, and no settings are read.
Names come from anyone's file: nothing in them is a formula, a line break or a missing glyph.
Every line and class differs from the others in colour, which all can tell apart, and in marker,
which a grey copy keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from selftrain.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.3  # inches: the text width of a page
PANELS = 12  # on a page
LONGEST = 48  # characters of a name
LETTER, SMALL = 1 / 14, 1 / 18  # inches: about what a letter of a title takes, and of a head line
ROW = 0.17  # inches: of a legend
FONT = "DejaVu Sans"  # comes with matplotlib
GREY = "0.35"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, without the yellow that white paper swallows."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One more than colours: a pair of both comes again only after 56."""
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (2, 2)),
    (0, (3, 1.2, 1, 1.2, 1, 1.2)),
    (0, (9, 1.5)),
)
STYLE = {
    "font.family": FONT,
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "text.parse_math": False,
    "svg.hashsalt": "selftrain",
    "svg.fonttype": "path",
}


def panels(
    count: int,
    *,
    tall: Callable[[float], float],
    below: float = 0,
    names: Sequence[str] = (),
) -> tuple[Figure, list[Axes]]:
    """A figure with that number of panels; with ``below``, each of them over a lower one.

    How tall a panel is follows from how wide it is, in inches; three of them fill a page. There is
    room for a legend of the names.
    """
    from matplotlib.figure import Figure

    require(
        count <= PANELS,
        "the number of panels",
        count,
        f"at most {PANELS} on a page",
        "name fewer tasks, methods or runs",
    )
    across = 2 if count == 4 else min(count, 3)
    down = ceil(count / across)
    parts = [1 - below, below] if below else [1.0]
    wide = WIDTH / across
    if tall(wide) > wide and across == 1:  # a lone square would fill the page
        wide = WIDTH / 2
    high = 0.3 + tall(wide) * down + ROW * (len(rows_of(names, wide * across)) if names else 0)
    figure = Figure(figsize=(wide * across, high), layout="constrained")
    grid = figure.subplots(
        down * len(parts), across, squeeze=False, gridspec_kw={"height_ratios": parts * down}
    )
    axes = []
    for number in range(across * down):
        row, column = divmod(number, across)
        for part in range(len(parts)):
            axis = grid[row * len(parts) + part, column]
            if number < count:
                axes.append(axis)
            else:
                axis.remove()
    return figure, axes


def label(axes: Sequence[Axes], across: str, up: str) -> None:
    """What is measured, at the left of each row and below each column."""
    columns: dict[int, Axes] = {}
    for axis in axes:
        where = axis.get_subplotspec()
        assert where is not None
        columns[where.colspan.start] = axis
        if where.is_first_col():
            axis.set_ylabel(up)
    for lowest in columns.values():
        lowest.set_xlabel(across)


def title(axis: Axes, name: str) -> None:
    """The name of a panel, on as many lines as its width asks for."""
    where, figure = axis.get_subplotspec(), axis.get_figure(root=True)
    assert where is not None
    assert figure is not None
    wide = figure.get_figwidth() / where.get_gridspec().ncols
    axis.set_title("\n".join(wrap(cut(name), int(0.9 * wide / LETTER))))


def head(figure: Figure, text: str) -> None:
    """Small lines above all: what a reader must know to read the figure."""
    lines = wrap(written(text), int(figure.get_figwidth() / SMALL))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=7, color=GREY)


def legend(
    figure: Figure, names: Sequence[str], mark: Callable[[int], Any], *, length: float
) -> None:
    """All names below all panels, read row by row; ``length`` is that of a mark, in letters."""
    rows = rows_of(names, figure.get_figwidth())
    # Matplotlib fills a legend column by column.
    order = [row[column] for column in range(len(rows[0])) for row in rows if column < len(row)]
    legend = figure.legend(
        [mark(style) for style in order],
        [str(style) for style in order],
        loc="outside lower center",
        ncols=len(rows[0]),
        handlelength=length,
    )
    # Set afterwards, because matplotlib leaves names that begin with _ out of a legend.
    for text, style in zip(legend.get_texts(), order, strict=True):
        text.set_text(cut(names[style]))


def rows_of(names: Sequence[str], wide: float) -> list[list[int]]:
    """The places of names in a legend of this width in inches, row by row, as even as can be.

    >>> rows_of(["a", "b", "c", "d"], 2.1)
    [[0, 1], [2, 3]]
    """
    longest = 0.6 + max(len(cut(name)) for name in names) * LETTER
    down = ceil(len(names) / max(1, int(wide / longest)))
    across = ceil(len(names) / down)
    places = list(range(len(names)))
    return [places[first : first + across] for first in range(0, len(names), across)]


def cut(name: str) -> str:
    """A name as it is drawn: all of it, unless it is longer than names are."""
    return written(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")


def written(text: str) -> str:
    """The text on one line, with the code of each character that the font has no glyph for."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(FONT))
    return "".join(
        c if c.isprintable() and font.get_char_index(ord(c)) else ascii(c)[1:-1] for c in text
    )
