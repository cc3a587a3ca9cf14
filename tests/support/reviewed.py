"""Reviews made by hand: a run folder with lessons and no training, and a page that is served."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from selftrain.data.rows import AuditLine, Example, Labelled, Lesson, uid_of
from selftrain.disk import sha256
from selftrain.model.card import Source
from selftrain.review.app import app_of
from selftrain.review.door import App, Keys
from selftrain.review.near import Neighbours
from selftrain.review.rows import Row, Rows
from selftrain.review.serve import listen
from selftrain.review.session import Session
from selftrain.review.worth import most_worth
from selftrain.runs.corrections import Journal
from selftrain.runs.lessons import write_lesson
from selftrain.runs.manifest import Manifest
from selftrain.runs.record import LESSON, MODEL, RECORD, Record
from selftrain.training.estimate import Opinion

LABELS = ("bad", "good")
ROLES = ("easy", "left", "hard")


def manifest(labels: Sequence[str] = LABELS, seed: int = 7) -> Manifest:
    return Manifest(
        format=2,
        task={"name": "task", "labels": list(labels), "pair": False},
        method={"name": "by hand", "rounds": 1},
        seed=seed,
        data={},
        backbone=Source("minilm", None, "0" * 64),
        versions={},
        device="cpu",
        threads=1,
        created="2026-01-01T00:00:00+00:00",
    )


def line(uid: str, label: str = "good", role: str = "easy", confidence: float = 0.9) -> AuditLine:
    return AuditLine(uid, label, confidence, 0.95, 0.5, role)


def write_run(folder: Path, lessons: Sequence[Sequence[AuditLine]], **more: Any) -> Path:
    """A folder that can be read like a run, except that its models are missing."""
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(asdict(manifest(**more))), "utf-8")
    for number, lines in enumerate(lessons):
        place = folder / "rounds" / str(number)
        place.mkdir(parents=True)
        write_lesson(place / LESSON, Lesson(gold=(), audit=tuple(lines)))
        files = {LESSON: sha256(place / LESSON), **dict.fromkeys(MODEL, "0" * 64)}
        record = Record(number, True, "", False, {}, files)
        (place / RECORD).write_text(json.dumps(asdict(record)), "utf-8")
    return folder


def rows_of(
    texts: Sequence[str],
    labels: Sequence[str] = LABELS,
    folds: Mapping[int, Sequence[float]] | None = None,
) -> Rows:
    """A row for each text, of each class and role by turns; ``folds`` by place."""
    rows = []
    for place, text in enumerate(texts):
        uid, label = uid_of(text), labels[place % len(labels)]
        p = tuple((folds or {}).get(place, ()))
        opinion = Opinion(uid, label, p, p) if p else None
        audit = line(uid, label, ROLES[place % 3], confidence=0.5 + 0.5 * (place % 7) / 7)
        rows.append(Row(Example(uid, text), uid, 1, audit, opinion))
    return Rows(tuple(labels), tuple(rows), ())


def session_of(rows: Rows, file: Path) -> Session:
    facts = manifest(rows.labels)
    worth = most_worth(rows.rows, rows.labels)
    return Session(rows, worth, Journal(file, facts, Path("run")), facts.digest())


# ── a page that is served ──


class Served(NamedTuple):
    keys: Keys
    session: Session

    @property
    def verdicts(self) -> list[tuple[str, str | None]]:
        """What is on disk, verdict by verdict."""
        lines = self.session.journal.path.read_text("utf-8").splitlines()
        return [(each["verdict"], each["now"]) for each in map(json.loads, lines)]


@contextmanager
def served(rows: Rows, file: Path, gold: Sequence[Labelled] = ()) -> Iterator[Served]:
    """The page of these rows on a port of this machine, in a thread."""
    import uvicorn

    session = session_of(rows, file)
    with listen(0) as listening, closing(session.journal):
        keys = Keys(listening.getsockname()[1])
        app = app_of(session, Neighbours(gold, lambda: by_length), "run", keys)
        settings = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(keys, session)
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def by_length(examples: Sequence[Example]) -> Any:
    """Stands for a model: texts of a like length are near."""
    import torch

    return torch.tensor([[1.0, len(each.text)] for each in examples])


# ── a request without a network ──


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    app: App, path: str, headers: Mapping[str, str], *, method: str = "GET", body: bytes = b""
) -> Answer:
    """What an app answers to a request with exactly these headers."""
    place, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": place,
        "raw_path": place.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 5),
        "root_path": "",
    }
    parts = [body[start : start + 4096] for start in range(0, len(body), 4096)] or [b""]
    messages = iter(
        {"type": "http.request", "body": part, "more_body": place < len(parts)}
        for place, part in enumerate(parts, 1)
    )
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:]))
