"""Wrong and malformed arguments of tool calls: schema, empty values, values without a source, notation."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.scoring.detectors.arguments import malformed_arguments, wrong_arguments
from agenteval.scoring.detectors.detector_input import DetectorInput, ToolFacts
from tests.support.detector_samples import CITY, call, conversation, failing, places, turn

ORDER = {"order_id": "#W2378156", "user_id": "U-10042", "created_at": "2026-05-04", "code": "BK-77120"}
POLICY = "Today is 2026-05-10. Complaints go to care@shop.example."


def wrong(*calls: Any, user: str = "?", **known: Any) -> list[int | None]:
    talk = conversation(turn(user, *calls, "Done."), **known)
    return [at for _, at in places(wrong_arguments, talk)]


def after_order(name: str = "get_it", **args: Any) -> bool:
    """Check whether a call is reported that follows a look-up of an order."""
    found = wrong(call("get_order", ORDER), call(name, **args), policy=POLICY)
    assert found in ([], [1])
    return bool(found)


# ── the schema ───────────────────────────────────────────────────────────────────────────────────

IDS = {"type": "object", "properties": {"ids": {"type": "array"}, "n": {"type": "integer"}}}
TOOLS = {"weather": ToolFacts(parameters=CITY), "find": ToolFacts(parameters=IDS), "free": ToolFacts()}


@pytest.mark.parametrize(
    ("made", "is_wrong"),
    [
        (call("weather", city="Rome"), False),
        (call("weather", city=7), True),
        (call("weather"), True),
        (call("free", city=7), False),
        (call("undeclared", city=7), False),
        (call("find", ids=["a"], n=1), False),
        (call("find", ids='["a"]'), False),  # JSON text that the tool accepted
        (call("find", ids='{"a": 1}'), True),  # decoded, it is still no list
        (call("find", ids='["a"'), True),
        (call("find", ids="a, b"), True),
        (call("find", ids='["a"]', n="x"), True),
        (call("find", {"error": "no"}, is_error=True, ids='["a"]'), True),
        (call("find", ids='["a"]').model_copy(update={"result": None}), True),
        (call("weather", raw="city=7"), False),
    ],
)
def test_arguments_against_the_schema(made: ToolCall, is_wrong: bool) -> None:
    assert wrong(made, tools=TOOLS) == ([0] if is_wrong else [])
    assert wrong(made, tools=TOOLS, observed=False) == ([0] if is_wrong else [])


# ── empty values ─────────────────────────────────────────────────────────────────────────────────

NEEDS_TITLE = {"type": "object", "properties": {}, "required": ["title"]}
EMPTY_TOOLS = {
    "set_it": ToolFacts(parameters=NEEDS_TITLE),
    "free": ToolFacts(),
    "list": ToolFacts({"required": 1}),
}


@pytest.mark.parametrize(
    ("name", "args", "is_wrong"),
    [
        ("set_it", {"title": ""}, True),
        ("set_it", {"title": "  ", "note": ""}, True),
        ("set_it", {"title": "", "note": "x"}, False),
        ("set_it", {"title": "", "count": 1}, False),
        ("set_it", {"title": "x"}, False),
        ("free", {"title": ""}, False),
        ("list", {"title": ""}, False),
        ("undeclared", {"title": ""}, False),
        ("undeclared", {}, False),
        ("undeclared", {"title": "<order_id>"}, True),
        ("undeclared", {"title": "YOUR_API_KEY"}, True),
        ("undeclared", {"title": "x", "other": "YOUR_NAME"}, True),
        ("undeclared", {"title": "<b>"}, False),
        ("undeclared", {"title": "<order>"}, False),
        ("undeclared", {"title": "of YOUR_NAME"}, False),
    ],
)
def test_arguments_without_a_value(name: str, args: dict[str, Any], is_wrong: bool) -> None:
    assert wrong(call(name, **args), tools=EMPTY_TOOLS) == ([0] if is_wrong else [])


# ── values without a source ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("args", "is_wrong"),
    [
        ({"order_id": "#W2378156"}, False),
        ({"order_id": "w2378156"}, False),
        ({"order_id": "#W2378157"}, True),
        ({"order_id": "#W9990001"}, True),
        ({"order": {"id": "#W9990001"}}, True),
        ({"orders": ["#W2378156", "#W9990001"]}, True),
        ({"note": "about #W9990001"}, False),  # prose
        ({"number": 99900017777}, False),  # not text
        ({"to": "ann@home.example"}, True),
        ({"to": "care@shop.example"}, False),
        ({"order_id": ""}, False),
        # Filled in by the code around the agent.
        ({"session_id": "#W9990001"}, False),
        ({"api_key": "#W9990001"}, False),
        ({"apikey": "#W9990001"}, False),
        ({"trace": {"id": "#W9990001"}}, False),
        ({"request_id": "#W9990001"}, False),
        ({"tenant": "#W9990001"}, False),
    ],
)
def test_a_value_that_nobody_gave(args: dict[str, Any], is_wrong: bool) -> None:
    assert after_order(**args) is is_wrong
    assert not wrong(call("get_order", ORDER), call("get_it", **args), observed=False)


@pytest.mark.parametrize(
    "date",
    [
        "2026-06-19",
        "2026-06-19T10:30",
        "2026-06-19T10:30:00Z",
        "2026-06-19T10:30:00.123456Z",
        "2026-06-19T10:30:00+02:00",
        "2026-06-19 10:30",
        "2026-06-19T10",
        "19-06-2026",
        "19-06-26",
        "06/19/2026",
        "2026/06/19",
        "19.06.2026",
        "19 June 2026",
        "19-Jun-2026",
        "2026-06",
        "20260619",
        "20260619T1030",
        "20260619T103000Z",
        "2026-W25",
        "2026-06-19/2026-06-20",
        "2026-05-05",  # one digit from a date that was given
        "10:30",
    ],
)
def test_a_date_needs_no_source(date: str) -> None:
    assert not after_order(date=date)
    assert not after_order(span={"from": date, "to": [date]})
    assert not wrong(call("find", start=date))


@pytest.mark.parametrize(
    ("name", "value", "is_wrong"),
    [
        ("create_order", "QX-990017", False),
        ("add_label", "QX-990017", False),
        ("setName", "QX-990017", False),
        ("get_order", "QX-990017", True),
        ("recreated_order", "QX-990017", True),
        ("create_order", "BK-77121", True),  # one digit from a value that was given
        ("create_order", "ann@home.example", True),
    ],
)
def test_a_call_that_creates_something_may_name_it(name: str, value: str, is_wrong: bool) -> None:
    assert after_order(name, label=value) is is_wrong


@pytest.mark.parametrize(
    ("key", "value", "fails", "is_wrong"),
    [
        ("user_id", "QX-990017-B", False, False),
        ("userId", "QX-990017-B", False, False),
        ("user", "QX-990017-B", False, False),
        ("customer", "QX-990017-B", False, False),
        ("user_id", "QX-990017-B", True, True),
        ("user_id", "U-90417", False, True),  # a known shape
        ("superuser", "QX-990017-B", False, True),
        ("user_ids", "QX-990017-B", False, True),
        ("order_user_id", "QX-990017-B", False, False),
    ],
)
def test_who_the_user_is_may_be_filled_in(key: str, value: str, fails: bool, is_wrong: bool) -> None:
    made = failing("get_it", **{key: value}) if fails else call("get_it", **{key: value})
    assert wrong(call("get_order", ORDER), made) == ([1] if is_wrong else [])


@pytest.mark.parametrize(
    "path",
    [
        "session",
        "token",
        "auth",
        "secret",
        "api_key",
        "apikey",
        "trace",
        "request_id",
        "requestId",
        "idempotency_key",
        "tenant",
        "context",
        "nonce",
        "uuid",
        "Session_ID",
    ],
)
def test_what_the_code_around_the_agent_fills_in(path: str) -> None:
    assert not after_order(**{path: "#W9990001"})
    assert not after_order(**{f"the_{path}_of": {"it": "#W9990001"}})
    assert after_order(**{path[1:]: "#W9990001"})


@pytest.mark.parametrize(
    "verb", ["create", "generate", "register", "add", "new", "make", "issue", "reset", "set"]
)
def test_verbs_that_introduce_a_name(verb: str) -> None:
    assert not after_order(f"{verb}_code", label="QX-990017")
    assert after_order(f"{verb}x_code", label="QX-990017")


@pytest.mark.parametrize("who", ["user", "customer", "account", "member", "client", "caller"])
def test_parameters_that_identify_the_user(who: str) -> None:
    for key, is_wrong in ((f"{who}_id", False), (f"{who}Id", False), (f"{who}id", False), (f"x{who}", True)):
        assert after_order(**{key: "QX-990017-B"}) is is_wrong
    assert not after_order(order={who: "QX-990017-B"})


def test_a_long_value_is_no_identifier() -> None:
    link = "https://shop.example/"
    assert after_order(link=link + "x" * (120 - len(link)))
    assert not after_order(link=link + "x" * (121 - len(link)))


def test_an_invented_value_is_reported_once_and_where_it_first_stands() -> None:
    invented = call("get_it", "ok", id="#W9990001")
    assert wrong(invented, invented) == [0]
    talk = conversation(turn("?", invented, "Done."), turn("?", invented, "Done."))
    assert places(wrong_arguments, talk) == [(0, 0)]
    talk = conversation(turn("?", "It is #W9990001."), turn("?", invented, "Done."))
    assert places(wrong_arguments, talk) == []  # the answer is another matter
    assert wrong(invented, user="Where is #W9990001?") == []


@pytest.mark.parametrize(("at_once", "found"), [(False, []), (True, [1])])
def test_a_result_is_no_source_of_a_call_made_at_the_same_time(at_once: bool, found: list[int]) -> None:
    calls = (call("find", {"id": "#W9990001"}), call("get_it", id="#W9990001"))
    assert wrong(*([calls] if at_once else calls)) == found


def test_after_a_result_that_is_not_in_the_record_nothing_is_without_a_source() -> None:
    unseen = call("find").model_copy(update={"result": None})
    assert wrong(unseen, call("get_it", id="#W9990001")) == []


@pytest.mark.parametrize(
    "known",
    [
        {"policy": "The shop is #W9990001."},
        {"now": "#W9990001"},
        {"truths": ("Order #W9990001.",)},
        {"beliefs": ("It is #W9990001.",)},
        {"tools": {"get_it": ToolFacts(parameters={"properties": {"id": {"enum": ["#W9990001"]}}})}},
        {"tools": {"get_it": ToolFacts(parameters={"properties": {"id": {"default": "#W9990001"}}})}},
    ],
)
def test_what_the_author_wrote_is_a_source(known: dict[str, Any]) -> None:
    assert wrong(call("get_it", id="#W9990001"), **known) == []


# ── arguments that cannot be read ────────────────────────────────────────────────────────────────

PLAIN = call("get", city="Rome")
JSON_TEXT = '"{\\"city\\": 1}"'


def odd(raw: str, *, was_read: bool = False, result: Any = "ok", is_error: bool = False) -> ToolCall:
    made = None if result is None else ToolResult(value=result, is_error=is_error)
    return ToolCall(name="get", args={"city": 1} if was_read else None, raw_args=raw, result=made)


REPR = odd("{'city': 1}", was_read=True)
FREE = odd("city is 1")
CUT = odd('{"city": ')


@pytest.mark.parametrize(
    ("calls", "found"),
    [
        ((PLAIN,), []),
        ((CUT,), [0]),
        ((FREE,), [0]),  # a single one is no habit
        ((REPR,), []),
        ((odd(JSON_TEXT, was_read=True),), []),
        ((odd(JSON_TEXT),), []),
        ((odd('"text"'),), [0]),
        ((odd("[1]"),), [0]),
        ((odd("{'city': 1,}", was_read=True),), [0]),  # Python would not write it so
        # With ordinary JSON elsewhere, all are reported.
        ((PLAIN, REPR), [1]),
        ((REPR, PLAIN), [0]),
        ((PLAIN, odd(JSON_TEXT)), [1]),
        ((call("get"), REPR), []),  # no arguments are no notation
        # A habit of the log.
        ((FREE, FREE), []),
        ((PLAIN, FREE, FREE), [1, 2]),
        ((CUT, CUT), [0, 1]),
        ((odd("  [1"), odd("  [1")), [0, 1]),
        ((odd("`x`"), odd("`x`")), [0, 1]),
        ((FREE, odd("city is 1", result={"error": "no"}, is_error=True)), [1]),
        ((FREE, odd("city is 1", result=None)), [1]),
    ],
)
def test_arguments_that_are_not_a_json_object(calls: tuple[ToolCall, ...], found: list[int]) -> None:
    talk: DetectorInput = conversation(turn("?", *calls, "Done."))
    assert [proof.call for proof in malformed_arguments(talk)] == found


@pytest.mark.parametrize(("length", "shown"), [(300, 300), (301, 300)])
def test_long_arguments_are_shortened(length: int, shown: int) -> None:
    (proof,) = malformed_arguments(conversation(turn("?", odd("{" + "x" * (length - 1)), "Done.")))
    assert len(proof.evidence) == shown
    assert proof.evidence.endswith("…") is (length > 300)
