"""The default method from the command line: its rounds, their lines, their folder."""

from __future__ import annotations

import json
from pathlib import Path

from command import FIT, NAMED, config, selftrain

SMALL = """\
method.pool = 24
method.passes = 2
method.teacher.steps = 8
method.teacher.batch_size = 4
method.student.steps = 3
method.student.batch_size = 4
method.probe.rounds = 2
method.converged = 0
"""


def test_fit_says_the_pools_shares_and_answers_with_a_head(folder: Path, bert: Path) -> None:
    (folder / "quick.toml").write_text(SMALL)
    said = selftrain(FIT.format(bert=bert) + " --json")
    assert said.code == 0, said.err
    facts = json.loads(said.out)
    assert [each["number"] for each in facts["rounds"]] == [0, 1, 2, 3, 4, 5]
    lines = [line for line in said.lines if line.startswith("round ")]
    assert [line.split()[1] for line in lines] == ["1/5", "2/5", "3/5", "4/5", "5/5"]
    assert all("   pool " in line for line in lines)
    record = json.loads((folder / "run" / "rounds" / "2" / "round.json").read_text())
    assert record["encoder_of"] == 0
    assert set(record["numbers"]["prior"]) == {"bad", "good"}
    for command in (
        "predict run test.csv",
        "evaluate run test.csv",
        "evaluate run test.csv --round 2",
    ):
        answered = selftrain(f"{command} --backbone {bert}")
        assert answered.code == 0, answered.err


def test_without_rounds_the_head_alone_goes_on(folder: Path, bert: Path) -> None:
    (folder / "quick.toml").write_text(SMALL)
    said = selftrain(FIT.format(bert=bert) + " --rounds 0 --json")
    assert said.code == 0, said.err
    assert [each["number"] for each in json.loads(said.out)["rounds"]] == [0, 1, 2]


def test_equal_quotas_on_an_uneven_pool_are_warned_of(folder: Path, bert: Path) -> None:
    """Of one kind of text the teacher takes nearly all for one class."""
    rows = "".join(f"terrible bad dull no story {n}\n" for n in range(40))
    (folder / "pool.csv").write_text("text\n" + rows)
    uneven = config('method.select.per_class = "equal"\nmethod.teacher.learning_rate = 1e-2')
    assert uneven.startswith(NAMED)
    (folder / "quick.toml").write_text(uneven)
    said = selftrain(FIT.format(bert=bert))
    assert "the pool's classes look uneven (" in said.err
    assert 'per_class = "proportional" is safer' in said.err
