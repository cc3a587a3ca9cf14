"""How right pseudo labels were: hand-computed numbers, and files that do not belong together."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import small_run
from command import Said, csv, selftrain, sentences, write_files
from selftrain.cli.audit import audit, class_rows, round_rows
from selftrain.data.rows import AuditLine, Example, Labelled, Lesson, Notes, uid_of
from selftrain.errors import DataError, RunError, SelftrainError
from selftrain.experiments.tables.sheet import markdown_table
from selftrain.model.backbone import Backbone
from selftrain.runs import lessons
from selftrain.runs import read as runs
from selftrain.runs.audit import Bin, OfClass, by_round, classes, gold_labels, plain, truth
from selftrain.runs.write import Run
from selftrain.training import metrics
from selftrain.training.loop import Round, self_train

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(audit)

LINES = (
    AuditLine("a", "good", 0.95, 0.99, 4.0, "easy"),
    AuditLine("b", "good", 0.85, 0.90, 2.0, "easy"),
    AuditLine("c", "bad", 0.75, 0.95, 1.0, "hard"),
    AuditLine("d", "bad", 0.85, 0.80, 1.0, "left"),
    AuditLine("e", "bad", 0.55, 0.70, 0.0, "left"),
)
GOLD = {"a": "good", "b": "bad", "c": "bad", "d": "good"}
"""Of five rows four have a gold label; two of those are right: a, which is easy, and c."""


# ── hand-computed ──


def test_accuracy_is_told_of_all_rows_and_of_each_role() -> None:
    found = truth(LINES, GOLD)
    assert {name: (part.rows, part.right) for name, part in found.parts.items()} == {
        "all": (4, 2),
        "easy": (2, 1),
        "hard": (1, 1),
        "left": (1, 0),
    }
    shares = [part.accuracy for part in found.parts.values()]
    assert shares == [0.5, 0.5, 1.0, 0.0]


def test_rows_without_a_gold_label_are_counted_and_left_out() -> None:
    found = truth(LINES, GOLD)
    assert (found.audit_line, found.rows) == (5, 4)
    assert found.parts["left"].rows == 1


def test_accuracy_goes_by_gold_class_and_precision_by_pseudo_class() -> None:
    every = truth((*LINES, AuditLine("f", "bad", 0.9, 0.9, 1.0, "left")), {**GOLD, "f": "bad"})
    bad, good = (every.parts["all"].classes[label] for label in ("bad", "good"))
    assert (bad, good) == (OfClass(gold=3, pseudo=3, right=2), OfClass(gold=2, pseudo=2, right=1))
    assert (bad.accuracy, good.accuracy) == (2 / 3, 1 / 2)
    easy = every.parts["easy"].classes
    assert (easy["good"].accuracy, easy["good"].precision) == (1.0, 0.5)
    assert (easy["bad"].accuracy, easy["bad"].precision) == (0.0, None)


def test_pseudo_labels_are_counted_beside_the_gold_labels_of_the_same_rows() -> None:
    found = truth(LINES, GOLD)
    assert found.parts["all"].prior == found.parts["all"].histogram == {"bad": 0.5, "good": 0.5}
    assert found.parts["easy"].prior == {"bad": 0.5, "good": 0.5}
    assert found.parts["easy"].histogram == {"bad": 0.0, "good": 1.0}


def test_the_effective_size_is_that_of_all_judged_rows() -> None:
    """8² / (16 + 4 + 1 + 1), the row without a gold label counted: its weight was used too."""
    found = truth(LINES, GOLD)
    assert found.effective == 64 / 22
    assert found.effective_share == 64 / 22 / 5


def test_equal_weights_count_every_row_and_one_weight_counts_one() -> None:
    def size(*weights: float) -> float | None:
        return truth([replace(LINES[0], weight=weight) for weight in weights], {}).effective

    assert size(0.5, 0.5, 0.5) == 3
    assert size(1, 0, 0) == 1
    assert size(0, 0) == 0
    assert size(1e200, 1e200) is None  # too large to be squared: said to be unknown, not inf


def test_calibration_compares_confidence_with_being_right_in_bins() -> None:
    """a: 0.95, right; b and d: 0.85, wrong; c: 0.75, right. Gaps 0.05 + 2 · 0.85 + 0.25 over 4."""
    found = truth(LINES, GOLD)
    assert found.calibration_error == pytest.approx(2.0 / 4)
    assert found.bins == (Bin(1, 0.75, 1.0), Bin(2, 0.85, 0.0), Bin(1, 0.95, 1.0))


def test_areas_say_which_score_trusts_right_labels_more() -> None:
    """Right: a and c; wrong: b and d. By confidence a beats both and c neither; by certainty both
    beat both; by weight a beats both, and c ties with d and loses to b."""
    assert truth(LINES, GOLD).areas == {"confidence": 0.5, "certainty": 1.0, "weight": 2.5 / 4}


def test_what_cannot_be_said_is_none() -> None:
    unknown = truth(LINES, {})
    assert (unknown.audit_line, unknown.rows, unknown.bins) == (5, 0, ())
    assert unknown.calibration_error is None
    assert [part.accuracy for part in unknown.parts.values()] == [None] * 4
    all_right = truth(LINES[:1], GOLD)
    assert set(all_right.areas.values()) == {None}  # there is no wrong one to compare with
    nothing = truth((), GOLD)
    assert (nothing.audit_line, nothing.effective, nothing.effective_share) == (0, 0, None)


def test_a_class_that_was_never_given_is_still_shown() -> None:
    found = truth([replace(line, label="good") for line in LINES], {**GOLD, "e": "ugly"})
    assert found.parts["all"].classes["ugly"] == OfClass(gold=1, pseudo=0, right=0)
    assert found.parts["easy"].classes["ugly"] == OfClass(gold=0, pseudo=0, right=0)


# ── for every audit ──

slow = [HealthCheck.too_slow]  # a busy machine is no finding
quick = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=slow)
finite = st.floats(allow_nan=False, allow_infinity=False)
unit = st.floats(0, 1)
label = st.sampled_from("xyz")
role = st.sampled_from(["easy", "hard", "left"])


def audits(
    number: st.SearchStrategy[float],
) -> st.SearchStrategy[list[tuple[AuditLine, str | None]]]:
    """Lines, each with its gold label or none."""
    line = st.builds(AuditLine, st.just(""), label, number, number, number, role)
    return st.lists(st.tuples(line, st.none() | label), max_size=30)


def named(rows: Sequence[tuple[AuditLine, str | None]]) -> tuple[list[AuditLine], dict[str, str]]:
    lines = [replace(line, uid=str(n)) for n, (line, _) in enumerate(rows)]
    return lines, {str(n): gold for n, (_, gold) in enumerate(rows) if gold is not None}


@given(audits(unit))
@quick
def test_the_numbers_are_those_of_the_textbook(rows: list[tuple[AuditLine, str | None]]) -> None:
    lines, gold = named(rows)
    found = truth(lines, gold)
    known = [line for line in lines if line.uid in gold]
    for name, part in found.parts.items():
        mine = [line for line in known if name in ("all", line.role)]
        assert part.rows == len(mine)
        assert part.right == sum(line.label == gold[line.uid] for line in mine)
        for c, each in part.classes.items():
            assert each.gold == sum(gold[line.uid] == c for line in mine)
            assert each.pseudo == sum(line.label == c for line in mine)
    right = torch.tensor([line.label == gold[line.uid] for line in known])
    for name, area in found.areas.items():
        scores = torch.tensor([getattr(line, name) for line in known], dtype=torch.float32)
        expected = metrics.error_detection_area(scores, right) if known else float("nan")
        assert area == pytest.approx(expected) or (area is None and expected != expected)


@given(st.lists(st.tuples(st.floats(0.5, 1), st.booleans()), min_size=1, max_size=30))
@quick
def test_the_calibration_error_is_that_of_metrics(rows: list[tuple[float, bool]]) -> None:
    lines = [AuditLine(str(n), "x", sure, 1, 1, "left") for n, (sure, _) in enumerate(rows)]
    gold = {str(n): "x" if right else "y" for n, (_, right) in enumerate(rows)}
    p = torch.tensor([[sure, 1 - sure] for sure, _ in rows], dtype=torch.float64)
    answers = torch.tensor([0 if right else 1 for _, right in rows])
    expected = metrics.calibration_error(p, answers)
    assert truth(lines, gold).calibration_error == pytest.approx(expected, abs=1e-12)


@given(audits(unit))
@quick
def test_roles_add_up_to_the_whole(rows: list[tuple[AuditLine, str | None]]) -> None:
    every, *others = truth(*named(rows)).parts.values()
    for c, whole in every.classes.items():
        parts = [part.classes[c] for part in others]
        assert whole.gold == sum(part.gold for part in parts)
        assert whole.pseudo == sum(part.pseudo for part in parts)
        assert whole.right == sum(part.right for part in parts)


@given(audits(unit), audits(unit))
@quick
def test_rows_without_a_gold_label_move_nothing_but_their_count_and_the_effective_size(
    rows: list[tuple[AuditLine, str | None]], more: list[tuple[AuditLine, str | None]]
) -> None:
    few = truth(*named(rows))
    many = truth(*named([*rows, *((line, None) for line, _ in more)]))
    assert many.audit_line == few.audit_line + len(more)
    assert replace(many, audit_line=few.audit_line, effective=few.effective) == few


@given(audits(unit), st.randoms(use_true_random=False))
@quick
def test_the_order_of_lines_changes_nothing(
    rows: list[tuple[AuditLine, str | None]], random: Random
) -> None:
    lines, gold = named(rows)
    found, again = truth(lines, gold), truth(random.sample(lines, len(lines)), gold)
    assert (found.parts, found.areas) == (again.parts, again.areas)
    assert found.effective == pytest.approx(again.effective)
    assert found.calibration_error == pytest.approx(again.calibration_error)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=30), st.floats(0.1, 10))
@quick
def test_the_effective_size_lies_between_one_and_all_and_has_no_unit(
    weights: list[float], unit: float
) -> None:
    def size(weights: list[float]) -> float:
        found = truth([replace(LINES[0], weight=weight) for weight in weights], {}).effective
        assert found is not None
        return found

    assert 1 - 1e-9 <= size(weights) <= len(weights) + 1e-9
    assert size(weights) == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))
    assert size([unit * weight for weight in weights]) == pytest.approx(size(weights))


@given(audits(finite))
@quick
def test_numbers_no_round_writes_still_give_json_and_tables(
    rows: list[tuple[AuditLine, str | None]],
) -> None:
    """A lesson may come from anyone: its numbers are finite, and that is all that is known."""
    found = truth(*named(rows))
    assert json.loads(json.dumps(plain(1, found), allow_nan=False))["judged"] == len(rows)
    for name, area in found.areas.items():
        assert area is None or 0 <= area <= 1, name
    assert found.calibration_error is None or 0 <= found.calibration_error <= 1
    for head, lines in (round_rows([(1, found)]), class_rows([(1, found)])):
        assert {len(row) for row in lines} <= {len(head)}


def test_the_lines_are_gone_through_once() -> None:
    assert truth(iter(LINES), GOLD) == truth(LINES, GOLD)


# ── gold labels ──


def row(uid: str, text: str, label: str) -> Labelled:
    return Labelled(Example(uid, text), label)


def test_a_gold_label_is_found_by_its_id_and_by_its_text() -> None:
    found = gold_labels(
        [row("7", "fine", "good"), row(uid_of("dull"), "dull", "bad")], notes=Notes()
    )
    assert found == {"7": "good", uid_of("fine"): "good", uid_of("dull"): "bad"}


def test_a_text_with_two_labels_has_none_and_the_user_is_told() -> None:
    notes = Notes()
    rows = [row(uid_of("so so"), "so so", label) for label in ("good", "bad", "good")]
    assert gold_labels(rows, notes=notes) == {}
    assert dict(notes) == {"gold texts with two labels, not joined by their text": 1}


def test_two_rows_of_one_text_keep_their_ids() -> None:
    found = gold_labels([row("1", "so so", "good"), row("2", "so so", "bad")], notes=Notes())
    assert found == {"1": "good", "2": "bad"}


# ── a run folder ──


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
        assert (found.audit_line, found.rows) == (24, 24)
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
    assert (told[1].audit_line, told[1].rows) == (24, 1)


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


# ── the command ──


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
    yield "id,text,label\n1,fine,good\n1,dull,bad\n", "2 rows have the id `1`", "unique"
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
