"""What does a reply with a thousand tool calls cost, and is it linear?

::

    python benchmarks/calls.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import anyio

from agenteval.conversation.simulate import ToolWorld, converse
from agenteval.conversation.user import ScenarioUser
from agenteval.core.protocols import AgentReply, TurnTools
from agenteval.core.scenario import (
    ExpectedCall,
    MatchMode,
    Sample,
    SampleKey,
    Scenario,
    ToolCallsExpectation,
)
from agenteval.core.trajectory import Message, ToolCall, ToolResult
from agenteval.scoring.checks.call_matching import compare, describe
from agenteval.scoring.checks.expectations import conversation_checks

SCENARIO = {
    "id": "calls",
    "turns": ["go"],
    "tools": {
        "pay": {
            "parameters": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "amount": {"type": "number"}},
                "required": ["id"],
            },
            "returns": {"ok": True, "id": "${args.id}"},
        }
    },
    "expect": {"tool_calls": {"calls": [{"name": "pay", "args": {"id": "A1", "amount": 1}}]}},
}


class Agent:
    """Asks for ``count`` calls in its first reply; or has made them itself (``lists``)."""

    def __init__(self, count: int, *, lists: bool) -> None:
        self._lists = lists
        self._calls = [
            {
                "id": f"c{n}",
                "function": {"name": "pay", "arguments": json.dumps({"id": f"A{n}", "amount": n})},
            }
            for n in range(count)
        ]

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        if any(message["role"] == "tool" for message in messages):
            return AgentReply(text="Done.")
        if not self._lists:
            return AgentReply(tool_calls=self._calls)
        answers = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in self._calls]
        asked = {"role": "assistant", "content": None, "tool_calls": self._calls}
        return AgentReply(messages=[asked, *answers, {"role": "assistant", "content": "Done."}])


async def converse_with(agent: Agent) -> None:
    scenario = Scenario.model_validate(SCENARIO)
    sample = Sample(key=SampleKey(scenario="calls", agent="bot", epoch=0), scenario=scenario, seed=0)

    async def no_function(*_: Any) -> ToolResult:
        raise NotImplementedError

    world = ToolWorld(sample, no_function)
    user = ScenarioUser(sample, max_turns=1)
    async for trajectory in converse(sample, user=user, make_agent=lambda: agent, world=world):
        ended = trajectory
    assert all(check.passed for check in conversation_checks(scenario, ended)), ended.stop


def cpu_s(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def compared(mode: MatchMode) -> None:
    calls = [ToolCall(name="pay", args={"id": f"A{n}", "amount": n}) for n in range(1000)]
    expected = tuple(ExpectedCall(name="pay", args={"id": f"A{n}", "amount": n}) for n in range(50))
    forbidden = tuple(ExpectedCall(name="pay", args={"id": f"B{n}"}) for n in range(50))
    describe(compare(ToolCallsExpectation(match=mode, calls=expected, forbidden=forbidden), calls))


def main() -> None:
    cpu_s(lambda: anyio.run(converse_with, Agent(2, lists=False)))
    print(f"{'':12}{'calls':>8}{'CPU s':>10}{'per call':>10}")
    for lists in (False, True):
        per_call = {}
        for count in (10, 100, 1000):
            agent = Agent(count, lists=lists)
            spent = min(cpu_s(lambda agent=agent: anyio.run(converse_with, agent)) for _ in range(3))
            per_call[count] = spent / count
            ratio = f"{per_call[count] / per_call[100]:.2f}" if count >= 100 else ""
            print(f"{'listed' if lists else 'asked for':12}{count:>8,}{spent:>10.3f}{ratio:>10}")
    for mode in MatchMode:
        print(f"{mode:12}{'1,000':>8}{min(cpu_s(lambda mode=mode: compared(mode)) for _ in range(3)):>10.3f}")


if __name__ == "__main__":
    main()
