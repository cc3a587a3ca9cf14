"""The generated reference has every command, entry and name; its check finds a stale page."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import selftrain
from selftrain.cli import app

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "reference.py"
PAGES = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("reference", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "reference", module)
        patch.setattr(sys, "path", [*sys.path])
        spec.loader.exec_module(module)
        yield module


def test_the_committed_reference_is_fresh(
    tool: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tool.main(["--check"])
    assert code == 0, capsys.readouterr().err


def test_a_changed_page_is_stale_and_the_error_says_what_to_run(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(["--out", str(tmp_path)]) == 0
    assert tool.main(["--out", str(tmp_path), "--check"]) == 0
    page = tmp_path / "python.md"
    page.write_text(page.read_text("utf-8") + "more\n", "utf-8")
    assert tool.main(["--out", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err == (
        "error: python.md is stale: run `python tools/reference.py`\n"
    )


def test_a_missing_page_is_stale_and_a_check_writes_nothing(
    tool: ModuleType, tmp_path: Path
) -> None:
    assert tool.main(["--out", str(tmp_path), "--check"]) == 1
    assert not list(tmp_path.iterdir())


def test_every_command_has_a_section() -> None:
    page = (PAGES / "command-line.md").read_text("utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        assert f"\n## selftrain {name}\n" in page


def test_every_part_of_a_method_has_a_table_with_all_its_entries(tool: ModuleType) -> None:
    page = (PAGES / "configuration.md").read_text("utf-8")
    for kind in tool.reachable(selftrain.Method):
        _, _, section = page.partition(f"\n### {kind.__name__}\n")
        rows = section.partition("\n#")[0]
        for field in dataclasses.fields(kind):
            assert f"\n| `{field.name}` |" in rows


def test_every_public_name_has_a_section() -> None:
    page = (PAGES / "python.md").read_text("utf-8")
    for name in selftrain.__all__:
        assert name.startswith("_") or f"\n## {name}\n" in page
