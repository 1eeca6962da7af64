"""Usage as agents report it: what is read, and what is told of where it is not understood."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from agenteval.core.trajectory import Usage
from agenteval.messages.reported_usage import read_usage, unread_usage
from tests.support.kit import Project


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


NOT_UNDERSTOOD: list[Any] = [
    {"total_tokens": 52},
    {"input_tokens": 50},
    {"input_tokens": -50, "output_tokens": 2},
    {"input_tokens": 50.5, "output_tokens": 2},
    {"input_tokens": float("nan"), "output_tokens": float("inf")},
    {"input_tokens": True, "output_tokens": 2},
    {"input_tokens": "fifty", "output_tokens": 2},
    {"output_tokens": 53, "total_tokens": 52},
    {"inputTokens": {"total": 50}, "outputTokens": {"total": 2}},
    [50, 2],
    "52 tokens",
    52,
    Model,
]


@pytest.mark.parametrize("value", NOT_UNDERSTOOD, ids=str)
def test_usage_that_is_not_understood(value: Any) -> None:
    assert read_usage(value) is None
    assert unread_usage(value)


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
    return {"role": "assistant", "content": "all ok", "usage": {"total_tokens": 5020}}
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
    assert "2 of 2 turns reported usage that cannot be read" in check["detail"]
    assert limit_of(project, "lower")["passed"] is False
    project.run("--replay", "tape.jsonl")
    assert limit_of(project, "low") == check


def test_it_is_told_once_of_an_agent(project: Project) -> None:
    done = project.run()
    told = [notice["text"] for notice in project.results()["summary"]["notices"]]
    assert len(told) == 1
    assert "agent 'bot' reports usage that cannot be read: {\"total_tokens\": 5020}" in told[0]
    assert done.err.count("cannot be read") == 1


def test_where_nothing_is_told_the_limit_is_decided_by_estimates(project: Project) -> None:
    project.config(target="agent.py:silent")
    assert "cannot be read" not in project.run("-s", "low").all
    check = limit_of(project, "low")
    assert (check["passed"], "(estimated)" in check["detail"]) == (True, True)
