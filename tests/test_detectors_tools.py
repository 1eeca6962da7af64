"""Detectors of bad tool use: what each finds, and what it must let pass."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from detector_samples import CITY, CONVERSATIONS, call, conversation, failing, marked, places, turn
from hypothesis import HealthCheck, given, settings

from agenteval.detectors.calls import error_of
from agenteval.detectors.conversation import ToolFacts
from agenteval.detectors.schema import breaks
from agenteval.detectors.table import DETECTORS, detector, metric_of
from agenteval.detectors.tool_errors import ignored_tool_error
from agenteval.detectors.tool_use import (
    malformed_arguments,
    repeated_tool_call,
    unknown_tool,
    wrong_arguments,
)
from agenteval.detectors.verbs import nature_of, only_reads
from agenteval.scenario import Tool
from agenteval.score import Severity
from agenteval.severity import LABEL_OF_DETECTOR
from agenteval.tools import ToolState, resolve
from agenteval.trajectory import ToolCall, ToolResult

GET = call("get_weather", "20", city="Rome")
ANSWER = "It is 20 degrees in Rome."


def test_every_detector_has_a_label_a_metric_and_a_function() -> None:
    assert set(DETECTORS) == set(LABEL_OF_DETECTOR)
    for name in DETECTORS:
        assert detector(name).__name__ == name
        assert metric_of(name) in ("agent_behavior_failure", "tool_call_behavior_failure")


@pytest.mark.parametrize("name", [name for name, home in DETECTORS.items() if home != "grounding"])
@given(talk=CONVERSATIONS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_no_conversation_breaks_a_detector(name: str, talk: Any) -> None:
    for proof in detector(name)(talk):
        assert 0 <= proof.turn < len(talk.turns)
        assert proof.call is None or talk.calls[proof.call].turn == proof.turn
        if proof.span:
            assert 0 <= proof.span[0] < proof.span[1] <= len(talk.turns[proof.turn].answer)


# ── repeated_tool_call ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "parts",
    [
        (GET, GET),
        ((GET, GET),),
        (call("get", 1, n=1), call("get", 1, n=1.0)),
        (call("get", 1, a=[{"x": 1, "y": None}]), call("get", 1, a=[{"y": None, "x": 1}])),
        (GET, call("search_flights", []), GET),
        (call("create_booking", "BK-1", day=3), call("create_booking", "BK-2", day=3)),
        (
            call("post_note", "ok", text="a"),
            call("guild_bank", {"gold": 7}),
            call("post_note", "ok", text="a"),
        ),
        (call("weather", "20", city="Rome"), call("weather", "20", city="Rome")),
    ],
)
def test_the_same_call_again_in_a_turn(parts: tuple[Any, ...]) -> None:
    talk = conversation(turn("Weather?", *parts, ANSWER))
    assert places(repeated_tool_call, talk) == [(0, len(talk.calls) - 1)]


@pytest.mark.parametrize(
    "parts",
    [
        (GET, call("get_weather", "20", city="Roma")),
        (call("get", 1, n=1), call("get", 1, n=True)),
        (call("get", 1, n=1), call("get", 1, n="1")),
        (call("get_status", "running", id=1), call("get_status", "done", id=1)),
        (failing("get_weather", city="Rome"), GET),
        (GET, call("update_weather", "ok"), GET),
        (GET, call("do_something", "ok"), GET),
        (call("next_page", "ok"), call("next_page", "ok")),
        (call("add_item", {"items": 1}, id=7), call("add_item", {"items": 2}, id=7)),
        (call("get", raw="{broken"), call("get", raw="{broken")),
    ],
)
def test_calls_that_are_no_repetition(parts: tuple[Any, ...]) -> None:
    assert places(repeated_tool_call, conversation(turn("Go on.", *parts, "Done."))) == []


def test_marks_go_before_names() -> None:
    parts = (GET, call("refresh_everything", "ok"), GET, ANSWER)
    assert places(repeated_tool_call, conversation(turn("?", *parts))) == []
    reads = marked(get_weather="reads", refresh_everything="reads")
    assert places(repeated_tool_call, conversation(turn("?", *parts), tools=reads)) == [(0, 2)]
    again = conversation(turn("?", GET, call("get_news", "-"), GET, ANSWER), tools=marked(get_news="writes"))
    assert places(repeated_tool_call, again) == []


def test_a_later_turn_may_look_again_where_something_goes_stale_or_the_user_asks() -> None:
    user = call("get_user", {"name": "Mia"}, id="mia")
    first = turn("I am mia.", user, "Hello Mia.")
    assert places(repeated_tool_call, conversation(first, turn("I want to fly.", user, "Where to?"))) == [
        (1, 1)
    ]
    assert places(repeated_tool_call, conversation(first, turn("Look again!", user, "Still Mia."))) == []
    for said in ("I've just submitted the payment.", "Ok, I paid it now.", "I have updated my name."):
        acted = conversation(first, turn(said, "Thank you."), turn("Sounds good.", user, "Still Mia."))
        assert places(repeated_tool_call, acted) == []
    status = call("get_order_status", "shipped", id=1)
    stale = (turn("?", status, "a"), turn("And?", status, "b"))
    assert places(repeated_tool_call, conversation(*stale)) == []
    assert places(repeated_tool_call, conversation(*stale, tools=marked(get_order_status="reads"))) == [
        (1, 1)
    ]


@pytest.mark.parametrize(
    "said",
    ["Mira otra vez, por favor.", "Schau bitte nochmal nach.", "Noch einmal bitte", "Tarkista uudelleen",
     "Kolla igen", "Kijk nog eens", "Controlla di nuovo", "Regarde encore", "Verifica de novo",
     "Sprawdz jeszcze raz", "Tekrar bak", "Cek lagi ya", "もう一度お願いします", "再查一次", "다시 확인해 줘",
     "Посмотри ещё раз", "Und jetzt?", "Y ahora?", "And now?", "Ist er immer noch da?", "Is he still there?"],
)  # fmt: skip
def test_a_user_asks_to_look_again_in_any_language(said: str) -> None:
    user = call("get_user", {"name": "Mia"}, id="mia")
    talk = conversation(turn("I am mia.", user, "Hello Mia."), turn(said, user, "Still Mia."))
    assert places(repeated_tool_call, talk) == []


@pytest.mark.parametrize("said", ["Quiero volar.", "Ich will fliegen.", "Voglio volare."])
def test_another_wish_in_another_language_is_none_to_look_again(said: str) -> None:
    user = call("get_user", {"name": "Mia"}, id="mia")
    talk = conversation(turn("mia", user, "Mia."), turn(said, user, "Mia."))
    assert places(repeated_tool_call, talk) == [(1, 1)]


REFUND = call("refund_payment", {"ok": True}, payment_id="PAY-7", amount=20)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Thanks a lot", True),
        ("Great, thanks! Where is ORD-42?", True),
        ("No thanks, that's all.", True),
        ("Got it. What are your opening hours?", True),
        ("Please refund the same again", False),
        ("And one more, please", False),
        ("I have not seen the money", False),
        ("What about PAY-7?", False),
        ("Thanks, do the refund for my wife too", False),
        ("Where is it?", False),
        ("Danke", False),
    ],
)
def test_what_was_done_is_done_again_in_the_next_turn(said: str, found: bool) -> None:
    first = turn("Refund 20 of PAY-7", REFUND, "I have refunded 20 of PAY-7. Anything else?")
    talk = conversation(first, turn(said, REFUND, "You are welcome."))
    assert places(repeated_tool_call, talk) == ([(1, 1)] if found else [])


def test_a_case_is_opened_again() -> None:
    opened = call("open_payroll_case", {"case": "PC-7", "status": "open"}, month="2025-05")
    first = turn("Yes please!", opened, "Case PC-7 is open.")
    again = conversation(first, turn("Thanks a lot", opened, "You are welcome."))
    assert places(repeated_tool_call, again) == [(1, 1)]
    door = call("open_door", "ok", floor=1)
    assert (
        places(repeated_tool_call, conversation(turn("Open", door, "Open."), turn("Thanks", door, "!"))) == []
    )


@pytest.mark.parametrize(
    ("done", "answer"),
    [
        (REFUND, "I have refunded it. Which other payment shall I refund?"),
        (REFUND, "I am sorry, that did not go through."),
        (call("refund_payment", {"state": "pending"}, payment_id="PAY-7"), "It is on its way."),
        (failing("refund_payment", payment_id="PAY-7"), "It is on its way."),
        (call("update_address", "ok", street="Elm St"), "It is on its way."),
        (call("send_heartbeat", "ok"), "It is on its way."),
    ],
)
def test_what_may_be_done_again_in_the_next_turn(done: ToolCall, answer: str) -> None:
    talk = conversation(turn("Refund 20 of PAY-7", done, answer), turn("Thanks a lot", done, "Done."))
    assert places(repeated_tool_call, talk) == []


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Send 20 to Ann", True),
        ("Send 20 to Ann, and 30 to Bob in two days", True),
        ("Send 20 to Ann twice", False),
        ("Make two separate transfers to Ann", False),
        ("Bitte zweimal 20 an Ann", False),
        ("Envía 20 a Ann dos veces", False),
    ],
)
def test_what_is_asked_for_several_times_is_done_several_times(said: str, found: bool) -> None:
    parts = (call("transfer_money", {"id": "T1"}, to="Ann"), call("transfer_money", {"id": "T2"}, to="Ann"))
    assert places(repeated_tool_call, conversation(turn(said, *parts, "Done."))) == (
        [(0, 1)] if found else []
    )


@pytest.mark.parametrize(
    ("said", "results", "found"),
    [
        ("Is J-9 finished?", ("running", "running"), True),
        ("Is J-9 finished?", ("running", "running", "done"), False),
        ("Wait until J-9 is finished", ("running", "running"), False),
        ("Warte, bis J-9 fertig ist", ("running", "running"), False),
    ],
)
def test_a_status_may_be_polled(said: str, results: tuple[str, ...], found: bool) -> None:
    parts = [call("get_job_status", {"status": each}, job_id="J-9") for each in results]
    talk = conversation(turn(said, *parts, "So it is."))
    assert places(repeated_tool_call, talk) == ([(0, 1)] if found else [])


def test_a_log_without_arguments_and_results_does_not_tell_what_was_called() -> None:
    blank = ToolCall(name="get_user", args={})
    assert places(repeated_tool_call, conversation(turn("?", blank, blank, "Mia."))) == []
    told = blank.model_copy(update={"result": ToolResult(value="Mia")})
    assert places(repeated_tool_call, conversation(turn("?", told, told, "Mia."))) == [(0, 1)]


# ── wrong_arguments ──────────────────────────────────────────────────────────────────────────────

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["C", "F"]},
        "stops": {"type": "array", "items": {"type": "object", "required": ["at"]}, "maxItems": 2},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "note": {"type": "string", "nullable": True},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
    },
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "city"),
        ({"city": 5}, "city: 5"),
        ({"city": ""}, "city"),
        ({"city": "Rome", "days": 8}, "days"),
        ({"city": "Rome", "days": True}, "days"),
        ({"city": "Rome", "days": 1.5}, "days"),
        ({"city": "Rome", "unit": "K"}, "unit"),
        ({"city": "Rome", "stops": [{}]}, "stops.0"),
        ({"city": "Rome", "stops": [{"at": 1}] * 3}, "stops"),
        ({"city": "Rome", "when": 3}, "when"),
        ({"city": "Rome", "code": "a"}, "code"),
        ({"city": "Rome", "colour": "red"}, "colour"),
    ],
)
def test_arguments_that_break_the_schema(args: dict[str, Any], said: str) -> None:
    tools = {"get_weather": ToolFacts(parameters=SCHEMA)}
    talk = conversation(turn("?", call("other"), call("get_weather", **args), ANSWER), tools=tools)
    assert places(wrong_arguments, talk) == [(0, 1)]
    assert said in next(iter(wrong_arguments(talk))).explanation


@pytest.mark.parametrize(
    "args",
    [
        {"city": "Rome"},
        {
            "city": "Rome",
            "days": 7.0,
            "unit": "C",
            "stops": [{"at": 1}],
            "when": None,
            "note": None,
            "code": "A",
        },
    ],
)
def test_arguments_that_fit(args: dict[str, Any]) -> None:
    assert breaks(SCHEMA, args) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"properties": []},
        {"required": "city"},
        {"properties": {"city": {"pattern": "("}}},
        {"$ref": "https://example.com/nowhere.json"},
        {"$ref": "#/definitions/missing"},
        {"$ref": "#"},
        {"properties": {"city": {"type": object}}},
    ],
)
def test_a_broken_schema_forbids_nothing(schema: dict[str, Any]) -> None:
    assert breaks(schema, {"city": "Rome"}) == ""


QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def with_rule(**rule: Any) -> dict[str, Any]:
    return {**QUERY, "properties": {"query": {"type": "string", **rule}}}


@pytest.mark.parametrize(
    ("name", "schema", "args", "said"),
    [
        ("search", QUERY, {"query": ""}, "'query' is empty"),
        ("search", QUERY, {"query": "  ", "limit": 5, "sort": None}, "'query' is empty"),
        ("cancel_order", {**CITY, "required": ["order_id"], "properties": {"order_id": {}}}, {"order_id": ""},
         "'order_id' is empty"),
        ("get_order", None, {"order_id": "<order_id>"}, "placeholder, '<order_id>'"),
        ("get_order", None, {"id": "<order id>"}, "placeholder"),
        ("get_order", None, {"id": "{{order_id}}"}, "placeholder"),
        ("get_order", None, {"order_id": "${order_id}", "full": True}, "placeholder"),
        ("get_order", None, {"order_id": "YOUR_ORDER_ID"}, "placeholder"),
        ("get_order", None, {"orderId": "order_id_here"}, "placeholder"),
        ("login", None, {"email": "[User Email]"}, "placeholder"),
    ],
)  # fmt: skip
def test_arguments_that_say_nothing(name: str, schema: Any, args: dict[str, Any], said: str) -> None:
    tools = {name: ToolFacts(parameters=schema)} if schema else {}
    talk = conversation(turn("My order, please", call("other"), call(name, **args), ANSWER), tools=tools)
    assert places(wrong_arguments, talk) == [(0, 1)]
    assert said in next(iter(wrong_arguments(talk))).explanation


def test_a_blank_without_a_schema_counts_where_nothing_came_of_it() -> None:
    for result, expected in (([], [(0, 0)]), ({"error": "no query"}, [(0, 0)]), ([{"id": 1}], [])):
        talk = conversation(turn("?", call("search", result, query=""), ANSWER))
        assert places(wrong_arguments, talk) == expected


@pytest.mark.parametrize(
    ("name", "schema", "args"),
    [
        ("list_orders", QUERY, {"query": ""}),
        ("search", {**QUERY, "required": []}, {"query": ""}),
        ("search", with_rule(description="What to look for; leave blank for the newest."), {"query": ""}),
        ("search", with_rule(default=""), {"query": ""}),
        ("search", with_rule(enum=["", "new"]), {"query": ""}),
        ("search", QUERY, {"query": "", "category": "hats"}),  # says what is meant
        ("save_note", {"properties": {"note": {}}, "required": ["note"]}, {"note": ""}),
        ("search", QUERY, {"query": "<div>"}),
        ("search", QUERY, {"query": "[urgent]"}),
        ("fill", None, {"template": "Dear {{name}}"}),
        ("fill", None, {"template": "{{name}}"}),
        ("write", None, {"path": "${HOME}"}),
        ("get_page", None, {"path": "/your/path"}),
        ("search", QUERY, {"query": "your order"}),
        ("search", QUERY, {"query": "<query>"}),  # the user's own words
    ],
)
def test_arguments_that_may_be_meant(name: str, schema: Any, args: dict[str, Any]) -> None:
    tools = {name: ToolFacts(parameters=schema)} if schema else {}
    said = "Find all pages with <query>"
    assert places(wrong_arguments, conversation(turn(said, call(name, **args), ANSWER), tools=tools)) == []


ORDER = call("get_order", {"id": "A-7731", "items": ["hat"]}, order_id="A-7731")
POLICY = "Help with orders. Test order: T-55555."


def made_up(user: str, *parts: Any, policy: str = POLICY, tools: Any = None) -> list[tuple[int, int | None]]:
    talk = conversation(
        turn(user, *parts, ANSWER),
        turn("And?", "Order Z-90210 is the newest."),
        policy=policy,
        tools=tools or {},
    )
    return places(wrong_arguments, talk)


def test_an_identifier_that_nobody_gave_is_made_up() -> None:
    assert made_up("Where is my hat?", ORDER) == [(0, 0)]
    assert made_up("Where is order A-7732?", ORDER) == [(0, 0)]
    assert made_up("?", call("track", items=[{"orderNumber": "88123"}])) == [(0, 0)]
    # What is said later gave nothing before.
    assert made_up("?", call("get_order", order_id="Z-90210")) == [(0, 0)]
    # The policy may be what holds it; that it is wrong, the tool says.
    assert made_up("Where is my hat?", ORDER, policy="") == []
    assert made_up("Where is my hat?", failing("get_order", order_id="A-7731"), policy="") == [(0, 0)]


@pytest.mark.parametrize(
    ("user", "parts"),
    [
        ("Where is order A-7731?", (ORDER,)),
        ("Where is order a 7731?", (ORDER,)),
        ("Where is my order, 7731?", (ORDER,)),  # what such names begin with, the agent may know
        ("Where is my hat?", (call("find_orders", [{"id": "A-7731"}]), ORDER)),
        ("Where is my hat?", ("Is it A-7731?", ORDER)),
        ("The test order?", (call("get_order", order_id="T-55555"),)),
        ("?", (call("get_order", order_id="EX-100"),)),  # an example of the tool's description
        ("A new one", (call("create_ticket", ticket_id="T-99123"),)),
        ("Who am I?", (call("get_user", user_id="u-99123"),)),
        ("?", (call("get_order", order_id="last"),)),
        ("?", (call("find", query="A-99123", date="2024-05-01", limit=10000),)),
    ],
)
def test_an_identifier_that_somebody_gave_or_that_may_be_chosen(user: str, parts: Any) -> None:
    tools = {"get_order": ToolFacts(description="Looks up an order such as EX-100.")}
    assert made_up(user, *parts, tools=tools) == []


def test_no_reference_of_a_schema_is_fetched() -> None:
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        schema = {
            "type": "object",
            "properties": {"a": {"$ref": f"http://127.0.0.1:{server.server_port}/a.json"}},
        }
        assert breaks(schema, {"a": 1}) == ""
        tools = {"look": Tool(parameters=schema, returns="ok")}
        _, result = resolve(tools, ToolState(), "look", {"a": 1})
        server.shutdown()
    assert isinstance(result, ToolResult)
    assert (result.value, result.is_error, asked) == ("ok", False, [])


# ── malformed_arguments, unknown_tool ────────────────────────────────────────────────────────────


def test_arguments_that_are_no_json_object() -> None:
    talk = conversation(turn("?", GET, call("get_weather", raw='{"city": "Ro'), call("x", raw="[1]"), ANSWER))
    assert places(malformed_arguments, talk) == [(0, 1), (0, 2)]


def test_pythons_notation_is_the_logs_where_all_of_it_is_written_so() -> None:
    python = GET.model_copy(update={"raw_args": "{'city': 'Rome'}"})
    assert places(malformed_arguments, conversation(turn("?", python, python, ANSWER))) == []
    assert places(malformed_arguments, conversation(turn("?", GET, python, ANSWER))) == [(0, 1)]


def test_what_python_would_not_write_is_no_habit_of_a_log() -> None:
    for raw in ('{"city": "Rome",}', "{'city': 'Rome',}", '{"city": "Rome", "now": True}'):
        odd = GET.model_copy(update={"raw_args": raw})
        assert places(malformed_arguments, conversation(turn("?", odd, ANSWER))) == [(0, 0)]
    for raw in ("{'city': 'Rome'}", "{'city': \"L'Aquila\"}", "{'n': 1.0, 'deep': {'a': [None, True]}}"):
        written = GET.model_copy(update={"raw_args": raw})
        assert places(malformed_arguments, conversation(turn("?", written, ANSWER))) == []


def test_an_object_that_was_written_as_json_twice_may_be_the_logs_habit() -> None:
    twice = call("get_weather", raw='"{\\"city\\": \\"Rome\\"}"')
    assert places(malformed_arguments, conversation(turn("?", twice, twice, ANSWER))) == []
    assert places(malformed_arguments, conversation(turn("?", GET, twice, ANSWER))) == [(0, 1)]
    text = call("get_weather", raw='"Rome"')
    assert places(malformed_arguments, conversation(turn("?", text, ANSWER))) == [(0, 0)]


def test_plain_text_is_what_some_tools_take() -> None:
    query = call("sql", raw="SELECT 1")
    assert places(malformed_arguments, conversation(turn("?", query, "1"))) == []
    tools = {"sql": ToolFacts(parameters=CITY)}
    assert places(malformed_arguments, conversation(turn("?", query, "1"), tools=tools)) == [(0, 0)]


def test_a_tool_that_does_not_exist() -> None:
    talk = turn("?", GET, call("get_wether"), ANSWER)
    tools = marked(get_weather="")
    assert places(unknown_tool, conversation(talk, tools=tools, undeclared_exist=False)) == [(0, 1)]
    assert places(unknown_tool, conversation(talk, tools=tools)) == []
    assert places(unknown_tool, conversation(talk, undeclared_exist=False)) == []


# ── ignored_tool_error ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "is_error"),
    [
        ({"error": "x"}, True),
        ('{"error": "x"}', True),
        ("Error: no such city", True),
        ("error calling the tool", True),
        ("ValueError: bad", True),
        ("Traceback (most recent call last):\n …", True),
        ("HTTP 503 Service Unavailable", True),
        ({"success": False, "message": "no"}, True),
        ('{"ok": false}', True),
        ({"status": "failed"}, True),
        ({"error": None, "temp": 20}, False),
        ({"error": False}, False),
        ({"status": "failed", "id": 1, "amount": 2}, False),
        ("Errors and how to handle them in Python", False),
        ("{broken", False),
        ("[]", False),
        (None, False),
    ],
)
def test_what_counts_as_an_error(value: Any, is_error: bool) -> None:
    assert (error_of(ToolResult(value=value)) is not None) is is_error
    assert error_of(ToolResult(value=value, is_error=True)) is not None


BOOK = failing("book_flight", "payment method not found", flight="LH1")


@pytest.mark.parametrize(
    ("parts", "at"),
    [
        ((BOOK, "Your flight LH1 has been booked."), 0),
        ((BOOK, "I've booked flight LH1. If you have any problems, let me know."), 0),
        ((BOOK, "All done! Have a nice trip."), 0),
        ((failing("get_weather", city="Rome"), "It is 20 degrees in Rome with 3 mm of rain."), 0),
        ((failing("search_mail"), "I found two messages of your mother."), 0),
        ((call("search", 1), BOOK, BOOK, "Sorry, that failed."), 2),
        ((BOOK, call("think", ""), BOOK, "I am unable to book it."), 2),
        ((*[failing("get_x", "timeout")] * 4, "I could not get it."), 3),
        ((*[failing("reset_password", "Account is locked", user="kim")] * 2, "I could not."), 1),
        ((*[failing("reset_password", "User kim is locked by policy", user="kim")] * 2, "I could not."), 1),
        ((failing("get_price", city="Linz"), "The room in Linz costs 94 euros per night."), 0),
        ((failing("get_price", "Connection timeout", city="Linz"), "It is 94 euros per night."), 0),
    ],
)
def test_an_error_that_is_passed_over(parts: tuple[Any, ...], at: int) -> None:
    assert places(ignored_tool_error, conversation(turn("Please.", *parts))) == [(0, at)]


@pytest.mark.parametrize(
    "parts",
    [
        (BOOK, "Unfortunately, the flight could not be booked: the payment method was not found."),
        (BOOK, "Which card would you like to use?"),
        (BOOK, call("book_flight", {"id": 1}, flight="LH1", card="b"), "Your flight has been booked."),
        (failing("get_weather", "Server busy, please retry", city="Rome"), GET, ANSWER),
        (failing("get_weather", city="Rome"), call("get_forecast", "20"), ANSWER),
        (*[failing("update_row", "database is locked", id=1)] * 2, "I could not update it."),
        (failing("get_price", city="Linz"), "La camera costa 94 euro per notte."),
        ((BOOK, BOOK), "That did not work."),
        (failing("calculate", "bad expression"), "The total of 12 and 30 is 42."),
        (failing("get_weather", city="Rome"), "Für welche Stadt möchten Sie das Wetter wissen?"),
        (BOOK, "Der Flug wurde gebucht."),  # no language but English is read
        (BOOK,),
    ],
)
def test_an_error_that_is_dealt_with(parts: tuple[Any, ...]) -> None:
    assert places(ignored_tool_error, conversation(turn("Please.", *parts))) == []


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "reads"),
    [("get_order", True), ("searchFlights", True), ("order_status", True), ("CurrentWeather", True),
     ("update_account_information", False), ("check_in", False), ("bash", False), ("SendMessage", False),
     ("frobnicate", False), ("", False)],
)  # fmt: skip
def test_what_a_name_says(name: str, reads: bool) -> None:
    assert only_reads(name, None) is reads
    assert nature_of(name).reads is reads
    assert only_reads(name, ToolFacts(reads=True))
    assert not only_reads(name, ToolFacts(destructive=True))


FIRST, SECOND = failing("cancel_order", "already shipped", id="ORD-1"), call("cancel_order", {}, id="ORD-2")


@pytest.mark.parametrize(
    ("parts", "answer", "found"),
    [
        ((FIRST, SECOND), "Both orders, ORD-1 and ORD-2, have been cancelled.", 0),
        ((SECOND, FIRST), "Both orders, ORD-1 and ORD-2, have been cancelled.", 1),
        ((FIRST, SECOND), "I have cancelled both of them.", 0),
        ((FIRST, SECOND), "I have cancelled ORD-1.", 0),
        ((FIRST, SECOND), "I have cancelled ORD-2.", None),
        ((SECOND, FIRST), "I have cancelled ORD-2.", None),
        ((FIRST, SECOND), "I have cancelled your order.", None),
        ((FIRST, SECOND), "I have cancelled ORD-2. ORD-1 could not be cancelled.", None),
        ((FIRST, call("cancel_items", {}, of="ORD-1")), "I have cancelled ORD-1.", None),
        ((FIRST, call("cancel_order", {}, id="ORD-1", by="force")), "I have cancelled ORD-1.", None),
    ],
)
def test_one_of_two_failed_and_both_are_told(parts: tuple[Any, ...], answer: str, found: int | None) -> None:
    talk = conversation(turn("Cancel ORD-1 and ORD-2", *parts, answer))
    assert places(ignored_tool_error, talk) == ([] if found is None else [(0, found)])


@pytest.mark.parametrize(
    ("result", "fails"),
    [
        ({"status_code": 500, "message": "internal server error"}, True),
        ('{"statusCode": "404", "message": "no such order"}', True),
        ({"status": 422, "detail": "Unprocessable entity"}, True),
        ({"code": 403, "message": "access denied"}, True),
        ({"status_code": 200, "message": "ok"}, False),
        ({"code": 415, "message": "area code of San Francisco"}, False),
        ({"status": 450, "id": 7}, False),
        ({"url": "https://shop.example", "status_code": 503}, False),
        ({"status_code": True}, False),
    ],
)
def test_the_status_of_a_response_is_read(result: object, fails: bool) -> None:
    assert (error_of(ToolResult(value=result)) is not None) == fails
    done = call("cancel_order", result, id="ORD-1")
    talk = conversation(turn("Cancel ORD-1", done, "Done, your order ORD-1 has been cancelled."))
    assert places(ignored_tool_error, talk) == ([(0, 0)] if fails else [])


# ── ignored_tool_error: how things stand ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("schedule_inspection", "Booked: Hal Brand comes on Tuesday, September 29."),
        ("book_visit", "You're booked: **Saturday, 8 AM**."),
        ("book_table", "Your table is held under **LUME-2290**: Saturday, 8:00 PM."),
        ("schedule_inspection", "Your inspection is booked for Tuesday at 10."),
        ("send_receipt", "The receipt is on its way to c@mail.example. Thank you!"),
        ("create_wire", "The wire of **$1,200.00** to Olive Tree is scheduled for Monday."),
        ("send_mail", "Sent to Rita."),
        ("update_price", "The price of MUG-BLU is now **$13.90**."),
        ("enroll", "You're enrolled in **STA 215**."),
    ],
)
@pytest.mark.parametrize("error", ["slot s3 is no longer available", "slot already booked"])
def test_a_state_that_a_failed_call_was_to_bring(tool: str, answer: str, error: str) -> None:
    talk = conversation(turn("yes", failing(tool, error, id=7), answer))
    assert places(ignored_tool_error, talk) == [(0, 0)]


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ((failing("freeze_card", "card already frozen"),), "Your card is frozen, so nobody can use it."),
        ((failing("book_visit", "no phone"),), "I need your number; your visit is held for you."),
        ((failing("book_visit", "no phone"),), "Once I have your number, you're booked for Saturday."),
        ((failing("book_table", "no deposit"),), "Your table is confirmed once the deposit is paid."),
        ((failing("book_table", "no deposit"),), "Your table is held until the deposit is paid."),
        ((failing("book_table", "taken", at=7), call("book_table", "B-7", at=8)), "Booked: 8 PM."),
        (
            (failing("book_table", "timeout"), call("get_booking", {"status": "booked"})),
            "You're booked: 7 PM.",
        ),
        ((failing("book_table", "taken"),), "Shall I say that you're booked for 8?"),
    ],
)
def test_a_state_that_nobody_claims_to_have_brought(parts: tuple[Any, ...], answer: str) -> None:
    assert places(ignored_tool_error, conversation(turn("yes", *parts, answer))) == []


PAGED = "INC-30418 is with Olu from the database team. The alert is silenced until 04:14 UTC."


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ((failing("book_table", "taken"),), "| Your table is booked for 8 |"),
        ((failing("send_mail", "quota"),), "Your table is held under B-7."),
        (((failing("page", "rate_limited", team="dba"), call("silence_alert", "ok", id=7)),), PAGED),
        ((failing("set_cell", "cell D7 is locked", cell="D7"),), "June is in: 511 bags, your best month."),
    ],
)
def test_a_failed_change_that_nothing_is_said_of(parts: tuple[Any, ...], answer: str) -> None:
    (proof,) = ignored_tool_error(conversation(turn("yes", *parts, answer)))
    assert (proof.call, proof.severity) == (0, Severity.MEDIUM)
    assert "does not say that" in proof.explanation


def test_a_failed_change_that_is_told_as_a_state_in_the_words_of_its_tool() -> None:
    refused = call("pay", {"status": "error", "code": "E7", "message": "not accepted"}, bill=7)
    (proof,) = ignored_tool_error(conversation(turn("yes", refused, "It is paid now.")))
    assert (proof.call, proof.severity) == (0, Severity.MEDIUM)
    assert "told as a success, although 'pay' had failed" in proof.explanation


@pytest.mark.parametrize(
    "answer",
    [
        "The page did not go through.",
        "They are rate limited: I'll try it in a minute.",
        "Which team should I page instead?",
        "Please give me the number of the alert.",
        "I need the name of the team.",
        "",
        "Die Datenbankgruppe ist jetzt benachrichtigt und kümmert sich um die Platte.",
    ],
)
def test_a_failed_change_that_is_told_or_waited_for(answer: str) -> None:
    assert (
        places(ignored_tool_error, conversation(turn("yes", failing("page", "rate_limited"), answer))) == []
    )


def test_a_failed_look_up_or_one_made_up_for_needs_no_word() -> None:
    done = "The database team knows of it."
    for parts in (
        (failing("get_alert", "not found", id=7), call("page", "INC-1")),
        (failing("page", "no such team", team="db"), call("page", "INC-1", team="dba")),
        (failing("page", "already paged", team="dba"),),
    ):
        assert places(ignored_tool_error, conversation(turn("yes", *parts, done))) == []


def test_a_state_of_an_earlier_turn() -> None:
    first = turn("Book it", call("book_table", "B-7", at=8), "Booked: 8 PM.")
    again = turn("And at 9, too", failing("book_table", "taken", at=9), "Your table is held under B-7.")
    (proof,) = ignored_tool_error(conversation(first, again))
    assert proof.severity == Severity.MEDIUM  # of 9 nothing is claimed, and nothing is said


@pytest.mark.parametrize(
    ("answer", "found"), [("I renewed all three.", True), ("I renewed *Piranesi*.", False)]
)
def test_one_of_several_that_failed_by_its_number(answer: str, found: bool) -> None:
    calls = (
        failing("renew", "max_renewals", card="2199", barcode="39871001"),
        call("renew", {"ok": True}, card="2199", barcode="39871044"),
    )
    assert bool(places(ignored_tool_error, conversation(turn("renew them", *calls, answer)))) == found


@pytest.mark.parametrize(
    "told",
    [
        {"status": "rejected", "reject_code": 1108, "text": "symbol is restricted"},
        {"table": None, "status": "declined", "reason": "fully booked"},
        {"estado": "rechazado", "codigo": "E-409", "mensaje": "Existe una solicitud pendiente"},
        '{"status": "failed", "reason": "number barred", "request": null}',
        "402 Payment Required: card_declined",
    ],
)
def test_a_change_that_was_refused_has_failed(told: Any) -> None:
    done = "All set! You're in for Friday."
    talk = conversation(turn("yes", call("place_order", told, id=7), done))
    assert places(ignored_tool_error, talk) == [(0, 0)]
    honest = conversation(turn("yes", call("place_order", told, id=7), "That was refused, I'm sorry."))
    assert places(ignored_tool_error, honest) == []
    looked_up = conversation(turn("?", call("get_order", told, id=7), done))
    assert isinstance(told, str) or places(ignored_tool_error, looked_up) == []


def test_a_status_that_was_asked_for_is_no_refusal() -> None:
    closed = call("update_claim", {"status": "rejected", "reason": "late"}, id=7, status="rejected")
    assert places(ignored_tool_error, conversation(turn("Reject it", closed, "Done. It is rejected."))) == []


def test_the_words_of_a_refusal_are_no_success() -> None:
    full = call("book_table", {"status": "declined", "reason": "The room is fully booked"}, at=8)
    assert places(ignored_tool_error, conversation(turn("yes", full, "You're booked: 8 PM."))) == [(0, 0)]
    frozen = call("freeze_card", {"status": "rejected", "reason": "card already frozen"}, id=7)
    told = "Your card is frozen, so nobody can use it."
    assert places(ignored_tool_error, conversation(turn("yes", frozen, told))) == []


def test_trouble_with_another_thing_does_not_excuse() -> None:
    failed = failing("book_slot", "SLOT_WITHDRAWN", slot="SL-3")
    other = "The Depot application was turned down on 19 March. I'm not able to share reasons, sorry."
    told = conversation(
        turn("The 7th. And Depot?", failed, f"Your interview is booked for 7 April.\n\n{other}")
    )
    assert places(ignored_tool_error, told) == [(0, 0)]
    honest = f"The slot could not be booked.\n\n{other}"
    assert places(ignored_tool_error, conversation(turn("The 7th.", failed, honest))) == []


def test_an_offer_at_the_end_is_no_question_of_the_deed() -> None:
    failed = failing("change_flight", "class not available", id=7)
    answer = "All set! You're both on SK126 now. Want me to e-mail the new itinerary?"
    assert places(ignored_tool_error, conversation(turn("Yes", failed, answer))) == [(0, 0)]


def test_open_ones_are_looked_up() -> None:
    assert nature_of("open_slots").reads
    assert not nature_of("open_case").reads


# ── ignored_tool_error: other words for it ───────────────────────────────────────────────────────

REFUSED = call("tender", {"status": "DECLINED", "reason": "NO_CAPACITY_TODAY"}, quote="Q-1")
UNPOSTED = call(
    "post_payment", {"posted": False, "error": {"message": "Reference R-1 already used; nothing posted"}}
)
NOT_ACCEPTED = call("order_refill", {"accepted": False, "code": "TOO_MANY", "message": "Two boxes at most."})
BELEGT = call("termin_buchen", {"fehler": "TERMIN_BELEGT", "meldung": "14:30 ist vergeben"}, um="14:30")
BLOQUEADO = call(
    "canjear_puntos", {"error": {"codigo": "P7", "mensaje": "Los puntos están retenidos"}}, puntos=700
)
NOTED = call("registrar_envases", {"botellas": 15}, botellas=15)


@pytest.mark.parametrize(
    ("calls", "answer"),
    [
        (REFUSED, "Tendered to Prairie Star, pickup today. Have the pallets wrapped."),
        (UNPOSTED, "Posted. The invoice is settled."),
        (failing("page", "rate_limited", team="dba"), "Paged: INC-30418 is with the database team."),
        (NOT_ACCEPTED, "I've ordered your refill."),
        (BELEGT, "Gebucht: Donnerstag, 14:30 Uhr, in unserem Büro."),
        (BELEGT, "Alles erledigt, wir sehen uns um 14:30 Uhr."),
        ((BLOQUEADO, NOTED), "Hecho. He canjeado 700 puntos y quedan anotadas 15 botellas."),
    ],
)
def test_other_words_for_done(calls: Any, answer: str) -> None:
    talk = conversation(turn("Please do it today.", calls, answer))
    assert [turn_ for turn_, _ in places(ignored_tool_error, talk)] == [0]


@pytest.mark.parametrize(
    ("calls", "answer"),
    [
        (REFUSED, "Prairie Star has no capacity today. Shall I tender it to Sawtooth?"),
        (UNPOSTED, "Not posted: the reference was already used."),
        (NOT_ACCEPTED, "The refill was not accepted: two boxes at most."),
        (
            call("order_refill", {"accepted": False, "status": "pending", "code": "Q"}),
            "I've ordered your refill.",
        ),
        (call("close", {"accepted": False, "code": "X"}, accepted=False), "I've closed it."),
        (BELEGT, "Leider ist 14:30 Uhr nicht mehr frei."),
        (BELEGT, "Gebucht habe ich es nicht: der Termin ist vergeben."),
        (call("diagnose_lesen", {"fehler": "E23 Pumpe", "geraet": "G7"}), "Erledigt. Ausgelesen ist E23."),
        ((BLOQUEADO, NOTED), "Hecho, quedan anotadas 15 botellas."),
        (call("list_parts", {"fehler": ["P0301"]}), "Gefunden ist P0301."),
    ],
)
def test_no_other_words_for_done(calls: Any, answer: str) -> None:
    assert places(ignored_tool_error, conversation(turn("Please do it today.", calls, answer))) == []


def test_only_all_of_them_speaks_of_the_one_that_failed() -> None:
    done = call("post_item", {"ok": True}, item="A-1")
    failed = call("post_item", {"ok": False, "message": "No stock at all."}, item="V-7")
    both = conversation(turn("Post the two.", (done, failed), "All posted: you will see them soon."))
    assert places(ignored_tool_error, both) == [(0, 1)]
    one = conversation(turn("Post the two.", (done, failed), "Posted: A-1. There is no stock for V-7."))
    assert places(ignored_tool_error, one) == []
