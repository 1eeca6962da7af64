"""Calls that the author of a scenario expects at their very turn: these need no yes of the user."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.scenario import ExpectedCall, Scenario
from agenteval.core.trajectory import Trajectory, Turn
from agenteval.scoring.checks.arguments import call_matches


def expected_calls(scenario: Scenario, trajectory: Trajectory) -> frozenset[int]:
    """Their numbers, from 0 over all calls of the conversation."""
    found = set()
    number = 0
    for turn in trajectory.all_turns:
        expected = tuple(_expected_at(turn, scenario))
        for call in turn.tool_calls:
            if any(call_matches(each, call) for each in expected):
                found.add(number)
            number += 1
    return frozenset(found)


def _expected_at(turn: Turn, scenario: Scenario) -> Iterator[ExpectedCall]:
    """Of a scenario of one turn, what is expected of the whole is expected of that turn."""
    of_turn = scenario.turn_expectation(turn)
    is_only_turn = scenario.turns is not None and len(scenario.turns) == 1
    for expect in (of_turn, scenario.expect if is_only_turn else None):
        if expect and expect.tool_calls:
            yield from expect.tool_calls.expected_calls
    if scenario.case:
        yield from (ExpectedCall(name=name) for name in scenario.case.tools)
