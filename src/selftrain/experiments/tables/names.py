"""The methods of a comparison by name: what a reader calls them, and in which order they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from selftrain.experiments.closing import MAJORITY
from selftrain.experiments.results import Shots

REFERENCES = {
    MAJORITY: "majority class",
    "frozen-lr": "frozen encoder + logistic regression",
    "frozen-lr-apart": "frozen encoder, sentences apart + logistic regression",
}
BASELINES = {
    "head-ft": "Head FT",
    "prompt-ft": "Prompt FT",
    "tapt-head-ft": "TAPT + Head FT",
    "head-st": "Head ST",
    "prompt-st": "Prompt ST",
    "ust": "UST",
    "ust-hard": "UST (hard)",
    "cest": "CEST (reconstruction)",
    "list": "LiST",
}
READINGS = ("head", "prompt")
MODULES = ("ptuning", "prefix", "adapter")
UPET = {
    f"upet-{reader}-{tuning}": f"UPET {reader.title()}-{tuning.title()}"
    for reader in READINGS
    for tuning in MODULES
}
PEL = {
    (False, False): "upet-{}-full",
    (False, True): "upet-{}-adapter",
    (True, False): "upet-{}-full-pel-teacher",
    (True, True): "upet-{}-adapter-pel-teacher",
}
"""Whether the teacher and the student are parameter-efficient → the method (Table 2)."""
ABLATIONS = {
    "wo-res-all": "w/o reliable sampling (all)",
    "wo-res-uniform": "w/o reliable sampling (uniform)",
    "wo-certainty": "w/o certainty",
    "wo-confidence": "w/o confidence",
    "wo-phce": "w/o PHCE",
    "wo-contrast": "w/o easy-hard contrast",
}
MAIN = REFERENCES | BASELINES | UPET
"""Method → its name in a table, in the paper's order."""
SHOWN = MAIN | {
    form.format(reader): f"UPET {reader.title()}-{('Full', 'Adapter')[student]}"
    + (", adapter teacher" if teacher else "")
    for reader in READINGS
    for (teacher, student), form in PEL.items()
}
ORDER = {method: place for place, method in enumerate(SHOWN)}

_VARIANT = re.compile(r"(?P<base>upet-(?:head|prompt)-[a-z0-9-]+?)-(?P<change>wo-[a-z-]+|alpha-.+)")
_ALPHA = re.compile(r"alpha-(?P<alpha>\d+(?:\.\d+)?)-(?P<scale>[a-z]+)-(?P<how>[a-z]+)")


class Alpha(NamedTuple):
    """How reliable examples are weighed and taken in a method whose name says so."""

    alpha: str
    scale: str
    how: str


def shown(method: str, shots: Shots = 16) -> str:
    """The name of a method in a table.

    >>> shown("upet-head-ptuning"), shown("head-ft", "full"), shown("cest")
    ('UPET Head-Ptuning', 'Head FT, full data', 'CEST (reconstruction)')
    """
    base, change = variant(method)
    name = SHOWN.get(base, base)
    changed = f"{name} {ABLATIONS.get(change, change)}" if change else name
    return f"{changed}, full data" if shots == "full" else changed


def variant(method: str) -> tuple[str, str]:
    """The method that was changed and what was changed; nothing where the method is itself.

    >>> variant("upet-head-adapter-wo-phce"), variant("ust-hard")
    (('upet-head-adapter', 'wo-phce'), ('ust-hard', ''))
    """
    found = _VARIANT.fullmatch(method)
    return (found["base"], found["change"]) if found else (method, "")


def alpha_of(method: str) -> Alpha | None:
    """The alpha that a method's name states, if it does.

    >>> alpha_of("upet-head-adapter-alpha-0.2-rank-topk")
    Alpha(alpha='0.2', scale='rank', how='topk')
    """
    found = _ALPHA.fullmatch(variant(method)[1])
    return Alpha(**found.groupdict()) if found else None


def is_main(method: str) -> bool:
    """Whether a method belongs in the main table: it is no ablation, no alpha, no other teacher."""
    return not variant(method)[1] and (method in MAIN or method not in SHOWN)


def reading(method: str) -> Literal["head", "prompt"]:
    """How a method's answer is read; UST and CEST are compared by head, LiST by prompt.

    >>> reading("list"), reading("upet-prompt-full"), reading("ust")
    ('prompt', 'prompt', 'head')
    """
    return "prompt" if method == "list" or "prompt" in method.split("-") else "head"


def ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the paper's order, those it does not know after it by name."""
    return sorted(set(methods), key=lambda method: (ORDER.get(method, len(ORDER)), method))
