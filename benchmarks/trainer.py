"""Plain few-shot fine-tuning: our ``fit`` beside transformers' Trainer, same model, same steps.

    python benchmarks/trainer.py DATA --task sst2 agnews

All parameters of MiniLM and a fresh linear head, 16 labels a class, 60 steps of 16 rows at 2e-5,
AdamW, warm-up and a straight decay; the Trainer has its usual collator, which pads to the longest
row of a batch. Tokenising is in both times. The two take turns in going first; after the last turn
each is scored on the design rows: both must have learnt. Ours reads by mean pooling and the
Trainer's model by CLS, as each does by itself; the encoder's work is the same.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import lines
import torch
from cuts import SHOTS
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from selftrain.data import task as tasks
from selftrain.data.rows import Labelled, Lesson
from selftrain.data.task import Task
from selftrain.experiments.tasksets import Taskset
from selftrain.method.spec import Tune
from selftrain.method.upet import LAPTOP
from selftrain.model.backbone import load
from selftrain.model.build import build
from selftrain.model.embedded import minilm_folder
from selftrain.training.evaluate import evaluate
from selftrain.training.fit import fit
from selftrain.training.machine import Machine

HOW = replace(LAPTOP.teacher, head_start="random")
SCORE = "accuracy on design rows"
KEY = ("task", "turn", "threads")
Rows = Sequence[Labelled]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/trainer.jsonl"))
    options = parser.parse_args()
    machine = Machine(threads=options.threads)
    machine.torch_device()
    done = lines.measured(options.out, *KEY)
    for name in options.task:
        turns = [t for t in range(options.repeat) if (name, t, lines.threads()) not in done]
        if not turns:
            continue
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        gold = cut.split(SHOTS, 12).labelled
        for system in SYSTEMS.values():  # both warm
            system(task, gold, (), replace(HOW, steps=2), seed=0, machine=machine)
        for turn in turns:
            held = cut.design if turn == options.repeat - 1 else ()
            found = {
                system: SYSTEMS[system](task, gold, held, HOW, seed=turn, machine=machine)
                for system in (reversed(SYSTEMS) if turn % 2 else SYSTEMS)
            }
            line = {
                "task": name,
                "turn": turn,
                "seconds": {system: round(spent, 2) for system, (spent, _) in found.items()},
            }
            if held:
                line[SCORE] = {system: score for system, (_, score) in found.items()}
            lines.append(options.out, line)
    show(options.out)


def ours(
    task: Task, gold: Rows, held: Rows, how: Tune, *, seed: int, machine: Machine
) -> tuple[float, float | None]:
    """Seconds of training, and accuracy afterwards where there are rows to score."""
    backbone = load("minilm")  # of its own: one that has read the rows need not tokenise them
    model = build(task, backbone, how.architecture, seed=seed)
    started = time.perf_counter()
    fit(model, Lesson(gold=tuple(gold)), how, seed=seed, machine=machine)
    spent = time.perf_counter() - started
    return spent, evaluate(model, held)["accuracy"] if held else None


def theirs(
    task: Task, gold: Rows, held: Rows, how: Tune, *, seed: int, machine: Machine
) -> tuple[float, float | None]:
    """The same of the Trainer."""
    folder = minilm_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(task.labels))

    def encoded(rows: Rows) -> list[dict]:
        texts = [row.example.text for row in rows]
        ids = tokenizer(texts, truncation=True, max_length=task.max_length)["input_ids"]
        labels = [task.labels.index(row.label) for row in rows]
        return [{"input_ids": i, "labels": label} for i, label in zip(ids, labels, strict=True)]

    with tempfile.TemporaryDirectory() as place:
        arguments = TrainingArguments(
            output_dir=place,
            max_steps=how.steps,
            per_device_train_batch_size=how.batch_size,
            per_device_eval_batch_size=32,
            learning_rate=how.learning_rate,
            weight_decay=how.weight_decay,
            warmup_steps=round(how.warmup * how.steps),
            max_grad_norm=how.max_grad_norm,
            adam_beta2=0.98,
            seed=seed,
            use_cpu=machine.torch_device().type == "cpu",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        collator = DataCollatorWithPadding(tokenizer)
        made = Trainer(model=model, args=arguments, data_collator=collator)
        started = time.perf_counter()
        made.train_dataset = encoded(gold)
        made.train()
        spent = time.perf_counter() - started
        if not held:
            return spent, None
        answers = torch.tensor(made.predict(encoded(held)).predictions).argmax(1)
    wanted = torch.tensor([task.labels.index(row.label) for row in held])
    return spent, float((answers == wanted).double().mean())


SYSTEMS = {"ours": ours, "Trainer": theirs}


def show(out: Path) -> None:
    """Medians over the turns; how much longer the Trainer takes, turn by turn."""
    rows = []
    for (task, threads), mine in lines.groups(lines.read(out), "task", "threads").items():
        seconds = [line["seconds"] for line in mine]
        medians = [f"{median(each[system] for each in seconds):.1f}" for system in SYSTEMS]
        ratio = f"{median(each['Trainer'] / each['ours'] for each in seconds):.2f}"
        scores = [line[SCORE] for line in mine if SCORE in line][-1:] or [{}]
        rows.append((task, threads, len(mine), *medians, ratio, scores[0]))
    head = ("task", "threads", "turns", "ours, s", "Trainer, s", "times ours", SCORE)
    lines.show_table(head, rows)


if __name__ == "__main__":
    main()
