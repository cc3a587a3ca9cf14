"""The paper's figures: transcribed as printed, and computed again where that can be done."""

from __future__ import annotations

from statistics import fmean

from selftrain.data import task
from selftrain.experiments.published import Row, numbers, row, score

NUMBERS = numbers()
AVERAGED = [each for each in (*NUMBERS.main, *NUMBERS.ablation) if each.average is not None]
ROUNDING = 0.05 + 1e-9  # points: a mean printed with one digit


def average(rows: tuple[Row, ...], method: str) -> float | None:
    return next(each.average for each in rows if each.method == method and each.shots == 16)


def test_every_row_has_a_score_for_every_task() -> None:
    for each in (*NUMBERS.main, *NUMBERS.shots, *NUMBERS.ablation):
        assert len(each.mean) == len(NUMBERS.tasks), each
        assert each.sd is None or len(each.sd) == len(NUMBERS.tasks), each


def test_printed_averages_are_row_means_but_for_one() -> None:
    """UPET Head-Prefix prints 74.6; its seven figures add up to 524.9, and 524.9 / 7 = 75.0."""
    wrong = {
        each.name: (each.average, round(fmean(each.mean), 1))
        for each in AVERAGED
        if abs(fmean(each.mean) - each.average) > ROUNDING
    }
    assert wrong == {"UPET Head-Prefix": (74.6, 75.0)}
    assert any("74.6" in note and "75.0" in note for note in NUMBERS.notes["main"])


def test_table_2_repeats_table_1_but_for_prompt_adapter() -> None:
    pel = {each.method: each.average for each in NUMBERS.pel}
    assert pel["upet-head-adapter"] == average(NUMBERS.main, "upet-head-adapter")
    assert (pel["upet-prompt-adapter"], average(NUMBERS.main, "upet-prompt-adapter")) == (
        77.2,
        77.3,
    )
    assert any("77.2" in note and "77.3" in note for note in NUMBERS.notes["pel"])


def test_table_3_repeats_table_1_at_16_shots() -> None:
    for method in ("list", "upet-prompt-adapter"):
        three, one = row("shots", method, 16), row("main", method, 16)
        assert three is not None
        assert one is not None
        assert three.mean == one.mean


def test_table_4_agrees_with_table_5_and_its_caption_does_not() -> None:
    """None is w/o sampling (76.0), though the caption says Prompt ST (74.6 in both tables)."""
    alpha, name = NUMBERS.alpha, "upet-prompt-ptuning"
    assert alpha["None"] == average(NUMBERS.ablation, f"{name}-wo-res-all") == 76.0
    assert alpha["0"] == average(NUMBERS.ablation, f"{name}-wo-confidence")
    assert alpha["1"] == average(NUMBERS.ablation, f"{name}-wo-certainty")
    assert max(alpha, key=alpha.__getitem__) == "0.4"
    assert alpha["0.4"] == average(NUMBERS.ablation, name)
    assert average(NUMBERS.ablation, "prompt-st") == 74.6 != alpha["None"]
    assert any("74.6" in note and "76.0" in note for note in NUMBERS.notes["alpha"])


def test_table_5_repeats_table_1() -> None:
    for method in ("prompt-st", "upet-prompt-ptuning"):
        five, one = row("ablation", method), row("main", method)
        assert five is not None
        assert one is not None
        assert (five.mean, five.average) == (one.mean, one.average)


def test_the_64_labels_of_table_6_are_16_a_class() -> None:
    """Its two UPET figures are the lowest and the highest of Table 1's 16-shot column."""
    place = NUMBERS.tasks.index("agnews")
    ours = [each.mean[place] for each in NUMBERS.main if each.method.startswith("upet")]
    upet = [each for each in NUMBERS.nonbert if each.method]
    assert [each.accuracy for each in upet] == [min(ours), max(ours)]
    assert {each.labels for each in upet} == {16 * NUMBERS.data["agnews"].classes}


def test_tasks_are_ours_with_as_many_classes() -> None:
    assert sorted(NUMBERS.tasks) == task.known() == sorted(NUMBERS.data)
    for name, counts in NUMBERS.data.items():
        assert counts.classes == len(task.find(name).labels)


def test_every_table_says_what_to_beware_of() -> None:
    assert list(NUMBERS.notes) == [
        *("main", "pel", "shots", "alpha", "ablation", "nonbert", "data", "grid")
    ]


def test_a_score_is_told_as_printed() -> None:
    full, few = row("main", "head-ft", "full"), row("main", "head-ft")
    assert full is not None
    assert few is not None
    assert (score(full, "sst2"), score(few, "agnews")) == ("95.2", "88.9 ± 2.7")
    assert score(few, "another task") is None
    assert row("main", "another method") is None


def test_a_sweeps_key_is_known_by_the_end_of_its_path_only_at_a_dot() -> None:
    width = next(each for each in NUMBERS.grid if "width" in each.keys)
    assert width.known_as("width")
    assert width.known_as("student.tuning.width")
    assert not width.known_as("bandwidth")
