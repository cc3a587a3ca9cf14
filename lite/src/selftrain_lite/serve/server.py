"""A port with a model behind it, until someone ends the process."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
import sys
import threading
from typing import Any, NoReturn

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from selftrain_lite.errors import LiteError, brief
from selftrain_lite.serve import body
from selftrain_lite.serve.app import Predictor, Service, app_of, service_of
from selftrain_lite.serve.settings import Settings

HEAD_SECONDS = 10.0
"""For the head of a request, from its first byte or from the connection on."""
IDLE_SECONDS = 30
WRITE_SECONDS = 30.0
"""For a client that reads nothing of a long answer."""
WAITING_SECONDS = 20.0
"""After SIGTERM, for texts that wait; a batch that runs is always finished."""
END_SECONDS = 30
CONNECTIONS = 4096


class Connection(H11Protocol):
    """A connection that is closed when its client ends no head or no body, or reads nothing."""

    _timer: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there, and has so many seconds for its request."""
        super().connection_made(transport)
        self._start(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Some bytes came; half a head starts the clock, a whole one stops it."""
        had_rest = self._has_rest()
        super().data_received(data)
        if self._has_rest():
            return  # however it drips: the clock runs on
        if had_rest or self.conn.their_state is not h11.IDLE:
            self._stop()
        if self.conn.their_state is h11.IDLE:
            self._start(HEAD_SECONDS)

    def on_response_complete(self) -> None:
        """An answer is sent; the rest of a body that it did not wait for has so many seconds."""
        # To close at once would take the answer from a client that still sends.
        if self._has_rest():
            self._start(body.SECONDS)
        super().on_response_complete()

    def _has_rest(self) -> bool:
        """Whether the client still sends the body of a request that is answered."""
        return self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def timeout_keep_alive_handler(self) -> None:
        """Nothing came for a while; what the client never read is dropped."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _start(self, seconds: float) -> None:
        if self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """A server that answers what it took before it ends."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, finish what waits, end."""
        self.service.batcher.close(WAITING_SECONDS)
        await super().shutdown(sockets)


def listen(settings: Settings) -> socket.socket:
    """A socket on the host and port; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only where the protocol is named; else answers wait 40 ms.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
        found.listen(1024)
    except (OSError, UnicodeError) as error:
        found.close()
        reasons = {
            errno.EADDRINUSE: "another program uses it",
            errno.EACCES: "the system does not allow it",
        }
        number = getattr(error, "errno", None) or 0
        reason = reasons.get(number, getattr(error, "strerror", None) or "no such host")
        raise LiteError(
            f"cannot open port {settings.port} of {brief(settings.host)}: {reason}",
            "--port 0 takes any port that is free",
        ) from None
    return found


def serve(model: Predictor, settings: Settings) -> None:
    """Answer until the process is ended; SIGTERM gives the exit code 143."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # more threads slow one text
    listening = listen(settings)
    service = service_of(model, settings)
    model.predict_proba([("", "") if model.pair else ""])  # a graph that cannot be run ends here
    allow_many_connections()
    config = uvicorn.Config(
        app_of(service),
        http=Connection,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
        limit_concurrency=CONNECTIONS,
        backlog=1024,
    )
    host, port = listening.getsockname()[:2]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    name, count = service.name, len(model.labels)
    print(f"serving {name}, {count} labels: http://{address}", file=sys.stderr, flush=True)
    end_by_code()
    Server(config, service).run(sockets=[listening])


def end_by_code() -> None:
    """Let SIGTERM, which uvicorn sends again when all is answered, end with the code 143."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, _: Any) -> NoReturn:
    sys.exit(128 + number)


def allow_many_connections() -> None:
    """Raise the number of open files as far as the system lets us, for many clients."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * CONNECTIONS if most == resource.RLIM_INFINITY else min(most, 2 * CONNECTIONS)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
