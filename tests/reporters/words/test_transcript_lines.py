"""A conversation as lines: who speaks, what is cut, how it ended, and which secrets are masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Finding, Severity
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Turn
from agenteval.reporters.words.transcript_lines import (
    TranscriptLine,
    call_text,
    disclosed_secrets,
    has_several_agents,
    how_it_ended,
    mask_secrets,
    transcript,
)
from agenteval.verdict.report import build_report
from tests.support.report_samples import DONE, conversation, started

KEY = SampleKey(scenario="a", agent="bot")


def sample_of(*turns: Turn, stop: Stop | None = DONE, findings: Sequence[Finding] = ()) -> SampleReport:
    events = [started((Scenario(id="a", name="a"),), (KEY,))]
    report = build_report([*events, *conversation(KEY, turns, {None: tuple(findings)}, stop=stop)])
    (sample,) = report.samples
    return sample


def said(text: str | None, *calls: ToolCall, user: str = "hi", agent: str = "", **more: Any) -> Turn:
    return Turn(user=user, steps=(Step(text=text, tool_calls=calls, agent=agent),), script=0, **more)


def told(*turns: Turn, **more: Any) -> list[tuple[str, str, int | None]]:
    return [(line.speaker, line.text, line.turn) for line in transcript(sample_of(*turns, **more))]


def call(value: Any = None, **more: Any) -> ToolCall:
    return ToolCall(**{"name": "f", "args": {}, "result": ToolResult(value=value), **more})


# Lines


@pytest.mark.parametrize(
    ("turn", "lines"),
    [
        (said("hello"), [("user", "hi"), ("agent", "hello")]),
        (said("a\n  b", user="c\nd"), [("user", "c d"), ("agent", "a b")]),
        (said(None), [("user", "hi"), ("agent", "(empty)")]),
        (said(""), [("user", "hi"), ("agent", "(empty)")]),
        (said(None, call(1)), [("user", "hi"), ("call", "f()"), ("result", "1")]),
        (said("wait", call(1)), [("user", "hi"), ("agent", "wait"), ("call", "f()"), ("result", "1")]),
        (said(None, call(result=None)), [("user", "hi"), ("call", "f()")]),
        (
            said(None, call(given_up=True, result=None)),
            [("user", "hi"), ("call", "f()"), ("result", "(the agent did not wait)")],
        ),
        (said("x", error="boom"), [("user", "hi"), ("agent", "x"), ("error", "boom")]),
        (Turn(user="hi"), [("user", "hi")]),
        (said(None, call({"a": [1, "x"]})), [("user", "hi"), ("call", "f()"), ("result", '{"a": [1, "x"]}')]),
    ],
)
def test_a_line_for_each_message_call_and_result(turn: Turn, lines: list[tuple[str, str]]) -> None:
    assert told(turn) == [(speaker, text, 0) for speaker, text in lines]


def test_each_line_has_its_turn() -> None:
    assert [turn for _, _, turn in told(said("a"), said("b"), stop=None)] == [0, 0, 1, 1, None]


@pytest.mark.parametrize(("length", "shown"), [(600, 600), (601, 600)])
def test_long_messages_are_cut(length: int, shown: int) -> None:
    (_, user, _), (_, agent, _) = told(said("x" * length, user="y" * length))
    assert (len(user), len(agent)) == (shown, shown)
    assert user.endswith("…") is (length > shown)


def test_long_results_are_cut_and_errors_keep_their_remedy() -> None:
    (_, result, _), (_, error, _) = told(said(None, call("x" * 300), error=f"{'y' * 900} — fix"))[2:]
    assert len(result) == 240
    assert error.endswith("… — fix")
    assert len(error) <= 603


@pytest.mark.parametrize(("answers", "lines", "note"), [(30, 60, 0), (31, 61, 2), (40, 61, 20)])
def test_the_middle_of_a_long_conversation_is_omitted(answers: int, lines: int, note: int) -> None:
    shown = told(*[said(f"{n}") for n in range(answers)])
    assert len(shown) == lines
    notes = [(place, text) for place, (speaker, text, _) in enumerate(shown) if speaker == "note"]
    assert [place for place, _ in notes] == ([15] if note else [])
    assert all(f" {note} lines" in text for _, text in notes)
    assert shown[-1][1] == f"{answers - 1}"


def test_one_line_more_is_not_omitted() -> None:
    assert len(told(*[said(f"{n}") for n in range(30)], stop=None)) == 61
    assert told(*[said("x")] * 30, stop=None)[-1][0] == "note"


@pytest.mark.parametrize(
    ("speaker", "text"),
    [
        ("user", "user:  x"),
        ("agent", "agent: x"),
        ("call", "  -> x"),
        ("result", "  <- x"),
        ("error", "error: x"),
        ("note", "x"),
    ],
)
def test_a_line_as_text(speaker: Any, text: str) -> None:
    assert str(TranscriptLine(speaker, "x")) == text


# How it ended


@pytest.mark.parametrize(
    ("stop", "facts"),
    [
        (None, "cut off"),
        (DONE, ""),
        (Stop(reason=StopReason.UNREADABLE, detail="log:1: no"), ""),
        (Stop(reason=StopReason.MAX_TURNS), "turn limit of 2;"),
        (Stop(reason=StopReason.BUDGET, detail="used up"), "(budget: used up)"),
        (Stop(reason=StopReason.BUDGET), ""),
        (Stop(reason=StopReason.AGENT_ERROR, detail="boom"), ""),
        (Stop(reason=StopReason.AGENT_ERROR, detail="bang"), "(agent_error: bang)"),
        (Stop(reason=StopReason.RECORDED, detail="log:7"), "(recorded: log:7)"),
    ],
)
def test_how_a_conversation_ended(stop: Stop | None, facts: str) -> None:
    sample = sample_of(said("a"), said("b", error="boom"), stop=stop)
    ended = how_it_ended(sample)
    assert facts in ended
    assert bool(ended) is bool(facts)
    notes = [line for line in transcript(sample) if line.speaker == "note"]
    assert notes == ([TranscriptLine("note", ended)] if ended else [])


# Several agents


def test_agents_are_named_only_if_there_are_several() -> None:
    one = sample_of(said("a", call(1, agent="x"), agent="x"))
    two = sample_of(said("a", call(1, agent="y"), agent="x"), said("b"), said("c", agent="y"))
    assert (has_several_agents(one), has_several_agents(two)) == (False, True)
    assert has_several_agents(sample_of()) is False
    assert [line.text for line in transcript(one)] == ["hi", "a", "f()", "1"]
    assert [line.text for line in transcript(two)] == [
        "hi",
        "(x) a",
        "(y) f()",
        "1",
        "hi",
        "b",
        "hi",
        "(y) c",
    ]


def test_the_caller_decides_whether_agents_are_named() -> None:
    one, two = sample_of(said("a", agent="x")), sample_of(said("a", agent="x"), said("b", agent="y"))
    assert [line.text for line in transcript(one, by_name=True)] == ["hi", "(x) a"]
    assert [line.text for line in transcript(two, by_name=False)] == ["hi", "a", "hi", "b"]


# Secrets


def leak(shown: str = "s…t", **more: Any) -> Finding:
    told = {"detector": "leak", "metric": "m", "label": "leak", "turn": 0, "span": (3, 9), "evidence": shown}
    return Finding(severity=Severity.HIGH, **{**told, **more})


@pytest.mark.parametrize(
    ("finding", "hidden"),
    [
        (leak(), {"secret": "s…t"}),
        (leak("the instructions"), {}),
        (leak(detector="judge"), {}),
        (leak(span=None), {}),
        (leak(span=(3, 3)), {}),
        (leak(turn=None), {}),
        (leak(turn=1), {}),
    ],
    ids=["secret", "instructions", "judge", "no span", "empty span", "whole", "no such turn"],
)
def test_which_secrets_are_masked(finding: Finding, hidden: dict[str, str]) -> None:
    assert disclosed_secrets(sample_of(said("my secret"), findings=[finding])) == hidden


def test_a_secret_with_invisible_characters_is_masked_as_it_is_shown() -> None:
    sample = sample_of(said("my se\u200bcret"), findings=[leak(span=(3, 10))])
    assert disclosed_secrets(sample) == {"se\u200bcret": "s…t", "secret": "s…t"}
    assert [line.text for line in transcript(sample)] == ["hi", "my s…t"]
    nothing = sample_of(said("my \u200b"), findings=[leak(span=(3, 4))])
    assert disclosed_secrets(nothing) == {"\u200b": "s…t"}


def test_a_secret_is_masked_wherever_it_is_said() -> None:
    turns = [said("my secret", call("secret!")), said("ok", user="the secret?")]
    texts = [text for _, text, _ in told(*turns, findings=[leak()])]
    assert texts == ["hi", "my s…t", "f()", '"s…t!"', "the s…t?", "ok"]
    assert mask_secrets("a b a", {"a": "x", "b": "y"}) == "x y x"
    assert mask_secrets("a", {}) == "a"


# Calls


@pytest.mark.parametrize(
    ("args", "raw", "text"),
    [
        ({}, None, "f()"),
        ({"a": 1, "b": "x"}, None, 'f(a=1, b="x")'),
        ({"a": None, "b": [True, {"c": "é"}]}, None, 'f(a=null, b=[true, {"c": "é"}])'),
        (None, "{oops", "f({oops)"),
        (None, "", "f()"),
    ],
)
def test_a_call(args: dict[str, Any] | None, raw: str | None, text: str) -> None:
    assert call_text(ToolCall(name="f", args=args, raw_args=raw)) == text


def test_arguments_that_nobody_knows_are_said_to_be_unknown() -> None:
    text = call_text(ToolCall(name="f", args=None))
    assert text.startswith("f(")
    assert len(text) > len("f()")


@pytest.mark.parametrize("args", [{"a": "x" * 300}, {f"{n}": n for n in range(100)}, None])
def test_long_arguments_are_cut(args: dict[str, Any] | None) -> None:
    text = call_text(ToolCall(name="f", args=args, raw_args="y" * 300))
    assert len(text) in (242, 243)  # a cut never leaves a space before the sign
    assert text.endswith("…)")
