"""The generated map of the paper: what it finds, and when its check fails."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "paper_map.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("paper_map", TOOL)
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up by name while it is made.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "paper_map", module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture
def house(tmp_path):
    """A house that holds the whole paper in one function and one test."""
    (tmp_path / "src" / "selftrain").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs").mkdir()
    code = 'def train():\n    """Everything (Eq. 1-14)."""\n    go()  # lines 1-13\n'
    (tmp_path / "src" / "selftrain" / "loop.py").write_text(code)
    test = 'def test_all():\n    """Eq. 1-14 and Algorithm 1, lines 1-13."""\n'
    (tmp_path / "tests" / "test_loop.py").write_text(test)
    return tmp_path


def test_a_written_map_passes_its_check(tool, house, capsys):
    assert tool.main(["--root", str(house)]) == 0
    assert tool.main(["--root", str(house), "--check"]) == 0
    assert capsys.readouterr().err == ""
    text = (house / "docs" / "paper-map.md").read_text()
    where = "`train` ([loop.py](../src/selftrain/loop.py))"
    held_by = "`test_all` ([test_loop.py](../tests/test_loop.py))"
    assert f"| 4 | certainty | {where} | {held_by} |" in text
    assert text.count("`train`") == 14 + 13


def test_a_stale_map_fails_and_says_what_to_run(tool, house, capsys):
    assert tool.main(["--root", str(house)]) == 0
    (house / "tests" / "test_more.py").write_text('def test_more():\n    """Eq. 4."""\n')
    assert tool.main(["--root", str(house), "--check"]) == 1
    assert "stale: run `python tools/paper_map.py`" in capsys.readouterr().err


def test_a_missing_map_fails(tool, house):
    assert tool.main(["--root", str(house), "--check"]) == 1
    assert not (house / "docs" / "paper-map.md").exists(), "a check writes nothing"


@pytest.mark.parametrize(
    ("file", "old", "new", "error"),
    [
        ("src/selftrain/loop.py", "1-14", "1-13", "equation 14 (PHCE in full) has no function"),
        ("src/selftrain/loop.py", "lines 1-13", "lines 2-13", "line 1 (the teacher is the"),
        ("tests/test_loop.py", "Eq. 1-14", "Eq. 2-14", "equation 1 (pseudo label) has no test"),
        ("tests/test_loop.py", "lines 1-13", "lines 1-12", "line 13 (the student becomes"),
    ],
)
def test_an_equation_or_line_without_code_or_test_fails(tool, house, capsys, file, old, new, error):
    path = house / file
    path.write_text(path.read_text().replace(old, new))
    assert tool.main(["--root", str(house)]) == 1
    assert tool.main(["--root", str(house), "--check"]) == 1
    err = capsys.readouterr().err
    assert error in err
    assert err.count("error:") == 2, "the same one line from writing and from checking"


@pytest.mark.parametrize(
    ("text", "equations", "lines"),
    [
        ("BALD (Eq. 2, 3), in [0, ln C]", {2, 3}, set()),
        ("(Eq. 8; the paper prints it without the minus)", {8}, set()),
        ("Eq. 1, and Eq. 13 for the mean.", {1, 13}, set()),
        ("# lines 5, 7-9", set(), {5, 7, 8, 9}),
        ("The only training loop (lines 2 and 10-12): one model", set(), {2, 10, 11, 12}),
        ("Sampling (lines 7-9 of Algorithm 1): a stream", set(), {7, 8, 9}),
        ("Algorithm 1, line 13: the student", set(), {13}),
        ("# line 2 of a CSV may be ragged", set(), set()),
        ("the error is on line 3 (see above)", set(), set()),
        ("a straight line, 5 steps long", set(), set()),
    ],
)
def test_what_speaks_of_the_paper(tool, text, equations, lines):
    assert tool.numbers(tool.EQUATION, text) == equations
    assert tool.numbers(tool.LINE, text) == lines


def test_a_comment_belongs_to_the_innermost_function(tool, tmp_path):
    path = tmp_path / "room.py"
    path.write_text("class A:\n    def b(self):\n        pass  # line 4\n\n# line 5\n")
    places = tool.places(tmp_path, path)
    found = {place.name: tool.numbers(tool.LINE, place.text) for place in places}
    assert found == {"A": set(), "A.b": {4}, None: {5}}
