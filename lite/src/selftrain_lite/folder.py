"""Read an exported model folder without trusting it.

    model/
      selftrain.json      labels, the rule of token rows, what is expected, the sha256 of the others
      tokenizer.json      the tokenizer
      onnx/model.onnx     input_ids, attention_mask, token_type_ids -> logits
      config.json, tokenizer_config.json, README.md     for other programs and for people

A folder may come from anyone. No link is followed, sizes are bounded, the graph may name no other
file, and every file must have the sha256 that ``selftrain.json`` names.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selftrain_lite.errors import LiteError, brief
from selftrain_lite.graph import names_other_files
from selftrain_lite.rows import Rule, parse

FORMAT = 1
FACTS, TOKENIZER, GRAPH = "selftrain.json", "tokenizer.json", "onnx/model.onnx"
LARGEST = {FACTS: 16 * 2**20, TOKENIZER: 64 * 2**20, GRAPH: 2**31}
"""Bytes of a file; the format of a graph ends at two gigabytes."""
MANY_FILES = 64
WEIGHTS = ("fp32", "fp16", "int8")
COPY_AGAIN = "copy the folder again, or export it anew: selftrain export RUN -o NEW"
EXPORT = "write one: selftrain export run -o model"
INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u180e\u200b\u200e\u200f\u2060\ufeff"))


@dataclass(frozen=True, slots=True)
class Facts:
    """The content of ``selftrain.json``, checked."""

    task: str
    labels: tuple[str, ...]
    pair: bool
    reader: str
    """``head`` or ``prompt``."""
    weights: str
    """``fp32``, ``fp16`` or ``int8``."""
    max_batch: int
    """Texts that may be answered together; 1 where the answer would depend on the others."""
    pad: int
    rule: Rule
    expected: dict[str, float] | None
    """Accuracy, low and high of its interval, and how often such intervals were right."""
    abstain: tuple[dict[str, float], ...]
    """For a threshold: the share of texts above it, and how many of those are right."""
    version: str
    """Of selftrain, which wrote it."""
    sha256: str
    """Of the graph."""


def read_folder(folder: Path) -> Facts:
    """The facts of a model folder, after every file was compared with its sha256."""
    raw = _facts_of(folder)
    facts = _parsed(raw, folder / FACTS)
    for name, sha256 in raw["files"].items():
        if _sha256(_plain_file(folder, name)) != sha256:
            raise LiteError(
                f"{folder / name} is not what was written: its sha256 differs", COPY_AGAIN
            )
    _check_whole(folder / GRAPH)
    return facts


def _facts_of(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        if not folder.is_dir():
            raise LiteError(f"{folder} is no folder", EXPORT)
        if not os.path.lexists(path):
            is_run = os.path.lexists(folder / "manifest.json")
            what = "is a run" if is_run else "is no exported model"
            hint = f"export it: selftrain export {folder} -o model" if is_run else EXPORT
            raise LiteError(f"{folder} {what}: it has no {FACTS}", hint)
        raw = json.loads(_plain_file(folder, FACTS).read_bytes())
    except OSError as error:
        raise LiteError(f"cannot read {folder}: {error.strerror}", f"ls -la {folder}") from None
    except (ValueError, RecursionError) as error:
        raise LiteError(f"{path} is not JSON: {error}", COPY_AGAIN) from None
    if not (isinstance(raw, dict) and isinstance(raw.get("format"), int)):
        raise LiteError(f"{path} names no format", EXPORT)
    if raw["format"] != FORMAT:
        newer = raw["format"] > FORMAT
        raise LiteError(
            f"{path} has format {brief(raw['format'])}; this version reads format {FORMAT}",
            "a newer version wrote it: pip install --upgrade selftrain-lite"
            if newer
            else "an earlier version wrote it: export the run again",
        )
    if raw.get("layout") != "onnx":
        raise LiteError(
            f"{folder} is a {brief(raw.get('layout'))} folder; selftrain-lite reads ONNX",
            "export it for selftrain-lite: selftrain export RUN -o NEW",
        )
    return raw


def _plain_file(folder: Path, name: str) -> Path:
    """A file of the folder, if it is a file of its size and no link leads to it."""
    path = folder
    try:
        for part in name.split("/"):
            path = path / part
            facts = path.lstat()
            last = path == folder / name
            if not (stat.S_ISREG if last else stat.S_ISDIR)(facts.st_mode):
                raise LiteError(f"{path} is not a plain {'file' if last else 'folder'}", COPY_AGAIN)
        most = LARGEST.get(name, LARGEST[FACTS])
        if facts.st_size > most:
            raise LiteError(
                f"{path} has {facts.st_size:,} bytes; expected at most {most:,}", COPY_AGAIN
            )
    except OSError as error:
        raise LiteError(f"cannot read {path}: {error.strerror}", COPY_AGAIN) from None
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_whole(path: Path) -> None:
    """Raise where a graph has its tensors in other files, which could be any of this machine."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            outside = names_other_files(content)
    except ValueError as error:  # of an empty file too
        raise LiteError(f"{path} is no graph that can be run: {error}", COPY_AGAIN) from None
    if outside:
        raise LiteError(f"{path} names other files for its tensors", COPY_AGAIN)


# ── what stands in selftrain.json ────────────────────────────────────────────────────────────


def _parsed(raw: dict[str, Any], path: Path) -> Facts:
    try:
        _check_files(raw)
        return _facts(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"has no {error}" if isinstance(error, KeyError) else f"is damaged: {error}"
        raise LiteError(f"{path} {brief(problem)}", COPY_AGAIN) from None


def _check_files(raw: dict[str, Any]) -> None:
    files = raw["files"]
    _require(isinstance(files, dict) and len(files) <= MANY_FILES, "its files are no table")
    for name, sha256 in files.items():
        _require(re.fullmatch(r"(\w[\w.-]*/)?\w[\w.-]*", name, re.ASCII), f"it lists {name!r:.60}")
        _require(re.fullmatch("[0-9a-f]{64}", str(sha256)), f"the sha256 of {name} is none")
    for name in (TOKENIZER, GRAPH):
        _require(name in files, f"it lists no {name}")


def _facts(raw: dict[str, Any]) -> Facts:
    labels, pair = _labels(raw["labels"]), raw["pair"]
    _require(isinstance(pair, bool), "`pair` is neither true nor false")
    _require(raw["reader"] in ("head", "prompt"), f"`reader` is {raw['reader']!r:.40}")
    _require(raw["weights"] in WEIGHTS, f"`weights` is {raw['weights']!r:.40}")
    expected, abstain = raw.get("expected"), raw.get("abstain") or []
    return Facts(
        task=_text(raw["task"]),
        labels=labels,
        pair=pair,
        reader=raw["reader"],
        weights=raw["weights"],
        max_batch=_whole(raw["max_batch"], 1, 1024),
        pad=_whole(raw["tokens"]["pad"], 0),
        rule=_rule(raw["tokens"], pair=pair, prompt=raw["reader"] == "prompt"),
        expected=None if expected is None else _numbers(expected),
        abstain=tuple(map(_numbers, abstain)),
        version=_text(raw["selftrain"]),
        sha256=raw["files"][GRAPH],
    )


def _labels(labels: Any) -> tuple[str, ...]:
    _require(isinstance(labels, list) and len(labels) >= 2, "it names fewer than two labels")
    first_of: dict[str, str] = {}
    for label in map(_text, labels):
        first = first_of.setdefault(clean_label(label), label)
        if first is not label:
            raise ValueError(f"the labels {first!r:.40} and {label!r:.40} are one when normalised")
    return tuple(first_of.values())


def clean_label(label: str) -> str:
    """A label as selftrain reads it: accents composed, no invisible characters, no blanks around.

    >>> clean_label(" cafe\u0301\u200b ") == "caf\xe9"
    True
    """
    plain = unicodedata.normalize("NFC", label.translate(INVISIBLE))
    return re.sub(r"^[\s\u200c\u200d]+|[\s\u200c\u200d]+$", "", plain)


def _rule(tokens: Any, *, pair: bool, prompt: bool) -> Rule:
    template = parse(_text(tokens["template"]), pair=pair) if prompt else None
    rule = Rule(
        first=_ids(tokens["first"]),
        between=_ids(tokens["between"]),
        last=_ids(tokens["last"]),
        typed=tokens["typed"] is True,
        room=_whole(tokens["max_tokens"], 8, 2**20),
        special=frozenset(_ids(tokens["special"])),
        unknown=_whole(tokens["unknown"], 0),
        mask=_whole(tokens["mask"], 0) if prompt else None,
        template=template,
    )
    frame = len(rule.first) + len(rule.between) + len(rule.last)
    _require(frame < rule.room, f"{frame} special tokens leave no room in {rule.room}")
    return rule


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _text(value: Any) -> str:
    _require(isinstance(value, str) and value.strip(), f"{value!r:.40} stands where a name belongs")
    value.encode()
    return str(value)


def _whole(value: Any, least: int, most: int = 2**31) -> int:
    right = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    _require(right, f"{value!r:.40} stands where a number from {least} to {most:,} belongs")
    return int(value)


def _ids(values: Any) -> tuple[int, ...]:
    _require(isinstance(values, list) and len(values) <= 2**16, "a list of token ids is none")
    return tuple(_whole(value, 0) for value in values)


def _numbers(values: Any) -> dict[str, float]:
    _require(isinstance(values, dict) and len(values) <= MANY_FILES, "a table of numbers is none")
    for value in values.values():
        right = isinstance(value, int | float) and math.isfinite(value)
        _require(right, f"{value!r:.40} stands where a number belongs")
    return {str(name): value for name, value in values.items()}
