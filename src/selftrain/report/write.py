"""The report that ``fit`` leaves in the run folder: without texts, and never a reason to fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from selftrain.data.rows import Labelled
from selftrain.disk import refusals
from selftrain.errors import SelftrainError
from selftrain.report.facts import facts_of
from selftrain.report.page import page_of
from selftrain.runs.read import PAGES
from selftrain.runs.saved import read_run
from selftrain.runs.write import locked


def write_report(folder: Path, labelled: Sequence[Labelled]) -> tuple[Path | None, str]:
    """Write the page of a run into its folder: where it is, or None and why there is none.

    A run is worth more than its page: whatever goes wrong here is reported and nothing else.
    """
    target = folder / PAGES[0]
    try:
        page = page_of(facts_of(read_run(folder), labelled))
        with refusals(folder, "write"), locked(folder):
            page.save(target, private=True)
    except SelftrainError as error:
        return None, f"no report was written: {error.message}"
    except Exception as error:  # a mistake of ours must not cost a finished training
        return None, f"no report was written: {type(error).__name__}: {error}"
    return target, ""
