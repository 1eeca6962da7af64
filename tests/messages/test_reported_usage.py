"""Usage as agents report it: what is read, and what is told of where it is not understood."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from agenteval.core.trajectory import Turn, Usage
from agenteval.messages.agent_messages import read_turn
from agenteval.messages.agent_reply import parse_reply
from agenteval.messages.reported_usage import read_usage, unread_usage
from tests.support.kit import Project
from tests.support.recorded import read


@dataclass(slots=True)
class Counted:
    input_tokens: int = 50
    output_tokens: int = 2


class Pair(NamedTuple):
    prompt_tokens: int = 50
    completion_tokens: int = 2


class Model(BaseModel):
    promptTokenCount: int = 50  # noqa: N815  # as its provider writes it
    candidatesTokenCount: int = 2  # noqa: N815


UNDERSTOOD: list[Any] = [
    Usage(calls=1, input_tokens=50, output_tokens=2),
    {"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 52},
    {"input_tokens": None, "prompt_tokens": 50, "output_tokens": 2},
    Counted(),
    Pair(),
    Model(),
    SimpleNamespace(input_tokens=50, output_tokens=2),
    {"inputTokens": 50, "outputTokens": 2},
    {"promptTokens": 50.0, "completionTokens": "2"},
    {"prompt_tokens": 50, "total_tokens": 52},
    {"outputTokens": 2, "totalTokens": 52},
]


@pytest.mark.parametrize("value", UNDERSTOOD, ids=str)
def test_usage_that_is_plainly_meant(value: Any) -> None:
    read = read_usage(value)
    assert read is not None
    assert (read.calls, read.input_tokens, read.output_tokens, read.estimated) == (1, 50, 2, False)
    assert unread_usage(value) == ""


@dataclass
class Details:
    cached_tokens: int = 40


@dataclass
class OfAgentsSdk:
    requests: int = 2
    input_tokens: int = 50
    input_tokens_details: Details = field(default_factory=Details)
    output_tokens: int = 2
    total_tokens: int = 52


@dataclass
class OfPydanticAi:
    input_tokens: int = 50
    cache_write_tokens: int = 5
    cache_read_tokens: int = 40
    output_tokens: int = 2
    requests: int = 2
    tool_calls: int = 1
    details: dict[str, int] = field(default_factory=dict)


IN_THEIR_WORDS: dict[str, tuple[Any, tuple[int, int, int, int]]] = {
    "OpenAI chat": (
        {"prompt_tokens": 50, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 40}},
        (1, 50, 2, 40),
    ),
    "OpenAI Responses": (
        {"input_tokens": 50, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 40}},
        (1, 50, 2, 40),
    ),
    "OpenAI Agents SDK": (OfAgentsSdk(), (2, 50, 2, 40)),
    "Anthropic": (
        {
            "input_tokens": 5,
            "output_tokens": 2,
            "cache_creation_input_tokens": 5,
            "cache_read_input_tokens": 40,
        },
        (1, 50, 2, 40),
    ),
    "Bedrock": (
        {
            "inputTokens": 5,
            "outputTokens": 2,
            "totalTokens": 52,
            "cacheReadInputTokens": 40,
            "cacheWriteInputTokens": 5,
        },
        (1, 50, 2, 40),
    ),
    "what was cached within a sum, under their names": (
        {"inputTokens": 50, "outputTokens": 2, "totalTokens": 52, "cacheReadInputTokens": 40},
        (1, 50, 2, 40),
    ),
    "LiteLLM": (
        {
            "prompt_tokens": 50,
            "completion_tokens": 2,
            "total_tokens": 52,
            "cache_creation_input_tokens": 5,
            "cache_read_input_tokens": 40,
        },
        (1, 50, 2, 40),
    ),
    "LangChain": (
        {
            "input_tokens": 50,
            "output_tokens": 2,
            "total_tokens": 52,
            "input_token_details": {"cache_creation": 5, "cache_read": 40},
        },
        (1, 50, 2, 40),
    ),
    "Google": (
        {
            "prompt_token_count": 45,
            "candidates_token_count": 1,
            "thoughts_token_count": 1,
            "tool_use_prompt_token_count": 5,
            "cached_content_token_count": 40,
            "total_token_count": 52,
        },
        (1, 50, 2, 40),
    ),
    "Google, only thoughts": (
        {"promptTokenCount": 50, "thoughtsTokenCount": 2, "totalTokenCount": 52},
        (1, 50, 2, 0),
    ),
    "Pydantic AI": (OfPydanticAi(), (2, 50, 2, 40)),
    "Pydantic AI before 1.0": (
        {"requests": 2, "request_tokens": 50, "response_tokens": 2, "total_tokens": 52},
        (2, 50, 2, 0),
    ),
    "agent framework": ({"input_token_count": 50, "output_token_count": 2}, (1, 50, 2, 0)),
    "agent framework, Anthropic": (
        {
            "input_token_count": 10,
            "output_token_count": 2,
            "anthropic.cache_read_input_tokens": 40,
            "cache_read_input_token_count": 40,
        },
        (1, 50, 2, 40),
    ),
    "Cohere": (
        {
            "billed_units": {"input_tokens": 20, "output_tokens": 1},
            "tokens": {"input_tokens": 50, "output_tokens": 2},
        },
        (1, 50, 2, 0),
    ),
    "Ollama": ({"prompt_eval_count": 50, "eval_count": 2, "eval_duration": 9}, (1, 50, 2, 0)),
    "AI SDK 4": ({"promptTokens": 50, "completionTokens": 2, "totalTokens": 52}, (1, 50, 2, 0)),
    "AI SDK 5": (
        {"inputTokens": 50, "outputTokens": 2, "totalTokens": 52, "cachedInputTokens": 40},
        (1, 50, 2, 40),
    ),
    "AI SDK 6": (
        {"inputTokens": 50, "outputTokens": 2, "inputTokenDetails": {"cacheReadTokens": 40}},
        (1, 50, 2, 40),
    ),
    "CrewAI": (
        {
            "total_tokens": 52,
            "prompt_tokens": 50,
            "cached_prompt_tokens": 40,
            "completion_tokens": 2,
            "successful_requests": 2,
        },
        (2, 50, 2, 40),
    ),
    "DeepSeek": (
        {"prompt_tokens": 50, "completion_tokens": 2, "prompt_cache_hit_tokens": 40},
        (1, 50, 2, 40),
    ),
    "xAI, reasoning beside": (
        {
            "prompt_tokens": 45,
            "completion_tokens": 1,
            "total_tokens": 52,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 6},
        },
        (1, 45, 7, 40),
    ),
    "reasoning alone": (
        {
            "prompt_tokens": 50,
            "completion_tokens": 0,
            "total_tokens": "52",
            "completion_tokens_details": {"reasoning_tokens": "2"},
        },
        (1, 50, 2, 0),
    ),
    "reasoning within": (
        {"input_tokens": 50, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}},
        (1, 50, 2, 0),
    ),
    "reasoning that cannot be within, without a total": (
        {"inputTokens": 50, "outputTokens": 1, "reasoningTokens": 2},
        (1, 50, 3, 0),
    ),
    "LangChain, reasoning beside": (
        {
            "input_tokens": 50,
            "output_tokens": 1,
            "total_tokens": 53,
            "output_token_details": {"reasoning": 2},
        },
        (1, 50, 3, 0),
    ),
    "a cache beside the prompt, by the total": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "total_tokens": 52,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
        (1, 50, 2, 40),
    ),
    "a cache and reasoning beside": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "total_tokens": 55,
            "prompt_tokens_details": {"cached_tokens": 40},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        (1, 50, 5, 40),
    ),
    "a total that is less than its parts": (
        {"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 0},
        (1, 50, 2, 0),
    ),
    "details that are no counts": (
        {
            "prompt_tokens": 50,
            "completion_tokens": 2,
            "total_tokens": -1,
            "prompt_tokens_details": {"cached_tokens": -3},
            "completion_tokens_details": {"reasoning_tokens": float("inf")},
        },
        (1, 50, 2, 0),
    ),
    "several replies": (
        [
            {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21},
            {"prompt_tokens": 30, "completion_tokens": 1, "total_tokens": 34, "reasoning_tokens": 3},
        ],
        (2, 50, 5, 0),
    ),
}


@pytest.mark.parametrize("who", IN_THEIR_WORDS)
def test_each_kind_of_tokens_counts_once_whoever_reports_it(who: str) -> None:
    value, expected = IN_THEIR_WORDS[who]
    read = read_usage(value)
    assert read is not None
    assert (read.calls, read.input_tokens, read.output_tokens, read.cached_tokens) == expected
    assert not read.estimated


def test_a_gap_that_nothing_explains_counts_as_output_and_is_marked() -> None:
    for more in ({}, {"completion_tokens_details": {"reasoning_tokens": 5}}):
        read = read_usage({"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 60, **more})
        assert read is not None
        assert (read.input_tokens, read.output_tokens, read.estimated) == (50, 10, True)


NOT_UNDERSTOOD: list[Any] = [
    {"input_tokens": 50},
    {"cache_read_input_tokens": 50, "output_tokens": 2},
    {"input_tokens": -50, "output_tokens": 2},
    Usage(calls=1, input_tokens=-50, output_tokens=2),
    Usage(calls=1, input_tokens=50, output_tokens=2, cost=float("nan")),
    {"input_tokens": 10**18, "output_tokens": 2},
    [{"input_tokens": 50, "output_tokens": 2}, {"input_tokens": 50}],
    {"input_tokens": 50.5, "output_tokens": 2},
    {"input_tokens": float("nan"), "output_tokens": float("inf")},
    {"input_tokens": True, "output_tokens": 2},
    {"input_tokens": "fifty", "output_tokens": 2},
    {"output_tokens": 53, "total_tokens": 52},
    {"inputTokens": {"all": 50}, "outputTokens": {"all": 2}},
    [50, 2],
    "52 tokens",
    52,
    Model,
]


@pytest.mark.parametrize("value", NOT_UNDERSTOOD, ids=str)
def test_usage_that_is_not_understood(value: Any) -> None:
    assert read_usage(value) is None
    assert unread_usage(value)


@pytest.mark.parametrize("total", [{"total_tokens": 52}, {"inputTokens": {}, "totalTokens": "52"}], ids=str)
def test_a_total_alone_is_a_sum_and_no_split(total: Any) -> None:
    usage = read_usage(total)
    assert usage is not None
    assert (usage.tokens, usage.unsplit, usage.estimated) == (52, True, False)
    both = usage + Usage(calls=1, input_tokens=50, output_tokens=2, cost=1.0)
    assert (both.tokens, both.unsplit, both.cost) == (104, True, None)


@pytest.mark.parametrize(
    "value", [None, {}, [], "", 0, {"prompt_tokens": None}, {"total_tokens": 0}], ids=str
)
def test_usage_that_was_not_told(value: Any) -> None:
    assert (read_usage(value), unread_usage(value)) == (None, "")


def test_what_was_told_is_quoted_in_short() -> None:
    assert unread_usage({"total": 52, "parts": [1]}) == '{"total": 52, "parts": "a list"}'
    assert len(unread_usage({"total": "x" * 1000})) < 200


AGENT = """
def agent(messages):
    return {"role": "assistant", "content": "all ok", "usage": {"spent": 5020}}
def silent(messages):
    return "all ok"
"""
SUITE = """
scenarios:
  - {id: low, turns: [hi, there], expect: {limits: {tokens: 1000}}}
  - {id: lower, turns: [hi], expect: {limits: {tokens: 1}}}
"""


@pytest.fixture
def project(tmp_path: Any) -> Project:
    project = Project(tmp_path)
    project.config()
    project.agent(AGENT)
    project.scenarios(SUITE)
    return project


def limit_of(project: Project, scenario: str) -> dict[str, Any]:
    (check,) = (c for c in project.sample(scenario)["checks"] if c["name"] == "limits.tokens")
    return check


def test_a_limit_is_not_held_by_a_guess_in_place_of_what_was_told(project: Project) -> None:
    project.run("--record", "tape.jsonl")
    check = limit_of(project, "low")
    assert (check["passed"], project.sample("low")["verdict"]) == (None, "inconclusive")
    assert "2 of 2 turns reported unreadable usage" in check["detail"]
    assert limit_of(project, "lower")["passed"] is False
    project.run("--replay", "tape.jsonl")
    assert limit_of(project, "low") == check


def test_it_is_told_once_of_an_agent(project: Project) -> None:
    done = project.run()
    told = [notice["text"] for notice in project.results()["summary"]["notices"]]
    assert len(told) == 1
    assert "agent 'bot' reports usage that cannot be read: {\"spent\": 5020}" in told[0]
    assert done.err.count("reports usage that cannot be read") == 1


def test_where_nothing_is_told_the_limit_is_decided_by_estimates(project: Project) -> None:
    project.config(target="agent.py:silent")
    assert "cannot be read" not in project.run("-s", "low").all
    check = limit_of(project, "low")
    assert (check["passed"], "(estimated)" in check["detail"]) == (True, True)


# ── on the messages of a turn ────────────────────────────────────────────────────────────────────

MESSAGES = """
class Message:
    role = "assistant"
    def __init__(self, content, **more):
        self.content = content
        for name, value in more.items():
            setattr(self, name, value)

def took(tokens_in, tokens_out):
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}

CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}

def turn_of(messages):
    first = {"role": "assistant", "content": "", "tool_calls": [CALL], "usage_metadata": took(300, 100)}
    first["response_metadata"] = {"token_usage": {"prompt_tokens": 300, "completion_tokens": 100}}
    found = {"role": "tool", "tool_call_id": "c", "content": "here"}
    return [messages[-1], first, found, Message("It is here.", usage_metadata=took(500, 100))]

def listed(messages):
    return turn_of(messages)

def whole(messages):
    said = [message["content"] for message in messages if message["role"] == "user"]
    return [each for text in said for each in turn_of([{"role": "user", "content": text}])]

def summed(messages):
    return {"messages": turn_of(messages), "usage": took(800, 200)}

def unread(messages):
    return [*turn_of(messages)[:-1], {"role": "assistant", "content": "Here.", "usage": {"tokens": 4}}]
"""
BOUNDS = """
scenarios:
  - {id: held, turns: [Where?, And now?], expect: {limits: {tokens: 2000}}}
  - {id: exceeded, turns: [Where?, And now?], expect: {limits: {tokens: 1999}}}
"""


@pytest.mark.parametrize("agent", ["listed", "whole", "summed"])
def test_usage_on_messages_is_summed_over_the_turn_and_never_counted_twice(tmp_path: Any, agent: str) -> None:
    project = Project(tmp_path)
    project.agent(MESSAGES)
    project.scenarios(BOUNDS)
    project.config("prices: {bot: {input: 1, output: 10}}", target=f"agent.py:{agent}")
    assert project.run().code == 1
    assert (limit_of(project, "held")["passed"], limit_of(project, "exceeded")["passed"]) == (True, False)
    assert limit_of(project, "held")["detail"].startswith("2,000 tokens")
    for turn in project.sample("held")["turns"]:
        usage = turn["usage"]
        assert (usage["input_tokens"], usage["output_tokens"], usage["estimated"]) == (800, 200, False)
        assert usage["calls"] == (1 if agent == "summed" else 2)
        assert usage["cost"] == pytest.approx(0.0028)


def test_a_usage_of_one_message_that_is_not_understood_decides_no_limit(tmp_path: Any) -> None:
    project = Project(tmp_path)
    project.agent(MESSAGES)
    project.scenarios(BOUNDS)
    project.config(target="agent.py:unread")
    project.run()
    assert limit_of(project, "held")["passed"] is None


def test_blocks_of_one_message_that_repeat_its_usage_count_once() -> None:
    took = {"input_tokens": 5, "output_tokens": 10, "cache_read_input_tokens": 100}
    use = {"type": "tool_use", "id": "t", "name": "find", "input": {}}
    given = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}

    def block(identity: str, part: Any) -> dict[str, Any]:
        return {"role": "assistant", "id": identity, "content": [part], "usage": took}

    text = {"type": "text", "text": "Look."}
    talk = [
        {"role": "user", "content": "Hi"},
        *(block("m1", text), block("m1", use)),
        {"role": "user", "content": [given]},
        block("m2", text),
        {"role": "user", "content": "And?"},
        block("m2", text),
    ]
    recorded = read({"id": "x", "messages": talk}).parsed.trajectory.turns
    assert [(turn.usage.calls, turn.usage.tokens) for turn in recorded] == [(2, 230), (1, 115)]
    live = read_turn(parse_reply(talk[:5]).messages, (Turn(user="Hi"),)).steps
    assert sum(step.usage.tokens for step in live) == 230
    plain = [{"role": "assistant", "id": "m", "content": word, "usage": took} for word in ("One", "Two")]
    live = read_turn(parse_reply(plain).messages, (Turn(user="Hi"),)).steps
    assert sum(step.usage.tokens for step in live) == 115
