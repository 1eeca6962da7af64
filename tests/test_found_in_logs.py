"""What detectors find in recorded conversations, through the command line: a fault, and beside it what must
stay green. All are lines of one log, scored once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from kit import Project
from test_score_cli import log, score

BOOKING = {
    "booking_id": "KX7PQ2",
    "status": "confirmed",
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


FARES = json.dumps({"fare_per_passenger": 512.4, "voucher": 131, "already_paid": 249.2, "you_pay": "$132.20"})
ROWS = {
    # Today and what is proposed are no facts of the record; a thing's own date is.
    "today": Row("As of today (2026-05-11), the booking can be changed.\nShall I?"),
    "proposed": Row("KX7PQ2 is found.\n\nI can look from 2026-06-08 through 2026-06-20."),
    "another day": Row("Booking KX7PQ2 was created on 2026-05-14.", ("ungrounded_value", "2026-05-14")),
    "another year": Row("Your flight leaves on 2025-05-20.", ("ungrounded_value", "2025-05-20")),
    "the day": Row("Booking KX7PQ2 was created on 2026-05-04, the flight leaves on May 20."),
    # Sums: of a list, and of what an answer in JSON works out step by step.
    "total": Row("All three flights cost $466."),
    "no total": Row("All three flights cost $486.", ("ungrounded_value", "$486")),
    "steps": Row(FARES),
    "no steps": Row(FARES.replace("132.20", "143.17"), ("ungrounded_value", "$143.17")),
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


def test_values_that_an_answer_tells(project: Project) -> None:
    log(project, *(looked_up(ident.replace(" ", "-"), row.answer) for ident, row in ROWS.items()))
    score(project, "log.jsonl")
    found = findings(project)
    for ident, row in ROWS.items():
        assert found[ident.replace(" ", "-")] == ([row.found] if row.found else []), ident
