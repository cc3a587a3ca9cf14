"""Named seeds, and noise that belongs to an example."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain import seeds
from selftrain.seeds import child, gumbel, uniform

quick = settings(max_examples=100, deadline=None, derandomize=True)
EULER = 0.5772156649


def test_children_are_told_apart_by_seed_name_and_number():
    paths = [(12,), (21,), (12, "pool"), (12, "pool", 1), (12, "pool", 2), (12, "votes", 1)]
    assert len({child(*path) for path in paths}) == len(paths)


def test_a_child_is_the_same_on_every_machine_and_in_every_version():
    """Saved runs resume only while this holds.

    `printf 12/pool/1 | b2sum -l 64` says 0615ec98af4728dd, which is 438516679258351837.
    """
    assert child(12, "pool", 1) == 438516679258351837 // 2


@quick
@given(st.integers(), st.text())
def test_a_child_is_a_seed_torch_accepts(seed, name):
    assert 0 <= child(seed, name) < 2**63


@quick
@given(st.integers(), st.text(st.characters()))
def test_uniform_lies_strictly_between_zero_and_one_whatever_the_uid(seed, uid):
    assert 0 < uniform(seed, uid) < 1
    assert math.isfinite(gumbel(seed, uid))


def test_a_uid_may_be_half_a_surrogate_pair():
    assert 0 < uniform(12, "\ud800") < 1


@pytest.mark.parametrize("digest", [b"\x00" * 8, b"\xff" * 8])
def test_the_smallest_and_the_largest_hash_give_finite_noise(monkeypatch, digest):
    class Extreme:
        def __init__(self, name: bytes, digest_size: int) -> None:
            pass

        def digest(self) -> bytes:
            return digest

    monkeypatch.setattr(seeds.hashlib, "blake2b", Extreme)
    assert 0 < uniform(12, "any") < 1
    assert math.isfinite(gumbel(12, "any"))


def test_uniform_noise_is_uniform():
    """Kolmogorov-Smirnov on 20,000 uids: 1.95 / sqrt(n) fails one sample in a thousand."""
    values = sorted(uniform(12, f"uid-{i}") for i in range(20_000))
    n = len(values)
    gap = max(max(abs(u - i / n), abs(u - (i + 1) / n)) for i, u in enumerate(values))
    assert gap < 1.95 / math.sqrt(n)


def test_gumbel_noise_has_the_mean_of_a_gumbel():
    """Mean 0.5772; sd pi / sqrt 6 = 1.28, so 20,000 draws have a standard error of .009."""
    assert fmean(gumbel(12, f"uid-{i}") for i in range(20_000)) == pytest.approx(EULER, abs=0.036)


def test_noise_of_neighbouring_seeds_and_uids_is_unrelated():
    """The correlation of 20,000 pairs has a standard error of .007."""

    def correlation(pairs: list[tuple[float, float]]) -> float:
        return 12 * fmean((a - 0.5) * (b - 0.5) for a, b in pairs)

    n = range(20_000)
    here = [uniform(12, str(i)) for i in n]
    assert abs(correlation(list(zip(here, [uniform(13, str(i)) for i in n], strict=True)))) < 0.03
    assert abs(correlation(list(pairwise(here)))) < 0.03
