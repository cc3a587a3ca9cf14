"""A folder that sentence-transformers reads: encoder, pooling, and the head as dense layers.

Only a model whose encoder has the shape of its family can be such a folder: what LoRA and IA3
learnt is merged into the weights, on a copy; an adapter, a prefix or P-tuning cannot be.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from selftrain.data.rows import Example
from selftrain.errors import ConfigError, ModelError
from selftrain.export.parity import SENTENCE_LIMIT, Parity, largest_difference
from selftrain.model.classifier import Classifier
from selftrain.model.pel import IA3, BitFit, Full, LoRA, Probe

CAN_BE_MERGED = (Full, BitFit, LoRA, IA3, Probe)
MODULES = "sentence_transformers.models"
DENSE = f"{MODULES}.Dense"


def check_shape(model: Classifier) -> None:
    """Raise for a model that is no encoder with a pooling and dense layers."""
    if model.head is None:
        raise ConfigError(
            "a prompt has no sentence-transformers folder: it reads the place of its mask",
            "--format onnx",
        )
    if not isinstance(model.tuning, CAN_BE_MERGED):
        raise ConfigError(
            f"a model with {model.tuning.kind} has no sentence-transformers folder: what it learnt "
            "cannot be merged into the encoder",
            "--format onnx",
        )
    if model.task.pair:
        raise ConfigError(
            "a model of pairs has no sentence-transformers folder: such a folder reads one text",
            "--format onnx",
        )


def write_folder(model: Classifier, folder: Path) -> None:
    """Write the modules of sentence-transformers; the tokenizer is written by others."""
    assert model.head is not None
    encoder = merged_encoder(model)
    encoder.save_pretrained(folder)
    _write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": model.frame.room, "do_lower_case": False},
    )
    pooling = "mean" if model.backbone.pooling == "mean" else "cls"
    (folder / "1_Pooling").mkdir()
    _write_json(
        folder / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": model.backbone.width,
            "pooling_mode_cls_token": pooling == "cls",
            "pooling_mode_mean_tokens": pooling == "mean",
            "include_prompt": True,
        },
    )
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    layers = (
        []
        if model.head.dense is None
        else [(model.head.dense, "torch.nn.modules.activation.Tanh", 1.0)]
    )
    layers.append((model.head.out, "torch.nn.modules.linear.Identity", model.temperature))
    for number, (linear, activation, divisor) in enumerate(layers, 2):
        name = f"{number}_Dense"
        _write_dense(folder / name, linear, activation, divisor)
        modules.append((name, "Dense"))
    _write_json(
        folder / "modules.json",
        [
            {"idx": number, "name": str(number), "path": path, "type": f"{MODULES}.{kind}"}
            for number, (path, kind) in enumerate(modules)
        ],
    )


def _write_dense(folder: Path, linear: nn.Linear, activation: str, divisor: float) -> None:
    """A Linear; the temperature that divides the logits is folded into it."""
    folder.mkdir()
    facts = {
        "in_features": linear.in_features,
        "out_features": linear.out_features,
        "bias": True,
        "activation_function": activation,
    }
    _write_json(folder / "config.json", facts)
    tensors = {
        "linear.weight": (linear.weight.detach().cpu() / divisor).contiguous(),
        "linear.bias": linear.bias.detach().cpu() / divisor,
    }
    save_file(tensors, folder / "model.safetensors")


def merged_encoder(model: Classifier) -> Any:
    """The encoder in the shape of its family, with what was learnt merged into it.

    It is a deep copy: merging in place would change the weights that other models share.
    """
    encoder: Any = deepcopy(model.backbone.encoder).cpu()
    tuned: Any = deepcopy(model.encoder).cpu()
    for path, part in list(tuned.named_modules()):
        if hasattr(part, "get_base_layer") and hasattr(part, "merge"):
            part.merge()
            tuned.set_submodule(path, part.get_base_layer())
    state = {name: tensor.detach() for name, tensor in tuned.state_dict().items()}
    encoder.load_state_dict({**encoder.state_dict(), **_in_place(model, state)})
    return encoder


def _in_place(model: Classifier, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of an upper half under their names in the whole encoder."""
    if model.trunk is None:
        return state
    from selftrain.model.pel.layers import depth

    family = model.backbone.family
    below = depth(model.trunk.layers, family)
    renamed = {}
    for name, tensor in state.items():
        rest = name.removeprefix(f"{family.layers}.")
        if rest != name:
            number, _, tail = rest.partition(".")
            renamed[f"{family.layers}.{int(number) + below}.{tail}"] = tensor
    return renamed


def check_folder(
    model: Classifier, folder: Path, examples: Sequence[Example], *, real: bool
) -> Parity:
    """Compare a written folder with its model, read as sentence-transformers reads it."""
    from sentence_transformers import SentenceTransformer

    loaded = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    texts = [example.text for example in examples]
    found = torch.from_numpy(loaded.encode(texts, show_progress_bar=False)).float()
    expected = model.read(examples).logits / model.temperature
    difference = largest_difference(found, expected, in_logits=True)
    agreement = (found.argmax(1) == expected.argmax(1)).float().mean().item()
    if not difference <= SENTENCE_LIMIT:
        raise ModelError(
            f"as a sentence-transformers folder its logits differ by {difference:.1e}; "
            f"expected at most {SENTENCE_LIMIT:.0e}",
            "--format onnx",
        )
    return Parity(len(texts), difference, agreement, real)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
