"""Open a port of this machine and answer there, until a person ends it."""

from __future__ import annotations

import errno
import os
import socket
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from selftrain.errors import ConfigError
from selftrain.review.door import HOST, App, page_to

PACKAGES = ("starlette", "uvicorn")
SNAPS = Path("/snap")
"""Is there where browsers may come as snaps, which see files in the home folder alone."""


def check_installed() -> None:
    """Raise unless the packages of the extra are there."""
    for name in PACKAGES:
        if find_spec(name) is None:
            raise ConfigError(
                f"{name} is not installed; the extra `review` has it",
                "pip install 'selftrain[review]'",
            )


def listen(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 takes any that is free."""
    # With its protocol: asyncio then sends a short answer at once, and not 40 ms later.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name != "nt":  # there it would let two programs share a port
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
        found.listen(64)
    except OSError as error:
        found.close()
        reason = {
            errno.EADDRINUSE: "another program uses it",
            errno.EACCES: "the system does not allow it",
        }.get(error.errno or 0, error.strerror)
        raise ConfigError(
            f"cannot open port {port}: {reason}", "leave --port out: any free port is taken"
        ) from None
    return found


@contextmanager
def opened_browser(url: str) -> Iterator[bool]:
    """Show the page in a browser; yield False where there is none.

    Every user of the machine can read the command line of a browser, and the address has the token.
    So the browser gets a file that leads there, which its owner alone can read until the end.
    """
    shown = False
    with ExitStack() as until_the_end:
        with suppress(webbrowser.Error, OSError):
            home = Path.home() if SNAPS.is_dir() else None
            place = TemporaryDirectory(
                prefix="selftrain-review-", dir=home, ignore_cleanup_errors=True
            )
            file = Path(until_the_end.enter_context(place)) / "open.html"
            file.touch(0o600)
            file.write_text(page_to(url), "utf-8")
            shown = webbrowser.open(file.as_uri())
        yield shown


def serve(app: App, listening: socket.socket) -> None:
    """Answer until Ctrl-C."""
    import uvicorn

    settings = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    with suppress(KeyboardInterrupt):  # the way to end it
        uvicorn.Server(settings).run(sockets=[listening])
