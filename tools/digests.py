"""What must not move: small runs of every kind, and digests of all they give.

    python tools/digests.py            # compare with the committed file, bit for bit
    python tools/digests.py --write    # write it

A refactoring must leave every line of ``tests/project/digests.json`` as it is, on one machine and
with one thread. Bits depend on the processor: ``tests/project/test_digests.py`` compares lessons
exactly and weights and answers within 3e-4, anywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[1]
COMMITTED = ROOT / "tests" / "project" / "digests.json"
PROJECTIONS = 8
WORDS = {"good": "great good fine yes film", "bad": "terrible bad dull no story"}

QUICK = """\
seed = 7
threads = 1
device = "cpu"
method.rounds = 2
method.pool = 24
method.passes = 3
method.converged = 0
method.teacher.steps = 6
method.teacher.batch_size = 4
method.student.steps = 6
method.student.batch_size = 4
"""
PROMPT = """\
task.template = "{text} It was {mask} ."
task.words.good = "great"
task.words.bad = "terrible"
"""

Kind = tuple[str, str, str]
"""A backbone, a method, and what its configuration adds."""
STUDENTS = ("ptuning", "prefix", "adapter")
# Values that the recipes had when the file was written. At a low rate the bits of two processors
# stay close, too.
SLOW = {"prefix": "method.student.learning_rate = 5e-3\n"}
MEAN = 'method.select.label = "mean"\n'
FAMILIES = ("roberta", "electra", "albert", "distilbert", "deberta-v2", "modernbert", "mpnet")
TINY: dict[str, Kind] = {
    **{
        f"head-{tuning}": ("bert", f"upet-head-{tuning}", SLOW.get(tuning, ""))
        for tuning in STUDENTS
    },
    **{
        f"prompt-{tuning}": ("bert", f"upet-prompt-{tuning}", SLOW.get(tuning, "") + PROMPT)
        for tuning in STUDENTS
    },
    **{
        f"head-{kind}": ("bert", "upet-head-adapter", f'method.student.tuning.kind = "{kind}"\n')
        for kind in ("bitfit", "lora", "ia3", "full")
    },
    "ust": ("bert", "ust", MEAN),
    "cest": ("bert", "cest", ""),
    "list": ("bert", "list", PROMPT),
    "self-training": ("bert", "prompt-st", PROMPT),
    "tapt": ("bert", "tapt-head-ft", "method.rounds = 0\nmethod.tapt.steps = 6\n"),
    "frozen-layers": (
        "bert",
        "upet-head-adapter",
        "method.student.tuning.layers = 1\nmethod.dropout_layers = 2\n",
    ),
    "probe": ("bert", "probe", "method.rounds = 1\nmethod.probe.rounds = 2\n"),
    "supcon": ("bert", "supcon", "method.probe.rounds = 2\n"),
    "resumed": ("bert", "upet-head-adapter", ""),
    "streamed": ("bert", "upet-head-adapter", 'method.pool = "all"\n'),
    **{f"{family}-adapter": (family, "upet-head-adapter", "") for family in FAMILIES},
    **{
        f"{family}-prefix": (family, "upet-prompt-prefix", SLOW["prefix"] + PROMPT)
        for family in ("mpnet", "roberta")
    },
}
SHORT = "method.rounds = 1\nmethod.pool = 48\nmethod.teacher.steps = 4\nmethod.student.steps = 4\n"
REAL: dict[str, Kind] = {
    "minilm": ("minilm", "upet-head-adapter", SHORT),
    "minilm-mlm": ("minilm-mlm", "upet-prompt-adapter", SHORT + PROMPT),
}
KINDS = TINY | REAL


def digests_of(name: str, place: Path) -> dict[str, Any]:
    """Train one kind of run below this folder, and say what each of its rounds gave."""
    backbone, method, more = KINDS[name]
    write_files(place, config_of(more))
    where = backbone if name in REAL else str(tiny_backbone(backbone))
    run, common = place / "run", f"--backbone {where}"
    fit = f"fit {place}/labelled.csv -u {place}/pool.csv -o {run} --method {method} {common}"
    fit += f" --config {place}/quick.toml"
    with long_pools_from_disk(name == "streamed"):
        if name == "resumed":
            command(f"{fit} --rounds 1")
        command(fit)
    rounds = sorted((run / "rounds").iterdir(), key=lambda folder: int(folder.name))
    out = place / "answers.jsonl"
    command(f"predict {run} {place}/new.csv --raw -o {out} {common}")
    return {"rounds": [round_digests(folder) for folder in rounds], "answers": answers(out)}


def round_digests(folder: Path) -> dict[str, Any]:
    """The weights and the lesson of one round."""
    import pyarrow.parquet
    import torch
    from safetensors.torch import load_file

    tensors = load_file(folder / "model.safetensors")
    tensors.pop("offset", None)  # zeros that models had before
    flat = torch.cat([tensors[name].double().flatten() for name in sorted(tensors)])
    draw = torch.Generator().manual_seed(12)
    sides = torch.randn(PROJECTIONS, len(flat), generator=draw, dtype=torch.float64)
    sides /= sides.norm(dim=1, keepdim=True)
    table = pyarrow.parquet.read_table(folder / "lesson.parquet")
    facts = [
        [str(value) for value in table.column(name).to_pylist()] for name in table.column_names
    ]
    names = [table.column_names.index(name) for name in ("uid", "label", "role")]
    return {
        "weights": short(flat.numpy().tobytes()),
        "projections": (sides @ flat).tolist(),
        "lesson": short(json.dumps([facts[place] for place in names]).encode()),
        "votes": short(json.dumps(facts).encode()),
    }


def answers(path: Path) -> list[dict[str, Any]]:
    """What a run says of new texts."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def short(raw: bytes) -> str:
    """A digest that a person can compare."""
    return hashlib.sha256(raw).hexdigest()[:16]


# ── the runs ─────────────────────────────────────────────────────────────────────────────────


def command(line: str) -> None:
    """Give a command as it is typed, in this process."""
    from selftrain.cli import main

    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(line.split())
        except SystemExit as ended:
            if not ended.code:
                return
    raise SystemExit(f"selftrain {line}\n{err.getvalue()}")


class long_pools_from_disk:  # noqa: N801  (a context manager, read as words)
    """Within it a pool of more than four rows is not held in memory."""

    def __init__(self, act: bool) -> None:
        self.act = act

    def __enter__(self) -> None:
        from selftrain.data import pool as pool_room

        self.before = pool_room.MAX_ROWS_IN_MEMORY
        if self.act:
            pool_room.MAX_ROWS_IN_MEMORY = 4

    def __exit__(self, *_: object) -> None:
        from selftrain.data import pool as pool_room

        pool_room.MAX_ROWS_IN_MEMORY = self.before


@cache
def tiny_backbone(family: str) -> Path:
    """A tiny checkpoint, the one that the tests use."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from tiny import make

    return make(family, Path(tempfile.mkdtemp(prefix="selftrain-")) / family)


def config_of(more: str) -> str:
    """The quick configuration with lines of a kind, which go before it."""
    given = {line.partition(" =")[0] for line in more.splitlines()}
    ours = [line for line in QUICK.splitlines() if line.partition(" =")[0] not in given]
    if "method.rounds = 0" in more:
        ours = [line for line in ours if "student" not in line]
    return "\n".join([*ours, more])


def write_files(place: Path, config: str) -> None:
    """Eight labelled texts, sixty without labels, ten new ones."""
    place.mkdir(parents=True, exist_ok=True)
    rows = list(sentences(78))
    parts = {"labelled": rows[:8], "pool": rows[8:68], "new": rows[68:]}
    for name, part in parts.items():
        lines = [f"{text},{label}" if name == "labelled" else text for text, label in part]
        head = "text,label" if name == "labelled" else "text"
        (place / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n", "utf-8")
    (place / "quick.toml").write_text(config, "utf-8")


def sentences(count: int) -> Iterator[tuple[str, str]]:
    """Texts of four to nine words, good and bad by turns, with a few words of the other side."""
    for number in range(count):
        draw = Random(number)  # noqa: S311
        label, other = ("good", "bad")[:: 1 if number % 2 else -1]
        words = draw.choices(WORDS[label].split(), k=draw.randint(3, 7))
        words += draw.choices(WORDS[other].split(), k=draw.randint(0, 2))
        yield f"{' '.join(words)} {number}", label


def differences(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Which parts of a run are not what they were."""
    if len(was["rounds"]) != len(now["rounds"]):
        yield f"{name}: {len(was['rounds'])} rounds, now {len(now['rounds'])}"
    for number, (old, new) in enumerate(zip(was["rounds"], now["rounds"], strict=False)):
        for part in ("weights", "lesson", "votes"):
            if old[part] != new[part]:
                yield f"{name}, round {number}: {part}"
    if was["answers"] != now["answers"]:
        yield f"{name}: answers"


def main() -> None:
    """Compare with the committed digests, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write them instead")
    parser.add_argument("names", nargs="*", help="these runs only")
    given = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    committed = json.loads(COMMITTED.read_text("utf-8")) if COMMITTED.exists() else {}
    wrong: list[str] = []
    for name in given.names or KINDS:
        with tempfile.TemporaryDirectory(prefix="selftrain-") as place:
            now = digests_of(name, Path(place))
        if given.write:
            committed[name] = now
        else:
            wrong += differences(name, committed[name], now)
    if given.write:
        COMMITTED.write_text(json.dumps(committed, indent=1) + "\n", "utf-8")
    for line in wrong:
        print(line)
    print(f"{len(given.names or KINDS)} runs, {len(wrong)} differences")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
