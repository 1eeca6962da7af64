"""The messages of opencode's sessions: ``info`` beside ``parts``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList, unread_of


def _is_message(message: Mapping[str, Any]) -> bool:
    info = message.get("info")
    return isinstance(info, dict) and "role" in info and isinstance(message.get("parts"), list)


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        info = message["info"]
        kept = [_part(part) for part in message["parts"] if not _is_of_steps(part)]
        unread = {**unread_of(message, ("info", "parts")), **unread_of(info, _OF_INFO)}
        yield {**unread, "role": info["role"], "content": kept}


_OF_INFO = frozenset(("role", "time", "model", "summary", "tokens", "error", "path", "tools", "cache"))
_OF_PARTS = frozenset(("state", "time", "source", "metadata"))
_OF_STATES = frozenset(("input", "output", "error", "time", "metadata", "attachments"))
_OF_STEPS = ("step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction")


def _is_of_steps(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _OF_STEPS


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    state = part.get("state")
    if part.get("type") != "tool" or not isinstance(state, dict):
        return {key: part[key] for key in part if key != "time"}
    unread = {**unread_of(part, _OF_PARTS), **unread_of(state, _OF_STATES)}
    outcome = {key: state[key] for key in ("output", "error", "status") if state.get(key) is not None}
    call = {"type": "tool_call", "id": part.get("callID"), "name": part.get("tool")}
    return {**unread, **call, "input": state.get("input"), **outcome}


importer = MessageList("opencode", _is_message, _in_openai)
