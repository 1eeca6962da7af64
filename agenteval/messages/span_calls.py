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
from typing import Any

from agenteval.core.call_outcomes import key_of
from agenteval.core.trajectory import Message, ToolCall, Usage
from agenteval.messages import chat
from agenteval.messages.message_adapters import plain
from agenteval.messages.reported_usage import read_usage
from agenteval.messages.spans import attributes_of, read_span, start_of

_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
_IDS = ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_call.function.arguments", "ai.toolCall.args",
              "tool_arguments", "input.value")  # fmt: skip
_RESULTS = ("gen_ai.tool.call.result", "ai.toolCall.result", "tool_response", "gen_ai.output", "output.value")
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
_OF_MODELS = frozenset(("chat", "generate_content", "text_completion", "responses"))


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
    no span tells."""

    messages: tuple[Message, ...]
    usage: Usage | None
    unclear: tuple[str, ...]


def is_complete(spans: Sequence[Mapping[str, Any]], root: str) -> bool:
    """Whether every span hangs together with ``root``, the span that the trace began with: an exporter sends
    a span after those that ended before it, so none of them is missing."""
    known = {_id(span) for span in spans} | {root}
    return bool(spans) and all(not _parent(span) or _parent(span) in known for span in spans)


def has_served(spans: Iterable[Mapping[str, Any]], root: str) -> bool:
    """Whether the span of the server that got the request is there: all that it waited for has ended."""
    return any(_parent(span) == root and span.get("kind") in (2, "SPAN_KIND_SERVER") for span in spans)


def turn_of(spans: Sequence[Mapping[str, Any]], without: Iterable[ToolCall] = ()) -> TracedTurn:
    """``without``: calls that are known otherwise, each of which is left out once."""
    tree = _Tree(spans)
    calls: list[_Call] = []
    for span in tree.ordered:
        if (name := tree.tool(span)) and not tree.is_within_tool(span, name):
            _take(_tool_call(span, name, tree), calls)
    for span in tree.models():
        for call in _asked(span, tree):
            _merge(call, calls)
    for span in tree.models():
        _answer(span, calls)
    rest = _unknown(calls, without)
    rest.sort(key=lambda call: _moment(call.start))
    clear = [call for call in rest if call.args is not None]
    unclear = dict.fromkeys(call.name for call in rest if call.args is None)
    return TracedTurn(tuple(_messages(clear)), _usage(tree), tuple(unclear))


# ── spans ────────────────────────────────────────────────────────────────────────────────────────


class _Tree:
    def __init__(self, spans: Sequence[Mapping[str, Any]]) -> None:
        once = {_id(span) or str(at): span for at, span in enumerate(spans)}
        self.ordered = sorted(once.values(), key=lambda span: _moment(start_of(span)))
        self._by_id = once
        self._attributes = {key: attributes_of(span) for key, span in once.items()}

    def of(self, span: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._attributes.get(_id(span)) or attributes_of(span)

    def first(self, span: Mapping[str, Any], names: Iterable[str]) -> Any:
        found = self.of(span)
        return next((found[name] for name in names if found.get(name) is not None), None)

    def above(self, span: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        seen: set[str] = set()
        while (key := _parent(span)) and key in self._by_id and key not in seen:
            seen.add(key)
            span = self._by_id[key]
            yield span

    def tool(self, span: Mapping[str, Any]) -> str:
        """The tool that a span is a call of; empty: it is of something else."""
        found = self.of(span)
        kind = str(found.get("openinference.span.kind", "")).upper()
        if self._operation(span) not in ("", "execute_tool") or kind not in ("", "TOOL"):
            return ""
        name = self.first(span, _NAMES)
        if isinstance(name, str) and name:
            return name
        return str(span.get("name") or "") if kind == "TOOL" else ""

    def is_within_tool(self, span: Mapping[str, Any], name: str) -> bool:
        """Whether it is how a call of the same tool was carried out."""
        return any(self.tool(each) == name for each in self.above(span))

    def models(self) -> list[Mapping[str, Any]]:
        """The innermost spans of models."""
        found = [span for span in self.ordered if self._is_model(span)]
        outer = {_id(each) for span in found for each in self.above(span)}
        return [span for span in found if _id(span) not in outer]

    def _is_model(self, span: Mapping[str, Any]) -> bool:
        kind = str(self.of(span).get("openinference.span.kind", "")).upper()
        if operation := self._operation(span):
            return operation in _OF_MODELS
        if kind:
            return kind == "LLM"
        return bool(read_span(span).answered) or self.first(span, _INPUT) is not None

    def _operation(self, span: Mapping[str, Any]) -> str:
        return str(self.of(span).get("gen_ai.operation.name") or "")

    def agent(self, span: Mapping[str, Any]) -> str:
        """The agent that a span belongs to: the innermost that is named."""
        named = (self.first(each, _AGENTS) for each in (span, *self.above(span)))
        return next((name for name in named if isinstance(name, str)), "")


def _id(span: Mapping[str, Any]) -> str:
    return str(span.get("spanId") or span.get("span_id") or "")


def _parent(span: Mapping[str, Any]) -> str:
    return str(span.get("parentSpanId") or span.get("parent_span_id") or "")


def _moment(start: Any) -> int:
    try:
        return int(start)
    except (TypeError, ValueError):
        return 0


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def _tool_call(span: Mapping[str, Any], name: str, tree: _Tree) -> _Call:
    error = _error(span)
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


def _error(span: Mapping[str, Any]) -> str:
    status = span.get("status")
    code = status.get("code") if isinstance(status, Mapping) else None
    if code not in (2, "STATUS_CODE_ERROR"):
        return ""
    return str(status.get("message") or "it failed") if isinstance(status, Mapping) else "it failed"


def _asked(span: Mapping[str, Any], tree: _Tree) -> Iterator[_Call]:
    """The calls that a model's answer asks for."""
    for step in chat.steps_of(plain(read_span(span).answered, _unread)):
        for call in step.tool_calls:
            yield _Call(call.name, call.args, call.id, tree.agent(span), start_of(span))


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
    for message in plain(read_span(span).asked, _unread):
        call = waiting.get(str(message.get("tool_call_id") or "")) if message.get("role") == "tool" else None
        if call:
            call.has_result, call.result = True, message.get("content")


def _unread(_text: str) -> None:
    """What of a span is not a message is of no concern here."""


def _unknown(calls: Iterable[_Call], without: Iterable[ToolCall]) -> list[_Call]:
    known = list(without)
    rest = []
    for call in calls:
        same = [k for k in known if (k.id and k.id == call.id)]
        same = same or [k for k in known if k.name == call.name and key_of(k.args) == key_of(call.args)]
        same = same or [k for k in known if k.name == call.name and call.args is None]
        if same:
            known.remove(same[0])
        else:
            rest.append(call)
    return rest


def _messages(calls: Iterable[_Call]) -> Iterator[Message]:
    for number, call in enumerate(calls):
        identity = call.id or f"span_{number}"
        function = {"name": call.name, "arguments": json.dumps(call.args, ensure_ascii=False)}
        calls_of = [{"id": identity, "type": "function", "function": function}]
        said = {"role": "assistant", "content": None, "tool_calls": calls_of}
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
    if value.keys() == {"args", "kwargs"} and not value["args"] and isinstance(value["kwargs"], dict):
        value = value["kwargs"]
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
