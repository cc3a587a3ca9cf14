"""The figures of the house, so that they cannot creep back: ARCHITECTURE.md says what they mean."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "selftrain"
SOURCES = sorted(PACKAGE.rglob("*.py"))
ROOMS = {
    *("data", "model", "method", "training", "runs"),
    *("report", "review", "interop", "export", "experiments", "cli"),
}

FORBIDDEN = {
    *("told", "said", "heard", "held", "kept", "apart", "own", "mine", "made"),
    *("wavering", "taught", "settled", "sure", "sift", "gist"),
}
"""Words that do not say what they hold."""

MANY_PARAMETERS = {
    "estimator.py": {"__init__"},  # scikit-learn's convention: every setting is a parameter
    "model/fast/dropout.py": {"attend"},  # the shape that transformers calls
    "model/pel/prefix.py": {"attend"},
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    """Every function of the package, with its file."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, Function):
                yield path.relative_to(PACKAGE).as_posix(), node


def is_command(file: str, node: Function) -> bool:
    """Whether typer reads its options from the signature."""
    return file.startswith("cli/") and any(
        isinstance(each, ast.Name) and each.id == "Annotated" for each in ast.walk(node.args)
    )


def test_the_root_of_the_package_shows_its_rooms() -> None:
    names = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert {name for name in names if (PACKAGE / name).is_dir()} == ROOMS
    assert len([name for name in names if name.endswith(".py")]) <= 8


def test_imports_go_down_in_at_most_twelve_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [contract for contract in contracts if contract["type"] == "layers"]
    assert layers["exhaustive"]
    assert len(layers["layers"]) <= 12


def test_no_function_has_more_than_six_parameters() -> None:
    long = []
    for file, node in functions():
        names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        count = len(names) + len(node.args.kwonlyargs) - (names[:1] in (["self"], ["cls"]))
        if count > 6 and not is_command(file, node):
            long.append(f"{file}: {node.name} has {count}")
    allowed = {f"{file}: {name} has" for file, names in MANY_PARAMETERS.items() for name in names}
    assert [line for line in long if line.rpartition(" ")[0] not in allowed] == []


def test_no_function_is_longer_than_a_screen() -> None:
    """Of a command the signature does not count: it is the list of its options."""
    long = [
        f"{file}: {node.name} has {length} lines"
        for file, node in functions()
        if (length := (node.end_lineno or 0) - node.body[0].lineno + 1) > 50
    ]
    assert long == []


def test_the_loop_fits_on_one_screen() -> None:
    (node,) = [node for file, node in functions() if (file, node.name) == LOOP]
    assert (node.end_lineno or 0) - node.lineno + 1 <= 45


LOOP = ("training/loop.py", "self_train")


def test_no_name_hides_what_it_holds() -> None:
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names = [node.id]
            elif isinstance(node, ast.arg):
                names = [node.arg]
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
            found += [
                f"{path.relative_to(PACKAGE)}:{node.lineno}: {name}"  # type: ignore[attr-defined]
                for name in names
                if name.strip("_").lower() in FORBIDDEN
            ]
    assert found == []


def test_nothing_in_the_package_is_a_helper_of_tests_or_unfinished() -> None:
    for path in SOURCES:
        text = path.read_text("utf-8")
        assert "TODO" not in text
        assert "import pytest" not in text


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/**/*.py")), ids=lambda path: path.stem)
def test_a_file_of_tests_can_be_read_at_once(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 400


def test_tests_mirror_the_rooms() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    others = {"support", "project", "browser", "lite", "lite_server"}
    assert folders - {"__pycache__"} == ROOMS | others


def test_onnxruntime_is_imported_only_where_its_telemetry_is_switched_off() -> None:
    lite = (ROOT / "lite" / "src").rglob("*.py")
    importing = {
        path.name for path in [*SOURCES, *lite] if "import onnxruntime\n" in path.read_text("utf-8")
    }
    assert importing == {"runtime.py", "model.py"}
    weights = (PACKAGE / "export" / "weights.py").read_text("utf-8")
    quiet, quantization = weights.index("quiet_onnxruntime()"), weights.index("from onnxruntime")
    assert quiet < quantization
