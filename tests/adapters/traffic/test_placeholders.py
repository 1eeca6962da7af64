"""What a recording holds in place of a secret: nothing of it but the prefix that names its type."""

from __future__ import annotations

import pytest

from agenteval.adapters.traffic.placeholders import Placeholders
from agenteval.files.redaction import MASK


@pytest.mark.parametrize(
    ("secret", "kept"),
    [
        ("abcdefgh1234", ""),
        ("abcdefghijk12345678", ""),  # one character less than those of which a prefix is kept
        ("abcdefghijkl12345678", "abcd"),
        ("sk-proj-abcdefgh12345678", "sk-proj-"),
        ("AKIAABCDEFGH12345678", "AKIA"),
    ],
)
def test_a_secret_is_replaced(secret: str, kept: str) -> None:
    placeholders = Placeholders([secret])
    value = placeholders.substitute(secret)
    assert len(value) == len(secret)
    assert value != secret
    assert value.startswith(kept)
    assert kept or not value.startswith(secret[:4])
    assert placeholders.substitute({"key": f"Bearer {secret}!"}) == {"key": f"Bearer {value}!"}


def test_different_secrets_have_different_placeholders_and_one_secret_has_one() -> None:
    first, second = "abcdefghijkl12345678", "mnopqrstuvwx12345678"
    placeholders = Placeholders([first, second])
    found = placeholders.substitute([first, second, first])
    assert found[0] == found[2] != found[1]
    assert MASK not in found
