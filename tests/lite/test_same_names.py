"""What selftrain-lite repeats, because it imports nothing of selftrain, stays the same."""

from __future__ import annotations

import pytest

from selftrain.data import names
from selftrain_lite import names as lite_names


@pytest.mark.parametrize("kind", ["TEXT_NAMES", "PAIR_NAMES", "LABEL_NAMES", "ID_NAMES", "USUAL"])
def test_both_look_for_the_same_columns(kind: str) -> None:
    assert getattr(lite_names, kind) == getattr(names, kind)
