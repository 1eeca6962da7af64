"""``times``, ``result``, ``any_of``, ``$optional`` and ``none`` through the command line: an agent that keeps
the rule is green, one that breaks it red, and what nobody could read is neither."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.front_door.test_expected_calls import A, B, C, Outcome, Pair, call, do, expecting, run_pairs
from tests.support.kit import Project, failed_checks

BAD_ONCE = {"pay": {"sequence": [{"error": "server busy"}, {"returns": {"ok": True}}]}}
"""The first call of `pay` fails."""


def times(id: str, match: str, bound: Any, good: list[Any], bad: list[Any], *others: dict[str, Any]) -> Pair:
    calls = [{"name": "a", "times": bound}, *others]
    return expecting(id, {"match": match, "calls": calls}, good, bad)


def with_errors(id: str, tool_calls: dict[str, Any], good: list[Any], bad: list[Any]) -> Pair:
    scenario = {"tools": BAD_ONCE, "expect": {"tool_calls": tool_calls}}
    return Pair(id, scenario, [do("Done.", *good)], [do("Done.", *bad)], "tool_calls")


NAMED_B = {"name": "b"}
UP_TO_3, MAYBE = {"at_least": 1, "at_most": 3}, {"at_least": 0, "at_most": 1}
ONCE = {"calls": [{"name": "a", "times": 1}]}
TIMES = [
    times("times-once", "contains", 1, [C, A], [A, C, A]),
    times("times-not-once", "contains", 1, [A], [C]),
    times("times-twice", "contains", 2, [A, B, A], [A, B]),
    times("times-at-least", "contains", {"at_least": 2}, [A, A, A], [A]),
    times("times-at-most", "contains", {"at_most": 2}, [A, C, A], [A, A, A]),
    times("times-at-most-means-once", "contains", {"at_most": 2}, [A], [C]),
    times("times-optional", "contains", {"at_least": 0, "at_most": 1}, [C], [A, A]),
    times("times-strict", "strict", UP_TO_3, [A, A, B], [A, B, A], NAMED_B),
    times("times-strict-too-many", "strict", UP_TO_3, [A, B], [A, A, A, A, B], NAMED_B),
    times("times-strict-optional", "strict", {"at_least": 0, "at_most": 1}, [B], [A, A, B], NAMED_B),
    times("times-in-order", "in_order", UP_TO_3, [C, A, C, A, B, C], [A, B, A], NAMED_B),
    times("times-in-order-optional", "in_order", {"at_least": 0}, [C, B], [B, A], NAMED_B),
    times("times-in-order-once", "in_order", 1, [A, C, B], [A, A, B], NAMED_B),
    times("times-unordered", "unordered", UP_TO_3, [A, B, A], [A, B, C], NAMED_B),
    times("times-unordered-too-many", "unordered", 2, [A, B, A], [A, A, A, B], NAMED_B),
    times("times-within", "within", {"at_most": 2}, [], [A, A, A], NAMED_B),
    times("times-within-at-least", "within", {"at_least": 1}, [B, A], [B, B], NAMED_B),
    times("times-within-others", "within", 1, [A, B, B], [A, C], NAMED_B),
    # `times` counts every call that matches, whatever else that serves: two payments are not one.
    expecting("times-all-that-match", {"calls": [{"name": "a", "args": {"x": 5}}, {"name": "a", "times": 1}]},
              [call("a", x=5)], [call("a", x=5), call("a", x=6)]),
    expecting("times-of-arguments", {"calls": [{"name": "a", "args": {"x": 5}, "times": 1}]},
              [call("a", x=5), call("a", x=6)], [call("a", x=5), call("a", x=5)]),
    expecting("times-again-at-the-end",
              {"match": "strict", "calls": [{"name": "a"}, NAMED_B, {"name": "a", "times": MAYBE}]},
              [A, B, A], [A, B, A, A]),
    Pair("times-at-a-turn", {"turns": ["one", {"user": "two", "expect": {"tool_calls": ONCE}}]},
         [do("ok", A), do("ok", A)], [do("ok", A), do("ok", A, A)], "tool_calls", 1),
]  # fmt: skip

PAY = call("pay", amount=5)
RETRY = [{"name": "pay", "result": "error"}, {"name": "pay", "result": "ok"}]
RESULTS = [
    with_errors("result-retried", {"match": "in_order", "calls": RETRY}, [PAY, A, PAY], [PAY, A]),
    with_errors("result-ok", {"calls": [{"name": "pay", "result": "ok"}]}, [PAY, PAY], [PAY]),
    with_errors("result-ok-once", {"calls": [{"name": "pay", "result": "ok", "times": 1}]}, [PAY, PAY],
                [PAY, PAY, PAY]),
    with_errors("result-error", {"match": "strict", "calls": [RETRY[0]]}, [PAY], [PAY, PAY]),
    expecting("result-of-no-error", {"calls": [{"name": "fails", "result": "error"}]}, [call("fails")], [A]),
    expecting("result-never-ok", {"calls": [{"name": "b", "result": "ok"}]}, [B], [call("fails")]),
]  # fmt: skip

EITHER = {"any_of": [{"calls": [{"name": "a"}, NAMED_B]}, {"match": "strict", "calls": [{"name": "c"}]}]}
ANY_OF = [
    expecting("any-of-first", EITHER, [B, A], [A]),
    expecting("any-of-second", EITHER, [C], [C, C]),
    expecting("any-of-none", {"any_of": ["none", {"calls": [{"name": "a"}]}]}, [], [B]),
    expecting("any-of-or-none", {"any_of": ["none", {"calls": [{"name": "a"}]}]}, [B, A], [B]),
    expecting("any-of-forbidden", {**EITHER, "forbidden": [{"name": "c", "args": {"x": 1}}]}, [A, B],
              [A, B, call("c", x=1)]),
    expecting("any-of-times", {"any_of": [{"calls": [{"name": "a", "times": 2}]}, {"calls": [NAMED_B]}]},
              [A, A], [A, A, A]),
]  # fmt: skip


def args(id: str, expected: Any, good: dict[str, Any], bad: dict[str, Any], **more: Any) -> Pair:
    return expecting(id, {"calls": [{"name": "a", "args": expected, **more}]}, [("a", good)], [("a", bad)])


OPTIONAL = [
    args("optional-absent", {"x": 1, "y": {"$optional": 2}}, {"x": 1}, {"x": 1, "y": 3}),
    args("optional-null", {"x": 1, "y": {"$optional": 2}}, {"x": 1, "y": None}, {"y": 2}),
    args("optional-there", {"y": {"$optional": 2}}, {"y": 2.0}, {"y": True}),
    args("optional-is-no-other-key", {"y": {"$optional": 2}}, {}, {"z": 2}),
    args("optional-matcher", {"y": {"$optional": {"$in": ["a", "b"]}}}, {"y": "b"}, {"y": "c"}),
    args("optional-anything", {"y": {"$optional": {"$any": True}}}, {"y": "?"}, {"z": "?"}),
    args("optional-within", {"o": {"p": {"$optional": {"q": 1}}}}, {"o": {}}, {"o": {"p": {}}}),
    args("optional-partial", {"x": 1, "y": {"$optional": 2}}, {"x": 1, "z": 3}, {"x": 1, "y": 3},
         args_match="partial"),
]  # fmt: skip

NONE = [
    expecting("none-at-all", "none", [], [C]),
    Pair("none-at-a-turn", {"turns": ["one", {"user": "two", "expect": {"tool_calls": "none"}}]},
         [do("ok", A), do("ok")], [do("ok"), do("ok", A)], "tool_calls", 1),
    Pair("case-none", {"input": "2 + 2?", "expected_tools": "none"}, [do("4")], [do("4", A)], "tool_calls"),
    expecting("calls-empty-beside-forbidden", {"calls": [], "forbidden": [{"name": "c"}]}, [A], [A, C]),
    Pair("forbidden-exact",
         {"expect": {"tool_calls": {"forbidden": [{"name": "c", "args": {"x": 1}, "args_match": "exact"}]}}},
         [do("ok", call("c", x=1, y=2))], [do("ok", call("c", x=1))], "tool_calls"),
]  # fmt: skip

PAIRS = [*TIMES, *RESULTS, *ANY_OF, *OPTIONAL, *NONE]
BY_ID = {pair.id: pair for pair in PAIRS}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    tools: dict[str, Any] = {name: {"returns": {"ok": True}} for name in ("a", "b", "c", "pay")}
    tools["fails"] = {"error": "no"}
    return run_pairs(tmp_path_factory.mktemp("counts"), PAIRS, "detectors: []", tools=tools)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_the_agent_with_the_bug_is_red_and_the_fixed_one_green(pair: Pair, outcome: Outcome) -> None:
    outcome.holds(pair)


@pytest.mark.parametrize(
    ("pair", "lines"),
    [
        ("times-once", ("extra: a() — a(…) ×1 was called 2 times",)),
        ("times-at-least", ("missing: a(…) ×2 or more — called once",)),
        ("times-not-once", ("missing: a(…) ×1 — never called",)),
        ("times-in-order", ("out of order: a()",)),
        ("times-strict-too-many", ("extra: a()",)),
        ("times-within-others", ("extra: c()",)),
        ("result-retried", ("missing: pay(…) → ok — nearest: pay(amount=5) → error: another expected call",)),
        ("result-ok", ('nearest: pay(amount=5) → error: result: expected "ok", got "error: server busy"',)),
        ("any-of-first", ("alternative 1 of 2 is the nearest: missing: b(…) — never called",)),
        ("any-of-second", ("alternative 2 of 2 is the nearest: extra: c()",)),
        ("any-of-forbidden", ("forbidden: c(x=1)",)),
        ("optional-matcher", ('args.y: expected one of ["a", "b"] or absent, got "c"',)),
        ("none-at-all", ("expected (strict): no call", "extra: c()")),
        ("case-none", ("expected (strict): no call", "extra: a()")),
    ],
)
def test_a_failure_says_what_was_expected_and_what_was_called(
    pair: str, lines: tuple[str, ...], outcome: Outcome
) -> None:
    detail = outcome.detail(BY_ID[pair])
    for line in lines:
        assert line in detail, detail


def test_the_report_of_the_journal_is_the_report_of_the_run(project: Project) -> None:
    """What authors can write is written into the journal, and read from there."""
    project.agent("async def agent(messages, ctx):\n    await ctx.call_tool('a', {})\n    return 'ok'\n")
    project.config()
    bound, optional = {"at_least": 0, "at_most": 1}, {"x": {"$optional": {"$in": [1]}}}
    calls = [{"name": "a", "times": bound, "result": "ok", "args": optional}, {"name": "b", "times": 2}]
    entries = [
        {"id": "any", "expect": {"tool_calls": {"any_of": ["none", {"calls": calls}]}}},
        {
            "id": "forbidden",
            "expect": {"tool_calls": {"calls": [], "forbidden": [{"name": "a", "args": {"x": 1}}]}},
        },
    ]
    cases = [
        {"id": "none", "input": "hi", "expected_tools": "none"},
        {"id": "empty", "input": "hi", "expected_tools": []},
        {"id": "unwritten", "input": "hi"},
    ]
    shared = {"turns": ["hi"], "tools": {"a": {"returns": 1}, "b": {"returns": 1}}}
    project.scenarios(
        json.dumps(
            {
                "scenarios": [{**shared, **e} for e in entries],
                "cases": [{**c, "tools": shared["tools"]} for c in cases],
            }
        )
    )
    done = project.run()
    first = project.results()
    again = project.call("report", "latest", "--report", "json=results.json")
    assert done.code == again.code == 1
    assert "1 test case with an empty list, which checks nothing: expected_tools of empty" in done.out
    assert project.results()["scenarios"] == first["scenarios"]
    assert {s["id"]: s["verdict"] for s in first["scenarios"]} == {
        "any": "failed", "forbidden": "passed", "none": "failed", "empty": "passed", "unwritten": "passed"
    }  # fmt: skip


# ── what nobody could read ───────────────────────────────────────────────────────────────────────

REPORTS = """
import json

CALLS = json.loads({calls!r})


def agent(messages):
    made = [
        {{"id": str(n), "type": "function", "function": {{"name": name, "arguments": arguments}}}}
        for n, (name, arguments, _) in enumerate(CALLS)
    ]
    results = [
        {{"role": "tool", "tool_call_id": str(n), "content": content}}
        for n, (_, _, content) in enumerate(CALLS)
        if content is not None
    ]
    last = {{"role": "assistant", "content": "Done."}}
    return [{{"role": "assistant", "tool_calls": made}}, *results, last]
"""
TORN = ("look", '{"id": ', "fine")
KNOWN = ("look", '{"id": 1}', "fine")
LOOK_1 = {"name": "look", "args": {"id": 1}}


@pytest.mark.parametrize(
    ("rule", "calls", "verdict"),
    [
        ({"calls": [LOOK_1]}, [TORN], "inconclusive"),
        ({"calls": [LOOK_1]}, [TORN, KNOWN], "passed"),
        ({"calls": [{"name": "look"}]}, [TORN], "passed"),
        ({"calls": [LOOK_1, {"name": "look", "args": {"id": 2}}]}, [TORN], "failed"),
        ({"calls": [{"name": "look", "times": 1}]}, [TORN, KNOWN], "failed"),
        ({"calls": [{**LOOK_1, "times": 1}]}, [TORN, KNOWN], "inconclusive"),
        ({"calls": [{**LOOK_1, "times": {"at_most": 2}}]}, [TORN, KNOWN], "passed"),
        ({"match": "unordered", "calls": [LOOK_1]}, [TORN, KNOWN], "failed"),
        ({"match": "within", "calls": [LOOK_1]}, [TORN, KNOWN], "inconclusive"),
        ({"match": "within", "calls": [LOOK_1]}, [TORN, ("pay", "{}", "fine")], "failed"),
        ({"match": "strict", "calls": [LOOK_1]}, [TORN], "inconclusive"),
        ({"any_of": [{"calls": [LOOK_1]}, {"calls": [{"name": "look"}]}]}, [TORN], "passed"),
        ({"forbidden": [LOOK_1]}, [TORN], "inconclusive"),
        ({"calls": [{"name": "look", "result": "ok"}]}, [("look", "{}", None)], "inconclusive"),
        ({"calls": [{"name": "look"}]}, [("look", "{}", None)], "passed"),
        (
            {"calls": [{"name": "look", "result": "error"}]},
            [("look", "{}", '{"error": "not found"}')],
            "passed",
        ),
        ("none", [TORN], "failed"),
    ],
)
def test_of_a_call_that_nobody_could_read_name_and_number_decide_and_nothing_more(
    rule: Any, calls: list[Any], verdict: str, project: Project
) -> None:
    project.agent(REPORTS.format(calls=json.dumps(calls)))
    project.config("detectors: []\n")
    project.scenarios(json.dumps({"id": "s", "turns": ["hi"], "expect": {"tool_calls": rule}}))
    done = project.run()
    assert project.sample()["verdict"] == verdict, done.all
    assert done.code == {"passed": 0, "failed": 1, "inconclusive": 3}[verdict]
    if verdict == "inconclusive":
        (check,) = [each for each in project.sample()["checks"] if each["name"] == "tool_calls"]
        assert check["passed"] is None
        assert "not decided, because" in check["detail"]


# ── nothing seen ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "rule",
    [
        "none",
        {"calls": [{"name": "a", "times": {"at_most": 2}}]},
        {"calls": [{"name": "a", "times": {"at_least": 0, "at_most": 2}}]},
        {"any_of": [{"calls": [{"name": "a"}]}, {"calls": [{"name": "b"}]}]},
        {"any_of": ["none", {"calls": [{"name": "b"}]}]},
    ],
)
def test_where_no_call_can_be_seen_no_number_of_them_is_decided(rule: Any, project: Project) -> None:
    project.agent("def agent(messages):\n    return 'Done.'\n")
    project.config()
    project.scenarios(json.dumps({"id": "s", "turns": ["hi"], "expect": {"tool_calls": rule}}))
    assert project.run().code == 3
    (check,) = [each for each in project.sample()["checks"] if each["name"] == "tool_calls"]
    assert check["passed"] is None
    project.scenarios(json.dumps({"cases": [{"id": "c", "input": "hi", "expected_tools": "none"}]}))
    assert project.run().code == 3


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────

ONE = "{{tool_calls: {{calls: [{{name: a, {}}}]}}}}"
REFUSED = {
    ONE.format("times: 0"): "expect.tool_calls.calls.times: 0 forbids the call — write it under forbidden",
    ONE.format("times: -2"): "times: must be at least 1, got -2",
    ONE.format("times: {at_least: 3, at_most: 2}"): "times: at_least (3) is above at_most (2)",
    ONE.format("times: {}"): "times: is empty — write at_least or at_most",
    ONE.format("times: {at_most: 0}"): "times.at_most: 0 forbids the call — write it under forbidden",
    ONE.format("times: {at_least: -1}"): "times.at_least: must be at least 0, got -1",
    ONE.format("times: {at_least: 0}"): "'a' with times: {at_least: 0} checks nothing under match: contains",
    ONE.format("times: {atleast: 2}"): "unknown key 'atleast' — did you mean 'at_least'?",
    ONE.format("times: many"): "times: expected a whole number or a mapping, got 'many'",
    ONE.format("times: true"): "times: expected a whole number or a mapping, got true",
    ONE.format("times: 1.5"): "times: expected a whole number or a mapping, got 1.5",
    ONE.format("times: null"): "times: it has no value",
    ONE.format("result: null"): "result: it has no value",
    ONE.format("result: fail"): "result: expected one of ok, error, got 'fail'",
    ONE.format("args: {$optional: {x: 1}}"): "$optional applies to one argument",
    ONE.format("args: {x: {$in: [{$optional: 1}]}}"): "write {$optional: {$in: [one, two]}}",
    ONE.format("args: {x: {$optional: {$on: 1}}}"): "unknown matcher '$on'",
    "{tool_calls: {forbidden: [{name: a, args: {x: {$optional: 1}}}]}}": "$optional is not allowed",
    "{tool_calls: {forbidden: [{name: a, args: {x: [{y: {$optional: 1}}]}}]}}": "$optional is not allowed in",
    "{tool_calls: {forbidden: [{name: a, times: 2}]}}": "forbidden: 'times' is not allowed here",
    "{tool_calls: {forbidden: [{name: a, result: ok}]}}": "forbidden: 'result' is not allowed here",
    "{tool_calls: {any_of: []}}": "any_of: an empty list checks nothing",
    "{tool_calls: {any_of: [{calls: [{name: a}]}], calls: [{name: b}]}}": "any_of and calls exclude",
    "{tool_calls: {any_of: [{calls: [{name: a}]}], match: strict}}": "any_of and match exclude each other",
    "{tool_calls: {any_of: [{calls: []}]}}": "write none in place of the mapping",
    "{tool_calls: {any_of: [{match: strict}]}}": "any_of: 'calls' is missing",
    "{tool_calls: {any_of: [{forbidden: [{name: a}]}]}}": "any_of: 'forbidden' is not allowed here",
    "{tool_calls: {any_of: [{calls: [{name: a, times: 0}]}]}}": "any_of.calls.times: 0 forbids the call",
    "{tool_calls: {any_of: [{calls: [{name: a, args: {x: {$on: 1}}}]}]}}": "unknown matcher '$on'",
    "{tool_calls: {any_of: [{calls: [{name: ' '}]}]}}": "a tool name must not be empty",
    "{tool_calls: {calls: none}}": "write none in place of the mapping around it",
    "{tool_calls: {calls: []}}": "write none in place of the mapping",
    "{tool_calls: {match: within, calls: []}}": "write none in place of the mapping",
    "{tool_calls: []}": "expected 'none' or a mapping, got a list",
    "{tool_calls: None}": "expected 'none' or a mapping, got 'None' — write none",
    "{tool_calls: nothing}": "expected 'none' or a mapping, got 'nothing'",
}


def test_what_says_nothing_or_contradicts_itself_is_refused_at_its_place(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'ok'\n")
    project.config()
    rows = [f"- {{id: s{number}, turns: [x], expect: {each}}}" for number, each in enumerate(REFUSED)]
    project.scenarios("\n".join(["scenarios:", *rows]) + "\n")
    done = project.call("validate")
    assert done.code == 2
    for line, (expect, says) in enumerate(REFUSED.items(), 2):
        lines = [each for each in done.err.splitlines() if f"suite.yaml:{line}:" in each]
        assert len(lines) == 1, (expect, lines)
        assert says in lines[0], (expect, lines)


# ── none, and lists that are empty ───────────────────────────────────────────────────────────────

CALLER = """
async def agent(messages, ctx):
    if "look" in messages[-1]["content"]:
        await ctx.call_tool("look", {})
    return "Done."
"""


def test_none_replaces_what_defaults_give_and_is_replaced_by_an_entry(project: Project) -> None:
    project.agent(CALLER)
    project.config()
    project.scenarios(
        """
        defaults:
          tools: {look: {returns: 1}}
          expect: {tool_calls: {match: strict, calls: [{name: look}], forbidden: [{name: pay}]}}
        scenarios:
          - {id: inherits, turns: [look]}
          - {id: quiet, turns: [hello], expect: {tool_calls: none}}
          - {id: loud, turns: [look], expect: {tool_calls: none}}
        """
    )
    project.scenarios(
        """
        defaults: {tools: {look: {returns: 1}}, expected_tools: none, expect: {tool_calls: none}}
        cases:
          - {id: case-quiet, input: hello}
          - {id: case-loud, input: look}
          - id: case-looks
            input: look
            expected_tools: [look]
            expect: {tool_calls: {calls: [{name: look}]}}
        """,
        "scenarios/cases.yaml",
    )
    assert project.run().code == 1
    assert {s["id"]: s["verdict"] for s in project.results()["scenarios"]} == {
        "inherits": "passed", "quiet": "passed", "loud": "failed",
        "case-quiet": "passed", "case-loud": "failed", "case-looks": "passed",
    }  # fmt: skip


def test_an_empty_list_of_a_case_is_named_by_validate_and_by_the_last_line(project: Project) -> None:
    project.agent(CALLER)
    project.config()
    project.scenarios(
        """
        defaults: {tools: {look: {returns: 1}}}
        cases:
          - {id: one, input: look, expected_tools: []}
          - {id: two, input: hello, expected_output_contains: []}
          - {id: three, input: hello}
          - {id: four, input: hello, expected_tools: none}
        """
    )
    done = project.call("validate")
    assert done.code == 0
    assert (
        "warning: expected_tools of case 'one' is an empty list and checks nothing (scenarios/suite.yaml:3):"
        " remove it, or write expected_tools: none if no tool may be called"
    ) in done.err
    assert "warning: expected_output_contains of case 'two' is an empty list" in done.err
    assert done.err.count("checks nothing") == 2
    done = project.run()
    assert (done.code, done.out.splitlines()[-1]) == (
        0,
        "PASSED: all 4 scenarios passed (exit 0) — with 2 test cases with an empty list, which checks"
        " nothing: expected_tools of one, expected_output_contains of two",
    )
    (aside,) = project.results()["summary"]["caveats"]
    assert (aside["kind"], aside["count"]) == ("empty_lists", 2)
    accuracy = {s["id"]: s["samples"][0].get("tool_accuracy") for s in project.results()["scenarios"]}
    assert accuracy == {"one": None, "two": None, "three": None, "four": 1.0}


@pytest.mark.parametrize(("bound", "code"), [(0.5, 0), (0.6, 1)])
def test_a_call_where_none_may_be_made_is_a_matter_of_tool_accuracy(
    bound: float, code: int, project: Project
) -> None:
    project.agent(CALLER)
    project.config(f"gates: {{tool_accuracy: {bound}}}\n")
    project.scenarios(
        """
        defaults: {tools: {look: {returns: 1}}, expected_tools: none}
        cases: [{id: loud, input: look}, {id: quiet, input: hello}]
        """
    )
    done = project.run()
    assert done.code == code, done.all
    accuracy = {s["id"]: s["samples"][0]["tool_accuracy"] for s in project.results()["scenarios"]}
    assert accuracy == {"loud": 0.0, "quiet": 1.0}


def test_recorded_conversations_are_held_against_the_same_rules(project: Project) -> None:
    """``score --scenarios``: two payments for one, and one for one."""
    made = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}}
    lines = []
    for name, number in (("once", 1), ("twice", 2)):
        calls = [{**made, "id": str(n)} for n in range(number)]
        results = [{"role": "tool", "tool_call_id": each["id"], "content": "paid"} for each in calls]
        messages = [
            {"role": "user", "content": "Pay."},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *results,
            {"role": "assistant", "content": "Paid."},
        ]
        lines.append(json.dumps({"id": name, "messages": messages}))
    project.write("log.jsonl", "\n".join(lines) + "\n")
    rule = (
        "{tool_calls: {calls: [{name: pay, times: 1, result: ok, args: {amount: 5, note: {$optional: x}}}]}}"
    )
    project.write(
        "suite.yaml",
        f"defaults: {{turns: [Pay.], expect: {rule}}}\nscenarios: [{{id: once}}, {{id: twice}}]\n",
    )
    done = project.call("score", "log.jsonl", "--scenarios", "suite.yaml", "--report", "json=results.json")
    assert done.code == 1, done.all
    verdicts = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {"once": "passed", "twice": "failed"}
    assert "called 2 times" in done.out


@pytest.mark.parametrize("match", ["contains", "in_order", "unordered", "within"])
def test_an_empty_list_of_calls_beside_forbidden_is_one_that_was_left_out(
    project: Project, match: str
) -> None:
    scenario = """
    id: a
    turns: [{{user: hi, expect: {{tool_calls: {{match: {match}, calls: [], forbidden: [{{name: pay}}]}}}}}}]
    tools: {{look: {{returns: 1}}, pay: {{returns: 1}}}}
    """
    code = "def agent(messages, ctx):\n    ctx.call_tool_sync('TOOL', {})\n    return 'done'\n"
    project.config()
    project.scenarios(scenario.format(match=match))
    project.agent(code.replace("TOOL", "look"))
    done = project.run()
    assert done.code == 0, done.all
    project.agent(code.replace("TOOL", "pay"))
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(0, "tool_calls")}
    # Under strict it says that no tool may be called.
    project.scenarios(scenario.format(match="strict"))
    project.agent(code.replace("TOOL", "look"))
    assert project.run().code == 1
