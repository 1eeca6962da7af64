"""Derives the tool calls, results and token usage of one turn from its recorded model requests. Pure.

The calls are the tool calls that a model requested. The result of a call is taken from the later request that
sends the result to the model. Text from the models is not an answer to the user, because the agent itself
returns its answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from agenteval.agentside.world import RequestedCall
from agenteval.core.errors import AgentError, AuthorError
from agenteval.core.protocols import ReadReply
from agenteval.core.trajectory import CallEvidence, Message, Usage, sum_usage
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.completion import (
    UnreadableResponseError,
    assemble_partial_completion,
    describe_non_json,
    parse_object,
)
from agenteval.messages.json_fields import (
    drop_empty,
    first_nonempty,
    first_text,
    is_json,
    list_at,
    object_at,
    object_of,
)
from agenteval.messages.message_adapters import to_openai_messages, unplaced_phrases
from agenteval.messages.pairing import match_pairs
from agenteval.messages.parsed_message import unplaced_in
from agenteval.messages.reported_usage import read_usage, usage_in
from agenteval.messages.responses import parse_response
from agenteval.messages.sse import SseParser, looks_like_sse, texts_of
from agenteval.messages.streams import assemble_partial_response, assemble_response


class ModelToolCall(NamedTuple):
    """A tool call that a model requested."""

    call: Message
    """The call in OpenAI's format. It always has an id."""
    result: Message | None
    """The tool message with the result, taken from a later request."""
    framework: str = ""
    """The instrumented (hooked) framework that sent the request, or an empty string for a plain agent
    loop."""
    is_form: bool = False
    """True if the request forced the model to call this tool, as clients do to obtain structured output."""

    @property
    def name(self) -> str:
        return str(self.call["function"].get("name"))

    @property
    def arguments(self) -> Any:
        return self.call["function"].get("arguments")


@dataclass(frozen=True)
class ModelTurn:
    """The calls and the token usage in the model requests of one turn."""

    rounds: tuple[tuple[ModelToolCall, ...], ...] = ()
    """The calls, grouped by the model reply that requested them."""
    usage: Usage | None = None
    """The token usage of all requests, or ``None`` if there was no request or the usage of a request is
    unknown."""
    unreadable: tuple[str, ...] = ()
    """Descriptions of the data that could not be parsed."""
    offered_tools: bool = False
    """True if at least one request offered tools to its model and received an answer that the agent read."""
    forked: tuple[str, ...] = ()
    """Reports about forked processes, whose requests are not recorded."""


class KnownCalls(NamedTuple):
    """Information from other sources about the calls of a turn."""

    scenario_calls: Sequence[RequestedCall] = ()
    """Calls that reached the scenario."""
    intercepted_tools: Collection[str] = ()
    """Tools that are intercepted when they run (monkeypatching). A requested call to such a tool that was not
    intercepted was rejected before the tool ran."""
    scenario_tools: Collection[str] = ()
    """The tools named in the scenario."""
    all_scenario_calls: Sequence[RequestedCall] = ()
    """All calls that reached the scenario, including calls that were reported elsewhere."""
    has_intercepted_tools: bool = False
    """True if calls to a framework's tools are intercepted when the tools run."""
    is_framework_object: bool = False
    """True if the agent is a framework object. In this case, the adapter lists the agent's calls and reports
    content that it could not place."""


def parse_model_turn(exchanges: Sequence[Mapping[str, Any]]) -> ModelTurn:
    """Parse the recorded model requests and responses of one turn, in the JSON form that
    ``agentside.model_requests`` writes."""
    forked = tuple(str(each["unread"]) for each in exchanges if each.get("forked"))
    exchanges = [each for each in exchanges if not each.get("forked")]
    unread: list[str] = []
    responses = [_response_or_none(each, unread) for each in exchanges]
    results = [_tool_messages(each) for each in exchanges]
    offered_tools = any(
        response and each.get("offers_tools") for each, response in zip(exchanges, responses, strict=True)
    )
    rounds: list[tuple[ModelToolCall, ...]] = []
    refetched = _refetched_places(exchanges, responses)
    unique = [(at, response) for at, response in enumerate(responses) if at not in refetched]
    for at, response in unique:
        try:
            calls, unplaced = _parse_calls(response, exchanges[at], results[at + 1 :], f"asked_{at}")
        except (UnreadableResponseError, AuthorError, AgentError) as error:
            unread.append(_error_text(error))
            continue
        rounds += [calls] if calls else []
        unread += unplaced
    answered = [response for at, response in unique if not exchanges[at].get("failed")]
    return ModelTurn(
        tuple(rounds), _sum_usages(answered), tuple(dict.fromkeys(unread)), offered_tools, forked
    )


def _response_or_none(exchange: Mapping[str, Any], unread: list[str]) -> Mapping[str, Any]:
    """Return the response, or an empty mapping if there is no response or it cannot be parsed.

    If the response cannot be parsed, the reason is added to ``unread``."""
    if exchange.get("unread"):
        unread.append(str(exchange["unread"]))
        return {}
    try:
        return _parse_response_text(str(exchange.get("dialect")), str(exchange.get("reply") or "").strip())
    except (UnreadableResponseError, AuthorError, AgentError, RecursionError) as error:
        unread.append(_error_text(error))
        return {}


def _error_text(error: Exception) -> str:
    return f"a model reply {error}" if isinstance(error, UnreadableResponseError) else str(error)


def _refetched_places(
    exchanges: Sequence[Mapping[str, Any]], responses: Sequence[Mapping[str, Any]]
) -> set[int]:
    """Return the positions of responses that were fetched again later. Such a response (identified by its id)
    is counted only once."""
    last = {
        response["id"]: at
        for at, (each, response) in enumerate(zip(exchanges, responses, strict=True))
        if each.get("is_fetched") and response.get("id")
    }
    return {at for at, each in enumerate(responses) if at < last.get(each.get("id"), -1)}


# ── merging with the agent's reply ───────────────────────────────────────────────────────────────


def merge_model_calls(reply: ReadReply, turn: ModelTurn, known: KnownCalls) -> ReadReply:
    """Merge the tool calls that the agent's models requested into the agent's reply.

    A call is counted once, even if it is also in the reply or reached the scenario."""
    reply_calls = [
        *chat.validate_tool_calls(reply.tool_calls),
        *(call for m in reply.messages for call in _calls_of(m)),
    ]
    matches = _Matches(turn.rounds, reply_calls, known.scenario_calls)
    added = list(_unmatched_messages(turn.rounds, matches, known, lists_calls=bool(reply.messages)))
    unread = () if known.is_framework_object else turn.unreadable
    forked = () if known.is_framework_object or reply.messages else turn.forked
    shows_all = turn.offered_tools and not (known.is_framework_object and turn.unreadable)
    evidence = CallEvidence.RECORDED if shows_all else reply.evidence
    return replace(
        reply,
        messages=_insert_messages(reply, added),
        usage=_larger_usage(turn.usage, reply),
        evidence=evidence,
        unplaced=(*reply.unplaced, *unread, *forked),
        apart=matches.unmatched_ids,
    )


def _insert_messages(reply: ReadReply, added: list[Message]) -> list[Any]:
    """Return the messages of a reply with ``added`` inserted before the last message."""
    if reply.messages:
        return [*reply.messages[:-1], *added, reply.messages[-1]]
    # The empty answer shows that nobody will answer the open calls any more.
    is_open = bool(added) and not (reply.text or reply.tool_calls)
    return [*added, {"role": "assistant", "content": ""}] if is_open else added


def _calls_of(message: Any) -> Iterator[Any]:
    yield from chat.collect_tool_calls(foreign.as_message(message))


def _unmatched_messages(
    rounds: Iterable[Sequence[ModelToolCall]], matches: _Matches, known: KnownCalls, *, lists_calls: bool
) -> Iterator[Message]:
    """Yield messages for the calls that have no match.

    If ``lists_calls`` is true, the agent lists its own calls. In that case, calls that reached the scenario
    are omitted, because they are recorded anyway."""
    for calls in rounds:
        calls_kept: list[Message] = []
        results: list[Message] = []
        for model_call in calls:
            if matches.is_in_reply(model_call):
                continue
            scenario_call = matches.find_scenario_call(model_call)
            if scenario_call is not None:
                if not lists_calls:  # it is found by the arguments that reached the scenario
                    function = {**model_call.call["function"], "arguments": scenario_call.arguments}
                    calls_kept.append({**model_call.call, "function": function})
            elif (call := _call_outside_scenario(model_call, known)) is not None:
                calls_kept.append(call)
                results += [model_call.result] if model_call.result else []
        if calls_kept:
            yield {"role": "assistant", "content": None, "tool_calls": calls_kept}
            yield from results


def _call_outside_scenario(model_call: ModelToolCall, known: KnownCalls) -> Message | None:
    """Return a call that did not reach the scenario as the call to record, or ``None`` if it is not a tool
    call.

    In a framework, only the tools named in the scenario are certain to be tools, because handoffs and
    structured output look like tool calls."""
    if model_call.name in known.intercepted_tools:
        return {**model_call.call, chat.ATTEMPTED: True}
    if model_call.name in known.scenario_tools:
        return model_call.call
    is_of_framework = bool(model_call.framework) or known.is_framework_object
    return None if is_of_framework or (model_call.is_form and model_call.result is None) else model_call.call


class _Matches:
    """Matches recorded calls with calls that are in the reply or that reached the scenario. Calls are matched
    by id; failing that, by name and arguments; and failing that, by name alone."""

    def __init__(
        self,
        rounds: Iterable[Sequence[ModelToolCall]],
        reply_calls: Sequence[Any],
        scenario_calls: Sequence[RequestedCall],
    ) -> None:
        model_calls = [call for calls in rounds for call in calls]
        in_reply = [_CallKey.of(call) for call in reply_calls]
        # A call that is in the reply and reached the scenario counts once.
        executed = [each for each in in_reply if not each.is_attempt]
        in_both = match_pairs([*map(_CallKey.of_scenario_call, scenario_calls)], executed, *_MATCH_TESTS)
        remaining = [each for at, each in enumerate(scenario_calls) if at not in in_both]
        candidates = [*in_reply, *map(_CallKey.of_scenario_call, remaining)]
        found = match_pairs([_CallKey.of(each.call) for each in model_calls], candidates, *_MATCH_TESTS)
        self._found = {id(model_calls[at]): candidates[place] for at, place in found.items()}
        self.unmatched_ids = frozenset(
            str(each.call["id"]) for at, each in enumerate(model_calls) if at not in found
        )

    def is_in_reply(self, model_call: ModelToolCall) -> bool:
        """Check whether the reply contains the call."""
        found = self._found.get(id(model_call))
        return found is not None and found.scenario_call is None

    def find_scenario_call(self, model_call: ModelToolCall) -> RequestedCall | None:
        """Return the matching call that reached the scenario and is not in the reply, or ``None`` if there is
        no such call."""
        found = self._found.get(id(model_call))
        return found.scenario_call if found else None


@dataclass(frozen=True, eq=False)
class _CallKey:
    id: str
    name: Any
    arguments: str
    is_attempt: bool = False
    scenario_call: RequestedCall | None = None

    @classmethod
    def of(cls, call: Any) -> _CallKey:
        fields = call if isinstance(call, Mapping) else {}
        function = fields.get("function")
        inner = function if isinstance(function, Mapping) else fields
        arguments = next((inner[key] for key in chat.OPENAI_ARGUMENT_KEYS if key in inner), None)
        identity = fields.get("id") if fields else getattr(call, "id", None)
        name = inner.get("name") if fields else getattr(call, "name", None)
        return cls(str(identity or ""), name, _arguments_key(arguments), fields.get(chat.ATTEMPTED) is True)

    @classmethod
    def of_scenario_call(cls, call: RequestedCall) -> _CallKey:
        return cls(call.call_id, call.name, _arguments_key(call.arguments), scenario_call=call)


def _arguments_key(arguments: Any) -> str:
    """Return a normalized form of arguments for comparison."""
    args, raw = chat.read_arguments(arguments, lenient=True)
    return json.dumps(args, sort_keys=True, default=str) if args is not None else str(raw)


def _has_id(one: _CallKey, other: _CallKey) -> bool:
    return bool(one.id) and one.id == other.id


def _has_arguments(one: _CallKey, other: _CallKey) -> bool:
    return bool(one.name == other.name and one.arguments == other.arguments)


def _has_name(one: _CallKey, other: _CallKey) -> bool:
    return bool(one.name == other.name)


_MATCH_TESTS = (_has_id, _has_arguments, _has_name)


def _larger_usage(recorded: Usage | None, reply: ReadReply) -> Any:
    """Return the recorded token usage of a turn, or the usage that the agent reports if that is larger.

    The agent's usage is larger if the agent sent requests that were not recorded."""
    if recorded is None:
        return reply.usage
    reported = _reported_usage(reply)
    if reported is None:
        return recorded
    if reported.tokens >= recorded.tokens:
        return reply.usage
    has_price = recorded.cost is None and reported.cost is not None
    return recorded.model_copy(update={"cost": reported.cost}) if has_price else recorded


def _reported_usage(reply: ReadReply) -> Usage | None:
    """Return the token usage that a reply reports or, if the reply reports none, the sum of the usage of its
    messages."""
    if reply.usage is not None:
        return read_usage(reply.usage)
    each = [read_usage(usage_in(message)) for message in reply.messages if isinstance(message, Mapping)]
    return sum_usage(usage for usage in each if usage) if any(each) else None


# ── responses ────────────────────────────────────────────────────────────────────────────────────


def _parse_response_text(dialect: str, text: str) -> Mapping[str, Any]:
    """Parse the part of a response that the agent has read. An incomplete call is ignored.

    Raise ``UnreadableResponseError`` if the text cannot be parsed."""
    if not text:
        return {}
    if dialect == "ollama":
        return _ollama_completion(list(_parse_objects(text)))
    if text.startswith("{"):
        return parse_object(text)
    if not (text.startswith("[") or looks_like_sse(text)):
        raise UnreadableResponseError(describe_non_json(text), text)
    pieces = list(_parse_objects(text)) if text.startswith("[") else _parse_events(text)
    if not pieces:
        return {}
    if dialect == "chat":
        return _partial_completion(pieces)
    try:
        return assemble_response(pieces)
    except UnreadableResponseError:
        return _partial_response(dialect, pieces)


def _partial_response(dialect: str, pieces: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the response assembled from a stream that was not read to its end."""
    if dialect == "gemini":  # each piece holds complete parts
        return assemble_response([*pieces, {"candidates": [{"finishReason": "STOP"}]}])
    if dialect == "responses":
        return assemble_partial_response(pieces) if any(map(_is_item, pieces)) else {}
    closed = {piece.get("index") for piece in pieces if piece.get("type") == "content_block_stop"}
    kept = [
        piece
        for piece in pieces
        if not str(piece.get("type")).startswith("content_block_") or piece.get("index") in closed
    ]
    return assemble_partial_response(kept)


def _partial_completion(pieces: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    found = assemble_partial_completion([json.dumps(piece) for piece in pieces])
    for choice in found.get("choices") or ():
        message = choice.get("message") or {}
        if calls := message.get("tool_calls"):
            message["tool_calls"] = [call for call in calls if _is_whole(call)]
    return found


def _parse_events(text: str) -> list[Mapping[str, Any]]:
    """Return the objects in the events of a stream. The last object may be cut off."""
    parser = SseParser()
    payloads = [str(each) for each in parser.feed(text.encode())]
    *_, last = parser.feed(b"\n", final=True) or [""]
    found: list[Mapping[str, Any]] = [parse_object(each) for each in texts_of(payloads)]
    for line in texts_of([str(last)]):
        try:
            found.append(parse_object(line))
        except UnreadableResponseError:
            break
    return found


def _parse_objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a list or in lines, up to the first object that is incomplete."""
    decoder = json.JSONDecoder(object_pairs_hook=chat.keep_duplicate_keys)
    place = 0
    while place < len(text):
        if text[place] != "{":
            place += 1
            continue
        try:
            found, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield found


def _ollama_completion(pieces: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Assemble a completion from the pieces of Ollama's stream."""
    if error := first_nonempty(("error",), *pieces):
        return {"error": error}
    messages = [message for piece in pieces if isinstance(message := piece.get("message"), dict)]
    if not messages:
        return {}
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    last = pieces[-1]
    content = "".join(str(message.get("content") or "") for message in messages)
    message = {"role": "assistant", "content": content, **drop_empty({"tool_calls": calls})}
    counts = {name: last[name] for name in ("prompt_eval_count", "eval_count") if name in last}
    choice = {"message": message, "finish_reason": last.get("done_reason")}
    return {"choices": [choice], **drop_empty({"usage": counts})}


def _is_item(piece: Mapping[str, Any]) -> bool:
    return piece.get("type") == "response.output_item.done"


def _is_whole(call: Mapping[str, Any]) -> bool:
    arguments = first_text(object_at(call, "function"), "arguments")
    return not arguments or is_json(arguments)


# ── the calls of a response ──────────────────────────────────────────────────────────────────────


def _parse_calls(
    response: Mapping[str, Any],
    exchange: Mapping[str, Any],
    later: Sequence[Sequence[Message]],
    id_prefix: str,
) -> tuple[tuple[ModelToolCall, ...], tuple[str, ...]]:
    """Return the calls that a response requests, and descriptions of the response content that could not be
    placed.

    ``later`` contains the results sent by each later request. ``id_prefix`` is the prefix of generated ids.
    """
    if any(map(_asks_for_tools, list_at(response, "choices")[1:])):
        raise UnreadableResponseError("is a completion with several choices that call tools")
    if not response or response.get("error"):
        return (), ()
    messages = parse_response((), response).messages
    unplaced = tuple(
        unplaced_entry.phrase for unplaced_entry in map(unplaced_in, messages) if unplaced_entry is not None
    )
    read = to_openai_messages([each for each in messages if unplaced_in(each) is None])
    results_by_id = {str(each.get("tool_call_id")): each for each in read if each.get("role") == "tool"}
    calls = _with_ids(read, id_prefix)
    results = _match_results(calls, later)
    model_calls = (
        _model_call(call, results_by_id.get(call["id"]) or results.get(at), exchange)
        for at, call in enumerate(calls)
    )
    return tuple(model_calls), (*unplaced, *unplaced_phrases(read))


def _model_call(call: Message, result: Message | None, exchange: Mapping[str, Any]) -> ModelToolCall:
    forced, framework = exchange.get("forced"), str(exchange.get("framework") or "")
    is_form = bool(forced) and call["function"].get("name") == forced
    return ModelToolCall(call, _result_message(call, result), framework, is_form)


def _with_ids(read: Iterable[Message], id_prefix: str) -> list[Message]:
    """Return the calls in messages. A call without an id is given a generated id."""
    raw_calls = [
        call for each in read if each.get("role") == "assistant" for call in chat.collect_tool_calls(each)
    ]
    return [
        call if call.get("id") else {**call, "id": f"{id_prefix}_{at}"} for at, call in enumerate(raw_calls)
    ]


def _asks_for_tools(choice: Any) -> bool:
    message = object_at(object_of(choice), "message")
    return bool(message.get("tool_calls") or message.get("function_call"))


def _tool_messages(exchange: Mapping[str, Any]) -> list[Message]:
    """Return the tool results that are sent in a request."""
    try:
        read = to_openai_messages(exchange.get("results") or ())
    except AgentError:  # an unreadable result is an unknown one
        return []
    return [each for each in read if each.get("role") == "tool"]


def _match_results(calls: Sequence[Message], later: Sequence[Sequence[Message]]) -> dict[int, Message]:
    """Return the result of each call, taken from the first later request that sent it. The results are keyed
    by the position of the call.

    If a request contains several results with the call's id, the last result is used, because a server may
    reuse an id. In a dialect without ids, the next result with the tool's name is used."""
    found: dict[int, Message] = {}
    for request_results in later:
        unnamed_results = [each for each in request_results if not each.get("tool_call_id")]
        for at, call in enumerate(calls):
            if at in found:
                continue
            names = ("", call["function"].get("name"))
            alike = [each for each in request_results if each.get("tool_call_id") == call["id"]]
            alike = alike or [each for each in unnamed_results if _name_of(each) in names][:1]
            if alike:
                found[at] = alike[-1]
                unnamed_results = [each for each in unnamed_results if each is not alike[-1]]
    return found


def _name_of(result: Message) -> str:
    return str(result.get("name") or result.get("tool_name") or "")


def _result_message(call: Message, result: Message | None) -> Message | None:
    if result is None:
        return None
    fields: Message = {key: result[key] for key in ("content", "status") if key in result}
    return {**fields, "role": "tool", "tool_call_id": call["id"]}


def _sum_usages(responses: Iterable[Mapping[str, Any]]) -> Usage | None:
    """Return the total token usage of all requests that were answered, or ``None`` if a request reports no
    usage."""
    total = Usage()
    for response in responses:
        usage = read_usage(usage_in(response))
        if usage is None:
            return None
        total = total + usage.model_copy(update={"calls": 1})
    return total if total.is_spent else None
