"""Settings, backbones and runs that cannot be: one line, a hint, no trace, and soon."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from command import FIT, config, selftrain
from damage import swapped
from selftrain.disk import sha256

Make = Callable[[Path], object]


@dataclass(frozen=True)
class Bad:
    """How a bad input is made, the command that meets it, and what must be said."""

    words: str
    command: str = FIT
    make: Make = lambda folder: None
    """In a folder with the files of a user, a backbone `encoder` and a finished run `done`."""
    config: str = ""


# ── entries of a method ──────────────────────────────────────────────────────────────────────

HUGE = 10**9


def tuned(words: str, **entries: Any) -> Bad:
    """A student with a tuning that cannot be built."""
    lines = [f"method.student.tuning.{name} = {value!r}" for name, value in entries.items()]
    return Bad(words, config="\n".join(lines).replace("'", '"'))


def entry(words: str, line: str) -> Bad:
    return Bad(words, config=f"method.{line}")


METHODS = {
    "an adapter of width 10^9": tuned("adapter width is 1000000000", width=HUGE),
    "an adapter of width 0": tuned("adapter width is 0", width=0),
    "a prefix of length 10^9": tuned("prefix length is", kind="prefix", length=HUGE),
    "a prefix of length -1": tuned("prefix length is -1", kind="prefix", length=-1),
    "p-tuning of length 10^9": tuned("ptuning length is", kind="ptuning", length=HUGE),
    "a rank of 10^9": tuned("lora rank is 1000000000", kind="lora", rank=HUGE),
    "a rank of 0": tuned("lora rank is 0", kind="lora", rank=0),
    "no layers": tuned("layers is 0", layers=0),
    "more layers than there are": tuned("layers", layers=99),
    "a tuning nobody knows": tuned("tuning", kind="magic"),
    "a dropout above 1 on a prefix": tuned("prefix dropout", kind="prefix", dropout=1.5),
    "a batch of 10^9": entry("batch_size is 1000000000", f"teacher.batch_size = {HUGE}"),
    "a batch of 0": entry("batch_size is 0", "student.batch_size = 0"),
    "10^9 rounds": entry("rounds is 1000000000", f"rounds = {HUGE}"),
    "no steps": entry("steps or epochs is 0", "teacher.steps = 0"),
    "half a step": entry("steps", "teacher.steps = 1.5"),
    "a share of gold above 1": entry("gold_share is 2.0", "student.gold_share = 2"),
    "a rate of 0": entry("learning_rate is 0.0", "teacher.learning_rate = 0"),
    "a rate below 0": entry("learning_rate is -1.0", "teacher.learning_rate = -1"),
    "a rate without end": entry("learning_rate is inf", "teacher.learning_rate = inf"),
    "a decay below 0": entry("weight_decay", "teacher.weight_decay = -1"),
    "a norm of 0": entry("max_grad_norm", "teacher.max_grad_norm = 0"),
    "a warm-up above 1": entry("warmup", "teacher.warmup = 2"),
    "an interpolation of 0": entry("interpolation", "teacher.interpolation = 0"),
    "dropout below 0": entry("dropout is -0.5", "teacher.dropout = -0.5"),
    "converged at 1": entry("converged is 1.0", "converged = 1"),
    "a pool of -5": entry("pool is -5", "pool = -5"),
    "a pool of words": entry("pool", 'pool = "some"'),
    "-1 passes": entry("T (passes) is -1", "passes = -1"),
    "a score nobody knows": entry("score", 'select.score.kind = "magic"'),
    "no share at all": entry("shares", "select.shares = []"),
    "a share of 0": entry("shares", "select.shares = [0]"),
    "a share that is no number": entry("shares", "select.shares = [nan]"),
    "a loss nobody knows": entry("loss", 'student.loss.kind = "magic"'),
    "a reader nobody knows": entry("reader", 'teacher.reader = "eyes"'),
    "a guard nobody knows": entry("guard", 'guard = "dog"'),
    "dropout in no layer": entry("dropout_layers", "dropout_layers = 0"),
    "a list for a number": entry("passes", "passes = [1]"),
    "a table for a number": entry("passes", "passes = {a = 1}"),
    "a number for a table": entry("tapt", "tapt = 5"),
    "TAPT without a share": entry("share (tapt)", "tapt.share = 0"),
    "TAPT of 0 steps": entry("steps (tapt)", "tapt.steps = 0"),
    "TAPT in a batch of 10^9": entry("batch_size (tapt)", f"tapt.batch_size = {HUGE}"),
    "TAPT under a head without words": entry("tapt", "tapt = true"),
    "no probe rounds": entry("rounds (probe)", "probe.rounds = 0"),
    "a list for the selection of probe rounds": entry("probe", "probe.select = [1]"),
    "a penalty of 0": entry("penalty", "probe.penalty = 0"),
}

# ── options and the config file ──────────────────────────────────────────────────────────────

OPTIONS = {
    "100,000 threads": Bad("threads is 100000", FIT + " --threads 100000"),
    "-1 threads": Bad("threads is -1", FIT + " --threads -1"),
    "threads in the config": Bad("threads is 100000", config="threads = 100000"),
    "threads for predict": Bad("threads is 5000", "predict done test.csv --threads 5000 {b}"),
    "threads for evaluate": Bad("threads is 0", "evaluate done test.csv --threads 0 {b}"),
    "a device for predict": Bad("device is 'tpu'", "predict done test.csv --device tpu {b}"),
    "half a thread": Bad("`threads` is 1.5", config="threads = 1.5"),
    "a truth value for a seed": Bad("`seed` is True", config="seed = true"),
    "a list of seeds": Bad("`seed` is [1]", config="seed = [1]"),
    "a number for a backbone": Bad("`backbone` is 5", config="backbone = 5"),
    "text for the columns": Bad("`columns` is 'text'", config='columns = "text"'),
    "a revision of a folder": Bad("revision `main` is for", config='revision = "main"'),
    "a task without a name": Bad("task `` is neither", config='task.name = ""'),
    "no template at all": Bad("template", config="task.template = 5"),
    "words that are a list": Bad("words", config='task.words = ["a"]'),
    "an entry no task has": Bad("unknown entry `wrds`", config="task.wrds = 1"),
    "a length of 3 tokens": Bad("max_length is 3", config="task.max_length = 3"),
    "no class": Bad("class", config="task.labels = []"),
    "one class twice": Bad("labels", config='task.labels = ["good", "good"]'),
    "an abstention above 1": Bad("--abstain is 2.0", "predict done test.csv --abstain 2 {b}"),
    "an abstention of nan": Bad("--abstain is nan", "predict done test.csv --abstain nan {b}"),
    "a round that is not there": Bad("no round 9", "predict done test.csv --round 9 {b}"),
    "a round below 0": Bad("no round -1", "evaluate done test.csv --round -1 {b}"),
}

# ── backbones ────────────────────────────────────────────────────────────────────────────────

ENCODER = FIT.replace("{bert}", "encoder")


def backbone(words: str, make: Make) -> Bad:
    return Bad(words, ENCODER, make)


def configured(words: str, **entries: Any) -> Bad:
    """A checkpoint whose config says something else."""

    def change(folder: Path) -> None:
        path = folder / "encoder" / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return backbone(words, change)


def written(name: str, content: str | bytes) -> Make:
    def write(folder: Path) -> None:
        raw = content.encode() if isinstance(content, str) else content
        (folder / "encoder" / name).write_bytes(raw)

    return write


def weighed(change: Callable[[torch.Tensor], torch.Tensor], name: str = "query.weight") -> Make:
    """A checkpoint with other numbers in one tensor."""

    def write(folder: Path) -> None:
        path = folder / "encoder" / "model.safetensors"
        state = load_file(path)
        key = next(key for key in state if name in key)
        save_file({**state, key: change(state[key])}, path, {"format": "pt"})

    return write


def cut_short(folder: Path) -> None:
    path = folder / "encoder" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:5000])


def no_tokenizer(folder: Path) -> None:
    for path in (folder / "encoder").glob("*token*"):
        path.unlink()


BACKBONES = {
    "a million layers": configured("num_hidden_layers is 1000000", num_hidden_layers=10**6),
    "no layers": configured("num_hidden_layers is 0", num_hidden_layers=0),
    "half a layer": configured("num_hidden_layers is 1.5", num_hidden_layers=1.5),
    "one layer more than there is": configured("tensors are missing", num_hidden_layers=4),
    "no heads": configured("num_attention_heads is 0", num_attention_heads=0),
    "heads below 0": configured("num_attention_heads is -1", num_attention_heads=-1),
    "a width of 10^9": configured("cannot be loaded", hidden_size=HUGE),
    "a billion words": configured("cannot be loaded", vocab_size=HUGE),
    "a billion places": configured("cannot be loaded", max_position_embeddings=HUGE),
    "a billion labels": configured("num_labels is 1000000000", num_labels=HUGE),
    "labels that are a number": configured("cannot be loaded", id2label=5),
    "a padding beyond the words": configured("cannot be loaded", pad_token_id=99_999),
    "a size that is a word": configured("cannot be loaded", hidden_size="wide"),
    "an activation nobody knows": configured("cannot be loaded", hidden_act="evil"),
    "dropout of 7": configured("cannot be loaded", hidden_dropout_prob=7.0),
    "a family nobody knows": configured("cannot be loaded", model_type="magic"),
    "a family of another kind": configured("family `gpt2`", model_type="gpt2"),
    "weights of another name": configured("no plain checkpoint", transformers_weights="x"),
    "a config that is a list": backbone("is no table", written("config.json", "[]")),
    "a config that is not JSON": backbone("cannot be loaded", written("config.json", "{")),
    "a config without end": backbone("cannot be loaded", written("config.json", "[" * 10**5)),
    "NaN weights": backbone("no numbers", weighed(lambda t: t * float("nan"))),
    "infinite weights": backbone("no numbers", weighed(lambda t: t.fill_(float("inf")))),
    "weights of another shape": backbone("cannot be loaded", weighed(lambda t: t[:5].clone())),
    "weights that give no number": backbone(
        "with no number", weighed(lambda t: t.fill_(3e38), "word_embeddings.weight")
    ),
    "half a file of weights": backbone("cannot be loaded", cut_short),
    "no weights": backbone(
        "no model.safetensors", lambda folder: (folder / "encoder/model.safetensors").unlink()
    ),
    "no tokenizer": backbone("no tokenizer", no_tokenizer),
    "a tokenizer that is none": backbone("tokenizer", written("tokenizer.json", "{}")),
    "an add-on that is none": backbone("add-on", written("addon.safetensors", "none")),
    "a name too long for a folder": Bad("backbone", FIT.replace("{bert}", "/" + "x" * 5000)),
    "a name with a NUL": Bad("backbone", config='backbone = "a\\u0000b"', command=FIT[:-18]),
    "an empty name": Bad("backbone", FIT.replace("{bert}", "./none")),
}

# ── finished runs in a stranger's hands ──────────────────────────────────────────────────────

PREDICT, EVALUATE = "predict done test.csv {b}", "evaluate done test.csv {b}"
AGAIN = FIT.replace("-o run", "-o done") + " --rounds 2"


def forged(scale: float) -> Make:
    """The final model with other numbers, all of them finite, and a record that fits them."""

    def forge(folder: Path) -> None:
        place = folder / "done" / "rounds" / "1"
        path = place / "model.safetensors"
        save_file({k: torch.full_like(t, scale) for k, t in load_file(path).items()}, path)
        record = json.loads((place / "round.json").read_text())
        record["files"]["model.safetensors"] = sha256(path)
        (place / "round.json").write_text(json.dumps(record))

    return forge


def changed(name: str, **entries: Any) -> Make:
    def change(folder: Path) -> None:
        path = folder / "done" / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return change


def card(folder: Path) -> None:
    """A card of another kind, and a record that fits it."""
    place = folder / "done" / "rounds" / "1"
    record = json.loads((place / "round.json").read_text())
    record["files"]["model.json"] = swapped(place / "model.json", b'{"format": 2}')
    (place / "round.json").write_text(json.dumps(record))


RUNS = {
    "forged weights, predict": Bad("with no number", PREDICT, forged(3e38)),
    "forged weights, evaluate": Bad("with no number", EVALUATE, forged(3e38)),
    "forged weights, resumed": Bad("with no number", AGAIN, forged(3e38)),
    "forged weights, JSON": Bad("with no number", PREDICT + " --json", forged(3e38)),
    "a method without rounds": Bad("no rounds", PREDICT, changed("manifest.json", method={})),
    "rounds that are words": Bad(
        "no rounds", PREDICT, changed("manifest.json", method={"rounds": "two"})
    ),
    "a card that is none": Bad("is no model card", PREDICT, card),
    "a refused round 0": Bad(
        "refuses round 0", PREDICT, changed("rounds/0/round.json", accepted=False)
    ),
    "a round of another number": Bad("round 7", PREDICT, changed("rounds/1/round.json", number=7)),
    "an encoder of a later round": Bad(
        "the encoder of", PREDICT, changed("rounds/1/round.json", encoder_of=5)
    ),
    "an encoder of no round": Bad(
        "damaged", PREDICT, changed("rounds/1/round.json", encoder_of="one")
    ),
    "files that do not belong": Bad(
        "lists the files", PREDICT, changed("rounds/1/round.json", files={})
    ),
    "a number without end": Bad(
        "damaged", PREDICT, changed("rounds/1/round.json", numbers={"loss": float("inf")})
    ),
    "a format that is a word": Bad("format", PREDICT, changed("manifest.json", format="two")),
}

CASES = {
    f"{room}: {name}": bad
    for room, table in {
        "method": METHODS, "option": OPTIONS, "backbone": BACKBONES, "run": RUNS
    }.items()
    for name, bad in table.items()
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_bad_setting_is_one_line_and_a_hint_and_no_trace(
    name: str, folder: Path, bert: Path, done: Path
) -> None:
    bad = CASES[name]
    if "encoder" in bad.command:
        shutil.copytree(bert, folder / "encoder")
    if "done" in bad.command:
        shutil.copytree(done, folder / "done")
    (folder / "quick.toml").write_text(config(bad.config), "utf-8")
    bad.make(folder)

    said = selftrain(bad.command.format(bert=bert, b=f"--backbone {bert}"))

    errors = [line for line in said.lines if line.startswith("error: ")]
    hints = [line for line in said.lines if line.startswith("hint: ")]
    assert said.code == 1, said.err
    assert len(errors) == len(hints) == 1, said.err
    assert bad.words in errors[0]
    assert len(errors[0]) < 1000
    assert "Traceback" not in said.err
    assert not (folder / "run").exists()


def test_the_table_is_as_long_as_we_say() -> None:
    assert len(CASES) >= 100
