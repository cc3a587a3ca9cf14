"""Numbers to pictures, by matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selftrain.disk import replacing
from selftrain.errors import ConfigError, require
from selftrain.experiments.figures import page
from selftrain.experiments.figures.before_after import BeforeAfter, CalibratedRun
from selftrain.experiments.figures.calibration import BINS, Calibration, Reliability, place
from selftrain.experiments.figures.page import COLOURS, DASHES, GREY, MARKERS, STYLE
from selftrain.experiments.figures.plane import Plane, View
from selftrain.experiments.figures.rounds import Line, Rounds
from selftrain.experiments.names import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Numbers = Rounds | Calibration | BeforeAfter | Plane
"""What can be drawn."""
METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}}
"""By format; what would make two files of the same numbers differ is left out."""


def check(paths: Iterable[Path]) -> None:
    """Raise unless figures can be drawn here, into files of these names."""
    for path in paths:
        if path.suffix.lower()[1:] not in METADATA:
            raise ConfigError(
                f"{path} ends in `{path.suffix}`; expected .png or .svg", "-o fig.svg"
            )
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ConfigError(
            "figures are drawn by matplotlib, which is not installed",
            "pip install matplotlib",
        ) from None


def save(numbers: Numbers, paths: Sequence[Path]) -> None:
    """Draw once and write PNG or SVG, by each name's ending; the same numbers, the same bytes."""
    check(paths)

    from matplotlib import style

    with style.context(["default", STYLE]):
        figure = draw(numbers)
        for path in paths:
            kind = path.suffix.lower()[1:]
            with replacing(path.resolve()) as temporary:
                figure.savefig(temporary, format=kind, metadata=METADATA[kind])


def draw(numbers: Numbers) -> Figure:
    """The figure that shows these numbers."""
    match numbers:
        case Rounds():
            return rounds(numbers)
        case Calibration():
            return calibration(numbers)
        case BeforeAfter():
            return before_after(numbers)
        case Plane():
            return plane(numbers)


# ── the figures ────────────────────────────────────────────────────────────────────────


def rounds(numbers: Rounds) -> Figure:
    """A panel for each task, a line for each method, a band of ± sd over seeds."""
    tasks = list(dict.fromkeys(line.task for line in numbers.lines))
    methods = list(dict.fromkeys(line.method for line in numbers.lines))
    require(
        len(methods) <= len(COLOURS),
        "the number of lines in a panel",
        len(methods),
        f"at most {len(COLOURS)}, or nobody can tell one from another",
        f"name those to be drawn: --method {methods[0]} --method {methods[-1]}",
    )
    names = [shown(method) for method in methods]
    figure, axes = page.panels(len(tasks), tall=lambda _wide: 2.1, names=names)
    last = max(point.number for line in numbers.lines for point in line.points)
    for axis, task in zip(axes, tasks, strict=True):
        for line in numbers.lines:
            if line.task == task:
                _line(axis, line, methods.index(line.method))
        page.title(axis, task)
        axis.set_xticks(range(last + 1))
        axis.set_xlim(-0.25, last + 0.25)
    page.label(axes, "round (0: teacher)", "accuracy, %")
    seeds = {line.seeds for line in numbers.lines}
    over = _counted(seeds) if seeds == {1} else f"mean ± sd over {_counted(seeds)}"
    some_ended = any(p.seeds < line.seeds for line in numbers.lines for p in line.points)
    open_marks = "; open marks: some runs had ended" if some_ended else ""
    page.head(figure, f"{numbers.setting}; {over}{open_marks}")
    page.legend(figure, names, _line_mark, length=3.6)
    return figure


def calibration(numbers: Calibration) -> Figure:
    """A panel for each method or task: confidence beside accuracy, and the answers below."""
    panels = numbers.panels
    figure, axes = page.panels(len(panels), tall=lambda wide: 0.95 * wide + 0.6, below=0.26)
    several = len({panel.method for panel in panels}) > 1
    tops, bottoms = axes[0::2], axes[1::2]
    largest = max(bin_.rows for panel in panels for bin_ in panel.bins)
    for number, (top, bottom, panel) in enumerate(zip(tops, bottoms, panels, strict=True)):
        _reliability(top, panel, number if several else 0)
        _answers(bottom, panel, number if several else 0)
        page.title(top, shown(panel.method) if several else panel.task)
        if several:  # on one task, so the counts can be compared
            bottom.set_ylim(0, 1.05 * largest)
    page.label(tops, "", "accuracy, %")
    page.label(bottoms, "confidence, %", "answers")
    over = _counted({panel.error.n for panel in panels})
    only = panels[0].task if several else shown(panels[0].method)
    page.head(figure, f"{only}; {numbers.setting}; answers of {over}")
    figure.align_ylabels()
    return figure


def before_after(numbers: BeforeAfter) -> Figure:
    """A panel for each run: two curves of confidence beside accuracy, and the answers below."""
    panels = numbers.panels
    figure, axes = page.panels(len(panels), tall=lambda wide: 0.95 * wide + 0.6, below=0.26)
    tops, bottoms = axes[0::2], axes[1::2]
    for top, bottom, panel in zip(tops, bottoms, panels, strict=True):
        lowest = 10 * (10 // panel.classes)  # the least that a label of so many classes can have
        _curves(top, panel, lowest)
        _counts(bottom, panel, lowest)
        page.title(top, f"{panel.run}: {shown(panel.method)}, round {panel.number}")
    page.label(tops, "", "accuracy, %")
    page.label(bottoms, "confidence, %", "answers")
    page.head(
        figure,
        f"{numbers.setting}; a mark is a tenth of them; error: mean distance from the diagonal, "
        "without what chance adds",
    )
    figure.align_ylabels()
    return figure


def plane(numbers: Plane) -> Figure:
    """A panel for each run: rows by t-SNE, in the colour and with the marker of their class."""
    kinds = len(COLOURS) * len(MARKERS)
    require(
        len(numbers.labels) <= kinds,
        "the number of classes",
        len(numbers.labels),
        f"at most {kinds}, or nobody can tell one from another",
        "draw rows of fewer classes",
    )
    figure, axes = page.panels(
        len(numbers.views), tall=lambda wide: wide + 0.5, names=numbers.labels
    )
    for axis, view in zip(axes, numbers.views, strict=True):
        _scatter(axis, view, numbers)
    page.head(figure, numbers.setting)
    page.legend(figure, numbers.labels, _class_mark, length=1)
    return figure


BEFORE_AFTER_STYLES = (1, 0)
"""As trained is drawn in the second colour, calibrated in the first."""


# ── inside a panel ────────────────────────────────────────────────────────────────────────────


def _line(axis: Axes, line: Line, style: int) -> None:
    by_number = {point.number: point for point in line.points}
    numbers = range(max(by_number) + 1)
    points = [by_number.get(number) for number in numbers]
    means = [100 * point.mean if point else nan for point in points]
    sds = [100 * point.sd if point and point.sd is not None else nan for point in points]
    lows = [mean - sd for mean, sd in zip(means, sds, strict=True)]
    highs = [mean + sd for mean, sd in zip(means, sds, strict=True)]
    colour, marker = COLOURS[style], MARKERS[style]
    axis.fill_between(numbers, lows, highs, color=colour, alpha=0.12, linewidth=0)
    axis.plot(numbers, means, color=colour, linestyle=DASHES[style])
    if len(points) == 1:  # a band needs two rounds
        axis.errorbar([0], means, sds, color=colour, capsize=2, linewidth=0.8)
    for point in line.points:
        filled = colour if point.seeds == line.seeds else "white"
        axis.plot(
            point.number, 100 * point.mean, marker=marker, color=colour, markerfacecolor=filled
        )


def _reliability(axis: Axes, panel: Reliability, style: int) -> None:
    axis.plot([0, 100], [0, 100], color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    style %= len(COLOURS)
    mark = axis.plot(
        [100 * each.confidence for each in panel.bins],
        [100 * each.accuracy for each in panel.bins],
        color=COLOURS[style],
        marker=MARKERS[style],
        clip_on=False,  # a bin that is always right lies on the edge
        zorder=3,
    )
    axis.set(xlim=(0, 100), ylim=(0, 100), xticks=range(0, 101, 25), yticks=range(0, 101, 25))
    axis.tick_params(labelbottom=False)
    error = panel.error
    sd = f" ± {100 * error.sd:.1f}" if error.n > 1 else ""
    axis.legend(mark, [f"ECE {100 * error.mean:.1f}{sd} %"], loc="upper left", handlelength=1.2)


def _curves(axis: Axes, panel: CalibratedRun, lowest: int) -> None:
    axis.plot([0, 100], [0, 100], color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
    for style, curve in zip(BEFORE_AFTER_STYLES, panel.curves, strict=True):
        axis.plot(
            [100 * each.confidence for each in curve.bins],
            [100 * each.accuracy for each in curve.bins],
            color=COLOURS[style],
            marker=MARKERS[style],
            linestyle=DASHES[style],
            label=f"{curve.name}: error {100 * curve.error:.1f} %",
            clip_on=False,
            zorder=3,
        )
    axis.set(xlim=(lowest, 100), ylim=(0, 100), xticks=_ticks(lowest), yticks=range(0, 101, 25))
    axis.tick_params(labelbottom=False)
    axis.legend(loc="best", handlelength=2.4)


def _counts(axis: Axes, panel: CalibratedRun, lowest: int) -> None:
    wide = 100 / BINS
    for side, (style, curve) in enumerate(zip(BEFORE_AFTER_STYLES, panel.curves, strict=True)):
        starts = [wide * number + wide * (0.08 + 0.42 * side) for number in range(BINS)]
        axis.bar(
            starts, curve.counts, width=0.42 * wide, align="edge", color=COLOURS[style], alpha=0.7
        )
    axis.set(xlim=(lowest, 100), xticks=_ticks(lowest))
    axis.grid(visible=False)
    axis.locator_params(axis="y", nbins=2)
    axis.yaxis.set_major_formatter("{x:,.0f}")


def _ticks(lowest: int) -> range:
    return range(lowest, 101, 10 if lowest >= 50 else 20)


def _answers(axis: Axes, panel: Reliability, style: int) -> None:
    axis.bar(
        [(100 * place(each) + 50) / BINS for each in panel.bins],
        [each.rows for each in panel.bins],
        width=90 / BINS,
        color=COLOURS[style % len(COLOURS)],
        alpha=0.6,
    )
    axis.set(xlim=(0, 100), xticks=range(0, 101, 25))
    axis.grid(visible=False)
    axis.locator_params(axis="y", nbins=2)
    axis.yaxis.set_major_formatter("{x:,.0f}")


def _scatter(axis: Axes, view: View, numbers: Plane) -> None:
    for style, label in enumerate(numbers.labels):
        pairs = zip(view.places, numbers.gold, strict=True)
        places = [place for place, gold in pairs if gold == label]
        axis.scatter(
            [x for x, _ in places],
            [y for _, y in places],
            s=9,
            marker=MARKERS[style % len(MARKERS)],
            color=COLOURS[style % len(COLOURS)],
            alpha=0.75,
            linewidths=0,
        )
    axis.set(xticks=[], yticks=[], box_aspect=1)
    axis.spines[["top", "right"]].set_visible(True)
    page.title(axis, shown(view.method))
    axis.set_xlabel(f"silhouette {view.silhouette:.3f} (round {view.number}, seed {view.seed})")


# ── the legend ────────────────────────────────────────────────────────────────────────────────


def _line_mark(style: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=COLOURS[style], marker=MARKERS[style], linestyle=DASHES[style])


def _class_mark(style: int) -> Any:
    from matplotlib.lines import Line2D

    colour, marker = COLOURS[style % len(COLOURS)], MARKERS[style % len(MARKERS)]
    return Line2D([], [], color=colour, marker=marker, linestyle="")


def _counted(seeds: set[int]) -> str:
    """How many seeds there are.

    >>> _counted({5}), _counted({1}), _counted({3, 5})
    ('5 seeds', '1 seed', '3 to 5 seeds')
    """
    fewest, largest = min(seeds), max(seeds)
    count = f"{fewest} to {largest}" if fewest < largest else str(largest)
    return f"{count} seed{'s' * (largest > 1)}"
