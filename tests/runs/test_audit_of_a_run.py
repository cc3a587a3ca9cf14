"""The audit of a run folder, as a function and as a command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

import small_run
from command import Said, csv, selftrain, sentences, write_files
from selftrain.cli.audit import audit, class_rows, round_rows
from selftrain.data.rows import Lesson, uid_of
from selftrain.errors import DataError, RunError, SelftrainError
from selftrain.experiments.tables.sheet import markdown_table
from selftrain.model.backbone import Backbone
from selftrain.runs import lessons
from selftrain.runs import read as runs
from selftrain.runs.audit import by_round, classes, plain
from selftrain.runs.write import Run
from selftrain.training.loop import Round, self_train

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(audit)


@pytest.fixture(scope="module")
def backbone(tiny_backbone: Callable[[str], Backbone]) -> Backbone:
    return tiny_backbone("bert")


@pytest.fixture(scope="module")
def rounds(backbone: Backbone) -> list[Round]:
    return list(self_train(small_run.job(backbone), machine=small_run.MACHINE))


@pytest.fixture
def folder(
    tmp_path: Path, rounds: list[Round], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A finished run, and here the gold labels of its pool; the label stands in each uid too."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "run", rounds, backbone)
    write_gold(small_run.split().unlabelled)
    return tmp_path / "run"


def save(folder: Path, rounds: Sequence[Round], backbone: Backbone) -> None:
    with Run.start(folder, small_run.manifest(backbone)) as run:
        for round_ in rounds:
            run.save(round_)


def write_gold(pool: Any, name: str = "gold.csv") -> None:
    rows = [(each.uid, each.text, each.uid.partition("-")[0]) for each in pool]
    Path(name).write_text(csv(rows, "id", "text", "label"), encoding="utf-8")


def pool_labels() -> dict[str, str]:
    return {each.uid: each.uid.partition("-")[0] for each in small_run.split().unlabelled}


def said(line: str) -> Said:
    """Give `selftrain audit` as it is typed, after these two words."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = app(shlex.split(line), standalone_mode=False)
    return Said(code or 0, out.getvalue(), err.getvalue())


def test_lessons_are_those_that_were_saved(folder: Path, rounds: list[Round]) -> None:
    found = list(runs.lessons(folder))
    assert found == [(round_.number, round_.lesson.audit) for round_ in rounds]
    assert len(found[0][1]) == 0  # the teacher has learnt from gold rows alone


def test_every_round_with_pseudo_labels_is_told(folder: Path, rounds: list[Round]) -> None:
    told = by_round(folder, pool_labels())
    assert [number for number, _ in told] == [1, 2]
    for number, found in told:
        lines = rounds[number].lesson.audit
        assert (found.judged, found.rows) == (24, 24)
        right = sum(line.uid.startswith(line.label) for line in lines)
        assert found.parts["all"].right == right
        assert found.parts["easy"].rows == sum(line.role == "easy" for line in lines) == 12


def test_a_long_lesson_is_told_like_a_short_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = by_round(folder, pool_labels())
    for name, size in (("MAX_LINES_IN_MEMORY", 5), ("BATCH", 3)):
        monkeypatch.setattr(lessons, name, size)
    assert by_round(folder, pool_labels()) == before


def test_some_gold_labels_are_enough(folder: Path, rounds: list[Round]) -> None:
    (one,) = (line.uid for line in list(rounds[1].lesson.audit)[:1])
    told = dict(by_round(folder, {one: "good"}))
    assert (told[1].judged, told[1].rows) == (24, 1)


def test_an_unknown_gold_label_is_an_error_with_a_hint(folder: Path) -> None:
    with pytest.raises(DataError, match=r"`Good` is no class of the run; it has `good`") as caught:
        by_round(folder, {**pool_labels(), "elsewhere": "Good"})
    assert caught.value.hint == "did you mean `good`?"
    with pytest.raises(DataError, match="`17` is no class") as caught:
        by_round(folder, {"good-4": "17"})
    assert caught.value.hint == "name the right column: --label COLUMN"


def test_labels_of_other_texts_are_an_error_with_a_hint(folder: Path) -> None:
    with pytest.raises(DataError, match="none of the 24 rows judged in a round") as caught:
        by_round(folder, {"elsewhere": "good"})
    assert "--id COLUMN" in caught.value.hint


def test_a_run_without_pseudo_labels_has_no_truth(
    tmp_path: Path, rounds: list[Round], backbone: Backbone
) -> None:
    save(tmp_path / "run", rounds[:1], backbone)
    with pytest.raises(RunError, match="no round with pseudo labels") as caught:
        by_round(tmp_path / "run", pool_labels())
    assert caught.value.hint


def test_a_changed_lesson_is_noticed(folder: Path) -> None:
    path = folder / "rounds/2/lesson.parquet"
    path.write_bytes((folder / "rounds/1/lesson.parquet").read_bytes())
    with pytest.raises(RunError, match="its sha256 differs"):
        by_round(folder, pool_labels())


@pytest.mark.parametrize("labels", [None, "good", 7, [7], [["good"]], {"good": 1}])
def test_a_manifest_that_names_no_classes_is_an_error(labels: object, folder: Path) -> None:
    path = folder / "manifest.json"
    facts = json.loads(path.read_text("utf-8"))
    facts["task"]["labels"] = labels
    path.write_text(json.dumps(facts), "utf-8")
    for reader in (classes, lambda place: list(runs.lessons(place))):
        with pytest.raises(RunError, match="names no classes") as caught:
            reader(folder)
        assert caught.value.hint


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_what_is_no_run_folder_is_said_to_be_none(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="not a run folder"):
        list(runs.lessons(tmp_path / place))


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("folder")
def test_the_table_has_a_line_for_each_round_and_one_for_each_class_in_it() -> None:
    answer = said("run gold.csv")
    lines = [line for line in answer.out.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert [row[:3] for row in cells[:2]] == [["1", "24", "24"], ["2", "24", "24"]]
    assert [row[:2] for row in cells[2:]] == [[c, n] for c in ("bad", "good") for n in "12"]
    assert answer.err == ""


@pytest.mark.usefixtures("folder")
def test_json_has_what_by_round_tells() -> None:
    told = by_round("run", pool_labels())
    assert json.loads(said("run gold.csv --json").out) == [plain(*each) for each in told]


@pytest.mark.usefixtures("folder")
def test_markdown_has_the_rows_of_the_tables() -> None:
    told = by_round("run", pool_labels())
    tables = [markdown_table(*rows(told)) for rows in (round_rows, class_rows)]
    assert said("run gold.csv --markdown").out == "\n\n".join(tables) + "\n"


def test_ids_of_the_gold_file_are_not_needed_where_the_pool_had_none(
    tmp_path: Path, rounds: list[Round], backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {each.uid: each.text for each in small_run.split().unlabelled}
    lines = [replace(line, uid=uid_of(texts[line.uid])) for line in rounds[1].lesson.audit]
    hashed = replace(rounds[1], lesson=Lesson(gold=(), audit=tuple(lines)))
    save(tmp_path / "run", [rounds[0], hashed], backbone)
    write_gold(small_run.split().unlabelled)
    (found,) = json.loads(said("run gold.csv --json").out)
    assert found["with gold"] == 24


def hostile() -> Iterator[tuple[str, str, str]]:
    """A gold file, what is said of it, and a word of the hint."""
    yield "id,text,label\n1,fine,Good\n", "`Good` is no class of the run", "did you mean"
    yield "id,text,label\n1,fine,good\n", "none of the 24 rows", "--id COLUMN"
    yield "id,text,label\n1,fine,good\n1,dull,bad\n", "none of the 24 rows", "--id COLUMN"
    yield "id,text,label\n1,fine,\n", "label", ""
    yield "id,text,label\n", "gold.csv has no rows", ""
    yield "id,text\n1,fine\n", "label", ""
    yield "a,b,label\nfine,dull,good\n", "", ""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("content", "problem", "hint"), list(hostile()))
def test_a_gold_file_that_does_not_fit_is_one_line_and_a_hint(
    content: str, problem: str, hint: str
) -> None:
    Path("gold.csv").write_text(content, encoding="utf-8")
    with pytest.raises(SelftrainError) as caught:
        said("run gold.csv")
    assert problem in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint
    assert hint in caught.value.hint


@pytest.mark.usefixtures("folder")
def test_pairs_are_no_gold_for_single_texts() -> None:
    Path("gold.csv").write_text("id,a,b,label\ngood-4,fine,film,good\n", encoding="utf-8")
    with pytest.raises(DataError, match="trained on single texts, these rows are pairs"):
        said("run gold.csv --text a --pair b")


@pytest.mark.usefixtures("folder")
def test_a_missing_run_is_found_before_the_gold_file_is_read() -> None:
    with pytest.raises(RunError, match="nowhere is not a run folder"):
        said("nowhere also-missing.csv")
    with pytest.raises(SelftrainError, match="--json and --markdown are both given"):
        said("run gold.csv --json --markdown")


@pytest.mark.usefixtures("folder")
def test_a_torn_text_is_warned_of_on_stderr() -> None:
    with Path("gold.csv").open("a", encoding="utf-8") as file:
        file.write("x,so so,good\ny,so so,bad\n")
    answer = said("run gold.csv --json")
    assert answer.err == "warning: gold texts with two labels, not joined by their text: 1\n"
    assert json.loads(answer.out)[0]["with gold"] == 24


def test_gold_labels_of_a_pool_are_found_by_their_texts_after_a_real_fit(
    tmp_path: Path, tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    fit = "fit labelled.csv -u pool.csv -o run --config quick.toml --backbone"
    assert selftrain(f"{fit} {tiny_folder('bert')}").code == 0
    gold = sentences(29, first=100)  # all but one of the pool, in another order
    Path("gold.csv").write_text(csv(gold[::-1], "text", "label"), encoding="utf-8")
    (found,) = json.loads(said("run gold.csv --json").out)
    assert found["judged"] == 24
    assert found["with gold"] + found["without gold"] == 24
    assert found["without gold"] <= 1
    (_, lines) = list(runs.lessons("run"))[1]
    labels = {uid_of(text): label for text, label in gold}
    right = sum(labels.get(line.uid) == line.label for line in lines)
    assert found["rows"]["all"]["right"] == right
