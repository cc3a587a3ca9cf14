"""The most memory a round takes that annotates and selects from all of a pool, by the pool's size.

    OMP_NUM_THREADS=1 python benchmarks/flat_memory.py
    python benchmarks/flat_memory.py --rows 200000 1000000 --format parquet

Each size is a process of its own: it writes a pool of short texts with ids, makes a tiny random
BERT, and runs the teacher and one round (T = 2, ``pool = "all"``, N_r = 1024) with everything a
run does: sifting, fingerprint, plan, votes, selection, audit and run folder, which is then opened
again. Peak is the process's ``ru_maxrss``, at the end of each stage. Up to 100,000 rows a pool is
held in memory, a longer one is read from its file: growth is told against both kinds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import lines

WORDS = """great terrible film acting story good bad long dull fine news world sports business tech
day yes no maybe it is was not and the with but""".split()  # noqa: SIM905
BYTES = 1_000_000  # a megabyte
COUNT = 1024  # N_r
PASSES = 2  # T
KEY = ("rows", "format")


def main() -> None:
    options = arguments()
    if options.one is not None:
        one(options.one, options.format, options.out)
        return
    # Nothing heavy is imported here: a new process starts with the peak of the one that made it.
    done = lines.measured(options.out, *KEY)
    for rows in options.rows:
        if (rows, options.format) not in done:
            command = [sys.executable, __file__, "--one", str(rows), "--format", options.format]
            subprocess.run([*command, "--out", options.out], check=True)
    show(options.out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 200_000, 1_000_000])
    parser.add_argument("--format", choices=["jsonl", "parquet"], default="jsonl")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/flat_memory.jsonl"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def one(rows: int, form: str, out: Path) -> None:
    """Go through one size, and append its figures."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, f"pool.{form}")
        {"jsonl": write_json_lines, "parquet": write_parquet}[form](path, rows)
        started = time.perf_counter()
        stages = dict(go(path, Path(place)))
        took = round(time.perf_counter() - started)
    line = {
        "rows": rows,
        "format": form,
        "T": PASSES,
        "N_r": COUNT,
        "peak MB": max(stages.values()),
        "seconds": took,
        "stages": stages,
    }
    lines.append(out, line)


def go(path: Path, place: Path) -> Iterator[tuple[str, float]]:
    """A run on a pool, and the peak after each of its stages."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    import torch

    import tiny
    from selftrain.data.read import read_unlabelled
    from selftrain.data.rows import Labelled, Notes, examples
    from selftrain.data.split import make_split
    from selftrain.data.task import Task
    from selftrain.method.selection import Selection
    from selftrain.method.spec import Method, Tune
    from selftrain.model import batches
    from selftrain.model.backbone import load
    from selftrain.model.pel import Adapter, Full
    from selftrain.runs.read import read_manifest
    from selftrain.runs.train import train
    from selftrain.runs.write import Run
    from selftrain.training.job import Job
    from selftrain.training.machine import Machine

    torch.set_num_threads(1)
    batches.CPU_TOKENS = batches.GPU_TOKENS  # fewer calls of an encoder that is hardly there
    tiny.SIZES |= {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    tiny.SIZES |= {"intermediate_size": 16}
    backbone = load(tiny.make("bert", place / "bert"))
    yield "imports", peak()

    labels = ("bad", "good")
    gold = [
        Labelled(example, label)
        for label, word in zip(labels, ("terrible", "great"), strict=True)
        for example in examples([f"the {word} one : {n}" for n in range(4)])
    ]
    split = make_split(gold, read_unlabelled(path, notes=Notes()), notes=Notes())
    yield "reading", peak()

    method = Method(
        "flat",
        Tune(tuning=Full(), steps=10, batch_size=8, head_learning_rate=3e-2),
        (Tune(tuning=Adapter(width=4, layers=1), steps=2, batch_size=8),),
        rounds=1,
        pool="all",
        passes=PASSES,
        select=Selection(count=COUNT),
    )
    job = Job(Task("flat", labels), split, method, backbone, 12)
    for round_ in train(place / "run", job, Machine(device="cpu", threads=1)):
        yield f"round {round_.number}", peak()
    assert len(round_.lesson.audit) == len(split.unlabelled)
    with Run.start(place / "run", read_manifest(place / "run")) as run:
        again = run.done(backbone)[1].lesson.audit
    assert sum(line.role == "easy" for line in again) == round_.numbers["picked"]
    yield "opened again", peak()


def peak() -> float:
    """The most megabytes this process has held so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / BYTES, 1)


def pool(rows: int) -> Iterator[dict[str, str]]:
    """Texts of five words, no two alike."""
    for number in range(rows):
        rest, words = number, []
        for _ in range(5):
            rest, place = divmod(rest, len(WORDS))
            words.append(WORDS[place])
        yield {"id": f"row-{number}", "text": " ".join(words)}


def write_json_lines(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in pool(rows):
            file.write(json.dumps(row) + "\n")


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema({"id": pyarrow.string(), "text": pyarrow.string()})
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        texts = pool(rows)
        while part := list(islice(texts, 10_000)):
            writer.write_table(pyarrow.Table.from_pylist(part, schema=schema))


def show(out: Path) -> None:
    """The peak of each size, and by how much the largest one's is above it."""
    rows = []
    for (form,), mine in lines.groups(lines.read(out), "format").items():
        largest = max(mine, key=lambda line: line["rows"])
        for line in sorted(mine, key=lambda line: line["rows"]):
            growth = f"{largest['peak MB'] - line['peak MB']:+.1f}"
            rows.append((form, line["rows"], line["peak MB"], growth, line["seconds"]))
    head = ("format", "rows", "peak, MB", "growth to the largest, MB", "seconds")
    lines.show_table(head, rows)


if __name__ == "__main__":
    main()
