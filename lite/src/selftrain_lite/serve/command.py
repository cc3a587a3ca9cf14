"""``selftrain-lite serve``: the options of the server."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from selftrain_lite.errors import LiteError
from selftrain_lite.serve.settings import Settings, settings_of

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
EXAMPLE = "selftrain-lite serve model --port 8080"


def add_serve(commands: Any) -> None:
    """The command that answers over HTTP."""
    default = Settings()
    serve = commands.add_parser(
        "serve", help="Answer over HTTP, with a page to try it.", epilog=f"example: {EXAMPLE}"
    )
    add = serve.add_argument
    add("model", type=Path, help="A folder that `selftrain export` wrote.")
    add("--host", default=default.host, help="Another than this machine needs a token.")
    add("--port", type=int, default=default.port, help="0 is any port that is free.")
    add("--token-file", type=Path, metavar="FILE", help="A token that clients must send.")
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="A name by which clients call this server; may be repeated.",
    )
    add(
        "--abstain",
        type=float,
        default=default.abstain,
        metavar="P",
        help="No label below this probability.",
    )
    add("--max-batch", type=int, default=default.max_batch, help="Texts answered together.")
    add("--queue", type=int, default=default.queue, help="Texts that may wait; then 429.")
    add("--threads", type=int, metavar="N", help="Threads that compute.")
    serve.set_defaults(run=serve_folder)


def serve_folder(options: argparse.Namespace) -> None:
    """Check the options, load the model, answer."""
    wanted = Settings(
        host=options.host,
        port=options.port,
        names=tuple(options.allow_host),
        abstain=options.abstain,
        max_batch=options.max_batch,
        queue=options.queue,
    )
    settings = settings_of(wanted, options.token_file)
    check_installed()
    from selftrain_lite.model import load
    from selftrain_lite.serve.server import serve

    serve(load(options.model, threads=options.threads), settings)


def check_installed() -> None:
    """Raise unless the packages of the extra are there."""
    for name in PACKAGES:
        if find_spec(name) is None:
            raise LiteError(
                f"{name} is not installed; the extra `serve` has it",
                "pip install 'selftrain-lite[serve]'",
            )
