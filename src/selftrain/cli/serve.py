"""``selftrain serve``: export the model of a run, and answer over HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from selftrain.cli import inputs, options
from selftrain.cli.bundles import with_options
from selftrain.errors import ConfigError

if TYPE_CHECKING:
    from selftrain_lite.serve.settings import Settings

INSTALL = "pip install 'selftrain-lite[serve]'"


@with_options
def serve(
    *,
    run: options.RunFolder,
    host: Annotated[
        str, typer.Option(metavar="NAME", help="Another than this machine needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="0 is any port that is free.")] = 8080,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A token that clients must send.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name by which clients call it; may be repeated."),
    ] = None,
    abstain: Annotated[
        float, typer.Option(metavar="P", help="Give no label below this probability.")
    ] = 0.0,
    max_batch: Annotated[int, typer.Option(metavar="N", help="Texts answered together.")] = 32,
    queue: Annotated[
        int, typer.Option(metavar="N", help="Texts that may wait; then status 429.")
    ] = 1024,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Keep the exported model here."),
    ] = None,
    weights: Annotated[
        Literal["fp32", "fp16", "int8"],
        typer.Option(help="fp16 is half the size; int8 a quarter, faster, and less exact."),
    ] = "fp32",
    round_: options.RoundNumber = None,
    backbone: options.RunBackbone = None,
) -> None:
    """Export the model of a run, then answer over HTTP until Ctrl-C.

    selftrain serve run

    The address that it prints has a page to try it. To answer on a machine without torch, export
    once and use `selftrain-lite serve model` there.
    """
    check_installed()
    from selftrain_lite.serve.settings import Settings

    names = tuple(allow_host or ())
    wanted = Settings(
        host=host, port=port, names=names, abstain=abstain, max_batch=max_batch, queue=queue
    )
    settings = checked(wanted, token_file)
    inputs.check_fits(run, ())
    if out is not None:
        inputs.check_spared([out], run)
    choices = ["--weights", weights]
    choices += [] if round_ is None else ["--round", str(round_)]
    choices += [] if backbone is None else ["--backbone", backbone]
    with place(out) as folder:
        export(run, folder, choices)
        answer(folder, settings)


def check_installed() -> None:
    """Raise unless the packages of the server are there; nothing is loaded."""
    for name in ("selftrain_lite", "fastapi", "uvicorn", "prometheus_client"):
        if find_spec(name) is None:
            raise ConfigError(f"{name} is not installed; the server needs it", INSTALL)


def checked(wanted: Settings, token_file: Path | None) -> Settings:
    """The settings of the server, with its token."""
    from selftrain_lite.errors import LiteError
    from selftrain_lite.serve.settings import settings_of

    try:
        return settings_of(wanted, token_file)
    except LiteError as error:
        raise ConfigError(error.message, error.hint) from None


@contextmanager
def place(out: Path | None) -> Iterator[Path]:
    """Where the exported model goes: a folder of the user, or one that is removed at the end."""
    if out is not None:
        yield out
        return
    with TemporaryDirectory(prefix="selftrain-serve-") as folder:
        yield Path(folder) / "model"


def export(run: Path, folder: Path, choices: list[str]) -> None:
    """Export in a process of its own, so that torch is not in the memory of the server."""
    command = [sys.executable, "-m", "selftrain", "export", "-o", str(folder), *choices]
    code = subprocess.run(
        [*command, "--", str(run)], stdout=subprocess.DEVNULL, check=False
    ).returncode
    if code:
        raise typer.Exit(code)  # the process has said why


def answer(folder: Path, settings: Settings) -> None:
    """Serve a model folder until the process is ended."""
    from selftrain_lite.errors import LiteError
    from selftrain_lite.model import load
    from selftrain_lite.serve.server import serve

    try:
        serve(load(folder), settings)
    except LiteError as error:
        raise ConfigError(error.message, error.hint) from None
