"""Prompts and methods that cannot be: one line and a hint, exit code 1, nothing half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from bad_input import Case, check_refused
from command import FIT

PROMPT = FIT + " --method upet-prompt-adapter"
WORDED = PROMPT + ' --template "{{text}} It was {{mask}} ."'
DEMO = "demo --data labelled.csv --config quick.toml --backbone {bert}"

# ── templates and label words ────────────────────────────────────────────────────────────────

GREAT = " --word good=great"
PROMPTS = {
    "unknown label word": Case(WORDED + GREAT + " --word bad=Ω", "is unknown to"),
    "long label word": Case(WORDED + GREAT + " --word bad=unsatisfying", "tokens for"),
    "shared label word": Case(WORDED + GREAT + " --word bad=Great", "is the same token as"),
    "class without a word": Case(WORDED + GREAT, "class `bad` has no label word"),
    "word without a class": Case(
        WORDED + GREAT + " --word bad=no --word odd=yes", "`odd`, which is no class"
    ),
    "word without a label": Case(WORDED + " --word great", "expected LABEL=WORD"),
    "no template": Case(PROMPT + GREAT + " --word bad=terrible", "has no template"),
    "template without mask": Case(PROMPT + ' --template "{{text}} fine"', "has 0 {mask}"),
    "template with two masks": Case(
        PROMPT + ' --template "{{text}} {{mask}} {{mask}}"', "has 2 {mask}"
    ),
    "no MLM head": Case(
        WORDED.replace("{bert}", "minilm") + GREAT + " --word bad=terrible",
        "`minilm` has no pretrained MLM head",
        hint="--backbone minilm-mlm",
    ),
    "unknown task": Case(FIT + " --task sst3", "task `sst3` is neither known nor a file"),
    "a number for a task": Case(
        FIT, "task `5` is neither known nor a file", config="task.name = 5"
    ),
    "task of other labels": Case(FIT + " --task sst2", "is no class of task `sst2`"),
    "nothing to check": Case("check", "there is nothing to check"),
    "check of a long word": Case(
        'check --backbone {bert} --template "{{text}} {{mask}}" --word a=great --word b=dullness',
        "label word `dullness`",
    ),
}

# ── methods ──────────────────────────────────────────────────────────────────────────────────

METHODS = {
    "alpha": Case(FIT, "alpha is 2.0", config="method.select.score.alpha = 2"),
    "tau": Case(FIT, "tau is 1.0", config="method.student.loss.tau = 1", hint="tau = 10"),
    "T": Case(FIT, "T (passes) is 0", config="method.passes = 0"),
    "an infinite tau": Case(FIT, "tau is inf", config="method.student.loss.tau = inf"),
    "lambda": Case(FIT, "lambda", config="method.student.contrast.weight = -1"),
    "an infinite lambda": Case(FIT, "is inf", config="method.student.contrast.weight = inf"),
    "a rate that is no number": Case(
        FIT, "rate is nan", config="method.teacher.learning_rate = nan"
    ),
    "a teacher that breaks": Case(
        FIT,
        "the loss is",
        config="method.teacher.learning_rate = 1e37",
        hint="try a lower learning_rate",
    ),
    "temperature": Case(FIT, "temperature", config="method.student.contrast.temperature = 0"),
    "N_n": Case(FIT, "N_n", config="method.student.contrast.negatives = 0"),
    "N_r": Case(FIT, "N_r (count) is 0", config="method.select.count = 0"),
    "share of the pool": Case(FIT, "shares is 1.5", config="method.select.shares = [1.5]"),
    "pool of one": Case(FIT, "pool is 1", config="method.pool = 1"),
    "rounds": Case(FIT + " --rounds -1", "rounds is -1"),
    "steps and epochs": Case(FIT, "exactly one of them", config="method.teacher.epochs = 2"),
    "dropout of 1": Case(FIT, "dropout is 1.0", config="method.teacher.dropout = 1"),
    "no dropout for the certainty": Case(
        FIT, "has no dropout", config="method.teacher.dropout = 0", hint="0.1"
    ),
    "no dropout from round 2 on": Case(
        FIT + " --rounds 2", "has no dropout", config="method.student.dropout = 0"
    ),
    "a number that is a word": Case(FIT, "method: `rounds`", config='method.rounds = "three"'),
    "misspelt method entry": Case(FIT, "`tempo` is no entry", config="method.tempo = 1"),
    "unknown method": Case(FIT + " --method upet", "no method `upet`", hint="upet-head-adapter"),
    "unknown preset": Case(FIT + " --preset desktop", "no preset `desktop`", hint="laptop"),
    "unknown preset, listing": Case("methods --preset desktop", "no preset `desktop`"),
    "missing backbone": Case(FIT.replace("{bert}", "./nowhere"), "`./nowhere` does not exist"),
    "a folder without a model": Case(FIT.replace("{bert}", "."), "has no config.json"),
    "unknown config entry": Case(FIT, "unknown entry `sed`", config="sed = 1", hint="`seed`"),
    "config entry of another kind": Case(FIT, "`seed` is 'x'", config='seed = "x"'),
    "unknown column in the config": Case(FIT, "unknown entry `txt`", config='columns.txt = "a"'),
    "damaged TOML": Case(FIT, "is not TOML", config="seed = "),
    "missing config": Case(FIT.replace("quick.toml", "slow.toml"), "cannot read slow.toml"),
    "unknown device": Case(FIT + " --device tpu", "device is 'tpu'", hint="--device cpu"),
    "no threads": Case(FIT + " --threads 0", "threads is 0", hint="--threads"),
    "less than no cache": Case(FIT + " --cache-mb -1", "cache_mb is -1", hint="--cache-mb"),
    "a step in no part": Case(FIT + " --accumulate 0", "accumulate is 0", hint="--accumulate 4"),
    "seeds": Case(DEMO + " --seeds 1,two", "--seeds is '1,two'", hint="--seeds 12"),
    "a demo nobody has": Case(DEMO + " --cut songs", "no demo `songs`"),
}

CASES = {**PROMPTS, **METHODS}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_method_is_one_line_and_a_hint_and_leaves_nothing_behind(
    name: str, folder: Path, bert: Path, done: Path
) -> None:
    check_refused(CASES[name], folder, bert, done)


def test_the_table_is_as_long_as_we_say() -> None:
    assert len(CASES) >= 40
