"""The command line: what it prints where, its exit codes, and what it costs."""

from __future__ import annotations

import csv
import errno
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import command
from command import selftrain, write_files
from selftrain.cli.config import Config
from selftrain.cli.inputs import Files, seeds_of, words_of
from selftrain.cli.talk import json_of, show, talk
from selftrain.data.rows import Notes
from selftrain.errors import ConfigError
from selftrain.escape import printable
from selftrain.runs import train as experiment

FIT = "fit labelled.csv -u pool.csv -o run --config quick.toml --backbone {bert}"
PREDICT = "predict run test.csv --backbone"
EVALUATE = "evaluate run test.csv --backbone"


@pytest.fixture(scope="module")
def bert(tiny_folder: Callable[[str], Path]) -> Path:
    return tiny_folder("bert")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run in it."""
    folder = tmp_path_factory.mktemp("life")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert said.code == 0, said.err
    return folder


@pytest.fixture
def life(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in."""
    copy = tmp_path / "life"
    shutil.copytree(finished, copy)
    monkeypatch.chdir(copy)
    return copy


# ── before anything heavy is loaded ──────────────────────────────────────────────────────────

HEAVY = ("torch", "transformers", "numpy", "sklearn", "accelerate", "pyarrow")
LIGHT = f"""\
import sys
from selftrain.cli import main

for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as ended:
        heavy = [name for name in {HEAVY} if name in sys.modules]
        print("code", ended.code, heavy, file=sys.stderr)
"""


def test_help_and_bad_paths_columns_and_folders_load_nothing_heavy(folder: Path) -> None:
    lines = {
        "--help": 0,
        "fit --help": 0,
        "--version": 0,
        "fit nowhere.csv -u pool.csv -o run": 1,
        "fit labelled.csv -u pool.csv -o run --text review": 1,
        "fit labelled.csv -u pool.csv -o .": 1,
        "fit labelled.csv -u nowhere.csv -o run": 1,
        "fit labelled.csv -u labelled.csv -o run --label topic": 1,
        "predict nowhere test.csv": 1,
        "evaluate nowhere test.csv": 1,
        "bench nowhere -o grid": 1,
        "bench . -o grid --task sst2": 1,
        "sweep . -o search --tasks agnews": 1,
    }
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, *lines], capture_output=True, text=True, check=True
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("code")]
    assert said == [f"code {code} []" for code in lines.values()], done.stderr


# ── words and exit codes ─────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_one_line_and_a_hint() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "selftrain", "methods"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line] == [
        "error: cannot write: No space left on device",
        "hint: make room, then give the command again",
    ]


def test_a_reader_that_has_enough_ends_a_command_without_a_word() -> None:
    ours = f"{shlex.quote(sys.executable)} -m selftrain"
    line = f"{{ {ours} --help; echo code $? >&2; }} | :"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.stderr == "code 1\n"


def test_a_pipe_is_written_in_utf8_whatever_the_locale_says() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-m", "selftrain", "methods"],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        ).stdout.decode("utf-8")
        for encoding in ("latin-1", "utf-8")
    ]
    assert told[0] == told[1]
    assert "\u2502" in told[0]


def test_version_is_that_of_the_package() -> None:
    assert selftrain("--version") == (0, f"{version('selftrain')}\n", "")


def test_without_a_command_the_help_page_is_printed() -> None:
    said = selftrain("")
    assert (said.code, said.err) == (0, "")
    assert said.out == selftrain("--help").out
    for name in ("demo", "fit", "predict", "evaluate", "methods", "check", "doctor"):
        assert name in said.out


@pytest.mark.parametrize(
    ("line", "problem", "hint"),
    [
        ("learn", "No such command 'learn'", "selftrain --help"),
        ("fit", "Missing argument", "selftrain fit --help"),
        ("fit a.csv -o run", "Missing option '--unlabelled'", "selftrain fit --help"),
        ("methods --jsn", "No such option", "selftrain methods --help"),
        ("fit a.csv -u b.csv -o run --rounds two", "Invalid value", "selftrain fit --help"),
    ],
)
def test_a_command_that_cannot_be_read_is_exit_code_2_and_a_hint(
    line: str, problem: str, hint: str
) -> None:
    said = selftrain(line)
    assert (said.code, said.out) == (2, "")
    assert said.lines[0].startswith(f"error: {problem}")
    assert said.lines[-1] == f"hint: {hint}"


def test_a_bug_of_ours_shows_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, str]:
        raise ZeroDivisionError

    monkeypatch.setattr("selftrain.cli.doctor.facts", broken)
    with pytest.raises(ZeroDivisionError):
        command.main(["doctor"])


class Gone(StringIO):
    """A pipe whose reader has seen enough: `selftrain … | head`."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_reader_who_has_seen_enough_ends_the_command_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(SystemExit):
        command.main(["methods", "--json"])
    assert capsys.readouterr().err == ""


# ── a whole life: fit, evaluate, predict ─────────────────────────────────────────────────────


def test_fit_says_a_line_a_round_and_prints_nothing(folder: Path, bert: Path) -> None:
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert (said.code, said.out) == (0, "")
    assert [line.split()[0] for line in said.lines] == ["teacher", "round", "model:"]
    assert all(" dev " in line for line in said.lines[:2])
    assert said.lines[-1].startswith("model: run, round ")


def test_fit_on_a_finished_run_says_so_and_shows_its_rounds_again(life: Path, bert: Path) -> None:
    before = command.snapshot(life)
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert said.code == 0
    assert said.lines[0] == "run is finished: these are its rounds"
    assert [line.split()[0] for line in said.lines[1:]] == ["teacher", "round", "model:"]
    assert command.snapshot(life) == before


def test_fit_goes_on_after_the_last_whole_round(life: Path, bert: Path) -> None:
    model = life / "run" / "rounds" / "1" / "model.safetensors"
    whole = model.read_bytes()
    shutil.rmtree(model.parent)
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert said.lines[0] == "run goes on after round 0"
    assert model.read_bytes() == whole


def test_fit_with_more_rounds_adds_them(life: Path, bert: Path) -> None:
    model = life / "run" / "rounds" / "1" / "model.safetensors"
    whole = model.read_bytes()
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv --rounds 2")
    assert said.lines[0] == "run goes on after round 1"
    assert [line.split()[0] for line in said.lines[1:]] == ["teacher", "round", "round", "model:"]
    assert model.read_bytes() == whole
    fewer = selftrain(FIT.format(bert=bert) + " --dev dev.csv --rounds 1")
    assert fewer.code == 1
    assert "method.rounds was 2, is now 1" in fewer.err


def test_fit_says_that_a_run_goes_on_elsewhere(life: Path, bert: Path) -> None:
    path = life / "run" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "threads": 64}))
    said = selftrain(FIT.format(bert=bert) + " --dev dev.csv")
    assert said.code == 0
    assert said.lines[0].startswith("the run was started with threads 64, goes on with 1")


def test_fit_with_test_rows_prints_their_scores(folder: Path, bert: Path) -> None:
    said = selftrain(FIT.format(bert=bert) + " --rounds 0 --test test.csv --json")
    facts = json.loads(said.out)
    assert facts["run"] == "run"
    assert [each["number"] for each in facts["rounds"]] == [0]
    assert facts["test"]["rows"] == 10
    assert facts["test"] == json.loads(selftrain(f"{EVALUATE} {bert} --json").out)


@pytest.mark.usefixtures("life")
def test_evaluate_prints_a_table_and_nothing_else(bert: Path) -> None:
    said = selftrain(f"{EVALUATE} {bert}")
    assert (said.code, said.err) == (0, "")
    for name in ("test.csv", "accuracy", "macro_f1", "f1 good", "calibration_error", "rows"):
        assert name in said.out


def test_predict_prints_csv_or_json_lines_and_writes_what_the_name_says(
    life: Path, bert: Path
) -> None:
    printed = selftrain(f"{PREDICT} {bert}")
    assert (printed.code, printed.err) == (0, "")
    rows = list(csv.DictReader(printed.out.splitlines()))
    assert list(rows[0]) == ["row", "label", "p_bad", "p_good", "certainty"]
    assert len(rows) == 10

    lines = selftrain(f"{PREDICT} {bert} --json --with-text").out.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [each["label"] for each in answers] == [row["label"] for row in rows]
    assert answers[0]["text"] == command.sentences(1, first=300)[0][0]

    assert selftrain(f"{PREDICT} {bert} -o answers.csv") == (0, "", "")
    assert (life / "answers.csv").read_text() == printed.out


@pytest.mark.usefixtures("life")
def test_any_round_answers_and_the_kept_one_if_none_is_named(bert: Path) -> None:
    teacher, student, kept = (
        selftrain(f"{PREDICT} {bert} {which}").out for which in ("--round 0", "--round 1", "")
    )
    assert teacher != student == kept
    assert selftrain(f"{EVALUATE} {bert} --json --round 1").out == (
        selftrain(f"{EVALUATE} {bert} --json").out
    )
    absent = selftrain(f"{PREDICT} {bert} --round 7")
    assert absent.code == 1
    assert "run has no round 7; its last one is 1" in absent.err


@pytest.mark.usefixtures("life")
@pytest.mark.parametrize("given", ["predict run test.csv", "evaluate run test.csv --json"])
def test_bars_on_a_terminal_leave_the_data_alone(
    given: str, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """stderr is a terminal, stdout is not: `selftrain predict … > answers.csv`."""
    line = f"{given} --backbone {bert}"
    plain = selftrain(line)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(talk, "is_interactive", True)
    shown = selftrain(line)
    assert shown.out == plain.out
    assert "loading" in shown.err
    assert plain.err == ""


# ── Ctrl-C ───────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_keeps_the_rounds_that_are_whole(
    folder: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = experiment.self_train

    def interrupted(*arguments: Any, **more: Any) -> Iterator[Any]:
        yield next(real(*arguments, **more))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(experiment, "self_train", interrupted)
        said = selftrain(FIT.format(bert=bert))
    assert (said.code, said.out) == (130, "")
    assert said.lines[-2:] == ["the same command goes on from the last whole round", "stopped"]
    assert selftrain(FIT.format(bert=bert)).lines[0] == "run goes on after round 0"


def test_ctrl_c_before_the_first_round_leaves_nothing(
    folder: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    before = command.snapshot(folder)
    monkeypatch.setattr(experiment, "self_train", interrupted)
    assert selftrain(FIT.format(bert=bert)).code == 130
    assert command.snapshot(folder) == before


# ── what there is ────────────────────────────────────────────────────────────────────────────


def test_methods_are_listed_and_given_in_full() -> None:
    listed, given = selftrain("methods"), selftrain("methods --json")
    assert (listed.code, given.err) == (0, "")
    assert "cest is a reconstruction" in listed.err
    assert "-wo- and one of: res-all, res-uniform, certainty" in listed.err
    plain = json.loads(given.out)
    for each in plain:
        assert each["name"] in listed.out
    assert {"upet-head-adapter", "upet-prompt-prefix", "head-ft"} <= {m["name"] for m in plain}


def test_what_methods_print_can_be_given_back_as_a_config(folder: Path, bert: Path) -> None:
    """Every entry of the JSON is an entry of the config's [method] table."""
    from selftrain.method.changes import method_of

    for preset in ("laptop", "paper"):
        for plain in json.loads(selftrain(f"methods --preset {preset} --json").out):
            changes = {key: value for key, value in plain.items() if key != "student"}
            assert method_of(changes, preset).name == plain["name"]


def test_check_shows_the_tokens_of_every_label_word(bert: Path) -> None:
    words = "--word good=great --word bad=terrible"
    line = f'check --backbone {bert} --template "{{text}} It was {{mask}} ." {words}'
    assert selftrain(line).code == 0
    found = json.loads(selftrain(f"{line} --json").out)
    assert [(each["label"], each["pieces"], each["ok"]) for each in found] == [
        ("bad", ["terrible"], True),
        ("good", ["great"], True),
    ]


def test_check_reads_the_template_of_a_pair(bert: Path) -> None:
    line = 'check --template "{a} ? {mask} , {b}" --word same=yes --word other=no'
    assert selftrain(f"{line} --backbone {bert}").code == 0


def test_check_prints_the_verdict_on_every_word_before_it_fails(bert: Path) -> None:
    line = 'check --template "{text} {mask}" --word a=great --word b=dullness --word c=no'
    said = selftrain(f"{line} --backbone {bert} --json")
    assert said.code == 1
    assert [each["ok"] for each in json.loads(said.out)] == [True, False, True]


def test_doctor_prints_what_a_bug_report_needs() -> None:
    facts = json.loads(selftrain("doctor --json").out)
    assert facts["selftrain"] == version("selftrain")
    listed = selftrain("doctor")
    assert (listed.code, listed.err) == (0, "")
    assert all(value in listed.out for value in facts.values())


def test_a_table_in_a_pipe_is_not_folded() -> None:
    assert "upet-prompt-ptuning" in selftrain("methods").out
    widths = {len(line) for line in selftrain("doctor").out.splitlines()}
    assert len(widths) == 1


# ── demo ─────────────────────────────────────────────────────────────────────────────────────


def test_demo_on_ones_own_file_prints_the_closing_table(folder: Path, bert: Path) -> None:
    rows = command.csv(command.sentences(120), "text", "label")
    (folder / "films.csv").write_text(rows, encoding="utf-8")
    line = f"demo --data films.csv --seeds 1,2 --config quick.toml --backbone {bert} -o runs"
    said = selftrain(line)
    assert said.code == 0, said.err
    shown = [row for row in said.out.splitlines() if "│" in row]
    systems = [row.split("│")[1].split("(")[0].strip() for row in shown]
    assert systems == [
        "majority",
        "frozen encoder + logistic regression",
        "teacher",
        "round 1",
        "final",
    ]
    assert [line for line in said.lines if line.startswith("seed ")] == [
        "seed 1: 32 labels, 28 in the pool",
        "seed 2: 32 labels, 28 in the pool",
    ]
    runs = [path.name for path in sorted((folder / "runs" / "films").iterdir())]
    assert [name.rpartition("-")[2] for name in runs] == ["seed1", "seed2"]

    again = selftrain(f"{line} --json --on design")
    scores = json.loads(again.out)
    assert scores["on"] == "design"
    assert list(scores["accuracy"]) == systems
    assert list(scores["accuracy"]["final"]) == ["1", "2"]
    assert selftrain(f"{line} --markdown").out.startswith(
        "| system | seed 1 | seed 2 | mean ± sd |"
    )


def test_demo_on_ones_own_file_takes_columns_shots_and_seed_from_the_config(
    folder: Path, bert: Path
) -> None:
    rows = [(text, str(int(n % 8 > 0))) for n, (text, _) in enumerate(command.sentences(80))]
    (folder / "films.csv").write_text(command.csv(rows, "review", "stars"), encoding="utf-8")
    ours = 'seed = 5\nshots = 12\ncolumns.text = "review"\ncolumns.label = "stars"'
    (folder / "quick.toml").write_text(command.config(ours), encoding="utf-8")
    said = selftrain(f"demo --data films.csv --config quick.toml --backbone {bert} -o runs --json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["seeds"] == [5]
    odd = [line.rpartition(":")[0] for line in said.lines if line.startswith("warning")]
    assert odd[:2] == [
        "warning: class `0` has fewer than 12 rows: all taken",
        "warning: numeric labels kept as strings",
    ]


@pytest.mark.parametrize(("text", "seeds"), [("12", [12]), ("12,21", [12, 21]), ("1, 2,1", [1, 2])])
def test_seeds_are_taken_once_each(text: str, seeds: list[int]) -> None:
    assert seeds_of(text) == seeds


# ── small things ─────────────────────────────────────────────────────────────────────────────


def test_shots_are_drawn_by_the_seed_of_the_config_too(folder: Path) -> None:
    """A seed counts wherever it is given."""

    def drawn(**settings: Any) -> set[str]:
        files = Files(Path("labelled.csv"), Path("pool.csv"))
        split, _ = files.read(Config(shots=2, **settings), Notes())
        return {row.example.text for row in split.labelled}

    by_seed = {seed: drawn(seed=seed) for seed in range(5)}
    assert len(set(map(frozenset, by_seed.values()))) > 1
    assert drawn() == drawn(seed=12)


@pytest.mark.parametrize(
    "line", ["demo", "bench folder", "table main cells.jsonl", "figure rounds cells.jsonl -o x.png"]
)
def test_rows_that_nobody_scores_are_refused_before_anything_is_read(line: str) -> None:
    said = selftrain(f"{line} --on dev")
    assert (said.code, said.out) == (2, "")
    assert "'dev' is not one of 'test', 'design'" in said.err


def test_label_words_may_belong_to_a_label_with_an_equals_sign() -> None:
    assert words_of(["a=b=great", "c=bad"]) == {"a=b": "great", "c": "bad"}
    with pytest.raises(ConfigError, match="expected LABEL=WORD"):
        words_of(["=great"])


def test_codes_that_move_a_terminals_cursor_are_not_passed_on() -> None:
    assert printable("caf\u00e9 \x1b[2J\r\u202e") == "caf\u00e9 \\x1b[2J\\r\\u202e"


def test_json_has_no_codes_and_the_same_values() -> None:
    value = {"caf\u00e9 \x9b": ["\u202e\x7f\x1b\n", "\U000e0001\ud800", "\U0001f600", 1.5]}
    for indent in (None, 2):
        text = json_of(value, indent)
        assert json.loads(text) == value
        assert text.replace("\n", "").isprintable()
        assert "caf\u00e9" in text
        assert "\U0001f600" in text


def test_a_table_sends_no_codes_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show(["head\x1b"], [["cell\x1b"]], title="title\x1b")
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert all(f"{part}\\x1b" in told for part in ("head", "cell", "title"))


def test_a_label_cannot_paint_the_screen(folder: Path) -> None:
    rows = [*command.sentences(8), ("a film", "\x1b[31m[bold]:bomb:")]
    (folder / "labelled.csv").write_text(command.csv(rows, "text", "label"), encoding="utf-8")
    said = selftrain("fit labelled.csv -u pool.csv -o run")
    assert said.lines[0].startswith(r"error: class `\x1b[31m[bold]:bomb:` has 1 labelled example")
