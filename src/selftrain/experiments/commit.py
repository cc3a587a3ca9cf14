"""The commit that code runs from: a measured figure says which code gave it."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


def commit_of(folder: Path, *without: str) -> str:
    """The commit of a tracked folder, with a + where its files differ from it.

    Files in ``without`` do not count. An installed package is tracked by nobody, even where it
    lies in somebody's checkout: then there is no commit, and the answer is empty.
    """

    def git(*words: str) -> str | None:
        told = subprocess.run(
            ["git", "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return told.stdout.strip() if told.returncode == 0 else None

    try:
        head = git("rev-parse", "--short", "HEAD")
        if not head or not git("ls-files", "--", "."):
            return ""
        excluded = (f":(exclude){path}" for path in without)
        differences = git("status", "--porcelain", "--", ".", *excluded)
        return head + ("" if differences == "" else "+")  # what git cannot tell may differ
    except (OSError, subprocess.TimeoutExpired):  # there is no git here, or it does not answer
        return ""


@cache
def commit() -> str:
    """The commit of this package."""
    return commit_of(Path(__file__).parent)
