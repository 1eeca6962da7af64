"""What an endpoint tells of its own tool calls, in shapes of other libraries or in place of an answer."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from agenteval.adapters.agents.http import HttpAgents, read_reply
from agenteval.adapters.transport.client import HttpReply, Transport
from agenteval.adapters.transport.retry import RetryPolicy
from agenteval.core.config import AgentConfig
from agenteval.core.protocols import AgentReply, TurnTools
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import ToolResult, Turn
from agenteval.messages.agent_messages import read_turn
from tests.support.local_servers import LocalServer, Wire, respond_json
from tests.support.message_shapes import ARGS, CANCELLED, DONE, FOUND, NEW, SHAPES, TOOL_USE, calls_in, user

TURN = (Turn(user="Cancel it."),)


def replied(message: dict[str, Any], observed: str | None = None, **fields: Any) -> AgentReply:
    document = {"choices": [{"message": message, "finish_reason": "stop"}], **fields}
    return read_reply(HttpReply(200, {}, json.dumps(document), 1), observed=observed)


@pytest.mark.parametrize("shape", SHAPES)
def test_observed_messages_have_every_shape_too(shape: str) -> None:
    told = json.loads(json.dumps(SHAPES[shape], default=vars))
    reply = replied(DONE, "trace", trace=told)
    assert calls_in(read_turn(reply.messages, TURN).steps) == [CANCELLED]


def test_blocks_of_a_completion_are_read_and_counted_once() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "done"}, TOOL_USE]}
    for reply in (replied(message), replied(message, "trace", trace=[message])):
        (step,) = read_turn(reply.messages, TURN).steps
        assert (reply.text, step.text, calls_in([step])) == (None, "done", [("cancel", ARGS, None)])


def test_observed_messages_in_the_message_are_none_of_its_calls() -> None:
    reply = replied({**DONE, "tool_runs": NEW[:2]}, "choices.0.message.tool_runs")
    assert (reply.text, list(reply.messages)) == ("done", NEW[:2])


@pytest.mark.parametrize("role", ["tool", "user"])
def test_a_completion_of_somebody_else_is_no_answer(role: str) -> None:
    reply = replied({"role": role, "content": "done"})
    assert (reply.text, read_turn(reply.messages, TURN).steps) == (None, ())


@pytest.mark.parametrize("message", [{"content": "done"}, {"role": "bot", "content": "done"}])
def test_a_completion_without_a_known_role_is_the_agents(message: dict[str, Any]) -> None:
    reply = replied(message)
    steps = read_turn(reply.messages, TURN).steps
    assert [reply.text or "", *(step.text for step in steps)][-1] == "done"


def test_examples_of_the_configured_body_are_history() -> None:
    examples = [user("Cancel A-1."), *NEW]

    def behaviour(wire: Wire) -> None:
        sent = wire.request.json["messages"]
        respond_json({"choices": [{"message": DONE}], "trace": [*sent, *FOUND]})(wire)

    with LocalServer(behaviour) as server:
        config = AgentConfig(
            endpoint=server.url, body={"messages": examples}, observed_messages="trace", name="bot"
        )
        reply = asked(config, [user("Where is it?")])
    steps = read_turn(reply.messages, (Turn(user="Where is it?"),)).steps
    assert [name for name, _, _ in calls_in(steps)] == ["find"]


def asked(config: AgentConfig, messages: list[dict[str, Any]]) -> AgentReply:
    async def main() -> AgentReply:
        transport = Transport(retry=RetryPolicy())
        scenario = Scenario(id="s", name="s", turns=("x",))
        sample = Sample(key=SampleKey(scenario="s", agent="bot"), scenario=scenario)
        try:
            agent = HttpAgents(config, transport=transport).make(sample)
            return await agent.reply(messages, TurnTools(turn=0, schemas=(), call=no_call))
        finally:
            await transport.aclose()

    return anyio.run(main)


async def no_call(name: str, args: Any, batch: int) -> ToolResult:
    raise AssertionError(name)
