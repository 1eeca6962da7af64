"""Fill in the author's request template (the key ``request``), whose ``${name}`` placeholders are replaced
for each request.

A string that consists only of ``${name}`` is replaced by the value, regardless of the value's type; in a
longer string, the value is inserted (string interpolation). A placeholder without a value is removed together
with its key. This applies to the session ID before a session exists, to the tools if no tools are declared,
to the message if a request contains tool results, and to the tool results in all other requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.json_text import as_text
from agenteval.core.trajectory import Message
from agenteval.files.environment import TEMPLATE_NAME, TEMPLATE_NAMES

ABSENT: Any = object()
RESULT_NAMES = frozenset(("messages", "tool_results"))
"""The placeholders through which an agent receives the results of its tool calls.

A request that uses neither placeholder contains the results under the key ``tool_results``."""
_OF_A_TURN = frozenset(("message", "tool_results"))
"""The placeholders without which the surrounding mapping, such as ``{role: user}``, is meaningless. If they
have no value, the mapping is removed."""


def names_in(template: Any) -> Iterator[str]:
    """Yield the names of the placeholders in a template or a part of a template."""
    if isinstance(template, str):
        yield from (found["name"] for found in TEMPLATE_NAME.finditer(template) if found["name"])
    elif isinstance(template, Mapping | list | tuple):
        for item in template.values() if isinstance(template, Mapping) else template:
            yield from names_in(item)


def template_values(
    template_names: frozenset[str],
    messages: Sequence[Message],
    *,
    session: str | None,
    tools: Sequence[Mapping[str, Any]],
    turn: int,
    mcp_url: str = "",
    database: str = "",
) -> dict[str, Any]:
    """Return the value of each placeholder in the next request."""
    results = list(_results(messages))
    brings_results = bool(results) and "tool_results" in template_names
    return {
        "message": ABSENT if brings_results else latest_user_content(messages, ABSENT),
        "messages": list(messages),
        "session": ABSENT if session is None else session,
        "tools": list(tools) or ABSENT,
        "turn": turn,
        "tool_results": results or ABSENT,
        "mcp_url": mcp_url or ABSENT,
        "database": database or ABSENT,
    }


def latest_user_content(messages: Sequence[Message], default: Any) -> Any:
    return next((m.get("content") for m in reversed(messages) if m.get("role") == "user"), default)


def _results(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """Yield the tool results at the end of a conversation, which have not been sent to the agent yet."""
    at = len(messages)
    while at and messages[at - 1].get("role") == "tool":
        at -= 1
    asked = messages[at - 1].get("tool_calls") if at else None
    names = {call.get("id"): (call.get("function") or {}).get("name") for call in asked or ()}
    for message in messages[at:]:
        call = message.get("tool_call_id")
        yield {"tool_call_id": call, "name": names.get(call), "content": message.get("content")}


def fill_request_template(template: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the placeholders in a request body."""
    parts = {key: _filled(item, values) for key, item in template.items()}
    return {key: part.value for key, part in parts.items() if part.value is not ABSENT}


def fill_request_text(template: str, values: Mapping[str, Any]) -> str | None:
    """Fill in a string such as a header. Return ``None`` if one of its placeholders has no value."""
    made = _filled_text(template, values).value
    return None if made is ABSENT else made if isinstance(made, str) else as_text(made)


class _FilledPart(NamedTuple):
    """A part of a template whose placeholders have been filled in."""

    value: Any
    has: bool = False
    """True if at least one placeholder in the part has a value."""
    lost: bool = False
    """True if the part contains a placeholder in ``_OF_A_TURN`` that has no value."""


def _filled(template: Any, values: Mapping[str, Any]) -> _FilledPart:
    if isinstance(template, str):
        return _filled_text(template, values)
    if isinstance(template, Mapping):
        parts = {key: _filled(item, values) for key, item in template.items()}
        made: Any = {key: part.value for key, part in parts.items() if part.value is not ABSENT}
        return _around(made, template, list(parts.values()))
    if isinstance(template, list | tuple):
        items = [_filled(item, values) for item in template]
        return _around([item.value for item in items if item.value is not ABSENT], template, items)
    return _FilledPart(template)


def _around(made: Any, template: Any, parts: Sequence[_FilledPart]) -> _FilledPart:
    has, lost = any(part.has for part in parts), any(part.lost for part in parts)
    is_empty = len(template) > 0 and not made
    return _FilledPart(ABSENT if is_empty or (lost and not has) else made, has, lost)


def _filled_text(text: str, values: Mapping[str, Any]) -> _FilledPart:
    names = list(names_in(text))
    if not names:
        return _FilledPart(TEMPLATE_NAME.sub("${", text))
    if missing := [name for name in names if values.get(name, ABSENT) is ABSENT]:
        return _FilledPart(ABSENT, lost=any(name in _OF_A_TURN for name in missing))
    if text == f"${{{names[0]}}}":
        return _FilledPart(values[names[0]], has=True)
    put = TEMPLATE_NAME.sub(lambda m: as_text(values[m["name"]]) if m["name"] else "${", text)
    return _FilledPart(put, has=True)


__all__ = [
    "ABSENT",
    "RESULT_NAMES",
    "TEMPLATE_NAMES",
    "fill_request_template",
    "fill_request_text",
    "names_in",
    "template_values",
]
