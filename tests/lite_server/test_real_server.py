"""A real server on loopback: SIGTERM in a batch, a full queue, clients that misbehave."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path

import pytest

from http_load import request_of
from selftrain_lite import Model
from served import FakeModel
from slow_server import Server, read_all, running, slow

pytestmark = pytest.mark.slow


def wait_for(server: Server, line: str) -> None:
    """Until the counters of a server have this line."""
    for _ in range(400):
        if line in server.get("/metrics"):
            return
        time.sleep(0.05)
    raise AssertionError(f"never: {line}")


def test_the_command_serves_an_exported_model(model_folder: Path, model: Model) -> None:
    command = [sys.executable, "-m", "selftrain_lite", "serve", str(model_folder), "--port", "0"]
    with running(command) as server:
        assert server.line.startswith("serving film-reviews, 2 labels: http://127.0.0.1:")
        status, answer = server.post([["great film"], ["dull"]])
        assert status == 200
        assert [each[0]["label"] for each in answer] == model.predict(["great film", "dull"])
        assert server.end() == (143, "")


def test_sigterm_in_a_batch_answers_all_that_was_taken_and_then_ends() -> None:
    with running(slow(seconds=0.5, max_batch=4)) as server, ThreadPoolExecutor(12) as pool:
        answers = [pool.submit(server.post, "x" * number) for number in range(12)]
        wait_for(server, "selftrain_batch_texts_count 1.0")
        code, words = server.end()
        found = [answer.result() for answer in answers]
    assert (code, words) == (143, "")
    assert [status for status, _ in found] == [200] * 12
    for number, (_, answer) in enumerate(found):
        scores = {each["label"]: each["score"] for each in answer}
        assert scores["long"] == pytest.approx(FakeModel.row("x" * number)[1], abs=1e-6)


def test_after_the_time_the_running_batch_is_answered_and_the_rest_refused() -> None:
    command = slow(seconds=1.0, max_batch=1, constants={"WAITING_SECONDS": 0.2})
    with running(command) as server, ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(server.post, "abc") for _ in range(4)]
        wait_for(server, "selftrain_waiting_texts 3.0")
        started = time.monotonic()
        code, _ = server.end()
        statuses = sorted(answer.result()[0] for answer in answers)
    assert code == 143
    assert statuses == [200, 503, 503, 503]
    assert time.monotonic() - started < 10


def test_a_full_queue_answers_429_and_loses_none_of_the_others() -> None:
    with running(slow(seconds=0.3, max_batch=2, queue=4)) as server, ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda n: (n, *server.post("x" * n)), range(20)))
        statuses = [status for _, status, _ in found]
        assert set(statuses) == {200, 429}
        assert statuses.count(200) >= 6
        for number, status, answer in found:
            if status == 200:
                by_label = {each["label"]: each["score"] for each in answer}
                assert by_label["long"] == pytest.approx(number / 100, abs=1e-6)
            else:
                assert answer["error_type"] == "Overloaded"
        assert server.post("abc")[0] == 200


def test_half_a_head_and_no_head_are_closed_and_half_a_body_gets_408() -> None:
    constants = {"HEAD_SECONDS": 0.5, "SECONDS": 0.5}
    with running(slow(constants=constants)) as server:
        started = time.monotonic()
        silent, half_head, half_body, second = (server.connect() for _ in range(4))
        half_head.sendall(b"POST /predict HTTP/1.1\r\nHost: local")
        half_body.sendall(request_of("abcdef")[:-4])
        second.sendall(request_of("abc"))
        answer = b""
        while not answer.endswith(b"}]"):
            answer += second.recv(65536)
        second.sendall(b"POST /pre")  # half a head on a connection that was used before
        assert server.post("abc")[0] == 200  # nobody else waits for them
        assert read_all(silent) == read_all(half_head) == read_all(second) == b""
        answer = read_all(half_body)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"the request was not complete in 0.5 s" in answer
        assert time.monotonic() - started < 10
        for connection in (silent, half_head, half_body, second):
            connection.close()


def test_a_body_that_drips_is_given_up_and_holds_up_nobody() -> None:
    with running(slow(constants={"SECONDS": 1.0})) as server:
        connection = server.connect()
        raw = request_of("x" * 200)
        connection.sendall(raw[:-200])
        stop = threading.Event()

        def drip() -> None:
            for byte in raw[-200:]:
                if stop.wait(0.05):
                    return
                try:
                    connection.sendall(bytes([byte]))
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        times = []
        for _ in range(5):
            started = time.monotonic()
            assert server.post("abc")[0] == 200
            times.append(time.monotonic() - started)
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")
        stop.set()
        thread.join()
        connection.close()
        assert sorted(times)[2] < 0.5


TOKEN = "correct-horse-battery"
OTHER_METHOD = b"PUT /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
ANSWERED_EARLY = {
    b"401": b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
    b"405": OTHER_METHOD,
    b"200": OTHER_METHOD.replace(b"PUT", b"GET"),
}


def drip(connection: socket.socket, seconds: float) -> float:
    """Send a byte now and then; how long the other side took it."""
    started = time.monotonic()
    with suppress(OSError):
        while time.monotonic() - started < seconds:
            connection.sendall(b" ")
            time.sleep(0.1)
    return time.monotonic() - started


def test_a_body_that_drips_after_its_answer_is_given_up_and_leaves_room_for_others() -> None:
    constants = {"HEAD_SECONDS": 1.0, "SECONDS": 1.0, "IDLE_SECONDS": 1, "CONNECTIONS": 4}
    with running(slow(constants=constants, token=TOKEN)) as server, ThreadPoolExecutor(3) as pool:
        connections = [server.connect() for _ in ANSWERED_EARLY]
        for connection, (status, head) in zip(connections, ANSWERED_EARLY.items(), strict=True):
            connection.sendall(head)
            assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)
        assert server.get("/health") == "Service Unavailable"  # there is no room for a fourth
        times = [pool.submit(drip, connection, 10) for connection in connections]
        assert [each.result() < 5 for each in times] == [True] * 3
        assert server.post("abc", token=TOKEN)[0] == 200
        for connection in connections:
            connection.close()


def test_a_client_that_was_refused_may_send_its_body_to_the_end_and_ask_again() -> None:
    raw = request_of("x" * 1000)
    good = raw.replace(b"\r\n", f"\r\nAuthorization: Bearer {TOKEN}\r\n".encode(), 1)
    constants = {"SECONDS": 3.0}
    with running(slow(constants=constants, token=TOKEN)) as server, server.connect() as connection:
        connection.sendall(raw[:-500])
        assert status_of(connection) == 401
        connection.sendall(raw[-500:])
        time.sleep(4)  # no clock of the body runs any more
        connection.sendall(good)
        assert status_of(connection) == 200


def status_of(connection: socket.socket) -> int:
    """The status of the next answer, which is read to its end."""
    with HTTPResponse(connection) as answer:
        answer.begin()
        answer.read()
        return answer.status


def test_clients_that_leave_poison_no_batch_and_their_texts_are_not_computed() -> None:
    with running(slow(seconds=0.4, max_batch=8)) as server, ThreadPoolExecutor(6) as pool:
        first = pool.submit(server.post, "first")
        wait_for(server, "selftrain_waiting_texts 0.0")
        leaving = [server.connect() for _ in range(6)]
        for connection in leaving:
            connection.sendall(request_of("leaves"))
        staying = [pool.submit(server.post, "x" * number) for number in range(1, 5)]
        for connection in leaving:
            connection.close()
        assert first.result()[0] == 200
        for number, answer in enumerate(staying, 1):
            status, scores = answer.result()
            assert status == 200
            assert {each["label"]: each["score"] for each in scores}["long"] == number / 100
        wait_for(server, 'selftrain_request_seconds_count{address="/predict",status="499"} 6.0')
        assert server.post("abc")[0] == 200


def test_a_client_that_reads_nothing_is_dropped_and_holds_up_no_end() -> None:
    texts = 50_000  # an answer longer than what the system stores by itself
    with running(slow(constants={"WRITE_SECONDS": 0.5}, queue=texts)) as server:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(request_of([["x"]] * texts))
        wait_for(server, 'selftrain_request_seconds_count{address="/predict",status="200"} 1.0')
        time.sleep(2)
        assert server.post("abc")[0] == 200
        started = time.monotonic()
        assert server.end() == (143, "")
        assert time.monotonic() - started < 10  # it would wait 30 s for an open connection
        received = b""
        with suppress(ConnectionError):
            while part := connection.recv(65536):
                received += part
        connection.close()
        assert len(received) < 60 * texts


def test_pipelined_requests_are_answered_in_order() -> None:
    with running(slow(seconds=0.05)) as server:
        connection = server.connect()
        connection.sendall(b"".join(request_of("x" * number) for number in range(1, 6)))
        connection.settimeout(10)
        found = b""
        while found.count(b'"label":"long"') < 5:
            found += connection.recv(65536)
        bodies = [part.partition(b"\r\n\r\n")[2] for part in found.split(b"HTTP/1.1 200 OK")[1:]]
        scores = [min(each["score"] for each in json.loads(body)) for body in bodies]
        assert scores == [0.01, 0.02, 0.03, 0.04, 0.05]
        connection.close()


def test_what_is_no_http_gets_400_and_the_log_stays_empty() -> None:
    with running(slow()) as server:
        for nonsense in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"x" * 100_000 + b"\r\n\r\n"):
            connection = server.connect()
            connection.sendall(nonsense)
            assert read_all(connection)[:12] in (b"HTTP/1.1 400", b"")
            connection.close()
        assert server.post("abc")[0] == 200
        assert server.end() == (143, "")
