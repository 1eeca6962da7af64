"""Parses recorded messages in all known formats into texts, calls and results.

The known formats are OpenAI's chat messages and response items, Anthropic's and Google's content blocks, and
LangChain's messages. Unknown content is marked as unplaced (``agenteval.messages.unplaced_entries``); the
parser never guesses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from agenteval.messages.agent_names import agent_of
from agenteval.messages.calls import (
    CALL_KEYS,
    OnWarning,
    ParsedCall,
    ReadCallIndex,
    collect_raw_calls,
    drop_copies,
    parse_provider_call,
    unplaced_in_provider_call,
)
from agenteval.messages.field_shapes import APPROVAL_REQUEST, is_call_kind
from agenteval.messages.json_fields import first_text, objects_of
from agenteval.messages.nested_text import CONTENT_KEYS, find_content_substitute, find_nested_text_key
from agenteval.messages.parsed_message import (
    PASSAGES,
    RESULT_IDS,
    UNPLACED,
    ParsedMessage,
    Role,
    plain_message,
    result_message,
    unplaced_in,
    unplaced_message,
)
from agenteval.messages.parts import (
    RESULT_FIELDS,
    RESULT_VALUES,
    calls_in_result,
    parse_call,
    parse_calls,
    parse_part,
    parse_parts,
    unread_in_result,
    with_citations,
)
from agenteval.messages.reported_usage import UsageDeduplicator, usage_in
from agenteval.messages.results import ERROR_FLAGS, result_value
from agenteval.messages.roles import role_of, unwrap_message
from agenteval.messages.texts import is_silent_kind, text_in, unplaced_in_part
from agenteval.messages.unplaced_entries import UNKNOWN_KIND, Unplaced, make_unplaced, unplaced_fields

_REFERENCE_KIND = "item_reference"
_APPROVAL_ID_KEY = "approval_request_id"


def _ignore_warning(_: str) -> None:
    """Ignore a warning. This is used by callers that obtain the same information in a different way."""


# ── lists of messages ────────────────────────────────────────────────────────────────────────────


def parse_messages(messages: Iterable[Any], warn: OnWarning = _ignore_warning) -> list[ParsedMessage]:
    """Parse recorded messages (from OpenAI, Anthropic, Google, LangChain and others) into texts, calls and
    results, in order.

    The token usage of a message with several parts is counted once, and repetitions of content that was
    already parsed are dropped."""
    messages = list(messages)
    each_alone = ((message, parsed) for message in messages for parsed in _parse_message(message, warn))
    parsed = list(_drop_repeated_usage(_drop_repeated_results(each_alone)))
    return _drop_repeated_unplaced(_drop_approved_requests(parsed, messages), messages)


def _drop_repeated_results(
    parsed: Iterable[tuple[Any, ParsedMessage]],
) -> Iterator[tuple[Any, ParsedMessage]]:
    """Yield the messages, excluding each separate result message that repeats a result recorded next to its
    call."""
    inline_ids: set[str] = set()
    for message, each in parsed:
        if inline_ids and each.calls:
            inline_ids -= {call.id for call in each.calls}
        if each.is_inline_result and each.id:
            inline_ids.add(each.id)
        elif each.id in inline_ids:
            inline_ids.discard(each.id)
            continue
        yield message, each


def _drop_repeated_usage(parsed: Iterable[tuple[Any, ParsedMessage]]) -> Iterator[ParsedMessage]:
    usages = UsageDeduplicator()
    for message, each in parsed:
        yield each._replace(usage=None) if usages.is_repeated(each.role, message) else each


def _drop_approved_requests(parsed: list[ParsedMessage], messages: list[Any]) -> list[ParsedMessage]:
    """Return the messages, excluding approval requests for calls that were made later.

    Such a request is not a separate call."""
    items = (each for each in objects_of(messages) if each.get(_APPROVAL_ID_KEY))
    approved_ids = {
        str(each[_APPROVAL_ID_KEY]) for each in items if first_text(each, "type").endswith("_call")
    }
    if not approved_ids:
        return parsed
    kept = []
    for each in parsed:
        calls = tuple(call for call in each.calls if not (call.is_attempt and call.id in approved_ids))
        if calls or not each.calls:
            kept.append(each._replace(calls=calls))
    return kept


def _drop_repeated_unplaced(parsed: list[ParsedMessage], messages: list[Any]) -> list[ParsedMessage]:
    """Return the messages, excluding unplaced messages whose calls were parsed elsewhere.

    A call was parsed elsewhere if its id occurs in any turn, or if the call occurs in the same turn."""
    if not any(each.role == UNPLACED and each.value.calls for each in parsed):
        return parsed
    ids = [each.get("id") for each in objects_of(messages) if each.get("type") != _REFERENCE_KIND]
    turns = list(accumulate(each.role == "user" for each in parsed))
    calls_by_turn: dict[int, list[ParsedCall]] = {turn: [] for turn in turns}
    for turn, each in zip(turns, parsed, strict=True):
        calls_by_turn[turn] += each.calls
    all_calls = [call for each in parsed for call in each.calls]
    return [
        each
        for turn, each in zip(turns, parsed, strict=True)
        if each.role != UNPLACED
        or not is_already_read(each.value, ReadCallIndex(calls_by_turn[turn], all_calls, ids))
    ]


def is_already_read(unplaced: Unplaced, read: ReadCallIndex) -> bool:
    """Check whether all calls that unplaced content may contain were parsed elsewhere."""
    return bool(unplaced.calls) and all(map(read.contains, unplaced.calls))


# ── one message ──────────────────────────────────────────────────────────────────────────────────


def _parse_message(message: Any, warn: OnWarning) -> Sequence[ParsedMessage]:
    if not isinstance(message, dict):
        what = f"a message that is {describe_json_type(message)} instead of an object"
        return [unplaced_message(Unplaced(what, (), message), is_whole_message=True)]
    if simple := plain_message(message):
        return [simple]
    if unplaced := unplaced_in(message):
        return [unplaced_message(unplaced)]
    message = unwrap_message(message) if message.get("role") is None else message
    parsed = list(_parse_entry(message, warn))
    agent_places = [at for at, each in enumerate(parsed) if each.role == "assistant"]
    for at in agent_places:
        # The usage of a message goes to its last part only.
        usage = usage_in(message) if at == agent_places[-1] else None
        parsed[at] = parsed[at]._replace(agent=agent_of(message), usage=usage)
    return parsed


def _parse_entry(message: dict[str, Any], warn: OnWarning) -> Iterable[ParsedMessage]:
    """Parse a message, or an item that has a type but no role."""
    kind = first_text(message, "type") if message.get("role") is None else ""
    match kind:
        case _ if is_call_kind(kind) or kind == APPROVAL_REQUEST:
            return _call_item(message)
        case "item_reference":
            return _reference_item(message)
        case _ if kind.endswith(("_call_output", "_call_result")):
            return _result_item(message, kind)
        case _ if kind.endswith("_call"):
            return _provider_item(message)
        case _ if is_silent_kind(kind):
            return map(unplaced_message, unplaced_in_part(message))
    match role_of(message):
        case None:
            return [_unknown_message(message, kind)]
        case "tool":
            return _tool_message(message)
        case role:
            return _content_message(role, message, warn)


def _call_item(item: Mapping[str, Any]) -> Iterator[ParsedMessage]:
    """Parse a function call item of OpenAI's Responses API.

    ``{"type": "function_call", "call_id": "1", "name": "find", …}``"""
    called = parse_calls([item])
    yield from called.messages
    yield from (unplaced_message(each, is_whole_message=not called.messages) for each in called.unplaced)


def _reference_item(item: Mapping[str, Any]) -> Iterator[ParsedMessage]:
    """Parse a reference item of OpenAI's Responses API.

    ``{"type": "item_reference", "id": "fc_1"}``"""
    yield unplaced_message(
        Unplaced("an item given only by reference", (_REFERENCE_KIND,), item, calls=(item,))
    )


def _result_item(item: Mapping[str, Any], kind: str) -> Iterator[ParsedMessage]:
    """Parse a function call output item of OpenAI's Responses API.

    ``{"type": "function_call_output", "call_id": "1", "output": "3 found"}``"""
    yield result_message(item, item.get("output"))
    yield from map(unplaced_message, unread_in_result(item, f"an item of type '{kind[:40]}'"))


def _provider_item(item: Mapping[str, Any]) -> Iterator[ParsedMessage]:
    """Parse an item of OpenAI's Responses API for a provider-executed tool.

    ``{"type": "mcp_call", "name": "find", "arguments": "{}", "output": "3 found"}``"""
    call, result = parse_provider_call(item)
    yield ParsedMessage("assistant", calls=(call,))
    if result is not None:
        value, failed = result
        yield ParsedMessage("tool", value=result_value(value), id=call.id, name=call.name, is_error=failed)
    yield from map(unplaced_message, (*unplaced_in_provider_call(item), *calls_in_result(item)))


def _unknown_message(message: Mapping[str, Any], kind: str) -> ParsedMessage:
    role = message.get("role")
    name = kind if role is None else str(role)
    of_role = f"a message with unknown role '{name[:40]}'" if name else UNKNOWN_KIND
    return unplaced_message(make_unplaced(message, of_role), is_whole_message=True)


# ── messages of users, agents and system prompts ─────────────────────────────────────────────────


def _content_message(role: Role, message: dict[str, Any], warn: OnWarning) -> Iterator[ParsedMessage]:
    """Parse a message from a user or an agent, or a system prompt.

    OpenAI: ``{"role": "assistant", "content": "Yes.", "tool_calls": […]}``; Anthropic: ``{"role": "user",
    "content": [{"type": "text", …}]}``; Google: ``{"role": "model", "parts": [{"text": "Yes."}]}``;
    LangChain, unwrapped: ``{"type": "ai", "content": "Yes."}``."""
    key, content = _find_content(message)
    calls, unplaced = parse_calls(collect_raw_calls(message) if role == "assistant" else [])
    if not content and role == "assistant" and not calls and message.get("output"):
        key, content = "output", message["output"]
    match content:
        case None | str() | []:
            text = (
                content or find_content_substitute(message) or (content if isinstance(content, str) else None)
            )
            yield from _with_calls([_parse_text(role, message, text, warn, has_calls=bool(calls))], calls)
        case list() | _:
            parts = content if isinstance(content, list) else [content]
            yield from _join_calls(role, with_citations(list(parse_parts(role, parts)), parts), calls)
    yield from map(unplaced_message, (*unplaced, *_unread_fields(role, message, key)))


_EMPTY_VALUES: tuple[Any, ...] = (None, "", [])


class _Content(NamedTuple):
    """The content of a message, with the key at which it was found."""

    key: str
    value: Any


def _find_content(message: Mapping[str, Any]) -> _Content:
    parts, content = message.get("parts"), message.get("content")
    if isinstance(parts, list) and (not content or any(map(_holds_call, parts))):
        # Vercel's AI SDK repeats the text of the parts, without the calls between them.
        is_left_out = isinstance(content, str) and not any(map(_is_text_part, parts))
        return _Content("parts", [*parts, content] if is_left_out else parts)
    keys = [key for key in CONTENT_KEYS if key in message] or ["content"]
    key = keys[0]
    if message.get(key) in _EMPTY_VALUES:
        key = next((each for each in keys if message.get(each)), key)
    return _Content(key, message.get(key))


def _holds_call(part: Any) -> bool:
    """Check whether a part is a non-empty call."""
    call = parse_call(part)
    return call is not None and bool(call.raw)


def _is_text_part(part: Any) -> bool:
    return parse_part(part) is None and bool(text_in(part))


def _parse_text(
    role: Role, message: Mapping[str, Any], text: str | None, warn: OnWarning, *, has_calls: bool
) -> ParsedMessage:
    """Return a message with a single text. If the message has no text, warn about a field that may contain
    the text."""
    has_words = has_calls or role == "system" or (text and text.strip())
    hidden = "" if has_words else find_nested_text_key(message)[:40]
    if not hidden:
        return ParsedMessage(role, text)
    warn(f"'{hidden}' in a message looks like its text but was not recognized")
    return ParsedMessage(role, f"[{hidden}]", is_unread=True)


def _join_calls(role: Role, parsed: list[ParsedMessage], called: list[ParsedMessage]) -> list[ParsedMessage]:
    """Return the parsed parts, joined with the calls outside the content. LangChain writes a call in both
    places."""
    if all(each.role == UNPLACED for each in parsed):
        parsed = [ParsedMessage(role, "" if role == "user" else None), *parsed]
    inline_calls = [call for each in parsed for call in each.calls]
    if not inline_calls:
        return _with_calls(parsed, called)
    more = drop_copies((call for each in called for call in each.calls), inline_calls)
    return [*parsed, ParsedMessage("assistant", calls=tuple(more))] if more else parsed


def _with_calls(parsed: list[ParsedMessage], called: list[ParsedMessage]) -> list[ParsedMessage]:
    """Return the parsed content together with the calls next to it.

    If the results are also next to the calls, the text is based on all of these results and is therefore
    placed after them."""
    if not called:
        return parsed
    if len(called) > 1:
        return [*called, *(each for each in parsed if each.text or each.role in ("tool", UNPLACED))]
    agent_places = [at for at, each in enumerate(parsed) if each.role == "assistant"]
    if not agent_places:
        return [*parsed, *called]
    parsed[agent_places[-1]] = parsed[agent_places[-1]]._replace(calls=called[0].calls, is_unread=False)
    return parsed


def _unread_fields(role: Role, message: Mapping[str, Any], key: str) -> Iterator[Unplaced]:
    """Yield the fields of a message that were not parsed. ``key`` is the key of the message's content."""
    read = {key, *CONTENT_KEYS, "role", "type"}
    if role == "assistant":
        # LangChain also keeps the pieces of the calls.
        has_pieces = _CHUNKS_KEY in message and collect_raw_calls(message)
        read.update(CALL_KEYS, (_CHUNKS_KEY,) if has_pieces else ())
    yield from unplaced_fields(message, read, owner="a message")
    yield from _unread_contents(message, key)


_CHUNKS_KEY = "tool_call_chunks"


def _unread_contents(message: Mapping[str, Any], key: str) -> Iterator[Unplaced]:
    """Yield the content under the alternative content keys of a message, unless it repeats the main
    content."""
    for other in CONTENT_KEYS:
        content = message.get(other)
        if other == key or isinstance(content, str) or not content or content == message.get(key):
            continue
        for part in content if isinstance(content, list) else [content]:
            if parse_part(part) is None:
                yield from unplaced_in_part(part)
            else:
                yield make_unplaced(part, f"the value of '{other}' next to '{key}'")


# ── messages of tools ────────────────────────────────────────────────────────────────────────────

_TOOL_FIELDS = frozenset((*RESULT_FIELDS, *CONTENT_KEYS, "role"))


def _tool_message(message: dict[str, Any]) -> Iterator[ParsedMessage]:
    """Parse a tool message.

    OpenAI: ``{"role": "tool", "tool_call_id": "1", "content": "3 found"}``; the AI SDK: ``{"role": "tool",
    "content": [{"type": "tool-result", …}]}``."""
    content = _find_content(message).value
    if content in _EMPTY_VALUES:  # then another key may hold the result
        content = next(
            (message[key] for key in RESULT_VALUES if message.get(key) not in _EMPTY_VALUES), content
        )
    is_passage = first_text(message, "type") == PASSAGES
    yield from _results_in(message, content) or [
        result_message(message, content)._replace(is_passage=is_passage)
    ]
    yield from map(unplaced_message, calls_in_result(message))
    yield from map(unplaced_message, unplaced_fields(message, _TOOL_FIELDS, owner="a tool message"))


def _results_in(message: Mapping[str, Any], content: Any) -> list[ParsedMessage]:
    """Return the results among the parts of a tool message, and the content of the remaining parts that could
    not be placed."""
    if not isinstance(content, list):
        return []
    inherited = {key: message[key] for key in (*RESULT_IDS, *ERROR_FLAGS) if key in message}
    results: list[ParsedMessage] = []
    unplaced: list[Unplaced] = []
    for part in [{**inherited, **each} if isinstance(each, dict) else each for each in content]:
        if isinstance(result := parse_part(part), ParsedMessage):
            results.append(result)
            unplaced += unread_in_result(part)
        else:
            unplaced += unplaced_in_part(part)
    return [*results, *map(unplaced_message, unplaced)] if results else []


_TYPE_NAMES: dict[type, str] = {
    **{type(None): "null", str: "a string", bool: "a boolean", int: "a number", float: "a number"},
    **{list: "a list", dict: "an object"},
}


def describe_json_type(value: Any) -> str:
    """Return a phrase that describes the JSON type of a value."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)
