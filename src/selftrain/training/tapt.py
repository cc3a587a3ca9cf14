"""Task-adaptive pretraining (TAPT): before it sees a label, an encoder reads the pool.

It predicts masked words of the pool through the backbone's MLM head. The head stays as it is, the
encoder moves; it is saved with the model, because all of its parameters are tuned afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selftrain.data.rows import Example
from selftrain.errors import ModelError
from selftrain.method.spec import TAPT
from selftrain.model import tokens
from selftrain.model.batches import Batch, grouped
from selftrain.model.classifier import Classifier
from selftrain.model.mlm import MLMHead
from selftrain.model.precision import computing
from selftrain.seeds import child
from selftrain.training.fit import BETAS, Course, numbers, optimise
from selftrain.training.machine import Machine, randomness
from selftrain.training.steps import cycle, final_mean


def pretrain(
    model: Classifier, pool: Iterable[Example], tapt: TAPT, *, seed: int, machine: Machine
) -> float | None:
    """Let the model's encoder predict masked words of the pool, in place.

    Returns the mean loss of the last steps; None where there was no word to mask.
    """
    backbone = model.backbone
    if backbone.mlm is None:
        raise ModelError(
            f"`{backbone.name}` has no pretrained MLM head; reading the pool needs one",
            "use one that has: --backbone minilm-mlm",
        )
    device = machine.torch_device()
    model.to(device)
    head = backbone.mlm.to(device)
    room = min(model.task.max_length, backbone.max_length)
    frame = tokens.frame(backbone.tokenizer, room=room, types=backbone.segments)
    rows = tokens.plain(list(pool), backbone.tokenizer, frame)
    order = cycle(range(len(rows)), Random(child(seed, "adapt")))  # noqa: S311
    losses: list[Tensor] = []

    def loss_of_step(_number: int) -> Tensor | None:
        batch_rows = [rows[next(order)] for _ in range(tapt.batch_size)]
        batches, _ = grouped(batch_rows, model.pad, device)
        loss = masked_word_loss(model, head, batches, tapt.share)
        if loss is not None:
            losses.append(loss.detach())
        return loss

    moving = [parameter for parameter in model.encoder.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        moving, lr=tapt.learning_rate, betas=BETAS, weight_decay=0.01, fused=True
    )
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=tapt.steps)
    course = Course(
        optimizer, schedule, tapt.steps, max_grad_norm=1.0, description="reading the pool"
    )
    with randomness(seed, "adapt"):
        optimise(model, course, loss_of_step, machine)
    machine.ranks.copy_first(model.state().values())  # each process read the same: last bits
    return final_mean(numbers(losses)) if losses else None


def masked_word_loss(
    model: Classifier, head: MLMHead, batches: Sequence[Batch], share: float
) -> Tensor | None:
    """Cross entropy of the masked words of some batches; None where no word is masked."""
    hidden = [hide(batch.ids, model.backbone.tokenizer, share) for batch in batches]
    with computing(model.precision, model.device):
        logits = [
            predicted_words(model.encoder, head, replace(batch, ids=ids).inputs(), where)
            for batch, (ids, where) in zip(batches, hidden, strict=True)
        ]
    words = [batch.ids[where] for batch, (_, where) in zip(batches, hidden, strict=True)]
    if not sum(map(len, words)):
        return None
    return F.cross_entropy(torch.cat(logits).float(), torch.cat(words))


def hide(
    ids: Tensor, tokenizer: Any, share: float, draw: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Rows with a share of their words masked, and where, both [B, L]; special tokens stay."""
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids, device=ids.device))
    chance = torch.rand(ids.shape, generator=draw).to(ids.device)
    where = (chance < share) & ~special
    return ids.masked_fill(where, tokenizer.mask_token_id), where


def predicted_words(
    encoder: nn.Module, head: MLMHead, inputs: dict[str, Tensor], where: Tensor
) -> Tensor:
    """Logits over the vocabulary at the masked places, [M, V]."""
    hidden = encoder(**inputs).last_hidden_state  # [B, L, D]
    logits: Tensor = head(hidden[where], slice(None))
    return logits
