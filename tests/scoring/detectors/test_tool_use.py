"""Detectors of bad tool use: what each finds, and what it must let pass."""

from __future__ import annotations

import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agenteval.conversation.tools import ToolState, resolve_tool_call
from agenteval.core.call_outcomes import error_of
from agenteval.core.json_schema import schema_violations
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.scoring.detectors.arguments import malformed_arguments, wrong_arguments
from agenteval.scoring.detectors.detector_input import ToolFacts
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.scoring.detectors.tool_use import ignored_tool_error, repeated_tool_call, unknown_tool
from tests.support.detector_samples import CONVERSATIONS, call, conversation, failing, marked, places, turn

GET = call("get_weather", "20", city="Rome")
ANSWER = "It is 20 degrees in Rome."


def test_every_detector_has_a_function_of_its_name() -> None:
    for name, detector in DETECTORS.items():
        assert detector.find.__name__ == detector.name == name


@given(talk=CONVERSATIONS)
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_no_conversation_breaks_a_detector(talk: Any) -> None:
    for name, detector in DETECTORS.items():
        for proof in detector.find(talk):
            assert 0 <= proof.turn < len(talk.turns), name
            assert proof.call is None or talk.calls[proof.call].turn == proof.turn, name
            if proof.span:
                assert 0 <= proof.span[0] < proof.span[1] <= len(talk.turns[proof.turn].answer), name


# ── repeated_tool_call ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["get_weather", "create_booking"])
@pytest.mark.parametrize("together", [True, False])
def test_what_a_call_costs_does_not_grow_with_their_number(name: str, together: bool) -> None:
    def cost(count: int) -> int:
        """Counted in calls of functions, which no other process slows down."""
        parts = tuple(call(name, "ok", number=number) for number in range(count // 2)) * 2
        talk = conversation(turn("Go on.", *([parts] if together else parts), ANSWER))
        done = Counter[str]()
        sys.setprofile(lambda frame, event, _: done.update((event,)))
        try:
            found = places(repeated_tool_call, talk)
        finally:
            sys.setprofile(None)
        assert (len(found) == count // 2) is (together or name != "create_booking")
        return done.total()

    cost(20)  # what is known of a name is kept
    assert cost(800) < 2.5 * cost(400)


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


REFUND = call("refund_payment", {"ok": True}, payment_id="PAY-7", amount=20)


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
    assert schema_violations(SCHEMA, args) == ""


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
    assert schema_violations(schema, {"city": "Rome"}) == ""


QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def with_rule(**rule: Any) -> dict[str, Any]:
    return {**QUERY, "properties": {"query": {"type": "string", **rule}}}


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
        assert schema_violations(schema, {"a": 1}) == ""
        tools = {"look": Tool(parameters=schema, returns="ok")}
        _, result = resolve_tool_call(tools, ToolState(), "look", {"a": 1})
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


FIRST, SECOND = failing("cancel_order", "already shipped", id="ORD-1"), call("cancel_order", {}, id="ORD-2")


# ── ignored_tool_error: how things stand ─────────────────────────────────────────────────────────


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


def test_a_status_that_was_asked_for_is_no_refusal() -> None:
    closed = call("update_claim", {"status": "rejected", "reason": "late"}, id=7, status="rejected")
    assert places(ignored_tool_error, conversation(turn("Reject it", closed, "Done. It is rejected."))) == []


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
