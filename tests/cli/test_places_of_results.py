"""Where `fit` refuses to write or to read, before anything is trained."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command import FIT, selftrain


@pytest.mark.parametrize("pool", [".", "'*'"])
def test_a_run_folder_inside_the_pool_would_be_read_as_texts(
    folder: Path, bert: Path, pool: str
) -> None:
    said = selftrain(FIT.format(bert=bert).replace("pool.csv", pool))
    assert said.code == 1
    assert "run lies in" in said.err
    assert "would be read the next time" in said.err
    assert not Path("run").exists()


def test_a_pool_that_other_machines_cannot_read_is_refused_before_training(
    folder: Path, bert: Path
) -> None:
    os.mkfifo("pipe.csv")
    for pool in ("-", "pipe.csv"):
        said = selftrain(FIT.format(bert=bert).replace("pool.csv", pool) + " --ray local")
        assert (said.code, len(said.lines)) == (1, 2), said.err
        assert f"{pool} can be read here alone" in said.err
    assert not Path("run").exists()
