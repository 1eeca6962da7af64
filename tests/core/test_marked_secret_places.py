"""Where a secret stands, and what is written in its place."""

from __future__ import annotations

import pytest

from agenteval.core.folding import fold
from agenteval.core.marked_secrets import (
    find_secrets,
    marked_secrets,
    mistake_in,
    placeholders_of,
    replace_secrets,
)
from agenteval.core.text_matching import mentions

MARKED = {"PIN 4711": "ABC 1234", "Straße Élan 9": "Qwrtzu Abcd 7", "秘密の鍵": "abcd", "10000": "23456"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("my pin 4711.", "my ABC 1234."),
        ("ＰＩＮ\u3000４７１１!", "ABC 1234!"),
        ("p\u200bin **47**11", "ABC 1234"),
        (
            "STRASSE E\u0301LAN 9, e\u0301",
            "Qwrtzu Abcd 7, e\u0301",
        ),
        ("秘密の鍵です", "abcdです"),
        ("10,000, 10 000, 210,000, 100001", "23456, 23456, 210,000, 100001"),
        ("PIN 47110, PIN 4 711", "PIN 47110, ABC 1234"),
        ("PIN 47\n11", "PIN 47\n11"),
        ("P\\*IN 4711 is not it", "P\\*IN 4711 is not it"),
        ("", ""),
    ],
)
def test_a_secret_is_replaced_where_it_is_found_and_nowhere_else(text: str, shown: str) -> None:
    assert replace_secrets(text, MARKED) == shown
    assert bool(find_secrets(text, MARKED)) is any(mentions(text, secret) for secret in MARKED)
    assert not any(mentions(replace_secrets(text, MARKED), secret) for secret in MARKED)


def test_of_two_at_one_place_the_longer_one_stands() -> None:
    marked = {"4711": "9876", "PIN 4711": "ABC 1234"}
    assert replace_secrets("PIN 4711 and 4711", marked) == "ABC 1234 and 9876"


def test_masking_takes_time_in_proportion_to_the_text() -> None:
    """A square of this would take hours."""
    text = "PIN 4711 *" * 40_000
    assert "4711" not in replace_secrets(text, MARKED)


@pytest.mark.parametrize(
    "secret",
    ["4711", "PIN 4711", "sk-Ab12_x", "Grüße an Ζεύς", "秘密の鍵", "((a-bcd))", "***x9k2", "1e5e7", "x2² 9"],
)
def test_a_placeholder_has_the_shape_of_its_secret(secret: str) -> None:
    (other,) = placeholders_of([secret]).values()
    assert len(other) == len(secret)
    assert [c.isalnum() for c in other] == [c.isalnum() for c in secret]
    assert [c.isdigit() for c in other] == [c.isdigit() for c in secret]
    assert not mentions(other, secret)
    assert mentions(f"It is {other}.", other)
    assert replace_secrets(f"It is {secret}.", {secret: other}) == f"It is {other}."


def test_a_placeholder_depends_on_nothing_but_the_shape() -> None:
    first = placeholders_of(["PIN 4711", "PIN 4712"])
    assert list(first.values()) == list(placeholders_of(["ABC 1234", "XYZ 9999"]).values())
    assert len(set(first.values())) == 2
    assert len({*placeholders_of([f"{number}" for number in range(1000, 1200)]).values()}) == 200


def test_one_secret_in_two_writings_has_one_placeholder() -> None:
    assert len({*placeholders_of(["PIN 4711", "pin **4711**"]).values()}) == 1


@pytest.mark.parametrize("text", ["", "  ", "abc", "**a_b**", "a\u200bb\u200bc", "----", "。。。。"])
def test_what_cannot_be_a_secret(text: str) -> None:
    why = mistake_in(text)
    assert why
    assert not text.strip() or text not in why


@pytest.mark.parametrize("text", ["4711", "a b c", "秘密の鍵", "x---"])
def test_what_can(text: str) -> None:
    assert len(fold(text)) >= 4
    assert mistake_in(text) == ""


def test_a_replay_knows_what_was_recorded() -> None:
    then = marked_secrets({"a": ["PIN 4711", "code 99"]})
    now = marked_secrets({"a": ["", "code 99"]}, then.placeholders)
    pin, code = then.placeholders["a"]
    assert now.for_agent("a") == {pin: pin, "code 99": code}
    assert now.placeholders == then.placeholders
    assert marked_secrets({"": ["PIN 4711"]}).for_agent("whoever", {"whoever": ["XYZ 1"]}) == {
        "XYZ 1": "XYZ 1",
        "PIN 4711": pin,
    }
