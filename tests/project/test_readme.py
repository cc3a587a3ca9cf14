"""What the README says is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from selftrain.cli import app, config
from selftrain.data.task import Task
from selftrain.method.changes import method_of

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = {command.callback.__name__ for command in app.registered_commands if command.callback}
COMMANDS |= {str(group.name) for group in app.registered_groups}


def test_every_command_the_readme_shows_is_there() -> None:
    shown = set(re.findall(r"\bselftrain (\w+)", "".join(text for _, text in BLOCKS)))
    shown.discard("import")  # from selftrain import …
    assert {"demo", "fit", "predict", "evaluate", "methods"} <= shown
    assert shown <= COMMANDS


def test_the_python_of_the_readme_is_twelve_lines_and_is_there_once() -> None:
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    assert len([line for line in code.splitlines() if line]) <= 12


def test_every_config_of_the_readme_is_one_that_fit_takes(tmp_path: Path) -> None:
    files = [text for kind, text in BLOCKS if kind == "toml"]
    assert len(files) == 2
    for text in files:
        (tmp_path / "run.toml").write_text(text, "utf-8")
        settings = config.read(tmp_path / "run.toml")
        method = method_of(settings.method, settings.preset)
        assert method != method_of({}, settings.preset)
        Task("any", ("no", "yes")).changed(settings.task)


@pytest.mark.slow
def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "positive" in done.stdout or "negative" in done.stdout
    assert (tmp_path / "my-model" / "model.safetensors").is_file()
