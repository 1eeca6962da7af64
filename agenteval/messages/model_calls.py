"""What the requests of a model client within one turn tell of it: the calls that models asked for, their
results, the tokens. Pure.

A call is what a model asked for; its result is what a later request brings for it. What the models said is
no answer to the user: what the agent answered is its own to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agenteval.core.errors import AgentError, AuthorError
from agenteval.core.protocols import AgentReply
from agenteval.core.trajectory import CallEvidence, Message, Usage
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.completion import Unreadable, assembled_by, parse_object
from agenteval.messages.message_adapters import phrases_in, plain
from agenteval.messages.reported_usage import read_usage
from agenteval.messages.responses import reply_to
from agenteval.messages.said import UNPLACED
from agenteval.messages.sse import SseParser, ends_stream
from agenteval.messages.streams import begun, whole


@dataclass(frozen=True)
class AskedTurn:
    """``messages``: the calls with their results, as an agent would list them. ``usage``: of all requests;
    ``None``: that of one is not known. ``unread``: what could not be understood. ``offered_tools``: whether a
    request that was answered, and whose answer the agent read, told its model of tools."""

    messages: tuple[Message, ...]
    usage: Usage | None
    unread: tuple[str, ...]
    offered_tools: bool = True


def turn_of(exchanges: Sequence[Mapping[str, Any]]) -> AskedTurn:
    """``exchanges``: as ``agentside.targets.openai_calls`` notes them."""
    responses: list[Mapping[str, Any]] = []
    unread: list[str] = []
    for exchange in exchanges:
        try:
            responses.append(_response(exchange))
        except (Unreadable, AuthorError, AgentError, RecursionError) as error:
            responses.append({})
            unread.append(str(error))
    messages: list[Message] = []
    for at, response in enumerate(responses):
        try:
            messages += _calls(response, exchanges[at + 1 :], f"asked_{at}")
        except (Unreadable, AuthorError, AgentError) as error:
            unread.append(str(error))
    unread += phrases_in(messages)
    made = tuple(message for message in messages if message["role"] != UNPLACED)
    usage = _usage(exchanges, responses)
    offered = any(
        response and each.get("offers_tools") for each, response in zip(exchanges, responses, strict=True)
    )
    return AskedTurn(made, usage, tuple(dict.fromkeys(unread)), offered)


def with_calls(reply: AgentReply, turn: AskedTurn, *, otherwise: Iterable[str] = ()) -> AgentReply:
    """A reply of the agent with what its models asked for. A call that the reply has itself counts once;
    ``otherwise``: tools whose calls are recorded where they are carried out."""
    own = [*chat.calls_of(reply.tool_calls), *(c for m in reply.messages for c in _calls_of(m))]
    asked = _without(turn.messages, {_id_of(call) for call in own}, set(otherwise))
    evidence = CallEvidence.RECORDED if turn.offered_tools else reply.evidence
    usage = turn.usage if reply.usage is None else reply.usage
    *before, last = reply.messages or (None,)
    if last is None:
        # What is not answered by now is nobody's to answer any more.
        end = [] if reply.text or reply.tool_calls or not asked else [{"role": "assistant", "content": ""}]
        listed = [*asked, *end]
    else:
        listed = [*before, *asked, last]
    return replace(
        reply, messages=listed, usage=usage, evidence=evidence, unplaced=(*reply.unplaced, *turn.unread)
    )


def _calls_of(message: Any) -> Iterator[Any]:
    yield from chat.given_calls(foreign.as_message(message))


def _id_of(call: Any) -> str:
    return str(call.get("id") or "") if isinstance(call, Mapping) else str(getattr(call, "id", None) or "")


def _without(asked: Iterable[Message], ids: set[str], tools: set[str]) -> list[Message]:
    """Without the calls that are known otherwise, by their ids or their tools, and without their results."""
    ids = ids - {""}
    messages = []
    for message in asked:
        if message["role"] == "tool":
            if message["tool_call_id"] not in ids:
                messages.append(message)
            continue
        calls = [
            call
            for call in message["tool_calls"]
            if call["id"] not in ids and call["function"]["name"] not in tools
        ]
        ids |= {call["id"] for call in message["tool_calls"]} - {call["id"] for call in calls}
        if calls:
            messages.append({**message, "tool_calls": calls})
    return messages


# ── what came back ───────────────────────────────────────────────────────────────────────────────


def _response(exchange: Mapping[str, Any]) -> Mapping[str, Any]:
    """The response; empty for a request that failed. Raises ``Unreadable``."""
    if unread := exchange.get("unread"):
        raise Unreadable(str(unread))
    stream = exchange.get("stream")
    if stream is None:
        response = exchange.get("response") or {}
        if not isinstance(response, Mapping):
            raise Unreadable("a reply of the openai client that is not an object")
        return response
    if stream.lstrip().startswith("{"):
        return parse_object(stream)
    return _assembled(stream)


def _assembled(stream: str) -> Mapping[str, Any]:
    """What a stream amounts to, as far as the agent has read it. A call of which it has not all was none."""
    payloads = [str(each) for each in SseParser().feed(stream.encode(), final=True) if not ends_stream(each)]
    pieces = [parse_object(payload) for payload in payloads if payload.strip()]
    if not pieces:
        return {}
    if any(str(piece.get("type", "")).startswith("response.") for piece in pieces):
        try:
            return whole(pieces)
        except Unreadable:
            return begun(pieces) if any(map(_is_item, pieces)) else {}
    found = assembled_by(payloads)
    for choice in found.get("choices") or ():
        message = choice.get("message") or {}
        if calls := message.get("tool_calls"):
            message["tool_calls"] = [call for call in calls if _is_whole(call)]
    return found


def _is_item(piece: Mapping[str, Any]) -> bool:
    return piece.get("type") == "response.output_item.done"


def _is_whole(call: Mapping[str, Any]) -> bool:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not arguments:
        return True
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True


def _calls(
    response: Mapping[str, Any], later: Sequence[Mapping[str, Any]], unnamed: str
) -> Iterator[Message]:
    """The calls that a response asks for, those made at the same time in one message, and their results; in
    front of them what of it nobody could place."""
    choices = response.get("choices")
    if isinstance(choices, list) and len(choices) > 1 and any(map(_asks, choices[1:])):
        raise Unreadable("a completion with several choices that ask for tools")
    if not response or response.get("error"):
        return
    read = plain(reply_to((), response).messages)
    yield from (message for message in read if message["role"] == UNPLACED)
    ran = {str(each.get("tool_call_id")): each for each in read if each.get("role") == "tool"}
    said = [message for message in read if message.get("role") == "assistant"]
    calls = [call for message in said for call in chat.given_calls(message)]
    calls = [call if call.get("id") else {**call, "id": f"{unnamed}_{at}"} for at, call in enumerate(calls)]
    if calls:
        yield {"role": "assistant", "content": None, "tool_calls": calls}
    for call in calls:
        if result := ran.get(call["id"]) or _result(call, later):
            yield {**result, "role": "tool", "tool_call_id": call["id"]}


def _asks(choice: Any) -> bool:
    message = choice.get("message") if isinstance(choice, Mapping) else None
    return isinstance(message, Mapping) and bool(message.get("tool_calls") or message.get("function_call"))


def _result(call: Mapping[str, Any], later: Sequence[Mapping[str, Any]]) -> Message | None:
    """What the first request brought for a call that brought anything: the last of its results, since a
    server may give an id once more, and the conversation is sent again each time."""
    name = call["function"]["name"]
    for exchange in later:
        found = None
        for item in exchange.get("results") or ():
            if item.get("role") == "function" and item.get("name") == name:
                found = {"content": item.get("content")}
            elif call["id"] in (item.get("tool_call_id"), item.get("call_id")):
                content = item.get("content") if item.get("role") == "tool" else item.get("output")
                found = {"content": content}
        if found:
            return found
    return None


def _usage(exchanges: Sequence[Mapping[str, Any]], responses: Sequence[Mapping[str, Any]]) -> Usage | None:
    """The tokens of all requests that were answered; ``None`` where one does not tell."""
    total = Usage()
    for exchange, response in zip(exchanges, responses, strict=True):
        if exchange.get("failed"):
            continue
        usage = read_usage(response.get("usage"))
        if usage is None:
            return None
        total = total + usage.model_copy(update={"calls": 1})
    return total if total.is_spent else None
