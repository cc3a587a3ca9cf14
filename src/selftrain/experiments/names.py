"""The systems of a comparison as tables and figures show them: their titles and their order.

A system is a reference, a recipe, or a method that a grid file gave a name of its own. What a
recipe is made of are its fields (``selftrain.method.recipes.Recipe``); no name is taken apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from selftrain.experiments.references import REFERENCES
from selftrain.experiments.results import Shots
from selftrain.method.recipes import BASES, READERS, RECIPES
from selftrain.method.upet import Ablation, Reader, Weighing

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
MODULES = ("ptuning", "prefix", "adapter")
"""In the paper's order."""
UPET = {
    f"upet-{reader}-{tuning}": f"UPET {reader.title()}-{tuning.title()}"
    for reader in READERS
    for tuning in MODULES
}
TRAINED = ("full", "adapter")
PEL = {
    reader: {
        (teacher, student): next(
            recipe.name
            for recipe in BASES.values()
            if (recipe.system, recipe.reader) == ("upet", reader)
            and (recipe.teacher_tuning, recipe.tuning) == (teacher, student)
        )
        for teacher in TRAINED
        for student in TRAINED
    }
    for reader in READERS
}
"""By reader: what the teacher and the student train → the method (Table 2)."""
MAIN = REFERENCES | BASELINES | UPET
"""Method → its title in the main table, in the paper's order."""
TITLES = MAIN | {
    name: f"UPET {reader.title()}-{student.title()}"
    + (", adapter teacher" if teacher == "adapter" else "")
    for reader, methods in PEL.items()
    for (teacher, student), name in methods.items()
}
ORDER = {method: place for place, method in enumerate(TITLES)}


def shown(method: str, shots: Shots = 16) -> str:
    """The title of a method in a table.

    >>> shown("upet-head-ptuning"), shown("head-ft", "full"), shown("upet-head-full-wo-phce")
    ('UPET Head-Ptuning', 'Head FT, full data', 'UPET Head-Full w/o PHCE')
    """
    base, ablation, weighing = base_of(method), ablation_of(method), weighing_of(method)
    title = TITLES.get(base, base)
    if ablation:
        title += f" {ablation.title}"
    if weighing:
        title += f" {weighing}"
    return f"{title}, full data" if shots == "full" else title


def base_of(method: str) -> str:
    """The method that a variant changes; any other method is its own base.

    >>> base_of("upet-head-adapter-wo-phce"), base_of("ust-hard"), base_of("mine")
    ('upet-head-adapter', 'ust-hard', 'mine')
    """
    return (method in RECIPES and RECIPES[method].base) or method


def ablation_of(method: str) -> Ablation | None:
    """The part of UPET that a method leaves out, if it does."""
    return RECIPES[method].ablation if method in RECIPES else None


def weighing_of(method: str) -> Weighing | None:
    """The entry of Table 4 that a method is, if it is one.

    >>> weighing_of("upet-head-adapter-alpha-0.2-rank-topk")
    Weighing(alpha=0.2, scale='rank', how='topk')
    """
    return RECIPES[method].weighing if method in RECIPES else None


def ablations(base: str) -> dict[str, Ablation]:
    """The ablations of a UPET: method → the part it leaves out, in the paper's order.

    >>> list(ablations("upet-head-adapter"))[:2]
    ['upet-head-adapter-wo-res-all', 'upet-head-adapter-wo-res-uniform']
    """
    return {
        recipe.name: recipe.ablation
        for recipe in RECIPES.values()
        if recipe.base == base and recipe.ablation
    }


def is_variant(method: str) -> bool:
    """Whether a method is an ablation or an entry of Table 4."""
    return base_of(method) != method


def is_upet(method: str) -> bool:
    """Whether a method is UPET, or a variant of it."""
    return method in RECIPES and RECIPES[method].system == "upet"


def is_main(method: str) -> bool:
    """Whether a method belongs in the main table: it is no variant and has no other teacher."""
    return not is_variant(method) and (method in MAIN or method not in TITLES)


def reader_of(method: str) -> Reader | None:
    """How a method's answer is read; None for a reference, and for a name no recipe has.

    >>> reader_of("list"), reader_of("ust"), reader_of("majority")
    ('prompt', 'head', None)
    """
    return RECIPES[method].reader if method in RECIPES else None


def plain_self_training(reader: Reader | None) -> str | None:
    """The self-training baseline that is read the same way.

    >>> plain_self_training("head"), plain_self_training(None)
    ('head-st', None)
    """
    names = (r.name for r in BASES.values() if (r.system, r.reader) == ("st", reader))
    return next(names, None)


def ordered(methods: Iterable[str]) -> list[str]:
    """Methods in the paper's order, those it does not know after it by name."""
    return sorted(set(methods), key=lambda method: (ORDER.get(method, len(ORDER)), method))
