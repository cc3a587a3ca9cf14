"""`selftrain demo` on a file of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import command
from command import selftrain


def test_demo_on_ones_own_file_prints_the_closing_table(folder: Path, bert: Path) -> None:
    rows = command.csv(command.sentences(120), "text", "label")
    (folder / "films.csv").write_text(rows, encoding="utf-8")
    line = f"demo --data films.csv --seeds 1,2 --config quick.toml --backbone {bert} -o runs"
    said = selftrain(line)
    assert said.code == 0, said.err
    shown = [row for row in said.out.splitlines() if "│" in row]
    systems = [row.split("│")[1].split("(")[0].strip() for row in shown]
    assert systems == [
        "majority",
        "tf-idf + logistic regression",
        "frozen encoder + logistic regression",
        "teacher",
        "round 1",
        "final",
    ]
    assert [line for line in said.lines if line.startswith("seed ")] == [
        "seed 1: 32 labels, 28 in the pool",
        "seed 2: 32 labels, 28 in the pool",
    ]
    runs = [path.name for path in sorted((folder / "runs" / "films").iterdir())]
    assert [name.rpartition("-")[2] for name in runs] == ["seed1", "seed2"]

    again = selftrain(f"{line} --json --on design")
    scores = json.loads(again.out)
    assert scores["scored_on"] == "design"
    assert list(scores["accuracy"]) == systems
    assert list(scores["accuracy"]["final"]) == ["1", "2"]
    assert selftrain(f"{line} --markdown").out.startswith(
        "| system | seed 1 | seed 2 | mean ± sd |"
    )


def test_demo_on_ones_own_file_takes_columns_shots_and_seed_from_the_config(
    folder: Path, bert: Path
) -> None:
    rows = [(text, str(int(n % 8 > 0))) for n, (text, _) in enumerate(command.sentences(80))]
    (folder / "films.csv").write_text(command.csv(rows, "review", "stars"), encoding="utf-8")
    ours = 'seed = 5\nshots = 12\ncolumns.text = "review"\ncolumns.label = "stars"'
    (folder / "quick.toml").write_text(command.config(ours), encoding="utf-8")
    said = selftrain(f"demo --data films.csv --config quick.toml --backbone {bert} -o runs --json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["seeds"] == [5]
    odd = [line.rpartition(":")[0] for line in said.lines if line.startswith("warning")]
    assert odd[:2] == [
        "warning: class `0` has fewer than 12 rows: all taken",
        "warning: numeric labels kept as strings",
    ]
