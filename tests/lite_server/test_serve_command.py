"""``selftrain-lite serve``: what is refused before a port is opened."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from selftrain_lite.cli import main
from selftrain_lite.serve.server import listen
from selftrain_lite.serve.settings import Settings

OPEN = "--host 0.0.0.0 is open to other machines, and there is no token"
MAKE = "make one: openssl rand -hex 32 > token; --token-file token"


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """The line and the hint of a command that fails."""
    with pytest.raises(SystemExit) as end:
        main(["serve", *arguments])
    captured = capsys.readouterr()
    assert end.value.code == 1
    assert captured.out == ""
    error, empty, hint = captured.err.splitlines()
    assert empty == ""
    return error.removeprefix("error: "), hint.removeprefix("hint: ")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--host", "0.0.0.0"], OPEN, MAKE),
        (["--host", "::"], OPEN.replace("0.0.0.0", "::"), MAKE),
        (
            ["--allow-host", "*"],
            "--allow-host '*' without a token lets any web page ask the model",
            MAKE,
        ),
        (["--allow-host", "a b"], "--allow-host is a b; expected a name", "--allow-host NAME"),
        (["--port", "99999"], "--port is 99999; expected 0 to 65,535", "--port 8080"),
        (["--port", "-1"], "--port is -1; expected 0 to 65,535", "--port 8080"),
        (["--queue", "0"], "--queue is 0; expected 1 to 1,000,000", "--queue 1024"),
        (["--max-batch", "0"], "--max-batch is 0; expected 1 to 1,024", "--max-batch 32"),
        (["--abstain", "80"], "--abstain is 80.0; expected 0 to 1", "--abstain 0.8"),
        (["--abstain", "nan"], "--abstain is nan; expected 0 to 1", "--abstain 0.8"),
    ],
)
def test_an_option_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, hint: str
) -> None:
    assert refused(capsys, "no-such-model", *arguments) == (message, hint)


@pytest.mark.parametrize("content", ["", "short\n", "with blanks in the middle of it", "é" * 20])
def test_a_file_without_a_token(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    content: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_text(content, "utf-8")
    message, _ = refused(capsys, "model", "--token-file", "token")
    assert message == (
        "token has no token: expected one line of 16 or more letters, digits or signs"
    )


def test_a_token_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    message, hint = refused(capsys, "model", "--token-file", "no-such-file")
    assert message == "cannot read no-such-file: No such file or directory"
    assert hint == "ls -la no-such-file"


def test_a_folder_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message, _ = refused(capsys, str(tmp_path / "none"))
    assert message == f"{tmp_path / 'none'} is no folder"


def test_a_port_that_another_program_uses(
    model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message, hint = refused(capsys, str(model_folder), "--port", str(port))
    assert message == f"cannot open port {port} of 127.0.0.1: another program uses it"
    assert hint == "--port 0 takes any port that is free"


def test_answers_are_sent_at_once() -> None:
    """asyncio sets TCP_NODELAY on connections of a socket that names its protocol."""
    with listen(Settings(port=0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_a_host_that_is_not_this_machine(
    tmp_path: Path, model_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-this-test\n")
    options = ("--host", "192.0.2.7", "--port", "0", "--token-file", str(token))
    message, _ = refused(capsys, str(model_folder), *options)
    assert message.startswith("cannot open port 0 of 192.0.2.7: ")


def test_without_the_extra_the_command_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("selftrain_lite.serve.command.find_spec", lambda name: None)
    assert refused(capsys, "model") == (
        "fastapi is not installed; the extra `serve` has it",
        "pip install 'selftrain-lite[serve]'",
    )
