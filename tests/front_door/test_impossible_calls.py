"""What can never hold is refused or warned of by ``validate``; its twin, which can, is not."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from tests.support.kit import Project
from tests.support.refused_rows import assert_each_refused

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


def calls(*names: str | dict[str, Any], forbidden: Any = None) -> dict[str, Any]:
    """What is expected of the calls: names of tools, or whole entries."""
    entries = [{"name": each} if isinstance(each, str) else each for each in names]
    return {"calls": entries} if forbidden is None else {"calls": entries, "forbidden": [forbidden]}


def pay(**args: Any) -> dict[str, Any]:
    return {"name": "pay", "args": args}


class Excluded(NamedTuple):
    """Expected calls that cannot be made, what the warning names, a twin that can be made, and the arguments
    that fulfil it."""

    never: dict[str, Any]
    facts: tuple[str, ...]
    twin: dict[str, Any]
    args: dict[str, Any]


PARTIAL, EUROS, THREE = {"args_match": "partial"}, {"amount": 3, "currency": "EUR"}, {"amount": 3}
POUNDS_OR_FRANCS, POUNDS_OR_EUROS = {"$in": ["GBP", "CHF"]}, {"$in": ["GBP", "EUR"]}
CALLS = {
    "undeclared": Excluded(calls("serach"), ("'serach'", "'search'"), calls("search"), {}),
    "unknown": Excluded(calls("refund"), ("'refund'", "tools"), calls("search"), {}),
    "type": Excluded(calls(pay(amount="3")), ("'pay'", 'amount: "3"'), calls(pay(amount=3)), THREE),
    "enum": Excluded(calls({**pay(currency="GBP"), **PARTIAL}), ("'pay'", 'currency: "GBP"'),
                     calls({**pay(currency="EUR"), **PARTIAL}), EUROS),
    "each of several": Excluded(calls(pay(amount=3, currency=POUNDS_OR_FRANCS)), ("'pay'", "currency"),
                                calls(pay(amount=3, currency=POUNDS_OR_EUROS)), EUROS),
    "unknown key": Excluded(calls(pay(amount=3, cur="EUR")), ("'cur'",), calls(pay(amount=3)), THREE),
    "pattern": Excluded(calls(pay(amount={"$regex": "3"})), ("amount",),
                        calls(pay(amount={"$approx": 3})), THREE),
    "missing": Excluded(calls(pay(currency="EUR")), ("amount",), calls(pay(**EUROS)), EUROS),
}  # fmt: skip


def expects(tool_calls: Any, **more: Any) -> dict[str, Any]:
    return {"turns": ["[]"], **more, "expect": {"tool_calls": tool_calls}}


def case(expected_tools: Any, tool_calls: Any = None) -> dict[str, Any]:
    entry = {"input": "[]", "expected_tools": expected_tools}
    return entry if tool_calls is None else {**entry, "expect": {"tool_calls": tool_calls}}


def at_a_turn(tool_calls: Any) -> dict[str, Any]:
    return {"user": "[]", "expect": {"tool_calls": tool_calls}}


FORBIDS_PAY = {"forbidden": [{"name": "pay"}]}
NO_REFUND = {"any_of": [calls("refunds"), calls(pay(amount="3"))]}
CONTRADICTIONS: list[tuple[dict[str, Any], tuple[str, ...], dict[str, Any]]] = [
    # A scenario or case that contradicts itself, what the warning names, and a twin that does not.
    (expects(calls("pay", forbidden={"name": "pay"})), ("'pay'", "forbids"),
     expects(calls("pay", forbidden=pay(amount=9)))),
    (expects(calls(pay(**EUROS), forbidden=pay(amount=3))), ("'pay'", "forbids"),
     expects(calls(pay(amount=3), forbidden=pay(**EUROS)))),
    (expects(FORBIDS_PAY, turns=[at_a_turn(calls("pay"))]), ("'pay'", "forbids"),
     expects(calls("pay"), turns=["[]", at_a_turn(FORBIDS_PAY)])),
    (case("none", calls("pay")), ("'pay'", "expected_tools: none"), case("none", FORBIDS_PAY)),
    (case(["pay"], "none"), ("'pay'", "expect.tool_calls: none"), case(["pay"], calls("pay"))),
    (case(["refunds"]), ("'refunds'",), case(["pay"])),
    (expects(NO_REFUND), ("'refunds'",), expects({"any_of": ["none", calls(pay(amount="3"))]})),
    (expects(calls({**pay(amount="3"), "result": "ok"})), ("amount",),
     expects(calls({**pay(amount="3"), "result": "error"}))),
]  # fmt: skip


def warnings(project: Project, entries: list[dict[str, Any]], config: str = "") -> list[list[str]]:
    """The warnings of ``validate`` for each entry, which stands in a file of its own."""
    project.agent(AGENT)
    project.config(config)
    for n, entry in enumerate(entries):
        group = "cases" if "input" in entry else "scenarios"
        project.scenarios(json.dumps({group: [{"id": f"x{n}", **entry}]}), f"scenarios/{n}.yaml")
    done = project.call("validate")
    assert done.code == 0, done.all
    lines = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    found = [[line for line in lines if f"scenarios/{n}.yaml:1" in line] for n in range(len(entries))]
    assert sum(map(len, found)) == len(lines), lines
    return found


def test_calls_that_contradict_the_tools_or_each_other_are_warned_of(project: Project) -> None:
    rows = [(expects(r.never), r.facts, expects(r.twin)) for r in CALLS.values()] + CONTRADICTIONS
    found = warnings(project, [{"tools": TOOLS, **never} for never, _, _ in rows])
    for n, ((_, facts, _), lines) in enumerate(zip(rows, found, strict=True)):
        assert len(lines) == 1, (facts, lines)
        assert all(fact in lines[0] for fact in (f"'x{n}'", *facts)), (facts, lines)
    assert not any(warnings(project, [{"tools": TOOLS, **twin} for _, _, twin in rows]))


@pytest.mark.parametrize(("tools", "config"), [(TOOLS, "unmocked_tools: passthrough"), ({}, "")])
def test_a_tool_of_the_agents_own_or_where_none_is_declared_may_be_expected(
    project: Project, tools: dict[str, Any], config: str
) -> None:
    assert warnings(project, [{"tools": tools, **expects(calls("refunds"))}], config) == [[]]


def test_what_is_warned_of_is_red_and_its_twin_green(project: Project) -> None:
    entries = []
    for name, row in CALLS.items():
        turns = [json.dumps([[row.twin["calls"][0]["name"], row.args]])]
        entries.append({"id": f"{name}: never", "tools": TOOLS, **expects(row.never, turns=turns)})
        entries.append({"id": f"{name}: twin", "tools": TOOLS, **expects(row.twin, turns=turns)})
    project.agent(AGENT)
    project.config()
    project.scenarios(json.dumps({"scenarios": entries}))
    project.run()
    verdicts = {scenario["id"]: scenario["verdict"] for scenario in project.results()["scenarios"]}
    assert verdicts == {e["id"]: "failed" if e["id"].endswith("never") else "passed" for e in entries}


def test_a_word_for_no_tool_is_no_name_of_one(project: Project) -> None:
    project.agent("def agent(messages): return 'Done.'\n")
    project.config()
    words = ("false", "[none]", "[false]", "no", "[pay, none]", "[~]", "'null'")
    rows = dict.fromkeys(words, ("expected_tools: none",))
    assert_each_refused(project, rows, "input: Hi, expected_tools: {}", group="cases")
    project.scenarios("cases:\n- id: x\n  input: Hi\n  expected_tools: none\n")
    assert project.call("validate").code == 0
