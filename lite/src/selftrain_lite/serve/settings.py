"""How a server should run: the options of a command, checked before a model is loaded."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from pathlib import Path

from selftrain_lite.errors import LiteError, brief

FEWEST_CHARACTERS, LARGEST_TOKEN_FILE = 16, 4096  # of a token; bytes of its file
MAKE_TOKEN = "openssl rand -hex 32 > token; --token-file token"  # noqa: S105  (no secret)
NAMES = "[A-Za-z0-9_.:-]+"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to serve one model."""

    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    """What a client must send as a bearer token; None lets anyone of this machine in."""
    names: tuple[str, ...] = ()
    """Further names by which clients may call this server; `*` is any."""
    abstain: float = 0.0
    """No label below this probability."""
    max_batch: int = 32
    """Texts that are answered together."""
    queue: int = 1024
    """Texts that may wait; also the most in one request."""


def settings_of(
    settings: Settings, token_file: Path | None = None, *, default: Settings = Settings()
) -> Settings:
    """The settings with the token of a file; raises where one of them cannot be used."""
    _check_number("--port", settings.port, 0, 65535, default.port)
    _check_number("--max-batch", settings.max_batch, 1, 1024, default.max_batch)
    _check_number("--queue", settings.queue, 1, 1_000_000, default.queue)
    if not 0 <= settings.abstain <= 1:
        raise LiteError(f"--abstain is {settings.abstain}; expected 0 to 1", "--abstain 0.8")
    for name in settings.names:
        if name != "*" and not re.fullmatch(NAMES, name):
            raise LiteError(f"--allow-host is {brief(name)}; expected a name", "--allow-host NAME")
    token = None if token_file is None else read_token(token_file)
    if token is None and not is_loopback(settings.host):
        raise LiteError(
            f"--host {brief(settings.host)} is open to other machines, and there is no token",
            f"make one: {MAKE_TOKEN}",
        )
    if token is None and "*" in settings.names:
        raise LiteError(
            "--allow-host '*' without a token lets any web page ask the model",
            f"make one: {MAKE_TOKEN}",
        )
    return replace(settings, token=token)


def _check_number(option: str, value: int, least: int, most: int, example: int) -> None:
    if not least <= value <= most:
        raise LiteError(f"{option} is {value}; expected {least} to {most:,}", f"{option} {example}")


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(path: Path) -> str:
    """The token in a file: one line of 16 characters or more."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_TOKEN_FILE + 1)
    except OSError as error:
        raise LiteError(f"cannot read {path}: {error.strerror}", f"ls -la {path}") from None
    token = raw.strip()
    fits = re.fullmatch(rb"[\x21-\x7e]{%d,}" % FEWEST_CHARACTERS, token)
    if not fits or len(raw) > LARGEST_TOKEN_FILE:
        raise LiteError(
            f"{path} has no token: expected one line of {FEWEST_CHARACTERS} or more letters, "
            "digits or signs",
            f"make one: {MAKE_TOKEN}",
        )
    return token.decode("ascii")
