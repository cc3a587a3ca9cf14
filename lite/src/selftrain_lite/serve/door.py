"""Who may come in: a client that calls this server by its name, with the token if there is one.

Any web page can send requests to a port of this machine, and a name on the internet can lead there.
So a request must name a host that is known, and a page of another origin may not write.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from selftrain_lite.serve.refusal import RefusedError
from selftrain_lite.serve.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Swagger UI sets styles on its elements and has its pictures in its style sheet."""
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
OPEN = {"/", "/docs", "/openapi.json", "/health", "/v2/health/live", "/v2/health/ready"}
"""What needs no token: probes, and pages that have nothing of the model in them."""
OPEN_FOLDERS = ("/page/", "/swagger/")
READING = ("GET", "HEAD")


class Door:
    """Lets requests through to an app, and adds the headers that protect its pages."""

    def __init__(self, app: App, settings: Settings) -> None:
        self.app = app
        self.token = None if settings.token is None else settings.token.encode()
        self.names = {"localhost", settings.host.lower(), *map(str.lower, settings.names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        guarded = Guarded(send, DOCS_POLICY if scope["path"] == "/docs" else POLICY)
        try:
            self._check(scope)
            await self.app(scope, receive, guarded)
        except RefusedError as refusal:
            await guarded.refuse(refusal)
        except Exception as error:
            note(error)
            await guarded.refuse(RefusedError(500, BROKEN))

    def _check(self, scope: Scope) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "").lower()
        if not self._is_known(host):
            raise RefusedError(
                421, "this server does not answer to that host name; see --allow-host", CLOSE
            )
        if scope["method"] not in READING and not is_own_page(headers, host):
            raise RefusedError(403, "a page of another origin may not ask", CLOSE)
        path = scope["path"]
        if self.token is None or path in OPEN or path.startswith(OPEN_FOLDERS):
            return
        kind, _, token = headers.get(b"authorization", "").partition(" ")
        given = token.strip().encode("latin-1")
        if not (hmac.compare_digest(given, self.token) and kind.lower() == "bearer"):
            raise RefusedError(
                401, "a bearer token is needed, and this is none", {"WWW-Authenticate": "Bearer"}
            )

    def _is_known(self, host: str) -> bool:
        """Whether a name leads here on purpose; an address of numbers is no name to mislead."""
        name = host_name(host)
        return bool(name) and ("*" in self.names or name in self.names or is_address(name))


CLOSE = {"Connection": "close"}
BROKEN = "the server has an error; its log says where"


class Guarded:
    """Sends an answer with our headers, and knows whether it has begun."""

    def __init__(self, send: Send, policy: str) -> None:
        self._send = send
        self._headers = [*HEADERS, (b"content-security-policy", policy.encode())]
        self.begun = False

    async def __call__(self, message: Message) -> None:
        """Send one part of an answer."""
        if message["type"] == "http.response.start":
            self.begun = True
            message = {**message, "headers": [*message.get("headers", []), *self._headers]}
        await self._send(message)

    async def refuse(self, refusal: RefusedError) -> None:
        """Answer with a status and a line, unless an answer has begun."""
        if self.begun:
            return
        body = json.dumps(refusal.content()).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        pairs = [(k.lower().encode(), v.encode()) for k, v in (headers | refusal.headers).items()]
        await self({"type": "http.response.start", "status": refusal.status, "headers": pairs})
        await self({"type": "http.response.body", "body": body})


def is_own_page(headers: MutableMapping[bytes, str], host: str) -> bool:
    """Whether a request that writes comes from our page, or from no page at all."""
    if headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    origin = headers.get(b"origin")
    return origin is None or origin.lower() in (f"http://{host}", f"https://{host}")


def host_name(host: str) -> str:
    """The name in a host header, without the port.

    >>> host_name("localhost:8080"), host_name("[::1]:8080"), host_name("a b")
    ('localhost', '::1', '')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.partition(":")
    return "" if (port and not port.isdecimal()) or " " in name else name.removesuffix(".")


def is_address(name: str) -> bool:
    """Whether a host is an address in numbers."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def note(error: Exception) -> None:
    """Write where an error happened, without its message: that could repeat a text."""
    places = traceback.extract_tb(error.__traceback__)[-3:]
    where = ", ".join(f"{Path(place.filename).name}:{place.lineno}" for place in places)
    print(f"error: {type(error).__name__} in {where}", file=sys.stderr, flush=True)
