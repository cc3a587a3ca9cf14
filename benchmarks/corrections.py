"""What corrections are worth: those that `review` suggests against as many random ones.

    python benchmarks/corrections.py DATA --task agnews sst2 subj --method frozen
    python benchmarks/corrections.py DATA --task sst2 --method supcon --seeds 12

For each task and seed a run is trained from 16 labels a class. Then the gold labels stand for the
person, the one use of them: the first 10, 20 and 50 rows in the order "most worth a label" get
their gold label, and as many drawn at random from the same rows; a new run learns from them, as
`selftrain fit --from` does. All are scored on the same test rows. A line for each fit; what has a
line is not measured again. The table goes to docs/review.md. With ``frozen`` the encoder never
changes: it reads each text once for all fits.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import lines
from vectors import read_each_text_once

from selftrain.data import task as tasks
from selftrain.data.read import Columns, read_labelled
from selftrain.data.rows import Labelled, Notes, Split, uid_of
from selftrain.data.task import Task
from selftrain.experiments.tasksets import Taskset, find
from selftrain.method.recipes import recipe
from selftrain.model.backbone import Backbone, load
from selftrain.review.rows import Row, read_rows
from selftrain.review.worth import most_worth
from selftrain.runs.audit import gold_labels
from selftrain.runs.corrections import Correction, corrected
from selftrain.runs.estimates import estimated
from selftrain.runs.read import read_manifest
from selftrain.runs.train import train
from selftrain.seeds import child
from selftrain.training.evaluate import evaluate
from selftrain.training.job import Job
from selftrain.training.loop import last_accepted, self_train
from selftrain.training.machine import Machine

SHOTS = 16
SEEDS = (12, 21, 42, 87, 100)
COUNTS = (10, 20, 50)
NONE, WORTH, RANDOM = "none", "most worth", "random"
COUNT = "corrections"
KEY = ("task", "method", "seed", "chosen", COUNT)
NAMES = {WORTH: "most worth a label", RANDOM: "random"}
OUT = lines.ROOT / "benchmarks" / "results" / "corrections.jsonl"
PAGE = lines.ROOT / "docs" / "review.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["agnews", "sst2", "subj"])
    parser.add_argument("--method", default="frozen")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--test-rows", type=int, default=1000)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    machine = Machine(threads=options.threads)
    machine.torch_device()
    if options.method == "frozen":
        read_each_text_once()
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        cut = Taskset.read(options.data, task_of(options.data, name))
        test = cut.test(options.test_rows)
        for seed in options.seeds:
            cells = [(NONE, 0), *((by, n) for n in options.counts for by in (WORTH, RANDOM))]
            wanted = [c for c in cells if (name, options.method, seed, *c) not in done]
            if wanted:
                measure(cut, test, seed, wanted, options, machine)
    rows = table(lines.read(options.out))
    lines.write_table(options.page, "corrections.py", "the gain", rows)


def task_of(data: Path, name: str) -> Task:
    """A task of the package, or one of the labels in its train file."""
    if name in tasks.known():
        return tasks.find(name)
    rows = read_labelled(find(data / name, "train"), Columns(text="text"), notes=Notes())
    return tasks.from_labels((row.label for row in rows), name=name)


def measure(
    cut: Taskset,
    test: Sequence[Labelled],
    seed: int,
    wanted: Sequence[tuple[str, int]],
    options: argparse.Namespace,
    machine: Machine,
) -> None:
    """The run that is reviewed, and a run for each choice of corrections."""
    backbone: Backbone = load("minilm")
    split = cut.split(SHOTS, seed)
    job = Job(cut.task, split, recipe(options.method), backbone, seed)
    gold = gold_labels(cut.rows, notes=Notes())
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        started = time.monotonic()
        rounds = list(train(run, job, machine))
        estimated(run, job, rounds, machine)
        seconds = time.monotonic() - started
        found = read_rows(run, split.unlabelled, "the pool")
        digest = read_manifest(run).digest()
    orders = {
        WORTH: most_worth(found.rows, found.labels),
        RANDOM: Random(child(seed, "corrections")).sample(range(len(found.rows)), len(found.rows)),
    }
    first = evaluate(last_accepted(rounds).model, test, machine)["accuracy"]
    for chosen, count in wanted:
        line = dict(zip(KEY, (cut.task.name, options.method, seed, chosen, count), strict=True))
        if chosen == NONE:
            facts = {"accuracy": first, "wrong": 0, "seconds": round(seconds, 1)}
        else:
            rows = [found.rows[place] for place in orders[chosen][:count]]
            facts = corrected_run(job, rows, gold, digest, test, machine)
        lines.append(options.out, {**line, **facts, "test_rows": len(test)})


def corrected_run(
    job: Job,
    rows: Sequence[Row],
    gold: Mapping[str, str],
    digest: str,
    test: Sequence[Labelled],
    machine: Machine,
) -> dict[str, float]:
    """The accuracy after these rows have got their gold labels."""
    verdicts = dict(verdicts_of(rows, gold, digest))
    split: Split = corrected(job.split, verdicts, Notes())
    started = time.monotonic()
    rounds = list(self_train(replace(job, split=split), machine=machine))
    seconds = time.monotonic() - started
    return {
        "accuracy": evaluate(last_accepted(rounds).model, test, machine)["accuracy"],
        "wrong": sum(each.verdict == "label" for each in verdicts.values()),
        "seconds": round(seconds, 1),
    }


def verdicts_of(
    rows: Sequence[Row], gold: Mapping[str, str], digest: str
) -> Iterator[tuple[str, Correction]]:
    """What a person who knows every label decides on these rows."""
    for row in rows:
        now = gold[row.uid]
        content = uid_of(row.example.text, row.example.pair)
        verdict = "accept" if now == row.label else "label"
        yield row.uid, Correction(row.uid, content, row.label, now, verdict, row.round, digest)


# ── the page ─────────────────────────────────────────────────────────────────────────────────


def table(every: Sequence[lines.Line]) -> Iterator[str]:
    """Mean accuracy over the seeds, by task; then what choosing gains over drawing."""
    counts = sorted({line["corrections"] for line in every} - {0})
    yield f"| | seeds | corrected rows: | 0 | {' | '.join(map(str, counts))} |"
    yield f"|---|---:|---|---:{'|---:' * len(counts)}|"
    for (task, method), mine in lines.groups(every, "task", "method").items():
        seeds = len({line["seed"] for line in mine})
        for chosen in (WORTH, RANDOM):
            by = lines.groups([line for line in mine if line["chosen"] in (NONE, chosen)], COUNT)
            cells = " | ".join(percent(by.get((count,), [])) for count in (0, *counts))
            yield f"| {task}, `{method}` | {seeds} | {NAMES[chosen]} | {cells} |"
    yield ""
    for (method, count), mine in sorted(lines.groups(every, "method", COUNT).items()):
        if count:
            yield f"- `{method}`, {count} rows: {gain(mine)}."


def percent(mine: Sequence[lines.Line]) -> str:
    return f"{100 * fmean(line['accuracy'] for line in mine):.1f}" if mine else "–"


def gain(mine: Sequence[lines.Line]) -> str:
    """What suggested rows give over random ones, and how many of each had a wrong label."""
    pairs = [
        {line["chosen"]: line for line in pair}
        for pair in lines.groups(mine, "task", "seed").values()
        if len(pair) == 2
    ]
    gains = [100 * (pair[WORTH]["accuracy"] - pair[RANDOM]["accuracy"]) for pair in pairs]
    worth, drawn = (fmean(pair[name]["wrong"] for pair in pairs) for name in (WORTH, RANDOM))
    error = stdev(gains) / len(gains) ** 0.5
    return (
        f"{fmean(gains):+.1f} points over random ones (standard error {error:.1f}, {len(gains)} "
        f"pairs of runs); {worth:.1f} of them had a wrong label, {drawn:.1f} of the random ones"
    )


if __name__ == "__main__":
    main()
