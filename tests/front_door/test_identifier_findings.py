"""What detectors find in recorded conversations, through the command line: a fault, and beside it what must
stay green. All are lines of one log, scored once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.support.kit import Project
from tests.support.scored_logs import log, score

BOOKING = {
    "booking_id": "KX7PQ2",
    "status": "confirmed",
    "contact": "402-581-7997",
    "email": "mia.silva@example.com",
    "payment": {"source": "credit_card", "last_four": "7803"},
    "created_at": "2026-05-04",
    "flights": [
        {"flight": "AL204", "date": "2026-05-20", "price": 107},
        {"flight": "AL311", "date": "2026-05-20", "price": 141},
        {"flight": "AL118", "date": "2026-05-27", "price": 218},
    ],
}


class Row(NamedTuple):
    """What the agent answers after it looked up ``KX7PQ2``, and what is found: detector and quotation."""

    answer: str
    found: tuple[str, str] | None = None


ROWS = {
    # What is said of days, sums and statuses is for judges.
    "another day": Row("Booking KX7PQ2 was created on 2026-05-14, and the flight leaves on 2025-05-20."),
    "no total": Row("All three flights cost $486, or 1,234,567 points."),
    "status": Row("Your booking KX7PQ2 has been put on hold."),
    # Identifiers: a code with one digit, the end of a card, a telephone number.
    "code": Row("I looked at MY2BWP.", ("ungrounded_value", "MY2BWP")),
    "no code": Row("In our IPHONE6 app and on WINDOWS11 you see it, too."),
    "card": Row("Paid with the card ending in 7083.", ("ungrounded_value", "7083")),
    "own card": Row("Paid with the card ending in 7803 (•••• 7803). We write to m***.*****1234@example.com."),
    "telephone": Row("We call you at 402-581-7979.", ("ungrounded_value", "402-581-7979")),
    "own telephone": Row("We call you at (402) 581-7997."),
}
LOOK_UP = {"name": "get_booking", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}


def looked_up(ident: str, answer: str) -> dict[str, Any]:
    call = {"name": "get_booking", "arguments": '{"id": "KX7PQ2"}'}
    return {
        "id": ident,
        "tools": [{"type": "function", "function": LOOK_UP}],
        "messages": [
            {"role": "user", "content": "What of my booking KX7PQ2?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "1", "content": json.dumps(BOOKING)},
            {"role": "assistant", "content": answer},
        ],
    }


def findings(project: Project) -> dict[str, list[tuple[str, str]]]:
    return {
        scenario["id"]: [(each["detector"], each["evidence"]) for each in scenario["samples"][0]["findings"]]
        for scenario in project.results()["scenarios"]
    }


def test_identifiers_of_answers(project: Project) -> None:
    log(project, *(looked_up(ident.replace(" ", "-"), row.answer) for ident, row in ROWS.items()))
    score(project, "log.jsonl")
    found = findings(project)
    for ident, row in ROWS.items():
        assert found[ident.replace(" ", "-")] == ([row.found] if row.found else []), ident


ARGUMENTS: tuple[tuple[dict[str, Any], bool], ...] = (
    ({"email": "mia_johnson@example.com"}, True),
    ({"email": "mia.johnson@example.com"}, False),
    ({"user_id": "mia_johnson_4072"}, True),
    ({"user_id": "mia_johnson_7557"}, False),
    ({"order": "#W7341982"}, True),
    # Names, streets and numbers are words.
    ({"name": "Johnsn"}, False),
    ({"street": "560 Elm Avenue"}, False),
    ({"zip": "19212"}, False),
    ({"time": "09:30:00"}, False),
    ({"sum": "299 * 12"}, False),
)
SAID = (
    "I am Mia Johnson (mia_johnson_7557), 760 Elm Avenue, 19122, mia.johnson@example.com."
    " A laptop for 08:30:00, please. Is 99 * 12 more than 299?"
)


def test_identifiers_of_arguments(project: Project) -> None:
    lines = []
    for number, (args, _) in enumerate(ARGUMENTS):
        line = looked_up(f"a{number}", "I have it.")
        line["messages"][0]["content"] = SAID
        line["messages"][1]["tool_calls"][0]["function"]["arguments"] = json.dumps(args)
        lines.append(line)
    log(project, *lines)
    score(project, "log.jsonl")
    found = findings(project)
    for number, (args, is_wrong) in enumerate(ARGUMENTS):
        assert [name for name, _ in found[f"a{number}"]] == ["wrong_arguments"] * is_wrong, args
