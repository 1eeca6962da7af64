"""Tool calls in recorded messages, in any of the forms that logs have. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.expressions import expression
from agenteval.messages.chat import MAX_DEPTH, depth_of, read_arguments

Tell: TypeAlias = Callable[[str], None]
"""Takes one sentence about something that was not read as it stands."""

CALL_ITEMS = frozenset(("function_call", "tool_call", "custom_tool_call"))
CALL_ALONE = frozenset(("id", "type", "function", "index"))
"""The keys of a call with nothing beside it."""
_OF_TEXT = ("custom", "custom_tool_call")
_BY_SERVERS = ("server_tool_use", "mcp_tool_use")


class Call(NamedTuple):
    """A tool call. ``args`` is ``None`` where ``raw_args`` could not be read as an object. ``is_served``: the
    tool is one of the provider's, or behind it, and stands in no declaration."""

    name: str
    args: dict[str, Any] | None
    raw_args: str | None
    id: str
    is_served: bool = False


def calls_of(message: Mapping[str, Any]) -> list[Any]:
    """The calls beside the content of a message, as they stand there."""
    found = next(filter(None, (listed(message.get(key)) for key in _LISTS)), [])
    if not found:
        more = message.get("additional_kwargs")
        found = listed(more.get("tool_calls")) if isinstance(more, dict) else []
    found += listed(message.get("invalid_tool_calls"))
    return found + listed(message.get("function_call") or message.get("functionCall"))


_LISTS = (
    "tool_calls", "toolCalls", "tool_call", "toolCall", "tool_invocations", "toolInvocations", "tool_uses",
    "toolUses", "function_calls", "functionCalls", "tool_execution_requests", "toolExecutionRequests",
)  # fmt: skip
_PLACES = frozenset((*_LISTS, "invalid_tool_calls", "function_call", "functionCall", "additional_kwargs"))
_USUAL = frozenset(("role", "content", "tool_calls", "function_call", "name", "id", "refusal", "usage"))
_LOOKS_LIKE_CALLS = expression(
    r"(?:call|invocation|(?:tool|function|plugin)s?_?(?:use|usage|execution|request|run|action))s?$"
    r"|^(?:used_?tools|tools_?(?:used|called))$",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def may_hold_calls(key: str) -> bool:
    """Whether what stands below a key of a message may be calls, known or not."""
    return key in _PLACES or key == "actions" or _LOOKS_LIKE_CALLS.search(key) is not None


def unread_calls(message: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a message below which calls seem to stand that nobody reads."""
    if message.keys() <= _USUAL:
        return
    for key in filter(may_hold_calls, message.keys() - _PLACES):
        inside = listed(message[key]) if isinstance(message[key], list | dict) else []
        # What an agent offers as buttons is called actions, too.
        if inside and all(_call(each) if key == "actions" else isinstance(each, dict) for each in inside):
            yield key


def listed(value: Any) -> list[Any]:
    """A list as it is, one object as a list of one, and either of them written as JSON."""
    if not value:
        return []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    return list(value) if isinstance(value, list) else [value]


def plain_calls(raw: Any) -> tuple[Call, ...]:
    """Calls as OpenAI writes them, with a name, arguments and nothing else, as nearly all are; none if there
    are none, or one is written otherwise."""
    calls: list[Call] = []
    for each in raw if isinstance(raw, list) else ():
        if not isinstance(each, dict) or not each.keys() <= CALL_ALONE:
            return ()
        function = each.get("function")
        if not isinstance(function, dict) or len(function) != 2 or each.get("type", "function") != "function":
            return ()
        name, given = function.get("name"), function.get("arguments")
        if not name or not isinstance(name, str) or given is None:
            return ()
        calls.append(Call(name, *_arguments(given), str(each.get("id") or "")))
    return tuple(calls)


def calls_in(raw: Iterable[Any], tell: Tell) -> Iterator[Call]:
    for each in raw:
        call = _call(each)
        if call is None:
            tell("a tool call without a name was left out")
            continue
        if call.args == {} and call.raw_args is None and (key := _elsewhere(each)):
            tell(f"'{key}' of a tool call was not read: its arguments are unknown")
        yield call


def _call(raw: Any) -> Call | None:
    if not isinstance(raw, dict):
        return None
    inner = next((raw[key] for key in ("function", "custom") if isinstance(raw.get(key), dict)), raw)
    name = word(inner, "name") or next(filter(None, (word(inner, key) for key in _NAMES)), "")
    name = name or word(raw, "function")
    if not name:
        return None
    name = name.removeprefix("functions.") if "recipient_name" in inner else name
    given = _given(raw, inner)
    if isinstance(given, str) and word(raw, "type") in _OF_TEXT:
        given = {"input": given}  # such a tool takes any text: it is not JSON that is malformed
    identity = next((raw[key] for key in _CALL_IDS if raw.get(key)), "")
    return Call(name, *_arguments(given), str(identity), word(raw, "type") in _BY_SERVERS)


def _given(raw: Mapping[str, Any], inner: Mapping[str, Any]) -> Any:
    """The arguments as they stand in a call, or beside the function that it names."""
    if (usual := inner.get("arguments")) is not None:
        return usual
    places = (inner,) if inner is raw else (inner, raw)
    given = (place[key] for place in places for key in _ARGUMENTS if place.get(key) is not None)
    return next(given, None)


def _elsewhere(call: Mapping[str, Any]) -> str:
    """The key of an object in a call without arguments that may be them; empty if there is none."""
    inner = call.get("function")
    fields = {**call, **inner} if isinstance(inner, dict) else call
    if any(fields.get(key) is not None for key in _ARGUMENTS):
        return ""
    given = (key for key, value in fields.items() if isinstance(value, dict) and value)
    return next((key for key in given if not _NO_ARGUMENTS.search(key)), "")


def _arguments(given: Any) -> tuple[dict[str, Any] | None, str | None]:
    if isinstance(given, dict):
        return (given, None) if depth_of(given) <= MAX_DEPTH else (None, json.dumps(given))
    args, raw_args = read_arguments(given, lenient=True)
    if args is None and isinstance(given, str) and given.lstrip().startswith('"'):
        args = _written_again(given)
    return args, raw_args


def _written_again(text: str) -> dict[str, Any] | None:
    """The object in a JSON text that was made JSON a second time."""
    value: Any = text
    while isinstance(value, str) and value.lstrip().startswith('"'):  # each time it is shorter
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    is_object = isinstance(value, str) and value.lstrip().startswith("{")
    return read_arguments(value, lenient=True)[0] if is_object else None


_NAMES = ("toolName", "tool_name", "tool", "functionName", "function_name", "recipient_name")
_ARGUMENTS = (
    "arguments", "args", "input", "parameters", "action_input", "kwargs", "tool_input", "toolInput",
    "tool_args", "toolArgs", "tool_arguments", "tool_kwargs", "params", "rawInput",
)  # fmt: skip
_NO_ARGUMENTS = expression(
    "function|custom|result|output|response|error|meta|extra|provider|usage|caller|schema|additional", re.I
)
_CALL_IDS = ("call_id", "callId", "id", "toolCallId", "toolUseId", "tool_call_id", "tool_use_id")


_LAST = frozenset(("final_answer", "Finish"))
_ANSWERS = ("answer", "final_answer")


def handed_over(calls: Iterable[Call]) -> str:
    """The answer that an agent hands over as a call: it has been told so to end its turn. Empty: none."""
    last = next((call.args for call in calls if call.name in _LAST), None)
    return next(filter(None, (word(last, key) for key in _ANSWERS)), "") if last else ""


# ── what the provider runs itself ────────────────────────────────────────────────────────────────

_GIVEN = ("action", "queries", "query", "code", "operation", "commands", "input")
_GIVEN_BACK = ("output", "results", "outputs", "result")


def served_call(item: Mapping[str, Any]) -> tuple[Call, tuple[Any, bool] | None]:
    """A call that a provider made and writes as one item with its result (a search, a server of tools), and
    that result, if there is one: its value, and whether it is an error."""
    kind = word(item, "type")
    if "arguments" in item:
        args, raw_args = _arguments(item["arguments"])
    else:
        action = item.get("action")
        given = action if isinstance(action, dict) else {k: item[k] for k in _GIVEN if item.get(k)}
        args, raw_args = _arguments(given)
    name = word(item, "name") or kind.removesuffix("_call")
    call = Call(name, args, raw_args, str(item.get("call_id") or item.get("id") or ""), is_served=True)
    if error := item.get("error"):
        return call, ({"error": error}, True)
    value = next((item[key] for key in _GIVEN_BACK if item.get(key) is not None), None)
    if kind == "image_generation_call" and value:
        value = "[image]"
    failed = item.get("status") == "failed"
    return call, (value, failed) if value is not None or failed else None


def word(value: Mapping[str, Any], key: str) -> str:
    """The text below a key; empty if there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""
