"""What a part belongs to: options that decide no vote leave it the part of its run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from test_parts import Stopped, annotate_all, go_on, results, small_chunks, stopped, teacher_alone

import small_run
from selftrain.runs.annotate import check_same_run
from selftrain.runs.train import train

__all__ = ["small_chunks", "stopped", "teacher_alone"]


def test_votes_do_not_depend_on_how_the_steps_of_training_are_dealt(stopped: Stopped) -> None:
    machine = replace(small_run.MACHINE, accumulate=4)
    assert check_same_run(stopped.run, stopped.job, machine) == ()


def test_finished_parts_stay_those_of_a_run_that_is_asked_for_more_rounds(
    stopped: Stopped, tmp_path: Path
) -> None:
    annotate_all(stopped.job, stopped.run, stopped.parts, 2)
    more = replace(stopped.job, method=replace(stopped.job.method, rounds=3))
    go_on(more, stopped.run, stopped.parts)
    list(train(tmp_path / "whole", more, small_run.MACHINE))
    lesson = "rounds/1/lesson.parquet"
    assert results(stopped.run)[lesson] == results(tmp_path / "whole")[lesson]
