"""Files of results: a JSON object a line, and in each what it was measured with.

A script that was killed goes on where it stopped: what has a line is not measured again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import nan
from pathlib import Path
from statistics import median
from typing import Any

from selftrain.experiments.commit import commit_of

ROOT = Path(__file__).resolve().parents[1]
Line = dict[str, Any]


def read(path: Path) -> list[Line]:
    """The lines of a file; half a line that a kill left at the end is none."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def append(path: Path, line: Line) -> None:
    """Add a line with its provenance, in place of half a line that a kill left, and print it."""
    import torch

    made_with = {"threads": threads(), "torch": torch.__version__, "commit": COMMIT}
    text = json.dumps(line | made_with)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(f"{text}\n".encode())
    print(text, flush=True)


def threads() -> int:
    """Those that torch computes with."""
    import torch

    return torch.get_num_threads()


WRITTEN = (
    "benchmarks/results",
    *(f"benchmarks/paper/{name}" for name in ("*.jsonl", "tables", "figures")),
)
"""What is measured, which does not decide what is measured next."""
COMMIT = commit_of(ROOT, *WRITTEN)
"""As a script starts: what is committed while it runs is not what it measures."""


def groups(every: Iterable[Line], *names: str) -> dict[tuple[Any, ...], list[Line]]:
    """The lines that agree in these entries; one that lacks an entry has None there."""
    found: dict[tuple[Any, ...], list[Line]] = {}
    for line in every:
        found.setdefault(tuple(line.get(name) for name in names), []).append(line)
    return found


def measured(path: Path, *names: str) -> set[tuple[Any, ...]]:
    """What a file has already, by these entries of its lines."""
    return set(groups(read(path), *names))


def times(every: Iterable[Line], slow: str, quick: str) -> float:
    """How much longer one system takes than another: the median over the turns that have both."""
    seconds = {(line["turn"], line["system"]): line["seconds"] for line in every}
    both = [
        spent / seconds[turn, quick]
        for (turn, system), spent in seconds.items()
        if system == slow and (turn, quick) in seconds
    ]
    return median(both) if both else nan


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown."""
    for row in (head, ["---"] * len(head), *rows):
        print("|", " | ".join(map(str, row)), "|")


def write_table(page: Path, script: str, name: str, rows: Iterable[str]) -> None:
    """Put lines of Markdown between the two comments on a page that ask for them."""
    table = "\n".join(rows)
    start, end = f"<!-- {script} writes {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.read_text("utf-8").partition(start)
    if found and table:
        text = f"{before}{start}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
        page.write_text(text, "utf-8")
