"""Plain few-shot fine-tuning: our ``fit`` beside transformers' Trainer, same model, same steps.

    python benchmarks/trainer.py DATA --task sst2 agnews

All parameters of MiniLM and a fresh linear head, 16 labels a class, 60 steps of 16 rows at 2e-5,
AdamW, warm-up and a straight decay; the Trainer has its usual collator, which pads to the longest
row of a batch. Each is scored on the design rows: both must have learnt. Ours reads by mean pooling
and the Trainer's model by CLS, as each does by itself; the encoder's work is the same.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from cuts import SHOTS
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from selftrain import task as tasks
from selftrain.backbone import load, minilm_folder
from selftrain.data import Labeled, Lesson
from selftrain.evaluate import evaluate
from selftrain.fit import fit
from selftrain.loop import fresh
from selftrain.machine import Machine
from selftrain.recipes import LAPTOP
from selftrain.task import Task
from selftrain.tasksets import Taskset

HOW = replace(LAPTOP.teacher, head_start="random")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", nargs="+", default=["sst2", "agnews"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/trainer.jsonl"))
    options = parser.parse_args()
    on, backbone = Machine(threads=options.threads), load("minilm")
    on.accelerator()
    for name in options.task:
        task = tasks.find(name)
        cut = Taskset.read(options.data, task)
        gold = cut.split(SHOTS, 12).labeled
        ours, theirs, scores = [], [], {}
        for turn in range(options.repeat):
            model = fresh(task, HOW, backbone, seed=turn)
            started = time.perf_counter()
            fit(model, Lesson(gold=gold), HOW, seed=turn, on=on)
            ours.append(time.perf_counter() - started)
            scores["ours"] = evaluate(model, cut.design)["accuracy"]
            taken, right = trainer(task, gold, list(cut.design), seed=turn, on=on)
            theirs.append(taken)
            scores["Trainer"] = right
        line = {
            "task": name,
            "seconds": {"ours": round(median(ours), 1), "Trainer": round(median(theirs), 1)},
            "times ours": round(median(b / a for a, b in zip(ours, theirs, strict=True)), 2),
            "accuracy on design rows": scores,
        }
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def trainer(
    task: Task, gold: tuple[Labeled, ...], design: list[Labeled], *, seed: int, on: Machine
) -> tuple[float, float]:
    """Seconds of training, and accuracy afterwards."""
    folder = minilm_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=len(task.labels))

    def encoded(rows: tuple[Labeled, ...] | list[Labeled]) -> list[dict]:
        texts = [row.example.text for row in rows]
        ids = tokenizer(texts, truncation=True, max_length=task.max_length)["input_ids"]
        labels = [task.labels.index(row.label) for row in rows]
        return [{"input_ids": i, "labels": label} for i, label in zip(ids, labels, strict=True)]

    with tempfile.TemporaryDirectory() as place:
        arguments = TrainingArguments(
            output_dir=place,
            max_steps=HOW.steps,
            per_device_train_batch_size=HOW.batch,
            per_device_eval_batch_size=32,
            learning_rate=HOW.rate,
            weight_decay=HOW.decay,
            warmup_steps=round(HOW.warmup * HOW.steps),
            max_grad_norm=HOW.clip,
            adam_beta2=0.98,
            seed=seed,
            use_cpu=on.accelerator().device.type == "cpu",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        made = Trainer(
            model=model,
            args=arguments,
            train_dataset=encoded(gold),
            data_collator=DataCollatorWithPadding(tokenizer),
        )
        started = time.perf_counter()
        made.train()
        taken = time.perf_counter() - started
        answers = torch.tensor(made.predict(encoded(design)).predictions).argmax(1)
    gold_labels = torch.tensor([task.labels.index(row.label) for row in design])
    return taken, float((answers == gold_labels).double().mean())


if __name__ == "__main__":
    main()
