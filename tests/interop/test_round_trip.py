"""Out and back: the same texts, uids and labels, whatever they are made of."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation import returned
from selftrain.data.columns import check_look_alikes, clean_label
from selftrain.data.rows import Example
from selftrain.errors import DataError
from selftrain.interop.formats import READ, TOOLS
from selftrain.interop.label_studio import NOT_XML
from selftrain.interop.tool import Outgoing, Suggestion

FILES = {"label-studio": "tasks.json", "argilla": ""}
"""What is read back of a tool that gets a folder."""
characters = st.characters(exclude_categories=["Cs"])
"""No format holds half a surrogate pair; our readers refuse it, so no run has one."""
texts = st.text(characters, min_size=1, max_size=30).filter(str.strip)
uids = st.text(characters, min_size=1, max_size=8).filter(lambda uid: uid == uid.strip() != "")


def usable(labels: list[str]) -> bool:
    """Whether `fit` takes these labels for so many classes."""
    try:
        check_look_alikes("", labels)
    except DataError:
        return False
    return all(label == clean_label(label) != "" for label in labels)


labels = st.lists(texts.map(clean_label), min_size=2, max_size=3, unique=True).filter(usable)


@st.composite
def outgoings(draw: st.DrawFn) -> Outgoing:
    names = draw(labels)
    pair = draw(st.booleans())
    rows = [
        Suggestion(
            Example(uid, draw(texts), draw(texts) if pair else None),
            draw(st.sampled_from(names)),
            draw(st.sampled_from(["easy", "hard", "left"])),
            1,
            draw(st.floats(0, 1)),
            draw(st.floats(0, 1)),
        )
        for uid in draw(st.lists(uids, min_size=1, max_size=4, unique=True))
    ]
    return Outgoing(tuple(names), rows)


def holds(name: str, out: Outgoing) -> bool:
    """Whether a format can hold these rows: text files of ours no NUL, XML no control codes."""
    if name == "label-studio":
        return not any(map(NOT_XML.search, out.labels))
    if name == "csv":
        every = [*out.labels, *(part for row in out.rows for part in parts(row.example))]
        return "\0" not in "".join(every)
    return True


def parts(example: Example) -> tuple[str, ...]:
    return (example.uid, example.text, example.pair or "")


@pytest.mark.parametrize("name", READ)
@settings(max_examples=60, deadline=None)
@given(out=outgoings())
def test_what_goes_out_comes_back_the_same(name: str, out: Outgoing) -> None:
    if not holds(name, out):
        return
    tool = TOOLS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"out{(tool.endings or ('',))[0]}"
        tool.write(path, out)
        back = path / FILES[name] if name in FILES else path
        rows, counts = returned(back, name, suggestions=tool.has_suggestions)
    assert [(row.example, row.label) for row in rows] == [
        (row.example, row.label) for row in out.rows
    ]
    taken = "rows without an answer: the suggested label taken"
    assert counts == ({taken: len(rows)} if tool.has_suggestions else {})


def test_a_table_may_know_probabilities_of_late_rows_alone(tmp_path: Path) -> None:
    """They are known of the slice of the estimate, and labelled rows have no round."""
    rows = [Suggestion(Example(f"{number}", "text"), "good", "left") for number in range(2_000)]
    rows.append(
        replace(rows[0], round=1, confidence=0.5, certainty=1.0, probabilities=(0.25, 0.75))
    )
    TOOLS["csv"].write(tmp_path / "out.parquet", Outgoing(("bad", "good"), rows))
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    last = table.slice(2_000).to_pylist()[0]
    assert [last[name] for name in ("round", "confidence", "p_bad", "p_good")] == [
        1,
        0.5,
        0.25,
        0.75,
    ]
    assert table["p_good"].null_count == table["round"].null_count == 2_000
