"""Write docs/paper-map.md: where each equation and line of the paper is, and which test holds it.

Nothing is kept by hand: a function is on the map because its docstring, or a comment in it, says
"Eq. 4" or "line 13"; a test because its docstring says "Eq. 4" or "Algorithm 1, line 13".

    python tools/paper_map.py            write the map
    python tools/paper_map.py --check    exit 1 if it is stale, or if a row has no code or no test
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What the paper calls them, in its order.
EQUATIONS = {
    1: "pseudo label",
    2: "information gain",
    3: "information gain, Monte-Carlo form",
    4: "certainty",
    5: "sampling weight",
    6: "classifier on a head",
    7: "classifier on a prompt",
    8: "cross entropy",
    9: "objective with PHCE",
    10: "easy-hard contrast",
    11: "whole objective",
    12: "Bayesian network: the integral over weights",
    13: "Bayesian network: the mean over dropout masks",
    14: "PHCE in full",
}
LINES = {
    1: "the teacher is the pretrained model",
    2: "fit the teacher on D_l",
    3: "repeat for R rounds",
    4: "draw D_u' from D_u",
    5: "pseudo labels",
    6: "a fresh student with a parameter-efficient module",
    7: "certainty from T dropout passes",
    8: "confidence from the same passes",
    9: "draw D_r; D_h is the rest",
    10: "for each step of the student",
    11: "PHCE on D_r, contrast between D_r and D_h",
    12: "update the module alone",
    13: "the student becomes the teacher",
}

NUMBERS = r"\d+(?:-\d+)?(?:(?:, | and )\d+(?:-\d+)?)*"
EQUATION = re.compile(rf"\bEqs?\. ({NUMBERS})")
LINE = re.compile(
    rf"(?:^#\s*|\(|Algorithm 1, )lines? ({NUMBERS})(?=[),:;.]|\s*$| of Algorithm 1)", re.MULTILINE
)


@dataclass(frozen=True)
class Place:
    """Something that speaks of the paper: a function, a class, a test, or a whole file."""

    path: Path
    name: str | None
    """None for the file itself."""
    text: str

    @property
    def link(self) -> str:
        """How the map writes it."""
        file = f"[{self.path.name}](../{self.path.as_posix()})"
        return file if self.name is None else f"`{self.name}` ({file})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the map; 0 when all is well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    root: Path = options.root
    target = root / "docs" / "paper-map.md"
    code = [p for path in files(root, "src/selftrain", "*.py") for p in places(root, path)]
    tests = [p for path in files(root, "tests", "test_*.py") for p in tests_of(root, path)]
    text = page(code, tests)
    problems = lacking(code, tests)
    if options.check:
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            problems.append("docs/paper-map.md is stale: run `python tools/paper_map.py`")
    else:
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


def files(root: Path, folder: str, pattern: str) -> list[Path]:
    """The Python files under a folder, in a fixed order."""
    return sorted((root / folder).rglob(pattern))


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def places(root: Path, path: Path) -> Iterator[Place]:
    """Each function and class of a file, with its docstring and comments; then the file's own."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    spans = list(definitions(tree))
    words = {name: [ast.get_docstring(node) or ""] for name, node in spans}
    loose = [ast.get_docstring(tree) or ""]
    for line, comment in comments(source):
        around = [name for name, node in spans if node.lineno <= line <= (node.end_lineno or 0)]
        (words[around[-1]] if around else loose).append(comment)
    here = path.relative_to(root)
    yield from (Place(here, name, "\n".join(text)) for name, text in words.items())
    yield Place(here, None, "\n".join(loose))


def tests_of(root: Path, path: Path) -> Iterator[Place]:
    """Each test of a file, with its docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, node in definitions(tree):
        if name.rpartition(".")[2].startswith("test_"):
            yield Place(path.relative_to(root), name, ast.get_docstring(node) or "")


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Functions and classes with their dotted names; an inner one after the one around it."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Definition):
            yield prefix + inner.name, inner
            yield from definitions(inner, f"{prefix}{inner.name}.")
        else:
            yield from definitions(inner, prefix)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """The comments of a file, with their line numbers."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def numbers(pattern: re.Pattern[str], text: str) -> set[int]:
    """Which equations or lines a text speaks of.

    >>> sorted(numbers(LINE, "# lines 5, 7-9")), sorted(numbers(EQUATION, "PHCE (Eq. 9, 14)"))
    ([5, 7, 8, 9], [9, 14])
    """
    found: set[int] = set()
    for match in pattern.finditer(text):
        for part in re.split(", | and ", match[1]):
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


# ── writing ──────────────────────────────────────────────────────────────────────────────────

CHAPTERS = (
    ("Equations", "equation", EQUATION, EQUATIONS),
    ("Algorithm 1", "line", LINE, LINES),
)


def speaking(places: Sequence[Place], pattern: re.Pattern[str], number: int) -> list[Place]:
    """The places that speak of this equation or line."""
    return [place for place in places if number in numbers(pattern, place.text)]


def lacking(code: Sequence[Place], tests: Sequence[Place]) -> list[str]:
    """What of the paper has no function or no test."""
    functions = [place for place in code if place.name is not None]
    sides = (("function in src/selftrain", functions), ("test", tests))
    return [
        f"{word} {number} ({title}) has no {side}: say so in a docstring"
        for _, word, pattern, titles in CHAPTERS
        for number, title in titles.items()
        for side, there in sides
        if not speaking(there, pattern, number)
    ]


def page(code: Sequence[Place], tests: Sequence[Place]) -> str:
    """The map as Markdown."""
    parts = [
        "# The paper, in code\n",
        "Generated by `python tools/paper_map.py` from docstrings and comments; `make check` fails"
        " when it is stale,\nor when an equation or a line has no function or no test."
        " Do not edit.\n",
    ]
    for name, word, pattern, titles in CHAPTERS:
        parts += [f"## {name}\n", f"| {word} | what | where | tested by |", "|---|---|---|---|"]
        parts += [
            f"| {number} | {title} | {cell(speaking(code, pattern, number))} "
            f"| {cell(speaking(tests, pattern, number))} |"
            for number, title in titles.items()
        ]
        parts.append("")
    return "\n".join(parts)


def cell(found: Sequence[Place]) -> str:
    """Places as one cell of a table."""
    return "<br>".join(place.link for place in found) or "none"


if __name__ == "__main__":
    sys.exit(main())
