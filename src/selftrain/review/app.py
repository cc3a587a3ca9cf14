"""What the page asks for: rows of a view, one row, its neighbours, and to write a verdict."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from selftrain.errors import ConfigError, SelftrainError, parsed
from selftrain.review.door import App, Door, Keys
from selftrain.review.near import Neighbours
from selftrain.review.session import PAGE, Session, View

PAGE_FILES = {
    "/": ("index.html", "text/html"),
    "/review.css": ("review.css", "text/css"),
    "/review.js": ("review.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
BAD = "the page sent a request that it never sends"

Answer = Callable[[Request], Awaitable[Response]]


class Decision(BaseModel):
    """A verdict, as the page sends it; rows and labels by their numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    verdict: Literal["accept", "label", "drop", "undo"]
    place: int | None = Field(default=None, ge=0)
    label: int | None = Field(default=None, ge=0)


def app_of(session: Session, neighbours: Neighbours, name: str, keys: Keys) -> App:
    """The app of one review, behind its door."""
    handlers: dict[str, Callable[[Request], Any]] = {
        "/api/run": partial(_run, session, neighbours, name),
        "/api/rows": partial(_rows, session),
        "/api/row": partial(_row, session),
        "/api/next": partial(_next, session),
    }
    routes = [Route(path, _file(*facts)) for path, facts in PAGE_FILES.items()]
    routes += [Route(path, _json_of(handler)) for path, handler in handlers.items()]
    routes.append(Route("/api/near", partial(_near, session, neighbours)))
    routes.append(Route("/api/verdict", partial(_verdict, session), methods=["POST"]))
    problems = {HTTPException: _plain, SelftrainError: _problem}
    return Door(Starlette(routes=routes, exception_handlers=problems), keys)


def _file(name: str, kind: str) -> Answer:
    body = files("selftrain.review").joinpath("page", name).read_bytes()

    async def answer(_: Request) -> Response:
        return Response(body, media_type=kind)

    return answer


def _json_of(handler: Callable[[Request], Any]) -> Answer:
    async def answer(request: Request) -> Response:
        return _sent(handler(request))

    return answer


def _sent(value: Any, status: int = 200) -> Response:
    body = json.dumps(value, separators=(",", ":"))
    return Response(body, status, media_type="application/json")


async def _plain(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _sent({"error": error.detail}, error.status_code)


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, SelftrainError)
    status = 400 if isinstance(error, ConfigError) else 500
    return _sent({"error": error.message, "hint": error.hint}, status)


# ── reading ──


def _run(session: Session, neighbours: Neighbours, name: str, _: Request) -> dict[str, Any]:
    return {
        "name": name,
        "labels": session.labels,
        "file": session.journal.path.name,
        "gold": len(neighbours.gold),
        "progress": session.progress(),
    }


def _rows(session: Session, request: Request) -> dict[str, Any]:
    asked = request.query_params
    view = _view(session, request)
    listed = session.refreshed(view) if asked.get("new") == "1" else session.listed(view)
    start = _number(request, "from")
    count = min(_number(request, "count"), PAGE)
    rows = [session.brief(place) for place in listed[start : start + count]]
    return {"total": len(listed), "from": start, "rows": rows}


def _row(session: Session, request: Request) -> dict[str, Any]:
    return session.detail(_place(session, request))


def _next(session: Session, request: Request) -> dict[str, Any]:
    return {"at": session.next_worth(_number(request, "after") - 1)}


async def _near(session: Session, neighbours: Neighbours, request: Request) -> Response:
    example = session.rows[_place(session, request)].example
    return _sent(await run_in_threadpool(neighbours.of, example))


def _view(session: Session, request: Request) -> View:
    asked = request.query_params
    label = asked.get("label") or None
    if label is not None and not (label.isdecimal() and int(label[:9]) < len(session.labels)):
        raise ConfigError(BAD, "reload it")
    return View(
        asked.get("order", "worth"),
        asked.get("text", "")[:1_000],
        None if label is None else int(label),
        asked.get("role", "all"),
        asked.get("state", "all"),
    )


def _place(session: Session, request: Request) -> int:
    place = _number(request, "place")
    if place >= len(session.rows):
        raise ConfigError(BAD, "reload it")
    return place


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise ConfigError(BAD, "reload it")
    return int(text)


# ── writing ──


async def _verdict(session: Session, request: Request) -> Response:
    decision = parsed(Decision, await request.body(), BAD, ConfigError, "reload it", strict=True)
    place: int | None
    if decision.verdict == "undo":
        place = session.undo()
    else:
        place, label = decision.place, decision.label
        if place is None or place >= len(session.rows):
            raise ConfigError(BAD, "reload it")
        if (decision.verdict == "label") != (label is not None and label < len(session.labels)):
            raise ConfigError(BAD, "reload it")
        session.decide(place, decision.verdict, label)
    verdict = None if place is None else session.verdict_of(place)
    return _sent({"place": place, "verdict": verdict, "progress": session.progress()})
