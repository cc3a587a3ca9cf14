"""A file of cells: written line by line, and read as if it came from anyone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cells import CELL
from selftrain.errors import RunError
from selftrain.experiments import results


def test_a_line_comes_back_as_it_was(tmp_path):
    results.append(tmp_path / "x" / "cells.jsonl", CELL)
    results.append(tmp_path / "x" / "cells.jsonl", replace(CELL, seed=21, shots="full"))
    read = results.read(tmp_path / "x" / "cells.jsonl")
    assert read == [CELL, replace(CELL, seed=21, shots="full")]


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    path = tmp_path / "cells.jsonl"
    results.append(path, CELL)
    with pytest.raises(RunError, match="cannot be kept: `total"):
        results.append(path, replace(CELL, seed=21, total=-1))
    assert results.read(path) == [CELL]


def test_the_later_of_two_lines_counts(tmp_path):
    for score in (0.5, 0.7):
        results.append(tmp_path / "cells.jsonl", replace(CELL, accuracy=score))
    (only,) = results.read(tmp_path / "cells.jsonl")
    assert only.accuracy == 0.7


def test_half_a_line_is_no_line_and_the_next_one_is_whole(tmp_path):
    path = tmp_path / "cells.jsonl"
    results.append(path, CELL)
    path.write_bytes(path.read_bytes() + b'{"task": "ss')
    assert results.read(path) == [CELL]
    results.append(path, replace(CELL, seed=21))
    assert [result.seed for result in results.read(path)] == [12, 21]


def test_a_line_that_lacks_only_its_break_is_a_line(tmp_path):
    path = tmp_path / "cells.jsonl"
    for seed in (12, 13):
        results.append(path, replace(CELL, seed=seed))
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert [result.seed for result in results.read(path)] == [12, 13]
    results.append(path, replace(CELL, seed=21))
    assert [result.seed for result in results.read(path)] == [12, 13, 21]
    assert path.read_bytes().count(b"\n") == 3


def test_a_strange_last_line_is_no_half_line(tmp_path):
    (tmp_path / "cells.jsonl").write_bytes(b'{"format": 3}')
    with pytest.raises(results.DataError, match="line 1"):
        results.read(tmp_path / "cells.jsonl")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"accuracy": 1.5}, "accuracy"),
        ({"seed": "x"}, "seed"),
        ({"format": 1}, "has format 1; this version reads format 2"),
        ({"format": 3}, "has format 3; this version reads format 2"),
        ({"format": "x"}, "format"),
        ({"shots": 0}, "shots"),
        ({"rows": -1}, "rows"),
        ({"rows": 10**400}, "rows"),
        ({"shots": 10**400}, "shots"),
        ({"tuned": [10**400]}, "tuned.0"),
        ({"total": 2**53 + 1}, "total"),
        ({"final_round": -1}, "final_round"),
    ],
)
def test_a_line_of_a_stranger_is_checked(tmp_path, change, named):
    results.append(tmp_path / "cells.jsonl", CELL)
    plain = json.loads((tmp_path / "cells.jsonl").read_text())
    (tmp_path / "cells.jsonl").write_text(json.dumps(plain | change) + "\n")
    with pytest.raises(results.DataError, match=named):
        results.read(tmp_path / "cells.jsonl")
