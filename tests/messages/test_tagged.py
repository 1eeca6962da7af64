"""Calls that a model writes between tags, and texts that only show what such a call looks like."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.records import Conversation
from agenteval.scoring.detectors.conversation import Conversation as Seen
from agenteval.scoring.detectors.table import DETECTORS
from tests.support.recorded import read as read_log

ASKED = {"role": "user", "content": "Please fell the ash at plot 12."}
CALL = '<tool_call>\n{"name": "fell_tree", "arguments": {"plot": 12}}\n</tool_call>'
RESULT = '<tool_response>\n{"done": true}\n</tool_response>'
TOOLS = [
    {
        "name": "fell_tree",
        "parameters": {
            "type": "object",
            "properties": {"plot": {"type": "integer"}, "kind": {"type": "string"}},
        },
    }
]
CALLED = ("fell_tree", {"plot": 12}, '{"done": true}')
UNREAD = ("what looks like tool calls in a text of the agent was not read",)


def agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def tool(text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text}


END = agent("The ash at plot 12 is felled.")


def read(*messages: Any, **more: Any) -> Conversation:
    return read_log({"messages": [*messages], **more})


def calls(found: Conversation) -> list[tuple[str, Any, Any]]:
    every = (call for turn in found.talk.trajectory.all_turns for call in turn.tool_calls)
    return [(call.name, call.args, call.result.value if call.result else None) for call in every]


def texts(found: Conversation) -> list[list[str | None]]:
    return [[step.text for step in turn.steps] for turn in found.talk.trajectory.all_turns]


def labels(found: Conversation) -> set[str]:
    seen = Seen.of(found.talk.trajectory, tools={}, policy=found.policy)
    return {str(name) for name in DETECTORS if list(DETECTORS[name].find(seen))}


@pytest.mark.parametrize("result", [tool(RESULT), user(RESULT), tool('{"done": true}')])
def test_a_call_with_its_result(result: Any) -> None:
    found = read(ASKED, agent(CALL), result, END)
    assert calls(found) == [CALLED]
    assert texts(found) == [[None, END["content"]]]
    assert not found.notes
    assert not found.talk.orphans


@pytest.mark.parametrize(
    "text",
    [
        CALL.replace("\n", ""),
        CALL.removesuffix("\n</tool_call>"),
        "<tool_call>\n{'name': 'fell_tree', 'arguments': {'plot': 12}}\n</tool_call>",
        '<tool_call>\n{"arguments": {"plot": 12}, "name": "fell_tree"}\n</tool_call>',
        '<tool_call>\n{"name": "fell_tree", "arguments": "{\\"plot\\": 12}"}\n</tool_call>',
        '<tool_call>\n[{"name": "fell_tree", "arguments": {"plot": 12}}]\n</tool_call>',
        '<tool_call>\n```json\n{"name": "fell_tree", "arguments": {"plot": 12}}\n```\n</tool_call>',
        "<tool_call>\n<function=fell_tree>\n<parameter=plot>\n12\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>fell_tree\n<arg_key>plot</arg_key>\n<arg_value>12</arg_value>\n</tool_call>",
    ],
)
def test_calls_in_all_notations(text: str) -> None:
    assert calls(read(ASKED, agent(text), tool(RESULT), END)) == [CALLED]


def test_an_argument_between_tags_is_of_the_kind_that_its_tool_takes() -> None:
    text = "<tool_call>\n<function=fell_tree>\n<parameter=kind>\n7\n</parameter>\n</function>\n</tool_call>"
    assert calls(read(ASKED, agent(text), tool(RESULT), END, tools=TOOLS))[0][1] == {"kind": "7"}


def test_what_is_said_before_a_call_is_said() -> None:
    thought = '<think>Perhaps <tool_call>{"name": "wait"}</tool_call></think>\n'
    found = read(ASKED, agent(f"{thought}I start.\n{CALL}"), tool(RESULT), END)
    assert calls(found) == [CALLED]
    assert texts(found)[0][0] == f"{thought}I start."


def test_several_calls_and_results() -> None:
    other = CALL.replace("12", "13")
    for result in (user(f"{RESULT}\n{RESULT}"), tool(f"{RESULT}{RESULT}")):
        found = read(ASKED, agent(f"{CALL}\n{other}"), result, END)
        assert calls(found) == [CALLED, ("fell_tree", {"plot": 13}, '{"done": true}')]
    apart = read(ASKED, agent(CALL), tool(RESULT), agent(other), user(RESULT), END)
    assert len(calls(apart)) == 2
    assert all(result for *_, result in calls(apart))


def test_a_whole_run_in_one_text() -> None:
    found = read(ASKED, agent(f"{CALL}\n{RESULT}\n{END['content']}"))
    assert calls(found) == [CALLED]
    assert texts(found) == [[None, END["content"]]]


def test_what_a_user_says_behind_a_result_is_said() -> None:
    found = read(ASKED, agent(CALL), user(f"{RESULT}\nAnd the oak?"), END)
    assert [turn.user for turn in found.talk.trajectory.all_turns] == [ASKED["content"], "And the oak?"]


def test_a_result_without_the_name_of_its_tool() -> None:
    given = '<tool_response>\n{"name": "fell_tree", "content": {"error": "protected"}}\n</tool_response>'
    assert calls(read(ASKED, agent(CALL), tool(given), END))[0][2] == {"error": "protected"}


def test_a_list_of_results() -> None:
    each = '{"name": "fell_tree", "content": {"plot": %d}}'
    given = f"<tool_response>[{each % 12}, {each % 13}]</tool_response>"
    found = read(ASKED, agent(CALL + CALL.replace("12", "13")), tool(given), END)
    assert [result for *_, result in calls(found)] == [{"plot": 12}, {"plot": 13}]


def test_a_call_that_nobody_could_read_is_one() -> None:
    found = read(ASKED, agent(CALL.replace("12", "12m")), tool(RESULT), END)
    assert calls(found)[0][:2] == ("fell_tree", None)
    assert "malformed_arguments" in labels(found)


def test_an_error_in_a_tag_is_one() -> None:
    failed = RESULT.replace('{"done": true}', '{"error": "the ash is protected"}')
    again = read(ASKED, agent(CALL), tool(failed), agent(CALL), tool(failed), END)
    assert "ignored_tool_error" in labels(again)
    assert "ignored_tool_error" not in labels(read(ASKED, agent(CALL), tool(failed), END))


@pytest.mark.parametrize("system", ["Call tools as <tool_call>{…}</tool_call>.", "Be brief."])
def test_a_log_that_ends_with_a_call(system: str) -> None:
    declared = {} if "<tool_call>" in system else {"tools": TOOLS}
    found = read({"role": "system", "content": system}, ASKED, agent(CALL), **declared)
    assert calls(found) == [("fell_tree", {"plot": 12}, None)]


def test_shapes_of_data_sets() -> None:
    pairs = [("human", ASKED["content"]), ("gpt", CALL), ("tool", RESULT), ("gpt", END["content"])]
    found = read_log({"conversations": [{"from": f, "value": v} for f, v in pairs]})
    assert calls(found) == [CALLED]


# ── what only looks like a call ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("messages", "notes"),
    [
        ((agent(CALL), user("So that is what it looks like."), agent("Yes.")), UNREAD),
        ((agent(f"Write it so:\n```\n{CALL}\n```"), tool(RESULT), agent("Yes.")), UNREAD),
        ((agent(f"Write it so:\n```\n{CALL}\n```"), user("Thanks"), agent("Yes.")), ()),
        ((agent("It writes `<tool_call>` before a call."), user("Thanks"), agent("Yes.")), ()),
        ((agent("Write <tool_call>NAME</tool_call>."), user("Thanks"), agent("Yes.")), ()),
        ((agent('<functioncall> {"name": "fell_tree"}'), user("ok"), agent("Yes.")), UNREAD),
        ((agent('[TOOL_CALLS] [{"name": "fell_tree"}]'), user("ok"), agent("Yes.")), UNREAD),
    ],
)
def test_texts_that_are_no_calls(messages: Any, notes: Any) -> None:
    found = read(ASKED, *messages)
    assert calls(found) == []
    assert texts(found)[0][0] == messages[0]["content"]
    assert tuple(note for note in found.notes if "result" not in note) == notes


def test_results_that_a_user_shows_are_his_words() -> None:
    found = read(ASKED, agent("Show me what came back."), user(RESULT), agent("It is done."))
    assert [turn.user for turn in found.talk.trajectory.all_turns] == [ASKED["content"], RESULT]


def test_an_agent_with_calls_of_its_own_writes_none() -> None:
    made = {"id": "a", "type": "function", "function": {"name": "fell_tree", "arguments": "{}"}}
    found = read(ASKED, {**agent(""), "tool_calls": [made]}, tool("ok"), agent(CALL))
    assert calls(found) == [("fell_tree", {}, "ok")]


def test_an_example_beside_real_calls_is_none() -> None:
    example = agent(f"Like this:\n```\n{CALL}\n```")
    found = read(ASKED, agent(CALL), tool(RESULT), END, user("How do you write that?"), example)
    assert calls(found) == [CALLED]
