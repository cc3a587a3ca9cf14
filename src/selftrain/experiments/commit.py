"""The commit that code runs from: every result names it."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


def commit_of(folder: Path, *without: str) -> str:
    """The commit of a folder under git, with a + where its files differ from it.

    Files in ``without`` do not count. Empty where git tracks no file of the folder, as with an
    installed package.
    """

    def git(*words: str) -> str | None:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout.strip() if done.returncode == 0 else None

    try:
        head = git("rev-parse", "--short", "HEAD")
        if not head or not git("ls-files", "--", "."):
            return ""
        excluded = (f":(exclude){path}" for path in without)
        differences = git("status", "--porcelain", "--", ".", *excluded)
        return head + ("" if differences == "" else "+")  # None: git failed, so files may differ
    except (OSError, subprocess.TimeoutExpired):  # no git, or it does not answer
        return ""


@cache
def commit() -> str:
    """The commit of this package."""
    return commit_of(Path(__file__).parent)
