"""SetFit in its own environment: JSON on stdin, JSON on the last line of stdout.

    pip install setfit==1.2.0, then: PYTHON benchmarks/setfit_alone.py < job.json

Nothing of selftrain is imported. Its default settings, on the folder of the same encoder.
"""

from __future__ import annotations

import json
import sys
import time

import torch


def main() -> None:
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])

    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(job["model"], labels=job["classes"])
    rows = Dataset.from_dict({"text": job["texts"], "label": job["labels"]})
    arguments = TrainingArguments(
        output_dir=job["place"], seed=job["seed"], save_strategy="no", report_to="none"
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
    started = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - started
    answers = [str(answer) for answer in model.predict(job["asked"])]
    print(json.dumps({"seconds": seconds, "answers": answers}))


if __name__ == "__main__":
    main()
