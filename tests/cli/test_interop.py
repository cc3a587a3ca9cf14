"""`export-labels` and `import`: from a run to a tool, and back to a file that `fit` takes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bad_input import Case, check_refused
from command import FIT, selftrain, sentences
from selftrain.data.read import read_labelled
from selftrain.data.rows import Notes
from selftrain.interop.formats import TOOLS
from selftrain.runs.read import lessons

EXPORT = "export-labels run -u pool.csv"


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_each_judged_row_has_its_text_and_the_label_of_its_last_round(life: Path) -> None:
    said = selftrain(f"{EXPORT} --to csv -o out.csv")
    assert said.code == 0, said.err
    latest = {line.uid: (n, line) for n, audit in lessons(life / "run") for line in audit}
    rows = table(life / "out.csv")
    assert {row["uid"] for row in rows} == set(latest)
    texts = {text for text, _ in sentences(30, first=100)}
    for row in rows:
        number, line = latest[row["uid"]]
        assert row["text"] in texts
        assert (row["label"], row["role"], int(row["round"])) == (line.label, line.role, number)
        assert float(row["confidence"]) == pytest.approx(line.confidence, abs=1e-6)
    known = [row for row in rows if row["p_good"]]
    assert known, "the estimate knows some of them"
    for row in known:
        assert float(row["p_good"]) + float(row["p_bad"]) == pytest.approx(1, abs=1e-3)
    assert said.lines[-1] == f"written: out.csv, {len(rows)} rows"


@pytest.mark.usefixtures("life")
def test_labelled_rows_come_after_those_of_the_pool_with_what_the_folds_say_of_them() -> None:
    assert selftrain(f"{EXPORT} --labelled labelled.csv --to csv -o out.csv").code == 0
    rows = table(Path("out.csv"))
    gold = [row for row in rows if row["role"] == "gold"]
    assert [(row["text"], row["label"]) for row in gold] == sentences(8)
    assert rows[-len(gold) :] == gold
    assert all(row["p_good"] and not row["confidence"] for row in gold)


@pytest.mark.usefixtures("life")
def test_a_role_leaves_out_the_others() -> None:
    assert selftrain(f"{EXPORT} --role easy --to csv -o out.csv").code == 0
    assert {row["role"] for row in table(Path("out.csv"))} == {"easy"}


@pytest.mark.usefixtures("life")
def test_cleanlab_gets_the_labelled_rows_without_texts() -> None:
    said = selftrain("export-labels run --to cleanlab -o oof.parquet")
    assert said.code == 0, said.err
    found = pq.read_table("oof.parquet")
    assert found.schema.names == ["uid", "label", "p_bad", "p_good"]
    assert sorted(found["label"].to_pylist()) == [0] * 4 + [1] * 4


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.row])
def test_what_a_tool_gets_comes_back_as_a_file_that_fit_takes(
    name: str, life: Path, bert: Path
) -> None:
    tool = TOOLS[name]
    out = f"out{(tool.endings or ('',))[0]}"
    assert selftrain(f"{EXPORT} --labelled labelled.csv --to {name} -o {out}").code == 0
    back = "out/tasks.json" if name == "label-studio" else out
    flag = " --suggestions" if tool.has_suggestions else ""
    said = selftrain(f"import {back} --from {name} --run run -o back.csv{flag}")
    assert said.code == 0, said.err
    assert "does not know" not in said.err
    assert selftrain(f"{EXPORT} --labelled labelled.csv --to csv -o plain.csv").code == 0
    rows = read_labelled(life / "back.csv", notes=Notes())
    expected = [(row["uid"], row["text"], row["label"]) for row in table(life / "plain.csv")]
    assert [(row.example.uid, row.example.text, row.label) for row in rows] == expected
    if name == "csv":
        head, *lines = (life / "back.csv").read_text().splitlines()
        (life / "gold.csv").write_text("\n".join([head, *lines[-8:]]))
        assert (
            selftrain(
                FIT.format(bert=bert).replace("labelled", "gold").replace("-o run", "-o again")
            ).code
            == 0
        )


@pytest.mark.usefixtures("life")
def test_a_pool_that_lacks_rows_of_the_run_is_counted() -> None:
    lines = Path("pool.csv").read_text().splitlines()
    Path("part.csv").write_text("\n".join(lines[:11]) + "\n")
    said = selftrain("export-labels run -u part.csv --to doccano -o out.jsonl")
    assert said.code == 0
    assert "rows of the run without a text in the pool left out: " in said.err
    assert 0 < len(Path("out.jsonl").read_text().splitlines()) <= 10


# ── bad input ────────────────────────────────────────────────────────────────────────────────

DONE = "export-labels done -u pool.csv"
LINE = '{"uid": "7", "text": "fine", "label": ["godo"]}\n'
IMPORT = "import back.jsonl --from doccano -o new.csv"
BACK = {"back.jsonl": LINE}
CASES = {
    "an unknown tool": Case(
        f"{DONE} --to labelstudio -o x", "--to is `labelstudio`", hint="label-"
    ),
    "nothing comes back from cleanlab": Case(
        "import x --from cleanlab -o new.csv", "--from is `cleanlab`; expected one of"
    ),
    "no texts": Case("export-labels done --to csv -o x.csv", "holds no texts", hint="-u pool.csv"),
    "texts for cleanlab": Case(f"{DONE} --to cleanlab -o x.parquet", "has no texts", hint="leave"),
    "an unknown role": Case(f"{DONE} --to csv -o x.csv --role esay", "`esay`", hint="--role easy"),
    "a role without a pool": Case(
        "export-labels done --labelled labelled.csv --to csv -o x.csv --role easy", "no pool"
    ),
    "a wrong ending": Case(f"{DONE} --to hf -o x.csv", "ends in .parquet", hint="-o x.parquet"),
    "a folder that is full": Case(
        f"{DONE} --to argilla -o done", "is not empty", hint="new folder"
    ),
    "a file for a folder": Case(f"{DONE} --to argilla -o dev.csv", "is a file", hint="new folder"),
    "the working folder": Case(f"{DONE} --to argilla -o .", "is not empty", hint="new folder"),
    "no such folder": Case(f"{DONE} --to argilla -o a/b", "there is no folder"),
    "an address": Case(f"{DONE} --to argilla -o s3://bucket/x", "is an address"),
    "over the pool": Case(f"{DONE} --to csv -o pool.csv", "is read by this command", hint="-o NEW"),
    "no run": Case("export-labels dev.csv -u pool.csv --to csv -o x.csv", "is not a run folder"),
    "another pool": Case(
        "export-labels done -u test.csv --to csv -o x.csv", "has none of the", hint="--text COLUMN"
    ),
    "another labelled file": Case(
        "export-labels done --labelled test.csv --to csv -o x.csv", "has none of the 8 texts"
    ),
    "pairs for a run of texts": Case(
        "export-labels done -u pairs.csv --to csv -o x.csv",
        "pair",
        {"pairs.csv": "text,pair\na,b\n"},
    ),
    "an unknown label": Case(
        f"{IMPORT} --run done", "label `godo` is no class of done", BACK, hint="`good`?"
    ),
    "an unknown label without a run": Case(
        f"{IMPORT} --labels good,bad", "no class of --labels; expected `good`, `bad`", BACK
    ),
    "classes named twice": Case(f"{IMPORT} --run done --labels a,b", "both name", BACK),
    "one class": Case(f"{IMPORT} --labels good", "two classes or more", BACK),
    "suggestions of doccano": Case(
        f"{IMPORT} --suggestions", "does not tell suggestions from", BACK, hint="leave out"
    ),
    "another run": Case(
        f"{IMPORT} --run done", "has no row of done", {"back.jsonl": LINE.replace("godo", "good")}
    ),
    "no file": Case("import none.json --from label-studio -o new.csv", "does not exist"),
    "a wrong ending of the labels": Case(
        "import back.jsonl --from doccano -o new.txt", "ends in `.txt`", BACK
    ),
    "over the file": Case(
        "import back.jsonl --from doccano -o back.jsonl", "is read by this command", BACK
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_command_is_one_line_and_a_hint(
    name: str, folder: Path, bert: Path, done: Path
) -> None:
    check_refused(CASES[name], folder, bert, done)


def test_a_run_without_rounds_has_no_pseudo_labels(folder: Path, bert: Path) -> None:
    fit = "fit labelled.csv -u pool.csv -o run --config quick.toml --rounds 0"
    assert selftrain(f"{fit} --backbone {bert}").code == 0
    said = selftrain(f"{EXPORT} --to csv -o out.csv")
    assert said.code == 1
    assert "has no pseudo labels" in said.err
    assert "selftrain predict run" in said.err


def test_a_label_that_xml_cannot_hold_leaves_nothing_behind(tmp_path: Path) -> None:
    from annotation import SUGGESTIONS
    from selftrain.errors import DataError
    from selftrain.interop.tool import Outgoing

    with pytest.raises(DataError, match="that XML cannot"):
        TOOLS["label-studio"].write(tmp_path / "out", Outgoing(("a\x01", "b"), SUGGESTIONS))
    assert list(tmp_path.iterdir()) == []


def test_json_of_every_tool_is_plain_ascii(life: Path) -> None:
    for name in ("label-studio", "argilla"):
        assert selftrain(f"{EXPORT} --to {name} -o {name}").code == 0
        for path in (life / name).rglob("*.json"):
            json.loads(path.read_bytes().decode("ascii"))
