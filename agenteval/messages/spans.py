"""One span of a trace: what a model was asked and answered, or what a tool gave back. Pure.

Known are OpenTelemetry's conventions for generative models, also as any-agent and OpenLLMetry write them,
OpenInference's and the AI SDK's: messages as JSON text, as lists, spread over attributes of their own, or as
events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from agenteval.messages.cut_off import are_cut_off, cut_off, is_broken
from agenteval.messages.record_paths import MISSING, find
from agenteval.messages.responses import read_json
from agenteval.messages.span_kinds import EVENT_LISTS, asks_for_tools, is_agent, name_of_event, tool_in

_BEFORE_HALVES = ("ai.prompt.messages",)
_OF_ADK = ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response")
_ASKED = ("gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", *_BEFORE_HALVES, _OF_ADK[0])
_ANSWERED = (
    "gen_ai.output.messages",
    "llm.output_messages",
    "gen_ai.completion",
    "gen_ai.output",
    _OF_ADK[1],
)
_TEXTS = ("gen_ai.completion", "gen_ai.output")
"""Those that may hold an answer's own text, of which ``[]`` is one."""
_HALVES = ("ai.response.text", "ai.response.toolCalls")
"""An answer as the AI SDK has it: its text and its calls."""
_CHOICE = "gen_ai.choice"
_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool", _CHOICE: "assistant",
}  # fmt: skip
"""Events that are messages, as OpenTelemetry had them before."""
EVENTS = "events"
_NAME = "event.name"
_BODIES = ("body", "event.body", "gen_ai.event.content")
"""Where an event has its message as one value: as records of a log have it, and as Azure's libraries do."""
_OF_EVENTS = frozenset(("role", "content", "message", "parts", "tool_calls"))
_OBJECT = re.compile(r"\s*(?:\[\s*)?\{")
_LISTS = (*_ASKED[:2], *_ANSWERED[:2], *_BEFORE_HALVES, *_OF_ADK)
"""Those that hold messages as JSON, and no text."""
_SYSTEM = ("gen_ai.system_instructions",)
_TOOLS = ("gen_ai.tool.definitions", "llm.tools", "ai.prompt.tools")
_MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
_OF_MESSAGES = frozenset(("role", "message", "message.role", "message.content", "parts", "content"))
_STARTS = ("start_time", "startTimeUnixNano", "start_time_unix_nano", "startTime")
_ENDS = ("end_time", "endTimeUnixNano", "end_time_unix_nano", "endTime")
_TRACES = ("trace_id", "traceId")
_PARENTS = ("parent_id", "parentSpanId", "parent_span_id", "parentId")
_IDS = ("span_id", "spanId")
_OF_SPANS = (*_STARTS, *_TRACES, *_PARENTS, *_IDS, "context")
_AROUND = ("resource", "scope", "instrumentationScope", "instrumentation_scope")
RawSpan: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """``asked``: ``None`` where it is not recorded; empty: nothing was said before. ``request``: what else
    was asked with. ``error``: why it ended, if it failed. ``read``: the attributes that hold these messages,
    or the events; ``is_in_texts``: these are what an agent was given and gave back, which may be put in other
    words than what its models were."""

    asked: list[Any] | None
    answered: list[Any]
    request: Mapping[str, Any]
    error: str
    read: frozenset[str] = frozenset()
    is_in_texts: bool = False


def is_span(value: Any) -> bool:
    """Whether a value is one span. OpenTelemetry leaves attributes out where there are none."""
    if not isinstance(value, dict) or value.keys().isdisjoint(_OF_SPANS):
        return False
    if "attributes" not in value:
        return not any(value.keys().isdisjoint(keys) for keys in (_STARTS, _TRACES, _IDS, ("name",)))
    return isinstance(value["attributes"], dict | list)


def trace_of(span: Mapping[str, Any]) -> str:
    return _identity(span, _TRACES, "context")


def id_of(span: Mapping[str, Any]) -> str:
    return _identity(span, _IDS, "context")


def parent_of(span: Mapping[str, Any]) -> str:
    """The id of the span that it stands in; empty: it names none."""
    inner = span.get("parent")
    own = inner.get("span_id") if isinstance(inner, dict) else None
    return str(own or _identity(span, _PARENTS, ""))


def start_of(span: RawSpan) -> float | None:
    """When a span began, in nanoseconds, or as the trace counts; ``None``: that is not known."""
    return _moment(span, _STARTS)


def is_before(one: RawSpan, other: RawSpan) -> bool:
    """Whether a span is known to have ended before another one began."""
    begin, end, start = _moment(other, _STARTS), _moment(one, _ENDS), _moment(one, _STARTS)
    return begin is not None and start is not None and start < begin and (end is None or end <= begin)


def is_during(one: RawSpan, other: RawSpan) -> bool:
    """Whether a span is known to have begun and ended while another one went on."""
    times = (_moment(other, _STARTS), _moment(one, _STARTS), _moment(one, _ENDS), _moment(other, _ENDS))
    outer, begin, end, last = times
    if outer is None or begin is None or end is None or last is None:
        return False
    return outer < begin and end < last


def _moment(span: RawSpan, keys: Iterable[str]) -> float | None:
    found: Any = next((span[key] for key in keys if span.get(key)), None)
    try:
        return int(found)
    except (TypeError, ValueError):
        pass
    try:
        return datetime.fromisoformat(found).timestamp() * 1e9
    except (TypeError, ValueError, OverflowError):
        return None


def read_span(span: RawSpan, attributes: Mapping[str, Any] | None = None) -> Span:
    """``attributes``: its own and those of its events, where they are at hand."""
    attributes = attributes_of(span) if attributes is None else attributes
    asked, asked_in = _messages(attributes, _ASKED)
    if not asked and tool_in(span, attributes):
        return Span(asked, [], _request(attributes), error_of(span, attributes))
    answered, answered_in = _messages(attributes, _ANSWERED)
    if answered is None and asked_in == _BEFORE_HALVES:
        answered, answered_in = _answer_of_halves(attributes)
    if asked is None and answered is None:
        asked, answered, asked_in = _messages_in_events(span)
    is_in_texts = False
    if asked is None and answered:
        asked = _text_in(attributes, "input", "user")
    elif asked is None and answered is None and is_agent(attributes):
        asked, answered = _text_in(attributes, "input", "user"), _text_in(attributes, "output", "assistant")
        if is_in_texts := bool(asked and answered):
            asked_in = ("input.value", "output.value")
        else:
            asked = answered = None
    if asks_for_tools(attributes) and not any(map(_holds_anything, answered or ())):
        answered = None  # the tracer leaves its calls out
    return Span(
        asked=asked,
        answered=answered or [],
        request=_request(attributes),
        error=error_of(span, attributes),
        read=frozenset((*asked_in, *answered_in)),
        is_in_texts=is_in_texts,
    )


def _text_in(attributes: Mapping[str, Any], place: str, role: str) -> list[Any] | None:
    """What a user asked an agent (``input``) or what it answered (``output``), which OpenInference has as
    texts."""
    text = attributes.get(f"{place}.value")
    if not isinstance(text, str) or attributes.get(f"{place}.mime_type", "text/plain") != "text/plain":
        return None
    if are_cut_off(text):
        return [cut_off(f"{place}.value", text)]
    is_said = text.strip() and not isinstance(read_json(text), dict | list)
    return [{"role": role, "content": text}] if is_said else None


def _identity(span: Mapping[str, Any], keys: tuple[str, ...], below: str) -> str:
    inner = span.get(below)
    places = (span, inner if isinstance(inner, dict) else {})
    return str(next((place[key] for place in places for key in keys if place.get(key)), ""))


def error_of(span: RawSpan, attributes: Mapping[str, Any]) -> str:
    """Why it ended, if it failed."""
    status = span.get("status")
    fields = status if isinstance(status, dict) else {"code": span.get("status_code", status)}
    code = str(fields.get("status_code", fields.get("code", "")))
    if not code.casefold().endswith("error") and code != "2":
        return ""
    told = fields.get("description") or fields.get("message") or span.get("status_message")
    told = told or attributes.get("exception.message") or attributes.get("error.type") or "it failed"
    return " ".join(str(told).split())[:200]


# ── attributes ───────────────────────────────────────────────────────────────────────────────────


def attributes_of(span: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of a span and of its events: messages may be kept in either."""
    found = own_attributes(span)
    for name, attributes in events_of(span):
        for key, value in attributes.items():
            if not is_message_event(name) or key == "finish_reason":  # all else of a message is read as such
                found.setdefault(key, value)
    return found


def own_attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_pairs(span.get("attributes")))


def attributes_around(span: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Those of what a span is of: a service, a library. One may be of several."""
    for value in (span.get(key) for key in _AROUND):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield dict(_pairs(each.get("attributes")))


def events_of(span: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a span: the name and the attributes of each, and the body that records of a log have.
    Some libraries keep them in an attribute, each with its name among its own."""
    for event in (event for key in EVENT_LISTS for event in span.get(key) or ()):
        if isinstance(event, dict):
            body = {"body": _value(event["body"])} if event.get("body") else {}
            yield name_of_event(event), {**dict(_pairs(event.get("attributes"))), **body}
    kept = read_json(next((value for key, value in _pairs(span.get("attributes")) if key == EVENTS), None))
    for event in kept if isinstance(kept, list) else ():
        if isinstance(event, dict) and isinstance(event.get(_NAME), str):
            yield event[_NAME], {key: value for key, value in event.items() if key != _NAME}


def _pairs(given: Any) -> list[tuple[str, Any]]:
    if isinstance(given, dict):
        return list(given.items())
    listed = given if isinstance(given, list) else []
    return [(str(each["key"]), _value(each.get("value"))) for each in listed if _has_key(each)]


def _has_key(value: Any) -> bool:
    return isinstance(value, dict) and "key" in value


def _value(given: Any) -> Any:
    """A value as OpenTelemetry's JSON has it: ``{"stringValue": …}``."""
    if not isinstance(given, dict) or len(given) != 1:
        return given
    ((kind, value),) = given.items()
    inner = value.get("values") if isinstance(value, dict) else None
    if kind == "arrayValue":
        return [_value(each) for each in inner or ()]
    if kind == "kvlistValue":
        return dict(_pairs(inner))
    return value if kind.endswith("Value") else given


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return _named(attributes, names)[1]


def _named(attributes: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any]:
    """The first of these attributes that there is, with its name."""
    for name in names:
        found = find(attributes, name)
        if found is not MISSING and found is not None:
            return name, found
        if spread := _spread(attributes, name):
            return name, spread
    return "", None


def _spread(attributes: Mapping[str, Any], name: str) -> Any:
    """What stands in attributes of its own for each value: ``name.0.role``, ``name.0.content``."""
    below = {key[len(name) + 1 :]: value for key, value in attributes.items() if key.startswith(f"{name}.")}
    return gathered(below) if any(key[:1].isdecimal() for key in below) else None


def gathered(fields: Mapping[str, Any]) -> Any:
    """Fields with dots in their names as objects in one another, those with numbers as lists."""
    groups: dict[str, Any] = {}
    for key, value in fields.items():
        head, dot, rest = str(key).partition(".")
        value = gathered(value) if isinstance(value, dict) else value
        if dot:
            inner = groups.setdefault(head, {})
            if isinstance(inner, dict):
                inner[rest] = value
        else:
            groups[head] = value
    whole = {k: gathered(v) if isinstance(v, dict) else v for k, v in groups.items()}
    if whole and all(key.isdecimal() for key in whole):
        return [whole[key] for key in sorted(whole, key=lambda key: (len(key), key))]
    return whole


# ── messages ─────────────────────────────────────────────────────────────────────────────────────


def _messages(
    attributes: Mapping[str, Any], names: tuple[str, ...]
) -> tuple[list[Any] | None, tuple[str, ...]]:
    """The messages, and the attribute that holds them; ``None``: they are not recorded."""
    role = "user" if names is _ASKED else "assistant"
    name, written = _named(attributes, names)
    found = read_json(written)
    if isinstance(found, dict):
        found = _listed(found)
    if isinstance(found, list) and found and all(map(_is_bare_call, found)):
        return [{"role": "assistant", "tool_calls": [_bare_call(each) for each in found]}], (name,)
    if _are_messages(found):
        return [{"role": role, **_message(each)} if _is_message(each) else each for each in found], (name,)
    if written is None or written == "" or (name in _OF_ADK and not found):
        return None, ()
    if are_cut_off(written) or (name in _LISTS and isinstance(found, str)):
        return [cut_off(name, written)], (name,)
    if found == [] and _first(attributes, tuple(n for n in names if n not in _TEXTS)) is not None:
        return [], (name,)
    text = written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
    return [{"role": role, "content": text}], ()


def _listed(found: Mapping[str, Any]) -> list[Any]:
    """The messages of an object: of a request or, as Google's client has them, of a response."""
    listed = next((found[key] for key in ("messages", "contents") if isinstance(found.get(key), list)), None)
    inner = found.get("content")
    return listed if listed is not None else [inner if isinstance(inner, dict) else found] if found else []


def _answer_of_halves(attributes: Mapping[str, Any]) -> tuple[list[Any] | None, tuple[str, ...]]:
    text, calls = (attributes.get(name) for name in _HALVES)
    calls = read_json(calls)
    if not text and not calls:
        return None, ()
    called = {"tool_calls": calls} if isinstance(calls, list) else {}
    broken = [cut_off(_HALVES[1], calls)] if calls and isinstance(calls, str) else []
    read = _HALVES if called or broken or calls is None else _HALVES[:1]
    return [{"role": "assistant", "content": text, **called}, *broken], read


def _messages_in_events(
    span: Mapping[str, Any],
) -> tuple[list[Any] | None, list[Any] | None, tuple[str, ...]]:
    """What was asked and what was answered, where the events of a span are messages."""
    messages = [
        (name, message_in_event(name, fields)) for name, fields in events_of(span) if is_message_event(name)
    ]
    if not messages:
        return None, None, ()
    asked = [message for name, message in messages if name != _CHOICE]
    return asked, [message for name, message in messages if name == _CHOICE], (EVENTS,)


def message_in_event(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The message that an event is; the event as it stands, which nobody can place, where that cannot be
    read."""
    found, role = dict(fields), _ROLES[name]
    is_cut = any(is_broken(fields.get(key), _OBJECT) for key in _BODIES)
    for key in (*_BODIES, "message"):
        found |= _fields_in(found.get(key), is_text=key == "message")
    content = found.get("content")
    if isinstance(content, dict) and _is_message(content):
        found, content = {**found, **content}, content.get("content")
    is_cut = is_cut or (role != "tool" and are_cut_off(content))
    message = {key: read_json(found[key]) for key in ("tool_calls", "parts") if found.get(key)}
    if is_cut or not (message or content is not None or asks_for_tools(fields)):
        return {"event": name, **fields}
    message |= {"role": role, "content": _content(content, role)}
    if role == "tool":
        identity = found.get("id") or found.get("tool_call_id") or found.get("call_id")
        message |= {"tool_call_id": identity, "name": found.get("name")}
    return _message(message)


def _fields_in(value: Any, *, is_text: bool) -> Mapping[str, Any]:
    """The fields of a message that is one value, or has its content so. ``is_text``: that may be any text,
    also one that is JSON."""
    inner = read_json(value)
    if isinstance(inner, dict) and not _OF_EVENTS.isdisjoint(inner):
        return inner
    is_content = isinstance(value, str) if is_text or not isinstance(inner, dict) else False
    return {"content": value} if value and (is_content or isinstance(inner, list)) else {}


def is_message_event(name: str) -> bool:
    return name in _ROLES


def _content(value: Any, role: str) -> Any:
    """A text, or the blocks of one that are written as JSON."""
    found = read_json(value)
    blocks = {"toolResult"} if role == "tool" else {"type", "text", "toolUse", "toolResult"}
    is_in_blocks = isinstance(found, list) and all(
        isinstance(each, dict) and not blocks.isdisjoint(each) for each in found
    )
    return found if is_in_blocks and found else value


def _holds_anything(message: Mapping[str, Any]) -> bool:
    return any(value for key, value in message.items() if key not in ("role", "finish_reason"))


def _are_messages(found: Any) -> bool:
    return (
        isinstance(found, list) and bool(found) and all(_is_message(each) or _is_item(each) for each in found)
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and not _OF_MESSAGES.isdisjoint(value)


def _is_item(value: Any) -> bool:
    """Whether it is an item of a reply that names its kind, such as a ``function_call``, and no text."""
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "text" not in value


def _is_bare_call(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("tool.name"), str)


def _bare_call(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": value["tool.name"], "arguments": value.get("tool.args")}


def _message(given: Mapping[str, Any]) -> dict[str, Any]:
    message = gathered(given) if any("." in key for key in given) else given
    inner = message.get("message")
    message = dict(inner) if isinstance(inner, dict) else dict(message)
    if isinstance(calls := message.get("tool_calls"), list):
        message["tool_calls"] = [_inner(each, "tool_call") for each in calls]
    message |= _call_of_openinference(message)
    if isinstance(contents := message.pop("contents", None), list):
        message["content"] = [_inner(each, "message_content") for each in contents]
    if isinstance(parts := message.pop("parts", None), list):
        message["content"] = [_part(each) for each in parts]
    return message


def _call_of_openinference(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one call that a message may have in fields of its own, as in OpenAI's older API."""
    name, given = (message.get(f"function_call_{field}") for field in ("name", "arguments_json"))
    if (name is None and given is None) or message.get("function_call"):
        return {}
    return {"function_call": {"name": name, "arguments": given}}


def _inner(value: Any, key: str) -> Any:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else value


def _part(part: Any) -> Any:
    """A part of a message in OpenTelemetry's words, in those of all others."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and "content" in part:
        return {"type": "text", "text": part["content"]}
    if kind == "tool_call_response":
        given = (part[key] for key in ("response", "result", "content") if key in part)
        return {"type": "tool_result", "tool_use_id": part.get("id"), "content": next(given, None)}
    return part


def _request(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    system = read_json(_first(attributes, _SYSTEM))
    if isinstance(system, list):
        system = [_part(each) for each in system]
    tools = read_json(_first(attributes, _TOOLS))
    if isinstance(tools, list):
        tools = [_declaration(read_json(each)) for each in tools]
    adk = read_json(attributes.get(_OF_ADK[0]))
    config = adk.get("config") if isinstance(adk, dict) else None
    if isinstance(config, dict):
        system, tools = system or config.get("system_instruction"), tools or config.get("tools")
    found = {"model": _first(attributes, _MODEL), "system": system, "tools": tools}
    return {key: value for key, value in found.items() if value}


def _declaration(given: Any) -> Any:
    """OpenInference keeps the schema of a tool as a text."""
    if not isinstance(given, dict):
        return given
    fields = gathered({key: value for key, value in given.items() if key.partition(".")[0] == "tool"})
    schema = fields["tool"].get("json_schema") if isinstance(fields.get("tool"), dict) else None
    return read_json(schema) if schema else given
