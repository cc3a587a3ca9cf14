"""selftrain-lite beside selftrain: time to the first answer, memory, and single texts.

    selftrain export run -o model
    python benchmarks/lite.py run model texts.csv

Each start is a process of its own. Single texts are answered by turns, by the exported model and
by the run, with one thread each, so a ratio is within one minute of one machine: `plain` is one
pass of the run's model; `predict` is what `selftrain predict` computes, with the passes for
certainty, which an export does not have. Seconds of the processor are beside those of the clock,
which other programs lengthen.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIRST, MEGABYTES, FASTER = 0.5, 250, 2.0
"""What is promised: seconds to the first answer, memory, and times as fast."""
STARTS = {
    "lite": "from selftrain_lite import load\nload({model!r}, threads=1).predict([text])",
    "selftrain": "from pathlib import Path\n"
    "import torch; torch.set_num_threads(1)\n"
    "from selftrain.data.rows import Example\n"
    "from selftrain.runs.read import load\n"
    "load(Path({run!r})).probabilities([Example('', text)])",
}
MEASURE = """
import resource, json, time
use = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu": use.ru_utime + use.ru_stime, "megabytes": use.ru_maxrss / 1024}))
"""


def main() -> None:
    """Measure, print, and say which promise does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, help="a CSV file with a column `text`")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200)
    options = parser.parse_args()
    with options.texts.open(newline="", encoding="utf-8") as file:
        texts = [row["text"] for row in csv.DictReader(file)][: options.rows]
    starts = {name: start(name, options, texts[0]) for name in STARTS}
    speed = by_turns(options.run, options.model, texts)
    for name, numbers in starts.items():
        print(json.dumps({"start": name} | numbers))
    print(json.dumps(speed))
    first = starts["lite"]["cpu seconds"]
    memory = starts["lite"]["megabytes"]
    ratio = speed["times as fast as predict"]
    print(f"first answer {first:.2f} s (promised {FIRST}), {memory:.0f} MB (promised {MEGABYTES}),")
    print(f"{ratio:.1f} times as fast as predict for single texts (promised {FASTER})")
    sys.exit(not (first <= FIRST and memory <= MEGABYTES and ratio >= FASTER))


def start(name: str, options: argparse.Namespace, text: str) -> dict[str, float]:
    """Seconds until a new process has answered one text, and its memory: the best of some."""
    places = {"model": str(options.model.resolve()), "run": str(options.run.resolve())}
    script = f"text = {text!r}\n{STARTS[name].format(**places)}\n{MEASURE}"
    paths = os.pathsep.join(map(str, (ROOT / "lite" / "src", ROOT / "src")))
    clocks, found = [], []
    for _ in range(options.starts):
        before = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        clocks.append(time.perf_counter() - before)
        found.append(json.loads(done.stdout))
    return {
        "clock seconds": round(min(clocks), 3),
        "cpu seconds": round(min(each["cpu"] for each in found), 3),
        "megabytes": round(max(each["megabytes"] for each in found)),
    }


def by_turns(run: Path, model: Path, texts: list[str]) -> dict[str, Any]:
    """Milliseconds for one text, by the exported model and by the run, by turns."""
    sys.path[:0] = [str(ROOT / "lite" / "src"), str(ROOT / "src")]
    import torch

    from selftrain.data.rows import Example
    from selftrain.model.build import with_dropout_in
    from selftrain.runs.read import load as load_run
    from selftrain.training.annotate import annotate
    from selftrain.training.machine import Machine
    from selftrain_lite import load

    torch.set_num_threads(1)
    lite, whole = load(model, threads=1), load_run(run)
    mc_model, machine = with_dropout_in(whole, "last"), Machine(device="cpu", threads=1)

    def predicted(text: str) -> Any:
        ((_, votes),) = annotate(mc_model, [Example("", text)], 10, seed=0, machine=machine)
        logits = votes.plain.log() / whole.temperature
        return logits.softmax(1)[0].numpy()

    answer = {
        "lite": lambda text: lite.predict_proba([text])[0],
        "plain": lambda text: whole.probabilities([Example("", text)])[0].numpy(),
        "predict": predicted,
    }
    clock: dict[str, list[float]] = {name: [] for name in answer}
    cpu: dict[str, list[float]] = {name: [] for name in answer}
    differ = 0.0
    for text in texts:
        found = {}
        for name, ask in answer.items():
            before = time.perf_counter(), time.process_time()
            found[name] = ask(text)
            clock[name].append(time.perf_counter() - before[0])
            cpu[name].append(time.process_time() - before[1])
        differ = max(differ, *(float(abs(found["lite"] - p).max()) for p in found.values()))

    def faster(times: dict[str, list[float]], than: str) -> float:
        return round(median(b / a for a, b in zip(times["lite"], times[than], strict=True)), 2)

    return {
        "texts": len(texts),
        "processor, ms a text": {n: round(1e3 * median(each), 2) for n, each in cpu.items()},
        "times as fast as plain": faster(cpu, "plain"),
        "times as fast as predict": faster(cpu, "predict"),
        "the same by the clock": [faster(clock, "plain"), faster(clock, "predict")],
        "largest difference": differ,
    }


if __name__ == "__main__":
    main()
