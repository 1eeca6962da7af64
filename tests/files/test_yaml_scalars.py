"""Plain scalars by the core schema of YAML 1.2: numbers, words and text, and how values are shown."""

from __future__ import annotations

from math import inf, isnan
from typing import Any

import pytest

from agenteval.files.yaml_scalars import (
    MAX_DIGITS,
    STANDARD_TAGS,
    canonical_text,
    display_value,
    parse_scalar,
    parse_tagged_scalar,
)

PREFIX = "tag:yaml.org,2002:"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, None) for text in ("", "~", "null", "Null", "NULL")),
        *((text, True) for text in ("true", "True", "TRUE")),
        *((text, False) for text in ("false", "False", "FALSE")),
        # Words of YAML 1.1, and other spellings.
        *((text, text) for text in ("yes", "no", "on", "off", "y", "nULL", "tRUE", "nullx", "None")),
        ("0", 0),
        ("7", 7),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0xfF", 255),
        ("1.5", 1.5),
        ("-1.5", -1.5),
        ("+.5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1.5E-1", 0.15),
        (".inf", inf),
        ("+.Inf", inf),
        ("-.INF", -inf),
        # Numbers of YAML 1.1, and what only begins like a number.
        *((text, text) for text in ("1_000", "0b1", "12:30", "1:2:3", "-0x1", "0o8", "0xG", "1e", "e3", ".")),
        *(
            (text, text)
            for text in ("-", "+", "-.nan", ".iNF", "inf", "1 2", " 1", "1.2.3", "2026-12-31", "½")
        ),
        *((text, text) for text in ("٣", "1٣", "word", "'quoted'", "$1")),
    ],
)
def test_a_plain_scalar(text: str, value: Any) -> None:
    found = parse_scalar(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number(text: str) -> None:
    assert isnan(parse_scalar(text))
    assert parse_scalar(".Nan") == ".Nan"


def test_integers_have_a_longest() -> None:
    assert parse_scalar("1" * MAX_DIGITS) == int("1" * MAX_DIGITS)
    for text in ("1" * (MAX_DIGITS + 1), "0x" + "f" * MAX_DIGITS, "0o" + "7" * MAX_DIGITS):
        with pytest.raises(ValueError) as error:
            parse_scalar(text)
        assert f"{len(text):,}" in str(error.value)
    assert parse_scalar("1" * (MAX_DIGITS + 1) + "x") == "1" * (MAX_DIGITS + 1) + "x"


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("!", "1", "1"),
        (f"{PREFIX}str", "true", "true"),
        (f"{PREFIX}int", "7", 7),
        (f"{PREFIX}float", "7", 7.0),
        (f"{PREFIX}float", "7.5", 7.5),
        (f"{PREFIX}bool", "True", True),
        (f"{PREFIX}null", "~", None),
        (f"{PREFIX}null", "", None),
    ],
)
def test_a_scalar_with_its_tag(tag: str, text: str, value: Any) -> None:
    found = parse_tagged_scalar(tag, text)
    assert (found, type(found)) == (value, type(value))
    assert tag in STANDARD_TAGS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("int", "7.5"),
        ("int", "true"),
        ("int", "word"),
        ("float", "word"),
        ("float", "true"),
        ("bool", "yes"),
        ("bool", "1"),
        ("null", "word"),
        ("seq", "[]"),
        ("map", "{}"),
        ("map", "null"),
    ],
)
def test_a_scalar_that_is_not_what_its_tag_says(name: str, text: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_tagged_scalar(PREFIX + name, text)
    assert f"'{text}'" in str(error.value)
    assert f"!!{name}" in str(error.value)


def test_the_standard_tags() -> None:
    names = {"str", "int", "float", "bool", "null", "seq", "map"}
    assert {"!", *(PREFIX + name for name in names)} == STANDARD_TAGS


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        ("", ""),
        (None, None),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (0, "0"),
        (1.5, "1.5"),
        (1.0, "1.0"),
    ],
)
def test_the_usual_spelling(value: Any, text: str | None) -> None:
    assert canonical_text(value) == text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        ({}, "a mapping"),
        ({"a": 1}, "a mapping"),
        ([], "a list"),
        ((1,), "a list"),
        ("x", "'x'"),
        ("", "''"),
        ("x" * 60, f"'{'x' * 60}'"),
        ("x" * 61, f"'{'x' * 59}…'"),
        (True, "true"),
        (7, "7"),
        (10**59, "1" + "0" * 59),
        (10**60, "1" + "0" * 58 + "…"),
    ],
)
def test_how_a_value_is_shown(value: Any, shown: str) -> None:
    assert display_value(value) == shown
