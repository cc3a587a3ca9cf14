"""Fuzz what reads files of strangers with atheris, for as long as you like.

    pip install atheris                            # not among the development packages
    python tools/fuzz.py manifest --seconds 3600

`make test-slow` does the same for some seconds with hypothesis. A finding ends the run and leaves a
file `crash-…` in the folder of findings: make it a case of a test. A file that is read, or refused
by one of our own errors, is none.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris  # type: ignore[import-not-found, unused-ignore]

with atheris.instrument_imports(include=["selftrain"]):
    from selftrain.cli import config
    from selftrain.data.read import Columns, read_labelled, read_texts
    from selftrain.data.rows import Notes
    from selftrain.data.task import find
    from selftrain.errors import SelftrainError
    from selftrain.estimator import read_facts
    from selftrain.method.changes import method_of
    from selftrain.model.card import read_card
    from selftrain.runs.estimates import read_estimate
    from selftrain.runs.manifest import Manifest
    from selftrain.runs.record import Record

Read = Callable[[Path], object]


def settings(path: Path) -> object:
    """A configuration file, and the method in it."""
    found = config.read(path)
    return method_of(found.method, found.preset)


def rows(path: Path) -> object:
    """Labelled rows, else texts."""
    try:
        return read_labelled(path, Columns(), notes=Notes())
    except SelftrainError:
        return read_texts(path, Columns(), notes=Notes())


READERS: dict[str, tuple[str, Read]] = {
    "csv": ("rows.csv", rows),
    "tsv": ("rows.tsv", rows),
    "jsonl": ("rows.jsonl", rows),
    "gzip": ("rows.csv.gz", rows),
    "parquet": ("rows.parquet", rows),
    "config": ("config.toml", settings),
    "task": ("task.toml", find),
    "manifest": ("manifest.json", Manifest.read),
    "record": ("0/round.json", lambda path: Record.read(path.parent)),
    "card": ("model.json", lambda path: read_card(path.parent)),
    "estimate": ("estimate.json", lambda path: read_estimate(path.parent)),
    "facts": ("estimator.json", lambda path: read_facts(path, ("bad", "good"))),
}
SEEDS = {
    "csv": b'text,label\n"a ""b"", c",good\nd,bad\n',
    "tsv": b"text\tlabel\na\tgood\nb\tbad\n",
    "jsonl": b'{"text": "a", "label": 1}\n{"text": "b", "label": 2}\n',
    "config": b'seed = 12\n[method]\nname = "probe"\nprobe.rounds = 2\nselect.shares = [0.5]\n',
    "task": b'name = "t"\nlabels = ["no", "yes"]\nwords = { no = "No", yes = ["Yes", "Ja"] }\n',
    "manifest": b'{"format": 2, "task": {}, "method": {"rounds": 1}, "seed": 1, "data": {}}',
    "record": b'{"number": 0, "accepted": true, "why": "", "last": false, "numbers": {"a": 1}}',
    "card": b'{"format": 2, "task": {"name": "t", "labels": ["a", "b"]}, "reader": "head"}',
    "estimate": b'{"format": 1, "models": {"0": "a"}, "constants": [1.0], "estimate": {}}',
    "facts": json.dumps({"params": {}, "classes": ["bad", "good"]}).encode(),
}


def main() -> None:
    """Fuzz one reader."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="where they go")
    given = parser.parse_args()
    name, read = READERS[given.reader]
    corpus = given.findings / "corpus" / given.reader
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / "seed").write_bytes(SEEDS.get(given.reader, b""))
    with tempfile.TemporaryDirectory(prefix="selftrain-") as folder:
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)

        def check(raw: bytes) -> None:
            path.write_bytes(raw)
            try:
                read(path)
            except SelftrainError as error:
                if "\n" in error.message or not error.hint:
                    raise ValueError(f"no line with a hint: {error.message!r}") from error

        options = [f"-max_total_time={given.seconds}", f"-artifact_prefix={given.findings}/"]
        atheris.Setup([sys.argv[0], *options, str(corpus)], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
