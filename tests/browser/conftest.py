"""A real browser for pages of ours. Where it is missing tests skip; in CI a skip is a failure."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import Open, Watched

ELSEWHERE = re.compile(r"^(?!http://(127\.0\.0\.1|localhost):|file:|data:|blob:|about:)")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder belong to `make test-slow`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser of the system; `make browser` installs it."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    place = os.environ.get("SELFTRAIN_BROWSER") or next(filter(None, map(shutil.which, NAMES)), "")
    if not place:
        pytest.skip("no chromium: make browser")
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # its sandbox does not run as root
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=place, args=["--no-sandbox"] if root else []
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Open]:
    """Opens an address, also `file://`: ``open_page(url, width=390, color_scheme="dark")``."""
    contexts = []

    def open_(url: str, *, width: int = 1280, height: int = 860, **more: Any) -> Watched:
        viewport = {"width": width, "height": height}
        context = chromium.new_context(viewport=viewport, **more)
        contexts.append(context)
        watched = Watched(context.new_page())

        def refuse(route: Any) -> None:
            watched.outside.append(route.request.url)
            route.abort()

        def console(message: Any) -> None:
            if message.type in ("error", "warning"):
                watched.errors.append(message.text)

        context.route(ELSEWHERE, refuse)
        watched.page.on("console", console)
        watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
        watched.page.on("dialog", lambda dialog: watched.errors.append(f"dialog {dialog.message}"))
        watched.page.goto(url)
        return watched

    yield open_
    for context in contexts:
        context.close()
