"""Who may talk to the page: this machine's browser, after it was opened with the token.

Any web page can send requests to a port of this machine, and any program can listen to a name that
leads there. So a request must name this host, carry the cookie, and to write also come from the
page itself.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOST = "127.0.0.1"
LARGEST_BODY = 16_384  # bytes: a verdict has about fifty
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
CLOSED = "This page opens with the address that `selftrain review` printed in its terminal."


def page_to(url: str) -> str:
    """A page that goes on to an address by itself, without a script."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Review – selftrain</title>'
        '<meta http-equiv="content-security-policy" content="default-src \'none\'">'
        '<meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={escape(url)}">'
        f'<a href="{escape(url)}">Open the review</a></html>\n'
    )


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of one review, and the names it answers to."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def cookie(self) -> str:
        """The name of the cookie: ports share their cookies, so it has the port in it."""
        return f"selftrain-review-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser may call this server."""
        return f"{HOST}:{self.port}", f"localhost:{self.port}"

    @property
    def url(self) -> str:
        """The address that opens the page."""
        return f"http://{HOST}:{self.port}/?token={self.token}"


class Door:
    """Lets requests through to an app that may come in, and adds the headers that protect it."""

    def __init__(self, app: App, keys: Keys) -> None:
        self.app = app
        self.keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        guarded = _with_headers(send)
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope, headers)
        if refusal:
            await _answer(guarded, *refusal)
        elif self._brings_token(scope):
            # A redirect would not do: after a click elsewhere, such as in the file that opens the
            # browser, no Strict cookie goes with it. A page of ours that asks for / brings it.
            await _answer(guarded, 200, page_to("/"), "text/html", [self._new_cookie()])
        elif not self._has_cookie(headers):
            await _answer(guarded, 403, CLOSED)
        else:
            await self._let_in(scope, receive, guarded)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _whole_body(receive) if scope["method"] == "POST" else b""
        if body is None:
            await _answer(send, 413, f"a request has at most {LARGEST_BODY:,} bytes")
            return
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def received() -> Message:
            return next(parts, None) or await receive()

        await self.app(scope, received, send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Why a request may not come in, whoever it is from; None if it may."""
        if headers.get("host") not in self.keys.hosts:
            return 421, "this server answers to its own address alone"
        site = headers.get("sec-fetch-site", "same-origin")
        inside = scope["path"] != "/"
        if (inside or scope["method"] == "POST") and site not in ("same-origin", "none"):
            return 403, "another page asked for this"
        if scope["method"] == "POST":
            origins = [f"http://{host}" for host in self.keys.hosts]
            kind = headers.get("content-type", "").partition(";")[0].strip()
            if headers.get("origin") not in origins or site != "same-origin":
                return 403, "another page asked for this"
            if kind != "application/json":
                return 415, "a verdict is JSON"
            if not headers.get("content-length", "0").isdecimal():
                return 400, "the length of the request is no number"
            if int(headers.get("content-length", "0")[:12]) > LARGEST_BODY:
                return 413, f"a request has at most {LARGEST_BODY:,} bytes"
        return None

    def _brings_token(self, scope: Scope) -> bool:
        if scope["path"] != "/" or scope["method"] != "GET":
            return False
        try:
            given = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=8)
        except ValueError:  # more fields than that
            return False
        token = given.get("token", [""])[0]
        return hmac.compare_digest(token.encode(), self.keys.token.encode())

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.keys.cookie)
        except CookieError:
            return False
        value = "" if found is None else found.value
        return hmac.compare_digest(value.encode(), self.keys.session.encode())

    def _new_cookie(self) -> tuple[bytes, bytes]:
        cookie = f"{self.keys.cookie}={self.keys.session}; Path=/; HttpOnly; SameSite=Strict"
        return b"set-cookie", cookie.encode()


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in HEADERS}
            others = [each for each in message.get("headers", []) if each[0].lower() not in names]
            message = {**message, "headers": [*others, *HEADERS]}
        await send(message)

    return guarded


async def _whole_body(receive: Receive) -> bytes | None:
    """The body of a request; None where it is too long, without reading on."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _answer(
    send: Send,
    status: int,
    text: str,
    kind: str = "text/plain",
    more: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    body = text.encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", f"{kind}; charset=utf-8".encode()), (b"content-length", length)]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
    await send({"type": "http.response.body", "body": body})
