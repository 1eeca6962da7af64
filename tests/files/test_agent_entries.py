"""The agents of a configuration: their places, kinds and options, and the entries of ``compare``."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.errors import Problem
from agenteval.core.protocols import AgentAdapter
from agenteval.core.registry import Registry
from agenteval.files.agent_entries import (
    adapter_type,
    is_whole_agent,
    iter_agents,
    normalize_options,
    resolve_agents,
)
from agenteval.files.located_value import LocatedValue
from agenteval.files.yaml_source import parse_yaml


class AllNames(Registry[AgentAdapter]):
    """Knows ``python`` and ``http``, and ``other`` from another package."""

    def __contains__(self, name: str) -> bool:
        return name in ("python", "http", "other")


ADAPTERS = AllNames("agent type", "agenteval.tests.no_such_group", {"python": "x:y", "http": "x:y"})


def read(text: str) -> LocatedValue:
    document = parse_yaml(text.encode(), "c.yaml")
    return LocatedValue(document.value, document.mark)


def lines(problems: list[Problem]) -> list[int]:
    return [each.place.line for each in problems if each.place]


@pytest.mark.parametrize(
    ("value", "locs"),
    [
        ({}, []),
        ({"agent": "text", "agents": [], "compare": {}}, []),
        ({"agent": {}}, [("agent",)]),
        (
            {"compare": [{}, "x", {}], "agents": {"a": {}, "b": "x"}, "agent": {}},
            [("agent",), ("agents", "a"), ("compare", 0), ("compare", 2)],
        ),
    ],
)
def test_where_agents_stand(value: dict[str, Any], locs: list[Any]) -> None:
    assert [loc for loc, _ in iter_agents(value)] == locs


@pytest.mark.parametrize(
    ("agent", "kind"),
    [
        ({}, ""),
        ({"type": "other"}, "other"),
        ({"type": "other", "target": "a"}, "other"),
        ({"target": "a"}, "python"),
        ({"endpoint": "a"}, "http"),
        ({"command": "a"}, "command"),
        ({"target": "a", "endpoint": "b"}, ""),
        ({"target": "a", "endpoint": ""}, "python"),
        ({"target": "", "type": ""}, ""),
        ({"type": 3}, "3"),
    ],
)
def test_the_kind_of_an_agent(agent: dict[str, Any], kind: str) -> None:
    assert adapter_type(agent) == kind


@pytest.mark.parametrize(
    ("text", "agent", "problem_lines"),
    [
        ("agent: {target: a, fresh: 1}", {"target": "a", "fresh": 1}, []),
        ("agent: {target: a, options: {fresh: 1}}", {"target": "a", "fresh": 1}, []),
        ("agent: {target: a, options: }", {"target": "a"}, []),
        ("agent: {type: other, x: 1}", {"type": "other", "options": {"x": 1}}, []),
        ("agent: {type: other, options: {x: 1}, y: 2}", {"type": "other", "options": {"x": 1, "y": 2}}, []),
        ("agent: {type: other, options: {name: 1}}", {"type": "other", "options": {"name": 1}}, []),
        ("agent: {type: other}", {"type": "other"}, []),
        (
            "agent: {type: unknown, x: 1, options: {y: 1}}",
            {"type": "unknown", "x": 1, "options": {"y": 1}},
            [],
        ),
        ("agent: {target: a, options: text}", {"target": "a", "options": "text"}, []),
    ],
)
def test_options_are_in_one_place(text: str, agent: dict[str, Any], problem_lines: list[int]) -> None:
    problems: list[Problem] = []
    assert normalize_options(read(text), ADAPTERS, problems).value["agent"] == agent
    assert lines(problems) == problem_lines


@pytest.mark.parametrize("misplaced", ["target: b", "name: b"])
def test_a_key_of_the_agent_is_no_option(misplaced: str) -> None:
    problems: list[Problem] = []
    normalize_options(read(f"agent:\n  target: a\n  options:\n    {misplaced}"), ADAPTERS, problems)
    assert lines(problems) == [4]


def test_an_entry_of_compare_has_the_kind_of_the_agent() -> None:
    found = normalize_options(read("agent: {type: other}\ncompare: [{name: b, x: 1}]"), ADAPTERS, [])
    assert found.value["compare"] == [{"name": "b", "options": {"x": 1}}]


@pytest.mark.parametrize(
    ("entry", "agent", "whole"),
    [
        ({"name": "b"}, {"target": "a"}, False),
        ({"target": "b"}, {"target": "a"}, False),
        ({"endpoint": "b"}, {"target": "a"}, True),
        ({"type": "http"}, {"target": "a"}, True),
        ({"type": "python"}, {"target": "a"}, False),
        ({"type": "python", "target": "b"}, {"target": "a"}, True),
        ({"target": ""}, {"endpoint": "a"}, False),
        ({"target": "b"}, {}, True),
    ],
)
def test_an_entry_that_is_an_agent_of_its_own(
    entry: dict[str, Any], agent: dict[str, Any], whole: bool
) -> None:
    assert is_whole_agent(entry, agent) is whole


def test_agents_are_named_by_their_keys() -> None:
    problems: list[Problem] = []
    text = "agents:\n  a: {target: x}\n  b:\n    name: c\n  d: {name: d}\n"
    found = resolve_agents(read(text), problems)
    assert {key: agent["name"] for key, agent in found.value["agents"].items()} == {
        "a": "a",
        "b": "b",
        "d": "d",
    }
    assert lines(problems) == [4]


def test_entries_of_compare_are_completed() -> None:
    problems: list[Problem] = []
    text = """\
agent: {target: a, timeout_s: 3, secrets: [abcd]}
compare:
- {name: b, timeout_s: 5}
- {name: c, endpoint: h}
- {fresh: true}
"""
    found = resolve_agents(read(text), problems).value["compare"]
    assert found == [
        {"target": "a", "timeout_s": 3, "secrets": ["abcd"]},
        {"target": "a", "timeout_s": 5, "secrets": ["abcd"], "name": "b"},
        {"name": "c", "endpoint": "h", "secrets": ["abcd"]},
        {"target": "a", "timeout_s": 3, "secrets": ["abcd"], "fresh": True, "name": "compare.2"},
    ]
    assert lines(problems) == [5]


@pytest.mark.parametrize("compare", ["", "text", "[]", "[text]", "[{name: b}, text]"])
def test_entries_of_another_shape_are_left_as_they_are(compare: str) -> None:
    config = read(f"agent: {{target: a}}\ncompare: {compare}\n")
    assert resolve_agents(config, []).value == config.value


def test_entries_without_an_agent_to_inherit_from() -> None:
    found = resolve_agents(read("compare: [{name: b, target: x}]"), [])
    assert found.value["compare"] == [{"name": "b", "target": "x"}]
