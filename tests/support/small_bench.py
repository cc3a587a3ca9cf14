"""A small task on disk, and a bench on it: for tests of grids, workers and searches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from by_hand import MACHINE, METHOD, STUDENT
from command import NAMED, config, sentences
from selftrain.experiments.bench import Bench
from selftrain.experiments.grid import Grid
from selftrain.method.losses import CrossEntropy

LABELS = {"good": "positive", "bad": "negative"}
FT = replace(METHOD, name="ft", student=(), rounds=0)
ST = replace(METHOD, name="st", student=(replace(STUDENT, loss=CrossEntropy(), contrast=None),))


def write_part(data: Path, part: str, count: int, first: int = 0) -> None:
    """Some rows of the one small task, `sst2`."""
    (data / "sst2").mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"text": text, "label": LABELS[label]})
        for text, label in sentences(count, first)
    ]
    (data / "sst2" / f"{part}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def bench_of(data: Path, out: Path, backbone: object, **changes: Any) -> Bench:
    """A bench of three methods and two seeds on the small task; ``changes`` to its grid."""
    grid = {
        "methods": {"upet": METHOD, "st": ST, "ft": FT},
        "tasks": ("sst2",),
        "backbones": (str(backbone),),
        "seeds": (12, 21),
        "shots": (4,),
        **changes,
    }
    return Bench(Grid(**grid), data, out, machine=MACHINE)


def three(data: Path, out: Path, backbone: object, **changes: Any) -> Bench:
    """Three groups of three cells, scored on design rows."""
    grid = {
        "methods": {"upet": replace(METHOD, rounds=1), "ft": FT},
        "seeds": (12, 21, 42),
        "references": ("majority",),
        "scored_on": "design",
        **changes,
    }
    return bench_of(data, out, backbone, **grid)


GRID = """\
tasks = ["sst2"]
seeds = [12]
shots = [4]
references = ["majority"]
methods = []

[[variant]]
name = "upet-head-adapter"
as = "mine"
"""


def write_grid(folder: Path, more: str = "") -> Path:
    """A grid file of one quick method."""
    path = folder / "grid.toml"
    changes = (
        config().replace(NAMED, "").replace("method.", "")
        + "student.head_start = 'random'\n"
        + more
    )
    path.write_text(GRID + changes, "utf-8")
    return path
