"""Seconds to clean a pool and to draw three rounds of it: now, and at an earlier commit.

    python benchmarks/pool.py --before FOLDER --out results/pool.jsonl

FOLDER is a checkout of the earlier commit: git worktree add FOLDER a348246. Synthetic texts are
written to a temporary folder, as Parquet (beside them a wide column that nobody needs) and as CSV.
Both ways run one after the other in a process of their own, read the pool as one that is not in
memory, and must draw the same rows. Seconds are of the processor, so that other programs on the
machine count less.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
GOLD = [("a fine film", "good"), ("so fine", "good"), ("a bad film", "bad"), ("so bad", "bad")]
ROUNDS, DRAWN, SLICE, SEED = 3, 2048, 256, 12


def write(folder: Path, rows: int) -> None:
    """The pool as Parquet and as CSV."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    choose = random.Random(1)
    words = [f"word{number}" for number in range(5_000)]

    def texts(count: int) -> Iterator[str]:
        for number in range(count):
            yield f"{number} {' '.join(choose.choices(words, k=12))}"

    kinds = {"text": pa.string(), "wide": pa.binary()}
    table, comma = folder / "pool.parquet", folder / "pool.csv"
    with pq.ParquetWriter(table, pa.schema(kinds)) as writer, comma.open("w") as file:
        file.write("text\n")
        every = texts(rows)
        while part := [text for text, _ in zip(every, range(50_000), strict=False)]:
            wide = [choose.randbytes(500) for _ in part]
            writer.write_table(pa.table({"text": part, "wide": wide}, pa.schema(kinds)))
            file.writelines(f"{text}\n" for text in part)


def before(path: Path) -> dict[str, object]:
    """As an earlier version read a pool: a pass for each question."""
    from selftrain.data.fewshot import fingerprint
    from selftrain.data.read import read_pool
    from selftrain.data.rows import Example, Labelled, Notes, examples
    from selftrain.data.split import make_split
    from selftrain.seeds import child, uniform

    gold = [Labelled(examples([text])[0], label) for text, label in GOLD]
    pool = make_split(gold, read_pool([path], notes=Notes()), test=gold, notes=Notes()).unlabelled
    name = fingerprint(pool)

    def draw(seed: int, size: int) -> list[Example]:  # training.draw of that commit, without torch
        return heapq.nsmallest(size, pool, key=lambda row: (uniform(seed, row.uid), row.uid))

    drawn = [draw(child(SEED, "slice"), SLICE)]
    drawn += [draw(child(SEED, "pool", number), DRAWN) for number in range(1, ROUNDS + 1)]
    return {"pool": name, "rows": [[row.uid for row in rows] for rows in drawn]}


def now(path: Path) -> dict[str, object]:
    """As this version reads it: one pass, which cleans it, names it and draws from it."""
    from selftrain.data.draws import Draw
    from selftrain.data.pool import Pool
    from selftrain.data.read import open_pool
    from selftrain.data.rows import Labelled, Notes, examples
    from selftrain.data.split import make_split
    from selftrain.seeds import child

    gold = [Labelled(examples([text])[0], label) for text, label in GOLD]
    draws = [Draw(child(SEED, "slice"), SLICE)]
    draws += [Draw(child(SEED, "pool", number), DRAWN) for number in range(1, ROUNDS + 1)]
    source = open_pool([path], notes=Notes())
    pool = make_split(gold, source, test=gold, notes=Notes(), draws=lambda: draws).unlabelled
    assert isinstance(pool, Pool)
    drawn = [pool.draw(each, draws) for each in draws]
    return {"pool": pool.fingerprint, "rows": [[row.uid for row in rows] for rows in drawn]}


def timed(way: str, path: Path) -> None:
    """Run one way in this process and print what it found, its seconds and its memory."""
    import pyarrow.parquet  # noqa: F401  (loading it is the same for both)

    from selftrain.data import pool

    pool.MAX_ROWS_IN_MEMORY = 0  # else a short pool, for a trial, would stay in memory
    started, wall = time.process_time(), time.monotonic()
    found = {"before": before, "now": now}[way](path)
    seconds, wall = time.process_time() - started, time.monotonic() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "wall": wall, "peak_mb": peak, **found}))


def main() -> None:
    """Compare both ways on both kinds of file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path, help="a checkout of the earlier commit")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        timed(given.one[0], Path(given.one[1]))
        return
    with tempfile.TemporaryDirectory(prefix="selftrain-") as folder:
        write(Path(folder), given.rows)
        for name in ("pool.parquet", "pool.csv"):
            found = {}
            for way, code in (("before", given.before), ("now", ROOT)):
                command = [sys.executable, __file__, "--one", way, str(Path(folder) / name)]
                env = {**os.environ, "PYTHONPATH": f"{code / 'src'}:{code / 'lite' / 'src'}"}
                ran = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
                found[way] = json.loads(ran.stdout)
            assert found["before"]["rows"] == found["now"]["rows"]
            assert found["before"]["pool"] == found["now"]["pool"]
            line = {"file": name, "rows": given.rows, "python": platform.python_version()}
            for way, result in found.items():
                line |= {f"{way} {key}": result[key] for key in ("seconds", "wall", "peak_mb")}
            line["times as fast"] = found["before"]["seconds"] / found["now"]["seconds"]
            print(json.dumps(line))
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
