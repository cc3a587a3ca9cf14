"""What corrections are worth: those that `review` suggests against as many random ones.

    python benchmarks/corrections.py DATA --task agnews sst2 subj --method frozen
    python benchmarks/corrections.py DATA --task sst2 --method supcon --seeds 12

For each task and seed a run is trained from 16 labels a class. Then the gold labels stand for the
person, the one use of them: the first 10, 20 and 50 rows in the order "most worth a label" get
their gold label, and as many drawn at random from the same rows; a new run learns from them, as
`selftrain fit --from` does. All are scored on the same test rows. A line for each fit; what has a
line is not measured again. Then a table of means over the seeds, and of differences with their
standard error over the pairs of runs. With ``frozen`` the encoder never changes: it reads each text
once for all fits.
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
from selftrain.runs.corrections import Correction, corrected, run_digest
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
KEY = ("task", "method", "seed", "chosen", "corrections")
OUT = Path("benchmarks/results/corrections.jsonl")


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
    show(options.out)


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
        digest = run_digest(read_manifest(run))
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


def show(out: Path) -> None:
    """Means over the seeds; then what choosing gains over drawing."""
    rows = []
    for (task, method, count), mine in sorted(
        lines.groups(lines.read(out), "task", "method", "corrections").items()
    ):
        by = {
            chosen: {each["seed"]: each for each in mine if each["chosen"] == chosen}
            for chosen in (NONE, WORTH, RANDOM)
        }
        means = [percent([each["accuracy"] for each in by[name].values()]) for name in by]
        wrong = [mean([each["wrong"] for each in by[name].values()]) for name in (WORTH, RANDOM)]
        both = by[WORTH].keys() & by[RANDOM].keys()
        gains = [by[WORTH][seed]["accuracy"] - by[RANDOM][seed]["accuracy"] for seed in both]
        rows.append((task, method, count, len(both), *means, gain(gains), *wrong))
    head = ("task", "method", "corrections", "seeds", *(NONE, WORTH, RANDOM), "gain")
    lines.show_table((*head, "wrong, most worth", "wrong, random"), rows)


def percent(values: Sequence[float]) -> str:
    return f"{100 * fmean(values):.1f}" if values else "–"


def mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.1f}" if values else "–"


def gain(values: Sequence[float]) -> str:
    if len(values) < 2:
        return percent(values)
    error = stdev(values) / len(values) ** 0.5
    return f"{100 * fmean(values):+.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    main()
