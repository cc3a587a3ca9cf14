"""Where an export may be written, and what is refused: one line, and nothing half-written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from command import selftrain, snapshot
from selftrain.disk import sha256
from selftrain.errors import DataError, RunError
from selftrain.export import folder as folders
from selftrain.export.facts import check_labels
from selftrain.export.folder import Wanted, appearing, check_place, check_wanted, export
from selftrain.export.origin import read_origin
from selftrain.model.backbone import Backbone


@pytest.fixture
def here(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a finished run, in which commands are given."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small, tmp_path / "run")
    return tmp_path


def without_last_round(folder: Path) -> None:
    shutil.rmtree(folder / "run" / "rounds" / "2")


def without_rounds(folder: Path) -> None:
    shutil.rmtree(folder / "run" / "rounds")


def other_tensors(folder: Path) -> None:
    (folder / "run" / "rounds" / "2" / "model.safetensors").write_bytes(b"spoilt")


def newer(folder: Path) -> None:
    path = folder / "run" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))


def foreign(folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "mine.txt").write_text("mine")


def linked(folder: Path) -> None:
    foreign(folder)
    (folder / "link").symlink_to(folder / "model")


def nothing(_: Path) -> None:
    return


EXPORT = "export run -o model --backbone {bert}"
CASES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "no run": ("export . -o model", nothing, "is not a run folder"),
    "no folder": ("export nowhere -o model", nothing, "is not a run folder"),
    "a newer run": (EXPORT, newer, "has format 99"),
    "an unfinished run": (EXPORT, without_last_round, "is not finished: it has 1 of 2 rounds"),
    "a run without a round": (EXPORT, without_rounds, "has no whole round yet"),
    "a damaged round": (EXPORT, other_tensors, "sha256 differs"),
    "a round that is not there": (EXPORT + " --round 9", nothing, "has no round 9"),
    "no backbone": ("export run -o model", nothing, "which is not embedded"),
    "a folder of someone else's": (EXPORT, foreign, "neither empty nor an export as it was"),
    "a link": (EXPORT.replace("model", "link"), linked, "link is no folder"),
    "the run itself": (EXPORT.replace("-o model", "-o run"), nothing, "is read by this command"),
    "into the run": (EXPORT.replace("-o model", "-o run/rounds"), nothing, "is read by this"),
    "no place": (EXPORT.replace("-o model", "-o no/model"), nothing, "there is no folder"),
    "an address": (EXPORT.replace("-o model", "-o s3://a/model"), nothing, "is an address"),
    "other weights": (
        EXPORT + " --format sentence-transformers --weights int8",
        nothing,
        "--weights int8 is for ONNX",
    ),
    "a module that cannot be merged": (
        EXPORT + " --format sentence-transformers",
        nothing,
        "a model with adapter has no sentence-transformers folder",
    ),
    "no texts": (EXPORT + " --texts none.csv", nothing, "none.csv"),
}


@pytest.mark.parametrize(("command", "spoil", "problem"), CASES.values(), ids=CASES.keys())
def test_what_cannot_be_exported_is_one_line_and_a_hint(
    here: Path,
    tiny_folder: Callable[[str], Path],
    command: str,
    spoil: Callable[[Path], object],
    problem: str,
) -> None:
    spoil(here)
    before = snapshot(here)
    done = selftrain(command.format(bert=tiny_folder("bert")))
    assert done.code == 1, done.err
    assert done.err.count("error: ") == done.err.count("hint: ") == 1
    assert problem in done.err
    assert "Traceback" not in done.err
    assert snapshot(here) == before


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setattr(folders, "find_spec", lambda name: None if name == "onnxscript" else name)
    done = selftrain("export run -o model")
    assert done.code == 1
    assert "onnxscript is not installed" in done.err
    assert "hint: pip install 'selftrain[export]'" in done.err


def test_a_sentence_transformers_folder_needs_no_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "find_spec", lambda name: None)
    check_wanted(Wanted("sentence-transformers"))


def test_an_unfinished_run_exports_the_round_that_is_named(here: Path, backbone: Backbone) -> None:
    without_last_round(here)
    with pytest.raises(RunError, match="is not finished") as raised:
        read_origin(here / "run", None, backbone)
    assert raised.value.hint.endswith("--round 1")
    assert read_origin(here / "run", 1, backbone).number == 1


@pytest.mark.parametrize("labels", [("cafe\u0301", "caf\xe9"), ("good", "good\u200b")])
def test_labels_that_clash_after_normalisation_are_refused(labels: tuple[str, str]) -> None:
    with pytest.raises(DataError, match="are one when normalised"):
        check_labels(labels)
    check_labels(("Good", "good"))


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "model"

    def fail() -> None:
        with appearing(out) as folder:
            (folder / "a").write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []
    with appearing(out) as folder:
        assert not out.exists()
        (folder / "selftrain.json").write_text("{}")
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "selftrain.json"]


def test_an_earlier_export_is_replaced_and_stays_where_the_new_one_fails(tmp_path: Path) -> None:
    out = tmp_path / "model"
    for content in ("first", "second"):
        with appearing(out) as folder:
            write_export(folder, content)
            (folder / content).mkdir()
    assert (out / "README.md").read_text() == "second"
    assert not (out / "first").exists()
    with pytest.raises(ZeroDivisionError), appearing(out):
        raise ZeroDivisionError
    assert (out / "README.md").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def write_export(folder: Path, content: str) -> None:
    (folder / "README.md").write_text(content)
    files = {"README.md": sha256(folder / "README.md")}
    (folder / "selftrain.json").write_text(json.dumps({"files": files}))


@pytest.mark.parametrize("name", [".git/HEAD", "notes.md", "README.md", "onnx/model.onnx"])
def test_a_file_that_no_export_wrote_is_never_removed(tmp_path: Path, name: str) -> None:
    """A folder for the Hub may be a clone of git, and a card may have been edited."""
    out = tmp_path / "model"
    out.mkdir()
    write_export(out, "as it was written")
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("mine")
    with pytest.raises(RunError, match=f"it holds '{name}'"):
        check_place(out)
    with pytest.raises(RunError, match="nor an export"), appearing(out):
        pass
    assert (out / name).read_text() == "mine"


@pytest.mark.parametrize("facts", ["no json", "[]", '{"files": 3}', '{"files": {"README.md": 1}}'])
def test_an_export_with_damaged_facts_is_not_replaced(tmp_path: Path, facts: str) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "selftrain.json").write_text(facts)
    with pytest.raises(RunError, match="nor an export as it was written"):
        check_place(tmp_path)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    check_place(tmp_path / "model")
    with appearing(tmp_path / "model") as folder:
        (folder / "selftrain.json").write_text("{}")
    assert (tmp_path / "model" / "selftrain.json").exists()


def test_an_export_that_differs_leaves_nothing(
    tmp_path: Path, small: Path, backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(*_: object, **__: object) -> None:
        raise RunError("its answers differ", "none")

    monkeypatch.setattr("selftrain.export.sentence.check_folder", differs)
    with pytest.raises(RunError, match="its answers differ"):
        export(read_origin(small, 0, backbone), tmp_path / "m", Wanted("sentence-transformers"))
    assert list(tmp_path.iterdir()) == []
