"""``README.md`` of an exported model: what it is, how good it should be, where it fails.

It has counts and numbers of the run, and no text that the model learnt from. Names of labels and
tasks may come from anyone: they are escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from selftrain.errors import in_percent
from selftrain.escape import brief
from selftrain.export.facts import Layout
from selftrain.export.origin import Origin
from selftrain.export.parity import Parity
from selftrain.export.weights import Weights
from selftrain.model.embedded import EMBEDDED
from selftrain.runs.lines import seconds, share
from selftrain.training.ladder import Rung

SHOWN_LABELS = 50
BASES = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "minilm-mlm": "sentence-transformers/all-MiniLM-L6-v2",
}
CITATION = """\
```bibtex
@inproceedings{wang2023upet,
  title     = {Uncertainty-aware Parameter-Efficient Self-training for Semi-supervised Language
               Understanding},
  author    = {Wang, Jianing and Sun, Qiushi and Chen, Nuo and Wang, Chengyu and Huang, Jun and
               Gao, Ming and Li, Xiang},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2023},
  year      = {2023}
}
```"""


def card(origin: Origin, layout: Layout, weights: Weights, parity: Parity) -> str:
    """The model card."""
    parts = (
        _front_matter(origin, layout),
        _summary(origin),
        _use(origin, layout, weights),
        _quality(origin),
        _ladder(origin),
        _training(origin),
        _limits(origin, weights, parity),
        _cite(),
    )
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def plain(text: str) -> str:
    r"""A name as text of a Markdown page: nothing in it is a link, a tag or a new line.

    >>> print(plain("<b>a|b</b>"))
    \<b\>a\|b\</b\>
    """
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&$])", r"\\\1", brief(text))


def base_name(origin: Origin) -> str:
    """The encoder's name as others know it; of a folder of this machine its last part alone."""
    name = origin.manifest.backbone.name
    if name in EMBEDDED:
        return BASES.get(name, name)
    on_hub = origin.manifest.backbone.revision is not None
    return name if on_hub else Path(name).name


def _front_matter(origin: Origin, layout: Layout) -> list[str]:
    library = "sentence-transformers" if layout == "sentence-transformers" else "onnx"
    lines = [
        "---",
        f"library_name: {library}",
        "pipeline_tag: text-classification",
        "tags: [selftrain, self-training, text-classification]",
    ]
    if origin.manifest.backbone.name in EMBEDDED:
        lines.append(f"base_model: {json.dumps(base_name(origin))}")
    return [*lines, "---"]


def _summary(origin: Origin) -> list[str]:
    model = origin.model
    what = "pairs of texts" if model.task.pair else "texts"
    labels = [plain(label) for label in model.labels[:SHOWN_LABELS]]
    more = len(model.labels) - len(labels)
    tail = f" and {more} more" if more else ""
    return [
        f"# {plain(model.task.name)}",
        "",
        f"Sorts {what} into {len(model.labels)} classes: {', '.join(labels)}{tail}.",
        "Trained with selftrain from a few labels and",
        f"unlabelled texts, on {plain(base_name(origin))}. Texts are cut after "
        f"{model.frame.room} tokens.",
    ]


def _use(origin: Origin, layout: Layout, weights: Weights) -> list[str]:
    lines = ["## Use", ""]
    if layout == "sentence-transformers":
        return [
            *lines,
            "```python",
            "from sentence_transformers import SentenceTransformer",
            "",
            'logits = SentenceTransformer("model").encode(["a text"])  # one column for each label',
            "```",
            "",
            "The softmax of a row of logits has the calibrated probabilities, in the order of",
            "`labels` in `selftrain.json`.",
        ]
    example = '("a text", "another")' if origin.model.task.pair else '"a text"'
    lines += [
        "```python",
        "from selftrain_lite import load  # pip install selftrain-lite",
        "",
        f'load("model").predict([{example}])',
        "```",
        "",
    ]
    if origin.model.template is not None:
        return [*lines, "Other programs must fill the template of `selftrain.json` themselves."]
    dtype = "" if weights == "fp32" else f" The weights are {weights}, under the name of fp32."
    return [
        *lines,
        'In transformers.js: `pipeline("text-classification", "model", { dtype: "fp32" })`.',
        f"It cuts long texts its own way, and reads names of special tokens in a text.{dtype}",
    ]


def _quality(origin: Origin) -> list[str]:
    lines = ["## How good it is", ""]
    if origin.expected is None:
        lines.append("Nothing is known of its accuracy: the run has no estimate. Measure it.")
    else:
        lines.append(
            f"Expected accuracy {origin.expected}, on texts like those it learnt from. This is an "
            "estimate without a test set; measure it where it matters."
        )
    if origin.abstain:
        lines += ["", "| answers above | share of texts | should be right |", "|---|---|---|"]
        lines += [
            f"| {hint['above']:.2f} | {hint['share']:.0%} | {hint['right']:.0%} |"
            for hint in origin.abstain
        ]
    return lines


def _ladder(origin: Origin) -> list[str]:
    """Without rounds of a head alone, which differ little; the exported one is always there."""
    heads = {
        f"round {record.number}"
        for record in origin.rounds
        if record.encoder_of is not None and record.number != origin.number
    }
    rungs = [rung for rung in origin.rungs if rung.name not in heads]
    if not rungs:
        return []
    return [
        "## Simpler models of the same labels",
        "",
        "| model | accuracy | between | how | seconds of training |",
        "|---|---|---|---|---|",
        *(
            f"| {plain(rung.name)} | {share(rung.accuracy)} | {_interval(rung)} | {rung.how} "
            f"| {seconds(rung.seconds)} |"
            for rung in rungs
        ),
    ]


def _interval(rung: Rung) -> str:
    return "–" if rung.low is None else f"{rung.low:.2f} - {rung.high:.2f}"


def _training(origin: Origin) -> list[str]:
    manifest = origin.manifest
    return [
        "## What it was trained on",
        "",
        *_counts(origin),
        f"- Method `{plain(str(manifest.method.get('name')))}`, round {origin.number}, "
        f"seed {manifest.seed}.",
        f"- Encoder {plain(base_name(origin))}, sha256 `{manifest.backbone.sha256[:16]}`.",
        f"- Fingerprint of the labelled texts `{plain(manifest.data.get('labelled', ''))}`, of the "
        f"unlabelled ones `{plain(manifest.data.get('pool', ''))}`. No text is in this folder.",
    ]


def _counts(origin: Origin) -> Iterator[str]:
    if origin.gold:
        total = sum(origin.gold.values())
        by_class = ", ".join(f"{plain(name)} {n}" for name, n in list(origin.gold.items())[:50])
        yield f"- {total} labelled texts: {by_class}."
    for record in origin.rounds:
        pool, picked = record.numbers.get("pool"), record.numbers.get("picked")
        if record.number and record.accepted and isinstance(picked, int):
            yield f"- Round {record.number}: {picked} pseudo labels of {pool} unlabelled texts."
    prior = origin.record.numbers.get("prior")
    if isinstance(prior, dict) and all(isinstance(each, float) for each in prior.values()):
        yield f"- Estimated class shares of the unlabelled texts: {in_percent([*prior.values()])}."


def _limits(origin: Origin, weights: Weights, parity: Parity) -> list[str]:
    lines = [
        "## Limits and intended use",
        "",
        "- Meant for texts like those it learnt from, in their language. On other texts its",
        "  probabilities promise too much.",
        "- Every text gets one of the classes, also one that belongs to none: leave low",
        "  probabilities to a person.",
        "- It may repeat what is one-sided in its texts or its encoder. Let it decide alone about",
        "  no person.",
    ]
    if origin.model.temperature == 1:
        lines.append("- Its probabilities are not calibrated: the run has no estimate.")
    else:
        lines.append(
            f"- Probabilities are calibrated (temperature {origin.model.temperature:.2f})."
        )
    lines.append(
        "- `certainty` of `selftrain predict` needs dropout and is not part of this folder."
    )
    if weights == "int8":
        lines.append("- int8: give it one text at a time; beside others its answer would change.")
    checked = str(parity)
    return [*lines, f"- {checked[:1].upper()}{checked[1:]}, against the run."]


def _cite() -> list[str]:
    return ["## How to cite", "", "The method that selftrain implements:", "", CITATION]
