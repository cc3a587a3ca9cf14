"""One self-contained HTML page from the facts of a run: no network, no script but its own.

The policy of the page allows its one style and its one script by their sha256; everything that
comes from a run or a file is escaped, and texts reach the page as data alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from selftrain.data.rows import Labelled, Notes
from selftrain.disk import check_target, replacing
from selftrain.html import shortened
from selftrain.report import advice
from selftrain.report.facts import Facts, facts_of
from selftrain.report.points import Given, Points, data_of, points_of
from selftrain.report.sections import words_of
from selftrain.runs.saved import SavedRun, read_run

if TYPE_CHECKING:
    from jinja2 import Template

    from selftrain.training.machine import Machine

ASSETS = Path(__file__).parent / "assets"
LONGEST_SENTENCE = 1_000
"""Characters of a sentence or a name on the page."""


@dataclass(frozen=True, slots=True)
class Page:
    """The report of a run: a notebook shows it, ``save`` writes it."""

    html: str
    """The page: one file, which needs nothing else."""
    numbers: Mapping[str, Any]
    """Every number that it shows."""
    warnings: tuple[str, ...] = ()
    """What a person should know about the files that were given."""

    def save(self, path: str | Path, *, private: bool = False) -> Path:
        """Write the page, and its numbers beside it: ``report.html`` and ``report.json``."""
        target = Path(path)
        check_target(target)
        with replacing(target, private=private) as temporary:
            temporary.write_text(self.html, "utf-8")
        with replacing(target.with_suffix(".json"), private=private) as temporary:
            temporary.write_text(self.json + "\n", "utf-8")
        return target

    @property
    def json(self) -> str:
        """Its numbers as JSON."""
        text = json.dumps(self.numbers, indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "backslashreplace").decode()

    def _repr_html_(self) -> str:
        frame = Markup('<iframe sandbox="allow-scripts" width="100%" height="720" srcdoc="{}">')
        return str(frame.format(self.html) + Markup("</iframe>"))


def report(
    run: str | Path | SavedRun,
    *,
    unlabelled: object = None,
    labelled: object = None,
    texts: bool = True,
    backbone: str | Path | None = None,
) -> Page:
    """The page of a run, as ``selftrain report`` writes it.

    ``unlabelled`` and ``labelled`` are the files of the run, or their rows: a run folder holds no
    texts, and the map and the table need them. With ``texts=False`` none stands on the page.
    """
    from selftrain.data.read import read_labelled, read_unlabelled

    saved = run if isinstance(run, SavedRun) else read_run(run)
    notes = Notes()
    pool = None if unlabelled is None else read_unlabelled(unlabelled, notes=notes)
    gold = [] if labelled is None else read_labelled(labelled, notes=notes)
    where = str(unlabelled) if isinstance(unlabelled, str | Path) else "the pool"
    return draw(saved, Given(pool, where, gold, texts), backbone=backbone)


def draw(
    run: SavedRun,
    given: Given = Given(),
    *,
    backbone: str | Path | None = None,
    machine: Machine | None = None,
) -> Page:
    """The page of a run, with a map and a table where its pool is given."""
    from selftrain.runs.read import load
    from selftrain.training.machine import Machine

    machine = machine or Machine()
    gold = own_rows(run, given.labelled)
    points = None
    if given.pool is not None:
        model = load(run.folder, backbone=backbone).to(machine.torch_device())
        points = points_of(run, replace(given, labelled=gold), model, machine.progress)
    whole = is_whole(run, given.labelled)
    page = page_of(facts_of(run, gold if whole else None), gold if given.texts else [], points)
    warnings = [points.warning] if points and points.warning else []
    if given.labelled and not gold:
        warnings.append("the labelled file is not the one of the run: left out")
    return replace(page, warnings=tuple(warnings))


def own_rows(run: SavedRun, labelled: Sequence[Labelled]) -> list[Labelled]:
    """Those labelled rows that the run learnt from; an error where none of them is."""
    from selftrain.runs.estimates import opinions_of
    from selftrain.runs.texts import texts_of

    rows = [row for row in labelled if row.label in run.labels]
    gold, _ = opinions_of(run.answering.folder, run.labels)
    if not labelled or not gold:
        return rows if is_whole(run, labelled) else []
    labels = {row.uid: row.label for row in gold}
    found = texts_of(list(labels), (row.example for row in rows), "the labelled file")
    return [Labelled(found.by_uid[uid], labels[uid]) for uid in labels if uid in found.by_uid]


def is_whole(run: SavedRun, labelled: Sequence[Labelled]) -> bool:
    """Whether these are all rows that the run learnt from, and no others."""
    from selftrain.data.fewshot import fingerprint

    return bool(labelled) and fingerprint(labelled) == run.manifest.data.get("labelled")


def page_of(facts: Facts, gold: Sequence[Labelled] = (), points: Points | None = None) -> Page:
    """The page of these facts, with the texts of labelled rows and of the pool if there are any."""
    worries = advice.worries(facts)
    steps = advice.steps(facts, texts=points is not None)
    has_texts = points is not None and any(point.text is not None for point in points.points)
    data = None if points is None else data_of(points, [each.label for each in facts.classes])
    style, script = _asset("style.css"), _asset("script.js")
    html = _template().render(
        facts=facts,
        words=words_of(facts, {row.example.uid: row.example for row in gold}),
        worries=worries,
        steps=steps,
        points=points,
        has_texts=has_texts,
        policy=_policy(style, script),
        style=Markup(style),  # noqa: S704  (a file of ours)
        script=Markup(script),  # noqa: S704
        data=Markup(embedded(data)),  # noqa: S704  (no < is left in it)
    )
    numbers = {
        **facts.plain(),
        "worries": worries,
        "next": [asdict(step) for step in steps],
        "rows": _plain_points(points),
    }
    return Page(html.encode("utf-8", "backslashreplace").decode(), numbers)


def embedded(data: object) -> str:
    """JSON that may stand inside of a script element: no text in it can end the element.

    >>> embedded(["</script>"])
    '["\\\\u003c/script>"]'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain_points(points: Points | None) -> dict[str, Any] | None:
    """The rows for report.json, without their texts."""
    if points is None:
        return None
    rows = [asdict(point) for point in points.points]
    for row in rows:
        del row["text"], row["pair"]
    return {"shown": len(rows), "of": points.pool_rows, "rows": rows}


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    place = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_plain,
    )
    return place.from_string(_asset("report.html.j2"))


def _plain(value: object) -> object:
    """What the template prints: a plain text is made visible and cut, and escaped after this."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return shortened(value, LONGEST_SENTENCE)
