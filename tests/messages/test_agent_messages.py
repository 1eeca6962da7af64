"""Messages that an agent returns: in shapes of other libraries, among its history, in place of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from agenteval.core.errors import AgentError
from agenteval.core.protocols import AgentReply
from agenteval.core.trajectory import Step, ToolCall, ToolResult, Turn
from agenteval.messages import chat
from agenteval.messages.agent_messages import read_turn
from agenteval.messages.agent_reply import parse_reply
from tests.support.kit import Project
from tests.support.message_shapes import (
    ARGS,
    CANCELLED,
    DONE,
    FOUND,
    NEW,
    SHAPES,
    TOOL_USE,
    Block,
    asks,
    call,
    calls_in,
    result,
    says,
    user,
)


def heard(messages: Sequence[Any], *sent: Turn) -> tuple[list[Step], list[str]]:
    read = read_turn(parse_reply(list(messages)).messages, sent or (Turn(user="Cancel it."),))
    return list(read.steps), list(read.unplaced)


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_of_every_shape_are_read_with_their_results(shape: str) -> None:
    steps, told = heard(SHAPES[shape])
    assert calls_in(steps) == [("cancel", ARGS, "ok")]
    assert all(each.observed for step in steps for each in step.tool_calls)
    assert (steps[-1].text, told) == ("done", [])


def test_fields_of_a_plain_message_are_kept_and_its_arguments_read_strictly() -> None:
    steps, _ = heard([{**asks(call(arguments="{'id': 1}")), "reasoning_content": "hm"}, result(), DONE])
    assert steps[0].extra == {"reasoning_content": "hm"}
    assert (steps[0].tool_calls[0].args, steps[0].tool_calls[0].raw_args) == (None, "{'id': 1}")


def test_calls_that_stand_in_two_places_count_once_and_those_in_one_are_not_lost() -> None:
    block = {"type": "tool_use", "id": "t", "name": "pay", "input": {}}
    steps, _ = heard([{"role": "assistant", "content": [TOOL_USE, block], "tool_calls": [call("t")]}, DONE])
    assert [name for name, _, _ in calls_in(steps)] == ["cancel", "pay"]
    steps, _ = heard([{"role": "assistant", "content": [block], "tool_calls": [call("c")]}, DONE])
    assert sorted(name for name, _, _ in calls_in(steps)) == ["cancel", "pay"]


def test_results_find_their_calls_by_name_where_there_are_no_ids() -> None:
    given = [{"functionCall": {"name": name, "args": {}}} for name in ("a", "b")]
    back = [{"functionResponse": {"name": name, "response": name.upper()}} for name in ("b", "a")]
    steps, _ = heard([{"role": "model", "parts": given}, {"role": "user", "parts": back}, DONE])
    assert calls_in(steps) == [("a", {}, "A"), ("b", {}, "B")]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "", "toolCalls": [{"id": "1"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": "{}"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": {}}]},
    ],
)
def test_a_call_of_a_known_form_that_cannot_be_read_is_the_agents_failure(message: Any) -> None:
    with pytest.raises(AgentError, match=r"has no name|without a name") as caught:
        heard([message, DONE])
    assert caught.value.kind == "protocol"


# ── history ──────────────────────────────────────────────────────────────────────────────────────

OLD = ToolCall(name="find", args={"q": 1}, id="f1", observed=True, result=ToolResult(value="found"))
FIRST = Turn(user="Where is it?", steps=(Step(tool_calls=(OLD,)), Step(text="It is here.")))
SECOND = Turn(user="Cancel it.")
EARLIER = [user("Where is it?"), *FOUND, says("It is here.")]

HISTORIES = {
    "none": NEW,
    "whole": [*EARLIER, user("Cancel it."), *NEW],
    "with a system prompt": [{"role": "system", "content": "Be nice."}, *EARLIER, user("Cancel it."), *NEW],
    "summed up by the system": [{"role": "system", "content": "Summary"}, user("Cancel it."), *NEW],
    "summed up by the user": [user("So far: …"), user("Cancel it."), *NEW],
    "summed up by the agent": [says("So far: …"), user("Cancel it."), *NEW],
    "only its end": [*EARLIER[1:], user("Cancel it."), *NEW],
    "in prompts": [
        user("Question: Where is it?"),
        *EARLIER[1:],
        user("Question:  Cancel it.\nAnswer:"),
        *NEW,
    ],
    "in other words": [user("rewritten"), *EARLIER[1:], user("rewritten, too"), *NEW],
    "with a message within the turn": [*EARLIER, user("Cancel it."), *NEW[:2], user("Now answer."), DONE],
    "with the question once more": [*EARLIER, user("Cancel it."), *NEW[:2], user("Cancel it."), DONE],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_history_is_left_out_and_the_turn_is_whole(name: str) -> None:
    steps, _ = heard(HISTORIES[name], FIRST, SECOND)
    assert calls_in(steps) == [CANCELLED]
    assert (len(steps), steps[-1].text) == (2, "done")


@pytest.mark.parametrize(
    "inner",
    [
        [user("Now write the final answer.")],
        [user("Cancel it.")],
        [user("The user said: 'Cancel it.' Check the answer.")],
        [{"role": "user", "content": [{"type": "text", "text": "Go on."}]}],
    ],
)
def test_calls_before_a_message_of_a_framework_are_of_the_turn(inner: list[Any]) -> None:
    messages = [*NEW[:2], *inner, DONE]
    for sent in ((SECOND,), (FIRST, SECOND)):
        steps, _ = heard(messages, *sent)
        assert calls_in(steps) == [CANCELLED]
        assert steps[-1].text == "done"


def test_a_call_that_is_made_again_is_no_history() -> None:
    again = [*FOUND, user("Go on."), DONE]
    assert len(calls_in(heard(again, FIRST, SECOND)[0])) == 1
    assert len(calls_in(heard([*EARLIER, user("Cancel it."), *again], FIRST, SECOND)[0])) == 1
    assert len(calls_in(heard([*EARLIER, *again], FIRST, SECOND)[0])) == 1


def test_an_answer_or_a_question_that_is_there_by_chance_makes_no_history() -> None:
    result_like_answer = [*FOUND[:1], result("f9", "It is here."), user("Go on."), DONE]
    question_like_first = [*FOUND, user("Where is it?"), *NEW[:2], user("Go on."), DONE]
    assert len(calls_in(heard(result_like_answer, FIRST, SECOND)[0])) == 1
    assert len(calls_in(heard(question_like_first, FIRST, SECOND)[0])) == 2


def test_the_same_question_in_two_turns_is_not_mixed_up() -> None:
    again = Turn(user="Where is it?")
    whole = [*EARLIER, user("Where is it?"), *NEW]
    assert calls_in(heard(whole, FIRST, again)[0]) == [CANCELLED]
    within = [user("Where is it?"), *FOUND, user("Where is it?"), DONE]
    assert len(calls_in(heard(within, FIRST, again)[0])) == 1


def test_calls_of_the_turn_that_were_sent_are_not_counted_again() -> None:
    resolved = ToolCall(name="cancel", args=ARGS, id="x", result=ToolResult(value={"a": 1}))
    sent = SECOND.model_copy(update={"steps": (Step(tool_calls=(resolved,)),)})
    echo = [user("Cancel it."), asks(), result(text='{"a":1}')]
    assert calls_in(heard([*echo, DONE], FIRST, sent)[0]) == []
    assert calls_in(heard([*echo, *NEW], FIRST, sent)[0]) == [CANCELLED]
    # Whatever the agent made of its result, the call is the one that was answered.
    assert calls_in(heard(NEW, FIRST, sent)[0]) == []
    assert heard(echo, FIRST, sent)[0] == []


def test_unreadable_arguments_were_sent_back_as_none() -> None:
    broken = ToolCall(name="find", args=None, raw_args="{bad", result=ToolResult(value="no"))
    first = Turn(user="Where is it?", steps=(Step(tool_calls=(broken,)), Step(text="It is here.")))
    history = chat.to_chat_messages((first,))
    assert calls_in(heard([*history, user("Cancel it."), *NEW], first, SECOND)[0]) == [CANCELLED]


def test_a_message_that_was_put_in_last_is_still_to_be_answered() -> None:
    steps, _ = heard([*NEW, user("Are you sure?")])
    assert (calls_in(steps), steps[-1].text) == ([CANCELLED], None)


# ── one message ──────────────────────────────────────────────────────────────────────────────────


class Human(BaseModel):
    type: str = "human"
    content: str = "done"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "tool_call_id": "1", "content": "done"},
        {"role": "user", "content": "done"},
        {"role": "system", "content": "done"},
        {"from": "human", "content": "done", "role": "Human"},
        {"choices": [{"message": {"role": "user", "content": "done"}}]},
        Human(),
        AgentReply(text=Human()),  # type: ignore[arg-type]
    ],
)
def test_a_message_of_somebody_else_is_no_answer(message: Any) -> None:
    reply = parse_reply(message)
    assert (reply.text, list(reply.tool_calls)) == (None, [])
    assert read_turn(reply.messages, (SECOND,)).steps == ()


@pytest.mark.parametrize("role", ["wizard", "assistant", "model"])
def test_an_answer_in_a_role_of_its_own_is_the_agents(role: str) -> None:
    assert parse_reply({"role": role, "content": "done"}).text == "done"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": [{"type": "text", "text": "done"}, TOOL_USE]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}, Block()]},
        {"role": "assistant", "content": "done", "toolCalls": [{"name": "cancel", "args": ARGS}]},
        {"role": "wizard", "content": "done", "toolCalls": [{"name": "cancel", "args": ARGS}]},
        {
            "choices": [
                {"message": {"role": "assistant", "content": [{"type": "text", "text": "done"}, TOOL_USE]}}
            ]
        },
    ],
)
def test_calls_in_one_message_are_to_be_answered(message: Any) -> None:
    (step,) = read_turn(parse_reply(message).messages, (SECOND,)).steps
    assert (step.text, calls_in([step])) == ("done", [("cancel", ARGS, None)])


def test_nothing_is_lost_of_what_stands_side_by_side() -> None:
    state = parse_reply({"content": "done", "messages": NEW})
    assert (state.text, list(state.messages)) == ("done", NEW)
    asked = AgentReply(text=asks(call("a")), tool_calls=[call("b")], messages=NEW)  # type: ignore[arg-type]
    both = parse_reply(asked)
    assert ([each["id"] for each in both.tool_calls], list(both.messages)) == (["a", "b"], NEW)


# ── through the command line ─────────────────────────────────────────────────────────────────────

AGENT = """
CALL = {"type": "tool_use", "id": "t", "name": "cancel", "input": {}}
BACK = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
SAYS = {"role": "assistant", "content": "done"}

def blocks(messages):
    return [{"role": "assistant", "content": [CALL]}, BACK, SAYS]

def events(messages):
    return [{"event": "tool_start", "tool": "cancel"}, SAYS]

def echo(messages):
    return messages[-1]

def sparkle(messages):
    return [{"role": "sparkle", "content": "x"}, SAYS]

def whole(messages):
    system = {"role": "system", "content": "x"}
    return [system, *messages, {"role": "assistant", "content": [CALL]}, BACK, SAYS]
"""
EXPECT = "output: {contains: [done]}"
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}]}"
ONE_EACH = "tool_calls: {match: strict, calls: [{name: cancel}, {name: cancel}]}"


def test_what_a_run_makes_of_it(project: Project) -> None:
    project.agent(AGENT)
    names = ("blocks", "events", "echo", "sparkle", "whole")
    project.config(
        "agents:\n" + "".join(f"  {name}: {{target: 'agent.py:{name}'}}\n" for name in names),
        target="agent.py:blocks",
    )
    rows = [f"  - {{id: {name}, agent: {name}, turns: [Is it done?], expect: {{{EXPECT}, {FORBIDDEN}}}}}\n"
            for name in names[:4]]  # fmt: skip
    rows.append(f"  - {{id: whole, agent: whole, turns: [one, two], expect: {{{ONE_EACH}}}}}\n")
    project.scenarios("scenarios:\n" + "".join(rows))
    done = project.run("--epochs", "2")
    samples = {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}
    assert {name: samples[name]["verdict"] for name in names} == {
        **dict.fromkeys(("blocks", "echo"), "failed"),
        **dict.fromkeys(("events", "sparkle"), "inconclusive"),
        "whole": "passed",
    }
    assert "unknown role 'sparkle'" in done.out
