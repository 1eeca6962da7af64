"""What the spans of one turn tell of it: the calls of tools, the tokens, the agents. Pure.

A call is told of by the span of the tool that ran, by the model's answer that asked for it, or by both; and
spans of a framework and of the client below it tell of the same. Each call counts once: it is known again by
its id, else by tool and arguments. Of models, the innermost spans count.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import key_of
from agenteval.core.trajectory import Message, ToolCall, Usage
from agenteval.messages import chat
from agenteval.messages.message_adapters import phrases_in, plain_as_far_as_read
from agenteval.messages.placed import Unplaced
from agenteval.messages.reported_usage import read_usage
from agenteval.messages.span_kinds import asks_for_tools, is_model, tool_in, unplaced_span
from agenteval.messages.spans import attributes_of, error_of, id_of, parent_of, read_span, start_of

_IDS = ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_call.function.arguments", "ai.toolCall.args",
              "ai.toolCall.input", "tool_arguments", "gcp.vertex.agent.tool_call_args",
              "lk.function_tool.arguments", "traceloop.entity.input", "langfuse.observation.input",
              "mlflow.spanInputs", "input.value")  # fmt: skip
_RESULTS = ("gen_ai.tool.call.result", "ai.toolCall.result", "ai.toolCall.output", "tool_response",
            "gcp.vertex.agent.tool_response", "lk.function_tool.output", "traceloop.entity.output",
            "langfuse.observation.output", "mlflow.spanOutputs", "gen_ai.output", "output.value")  # fmt: skip
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_USAGE = {
    "input_tokens": _INPUT,
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
"""Counts as ``read_usage`` knows them, and the attributes that hold them."""
_AGENTS = ("gen_ai.agent.name", "agent.name")


@dataclass
class _Call:
    name: str
    args: dict[str, Any] | None
    id: str
    agent: str
    start: Any
    has_result: bool = False
    result: Any = None
    failed: bool = False
    ran: bool = False
    merged: bool = False


@dataclass(frozen=True)
class TracedTurn:
    """``messages``: the calls with their results, as an agent would list them. ``usage``: of all models;
    ``None``: one of their spans does not report it. ``unclear``: tools that were called with arguments that
    no span tells; ``unplaced``: what of the spans nobody knows."""

    messages: tuple[Message, ...]
    usage: Usage | None
    unclear: tuple[str, ...]
    unplaced: tuple[str, ...] = ()


def is_complete(spans: Sequence[Mapping[str, Any]], root: str) -> bool:
    """Whether every span hangs together with ``root``, the span that the trace began with: an exporter sends
    a span after those that ended before it, so none of them is missing."""
    known = {id_of(span) for span in spans} | {root}
    return bool(spans) and all(not parent_of(span) or parent_of(span) in known for span in spans)


def has_served(spans: Iterable[Mapping[str, Any]], root: str) -> bool:
    """Whether the span of the server that got the request is there: all that it waited for has ended."""
    return any(parent_of(span) == root and span.get("kind") in (2, "SPAN_KIND_SERVER") for span in spans)


def turn_of(spans: Sequence[Mapping[str, Any]], without: Iterable[ToolCall] = ()) -> TracedTurn:
    """``without``: calls that are known otherwise, each of which is left out once."""
    tree = _Tree(spans)
    calls, unread = _calls_in(tree)
    for span in tree.models():
        _answer(span, calls)
    rest = _matched(calls, list(without)).rest
    rest.sort(key=lambda call: _moment(call.start))
    unclear = dict.fromkeys(call.name for call in rest if call.args is None)
    unplaced = (*unread, *(each.phrase for each in tree.unplaced()))
    messages = [message for number, call in enumerate(rest) for message in _messages_of(call, number)]
    return TracedTurn(tuple(messages), _usage(tree), tuple(unclear), tuple(dict.fromkeys(unplaced)))


class Beside(NamedTuple):
    """A call that a tool's span tells of and the messages do not. ``before``: the place of the call of the
    messages that was made next; ``None``: it was the last."""

    name: str
    messages: tuple[Message, ...]
    before: int | None


def calls_beside(
    spans: Sequence[Mapping[str, Any]], known: Sequence[ToolCall]
) -> tuple[list[Beside], list[Unplaced]]:
    """The calls that ran and are not among those that are ``known`` from the messages of a trace, in the
    order of time; and the spans, and what of the models' answers, that nobody could place."""
    tree = _Tree(spans)
    calls, unread = _calls_in(tree)
    matched = _matched(calls, known)
    starts = {at: _moment(call.start) for at, call in matched.places.items()}
    beside = []
    for number, call in enumerate(sorted(matched.rest, key=lambda call: _moment(call.start))):
        later = [at for at, start in starts.items() if start > _moment(call.start)]
        if call.ran:
            made = tuple(_messages_of(call, number))
            beside.append(Beside(call.name, made, min(later, default=None)))
    return beside, [*tree.unplaced(), *map(Unplaced, dict.fromkeys(unread))]


def _calls_in(tree: _Tree) -> tuple[list[_Call], tuple[str, ...]]:
    """The calls of the spans, and what of the models' answers nobody could place."""
    calls: list[_Call] = []
    unread: list[str] = []
    for span in tree.ordered:
        if (name := tree.tool(span)) and not tree.is_within_tool(span, name):
            _take(_tool_call(span, name, tree), calls)
    for span in tree.models():
        answered = plain_as_far_as_read(read_span(span).answered)
        unread += phrases_in(answered)
        for step in chat.steps_of(answered):
            for call in step.tool_calls:
                _merge(_Call(call.name, call.args, call.id, tree.agent(span), start_of(span)), calls)
    return calls, tuple(unread)


# ── spans ────────────────────────────────────────────────────────────────────────────────────────


class _Tree:
    def __init__(self, spans: Sequence[Mapping[str, Any]]) -> None:
        once = {id_of(span) or str(at): span for at, span in enumerate(spans)}
        self.ordered = sorted(once.values(), key=lambda span: _moment(start_of(span)))
        self._by_id = once
        self._attributes = {key: attributes_of(span) for key, span in once.items()}

    def of(self, span: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._attributes.get(id_of(span)) or attributes_of(span)

    def first(self, span: Mapping[str, Any], names: Iterable[str]) -> Any:
        found = self.of(span)
        return next((found[name] for name in names if found.get(name) is not None), None)

    def above(self, span: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        seen: set[str] = set()
        while (key := parent_of(span)) and key in self._by_id and key not in seen:
            seen.add(key)
            span = self._by_id[key]
            yield span

    def tool(self, span: Mapping[str, Any]) -> str:
        """The tool that a span is a call of; empty: it is of something else."""
        return tool_in(span, self.of(span))

    def is_within_tool(self, span: Mapping[str, Any], name: str) -> bool:
        """Whether it is how a call of the same tool was carried out."""
        return any(self.tool(each) == name for each in self.above(span))

    def models(self) -> list[Mapping[str, Any]]:
        """The innermost spans of models."""
        found = [span for span in self.ordered if self._is_model(span)]
        outer = {id_of(each) for span in found for each in self.above(span)}
        return [span for span in found if id_of(span) not in outer]

    def _is_model(self, span: Mapping[str, Any]) -> bool:
        known = is_model(self.of(span))
        if known is not None:
            return known
        return bool(read_span(span).answered) or self.first(span, _INPUT) is not None

    def unplaced(self) -> Iterator[Unplaced]:
        """The spans that nobody knows, and the answers of models that asked for tools and are not recorded
        where no span of a tool is either."""
        outermost = self._outermost()
        runs_tools = any(map(self.tool, self.ordered))
        for span in self.ordered:
            read = read_span(span)
            is_known = span is outermost or bool(read.asked or read.answered)
            if found := unplaced_span(span, self.of(span), is_known=is_known):
                yield found
            elif not runs_tools and not read.answered and asks_for_tools(self.of(span)):
                name = str(span.get("name") or "")[:40]
                yield Unplaced(
                    f"the calls of a model's answer, which the span '{name}' does not hold", (name,)
                )

    def _outermost(self) -> Mapping[str, Any] | None:
        """The span that all others are in; ``None``: there is none."""
        tops = [span for span in self.ordered if parent_of(span) not in self._by_id]
        return tops[0] if len(tops) == 1 and len(self.ordered) > 1 else None

    def agent(self, span: Mapping[str, Any]) -> str:
        """The agent that a span belongs to: the innermost that is named."""
        named = (self.first(each, _AGENTS) for each in (span, *self.above(span)))
        return next((name for name in named if isinstance(name, str)), "")


def _moment(start: Any) -> float:
    """In nanoseconds, or as the trace counts; 0 where it does not say."""
    try:
        return int(start)
    except (TypeError, ValueError):
        pass
    try:
        return datetime.fromisoformat(start).timestamp() * 1e9
    except (TypeError, ValueError, OverflowError):
        return 0


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def _tool_call(span: Mapping[str, Any], name: str, tree: _Tree) -> _Call:
    error = error_of(span)
    result = tree.first(span, _RESULTS)
    return _Call(
        name,
        _arguments(tree.first(span, _ARGUMENTS)),
        str(tree.first(span, _IDS) or ""),
        tree.agent(span),
        start_of(span),
        has_result=result is not None or bool(error),
        result=_json(result) if result is not None else {"error": error},
        failed=bool(error),
        ran=True,
    )


def _take(call: _Call, calls: list[_Call]) -> None:
    if not call.id or all(call.id != each.id for each in calls):
        calls.append(call)


def _merge(call: _Call, calls: list[_Call]) -> None:
    """A call that a model asked for: one that ran, or one more."""
    ran = next((each for each in calls if call.id and each.id == call.id), None)
    if ran is None:
        free = [each for each in calls if each.ran and not each.merged and each.name == call.name]
        free = [each for each in free if not (each.id and call.id)]
        same = [each for each in free if each.args is not None and key_of(each.args) == key_of(call.args)]
        same = same or [each for each in free if each.args is None]
        ran = same[0] if same else None
    if ran is None:
        calls.append(call)
        return
    ran.merged, ran.id = True, ran.id or call.id
    ran.args = call.args if ran.args is None else ran.args
    ran.agent = ran.agent or call.agent


def _answer(span: Mapping[str, Any], calls: Iterable[_Call]) -> None:
    """Results that the model was sent, by the ids of their calls."""
    waiting = {call.id: call for call in calls if call.id and not call.has_result}
    if not waiting:
        return
    for message in plain_as_far_as_read(read_span(span).asked):
        call = waiting.get(str(message.get("tool_call_id") or "")) if message.get("role") == "tool" else None
        if call:
            call.has_result, call.result = True, message.get("content")


class _Matched(NamedTuple):
    """Which calls of spans are known, by their places among these; the ``rest`` are not."""

    places: Mapping[int, _Call]
    rest: list[_Call]


def _matched(calls: Iterable[_Call], known: Sequence[ToolCall]) -> _Matched:
    left = dict(enumerate(known))
    places: dict[int, _Call] = {}
    rest = []
    for call in calls:
        same = [at for at, k in left.items() if k.id and k.id == call.id]
        same = same or [
            at for at, k in left.items() if k.name == call.name and key_of(k.args) == key_of(call.args)
        ]
        same = same or [at for at, k in left.items() if k.name == call.name and call.args is None]
        if same:
            places[same[0]] = call
            del left[same[0]]
        else:
            rest.append(call)
    return _Matched(places, rest)


def _messages_of(call: _Call, number: int) -> Iterator[Message]:
    identity = call.id or f"span_{number}"
    made: Message = {"id": identity, "type": "function", "function": {"name": call.name, "arguments": None}}
    if call.args is None:
        made[chat.ARGUMENTS_UNKNOWN] = True
    else:
        made["function"]["arguments"] = json.dumps(call.args, ensure_ascii=False)
    said = {"role": "assistant", "content": None, "tool_calls": [made]}
    yield {**said, "name": call.agent} if call.agent else said
    if call.has_result:
        status = {"status": "error"} if call.failed else {}
        yield {"role": "tool", "tool_call_id": identity, "content": call.result, **status}


def _arguments(written: Any) -> dict[str, Any] | None:
    """As JSON, or as Python prints a dict, which some instrumentations write."""
    value = _json(written)
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None
    if not isinstance(value, dict):
        return None
    if value.keys() == {"args", "kwargs"} and isinstance(value["kwargs"], dict):
        if value["args"]:
            return None  # nobody knows of which parameters they are
        value = value["kwargs"]
    elif "input_str" in value and isinstance(value.get("inputs"), dict):  # as LangChain's tools are traced
        value = value["inputs"]
    return chat.storable({str(key): each for key, each in value.items()})


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


# ── usage ────────────────────────────────────────────────────────────────────────────────────────


def _usage(tree: _Tree) -> Usage | None:
    reported = (
        {name: tree.first(span, attributes) for name, attributes in _USAGE.items()} for span in tree.models()
    )
    return read_usage([{**counts, "requests": 1} for counts in reported])
