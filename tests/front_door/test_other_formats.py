"""Logs in forms that are not built in, as they were recorded: refused in words, never half read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project

OTHERS = sorted((Path(__file__).parents[1] / "data" / "other_formats").iterdir())
PARTLY = {
    "chat-history-chain.json": "'intermediate_steps' of the record",
    "goose.json": "a part of the unknown type 'toolRequest'",
    "haystack.json": "a part of unknown type",
}
"""Those of which a text can be read: what was not read is named, and leaves checks of calls open."""
KEYS = {
    "agent-framework": "contents", "atif": "steps", "autogen": "source, type", "chat-history": "chat_history",
    "claude-code": "parentUuid", "claude-code-table": "conversation_id", "codex": "payload",
    "dialogues": "speaker, utterance", "elevenlabs": "message", "gemini-cli": "toolCalls",
    "langchain4j": "toolExecutionRequests", "letta": "message_type", "managed-agents": "processed_at",
    "mastra": "[part]", "openai-threads": "object, data", "opencode": "info, parts",
    "retell": "transcript_with_tool_calls", "semantic-kernel": "items", "sharegpt": "from, value",
    "spring-ai": "messageType", "vapi": "message", "ollama": "message, done",
    "ollama-stream": "a stream of an unknown kind", "llama-index": "blocks",
    "wrapped": "values, next", "wrapped-messages": "event",
}  # fmt: skip
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}, {name: get_fare}]}"


def words(text: str) -> str:
    return " ".join(text.split())


def scored(project: Project, name: str, expect: str, *options: str, where: str = "") -> Done:
    suite = f'scenarios:\n  - id: "{where or f"{name}:1"}"\n    turns: [Hi]\n    expect: {{{expect}}}\n'
    project.write("expected.yaml", suite)
    return project.call(
        "score", name, "--scenarios", "expected.yaml", "--report", "json=results.json", *options
    )


def checks(project: Project) -> dict[str, bool | None]:
    (scenario,) = project.results()["scenarios"]
    return {each["name"]: each["passed"] for each in scenario["samples"][0]["checks"]}


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_a_form_that_is_not_built_in_is_refused_in_words(project: Project, path: Path) -> None:
    project.write(path.name, path.read_text(encoding="utf-8"))
    if path.name in PARTLY:
        done = scored(project, path.name, FORBIDDEN)
        assert done.code == 3, done.all
        assert checks(project)["tool_calls"] is None
        assert f"{PARTLY[path.name]} was not read" in words(done.all)
        return
    done = project.call("score", path.name)
    assert done.code == 2, done.all
    said = words(done.all)
    assert KEYS[path.stem] in said
    is_named = "write an importer of its format (docs/importers.md)" in said
    assert is_named or "write each conversation as a separate record" in said
    assert "PASSED" not in said


def test_every_such_form_is_tried() -> None:
    assert {path.stem for path in OTHERS if path.name not in PARTLY} == set(KEYS)


# ── calls that are written into a text ───────────────────────────────────────────────────────────

NOTATIONS = {
    "Action:": 'Thought: I cancel it.\nAction: cancel\nAction Input: {"id": "A-7"}',
    "<tool_call>": 'Sure.\n<tool_call>\n{"name": "cancel", "arguments": {"id": "A-7"}}\n</tool_call>',
    "JSON": '[{"type": "tool_use", "id": "t", "name": "cancel", "input": {"id": "A-7"}}]',
    "cancel": '[cancel(id="A-7")]',
    "look": 'Action:\n```\n{"action": "look", "action_input": {"id": "A-7"}}\n```',
    "change_order": "I change it.\n<change_order>\n<id>A-7</id>\n</change_order>",
    "getOrder": "to=functions.getOrder A-7",
}
NAMES = ("cancel", "look", "change_order", "getOrder")
NOTHING = {
    "prose": "Take action: cancel the order in the shop.",
    "html": "Write <b>bold</b> as <strong>bold</strong>",
    "a list": "[see the terms](https://example.com/a(b))",
    "labels": "Action: none is needed.",
    "an object": '{"name": "Ann", "status": "not possible"}',
    "a word": "I cancel it, look (if you like) at your orders. An order is changed by change_orders.",
}


def talk(*answers: str, **more: Any) -> str:
    asked = {"role": "user", "content": "Hi"}
    said = [{"role": "assistant", "content": text} for text in answers]
    tools = [{"type": "function", "function": {"name": name}} for name in NAMES]
    messages = [each for answer in said for each in (asked, answer)]
    return json.dumps({"id": "c", "tools": tools, "messages": messages, **more})


@pytest.mark.parametrize("rule", [FORBIDDEN, "tool_calls: none"])
@pytest.mark.parametrize("name", NOTATIONS)
def test_a_text_that_looks_like_a_call_decides_no_check_of_calls(
    project: Project, name: str, rule: str
) -> None:
    project.write("log.jsonl", talk(NOTATIONS[name]))
    done = scored(project, "log.jsonl", rule, where="c")
    assert done.code == 3, done.all
    assert "what looks like a tool call in a text was not read" in words(done.all)
    assert scored(project, "log.jsonl", rule, "--no-calls-in", name, where="c").code == 0
    assert scored(project, "log.jsonl", "output: {contains: [A-7]}", where="c").code == 0  # it is a text


@pytest.mark.parametrize("name", NOTHING)
def test_a_text_that_looks_like_none_decides_as_ever(project: Project, name: str) -> None:
    project.write("log.jsonl", talk(NOTHING[name]))
    assert scored(project, "log.jsonl", FORBIDDEN, where="c").code == 0


MADE = [
    {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "cancel"}}]},
    {"role": "assistant", "content": "Done."},
]
WHOLE = {
    "messages": json.dumps(MADE),
    "parts": json.dumps([{"type": "text", "text": "Done."}, {"type": "tool_use", "name": "cancel"}]),
    "a message": json.dumps({"role": "assistant", "parts": [{"functionCall": {"name": "cancel"}}]}),
    "a response": json.dumps({"id": "r", "object": "chat.completion", "choices": [{"message": MADE[0]}]}),
    "in Python's notation": str(MADE),
}
CUT = {"nothing": "", "a character": "…", "dots": "..."}


@pytest.mark.parametrize("form", ["a row", "a message"])
@pytest.mark.parametrize("end", CUT)
@pytest.mark.parametrize("name", WHOLE)
def test_a_message_that_is_cut_off_in_its_json_is_no_answer_in_words(
    project: Project, name: str, end: str, form: str
) -> None:
    def code(answer: str) -> tuple[int, str]:
        row = {"id": "c", "tools": [{"name": "cancel"}], "question": "Hi", "answer": answer}
        project.write("log.jsonl", json.dumps(row) if form == "a row" else talk(answer))
        done = scored(project, "log.jsonl", FORBIDDEN, where="c")
        return done.code, words(done.all)

    seen, said = code(WHOLE[name].partition("cancel")[0] + CUT[end])
    assert seen == 3, said
    assert "JSON of messages that does not parse was not read" in said
    assert code('{"order": "A-7", "state": "sh' + CUT[end])[0] == 0  # an answer in JSON, and no message
    assert code('{"message": "It is on its wa' + CUT[end])[0] == 0
    assert code('[{"order": "A-7", "state": "shipped"}]'[:-1] + CUT[end])[0] == 0


def test_who_makes_calls_shows_what_they_look_like(project: Project) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    record = json.loads(talk("Hello", NOTATIONS["<tool_call>"]))
    made = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
    ]
    record["messages"][1:1] = made
    project.write("log.jsonl", json.dumps(record))
    assert scored(project, "log.jsonl", FORBIDDEN, where="c").code == 0


# ── lists that are no one conversation, people in one chat ───────────────────────────────────────

ASKED, TOLD = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Done."}


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([{**ASKED, "chat_id": "1"}, {**TOLD, "chat_id": "2"}], "to 2 conversations (chat_id: 1, 2)"),
        ([{**TOLD, "created_at": 2}, {**ASKED, "created_at": 1}], "the latest message comes first"),
    ],
)
def test_a_list_that_is_no_one_conversation_is_refused(project: Project, messages: Any, why: str) -> None:
    project.write("log.jsonl", json.dumps(messages))
    done = project.call("score", "log.jsonl")
    assert done.code == 2, done.all
    assert why in words(done.all)
    project.write("log.jsonl", json.dumps([{**ASKED, "chat_id": "1"}, {**TOLD, "chat_id": "1"}]))
    assert project.call("score", "log.jsonl").code == 0


def test_the_people_in_a_group_chat_are_told(project: Project) -> None:
    chat = [{**ASKED, "name": "Ann"}, {**ASKED, "name": "Bob"}, TOLD]
    project.write("log.jsonl", json.dumps(chat))
    done = project.call("score", "log.jsonl")
    assert "2 people write as the user (Ann, Bob): they are read as one (log.jsonl:1)" in words(done.all)
    project.write("log.jsonl", json.dumps([chat[0], TOLD]))
    assert "people" not in project.call("score", "log.jsonl").all


# ── logs of Inspect ──────────────────────────────────────────────────────────────────────────────


def test_a_log_of_inspect_is_read_as_json_and_its_archive_is_named(project: Project) -> None:
    call = {"id": "1", "function": "get_fare", "arguments": {"flight": "RX4417"}, "type": "function"}
    messages = [
        {"id": "a", "content": "Fare?", "source": "input", "role": "user"},
        {"id": "b", "content": "", "source": "generate", "role": "assistant", "tool_calls": [call]},
        {"id": "d", "content": "797", "role": "tool", "tool_call_id": "1", "function": "get_fare"},
        {"id": "e", "content": "It is 797.", "source": "generate", "role": "assistant"},
    ]
    choices = [{"message": messages[-1], "stop_reason": "stop"}]
    sample = {"id": "s-1", "epoch": 1, "input": "Fare?", "target": "797", "messages": messages}
    sample |= {"output": {"model": "m", "choices": choices}, "scores": {"match": {"value": "C"}}, "store": {}}
    log = {"version": 2, "status": "success", "eval": {"task": "fares"}, "samples": [sample]}
    project.write("log.json", json.dumps(log))
    done = scored(project, "log.json", "tool_calls: {calls: [{name: get_fare}]}", where="s-1")
    assert done.code == 0, done.all
    assert scored(project, "log.json", FORBIDDEN, where="s-1").code == 1
    (project.root / "log.eval").write_bytes(b"PK\x03\x04")
    done = project.call("score", "log.eval")
    assert done.code == 2
    assert "a log of Inspect" in done.err
    assert "inspect log convert --to json" in done.err


# ── what an agent returns ────────────────────────────────────────────────────────────────────────


def autogen(name: str) -> list[Any]:
    call = {"id": "1", "name": name, "arguments": "{}"}
    given = {"call_id": "1", "name": name, "content": "ok", "is_error": False}
    return [
        {"type": "ToolCallRequestEvent", "source": "a", "content": [call]},
        {"type": "ToolCallExecutionEvent", "source": "a", "content": [given]},
        {"type": "TextMessage", "source": "a", "content": "Done."},
    ]


@pytest.mark.parametrize("around", ["{}", "{{'messages': {}}}"])
def test_a_list_in_a_form_that_is_not_built_in_is_refused_in_words(project: Project, around: str) -> None:
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
    project.scenarios("{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: pay}]}}}")
    usual = [{"role": "assistant", "content": "Done."}]
    for messages, code in ((autogen("look"), 1), (usual, 3)):
        project.agent(f"def agent(messages):\n    return {around.format(messages)}\n")
        done = project.run()
        assert done.code == code, done.all
        told = "none of the 3 messages that the agent returned could be read" in words(done.all)
        assert told is (code == 1)
        assert "empty" not in done.all


@pytest.mark.parametrize("line", ["[01.05.26, 09:12:03] Customer: Hi", "Customer: Hi"])
def test_a_text_that_is_no_json_is_for_an_importer(project: Project, line: str) -> None:
    project.write("chat.txt", f"{line}\n{line}\n")
    done = project.call("score", "chat.txt")
    assert done.code == 2, done.all
    assert "write an importer of its format (docs/importers.md)" in words(done.all)
    project.write("log.jsonl", '{"messages": [{"role": "user", \n')
    assert "importer" not in words(project.call("score", "log.jsonl").all)
