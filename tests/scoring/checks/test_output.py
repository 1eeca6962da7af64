"""``expect.output``: texts and patterns that answers must contain, and texts that must never be written."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.patterns import SearchTimeoutError
from agenteval.core.trajectory import Turn
from agenteval.scoring.checks import output
from agenteval.scoring.checks.check_rule import CheckInput
from agenteval.scoring.checks.output import (
    OUTPUT,
    check_any_of,
    check_contains,
    check_matches,
    check_not_contains,
    describe_line_break_misses,
    describe_wildcard_matches,
)
from tests.support.detector_samples import call, turn


def seen(*answers: str | Turn, **more: Any) -> CheckInput:
    turns = [answer if isinstance(answer, Turn) else turn("u", answer) for answer in answers]
    return CheckInput(turns, **more)


TWO = seen("Room 12 is free.", "It costs 80 EUR.")
LATE = turn("u", "Let me look at secret 9.", call("look"), "Room 12.")
THOUGHT = turn("u", "<think>Room 12</think> Yes.")


@pytest.mark.parametrize(
    ("given", "needles", "missing"),
    [
        (TWO, ["room 12"], []),
        (TWO, ["room 12", "80 EUR"], []),  # each in any answer
        (TWO, ["room 13", "80", "12 EUR"], ["room 13", "12 EUR"]),
        (TWO, ["roo"], ["roo"]),
        (TWO, ["roo*"], []),
        (TWO, [], []),
        (seen(), ["x"], ["x"]),
        (seen(LATE), ["secret"], ["secret"]),  # not in the final answer
        (seen(THOUGHT), ["Room"], ["Room"]),
        (seen("x", unfinished=turn("u", "Room 12.")), ["Room"], ["Room"]),
    ],
)
def test_contains(given: CheckInput, needles: list[str], missing: list[str]) -> None:
    found = check_contains(needles, given)
    assert (found.passed, list(found.parts)) == (not missing, missing)
    assert (found.is_lasting, found.is_by_absence, found.turn) == (False, False, None)


@pytest.mark.parametrize(
    ("given", "needles", "parts"),
    [
        (TWO, ["room 13", "80"], ()),
        (TWO, ["80", "room 13"], ()),
        (TWO, ["room 13", "81"], ("room 13 or 81",)),
        (TWO, ["81"], ("81",)),
        (seen(), ["x"], ("x",)),
        (seen(LATE), ["secret"], ("secret",)),
    ],
)
def test_any_of(given: CheckInput, needles: list[str], parts: tuple[str, ...]) -> None:
    found = check_any_of(needles, given)
    assert (found.passed, tuple(found.parts), found.is_lasting) == (not parts, parts, False)


def test_any_of_names_what_was_found() -> None:
    detail = check_any_of(["room 13", "room 12", "80"], TWO).detail
    assert ["room 12" in detail, "80" in detail, "room 13" in detail] == [True, True, False]


@pytest.mark.parametrize(
    ("given", "needles", "parts", "first"),
    [
        (TWO, ["refund"], (), None),
        (TWO, ["EUR"], ("EUR",), 1),
        (TWO, ["free", "EUR"], ("free", "EUR"), 0),
        (TWO, ["EUR", "free"], ("free", "EUR"), 0),  # in the order in which they were written
        (TWO, ["fre"], ("fre",), 0),  # even inside a word
        (seen("x", "bad", "bad"), ["bad"], ("bad",), 1),
        (seen(LATE), ["secret"], ("secret",), 0),  # anywhere in the turn
        (seen(THOUGHT), ["Room"], (), None),
        (seen(), ["x"], (), None),
        (seen("x", unfinished=turn("u", "bad")), ["bad"], (), None),
        (seen(turn("u", "for", call("look"), "bidden")), ["forbidden"], (), None),  # two texts, not one
    ],
)
def test_not_contains(
    given: CheckInput, needles: list[str], parts: tuple[str, ...], first: int | None
) -> None:
    found = check_not_contains(needles, given)
    assert (found.passed, tuple(found.parts), found.turn) == (not parts, parts, first)
    assert found.is_lasting is bool(parts)
    assert not found.is_by_absence


def test_not_contains_numbers_answers_if_there_are_several() -> None:
    several, one = check_not_contains(["bad"], seen("x", "bad")), check_not_contains(["bad"], seen("bad"))
    assert ["2" in several.detail, "1" in one.detail] == [True, False]


@pytest.mark.parametrize(
    ("patterns", "missing"),
    [
        (["room \\d+"], []),
        (["ROOM", "eur"], []),  # case does not matter
        (["^It costs"], []),
        (["room \\d{3}"], ["room \\d{3}"]),
        (["x", "room", "y"], ["x", "y"]),
        (["free.*costs"], ["free.*costs"]),  # not across answers
        ([], []),
    ],
)
def test_matches(patterns: list[str], missing: list[str]) -> None:
    found = check_matches(patterns, TWO)
    assert (found.passed, list(found.parts)) == (not missing, missing)
    assert not found.is_lasting
    assert all(f"/{pattern}/" in found.detail for pattern in missing or patterns)


def test_a_search_that_takes_too_long_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_args: Any) -> bool:
        raise SearchTimeoutError("x")

    monkeypatch.setattr(output, "pattern_matches", endless)
    found = check_matches(["(a+)+"], TWO)
    assert (found.passed, found.parts) == (None, ())
    assert describe_line_break_misses(["(a+)+"], TWO) == ""


# ── hints ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("needles", "hints"),
    [
        (["refund"], ["refund*"]),
        (["booked"], ["*booked"]),
        (["fund"], ["*fund*"]),
        (["ghost"], []),
        (["ghost", "refund"], ["refund*"]),
        (["refund", "booked"], ["refund*", "*booked"]),
    ],
)
def test_a_star_that_would_match(needles: list[str], hints: list[str]) -> None:
    given = seen("Nothing.", "Your refunds are overbooked.")
    text = describe_wildcard_matches(needles, given)
    assert [hint for hint in ("refund*", "*booked", "*fund*") if f'"{hint}"' in text] == hints
    assert bool(text) is bool(hints)
    assert text in check_contains(needles, given).detail
    assert text in check_any_of(needles, given).detail


@pytest.mark.parametrize(
    ("patterns", "hint"),
    [
        (["one.*two"], "/(?s)one.*two/"),
        (["one.*two", "two.*one"], "/(?s)one.*two/"),
        (["two.*one"], ""),
        (["ONE.*TWO"], "/(?s)ONE.*TWO/"),
        ([], ""),
    ],
)
def test_a_line_break_that_a_pattern_misses(patterns: list[str], hint: str) -> None:
    text = describe_line_break_misses(patterns, seen("x", "one\ntwo"))
    assert hint in text
    assert bool(text) is bool(hint)


def test_the_rules() -> None:
    assert [rule.name for rule in OUTPUT] == [
        "output.contains",
        "output.any_of",
        "output.not_contains",
        "output.matches",
    ]
    assert all(rule.needs_answers for rule in OUTPUT)
