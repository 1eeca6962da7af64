"""Values that a question gives away although an expected call is to look them up."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.scoring.checks.leaked_lookups import (
    LeakedLookup,
    describe_leak,
    find_leaked_lookups,
    find_observed_leaks,
)

QUESTION = "What is the API call limit of the Basic plan, and what is 10000 divided by 30?"
LIMIT = {"name": "plan", "args": {"name": "Basic"}}
DIVIDE = {"name": "calculator", "args": {"expression": "10000 / 30"}}
TEXT = {"type": "string"}


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


PLAN: dict[str, Any] = {
    "returns": {"name": "Basic", "calls": 10000},
    "parameters": parameters(name=TEXT),
}
CALCULATOR: dict[str, Any] = {"returns": "333.33", "parameters": parameters(expression=TEXT)}


def made(
    *calls: Any,
    user: str = QUESTION,
    plan: Any = PLAN,
    turns: Any = None,
    match: str = "contains",
    **more: Any,
) -> Scenario:
    expect = {"tool_calls": {"calls": list(calls), "match": match}} if calls else {}
    written = {
        "id": "s",
        "tools": {"plan": plan, "calculator": CALCULATOR},
        "turns": turns or [user],
        "expect": expect,
        **more,
    }
    return Scenario.model_validate(written)


def leaks(*calls: Any, **more: Any) -> list[LeakedLookup]:
    return list(find_leaked_lookups(made(*calls, **more)))


def case(tools: list[str], texts: list[str], **more: Any) -> Scenario:
    return made(case={"expected_tools": tools, "expected_output_contains": texts}, **more)


def divide(expression: Any) -> dict[str, Any]:
    return {"name": "calculator", "args": {"expression": expression}}


def test_the_value_its_look_up_and_its_use() -> None:
    (leak,) = leaks(LIMIT, DIVIDE)
    assert leak == LeakedLookup(
        10000, "plan", "expect.tool_calls", "calculator", "expression", "expect.tool_calls"
    )


@pytest.mark.parametrize("match", ["contains", "in_order", "unordered", "strict"])
def test_what_is_looked_up_is_written_first(match: str) -> None:
    assert len(leaks(LIMIT, DIVIDE, match=match)) == 1
    assert leaks(DIVIDE, LIMIT, match=match) == []


@pytest.mark.parametrize(
    ("user", "found"),
    [
        ("Divide the 10,000 calls of Basic by 30.", 1),
        ("Divide the 10000 of Basic by 30.", 1),
        ("divide the 10000 of basic by 30", 1),
        ("Divide the limit of Basic by 30.", 0),
        ("Divide 10000.5 of Basic by 30.", 0),
        ("Divide 110000 of Basic by 30.", 0),
        ("Divide 10000 by 30.", 0),  # the plan comes from elsewhere, so the call needs another one
        ("How much is 10000 of Basic?", 0),  # what to divide by comes from elsewhere
    ],
)
def test_the_question_has_the_value_and_all_other_arguments(user: str, found: int) -> None:
    assert len(leaks(LIMIT, DIVIDE, user=user)) == found


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("10000 / 30", 1),
        ({"$regex": r"^10000\s*/\s*30$"}, 1),
        ({"$regex": r"10000[0-9]{2}.*40"}, 0),  # 40 is not in the question
        ({"$regex": "10000.*30"}, 1),
        ({"$in": ["10000 / 30", "10000/30"]}, 1),
        ({"$optional": "10000"}, 1),
        ({"$approx": 10000}, 1),
        ({"$approx": {"value": 10000, "abs": 1}}, 1),
        ({"$any": True}, 0),
        ("30 / 30", 0),
        (["10000", 30], 1),
        ({"a": {"b": 10000}}, 1),
    ],
)
def test_the_argument_that_passes_the_value_on(expression: Any, found: int) -> None:
    assert len(leaks(LIMIT, divide(expression))) == found


@pytest.mark.parametrize(
    ("returns", "found"),
    [
        (10000, 1),
        ("10000", 1),
        ('{"calls": 10000}', 1),
        ([{"calls": 10000}], 1),
        ([{"calls": 10000}, {"calls": 500}], 0),  # the user chooses
        ({"calls": "${args.name}"}, 0),
        ({"calls": 100000}, 0),
        ({"calls": True}, 0),
        ("The limit is 10000 calls.", 0),  # prose is not taken apart
        (None, 0),
    ],
)
def test_what_the_look_up_returns(returns: Any, found: int) -> None:
    assert len(leaks(LIMIT, DIVIDE, plan={"returns": returns})) == found


@pytest.mark.parametrize(
    ("plan", "found"),
    [
        ({"sequence": [{"error": "down"}, {"returns": 10000}]}, 1),
        ({"error": "10000"}, 0),
        ({"python": "mocks.py:plan"}, 0),
        ({}, 0),
    ],
)
def test_only_fixed_answers_are_known_before_a_run(plan: Any, found: int) -> None:
    assert len(leaks(LIMIT, DIVIDE, plan=plan)) == found


ORDER = "Please cancel order ORD-42."
CANCEL = {"name": "calculator", "args": {"id": "ORD-42"}}


@pytest.mark.parametrize(
    ("args", "schema", "found"),
    [
        ({"id": "ORD-42"}, None, 0),  # the user gives the number, and the tool gets it
        ({"id": {"$any": True}}, None, 0),
        ({"id": {"$regex": "^ORD-"}}, None, 0),
        ({"id": {"$regex": "^ORD-9"}}, None, 0),
        ({"filter": {"ids": ["ORD-42"]}}, None, 0),
        ({}, None, 1),
        (None, None, 0),  # any arguments: nobody knows
        (None, parameters(id=TEXT), 0),
        (None, parameters(id={"type": ["string", "null"]}), 0),
        (None, parameters(number={"type": "integer"}), 1),
        (None, parameters(filter={"type": "object"}), 0),
        (None, parameters(filter={}), 0),
        (None, parameters(), 1),
    ],
)
def test_a_value_that_the_look_up_is_given_is_not_given_away(args: Any, schema: Any, found: int) -> None:
    look = {"name": "plan", **({} if args is None else {"args": args})}
    plan = {"returns": {"id": "ORD-42"}, **({"parameters": schema} if schema else {})}
    assert len(leaks(look, CANCEL, user=ORDER, plan=plan)) == found


def test_further_arguments_of_a_partly_expected_call() -> None:
    look = {"name": "plan", "args": {"by": "order"}, "args_match": "partial"}
    for kind, found in (("string", 0), ("integer", 1)):
        plan = {"returns": {"id": "ORD-42"}, "parameters": parameters(by=TEXT, id={"type": kind})}
        assert len(leaks(look, CANCEL, user=ORDER, plan=plan)) == found


@pytest.mark.parametrize(
    ("lookup", "use"),
    [
        ({"times": {"at_least": 0, "at_most": 1}}, {}),
        ({}, {"times": {"at_least": 0, "at_most": 1}}),
        ({"result": "error"}, {}),
    ],
)
def test_both_calls_are_required(lookup: Any, use: Any) -> None:
    assert leaks({**LIMIT, **lookup}, {**DIVIDE, **use}) == []


def test_a_second_call_of_the_same_tool_is_no_use() -> None:
    assert leaks(LIMIT, {"name": "plan", "args": {"name": "10000"}}) == []


def test_calls_of_different_alternatives_are_never_made_together() -> None:
    either = {"tool_calls": {"any_of": [{"calls": [LIMIT]}, {"calls": [DIVIDE]}]}}
    both = {"tool_calls": {"any_of": [{"calls": [LIMIT, DIVIDE]}, "none"]}}
    assert (len(leaks(expect=either)), len(leaks(expect=both))) == (0, 1)


def turn(user: str, *calls: Any) -> dict[str, Any]:
    return {"user": user, "expect": {"tool_calls": {"calls": list(calls)}}}


def test_what_is_said_later_may_repeat_what_the_agent_said() -> None:
    assert leaks(turns=[turn("Limit of Basic?", LIMIT), turn("10000 / 30?", DIVIDE)]) == []
    assert leaks(turns=["Hello!", turn(QUESTION, LIMIT, DIVIDE)]) == []
    (leak,) = leaks(turns=[turn(QUESTION, LIMIT), turn("And now?", DIVIDE)])
    assert (leak.lookup_path, leak.path) == ("turns.0.expect.tool_calls", "turns.1.expect.tool_calls")
    assert leaks(turns=[turn(QUESTION, DIVIDE), turn("And now?", LIMIT)]) == []


def test_a_simulated_user_says_nothing_that_is_known_before() -> None:
    assert leaks(LIMIT, DIVIDE, turns=[{"simulate": 2}], goal="Divide 10000 of Basic by 30.") == []


# ── the short form ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tools", "texts", "found"),
    [
        (["plan", "calculator"], ["10000", "333"], 1),
        (["plan", "calculator"], ["10,000"], 1),
        (["plan", "calculator"], ["333"], 0),
        (["plan", "calculator"], ["Basic"], 0),
        (["plan"], ["10000"], 0),
        (["calculator", "plan"], ["10000"], 0),
        (["plan", "calculator"], [], 0),
    ],
)
def test_without_arguments_the_expected_answer_has_the_value(
    tools: list[str], texts: list[str], found: int
) -> None:
    assert [leak.argument for leak in find_leaked_lookups(case(tools, texts))] == [""] * found


def test_without_arguments_a_plain_word_proves_nothing() -> None:
    plan = {"returns": {"status": "shipped", "left": 7}, "parameters": parameters()}
    fields = {"user": "Is it shipped? If so, write to the other 7.", "plan": plan}
    assert list(find_leaked_lookups(case(["plan", "calculator"], ["shipped"], **fields))) == []
    assert len(list(find_leaked_lookups(case(["plan", "calculator"], ["7"], **fields)))) == 1


@pytest.mark.parametrize("key", ["contains", "cites"])
def test_without_arguments_in_the_long_form(key: str) -> None:
    calls = [{"name": "plan"}, {"name": "calculator"}]
    expect = {"tool_calls": {"calls": calls}, "output": {key: ["10000 calls"]}}
    (leak,) = leaks(expect=expect)
    assert (leak.argument, leak.path) == ("", f"expect.output.{key}")


# ── what a run shows ─────────────────────────────────────────────────────────────────────────────


def call(name: str, args: Any, value: Any, **more: Any) -> ToolCall:
    return ToolCall(name=name, args=args, result=None if value is None else ToolResult(value=value), **more)


FOUND = call("plan", {"name": "Basic"}, {"name": "Basic", "calls": 10000})
PYTHON = {"python": "mocks.py:plan"}


@pytest.mark.parametrize(
    ("plan", "calls", "found"),
    [
        (PYTHON, [FOUND], 1),
        ({}, [FOUND], 1),
        (PYTHON, [FOUND, FOUND], 1),
        (PYTHON, [], 0),
        (PLAN, [FOUND], 0),  # known before the run
        (PYTHON, [call("plan", {"name": "Basic"}, {"error": "10000"})], 0),
        (PYTHON, [call("plan", {"name": "Basic"}, None)], 0),
        (PYTHON, [call("plan", None, 10000)], 0),
        (PYTHON, [call("plan", {"limit": 10000}, 10000)], 0),
        (PYTHON, [call("plan", {"name": "Basic at 10000"}, 10000)], 0),
        (PYTHON, [FOUND, call("plan", {"limit": 10000}, 10000)], 0),
        (PYTHON, [call("other", {}, 10000)], 0),
    ],
)
def test_what_was_observed(plan: Any, calls: list[ToolCall], found: int) -> None:
    assert len(list(find_observed_leaks(made(LIMIT, DIVIDE, plan=plan), calls))) == found
    assert len(list(find_observed_leaks(case(["plan", "calculator"], ["10000"], plan=plan), calls))) == found


def test_the_words_name_value_calls_argument_and_places() -> None:
    lines = {"turns.0": 3, "expect.tool_calls": 5}
    scenario = made(LIMIT, DIVIDE, source="a.yaml:1", lines=lines)
    (leak,) = find_leaked_lookups(scenario)
    text = describe_leak(leak, scenario)
    for part in ("'s'", "a.yaml:3", "'10000'", "'plan'", "a.yaml:5", "`expression`", "'calculator'"):
        assert part in text
