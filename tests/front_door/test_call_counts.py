"""``times``, ``result``, ``any_of``, ``$optional`` and ``none`` through the command line: an agent that keeps
the rule is green, one that breaks it red, and what nobody could read is neither."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.front_door.test_expected_calls import A, B, C, Outcome, Pair, call, do, expecting, run_pairs
from tests.support.kit import Project, failed_checks
from tests.support.refused_rows import assert_each_refused
from tests.support.results import has, last_line, verdicts

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

EMPTY_AND_FORBIDDEN = {"calls": [], "forbidden": [{"name": "c"}]}
NONE = [
    expecting("none-at-all", "none", [], [C]),
    Pair("none-at-a-turn", {"turns": ["one", {"user": "two", "expect": {"tool_calls": "none"}}]},
         [do("ok", A), do("ok")], [do("ok"), do("ok", A)], "tool_calls", 1),
    Pair("case-none", {"input": "2 + 2?", "expected_tools": "none"}, [do("4")], [do("4", A)], "tool_calls"),
    # Beside `forbidden` an empty list is one that was left out; under strict it allows no tool at all.
    *(
        expecting(f"empty-and-forbidden-{match}", {"match": match, **EMPTY_AND_FORBIDDEN}, [A], [A, C])
        for match in ("contains", "in_order", "unordered", "within")
    ),
    expecting("empty-and-forbidden-strict", {"match": "strict", **EMPTY_AND_FORBIDDEN}, [], [A]),
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
    ("pair", "facts"),
    [
        ("times-once", ("extra: a()", "a(…) ×1", "2")),
        ("times-at-least", ("missing: a(…) ×2",)),
        ("times-not-once", ("missing: a(…) ×1",)),
        ("times-in-order", ("out of order: a()",)),
        ("times-strict-too-many", ("extra: a()",)),
        ("times-within-others", ("extra: c()",)),
        ("result-retried", ("missing: pay(…) → ok", "pay(amount=5) → error")),
        ("result-ok", ("pay(amount=5) → error", 'result: expected "ok"', "server busy")),
        ("any-of-first", ("1 of 2", "missing: b(…)")),
        ("any-of-second", ("2 of 2", "extra: c()")),
        ("any-of-forbidden", ("forbidden: c(x=1)",)),
        ("optional-matcher", ("args.y: ", '["a", "b"]', '"c"')),
        ("none-at-all", ("strict", "extra: c()")),
        ("case-none", ("strict", "extra: a()")),
    ],
)
def test_a_failure_names_the_calls_that_were_expected_and_made(
    pair: str, facts: tuple[str, ...], outcome: Outcome
) -> None:
    detail = outcome.detail(BY_ID[pair])
    assert has(detail, *facts), detail


def call_check(project: Project, scenario: str) -> dict[str, Any]:
    (check,) = [each for each in project.sample(scenario)["checks"] if each["name"] == "tool_calls"]
    return check  # type: ignore[no-any-return]


def test_the_report_of_the_journal_is_the_report_of_the_run(project: Project) -> None:
    """What authors can write is written into the journal, and read from there."""
    project.agent("async def agent(messages, ctx):\n    await ctx.call_tool('a', {})\n    return 'ok'\n")
    project.config()
    bound, optional = {"at_least": 0, "at_most": 1}, {"x": {"$optional": {"$in": [1]}}}
    calls = [{"name": "a", "times": bound, "result": "ok", "args": optional}, {"name": "b", "times": 2}]
    forbidden = {"calls": [], "forbidden": [{"name": "a", "args": {"x": 1}}]}
    tools = {"a": {"returns": 1}, "b": {"returns": 1}}
    scenarios = [
        {"id": "any", "expect": {"tool_calls": {"any_of": ["none", {"calls": calls}]}}},
        {"id": "forbidden", "expect": {"tool_calls": forbidden}},
    ]
    cases = [
        {"id": "none", "input": "hi", "expected_tools": "none"},
        {"id": "empty", "input": "hi", "expected_tools": []},
        {"id": "unwritten", "input": "hi"},
    ]
    suite = {
        "scenarios": [{"turns": ["hi"], "tools": tools, **each} for each in scenarios],
        "cases": [{"tools": tools, **each} for each in cases],
    }
    project.scenarios(json.dumps(suite))
    done = project.run()
    first = project.results()
    again = project.call("report", "latest", "--report", "json=results.json")
    assert done.code == again.code == 1
    assert project.results()["scenarios"] == first["scenarios"]
    assert verdicts(project) == {
        "any": "failed", "forbidden": "passed", "none": "failed", "empty": "passed", "unwritten": "passed"
    }  # fmt: skip


# ── what nobody could read ───────────────────────────────────────────────────────────────────────

REPORTS = """
import json


def agent(messages):
    made, results = [], []
    for n, (name, arguments, content) in enumerate(json.loads(messages[0]["content"])):
        made.append({"id": str(n), "type": "function", "function": {"name": name, "arguments": arguments}})
        if content is not None:
            results.append({"role": "tool", "tool_call_id": str(n), "content": content})
    last = {"role": "assistant", "content": "Done."}
    return [{"role": "assistant", "tool_calls": made}, *results, last]
"""
TORN = ("look", '{"id": ', "fine")
KNOWN = ("look", '{"id": 1}', "fine")
UNANSWERED = ("look", "{}", None)
NAMED_LOOK, LOOK_1 = {"name": "look"}, {"name": "look", "args": {"id": 1}}
UNREAD: list[tuple[Any, list[Any], str]] = [
    # The rule, the calls that the agent reports, the verdict.
    ({"calls": [LOOK_1]}, [TORN], "inconclusive"),
    ({"calls": [LOOK_1]}, [TORN, KNOWN], "passed"),
    ({"calls": [NAMED_LOOK]}, [TORN], "passed"),
    ({"calls": [LOOK_1, {"name": "look", "args": {"id": 2}}]}, [TORN], "failed"),
    ({"calls": [{"name": "look", "times": 1}]}, [TORN, KNOWN], "failed"),
    ({"calls": [{**LOOK_1, "times": 1}]}, [TORN, KNOWN], "inconclusive"),
    ({"calls": [{**LOOK_1, "times": {"at_most": 2}}]}, [TORN, KNOWN], "passed"),
    ({"match": "unordered", "calls": [LOOK_1]}, [TORN, KNOWN], "failed"),
    ({"match": "within", "calls": [LOOK_1]}, [TORN, KNOWN], "inconclusive"),
    ({"match": "within", "calls": [LOOK_1]}, [TORN, ("pay", "{}", "fine")], "failed"),
    ({"match": "strict", "calls": [LOOK_1]}, [TORN], "inconclusive"),
    ({"any_of": [{"calls": [LOOK_1]}, {"calls": [NAMED_LOOK]}]}, [TORN], "passed"),
    ({"forbidden": [LOOK_1]}, [TORN], "inconclusive"),
    ({"calls": [{"name": "look", "result": "ok"}]}, [UNANSWERED], "inconclusive"),
    ({"calls": [NAMED_LOOK]}, [UNANSWERED], "passed"),
    ({"calls": [{"name": "look", "result": "error"}]}, [("look", "{}", '{"error": "not found"}')], "passed"),
    ("none", [TORN], "failed"),
]


def test_of_a_call_that_nobody_could_read_only_name_and_number_decide(project: Project) -> None:
    project.agent(REPORTS)
    project.config("detectors: []\n")
    entries = [
        {"id": str(n), "turns": [json.dumps(calls)], "expect": {"tool_calls": rule}}
        for n, (rule, calls, _) in enumerate(UNREAD)
    ]
    project.scenarios(json.dumps({"scenarios": entries}))
    assert project.run().code == 1
    assert verdicts(project) == {str(n): verdict for n, (*_, verdict) in enumerate(UNREAD)}
    for n, (*_, verdict) in enumerate(UNREAD):
        passed = {"passed": True, "failed": False, "inconclusive": None}[verdict]
        assert call_check(project, str(n))["passed"] is passed, UNREAD[n]
        assert passed is not None or call_check(project, str(n))["detail"]


def test_where_no_call_can_be_seen_no_number_of_them_is_decided(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'Done.'\n")
    project.config()
    rules: list[Any] = [
        "none",
        {"calls": [{"name": "a", "times": {"at_most": 2}}]},
        {"calls": [{"name": "a", "times": {"at_least": 0, "at_most": 2}}]},
        {"any_of": [{"calls": [{"name": "a"}]}, {"calls": [NAMED_B]}]},
        {"any_of": ["none", {"calls": [NAMED_B]}]},
    ]
    entries = [{"id": str(n), "turns": ["hi"], "expect": {"tool_calls": r}} for n, r in enumerate(rules)]
    cases = [{"id": "case", "input": "hi", "expected_tools": "none"}]
    project.scenarios(json.dumps({"scenarios": entries, "cases": cases}))
    assert project.run().code == 3
    assert set(verdicts(project).values()) == {"inconclusive"}
    assert [call_check(project, str(n))["passed"] for n in range(len(rules))] == [None] * len(rules)


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────

OF_ONE_CALL: dict[str, tuple[str, ...]] = {
    "times: 0": ("expect.tool_calls.calls.times", "0", "forbidden"),
    "times: -2": ("times", "1", "-2"),
    "times: {at_least: 3, at_most: 2}": ("times", "at_least", "(3)", "at_most", "(2)"),
    "times: {}": ("times", "at_least", "at_most"),
    "times: {at_most: 0}": ("times.at_most", "forbidden"),
    "times: {at_least: -1}": ("times.at_least", "-1"),
    "times: {at_least: 0}": ("'a'", "{at_least: 0}", "contains"),
    "times: {atleast: 2}": ("'atleast'", "'at_least'"),
    "times: many": ("times", "'many'"),
    "times: true": ("times", "true"),
    "times: 1.5": ("times", "1.5"),
    "times: null": ("times",),
    "result: null": ("result",),
    "result: fail": ("result", "ok, error", "'fail'"),
    "args: {$optional: {x: 1}}": ("$optional",),
    "args: {x: {$in: [{$optional: 1}]}}": ("{$optional: {$in:",),
    "args: {x: {$optional: {$on: 1}}}": ("'$on'",),
}
OF_THE_RULE: dict[str, tuple[str, ...]] = {
    "{forbidden: [{name: a, args: {x: {$optional: 1}}}]}": ("$optional",),
    "{forbidden: [{name: a, args: {x: [{y: {$optional: 1}}]}}]}": ("$optional",),
    "{forbidden: [{name: a, times: 2}]}": ("forbidden", "'times'"),
    "{forbidden: [{name: a, result: ok}]}": ("forbidden", "'result'"),
    "{any_of: []}": ("any_of",),
    "{any_of: [{calls: [{name: a}]}], calls: [{name: b}]}": ("any_of", "calls"),
    "{any_of: [{calls: [{name: a}]}], match: strict}": ("any_of", "match"),
    "{any_of: [{calls: []}]}": ("any_of", "none"),
    "{any_of: [{match: in_order, calls: []}]}": ("any_of", "calls"),
    "{any_of: [{match: strict}]}": ("any_of", " calls"),
    "{any_of: [{forbidden: [{name: a}]}]}": ("any_of", "'forbidden'"),
    "{any_of: [{calls: [{name: a, times: 0}]}]}": ("any_of.calls.times", "0"),
    "{any_of: [{calls: [{name: a, args: {x: {$on: 1}}}]}]}": ("'$on'",),
    "{any_of: [{calls: [{name: ' '}]}]}": ("name", "empty"),
    "{calls: none}": ("none",),
    "{calls: []}": ("calls", "none"),
    "{match: within, calls: []}": ("calls", "none"),
    "{match: unordered, calls: []}": ("calls", "none"),
    "[]": ("'none'", "list"),
    "None": ("'None'", "none"),
    "nothing": ("'none'", "'nothing'"),
}


@pytest.mark.parametrize(
    ("rows", "entry"),
    [
        (OF_ONE_CALL, "turns: [x], expect: {{tool_calls: {{calls: [{{name: a, {}}}]}}}}"),
        (OF_THE_RULE, "turns: [x], expect: {{tool_calls: {}}}"),
    ],
    ids=["of one call", "of the rule"],
)
def test_what_checks_nothing_or_contradicts_itself_is_refused_at_its_line(
    rows: dict[str, tuple[str, ...]], entry: str, project: Project
) -> None:
    project.agent("def agent(messages):\n    return 'ok'\n")
    project.config()
    assert_each_refused(project, rows, entry)


# ── none, and lists that are empty ───────────────────────────────────────────────────────────────

CALLER = """
async def agent(messages, ctx):
    if "look" in messages[-1]["content"]:
        await ctx.call_tool("look", {})
    return "Done."
"""


@pytest.fixture
def caller(project: Project) -> Project:
    project.agent(CALLER)
    project.config()
    return project


def test_none_replaces_what_defaults_give_and_is_replaced_by_an_entry(caller: Project) -> None:
    caller.scenarios("""
        defaults:
          tools: {look: {returns: 1}}
          expect: {tool_calls: {match: strict, calls: [{name: look}], forbidden: [{name: pay}]}}
        scenarios:
          - {id: inherits, turns: [look]}
          - {id: quiet, turns: [hello], expect: {tool_calls: none}}
          - {id: loud, turns: [look], expect: {tool_calls: none}}
    """)
    cases = """
        defaults: {tools: {look: {returns: 1}}, expected_tools: none, expect: {tool_calls: none}}
        cases:
          - {id: case-quiet, input: hello}
          - {id: case-loud, input: look}
          - id: case-looks
            input: look
            expected_tools: [look]
            expect: {tool_calls: {calls: [{name: look}]}}
    """
    caller.scenarios(cases, "scenarios/cases.yaml")
    assert caller.run().code == 1
    assert verdicts(caller) == {
        "inherits": "passed", "quiet": "passed", "loud": "failed",
        "case-quiet": "passed", "case-loud": "failed", "case-looks": "passed",
    }  # fmt: skip


def test_an_empty_list_of_a_case_is_named_by_validate_and_by_the_last_line(caller: Project) -> None:
    caller.scenarios("""
        defaults: {tools: {look: {returns: 1}}}
        cases:
          - {id: one, input: look, expected_tools: []}
          - {id: two, input: hello, expected_output_contains: []}
          - {id: three, input: hello}
          - {id: four, input: hello, expected_tools: none}
    """)
    done = caller.call("validate")
    assert done.code == 0
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 2
    for facts in (
        ("expected_tools", "'one'", "scenarios/suite.yaml:3", "expected_tools: none"),
        ("expected_output_contains", "'two'", "scenarios/suite.yaml:4"),
    ):
        assert any(has(line, *facts) for line in warnings), warnings
    done = caller.run()
    assert done.code == 0
    empty = ("expected_tools of one", "expected_output_contains of two")
    assert has(last_line(done), "PASSED", "4", "exit 0", "2", *empty)
    (caveat,) = caller.results()["summary"]["caveats"]
    assert (caveat["kind"], caveat["count"]) == ("empty_lists", 2)
    accuracy = {s["id"]: s["samples"][0].get("tool_accuracy") for s in caller.results()["scenarios"]}
    assert accuracy == {"one": None, "two": None, "three": None, "four": 1.0}


def test_a_call_where_none_may_be_made_is_a_matter_of_tool_accuracy(caller: Project) -> None:
    caller.scenarios("""
        defaults: {tools: {look: {returns: 1}}, expected_tools: none}
        cases: [{id: loud, input: look}, {id: quiet, input: hello}]
    """)
    for bound, code in ((0.5, 0), (0.6, 1)):
        caller.config(f"gates: {{tool_accuracy: {bound}}}\n")
        assert caller.run().code == code
    accuracy = {s["id"]: s["samples"][0]["tool_accuracy"] for s in caller.results()["scenarios"]}
    assert accuracy == {"loud": 0.0, "quiet": 1.0}


def test_recorded_conversations_are_held_against_the_same_rules(project: Project) -> None:
    """``score --scenarios``: two payments for one, and one for one."""
    function = {"name": "pay", "arguments": '{"amount": 5}'}
    lines = []
    for name, number in (("once", 1), ("twice", 2)):
        calls = [{"id": str(n), "type": "function", "function": function} for n in range(number)]
        results = [{"role": "tool", "tool_call_id": each["id"], "content": "paid"} for each in calls]
        messages = [
            {"role": "user", "content": "Pay."},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *results,
            {"role": "assistant", "content": "Paid."},
        ]
        lines.append(json.dumps({"id": name, "messages": messages}))
    project.write("log.jsonl", "\n".join(lines) + "\n")
    call_of_pay = "{name: pay, times: 1, result: ok, args: {amount: 5, note: {$optional: x}}}"
    defaults = f"{{turns: [Pay.], expect: {{tool_calls: {{calls: [{call_of_pay}]}}}}}}"
    project.write("suite.yaml", f"defaults: {defaults}\nscenarios: [{{id: once}}, {{id: twice}}]\n")
    done = project.call("score", "log.jsonl", "--scenarios", "suite.yaml", "--report", "json=results.json")
    assert done.code == 1, done.all
    assert verdicts(project) == {"once": "passed", "twice": "failed"}
    assert failed_checks(project.sample("twice")) == {(None, "tool_calls")}
