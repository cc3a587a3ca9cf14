"""The regression guard of our speed: `make bench-quick`, under three minutes.

Each figure is a ratio of two times measured next to each other, three times over, of which the
median counts (students twice, the 20 passes through all layers once); the margins are generous,
because machines are noisy. Made-up sentences of the
lengths of movie reviews; the real figures are in docs/performance.md. Start-up alone is in seconds,
those of the processor.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from statistics import median

import plain
import torch
from one_row import last_layer_of

from selftrain.data.rows import Example, Labelled, Lesson, examples
from selftrain.data.task import Task, find
from selftrain.method.upet import LAPTOP
from selftrain.model.architecture import Architecture
from selftrain.model.backbone import Backbone, load
from selftrain.model.batches import collate, grouped
from selftrain.model.build import build, with_dropout_in
from selftrain.model.classifier import Classifier
from selftrain.model.pel import Adapter, AnyTuning, Full, Layers
from selftrain.training.annotate import annotate
from selftrain.training.fit import fit
from selftrain.training.machine import Machine

TASK = Task("made up", ("no", "yes"))
WORDS = "a the film story is was not very and but long dull bright funny sad slow cast plot".split()  # noqa: SIM905
ON = Machine()
START_UP = 0.4  # seconds, at most


def main() -> None:
    spent = start_up()
    failed = spent > START_UP
    print(f"{spent:5.2f}s  selftrain --help{f'  ABOVE {START_UP}' if failed else ''}", flush=True)
    backbone, rows, found = load("minilm"), sentences(128), []
    for name, (least, measure) in CLAIMS.items():
        ratio = measure(backbone, rows)
        short = ratio < least
        print(f"{ratio:6.2f}  {name}{f'  BELOW {least}' if short else ''}", flush=True)
        found.append(ratio)
        failed = failed or short
    print("ratios:", " ".join(f"{ratio:.2f}" for ratio in found))
    sys.exit(failed)


def sentences(count: int) -> list[Example]:
    random = Random(0)
    return examples(
        [" ".join(random.choices(WORDS, k=random.randint(4, 40))) for _ in range(count)]
    )


def times(slow: Callable[[], object], quick: Callable[[], object], repeat: int = 3) -> float:
    """How much longer the one takes than the other, side by side."""
    slow(), quick()  # both warm
    return median(seconds(slow) / seconds(quick) for _ in range(repeat))


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def start_up() -> float:
    """Seconds of processor time of `selftrain --help`, the least of three: nothing adds to it."""

    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    asked = [sys.executable, "-m", "selftrain", "--help"]
    before = [spent()]
    for _ in range(3):
        subprocess.run(asked, stdout=subprocess.DEVNULL, check=True)
        before.append(spent())
    return min(after - start for start, after in pairwise(before))


def student(backbone: Backbone, rows: list[Example], layers: Layers) -> float:
    """Four epochs; the trunk's own pass is counted, because each fit plans anew."""
    every = [Labelled(row, TASK.labels[i % 2]) for i, row in enumerate(rows)]
    lesson = Lesson(tuple(every[:16]), tuple(every[16:72]), tuple(every[72:]))
    how = replace(LAPTOP.student[0], steps=None, epochs=4)

    def trained(changes: AnyTuning) -> None:
        model = build(TASK, backbone, Architecture(changes), seed=1)
        if model.trunk is not None and model.trunk.memory is not None:
            model.trunk.memory.plan(model.encode(rows), backbone.width, limit=10**9)
        fit(model, lesson, replace(how, tuning=changes), seed=1, machine=ON)

    adapter = Adapter(width=64, layers=layers)
    return times(lambda: trained(Full()), lambda: trained(adapter), repeat=2)


def passes(backbone: Backbone, rows: list[Example]) -> float:
    teacher = build(TASK, backbone, Architecture(Full()), seed=1)
    narrow = with_dropout_in(teacher, "last")

    def votes(model: Classifier) -> None:
        list(annotate(model, rows[:48], 20, seed=1, machine=ON))

    return times(lambda: votes(teacher), lambda: votes(narrow), repeat=1)


def one_position(_backbone: Backbone, rows: list[Example]) -> float:
    model = build(
        find("sst2"), load("minilm-mlm"), Architecture(Adapter(width=64), "prompt"), seed=1
    )
    narrow = with_dropout_in(model, "last")

    def votes(position: str) -> None:
        with last_layer_of(position, narrow):
            list(annotate(narrow, rows[:32], 20, seed=1, machine=ON))

    return times(lambda: votes("all"), lambda: votes("one"))


@torch.no_grad()
def dropping(backbone: Backbone, rows: list[Example]) -> float:
    ours = build(TASK, backbone, Architecture(Full()), seed=1).train()
    with plain.torchs_own_dropout():
        torchs = build(TASK, backbone, Architecture(Full()), seed=1).train()
    batches, _ = grouped(ours.encode(rows), ours.pad, ours.device)
    return times(lambda: list(map(torchs, batches)), lambda: list(map(ours, batches)))


@torch.no_grad()
def padding(backbone: Backbone, rows: list[Example]) -> float:
    model = build(TASK, backbone, Architecture(Full()), seed=1)
    tokens = model.encode(rows)
    alike, _ = grouped(tokens, model.pad, model.device)
    mixed = [collate(tokens[i : i + 32], model.pad) for i in range(0, len(tokens), 32)]
    return times(lambda: list(map(model, mixed)), lambda: list(map(model, alike)))


CLAIMS = {
    "full fine-tuning / adapter in the upper half, trunk remembered": (
        2.0,
        partial(student, layers="half"),
    ),
    "full fine-tuning / adapter in the last layer, trunk remembered": (
        4.0,
        partial(student, layers="last"),
    ),
    "20 dropout passes in all layers / in the last": (3.0, passes),
    "20 dropout passes in the last layer, of all positions / of the mask": (1.5, one_position),
    "a pass with torch's dropout / with ours": (1.0, dropping),
    "padded to the longest / grouped by length": (1.2, padding),
}
"""What takes longer than what, how much at least, and how it is measured."""


if __name__ == "__main__":
    main()
