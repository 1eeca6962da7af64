"""The marks that tools get from the hints of the agents' own tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agenteval.core.protocols import AgentTool
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.planning.tool_hints import apply_tool_hints

READS = AgentTool("t", hints={"readOnlyHint": True})
WRITES = AgentTool("t", hints={"readOnlyHint": False})
DESTROYS = AgentTool("t", hints={"destructiveHint": True})
UNKNOWN = AgentTool("t", hints={"idempotentHint": True})
BARE = AgentTool("t")
OTHER = AgentTool("other", hints={"readOnlyHint": True})


def samples(*agents: str, tools: Mapping[str, Any] | None = None) -> list[Sample]:
    made = Scenario.model_validate({"id": "a", "tools": tools or {"t": {"returns": 1}}})
    return [Sample(key=SampleKey(scenario="a", agent=agent), scenario=made) for agent in agents]


@pytest.mark.parametrize(
    ("tools", "marks"),
    [
        ({"x": [READS]}, (True, False)),
        ({"x": [WRITES]}, (False, True)),
        ({"x": [DESTROYS]}, (False, True)),
        ({"x": [UNKNOWN]}, (False, False)),
        ({"x": [BARE]}, (False, False)),
        ({"x": [OTHER]}, (False, False)),
        ({}, (False, False)),
        ({"x": [READS], "y": [READS]}, (True, False)),
        ({"x": [READS], "y": [WRITES]}, (False, False)),  # they conflict
        ({"x": [READS], "y": [BARE]}, (True, False)),
        ({"x": [READS], "y": [UNKNOWN]}, (True, False)),
        ({"x": [BARE], "y": [WRITES]}, (False, True)),
        ({"x": [READS, WRITES]}, (False, False)),
        ({"z": [READS]}, (False, False)),  # it does not play the scenario
    ],
)
def test_hints_mark_a_tool(tools: Mapping[str, Sequence[AgentTool]], marks: tuple[bool, bool]) -> None:
    found = apply_tool_hints(samples("x", "y"), tools)
    assert [(each.scenario.tools["t"].reads, each.scenario.tools["t"].writes) for each in found] == [
        marks
    ] * 2


@pytest.mark.parametrize(
    ("own", "marks"),
    [
        ({"writes": True}, (False, True, False)),
        ({"destructive": True}, (False, False, True)),
        ({"reads": True}, (True, False, False)),
    ],
)
def test_the_authors_mark_takes_precedence(own: Any, marks: tuple[bool, bool, bool]) -> None:
    for hint in (READS, WRITES):
        (sample,) = apply_tool_hints(samples("x", tools={"t": own}), {"x": [hint]})
        tool = sample.scenario.tools["t"]
        assert (tool.reads, tool.writes, tool.destructive) == marks


def test_only_the_hinted_tool_is_marked_and_nothing_is_copied_without_need() -> None:
    tools = {"t": {"returns": 1}, "u": {"returns": 2}}
    before = samples("x", tools=tools)
    (after,) = apply_tool_hints(before, {"x": [READS]})
    assert list(after.scenario.tools) == ["t", "u"]
    assert (after.scenario.tools["t"].reads, after.scenario.tools["u"].reads) == (True, False)
    assert after.scenario.tools["t"].returns == 1
    assert apply_tool_hints(before, {"x": [BARE]})[0] is before[0]
    assert apply_tool_hints([], {}) == ()
