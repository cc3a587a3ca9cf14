"""The tool that gives an encoder an MLM head."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from safetensors import safe_open
from transformers import AutoModel

from selftrain.errors import DataError, ModelError, RunError
from selftrain.model.backbone import load
from tiny import TEXTS

TOOL = Path(__file__).parents[2] / "tools" / "train_mlm.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_mlm", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_mlm"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS * 3), "utf-8")
    return path


@pytest.mark.parametrize("family", ["bert", "distilbert", "electra", "roberta"])
def test_an_add_on_learns_to_guess_words_and_is_loaded_as_it_was_trained(
    family: str,
    tool: ModuleType,
    text: Path,
    tmp_path: Path,
    tiny_folder: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = tmp_path / "base"
    AutoModel.from_pretrained(tiny_folder(family)).save_pretrained(base)
    load(tiny_folder(family)).tokenizer.save_pretrained(base)
    out = tmp_path / "addon"
    sizes = ["--steps", "30", "--length", "16", "--rank", "4", "--batch", "16", "--rate", "0.02"]
    score = tool.main([str(base), str(text), "-o", str(out), *sizes])
    told = capsys.readouterr()
    before = float(told.err.split("before   validation loss ")[1].split(",")[0])
    during = float(told.err.split("step 30/30   validation loss ")[1].split(",")[0])
    assert score.loss < before - 0.5
    assert score.loss == pytest.approx(during, abs=0.02)  # half precision, merged
    assert f"validation loss {score.loss:.3f}" in told.out
    assert load(out).mlm is not None
    with safe_open(out / "addon.safetensors", "pt") as file:
        assert file.metadata()["rank"] == "4"


@pytest.mark.parametrize("name", ["someone/encoder", "all-MiniLM-L6-v2", "./nowhere"])
def test_a_base_that_an_add_on_cannot_lead_to_is_refused_before_any_training(
    name: str, tool: ModuleType, text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor is it looked for on the hub, which would take its time."""
    with pytest.raises(ModelError, match=f"`{name}` is neither embedded nor a folder") as caught:
        tool.main([name, str(text), "-o", str(tmp_path / "addon")])
    assert "\n" not in caught.value.message
    assert caught.value.hint == (
        f"fetch it from the hub to a folder first: hf download {name} --local-dir FOLDER"
    )
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "addon").exists()


def test_a_base_is_named_so_that_the_add_on_finds_it_from_anywhere(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("minilm", "mine"):
        (tmp_path / name).mkdir()
    assert tool.base_of("minilm") == "minilm"  # the embedded one, as everywhere
    assert tool.base_of("mine") == tool.base_of("~/mine") == str(tmp_path / "mine")


@pytest.fixture
def bare(tmp_path: Path, tiny_folder: Callable[[str], Path]) -> Path:
    """A tiny encoder without an MLM head."""
    AutoModel.from_pretrained(tiny_folder("bert")).save_pretrained(tmp_path / "bare")
    load(tiny_folder("bert")).tokenizer.save_pretrained(tmp_path / "bare")
    return tmp_path / "bare"


def test_a_place_that_cannot_be_written_is_found_before_the_training(
    tool: ModuleType, bare: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "train", lambda *_: pytest.fail("it was trained"))
    with pytest.raises(RunError, match="cannot write"):
        tool.main([str(bare), str(text), "-o", "/proc/addon"])


def test_a_training_that_is_stopped_leaves_nothing(
    tool: ModuleType, bare: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tool, "train", stopped)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        tool.main([str(bare), str(text), "-o", str(tmp_path / "addon")])
    assert sorted(tmp_path.iterdir()) == before


def test_texts_that_cannot_be_read_are_one_line_and_a_hint(
    tool: ModuleType, bare: Path, tmp_path: Path
) -> None:
    (tmp_path / "old.txt").write_bytes("café".encode("latin-1"))
    for name, kind, problem in (
        ("nowhere.txt", RunError, "cannot read .*nowhere.txt: No such file"),
        ("old.txt", DataError, "old.txt is not text in UTF-8"),
    ):
        with pytest.raises(kind, match=problem) as caught:
            tool.main([str(bare), str(tmp_path / name), "-o", str(tmp_path / "addon")])
        assert "\n" not in caught.value.message
        assert caught.value.hint


def test_an_error_is_told_without_the_codes_of_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "some\x1b[2Jone", "text.txt", "-o", "nowhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(r"error: backbone `some\x1b[2Jone` is neither embedded")
    assert "\x1b" not in done.stderr


def test_help_offers_no_hub_name(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "minilm or a folder: an encoder without an MLM head" in told
    assert "hub" not in told


def test_an_encoder_with_a_head_needs_no_add_on(
    tool: ModuleType, text: Path, tmp_path: Path, tiny_folder: Callable[[str], Path]
) -> None:
    with pytest.raises(ModelError, match="has an MLM head already"):
        tool.main([str(tiny_folder("bert")), str(text), "-o", str(tmp_path / "addon")])
    assert not (tmp_path / "addon").exists()


def test_too_little_text_is_one_line_and_a_hint(
    tool: ModuleType, tmp_path: Path, tiny_folder: Callable[[str], Path]
) -> None:
    base, short = tmp_path / "base", tmp_path / "short.txt"
    AutoModel.from_pretrained(tiny_folder("bert")).save_pretrained(base)
    load(tiny_folder("bert")).tokenizer.save_pretrained(base)
    short.write_text(TEXTS[0], "utf-8")
    with pytest.raises(DataError, match="the text makes 0 rows of 64 tokens") as raised:
        tool.main([str(base), str(short), "-o", str(tmp_path / "out")])
    assert "--length" in raised.value.hint
    assert not (tmp_path / "out").exists()
