"""Reads the messages in one span: the input and output of a model or of an agent. Pure.

The GenAI semantic conventions of OpenTelemetry (including the any-agent and OpenLLMetry variants),
OpenInference and the AI SDK are supported. Messages may be written as JSON text, as lists, as several
attributes, or as events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from agenteval.core.json_text import as_text
from agenteval.importers.span_kinds import asks_for_tools, is_agent
from agenteval.importers.spans import CHOICE, EVENTS, ROLES_OF_EVENTS, Span, is_message_event
from agenteval.messages.json_fields import (
    drop_empty,
    first_nonempty,
    list_of,
    object_at,
    object_of,
    read_json,
)
from agenteval.messages.record_paths import MISSING, find_value
from agenteval.messages.truncated_json import is_broken_json, is_truncated_json, make_truncated_message

_AI_SDK_INPUT = ("ai.prompt.messages",)
_ADK_ATTRIBUTES = ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response")
_INPUT_ATTRIBUTES = (
    "gen_ai.input.messages",
    "llm.input_messages",
    "gen_ai.prompt",
    *_AI_SDK_INPUT,
    _ADK_ATTRIBUTES[0],
)
_OUTPUT_ATTRIBUTES = (
    "gen_ai.output.messages",
    "llm.output_messages",
    "gen_ai.completion",
    "gen_ai.output",
    _ADK_ATTRIBUTES[1],
)
_TEXT_ATTRIBUTES = ("gen_ai.completion", "gen_ai.output")
"""Attributes that may contain an answer as plain text, even if the text is ``[]``."""
_AI_SDK_OUTPUT = ("ai.response.text", "ai.response.toolCalls")
"""The attributes of an answer in the AI SDK: its text and its calls."""
_BODIES = ("body", "event.body", "gen_ai.event.content")
"""Keys under which an event stores its message as a single value, in log records and in Azure's libraries."""
_EVENT_MESSAGE_FIELDS = frozenset(("role", "content", "message", "parts", "tool_calls"))
_OBJECT = re.compile(r"\s*(?:\[\s*)?\{")
_JSON_ATTRIBUTES = (*_INPUT_ATTRIBUTES[:2], *_OUTPUT_ATTRIBUTES[:2], *_AI_SDK_INPUT, *_ADK_ATTRIBUTES)
"""Attributes that always contain messages as JSON, never as plain text."""
_AGENT_IO = ("input.value", "output.value")
"""The attributes in which OpenInference stores a user's request to an agent and the answer, both as plain
text."""
_SYSTEM = ("gen_ai.system_instructions",)
_TOOLS = ("gen_ai.tool.definitions", "llm.tools", "ai.prompt.tools")
_MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
_MESSAGE_FIELDS = frozenset(("role", "message", "message.role", "message.content", "parts", "content"))


@dataclass(frozen=True, slots=True)
class SpanContents:
    """The messages in a span."""

    input_messages: list[Any] | None
    """The input. ``None`` means that it was not recorded; an empty list means that there were no earlier
    messages."""
    output_messages: list[Any]
    request: Mapping[str, Any]
    """Other parts of the request: the model, instructions and tools."""
    source_keys: frozenset[str] = frozenset()
    """The attributes that contain these messages, or ``events``."""
    is_agent_io: bool = False
    """True if the messages are an agent's own input and output. Their wording may differ from the messages of
    the agent's models."""


class _FoundMessages(NamedTuple):
    """Messages, and the attributes that contain them."""

    messages: list[Any] | None
    """The messages, or ``None`` if they are not recorded."""
    read: tuple[str, ...] = ()


_NOT_RECORDED = _FoundMessages(None)


def contents_of(span: Span) -> SpanContents:
    attributes, request = span.attributes, _request_fields(span.attributes)
    input_found, output_found = _messages_in_attributes(attributes, _INPUT_ATTRIBUTES), _NOT_RECORDED
    if input_found.messages or not span.tool:
        input_found, output_found = _find_messages(span, input_found)
    if input_found.messages is None and (output_found.messages or is_agent(span.kind)):
        inputs = _text_in(attributes, _AGENT_IO[0], "user")
        if output_found.messages:
            input_found = input_found._replace(messages=inputs)
        elif inputs and (outputs := _text_in(attributes, _AGENT_IO[1], "assistant")):
            return SpanContents(inputs, outputs, request, frozenset(_AGENT_IO), is_agent_io=True)
    output = output_found.messages or []
    if asks_for_tools(attributes) and not any(map(_holds_anything, output)):
        output = []  # the tracer omits the calls
    return SpanContents(
        input_found.messages, output, request, frozenset((*input_found.read, *output_found.read))
    )


def _find_messages(span: Span, input_found: _FoundMessages) -> tuple[_FoundMessages, _FoundMessages]:
    """Return the input and the output, which are read from attributes or, if there are none, from events."""
    output_found = _messages_in_attributes(span.attributes, _OUTPUT_ATTRIBUTES)
    if output_found.messages is None and input_found.read == _AI_SDK_INPUT:
        output_found = _ai_sdk_answer(span.attributes)
    is_recorded = input_found.messages is not None or output_found.messages is not None
    return (input_found, output_found) if is_recorded else _messages_in_events(span)


def _text_in(attributes: Mapping[str, Any], name: str, role: str) -> list[Any] | None:
    text = attributes.get(name)
    kind = attributes.get(f"{name.partition('.')[0]}.mime_type", "text/plain")
    if not isinstance(text, str) or kind != "text/plain":
        return None
    if is_truncated_json(text):
        return [make_truncated_message(name, text)]
    is_prose = text.strip() and not isinstance(read_json(text), dict | list)
    return [{"role": role, "content": text}] if is_prose else None


# ── attributes ───────────────────────────────────────────────────────────────────────────────────


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return _find_attribute(attributes, names)[1]


def _find_attribute(attributes: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any]:
    """Return the value and the name of the first of these attributes that is present."""
    for name in names:
        found = find_value(attributes, name)
        if found is not MISSING and found is not None:
            return name, found
        if spread := _spread_values(attributes, name):
            return name, spread
    return "", None


def _spread_values(attributes: Mapping[str, Any], name: str) -> Any:
    """Return a value that is split into several attributes, such as ``name.0.role`` and
    ``name.0.content``."""
    below = {key[len(name) + 1 :]: value for key, value in attributes.items() if key.startswith(f"{name}.")}
    return unflatten(below) if any(key[:1].isdecimal() for key in below) else None


def unflatten(fields: Mapping[str, Any]) -> Any:
    """Convert fields with dotted names to nested objects. Numbered fields become lists."""
    groups: dict[str, Any] = {}
    for key, value in fields.items():
        head, dot, rest = str(key).partition(".")
        value = unflatten(value) if isinstance(value, dict) else value
        if dot:
            inner = groups.setdefault(head, {})
            if isinstance(inner, dict):
                inner[rest] = value
        else:
            groups[head] = value
    fields_by_name = {k: unflatten(v) if isinstance(v, dict) else v for k, v in groups.items()}
    if fields_by_name and all(key.isdecimal() for key in fields_by_name):
        return [fields_by_name[key] for key in sorted(fields_by_name, key=lambda key: (len(key), key))]
    return fields_by_name


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


def _messages_in_attributes(attributes: Mapping[str, Any], names: tuple[str, ...]) -> _FoundMessages:
    role = "user" if names is _INPUT_ATTRIBUTES else "assistant"
    name, written = _find_attribute(attributes, names)
    found = read_json(written)
    found = _messages_in_object(found) if isinstance(found, dict) else found
    if messages := _listed_messages(found, role):
        return _FoundMessages(messages, (name,))
    if written in (None, "") or (name in _ADK_ATTRIBUTES and not found):
        return _NOT_RECORDED
    if is_truncated_json(written) or (name in _JSON_ATTRIBUTES and isinstance(found, str)):
        return _FoundMessages([make_truncated_message(name, written)], (name,))
    if found == [] and _first(attributes, tuple(n for n in names if n not in _TEXT_ATTRIBUTES)) is not None:
        return _FoundMessages([], (name,))
    return _FoundMessages([{"role": role, "content": as_text(written)}])


def _messages_in_object(found: Mapping[str, Any]) -> list[Any]:
    """Return the messages in an object, which is a request or a response in the form of Google's client."""
    for key in ("messages", "contents"):
        if isinstance(found.get(key), list):
            return list(found[key])
    inner = found.get("content", found)
    return [inner if isinstance(inner, dict) else found] if found else []


def _listed_messages(found: Any, role: str) -> list[Any]:
    """Return the messages in a list, or an empty list if it contains anything else. ``role`` is used for
    messages that have no role."""
    if not isinstance(found, list) or not found:
        return []
    if all(map(_is_bare_call, found)):
        return [{"role": "assistant", "tool_calls": [_bare_call(each) for each in found]}]
    if not all(_is_message(each) or _is_item(each) for each in found):
        return []
    return [{"role": role, **_normalize_message(each)} if _is_message(each) else each for each in found]


def _ai_sdk_answer(attributes: Mapping[str, Any]) -> _FoundMessages:
    text, calls = attributes.get(_AI_SDK_OUTPUT[0]), read_json(attributes.get(_AI_SDK_OUTPUT[1]))
    if not text and not calls:
        return _NOT_RECORDED
    message = {"role": "assistant", "content": text}
    if isinstance(calls, list):
        return _FoundMessages([{**message, "tool_calls": calls}], _AI_SDK_OUTPUT)
    if calls and isinstance(calls, str):
        return _FoundMessages([message, make_truncated_message(_AI_SDK_OUTPUT[1], calls)], _AI_SDK_OUTPUT)
    return _FoundMessages([message], _AI_SDK_OUTPUT if calls is None else _AI_SDK_OUTPUT[:1])


def _messages_in_events(span: Span) -> tuple[_FoundMessages, _FoundMessages]:
    """Return the input and the output if the events of a span are messages."""
    events = [(name, fields) for name, fields in span.events if is_message_event(name)]
    if not events:
        return _NOT_RECORDED, _NOT_RECORDED
    input_messages = [message_in_event(name, fields) for name, fields in events if name != CHOICE]
    output_messages = [message_in_event(name, fields) for name, fields in events if name == CHOICE]
    return _FoundMessages(input_messages, (EVENTS,)), _FoundMessages(output_messages, (EVENTS,))


def message_in_event(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message in an event. An event that cannot be read is returned unchanged, so that it is
    reported as unplaced content."""
    found, role = dict(fields), ROLES_OF_EVENTS[name]
    is_cut = any(is_broken_json(fields.get(key), _OBJECT) for key in _BODIES)
    for key in (*_BODIES, "message"):
        found |= _fields_in(found.get(key), is_text=key == "message")
    content = found.get("content")
    if isinstance(content, dict) and _is_message(content):
        found, content = {**found, **content}, content.get("content")
    is_cut = is_cut or (role != "tool" and is_truncated_json(content))
    message = {key: read_json(found[key]) for key in ("tool_calls", "parts") if found.get(key)}
    if is_cut or not (message or content is not None or asks_for_tools(fields)):
        return {"event": name, **fields}
    message |= {"role": role, "content": _parse_content_blocks(content, role)}
    if role == "tool":
        identity = first_nonempty(("id", "tool_call_id", "call_id"), found)
        message |= {"tool_call_id": identity, "name": found.get("name")}
    return _normalize_message(message)


def _fields_in(value: Any, *, is_text: bool) -> Mapping[str, Any]:
    """Return the fields of a message that consists of a single value or stores its content as one. If
    ``is_text`` is true, the value may be any text, even valid JSON."""
    inner = read_json(value)
    if isinstance(inner, dict) and not _EVENT_MESSAGE_FIELDS.isdisjoint(inner):
        return inner
    is_content = isinstance(value, str) if is_text or not isinstance(inner, dict) else False
    return {"content": value} if value and (is_content or isinstance(inner, list)) else {}


def _parse_content_blocks(value: Any, role: str) -> Any:
    """Return a string, or the content blocks if the string contains them as JSON."""
    found = list_of(read_json(value))
    blocks = {"toolResult"} if role == "tool" else {"type", "text", "toolUse", "toolResult"}
    is_in_blocks = not any(blocks.isdisjoint(object_of(each)) for each in found)
    return found if is_in_blocks and found else value


def _holds_anything(message: Mapping[str, Any]) -> bool:
    return any(value for key, value in message.items() if key not in ("role", "finish_reason"))


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and not _MESSAGE_FIELDS.isdisjoint(value)


def _is_item(value: Any) -> bool:
    """Check whether a value is a typed reply item, such as a ``function_call``, rather than a string."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "text" not in value


def _is_bare_call(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("tool.name"), str)


def _bare_call(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": value["tool.name"], "arguments": value.get("tool.args")}


def _normalize_message(fields: Mapping[str, Any]) -> dict[str, Any]:
    message = unflatten(fields) if any("." in key for key in fields) else fields
    inner = message.get("message")
    message = dict(inner if isinstance(inner, dict) else message)
    message |= _openinference_call(message)
    for key, place, read in _LISTS_OF_MESSAGES:
        listed = message.get(key)
        if place != key:
            message.pop(key, None)
        if isinstance(listed, list):
            message[place] = [*map(read, listed)]
    return message


def _openinference_call(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the single call that a message may contain in separate fields, as in OpenAI's legacy API."""
    name, arguments = (message.get(f"function_call_{field}") for field in ("name", "arguments_json"))
    if (name is None and arguments is None) or message.get("function_call"):
        return {}
    return {"function_call": {"name": name, "arguments": arguments}}


def _normalize_part(part: Any) -> Any:
    """Convert a part of a message from OpenTelemetry's form to the form used by all parsers."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and "content" in part:
        return {"type": "text", "text": part["content"]}
    if kind == "tool_call_response":
        results = (part[key] for key in ("response", "result", "content") if key in part)
        return {"type": "tool_result", "tool_use_id": part.get("id"), "content": next(results, None)}
    return part


def _unwrap_call(value: Any) -> Any:
    inner = object_of(value).get("tool_call")
    return inner if isinstance(inner, dict) else value


def _unwrap_part(value: Any) -> Any:
    inner = object_of(value).get("message_content")
    return inner if isinstance(inner, dict) else value


_LISTS_OF_MESSAGES = (
    ("tool_calls", "tool_calls", _unwrap_call),
    ("contents", "content", _unwrap_part),
    ("parts", "content", _normalize_part),
)
"""The key of each list in a message, the common key for such lists, and the function that reads their
elements."""


def _request_fields(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    system = read_json(_first(attributes, _SYSTEM))
    if isinstance(system, list):
        system = [_normalize_part(each) for each in system]
    tools = read_json(_first(attributes, _TOOLS))
    if isinstance(tools, list):
        tools = [_parse_declaration(read_json(each)) for each in tools]
    config = object_at(object_of(read_json(attributes.get(_ADK_ATTRIBUTES[0]))), "config")
    system, tools = system or config.get("system_instruction"), tools or config.get("tools")
    return drop_empty({"model": _first(attributes, _MODEL), "system": system, "tools": tools})


def _parse_declaration(declared: Any) -> Any:
    """Return the declaration of a tool. OpenInference stores the tool's schema as text."""
    if not isinstance(declared, dict):
        return declared
    fields = unflatten({key: value for key, value in declared.items() if key.partition(".")[0] == "tool"})
    schema = object_at(fields, "tool").get("json_schema")
    return read_json(schema) if schema else declared
