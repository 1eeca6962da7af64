"""``expect.tool_calls`` as a check: the turn of a fault, the entry that forbids, and mistakes in entries."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import ToolCallsExpectation
from agenteval.core.trajectory import Step, ToolCall, Turn
from agenteval.scoring.checks.calls import TOOL_CALLS, check_tool_calls, find_tool_call_mistakes
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome


def turn(*names: str, **args: Any) -> Turn:
    calls = tuple(ToolCall(name=name, args=args) for name in names)
    return Turn(user="u", steps=(Step(tool_calls=calls), Step(text="x")))


def outcome(expected: dict[str, Any], *turns: Turn, **more: Any) -> CheckOutcome:
    return check_tool_calls(ToolCallsExpectation.model_validate(expected), CheckInput(turns, **more))


def only(match: str, *names: str) -> dict[str, Any]:
    return {"match": match, "calls": [{"name": name} for name in names]}


def forbidden(*names: str) -> dict[str, Any]:
    return {"forbidden": [{"name": name} for name in names]}


@pytest.mark.parametrize(
    ("expected", "turns", "at"),
    [
        (forbidden("a"), ["b", "a", "a"], 1),
        (forbidden("a"), ["a"], 0),
        (forbidden("a"), ["b"], None),
        (only("contains", "a"), ["b"], None),  # a missing call belongs to no turn
        (only("within", "a"), ["a", "b"], 1),
        (only("strict", "a"), ["a", "b", "c"], 1),
        ({**only("strict", "a"), **forbidden("c")}, ["a", "c", "b"], 1),
        ({**only("strict", "a"), **forbidden("c")}, ["a", "b", "c"], 1),
    ],
)
def test_the_turn_of_the_first_fault(expected: dict[str, Any], turns: list[str], at: int | None) -> None:
    assert outcome(expected, *map(turn, turns)).turn == at


def test_a_fault_in_an_interrupted_turn() -> None:
    found = outcome(forbidden("a"), turn("b"), unfinished=turn("a"))
    assert (found.passed, found.turn) == (False, 1)


@pytest.mark.parametrize(
    ("expected", "turns", "key_path"),
    [
        (forbidden("a", "b"), ["b"], "forbidden.1"),
        (forbidden("a", "b"), ["b", "a"], "forbidden.1"),  # of the first forbidden call
        (forbidden("a"), ["b"], ""),
        ({**only("contains", "c"), **forbidden("a")}, ["a"], ""),  # another fault as well
        ({**only("contains", "c"), **forbidden("a")}, ["a", "c"], "forbidden.0"),
        ({**only("strict", "c"), **forbidden("a")}, ["c", "b"], ""),
        ({**only("strict", "c"), **forbidden("a")}, ["c", "b", "a"], ""),
    ],
)
def test_the_entry_that_forbids_a_call(expected: dict[str, Any], turns: list[str], key_path: str) -> None:
    assert outcome(expected, *map(turn, turns)).key_path == key_path


@pytest.mark.parametrize(
    ("expected", "turns", "is_ongoing", "facts"),
    [
        (only("contains", "a"), ["a"], False, (True, False, False)),
        (only("contains", "a"), ["b"], False, (False, False, True)),
        (forbidden("a"), ["a"], False, (False, True, False)),
        (forbidden("a"), ["a"], True, (False, True, False)),
        (forbidden("a"), ["b"], False, (True, False, True)),
        (only("strict", "a"), ["b"], False, (False, True, False)),
        (only("within", "a"), ["b"], True, (False, True, False)),
        (only("in_order", "a", "b"), ["b"], False, (False, False, True)),
        (only("strict", "a", "b"), ["b"], False, (False, False, True)),  # a may be unseen
        (only("strict", "a", "b"), ["b"], True, (False, True, True)),
    ],
)
def test_what_lasts_and_what_rests_on_absence(
    expected: dict[str, Any], turns: list[str], is_ongoing: bool, facts: tuple[bool, bool, bool]
) -> None:
    found = outcome(expected, *map(turn, turns), is_ongoing=is_ongoing)
    assert (found.passed, found.is_lasting, found.is_by_absence) == facts


def test_faults_are_listed_as_parts() -> None:
    assert [part.split("(")[0] for part in outcome(only("strict", "a"), turn("b")).parts] == [
        "missing a",
        "extra b",
    ]
    assert outcome(only("contains", "a"), turn("a")).parts == ()


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────

OPTIONAL = {"$optional": 1}


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        ({"calls": [{"name": "a"}]}, []),
        ({"calls": [{"name": "a"}, {"name": ""}]}, [("calls", 1, "name")]),
        ({"calls": [{"name": "  "}]}, [("calls", 0, "name")]),
        ({"calls": [{"name": "a", "agent": ""}]}, [("calls", 0, "agent")]),
        ({"calls": [{"name": "", "agent": " "}]}, [("calls", 0, "name"), ("calls", 0, "agent")]),
        ({"forbidden": [{"name": ""}]}, [("forbidden", 0, "name")]),
        ({"any_of": [{"calls": [{"name": ""}]}]}, [("any_of", 0, "calls", 0, "name")]),
        (
            {"any_of": ["none", {"calls": [{"name": "a"}, {"name": ""}]}]},
            [("any_of", 1, "calls", 1, "name")],
        ),
        (
            {"forbidden": [{"name": "a", "args": {"x": OPTIONAL}}]},
            [("forbidden", 0, "args", "x", "$optional")],
        ),
        ({"calls": [{"name": "a", "args": {"x": OPTIONAL}}]}, []),
        ({"forbidden": [{"name": "a", "args": OPTIONAL}]}, [("forbidden", 0, "args", "$optional")]),
        ({"calls": [{"name": "a", "args": OPTIONAL}]}, [("calls", 0, "args", "$optional")]),
        ("none", []),
        (None, []),
        ({"calls": "a"}, []),
        ({"calls": ["a"]}, []),
        ({"any_of": "a"}, []),
        ({"calls": [{"name": 1}]}, []),
    ],
)
def test_mistakes_in_entries(written: Any, paths: list[tuple[Any, ...]]) -> None:
    assert [mistake.path for mistake in find_tool_call_mistakes(written)] == paths


def test_a_wrong_matcher_is_a_mistake() -> None:
    (found,) = find_tool_call_mistakes({"calls": [{"name": "a", "args": {"x": {"$near": 1}}}]})
    assert found.path[:4] == ("calls", 0, "args", "x")


def test_the_rule() -> None:
    (rule,) = TOOL_CALLS
    assert (rule.name, rule.needs_answers) == ("tool_calls", False)
