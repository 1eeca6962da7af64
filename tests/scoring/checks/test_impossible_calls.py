"""Expected calls that a scenario itself makes impossible, each with its place and its tool."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from agenteval.core.scenario import Scenario
from agenteval.scoring.checks.impossible_calls import NEARLY_THE_SAME, ImpossibleCall, find_impossible_calls

PARAMETERS = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "currency": {"enum": ["EUR", "USD"]},
        "memo": {"type": "string"},
    },
    "required": ["amount"],
    "additionalProperties": False,
}
TOOLS = {"pay": {"returns": 1, "parameters": PARAMETERS}, "search": {"returns": 1}}


def impossible(
    expect: Any = None, *, others: Collection[str] | None = (), tools: Any = TOOLS, **more: Any
) -> list[ImpossibleCall]:
    written = {"id": "s", "tools": tools, **({"expect": {"tool_calls": expect}} if expect else {}), **more}
    return list(find_impossible_calls(Scenario.model_validate(written), others))


def calls(*names: str, **more: Any) -> dict[str, Any]:
    return {"calls": [{"name": name} for name in names], **more}


def pay(args: Any, **more: Any) -> dict[str, Any]:
    return {"calls": [{"name": "pay", "args": args, **more}]}


# ── undeclared tools ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "others", "suggested"),
    [
        ("search", (), None),
        ("serach", (), "search"),
        ("serach", None, None),  # 0.83: not close enough if the agent may have any tools
        ("searchh", None, "search"),
        ("searches", (), "search"),
        ("searches", None, "search"),
        ("refund", (), ""),
        ("refund", None, None),
        ("refund", ("refund",), None),
        ("refund", ("other",), ""),
        ("searchh", ("searchh",), None),
    ],
)
def test_a_tool_that_is_not_declared(
    name: str, others: tuple[str, ...] | None, suggested: str | None
) -> None:
    found = impossible(calls(name), others=others)
    assert [(each.path, each.tool) for each in found] == (
        [] if suggested is None else [("expect.tool_calls", name)]
    )
    for each in found:
        assert ("search" in each.why) is bool(suggested)


def test_without_declared_tools_any_tool_may_exist() -> None:
    assert impossible(calls("refund"), tools={}) == []


def test_what_is_nearly_the_same() -> None:
    assert NEARLY_THE_SAME == 0.85


# ── arguments that the schema rejects ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("args", "more", "is_impossible"),
    [
        ({"amount": 3}, {}, False),
        ({"amount": "3"}, {}, True),
        ({"amount": 0}, {}, True),
        ({"amount": 3, "currency": "EUR"}, {}, False),
        ({"amount": 3, "currency": "CHF"}, {}, True),
        ({"amount": 3, "note": "x"}, {}, True),
        ({}, {}, True),  # a required argument is missing
        ({}, {"args_match": "partial"}, False),
        ({"amount": "3"}, {"args_match": "partial"}, True),
        ({"amount": "3"}, {"args_match": "ignore"}, False),
        ({"amount": "3"}, {"result": "error"}, False),
        ({"amount": "3"}, {"result": "ok"}, True),
        ({"amount": "3"}, {"times": {"at_least": 0, "at_most": 2}}, False),
        ({"amount": "3"}, {"times": {"at_least": 1}}, True),
        ({"amount": "3"}, {"times": 2}, True),
        # Matchers: impossible only if every value is.
        ({"amount": {"$any": True}}, {}, False),
        ({"amount": {"$in": ["a", "b"]}}, {}, True),
        ({"amount": {"$in": ["a", 2]}}, {}, False),
        ({"amount": {"$regex": "3"}}, {}, True),
        ({"amount": {"$approx": 3}}, {}, False),
        ({"amount": {"$approx": 0}}, {}, False),  # only the type is compared
        ({"amount": 3, "currency": {"$regex": "E"}}, {}, False),
        ({"amount": {"$optional": "x"}}, {}, False),
        ({"amount": 3, "note": {"$regex": "x"}}, {}, True),
        ({"amount": 3, "memo": {"$approx": 3}}, {}, True),
        ({"amount": 3, "memo": {"$regex": "x"}}, {}, False),
        ({"amount": 3, "note": {"$optional": "x"}}, {}, False),
    ],
)
def test_arguments_and_the_schema(args: dict[str, Any], more: dict[str, Any], is_impossible: bool) -> None:
    assert bool(impossible(pay(args, **more))) is is_impossible


def test_reasons_name_the_argument() -> None:
    (wrong,), (missing,) = impossible(pay({"amount": "x"})), impossible(pay({}))
    assert '"x"' in wrong.why
    assert "amount" in missing.why
    (both,) = impossible(pay({"currency": "CHF"}))
    assert "CHF" in both.why  # a wrong value comes before a missing one


@pytest.mark.parametrize("parameters", [None, {"type": "object", "required": "amount"}, {"required": [1]}])
def test_a_schema_without_rules_rejects_nothing(parameters: Any) -> None:
    assert impossible(pay({}), tools={"pay": {"returns": 1, "parameters": parameters}}) == []


REFERRED = {"$ref": "#/$defs/whole"}


@pytest.mark.parametrize(
    ("parameters", "args", "is_impossible"),
    [
        ({"type": "array"}, {"n": 1}, True),
        ({"properties": {"n": {"type": "string"}}}, {"n": 1}, True),
        ({"patternProperties": {"^n": {"type": "string"}}}, {"n": 1}, True),
        ({"patternProperties": {"^m": {"type": "string"}}}, {"n": 1}, False),
        ({"additionalProperties": False}, {"n": 1}, True),
        ({"properties": {"n": REFERRED}, "$defs": {"whole": {"type": "string"}}}, {"n": 1}, True),
        ({"properties": {"n": REFERRED}, "$defs": {"whole": {"type": "integer"}}}, {"n": 1}, False),
        (
            {"properties": {"n": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"type": "string"}}},
            {"n": 1},
            True,
        ),
        ({"properties": {"n": {"type": "object"}}}, {"n": {"a": 1, "b": {"$regex": "x"}}}, False),
        (
            {"properties": {"n": {"properties": {"b": {"type": "string"}}}}},
            {"n": {"a": 1, "b": {"$regex": "x"}}},
            False,
        ),
        ({"minProperties": 2}, {"n": 1}, False),  # other arguments may be added
    ],
)
def test_rules_of_a_schema_for_each_argument(
    parameters: dict[str, Any], args: dict[str, Any], is_impossible: bool
) -> None:
    tools = {"pay": {"returns": 1, "parameters": {"type": "object", **parameters}}}
    assert bool(impossible(pay(args, args_match="partial"), tools=tools)) is is_impossible


def test_arguments_may_be_left_out() -> None:
    assert impossible(calls("pay")) == []


# ── calls that are forbidden ─────────────────────────────────────────────────────────────────────

ONE = {"amount": 1}


@pytest.mark.parametrize(
    ("forbidden", "expected", "is_impossible"),
    [
        ({"name": "pay"}, {"name": "pay"}, True),
        ({"name": "pay"}, {"name": "pay", "args": ONE}, True),
        ({"name": "search"}, {"name": "pay"}, False),
        ({"name": "pay", "args": ONE}, {"name": "pay"}, False),  # with other arguments
        ({"name": "pay", "args": ONE}, {"name": "pay", "args": ONE}, True),
        ({"name": "pay", "args": ONE}, {"name": "pay", "args": {"amount": 1.0}}, True),
        ({"name": "pay", "args": ONE}, {"name": "pay", "args": {"amount": 2}}, False),
        ({"name": "pay", "args": ONE}, {"name": "pay", "args": {"amount": 1, "currency": "EUR"}}, True),
        ({"name": "pay", "args": {"amount": 1, "currency": "EUR"}}, {"name": "pay", "args": ONE}, False),
        (
            {"name": "pay", "args": ONE, "args_match": "exact"},
            {"name": "pay", "args": {"amount": 1, "currency": "EUR"}},
            False,
        ),
        ({"name": "pay", "args": ONE, "args_match": "exact"}, {"name": "pay", "args": ONE}, True),
        (
            {"name": "pay", "args": ONE, "args_match": "exact"},
            {"name": "pay", "args": ONE, "args_match": "partial"},
            False,
        ),
        (
            {"name": "pay", "args": ONE},
            {"name": "pay", "args": {"amount": 1}, "args_match": "partial"},
            True,
        ),
        ({"name": "pay", "args": {"amount": {"$in": [1, 2]}}}, {"name": "pay", "args": ONE}, True),
        ({"name": "pay", "args": {"amount": {"$in": [2, 3]}}}, {"name": "pay", "args": ONE}, False),
        ({"name": "pay", "args": ONE}, {"name": "pay", "args": {"amount": {"$in": [1, 2]}}}, False),
        (
            {"name": "pay", "args": {"amount": {"$in": [1, 2]}}},
            {"name": "pay", "args": {"amount": {"$in": [1, 2]}}},
            True,
        ),
        (
            {"name": "pay", "args": ONE},
            {"name": "pay", "args": {"amount": {"$optional": 1}}, "args_match": "partial"},
            False,
        ),
        ({"name": "search", "agent": "a"}, {"name": "search"}, False),
        ({"name": "search", "agent": "a"}, {"name": "search", "agent": "a"}, True),
        ({"name": "search", "agent": "a"}, {"name": "search", "agent": "b"}, False),
        ({"name": "search"}, {"name": "search", "agent": "b"}, True),
    ],
)
def test_a_call_that_is_also_forbidden(
    forbidden: dict[str, Any], expected: dict[str, Any], is_impossible: bool
) -> None:
    found = impossible({"calls": [expected], "forbidden": [forbidden]})
    assert [(each.path, each.tool) for each in found] == (
        [("expect.tool_calls", expected["name"])] if is_impossible else []
    )


# ── places ───────────────────────────────────────────────────────────────────────────────────────


def scripted(*expected: Any) -> list[Any]:
    return [{"user": "u", **({"expect": {"tool_calls": each}} if each else {})} for each in expected]


SEARCH, FORBIDS, REFUND = calls("search"), {"forbidden": [{"name": "search"}]}, calls("refund")
FIRST, SECOND, WHOLE, CASE = (
    "turns.0.expect.tool_calls",
    "turns.1.expect.tool_calls",
    "expect.tool_calls",
    "expected_tools",
)


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({"turns": scripted(SEARCH)}, []),
        ({"turns": scripted(None, REFUND)}, [SECOND]),
        ({"turns": scripted(REFUND, REFUND), "expect": REFUND}, [FIRST, SECOND, WHOLE]),
        # What is forbidden in the conversation is forbidden in each turn, but not the other way around.
        ({"turns": scripted(SEARCH), "expect": FORBIDS}, [FIRST]),
        ({"turns": scripted(FORBIDS), "expect": SEARCH}, []),
        ({"turns": scripted(FORBIDS, SEARCH)}, []),
        ({"turns": scripted({**SEARCH, **FORBIDS})}, [FIRST]),
        # No call at all in the conversation.
        ({"turns": scripted(SEARCH), "expect": "none"}, [FIRST]),
        ({"turns": scripted("none", SEARCH)}, []),
        ({"turns": scripted("none"), "expect": "none"}, []),
        ({"turns": scripted(SEARCH), "case": {"expected_tools": "none"}}, [FIRST]),
        ({"expect": SEARCH, "case": {"expected_tools": "none"}}, [WHOLE]),
        ({"expect": "none", "case": {"expected_tools": ["search"]}}, [CASE]),
        # The short form of a test case.
        ({"case": {"expected_tools": ["search"]}}, []),
        ({"case": {"expected_tools": ["search", "refund"]}}, [CASE]),
        ({"case": {"expected_tools": ["search"]}, "expect": FORBIDS}, [CASE]),
        ({"case": {"expected_tools": []}}, []),
        ({"case": {"expected_output_contains": ["x"]}}, []),
    ],
)
def test_places_where_calls_are_expected(more: dict[str, Any], paths: list[str]) -> None:
    assert [each.path for each in impossible(**more)] == paths


@pytest.mark.parametrize(
    ("expected", "tool"),
    [
        ({"any_of": [REFUND, SEARCH]}, None),  # one is enough
        ({"any_of": [SEARCH, REFUND]}, None),
        ({"any_of": [REFUND, calls("fly")]}, "refund"),  # the reason of the first
        ({"any_of": [REFUND, "none"]}, None),
        ({**calls("search", "refund", "fly")}, "refund"),
        (FORBIDS, None),
        (calls("refund", match="within"), None),  # may be left out
        (calls("refund", match="strict"), "refund"),
    ],
)
def test_alternatives_and_the_first_call_that_cannot_be_made(
    expected: dict[str, Any], tool: str | None
) -> None:
    assert [each.tool for each in impossible(expected)] == ([tool] if tool else [])


@pytest.mark.parametrize(
    ("rule", "is_closed"),
    [
        ("none", True),
        ({"match": "strict", "calls": []}, True),
        ({"match": "strict", "calls": [], **FORBIDS}, True),
        ({"any_of": ["none", SEARCH]}, False),
        (calls("search", match="within"), False),
        ({"forbidden": [{"name": "pay"}]}, False),
    ],
)
def test_rules_that_forbid_every_call(rule: Any, is_closed: bool) -> None:
    found = impossible(rule, turns=scripted(calls("search")))
    assert [each.path for each in found] == ([FIRST] if is_closed else [])
