"""The server under load on loopback, beside a plain transformers pipeline behind the same FastAPI.

    python benchmarks/serve.py MODEL             requests/s, p50 and p99 at 1, 32, 256 connections
    python benchmarks/serve.py MODEL --long      100,000 requests, every answer compared
    python benchmarks/serve.py MODEL --faults    SIGTERM, a full queue, half bodies, leaving clients

MODEL is a folder that `selftrain export` wrote. Every loop is bounded. What has a line in
benchmarks/results/serve.jsonl is not measured again; the tables go to docs/reliability.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import lines

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "lite" / "src")]

import slow_server  # noqa: E402
from http_load import Load, answer, drive, request_of  # noqa: E402

OUT = ROOT / "benchmarks" / "results" / "serve.jsonl"
PAGE = ROOT / "docs" / "reliability.md"
CONNECTIONS = (1, 32, 256)
SYSTEMS = ("selftrain-lite", "pipeline")
CHUNK = 10_000
RUNS = 20
WORDS = [
    *("the", "a", "film", "story", "plot", "cast", "music", "was", "is", "and", "of", "with"),
    *("but", "very", "rather", "never", "always", "good", "bad", "dull", "great", "moving"),
    *("funny", "slow", "long", "short", "bright", "dark", "old", "new", "first", "last", "best"),
]


def texts_of(count: int = 512) -> list[str]:
    """Texts of about twenty tokens, always the same."""
    random = Random("serve")
    return [" ".join(random.choices(WORDS, k=random.randint(14, 22))) for _ in range(count)]


TEXTS = texts_of()


# ── the servers ──────────────────────────────────────────────────────────────────────────────


def command_of(system: str, model: Path) -> list[str]:
    if system == "selftrain-lite":
        options = ["--port", "0", "--threads", str(lines.threads())]
        return [sys.executable, "-m", "selftrain_lite", "serve", str(model), *options]
    return [sys.executable, __file__, str(model), "--pipeline"]


def serve_pipeline(model: Path) -> None:
    """What people write by hand: the same encoder in a transformers pipeline, behind FastAPI."""
    import torch
    import uvicorn
    from fastapi import FastAPI
    from transformers import (
        AutoConfig,
        AutoModelForSequenceClassification,
        AutoTokenizer,
        pipeline,
    )

    from selftrain_lite.serve.server import listen
    from selftrain_lite.serve.settings import Settings

    torch.set_num_threads(lines.threads())
    # The layers are those of the exported model; other weights take the same time.
    network = AutoModelForSequenceClassification.from_config(AutoConfig.from_pretrained(model))
    tokenizer = AutoTokenizer.from_pretrained(model)
    classify = pipeline(
        "text-classification", model=network.eval(), tokenizer=tokenizer, top_k=None
    )
    app = FastAPI()

    @app.post("/predict")
    def predict(request: dict[str, Any]) -> Any:
        return classify([request["inputs"]], truncation=True)[0]

    listening = listen(Settings(port=0))
    print(f"serving: http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def server_of(system: str, model: Path) -> Iterator[slow_server.Server]:
    with slow_server.running(command_of(system, model)) as server:
        asyncio.run(drive(server.port, TEXTS, range(32), 4, served))  # warm
        yield server


def served(_number: int, status: int, found: Any) -> str:
    return (
        "right"
        if status == 200 and abs(sum(each["score"] for each in found) - 1) < 1e-3
        else "wrong"
    )


# ── load ─────────────────────────────────────────────────────────────────────────────────────


def measure(model: Path, requests: int, turns: int, out: Path) -> None:
    known = lines.measured(out, "system", "connections", "turn")
    for turn in range(turns):
        if ("model", 0, turn) not in known:
            lines.append(
                out, {"system": "model", "connections": 0, "turn": turn} | alone(model, requests)
            )
        for system in SYSTEMS:
            wanted = [n for n in CONNECTIONS if (system, n, turn) not in known]
            if not wanted:
                continue
            with server_of(system, model) as server:
                for connections in wanted:
                    line = {"system": system, "connections": connections, "turn": turn}
                    lines.append(out, line | under_load(server.port, connections, requests))


def under_load(port: int, connections: int, requests: int) -> lines.Line:
    started = time.perf_counter()
    load = asyncio.run(drive(port, TEXTS, range(requests), connections, served))
    seconds = time.perf_counter() - started
    return {"requests": requests, "rate": requests / seconds, "counts": load.counts} | times(load)


def alone(model: Path, requests: int) -> lines.Line:
    """The model by itself, one text at a time: what no server can be faster than."""
    from selftrain_lite import load

    loaded, found = load(model, threads=lines.threads()), Load()
    for number in range(requests + 16):
        started = time.perf_counter()
        loaded.predict_proba([TEXTS[number % len(TEXTS)]])
        if number >= 16:
            found.add("right", time.perf_counter() - started)
    return {"requests": requests, "rate": requests / sum(found.seconds)} | times(found)


def times(load: Load) -> dict[str, float]:
    return {"p50": load.percentile(0.50), "p99": load.percentile(0.99)}


# ── many requests ────────────────────────────────────────────────────────────────────────────


def long(model: Path, requests: int, out: Path) -> None:
    """Every answer is compared with that of the predictor."""
    from selftrain_lite import load

    loaded = load(model, threads=1)
    expected = loaded.predict_proba(TEXTS)

    def check(number: int, status: int, found: Any) -> str:
        if status != 200:
            return "refused"
        scores = {each["label"]: each["score"] for each in found}
        row = expected[number % len(TEXTS)]
        near = all(abs(scores[k] - p) < 1e-4 for k, p in zip(loaded.labels, row, strict=True))
        return "right" if near and len(scores) == len(row) else "wrong"

    chunk = min(CHUNK, requests)
    known = lines.measured(out, "system", "turn")
    wanted = [turn for turn in range(requests // chunk) if ("long", turn) not in known]
    if not wanted:
        return
    with server_of("selftrain-lite", model) as server:
        for turn in wanted:
            numbers = range(turn * chunk, (turn + 1) * chunk)
            found = asyncio.run(drive(server.port, TEXTS, numbers, 64, check))
            line = {"system": "long", "turn": turn, "requests": chunk, "counts": found.counts}
            lines.append(out, line | times(found))


# ── faults ───────────────────────────────────────────────────────────────────────────────────


def score_of(number: int) -> float:
    return (number % 100) / 100


def fits(number: int, found: Any) -> bool:
    return abs({each["label"]: each["score"] for each in found}["long"] - score_of(number)) < 1e-5


async def one(port: int, number: int, *, leave: float | None = None, cut: int = 0) -> str:
    """One request on a connection of its own; it may leave early, or lack its last bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        raw = request_of("x" * (number % 100))
        writer.write(raw[: len(raw) - cut])
        if leave is not None:
            await asyncio.sleep(leave)
            return "left"
        async with asyncio.timeout(60):
            status, found = await answer(reader)
        if status == 200:
            return "right" if fits(number, found) and not cut else "wrong"
        return "refused" if status in (408, 429, 503) else "wrong"
    except (OSError, EOFError, TimeoutError):
        return "refused" if cut else "lost"
    finally:
        writer.close()


async def together(*clients: Any) -> dict[str, int]:
    load = Load()
    for verdict in await asyncio.gather(*clients):
        load.add(verdict)
    return load.counts


def sigterm(random: Random) -> lines.Line:
    """64 requests are taken; SIGTERM at a random moment of the first batches; all are answered."""
    with slow_server.running(slow_server.slow(seconds=0.1, max_batch=8)) as server:

        async def go() -> dict[str, int]:
            clients = [asyncio.create_task(one(server.port, n)) for n in range(64)]
            for _ in range(200):
                page = await asyncio.to_thread(server.get, "/metrics")
                if taken(page) >= 64 or all(client.done() for client in clients):
                    break
            await asyncio.sleep(random.uniform(0, 0.2))
            server.process.terminate()
            return await together(*clients)

        counts = asyncio.run(go())
        code = server.process.wait(60)
    return {"counts": counts, "fine": code == 143 and counts == {"right": 64}}


def taken(page: str) -> float:
    """Texts that were answered, wait, or are in the model."""
    found = dict(line.rsplit(" ", 1) for line in page.splitlines() if line[:1] not in ("", "#"))
    names = ("batch_texts_sum", "waiting_texts", "running_texts")
    return sum(float(found[f"selftrain_{name}"]) for name in names)


def full_queue(random: Random) -> lines.Line:
    """Four times as many clients as may wait: each has its answer or status 429."""
    with slow_server.running(slow_server.slow(seconds=0.05, max_batch=4, queue=16)) as server:
        clients = [one(server.port, random.randrange(100)) for _ in range(64)]

        async def go() -> dict[str, int]:
            return await together(*clients)

        counts = asyncio.run(go())
    right, refused = counts.get("right", 0), counts.get("refused", 0)
    return {"counts": counts, "fine": right + refused == 64 and right >= 16}


def half_bodies(random: Random) -> lines.Line:
    """Half of the clients never end their request; the others have their answers."""
    constants = {"SECONDS": 1.0, "HEAD_SECONDS": 1.0}
    with slow_server.running(slow_server.slow(seconds=0.02, constants=constants)) as server:

        async def go() -> dict[str, int]:
            whole = [one(server.port, random.randrange(100)) for _ in range(32)]
            half = [one(server.port, 50, cut=random.randint(1, 140)) for _ in range(32)]
            return await together(*half, *whole)

        counts = asyncio.run(go())
    return {"counts": counts, "fine": counts == {"right": 32, "refused": 32}}


def leaving(random: Random) -> lines.Line:
    """Half of the clients leave at a random moment; the others have their answers."""
    with slow_server.running(slow_server.slow(seconds=0.1, max_batch=8)) as server:

        async def go() -> dict[str, int]:
            gone = [one(server.port, 50, leave=random.uniform(0, 0.8)) for _ in range(32)]
            stay = [one(server.port, random.randrange(100)) for _ in range(32)]
            mixed = [*gone, *stay]
            random.shuffle(mixed)
            return await together(*mixed)

        counts = asyncio.run(go())
    return {"counts": counts, "fine": counts == {"left": 32, "right": 32}}


FAULTS: dict[str, Callable[[Random], lines.Line]] = {
    "SIGTERM while batches are computed": sigterm,
    "four times as many texts as may wait": full_queue,
    "half of the requests never end": half_bodies,
    "half of the clients leave": leaving,
}


def faults(runs: int, out: Path) -> None:
    known = lines.measured(out, "fault", "turn")
    for name, fault in FAULTS.items():
        for turn in range(runs):
            if (name, turn) not in known:
                lines.append(out, {"fault": name, "turn": turn} | fault(Random(f"{name} {turn}")))


# ── the tables ───────────────────────────────────────────────────────────────────────────────


def load_table(every: list[lines.Line]) -> Iterator[str]:
    groups = lines.groups([line for line in every if "rate" in line], "system", "connections")
    if not groups:
        return
    yield "| | connections | requests/s | p50 ms | p99 ms |"
    yield "|---|---:|---:|---:|---:|"
    names = {"model": "the model alone, one text at a time", "pipeline": "transformers pipeline"}
    for (system, connections), found in groups.items():
        rate, p50, p99 = (median(line[key] for line in found) for key in ("rate", "p50", "p99"))
        place = connections or ""
        yield f"| {names.get(system, system)} | {place} | {rate:.0f} | {p50:.1f} | {p99:.1f} |"
    yield ""
    yield from floors(groups)


def floors(groups: dict[Any, list[lines.Line]]) -> Iterator[str]:
    def middle(system: str, connections: int, key: str) -> float:
        return median(
            line[key] for line in groups.get((system, connections), [{key: float("nan")}])
        )

    ours, theirs = (middle(system, 32, "rate") for system in SYSTEMS)
    slowest, model = middle("selftrain-lite", 1, "p99"), middle("model", 0, "p50")
    yield f"At 32 connections {ours / theirs:.1f} times the pipeline's requests/s (asked: 2)."
    yield f"At one connection p99 is {slowest / model:.1f} times the model's own median (asked: 2)."


def fault_table(every: list[lines.Line]) -> Iterator[str]:
    found = lines.groups([line for line in every if "fault" in line], "fault")
    rows = [(name, each) for (name,), each in found.items()]
    many = [line for line in every if line.get("system") == "long"]
    if not rows and not many:
        return
    yield "| | runs | requests | right | refused as promised | left | lost or wrong |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, each in [*rows, ("64 connections, every answer compared", many)]:
        if each:
            counts = {key: sum(line["counts"].get(key, 0) for line in each) for key in VERDICTS}
            bad = counts["lost"] + counts["wrong"]
            cells = (len(each), sum(counts.values()), counts["right"], counts["refused"])
            shown = " | ".join(f"{cell:,}" for cell in (*cells, counts["left"], bad))
            yield f"| {name} | {shown} |"


VERDICTS = ("right", "refused", "left", "lost", "wrong")


def write_page(page: Path, every: list[lines.Line]) -> None:
    lines.write_table(page, "serve.py", "load", load_table(every))
    lines.write_table(page, "serve.py", "faults", fault_table(every))


def main() -> None:
    """Measure what has no line yet; write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, help="a folder that `selftrain export` wrote")
    parser.add_argument("--requests", type=int, help="for each measurement (2,000; --long 100,000)")
    parser.add_argument("--turns", type=int, default=3, help="how often each is measured (3)")
    parser.add_argument("--long", action="store_true", help="many requests, every answer compared")
    parser.add_argument("--faults", action="store_true", help="clients and ends that misbehave")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each fault (20)")
    parser.add_argument("--pipeline", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=OUT, help="the file of lines")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the tables")
    given = parser.parse_args()
    if given.pipeline:
        serve_pipeline(given.model)
        return
    if given.long:
        long(given.model, given.requests or 100_000, given.out)
    elif given.faults:
        faults(given.runs, given.out)
    else:
        measure(given.model, given.requests or 2_000, given.turns, given.out)
    every = lines.read(given.out)
    write_page(given.page, every)
    bad = [
        line for line in every
        if not line.get("fine", True) or {"lost", "wrong"} & set(line.get("counts", {}))
    ]  # fmt: skip
    print(json.dumps({"lines": len(every), "bad": len(bad)}))
    sys.exit(bool(bad))


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    main()
