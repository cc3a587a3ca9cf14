"""The page of a run: how good it probably is, what it learnt from, where it errs."""

from __future__ import annotations

from selftrain.report.page import Page, report

__all__ = ["Page", "report"]
