"""The first tables, from cells: UPET with an adapter, its teacher, its rounds and the references.

    selftrain bench DATA -o runs/paper --grid benchmarks/paper/first.toml
    python benchmarks/first_tables.py runs/paper/cells.jsonl

One table for each task and student, with every seed: the teacher and the rounds are those of one
run, so a round can be laid beside the teacher it began with.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean

from selftrain import results
from selftrain.report import markdown
from selftrain.results import Result

REFERENCES = {"majority": "majority", "frozen-lr": "frozen encoder + logistic regression"}
STUDENTS = ("upet-head-adapter", "upet-prompt-adapter")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=Path)
    parser.add_argument("--on", choices=("test", "design"), default="test")
    options = parser.parse_args()
    cells = [cell for cell in results.read(options.cells) if cell.on == options.on]
    places = dict.fromkeys((cell.task, cell.backbone) for cell in cells)
    for task, backbone in places:
        here = [cell for cell in cells if (cell.task, cell.backbone) == (task, backbone)]
        for student in STUDENTS:
            mine = [cell for cell in here if cell.method == student]
            if mine:
                print(table([cell for cell in here if cell.method in REFERENCES], mine), end="\n\n")


def table(references: list[Result], mine: list[Result]) -> str:
    """The rows of one student, and how often its end is above its teacher and the regression."""
    seeds = [cell.seed for cell in mine]
    scores: dict[str, dict[int, float | None]] = {}
    for cell in references:
        if cell.seed in seeds:
            scores.setdefault(REFERENCES[cell.method], {})[cell.seed] = cell.accuracy
    for cell in mine:
        for number, score in enumerate(cell.by_round):
            name = f"round {number}" if number else "teacher"
            scores.setdefault(name, {})[cell.seed] = score
        scores.setdefault("kept", {})[cell.seed] = cell.accuracy
    scores["kept"] = scores.pop("kept")  # last, however many rounds each seed has
    first = mine[0]
    notes = [
        f"{first.task}, {first.method} on {first.backbone}, {first.shots} labels a class, "
        f"preset {first.preset}, {first.rows} {first.on} rows"
    ]
    for name in ("teacher", REFERENCES["frozen-lr"]):
        gains = [cell.accuracy - scores[name][cell.seed] for cell in mine]
        above = sum(gain > 0 for gain in gains)
        notes.append(f"kept - {name}: {100 * fmean(gains):+.1f}, above in {above} of {len(gains)}")
    return "\n".join([*notes, "", markdown(scores, seeds)])


if __name__ == "__main__":
    main()
