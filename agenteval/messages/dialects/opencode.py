"""The messages of opencode's sessions: ``info`` beside ``parts``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import Tell
from agenteval.messages.dialects.message_lists import MessageList


def _is_message(message: Mapping[str, Any]) -> bool:
    info = message.get("info")
    return isinstance(info, dict) and "role" in info and isinstance(message.get("parts"), list)


def _in_openai(messages: Sequence[Any], _: Tell) -> Iterator[Any]:
    for message in messages:
        parts = (part for part in message["parts"] if isinstance(part, dict))
        kept = [_part(part) for part in parts if part.get("type") not in _OF_STEPS]
        yield {"role": message["info"]["role"], "content": kept}


_OF_STEPS = ("step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction")


def _part(part: dict[str, Any]) -> dict[str, Any]:
    state = part.get("state")
    if part.get("type") != "tool" or not isinstance(state, dict):
        return part
    outcome = {key: state[key] for key in ("output", "error", "status") if state.get(key) is not None}
    call = {"type": "tool_call", "id": part.get("callID"), "name": part.get("tool")}
    return {**call, "input": state.get("input"), **outcome}


importer = MessageList("opencode", _is_message, _in_openai)
