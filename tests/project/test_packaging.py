"""The wheel as a stranger would use it: built, checked, installed into an empty environment."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    # Neither this checkout nor its environment may lend the wheel anything.
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


def test_wheel_and_sdist_pass_twine_check(dist: Path) -> None:
    said = run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=dist)
    assert said.count("PASSED") == 2


def test_the_wheel_carries_its_data_and_its_licences(dist: Path) -> None:
    names = zipfile.ZipFile(next(dist.glob("*.whl"))).namelist()
    for name in (
        "selftrain/py.typed",
        "selftrain/data/tasks/sst2.toml",
        "selftrain/experiments/published.toml",
        "selftrain/review/page/review.js",
        "selftrain/model/addons/minilm-mlm/addon.safetensors",
        "selftrain/model/addons/minilm-mlm/README.md",  # its licence and its texts
    ):
        assert name in names
    assert any(name.endswith("licenses/NOTICE") for name in names)
    assert not any("shared/" in name or name.startswith("tests/") for name in names)


def test_the_sdist_carries_the_tests_and_constraints(dist: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    for name in (
        "tests/project/test_readme.py",
        "constraints.txt",
        "Makefile",
        "docs/deviations.md",
    ):
        assert any(found.endswith("/" + name) for found in names)


def test_the_wheel_learns_in_an_empty_environment_from_another_folder(
    dist: Path, tmp_path: Path
) -> None:
    run(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    wheel = next(dist.glob("*.whl"))
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    rows = {"good": "a fine film {}", "bad": "a dull film {}"}
    with (tmp_path / "labelled.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        table.writerows([text.format(n), label] for label, text in rows.items() for n in range(4))
    with (tmp_path / "pool.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text"])
        table.writerows([text.format(n)] for text in rows.values() for n in range(10, 30))
    (tmp_path / "quick.toml").write_text(
        "[method]\nrounds = 1\npool = 32\npasses = 2\n[method.teacher]\nsteps = 10\n"
        "[method.student]\nsteps = 10\n"
    )
    command = tmp_path / "venv" / "bin" / "selftrain"
    # The network is really gone: an embedded backbone must need none.
    alone = ("unshare", "-rn", command)
    run(
        *alone, "fit", "labelled.csv", "-u", "pool.csv", "-o", "run", "--config", "quick.toml",
        cwd=tmp_path,
    )  # fmt: skip
    said = run(*alone, "predict", "run", "pool.csv", cwd=tmp_path)
    answers = list(csv.DictReader(said.splitlines()))
    assert len(answers) == 40
    assert {row["label"] for row in answers} <= {"good", "bad"}
