"""Who may talk to the page, and what it answers to the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reviewed import Answer, by_length, request, rows_of, session_of
from selftrain.data.rows import Labelled, examples
from selftrain.errors import ModelError
from selftrain.review.app import PAGE_FILES, app_of
from selftrain.review.door import LARGEST_BODY, App, Keys
from selftrain.review.near import Neighbours
from selftrain.review.session import Session

KEYS = Keys(8123)
HOST = {"host": "127.0.0.1:8123"}
INSIDE = {**HOST, "cookie": f"{KEYS.cookie}={KEYS.session}"}
WRITES = {
    **INSIDE,
    "origin": "http://127.0.0.1:8123",
    "sec-fetch-site": "same-origin",
    "content-type": "application/json",
}
ACCEPT = b'{"verdict": "accept", "place": 0}'


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    found = session_of(rows_of(["one text", "another text"]), tmp_path / "corrections.jsonl")
    yield found
    found.journal.close()


@pytest.fixture
def app(session: Session) -> App:
    return app_of(session, Neighbours((), lambda: by_length), "run", KEYS)


def post(app: App, body: bytes = ACCEPT, **headers: str) -> Answer:
    changed = {**WRITES, **{name.replace("_", "-"): value for name, value in headers.items()}}
    sent = {name: value for name, value in changed.items() if value}
    return request(app, "/api/verdict", sent, method="POST", body=body)


def test_the_token_opens_the_page_once_and_the_cookie_from_then_on(app: App) -> None:
    opened = request(app, f"/?token={KEYS.token}", HOST)
    assert opened.status == 200
    assert b'<meta http-equiv="refresh" content="0; url=/">' in opened.body
    assert KEYS.token.encode() not in opened.body
    cookie = opened.headers["set-cookie"]
    assert cookie == f"selftrain-review-8123={KEYS.session}; Path=/; HttpOnly; SameSite=Strict"
    page = request(app, "/", {**HOST, "cookie": cookie.partition(";")[0]})
    assert page.status == 200
    assert b"<!doctype html>" in page.body


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?token=",
        "/?token=wrong",
        "/?" + "a=1&" * 9,
        "/?" + "&" * 99,
        "/api/rows",
        "/review.js",
    ],
)
def test_without_token_or_cookie_nothing_is_shown(app: App, path: str) -> None:
    answer = request(app, path, HOST)
    assert answer.status == 403
    assert b"selftrain review" in answer.body
    assert request(app, path, {**HOST, "cookie": f"{KEYS.cookie}=wrong"}).status == 403
    assert request(app, path, {**HOST, "cookie": "\x00;;=,"}).status == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "[::1]:8123", ""])
def test_another_host_is_refused_even_with_the_cookie(app: App, host: str) -> None:
    assert request(app, "/", {**INSIDE, "host": host}).status == 421
    assert request(app, f"/?token={KEYS.token}", {"host": host}).status == 421


@pytest.mark.parametrize("path", [*PAGE_FILES, "/api/run", "/nothing", "/api/rows"])
def test_every_answer_has_the_headers_that_protect_it(app: App, path: str) -> None:
    for headers in (INSIDE, HOST, {}):
        found = request(app, path, headers).headers
        policy = found["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert found["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("origin", "http://evil.example", 403),
        ("origin", "http://127.0.0.1:9999", 403),
        ("origin", "null", 403),
        ("origin", "", 403),
        ("sec_fetch_site", "cross-site", 403),
        ("sec_fetch_site", "same-site", 403),
        ("sec_fetch_site", "none", 403),
        ("content_type", "text/plain", 415),
        ("content_type", "", 415),
        ("cookie", "", 403),
        ("host", "evil.example:8123", 421),
        ("content_length", "-1", 400),
        ("content_length", "99999999", 413),
    ],
)
def test_a_verdict_from_elsewhere_is_refused(
    app: App, session: Session, header: str, value: str, status: int
) -> None:
    assert post(app, **{header: value}).status == status
    assert session.journal.corrections == []


def test_another_page_cannot_read_rows(app: App) -> None:
    path = "/api/rows?from=0&count=1"
    assert request(app, path, INSIDE).status == 200
    assert request(app, path, {**INSIDE, "sec-fetch-site": "cross-site"}).status == 403


def test_a_long_body_is_refused_before_it_is_read_whole(app: App, session: Session) -> None:
    body = b'{"verdict": "accept", "place": 0, "x": "' + b"x" * LARGEST_BODY + b'"}'
    assert post(app, body).status == 413
    assert session.journal.corrections == []


def test_a_verdict_is_on_disk_when_it_is_answered(app: App, session: Session) -> None:
    answer = post(app)
    assert answer.json["verdict"] == ["accept", 0]
    (line,) = session.journal.path.read_text("utf-8").splitlines()
    assert json.loads(line)["verdict"] == "accept"
    assert post(app, b'{"verdict": "undo"}').json["place"] == 0
    assert post(app, b'{"verdict": "undo"}').json["place"] is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"verdict": "accept"}',
        b'{"verdict": "accept", "place": 9}',
        b'{"verdict": "accept", "place": -1}',
        b'{"verdict": "accept", "place": 0, "label": 1}',
        b'{"verdict": "label", "place": 0}',
        b'{"verdict": "label", "place": 0, "label": 7}',
        b'{"verdict": "steal", "place": 0}',
        b'{"verdict": "drop", "place": true}',
        b'{"verdict": "drop", "place": 0, "more": 1}',
    ],
)
def test_a_verdict_that_no_page_sends_is_refused(app: App, session: Session, body: bytes) -> None:
    assert post(app, body).status == 400
    assert session.journal.corrections == []


@pytest.mark.parametrize(
    "query",
    ["", "from=-1&count=1", "from=0", "from=0&count=1&label=9", "from=0&count=1&order=odd",
     "from=9999999999&count=1", "from=%D9%A1&count=1"],
)  # fmt: skip
def test_rows_that_no_page_asks_for_are_refused(app: App, query: str) -> None:
    assert request(app, f"/api/rows?{query}", INSIDE).status == 400


def test_a_write_by_get_and_an_unknown_path_do_nothing(app: App) -> None:
    assert request(app, "/api/verdict", INSIDE).status == 405
    assert request(app, "/../../etc/passwd", INSIDE).status == 404


def test_a_full_disk_is_an_answer_that_says_so(
    app: App, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    answer = post(app)
    assert answer.status == 500
    assert "No space left" in answer.json["error"]
    assert "df -h" in answer.json["hint"]


def near(session: Session, gold: Sequence[Labelled], load: Callable[[], Any]) -> Answer:
    """The last answer; before it, while the model is loaded, nobody waits."""
    may_load = threading.Event()

    def loaded() -> Any:
        may_load.wait()
        return load()

    neighbours = Neighbours(gold, loaded)
    app = app_of(session, neighbours, "run", KEYS)
    answer = request(app, "/api/near?place=0", INSIDE)
    if gold:
        assert answer.json == {"state": "loading"}
    may_load.set()
    while answer.json["state"] == "loading":
        answer = request(app, "/api/near?place=0", INSIDE)
    neighbours.close()
    return answer


def test_the_three_nearest_labelled_texts_are_found(session: Session) -> None:
    gold = [Labelled(each, "good") for each in examples(["8 signs.", "7 signs", "six", "x" * 90])]
    found = near(session, gold, lambda: by_length).json
    assert [each["text"] for each in found["near"]] == ["8 signs.", "7 signs", "x" * 90]
    assert found["near"][0]["similarity"] == 1.0


def test_without_labelled_texts_no_model_is_loaded(session: Session) -> None:
    def never() -> object:
        raise AssertionError

    assert near(session, (), never).json == {"state": "none"}


def test_a_model_that_cannot_be_loaded_is_explained(session: Session) -> None:
    def failing() -> object:
        raise ModelError("the backbone is not embedded", "--backbone NAME")

    gold = [Labelled(each, "good") for each in examples(["a"])]
    found = near(session, gold, failing).json
    assert found == {"state": "failed", "why": "the backbone is not embedded. --backbone NAME"}
