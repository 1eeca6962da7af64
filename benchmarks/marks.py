"""What the tools of the data sets do, which their declarations do not say.

``destructive`` is what the sets themselves ask a confirmation for (the airline's policy: every change of
a booking) or what cannot be taken back (deleting).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from recorded import Conversation, calls_of

MARKS: dict[str, dict[str, tuple[str, ...]]] = {
    "tau_airline": {
        "destructive": (
            "book_reservation",
            "cancel_reservation",
            "send_certificate",
            "update_reservation_baggages",
            "update_reservation_flights",
            "update_reservation_passengers",
        ),
        "writes": ("transfer_to_human_agents",),
        "reads": (
            "calculate",
            "get_reservation_details",
            "get_user_details",
            "list_all_airports",
            "search_direct_flight",
            "search_onestop_flight",
            "think",
        ),
    },
    "tooltalk": {
        "destructive": ("DeleteAccount", "DeleteAlarm", "DeleteEvent", "DeleteReminder"),
        "writes": (
            "AddAlarm",
            "AddReminder",
            "ChangePassword",
            "CompleteReminder",
            "CreateEvent",
            "LogoutUser",
            "ModifyEvent",
            "RegisterUser",
            "ResetPassword",
            "SendEmail",
            "SendMessage",
            "SendVerificationCode",
            "UpdateAccountInformation",
            "UserLogin",
        ),
        "reads": (
            "CurrentWeather",
            "FindAlarms",
            "ForecastWeather",
            "GetAccountInformation",
            "GetReminders",
            "HistoricWeather",
            "QueryCalendar",
            "QueryUser",
            "SearchInbox",
            "SearchMessages",
        ),
    },
}

_READS = re.compile(
    r"(?i)^(get|find|search|list|query|check|look|fetch|read|show|calc|current|forecast|track)"
)
_DESTRUCTIVE = re.compile(r"(?i)^(delete|remove|cancel|transfer_money|pay|wire|close|terminate|refund)")


def marks_for(name: str, conversations: Iterable[Conversation], given: Path | None = None) -> dict[str, str]:
    """Tool -> mark, for a set: those of ``given`` (a JSON file ``{"tool": "reads"}``), those above, or, for
    a set that nobody has marked, a guess by the first word of the name; ``writes`` where that says
    nothing."""
    if given:
        return dict(json.loads(given.read_text(encoding="utf-8")))
    if name in MARKS:
        return {tool: mark for mark, tools in MARKS[name].items() for tool in tools}
    called = {call.name for conversation in conversations for call in calls_of(conversation["messages"])}
    return {tool: _guess(tool) for tool in called}


def _guess(tool: str) -> str:
    if _READS.search(tool):
        return "reads"
    return "destructive" if _DESTRUCTIVE.search(tool) else "writes"
