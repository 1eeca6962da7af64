"""Regular expressions of the author's that would never end, and those that do."""

from __future__ import annotations

import asyncio
import re
import threading

import pytest

from agenteval.core import patterns
from agenteval.core.errors import AuthorError
from agenteval.core.json_schema import breaks
from agenteval.core.patterns import EndlessSearchError, is_in, misuse, steps, without_waiting
from tests.support.kit import Project

FEW = patterns._FEW_STEPS
ENDLESS, TEXT = "^(a+)+$", "a" * 40 + "!"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never ends need not be waited for."""
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)


@pytest.mark.parametrize(
    "pattern",
    [
        ENDLESS,
        r"(\w+\s?)+",
        "(a|aa)+$",
        "(?:x*)*y",
        "(?P<word>a+){2,}",
        "((ab?)+c)*",
        "(?=(a+)+b)a",
        r"(a*)\1b",
        ".*.*.*=",
        "(?i:(a+)+)$",
        "a.*b.*c",
        "a.*b",
    ],
)
def test_what_may_never_end_in_a_long_text(pattern: str) -> None:
    assert steps(pattern, 80_000) > FEW


@pytest.mark.parametrize(
    "pattern",
    [
        r"reference BK-\d",
        r"\b20:00\b",
        r"\d{4}-\d{2}-\d{2}",
        "order.*shipped.*today",
        "(yes|no)",
        "(?:refund|return)(?:ed|ing)?",
        r"(\+\d{1,3})? ?\d+",
        "([a-z]{2}){3}",
        r"^\s*OK\s*$",
        "(a|b|[0-9])+",
    ],
)
def test_what_ends_is_searched_in_this_process(pattern: str) -> None:
    assert steps(pattern, 100) <= FEW


@pytest.mark.parametrize("pattern", [r"reference BK-\d", r"\b20:00\b", "(yes|no)", r"a{2,30}b", "(?=ab|c)a"])
def test_what_repeats_little_is_searched_here_at_every_length(pattern: str) -> None:
    assert steps(pattern, 80_000) <= FEW


def test_steps_grow_with_the_text_and_with_each_repetition() -> None:
    for one, other in [("x", ".*x"), ("a.*b", "a.*b.*c"), ("(ab)+", "(a|b|cd)+"), ("a*b", r"(a*)\1b")]:
        assert steps(one, 1000) < steps(other, 1000)
    assert steps("a.*b.*c", 1000) < steps("a.*b.*c", 4000)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("length", [4_000, 40_000])
def test_a_long_text_takes_no_longer_than_the_limit(length: int) -> None:
    with pytest.raises(EndlessSearchError, match="took longer than"):
        is_in("a.*b.*c", "ab" * (length // 2))
    assert is_in("a.*b.*c", "ab" * (length // 2) + "c")


@pytest.mark.parametrize(
    ("pattern", "text", "flags", "found"),
    [
        ("^(a+|b)+$", "abba", 0, True),
        ("^(a+|b)+$", "ABBA", 0, False),
        ("^(a+|b)+$", "ABBA", re.IGNORECASE, True),
        ("(é+|\n)+!", "x é\n!", 0, True),
        ("(\ud800+|b)+", "x\ud800", 0, True),
        ("^(a+)+$", "a" * 40, 0, True),
    ],
)
def test_another_process_finds_the_same(pattern: str, text: str, flags: int, found: bool) -> None:
    with pytest.MonkeyPatch.context() as never_here:
        never_here.setattr(patterns, "_FEW_STEPS", 0)
        assert is_in(pattern, text, flags) is found


@pytest.mark.usefixtures("impatient")
def test_a_search_that_never_ends_is_ended_and_the_next_one_goes_on() -> None:
    for _ in range(2):
        with pytest.raises(EndlessSearchError, match="took longer than"):
            is_in(ENDLESS, TEXT)
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr(patterns, "LIMIT_S", 60)
        assert is_in(ENDLESS, "aaa")


@pytest.mark.parametrize(
    "pattern",
    ["", ".*", "rain|", "x*", "(?:)", "^", "$", r"\Z", "(a|)b*", "(?!x)", "(?<!x)", "(?=x*)", "(?i)"],
)
def test_what_matches_every_text_is_misused(pattern: str) -> None:
    assert "matches every text" in misuse(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["x", "^$", "(?!x)y", "^(?!.*x)", "(?<!x)$", r"\b", "^x*$", "(a|b*)c", "(?=x)", r"(a)?\1x", "(?!)"],
)
def test_what_may_be_missing_is_not(pattern: str) -> None:
    assert not misuse(pattern)


def test_texts_and_expressions_are_composed() -> None:
    assert is_in("Zu\u0308r.ch", "Z\u00fcrich")
    assert is_in("Z\u00fcr.ch", "Zu\u0308rich")
    assert not is_in("Z.rich", "Z\u200b\u00fcrich")  # and not folded


def test_where_no_process_can_be_had_it_is_searched_here(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns._process.cache_clear()
    monkeypatch.setattr(patterns.sys, "executable", "/no/such/python")
    assert is_in(ENDLESS, "aaa")


def test_only_what_may_be_endless_is_done_in_a_thread() -> None:
    def where(pattern: str) -> bool:
        is_in(pattern, "a" * 40)
        return threading.current_thread() is threading.main_thread()

    assert asyncio.run(without_waiting(where, "a+"))
    assert not asyncio.run(without_waiting(where, ENDLESS))


@pytest.mark.usefixtures("impatient")
def test_a_pattern_of_a_schema_that_never_ends_forbids_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": ENDLESS}}, "required": ["n"]}
    assert breaks(schema, {"a": TEXT, "n": 1}) == ""
    assert breaks(schema, {"a": TEXT}) == "'n' is a required property"


def test_a_pattern_of_a_schema_is_searched_as_ever() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "^([a-z]+|[0-9])+$"}}}
    assert breaks(schema, {"a": "x1"}) == ""
    assert breaks(schema, {"a": "x-1"}) == "a: 'x-1' does not match '^([a-z]+|[0-9])+$'"


def test_a_check_that_cannot_be_decided_in_time_leaves_the_others(project: Project) -> None:
    project.config("deadlines: {sample_s: 30, turn_s: 30}")
    project.agent(
        """
        def agent(m, ctx):
            ctx.call_tool_sync("look", {"x": m[-1]["content"]})
            return m[-1]["content"]
        """
    )
    tools = "tools: {look: {returns: 1}}"
    call = f"calls: [{{name: look, args: {{x: {{$regex: '{ENDLESS}'}}}}}}]"
    project.scenarios(
        f"""
        scenarios:
          - {{id: text, turns: ['{TEXT}'], {tools}, expect: {{output: {{matches: ['{ENDLESS}']}}}}}}
          - {{id: call, turns: ['{TEXT}'], {tools}, expect: {{tool_calls: {{{call}}}}}}}
          - {{id: ends, turns: [aaa], {tools}, expect: {{output: {{matches: ['{ENDLESS}']}}}}}}
        """
    )
    assert project.run().code == 3
    found = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert found == {"text": "inconclusive", "call": "inconclusive", "ends": "passed"}


@pytest.mark.usefixtures("impatient")
def test_a_rule_of_the_scripted_model_that_never_ends_is_the_authors_mistake() -> None:
    from agenteval.adapters.models.scripted import Rule
    from agenteval.core.errors import Place
    from agenteval.core.protocols import Subject

    rule = Rule(Place("replies.yaml"), None, None, None, None, re.compile(ENDLESS), "hi")
    with pytest.raises(AuthorError, match="took longer than"):
        rule.fits("user", Subject(scenario="x", text=TEXT))
