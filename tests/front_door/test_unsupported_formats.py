"""Logs in forms that are not built in, as they were recorded: refused with the importer as remedy, never half
read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project
from tests.support.scored_logs import calling, expect, log, samples, score, summary, verdicts
from tests.support.scored_traces import OPEN, PASSED, reasons_of

OTHERS = sorted((Path(__file__).parents[1] / "data" / "other_formats").iterdir())
PARTLY = {"chat-history-chain": "'intermediate_steps'", "goose": "'toolRequest'", "haystack": "part"}
"""Those of which a text can be read: what was not read is named, and leaves checks of calls open."""
KEYS = {
    "agent-framework": "contents", "atif": "steps", "autogen": "source, type", "chat-history": "chat_history",
    "claude-code": "parentUuid", "claude-code-table": "conversation_id: c-1, c-2", "codex": "payload",
    "dialogues": "speaker, utterance", "elevenlabs": "message", "gemini-cli": "toolCalls",
    "langchain4j": "toolExecutionRequests", "letta": "message_type", "managed-agents": "processed_at",
    "mastra": "[part]", "openai-threads": "object, data", "opencode": "info, parts",
    "retell": "transcript_with_tool_calls", "semantic-kernel": "items", "sharegpt": "from, value",
    "spring-ai": "messageType", "vapi": "message", "ollama": "message, done",
    "ollama-stream": "response", "llama-index": "blocks",
    "wrapped": "values, next", "wrapped-messages": "event",
}  # fmt: skip
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}, {name: get_fare}]}"


def scored(project: Project, name: str, rule: str, *options: str, of: str = "c") -> Done:
    return score(project, name, *expect(project, {of: rule}), *options)


def test_a_form_that_is_not_built_in_is_refused_with_the_importer_to_write(project: Project) -> None:
    assert set(KEYS) | set(PARTLY) == {path.stem for path in OTHERS}
    for path in OTHERS:
        project.write(path.name, path.read_text(encoding="utf-8"))
    log(project, {"id": "good", "messages": [ASKED, TOLD]}, name="good.jsonl")
    rules = expect(project, {f"{name}.json:1": FORBIDDEN for name in PARTLY})
    score(project, "good.jsonl", *(path.name for path in OTHERS), *rules)
    found = samples(project)
    assert found.pop("good")["verdict"] == PASSED
    assert {sample["verdict"] for sample in found.values()} == {OPEN}
    for path in OTHERS:
        records = [sample for id_, sample in found.items() if id_.startswith(f"{path.name}:")]
        if path.stem in PARTLY:
            (sample,) = records
            (check,) = [each for each in sample["checks"] if each["name"] == "tool_calls"]
            assert (check["passed"], PARTLY[path.stem] in check["detail"]) == (None, True), path.name
            continue
        assert {sample["fault"] for sample in records} == {"recording"}, path.name
        reasons = "\n".join(sample["reason"] for sample in records)
        assert KEYS[path.stem] in reasons, path.name
        assert ("docs/importers.md" in reasons) is (path.stem != "claude-code-table"), path.name


ASKED, TOLD = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Done."}

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


def talk(name: str, *answers: str) -> dict[str, Any]:
    said = [{"role": "assistant", "content": text} for text in answers]
    tools = [{"type": "function", "function": {"name": each}} for each in NAMES]
    messages = [each for answer in said for each in (ASKED, answer)]
    return {"id": name, "tools": tools, "messages": messages}


def test_a_text_that_looks_like_a_call_decides_no_check_of_calls(project: Project) -> None:
    texts = NOTATIONS | NOTHING
    log(project, *(talk(name, text) for name, text in texts.items()))
    open_, decided = dict.fromkeys(NOTATIONS, OPEN), dict.fromkeys(NOTHING, PASSED)
    for rule in (FORBIDDEN, "tool_calls: none"):
        score(project, "log.jsonl", *expect(project, dict.fromkeys(texts, rule)))
        assert verdicts(project) == open_ | decided
        assert all("text" in reasons_of(samples(project)[name]) for name in NOTATIONS)
        for name in NOTATIONS:
            asked = ("log.jsonl", *expect(project, {name: rule}), "-s", name)
            assert score(project, *asked, "--no-calls-in", name).code == 0, name
    score(project, "log.jsonl", *expect(project, dict.fromkeys(NOTATIONS, "output: {contains: [A-7]}")))
    assert set(verdicts(project).values()) == {PASSED}  # they are texts


MADE = [
    {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "cancel"}}]},
    TOLD,
]
WHOLE = {
    "messages": json.dumps(MADE),
    "parts": json.dumps([{"type": "text", "text": "Done."}, {"type": "tool_use", "name": "cancel"}]),
    "a message": json.dumps({"role": "assistant", "parts": [{"functionCall": {"name": "cancel"}}]}),
    "a response": json.dumps({"id": "r", "object": "chat.completion", "choices": [{"message": MADE[0]}]}),
    "in Python's notation": str(MADE),
}
CUT = {"nothing": "", "a character": "…", "dots": "..."}


OF_THE_AGENT = {
    "an object": '{"order": "A-7", "state": "sh',
    "a message": '{"message": "It is on its wa',
    "a list": '[{"order": "A-7", "state": "shipped"}',
}
"""Beginnings of answers in JSON, which are no messages."""


@pytest.mark.parametrize("form", ["a row", "a message"])
def test_a_message_that_is_cut_off_in_its_json_is_no_answer(project: Project, form: str) -> None:
    answers, expected = {}, {}
    for ending, end in CUT.items():
        for name, text in WHOLE.items():
            answers[f"{name}, {ending}"] = text.partition("cancel")[0] + end
            expected[f"{name}, {ending}"] = OPEN
        for name, text in OF_THE_AGENT.items():
            answers[f"answer: {name}, {ending}"] = text + end
            expected[f"answer: {name}, {ending}"] = PASSED
    row = {"tools": [{"name": "cancel"}], "question": "Hi"}
    log(project, *({"id": name, **row, "answer": text} if form == "a row" else talk(name, text)
                   for name, text in answers.items()))  # fmt: skip
    score(project, "log.jsonl", *expect(project, dict.fromkeys(answers, FORBIDDEN)))
    assert verdicts(project) == expected
    for name, sample in samples(project).items():
        assert expected[name] == PASSED or "JSON" in reasons_of(sample), name


def test_who_makes_calls_shows_what_they_look_like(project: Project) -> None:
    record = talk("c", "Hello", NOTATIONS["<tool_call>"])
    record["messages"][1:1] = [calling("look"), {"role": "tool", "tool_call_id": "1", "content": "x"}]
    log(project, record)
    assert scored(project, "log.jsonl", FORBIDDEN).code == 0


# ── lists that are no one conversation, people in one chat ───────────────────────────────────────


@pytest.mark.parametrize(
    ("messages", "facts"),
    [
        ([{**ASKED, "chat_id": "1"}, {**TOLD, "chat_id": "2"}], (" 2 ", "chat_id: 1, 2")),
        ([{**TOLD, "created_at": 2}, {**ASKED, "created_at": 1}], ("created_at",)),
    ],
)
def test_a_list_that_is_no_one_conversation_is_refused(
    project: Project, messages: Any, facts: tuple[str, ...]
) -> None:
    project.write("log.jsonl", json.dumps(messages))
    project.call("score", "log.jsonl").refuses("log.jsonl:1", *facts)
    project.write("log.jsonl", json.dumps([{**ASKED, "chat_id": "1"}, {**TOLD, "chat_id": "1"}]))
    assert project.call("score", "log.jsonl").code == 0


def test_the_people_in_a_group_chat_are_named(project: Project) -> None:
    people = [{**ASKED, "name": "Ann"}, {**ASKED, "name": "Bob"}, TOLD]
    for chat, is_named in ((people, True), (people[1:], False)):
        log(project, chat)
        score(project, "log.jsonl")
        notices = [each["text"] for each in summary(project)["notices"] if "Bob" in each["text"]]
        assert bool(notices) is is_named
        assert all("Ann, Bob" in text and "log.jsonl:1" in text for text in notices)


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
    whole = {"version": 2, "status": "success", "eval": {"task": "fares"}, "samples": [sample]}
    project.write("log.json", json.dumps(whole))
    done = scored(project, "log.json", "tool_calls: {calls: [{name: get_fare}]}", of="s-1")
    assert done.code == 0, done.all
    assert scored(project, "log.json", FORBIDDEN, of="s-1").code == 1
    (project.root / "log.eval").write_bytes(b"PK\x03\x04")
    project.call("score", "log.eval").refuses("log.eval", "inspect log convert --to json")


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
def test_a_returned_list_in_a_form_that_is_not_built_in_is_an_error(project: Project, around: str) -> None:
    project.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
    project.scenarios("{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: pay}]}}}")
    for messages, code in ((autogen("look"), 1), ([TOLD], 3)):
        project.agent(f"def agent(messages):\n    return {around.format(messages)}\n")
        done = project.run()
        assert done.code == code, done.all
        reason = project.sample()["reason"]
        assert (project.sample()["fault"] == "agent", " 3 messages" in reason) == (code == 1, code == 1)
        assert "empty" not in done.all


@pytest.mark.parametrize("line", ["[01.05.26, 09:12:03] Customer: Hi", "Customer: Hi"])
def test_a_text_that_is_no_json_is_for_an_importer(project: Project, line: str) -> None:
    project.write("chat.txt", f"{line}\n{line}\n")
    project.call("score", "chat.txt").refuses("chat.txt", "docs/importers.md")
    project.write("log.jsonl", '{"messages": [{"role": "user", \n')
    assert "importer" not in project.call("score", "log.jsonl").all
