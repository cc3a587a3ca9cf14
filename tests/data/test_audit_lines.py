"""The audit: what was added comes back, with its role, from memory or from a file."""

from __future__ import annotations

import gc
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain.data import audit_lines as audit
from selftrain.data.audit_lines import AuditBuilder
from selftrain.data.rows import AuditLine
from selftrain.errors import RunError

numbers = st.floats(allow_nan=False)
LINES = st.builds(
    AuditLine,
    uid=st.text(st.characters(), max_size=5),  # half a character and NUL too
    label=st.sampled_from(["good", "naïve – ½", ""]),
    confidence=numbers,
    certainty=numbers,
    weight=numbers,
    role=st.just("left"),
)
THIRTY = [AuditLine(f"uid-{29 - n:02}", "good", n / 7, n / 3, -n, "left") for n in range(30)]
ROLES = {"uid-03": "easy", "uid-29": "hard"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit of thirty lines is a long one, of several chunks."""
    monkeypatch.setattr(audit, "MAX_LINES_IN_MEMORY", 8)
    monkeypatch.setattr(audit, "CHUNK", 3)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def built(lines: list[AuditLine], folder: Path | None = None) -> AuditBuilder:
    builder = AuditBuilder(folder)
    for line in lines:
        builder.add(line)
    return builder


def with_roles(lines: list[AuditLine]) -> list[AuditLine]:
    return [replace(line, role=ROLES.get(line.uid, "left")) for line in lines]


def test_a_short_audit_is_a_tuple_in_the_order_of_uids():
    assert built(THIRTY).with_roles(ROLES) == tuple(with_roles(THIRTY[::-1]))
    assert built([]).with_roles({}) == ()


@pytest.mark.usefixtures("small")
def test_a_long_audit_is_read_again_and_again_in_the_order_it_came():
    long = built(THIRTY).with_roles(ROLES)
    assert not isinstance(long, tuple)
    assert len(long) == 30
    assert list(long) == list(long) == with_roles(THIRTY)


@pytest.mark.usefixtures("small")
def test_two_readers_of_a_long_audit_do_not_disturb_each_other():
    long = built(THIRTY).with_roles(ROLES)
    first, second = iter(long), iter(long)
    ahead = [next(first) for _ in range(5)]
    both = [line for pair in zip(first, second, strict=False) for line in pair]
    expected = with_roles(THIRTY)
    assert ahead == expected[:5]
    assert both == [line for pair in zip(expected[5:], expected, strict=False) for line in pair]


@pytest.mark.parametrize(("lines", "in_memory"), [(8, True), (9, False)])
@pytest.mark.usefixtures("small")
def test_one_line_more_than_fit_into_memory_makes_an_audit_long(lines, in_memory):
    assert isinstance(built(THIRTY[:lines]).with_roles({}), tuple) == in_memory


@given(st.lists(LINES, min_size=4, max_size=30), st.integers(1, 3), st.integers(1, 8))
@settings(deadline=None, derandomize=True)
def test_no_bit_is_lost_on_the_way_through_a_file(lines, max_lines, chunk):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(audit, "MAX_LINES_IN_MEMORY", max_lines)
        patched.setattr(audit, "CHUNK", chunk)
        builder = built(lines)
        assert list(builder) == lines, "before roles are known"
        assert list(builder.with_roles({})) == lines
        assert list(map(repr, builder.with_roles({}))) == list(map(repr, lines)), "-0.0 is not 0.0"


@pytest.mark.usefixtures("small")
def test_lines_added_later_do_not_change_an_earlier_audit():
    builder = built(THIRTY[:20])
    earlier = builder.with_roles({})
    for line in THIRTY[20:]:
        builder.add(line)
    assert len(earlier) == 20
    assert list(earlier) == THIRTY[:20]
    assert list(builder.with_roles({})) == THIRTY


@pytest.mark.usefixtures("small")
def test_nothing_of_a_long_audit_stands_in_its_folder_and_its_file_is_given_back(tmp_path):
    gc.collect()
    before = open_files()
    long = built(THIRTY, tmp_path).with_roles(ROLES)
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before + 1
    del long
    assert open_files() == before


@pytest.mark.usefixtures("small")
def test_a_full_disk_is_one_line_and_a_hint(tmp_path, monkeypatch):
    def full(**_):
        return Path("/dev/full").open("w+b")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(
        RunError, match=r"cannot write the audit of a long pool to .*: No space left"
    ) as caught:
        built(THIRTY, tmp_path)
    assert str(tmp_path) in caught.value.message
    assert caught.value.hint == "choose another folder: --cache FOLDER"


@pytest.mark.usefixtures("small")
def test_a_folder_that_is_not_there_is_one_line_and_a_hint(tmp_path):
    with pytest.raises(RunError, match=r"nowhere: No such file"):
        built(THIRTY, tmp_path / "nowhere")
