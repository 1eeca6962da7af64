"""Build the links within the page. The part after ``#`` is the view: ``#/issues`` or, for a conversation,
``#/c/ID/EPOCH/turn/N``. Epochs and turns are counted from 1."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from agenteval.core.scenario import SampleKey

RESULTS = "#/"


def conversation_link(key: SampleKey, turn: int | None = None) -> str:
    """Return the link to a conversation, or to a turn of it (counted from 0)."""
    path = f"#/c/{quote(key.scenario, safe='', errors='replace')}/{key.epoch + 1}"
    path += "" if turn is None else f"/turn/{turn + 1}"
    query = {name: value for name, value in (("agent", key.agent), ("variant", key.variant)) if value}
    return f"{path}?{_query(query)}"


def filter_link(query: str) -> str:
    """Return the link to the list, filtered by ``query``."""
    return f"{RESULTS}?{_query({'q': query})}"


def _query(fields: dict[str, str]) -> str:
    return urlencode(fields, quote_via=quote, errors="replace")
