"""Parses tool calls (function calls) in recorded messages, in all known formats. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.json_text import parse_or
from agenteval.messages.chat import (
    APPROVED,
    ARGUMENTS_UNKNOWN,
    ATTEMPTED,
    MAX_DEPTH,
    depth_of,
    read_arguments,
)
from agenteval.messages.field_shapes import APPROVAL_REQUEST, ARGUMENT_KEYS, CALL_ID_KEYS, TOOL_NAME_KEYS
from agenteval.messages.json_fields import first_nonempty, first_present, first_text, object_at
from agenteval.messages.unplaced_entries import ADDITIONAL_KWARGS, Unplaced, unplaced_fields

BARE_CALL_KEYS = frozenset(("id", "type", "function", "index"))
"""The keys of a call that has no additional fields."""
OnWarning: TypeAlias = Callable[[str], None]
"""A callback that receives a one-sentence warning about data that was changed or omitted during parsing."""
_TEXT_INPUT_KINDS = ("custom", "custom_tool_call")
_PROVIDER_KINDS = ("server_tool_use", "mcp_tool_use", APPROVAL_REQUEST)
_NOT_EXECUTED_STATES = ("approval-requested", "output-denied")
_FUNCTION_KEYS = ("function", "custom")
"""Keys that may contain an object with the name of the called tool."""


class ParsedCall(NamedTuple):
    """A tool call in its normalized form."""

    name: str
    args: dict[str, Any] | None
    """The arguments, or ``None`` if they are unknown. In that case, either ``raw_args`` contains a string
    that is not a JSON object, or ``raw_args`` is also ``None`` because the arguments are stored in an
    unsupported location."""
    raw_args: str | None
    """The text of the arguments, if it could not be parsed strictly."""
    id: str
    is_provider_executed: bool = False
    """True if the provider, or a server behind the provider, executed the tool. Such a tool has no
    declaration."""
    is_attempt: bool = False
    """True if the call was denied or is waiting for approval."""
    is_approved: bool = False
    """True if the call was approved."""


# ── the calls of a message ───────────────────────────────────────────────────────────────────────

_CALL_LIST_KEYS = (
    "tool_calls", "toolCalls", "tool_call", "toolCall", "tool_invocations", "toolInvocations", "tool_uses",
    "toolUses", "function_calls", "functionCalls",
)  # fmt: skip
_INVALID_CALLS_KEY = "invalid_tool_calls"
_LEGACY_CALL_KEYS = ("function_call", "functionCall")
CALL_KEYS = frozenset((*_CALL_LIST_KEYS, _INVALID_CALLS_KEY, *_LEGACY_CALL_KEYS))
"""The keys in a message that contain its calls."""


def collect_raw_calls(message: Mapping[str, Any]) -> list[Any]:
    """Collect the raw tool calls outside a message's content. A call that occurs in several places is
    collected once."""
    additional = object_at(message, ADDITIONAL_KWARGS)
    candidates = (
        *map(message.get, _CALL_LIST_KEYS),
        *map(additional.get, ("tool_calls", *_LEGACY_CALL_KEYS)),
        *map(message.get, _LEGACY_CALL_KEYS),
    )
    found, *others = [*filter(None, map(parse_list, candidates))] or [[]]
    for other in others:
        known = [call for raw in found if (call := parse_raw_call(raw))]
        found = [*found, *(raw for raw in other if not _take_copy(parse_raw_call(raw), known))]
    return [*found, *parse_list(message.get(_INVALID_CALLS_KEY))]


def drop_copies(calls: Iterable[ParsedCall], known: Iterable[ParsedCall]) -> list[ParsedCall]:
    """Return the calls, excluding copies of ``known`` calls. Each known call removes one copy."""
    remaining = list(known)
    return [call for call in calls if not _take_copy(call, remaining)]


def _take_copy(call: ParsedCall | None, known: list[ParsedCall]) -> bool:
    """Remove the known call that equals the given call, and return ``True`` if there was one. Calls are
    compared by id or, if there is no id, by tool and arguments."""
    position = next((at for at, each in enumerate(known) if call and _is_same(call, each)), None)
    return position is not None and bool(known.pop(position))


def _is_same(call: ParsedCall, other: ParsedCall) -> bool:
    if call.id and other.id:
        return call.id == other.id
    return _is_equivalent(call, other)


class ReadCallIndex:
    """An index of the parsed calls, used to recognize copies of these calls elsewhere.

    A copy has the same tool and id or, if there is no id, the same tool and arguments. ``other_turns``
    contains calls of other turns, which are identified only by their ids. ``ids`` contains the ids of all
    other parsed content, to match entries that have only an id."""

    def __init__(
        self, calls: Iterable[ParsedCall], other_turns: Iterable[ParsedCall] = (), ids: Iterable[Any] = ()
    ) -> None:
        self._calls = tuple(calls)
        self._ids_by_name = {(call.name, call.id) for call in (*self._calls, *other_turns) if call.id}
        self._ids = {str(each) for each in ids if each} | {identity for _, identity in self._ids_by_name}

    def contains(self, raw: Any) -> bool:
        if not isinstance(raw, Mapping):
            return False
        inside = (dict(raw), *(inner for inner in raw.values() if isinstance(inner, dict)))
        ids = {str(each[key]) for each in inside for key in CALL_ID_KEYS if each.get(key)}
        call = next(filter(None, map(parse_raw_call, inside)), None)
        if call is None:
            return not self._ids.isdisjoint(ids)
        is_named = any((call.name, identity) in self._ids_by_name for identity in ids)
        return is_named or any(_is_equivalent(call, each) for each in self._calls)


def _is_equivalent(call: ParsedCall, other: ParsedCall) -> bool:
    return call.name == other.name and (call.args == other.args or None in (call.args, other.args))


def parse_list(value: Any) -> list[Any]:
    """Return a list unchanged, and wrap a single object in a list. Either may be encoded as JSON."""
    if not value:
        return []
    value = parse_or(value, value) if isinstance(value, str) else value
    return list(value) if isinstance(value, list) else [value]


# ── one call ─────────────────────────────────────────────────────────────────────────────────────


def parse_raw_call(raw: Any) -> ParsedCall | None:
    """Parse a tool call in any known format. Return ``None`` if the call names no tool."""
    if not isinstance(raw, dict):
        return None
    inner = object_at(raw, *_FUNCTION_KEYS) or raw
    name = first_text(inner, *TOOL_NAME_KEYS) or first_text(raw, "function")
    if not name:
        return None
    name = name.removeprefix("functions.") if "recipient_name" in inner else name
    arguments = first_present(ARGUMENT_KEYS, inner, raw)
    if isinstance(arguments, str) and first_text(raw, "type") in _TEXT_INPUT_KINDS:
        arguments = {"input": arguments}  # such a tool takes any text, so it is not malformed JSON
    identity = str(first_nonempty(CALL_ID_KEYS, raw) or "")
    is_unknown = raw.get(ARGUMENTS_UNKNOWN) is True or (
        arguments is None and bool(_possible_argument_keys(raw))
    )
    args, raw_args = (None, None) if is_unknown else _parse_arguments(arguments)
    is_provider_executed, is_attempt = first_text(raw, "type") in _PROVIDER_KINDS, _is_attempt(raw)
    return ParsedCall(
        name, args, raw_args, identity, is_provider_executed, is_attempt, not is_attempt and _is_approved(raw)
    )


def _is_attempt(raw: Mapping[str, Any]) -> bool:
    """Check whether a call was denied or is waiting for approval, according to its type, its state or
    agenteval's mark."""
    is_waiting = (
        first_text(raw, "type") == APPROVAL_REQUEST or first_text(raw, "state") in _NOT_EXECUTED_STATES
    )
    is_denied = object_at(raw, "approval").get("approved") is False
    return is_waiting or is_denied or raw.get(ATTEMPTED) is True


def _is_approved(raw: Mapping[str, Any]) -> bool:
    """Check whether the call itself, or agenteval's mark, records an approval."""
    return raw.get(APPROVED) is True or object_at(raw, "approval").get("approved") is True


def unplaced_in_call(raw: Mapping[str, Any], call: ParsedCall) -> Iterator[Unplaced]:
    """Yield the fields of a call that were not parsed.

    If a call has no arguments, an object next to the call is assumed to contain the arguments. The call is
    then known, but its arguments are not."""
    is_known = call.args is not None or call.raw_args is not None
    argument_keys = () if is_known else _possible_argument_keys(raw)
    yield from unplaced_fields(
        _merged_fields(raw), {*CALL_FIELDS, *argument_keys}, owner=f"a call to '{call.name[:40]}'"
    )


def _possible_argument_keys(call: Mapping[str, Any]) -> list[str]:
    """Return the keys of the objects that may contain the arguments of a call without arguments."""
    fields = _merged_fields(call)
    return _unplaced_object_keys(fields, unplaced_fields(fields, CALL_FIELDS, owner=""))


def _unplaced_object_keys(fields: Mapping[str, Any], unplaced: Iterable[Unplaced]) -> list[str]:
    """Return the keys of unplaced fields whose values are objects."""
    return [each.names[0] for each in unplaced if isinstance(fields.get(each.names[0]), dict)]


def _merged_fields(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a call merged with the fields of its function."""
    return {**call, **object_at(call, *_FUNCTION_KEYS)}


def _parse_arguments(raw: Any) -> tuple[dict[str, Any] | None, str | None]:
    if isinstance(raw, dict):
        return (raw, None) if depth_of(raw) <= MAX_DEPTH else (None, json.dumps(raw))
    args, raw_args = read_arguments(raw, lenient=True)
    if args is None and isinstance(raw, str) and raw.lstrip().startswith('"'):
        args = _parse_double_encoded(raw)
    return args, raw_args


def _parse_double_encoded(text: str) -> dict[str, Any] | None:
    """Return the object in a JSON string that was encoded as JSON more than once."""
    value: Any = text
    while isinstance(value, str) and value.lstrip().startswith(
        '"'
    ):  # ends, because decoding shortens the text
        value = parse_or(value)
    is_object = isinstance(value, str) and value.lstrip().startswith("{")
    return read_arguments(value, lenient=True)[0] if is_object else None


CALL_FIELDS = frozenset((
    *ARGUMENT_KEYS, "function", "custom", "type", "index", "tool", "result", "output", "tool_output",
    "toolOutput", "observation", "error", "errorText", "state", "approval", "schema", "status",
    "toolMetadata",
))  # fmt: skip
"""The known fields of a call, including fields that are ignored."""


_FINAL_ANSWER_TOOLS = frozenset(("final_answer", "Finish"))
_ANSWER_KEYS = ("answer", "final_answer")


def find_final_answer(calls: Iterable[ParsedCall]) -> str:
    """Return the answer that an agent passed as an argument of the call that ends its turn, or an empty
    string if there is no such call."""
    args = next((call.args for call in calls if call.name in _FINAL_ANSWER_TOOLS), None)
    return first_text(args or {}, *_ANSWER_KEYS)


# ── provider-executed tools ──────────────────────────────────────────────────────────────────────

_INPUT_KEYS = ("action", "queries", "query", "code", "operation", "commands", "input")
_OUTPUT_KEYS = ("output", "results", "outputs", "result")
_PROVIDER_ITEM_FIELDS = frozenset((
    *_INPUT_KEYS, *_OUTPUT_KEYS, *CALL_FIELDS, "environment", "pending_safety_checks",
    "acknowledged_safety_checks", "tools", "actions",
))  # fmt: skip


def parse_provider_call(item: Mapping[str, Any]) -> tuple[ParsedCall, tuple[Any, bool] | None]:
    """Parse a provider-executed call (such as a web search or an MCP server call) that is a single item
    together with its result.

    Return the call as the first value. The second value is a pair of the result and an error flag, or
    ``None`` if there is no result."""
    name = first_text(item, "name") or first_text(item, "type").removesuffix("_call")
    identity = str(first_nonempty(("call_id", "id"), item) or "")
    call = ParsedCall(name, *_provider_arguments(item), identity, is_provider_executed=True)
    return call, _provider_outcome(item)


def _provider_arguments(item: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    if "arguments" in item:
        return _parse_arguments(item["arguments"])
    inputs = {key: item[key] for key in _INPUT_KEYS if item.get(key)}
    if not inputs and _unplaced_object_keys(item, unplaced_in_provider_call(item)):
        return None, None
    action = item.get("action")
    return _parse_arguments(action if isinstance(action, dict) else inputs)


def _provider_outcome(item: Mapping[str, Any]) -> tuple[Any, bool] | None:
    if error := item.get("error"):
        return {"error": error}, True
    value, failed = first_present(_OUTPUT_KEYS, item), item.get("status") == "failed"
    if value and first_text(item, "type") == "image_generation_call":
        value = "[image]"
    return (value, failed) if value is not None or failed else None


def unplaced_in_provider_call(item: Mapping[str, Any]) -> Iterator[Unplaced]:
    return unplaced_fields(
        item, _PROVIDER_ITEM_FIELDS, owner=f"an item of type '{first_text(item, 'type')[:40]}'"
    )
