"""A real model that leaves home: the wheel of selftrain-lite, transformers.js, all weights."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import selftrain, write_files
from selftrain_lite import load

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
JS = Path(sys.prefix) / "js"
NO_JS = "node, or the packages that `make test-slow` installs with npm, are missing"
SMALLER = {"fp32": 1, "fp16": 0.55, "int8": 0.3}


def give(line: str) -> None:
    done = selftrain(line)
    assert done.code == 0, done.err


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on the embedded backbone, and its export in all weights."""
    folder = tmp_path_factory.mktemp("real")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        give("fit labelled.csv -u pool.csv -o run --config quick.toml")
        for weights in SMALLER:
            give(f"export run -o {weights} --weights {weights} --texts pool.csv")
        give("predict run test.csv -o expected.csv")
        give("export run -o sentences --format sentence-transformers --round 0")
        give("predict run test.csv --round 0 -o teacher.csv")
    return folder


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def texts(place: Path) -> list[str]:
    return [row["text"] for row in rows(place / "test.csv")]


def probabilities(path: Path) -> np.ndarray[Any, Any]:
    return np.array([[float(row["p_bad"]), float(row["p_good"])] for row in rows(path)])


@pytest.mark.parametrize(("weights", "limit"), [("fp32", 1e-5), ("fp16", 1e-3), ("int8", 0.15)])
def test_weights_of_fewer_bits_answer_alike_and_are_smaller(
    place: Path, weights: str, limit: float
) -> None:
    model = load(place / weights, threads=1)
    found = model.predict_proba(texts(place))
    assert np.abs(found - probabilities(place / "expected.csv")).max() < limit
    size, whole = (
        (place / name / "onnx" / "model.onnx").stat().st_size for name in (weights, "fp32")
    )
    assert size <= whole * SMALLER[weights]
    alone = np.concatenate([model.predict_proba([text]) for text in texts(place)])
    assert np.abs(found - alone).max() < 1e-5  # int8 too: it answers one text at a time


def test_the_wheel_of_lite_answers_in_an_empty_environment(place: Path, tmp_path: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            env=clean,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT / "lite")
    run(sys.executable, "-m", "twine", "check", "--strict", *(tmp_path / "dist").iterdir())
    run(sys.executable, "-m", "venv", "venv")
    python = tmp_path / "venv" / "bin" / "python"
    wheel = next((tmp_path / "dist").glob("*.whl"))
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    script = "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('transformers'))"
    assert run(python, "-c", script).split() == ["None", "None"]
    lite = tmp_path / "venv" / "bin" / "selftrain-lite"
    # The network is really gone: a model folder must need none.
    run("unshare", "-rn", lite, "predict", place / "fp32", place / "test.csv", "-o", "found.csv")
    found, expected = tmp_path / "found.csv", place / "expected.csv"
    assert [row["label"] for row in rows(found)] == [row["label"] for row in rows(expected)]
    assert np.abs(probabilities(found) - probabilities(expected)).max() < 1e-5


@pytest.mark.skipif(not (shutil.which("node") and (JS / "node_modules").is_dir()), reason=NO_JS)
def test_transformers_js_gives_the_same_probabilities(place: Path) -> None:
    (place / "texts.json").write_text(json.dumps(texts(place)))
    done = subprocess.run(
        ["node", JS / "classify.mjs", place / "fp32", place / "texts.json"],
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [{each["label"]: each["score"] for each in row} for row in json.loads(done.stdout)]
    found = np.array([[answer["bad"], answer["good"]] for answer in answers])
    assert np.abs(found - probabilities(place / "expected.csv")).max() < 1e-5


def test_sentence_transformers_gives_the_same_probabilities(place: Path) -> None:
    from sentence_transformers import SentenceTransformer

    logits = SentenceTransformer(str(place / "sentences")).encode(texts(place))
    powers = np.exp(logits - logits.max(1, keepdims=True))
    found = powers / powers.sum(1, keepdims=True)
    labels = json.loads((place / "sentences" / "selftrain.json").read_text())["labels"]
    assert labels == ["bad", "good"]
    assert np.abs(found - probabilities(place / "teacher.csv")).max() < 1e-5
