"""`selftrain serve`: a run is exported first, and what is wrong is found before that."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command import selftrain
from selftrain.cli import serve
from selftrain.runs.manifest import Manifest
from selftrain.runs.write import Run
from selftrain.training.loop import Round
from selftrain_lite.serve.settings import Settings
from slow_server import PATHS, running

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path: Path, rounds: list[Round], manifest: Manifest) -> Path:
    """A finished run."""
    with Run.start(tmp_path / "finished", manifest) as started:
        for round_ in rounds:
            started.save(round_)
    return tmp_path / "finished"


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (
            "--host 0.0.0.0",
            "--host 0.0.0.0 is open to other machines, and there is no token",
            "make one: openssl rand -hex 32 > token; --token-file token",
        ),
        ("--port 99999", "--port is 99999; expected 0 to 65,535", "--port 8080"),
        ("--queue 0", "--queue is 0; expected 1 to 1,000,000", "--queue 1024"),
        ("--abstain 80", "--abstain is 80.0; expected 0 to 1", "--abstain 0.8"),
        ("--token-file none", "cannot read none: No such file or directory", "ls -la none"),
    ],
)
def test_an_option_that_cannot_be_used_is_found_before_the_export(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: str,
    problem: str,
    hint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = selftrain(f"serve run {arguments}")
    assert (ended.code, ended.lines) == (1, [f"error: {problem}", f"hint: {hint}"])


def test_what_is_no_run_is_found_before_the_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "export", lambda *_: pytest.fail("it was exported"))
    ended = selftrain(f"serve {tmp_path}")
    assert ended.code == 1
    assert len(ended.lines) == 2


def test_without_the_server_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    assert selftrain("serve run").lines == [
        "error: selftrain_lite is not installed; the server needs it",
        "hint: pip install 'selftrain-lite[serve]'",
    ]


def test_the_exported_model_is_served_and_removed_unless_it_has_a_place(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports: list[tuple[Path, list[str]]] = []

    def export(given: Path, target: Path, choices: list[str]) -> None:
        assert given == run
        target.mkdir()
        exports.append((target, choices))

    def answer(target: Path, settings: Settings) -> None:
        assert target.is_dir()
        assert (settings.port, settings.abstain) == (0, 0.8)

    monkeypatch.setattr(serve, "export", export)
    monkeypatch.setattr(serve, "answer", answer)
    options = "--port 0 --abstain 0.8"
    assert selftrain(f"serve {run} {options}").code == 0
    assert selftrain(f"serve {run} {options} -o {tmp_path / 'model'} --round 1").code == 0
    (first, choices), (second, others) = exports
    assert not first.exists()
    assert second.exists()
    assert choices == ["--weights", "fp32"]
    assert others == ["--weights", "fp32", "--round", "1"]


def test_an_export_that_fails_ends_the_command_with_its_code(
    run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The process that exports says why."""
    ended = selftrain(f"serve {run} --round 99")
    assert ended.code == 1
    assert "error: " in capfd.readouterr().err


@pytest.mark.slow
def test_a_run_is_served_and_answers_as_predict(
    run: Path,
    tiny_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    texts = ["a great film", "a dull story", "good"]
    (tmp_path / "new.csv").write_text("text\n" + "\n".join(texts) + "\n", "utf-8")
    bert = tiny_folder("bert")
    predicted = selftrain(f"predict {run} {tmp_path / 'new.csv'} --backbone {bert} --json")
    expected = [json.loads(line) for line in predicted.out.splitlines()]
    monkeypatch.setattr("slow_server.PATHS", [str(ROOT / "src"), *PATHS])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = ["--port", "0", "--backbone", str(bert)]
    command = [sys.executable, "-m", "selftrain", "serve", str(run), *options]
    with running(command, ready="serving ") as server:
        status, answers = server.post([[text] for text in texts])
        assert status == 200
        for answer, row in zip(answers, expected, strict=True):
            assert answer[0]["label"] == row["label"]
            for each in answer:
                assert each["score"] == pytest.approx(row[f"p_{each['label']}"], abs=1e-4)
        assert list(tmp_path.glob("selftrain-serve-*"))
        code, _ = server.end()
    assert code == 143
    assert not list(tmp_path.glob("selftrain-serve-*"))
