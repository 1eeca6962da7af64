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
from agenteval.messages.calls import parse_raw_call
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
