"""Calls of other kinds than functions, texts in parts, and keys that an object has twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolCall
from agenteval.importers.duplicate_keys import repeated_key
from agenteval.importers.entries import entries_of
from agenteval.importers.identity import FieldPaths, Naming
from agenteval.importers.sources import Source
from agenteval.messages.calls import (
    ParsedCall,
    ReadCallIndex,
    collect_raw_calls,
    drop_copies,
    find_final_answer,
    parse_list,
    parse_provider_call,
    parse_raw_call,
    unplaced_in_call,
    unplaced_in_provider_call,
)
from agenteval.messages.log_entry import Record, UnreadableRecord
from tests.support.kit import Project
from tests.support.recorded import read

KEY = "sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA2b4"
ASKED = {"role": "user", "content": "Hi"}
DONE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
FUNCTION = {"type": "function", "function": {"name": "get_order", "parameters": {"type": "object"}}}


def calls_of(*items: Any, **more: Any) -> tuple[ToolCall, ...]:
    found = read({"input": [ASKED, *items, DONE], **more})
    assert found.notes == ()
    return found.parsed.trajectory.tool_calls


def told(calls: tuple[ToolCall, ...]) -> list[tuple[str, Any, Any, bool]]:
    return [
        (c.name, c.args, c.result.value, c.result.is_error) if c.result else (c.name, c.args, None, False)
        for c in calls
    ]


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def test_a_call_of_a_tool_that_takes_a_text() -> None:
    custom = {"id": "1", "type": "custom", "custom": {"name": "run_code", "input": "print(7)"}}
    messages = [
        ASKED,
        {"role": "assistant", "tool_calls": [custom]},
        {"role": "tool", "tool_call_id": "1", "content": "7"},
    ]
    found = read({"messages": [*messages, {"role": "assistant", "content": "7"}]})
    assert told(found.parsed.trajectory.tool_calls) == [("run_code", {"input": "print(7)"}, "7", False)]
    assert found.notes == ()
    item = {"type": "custom_tool_call", "call_id": "1", "name": "run_code", "input": "print(7)"}
    output = {"type": "custom_tool_call_output", "call_id": "1", "output": "7"}
    assert told(calls_of(item, output)) == [("run_code", {"input": "print(7)"}, "7", False)]
    declared = read(
        {"messages": [ASKED, DONE], "tools": [{"type": "custom", "custom": {"name": "run_code"}}]}
    )
    assert set(declared.tools) == {"run_code"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {"type": "mcp_call", "name": "roll", "arguments": '{"d": 6}', "output": "4", "server_label": "s"},
            ("roll", {"d": 6}, "4", False),
        ),
        (
            {"type": "mcp_call", "name": "roll", "arguments": "{}", "output": None, "error": "no dice"},
            ("roll", {}, {"error": "no dice"}, True),
        ),
        (
            {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "x"}},
            ("web_search", {"query": "x"}, None, False),
        ),
        (
            {"type": "file_search_call", "queries": ["x"], "results": [{"text": "y"}]},
            ("file_search", {"queries": ["x"]}, [{"text": "y"}], False),
        ),
        (
            {"type": "code_interpreter_call", "code": "1 / 0", "outputs": None, "status": "failed"},
            ("code_interpreter", {"code": "1 / 0"}, None, True),
        ),
        ({"type": "image_generation_call", "result": "iVBORw0"}, ("image_generation", {}, "[image]", False)),
    ],
)
def test_calls_that_the_provider_ran_itself(item: Any, expected: Any) -> None:
    assert told(calls_of(item)) == [expected]


def test_a_call_of_a_built_in_tool_with_its_output_apart() -> None:
    item = {"type": "local_shell_call", "call_id": "z", "action": {"command": ["ls"]}}
    output = {"type": "local_shell_call_output", "call_id": "z", "output": "a.txt"}
    assert told(calls_of(item, output)) == [("local_shell", {"command": ["ls"]}, "a.txt", False)]


def test_what_the_provider_runs_needs_no_declaration_and_other_tools_do(project: Project) -> None:
    item = {"type": "mcp_call", "id": "m", "name": "roll", "arguments": "{}", "output": "4"}
    found = read({"input": [ASKED, {"type": "mcp_list_tools", "tools": []}, item, DONE], "tools": [FUNCTION]})
    assert found.tools == {"get_order": Tool(parameters={"type": "object"}), "roll": Tool()}
    assert found.notes == ()
    assert read({"input": [ASKED, item, DONE]}).tools == {}
    used = {"type": "mcp_tool_use", "id": "1", "name": "roll", "input": {}}
    blocks = [ASKED, {"role": "assistant", "content": [used, {"type": "text", "text": "4"}]}]
    assert set(read({"messages": blocks, "tools": [FUNCTION]}).tools) == {"get_order", "roll"}
    call = {"type": "function_call", "call_id": "c", "name": "no_such", "arguments": "{}"}
    records = [{"id": i["type"], "input": [ASKED, i, DONE], "tools": [FUNCTION]} for i in (item, call)]
    project.write("log.jsonl", "".join(f"{json.dumps(record)}\n" for record in records))
    asked = ("--max-rate", "high=0", "--report", "json=results.json")
    assert project.call("score", "log.jsonl", *asked).code == 1
    verdicts = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {"mcp_call": "passed", "function_call": "failed"}


# ── texts ────────────────────────────────────────────────────────────────────────────────────────


def part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([part("a"), part(KEY)], f"a\n{KEY}"),
        (["a", KEY], f"a\n{KEY}"),
        (
            [part("It grew by 5"), part("%"), part(", they say"), part(" now.")],
            "It grew by 5%, they say now.",
        ),
        ([part("Done."), part("Next.")], "Done.\nNext."),
        ([part("("), part("see ORD-"), part("42"), part(")")], "(see ORD-42)"),
        ([part("a"), part(""), part("b")], "a\nb"),
        ([part(""), part("")], ""),
        ([{"text": "Hel"}, {"text": "lo"}], "Hello"),  # Google's: one text in pieces
    ],
)
def test_texts_side_by_side_glue_no_words(parts: Any, text: str) -> None:
    (turn,) = read([ASKED, {"role": "assistant", "content": parts}]).parsed.trajectory.turns
    assert turn.answer == text


def test_a_key_in_a_part_of_its_own_is_found(project: Project) -> None:
    record = {"id": "k", "messages": [ASKED, {"role": "assistant", "content": [part("a"), part(KEY)]}]}
    project.write("log.jsonl", json.dumps(record) + "\n")
    project.write("agenteval.yaml", f"agent: {{target: 'agent.py:agent', secrets: [{KEY}]}}\n")
    assert project.call("score", "log.jsonl", "--max-rate", "critical=0").code == 1


def test_parts_of_an_unknown_kind_are_told_and_pictures_are_not() -> None:
    content = [{"type": "hologram", "data": "x"}, {"type": "hologram"}, {"type": "input_image"}, part("Look")]
    found = read([ASKED, {"role": "assistant", "content": content}])
    (note,) = found.notes
    assert note == (
        "a part of unknown type 'hologram' was not recognized: call checks are undecided there"
        " (use `--no-calls-in hologram` if it contains no calls)"
    )
    assert found.parsed.trajectory.turns[0].answer == "[hologram]\n[hologram]\n[input_image]\nLook"


# ── keys, epochs ─────────────────────────────────────────────────────────────────────────────────

TWICE = '{"id": "a", "messages": [{"role": "user", "content": "Hi"}], "messages": [{"role": "assistant"}]}'


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (TWICE, "messages"),
        ('{"request": ' + TWICE + ', "response": "x"}', "messages"),
        ('{"request": {"messages": []}, "response": "x", "response": "y"}', "response"),
        (f"[{TWICE}, {TWICE}]", "messages"),
        ('{"messages": [{"role": "user", "content": "\\"messages\\" \\"messages\\""}]}', ""),
        (
            '{"messages": [{"content": {"messages": 1}}], "x": {"messages": {"messages": 2}}}',
            "",
        ),
        ("[1]", ""),
    ],
)
def test_a_key_that_an_object_has_twice(text: str, key: str) -> None:
    assert repeated_key(json.loads(text), text.encode()) == key


@pytest.mark.parametrize("spread", [False, True])
def test_a_record_with_two_lists_of_messages_is_not_read(tmp_path: Path, spread: bool) -> None:
    other = json.dumps({"id": "b", "messages": [ASKED]})
    text = TWICE.replace(", ", ",\n").replace("}]}", "}]\n}") if spread else TWICE
    path = tmp_path / "log.jsonl"
    path.write_text(f"{text}\n{other}\n", encoding="utf-8")
    first, second = entries_of(Source(path, "log.jsonl"))
    assert first == UnreadableRecord(
        "log.jsonl:1", "'messages' is duplicated in one object, so its value is ambiguous"
    )
    assert isinstance(second, Record)
    assert second.value["id"] == "b"


@pytest.mark.parametrize(
    ("record", "note"),
    [
        (
            {"trial": "third"},
            "trial is not a whole number of at least 0, so epochs were numbered in file order",
        ),
        ({"trial": None}, "no epoch at trial, so epochs were numbered in file order"),
        ({}, "no epoch at trial, so epochs were numbered in file order"),
    ],
)
def test_an_epoch_that_is_none_is_told(record: dict[str, Any], note: str) -> None:
    found = read({"messages": [ASKED, DONE], **record})
    assert Naming(FieldPaths(epoch="trial")).name_conversation(found, "log.jsonl:1").notes == (note,)


def test_what_python_can_read_and_not_hold_is_no_object() -> None:
    call = parse_raw_call({"name": "f", "arguments": "{{'a': 1}: 2}"})
    assert call
    assert (call.args, call.raw_args) == (None, "{{'a': 1}: 2}")
    call = parse_raw_call({"name": "f", "arguments": "{'a': {{'b': 1}}}"})
    assert call
    assert call.args is None


# ── one call ─────────────────────────────────────────────────────────────────────────────────────

NOTE = {"anything": "x"}


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        ({"name": "f"}, ("f", {}, None, "")),
        ({"name": "f", "arguments": '{"a": 1}', "id": 7}, ("f", {"a": 1}, None, "7")),
        ({"function": {"name": "f", "arguments": {}}, "name": "g"}, ("f", {}, None, "")),
        ({"function": "f", "args": {"a": 1}}, ("f", {"a": 1}, None, "")),
        ({"function": {}, "name": "g"}, ("g", {}, None, "")),
        ({"function": {"name": "f"}, "arguments": {"a": 1}}, ("f", {"a": 1}, None, "")),
        ({"function": {"name": "f", "args": {"a": 1}}, "arguments": {"a": 2}}, ("f", {"a": 1}, None, "")),
        ({"recipient_name": "functions.f", "parameters": {}}, ("f", {}, None, "")),
        ({"name": "functions.f"}, ("functions.f", {}, None, "")),
        ({"name": "f", "call_id": "a", "id": "b"}, ("f", {}, None, "a")),
        ({"name": "f", "call_id": "", "toolUseId": "b"}, ("f", {}, None, "b")),
        ({"name": "f", "arguments": "{oops"}, ("f", None, "{oops", "")),
        ({"name": "f", "arguments": [1]}, ("f", None, "[1]", "")),
        ({"name": "f", "arguments": "{'a': 1}"}, ("f", {"a": 1}, "{'a': 1}", "")),
        ({"name": "f", "arguments": '"{}"'}, ("f", {}, '"{}"', "")),
        ({"name": "f", "arguments": json.dumps(json.dumps('{"a": 1}'))}, ("f", {"a": 1}, None, "")),
        ({"name": "f", "arguments": '"a"'}, ("f", None, '"a"', "")),
        ({"name": "f", "arguments": '"[1]"'}, ("f", None, '"[1]"', "")),
        ({"name": "f", "where": NOTE}, ("f", None, None, "")),
        ({"name": "f", "where": "x"}, ("f", {}, None, "")),
        ({"name": "f", "where": NOTE, "args": {}}, ("f", {}, None, "")),
        ({"name": "f", "args": {"a": 1}, "arguments_unknown": True}, ("f", None, None, "")),
        ({"type": "custom", "name": "f", "input": "{}"}, ("f", {"input": "{}"}, None, "")),
        ({"type": "custom_tool_call", "name": "f", "input": {"a": 1}}, ("f", {"a": 1}, None, "")),
        ({"type": "tool_use", "name": "f", "input": "{}"}, ("f", {}, None, "")),
    ],
)
def test_a_call_in_many_forms(raw: Any, parsed: Any) -> None:
    found = parse_raw_call(raw)
    assert found
    name, args, raw_args, id = parsed
    assert (found.name, found.args, found.id) == (name, args, id)
    assert raw_args is None or found.raw_args == raw_args
    assert not (found.is_provider_executed)
    assert not (found.is_attempt)
    assert not (found.is_approved)


@pytest.mark.parametrize(
    "raw", [None, "f", [], {}, {"name": ""}, {"name": 5}, {"function": {"arguments": "{}"}}]
)
def test_a_call_that_names_no_tool(raw: Any) -> None:
    assert parse_raw_call(raw) is None


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_arguments_that_are_nested_too_deeply() -> None:
    shallow, deep = (parse_raw_call({"name": "f", "args": nested(depth)}) for depth in (100, 101))
    assert shallow
    assert deep
    assert (shallow.args, shallow.raw_args) == (nested(100), None)
    assert (deep.args, deep.raw_args) == (None, json.dumps(nested(101)))


@pytest.mark.parametrize(
    ("fields", "provider", "attempt", "approved"),
    [
        ({"type": "server_tool_use"}, True, False, False),
        ({"type": "mcp_tool_use"}, True, False, False),
        ({"type": "mcp_approval_request"}, True, True, False),
        ({"type": "tool_use"}, False, False, False),
        ({"state": "approval-requested"}, False, True, False),
        ({"state": "output-denied"}, False, True, False),
        ({"state": "output-available"}, False, False, False),
        ({"approval": {"approved": False}}, False, True, False),
        ({"approval": {"approved": None}}, False, False, False),
        ({"approval": {"approved": True}}, False, False, True),
        ({"approved": True}, False, False, True),
        ({"approved": "yes"}, False, False, False),
        ({"attempted": True}, False, True, False),
        ({"attempted": 1}, False, False, False),
        ({"attempted": True, "approved": True}, False, True, False),
    ],
)
def test_who_ran_a_call_and_whether_it_was_run(
    fields: dict[str, Any], provider: bool, attempt: bool, approved: bool
) -> None:
    found = parse_raw_call({"name": "f", **fields})
    assert found
    assert (found.is_provider_executed, found.is_attempt, found.is_approved) == (provider, attempt, approved)


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ({"name": "f", "args": {}, "other": NOTE}, ["other"]),
        ({"function": {"name": "f", "arguments": "{}", "other": NOTE}}, ["other"]),
        ({"name": "f", "other": NOTE, "more": [NOTE]}, ["more"]),  # the object may be the arguments
        ({"name": "f", "args": {}, "other": "x", "status": NOTE, "index": NOTE, "output": [NOTE]}, []),
        ({"name": "f", "args": "{oops", "other": NOTE}, ["other"]),
    ],
)
def test_fields_of_a_call_that_are_not_read(raw: Any, names: list[str]) -> None:
    call = parse_raw_call(raw)
    assert call
    assert [name for each in unplaced_in_call(raw, call) for name in each.names] == names


# ── the calls of a message ───────────────────────────────────────────────────────────────────────

F, G = {"name": "f", "args": {"a": 1}}, {"name": "g", "args": {}}


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({}, ""),
        ({"tool_calls": []}, ""),
        ({"tool_calls": [F, G]}, "fg"),
        ({"tool_calls": F}, "f"),
        ({"tool_calls": json.dumps([F])}, "f"),
        *(({key: [F]}, "f") for key in ("toolCalls", "tool_call", "toolCall", "tool_invocations",
          "toolInvocations", "tool_uses", "toolUses", "function_calls", "functionCalls", "function_call",
          "functionCall", "invalid_tool_calls")),
        *(({"additional_kwargs": {key: F}}, "f") for key in ("tool_calls", "function_call", "functionCall")),
        ({"additional_kwargs": {"toolCalls": F}}, ""),
        ({"tool_calls": [F], "toolCalls": [F]}, "f"),
        ({"tool_calls": [F], "function_call": F}, "f"),
        ({"tool_calls": [F], "additional_kwargs": {"tool_calls": [F, G]}}, "fg"),
        ({"tool_calls": [F, F], "toolCalls": [F, F, F]}, "fff"),
        ({"tool_calls": [F], "toolCalls": [G], "function_call": G}, "fg"),
        ({"tool_calls": [F], "invalid_tool_calls": [F]}, "ff"),
        ({"tool_calls": [{**F, "id": "1"}], "toolCalls": [{**F, "id": "2"}]}, "ff"),
        ({"tool_calls": [{**F, "id": "1"}], "toolCalls": [{**G, "id": "1"}]}, "f"),
        ({"tool_calls": [{**F, "id": "1"}], "toolCalls": [F]}, "f"),
        ({"tool_calls": [F], "toolCalls": [{**F, "args": {"a": 2}}]}, "ff"),
        ({"tool_calls": [F], "toolCalls": [{"name": "f", "args": "oops"}]}, "f"),
    ],
)  # fmt: skip
def test_a_call_in_several_places_is_one(message: Any, names: str) -> None:
    assert "".join(each["name"] for each in collect_raw_calls(message)) == names


def parsed(name: str, args: Any = None, id: str = "") -> ParsedCall:
    return ParsedCall(name, args, None, id)


def test_each_known_call_removes_one_copy() -> None:
    calls = [parsed("f", {}), parsed("f", {}), parsed("g", {}, "1")]
    assert drop_copies(calls, []) == calls
    assert drop_copies(calls, [parsed("f", {})]) == calls[1:]
    assert drop_copies(calls, [parsed("h", {}, "1")]) == calls[:2]
    assert drop_copies(iter(calls), iter(calls)) == []


@pytest.mark.parametrize(
    ("raw", "is_known"),
    [
        ({"name": "f", "args": {"a": 1}}, True),
        ({"name": "f", "args": {"a": 2}}, False),
        ({"name": "f", "args": {"a": 2}, "id": "1"}, True),
        ({"name": "g", "args": {"a": 1}, "id": "1"}, False),
        ({"name": "f", "args": "oops"}, True),  # unknown arguments may be the same
        ({"name": "old", "args": {}, "call_id": "2"}, True),
        ({"name": "old", "args": {}}, False),
        ({"name": "unknown", "args": {"a": 3}}, True),
        ({"item": {"name": "f", "args": {"a": 1}}}, True),
        ({"id": "1", "item": {"name": "f", "args": {"a": 2}}}, True),
        ({"id": "1"}, True),
        ({"id": "2"}, True),
        ({"id": "m"}, True),
        ({"id": 7}, True),
        ({"id": "x"}, False),
        ({}, False),
        ("f", False),
        (None, False),
    ],
)
def test_copies_of_calls_that_were_read(raw: Any, is_known: bool) -> None:
    read = ReadCallIndex(
        [parsed("f", {"a": 1}, "1"), parsed("unknown")], [parsed("old", {}, "2")], ["m", 7, None, ""]
    )
    assert read.contains(raw) is is_known


@pytest.mark.parametrize(
    ("value", "listed"),
    [
        (None, []), ("", []), ([], []), ({}, []), ([1], [1]), ({"a": 1}, [{"a": 1}]), ("[1, 2]", [1, 2]),
        ('{"a": 1}', [{"a": 1}]), ("text", ["text"]), ((1,), [(1,)]),
    ],
)  # fmt: skip
def test_one_or_a_list(value: Any, listed: list[Any]) -> None:
    assert parse_list(value) == listed


@pytest.mark.parametrize(
    ("calls", "answer"),
    [
        ([parsed("final_answer", {"answer": "a"})], "a"),
        ([parsed("Finish", {"final_answer": "a"})], "a"),
        ([parsed("find", {"answer": "a"}), parsed("Finish", {"answer": "b"})], "b"),
        ([parsed("Finish", {"answer": ""}), parsed("Finish", {"answer": "b"})], ""),
        ([parsed("Finish", {"final_answer": "b", "answer": "a"})], "a"),
        ([parsed("Finish", {"answer": 5})], ""),
        ([parsed("Finish")], ""),
        ([parsed("find", {"answer": "a"})], ""),
        ([], ""),
    ],
)
def test_the_answer_in_a_call(calls: list[ParsedCall], answer: str) -> None:
    assert find_final_answer(calls) == answer


@pytest.mark.parametrize(
    ("item", "name", "args", "outcome"),
    [
        ({"type": "x_call"}, "x", {}, None),
        ({"type": "x_call", "name": "f"}, "f", {}, None),
        ({"type": "x_call", "arguments": '{"a": 1}', "query": "q"}, "x", {"a": 1}, None),
        ({"type": "x_call", "arguments": "oops"}, "x", None, None),
        ({"type": "x_call", "action": {"q": 1}, "code": "c"}, "x", {"q": 1}, None),
        ({"type": "x_call", "action": "go", "code": "c"}, "x", {"action": "go", "code": "c"}, None),
        ({"type": "x_call", "operation": 1, "commands": [2], "input": 3, "query": ""}, "x",
         {"operation": 1, "commands": [2], "input": 3}, None),
        ({"type": "x_call", "where": NOTE}, "x", None, None),
        ({"type": "x_call", "where": NOTE, "query": "q"}, "x", {"query": "q"}, None),
        ({"type": "x_call", "output": ""}, "x", {}, ("", False)),
        ({"type": "x_call", "results": [1], "outputs": [2]}, "x", {}, ([1], False)),
        ({"type": "x_call", "outputs": [2], "status": "failed"}, "x", {}, ([2], True)),
        ({"type": "x_call", "status": "failed"}, "x", {}, (None, True)),
        ({"type": "x_call", "error": "boom", "output": "half"}, "x", {}, ({"error": "boom"}, True)),
        ({"type": "image_generation_call", "result": None}, "image_generation", {}, None),
    ],
)  # fmt: skip
def test_a_call_that_the_provider_ran(item: Any, name: str, args: Any, outcome: Any) -> None:
    call, found = parse_provider_call({"id": 5, **item})
    assert (call.name, call.args, call.id, found) == (name, args, "5", outcome)
    assert call.is_provider_executed
    assert parse_provider_call({"id": "a", "call_id": "b", **item})[0].id == "b"


def test_fields_of_such_a_call_that_are_not_read() -> None:
    item = {"type": "x_call", "environment": NOTE, "pending_safety_checks": [NOTE], "tools": [NOTE]}
    assert list(unplaced_in_provider_call(item)) == []
    (found,) = unplaced_in_provider_call({**item, "acknowledged_safety_checks": [NOTE], "other": NOTE})
    assert found.names == ("other",)
