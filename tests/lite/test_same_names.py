"""What selftrain-lite repeats, because it imports nothing of selftrain, stays the same."""

from __future__ import annotations

import pytest

from selftrain.data import names
from selftrain_lite import files


@pytest.mark.parametrize("kind", ["TEXT_NAMES", "PAIR_NAMES", "ID_NAMES"])
def test_both_look_for_the_same_columns(kind: str) -> None:
    assert getattr(files, kind) == getattr(names, kind)
