"""Task-adaptive pretraining (TAPT): before it sees a label, an encoder reads the pool.

Words of the pool are masked and guessed through the backbone's own MLM head, which stays as it is;
the encoder moves. What is learnt so is part of the model, since all of it is tuned afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selftrain.data.rows import Example
from selftrain.errors import ModelError
from selftrain.method.spec import TAPT
from selftrain.model import tokens as reading
from selftrain.model.batches import grouped
from selftrain.model.classifier import Classifier
from selftrain.model.mlm import MLMHead
from selftrain.seeds import child
from selftrain.training.machine import Machine, randomness
from selftrain.training.steps import cycle, late


def adapt(
    model: Classifier, pool: Iterable[Example], how: TAPT, *, seed: int, on: Machine
) -> float | None:
    """Let the model's encoder guess masked words of the pool, in place.

    Gives the loss of the last steps; None where there was no word to mask.
    """
    backbone = model.backbone
    if backbone.mlm is None:
        raise ModelError(
            f"`{backbone.name}` has no pretrained MLM head; to read the pool needs one",
            "take one that has: --backbone minilm-mlm",
        )
    device = on.accelerator().device
    model.to(device)
    head = backbone.mlm.to(device)
    room = min(model.task.max_length, backbone.max_length)
    around = reading.frame(backbone.tokenizer, room=room, types=backbone.segments)
    rows = reading.plain(list(pool), backbone.tokenizer, around)
    order = cycle(range(len(rows)), Random(child(seed, "adapt")))  # noqa: S311
    moving = [parameter for parameter in model.encoder.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        moving, lr=how.learning_rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=how.steps)
    losses: list[float] = []
    with randomness(seed, "adapt"):
        model.train()
        for _ in on.track(range(how.steps), "reading the pool", how.steps):
            batches, _ = grouped(
                [rows[next(order)] for _ in range(how.batch_size)], model.pad, device
            )
            hidden = [hide(batch.ids, backbone.tokenizer, how.share) for batch in batches]
            guessed = [
                guesses(model.encoder, head, replace(batch, ids=ids).inputs(), where)
                for batch, (ids, where) in zip(batches, hidden, strict=True)
            ]
            gold = [batch.ids[where] for batch, (_, where) in zip(batches, hidden, strict=True)]
            if not sum(map(len, gold)):  # of a few short rows no word may be masked
                continue
            loss = F.cross_entropy(torch.cat(guessed), torch.cat(gold))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(moving, 1.0)
            optimizer.step()
            decay.step()
            losses.append(float(loss.detach()))
        model.eval()
    return late(losses) if losses else None


def hide(
    ids: Tensor, tokenizer: Any, share: float, draw: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Rows with a share of their words masked, and where, both [B, L]; special tokens stay."""
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids, device=ids.device))
    chance = torch.rand(ids.shape, generator=draw).to(ids.device)
    where = (chance < share) & ~special
    return ids.masked_fill(where, tokenizer.mask_token_id), where


def guesses(encoder: nn.Module, head: MLMHead, inputs: dict[str, Tensor], where: Tensor) -> Tensor:
    """Logits over the vocabulary at the masked places, [M, V]."""
    hidden = encoder(**inputs).last_hidden_state  # [B, L, D]
    logits: Tensor = head(hidden[where], slice(None))
    return logits
