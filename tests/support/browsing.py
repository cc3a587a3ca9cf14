"""A page in a real browser, watched for what a page of ours never does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SERIOUS = ("serious", "critical")


@dataclass
class Watched:
    """A page, its complaints, and the addresses elsewhere that it asked for."""

    page: Any
    errors: list[str] = field(default_factory=list)
    """Errors and warnings of its console."""
    outside: list[str] = field(default_factory=list)
    """Addresses elsewhere that it asked for; none is answered."""

    def check(self) -> None:
        """Raise unless it was quiet and stayed on this machine."""
        assert (self.errors, self.outside) == ([], [])

    def serious_problems(self) -> list[str]:
        """What axe-core finds that keeps people out."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {[node['target'] for node in each['nodes'][:3]]}"
            for each in found
            if each["impact"] in SERIOUS
        ]


Open = Callable[..., Watched]
"""Opens an address, also ``file://``: ``open_page(url, width=390, color_scheme="dark")``."""
