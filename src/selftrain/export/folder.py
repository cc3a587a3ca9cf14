"""Write an exported model: a folder in the layout of the Hub, complete or not at all.

model/
  README.md                 the model card
  config.json               the encoder, and the classes
  tokenizer.json, tokenizer_config.json
  onnx/model.onnx           input_ids, attention_mask, token_type_ids -> logits
  selftrain.json            the rule of token rows, what is expected, the sha256 of the others
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any

from selftrain.data.rows import Example
from selftrain.disk import check_local, plain_file, refusals, remove, sha256, sync
from selftrain.errors import ConfigError, ModelError, RunError
from selftrain.export.facts import FACTS, Layout, check_labels, facts_of
from selftrain.export.origin import Origin
from selftrain.export.parity import Parity
from selftrain.export.weights import Weights
from selftrain.model.classifier import Classifier

NEEDED = ("onnx", "onnxscript", "onnxruntime")
INSTALL = "pip install 'selftrain[export]'"
GRAPH = "onnx/model.onnx"
PRIVATE = ("name_or_path", "_name_or_path", "local_files_only", "is_local", "cache_dir")
"""Entries of transformers that say where something was on this machine."""
LARGEST_FACTS = 2**24  # bytes


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a model should be exported."""

    layout: Layout = "onnx"
    weights: Weights = "fp32"
    texts: Sequence[Example] | None = None
    """Texts on which answers are compared; drawn from the vocabulary if there are none."""


def check_wanted(wanted: Wanted) -> None:
    """Raise, before anything is loaded, for weights that a layout has not, or a missing package."""
    if wanted.layout == "sentence-transformers":
        if wanted.weights != "fp32":
            raise ConfigError(
                f"--weights {wanted.weights} is for ONNX; a sentence-transformers folder has fp32",
                "leave out --weights, or --format onnx",
            )
        return
    for name in NEEDED:
        if find_spec(name) is None:
            raise ModelError(f"{name} is not installed; the extra `export` has it", INSTALL)


def export(origin: Origin, out: Path, wanted: Wanted = Wanted()) -> Parity:
    """Write the model of a run to a folder, after its answers were compared."""
    check_wanted(wanted)
    model = origin.model.cpu()
    check_labels(model.labels)
    if model.prior_shift is not None:
        raise ConfigError("other class shares are not exported", "leave out the prior")
    with appearing(out) as folder:
        write = _write_onnx if wanted.layout == "onnx" else _write_sentence
        parity = write(model, folder, wanted)

        from selftrain.export.card import card

        text = card(origin, wanted.layout, wanted.weights, parity)
        (folder / "README.md").write_text(text, encoding="utf-8")
        names = sorted(path for path in folder.rglob("*") if path.is_file())
        files = {path.relative_to(folder).as_posix(): sha256(path) for path in names}
        facts = facts_of(origin, wanted.layout, wanted.weights, parity, files)
        write_json(folder / FACTS, facts)
    return parity


def _write_onnx(model: Classifier, folder: Path, wanted: Wanted) -> Parity:
    from selftrain.export.graph import graph_of
    from selftrain.export.parity import check_graph, drawn_texts
    from selftrain.export.weights import converted

    graph = converted(graph_of(model), wanted.weights)
    examples = drawn_texts(model) if wanted.texts is None else wanted.texts
    real = wanted.texts is not None
    parity = check_graph(model, graph, wanted.weights, examples, real=real)
    write_tokenizer(model, folder)
    write_json(folder / "config.json", config_of(model))
    (folder / GRAPH).parent.mkdir()
    (folder / GRAPH).write_bytes(graph.SerializeToString())
    return parity


def _write_sentence(model: Classifier, folder: Path, wanted: Wanted) -> Parity:
    from selftrain.export import sentence
    from selftrain.export.parity import drawn_texts

    sentence.check_shape(model)
    sentence.write_folder(model, folder)
    write_tokenizer(model, folder)
    examples = drawn_texts(model) if wanted.texts is None else wanted.texts
    return sentence.check_folder(model, folder, examples, real=wanted.texts is not None)


# ── the files ────────────────────────────────────────────────────────────────────────────────


def config_of(model: Classifier) -> dict[str, Any]:
    """``config.json``: the encoder's, with the classes and the name of a sequence classifier."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSIFIERS,
    )

    encoder: Any = model.backbone.encoder
    facts = {key: value for key, value in encoder.config.to_dict().items() if key not in PRIVATE}
    return {
        **{key: value for key, value in facts.items() if not key.startswith("_")},
        "architectures": [CLASSIFIERS[model.backbone.family.name]],
        "id2label": dict(enumerate(model.labels)),
        "label2id": {label: number for number, label in enumerate(model.labels)},
        "num_labels": len(model.labels),
        "problem_type": "single_label_classification",
    }


def write_tokenizer(model: Classifier, folder: Path) -> None:
    """``tokenizer.json`` and ``tokenizer_config.json``, without a place on this machine."""
    tokenizer = model.backbone.tokenizer
    backend = type(tokenizer.backend_tokenizer).from_str(tokenizer.backend_tokenizer.to_str())
    backend.no_truncation()
    backend.no_padding()
    tokenizer.save_pretrained(folder)
    backend.save(str(folder / "tokenizer.json"))
    path = folder / "tokenizer_config.json"
    facts = json.loads(path.read_text("utf-8"))
    facts = {key: value for key, value in facts.items() if key not in PRIVATE}
    write_json(path, facts | {"model_max_length": model.frame.room})


def write_json(path: Path, value: object) -> None:
    """A value as readable JSON."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# ── the folder ───────────────────────────────────────────────────────────────────────────────


def check_place(out: Path) -> None:
    """Raise unless an export may be written here: nothing, an empty folder, or another export."""
    check_local(out, "a folder to write")
    with refusals(out, "write"):
        if not os.path.lexists(out):
            if not out.absolute().parent.is_dir():
                raise RunError(
                    f"cannot write {out}: there is no folder {out.absolute().parent}",
                    "make it first",
                )
            return
        if out.is_symlink() or not out.is_dir():
            raise RunError(f"{out} is no folder; an export is one", "choose another: -o NEW")
        strange = _strange_file(out)
    if strange is not None:
        raise RunError(
            f"{out} is neither empty nor an export as it was written: it holds {strange!r}",
            "move that file elsewhere, or choose another folder: -o NEW",
        )


def _strange_file(out: Path) -> str | None:
    """A file in a folder that no export has written as it is now; to replace it would lose it."""
    written: dict[str, str] = {}
    if os.path.lexists(out / FACTS):
        try:
            facts = json.loads(plain_file(out / FACTS, LARGEST_FACTS).read_bytes())
        except ValueError:
            return FACTS
        found = facts.get("files") if isinstance(facts, dict) else None
        written = found if isinstance(found, dict) else {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if name == FACTS or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink() or written.get(name) != sha256(plain_file(path)):
            return name
    return None


@contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A folder to fill, which takes its place when it is complete; an error leaves nothing."""
    check_place(out)
    target = out.absolute()
    new, old = (target.with_name(f".{target.name}.{token_hex(8)}") for _ in range(2))
    with refusals(out, "write"):
        try:
            new.mkdir()
            yield new
            for path in (*new.rglob("*"), new):
                sync(path)
            check_place(out)  # it may have been filled in the meantime
            if target.exists():
                target.rename(old)
            try:
                new.rename(target)
            except OSError:
                if old.exists():
                    old.rename(target)
                raise
        finally:
            for path in (new, old):
                remove(path)
        sync(target.parent)
