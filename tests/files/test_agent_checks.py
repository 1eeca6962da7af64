"""The agents of a configuration as written: their kinds, names and options, and where a mistake is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from agenteval.core.errors import Mistake, Problem
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.core.value import Value
from agenteval.files.agent_checks import agent_problems
from agenteval.files.yaml_source import parse_yaml


class PythonOptions(Value):
    target: str
    fresh: bool = False


class HttpOptions(Value):
    endpoint: str
    headers: dict[str, str] = {}
    retries: int = 0


class CommandOptions(Value):
    command: str | list[str]


def no_spaces(written: Mapping[str, Any]) -> Iterator[Mistake]:
    if " " in str(written.get("endpoint")):
        yield Mistake("the endpoint has a space", "remove it", ("endpoint",))
    if written.get("retries") == "many":
        yield Mistake("retries are not many", "use a number", ("retries",))


def never_made(*_: Any) -> Any:
    raise AssertionError


def adapter(options: type[BaseModel], example: str, **more: Any) -> AgentAdapter:
    return AgentAdapter(make=never_made, options=options, example=example, **more)


ADAPTERS: Registry[AgentAdapter] = Registry(
    "agent type",
    "agenteval.tests.no_such_group",
    {
        "python": adapter(PythonOptions, "target: a.py:f"),
        "http": adapter(HttpOptions, "endpoint: http://h", mistakes=no_spaces),
        "command": adapter(CommandOptions, "command: ./a"),
    },
)


def problems(text: str) -> list[Problem]:
    document = parse_yaml(text.encode(), "c.yaml")
    return list(agent_problems(document.value, document.mark, ADAPTERS))


def lines(text: str) -> list[int]:
    return [each.place.line for each in problems(text) if each.place]


def only(text: str) -> Problem:
    (found,) = problems(text)
    assert found.place
    return found


@pytest.mark.parametrize(
    "text",
    [
        "agent: {target: a.py:f}",
        "agent: {target: a.py:f, fresh: true, name: x, timeout_s: 3, calls: all}",
        "agent: {type: http, endpoint: http://h, headers: {a: b}}",
        "agent: {command: ./a}",
        "agent: text",
        "{}",
        "agents: {x: {target: a:b, name: x}, y: {endpoint: http://h, name: y}}",
        "agents: []",
        "agent: {target: a.py:f, endpoint: null}",
    ],
)
def test_agents_that_are_valid(text: str) -> None:
    assert problems(text) == []


# ── which kind ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "line", "what", "remedy"),
    [
        pytest.param("\n  type: htp\n  endpoint: x", 2, ["'htp'"], "http", id="unknown type"),
        pytest.param("\n  name: x", 1, ["endpoint", "target", "command"], "a.py:f", id="no kind"),
        pytest.param(" {}", 1, ["endpoint", "target", "command"], "http://h", id="empty"),
        pytest.param(
            "\n  endpoint: x\n  target: y", 3, ["an endpoint", "a target"], "`type: python`", id="two kinds"
        ),
        pytest.param(
            "\n  command: x\n  endpoint: y", 2, ["an endpoint", "a command"], "http", id="two others"
        ),
        pytest.param("\n  name: x\n  target: ''", 3, ["`target`", "empty"], "target: a.py:f", id="empty key"),
        pytest.param(
            "\n  name: x\n  command: []", 3, ["`command`", "empty"], "command: ./a", id="empty list"
        ),
    ],
)
def test_the_kind_of_an_agent(written: str, line: int, what: list[str], remedy: str) -> None:
    found = only(f"agent:{written}")
    assert found.place
    assert found.place.line == line
    assert all(part in found.what for part in what)
    assert remedy in found.remedy


@pytest.mark.parametrize("key", ["targt", "Target", "endpont", "comand"])
def test_a_misspelt_kind_is_reported_once(key: str) -> None:
    found = only(f"agent:\n  {key}: x")
    assert f"'{key}'" in found.what
    assert "did you mean" in found.remedy


def test_options_are_checked_though_the_kind_is_unknown() -> None:
    text = "agent:\n  name: x\n  odd: 1\n  retries: many\n  headers: 3\n  type: htp"
    assert [(each.place.line, "odd" in each.what) for each in problems(text) if each.place] == [
        (6, False),
        (3, True),
        (5, False),
        (4, False),
    ]


# ── options ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "line", "what", "remedy"),
    [
        pytest.param("target: x\n  fesh: true", 3, ["'fesh'"], "'fresh'", id="misspelt"),
        pytest.param("target: x\n  nme: true", 3, ["'nme'"], "'name'", id="misspelt common key"),
        pytest.param("target: x\n  headers: {}", 3, ["python", "'headers'"], "type", id="of another kind"),
        pytest.param("endpoint: x\n  retries: []", 3, ["retries"], "", id="of another type"),
        pytest.param("endpoint: x\n  headers:\n    a: [1]", 4, ["headers"], "", id="deeper"),
        pytest.param("type: http\n  retries: 3", 1, ["endpoint"], "", id="missing"),
        pytest.param("endpoint: a b", 2, ["space"], "remove", id="the adapter's own"),
        pytest.param("endpoint: x\n  retries: many", 3, ["not many"], "number", id="the adapter's own alone"),
        pytest.param("target: x\n  tools: visible", 3, ["`tools`"], "`calls: all`", id="former key"),
        pytest.param("target: x\n  tools: none", 3, ["`tools`"], "`calls: unseen`", id="former key, none"),
        pytest.param("target: x\n  tools: [a]", 3, ["`tools`"], "`calls: unseen`", id="former key, a list"),
    ],
)
def test_options(written: str, line: int, what: list[str], remedy: str) -> None:
    found = only(f"agent:\n  {written}")
    assert found.place
    assert found.place.line == line
    assert all(part in found.what for part in what)
    assert remedy in found.remedy


def test_an_option_of_another_kind_without_a_value_is_nothing() -> None:
    assert problems("agent: {target: a:b, headers: null}") == []


def test_options_are_no_suggestion_for_a_built_in_kind() -> None:
    assert "options" not in only("agent: {target: a:b, option: 1}").remedy


def test_a_former_key_is_named_though_the_kind_is_unknown() -> None:
    found = problems("agent:\n  type: htp\n  tools: visible")
    assert ["`tools`" in each.what for each in found] == [False, True]


# ── several agents ───────────────────────────────────────────────────────────────────────────────


def test_each_agent_is_checked() -> None:
    text = """\
agent:
  targt: x
agents:
  a:
    target: x
    odd: 1
    name: a
compare:
- name: b
- target: y
  name: c
  odd: 1
"""
    assert lines(text) == [2, 6, 9, 12]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("agents:\n  x: {target: a, name: n}\n  y: {target: b, name: n}", [(3, 2)], id="two"),
        pytest.param(
            "agent: {target: a}\nagents:\n  x: {target: b, name: agent}",
            [(3, 1)],
            id="that of an unnamed one",
        ),
        pytest.param(
            "agents:\n  x: {target: a, name: n}\n  y: {target: b, name: n}\n  z: {target: c, name: n}",
            [(3, 2), (4, 2)],
            id="three",
        ),
        pytest.param(
            "agent: {target: a, name: n}\ncompare:\n- {target: a, name: n}", [], id="the primary agent"
        ),
        pytest.param("compare:\n- {target: a, name: n}\n- {target: b, name: n}", [(3, 2)], id="in compare"),
        pytest.param("agents:\n  x: {target: a, name: n}\n  y: {target: b, name: N}", [], id="other case"),
        pytest.param(
            "agent: {target: a, name: n}\nagents: {x: {target: a, name: n}}\ncompare: []",
            [(2, 1)],
            id="no compare",
        ),
    ],
)
def test_names_are_used_once(text: str, found: list[tuple[int, int]]) -> None:
    named = [each for each in problems(text) if "already" in each.what]
    assert named == problems(text)
    assert [each.place.line for each in named if each.place] == [line for line, _ in found]
    assert all(f"c.yaml:{first}" in each.what for each, (_, first) in zip(named, found, strict=True))
