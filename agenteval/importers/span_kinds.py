"""Classifies the spans of a trace: tool calls, model answers, and other steps. Pure.

Many libraries write spans, each with different names for the kinds of spans. A span of an unknown kind may be
a tool call, so it is reported as unplaced (``agenteval.messages.unplaced_entries``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval.messages.json_fields import first_nonempty, first_text, list_at
from agenteval.messages.unplaced_entries import Unplaced, unplaced_fields

_KINDS = (
    "gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind",
    "langfuse.observation.type", "mlflow.spanType", "ai.operationId",
)  # fmt: skip
"""Attributes that contain the kind of a span."""
_UNKNOWN_KINDS = frozenset(("", "span", "event", "unknown"))
_TOOLS = frozenset(("execute_tool", "tool", "ai.toolcall"))
_MODELS = frozenset((
    "chat", "generate_content", "text_completion", "responses", "llm", "chat_model", "generation",
    "ai.generatetext.dogenerate", "ai.streamtext.dostream", "ai.generateobject.dogenerate",
    "ai.streamobject.dostream",
))  # fmt: skip
_AGENTS = frozenset(("agent", "invoke_agent"))
_AUXILIARY = frozenset(
    ("retriever", "retrieval", "embedding", "embeddings", "reranker", "guardrail", "evaluator")
)
"""Steps in which models process a conversation without taking part in it."""
_CYCLE = "execute_event_loop_cycle"
"""The span that Strands writes around the spans of a model and its tools. Some versions do not set its
kind."""
_KINDS_WITHOUT_CALLS = frozenset((
    *_AGENTS, *_AUXILIARY, "create_agent", "invoke_workflow", "workflow", "chain", "task", "session",
    "prompt", "parser", "memory", "execute_task", _CYCLE, "ai.generatetext", "ai.streamtext",
    "ai.generateobject", "ai.streamobject", "ai.embed", "ai.embedmany", "ai.embed.doembed",
    "ai.embedmany.doembed",
))  # fmt: skip
"""The kinds of spans that a framework writes around the spans of its models and tools. Their content is still
searched for calls."""
_CONVENTIONS = (
    "http.", "url.", "db.", "rpc.", "messaging.", "faas.", "net.", "network.", "server.", "client.", "aws.",
    "asgi.", "graphql.", "dns.", "tls.", "gen_ai.", "llm.", "mcp.", "embedding.",
)  # fmt: skip
"""Prefixes of attributes that OpenTelemetry and similar conventions define for things other than tool
calls."""
_SERVER_KINDS = (2, "2", "SPAN_KIND_SERVER", "SpanKind.SERVER", "SERVER")
_RUNNING_TOOLS = re.compile(r"running (?:\d+ )?tools?")
"""The name of the span that Pydantic AI writes around the spans of its tools."""
_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "mcp.tool.name", "lk.function_tool.name",
          "tool_call.function.name")  # fmt: skip
_NAMES_OF_TOOLS = ("traceloop.entity.name",)
CALL_IDS = ("gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id", "tool.id")
_OWN_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_call.function.arguments", "ai.toolCall.args",
          "ai.toolCall.input", "tool_arguments", "gcp.vertex.agent.tool_call_args",
          "lk.function_tool.arguments")  # fmt: skip
_OWN_RESULTS = ("gen_ai.tool.call.result", "ai.toolCall.result", "ai.toolCall.output", "tool_response",
               "gcp.vertex.agent.tool_response", "lk.function_tool.output")  # fmt: skip
ARGUMENTS = (*_OWN_ARGUMENTS, "traceloop.entity.input", "langfuse.observation.input", "mlflow.spanInputs",
             "input.value")  # fmt: skip
RESULTS = (*_OWN_RESULTS, "traceloop.entity.output", "langfuse.observation.output", "mlflow.spanOutputs",
           "gen_ai.output", "output.value")  # fmt: skip
TOOL_ATTRIBUTES = frozenset((*_NAMES, *CALL_IDS, *ARGUMENTS, *RESULTS))
"""The attributes in a tool's span that describe its call."""
_TOOL_NAME_PREFIXES = ("execute_tool ", "tools/call ")
_FINISH_ATTRIBUTES = (
    "gen_ai.response.finish_reasons",
    "ai.response.finishReason",
    "finish_reason",
    "llm.finish_reason",
)
_TOOL_FINISH_REASONS = ("tool_calls", "tool_call", "tool-calls", "tool_use", "function_call")
_KNOWN_EVENT_PREFIXES = ("exception", "gen_ai.", "ai.", "llm.", "First Token Stream Event")
"""Name prefixes of known events, whose attributes are read in the same way as those of the span."""


EVENT_LISTS = ("events", "span_events")
UNSEEN = "unseen"
"""The key under which a span converted from another tracer lists absent steps. Each entry has ``what``, a
description, and ``unless``, a list of span ids. The entry is obsolete if the trace contains all of these
spans or, when ``unless`` is ``None``, any span nested in the span that has the entry."""
WHOLE_REQUEST = "whole"
"""The key that marks the outermost step of another tracer as a complete request. The value is ``said``, or
``object`` if the output may be anything, such as a state."""
_SPAN_FIELDS = frozenset((
    "attributes", *EVENT_LISTS, UNSEEN, "links", "status", "resource", "context", "parent", "scope",
    "instrumentationScope", "instrumentation_scope",
))  # fmt: skip
_CONVENTION_PREFIXES = frozenset((
    "ai", "agent", "all_messages_events", "aws", "code", "error", "exception", "final_result", "gcp",
    "gen_ai", "graph", "input", "langfuse", "langsmith", "lk", "llm", "logfire", "metadata", "mlflow",
    "openinference", "otel", "output", "pydantic_ai", "resource", "retrieval", "service", "session", "tag",
    "tags", "telemetry", "thread", "tool", "traceloop", "user",
))  # fmt: skip
"""The first components of attribute names that belong to a convention."""


def kind_of(attributes: Mapping[str, Any]) -> str:
    """Return the kind of a span in lower case, or an empty string if the span does not specify one."""
    for key in _KINDS:
        kind = str(attributes.get(key) or "").strip('"').lower()
        if kind not in _UNKNOWN_KINDS:
            return kind
    return ""


def tool_in(name: str, attributes: Mapping[str, Any]) -> str:
    """Return the name of the tool that a span calls, or an empty string if the span is not a tool call. An
    attribute with a tool's name is sufficient even if the kind is unknown. ``name`` is the name of the span.
    """
    kind = kind_of(attributes)
    if kind in _MODELS or kind in _KINDS_WITHOUT_CALLS:
        return ""
    prefix = next((each for each in _TOOL_NAME_PREFIXES if name.startswith(each)), "")
    is_tool = kind in _TOOLS or attributes.get("mcp.method.name") == "tools/call" or bool(prefix and not kind)
    names = (*_NAMES, *_NAMES_OF_TOOLS) if is_tool else _NAMES
    tool = first_nonempty(names, attributes)
    if isinstance(tool, str) or not is_tool:
        return tool if isinstance(tool, str) else ""
    name = name.removeprefix(prefix)
    return "" if " " in name else name  # not the name of a tool but an action: "handoff to billing"


def is_known_tool(attributes: Mapping[str, Any]) -> bool:
    """Check whether the span of a tool call proves that the tool exists, even if the call failed. Agent
    frameworks also write such spans for tools that do not exist (hallucinated tools)."""
    return any(attributes.get(key) for key in ("langsmith.span.kind", "langfuse.observation.type"))


def named_calls(name: str, attributes: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the calls that are mentioned in a span or an event that is not a tool span. Each item consists of
    the attribute name, the tool and the call id; the tool and the id may each be missing."""
    found = [
        key for key in (*_NAMES, *CALL_IDS, *_OWN_ARGUMENTS, *_OWN_RESULTS) if attributes.get(key) is not None
    ]
    if found:
        yield found[0], first_text(attributes, *_NAMES), str(first_nonempty(CALL_IDS, attributes) or "")
    for tool in list_at(attributes, "tools") if _RUNNING_TOOLS.fullmatch(name) else ():
        yield "tools", str(tool), ""


def is_model(kind: str) -> bool:
    """Check whether spans of this kind are model requests."""
    return kind in _MODELS


def is_agent(kind: str) -> bool:
    """Check whether spans of this kind are agent runs."""
    return kind in _AGENTS


def is_auxiliary(kind: str) -> bool:
    return kind in _AUXILIARY


def asks_for_tools(attributes: Mapping[str, Any]) -> bool:
    """Check whether a model ended its answer with a request to call a tool."""
    ends = str([attributes.get(key) for key in _FINISH_ATTRIBUTES])
    return any(word in ends for word in _TOOL_FINISH_REASONS)


def unplaced_span(
    span: Mapping[str, Any], attributes: Mapping[str, Any], *, is_known: bool
) -> Unplaced | None:
    """Return the reason why a span could not be placed, or ``None`` if its kind and its events are known. If
    ``is_known`` is true, the span is accounted for in another way: its messages are read, or all other spans
    of the trace are nested in it."""
    kind, name = kind_of(attributes), str(span.get("name") or "")
    if is_known or _is_known(span, attributes, kind):
        if event := next(iter(_unknown_events(span)), "") if _is_of_agents(attributes, kind) else "":
            return Unplaced(f"an event '{event[:40]}' in the span '{name[:40]}'", (event,))
        owner = f"the span '{name[:40]}'"
        # ``unread_calls`` searches texts for calls, comparing them with earlier messages.
        other_attributes = {
            key: value
            for key, value in attributes.items()
            if not isinstance(value, str) and not _is_of_convention(str(key))
        }
        return next(
            iter(
                (
                    *unplaced_fields(span, _SPAN_FIELDS, owner=owner),
                    *unplaced_fields(other_attributes, (), owner=owner),
                )
            ),
            None,
        )
    of_what = "of an unnamed tool" if kind in _TOOLS else "of unknown kind"
    return Unplaced(f"a span '{name[:40]}' {of_what}", (name, *filter(None, (kind,))), attributes or None)


def _is_known(span: Mapping[str, Any], attributes: Mapping[str, Any], kind: str) -> bool:
    name = str(span.get("name") or "")
    if tool_in(name, attributes):
        return True
    if kind:
        return kind in _MODELS or kind in _KINDS_WITHOUT_CALLS
    is_known = name == _CYCLE or span.get("kind") in _SERVER_KINDS or bool(_RUNNING_TOOLS.fullmatch(name))
    return is_known or any(str(key).startswith(_CONVENTIONS) for key in attributes)


def _is_of_convention(key: str) -> bool:
    return key.startswith(_CONVENTIONS) or key.partition(".")[0] in _CONVENTION_PREFIXES


def _is_of_agents(attributes: Mapping[str, Any], kind: str) -> bool:
    """Check whether a span belongs to an agent rather than to a lower layer, such as a database."""
    return bool(kind) or any(str(key).startswith(("gen_ai.", "llm.")) for key in attributes) or not attributes


def name_of_event(event: Mapping[str, Any]) -> str:
    return str(first_nonempty(("name", "event_name", "eventName"), event) or "")


def _unknown_events(span: Mapping[str, Any]) -> Iterable[str]:
    for event in (event for key in EVENT_LISTS for event in span.get(key) or ()):
        name = name_of_event(event) if isinstance(event, dict) else str(event)
        if not name.startswith(_KNOWN_EVENT_PREFIXES):
            yield name or "without a name"
