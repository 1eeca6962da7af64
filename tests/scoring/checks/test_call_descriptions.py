"""How expected and actual tool calls are described: forms of calls, lines of a comparison, and faults."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import ExpectedCall, ForbiddenCall, ToolCallsExpectation
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.scoring.checks.call_descriptions import (
    describe_call,
    describe_tool_calls_result,
    format_expected_call,
    list_call_faults,
)
from agenteval.scoring.checks.call_matching import MAX_NEAREST_SHOWN, ToolCallsResult, compare_tool_calls


def call(name: str, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args)


def want(name: str, args: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, **({} if args is None else {"args": args}), **more}


def compared(*calls: ToolCall, **expected: Any) -> ToolCallsResult:
    """Expected calls are ``strict`` unless given."""
    match = {"match": "strict"} if "calls" in expected else {}
    return compare_tool_calls(ToolCallsExpectation.model_validate({**match, **expected}), calls)


def described(*calls: ToolCall, **expected: Any) -> str:
    return describe_tool_calls_result(compared(*calls, **expected))


# ── one call ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (call("get_weather", city="Beijing"), 'get_weather(city="Beijing")'),
        (call("now"), "now()"),
        (call("f", a=1, b=[True, None]), "f(a=1, b=[true, null])"),
        (call("f", a={"$in": [1]}), 'f(a={"$in": [1]})'),
        (ToolCall(name="f", args=None, raw_args="{oops"), "f(unreadable: {oops)"),
        (ToolCall(name="f", args=None), "f(arguments not known)"),
        (call("f", a="x\ny"), 'f(a="x\\ny")'),
    ],
)
def test_a_call_is_shown_as_code(made: ToolCall, text: str) -> None:
    assert describe_call(made) == text


@pytest.mark.parametrize(
    ("made", "limit"),
    [
        (call("f", **{f"a{n}": "x" * 100 for n in range(9)}), 240),
        (ToolCall(name="f", args=None, raw_args="x" * 999), 95),
    ],
    ids=["arguments", "unreadable arguments"],
)
def test_a_long_call_is_cut(made: ToolCall, limit: int) -> None:
    text = describe_call(made)
    assert "…" in text
    assert len(text) <= limit + 1


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (want("f"), "f(…)"),
        (want("f", {}), "f()"),
        (want("f", {"a": 1, "b": "x"}), 'f(a=1, b="x")'),
        (want("f", {"a": 1}, args_match="partial"), "f(a=1, …)"),
        (want("f", {}, args_match="partial"), "f(…)"),
        (want("f", {"a": 1}, args_match="ignore"), "f(…)"),
        (want("f", {"a": {"$in": ["09:00"]}}), 'f(a=one of ["09:00"])'),
        (want("f", result="ok"), "f(…) → ok"),
        (want("f", {"a": 1}, result="error", agent="billing", times=2), "f(a=1) → error by billing ×2"),
        (want("f", agent="billing", times=1), "f(…) by billing ×1"),
        (want("f", times={"at_most": 3}), "f(…) ×3 at most"),
        (want("f", times={"at_least": 2}), "f(…) ×2 or more"),
        (want("f", times={"at_least": 0}), "f(…) ×any number"),
        (want("f", times={"at_least": 1, "at_most": 3}), "f(…) ×1 to 3"),
        (want("f", times={"at_least": 0, "at_most": 3}), "f(…) ×0 to 3"),
        (want("f", times={"at_least": 3, "at_most": 3}), "f(…) ×3"),
    ],
)
def test_an_expected_call_has_its_match_result_agent_and_number(written: dict[str, Any], text: str) -> None:
    assert format_expected_call(ExpectedCall.model_validate(written)) == text


def test_a_forbidden_call_allows_more_arguments() -> None:
    assert format_expected_call(ForbiddenCall.model_validate(want("f", {"a": 1}))) == "f(a=1, …)"
    assert format_expected_call(ForbiddenCall.model_validate(want("f"))) == "f(…)"


def test_long_expected_calls_stay_distinct() -> None:
    one, two = (
        format_expected_call(
            ExpectedCall.model_validate(want("f", dict.fromkeys(("a", "b", last), "x" * 90), times=2))
        )
        for last in "cd"
    )
    assert one != two
    assert one.endswith(" ×2")
    assert len(one) <= 240 + len(" ×2")


# ── a comparison that holds or is not decided ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("expected", "calls", "text"),
    [
        (
            {"calls": [want("a"), want("b")]},
            [call("a"), call("b")],
            "expected (strict): a(…), b(…); called: a(), b()",
        ),
        ({"match": "within", "calls": [want("a")]}, [], "expected (within): a(…); called: no call"),
        ({"forbidden": [want("c")]}, [call("a")], "not allowed: c(…); called: a()"),
        (
            {"match": "contains", "calls": [want("a")], "forbidden": [want("c"), want("d")]},
            [call("a")],
            "expected (contains): a(…); not allowed: c(…), d(…); called: a()",
        ),
        (
            {
                "any_of": [
                    {"match": "strict", "calls": [want("a")]},
                    {"match": "unordered", "calls": [want("b")]},
                ]
            },
            [call("b")],
            "expected one of: (strict): a(…) | (unordered): b(…); called: b()",
        ),
        (
            {"match": "within", "calls": [want("a"), want("b")]},
            [call("a"), call("a"), call("b"), call("a")],
            "expected (within): a(…), b(…); called: a() ×2, b(), a()",
        ),
    ],
)
def test_a_comparison_that_holds_is_one_line(
    expected: dict[str, Any], calls: list[ToolCall], text: str
) -> None:
    result = compared(*calls, **expected)
    assert result.passed is True
    assert describe_tool_calls_result(result) == text
    assert list_call_faults(result) == ()


def test_no_call_at_all_is_expected_in_words() -> None:
    text = describe_tool_calls_result(compared(match="strict", calls=()))
    assert text == "expected (strict): no call; called: no call"


@pytest.mark.parametrize(
    ("expected", "made", "facts"),
    [
        (
            {"calls": [want("a", {"x": 1})]},
            ToolCall(name="a", args=None),
            ["not decided", "arguments", "a(arguments not known)"],
        ),
        (
            {"calls": [want("a", agent="billing")]},
            call("a"),
            ["not decided", "agent", "a()", "name: billing"],
        ),
        ({"calls": [want("a", result="ok")]}, call("a"), ["not decided", "results", "a() → unknown"]),
    ],
)
def test_what_is_not_decided_says_which_part_is_unknown(
    expected: dict[str, Any], made: ToolCall, facts: list[str]
) -> None:
    result = compared(made, **expected)
    text = describe_tool_calls_result(result)
    assert result.passed is None
    assert [fact for fact in facts if fact not in text] == []
    assert "\n" not in text
    assert list_call_faults(result) == ()
    assert ("return `AgentReply" in text) is ("agent" in expected["calls"][0])


@pytest.mark.parametrize(
    ("more", "result", "agent", "shown"),
    [
        ({}, ToolResult(value=1), "x", "a()"),
        ({"agent": "x"}, None, "x", "a() by x"),
        ({"result": "ok"}, ToolResult(value=1), "x", "a() → ok"),
        ({"result": "error"}, ToolResult(value={"error": "e"}, is_error=True), "x", "a() → error"),
        ({"agent": "x", "result": "ok"}, ToolResult(value=1), "x", "a() → ok by x"),
    ],
)
def test_calls_show_agent_and_result_only_if_they_are_asked_for(
    more: dict[str, Any], result: ToolResult | None, agent: str, shown: str
) -> None:
    made = ToolCall(name="a", args={}, result=result, agent=agent)
    assert described(made, calls=[want("a", **more)]).endswith(f"called: {shown}")


def test_an_unknown_agent_is_said() -> None:
    text = described(
        call("b"), ToolCall(name="a", args={}, agent="x"), calls=[want("b"), want("a", agent="x")]
    )
    assert "b() by an unknown agent, a() by x" in text


def test_what_is_forbidden_by_agent_shows_agents() -> None:
    text = described(ToolCall(name="a", args={}, agent="x"), forbidden=[want("a", agent="y")])
    assert text == "not allowed: a(…) by y; called: a() by x"


@pytest.mark.parametrize(
    ("runs", "more", "end"), [(20, 0, "f(n=19)"), (21, 0, "and 1 more"), (21, 4, "and 5 more")]
)
def test_at_most_twenty_runs_are_shown(runs: int, more: int, end: str) -> None:
    calls = [call("f", n=n) for n in range(runs)] + [call("f", n=runs - 1)] * more
    text = described(*calls, match="contains", calls=[want("f")])
    assert text.endswith(end)
    assert text.count("f(n=") == 20


# ── faults ───────────────────────────────────────────────────────────────────────────────────────


def faults(*calls: ToolCall, **expected: Any) -> list[str]:
    """The lines after expected and called."""
    result = compared(*calls, **expected)
    assert result.passed is False
    lines = describe_tool_calls_result(result).splitlines()
    return lines[
        bool(expected.get("calls") or expected.get("any_of")) + bool(expected.get("forbidden")) + 1 :
    ]


@pytest.mark.parametrize(
    ("expected", "calls", "beginnings"),
    [
        ({"calls": [want("a")]}, [], ["missing: a(…) — never called"]),
        (
            {"calls": [want("a", {"x": 1})]},
            [call("a", x=2)],
            ["missing: a(x=1) — nearest: a(x=2): ", "extra: a(x=2)"],
        ),
        ({"calls": [want("a"), want("b")]}, [call("b"), call("a")], ["out of order: "]),
        ({"calls": [want("a")]}, [call("a"), call("b"), call("b")], ["extra: b() ×2"]),
        (
            {"match": "contains", "calls": [want("a", times=2)]},
            [call("a")],
            ["missing: a(…) ×2 — called once"],
        ),
        (
            {"match": "contains", "calls": [want("a", times=3)]},
            [call("a"), call("a")],
            ["missing: a(…) ×3 — called 2 times"],
        ),
        (
            {"match": "contains", "calls": [want("a", times=1)]},
            [call("a"), call("a")],
            ["extra: a()"],
        ),
        ({"forbidden": [want("c")]}, [call("c"), call("a"), call("c")], ["forbidden: c() ×2"]),
    ],
    ids=["never", "nearest", "order", "extra", "once", "twice", "too many", "forbidden"],
)
def test_each_fault_has_a_line(
    expected: dict[str, Any], calls: list[ToolCall], beginnings: list[str]
) -> None:
    found = faults(*calls, **expected)
    assert len(found) == len(beginnings)
    assert [each for each, start in zip(found, beginnings, strict=True) if not each.startswith(start)] == []


def test_a_call_that_was_made_too_often_says_how_often() -> None:
    (line,) = faults(
        call("a"), call("a"), call("a"), match="contains", calls=[want("a", times={"at_most": 2})]
    )
    assert line.endswith(" — a(…) ×2 at most was called 3 times")


def test_within_says_how_an_extra_call_differs() -> None:
    extra, difference = faults(call("a", x=3), match="within", calls=[want("a", {"x": 1})])
    assert extra == "extra: a(x=3)"
    assert difference.startswith("  a(x=3) — ")
    (alone,) = faults(call("b"), match="within", calls=[want("a", {"x": 1})])
    assert alone == "extra: b()"


def test_the_closest_alternative_is_numbered() -> None:
    options = [{"calls": [want("a"), want("b"), want("c")]}, {"calls": [want("x"), want("y")]}]
    first, *rest = faults(call("x"), any_of=options)
    assert first.startswith("closest is alternative 2 of 2: missing: y(…)")
    assert rest == []
    (first, *_) = faults(call("a"), call("b"), any_of=options)
    assert first.startswith("closest is alternative 1 of 2: missing: c(…)")


def test_missing_calls_beyond_the_first_are_counted() -> None:
    found = faults(calls=[want(f"f{n}") for n in range(MAX_NEAREST_SHOWN + 2)])
    shown = [line for line in found if line.endswith("never called")]
    assert len(shown) == MAX_NEAREST_SHOWN
    assert found[-1] == "missing: 2 more"
    assert found[: len(shown)] == [f"missing: f{n}(…) — never called" for n in range(len(shown))]


@pytest.mark.parametrize(
    ("expected", "calls", "listed"),
    [
        ({"calls": [want("book", {"time": "20:00"})]}, [], ('missing book(time="20:00")',)),
        ({"forbidden": [want("cancel")]}, [call("cancel", id="A-7")] * 2, ('forbidden cancel(id="A-7")',)),
        ({"calls": [want("a")]}, [call("a"), call("b"), call("c")], ("extra b()", "extra c()")),
        (
            {"calls": [want("a")], "forbidden": [want("c")]},
            [call("c")],
            ("missing a(…)", "forbidden c()", "extra c()"),
        ),
        (
            {"match": "within", "calls": [want("a")]},
            [ToolCall(name="b", args=None)],
            ("extra b(arguments not known)",),
        ),
    ],
)
def test_faults_are_listed_once_each(
    expected: dict[str, Any], calls: list[ToolCall], listed: tuple[str, ...]
) -> None:
    assert list_call_faults(compared(*calls, **expected)) == listed


def test_calls_out_of_order_are_listed() -> None:
    result = compared(call("b"), call("a"), calls=[want("a"), want("b")])
    assert list_call_faults(result) == tuple(f"out of order {each.name}()" for each in result.out_of_order)
    assert result.out_of_order


@pytest.mark.parametrize(("count", "more"), [(20, ""), (21, "and 1 more"), (1300, "and 1,280 more")])
def test_at_most_twenty_faults_are_listed(count: int, more: str) -> None:
    listed = list_call_faults(
        compared(*(call("b", n=n) for n in range(count)), match="within", calls=[want("a")])
    )
    assert len(listed) == 20 + bool(more)
    assert listed[0] == "extra b(n=0)"
    assert listed[-1].startswith(more or "extra")
