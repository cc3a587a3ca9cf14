"""Rows a second on one core, for each stage that reads a pool: what the cost model is made of.

    python benchmarks/tiers.py

One torch thread, texts of exactly 20, 60 and 128 tokens, the embedded MiniLM with a new head. Rows
are divided by the CPU seconds of the process, not by the clock: on a busy machine that is nearer to
what the core can do. About two minutes of CPU; one JSON line a tier goes to --out, and what has a
line is not measured again. `--table` prints the table of docs/guide-large-pools.md from those
lines, and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import lines

from selftrain.data.read import Columns, read_pool
from selftrain.data.rows import Example, Labelled, Notes, Split
from selftrain.data.task import Task
from selftrain.data.write import write_table
from selftrain.method.recipes import recipe
from selftrain.model.backbone import load
from selftrain.model.build import with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.training.annotate import annotate
from selftrain.training.draw import draw
from selftrain.training.job import Job, new_model
from selftrain.training.machine import Machine
from selftrain.training.probe import logits_of

OUT = Path("benchmarks/results/tiers.jsonl")
SECONDS = 3.0  # of CPU that a tier is measured for, at least one turn
FILE_ROWS = 50_000
BATCH = 32
LENGTHS = (20, 60, 128)
PASSES = 10
MACHINE = Machine(device="cpu", threads=1)
VOCABULARY = [
    "film",
    "story",
    "good",
    "bad",
    "day",
    "night",
    "man",
    "woman",
    "house",
    "water",
    "city",
    "music",
    "world",
    "life",
]
"""Words of one token."""

POOL = 100_000_000
GPU_FLOPS = 30e12
"""Operations a second that a data-centre GPU is assumed to reach with bf16: not measured here."""
LAYERS, WIDTH = 6, 384  # of MiniLM
PART_ROWS = 1_048_576
HOURS_TO_A_DEATH = 100  # of a worker: an assumption
ANSWERS = "answers in Parquet"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        measured = lines.read(options.out)
        print("\n".join([*table(measured), "", answers_row(measured), "", failures(measured)]))
        return
    import torch

    torch.set_num_threads(1)
    done = lines.measured(options.out, "tier", "tokens")
    for tier, tokens, rows, work in tiers():
        if (tier, tokens) in done:
            continue
        count, started = 0, time.process_time()
        while (spent := time.process_time() - started) < SECONDS or not count:
            work()
            count += rows
        rate = {"rows": count, "cpu_seconds": round(spent, 2), "rows_a_second": count / spent}
        lines.append(options.out, {"tier": tier, "tokens": tokens, **rate})
    if (ANSWERS, None) not in done:
        lines.append(options.out, {"tier": ANSWERS, "bytes_a_row": bytes_of_an_answer()})


def tiers() -> Iterable[tuple[str, int | None, int, Callable[[], Any]]]:
    """Name, tokens of a row, rows of a turn, and the turn itself."""
    with tempfile.TemporaryDirectory() as folder:
        path, draws = Path(folder) / "pool.jsonl", Random(7)
        with path.open("w", encoding="utf-8") as file:
            for number in range(FILE_ROWS):
                file.write(json.dumps({"text": f"{words(20, draws)} {number}"}) + "\n")
        pool = list(read(path))
        yield "clean", None, FILE_ROWS, lambda: list(read(path))
        yield "draw", None, FILE_ROWS, lambda: draw(pool, 1024, seed=7)
    model = classifier()
    dropout, draws = with_dropout_in(model, "last"), Random(7)
    model.read(texts(20, draws))  # warms up
    for tokens in LENGTHS:
        batch = texts(tokens, draws)
        assert {len(row.ids) for row in model.encode(batch)} == {tokens}
        yield "encode", tokens, BATCH, partial(model.read, batch)
        yield f"{PASSES} passes", tokens, BATCH, partial(votes, dropout, batch)
        yield "predict", tokens, BATCH, partial(predict_new, model, tokens, draws)
    vectors = model.read(batch).features.repeat(64, 1)
    yield "head", None, len(vectors), lambda: logits_of(model, vectors).softmax(1)


def words(tokens: int, draws: Random) -> str:
    """A text of so many tokens, with the two that the tokenizer adds."""
    return " ".join(draws.choices(VOCABULARY, k=tokens - 2))


def texts(tokens: int, draws: Random) -> list[Example]:
    """A batch of new texts: tokens of known ones are kept, and would cost nothing."""
    return [Example(str(number), words(tokens, draws)) for number in range(BATCH)]


def predict_new(model: Classifier, tokens: int, draws: Random) -> None:
    """Answers for texts that no cache of tokens knows."""
    predict(model, texts(tokens, draws))


def predict(model: Classifier, batch: list[Example]) -> None:
    """Answers with certainty, as `predict` gives them: new texts, one pass and ten with dropout."""
    votes(with_dropout_in(model, "last"), batch)


def read(path: Path) -> Iterable[Example]:
    """The pool as `fit` reads it: cleaned, and without repeated texts."""
    return read_pool([path], Columns(text="text"), notes=Notes())


def classifier() -> Classifier:
    """The default's teacher, before it has learnt anything."""
    rows = tuple(Labelled(Example(name, name), name) for name in ("good", "bad"))
    method = recipe("upet-head-adapter")
    job = Job(Task("tiers", ("good", "bad")), Split(rows, []), method, load("minilm"), 7)
    return new_model(job, method.teacher, seed=0)


def bytes_of_an_answer() -> float:
    """The size of an answer in Parquet: row, label, two probabilities and certainty."""
    draws = Random(7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.parquet"
        rows = [(row, *made_up_answer(draws)) for row in range(FILE_ROWS)]
        write_table(path, ("row", "label", "p_good", "p_bad", "certainty"), rows)
        return path.stat().st_size / FILE_ROWS


def made_up_answer(draws: Random) -> tuple[str, float, float, float]:
    """An answer whose digits are random: nothing compresses them."""
    p = round(draws.random(), 6)
    return ("good" if p >= 0.5 else "bad", p, round(1 - p, 6), round(draws.random(), 6))


def votes(model: Classifier, batch: list[Example]) -> None:
    """One annotation of a batch, with dropout in the last layer."""
    for _ in annotate(model, batch, PASSES, seed=7, machine=MACHINE):
        pass


# ── the table of the document ──


def table(measured: list[lines.Line]) -> list[str]:
    """Rows a second, and what a hundred million rows take, in Markdown."""
    head = ("stage", "tokens", "rows/s, one core", "core-hours", "GPU-hours, by arithmetic")
    rows = [f"| {' | '.join(head)} |", "|---|---|---|---|---|"]
    for line in measured:
        if line["tier"] == ANSWERS:
            continue
        rate, tokens = line["rows_a_second"], line["tokens"]
        hours = POOL / rate / 3600
        on_gpu = "–" if tokens is None else f"{gpu_hours(line['tier'], tokens):.2f}"
        cells = (line["tier"], tokens or "–", f"{rate:,.0f}", f"{hours:,.1f}", on_gpu)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def answers_row(measured: list[lines.Line]) -> str:
    """What the answers take on disk, as a row of the table of bytes."""
    (size,) = (line["bytes_a_row"] for line in measured if line["tier"] == ANSWERS)
    total = POOL * size / 1e9
    return f"| answers, two classes, Parquet | {size:.0f} a row | {total:.1f} GB |"


def failures(measured: list[lines.Line]) -> str:
    """How many parts there are, how many are lost, and what that costs, as sentences."""
    (rate,) = (
        line["rows_a_second"]
        for line in measured
        if (line["tier"], line.get("tokens")) == ("predict", 60)
    )
    part, whole = PART_ROWS / rate / 3600, POOL / rate / 3600
    deaths = whole / HOURS_TO_A_DEATH
    return (
        f"At 60 tokens the {ceil(POOL / PART_ROWS)} parts take {part:.1f} core-hours of `predict` "
        f"each, {whole:,.0f} together, in which {deaths:.1f} workers die; they cost "
        f"{deaths * part / 2:.1f} core-hours, {part / 2 / HOURS_TO_A_DEATH:.1%} of the work. "
        f"Parts a sixteenth as large lose {part / 32 / HOURS_TO_A_DEATH:.1%}."
    )


def gpu_hours(tier: str, tokens: int) -> float:
    """What the pool takes where ``GPU_FLOPS`` are reached; passes repeat the last layer alone."""
    weights, attention = 2 * 12 * WIDTH**2, 4 * tokens * WIDTH  # of a layer, for a token
    layers = LAYERS if tier == "encode" else LAYERS + PASSES
    return POOL * tokens * layers * (weights + attention) / GPU_FLOPS / 3600


if __name__ == "__main__":
    main()
