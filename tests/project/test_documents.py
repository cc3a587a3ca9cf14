"""The documents hold together: links lead somewhere, words are plain, nothing names a machine."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from selftrain_lite import __version__

ROOT = Path(__file__).parents[2]
FOLDERS = ("", "docs", "docs/concepts", "docs/reference", "benchmarks/paper", "benchmarks/results")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
PLAIN = [page for page in PAGES if "reference" not in page.parts]
"""Pages that are written by hand."""
FORBIDDEN = ("told", "said", "held", "kept apart", "but for", "so many", "could not be had")
page_by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What the headings of a page are linked by, as GitHub has it."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@page_by_page
def test_a_link_leads_to_a_file_and_to_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, heading = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert not heading or heading in anchors(there), target


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_words_of_a_page_are_plain(page: Path) -> None:
    found = re.findall(rf"\b(?:{'|'.join(FORBIDDEN)})\b", page.read_text("utf-8"))
    assert not found


@page_by_page
def test_a_page_names_no_machine(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.search(r"/(?:home|root|tmp|work|Users)/\w", text)
    assert not re.search(r"https?://(?!keepachangelog\.com)", text)


def test_the_guide_goes_from_a_first_run_to_the_paper() -> None:
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    listed = re.findall(r"<(.+)>", text.partition(":caption: Concepts")[0])
    way = ["guide", "guide-your-data", "guide-is-it-good", "review", "guide-deploy"]
    way += ["guide-large-pools", "guide-methods", "guide-paper"]
    assert [page for page in listed if page in way] == way
    assert {page.stem for page in (ROOT / "docs").glob("guide*.md")} <= {*listed}


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    rooms = [path.parent.name for path in (ROOT / "src" / "selftrain").glob("*/__init__.py")]
    assert rooms
    assert not [room for room in rooms if f"\n  {room}/ " not in text]


def test_the_glossary_explains_the_words_of_the_paper() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    symbols = (
        "D_l",
        "D_u",
        "D_u'",
        "D_r",
        "D_h",
        "N_r",
        "N_n",
        "T passes",
        "cf",
        "ct",
        "α",
        "τ",
        "λ",
    )
    assert not [symbol for symbol in symbols if symbol not in text]


def test_the_version_is_the_same_wherever_it_is_written() -> None:
    for file in (ROOT / "pyproject.toml", ROOT / "lite" / "pyproject.toml"):
        settings = tomllib.loads(file.read_text())
        assert settings["project"]["dynamic"] == ["version"]
        place = file.parent / settings["tool"]["hatch"]["version"]["path"]
        assert place == ROOT / "lite" / "src" / "selftrain_lite" / "version.py"
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited
    assert cited[1] == __version__ == version("selftrain")
    assert f"## {__version__} " in (ROOT / "CHANGELOG.md").read_text()
