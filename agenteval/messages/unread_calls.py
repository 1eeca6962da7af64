"""Calls in what of a span nobody reads. Pure.

Spans hold the same messages many times over, each library under names of its own. Whatever of their
attributes and events is not read is searched for calls in a known form, and for what tools gave back: a call
that is not among those that were read was made, and nobody saw it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from agenteval.core.call_outcomes import key_of
from agenteval.core.expressions import expression
from agenteval.messages.calls import PLACES, call_in, word
from agenteval.messages.chat import MAX_DEPTH
from agenteval.messages.message import said_in
from agenteval.messages.placed import Unplaced
from agenteval.messages.said import RESULT_IDS
from agenteval.messages.span_kinds import OF_TOOLS, named_calls
from agenteval.messages.spans import EVENTS, Span, events_of, gathered, message_in_event, own_attributes
from agenteval.messages.without_calls import GIVEN, NAMES, is_call, is_call_kind, is_list

_WORDS = ("tool", "Tool", "function", "call", "arg", "nput", "param")
"""One of these is in every JSON text that holds a call."""
_MOST_TEXTS = 3
"""How many JSON texts are read that stand in one another."""
_NUMBERED = expression(r"\.\d+(?:\.|$)")
_RESULTS = frozenset(
    (
        *("tool_result", "tool-result", "tool_call_response", "function_call_output", "tool-return"),
        "custom_tool_call_output",
    )
)
_PROSE = frozenset(
    ("content", "text", "thinking", "reasoning", "reasoning_content", "description", "summary")
)
"""Where texts of people and models stand in a message: what they write is no call."""


class IsCall(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def args(self) -> Mapping[str, Any] | None: ...
    @property
    def id(self) -> str: ...


class UnreadCall(NamedTuple):
    """A call that stands in something unread of a span, or what the tool gave back (``is_result``). ``name``,
    ``id``: empty where they are not given; ``args``: ``None`` where they are not known. ``within``: the
    attribute that it stands in, or the event (``is_in_event``); ``lists``: the lists, with its place in
    each."""

    name: str
    args: Mapping[str, Any] | None
    id: str
    is_result: bool = False
    within: str = ""
    is_in_event: bool = False
    lists: tuple[tuple[Any, int], ...] = ()

    @property
    def is_earlier(self) -> bool:
        """Whether a user spoke after it: it belongs to what was before."""
        after = (each for value, at in self.lists for each in value[at + 1 :])
        spoken = (said for each in after for said in said_in([each], lambda _: None))
        return any(said.role == "user" and said.text and said.text.strip() for said in spoken)

    def unplaced(self, span: Mapping[str, Any]) -> Unplaced:
        what = "the result of a call" if self.is_result else "a call"
        of = f" of '{self.name[:40]}'" if self.name else ""
        within = f"an event '{self.within[:40]}'" if self.is_in_event else f"'{self.within[:40]}'"
        where = f"{within} of the span '{str(span.get('name') or '')[:40]}'"
        return Unplaced(f"{what}{of} in {where}", (self.within,))


class ReadCalls:
    """The calls that were read. The same call elsewhere has its id; where one of both has none, its name and,
    as far as they are known, its arguments."""

    def __init__(self, calls: Iterable[IsCall]) -> None:
        calls = list(calls)
        self._ids = {call.id for call in calls if call.id}
        self._all = _Pool(calls)
        self._without_id = _Pool([call for call in calls if not call.id])

    def holds(self, call: UnreadCall) -> bool:
        if call.id in self._ids:
            return True
        pool = self._without_id if call.id else self._all
        is_known = pool.holds(call)
        if is_known and call.id and not call.is_result and not call.is_earlier:
            self._ids.add(call.id)  # a call has one id: another one with the same arguments is another
            pool.take(call)
        return is_known


class _Pool:
    def __init__(self, calls: Iterable[IsCall]) -> None:
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
        same = [at for at, each in enumerate(known) if each == key]
        same = same or [at for at, each in enumerate(known) if each is None or key is None]
        return same[0] if same else None


def _key(args: Mapping[str, Any] | None) -> Any:
    return None if args is None else key_of(args)


# ── a span ───────────────────────────────────────────────────────────────────────────────────────


def unread_calls(span: Mapping[str, Any], read: Span, *, is_tool: bool) -> Iterator[UnreadCall]:
    """``is_tool``: the span is itself read as a call, with what it was given and gave back."""
    attributes = own_attributes(span)
    if not is_tool:
        yield from _named(str(span.get("name") or ""), attributes)
    skipped = OF_TOOLS if is_tool else read.read
    yield from _in_attributes({key: each for key, each in attributes.items() if key not in skipped}, skipped)
    for name, fields in events_of(span) if EVENTS not in read.read else ():
        for calls in (_named(name, fields), _search(message_in_event(name, fields), "", _MOST_TEXTS)):
            yield from (call._replace(within=name, is_in_event=True) for call in calls)


def _named(name: str, attributes: Mapping[str, Any]) -> Iterator[UnreadCall]:
    for key, tool, identity in named_calls(name, attributes):
        yield UnreadCall(tool, None, identity, within=key)


def _in_attributes(attributes: Mapping[str, Any], read: Iterable[str]) -> Iterator[UnreadCall]:
    spread: dict[str, dict[str, Any]] = {}
    below = tuple(f"{name}." for name in read)
    for key, value in attributes.items():
        if isinstance(value, bool | int | float | None) or key.startswith(below):
            continue
        if number := _NUMBERED.search(key):
            spread.setdefault(key[: number.start()], {})[key[number.start() + 1 :]] = value
        else:
            yield from _placed(key, _search(value, key.rpartition(".")[2], _MOST_TEXTS))
    for key, fields in spread.items():
        yield from _placed(key, _search(gathered(fields), key.rpartition(".")[2], _MOST_TEXTS))


def _placed(key: str, calls: Iterable[UnreadCall]) -> Iterator[UnreadCall]:
    return (call._replace(within=key) for call in calls)


# ── a value ──────────────────────────────────────────────────────────────────────────────────────


def _search(
    value: Any, key: str, texts: int, lists: tuple[tuple[Any, int], ...] = (), depth: int = 0
) -> Iterator[UnreadCall]:
    """The calls in a value that stands below a ``key``; ``texts``: how many JSON texts may be within."""
    if isinstance(value, str):
        if texts and any(word in value for word in _WORDS):
            yield from _search(_parsed(value), key, texts - 1, lists, depth)
    elif depth > MAX_DEPTH:
        yield UnreadCall("", None, "", lists=lists)
    elif isinstance(value, Mapping):
        yield from _in_object(value, key, texts, lists, depth)
    elif is_list(value):
        for at, each in enumerate(value):
            if isinstance(each, str | Mapping) or is_list(each):
                yield from _search(each, key, texts, (*lists, (value, at)), depth + 1)


def _parsed(text: str) -> Any:
    """What a JSON text holds; ``None``: it is none."""
    if not text.lstrip().startswith(("[", "{", '"')):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _in_object(
    value: Mapping[str, Any], key: str, texts: int, lists: tuple[tuple[Any, int], ...], depth: int
) -> Iterator[UnreadCall]:
    if isinstance(value.get("properties"), Mapping) and str(value.get("type")).lower() == "object":
        return  # a schema
    kind = word(value, "type") or word(value, "part_kind")
    if _is_call(value, kind, key):
        call = call_in(value)
        name = call.name if call else word(value, "action")
        yield UnreadCall(name, call.args if call else None, call.id if call else "", lists=lists)
        return
    if kind in _RESULTS or any(value.get(each) for each in RESULT_IDS):
        identity = next((value[each] for each in (*RESULT_IDS, "id") if value.get(each)), "")
        name = next(filter(None, (word(value, each) for each in ("name", "toolName", "tool_name"))), "")
        yield UnreadCall(name, None, str(identity), is_result=True, lists=lists)
        return
    passed_over = _OF_DECLARATIONS if is_call(value) else _NONE
    for inner, each in value.items():
        if inner in passed_over:
            continue
        if isinstance(each, Mapping) or is_list(each) or (isinstance(each, str) and inner not in _PROSE):
            yield from _search(each, inner, texts, lists, depth + 1)


_IDS = frozenset((*RESULT_IDS, "id"))
_OF_DECLARATIONS = GIVEN | {"function"}
_NONE: frozenset[str] = frozenset()
_OF_CALLS_ALONE = (NAMES - {"name", "action"}) | _IDS | {"arguments", "args", "function"}
"""Much else has a name and a text that it is given."""


def _is_call(value: Mapping[str, Any], kind: str, key: str) -> bool:
    if is_call_kind(kind) or (key in PLACES and call_in(value)):
        return True
    if kind == "constructor" or not is_call(value) or _is_declaration(value, kind):
        return False
    call = call_in(value)
    if call is None:
        return bool(word(value, "action"))
    return call.args is not None or not _OF_CALLS_ALONE.isdisjoint(value)


def _is_declaration(value: Mapping[str, Any], kind: str) -> bool:
    """Whether something with a name is a tool as it is declared, or chosen, and not as it is called."""
    function = value.get("function")
    inner = function if isinstance(function, Mapping) else value
    if not _IDS.isdisjoint(value) or "arguments" in inner or "arguments" in value:
        return False
    given = (inner[each] for each in GIVEN if each in inner)
    return inner is function or kind == "function" or "description" in inner or any(map(_is_schema, given))


def _is_schema(value: Any) -> bool:
    found = _parsed(value) if isinstance(value, str) else value
    return isinstance(found, Mapping) and ("properties" in found or "$schema" in found)
