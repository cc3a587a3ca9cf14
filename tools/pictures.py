"""Make the pictures of the README from what a real run left: docs/pictures/.

    python tools/pictures.py            draw them again from the stored text and numbers
    python tools/pictures.py --check    write nothing; exit 1 if a picture is stale
    python tools/pictures.py --demo FILE --run RUN    take new ones: what a demo printed, its run

``demo.txt`` is what ``selftrain demo`` printed, ``demo.svg`` the same as a terminal.
``report.json`` has the numbers of that run's report, ``report.html`` is its page as the code of
today draws and words it, and ``report.png`` a photograph of the page in chromium. The photograph
depends on the fonts of a machine, so it is checked by the page it was taken of.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selftrain.report.facts import Facts

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 100
"""Columns of the terminal."""
PROGRESS = re.compile(r"\w[\w ]*: \d+ of \d+, about")
"""A sign of life that a terminal shows as a bar, which vanishes."""
TAKEN = "report.png.json"
"""Of which page the photograph is."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw or check the pictures; 0 when all is well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if stale")
    parser.add_argument("--demo", type=Path, help="what `selftrain demo` printed")
    parser.add_argument("--run", type=Path, help="the run folder of that demo")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT / "src"))  # this checkout, whatever is installed
    if options.check:
        stale = stale_pictures(PICTURES)
        for name in stale:
            print(f"docs/pictures/{name} is stale: python tools/pictures.py", file=sys.stderr)
        return int(bool(stale))
    if options.demo is not None:
        shutil.copyfile(options.demo, PICTURES / "demo.txt")
    if options.run is not None:
        from selftrain.report import report

        (PICTURES / "report.json").write_text(report(options.run).json + "\n")
    (PICTURES / "demo.svg").write_text(terminal((PICTURES / "demo.txt").read_text()))
    page = report_page((PICTURES / "report.json").read_text())
    (PICTURES / "report.html").write_text(page)
    photograph(PICTURES / "report.html", PICTURES / "report.png")
    (PICTURES / TAKEN).write_text(json.dumps({"page": sha256_of(page)}) + "\n")
    return 0


def stale_pictures(folder: Path) -> list[str]:
    """Those that the code of today would draw otherwise."""
    page = report_page((folder / "report.json").read_text())
    taken = json.loads((folder / TAKEN).read_text())
    fresh = {
        "demo.svg": (folder / "demo.svg").read_text()
        == terminal((folder / "demo.txt").read_text()),
        "report.html": (folder / "report.html").read_text() == page,
        "report.png": taken == {"page": sha256_of(page)},
    }
    return [name for name, same in fresh.items() if not same]


def sha256_of(text: str) -> str:
    """The sha256 of a text, in hexadecimal."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def terminal(text: str) -> str:
    """What a program printed, as the picture of a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text("$ selftrain demo", style="bold"))
    for line in text.splitlines():
        if not PROGRESS.match(line):
            console.print(Text(line))
    picture = console.export_svg(title="selftrain demo", unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # from a server elsewhere


def report_page(raw: str) -> str:
    """The page of stored numbers."""
    from pydantic import TypeAdapter

    from selftrain.report.facts import Facts
    from selftrain.report.page import page_of

    stored = json.loads(raw)
    names = [field.name for field in fields(Facts)]
    facts = TypeAdapter(Facts).validate_python({name: stored[name] for name in names})
    return page_of(with_words_of_today(facts)).html


def with_words_of_today(facts: Facts) -> Facts:
    """The facts of a stored run, with the verdict and the counts that the code gives it now."""
    from selftrain.runs.lines import verdict
    from selftrain.training.expected import TRAINED_INTERVALS

    assert facts.expected is not None
    right, intervals = TRAINED_INTERVALS
    return replace(
        facts,
        expected=replace(facts.expected, intervals_right=right, intervals=intervals),
        verdict=tuple(verdict(facts.ladder, facts.model.name)),
    )


def photograph(page: Path, picture: Path) -> None:
    """Take a picture of the first screen of a page in chromium."""
    from playwright.sync_api import sync_playwright

    place = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=["--no-sandbox"])
        window = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
        window.goto(page.as_uri())
        window.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
