"""Faults and load, measured: what becomes of a run that is killed, starved or crowded.

    python benchmarks/reliability.py              # 200 kills and all the rest; resumes
    python benchmarks/reliability.py --quick      # a few of each, as `make test-slow` does
    python benchmarks/reliability.py --only kill disk

Every fault hits a small run with a tiny encoder; then the same command is given again. A line says
whether that ended with the same models, bit for bit, as a run that nobody disturbed. The table goes
to docs/reliability.md. The exit code is 1 where a fault did harm.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import lines

sys.path.insert(0, str(lines.ROOT / "tests" / "support"))
import small_disk
import small_run
import tiny
from selftrain.errors import LockedError, SelftrainError, out_of_memory

OUT = lines.ROOT / "benchmarks" / "results" / "reliability.jsonl"
PAGE = lines.ROOT / "docs" / "reliability.md"
MOMENTS = ("teacher", "annotation", "student", "probe round", "judging", "writing")
COUNTS = {"kill": 200, "disk": 60, "memory": 30, "clock": 10, "writers": 10, "threads": 20}
COUNTS["processes"] = 20
QUICK = {"kill": 6, "disk": 3, "memory": 3, "clock": 2, "writers": 2, "threads": 4, "processes": 3}
METHODS = tuple(small_run.METHODS)

forks = multiprocessing.get_context("forkserver")


# ── a run in a process of its own ────────────────────────────────────────────────────────────


@dataclass
class Whole:
    """A run that nobody disturbed."""

    models: dict[str, bytes]
    seconds: float
    kilobytes: int
    timeline: list[tuple[str, float]]
    """What it did in order, and for how many seconds each time."""


def models(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("model.safetensors")}


def watched(stage: Any, entered: Any, note: Callable[[str, float], None]) -> None:
    """Let the loop of this process say where it is: for how a kill is counted."""
    from selftrain.runs.write import Run
    from selftrain.training import loop

    def wrapped(function: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        @wraps(function)
        def inside(*given: Any, **more: Any) -> Any:
            before, started = stage.value, time.perf_counter()
            stage.value = name(*given).encode()
            entered.value += 1
            try:
                return function(*given, **more)
            finally:
                note(name(*given), time.perf_counter() - started)
                stage.value = before

        return inside

    def student(job: Any, _teacher: Any, _lesson: Any, number: int, _readings: Any) -> str:
        return "probe round" if job.method.is_probe(number) else "student"

    loop.train_teacher = wrapped(loop.train_teacher, lambda *_: "teacher")
    loop.lesson_of = wrapped(loop.lesson_of, lambda *_: "annotation")
    loop.train_student = wrapped(loop.train_student, student)
    loop.judged = wrapped(loop.judged, lambda *_: "judging")
    Run.save = wrapped(Run.save, lambda *_: "writing")  # type: ignore[method-assign]


def go(folder: Path, bert: Path, method: str, stage: Any, entered: Any) -> None:
    """The command that is killed and given again; the time of each part goes beside the folder."""
    timeline: list[tuple[str, float]] = []
    watched(stage, entered, lambda name, seconds: timeline.append((name, seconds)))
    try:
        small_run.go(folder, bert, small_run.METHODS[method])
    except LockedError:
        sys.exit(3)
    folder.with_suffix(".json").write_text(json.dumps(timeline))


class Command:
    """One process that trains, and what it is doing."""

    def __init__(self, folder: Path, bert: Path, method: str, target: Any = go, *more: Any) -> None:
        self.stage: Any = forks.Array("c", 32)
        self.entered = forks.Value("i", 0)
        given = (folder, bert, method, self.stage, self.entered, *more)
        self.process = forks.Process(target=target, args=given)
        self.process.start()

    def end(self) -> int:
        self.process.join()
        return self.process.exitcode or 0

    def kill(self) -> str | None:
        """Kill it; what it was doing, or None where it had already ended."""
        self.process.kill()
        return (self.stage.value.decode() or "starting") if self.end() < 0 else None


@dataclass
class Place:
    """Where the faults happen: a folder, a tiny encoder, and runs that nobody disturbed."""

    folder: Path
    bert: Path
    wholes: dict[str, Whole]

    def whole(self, method: str) -> Whole:
        if method not in self.wholes:
            for turn in ("first", "whole"):  # the first starts the server, which takes a while
                folder, started = self.folder / f"{turn}-{method}", time.monotonic()
                assert Command(folder, self.bert, method).end() == 0
            self.wholes[method] = Whole(
                models(folder),
                time.monotonic() - started,
                sum(path.stat().st_size for path in folder.rglob("*")) // 1024,
                [(name, s) for name, s in json.loads(folder.with_suffix(".json").read_text())],
            )
        return self.wholes[method]

    def same(self, folder: Path, method: str) -> bool:
        """Whether the command, given again, ends with the models of the undisturbed run."""
        ended = Command(folder, self.bert, method).end()
        left = list(folder.rglob("*.tmp"))
        return ended == 0 and not left and models(folder) == self.whole(method).models


# ── the faults ───────────────────────────────────────────────────────────────────────────────


def kill(place: Path, at: Place, number: int) -> lines.Line:
    """Killed at a random moment; every second time in a part of the run that is chosen first."""
    random, part = Random(number), MOMENTS[number // 2 % len(MOMENTS)]
    method = random.choice(METHODS if part != "probe round" else ("probe", "contrast"))
    whole, where = at.whole(method), None
    for turn in range(20):
        folder = place / f"run-{turn}"
        command = Command(folder, at.bert, method)
        if number % 2:
            wait_for(command, random, [*enumerate(whole.timeline, 1)], part)
        else:
            time.sleep(random.uniform(0, whole.seconds))
        where = command.kill()
        if where is not None:
            break
    rounds = len(list(folder.glob("rounds/[0-9]")))
    return {"moment": where, "rounds": rounds, "method": method, "fine": at.same(folder, method)}


def wait_for(
    command: Command, random: Random, timeline: list[tuple[int, tuple[str, float]]], part: str
) -> None:
    """Wait until the process is somewhere in this part; where a run has none, in the student."""
    found = [each for each in timeline if each[1][0] == part]
    index, (_, seconds) = random.choice(found or [e for e in timeline if e[1][0] == "student"])
    while command.entered.value < index and command.process.is_alive():
        time.sleep(0.0005)
    time.sleep(random.uniform(0, seconds))


def disk(place: Path, at: Place, number: int) -> lines.Line:
    """A disk that is full after so many kilobytes, at any write from first to last; then larger."""
    method = METHODS[number % len(METHODS)]
    whole = at.whole(method)
    points = COUNTS["disk"]
    size = max(4, round(whole.kilobytes * 1.1 * (number * 17 % points) / points) // 4 * 4)
    words: Any = forks.Array("c", 400)
    (place / "disk").mkdir(parents=True)
    command = Command(place / "disk", at.bert, method, on_a_small_disk, size, whole.models, words)
    code = command.end()
    line = {"kilobytes": size, "method": method, "said": words.value.decode()}
    return line | {"fine": code == 0, "code": code}


def on_a_small_disk(
    place: Path,
    bert: Path,
    method: str,
    _stage: Any,
    _entered: Any,
    size: int,
    expected: dict[str, bytes],
    words: Any,
) -> None:
    """In a process of its own, because the disk is its own too."""
    if not small_disk.mounted(place, f"{size}k"):
        sys.exit("no disk can be mounted here")
    run = place / "run"
    try:
        small_run.go(run, bert, small_run.METHODS[method])
        words.value = b"it fits"
    except SelftrainError as error:
        words.value = error.message.replace(str(place), "DISK").encode()[:390]
    small_disk.resize(place, "64m")
    small_run.go(run, bert, small_run.METHODS[method])
    sys.exit(models(run) != expected or bool(list(run.rglob("*.tmp"))))


def memory(place: Path, at: Place, number: int) -> lines.Line:
    """A process that gets only so many megabytes more than it has when it begins to train."""
    method, megabytes = METHODS[number % len(METHODS)], number * 8
    words: Any = forks.Array("c", 400)
    code = Command(place / "run", at.bert, method, with_little_memory, megabytes, words).end()
    told = words.value.decode()
    said = told or f"ended by the system ({code})"
    fine = not told.startswith("trace") and at.same(place / "run", method)
    return {"megabytes": megabytes, "method": method, "said": said, "fine": fine}


def with_little_memory(
    folder: Path, bert: Path, method: str, _s: Any, _e: Any, megabytes: int, words: Any
) -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = size + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        small_run.go(folder, bert, small_run.METHODS[method])
        words.value = b"it is enough"
    except SelftrainError as error:
        words.value = error.message.replace(str(bert.parent), "").encode()[:390]
    except (MemoryError, RuntimeError) as error:
        told = "not enough memory" if out_of_memory(error) else f"trace: {error!r}"
        words.value = told.encode()[:390]


def clock(place: Path, at: Place, number: int) -> lines.Line:
    """A clock that jumps, a kill, and files that are from 1970 or from 2100."""
    random, method = Random(number), METHODS[number % len(METHODS)]
    command = Command(place / "run", at.bert, method, with_a_jumping_clock, number)
    time.sleep(random.uniform(0.3, 1) * at.whole(method).seconds)
    where = command.kill()
    for path in (place / "run").rglob("*"):
        os.utime(path, (moment := random.choice([0, 4_102_444_800]), moment))
    return {"moment": where or "ended", "method": method, "fine": at.same(place / "run", method)}


def with_a_jumping_clock(
    folder: Path, bert: Path, method: str, stage: Any, entered: Any, seed: int
) -> None:
    real, random = time.time, Random(seed)
    time.time = lambda: real() + random.uniform(-1e8, 1e8)
    go(folder, bert, method, stage, entered)


def writers(place: Path, at: Place, number: int) -> lines.Line:
    """Two commands for one folder at the same time: one is refused, and neither does harm."""
    method = METHODS[number % len(METHODS)]
    at.whole(method)
    both = [Command(place / "run", at.bert, method) for _ in range(2)]
    codes = sorted(each.end() for each in both)
    fine = set(codes) <= {0, 3} and 0 in codes and at.same(place / "run", method)
    return {"codes": codes, "method": method, "fine": fine}


def processes(place: Path, at: Place, number: int) -> lines.Line:
    """All at once, each in a process and a folder of its own: one line for all of them."""
    chosen = list(islice(cycle(METHODS), number))
    for method in METHODS[:number]:
        at.whole(method)
    commands = [Command(place / f"{n}", at.bert, method) for n, method in enumerate(chosen)]
    codes = [command.end() for command in commands]
    same = [models(place / f"{n}") == at.whole(name).models for n, name in enumerate(chosen)]
    return {"fits": number, "codes": sorted({*codes}), "fine": not any(codes) and all(same)}


def threads(place: Path, at: Place, number: int) -> lines.Line:
    """All at once in threads of one process, each in a folder of its own."""
    chosen = list(islice(cycle(METHODS), number))
    expected = [at.whole(method).models for method in chosen]

    def fit(n: int) -> bool:
        small_run.go(place / f"{n}", at.bert, small_run.METHODS[chosen[n]])
        return models(place / f"{n}") == expected[n]

    with ThreadPoolExecutor(number) as pool:
        return {"fits": number, "fine": all(pool.map(fit, range(number)))}


FAULTS = {each.__name__: each for each in (kill, disk, memory, clock, writers, threads, processes)}
TOGETHER = ("threads", "processes")
"""Faults that are one line for all their runs."""


# ── the table ────────────────────────────────────────────────────────────────────────────────

NAMES = {
    "kill": "killed (SIGKILL) {}",
    "disk": "disk full, at any write from the first to the last",
    "memory": "memory limit, from what the process has to 240 MB more",
    "clock": "clock that jumps, a kill, files of 1970 and of 2100",
    "writers": "two commands for one folder at the same time",
    "threads": "fits at once in threads of one process",
    "processes": "fits at once in processes",
}


def rows(every: list[lines.Line]) -> Iterator[tuple[str, int, int]]:
    """What happened, how often, and how often the models were the same afterwards."""
    parts = {line["moment"] for line in every if line["fault"] == "kill"}
    for fault, name in NAMES.items():
        for moment in sorted(parts, key=[*DOING].index) if fault == "kill" else [None]:
            found = [
                line for line in every
                if line["fault"] == fault and moment in (None, line.get("moment"))
            ]  # fmt: skip
            weights = [line.get("fits", 1) for line in found]
            same = sum(w for w, line in zip(weights, found, strict=True) if line["fine"])
            if found:
                place = f"while {DOING[moment]}" if moment else ""
                yield name.format(place), sum(weights), same


DOING = {
    "starting": "it starts or reads back",
    "teacher": "the teacher trains",
    "annotation": "the pool is annotated",
    "student": "a student trains",
    "probe round": "a probe round trains",
    "judging": "a round is judged",
    "writing": "a round is written",
}


def table(every: list[lines.Line]) -> Iterator[str]:
    """The table in Markdown."""
    yield "| fault | runs | same models after the same command |"
    yield "|---|---:|---:|"
    yield from (f"| {name} | {runs} | {same} |" for name, runs, same in rows(every))


# ── the command ──────────────────────────────────────────────────────────────────────────────


@contextmanager
def prepared() -> Iterator[Place]:
    forks.set_forkserver_preload(["selftrain.runs.train", "small_run"])
    with tempfile.TemporaryDirectory(prefix="selftrain-") as folder:
        yield Place(Path(folder), tiny.make("bert", Path(folder) / "bert"), {})


def main() -> None:
    """Do what has no line yet; write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, help="how many kills (200)")
    parser.add_argument("--quick", action="store_true", help="a few of each fault")
    parser.add_argument("--only", nargs="+", choices=FAULTS, help="these faults only")
    parser.add_argument("--out", type=Path, default=OUT, help="the file of lines")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the table")
    given = parser.parse_args()
    counts = {**(QUICK if given.quick else COUNTS)}
    counts["kill"] = given.kills or counts["kill"]
    known = lines.measured(given.out, "fault", "number")
    with prepared() as at:
        for fault in given.only or FAULTS:
            count = counts[fault]
            for number in [count] if fault in TOGETHER else range(count):
                if (fault, number) not in known:
                    place = at.folder / f"{fault}-{number}"
                    line = {"fault": fault, "number": number}
                    lines.append(given.out, line | FAULTS[fault](place, at, number))
    every = lines.read(given.out)
    lines.write_table(given.page, "reliability.py", "faults of a run", table(every))
    sys.exit(any(not line["fine"] for line in every))


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
