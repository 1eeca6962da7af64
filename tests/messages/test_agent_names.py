"""Which agent of several a message says it is from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from agenteval.adapters.agents.command import parse_program_answer
from agenteval.core.trajectory import Step, Turn
from agenteval.importers.exchanges import LoggedMessages
from agenteval.importers.turns import parse_conversation
from agenteval.messages.agent_messages import read_turn
from agenteval.messages.agent_names import agent_of
from agenteval.messages.agent_reply import parse_reply
from tests.support.message_shapes import asks, result, says
from tests.support.recorded import read

ARGS = '{"id": "1"}'


def heard(messages: list[Any]) -> list[Step]:
    return list(read_turn(parse_reply(messages).messages, (Turn(user="Hi"),)).steps)


def recorded(messages: list[Any]) -> list[Step]:
    return list(parse_conversation(LoggedMessages(messages), lambda _: None).trajectory.turns[-1].steps)


def who(steps: list[Step]) -> list[str]:
    return [step.agent for step in steps]


@dataclass
class Agent:
    name: str
    instructions: str = "Help."


class AIMessage(BaseModel):
    type: str = "ai"
    content: Any = "Yes."
    name: str | None = None
    tool_calls: list[Any] = []


NAMED: dict[str, dict[str, Any]] = {
    "name": {"name": "billing"},
    "agent": {"agent": "billing"},
    "agent with a name": {"agent": {"name": "billing", "tools": []}},
    "an object": {"agent": Agent("billing")},
    "agent_name": {"agent_name": "billing"},
    "sender": {"sender": "billing"},
    "source": {"source": "billing"},
    "author": {"author": "billing"},
    "an agent's name before a message's": {"agent": "billing", "name": "assistant"},
}


@pytest.mark.parametrize("shape", NAMED)
def test_messages_name_their_agent(shape: str) -> None:
    message = {"role": "assistant", "content": "Yes.", **NAMED[shape]}
    assert who(heard([message])) == ["billing"]
    assert parse_reply(message).agent == "billing"
    if shape != "an object":
        assert who(recorded([{"role": "user", "content": "Hi"}, message])) == ["billing"]


def test_a_message_of_langchain_in_parts_and_with_calls() -> None:
    call = {"name": "find", "args": {}, "id": "c", "type": "tool_call"}
    parts = [{"type": "text", "text": "Wait."}, {"type": "tool_use", "id": "c", "name": "find", "input": {}}]
    for content in ("Wait.", parts):
        steps = heard(
            [AIMessage(content=content, name="triage", tool_calls=[call]), AIMessage(name="billing")]
        )
        assert who(steps) == ["triage", "billing"]
        assert [call.agent for step in steps for call in step.tool_calls] == ["triage"]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "Yes."},
        {"role": "assistant", "content": "Yes.", "name": None},
        {"role": "assistant", "content": "Yes.", "name": "  "},
        {"role": "assistant", "content": "Yes.", "author": "assistant"},
        {"role": "assistant", "content": "Yes.", "source": "model"},
        {"role": "assistant", "content": "Yes.", "agent": 7},
        {"role": "assistant", "content": "Yes.", "agent": Agent},
        {"role": "assistant", "content": "Yes.", "metadata": {"langgraph_node": "billing"}},
    ],
)
def test_nobody_is_guessed(message: dict[str, Any]) -> None:
    assert who(heard([message])) == [""]


def test_the_name_of_a_call_is_the_tools() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "ok"}
    assert agent_of(item) == ""
    assert who(heard([item, output, says("Yes.")])) == ["", ""]
    assert who(heard([{**item, "agent": "triage"}, output, says("Yes.")])) == ["triage", ""]


def items(*, named: bool) -> list[dict[str, Any]]:
    """What the Agents SDK gives: a hand-off, a call, an answer."""
    told = [
        (
            "triage",
            {"type": "function_call", "call_id": "1", "name": "transfer_to_billing", "arguments": "{}"},
        ),
        ("triage", {"type": "function_call_output", "call_id": "1", "output": '{"assistant": "billing"}'}),
        ("billing", {"type": "function_call", "call_id": "2", "name": "refund", "arguments": ARGS}),
        ("billing", {"type": "function_call_output", "call_id": "2", "output": "done"}),
        (
            "billing",
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ok."}]},
        ),
    ]
    return [{**item, "agent": agent} if named else item for agent, item in told]


def test_items_of_the_agents_sdk() -> None:
    user = {"role": "user", "content": "Hi"}
    for heard_as in (heard, recorded):
        assert who(heard_as([user, *items(named=True)])) == ["triage", "billing", "billing"]
        steps = heard_as([user, *items(named=False)])
        assert who(steps) == ["", "billing", "billing"]
        assert [call.agent for step in steps for call in step.tool_calls] == ["", "billing"]


def test_a_hand_off_ends_with_the_turn_and_where_messages_name_their_agents() -> None:
    talk = [{"role": "user", "content": "Hi"}, *items(named=False), {"role": "user", "content": "Thanks."}]
    assert who(recorded([*talk, says("Bye.")])) == [""]
    assert who(heard([*items(named=False), {**says("Bye."), "name": "farewell"}, says("Bye.")])) == [
        *("", "billing", "billing"),
        *("farewell", ""),
    ]


def test_what_a_tool_gives_is_no_hand_off() -> None:
    given = result(text='{"assistant": "Dr. House"}')
    assert who(heard([asks(), given, says("Yes.")])) == ["", ""]


def test_logs_of_adk_name_their_agents_and_their_usage() -> None:
    took = {"promptTokenCount": 50, "candidatesTokenCount": 2}
    call = {"functionCall": {"id": "c", "name": "find", "args": {}}}
    given = {"functionResponse": {"id": "c", "name": "find", "response": "ok"}}
    events = [
        {"author": author, "invocationId": "i", "content": {"role": role, "parts": [part]}, **more}
        for author, role, part, more in [
            ("user", "user", {"text": "Hi"}, {}),
            ("triage", "model", call, {"usageMetadata": took}),
            ("triage", "user", given, {}),
            ("billing", "model", {"text": "Yes."}, {"usageMetadata": took}),
        ]
    ]
    (turn,) = read({"id": "1", "events": events}).parsed.trajectory.turns
    assert turn.spoken == ("triage", "billing")
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.usage.calls) == (100, 4, 2)


def test_programs_and_endpoints_name_the_agent_of_one_answer() -> None:
    assert parse_program_answer({"text": "Yes.", "agent": "billing"}).agent == "billing"
    assert (
        parse_program_answer({"role": "assistant", "content": "Yes.", "name": "billing"}).agent == "billing"
    )
    completion = {"choices": [{"message": {"role": "assistant", "content": "Yes.", "name": "billing"}}]}
    assert parse_reply(completion).agent == "billing"
