"""Extracts tool calls, token usage and agents from the OpenTelemetry spans of one turn. Pure.

A call may appear in the span of the tool, in the model's answer that requested it, or in both. Moreover, a
framework and its underlying client may each write a span for the same call. Each call is counted once: calls
are matched by id or, if there is no id, by tool and arguments. If model spans are nested, only the innermost
spans are used."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import json_key
from agenteval.core.json_text import parse_or
from agenteval.core.trajectory import Message, ToolCall, Usage
from agenteval.importers.span_contents import SpanContents
from agenteval.importers.span_kinds import ARGUMENTS, CALL_IDS, RESULTS
from agenteval.importers.span_tree import INPUT_TOKENS, SpanTree
from agenteval.importers.spans import RawSpan, Span, id_of, parent_of
from agenteval.importers.unread_calls import CallLike, ReadCalls, UnreadCall, unread_calls
from agenteval.messages import chat
from agenteval.messages.message_adapters import to_openai_messages_lenient, unplaced_phrases
from agenteval.messages.pairing import match_pairs
from agenteval.messages.reported_usage import read_usage
from agenteval.messages.unplaced_entries import Unplaced

_USAGE = {
    "input_tokens": INPUT_TOKENS,
    "output_tokens": (
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
    ),
    "total_tokens": (
        "gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total",
        "ai.usage.totalTokens",
    ),
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens", "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    ),
}  # fmt: skip
"""Maps the name of each token count, as accepted by ``read_usage``, to the attributes that may contain it."""


@dataclass
class _TracedCall:
    span: Span
    name: str
    args: dict[str, Any] | None
    id: str
    agent: str
    has_result: bool = False
    result: Any = None
    failed: bool = False
    ran: bool = False
    merged: bool = False

    @property
    def start(self) -> float:
        """The start time of the call, or 0 if it is unknown."""
        return self.span.start or 0


@dataclass(frozen=True)
class TracedTurn:
    """The calls and the usage found in the spans of a turn."""

    messages: tuple[Message, ...]
    """The calls with their results, in the form in which an agent would report them."""
    usage: Usage | None
    """The total usage of all models, or ``None`` if one of the model spans does not report it."""
    unclear: tuple[str, ...]
    """The names of tools whose arguments are missing from all spans."""
    unplaced: tuple[str, ...] = ()
    """Content of the spans that could not be placed."""


def is_complete(spans: Sequence[RawSpan], root: str) -> bool:
    """Check whether every span is connected to ``root``, the span that started the trace. An exporter sends a
    span after the spans that ended before it, so no span is missing if all are connected."""
    known = {id_of(span) for span in spans} | {root}
    return bool(spans) and all(not parent_of(span) or parent_of(span) in known for span in spans)


def has_served(spans: Iterable[RawSpan], root: str) -> bool:
    """Check whether the span of the server that received the request is present. If so, everything that this
    span waited for has ended."""
    return any(parent_of(span) == root and span.get("kind") in (2, "SPAN_KIND_SERVER") for span in spans)


def turn_of(spans: Sequence[RawSpan], known: Iterable[ToolCall] = ()) -> TracedTurn:
    """Return the turn recorded in the spans. ``known`` contains the calls that are known from elsewhere; one
    occurrence of each is omitted."""
    tree, known = SpanTree(spans), list(known)
    calls, unread = _collect_calls(tree)
    for span in tree.models():
        _add_results_from_input(tree.contents_of(span), calls)
    new_calls = _match_known(calls, known).rest
    new_calls.sort(key=lambda call: call.start)
    unclear = dict.fromkeys(call.name for call in new_calls if call.args is None)
    if unseen := _find_unread(tree, [*calls, *known]):
        unseen = _find_unread(tree, [*calls, *known, *_calls_in_inputs(tree, tree.ordered)])
    unread += [(span, call.unplaced(span)) for span, call in unseen if not call.is_earlier]
    unplaced = (each.phrase for _, each in (*unread, *tree.unplaced()))
    messages = [message for number, call in enumerate(new_calls) for message in _messages_of(call, number)]
    return TracedTurn(tuple(messages), _usage(tree), tuple(unclear), tuple(dict.fromkeys(unplaced)))


class SpanCall(NamedTuple):
    """A call that appears in a span but not in the messages."""

    span: Span
    name: str
    id: str
    messages: tuple[Message, ...]
    later: tuple[int, ...]
    """The positions, in the messages, of the calls that were made after this call."""


class SpanOnlyContent(NamedTuple):
    """Content that appears in the spans but not in the messages."""

    calls: list[SpanCall]
    results: dict[int, Message]
    """Results, keyed by the positions of their calls in the messages."""
    unplaced: list[tuple[Span, Unplaced]]
    """Content that could not be placed, with its span."""
    earlier: list[tuple[Span, Unplaced]]
    """Unplaced content that belongs to earlier turns than its span does."""


def find_span_only_content(
    tree: SpanTree,
    known: Sequence[ToolCall],
    known_before: Sequence[ToolCall],
    separate_spans: Sequence[Span],
) -> SpanOnlyContent:
    """Return the content of the spans, in chronological order, excluding the ``known`` calls in the messages
    of a trace. ``known_before`` contains the calls in messages before the first span. ``separate_spans``
    contains the spans whose messages are not among the messages of the trace."""
    calls, unread = _collect_calls(tree)
    matched = _match_known(calls, known)
    results = {
        at: _result_of(call, known[at].id or call.id)
        for at, call in matched.places.items()
        if call.has_result
    }
    found = []
    for number, call in enumerate(sorted(matched.rest, key=lambda call: call.start)):
        later = tuple(at for at, each in matched.places.items() if each.start > call.start)
        identity = call.id or f"span_{number}"
        found.append(SpanCall(call.span, call.name, identity, tuple(_messages_of(call, number)), later))
    now = [*tree.unplaced(), *unread]
    earlier: list[tuple[Span, Unplaced]] = []
    for span, unseen in _find_unread(tree, [*calls, *known, *known_before], separate_spans):
        (earlier if unseen.is_earlier else now).append((span, unseen.unplaced(span)))
    return SpanOnlyContent(found, results, now, earlier)


def _find_unread(
    tree: SpanTree, known: Iterable[CallLike], separate_spans: Sequence[Span] = ()
) -> list[tuple[Span, UnreadCall]]:
    """Return, for each span, the first unread call in its own turn and the first unread call in an earlier
    turn, excluding ``known`` calls. In separate spans, the input is searched as well."""
    known = list(known)
    read, ids = ReadCalls(known), {call.id for call in known if call.id}
    found = []
    for span in tree.ordered:
        calls = unread_calls(span, tree.contents_of(span))
        if span in separate_spans:
            # A repeated message may have other ids.
            input_calls = (call for call in _calls_in_inputs(tree, (span,)) if call.id not in ids)
            calls = chain(
                calls, (UnreadCall(call.name, call.args, "", location="its input") for call in input_calls)
            )
        first: dict[bool, UnreadCall] = {}
        for call in calls:
            if len(first) < 2 and not read.holds(call):
                first.setdefault(call.is_earlier, call)
        found += [(span, call) for call in first.values()]
    return found


def _calls_in_inputs(tree: SpanTree, spans: Iterable[Span]) -> Iterator[ToolCall]:
    """Yield the calls in the input of model spans."""
    for span in spans:
        for step in chat.parse_steps(to_openai_messages_lenient(tree.contents_of(span).input_messages or ())):
            yield from step.tool_calls


def _collect_calls(tree: SpanTree) -> tuple[list[_TracedCall], list[tuple[Span, Unplaced]]]:
    """Return the calls in the spans, and the content of model answers that could not be placed."""
    calls: list[_TracedCall] = []
    unread: list[tuple[Span, Unplaced]] = []
    for span in tree.ordered:
        if span.tool and not tree.is_within_tool(span, span.tool):
            _add_unless_known(_to_traced_call(span, tree), calls)
    for span in tree.answers():
        answered = to_openai_messages_lenient(tree.contents_of(span).output_messages)
        unread += [(span, Unplaced(phrase)) for phrase in dict.fromkeys(unplaced_phrases(answered))]
        for step in chat.parse_steps(answered):
            for call in step.tool_calls:
                _merge_model_call(_TracedCall(span, call.name, call.args, call.id, tree.agent(span)), calls)
    return calls, unread


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def _to_traced_call(span: Span, tree: SpanTree) -> _TracedCall:
    result = span.first_attribute(RESULTS)
    return _TracedCall(
        span,
        span.tool,
        _parse_arguments(span.first_attribute(ARGUMENTS)),
        str(span.first_attribute(CALL_IDS) or ""),
        tree.agent(span),
        has_result=result is not None or bool(span.error),
        result=_parse_json(result) if result is not None else {"error": span.error},
        failed=bool(span.error),
        ran=True,
    )


def _add_unless_known(call: _TracedCall, calls: list[_TracedCall]) -> None:
    if not call.id or all(call.id != each.id for each in calls):
        calls.append(call)


def _merge_model_call(call: _TracedCall, calls: list[_TracedCall]) -> None:
    """Merge a call that a model requested into the call that was executed, or add it if there is none."""
    ran = next((each for each in calls if call.id and each.id == call.id), None) or _find_unclaimed(
        call, calls
    )
    if ran is None:
        calls.append(call)
        return
    ran.merged, ran.id = True, ran.id or call.id
    ran.args = call.args if ran.args is None else ran.args
    ran.agent = ran.agent or call.agent


def _find_unclaimed(call: _TracedCall, calls: Iterable[_TracedCall]) -> _TracedCall | None:
    """Return an executed call that has not been matched to a model's request yet. The tool and, if known, the
    arguments must be equal."""
    free = [each for each in calls if each.ran and not each.merged and each.name == call.name]
    free = [each for each in free if not (each.id and call.id)]
    same = (each for each in free if each.args is not None and json_key(each.args) == json_key(call.args))
    return next(chain(same, (each for each in free if each.args is None)), None)


def _add_results_from_input(read: SpanContents, calls: Iterable[_TracedCall]) -> None:
    """Add the results in a model's input to the calls with the same ids."""
    without_result = {call.id: call for call in calls if call.id and not call.has_result}
    if not without_result:
        return
    results = (
        each for each in to_openai_messages_lenient(read.input_messages or ()) if each.get("role") == "tool"
    )
    for message in results:
        if call := without_result.get(str(message.get("tool_call_id") or "")):
            call.has_result, call.result = True, message.get("content")


class _MatchedCalls(NamedTuple):
    """The calls in spans, matched with known calls."""

    places: Mapping[int, _TracedCall]
    """The matched calls, keyed by the positions of the known calls."""
    rest: list[_TracedCall]
    """The calls without a match."""


def _match_known(calls: Iterable[_TracedCall], known: Sequence[ToolCall]) -> _MatchedCalls:
    calls = list(calls)
    found = match_pairs(calls, known, _has_id_of, _has_same_arguments, _may_be_same)
    rest = [call for at, call in enumerate(calls) if at not in found]
    return _MatchedCalls({place: calls[at] for at, place in found.items()}, rest)


def _has_id_of(call: _TracedCall, known: ToolCall) -> bool:
    return bool(known.id) and known.id == call.id


def _has_same_arguments(call: _TracedCall, known: ToolCall) -> bool:
    return known.name == call.name and json_key(known.args) == json_key(call.args)


def _may_be_same(call: _TracedCall, known: ToolCall) -> bool:
    return known.name == call.name and call.args is None


def _messages_of(call: _TracedCall, number: int) -> Iterator[Message]:
    identity = call.id or f"span_{number}"
    call_fields: Message = {
        "id": identity,
        "type": "function",
        "function": {"name": call.name, "arguments": None},
    }
    if call.args is None:
        call_fields[chat.ARGUMENTS_UNKNOWN] = True
    else:
        call_fields["function"]["arguments"] = json.dumps(call.args, ensure_ascii=False)
    answer = {"role": "assistant", "content": None, "tool_calls": [call_fields]}
    yield {**answer, "name": call.agent} if call.agent else answer
    if call.has_result:
        yield _result_of(call, identity)


def _result_of(call: _TracedCall, identity: str) -> Message:
    status = {"status": "error"} if call.failed else {}
    return {"role": "tool", "tool_call_id": identity, "content": call.result, "name": call.name, **status}


def _parse_arguments(written: Any) -> dict[str, Any] | None:
    """Parse arguments that are written as JSON or, by some instrumentation libraries, as a printed Python
    dict."""
    value = _parse_json(written)
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None
    if not isinstance(value, dict):
        return None
    if value.keys() - _SMOLAGENTS_FIELDS == {"args", "kwargs"} and isinstance(value["kwargs"], dict):
        if value["args"]:
            return None  # it is unknown which parameters they belong to
        value = value["kwargs"]
    elif "input_str" in value and isinstance(value.get("inputs"), dict):  # LangChain's form
        value = value["inputs"]
    return chat.drop_unstorable({str(key): each for key, each in value.items()})


_SMOLAGENTS_FIELDS = frozenset(("sanitize_inputs_outputs",))


def _parse_json(value: Any) -> Any:
    return parse_or(value, value) if isinstance(value, str) else value


# ── usage ────────────────────────────────────────────────────────────────────────────────────────


def _usage(tree: SpanTree) -> Usage | None:
    reported = (
        {name: span.first_attribute(attributes) for name, attributes in _USAGE.items()}
        for span in tree.models()
    )
    return read_usage([{**counts, "requests": 1} for counts in reported])
