"""Messages in one span, in the forms of every tracer: attributes, spread attributes, events, plain text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.importers.span_contents import SpanContents, contents_of, message_in_event, unflatten
from agenteval.importers.spans import Span
from agenteval.messages.truncated_json import is_truncated_message

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
IN, OUT = "gen_ai.input.messages", "gen_ai.output.messages"


def read(attributes: dict[str, Any], *events: tuple[str, dict[str, Any]], **more: Any) -> SpanContents:
    listed = [{"name": name, "attributes": fields} for name, fields in events]
    return contents_of(Span({"attributes": attributes, "events": listed, **more}))


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, {}),
        ({"a": 1}, {"a": 1}),
        ({"a.b": 1, "a.c": 2}, {"a": {"b": 1, "c": 2}}),
        ({"0.role": "user", "1.role": "tool"}, [{"role": "user"}, {"role": "tool"}]),
        ({f"{n}": n for n in (10, 2, 1)}, [1, 2, 10]),
        ({"0": 1, "a": 2}, {"0": 1, "a": 2}),
        ({"a.0.b.0.c": 1}, {"a": [{"b": [{"c": 1}]}]}),
        ({"a": {"b.c": 1}}, {"a": {"b": {"c": 1}}}),
        ({"a": 1, "a.b": 2}, {"a": 1}),
        ({"a": {"b": 1}, "a.c": 2}, {"a": {"b": 1, "c": 2}}),
        ({"a": ["x.y"]}, {"a": ["x.y"]}),
    ],
)
def test_dotted_names_are_objects_and_numbers_are_lists(fields: dict[str, Any], found: Any) -> None:
    assert unflatten(fields) == found


# ── attributes ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (IN, OUT),
        ("llm.input_messages", "llm.output_messages"),
        ("gen_ai.prompt", "gen_ai.completion"),
        ("gen_ai.prompt", "gen_ai.output"),
        ("ai.prompt.messages", "gen_ai.output"),
        ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
    ],
)
@pytest.mark.parametrize("as_text", [True, False])
def test_messages_in_attributes(asked: str, answered: str, as_text: bool) -> None:
    values = {asked: [HI], answered: [HELLO]}
    found = read({key: json.dumps(value) if as_text else value for key, value in values.items()})
    assert (found.input_messages, found.output_messages) == ([HI], [HELLO])
    assert found.source_keys == {asked, answered}
    assert not found.is_agent_io


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi"},
        {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi"},
        {IN: [{"message": HI}]},
        {IN: [{"message.role": "user", "message.content": "Hi"}]},
        {"gen_ai": {"input": {"messages": [HI]}}},
        {IN: {"messages": [HI]}},
        {IN: {"contents": [HI]}},
        {IN: {"content": HI}},
        {IN: HI},
        {IN: [{"content": "Hi"}]},
        {"gen_ai.prompt": "Hi"},
        {IN: None, "gen_ai.prompt": "Hi"},
    ],
)
def test_an_input_in_other_forms(attributes: dict[str, Any]) -> None:
    assert read(attributes).input_messages == [HI]


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Hello"},
        {"gen_ai.completion": "Hello"},
        {"gen_ai.output": "Hello"},
        {OUT: [{"content": "Hello"}]},
        {"gcp.vertex.agent.llm_response": json.dumps({"content": {"content": "Hello"}})},
        {"ai.prompt.messages": [HI], "ai.response.text": "Hello"},
    ],
)
def test_an_output_in_other_forms(attributes: dict[str, Any]) -> None:
    assert read(attributes).output_messages == [HELLO]


@pytest.mark.parametrize(
    "attributes", [{}, {IN: ""}, {IN: None}, {"gcp.vertex.agent.llm_request": "{}"}, {"input.value": "Hi"}]
)
def test_what_is_not_recorded(attributes: dict[str, Any]) -> None:
    found = read(attributes)
    assert (found.input_messages, found.output_messages, found.source_keys) == (None, [], frozenset())


@pytest.mark.parametrize(
    ("attributes", "asked", "answered"),
    [
        ({IN: "[]"}, [], []),
        ({IN: [], OUT: [HELLO]}, [], [HELLO]),
        ({"gen_ai.completion": "[]"}, None, [{"role": "assistant", "content": "[]"}]),
        ({OUT: []}, None, []),
        ({"gen_ai.completion": 7}, None, [{"role": "assistant", "content": "7"}]),
        ({"gen_ai.completion": '["a"]'}, None, [{"role": "assistant", "content": '["a"]'}]),
        ({"gen_ai.prompt": "[1, 2]"}, [{"role": "user", "content": "[1, 2]"}], []),
    ],
)
def test_an_empty_list_and_other_values(attributes: dict[str, Any], asked: Any, answered: Any) -> None:
    found = read(attributes)
    assert (found.input_messages, found.output_messages) == (asked, answered)


@pytest.mark.parametrize(
    "key", [IN, "llm.input_messages", "ai.prompt.messages", "gcp.vertex.agent.llm_request", "gen_ai.prompt"]
)
def test_an_input_that_was_cut_off(key: str) -> None:
    found = read({key: '[{"role": "user", "content": "H'})
    assert found.input_messages
    assert is_truncated_message(found.input_messages[0])
    assert key in found.input_messages[0]
    assert found.source_keys == {key}


@pytest.mark.parametrize(("key", "is_cut"), [(IN, True), ("gen_ai.prompt", False)])
def test_prose_where_json_is_always_written(key: str, is_cut: bool) -> None:
    (message,) = read({key: "Hi"}).input_messages or []
    assert is_truncated_message(message) is is_cut


def test_items_and_bare_calls_are_messages() -> None:
    item = {"type": "function_call", "name": "find", "arguments": "{}"}
    assert read({OUT: [item]}).output_messages == [item]
    calls = [{"tool.name": "find", "tool.args": "{}"}, {"tool.name": "look"}]
    assert read({OUT: calls}).output_messages == [
        {
            "role": "assistant",
            "tool_calls": [{"name": "find", "arguments": "{}"}, {"name": "look", "arguments": None}],
        }
    ]


TEXT = {"type": "text", "content": "Hi"}
CALL = {"id": "1", "function": {"name": "find", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"role": "user", "parts": [TEXT]}, {"content": [{"type": "text", "text": "Hi"}]}),
        (
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": 7}]},
            {"content": [{"type": "tool_result", "tool_use_id": "1", "content": 7}]},
        ),
        (
            {"role": "tool", "parts": [{"type": "tool_call_response", "result": 0, "content": 7}]},
            {"content": [{"type": "tool_result", "tool_use_id": None, "content": 0}]},
        ),
        ({"role": "user", "parts": [{"type": "text"}, "x"]}, {"content": [{"type": "text"}, "x"]}),
        ({"role": "assistant", "tool_calls": [{"tool_call": CALL}]}, {"tool_calls": [CALL]}),
        ({"role": "assistant", "tool_calls": [CALL]}, {"tool_calls": [CALL]}),
        (
            {"role": "user", "contents": [{"message_content": {"type": "text", "text": "Hi"}}]},
            {"content": [{"type": "text", "text": "Hi"}]},
        ),
        (
            {"role": "assistant", "function_call_name": "find", "function_call_arguments_json": "{}"},
            {"function_call": {"name": "find", "arguments": "{}"}},
        ),
        (
            {"role": "assistant", "function_call_name": "find", "function_call": CALL},
            {"function_call": CALL},
        ),
        (
            {"message.role": "assistant", "message.tool_calls.0.tool_call.id": "1"},
            {"role": "assistant", "tool_calls": [{"id": "1"}]},
        ),
    ],
)  # fmt: skip
def test_messages_in_the_form_that_all_parsers_read(written: Any, message: dict[str, Any]) -> None:
    (found,) = read({IN: [written]}).input_messages or []
    assert {key: found.get(key) for key in message} == message
    assert found.keys().isdisjoint({"parts", "contents"})


def test_one_place_that_is_no_message_makes_the_list_a_text() -> None:
    assert read({IN: [HI, "x"]}).input_messages == [{"role": "user", "content": json.dumps([HI, "x"])}]


# ── the AI SDK ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "messages", "keys"),
    [
        ({}, [], 0),
        ({"ai.response.text": ""}, [], 0),
        ({"ai.response.text": "Hello"}, [HELLO], 2),
        (
            {"ai.response.toolCalls": '[{"toolName": "find"}]'},
            [{"role": "assistant", "content": None, "tool_calls": [{"toolName": "find"}]}],
            2,
        ),
        ({"ai.response.text": "Hello", "ai.response.toolCalls": []}, [{**HELLO, "tool_calls": []}], 2),
        ({"ai.response.text": "Hello", "ai.response.toolCalls": {"odd": 1}}, [HELLO], 1),
    ],
)
def test_an_answer_of_the_ai_sdk(answer: dict[str, Any], messages: list[Any], keys: int) -> None:
    found = read({"ai.prompt.messages": [HI], **answer})
    assert found.output_messages == messages
    assert len(found.source_keys & {"ai.response.text", "ai.response.toolCalls"}) == keys
    assert read({"gen_ai.prompt": "Hi", **answer}).output_messages == []  # of the AI SDK's own spans only


def test_calls_of_the_ai_sdk_that_were_cut_off() -> None:
    attributes = {
        "ai.prompt.messages": [HI],
        "ai.response.text": "Hello",
        "ai.response.toolCalls": '[{"toolN',
    }
    said, cut = read(attributes).output_messages
    assert said == HELLO
    assert is_truncated_message(cut)


# ── an agent's request and answer as plain text ──────────────────────────────────────────────────

AGENT = {"openinference.span.kind": "AGENT"}
AGENT_IO = {**AGENT, "input.value": "Hi", "output.value": "Hello"}


@pytest.mark.parametrize(
    ("attributes", "asked", "answered", "is_agents"),
    [
        ({**AGENT, "input.value": "Hi", "output.value": "Hello"}, [HI], [HELLO], True),
        ({"input.value": "Hi", "output.value": "Hello"}, None, [], False),
        ({**AGENT, "input.value": "Hi"}, None, [], False),
        ({**AGENT, "output.value": "Hello"}, None, [], False),
        ({**AGENT, "input.value": " ", "output.value": "Hello"}, None, [], False),
        ({**AGENT, "input.value": '{"a": 1}', "output.value": "Hello"}, None, [], False),
        ({**AGENT_IO, "input.mime_type": "application/json"}, None, [], False),
        ({**AGENT_IO, "output.mime_type": "application/json"}, None, [], False),
        ({**AGENT_IO, "input.mime_type": "text/plain"}, [HI], [HELLO], True),
        ({**AGENT_IO, "mime_type": "application/json"}, [HI], [HELLO], True),
        ({"input.value": "Hi", OUT: [HELLO]}, [HI], [HELLO], False),
        ({OUT: [HELLO]}, None, [HELLO], False),
        ({IN: [HI], "input.value": "Ho", OUT: [HELLO]}, [HI], [HELLO], False),
    ],
)  # fmt: skip
def test_an_agents_own_request_and_answer(
    attributes: dict[str, Any], asked: Any, answered: Any, is_agents: bool
) -> None:
    found = read(attributes)
    assert (found.input_messages, found.output_messages) == (asked, answered)
    assert found.is_agent_io is is_agents
    if is_agents:
        assert found.source_keys == {"input.value", "output.value"}


def test_a_request_to_an_agent_that_was_cut_off() -> None:
    found = read({**AGENT, "input.value": '[{"role": "user", "content": "H', "output.value": "Hello"})
    assert found.input_messages
    assert is_truncated_message(found.input_messages[0])


# ── tools, answers without content ───────────────────────────────────────────────────────────────


def test_a_tools_span_has_messages_only_if_its_input_is_one() -> None:
    tool = {"gen_ai.tool.name": "find", "gen_ai.completion": "Hello"}
    assert read(tool).output_messages == []
    assert read({**tool, IN: [HI]}).output_messages == [HELLO]


@pytest.mark.parametrize(
    ("message", "reason", "is_kept"),
    [
        ({"role": "assistant"}, "tool_calls", False),
        ({"role": "assistant", "content": "", "finish_reason": "tool_calls"}, "tool_calls", False),
        ({"role": "assistant", "content": ""}, "stop", True),
        (HELLO, "tool_calls", True),
        ({"role": "assistant", "tool_calls": [CALL]}, "tool_calls", True),
    ],
)
def test_an_answer_without_the_calls_that_it_asked_for(message: Any, reason: str, is_kept: bool) -> None:
    found = read({IN: [HI], OUT: [message], "gen_ai.response.finish_reasons": [reason]})
    assert bool(found.output_messages) is is_kept


# ── requests ─────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "function", "function": {"name": "find"}}


@pytest.mark.parametrize(
    ("attributes", "request_"),
    [
        ({}, {}),
        ({"gen_ai.request.model": "m", "gen_ai.response.model": "m-1"}, {"model": "m"}),
        ({"gen_ai.response.model": "m-1"}, {"model": "m-1"}),
        ({"llm.model_name": "m-2"}, {"model": "m-2"}),
        ({"gen_ai.system_instructions": "Be brief."}, {"system": "Be brief."}),
        (
            {"gen_ai.system_instructions": '[{"type": "text", "content": "Be brief."}]'},
            {"system": [{"type": "text", "text": "Be brief."}]},
        ),
        ({"gen_ai.tool.definitions": json.dumps([SCHEMA])}, {"tools": [SCHEMA]}),
        ({"ai.prompt.tools": [json.dumps(SCHEMA)]}, {"tools": [SCHEMA]}),
        ({"llm.tools.0.tool.json_schema": json.dumps(SCHEMA)}, {"tools": [SCHEMA]}),
        ({"llm.tools": [{"tool.json_schema": SCHEMA}]}, {"tools": [SCHEMA]}),
        ({"llm.tools": ["find"]}, {"tools": ["find"]}),
        (
            {"gcp.vertex.agent.llm_request": {"config": {"system_instruction": "x", "tools": [SCHEMA]}}},
            {"system": "x", "tools": [SCHEMA]},
        ),
    ],
)  # fmt: skip
def test_what_else_a_request_holds(attributes: dict[str, Any], request_: Any) -> None:
    assert read(attributes).request == request_


# ── events ───────────────────────────────────────────────────────────────────────────────────────


def test_messages_in_events() -> None:
    events = [
        ("gen_ai.system.message", {"content": "Be brief."}),
        ("gen_ai.user.message", {"content": "Hi"}),
        ("exception", {"content": "odd"}),
        ("gen_ai.choice", {"message": '{"content": "Hello"}'}),
    ]
    found = read({}, *events)
    assert found.input_messages == [{"role": "system", "content": "Be brief."}, HI]
    assert found.output_messages == [HELLO]
    assert found.source_keys == {"events"}
    assert read({IN: [HI]}, *events).output_messages == []  # attributes come first
    assert read({}, events[2]).input_messages is None


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("user", {"content": "Hi"}, {"role": "user", "content": "Hi"}),
        ("user", {"content": '{"a": 1}'}, {"role": "user", "content": '{"a": 1}'}),
        ("user", {"content": '[{"type": "text", "text": "Hi"}]'},
         {"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
        ("user", {"content": '[{"text": "Hi"}]'}, {"role": "user", "content": [{"text": "Hi"}]}),
        ("user", {"content": '[{"a": "Hi"}]'}, {"role": "user", "content": '[{"a": "Hi"}]'}),
        *[("user", {key: {"content": "Hi"}}, {"role": "user", "content": "Hi"})
          for key in ("body", "event.body", "gen_ai.event.content", "message")],
        ("user", {"body": "Hi there"}, {"role": "user", "content": "Hi there"}),
        ("user", {"body": ["a"]}, {"role": "user", "content": ["a"]}),
        ("user", {"message": "[1]"}, {"role": "user", "content": "[1]"}),
        ("user", {"content": {"role": "user", "content": "Hi"}}, {"role": "user", "content": "Hi"}),
        ("assistant", {"content": "", "tool_calls": json.dumps([CALL])},
         {"role": "assistant", "content": "", "tool_calls": [CALL]}),
        ("assistant", {"parts": [{"type": "text", "content": "Hi"}]},
         {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}),
        ("tool", {"id": "1", "name": "find", "content": "7"},
         {"role": "tool", "content": "7", "tool_call_id": "1", "name": "find"}),
        ("tool", {"call_id": "1", "content": "7"},
         {"role": "tool", "content": "7", "tool_call_id": "1", "name": None}),
        ("tool", {"content": '[{"toolResult": 1}]'},
         {"role": "tool", "content": [{"toolResult": 1}], "tool_call_id": None, "name": None}),
        ("tool", {"content": '[{"text": "x"}]'},
         {"role": "tool", "content": '[{"text": "x"}]', "tool_call_id": None, "name": None}),
        ("tool", {"content": '{"role": "x'},
         {"role": "tool", "content": '{"role": "x', "tool_call_id": None, "name": None}),
    ],
)  # fmt: skip
def test_the_message_in_an_event(name: str, fields: dict[str, Any], message: Any) -> None:
    assert message_in_event(f"gen_ai.{name}.message", fields) == message


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"odd": 1},
        {"content": '[{"role": "user", "content": "H'},
        {"body": '{"content": "H'},
        {"gen_ai.event.content": ' [ {"a'},
        {"content": None},
    ],
)
def test_an_event_that_cannot_be_read_stays_as_it_is(fields: dict[str, Any]) -> None:
    found = message_in_event("gen_ai.user.message", fields)
    assert found == {"event": "gen_ai.user.message", **fields}


def test_a_choice_that_asks_for_tools_is_a_message_without_content() -> None:
    found = message_in_event("gen_ai.choice", {"finish_reason": "tool_calls"})
    assert found == {"role": "assistant", "content": None}
