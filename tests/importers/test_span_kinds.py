"""Kinds of spans: which is a call of a tool, which asks a model, and which is not known."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.importers.span_kinds import (
    TOOL_ATTRIBUTES,
    asks_for_tools,
    is_agent,
    is_auxiliary,
    is_known_tool,
    is_model,
    kind_of,
    name_of_event,
    named_calls,
    tool_in,
    unplaced_span,
)

KIND = "gen_ai.operation.name"


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({}, ""),
        ({KIND: "Chat"}, "chat"),
        ({"openinference.span.kind": "LLM"}, "llm"),
        ({"traceloop.span.kind": "workflow"}, "workflow"),
        ({"langsmith.span.kind": "tool"}, "tool"),
        ({"langfuse.observation.type": "GENERATION"}, "generation"),
        ({"mlflow.spanType": '"CHAT_MODEL"'}, "chat_model"),
        ({"ai.operationId": "ai.toolCall"}, "ai.toolcall"),
        ({KIND: None, "traceloop.span.kind": "task"}, "task"),
        ({KIND: "chat", "openinference.span.kind": "TOOL"}, "chat"),
        *[({KIND: odd, "traceloop.span.kind": "task"}, "task") for odd in ("", "span", "EVENT", "unknown")],
        ({KIND: "UNKNOWN"}, ""),
        ({"operation": "chat"}, ""),
    ],
)
def test_the_kind_of_a_span(attributes: dict[str, Any], kind: str) -> None:
    assert kind_of(attributes) == kind


@pytest.mark.parametrize(
    ("kind", "model", "agent", "auxiliary"),
    [
        ("chat", True, False, False),
        ("generate_content", True, False, False),
        ("llm", True, False, False),
        ("ai.streamtext.dostream", True, False, False),
        ("agent", False, True, False),
        ("invoke_agent", False, True, False),
        ("retriever", False, False, True),
        ("guardrail", False, False, True),
        ("tool", False, False, False),
        ("chain", False, False, False),
        ("", False, False, False),
    ],
)
def test_what_spans_of_a_kind_are(kind: str, model: bool, agent: bool, auxiliary: bool) -> None:
    assert (is_model(kind), is_agent(kind), is_auxiliary(kind)) == (model, agent, auxiliary)


@pytest.mark.parametrize(
    ("check", "kinds"),
    [
        (is_model, ("chat", "generate_content", "text_completion", "responses", "llm", "chat_model")),
        (is_model, ("generation", "ai.generatetext.dogenerate", "ai.generateobject.dogenerate")),
        (is_model, ("ai.streamtext.dostream", "ai.streamobject.dostream")),
        (is_auxiliary, ("retriever", "retrieval", "embedding", "embeddings", "reranker")),
        (is_auxiliary, ("guardrail", "evaluator")),
    ],
)
def test_every_name_of_a_kind(check: Any, kinds: tuple[str, ...]) -> None:
    assert all(map(check, kinds))


@pytest.mark.parametrize(
    "key",
    [
        "gen_ai.tool.call.arguments",
        "tool_call.function.arguments",
        "ai.toolCall.args",
        "tool_arguments",
        "lk.function_tool.arguments",
        "traceloop.entity.input",
        "langfuse.observation.input",
        "mlflow.spanInputs",
        "input.value",
        "gen_ai.tool.call.result",
        "ai.toolCall.output",
        "tool_response",
        "lk.function_tool.output",
        "traceloop.entity.output",
        "langfuse.observation.output",
        "mlflow.spanOutputs",
        "output.value",
        "gen_ai.tool.call.id",
        "tool.name",
    ],
)
def test_the_attributes_that_describe_a_call(key: str) -> None:
    assert key in TOOL_ATTRIBUTES


@pytest.mark.parametrize(
    ("name", "attributes", "tool"),
    [
        ("x", {}, ""),
        ("x", {"gen_ai.tool.name": "find"}, "find"),
        ("x", {"tool.name": "find"}, "find"),
        ("x", {"mcp.tool.name": "find"}, "find"),
        ("x", {"lk.function_tool.name": "find"}, "find"),
        ("x", {"tool_call.function.name": "find"}, "find"),
        ("x", {"ai.toolCall.name": "find"}, "find"),
        ("x", {"gen_ai.tool.name": ["find"]}, ""),
        # a model and a framework's step name tools that they do not call
        ("x", {KIND: "chat", "gen_ai.tool.name": "find"}, ""),
        ("execute_tool find", {KIND: "chat"}, ""),
        ("x", {KIND: "invoke_agent", "gen_ai.tool.name": "find"}, ""),
        ("x", {KIND: "retriever", "gen_ai.tool.name": "find"}, ""),
        # spans that are known to be a tool's have its name
        ("find", {KIND: "execute_tool"}, "find"),
        ("find", {"openinference.span.kind": "TOOL"}, "find"),
        ("find", {"ai.operationId": "ai.toolCall"}, "find"),
        ("find", {"mcp.method.name": "tools/call"}, "find"),
        ("find", {"mcp.method.name": "tools/list"}, ""),
        ("x.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "find"}, "find"),
        ("x.task", {"traceloop.entity.name": "find"}, ""),
        ("x", {KIND: "execute_tool", "gen_ai.tool.name": "find", "traceloop.entity.name": "y"}, "find"),
        ("find", {KIND: "execute_tool", "gen_ai.tool.name": 7}, "find"),
        # so have spans whose names say it
        ("execute_tool find", {}, "find"),
        ("tools/call find", {}, "find"),
        ("execute_tool find", {KIND: "execute_tool"}, "find"),
        ("execute_tool find", {KIND: "odd"}, ""),
        ("running execute_tool find", {}, ""),
        # and an action is no name of a tool
        ("handoff to billing", {KIND: "execute_tool"}, ""),
        ("execute_tool hand over", {}, ""),
        ("", {KIND: "execute_tool"}, ""),
    ],
)
def test_the_tool_that_a_span_calls(name: str, attributes: dict[str, Any], tool: str) -> None:
    assert tool_in(name, attributes) == tool


@pytest.mark.parametrize(
    ("attributes", "known"),
    [
        ({}, False),
        ({"langsmith.span.kind": "tool"}, True),
        ({"langfuse.observation.type": "TOOL"}, True),
        ({"langfuse.observation.type": ""}, False),
        ({KIND: "execute_tool", "gen_ai.tool.name": "find"}, False),
    ],
)
def test_which_spans_prove_that_a_tool_exists(attributes: dict[str, Any], known: bool) -> None:
    assert is_known_tool(attributes) is known


@pytest.mark.parametrize(
    ("name", "attributes", "calls"),
    [
        ("x", {}, []),
        ("x", {"gen_ai.tool.name": "find"}, [("gen_ai.tool.name", "find", "")]),
        ("x", {"tool.id": 7}, [("tool.id", "", "7")]),
        (
            "x",
            {"gen_ai.tool.call.arguments": "{}", "tool.name": "find", "gen_ai.tool.call.id": "c"},
            [("tool.name", "find", "c")],
        ),
        ("x", {"ai.toolCall.args": "{}"}, [("ai.toolCall.args", "", "")]),
        ("x", {"tool_response": ""}, [("tool_response", "", "")]),
        ("x", {"gen_ai.tool.name": None}, []),
        ("x", {"input.value": "a", "traceloop.entity.output": "b"}, []),
        ("running tools", {"tools": ["a", "b"]}, [("tools", "a", ""), ("tools", "b", "")]),
        ("running 2 tools", {"tools": ["a"]}, [("tools", "a", "")]),
        ("running 1 tool", {"tools": ["a"]}, [("tools", "a", "")]),
        ("running tools again", {"tools": ["a"]}, []),
        ("running tools", {"tools": "a"}, []),
        ("tools", {"tools": ["a"]}, []),
    ],
)
def test_the_calls_that_another_span_mentions(name: str, attributes: dict[str, Any], calls: Any) -> None:
    assert list(named_calls(name, attributes)) == calls


@pytest.mark.parametrize(
    ("attributes", "asks"),
    [
        ({}, False),
        ({"gen_ai.response.finish_reasons": ["stop"]}, False),
        ({"gen_ai.response.finish_reasons": ["tool_calls"]}, True),
        ({"gen_ai.response.finish_reasons": ["stop", "tool_call"]}, True),
        ({"gen_ai.response.finish_reasons": '["tool_use"]'}, True),
        ({"ai.response.finishReason": "tool-calls"}, True),
        ({"finish_reason": "function_call"}, True),
        ({"llm.finish_reason": "tool_calls"}, True),
        ({"reason": "tool_calls"}, False),
    ],
)
def test_whether_a_model_asked_for_tools(attributes: dict[str, Any], asks: bool) -> None:
    assert asks_for_tools(attributes) is asks


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ({"name": "a", "event_name": "b"}, "a"),
        ({"event_name": "b", "eventName": "c"}, "b"),
        ({"eventName": "c"}, "c"),
        ({"name": ""}, ""),
        ({}, ""),
    ],
)
def test_the_name_of_an_event(event: dict[str, Any], name: str) -> None:
    assert name_of_event(event) == name


def unplaced(span: dict[str, Any], attributes: dict[str, Any], *, is_known: bool = False) -> Any:
    return unplaced_span(span, attributes, is_known=is_known)


@pytest.mark.parametrize(
    ("span", "attributes"),
    [
        ({"name": "x"}, {KIND: "chat"}),
        ({"name": "x"}, {KIND: "chain"}),
        ({"name": "x"}, {KIND: "embeddings"}),
        ({"name": "x"}, {KIND: "create_agent"}),
        *[({"name": "x"}, {KIND: kind}) for kind in ("workflow", "task", "session", "prompt", "parser")],
        *[({"name": "x"}, {KIND: kind}) for kind in ("memory", "execute_task", "invoke_workflow", "agent")],
        *[({"name": "x"}, {KIND: f"ai.{kind}"}) for kind in ("generateText", "streamText", "embed")],
        *[({"name": "x"}, {KIND: f"ai.{kind}"}) for kind in ("embedMany", "embed.doEmbed")],
        *[({"name": "x"}, {f"{head}.x": 1}) for head in ("url", "rpc", "messaging", "faas", "net", "aws")],
        ({"name": "x"}, {"gen_ai.tool.name": "find"}),
        ({"name": "execute_tool find"}, {}),
        ({"name": "execute_event_loop_cycle"}, {}),
        ({"name": "running 2 tools"}, {}),
        *[({"name": "x", "kind": kind}, {}) for kind in (2, "2", "SPAN_KIND_SERVER", "SERVER")],
        ({"name": "x"}, {"http.method": "GET"}),
        ({"name": "x"}, {"db.system": "redis"}),
        ({"name": "x"}, {"gen_ai.system": "openai"}),
    ],
)
def test_spans_that_are_known(span: dict[str, Any], attributes: dict[str, Any]) -> None:
    assert unplaced(span, attributes) is None


@pytest.mark.parametrize(
    ("span", "attributes", "names", "entry"),
    [
        ({"name": "x"}, {}, ("x",), None),
        ({}, {}, ("",), None),
        ({"name": "x", "kind": 1}, {}, ("x",), None),
        ({"name": "x"}, {"my.http.method": "GET"}, ("x",), {"my.http.method": "GET"}),
        ({"name": "x"}, {KIND: "odd"}, ("x", "odd"), {KIND: "odd"}),
        ({"name": "x"}, {KIND: "odd", "db.system": "x"}, ("x", "odd"), {KIND: "odd", "db.system": "x"}),
        ({"name": "a tool"}, {KIND: "execute_tool"}, ("a tool", "execute_tool"), {KIND: "execute_tool"}),
    ],
)  # fmt: skip
def test_spans_of_unknown_kinds_and_unnamed_tools(
    span: dict[str, Any], attributes: dict[str, Any], names: tuple[str, ...], entry: Any
) -> None:
    found = unplaced(span, attributes)
    assert (found.names, found.entry) == (names, entry)
    assert ("tool" in found.what.rpartition("'")[2]) is (attributes.get(KIND) == "execute_tool")
    if KIND not in attributes:
        assert unplaced(span, attributes, is_known=True) is None  # accounted for in another way


def test_only_the_beginning_of_a_name_is_shown() -> None:
    found = unplaced({"name": "n" * 50}, {})
    assert f"'{'n' * 40}'" in found.what
    assert found.names == ("n" * 50,)


@pytest.mark.parametrize("key", ["events", "span_events"])
@pytest.mark.parametrize(
    ("event", "attributes", "name"),
    [
        ({"name": "exception"}, {KIND: "chat"}, None),
        ({"name": "gen_ai.choice"}, {KIND: "chat"}, None),
        ({"name": "ai.stream.firstChunk"}, {KIND: "chat"}, None),
        ({"name": "llm.content.completion.chunk"}, {KIND: "chat"}, None),
        ({"name": "First Token Stream Event"}, {KIND: "chat"}, None),
        ({"name": "called"}, {KIND: "chat"}, "called"),
        ({"event_name": "called"}, {KIND: "chat"}, "called"),
        ("called", {KIND: "chat"}, "called"),
        ({}, {KIND: "chat"}, "without a name"),
        ({"name": "called"}, {"gen_ai.system": "x"}, "called"),
        ({"name": "called"}, {"llm.system": "x"}, "called"),
        ({"name": "called"}, {"db.gen_ai.": "x", "db.system": "y"}, None),
        ({"name": "called"}, {"db.system": "x"}, None),  # a lower layer, no agent's
    ],
)
def test_events_of_unknown_names(key: str, event: Any, attributes: dict[str, Any], name: str | None) -> None:
    found = unplaced({"name": "x", key: [event]}, attributes)
    assert (found.names if found else None) == ((name,) if name else None)


def test_the_first_unknown_event_is_told_of_a_span_without_attributes() -> None:
    events = [{"name": "exception"}, {"name": "e" * 50}, {"name": "other"}]
    found = unplaced({"name": "n" * 50, "events": events}, {}, is_known=True)
    assert found.names == ("e" * 50,)
    assert f"'{'e' * 40}'" in found.what
    assert f"'{'n' * 40}'" in found.what


CALLS = [{"name": "find", "arguments": {"id": 1}}]


@pytest.mark.parametrize(
    ("span", "attributes", "is_told"),
    [
        ({"name": "x", "calls": CALLS}, {KIND: "chat"}, True),
        ({"name": "x", "links": CALLS, "resource": {"a": CALLS}}, {KIND: "chat"}, False),
        ({"name": "x", "context": {"a": CALLS}, "scope": {"a": CALLS}}, {KIND: "chat"}, False),
        ({"name": "x"}, {KIND: "chat", "my.calls": CALLS}, True),
        ({"name": "x"}, {KIND: "chat", "my.text": '[{"name": "find", "arguments": {}}]'}, False),
        ({"name": "x"}, {KIND: "chat", "gen_ai.more": CALLS}, False),
        ({"name": "x"}, {KIND: "chat", "metadata.calls": CALLS}, False),
        ({"name": "x"}, {KIND: "chat", "metadata": CALLS}, False),
        ({"name": "x"}, {KIND: "chat", "metadatas.calls": CALLS}, True),
        ({"name": "x"}, {KIND: "chat", "of.user": CALLS}, True),
        *[
            ({"name": "x"}, {KIND: "chat", f"{head}.calls": CALLS}, False)
            for head in ("input", "output", "service", "user", "agent", "graph", "logfire", "tag", "http")
        ],
        *[
            ({"name": "x"}, {KIND: "chat", f"{head}.calls": CALLS}, False)
            for head in ("mcp", "tags", "tool", "langfuse", "langsmith", "all_messages_events", "llm")
        ],
        ({"name": "x"}, {"http.method": "GET", "my.calls": CALLS}, True),
    ],
)  # fmt: skip
def test_fields_of_a_known_span_that_may_hold_calls(
    span: dict[str, Any], attributes: dict[str, Any], is_told: bool
) -> None:
    assert (unplaced(span, attributes) is not None) is is_told
