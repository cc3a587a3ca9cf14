"""Our own errors: one line, and what to try."""

from __future__ import annotations

import copy
import pickle

import pytest

from selftrain.errors import ENTRIES, ConfigError, LockedError, SelftrainError, require


def test_an_error_is_read_as_its_message_and_says_what_to_try() -> None:
    error = ConfigError("alpha is 2; expected 0 to 1", "--set alpha=0.4")
    assert (str(error), error.hint) == ("alpha is 2; expected 0 to 1", "--set alpha=0.4")


def test_an_error_of_another_process_keeps_its_hint() -> None:
    sent = LockedError("run is being written", "wait for it")
    for come in (copy.copy(sent), pickle.loads(pickle.dumps(sent))):
        assert isinstance(come, LockedError)
        assert (come.message, come.hint) == (sent.message, sent.hint)


@pytest.mark.parametrize("value", [-1.0, float("inf"), float("nan")])
def test_a_value_of_a_method_is_named_and_the_hint_leads_to_the_others(value: float) -> None:
    with pytest.raises(SelftrainError, match=rf"rate is {value!r}; expected above 0") as caught:
        require(value > 0, "rate", value, "above 0")
    assert caught.value.hint == ENTRIES
