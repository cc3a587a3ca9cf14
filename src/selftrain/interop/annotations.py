"""From a tool's file to labelled rows: who answered what, and on which row they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from selftrain.data.columns import (
    LONGEST_LABEL,
    check_look_alikes,
    clean_label,
    id_cell,
    id_column,
    text_cell,
    text_columns,
)
from selftrain.data.delimited import Row
from selftrain.data.files import Records
from selftrain.data.read import Columns
from selftrain.data.rows import Example, Labelled, Notes, is_empty, uid_of
from selftrain.data.write import write_table
from selftrain.errors import DataError, closest, listing
from selftrain.interop.formats import TOOLS
from selftrain.interop.tool import LABEL, PAIR, TEXT, UID, AnnotatedRow, Tool

MOST_CHARACTERS = 2**30
"""Of all texts together: they are in memory."""
ROOM_OF_A_ROW = 200  # characters: what a row takes beside its text


@dataclass(frozen=True, slots=True)
class Known:
    """What a file is compared with: the classes there are, and the rows of a run."""

    labels: tuple[str, ...] = ()
    """Empty: every label is a class."""
    uids: Collection[str] = ()
    """Those of the rows of a run; empty: there is no run."""
    where: str = "--labels"
    """What names the classes."""

    def label(self, found: Records, number: int, label: str) -> str:
        """A label as it is stored; an error with the closest name where it is no class."""
        name = clean_label(label)
        if not name or len(name) > LONGEST_LABEL:
            problem = f"the label is {label!r:.40}; expected a name"
            raise found.error(number, problem, "correct it in the tool")
        if self.labels and name not in self.labels:
            near = closest(name, self.labels)
            classes = listing(self.labels)
            raise found.error(
                number,
                f"label {listing([name])} is no class of {self.where}; expected {classes}",
                f"did you mean `{near}`? Correct it in the tool"
                if near
                else "correct it in the tool, or name all classes: --labels A,B,C",
            )
        return name


@dataclass(slots=True)
class Answers:
    """All that people answered on one text."""

    example: Example
    labels: list[str] = field(default_factory=list)
    skipped: int = 0
    several: int = 0
    suggested: str | None = None

    @property
    def agreed(self) -> str | None:
        """The most frequent label; None where two are equally frequent, or there is none.

        >>> Answers(Example("1", "fine"), ["good", "bad", "good"]).agreed
        'good'
        """
        counts = Counter(self.labels).most_common(2)
        tied = len(counts) == 2 and counts[0][1] == counts[1][1]
        return None if tied or not counts else counts[0][0]


def labelled_rows(
    path: Path,
    tool: Tool,
    columns: Columns,
    known: Known,
    *,
    suggestions: bool = False,
    notes: Notes,
) -> list[Labelled]:
    """The rows of a file on which people agree, in its order; the others are counted.

    With ``suggestions`` the suggested label is taken where nobody answered.
    """
    assert tool.open is not None
    found = tool.open(path)
    rows: dict[str, Answers] = {}
    for answers in _answers(found, tool, columns, known, suggestions=suggestions):
        uid = answers.example.uid
        first = rows.setdefault(uid, replace(answers, labels=[], skipped=0, several=0))
        if (first.example.text, first.example.pair) != (answers.example.text, answers.example.pair):
            raise DataError(
                f"{found.name}: the uid {listing([uid])} names two texts; uids must be unique",
                "name the right column: --id COLUMN, or make them unique",
            )
        first.labels += answers.labels
        first.skipped += answers.skipped
        first.several += answers.several
    labelled = list(_decided(rows.values(), suggestions=suggestions, notes=notes))
    if not labelled:
        raise _nothing(found, tool, notes)
    check_look_alikes(found.name, dict.fromkeys(row.label for row in labelled))
    _note_strangers(labelled, known, found, notes)
    return labelled


def _answers(
    found: Records, tool: Tool, columns: Columns, known: Known, *, suggestions: bool
) -> Iterator[Answers]:
    """Each row of a file as a text and what people answered on it."""
    assert tool.row is not None
    names: tuple[str, str | None, str | None] | None = None
    room = MOST_CHARACTERS
    for number, raw in found:
        if tool.fits is not None and not tool.fits(raw):
            raise _wrong_tool(found, number, raw, tool)
        row = tool.row(found, number, raw, columns.label)
        if names is None:
            shown = replace(found, columns=tuple(row.fields))
            names = (*text_columns(shown, columns.text, columns.pair), id_column(shown, columns.id))
        example = _example(found, number, row, names, known.uids)
        room -= len(example.text) + len(example.pair or "") + ROOM_OF_A_ROW
        if room < 0:
            raise found.error(
                number, f"more than {MOST_CHARACTERS:,} characters", "import it in parts"
            )
        labels = [known.label(found, number, label) for label in row.labels]
        suggested = None
        if suggestions and row.suggested is not None:
            suggested = known.label(found, number, row.suggested)
        yield Answers(example, labels, row.skipped, row.several, suggested)


def _example(
    found: Records,
    number: int,
    row: AnnotatedRow,
    names: tuple[str, str | None, str | None],
    uids: Collection[str],
) -> Example:
    """The text of a row under its uid; one that the run does not know goes by its text."""
    text_name, pair_name, id_name = names
    text = text_cell(found, number, row.fields, text_name)
    pair = None if pair_name is None else text_cell(found, number, row.fields, pair_name)
    by_text = uid_of(text, pair)
    uid = "" if id_name is None else id_cell(found, number, row.fields, id_name)
    if uid not in uids and by_text in uids:
        uid = by_text
    example = Example(uid or by_text, text, pair)
    if is_empty(example):
        raise found.error(number, "the text is empty", "delete the row")
    return example


def _decided(rows: Iterable[Answers], *, suggestions: bool, notes: Notes) -> Iterator[Labelled]:
    for row in rows:
        label = row.agreed
        if suggestions and not (row.labels or row.several or row.skipped):
            label = row.suggested
            notes.add("rows without an answer: the suggested label taken", int(label is not None))
        if label is not None:
            yield Labelled(row.example, label)
        elif row.labels:
            notes.add("rows on which people disagree, without a majority, left out")
        elif row.several:
            notes.add("rows with several labels at once left out")
        elif row.skipped:
            notes.add("rows that people skipped left out")
        else:
            notes.add("rows without a label left out")


def _note_strangers(
    labelled: Sequence[Labelled], known: Known, found: Records, notes: Notes
) -> None:
    """Count the rows that the run does not know; where it knows none, it is the wrong run."""
    if not known.uids:
        return
    strangers = sum(row.example.uid not in known.uids for row in labelled)
    if strangers == len(labelled):
        raise DataError(
            f"{found.name} has no row of {known.where}; "
            "rows are joined by their uid, or by their exact text",
            "name the run that the labels were exported from, or leave out --run",
        )
    notes.add("rows that the run does not know: taken all the same", strangers)


def _wrong_tool(found: Records, number: int, row: Row, tool: Tool) -> DataError:
    """The error for a row of another tool, with its name where it is known."""
    fitting = (name for name, each in TOOLS.items() if each.fits is not None and each.fits(row))
    near = next(fitting, "csv")
    names = listing(list(map(str, row)), 4) or "nothing"
    return found.error(
        number, f"this is no row of {tool.title}: it has {names}", f"try --from {near}"
    )


def _nothing(found: Records, tool: Tool, notes: Notes) -> DataError:
    """The error for a file in which nobody gave a label that counts."""
    why = "; ".join(f"{what}: {count}" for what, count in notes)
    return DataError(
        f"{found.name} has no label to import ({why})",
        "label some rows first, or take the suggested labels: --suggestions"
        if tool.has_suggestions
        else "label some rows first, or name their column: --label COLUMN",
    )


def write(path: Path, labelled: Sequence[Labelled]) -> None:
    """Write labelled rows as a file that ``fit`` reads."""
    pair = any(row.example.pair is not None for row in labelled)
    names = (UID, TEXT, *((PAIR,) if pair else ()), LABEL)
    rows = (
        (row.example.uid, row.example.text, *((row.example.pair,) if pair else ()), row.label)
        for row in labelled
    )
    write_table(path, names, rows)
