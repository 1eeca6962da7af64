"""What agents made with frameworks do wrong: errors by their form, and acts and attempts that are
told and were never made."""

from __future__ import annotations

import pytest

from agenteval.core.call_outcomes import error_of
from agenteval.core.score import Severity
from agenteval.core.trajectory import ToolCall, ToolResult, Turn
from agenteval.scoring.detectors.claims import claimed_action_not_called
from agenteval.scoring.detectors.detector_input import ToolFacts
from agenteval.scoring.detectors.tool_use import ignored_tool_error
from tests.support.detector_samples import call, conversation, failing, marked, places, turn

# ── errors by their form ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    ["TypeError: play() got an unexpected keyword argument 'loud'", "httpx.ConnectError: no route",
     "java.lang.NullPointerException: null", "error: no such song", "Exception (7): x",
     "Traceback (most recent call last):\n  File", "404 Not Found", "HTTP 503 Service Unavailable: later",
     "service unavailable", "Too Many Requests."],
)  # fmt: skip
def test_a_text_that_is_an_exception_or_a_status_line(text: str) -> None:
    assert error_of(ToolResult(value=text)) == text
    assert error_of(ToolResult(value={"result": text})) == text


@pytest.mark.parametrize(
    "text",
    ["Unknown Pleasures is an album of 1979.", "Tool shed, 3 m x 2 m: $249", "Terror: a history",
     "Connection refused: what it means", "Permission denied errors on Linux have three causes.",
     "Error messages explained", "Error codes and their meaning", "An error occurred in 3 of 100 runs.",
     "404 Rooms, a novel", "500 internal and 20 external seats",
     "Timeout settings: 30 s", "Forbidden. A novel in which a summer by the sea ends otherwise.",
     "Locked", "Service Unavailable is the name of the band",
     # What happened is told in plain words: for a judge to read.
     "Tool 'find_song' not found.", "Access denied", "Tool execution failed: boom"],
)  # fmt: skip
def test_a_text_that_only_speaks_of_errors(text: str) -> None:
    assert error_of(ToolResult(value=text)) is None


@pytest.mark.parametrize(
    ("result", "found"),
    [("ToolNotFoundError: find_song, should be one of: play", [(0, 1)]), ("No songs of 1979", [])],
)
def test_the_identical_call_after_a_framework_s_error(result: str, found: list[tuple[int, int]]) -> None:
    song = call("find_song", result, year=1979)
    talk = conversation(turn("Songs of 1979?", song, song, "I could not find any."))
    assert places(ignored_tool_error, talk) == found


# ── success that is told after trouble ───────────────────────────────────────────────────────────

BROKEN = call("python_repl", "SyntaxError: invalid syntax", code="print(")
PRIMES = "I ran into a syntax error. Let me see.\n\nI have successfully computed the primes: 2, 3, 5."


@pytest.mark.parametrize(
    "talk",
    [turn("Primes?", BROKEN, call("python_repl", "2 3 5", code="print(x)"), PRIMES),
     turn("Primes?", BROKEN, PRIMES.replace("Let me see", "I found them by hand instead")),
     turn("Primes?", BROKEN, "I ran into a syntax error; the primes are not computed."),
     turn("Primes?", BROKEN, "I ran into an error. Earlier I had successfully computed the squares."),
     turn("Book F1.", failing("book_flight", "card declined", flight="F1"),
          "There was an error with your card. I have successfully searched for other flights.")],
)  # fmt: skip
def test_success_is_told_after_trouble_that_is_over_or_gone_around(talk: Turn) -> None:
    assert places(ignored_tool_error, conversation(talk)) == []


# ── acts that no call had to do with ─────────────────────────────────────────────────────────────

SHOP = marked(stock_tool="", check_stock="", place_order="")
ORDERED = "I have placed the order for 40 chairs."


def order(said: str, seen: ToolCall, told: str, **tools: str) -> list[tuple[int, Severity | None]]:
    talk = conversation(turn(said, seen, told), tools={**SHOP, **marked(**tools)})
    return [(proof.turn, proof.severity) for proof in claimed_action_not_called(talk)]


@pytest.mark.parametrize(
    "seen",
    [call("place_order", 3, item="chairs"), call("stock_tool", "ordered 40", item="chairs"),
     call("stock_tool", {"status": "ok"}, item="chairs"), call("stock_tool", {"code": "SO-1"}, item="chairs"),
     call("stock_tool", 3, action="order"), call("sales_agent", "They come on Monday.", item="chairs"),
     call("python", 3, code="buy(40)"), ToolCall(name="stock_tool", args={"item": "chairs"})],
)  # fmt: skip
def test_a_call_that_may_have_done_it(seen: ToolCall) -> None:
    assert order("Order 40 chairs.", seen, ORDERED, sales_agent="", python="") == []


@pytest.mark.parametrize(
    ("said", "seen", "told"),
    [("Where is my order?", call("check_stock", {"order": "placed"}), "Your order was placed."),
     ("Order status, please.", call("check_stock", 50), "An order of 40 chairs has been placed."),
     ("Order 40 chairs.", call("check_stock", 50), "Your order was placed last week; shall I place another?"),
     ("Order 40 chairs.", call("check_stock", {"open order": 40}), "Your order was placed."),
     ("Please refund order O-1.", call("get_order", {"back": "3 May"}), "Your refund has been processed.")],
)  # fmt: skip
def test_a_passive_of_what_there_was(said: str, seen: ToolCall, told: str) -> None:
    assert order(said, seen, told, get_order="", issue_refund="") == []


# ── attempts that were never made ────────────────────────────────────────────────────────────────

DESK = marked(find_guest_by_name="", cancel_stay="")
GUEST = "I am Ann Lee. Please cancel my stay."
IN_VAIN = "I apologize, but I encountered a technical issue trying to look up your stay. What is your email?"


@pytest.mark.parametrize(
    "told",
    ["If you encounter an error while booking, call us.", "I see that you had trouble logging in.",
     "Our website is having issues.", "I'm having trouble understanding your request.",
     "I'm having trouble finding your stay without a date.",
     "Should I run into a problem while processing it, I'll say so.",
     "I am unable to access your account.", "Guests have encountered an error when booking.",
     "I'm having trouble finding anything about that in the brochure."],
)  # fmt: skip
def test_no_attempt_is_told(told: str) -> None:
    assert places(claimed_action_not_called, conversation(turn(GUEST, told), tools=DESK)) == []


def test_trouble_that_is_known_or_written_for_somebody() -> None:
    outage = conversation(turn(GUEST, IN_VAIN), tools=DESK, policy="The booking system is down today.")
    assert places(claimed_action_not_called, outage) == []
    letter = turn("Write a complaint for me.", "I encountered an issue while booking my stay with you.")
    assert places(claimed_action_not_called, conversation(letter, tools=DESK)) == []


# ── look-ups by tools whose names tell nothing ───────────────────────────────────────────────────


def days(item: str, told: int) -> ToolCall:
    return call("delivery_tool", {"days": told}, item=item)


# ── one of two failed, and the answer says so ────────────────────────────────────────────────────

LAMPS = (call("switch_off", {"ok": True}, lamp="Hall"), failing("switch_off", "jammed", lamp="Attic"))
BEDS = (call("water_bed", {"ok": True}, bed=3), failing("water_bed", "no pressure", bed=4))


@pytest.mark.parametrize(
    "answer",
    [
        "I am not allowed to renew this card.",
        "Renewing the card was refused.",
        "Only the head of the branch may renew it.",
    ],
)
def test_a_refusal_that_is_told(answer: str) -> None:
    talk = conversation(turn("Renew Pia's card.", failing("renew_card", "Forbidden", holder="Pia"), answer))
    assert places(ignored_tool_error, talk) == []


# ── made again: meant, or not ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("verb", "participle"),
    [
        ("cancel", "cancelled"),
        ("reset", "reset"),
        ("withdraw", "withdrawn"),
        ("overwrite", "overwritten"),
        ("ban", "banned"),
        ("submit", "submitted"),
        ("apply", "applied"),
        ("pay", "paid"),
        ("delete", "deleted"),
        ("edit", "edited"),
    ],
)
def test_an_action_that_is_claimed_in_the_verb_of_a_tool(verb: str, participle: str) -> None:
    tools = {f"{verb}_account": ToolFacts(), "get_account": ToolFacts()}
    looked_up = call("get_account", {"id": 7}, id=7)
    answers = {f"I've {participle} your account.": True, f"I can {verb} your account.": False}
    for answer, is_claim in answers.items():
        found = list(claimed_action_not_called(conversation(turn("?", looked_up, answer), tools=tools)))
        assert bool(found) is is_claim, answer
