"""The scripts of benchmarks/ still fit the package; a page that one writes is as it writes it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scripts import one another by name; no other test sees those modules."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield
    names = {path.stem for path in SCRIPTS}
    for name in {*sys.modules} - before:
        if name in names:
            del sys.modules[name]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_finds_what_it_imports(script: Path) -> None:
    runpy.run_path(str(script), run_name="imported")  # mypy looks at what its functions call


def test_the_first_tables_are_what_the_committed_cells_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = ROOT / "benchmarks" / "paper" / "cells.jsonl"
    monkeypatch.setattr(sys, "argv", ["first_tables.py", str(cells)])
    runpy.run_path(str(ROOT / "benchmarks" / "first_tables.py"), run_name="__main__")
    page = ROOT / "docs" / "first-tables.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8")
