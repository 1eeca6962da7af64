"""One record as a conversation: its messages, its name and agent, its tools and its instructions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.scenario import Tool
from agenteval.importers.records import ImportedConversation, ToolSets, read_conversation
from agenteval.messages.record_paths import MISSING
from agenteval.messages.unplaced_entries import CallFreeNames, Unplaced

HI, HELLO = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}
TALK = [HI, HELLO]


def read(record: Any, **more: Any) -> ImportedConversation:
    return read_conversation(record, ToolSets(), **more)


def record(**fields: Any) -> ImportedConversation:
    return read({"messages": TALK, **fields})


def tools(declared: Any) -> Any:
    return record(tools=declared).tools


# ── where the messages are ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "value",
    [
        TALK,
        {"messages": TALK},
        {"request": {"messages": [HI]}, "response": {"choices": [{"message": HELLO}]}},
        {"question": "Hi", "answer": "Hello"},
        {"spans": [{"trace_id": "t", "start_time": 1, "attributes": {
            "gen_ai.input.messages": [HI], "gen_ai.output.messages": [HELLO]}}]},
    ],
)  # fmt: skip
def test_a_record_in_every_form(value: Any) -> None:
    found = read(value)
    assert [(turn.user, turn.answer) for turn in found.parsed.trajectory.turns] == [("Hi", "Hello")]
    assert found.record is value
    assert (found.outcome, found.lost) == (MISSING, "")


@pytest.mark.parametrize(
    ("value", "words", "remedy"),
    [
        (7, ["7"], "messages"),
        ("x" * 100, ["x" * 59], "messages"),
        (None, ["null"], "messages"),
        ([1, 2], ["no messages"], "role"),
        ([{"a": 1, "b": 2}], ["a, b"], "role"),
        ({}, ["no messages"], "empty"),
        (HI, ["no messages"], "single message"),
        ({"a": 1, "b": 2}, ["no messages"], "a, b"),
        ({"message": TALK}, ["no messages"], "did you mean"),
        ({"mesages": TALK, "id": 1}, ["no messages"], "did you mean"),
        ({"mesages": "x"}, ["no messages"], "found mesages"),
        ({"messages": "Hi", "id": 1}, ["no messages"], "a string next to id"),
        ({"messages": None}, ["no messages"], "null"),
        ({"messages": {}}, ["no messages"], "an object"),
        ({"type": "odd", "x": 1}, ["no messages"], "type, x"),
        ({f"key{n}": n for n in range(13)}, ["no messages"], "key11"),
    ],
)
def test_a_record_without_messages(value: Any, words: list[str], remedy: str) -> None:
    with pytest.raises(AuthorError) as error:
        read(value)
    (problem,) = error.value.problems
    assert [word for word in words if word not in problem.what] == []
    assert remedy in problem.remedy
    assert "key12" not in problem.remedy


def test_an_empty_list_has_no_agent() -> None:
    with pytest.raises(AuthorError):
        read([])


# ── what it is called ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "id"),
    [
        ({}, ""),
        *[
            ({key: "a"}, "a")
            for key in ("id", "conversation_id", "session_id", "thread_id", "trace_id", "uuid")
        ],
        ({"uuid": "u", "session_id": "s"}, "s"),
        ({"id": 7}, "7"),
        ({"id": 0}, "0"),
        ({"id": True, "uuid": "u"}, "u"),
        ({"id": " ", "uuid": "u"}, "u"),
        ({"id": " a "}, "a"),
        ({"id": None, "uuid": "u"}, "u"),
        ({"id": ["a"], "uuid": "u"}, "u"),
        ({"id": 1.5}, ""),
        ({"id": "x" * 201}, "x" * 200),
        ({"ID": "a"}, ""),
    ],
)
def test_the_id_of_a_record(fields: dict[str, Any], id: str) -> None:
    assert record(**fields).id == id
    assert read(TALK).id == ""


def test_the_id_of_a_response_is_that_of_a_record_without_one() -> None:
    exchange = {"request": {"messages": [HI]}, "response": {"id": "r", "choices": [{"message": HELLO}]}}
    assert (read(exchange).id, read({**exchange, "id": "a"}).id) == ("r", "a")


@pytest.mark.parametrize(
    ("fields", "agent"),
    [
        ({}, ""),
        ({"agent": "bot", "model": "m"}, "bot"),
        ({"model": "m"}, "m"),
        ({"agent": {"name": "bot"}}, "bot"),
        ({"agent": {"id": 1}, "model": {"name": "m"}}, "m"),
        ({"agent": " ", "model": "m"}, "m"),
        ({"agent": " bot "}, "bot"),
        ({"agent": 7}, ""),
        ({"agent": "x" * 201}, "x" * 200),
        ({"config": {"model": "m"}}, "m"),
        ({"model_parameters": {"model": "m"}}, "m"),
    ],
)
def test_the_name_of_the_agent(fields: dict[str, Any], agent: str) -> None:
    assert record(**fields).agent == agent


def test_the_request_names_the_model() -> None:
    exchange = {"request": {"model": "m", "messages": [HI]}, "response": {"choices": [{"message": HELLO}]}}
    assert (read(exchange).agent, read({**exchange, "agent": "bot"}).agent) == ("m", "bot")


# ── instructions ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        ({}, ""),
        *[
            ({key: "Be brief."}, "Be brief.")
            for key in (
                "system",
                "system_prompt",
                "instructions",
                "policy",
                "systemInstruction",
                "system_instruction",
            )
        ],
        ({"policy": "B", "system": "A"}, "A\n\nB"),
        ({"policy": "A", "system": "A"}, "A"),
        ({"system": ["A", {"text": "B"}, {"type": "x"}]}, "A\n\nB"),
        ({"system": {"parts": [{"text": "A"}, {"text": "B"}]}}, "A\n\nB"),
        ({"system": {"text": "", "content": "A"}}, "A"),
        ({"system": 7}, ""),
        ({"system": [[[["A"]]]]}, "A"),
        ({"system": [[[[["A"]]]]]}, ""),
        ({"config": {"systemInstruction": "A"}}, "A"),
        ({"messages": [{"role": "system", "content": "A"}, *TALK], "system": "B"}, "A\n\nB"),
        ({"messages": [{"role": "system", "content": "A"}, *TALK], "system": "A"}, "A"),
    ],
)
def test_instructions_wherever_they_are(fields: dict[str, Any], policy: str) -> None:
    assert record(**fields).policy == policy


# ── tools ────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FIND = Tool(description="Finds.", parameters=SCHEMA)
OPENAI = {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": SCHEMA}}
PLAIN = {"name": "find", "description": "Finds.", "parameters": SCHEMA}


@pytest.mark.parametrize(
    "declared",
    [
        [OPENAI],
        json.dumps([OPENAI]),
        [PLAIN],
        [{"type": "function", **PLAIN}],
        [{"name": "find", "description": "Finds.", "input_schema": SCHEMA}],
        [{"name": "find", "description": "Finds.", "inputSchema": SCHEMA}],
        [{"name": "find", "description": "Finds.", "parameters_json_schema": SCHEMA}],
        [{"type": "custom", "custom": PLAIN}],
        [{"functionDeclarations": [PLAIN]}],
        [{"function_declarations": [PLAIN]}],
        [{"toolSpec": {"name": "find", "description": "Finds.", "inputSchema": {"json": SCHEMA}}}],
        {"find": {"description": "Finds.", "parameters": SCHEMA}},
    ],
)
def test_tools_in_every_form(declared: Any) -> None:
    assert tools(declared) == {"find": FIND}


@pytest.mark.parametrize("key", ["tools", "functions", "available_tools", "tool_definitions"])
def test_tools_under_every_key(key: str) -> None:
    assert record(**{key: [PLAIN]}).tools == {"find": FIND}
    for place in ("config", "toolConfig", "tool_config"):
        assert record(**{place: {key: [PLAIN]}}).tools == {"find": FIND}
    request = {"messages": [HI], key: [PLAIN]}
    assert read({"request": request, "response": {"choices": [{"message": HELLO}]}}).tools == {"find": FIND}


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ([], {}),
        (None, {}),
        (["find", "look"], {"find": Tool(), "look": Tool()}),
        ([{"name": "find"}], {"find": Tool()}),
        ([{"type": "web_search_20250305"}], {"web_search_20250305": Tool()}),
        ([{"name": "find", "description": 7, "parameters": "x"}], {"find": Tool()}),
        ({"find": None}, {"find": Tool()}),
        ([{"name": "find"}, PLAIN], {"find": FIND}),
        ([{"name": "find", "annotations": {"readOnlyHint": True}}], {"find": Tool(reads=True)}),
    ],
)
def test_tools_of_which_less_is_known(declared: Any, found: dict[str, Tool]) -> None:
    imported = record(tools=declared)
    assert imported.tools == found
    assert imported.notes == ()


@pytest.mark.parametrize(
    "declared",
    [
        ["find", 7],
        ["find", {}],
        ["find", {"name": ""}],
        ["find", {"name": 7}],
        *[["find", {"type": kind}] for kind in ("function", "custom", "tool", "object")],
        ["find", {"type": "search", "parameters": SCHEMA}],
        ["find", {"function": {"description": "x"}}],
    ],
)
def test_a_tool_that_is_not_read_is_told(declared: Any) -> None:
    imported = record(tools=declared)
    assert list(imported.tools) == ["find"]
    assert len(imported.notes) == 1


def test_a_name_in_place_of_tools_is_told() -> None:
    imported = record(tools="auto")
    assert (imported.tools, len(imported.notes)) == ({}, 1)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"a": schema}
    return schema


def test_a_schema_that_is_nested_too_deeply_is_left_out() -> None:
    assert tools([{"name": "find", "parameters": nested(5)}])["find"].parameters == nested(5)
    assert tools([{"name": "find", "parameters": nested(2000)}])["find"].parameters is None


def test_tools_of_the_provider_join_those_that_are_declared() -> None:
    block = {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {"query": "x"}}
    said = {"role": "assistant", "content": [block, {"type": "text", "text": "Hello"}]}
    assert list(read({"messages": [HI, said], "tools": ["find"]}).tools) == ["find", "web_search"]
    assert read({"messages": [HI, said]}).tools == {}


def test_tools_of_recent_agents_are_parsed_once_and_told_each_time() -> None:
    sets = ToolSets()
    told: list[str] = []
    first = sets.tools_of(["a", 7], told.append)
    for n in range(7):
        assert list(sets.tools_of([f"x{n}"], told.append)) == [f"x{n}"]
    assert sets.tools_of(["a", 7], told.append) is first
    assert len(told) == 2
    for n in range(8):
        sets.tools_of([f"y{n}"], told.append)
    assert sets.tools_of(["a", 7], told.append) is not first


# ── notes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("count", "named", "more"), [(1, 0, False), (2, 2, False), (4, 4, False), (5, 4, True)]
)
def test_several_people_are_told(count: int, named: int, more: bool) -> None:
    asked = [{**HI, "name": f"user-{n}"} for n in range(count)]
    notes = read([*asked, HELLO]).notes
    assert len(notes) == (count > 1)
    assert sum(f"user-{n}" in note for note in notes for n in range(count)) == named
    assert any("…" in note for note in notes) is more


def test_each_note_is_told_once() -> None:
    odd = {"role": "critic", "content": "?"}
    assert len(read([HI, odd, HELLO, HI, odd, HELLO]).notes) == 1


def test_what_surrounds_a_record_belongs_to_its_turns() -> None:
    around = (Unplaced("steps in the record", ("steps",), [{"x": 1}]),)
    (turn,) = read(TALK, around=around).parsed.trajectory.turns
    assert len(turn.unplaced) == 1
    free = CallFreeNames(frozenset({"steps"}))
    (turn,) = read(TALK, around=around, no_calls_in=free).parsed.trajectory.turns
    assert turn.unplaced == ()


def test_a_conversation_that_was_lost() -> None:
    found = read({"request": {"messages": [HI]}, "response": {"error": {"message": "busy"}}})
    assert "busy" in found.lost
    assert found.parsed.trajectory.unfinished
