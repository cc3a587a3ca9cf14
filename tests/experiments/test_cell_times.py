"""The time of cells before they are computed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from by_hand import METHOD
from selftrain.experiments import cell_times
from small_bench import FT, ST


def test_a_shared_teacher_and_its_votes_count_once(small_bench, monkeypatch):
    monkeypatch.setattr(cell_times, "seconds_per_row", lambda *_: 1.0)  # so that seconds are rows

    def rows(**methods):
        return small_bench(methods=methods, seeds=(12,), references=()).seconds()

    scored, teacher = 30, rows(ft=FT) - 30
    assert rows(upet=METHOD, ft=FT) == rows(upet=METHOD) + scored
    assert rows(upet=METHOD, st=ST) < rows(upet=METHOD) + rows(st=ST) - teacher
    first, second = (
        small_bench(methods=m, seeds=(12,), references=()) for m in ({"upet": METHOD}, {"ft": FT})
    )
    times = first.cell_times()
    assert (first.seconds(times), second.seconds(times)) == (rows(upet=METHOD), scored)  # in turn
    other = replace(ST, passes=ST.passes + 1)
    both = rows(upet=METHOD) + rows(st=other)
    assert rows(upet=METHOD, st=other) == pytest.approx(both - teacher - scored)
