"""What the README and the guide say is what happens: every code block is run or checked."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest
import typer
import yaml
from starlette.testclient import TestClient

import lite_folder
import selftrain
import selftrain_lite
from command import csv, sentences, write_files
from command import selftrain as typed
from selftrain.cli import app, config
from selftrain.data import task as tasks
from selftrain.data.task import Task
from selftrain.experiments.grid import grid_of
from selftrain.experiments.gridfile import read_grid
from selftrain.experiments.hub import source
from selftrain.method.changes import method_of
from selftrain_lite import cli as lite
from selftrain_lite.serve.app import app_of, service_of
from selftrain_lite.serve.settings import Settings

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GUIDES = sorted((ROOT / "docs").glob("guide*.md"))
PAGES = [README, *GUIDES, ROOT / "docs" / "interop.md"]
KINDS = {"", "python", "toml", "text", "bash", "yaml"}
OTHERS = ("python3 -m venv ", ".venv/bin/pip install ", ". .venv/bin/activate", "pip install ")
"""Lines of a shell that install; ``make test-slow`` installs the wheel."""
REPRODUCE = "benchmarks/paper/reproduce.sh"


class Block(NamedTuple):
    """A block of code, and where it stands."""

    page: str
    number: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def blocks(*kinds: str) -> list[Block]:
    """The blocks of these kinds on all pages."""
    pattern = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    every = (
        Block(page.stem, number, kind, text)
        for page in PAGES
        for number, (kind, text) in enumerate(pattern.findall(page.read_text("utf-8")), 1)
    )
    return [block for block in every if not kinds or block.kind in kinds]


def shell(page: str = "") -> Iterator[tuple[Block, str]]:
    """The lines of the shell blocks, of one page or of all; a line may go on behind a ``\\``."""
    for block in blocks(""):
        if page in ("", block.page):
            for line in re.sub(r"\\\n\s*", " ", block.text).splitlines():
                yield block, line


LINES = [pytest.param(line, id=f"{block}: {line[:40]}") for block, line in shell()]
named = pytest.mark.parametrize


def test_every_block_says_what_it_is() -> None:
    assert {block.kind for block in blocks()} <= KINDS
    assert {block.page for block in blocks()} == {page.stem for page in PAGES}


# ── the README ───────────────────────────────────────────────────────────────────────────────


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").split()) <= 800


def test_the_readme_shows_the_demo_the_tests_and_four_commands() -> None:
    lines = [line for _, line in shell("README")]
    shown = [shlex.split(line, comments=True)[:2] for line in lines]
    assert ["make", "demo"] in shown
    assert ["make", "test"] in shown
    commands = [words[1] for words in shown if words[0] == "selftrain"]
    assert commands == ["fit", "predict", "review", "serve"]


def test_the_python_of_the_readme_is_twelve_lines() -> None:
    (code,) = [block.text for block in blocks("python") if block.page == "README"]
    assert len([line for line in code.splitlines() if line]) <= 12


def test_the_table_of_the_readme_is_what_the_committed_runs_say() -> None:
    """The default on test rows: seeds, fine-tuned teacher, final model and gain of each pool."""
    file = ROOT / "benchmarks" / "development" / "on_test_rows.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    usual = {"labels": 16, "pool": 3000, "foreign": False, "flipped": 0}
    lines = [line for line in lines if all(line[key] == usual[key] for key in usual)]
    assert all(line.get("scored on", "test") == "test" for line in lines)
    lines = [line for line in lines if not line.get("changes")]
    fine_tuned = {
        (line["variant"], line["seed"]): line["accuracy"][0]
        for line in lines
        if line["method"] in ("probe", "head-ft")
    }
    runs: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        place = line["variant"], line["seed"]
        if line["method"] == "supcon" and line["draw"] == 1024 and place in fine_tuned:
            if line["seed"] not in (12, 21, 42, 87, 100):  # the others are counted for harm alone
                continue
            name = "eight" if "-" in line["variant"] else line["variant"]
            before = fine_tuned[place]
            runs.setdefault(name, []).append((100 * before, 100 * line["accuracy"][line["final"]]))
    page = [cells(line) for line in README.read_text("utf-8").splitlines()]
    shown = {row[0].split()[0]: row[1:] for row in page if len(row) == 5 and row[0].split()}
    for name, pairs in runs.items():
        before, final = (fmean(each) for each in zip(*pairs, strict=True))
        count, shown_before, shown_final, gain = shown[name]
        assert int(count.split()[0]) == len(pairs)
        assert float(shown_before) == pytest.approx(before, abs=0.06)
        assert float(shown_final.strip("*").split(" ±")[0]) == pytest.approx(final, abs=0.06)
        assert float(gain) == pytest.approx(final - before, abs=0.06)
    assert len(runs) == 9


def test_the_table_of_upet_is_what_the_committed_results_say() -> None:
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    rows = [
        cells(line) for line in page.splitlines() if re.match(r"\| (movies|agnews|sst2) ", line)
    ]
    assert [row[0] for row in rows].count("movies") == 1
    assert {(row[0], row[1]): row[2:] for row in rows} == dict([movies(), *first_tables()])


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip("|\n ").split("|")]


def first_tables() -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The summary of the first tables, which another test holds against the cells."""
    page = (ROOT / "benchmarks" / "paper" / "first-tables.md").read_text("utf-8")
    for line in page.splitlines():
        if len(row := cells(line)) == 12 and row[0] in ("agnews", "sst2"):
            task, reader, encoder, _, regression, teacher, *_, kept, gain, _ = row
            yield (task, f"{reader}, {encoder}"), [regression, teacher, kept, seeds(gain)]


def movies() -> tuple[tuple[str, str], list[str]]:
    """The row of the demo, from its scores."""
    file = ROOT / "benchmarks" / "results" / "demo_movies_test.json"
    scores: dict[str, dict[str, float]] = json.loads(file.read_text("utf-8"))["accuracy"]
    regression, teacher, final = (
        [100 * score for score in scores[name].values()]
        for name in ("frozen encoder + logistic regression", "teacher", "final")
    )
    sd = (sum((each - fmean(final)) ** 2 for each in final) / (len(final) - 1)) ** 0.5
    gains = [a - b for a, b in zip(final, teacher, strict=True)]
    gain = f"{fmean(gains):+.1f} ({sum(each > 0 for each in gains)} of {len(gains)})"
    means = [f"{fmean(each):.1f}" for each in (regression, teacher)]
    return ("movies", "head, `minilm`"), [*means, f"**{fmean(final):.1f} ± {sd:.1f}**", seeds(gain)]


def seeds(gain: str) -> str:
    return gain.replace(")", " seeds)")


# ── commands ─────────────────────────────────────────────────────────────────────────────────


@named("line", LINES)
def test_a_command_is_one_that_can_be_typed(line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text("utf-8")
    elif words[0] == "selftrain":
        read(words[1:])
    elif words[0] == "torchrun":
        read(words[words.index("selftrain") + 1 :])
    elif words[0] == "selftrain-lite":
        lite.command_line().parse_args(words[1:])
    elif words[0] == REPRODUCE:
        reproduce(words[1:])
    else:
        assert line.startswith(OTHERS)


def reproduce(words: list[str]) -> None:
    """Read the flags of the script that computes the paper as those of a bench, which gets them."""
    assert os.access(ROOT / REPRODUCE, os.X_OK)
    data, out, *flags = words
    read(["bench", data, "-o", out, *flags])


def read(words: list[str]) -> None:
    """Read a command as typer does, and run nothing: a wrong option or value raises."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"there is no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, list(words))


@named("block", blocks("bash", "yaml"), ids=str)
def test_the_commands_of_a_recipe_can_be_typed(block: Block) -> None:
    """Of a job of Slurm or Kubernetes; its shell fills in the part."""
    if block.kind == "yaml":
        job = yaml.safe_load(block.text)["spec"]
        assert job["completionMode"] == "Indexed"
        (script,) = job["template"]["spec"]["containers"][0]["args"]
    else:
        script = re.sub(r"\\\n\s*", " ", block.text)
    lines = [line for line in script.splitlines() if line.startswith("selftrain ")]
    papers = [line for line in script.splitlines() if line.startswith(REPRODUCE)]
    assert lines or papers or "sbatch" in script
    for line in papers:
        reproduce(shlex.split(line)[1:])
    for line in lines:
        words = shlex.split(re.sub(r"\$\w+_COUNT", "8", re.sub(r"\$\w+_(ID|INDEX)", "7", line)))
        assert "7/8" in words
        read(words[1:])


@pytest.fixture(scope="module")
def bert(tiny_folder: Callable[[str], Path]) -> Path:
    return tiny_folder("bert")


@named("page", ["guide", "guide-is-it-good", "guide-deploy"])
def test_the_commands_of_a_page_run_in_order(
    page: str, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("selftrain_lite.serve.server.serve", answers_one_text)
    write_files(tmp_path)
    (tmp_path / "new.csv").write_text((tmp_path / "test.csv").read_text())
    (tmp_path / "gold.csv").write_text(csv(sentences(30, first=100), "text", "label"))
    lines = [line for _, line in shell(page) if line.startswith(("selftrain ", "selftrain-lite "))]
    first = "selftrain fit labelled.csv -u pool.csv -o run"
    for line in lines if page == "guide" else [first, *lines]:
        program, *words = shlex.split(line, comments=True)
        if program == "selftrain-lite":
            with pytest.raises(SystemExit) as ended:
                lite.main(words)
            assert ended.value.code == 0
            continue
        tiny = {"fit": f" --config quick.toml --backbone {bert}", "audit": ""}
        said = typed(shlex.join(words) + tiny.get(words[0], f" --backbone {bert}"))
        assert said.code == 0, said.err


def answers_one_text(model: selftrain_lite.Model, settings: Settings) -> None:
    """In place of a server, which would answer until someone ends it."""
    with TestClient(app_of(service_of(model, settings)), base_url="http://localhost") as client:
        assert client.post("/predict", json={"inputs": "great"}).status_code == 200


# ── files of settings ────────────────────────────────────────────────────────────────────────


@named("block", blocks("toml"), ids=str)
def test_a_file_of_settings_is_one_that_is_read(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(block.text, "utf-8")
    if "[[variant]]" in block.text:
        *_, name = grid_of(dict(read_grid(file)), "test").methods
        assert f'"{name}"' in block.text
    elif "labels" in block.text:
        assert tasks.find(file).template
        if "[hub]" in block.text:
            assert source(str(file)).texts
    else:
        settings = config.read(file)
        method = method_of(settings.method, settings.preset)
        assert not settings.method or method != method_of({}, settings.preset)
        Task("any", ("no", "yes")).changed(settings.task)


# ── Python ───────────────────────────────────────────────────────────────────────────────────


@named("block", blocks("python"), ids=str)
def test_the_python_of_a_page_uses_names_and_parameters_that_exist(block: Block) -> None:
    known = set(inspect.signature(selftrain.SelfTrainingClassifier).parameters)
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom):
            room = selftrain_lite if node.module == "selftrain_lite" else selftrain
            assert {each.name for each in node.names} <= {*room.__all__}
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "SelfTrainingClassifier":
            assert {str(each.arg) for each in node.keywords} <= known


@pytest.mark.slow
@named("block", blocks("python"), ids=str)
def test_the_python_of_a_page_runs(block: Block, tmp_path: Path) -> None:
    if "selftrain_lite" in block.text:
        lite_folder.write(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout
    if block.page == "README":
        assert "Warning" not in done.stderr
    if ".save(" in block.text:
        assert (tmp_path / "my-model" / "model.safetensors").is_file()
