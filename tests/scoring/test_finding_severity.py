"""The subject of a finding (cited call, effect of its tool, outcome) and the resulting severity."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.call_outcomes import CallOutcome
from agenteval.core.scenario import Tool
from agenteval.core.score import Finding, References, Severity
from agenteval.core.severity import Act
from agenteval.core.tool_effects import ToolEffect
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.finding_severity import (
    build_act,
    find_cited_act,
    find_cited_calls,
    get_cited_tool,
    list_possible_acts,
    rate_finding,
)
from tests.support.detector_samples import call, failing, turn
from tests.support.trajectories import seen

LOW, MEDIUM, HIGH, CRITICAL = Severity
READS, WRITES, UNKNOWN = ToolEffect
TOOLS = {
    "look": Tool(reads=True),
    "book": Tool(writes=True),
    "wipe": Tool(destructive=True),
    "odd": Tool(),
}
TOOL_CALLS, BEHAVIOR = "tool_call_behavior_failure", "agent_behavior_failure"


def finding(label: str, metric: str = TOOL_CALLS, **more: Any) -> Finding:
    return Finding(detector="judge", metric=metric, label=label, severity=LOW, **more)


TALK = seen(
    (
        turn("a", call("look"), call("book"), "It is booked."),
        turn("b", failing("book"), "No."),
        turn("c", call("odd"), call("odd"), "Odd."),
        turn("d", "Nothing."),
    )
)
CALLS = TALK.tool_calls


def numbers(found: Any) -> list[int]:
    return [next(at for at, each in enumerate(CALLS) if each is one) for one in found]


OTHER = References(call=0, other_call=2)


@pytest.mark.parametrize(
    ("found", "cited"),
    [
        (finding("wrong tool", call=0), [0]),
        (finding("wrong tool", call=4), [4]),
        (finding("wrong tool", call=5), []),
        (finding("wrong tool", call=-1), []),
        (finding("wrong tool", BEHAVIOR, call=1), [1]),
        (finding("repeated tool call", call=0, references=References(other_call=2)), [2]),
        (finding("repeated tool call", call=2, references=References(other_call=0)), [2]),
        (finding("wrong order", call=0, references=References(other_call=2)), [0]),
        (finding("repeated tool call", references=References(other_call=2), turn=2), [3, 4]),
        # Without a call: the tool of the turn, if there is only one.
        (finding("wrong tool", turn=0), []),
        (finding("wrong tool", turn=1), [2]),
        (finding("wrong tool", turn=2), [3, 4]),
        (finding("wrong tool", turn=3), []),
        (finding("wrong tool", turn=4), []),
        (finding("wrong tool", turn=-1), []),
        (finding("wrong tool"), []),
        (finding("missing tool call", turn=1), []),
        (finding("wrong tool", BEHAVIOR, turn=1), []),
        # A false claim cites calls that had no effect.
        (finding("false claim of action", BEHAVIOR, turn=0), []),
        (finding("false claim of action", BEHAVIOR, turn=1), [2]),
        (finding("false claim of action", BEHAVIOR, turn=1, references=References(tool="wipe")), []),
        (finding("false claim of action", BEHAVIOR, turn=1, call=0), [0]),
    ],
)
def test_which_calls_a_finding_cites(found: Finding, cited: list[int]) -> None:
    assert numbers(find_cited_calls(found, [each.tool_calls for each in TALK.turns])) == cited


@pytest.mark.parametrize(
    ("name", "effect"),
    [("look", READS), ("book", WRITES), ("wipe", WRITES), ("get_order", READS), ("delete_order", WRITES)],
)
def test_the_act_of_a_call(name: str, effect: ToolEffect) -> None:
    assert build_act(call(name), TOOLS) == Act(effect, CallOutcome.SUCCEEDED)
    assert build_act(failing(name), TOOLS) == Act(effect, CallOutcome.FAILED)
    without = call(name).model_copy(update={"result": None})
    assert build_act(without, TOOLS) == Act(effect, CallOutcome.OPEN)


CLAIM = "false claim of action"


@pytest.mark.parametrize(
    ("found", "act"),
    [
        (finding("wrong tool", call=0), Act(READS, CallOutcome.SUCCEEDED)),
        (finding("wrong tool", call=2), Act(WRITES, CallOutcome.FAILED)),
        (finding("wrong tool", call=9), None),
        (finding("wrong tool", call=9, references=References(tool="book")), Act(WRITES)),
        (finding("missing tool call", references=References(tool="look")), Act(READS)),
        (finding("missing tool call"), None),
        (finding("false information", BEHAVIOR), None),
        (finding(CLAIM, BEHAVIOR, turn=1), Act(WRITES, CallOutcome.FAILED)),
        (finding(CLAIM, BEHAVIOR, references=References(tool="look")), Act(READS)),
        (finding(CLAIM, BEHAVIOR), Act(WRITES)),  # any tool that was never called: wipe
    ],
)
def test_the_cited_act(found: Finding, act: Act | None) -> None:
    assert find_cited_act(found, TALK, TOOLS) == act


def test_of_several_acts_the_most_severe_counts() -> None:
    mixed = Trajectory(
        turns=(turn("a", failing("book"), failing("look", "no"), call("book", {"changed": 0}), "Done."),)
    )
    found = find_cited_act(finding(CLAIM, BEHAVIOR, turn=0), mixed, TOOLS)
    assert found == Act(WRITES, CallOutcome.SUCCEEDED)
    reversed_turn = Trajectory(turns=(turn("a", failing("look"), failing("book"), "Done."),))
    assert find_cited_act(finding(CLAIM, BEHAVIOR, turn=0), reversed_turn, TOOLS) == Act(
        WRITES, CallOutcome.FAILED
    )
    uncalled = {"look": TOOLS["look"], "book": TOOLS["book"]}
    assert find_cited_act(finding(CLAIM, BEHAVIOR), Trajectory(), uncalled) == Act(WRITES)
    assert find_cited_act(finding(CLAIM, BEHAVIOR), TALK, uncalled) is None  # both were called


def test_acts_that_a_finding_might_cite() -> None:
    one = seen((turn("a", call("look"), "x"),))
    acts = list_possible_acts(one, {"book": TOOLS["book"]}, ["get_it"])
    assert acts[:2] == [None, Act(READS, CallOutcome.SUCCEEDED)]
    assert set(acts[2:]) == {Act(WRITES), Act(READS)}
    unseen = one.model_copy(update={"visibility": None})
    assert list_possible_acts(unseen, {}, [])[2:] == [Act(WRITES, CallOutcome.OPEN)]
    assert list_possible_acts(seen(), {}, []) == [None]


@pytest.mark.parametrize(
    ("found", "tool"),
    [
        (finding("wrong tool", call=1), "book"),
        (finding("missing tool call", references=References(tool="wipe")), "wipe"),
        (finding("wrong tool", call=1, references=References(tool="wipe")), "book"),
        (finding("false information", BEHAVIOR), ""),
    ],
)
def test_the_cited_tool(found: Finding, tool: str) -> None:
    assert get_cited_tool(found, TALK) == tool


PERMISSION: dict[str, Any] = {"rule_kind": "permission"}


@pytest.mark.parametrize(
    ("found", "severity"),
    [
        (finding("wrong tool", call=0), HIGH),
        (finding("wrong tool", call=1), CRITICAL),  # it changed something
        (finding("wrong tool", call=2), HIGH),  # it failed
        (finding("repeated tool call", call=0), MEDIUM),
        (finding(CLAIM, BEHAVIOR, turn=1), CRITICAL),
        (finding(CLAIM, BEHAVIOR, references=References(tool="look")), HIGH),
        (finding("policy violation", evidence="It is booked.", **PERMISSION), CRITICAL),
        (finding("policy violation", evidence="It is booked.", carried_out=False, **PERMISSION), HIGH),
        (finding("policy violation", call=0, evidence="It is booked.", **PERMISSION), CRITICAL),
        (finding("policy violation", call=0, evidence="look()", **PERMISSION), HIGH),
        (finding("policy violation", call=1, evidence="book()", **PERMISSION), CRITICAL),
        (finding("policy violation", rule_kind="style", call=1), LOW),
        (finding("policy violation", rule_kind="disclosure", evidence="It is booked."), MEDIUM),
        (finding("policy violation"), MEDIUM),
        (finding("repetition", BEHAVIOR), LOW),
        (finding("unknown label", BEHAVIOR), MEDIUM),
    ],
)
def test_the_severity_of_the_effect(found: Finding, severity: Severity) -> None:
    assert rate_finding(found, TALK, TOOLS).severity is severity


def test_the_severity_of_the_author_comes_first() -> None:
    found = finding("policy violation", call=1, **PERMISSION)
    by_kind = {"policy violation.permission": LOW, "policy violation": HIGH}
    assert rate_finding(found, TALK, TOOLS, by_kind).severity is LOW
    assert rate_finding(found, TALK, TOOLS, {"policy violation": HIGH}).severity is HIGH
    assert rate_finding(found, TALK, TOOLS, {"wrong tool": LOW}).severity is CRITICAL
    kept = finding("repetition", BEHAVIOR)
    assert rate_finding(kept, TALK, TOOLS) is kept
