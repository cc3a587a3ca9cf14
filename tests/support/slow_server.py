"""A real server on loopback whose model takes its time: ``python slow_server.py '{"seconds": 1}'``.

Also the way that tests and benchmarks start one and talk to it byte by byte.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

PATHS = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "lite" / "src")]


class Server:
    """A server in a process of its own."""

    def __init__(self, command: list[str], ready: str = "") -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(PATHS)}
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, text=True
        )
        assert self.process.stderr is not None
        self.line = self.process.stderr.readline()
        while self.line and not self.line.startswith(ready):
            self.line = self.process.stderr.readline()
        found = re.search(r":(\d+)$", self.line.strip())
        assert found, self.line + self.process.stderr.read()
        self.port = int(found[1])

    def connect(self) -> socket.socket:
        """A connection, for clients that misbehave."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def post(self, inputs: Any, *, timeout: float = 30, token: str = "") -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request("POST", "/predict", json.dumps({"inputs": inputs}), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def get(self, address: str) -> str:
        """The text of a page."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", address)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def end(self) -> tuple[int, str]:
        """Ask it to end; its exit code and what it wrote."""
        self.process.send_signal(signal.SIGTERM)
        _, words = self.process.communicate(timeout=60)
        return self.process.returncode, words


@contextmanager
def running(command: list[str], ready: str = "") -> Iterator[Server]:
    """A server that is gone afterwards; ``ready`` begins the line that names its port."""
    server = Server(command, ready)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


def slow(**options: Any) -> list[str]:
    """The command of a server whose every batch takes so many seconds."""
    return [sys.executable, __file__, json.dumps(options)]


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


def main() -> None:
    """Serve until SIGTERM."""
    options = json.loads(sys.argv[1])
    seconds = options.pop("seconds", 0.0)
    constants = options.pop("constants", {})

    from selftrain_lite.serve import body, server
    from selftrain_lite.serve.settings import Settings
    from served import FakeModel

    for name, value in constants.items():
        setattr(body if name == "SECONDS" else server, name, value)

    class SlowModel(FakeModel):
        def predict_proba(self, texts: Any) -> Any:
            if texts != [""]:  # the first one, before it listens
                time.sleep(seconds)
            return super().predict_proba(texts)

    server.serve(SlowModel(), Settings(port=0, **options))


if __name__ == "__main__":
    main()
