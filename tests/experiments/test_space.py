"""The space of a search: what of Table 8 a method has."""

from __future__ import annotations

from selftrain.experiments.space import entries, paper_space
from selftrain.method.recipes import recipe


def test_the_papers_space_varies_batch_alpha_contrast_and_the_module() -> None:
    assert list(paper_space(recipe("upet-head-adapter"))) == [
        "teacher.batch_size",
        "select.score.alpha",
        "student.contrast.weight",
        "student.tuning.width",
    ]


def test_without_rounds_only_entries_of_the_teacher_and_its_tapt_vary() -> None:
    tables = {path.split(".")[0] for path in entries(recipe("tapt-head-ft"))}
    assert tables == {"teacher", "tapt"}
