"""Converts messages in other libraries' formats, as returned by an agent, to OpenAI's format.

The conversion uses the parser for recorded messages; messages in OpenAI's format stay unchanged. Nothing is
lost silently: a call in a known form that cannot be parsed is the agent's failure, and anything that cannot
be placed is included in the result and marked as unplaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import Any, NamedTuple

from agenteval.core.errors import AgentError
from agenteval.core.trajectory import Message, ToolCall
from agenteval.messages import chat
from agenteval.messages.agent_names import AGENT_KEYS, read_agent_name
from agenteval.messages.calls import ParsedCall, ReadCallIndex, parse_raw_call
from agenteval.messages.dialects import google_adk, pydantic_ai
from agenteval.messages.field_shapes import public_fields
from agenteval.messages.finish_reasons import find_refusal
from agenteval.messages.json_fields import drop_empty, drop_none, first_text, list_of
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.parsed_message import PASSAGES, UNPLACED, ParsedMessage
from agenteval.messages.reported_usage import USAGE_KEYS, UsageDeduplicator
from agenteval.messages.roles import unwrap_message
from agenteval.messages.texts import is_silent_kind
from agenteval.messages.unplaced_entries import Unplaced, quote_json

_ROLES = {"ai": "assistant", "human": "user", "function": "tool", "model": "assistant"}
_OPENAI_ROLES = frozenset(("assistant", "user", "tool", "system", "developer"))
_CHAT_FIELDS = frozenset(("content", "tool_calls", "function_call", "refusal"))
_FIELDS_WITHOUT_ROLE = _CHAT_FIELDS.union((
    "role", "id", "name", "agent", "model", "finish_reason", "stop_reason", "index", "messages",
    *USAGE_KEYS, "timestamp", "created", "created_at", "createdAt", "metadata", "additional_kwargs",
    "response_metadata",
))  # fmt: skip
"""The known fields of a message that has neither a role nor a type."""
_OTHER_FIELDS_KEY = "other fields"
_POSSIBLE_CALLS_KEY = "calls"
"""The key, in a message that represents unplaced content, for the calls that this content may contain."""
_UNCONVERTED_FIELDS = frozenset((*_CHAT_FIELDS, "parts", "role", "type", "agent", *USAGE_KEYS))
"""The message fields whose parsers accept any object."""
_ATTRIBUTES = ("role", "type", "content", "tool_calls", "tool_call_id", "name", "parts")


def as_message(value: Any) -> Message:
    """Convert a mapping or a library's message object to a message that is a mapping.

    Objects are converted by pydantic's ``model_dump`` or from their attributes. A known role is converted to
    the corresponding OpenAI role. Raise ``AgentError`` for any other value."""
    message = _message_fields(value)
    if role := _role_of(message):
        message["role"] = role
    if not isinstance(message.get("agent"), str | None):
        message["agent"] = read_agent_name(message["agent"])
    for key in ("content", "parts"):
        if role != "tool" and isinstance(message.get(key), list | tuple):
            message[key] = [_to_mapping(part) for part in message[key]]
    for key in message.keys() - _UNCONVERTED_FIELDS:
        message[key] = _expand_objects(message[key])
    return message


def _message_fields(value: Any) -> Message:
    if isinstance(value, Mapping):
        return unwrap_message(dict(value)) if value.get("role") is None else dict(value)
    if hasattr(value, "model_dump"):
        dumped: Message = value.model_dump(exclude_none=True)
        return dumped
    if fields := public_fields(value):
        names = dict.fromkeys((*_ATTRIBUTES, *AGENT_KEYS, *USAGE_KEYS))  # these may be properties
        more = {name: found for name in names if (found := getattr(value, name, None)) is not None}
        return {**fields, **more}
    raise AgentError(f"not a chat message: {type(value).__name__} — {message_remedy(value)}", kind="protocol")


def is_like_message(value: Any) -> bool:
    """Check whether an object has the attributes of a message, even if they are not fields."""
    return any(hasattr(value, name) for name in ("role", "content", "tool_calls"))


def message_remedy(value: Any) -> str:
    """Describe the accepted forms of a message, and suggest a form to return instead of ``value``."""
    accepted = "expected a mapping or an object with `role` and `content` (or `tool_calls`) fields"
    if is_like_message(value):
        return (
            f"{accepted}; this object has no fields (its attributes are slots, properties or class"
            " attributes) — use {'role': m.role, 'content': m.content}, or make it a dataclass"
        )
    more = ", or return a single string" if isinstance(value, str) else ""
    return f"{accepted} — use {{'role': 'assistant', 'content': …}}{more}"


def _expand_objects(value: Any) -> Any:
    """Return a value in which library objects are replaced with their fields.

    An object recorded as text would look like a plain value."""
    if isinstance(value, str | int | float | None):
        return value
    try:
        return chat.jsonable(value, _object_fields)
    except ValueError:
        return value


def _role_of(message: Message) -> str:
    """Return the role of a message, or an empty string for an item or an event.

    A message without a role has the role that corresponds to its type. A message with neither role nor type
    has the assistant's role if it has the fields of a chat message."""
    role, kind = (_enum_text(message.get(key)) for key in ("role", "type"))
    if role:
        return _ROLES.get(role, role)
    kind = kind.lower().removesuffix("chunk").removesuffix("message")
    known = _ROLES.get(kind, kind)
    if known in _OPENAI_ROLES:
        return known
    return "assistant" if not kind and not message.keys().isdisjoint(_CHAT_FIELDS) else ""


def as_entry(value: Any) -> Message:
    """Convert an element of a message list to a message.

    Unknown fields in an element without a role may record actions of the agent. They are moved into a single
    object, because even a plain value in such a field may report a call."""
    message = as_message(value)
    is_named = isinstance(value, Mapping) and (value.get("role") or value.get("type"))
    if is_named or not isinstance(value, Mapping) or "role" not in message:
        return message
    unknown = {key: message[key] for key in message if key not in _FIELDS_WITHOUT_ROLE}
    known = {key: message[key] for key in message if key in _FIELDS_WITHOUT_ROLE}
    return {**known, _OTHER_FIELDS_KEY: unknown} if unknown else known


def _enum_text(value: Any) -> str:
    return str((value.value if isinstance(value, Enum) else value) or "")


def _to_mapping(part: Any, depth: int = 3) -> Any:
    """Convert a content part to a mapping if it is a library's object."""
    if part is None or isinstance(part, str | bytes | int | float | list | type):
        return part
    if isinstance(part, Mapping):
        return dict(part)
    if hasattr(part, "model_dump"):
        return part.model_dump(exclude_none=True)
    fields = public_fields(part)
    if not fields or not depth:
        raise AgentError(f"unsupported content part in a message: {type(part).__name__}", kind="protocol")
    return {key: _to_mapping(value, depth - 1) for key, value in fields.items()}


# ── lists of messages ────────────────────────────────────────────────────────────────────────────


_FRAMEWORK_IMPORTERS = (pydantic_ai.importer, google_adk.importer)


def parse_entries(listed: Sequence[Any]) -> list[Message]:
    """Convert the elements of a list to messages.

    A message list in a framework's own format is parsed like a log from that framework."""
    entries = [_to_logged(each) for each in listed]
    importer = next((each for each in _FRAMEWORK_IMPORTERS if each.matches(entries)), None)
    if importer is None:
        return [as_entry(each) for each in listed]
    return [each for record in importer.read(entries) for each in record["messages"]]


def _to_logged(value: Any) -> Any:
    """Convert an element to the form in which its framework would log it."""
    if isinstance(value, Mapping):
        return dict(value)
    dumped = value.model_dump(exclude_none=True) if hasattr(value, "model_dump") else public_fields(value)
    return _expand_objects(dumped)


def to_openai_messages(messages: Iterable[Any]) -> list[Message]:
    """Convert messages from other libraries (LangChain, Anthropic, Google and others) to OpenAI's format.

    Anything that could not be placed becomes a message with the role ``UNPLACED`` and a phrase as its
    content. Raise ``AgentError`` for a call in a known form that cannot be parsed."""
    inspected = [_inspect_message(message) for message in _drop_repeated_usage(map(as_entry, messages))]
    read: list[Message] = []
    for is_foreign, some in groupby(inspected, key=lambda look: look.is_foreign):
        if is_foreign:
            read += map(_to_openai, parse_messages([_to_json_message(look.message) for look in some]))
        else:
            read += [each for look in some for each in (look.message, *map(_unplaced_entry, look.unplaced))]
    return drop_repeats(read)


def drop_repeats(messages: Sequence[Message], known: Iterable[ToolCall] = ()) -> list[Message]:
    """Return the messages, excluding unplaced messages whose calls all occur in other messages or in
    ``known``."""
    if not any(each.get(_POSSIBLE_CALLS_KEY) for each in messages):
        return list(messages)
    raw_calls = (
        raw for each in messages if each.get("role") == "assistant" for raw in chat.collect_tool_calls(each)
    )
    calls = [call for raw in raw_calls if (call := parse_raw_call(raw))]
    calls += [ParsedCall(call.name, call.args, call.raw_args, call.id) for call in known]
    read = ReadCallIndex(calls, ids=(each.get("id") for each in messages))
    return [
        each
        for each in messages
        if not (unread := each.get(_POSSIBLE_CALLS_KEY)) or not all(map(read.contains, unread))
    ]


def to_openai_messages_lenient(messages: Sequence[Any]) -> list[Message]:
    """Convert recorded messages in the same way as ``to_openai_messages``, but without raising errors.

    A call in a known form that cannot be parsed counts as unplaced, and the remaining messages are kept."""
    try:
        read = to_openai_messages(messages)
        chat.parse_steps(read)
    except AgentError:
        entries = [
            _to_json_message(as_entry(each)) if isinstance(each, Mapping) else each for each in messages
        ]
        return list(map(_to_openai, parse_messages(entries)))
    return read


def describe_unread_list(messages: Sequence[Message]) -> str:
    """Describe the beginning of a list if none of its entries is recognized. Otherwise, return an empty
    string."""
    if not messages or any(each.get("role") in _OPENAI_ROLES for each in messages):
        return ""
    read = to_openai_messages(messages)
    return (
        "" if any(each.get("role") != UNPLACED for each in read) else next(iter(unplaced_phrases(read)), "")
    )


def unplaced_phrases(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the phrases that describe unplaced content in messages in OpenAI's format."""
    return tuple(str(each["content"]) for each in messages if each.get("role") == UNPLACED)


def _drop_repeated_usage(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages, dropping each token usage that repeats the usage of the preceding message."""
    usages = UsageDeduplicator()
    for message in messages:
        role = message.get("role")
        may_report_usage = role != "user" or _has_text(message)
        is_again = may_report_usage and usages.is_repeated(role, message)
        yield {**message, "usage": {}} if is_again else message


class ReplyMessage(NamedTuple):
    """The only message in a reply."""

    message: Message
    is_plain: bool
    """True if the message was written by the agent and consists only of OpenAI's fields, except for
    ``unplaced`` content."""
    unplaced: tuple[str, ...]


def parse_reply_message(value: Any) -> ReplyMessage:
    """Parse the only message in a reply. An unknown role or type in such a message is treated as the agent's
    role or type.

    Raise ``AgentError`` for a call in a known form that cannot be parsed, and for a value that is not a
    message."""
    message = as_message(value)
    if message.get("role") not in _OPENAI_ROLES and all(
        each.role == UNPLACED for each in _parse_probed_message(message)
    ):
        message["role"] = "assistant"
    look = _inspect_message(message)
    content = message.get("content")
    if isinstance(content, Mapping) and any(each.entry == content for each in look.unplaced):
        chat.text_of(content)  # raises, because an unknown object is no answer
    is_plain = message.get("role") == "assistant" and not look.is_foreign
    return ReplyMessage(message, is_plain, tuple(each.phrase for each in look.unplaced) if is_plain else ())


class _InspectedMessage(NamedTuple):
    """A message and information about how to convert it."""

    message: Message
    is_foreign: bool
    """True if the message must be parsed by the parser for recorded messages; false if the message consists
    only of OpenAI's fields."""
    unplaced: Sequence[Unplaced] = ()
    """The content that could not be placed, if the message is not foreign."""


def _inspect_message(message: Message) -> _InspectedMessage:
    parsed = _parse_probed_message(message)
    unplaced = [each.value for each in parsed if each.role == UNPLACED]
    if broken := next((each for each in unplaced if each.is_broken_call), None):
        _require_calls(message)
        text = f"{broken.what}: {quote_json(message)}"
        raise AgentError(f"unreadable message in the agent's reply: {text}", kind="protocol")
    is_foreign = not _is_openai_message(message, [each for each in parsed if each.role != UNPLACED])
    return _InspectedMessage(message, is_foreign, unplaced)


def _require_calls(message: Message) -> None:
    """Raise ``AgentError`` if the calls in OpenAI's fields are invalid; the error describes the mistake."""
    for call in chat.collect_tool_calls(message) if message.get("role") == "assistant" else ():
        if not isinstance(call, Mapping) or not parse_raw_call(_truncate_depth(call)):
            chat.read_tool_call(call)


def _is_openai_message(message: Message, parsed: Sequence[ParsedMessage]) -> bool:
    """Check whether a message consists only of OpenAI's fields. Errors in these fields are reported by their
    parsers."""
    role, content = message.get("role"), message.get("content")
    if role not in _OPENAI_ROLES or message.get("parts"):
        return False
    if role == "tool":
        return all(map(_is_openai_part, list_of(content)))
    if role == "assistant":
        return _is_openai_answer(message, parsed)
    return role != "user" or all(each.role == "user" for each in parsed)


def _is_openai_answer(message: Message, parsed: Sequence[ParsedMessage]) -> bool:
    raw_calls = chat.collect_tool_calls(message)
    calls = [call for each in parsed for call in each.calls]
    if not all(map(_is_openai_call, raw_calls)) or len(calls) != len(raw_calls):
        return False
    is_structured = not isinstance(message.get("content"), str | None)
    texts = [each for each in parsed if each.text and (is_structured or not each.is_unread)]
    return all(each.role == "assistant" for each in parsed) and (_has_text(message) or not texts)


def _has_text(message: Message) -> bool:
    content = message.get("content")
    return bool(find_refusal(message)) or (not isinstance(content, Mapping) and bool(chat.text_of(content)))


def _is_openai_part(part: Any) -> bool:
    kind = first_text(part, "type") if isinstance(part, Mapping) else ""
    return not kind or kind in chat.PART_TYPES or is_silent_kind(kind)


def _is_openai_call(raw: Any) -> bool:
    """Check whether a call is in OpenAI's format, or contains a mistake that the parser for OpenAI's format
    reports."""
    if not isinstance(raw, Mapping):
        return True
    function = raw.get("function")
    inner = function if isinstance(function, Mapping) else raw
    if first_text(inner, "name") and any(inner.get(key) is not None for key in chat.OPENAI_ARGUMENT_KEYS):
        return True
    call = parse_raw_call(_to_json_message(raw))
    return call is None or (bool(first_text(inner, "name")) and call.args == {})


def as_call(raw: Any) -> Any:
    """Convert a call that is about to be executed to OpenAI's format, if it has a different known format.

    Raise ``AgentError`` if the arguments of the call are unknown."""
    if _is_openai_call(raw):
        return raw
    call = parse_raw_call(_to_json_message(raw))
    assert call
    if call.args is None and call.raw_args is None:
        what = f"the tool call arguments are unknown: {quote_json(raw)}"
        raise AgentError(f"unreadable call in the agent's reply: {what}", kind="protocol")
    return _to_openai_call(call)


# ── use of the parser of recorded messages ───────────────────────────────────────────────────────


def _parse_probed_message(message: Message) -> list[ParsedMessage]:
    return list(parse_messages([_probe_message(message)]))


def _to_json_message(message: Mapping[str, Any]) -> Message:
    try:
        bare: Message = chat.jsonable(dict(message), _object_fields)
    except ValueError as error:
        raise AgentError(f"a message in the agent's reply is not JSON: {error}", kind="protocol") from None
    return bare


def _object_fields(value: Any) -> Any:
    """Return the fields of a library's object, so that the object is not mistaken for text."""
    fields = public_fields(value)
    return {key: str(each) for key, each in fields.items()} if fields else str(value)


def _probe_message(message: Message) -> Message:
    """Return a copy of a message for inspection.

    The copy omits the result of a tool, which may be any value. A field that cannot be converted to JSON is
    replaced with an object that contains the reason."""
    probe: Message = {}
    for key, value in message.items():
        is_result = key == "content" and message.get("role") == "tool" and not isinstance(value, list)
        try:
            probe[key] = "" if is_result else chat.jsonable(value, _object_fields)
        except ValueError as error:
            probe[key] = _truncate_depth(value) if key in _CHAT_FIELDS else {"not JSON": str(error)}
    return probe


def _truncate_depth(value: Any, depth: int = 4) -> Any:
    """Return the parts of a value that JSON can represent, down to the depth at which the name of a call may
    occur."""
    if isinstance(value, Mapping):
        return {str(key): _truncate_depth(each, depth - 1) for key, each in value.items()} if depth else {}
    if isinstance(value, list | tuple):
        return [_truncate_depth(each, depth - 1) for each in value] if depth else []
    return value if isinstance(value, str | int | float | None) else _object_fields(value)


def _unplaced_entry(unplaced: Unplaced) -> Message:
    return {"role": UNPLACED, "content": unplaced.phrase, _POSSIBLE_CALLS_KEY: unplaced.calls}


def _to_openai(parsed: ParsedMessage) -> Message:
    if parsed.role == UNPLACED:
        return _unplaced_entry(parsed.value)
    if parsed.role == "tool":
        failed = {"status": "error"} if parsed.is_error else {"type": PASSAGES} if parsed.is_passage else {}
        return {
            "role": "tool",
            "tool_call_id": parsed.id,
            "name": parsed.name,
            "content": parsed.value,
            **failed,
        }
    fields = {"content": parsed.text, **drop_none({"name": parsed.agent or None, "usage": parsed.usage})}
    if parsed.calls:
        return {"role": "assistant", **fields, "tool_calls": [_to_openai_call(call) for call in parsed.calls]}
    return {"role": parsed.role, **fields}


def _to_openai_call(call: ParsedCall) -> dict[str, Any]:
    arguments = call.args if call.raw_args is None else call.raw_args
    openai_call = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
    marks = {
        chat.ARGUMENTS_UNKNOWN: arguments is None,
        chat.ATTEMPTED: call.is_attempt,
        chat.APPROVED: call.is_approved,
    }
    return openai_call | drop_empty(marks)
