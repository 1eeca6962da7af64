"""Mark each call in a turn's messages with its outcome: the call was sent to the scenario, ran elsewhere, or
was refused before any tool ran."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from ..world import RequestedCall

    Message = dict[str, Any]


def iter_calls(messages: list[Message]) -> Iterator[Message]:
    """Yield the tool calls in messages in OpenAI's format."""
    for message in messages:
        for call in message.get("tool_calls") or ():
            if isinstance(call.get("function"), dict):
                yield call


def ids_of(messages: list[Message], names: Collection[str]) -> set[Any]:
    """Return the ids of the calls to the given tools."""
    return {call.get("id") for call in iter_calls(messages) if call["function"].get("name") in names}


def mark_calls(
    messages: list[Message], requested: list[RequestedCall], elsewhere: Collection[Any]
) -> list[Message]:
    """Return the messages with their calls marked.

    A call that was sent to the scenario is given the arguments that the scenario received, so that the call
    can be found by its arguments even if the framework changed them. A call that was not sent to the scenario
    is marked as ``attempted`` (no tool ran) if it has no result or its result is an error. Calls whose ids
    are in ``elsewhere`` are not marked."""
    found = _pair_calls(list(iter_calls(messages)), requested)
    results = (each for each in messages if each.get("role") == "tool" and each.get("status") != "error")
    done = {*elsewhere, *(each.get("tool_call_id") for each in results)}

    def read(call: Message) -> Message:
        request = found.get(id(call))
        if request is None:
            return call if call.get("id") in done else {**call, "attempted": True}
        if not isinstance(request.arguments, str):
            return call
        return {**call, "function": {**call["function"], "arguments": request.arguments}}

    return _map_calls(messages, read)


def _pair_calls(calls: list[Message], requested: list[RequestedCall]) -> dict[int, RequestedCall]:
    """Return the matching request for each call, keyed by the Python ``id()`` of the call.

    Calls with an id are matched by id, because two calls may have the same arguments. Other calls are matched
    by name and arguments, because some frameworks do not pass ids to their tools."""
    by_id: dict[Any, list[RequestedCall]] = {}
    by_arguments: dict[Any, list[RequestedCall]] = {}
    for each in requested:
        if each.call_id:
            by_id.setdefault((each.name, each.call_id), []).append(each)
        else:
            by_arguments.setdefault(_key(each.name, each.arguments), []).append(each)
    found: dict[int, RequestedCall] = {}
    for call in calls:
        function = call["function"]
        name = function.get("name")
        alike = by_id.get((name, call.get("id"))) or by_arguments.get(_key(name, function.get("arguments")))
        if alike:
            found[id(call)] = alike.pop(0)
    return found


def _key(name: Any, arguments: Any) -> Any:
    return name, json.dumps(_parse_arguments(arguments), sort_keys=True, default=str)


_Made = TypeVar("_Made")


def pair_by_name(wanted: list[tuple[str, Any]], made: list[tuple[str, Any, _Made]]) -> list[_Made | None]:
    """Return the item in ``made`` that matches each call (name and arguments) that a model requested. This is
    for frameworks that do not pass ids to their tools.

    A call with the same arguments is preferred. Otherwise, the first call with the same name is used, because
    a framework may have changed the arguments. ``None`` means that there is no match."""
    left = list(made)
    found: list[_Made | None] = [None for _ in wanted]
    for is_sure in (True, False):
        for at, (name, args) in enumerate(wanted):
            fits = [each for each in left if each[0] == name and (not is_sure or each[1] == args)]
            if found[at] is None and fits:
                left.remove(fits[0])
                found[at] = fits[0][2]
    return found


def restore_arguments(
    messages: list[Message], requested: list[RequestedCall]
) -> tuple[list[Message], set[Any]]:
    """Restore the arguments that the scenario received. Return the messages, along with the ids of the
    restored calls. Calls are matched by name, in order."""
    calls = list(iter_calls(messages))
    wanted = [
        (call["function"].get("name"), _parse_arguments(call["function"].get("arguments"))) for call in calls
    ]
    paired = pair_by_name(wanted, [(each.name, _parse_arguments(each.arguments), each) for each in requested])
    arguments = {id(calls[at]): each.arguments for at, each in enumerate(paired) if each is not None}

    def read(call: Message) -> Message:
        if not isinstance(arguments.get(id(call)), str):
            return call
        return {**call, "function": {**call["function"], "arguments": arguments[id(call)]}}

    return _map_calls(messages, read), {call.get("id") for call in calls if id(call) in arguments}


def _map_calls(messages: list[Message], read: Callable[[Message], Message]) -> list[Message]:
    return [
        {**message, "tool_calls": list(map(read, message["tool_calls"]))}
        if message.get("tool_calls")
        else message
        for message in messages
    ]


def _parse_arguments(arguments: Any) -> Any:
    """Return arguments in the form that is used to compare calls."""
    try:
        return (json.loads(arguments or "{}") if isinstance(arguments, str) else arguments) or {}
    except ValueError:
        return arguments
