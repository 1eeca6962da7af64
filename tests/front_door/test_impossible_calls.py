"""What can never hold is refused or warned of by ``validate``; its twin, which can, is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project

AGENT = """
import json

def agent(messages, ctx):
    for name, args in json.loads(messages[-1]["content"]):
        ctx.call_tool_sync(name, args)
    return "Done."
"""
TOOLS = {
    "pay": {
        "returns": "ok",
        "parameters": {
            "type": "object",
            "properties": {"amount": {"type": "integer"}, "currency": {"enum": ["EUR", "USD"]}},
            "required": ["amount"],
            "additionalProperties": False,
        },
    },
    "search": {"returns": "ok"},
}


def call(name: str, /, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def pay(**args: Any) -> dict[str, Any]:
    return call("pay", args=args)


# Expected calls that cannot be made, what is said of them, a twin that can, and the arguments that fulfil it.
CALLS: dict[str, tuple[list[dict[str, Any]], str, list[dict[str, Any]], dict[str, Any]]] = {
    "undeclared": ([call("serach")], "did you mean 'search'?", [call("search")], {}),
    "unknown": ([call("refund")], "add it under tools:", [call("search")], {}),
    "type": (
        [pay(amount="3")],
        'parameters refuse amount: "3"',
        [pay(amount=3)],
        {"amount": 3},
    ),
    "enum": (
        [call("pay", args={"currency": "GBP"}, args_match="partial")],
        'parameters refuse currency: "GBP"',
        [call("pay", args={"currency": "EUR"}, args_match="partial")],
        {"amount": 3, "currency": "EUR"},
    ),
    "each of several": (
        [pay(amount=3, currency={"$in": ["GBP", "CHF"]})],
        "parameters refuse currency",
        [pay(amount=3, currency={"$in": ["GBP", "EUR"]})],
        {"amount": 3, "currency": "EUR"},
    ),
    "unknown key": ([pay(amount=3, cur="EUR")], "'cur'", [pay(amount=3)], {"amount": 3}),
    "pattern": (
        [pay(amount={"$regex": "3"})],
        "parameters refuse amount",
        [pay(amount={"$approx": 3})],
        {"amount": 3},
    ),
    "missing": (
        [pay(currency="EUR")],
        "parameters require amount",
        [pay(currency="EUR", amount=1)],
        {"amount": 1, "currency": "EUR"},
    ),
}


def warnings(project: Project, entry: dict[str, Any], config: str = "") -> list[str]:
    project.agent(AGENT)
    project.config(config)
    group = "cases" if "input" in entry else "scenarios"
    entry = {
        "id": "x",
        **({"turns": ["[]"]} if group == "scenarios" and "turns" not in entry else {}),
        **entry,
    }
    project.scenarios(json.dumps({group: [entry]}))
    done = project.call("validate")
    assert done.code == 0, done.all
    return [line for line in done.err.splitlines() if line.startswith("warning: ")]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_the_scenario_excludes(project: Project, name: str) -> None:
    never, why, twin, _ = CALLS[name]
    (text,) = warnings(project, {"tools": TOOLS, "expect": {"tool_calls": {"calls": never}}})
    assert why in text
    assert "scenario 'x' expects a call of" in text
    assert "suite.yaml:1" in text
    assert warnings(project, {"tools": TOOLS, "expect": {"tool_calls": {"calls": twin}}}) == []


CONTRADICTIONS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"expect": {"tool_calls": {"calls": [call("pay")], "forbidden": [call("pay")]}}},
        "'pay', but forbids the same call",
        {"expect": {"tool_calls": {"calls": [call("pay")], "forbidden": [pay(amount=9)]}}},
    ),
    (
        {"expect": {"tool_calls": {"calls": [pay(amount=3, currency="EUR")], "forbidden": [pay(amount=3)]}}},
        "'pay', but forbids the same call",
        {"expect": {"tool_calls": {"calls": [pay(amount=3)], "forbidden": [pay(amount=3, currency="EUR")]}}},
    ),
    (
        {
            "turns": [{"user": "[]", "expect": {"tool_calls": {"calls": [call("pay")]}}}],
            "expect": {"tool_calls": {"forbidden": [call("pay")]}},
        },
        "'pay', but forbids the same call",
        {
            "turns": ["[]", {"user": "[]", "expect": {"tool_calls": {"forbidden": [call("pay")]}}}],
            "expect": {"tool_calls": {"calls": [call("pay")]}},
        },
    ),
    (
        {"input": "[]", "expected_tools": "none", "expect": {"tool_calls": {"calls": [call("pay")]}}},
        "'pay', but expected_tools: none allows none",
        {"input": "[]", "expected_tools": "none", "expect": {"tool_calls": {"forbidden": [call("pay")]}}},
    ),
    (
        {"input": "[]", "expected_tools": ["pay"], "expect": {"tool_calls": "none"}},
        "'pay', but expect.tool_calls: none allows none",
        {"input": "[]", "expected_tools": ["pay"], "expect": {"tool_calls": {"calls": [call("pay")]}}},
    ),
    (
        {"input": "[]", "expected_tools": ["refunds"]},
        "'refunds', but declares no such tool",
        {"input": "[]", "expected_tools": ["pay"]},
    ),
    (
        {"expect": {"tool_calls": {"any_of": [{"calls": [call("refunds")]}, {"calls": [pay(amount="3")]}]}}},
        "'refunds', but declares no such tool",
        {"expect": {"tool_calls": {"any_of": ["none", {"calls": [pay(amount="3")]}]}}},
    ),
    (
        {"expect": {"tool_calls": {"calls": [call("pay", args={"amount": "3"}, result="ok")]}}},
        "parameters refuse amount",
        {"expect": {"tool_calls": {"calls": [call("pay", args={"amount": "3"}, result="error")]}}},
    ),
]


@pytest.mark.parametrize("at", range(len(CONTRADICTIONS)))
def test_expectations_that_contradict_each_other(project: Project, at: int) -> None:
    never, why, twin = CONTRADICTIONS[at]
    (text,) = warnings(project, {"tools": TOOLS, **never})
    assert why in text
    assert warnings(project, {"tools": TOOLS, **twin}) == []


def test_a_tool_of_the_agents_own_is_none_of_the_scenarios(project: Project) -> None:
    """Nor is one expected where no tool is declared at all."""
    entry = {"tools": TOOLS, "expect": {"tool_calls": {"calls": [call("refunds")]}}}
    assert warnings(project, entry, "unmocked_tools: passthrough") == []
    assert warnings(project, {"expect": {"tool_calls": {"calls": [call("refunds")]}}}) == []


def test_what_is_warned_of_is_red_and_its_twin_green(project: Project) -> None:
    entries = []
    for name, (never, _, twin, args) in CALLS.items():
        for calls, end in ((never, "never"), (twin, "twin")):
            turns, expect = [json.dumps([[twin[0]["name"], args]])], {"tool_calls": {"calls": calls}}
            entries.append({"id": f"{name} {end}", "turns": turns, "tools": TOOLS, "expect": expect})
    project.agent(AGENT)
    project.config()
    project.scenarios(json.dumps({"scenarios": entries}))
    project.run()
    for scenario in project.results()["scenarios"]:
        assert scenario["verdict"] == ("failed" if scenario["id"].endswith("never") else "passed"), scenario[
            "id"
        ]


@pytest.mark.parametrize("written", ["false", "[none]", "[false]", "no", "[pay, none]", "[~]", "'null'"])
def test_a_word_for_no_tool_is_no_name_of_one(project: Project, written: str) -> None:
    project.agent("def agent(messages): return 'Done.'\n")
    project.config()
    project.scenarios(f"cases:\n- id: x\n  input: Hi\n  expected_tools: {written}\n")
    done = project.call("validate")
    assert (done.code, done.err.count("\n")) == (2, 1), done.all
    assert "suite.yaml:4:" in done.err
    assert "would be the name of a tool — write expected_tools: none if no tool may be called" in done.err
    project.scenarios("cases:\n- id: x\n  input: Hi\n  expected_tools: none\n")
    assert project.call("validate").code == 0
