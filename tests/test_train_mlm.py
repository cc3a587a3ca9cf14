"""The tool that gives an encoder an MLM head."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from safetensors import safe_open
from transformers import AutoModel

from selftrain.backbone import load
from selftrain.errors import ModelError
from tiny import TEXTS

TOOL = Path(__file__).parent.parent / "tools" / "train_mlm.py"


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
