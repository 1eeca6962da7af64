"""Finds tool calls in the unread content of spans. Pure.

Spans contain the same messages many times, and each library uses different names for them. All attributes and
events that are not otherwise read are searched for calls in a known form and for tool results. A call that is
found only there was made but is otherwise not visible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from agenteval.core.call_outcomes import json_key
from agenteval.core.json_text import parse_or
from agenteval.importers.span_contents import SpanContents, message_in_event, unflatten
from agenteval.importers.span_kinds import TOOL_ATTRIBUTES, named_calls
from agenteval.importers.spans import EVENTS, Span, is_message_event
from agenteval.messages.calls import CALL_KEYS, parse_raw_call
from agenteval.messages.chat import MAX_DEPTH
from agenteval.messages.field_shapes import ARGUMENT_KEYS, TOOL_NAME_KEYS, is_call, is_call_kind
from agenteval.messages.json_fields import first_nonempty, first_text
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.parsed_message import RESULT_IDS
from agenteval.messages.unplaced_entries import Unplaced

_CALL_WORDS = ("tool", "Tool", "function", "call", "arg", "nput", "param")
"""Strings at least one of which occurs in every JSON text that contains a call."""
_MOST_TEXTS = 3
"""The maximum number of nested JSON texts that are parsed."""
_NUMBERED = re.compile(r"\.\d+(?:\.|$)")
_RESULT_KINDS = frozenset((
    "tool_result", "tool-result", "tool_call_response", "function_call_output", "tool-return",
    "custom_tool_call_output",
))  # fmt: skip
_PROSE_KEYS = frozenset(
    ("content", "text", "thinking", "reasoning", "reasoning_content", "description", "summary")
)
"""Keys of text in a message that was written by people or models. Calls quoted in such text were not made."""


class CallLike(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> Mapping[str, Any] | None: ...
    @property
    def id(self) -> str: ...


class UnreadCall(NamedTuple):
    """A call, or the result of a call, in the unread content of a span."""

    name: str
    """The name of the tool, or an empty string if it is not given."""
    args: Mapping[str, Any] | None
    """The arguments, or ``None`` if they are unknown."""
    id: str
    """The id of the call, or an empty string if it is not given."""
    is_result: bool = False
    """True if this object is the result of the call."""
    location: str = ""
    """The attribute or the event that contains the call."""
    is_in_event: bool = False
    """True if ``location`` is an event."""
    lists: tuple[tuple[_ListMembers, int], ...] = ()
    """The lists that contain the call, with its position in each list."""

    @property
    def is_earlier(self) -> bool:
        """True if a user message follows the call, so that the call belongs to an earlier turn."""
        return any(members.last_of_user > at for members, at in self.lists)

    def unplaced(self, span: Span) -> Unplaced:
        what = "the result of a call" if self.is_result else "a call"
        of = f" to '{self.name[:40]}'" if self.name else ""
        within = f"an event '{self.location[:40]}'" if self.is_in_event else f"'{self.location[:40]}'"
        where = f"{within} of the span '{span.name[:40]}'"
        return Unplaced(f"{what}{of} in {where}", (self.location,))


class ReadCalls:
    """The calls that were read. A call found elsewhere is treated as the same call if the ids are equal. If
    either call has no id, the names and the arguments (where known) must be equal instead."""

    def __init__(self, calls: Iterable[CallLike]) -> None:
        calls = list(calls)
        self._ids = {call.id for call in calls if call.id}
        self._all = _CallPool(calls)
        self._without_id = _CallPool([call for call in calls if not call.id])

    def holds(self, call: UnreadCall) -> bool:
        if call.id in self._ids:
            return True
        pool = self._without_id if call.id else self._all
        is_known = pool.holds(call)
        if is_known and call.id and not call.is_result and not call.is_earlier:
            self._ids.add(
                call.id
            )  # a call has one id, so the same arguments with another id are another call
            pool.take(call)
        return is_known


class _CallPool:
    def __init__(self, calls: Iterable[CallLike]) -> None:
        self._calls: dict[str, list[Any]] = {}
        for call in calls:
            self._calls.setdefault(call.name, []).append(_key(call.args))

    def holds(self, call: UnreadCall) -> bool:
        if not call.name:
            return call.is_result and any(self._calls.values())
        return self._place(call) is not None

    def take(self, call: UnreadCall) -> None:
        if (at := self._place(call)) is not None:
            del self._calls[call.name][at]

    def _place(self, call: UnreadCall) -> int | None:
        known, key = self._calls.get(call.name, ()), _key(call.args)
        matches = [at for at, each in enumerate(known) if each == key]
        matches = matches or [at for at, each in enumerate(known) if each is None or key is None]
        return matches[0] if matches else None


def _key(args: Mapping[str, Any] | None) -> Any:
    return None if args is None else json_key(args)


# ── a span ───────────────────────────────────────────────────────────────────────────────────────


def unread_calls(span: Span, contents: SpanContents) -> Iterator[UnreadCall]:
    """Yield the calls in the unread content of a span. A tool span is itself read as a call, including its
    arguments and result."""
    if not span.tool:
        yield from _find_named_calls(span.name, span.own)
    yield from _find_in_attributes(span.own, TOOL_ATTRIBUTES if span.tool else contents.source_keys)
    for context in span.attributes_around():
        yield from _find_in_attributes(context, frozenset())
    for name, fields in span.events:
        if not is_message_event(name):
            found = _find_in_attributes(fields, frozenset())
        elif EVENTS not in contents.source_keys:
            found = _search(message_in_event(name, fields))
        else:
            continue
        for call in (*_find_named_calls(name, fields), *found):
            yield call._replace(location=name, is_in_event=True)


def _find_named_calls(name: str, attributes: Mapping[str, Any]) -> Iterator[UnreadCall]:
    for key, tool, identity in named_calls(name, attributes):
        yield UnreadCall(tool, None, identity, location=key)


def _find_in_attributes(attributes: Mapping[str, Any], read: frozenset[str]) -> Iterator[UnreadCall]:
    below = tuple(f"{name}." for name in read)
    plain: list[tuple[str, Any]] = []
    spread: dict[str, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(below) or key in read or not isinstance(value, str | dict | list):
            continue
        if number := _NUMBERED.search(key):
            spread.setdefault(key[: number.start()], {})[key[number.start() + 1 :]] = value
        else:
            plain.append((key, value))
    for key, value in (*plain, *spread.items()):
        found = _search(unflatten(value) if isinstance(value, dict) else value, key.rpartition(".")[2])
        yield from (call._replace(location=key) for call in found)


# ── a value ──────────────────────────────────────────────────────────────────────────────────────


class _ListMembers:
    """A list that contains values, with the position of its last user message."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    @cached_property
    def last_of_user(self) -> int:
        """The position of the last user message, or -1 if there is none."""
        places = range(len(self._values) - 1, -1, -1)
        return next((at for at in places if _is_of_user(self._values[at])), -1)


def _is_of_user(value: Any) -> bool:
    return isinstance(value, dict) and any(each.is_user_text for each in parse_messages([value]))


class _NestedValue(NamedTuple):
    """A value stored under ``key``."""

    value: Any
    key: str
    texts: int = _MOST_TEXTS
    """The number of nested JSON texts that may still be parsed."""
    lists: tuple[tuple[_ListMembers, int], ...] = ()
    """The lists that contain the value, with its position in each list."""
    depth: int = 0


def _search(value: Any, key: str = "") -> Iterator[UnreadCall]:
    """Yield the calls in a value that is stored under a key."""
    left = [_NestedValue(value, key)]
    while left:
        inner = left.pop()
        if isinstance(inner.value, str):
            if inner.texts and any(word in inner.value for word in _CALL_WORDS):
                left.append(inner._replace(value=_parse_json_text(inner.value), texts=inner.texts - 1))
        elif inner.depth > MAX_DEPTH:
            yield UnreadCall("", None, "", lists=inner.lists)
        elif isinstance(inner.value, list | tuple):
            left += reversed([*_elements(inner)])
        elif isinstance(inner.value, dict):
            is_marked = inner.key in CALL_KEYS or not inner.value.keys().isdisjoint(_MARKS)
            if is_marked and (call := _find_call(inner)):
                yield call
            else:
                left += reversed([*_fields(inner, is_marked)])


def _parse_json_text(text: str) -> Any:
    """Return the value of a JSON text, or ``None`` if the text is not valid JSON."""
    return parse_or(text) if text.lstrip().startswith(("[", "{", '"')) else None


def _elements(inner: _NestedValue) -> Iterator[_NestedValue]:
    members, depth = _ListMembers(inner.value), inner.depth + 1
    for at, each in enumerate(inner.value):
        if isinstance(each, str | dict | list):
            yield _NestedValue(each, inner.key, inner.texts, (*inner.lists, (members, at)), depth)


def _fields(inner: _NestedValue, is_marked: bool) -> Iterator[_NestedValue]:
    is_declaration = is_marked and is_call(inner.value)
    if is_marked and str(inner.value.get("type")).lower() == "object" and "properties" in inner.value:
        return  # a schema
    for key, each in inner.value.items():
        if is_declaration and key in _OF_DECLARATIONS:
            continue
        if isinstance(each, dict | list) or (isinstance(each, str) and key not in _PROSE_KEYS):
            yield _NestedValue(each, key, inner.texts, inner.lists, inner.depth + 1)


# ── an object ────────────────────────────────────────────────────────────────────────────────────

_IDS = frozenset((*RESULT_IDS, "id"))
_MARKS = frozenset((*TOOL_NAME_KEYS, *RESULT_IDS, "type", "part_kind", "function"))
"""Keys that identify calls, results and tool declarations."""
_OF_DECLARATIONS = frozenset((*ARGUMENT_KEYS, "function"))
_OF_CALLS_ALONE = frozenset(TOOL_NAME_KEYS) - {"name", "action"} | _IDS | {"arguments", "args", "function"}
"""Keys that only calls contain. Many other objects contain a name and an input."""


def _find_call(inner: _NestedValue) -> UnreadCall | None:
    """Return the call or the result that an object describes, or ``None`` if it describes neither."""
    value = inner.value
    kind = first_text(value, "type", "part_kind")
    if _is_call(value, kind, inner.key):
        call = parse_raw_call(value)
        name = call.name if call else first_text(value, "action")
        args, identity = (call.args, call.id) if call else (None, "")
        return UnreadCall(name, args, identity, lists=inner.lists)
    if kind in _RESULT_KINDS or any(map(value.get, RESULT_IDS)):
        identity = str(first_nonempty((*RESULT_IDS, "id"), value) or "")
        name = first_text(value, "name", "toolName", "tool_name")
        return UnreadCall(name, None, identity, is_result=True, lists=inner.lists)
    return None


def _is_call(value: Mapping[str, Any], kind: str, key: str) -> bool:
    if is_call_kind(kind) or (key in CALL_KEYS and parse_raw_call(value)):
        return True
    if kind == "constructor" or not is_call(value) or _is_declaration(value, kind):
        return False
    call = parse_raw_call(value)
    if call is None:
        return bool(first_text(value, "action"))
    return call.args is not None or not _OF_CALLS_ALONE.isdisjoint(value)


def _is_declaration(value: Mapping[str, Any], kind: str) -> bool:
    """Check whether a named object declares or selects a tool rather than calling it."""
    function = value.get("function")
    inner = function if isinstance(function, Mapping) else value
    if not _IDS.isdisjoint(value) or "arguments" in inner or "arguments" in value:
        return False
    schemas = (inner[each] for each in ARGUMENT_KEYS if each in inner)
    return inner is function or kind == "function" or "description" in inner or any(map(_is_schema, schemas))


def _is_schema(value: Any) -> bool:
    found = _parse_json_text(value) if isinstance(value, str) else value
    return isinstance(found, Mapping) and ("properties" in found or "$schema" in found)
