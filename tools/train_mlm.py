"""Train an MLM head, and a low-rank update to go with it, for an encoder that has none.

    python tools/train_mlm.py minilm reviews.txt news.txt -o addons/mine

What moves: a low-rank update of every Linear in the layers, their biases and norms, and the
head. What is written: `addon.safetensors` (half precision), which `--backbone addons/mine`
then loads on top of the same base: an embedded encoder, or one in a folder, whose whole path stands
in the file. Word embeddings stay as they are and serve as decoder.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import LoraConfig, inject_adapter_in_model
from rich.progress import Progress
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from selftrain.cli import fail
from selftrain.cli.talk import say, talk
from selftrain.disk import refusals, replacing
from selftrain.errors import ConfigError, DataError, ModelError, SelftrainError
from selftrain.model.backbone import Backbone, load
from selftrain.model.embedded import ADDON, EMBEDDED
from selftrain.model.mlm import HEAD_NAMES, MLMHead, new_head
from selftrain.model.prompt import tokenise
from selftrain.model.tokens import frame
from selftrain.training.tapt import hide, predicted_words


@dataclass(frozen=True)
class Settings:
    """How to train; the defaults are those that `minilm-mlm` was trained with."""

    rank: int = 64
    steps: int = 2300
    batch: int = 32
    length: int = 64
    rate: float = 2e-3
    masked: float = 0.25
    seed: int = 12


@dataclass(frozen=True)
class Score:
    """How well masked words are guessed on held-out text."""

    loss: float
    accuracy: float

    def __str__(self) -> str:
        return f"validation loss {self.loss:.3f}, top-1 accuracy {self.accuracy:.3f}"


def chunks(paths: Sequence[Path], backbone: Backbone, length: int) -> Tensor:
    """All text as rows of equal length, each framed by the special tokens: [N, L]."""
    around = frame(backbone.tokenizer, room=length, types=backbone.segments)
    width = length - len(around.first) - len(around.last)
    ids: list[int] = []
    for path in paths:
        lines = lines_of(path)
        for row in tokenise([line for line in lines if line.strip()], backbone.tokenizer)[0]:
            ids += row
    rows = [
        [*around.first, *ids[start : start + width], *around.last]
        for start in range(0, len(ids) - width + 1, width)
    ]
    if len(rows) < 20:
        raise DataError(
            f"the text makes {len(rows)} rows of {length} tokens; expected 20 or more",
            "give more text, or shorter rows: --length 32",
        )
    return torch.tensor(rows)


def lines_of(path: Path) -> list[str]:
    """The lines of a text file."""
    try:
        with refusals(path, "read"):
            return path.read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        here = shlex.quote(str(path))
        hint = f"iconv -f WINDOWS-1252 -t UTF-8 {here} > utf8.txt"
        raise DataError(f"{path} is not text in UTF-8", hint) from None


def whole(rows: Tensor) -> dict[str, Tensor]:
    """Rows without padding, as an encoder takes them."""
    return {"input_ids": rows, "attention_mask": torch.ones_like(rows)}


@torch.no_grad()
def validate(encoder: nn.Module, head: MLMHead, rows: Tensor, backbone: Backbone) -> Score:
    """Loss and accuracy with 15 % masked, the same places every time."""
    draw = torch.Generator().manual_seed(0)
    loss = right = count = 0.0
    for batch in torch.split(rows, 32):
        hidden, where = hide(batch, backbone.tokenizer, 0.15, draw)
        logits, gold = predicted_words(encoder, head, whole(hidden), where), batch[where]
        loss += float(F.cross_entropy(logits, gold, reduction="sum"))
        right += int((logits.argmax(1) == gold).sum())
        count += len(gold)
    return Score(loss / count, right / count)


def open_up(backbone: Backbone, rank: int) -> list[nn.Parameter]:
    """Put the low-rank update into the layers and let it, their biases and norms move."""
    encoder, inside = backbone.encoder, f"{backbone.family.layers}."
    linears = [
        name
        for name, module in encoder.named_modules()
        if isinstance(module, nn.Linear) and name.startswith(inside)
    ]
    inject_adapter_in_model(
        LoraConfig(r=rank, lora_alpha=rank, target_modules=linears), encoder, adapter_name="addon"
    )
    moving = [
        parameter
        for name, parameter in encoder.named_parameters()
        if name.startswith(inside) and (".lora_" in name or parameter.ndim == 1)
    ]
    for parameter in moving:
        parameter.requires_grad_(True)
    return moving


def steps(rows: Tensor, how: Settings) -> Iterator[Tensor]:
    """Batches, pass after pass over the rows in a new order."""
    order = random.Random(how.seed)  # noqa: S311
    numbers: list[int] = []
    for _ in range(how.steps):
        if len(numbers) < how.batch:
            numbers = order.sample(range(len(rows)), len(rows))
        picked, numbers = numbers[: how.batch], numbers[how.batch :]
        yield rows[picked]


def train(backbone: Backbone, head: MLMHead, rows: Tensor, held_out: Tensor, how: Settings) -> None:
    """Masked language modelling without dropout, the rate falling to zero."""
    encoder = backbone.encoder
    own = [parameter for name, parameter in head.named_parameters() if name != "weight"]
    moving = open_up(backbone, how.rank) + own
    optimizer = torch.optim.AdamW(moving, lr=how.rate, betas=(0.9, 0.98), weight_decay=0.01)
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=how.steps)
    draw = torch.Generator().manual_seed(how.seed)
    with Progress(console=talk) as progress:
        bar = progress.add_task("training", total=how.steps)
        for number, batch in enumerate(steps(rows, how), start=1):
            hidden, where = hide(batch, backbone.tokenizer, how.masked, draw)
            loss = F.cross_entropy(
                predicted_words(encoder, head, whole(hidden), where), batch[where]
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(moving, 1.0)
            optimizer.step()
            decay.step()
            progress.update(
                bar, advance=1, description=f"step {number}/{how.steps}   loss {loss.item():.3f}"
            )
            if number % max(1, how.steps // 10) == 0:
                score = validate(encoder, head, held_out, backbone)
                progress.console.print(f"step {number}/{how.steps}   {score}")


def addon(backbone: Backbone, head: MLMHead) -> dict[str, Tensor]:
    """What was trained, under the names `selftrain.model.mlm` reads."""
    tensors = {ours: head.get_parameter(theirs) for ours, theirs in HEAD_NAMES.items()}
    for name, parameter in backbone.encoder.named_parameters():
        if parameter.requires_grad:
            plain = name.replace(".base_layer", "").replace(".addon.weight", ".weight")
            tensors[plain] = parameter
    return {name: tensor.detach().half().contiguous() for name, tensor in tensors.items()}


def base_of(name: str) -> str:
    """The base as the add-on will name it: whoever reads that name follows it to no hub."""
    if name in EMBEDDED:
        return name
    folder = Path(name).expanduser()
    if not folder.is_dir():
        fetch = f"hf download {shlex.quote(name)} --local-dir FOLDER"
        raise ModelError(
            f"backbone `{name}` is neither embedded nor a folder here, as the base of an add-on is",
            f"fetch it from the hub to a folder first: {fetch}",
        )
    return str(folder.resolve())


def main(arguments: Sequence[str] | None = None) -> Score:
    """Read text, train, write, and check what was written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("backbone", help="minilm or a folder: an encoder without an MLM head")
    parser.add_argument("texts", nargs="+", type=Path, help="text files, one passage per line")
    parser.add_argument("-o", "--out", type=Path, required=True, help="a new folder")
    for name, value in vars(Settings()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    given = parser.parse_args(arguments)
    how = Settings(**{name: getattr(given, name) for name in vars(Settings())})
    if os.path.lexists(given.out):
        raise ConfigError(f"`{given.out}` exists already", "name a new folder")
    base = base_of(given.backbone)
    torch.manual_seed(how.seed)
    backbone = load(base)
    if backbone.mlm is not None:
        raise ModelError(f"`{given.backbone}` has an MLM head already", "use it as it is")
    rows = chunks(given.texts, backbone, how.length)
    held = max(10, len(rows) // 50)
    rows = rows[torch.randperm(len(rows))]
    held_out, rows = rows[:held], rows[held:]
    say(f"{len(rows)} rows of {how.length} tokens, {len(held_out)} held out")
    head = new_head(backbone.encoder, backbone.family)
    say(f"before   {validate(backbone.encoder, head, held_out, backbone)}")
    facts = {"base": base, "base_sha256": backbone.sha256, "rank": str(how.rank), "scale": "1.0"}
    with refusals(given.out, "write"):
        given.out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(given.out) as here:
        here.mkdir()  # first: a place that cannot be written is found before the training
        train(backbone, head, rows, held_out, how)
        save_file(addon(backbone, head), here / ADDON, {**facts, "format": "pt"})
    again = load(given.out)
    assert again.mlm is not None
    score = validate(again.encoder, again.mlm, held_out, again)
    print(f"{given.out}: {score}")  # as loaded, in half precision
    return score


if __name__ == "__main__":
    try:
        main()
    except SelftrainError as error:
        fail(error.message, error.hint, 1)
