"""The most memory that ``predict`` takes, by the number of texts: Parquet in, Parquet out.

    OMP_NUM_THREADS=1 python benchmarks/flat_predict.py
    python benchmarks/flat_predict.py --rows 50000 500000

Each size is a process of its own, which does what the command does: it reads texts with ids once
to count and check them, tokenises them once to find texts that are cut, then answers them (T = 1)
with an untrained BERT of one layer, 8 wide. Peak is the process's ``ru_maxrss``, at the end of each
stage.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import lines
from flat_memory import peak, write_parquet

PASSES = 1  # T


def main() -> None:
    options = arguments()
    if options.one is not None:
        one(options.one, options.out)
        return
    # Nothing heavy is imported here: a new process starts with the peak of the one that made it.
    done = lines.measured(options.out, "rows")
    for rows in options.rows:
        if (rows,) not in done:
            command = [sys.executable, __file__, "--one", str(rows), "--out", options.out]
            subprocess.run(command, check=True)
    show(options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/flat_predict.jsonl"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def one(rows: int, out: Path) -> None:
    """Answer one size, and append its figures."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "new.parquet")
        write_parquet(path, rows)
        started = time.perf_counter()
        stages = dict(go(path, Path(place)))
        took = round(time.perf_counter() - started)
    line = {"rows": rows, "T": PASSES, "peak MB": max(stages.values()), "seconds": took}
    lines.append(out, {**line, "stages": stages})


def go(path: Path, place: Path) -> Iterator[tuple[str, float]]:
    """Answers for a file, and the peak after each stage."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
    import torch

    import tiny
    from selftrain.data.read import read_texts
    from selftrain.data.rows import Notes
    from selftrain.data.task import Task
    from selftrain.model import batches
    from selftrain.model.architecture import Architecture
    from selftrain.model.backbone import load
    from selftrain.model.build import build
    from selftrain.model.pel import Full
    from selftrain.runs.predict import AnswerOptions, predict
    from selftrain.training.machine import Machine
    from selftrain.training.preflight import texts_cut

    torch.set_num_threads(1)
    batches.CPU_TOKENS = batches.GPU_TOKENS  # fewer calls of an encoder that is hardly there
    tiny.SIZES |= {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    tiny.SIZES |= {"intermediate_size": 8}
    backbone = load(tiny.make("bert", place / "bert"))
    model = build(Task("flat", ("bad", "good")), backbone, Architecture(Full()), seed=1)
    yield "imports", peak()

    table = read_texts(path, notes=Notes())
    yield "reading", peak()

    assert not list(texts_cut(model, table.examples))
    yield "tokenising", peak()

    machine = Machine(device="cpu", threads=1)
    count = predict(model, table, place / "out.parquet", AnswerOptions(PASSES), machine=machine)
    assert count.texts == table.rows
    yield "answering", peak()


def show(out: Path) -> None:
    """The peak of each size, and by how much the largest one's is above it."""
    measured = sorted(lines.read(out), key=lambda line: line["rows"])
    rows = [
        (
            line["rows"],
            line["peak MB"],
            f"{measured[-1]['peak MB'] - line['peak MB']:+.1f}",
            line["seconds"],
        )
        for line in measured
    ]
    lines.show_table(("rows", "peak, MB", "growth to the largest, MB", "seconds"), rows)


if __name__ == "__main__":
    main()
