"""Converts messages from Pydantic AI. A message has a ``kind`` and a list of ``parts``, each with a
``part_kind``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval.messages.calls import OnWarning
from agenteval.messages.dialects.message_lists import MessageList, unread_fields

_MESSAGE_FIELDS = ("parts", "usage", "instructions")
_PART_FIELDS = ("content", "args")
_METADATA_FIELDS = ("provider_details", "vendor_details", "metadata")
"""Fields of a message or a part in which the framework and its users store metadata."""


def _is_message(message: Mapping[str, Any]) -> bool:
    parts = message.get("parts")
    if message.get("kind") not in ("request", "response") or not isinstance(parts, list):
        return False
    return all(isinstance(part, dict) and "part_kind" in part for part in parts)


def _to_openai(messages: Sequence[Any], warn: OnWarning) -> Iterator[Any]:
    seen_instructions: set[str] = set()
    for message in messages:
        instructions = message.get("instructions")
        if isinstance(instructions, str) and instructions not in seen_instructions:
            seen_instructions.add(instructions)
            yield {"role": "system", "content": instructions}
        if message["kind"] == "response":
            parts = [part for each in message["parts"] if (part := _reply_part(each))]
            unread = unread_fields(message, _MESSAGE_FIELDS, _METADATA_FIELDS)
            yield {**unread, "role": "assistant", "content": parts, "usage": message.get("usage")}
        else:
            yield from filter(None, (_request_part(part, warn) for part in message["parts"]))
            if unread := unread_fields(message, _MESSAGE_FIELDS, _METADATA_FIELDS):
                yield unread


_BUILT_IN_PREFIX = "builtin-"
_KINDS = {"tool-call": "tool_call", "tool-return": "tool_result"}


def _reply_part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part["part_kind"])
    openai_kind = _KINDS.get(kind.removeprefix(_BUILT_IN_PREFIX), kind)
    if openai_kind == "tool_call" and kind.startswith(_BUILT_IN_PREFIX):
        openai_kind = "server_tool_use"
    fields = {key: part[key] for key in ("content", "args", "tool_name", "tool_call_id") if key in part}
    return {**unread_fields(part, _PART_FIELDS, _METADATA_FIELDS), "type": openai_kind, **fields}


def _request_part(part: Mapping[str, Any], warn: OnWarning) -> dict[str, Any] | None:
    kind, content = part["part_kind"], part.get("content")
    known_fields = (*_METADATA_FIELDS, "retry") if kind == "tool-return" else _METADATA_FIELDS
    unread = unread_fields(part, (*_PART_FIELDS, "metadata"), known_fields)
    if kind == "system-prompt":
        return {**unread, "role": "system", "content": content}
    if kind == "user-prompt":
        return {**unread, "role": "user", "content": _normalize_prompt_parts(content)}
    if kind == "retry-prompt" and not part.get("tool_name"):
        warn("the framework's retry prompts were omitted")
        return None
    if kind in ("tool-return", "retry-prompt"):
        failed = kind == "retry-prompt" or part.get("outcome") in ("failed", "denied")
        result_fields = {"name": part.get("tool_name"), "tool_call_id": part.get("tool_call_id")}
        result_fields |= {"artifact": part["metadata"]} if part.get("metadata") else {}
        return {**unread, "role": "tool", "content": content, "is_error": failed, **result_fields}
    return {**part, "role": kind}


def _normalize_prompt_parts(content: Any) -> Any:
    """Return the parts of a prompt, with ``type`` set to their ``kind``."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "file" if part["kind"] == "binary" else part["kind"], **part}
        if isinstance(part, dict) and isinstance(part.get("kind"), str)
        else part
        for part in content
    ]


importer = MessageList("pydantic-ai", _is_message, _to_openai)
