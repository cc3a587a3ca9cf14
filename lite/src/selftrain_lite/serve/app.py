"""The addresses of the server, and what each of them answers."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Protocol

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from selftrain_lite.serve import kserve, schema, tei
from selftrain_lite.serve.batcher import Batcher, Row, Text
from selftrain_lite.serve.body import LeftError, Receive, json_of
from selftrain_lite.serve.door import BROKEN, Door
from selftrain_lite.serve.metrics import CONTENT_TYPE, Metrics
from selftrain_lite.serve.refusal import RefusedError
from selftrain_lite.serve.settings import Settings
from selftrain_lite.version import __version__

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
PAGE = ("page.css", "page.js", "docs.js", "icon.svg")
SWAGGER = ("swagger-ui.css", "swagger-ui-bundle.js")
NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
REFUSED = (400, 401, 403, 408, 413, 421, 422, 424, 429, 503)
PAIR, TEXT = ["a moving film", "the film is sad"], "a moving and funny film"


class Predictor(Protocol):
    """The parts of a model that a server uses."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes."""

    @property
    def pair(self) -> bool:
        """Whether it reads pairs."""

    @property
    def max_batch(self) -> int:
        """Texts that may be answered together."""

    @property
    def info(self) -> dict[str, Any]:
        """What is known of it."""

    def predict_proba(self, texts: Sequence[Any]) -> Any:
        """Probabilities, [N, C]."""


@dataclass(frozen=True, slots=True)
class Service:
    """A model with its queue and its counters."""

    model: Predictor
    settings: Settings
    batcher: Batcher
    metrics: Metrics
    name: str
    """By which clients of KServe call the model."""

    async def rows(self, texts: Sequence[Text], receive: Receive) -> list[Row]:
        """The probabilities of texts; a client that leaves takes its texts with it."""
        answer = self.batcher.submit(texts)
        leaving = asyncio.create_task(until_left(receive))
        leaving.add_done_callback(lambda _: answer.cancel())
        try:
            rows = await answer
        except asyncio.CancelledError:
            if leaving.done() and not leaving.cancelled():
                raise LeftError from None
            raise
        finally:
            leaving.cancel()
        self.metrics.answers(rows, self.settings.abstain)
        return rows


async def until_left(receive: Receive) -> None:
    """Wait until the client closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def service_of(model: Predictor, settings: Settings) -> Service:
    """A model behind a queue."""
    metrics = Metrics(model.labels)
    # An int8 model answers one text at a time: its answer would depend on the others.
    batcher = Batcher(
        model.predict_proba,
        max_batch=min(settings.max_batch, model.max_batch),
        queue=settings.queue,
        watch=metrics,
    )
    metrics.look_at(batcher)
    name = re.sub(r"[^\w.-]+", "-", str(model.info["task"])).strip("-") or "model"
    return Service(model, settings, batcher, metrics, name)


def app_of(service: Service) -> Door:
    """The whole application, behind its door."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.batcher.running():
            yield

    more: dict[str, Any] = {}
    if "telemetry" in inspect.signature(FastAPI).parameters:  # newer versions have it
        more["telemetry"] = NO_TELEMETRY
    app = FastAPI(
        title="selftrain-lite",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        **more,
    )
    add_predict(app, service)
    add_kserve(app, service)
    add_state(app, service)
    add_pages(app)
    if service.settings.token is not None:
        describe_token(app)
    app.add_exception_handler(HTTPException, not_here)
    app.add_exception_handler(LeftError, left)
    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(Exception, refused)  # the door writes where it happened
    return Door(app, service.settings)


def add_predict(app: FastAPI, service: Service) -> None:
    """The protocol of text-embeddings-inference."""
    model, settings = service.model, service.settings

    async def predict(request: Request) -> Any:
        given = await json_of(request.headers, request.receive)
        texts, several = tei.texts_of(given, pair=model.pair, most=settings.queue)
        rows = await service.rows(texts, request.receive)
        answers = [tei.answer(row, model.labels, settings.abstain) for row in rows]
        return answers if several else answers[0]

    @app.post(
        "/predict",
        openapi_extra=schema.body(schema.PREDICT, {"inputs": PAIR if model.pair else TEXT}),
        responses=schema.answers(schema.SCORES, *REFUSED),
    )
    async def label_texts(request: Request) -> Response:
        """Label texts: best label first. Two texts in one list are a pair."""
        return await counted(service, "/predict", predict(request))


def add_kserve(app: FastAPI, service: Service) -> None:
    """The protocol of KServe, version 2."""
    model, settings = service.model, service.settings

    def check_name(name: str) -> None:
        if name != service.name:
            raise RefusedError(404, f"there is no such model; this server has {service.name}")

    async def infer(name: str, request: Request) -> Any:
        check_name(name)
        given = await json_of(request.headers, request.receive)
        texts = kserve.texts_of(given, pair=model.pair, most=settings.queue)
        chosen = kserve.wanted_outputs(given)
        rows = await service.rows(texts, request.receive)
        tensors = kserve.outputs(rows, model.labels, settings.abstain)
        return kserve.answer(given, service.name, [tensors[each] for each in chosen])

    @app.get("/v2", responses=schema.answers({"type": "object"}))
    async def describe_server() -> Response:
        """What this server is."""
        return as_json({"name": "selftrain-lite", "version": __version__, "extensions": []})

    @app.get("/v2/models/{name}", responses=schema.answers({"type": "object"}))
    async def describe_model(name: str) -> Response:
        """The tensors that the model takes and gives."""
        check_name(name)
        return as_json(kserve.description(service.name, model.labels, pair=model.pair))

    @app.get("/v2/models/{name}/ready")
    async def model_is_ready(name: str) -> Response:
        """Whether the model takes texts."""
        check_name(name)
        return ready(service)

    @app.post(
        "/v2/models/{name}/infer",
        openapi_extra=schema.body(schema.INFER, kserve.example(pair=model.pair)),
        responses=schema.answers({"type": "object"}, *REFUSED),
    )
    async def infer_tensors(name: str, request: Request) -> Response:
        """Label texts, in tensors of KServe."""
        return await counted(service, "/v2/infer", infer(name, request))


def add_state(app: FastAPI, service: Service) -> None:
    """What the server says of itself."""
    settings = service.settings
    facts = tei.info(
        service.model.info,
        service.name,
        queue=settings.queue,
        max_batch=service.batcher.max_batch,
    )
    facts["abstain"] = settings.abstain

    @app.get("/info", responses=schema.answers({"type": "object"}, 401, 421))
    async def describe() -> Response:
        """The model: labels, expected accuracy, limits."""
        return as_json(facts)

    @app.get("/health")
    async def health() -> Response:
        """200 while the server takes texts, 503 when it is about to end."""
        return ready(service)

    @app.get("/v2/health/ready")
    async def is_ready() -> Response:
        """200 while the server takes texts, 503 when it is about to end."""
        return ready(service)

    @app.get("/v2/health/live")
    async def is_alive() -> Response:
        """200 while the server runs."""
        return as_json({"live": True})

    @app.get("/metrics")
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)


def add_pages(app: FastAPI) -> None:
    """The pages, from files of this package."""
    addresses = {"/": "page/index.html", "/docs": "page/docs.html"}
    addresses |= {f"/page/{name}": f"page/{name}" for name in PAGE}
    addresses |= {f"/swagger/{name}": f"swagger/{name}" for name in SWAGGER}
    for address, name in addresses.items():
        app.add_api_route(address, page(name), include_in_schema=False)


def describe_token(app: FastAPI) -> None:
    """Let the page of the interface ask for the token."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        found = described()
        kinds = {"token": {"type": "http", "scheme": "bearer"}}
        found.setdefault("components", {})["securitySchemes"] = kinds
        return found | {"security": [{"token": []}]}

    app.openapi = openapi  # type: ignore[method-assign]


def page(name: str) -> Any:
    """A function that answers with a file of this package."""
    content = files("selftrain_lite.serve").joinpath(name).read_bytes()
    kind = KINDS[name.rpartition(".")[2]]

    async def show() -> Response:
        return Response(content, media_type=kind)

    return show


async def counted(service: Service, address: str, answer: Any) -> Response:
    """An answer as JSON, or a refusal; both are counted with their time."""
    started, status = time.perf_counter(), 200
    try:
        return as_json(await answer)
    except RefusedError as refusal:
        status = refusal.status
        raise
    except LeftError:
        status = 499
        raise
    except Exception:
        status = 500
        raise
    finally:
        service.metrics.request(address, status, time.perf_counter() - started)


def ready(service: Service) -> Response:
    """200 while the server takes texts."""
    if service.batcher.closing:
        raise RefusedError(503, "the server is about to end")
    return as_json({"ready": True})


def as_json(value: object) -> Response:
    """Compact JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(), media_type="application/json")


async def refused(_: Request, error: Exception) -> Response:
    """A refusal as an answer: a status code and one line."""
    refusal = error if isinstance(error, RefusedError) else RefusedError(500, BROKEN)
    return Response(
        json.dumps(refusal.content()).encode(),
        refusal.status,
        refusal.headers,
        media_type="application/json",
    )


async def not_here(request: Request, error: Exception) -> Response:
    """The answer for an address that is none, or another method."""
    status = getattr(error, "status_code", 404)
    words = "this address takes another method" if status == 405 else "there is nothing here"
    return await refused(request, RefusedError(status, f"{words}; see /docs"))


async def left(_: Request, __: Exception) -> Response:
    """The answer that nobody reads."""
    return Response(status_code=499)
