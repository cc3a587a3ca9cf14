"""A model that answers: texts in, labels and calibrated probabilities out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from selftrain_lite.errors import LiteError
from selftrain_lite.folder import COPY_AGAIN, GRAPH, TOKENIZER, Facts, read_folder
from selftrain_lite.rows import Row, RowMaker, Text

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "logits"
PADDED_TOKENS = 512
"""Of a batch: small batches of similar length are faster than one padded to its longest row."""

Floats = NDArray[np.float64]


def load(folder: str | Path, *, threads: int | None = None) -> Model:
    """Read a model folder that ``selftrain export`` wrote; ``folder.py`` says what is checked.

    ``threads`` compute an answer; without a number onnxruntime takes one for each core.
    """
    folder = Path(folder)
    facts = read_folder(folder)
    if threads is not None and not 1 <= threads <= 1024:
        raise LiteError(f"threads is {threads}; expected 1 to 1024", "threads=1")
    return Model(facts, _tokenizer(folder / TOKENIZER), _session(folder / GRAPH, facts, threads))


class Model:
    """A loaded model; several threads may ask it at once."""

    def __init__(self, facts: Facts, tokenizer: Any, session: Any) -> None:
        self._facts = facts
        self._rows = RowMaker(tokenizer, facts.rule)
        self._session = session
        self.rows([("", "") if facts.pair else ""])  # raises if a template leaves no room

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of the columns of ``predict_proba``."""
        return self._facts.labels

    @property
    def pair(self) -> bool:
        """Whether it reads pairs of texts."""
        return self._facts.pair

    @property
    def max_batch(self) -> int:
        """Texts that are answered together; 1 for int8, whose answers depend on the others."""
        return self._facts.max_batch

    @property
    def info(self) -> dict[str, Any]:
        """What is known of the model: task, labels, expected accuracy, weights, sizes."""
        facts = self._facts
        return {
            "task": facts.task,
            "labels": list(facts.labels),
            "pair": facts.pair,
            "reader": facts.reader,
            "weights": facts.weights,
            "max_tokens": facts.rule.room,
            "max_batch": facts.max_batch,
            "expected": None if facts.expected is None else dict(facts.expected),
            "abstain": [dict(each) for each in facts.abstain],
            "selftrain": facts.version,
            "sha256": facts.sha256,
        }

    def predict(self, texts: Iterable[str | Sequence[str]]) -> list[str]:
        """The label of each text, or of each pair of texts."""
        return [self.labels[best] for best in self.logits(texts).argmax(1)]

    def predict_proba(self, texts: Iterable[str | Sequence[str]]) -> Floats:
        """Calibrated probabilities, [N, C]: a row for each text, a column for each label."""
        logits = self.logits(texts)
        if not len(logits):
            return logits
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return cast(Floats, powers / powers.sum(1, keepdims=True))

    def rows(self, texts: Iterable[str | Sequence[str]]) -> list[Row]:
        """The token rows of texts, cut to length."""
        return self._rows.rows(self._checked(texts), pair=self.pair)

    def logits(self, texts: Iterable[str | Sequence[str]]) -> Floats:
        """What probabilities come from, [N, C], divided by the temperature already."""
        rows = self.rows(texts)
        out = np.zeros((len(rows), len(self.labels)))
        for places in grouped([len(row.ids) for row in rows], self.max_batch):
            out[places] = self._run([rows[place] for place in places])
        lost = int((np.isnan(out).any(1) | ~(out > -np.inf).any(1) | (out == np.inf).any(1)).sum())
        if lost:
            raise LiteError(
                f"the model answers {lost} of {len(rows)} texts with no number", COPY_AGAIN
            )
        return out

    def _run(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """Logits of rows that are answered together, [B, C]."""
        longest = max(len(row.ids) for row in rows)
        inputs = np.zeros((3, len(rows), longest), np.int64)
        inputs[0] = self._facts.pad
        for number, row in enumerate(rows):
            inputs[0, number, : len(row.ids)] = row.ids
            inputs[1, number, : len(row.ids)] = 1
            if row.types is not None:
                inputs[2, number, : len(row.types)] = row.types
        try:
            (logits,) = self._session.run([OUTPUT], dict(zip(INPUTS, inputs, strict=True)))
        except Exception as error:  # onnxruntime raises nothing narrower
            raise LiteError(f"the graph cannot be run: {error}", COPY_AGAIN) from None
        if logits.shape != (len(rows), len(self.labels)):
            raise LiteError(
                f"the graph answers with shape {logits.shape}; "
                f"expected {(len(rows), len(self.labels))}",
                COPY_AGAIN,
            )
        return cast(NDArray[np.float32], logits)

    def _checked(self, texts: Iterable[str | Sequence[str]]) -> list[Text]:
        if isinstance(texts, str):
            raise LiteError("predict takes a list of texts, and got one text", 'predict(["…"])')
        return [self._text(number, text) for number, text in enumerate(texts, 1)]

    def _text(self, number: int, text: object) -> Text:
        wanted = "a pair of texts" if self.pair else "a text"
        hint = 'predict([("…", "…")])' if self.pair else 'predict(["…"])'
        parts = text if isinstance(text, tuple | list) else (text,)
        if len(parts) != 1 + self.pair or isinstance(text, str) == self.pair:
            raise LiteError(f"row {number} is {text!r:.40}; expected {wanted}", hint)
        for part in parts:
            if not isinstance(part, str):
                raise LiteError(f"row {number} has {part!r:.40}; expected {wanted}", hint)
            if not part.isascii() and any("\ud800" <= c <= "\udfff" for c in part):
                raise LiteError(f"row {number} has half a character: {part!a:.40}", "remove it")
        return (parts[0], parts[1]) if self.pair else (parts[0], None)


def grouped(lengths: Sequence[int], max_batch: int) -> Iterator[list[int]]:
    """Places in batches of similar length, each with at most 512 padded tokens.

    >>> list(grouped([3, 9, 3], max_batch=2))
    [[1, 0], [2]]
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        padded = (len(batch) + 1) * lengths[batch[0]] if batch else 0
        if batch and (padded > PADDED_TOKENS or len(batch) == max_batch):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # `tokenizers` raises nothing narrower for a damaged file
        raise LiteError(f"{path} is no tokenizer: {error}", COPY_AGAIN) from None


def _quiet_onnxruntime() -> Any:
    """onnxruntime without its telemetry: from 1.29 on its packages report each session."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # counts only before its first import
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # for a program that had imported it already
    return onnxruntime


def _session(path: Path, facts: Facts, threads: int | None) -> Any:
    onnxruntime = _quiet_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised
    options.intra_op_num_threads = threads or 0
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises nothing narrower
        raise LiteError(f"{path} is no graph that can be run: {error}", COPY_AGAIN) from None
    found = [each.name for each in session.get_inputs()]
    if sorted(found) != sorted(INPUTS):
        raise LiteError(
            f"{path} has the inputs {', '.join(found)}; expected {', '.join(INPUTS)}", COPY_AGAIN
        )
    _check_shapes(path, session, facts)
    return session


def _check_shapes(path: Path, session: Any, facts: Facts) -> None:
    """Raise for a graph of one batch size only, or with other outputs than a logit a class."""
    for each in session.get_inputs():
        if len(each.shape) != 2 or any(isinstance(size, int) for size in each.shape):
            raise LiteError(
                f"{path} takes {each.name} of shape {each.shape}; expected any two sizes",
                COPY_AGAIN,
            )
    outputs = {each.name: each.shape for each in session.get_outputs()}
    if list(outputs) != [OUTPUT] or outputs[OUTPUT][1:] not in ([len(facts.labels)], [None]):
        raise LiteError(
            f"{path} gives {outputs}; expected {OUTPUT} of {len(facts.labels)} labels", COPY_AGAIN
        )
