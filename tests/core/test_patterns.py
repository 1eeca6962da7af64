"""Regular expressions of the author's that would never end, and those that do."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agenteval.core import patterns
from agenteval.core.errors import AuthorError
from agenteval.core.json_schema import schema_violations
from agenteval.core.patterns import (
    SearchTimeoutError,
    pattern_matches,
    pattern_mistake,
    run_in_thread_if_slow,
)
from tests.support.kit import Project

ENDLESS, TEXT = "^(a|aa)+$", "a" * 40 + "!"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never ends need not be waited for."""
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("length", [4_000, 40_000])
def test_a_long_text_takes_no_longer_than_the_limit(length: int) -> None:
    with pytest.raises(SearchTimeoutError, match="took longer than"):
        pattern_matches("a.*b.*c", "ab" * (length // 2))
    assert pattern_matches("a.*b.*c", "ab" * (length // 2) + "c")


ODD = {
    r"^\w+$": ["abc", "über1", "a-b"],
    r"\b5 m²\b": ["5 m²", "5 m² x", "5 m"],
    r"\bCO₂\b": ["CO₂", "CO₂x"],
    r"5\w(?:①\B)?": ["5½", "5-", "5½①a"],
    r"^[\w ]+\W$": ["½ ①!", "½ ①"],
    r"\d+\N{DEGREE SIGN}": ["20°C", "20 C"],
    r"[\N{EN DASH}-]": ["a[: b ab", "a – b", "a-b"],
    r"[[:alpha:]]": ["a", "a]", ":]"],
    r"[[:foo:]]|[[:alpha:]": ["f]", "[", "b"],
    r"[]a[]{2}": ["]a", "[]", "ab"],
    r"^colou?r{e<=1}$": ["colour", "colr{e<=1}", "color{e<=1}"],
    r"Hello {e}, {i}\.": ["Hello {e}, {i}.", "Hello ab, x."],
    r'\{"id": \d+}|{"a": \\{2}}': ['{"id": 7}', '{"a": \\\\}', "id: 7"],
    r"[{]e}x{}": ["{e}x{}", "x"],
    r"[a&&b~~c]": ["&", "~", "d"],
    r"(?x) a  # [ no set \n b": ["ab", "a b"],
    r"(?a)^\w+\b": ["é", "e"],
    r"(a)?(?(1)b|c)$": ["ab", "c", "b"],
    r"(?P<q>['\"]).*?(?P=q)": ["'a'", "'a\""],
    r"(?s:a.)b|(?-i:C)": ["a\nb", "c", "C"],
    r"(?<!\d)\d{4}(?!\d)": ["2026", "20261"],
    r"(?>a+)ab|a++b|x{,2}y$": ["aab", "xy", "z"],
    r"^\Bb|\n$": ["b", "a\n"],
    "\ud800[\ud800-\udfff]?$": ["\ud800", "\ud800\udc00"],
}


@pytest.mark.filterwarnings("ignore:Possible")
@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.DOTALL])
@pytest.mark.parametrize("pattern", ODD)
def test_an_expression_means_what_it_means_in_python(pattern: str, flags: int) -> None:
    for text in ODD[pattern]:
        assert pattern_matches(pattern, text, flags) is bool(re.search(pattern, text, flags)), text


@pytest.mark.parametrize("pattern", ["a{4294967294}", "(?:(?:b?){9999}){9999}", "(?:(x{400}){200}){100}"])
def test_what_repeats_too_much_is_refused_and_searched_by_nobody(pattern: str) -> None:
    assert "repetition is too large; use smaller counts" in pattern_mistake(pattern)
    with pytest.raises(SearchTimeoutError):
        pattern_matches(pattern, "a")
    assert schema_violations({"properties": {"a": {"pattern": pattern}}}, {"a": "a"}) == ""


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(\w+\s?)+$", "word " * 2_000 + "!"),
        ("(x+x+)+y", "x" * 5_000),
        ("((a{1,100}){1,100}){1,100}b", "a" * 5_000),
        ("(a?){3000}a{3000}", "a" * 3_000),
        (r"(a*)\1b", "a" * 20_000),
        ("(?=(a+)+b)a", "a" * 5_000),
        ("(?i:(a+)+)$", "a" * 5_000 + "!"),
    ],
)
def test_hostile_expressions_are_decided_or_ended(pattern: str, text: str) -> None:
    with contextlib.suppress(SearchTimeoutError):
        assert not pattern_matches(pattern, text)


def test_searches_end_in_threads_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)

    def ends(_: int) -> bool:
        try:
            return pattern_matches(ENDLESS, TEXT)
        except SearchTimeoutError:
            return True

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(ends, range(8))) == [True] * 8


@pytest.mark.usefixtures("impatient")
def test_a_search_that_never_ends_is_ended_and_the_next_one_goes_on() -> None:
    for _ in range(2):
        with pytest.raises(SearchTimeoutError, match="took longer than"):
            pattern_matches(ENDLESS, TEXT)
    with pytest.MonkeyPatch.context() as patient:
        patient.setattr(patterns, "LIMIT_S", 60)
        assert pattern_matches(ENDLESS, "aaa")


@pytest.mark.parametrize(
    "pattern",
    ["", ".*", "rain|", "x*", "(?:)", "^", "$", r"\Z", "(a|)b*", "(?!x)", "(?<!x)", "(?=x*)", "(?i)"],
)
def test_what_matches_every_text_is_misused(pattern: str) -> None:
    assert "matches any text" in pattern_mistake(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["x", "^$", "(?!x)y", "^(?!.*x)", "(?<!x)$", r"\b", "^x*$", "(a|b*)c", "(?=x)", r"(a)?\1x", "(?!)"],
)
def test_what_may_be_missing_is_not(pattern: str) -> None:
    assert not pattern_mistake(pattern)


@pytest.mark.filterwarnings("error")
def test_syntax_that_may_come_is_no_warning_of_ours() -> None:
    assert pattern_mistake("[[:foo:]]") == ""
    assert not pattern_matches("[[:foo:]]", "x")


def test_texts_and_expressions_are_composed() -> None:
    assert pattern_matches("Zu\u0308r.ch", "Z\u00fcrich")
    assert pattern_matches("Z\u00fcr.ch", "Zu\u0308rich")
    assert not pattern_matches("Z.rich", "Z\u200b\u00fcrich")  # and not folded


@pytest.mark.usefixtures("impatient")
def test_only_what_takes_long_is_done_in_a_thread() -> None:
    def where(pattern: str) -> bool:
        with contextlib.suppress(SearchTimeoutError):
            pattern_matches(pattern, TEXT)
        return threading.current_thread() is threading.main_thread()

    assert asyncio.run(run_in_thread_if_slow(where, "a+"))
    assert not asyncio.run(run_in_thread_if_slow(where, ENDLESS))


@pytest.mark.usefixtures("impatient")
def test_a_pattern_of_a_schema_that_never_ends_forbids_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": ENDLESS}}, "required": ["n"]}
    assert schema_violations(schema, {"a": TEXT, "n": 1}) == ""
    assert schema_violations(schema, {"a": TEXT}) == "'n' is a required property"


def test_a_pattern_of_a_schema_is_searched_as_ever() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "^([a-z]+|[0-9])+$"}}}
    assert schema_violations(schema, {"a": "x1"}) == ""
    assert schema_violations(schema, {"a": "x-1"}) == "a: 'x-1' does not match '^([a-z]+|[0-9])+$'"


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
    from agenteval.adapters.models.scripted_model import ScriptedRule
    from agenteval.core.errors import Place
    from agenteval.core.protocols import Subject

    rule = ScriptedRule(Place("replies.yaml"), None, None, None, None, re.compile(ENDLESS), "hi")
    with pytest.raises(AuthorError, match="took longer than"):
        rule.matches("user", Subject(scenario="x", text=TEXT))
