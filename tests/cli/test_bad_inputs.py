"""What users get wrong: one line and a hint, exit code 1, and nothing half-written.

Every case is a command as it is typed, in a folder with good files of which some are spoilt.
"""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from filelock import FileLock

from command import config, csv, selftrain, sentences, snapshot, write_files
from small_disk import small_disk

FIT = "fit labelled.csv -u pool.csv -o run --config quick.toml --backbone {bert}"
PROMPT = FIT + " --method upet-prompt-adapter"
WORDED = PROMPT + ' --template "{{text}} It was {{mask}} ."'
DEMO = "demo --data labelled.csv --config quick.toml --backbone {bert}"


@dataclass(frozen=True)
class Case:
    """A command, what is spoilt before it is given, and what the error line must hold."""

    command: str
    said: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    config: str = ""
    """Lines added to the config file."""
    spoil: Callable[[Path], object] = lambda folder: None
    """Done to the folder, which then holds a finished run named `done`."""
    hint: str = ""


def labelled(*rows: tuple[str, str]) -> dict[str, str]:
    return {"labelled.csv": csv([*sentences(8), *rows], "text", "label")}


def pairs(*rows: tuple[str, str, str]) -> str:
    return csv(rows, "text", "pair", "label")


# ── data ─────────────────────────────────────────────────────────────────────────────────────

TWICE = [("one film", "good"), ("two films", "good"), ("a story", "bad"), ("no story", "bad")]
DATA = {
    "missing file": Case(FIT.replace("labelled.csv", "labeled.csv"), "labeled.csv does not exist"),
    "missing pool": Case(FIT.replace("pool.csv", "nowhere/pool.csv"), "does not exist"),
    "missing dev file": Case(FIT + " --dev deve.csv", "deve.csv", hint="did you mean dev.csv?"),
    "a folder for a file": Case(FIT.replace("labelled.csv", "."), "is a folder"),
    "an ending nobody reads": Case(
        FIT.replace("pool.csv", "pool.xlsx"), "ends in `.xlsx`", {"pool.xlsx": b"PK"}
    ),
    "missing text column": Case(FIT + " --text review", "no column `review`"),
    "misspelt label column": Case(FIT + " --label lable", "`lable`", hint="--label label"),
    "no label column": Case(FIT, "no label column", {"labelled.csv": csv([["a"]], "text")}),
    "two columns of one name": Case(FIT, "named `text`", {"pool.csv": "text,text\na,b\n"}),
    "unreadable encoding": Case(
        FIT, "is not UTF-8", {"pool.csv": "text\ncafé\n".encode("latin-1")}, hint="iconv"
    ),
    "ragged CSV": Case(FIT, "3 fields; the header has 2", labelled(("a, b", "good"))),
    "an open quote": Case(FIT, "not valid CSV", {"pool.csv": 'text\n"open\n'}),
    "no rows": Case(FIT, "has no rows", {"labelled.csv": "text,label\n"}),
    "an empty file": Case(FIT, "has no rows", {"pool.csv": ""}),
    "broken JSON": Case(
        FIT.replace("pool.csv", "pool.jsonl"),
        "line 2: not JSON",
        {"pool.jsonl": '{"text": "a"}\n{'},
    ),
    "half a gzip file": Case(
        FIT.replace("pool.csv", "pool.csv.gz"),
        "not a whole gzip file",
        {"pool.csv.gz": b"\x1f\x8b"},
    ),
    "no Parquet": Case(
        FIT.replace("pool.csv", "pool.parquet"), "cannot be read as Parquet", {"pool.parquet": "a"}
    ),
    "empty labelled text": Case(FIT, "the text is empty", labelled((" ", "good"))),
    "NaN label": Case(FIT, "the label is NaN", labelled(("a film", "nan"))),
    "empty label": Case(FIT, "the label is empty", labelled(("a film", ""))),
    "one class": Case(
        FIT,
        "one class: `good`",
        {"labelled.csv": csv([("a", "good"), ("b", "good")], "text", "label")},
    ),
    "one example of a class": Case(
        FIT, "`odd` has 1 labelled example", labelled(("a film", "odd")), hint="`odd`"
    ),
    "one shot": Case(FIT + " --shots 1", "has 1 labelled example"),
    "no shots": Case(FIT + " --shots 0", "is 0; expected at least 1"),
    "one text, two labels": Case(
        FIT, "has two labels: `good` and `bad`", labelled(("a film", "good"), ("a film", "bad"))
    ),
    "one id, two rows": Case(
        FIT,
        "4 rows have the id `7`",
        {"labelled.csv": csv([("7", *row) for row in TWICE], "id", "text", "label")},
    ),
    "unseen dev label": Case(
        FIT + " --dev dev.csv",
        "label `god` in dev was never seen",
        {"dev.csv": csv([("a film", "god")], "text", "label")},
        hint="did you mean `good`?",
    ),
    "unseen test label": Case(
        FIT + " --test test.csv",
        "label `odd` in test was never seen",
        {"test.csv": csv([("a film", "odd")], "text", "label")},
    ),
    "dev rows all labelled": Case(FIT + " --dev labelled.csv", "every dev row is also"),
    "an empty pool": Case(
        FIT,
        "the pool is empty",
        {"pool.csv": csv([(text,) for text, _ in sentences(8)], "text")},
    ),
    "pairs to test single texts": Case(
        FIT + " --test test.csv", "some rows are pairs", {"test.csv": pairs(("a", "b", "good"))}
    ),
    "pairs beside single texts": Case(
        FIT,
        "some rows are pairs",
        {"labelled.csv": pairs(*((text, "b", label) for text, label in TWICE))},
    ),
}

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
        FIT, "the loss is", config="method.teacher.learning_rate = 1e37", hint="try a lower rate"
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
    "seeds": Case(DEMO + " --seeds 1,two", "--seeds is '1,two'", hint="--seeds 12"),
    "a demo nobody has": Case(DEMO + " --cut songs", "no demo `songs`"),
}

# ── run folders ──────────────────────────────────────────────────────────────────────────────


def manifest(**changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        path = folder / "done" / "manifest.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def overwrite(name: str, text: str = "spoilt") -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def without(name: str) -> Callable[[Path], object]:
    return lambda folder: shutil.rmtree(folder / "done" / name)


AGAIN = FIT.replace("-o run", "-o done")
PREDICT = "predict done test.csv --backbone {bert}"
EVALUATE = "evaluate done test.csv --backbone {bert}"
RUNS = {
    "a folder of someone else's": Case(FIT.replace("-o run", "-o ."), "neither empty nor a run"),
    "a file in the way": Case(FIT.replace("-o run", "-o pool.csv"), "pool.csv is a file"),
    "another seed": Case(AGAIN + " --seed 5", "another configuration: seed was 12", hint="-o NEW"),
    "other rows": Case(AGAIN, "another configuration: data.labelled", labelled(("film", "good"))),
    "a newer run": Case(AGAIN, "has format 99", spoil=manifest(format=99), hint="pip install"),
    "a newer run, read": Case(PREDICT, "has format 99", spoil=manifest(format=99)),
    "a foreign manifest": Case(
        PREDICT, "was not written by selftrain", spoil=overwrite("done/manifest.json", "{}")
    ),
    "a damaged manifest": Case(PREDICT, "is not JSON", spoil=overwrite("done/manifest.json")),
    "a damaged manifest, fit": Case(AGAIN, "is not JSON", spoil=overwrite("done/manifest.json")),
    "an entry of another kind": Case(PREDICT, "is damaged: `seed`", spoil=manifest(seed="x")),
    "a damaged round": Case(EVALUATE, "is damaged", spoil=overwrite("done/rounds/1/round.json")),
    "a damaged model": Case(
        EVALUATE, "sha256 differs", spoil=overwrite("done/rounds/1/model.safetensors")
    ),
    "a damaged lesson": Case(
        AGAIN, "sha256 differs", spoil=overwrite("done/rounds/1/lesson.parquet")
    ),
    "a missing round": Case(EVALUATE, "round 0 is not", spoil=without("rounds/0")),
    "no round yet": Case(PREDICT, "no whole round yet", spoil=without("rounds")),
    "no run": Case(PREDICT.replace("done", "nowhere"), "is not a run folder"),
    "a backbone that only the run names": Case(
        "predict done test.csv", "is not embedded", hint="--backbone "
    ),
    "answers of an unknown kind": Case(PREDICT + " -o answers.txt", "ends in `.txt`"),
    "answers without a folder": Case(PREDICT + " -o no/where.csv", "cannot write"),
    "no passes": Case(PREDICT + " --passes 0", "--passes is 0"),
    "answers to two places": Case(
        PREDICT + " --json -o answers.csv", "--json prints", hint="-o answers.jsonl"
    ),
    "pairs for single texts": Case(
        PREDICT, "trained on single texts", {"test.csv": pairs(("a", "b", "good"))}
    ),
    "a label the run has never seen": Case(
        EVALUATE,
        "label `odd` is in the test rows",
        {"test.csv": csv([("film", "odd")], "text", "label")},
    ),
    "unlabelled test rows": Case(EVALUATE.replace("test.csv", "pool.csv"), "no label column"),
}

CASES = {**DATA, **PROMPTS, **METHODS, **RUNS}


@pytest.fixture(scope="module")
def bert(tiny_folder: Callable[[str], Path]) -> Path:
    return tiny_folder("bert")


@pytest.fixture(scope="module")
def done(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("finished")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        assert selftrain(FIT.format(bert=bert)).code == 0
    return folder / "run"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line_and_a_hint_and_leaves_nothing_behind(
    name: str, folder: Path, bert: Path, request: pytest.FixtureRequest
) -> None:
    case = CASES[name]
    for file, content in case.files.items():
        (folder / file).write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "quick.toml").write_text(config(case.config), encoding="utf-8")
    if "done" in case.command:
        shutil.copytree(request.getfixturevalue("done"), folder / "done")
        case.spoil(folder)
    before = snapshot(folder)

    said = selftrain(case.command.format(bert=bert))

    errors = [line for line in said.lines if line.startswith("error: ")]
    hints = [line for line in said.lines if line.startswith("hint: ")]
    assert said.code == 1, said.err
    assert len(errors) == len(hints) == 1, said.err
    assert case.said in errors[0]
    assert case.hint in hints[0]
    assert "Traceback" not in said.err
    assert said.out == "" or case.command.startswith("check")
    assert snapshot(folder) == before


def test_the_table_is_as_long_as_we_say() -> None:
    assert len(CASES) >= 40


def test_a_run_that_another_process_writes_is_left_alone(folder: Path, bert: Path) -> None:
    (folder / "run").mkdir()
    with FileLock(folder / "run" / ".lock").acquire():
        before = snapshot(folder)
        said = selftrain(FIT.format(bert=bert))
        assert said.code == 1
        assert "error: run is being written by another process" in said.lines
        assert snapshot(folder) == before


# ── a full disk ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "step", ["selftrain.runs.write._write_json", "selftrain.runs.write.write_lesson"]
)
def test_a_disk_full_at_the_manifest_or_at_the_first_round_leaves_no_run(
    step: str, folder: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(step, full)
    before = snapshot(folder)
    said = selftrain(FIT.format(bert=bert).replace("-o run", "-o runs/first"))
    assert said.code == 1
    assert "No space left on device" in said.lines[-2]
    assert "df -h" in said.lines[-1]
    assert snapshot(folder) == before


def test_a_really_full_disk_is_one_line_and_a_hint(folder: Path, bert: Path) -> None:
    (folder / "disk").mkdir()
    forks = multiprocessing.get_context("forkserver")
    process = forks.Process(target=fit_on_a_full_disk, args=(folder, bert))
    process.start()
    process.join()
    assert process.exitcode == 0


def fit_on_a_full_disk(folder: Path, bert: Path) -> None:
    """In a process that can be thrown away, and the disk with it."""
    fill_up = small_disk(folder / "disk")
    os.chdir(folder)
    fill_up()
    said = selftrain(FIT.format(bert=bert).replace("-o run", "-o disk/run"))
    assert said.code == 1, said.err
    assert [line.partition(":")[0] for line in said.lines] == ["error", "hint"], said.err
    assert not (folder / "disk" / "run").exists()


# ── what is put right, and said ──────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Note:
    """A command that works, what is odd about its files, and the warning that says so."""

    said: str
    files: Mapping[str, str] = field(default_factory=dict)
    flags: str = ""
    config: str = ""


def pool(*texts: str) -> dict[str, str]:
    return {
        "pool.csv": csv([(text,) for text, _ in sentences(30, first=100)] + [*zip(texts)], "text")
    }


LONG = "film " * 100
NUMBERS = {"good": "1", "bad": "0"}
NOTES = {
    "text cut": Note(
        "texts cut to the model's length, 64 tokens: 2 of 40 seen",
        {**labelled((LONG + "a", "good")), **pool(LONG + "b")},
        config="method.pool = 1000",
    ),
    "pool smaller than asked": Note(
        "pool smaller than asked: 30 texts, a round draws 1000; all are taken",
        config="method.pool = 1000",
    ),
    "pool smaller than N_r": Note(
        "pool smaller than asked: N_r is 200, half of the pool is 12",
        config="method.select.count = 200",
    ),
    "empty pool rows": Note("empty pool rows dropped: 2", pool('" "', '""')),
    "duplicate pool rows": Note("duplicate pool rows dropped: 1", pool("a film", "a film")),
    "labelled text in the pool": Note(
        "labelled or dev texts inside the pool removed: 1", pool(sentences(1)[0][0].upper())
    ),
    "test text in the pool": Note(
        "test texts inside the pool removed: 1",
        pool(sentences(1, first=300)[0][0]),
        flags="--test test.csv",
    ),
    "labelled text in the test rows": Note(
        "test rows that are also in the training data: the score is too optimistic: 1",
        {"test.csv": csv([*sentences(1), *sentences(4, first=300)], "text", "label")},
        flags="--test test.csv",
    ),
    "label column in the pool": Note(
        "label column `label` in the pool ignored: 1",
        {"pool.csv": csv(sentences(30, first=100), "text", "label")},
    ),
    "numeric labels": Note(
        "numeric labels kept as strings: 8",
        {"labelled.csv": csv([(t, NUMBERS[label]) for t, label in sentences(8)], "text", "label")},
    ),
    "blanks around labels": Note(
        "labels with blanks around them trimmed: 1", labelled(("a film", " good "))
    ),
    "a rare class": Note(
        "class `bad` has fewer than 5 rows: all taken: 4",
        labelled(("a film", "good"), ("b film", "good")),
        flags="--shots 5",
    ),
    "no dropout of its own": Note(
        "has no dropout of its own, and certainty needs some: 0.1 is set",
        flags="--backbone {modernbert}",
    ),
}


@pytest.mark.parametrize("name", NOTES)
def test_what_is_put_right_is_counted_and_said(
    name: str, folder: Path, tiny_folder: Callable[[str], Path]
) -> None:
    note = NOTES[name]
    for file, content in note.files.items():
        (folder / file).write_text(content, encoding="utf-8")
    (folder / "quick.toml").write_text(config(note.config), encoding="utf-8")
    places = {"bert": tiny_folder("bert"), "modernbert": tiny_folder("modernbert")}

    said = selftrain(f"{FIT} {note.flags}".format(**places))

    assert said.code == 0, said.err
    warnings = [line for line in said.lines if line.startswith("warning: ")]
    assert [line for line in warnings if note.said in line], said.err
    assert warnings == said.lines[: len(warnings)], "what is odd is said before anything is done"
    assert "warning" not in said.out


def test_predict_answers_every_row_and_says_what_is_odd(
    folder: Path, done: Path, bert: Path
) -> None:
    (folder / "new.csv").write_text(csv([(LONG,), ('""',), ("a film",)], "text"), "utf-8")
    said = selftrain(f"predict {done} new.csv --backbone {bert} -o answers.csv")
    assert said.code == 0
    assert "warning: empty texts answered like any other: 1" in said.lines
    assert "warning: texts cut to the model's length, 64 tokens: 1 of 3 seen" in said.lines
    assert len((folder / "answers.csv").read_text().splitlines()) == 4
