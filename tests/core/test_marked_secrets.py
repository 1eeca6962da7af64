"""Which strings an author may mark as a secret."""

from __future__ import annotations

import pytest

from agenteval.core.marked_secrets import SHORTEST, mistake_in


def test_four_characters_are_enough_and_three_are_not() -> None:
    assert SHORTEST == 4
    assert mistake_in("k3yZ") == ""
    assert "at least 4" in mistake_in("k3y")


@pytest.mark.parametrize("secret", ["P\u200bI\u200bN", "k3y\u0301", "\ufeffk3y"])
def test_what_no_reader_sees_does_not_count(secret: str) -> None:
    assert "this one has 3" in mistake_in(secret)


@pytest.mark.parametrize("secret", ["", "   ", "----", "\u200b\u200b\u200b\u200b\u200b"])
def test_a_secret_has_letters_or_digits(secret: str) -> None:
    assert mistake_in(secret)
