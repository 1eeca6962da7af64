"""A row for something odd that servers do: how a real server plays it, and what is seen of it. The rows
are in ``tests/support/quirk_rows.py``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import anyio

from agenteval.adapters.agents.http import HttpAgents
from agenteval.adapters.transport.client import Transport
from agenteval.adapters.transport.retry import RetryPolicy
from agenteval.conversation.simulation import ToolWorld, run_conversation
from agenteval.conversation.user import ScenarioUser
from agenteval.core.config import AgentConfig
from agenteval.core.errors import InfrastructureError
from agenteval.core.protocols import ModelReply
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import Trajectory
from tests.support.local_servers import completion
from tests.support.model_bench import GOOD, Bench
from tests.support.model_servers import (
    Json,
    ModelServer,
    Play,
    Reply,
    answers,
    error,
)


@dataclass(frozen=True)
class Seen:
    """What came of a row. ``answer``: a model's value, or the agent's last text; ``failure``: the error."""

    asked: Sequence[Json]
    headers: Sequence[Mapping[str, str]]
    notices: Sequence[str]
    waits: Sequence[float]
    answer: Any = None
    failure: str = ""
    trajectory: Trajectory = field(default_factory=Trajectory)
    learned: Mapping[str, Any] = field(default_factory=dict)
    is_estimated: bool = False

    @property
    def told(self) -> str:
        """In a few words, for a table."""
        outcome = f"failed: {self.failure}" if self.failure else "answered"
        notes = [note.partition(": ")[2] or note for note in self.notices]
        return "; ".join([f"{len(self.asked)} requests", outcome, *dict.fromkeys(notes)])

    def last(self, role: str) -> Json:
        """The last message of a role that was sent."""
        found: Json = [m for m in self.asked[-1]["messages"] if m["role"] == role][-1]
        return found

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.asked[-1]["messages"]]


@dataclass(frozen=True)
class Row:
    """``server``: what it does, in words; ``plays``: the same, for real. ``does``: what we do. ``then``: what
    must have come of it. ``fails``: the row ends badly, as it should."""

    number: int
    who: Literal["model", "agent"]
    quirk: str
    server: str
    does: str
    plays: tuple[Play, ...]
    then: Callable[[Seen], bool] = lambda seen: True
    config: Mapping[str, Any] = field(default_factory=dict)
    turns: int = 1
    fails: bool = False

    def run(self) -> Seen:
        with ModelServer(*self.plays, answers() if self.who == "model" else bot()) as server:
            return (_ask_model if self.who == "model" else _ask_agent)(self, server)


def _ask_model(row: Row, server: ModelServer) -> Seen:
    bench = Bench(server.base_url, **row.config)
    answer, failure, is_estimated = None, "", False
    try:
        replies: list[ModelReply] = bench.ask(times=row.turns)
        answer, is_estimated = replies[-1].value, replies[-1].usage.estimated
    except InfrastructureError as caught:
        failure = str(caught)
    return Seen(
        server.asked,
        server.headers,
        bench.notices,
        bench.waits,
        answer,
        failure,
        learned=bench.capabilities.discovered,
        is_estimated=is_estimated,
    )


def _ask_agent(row: Row, server: ModelServer) -> Seen:
    notices: list[str] = []
    waits: list[float] = []
    url = f"{server.base_url}/chat/completions"
    config = AgentConfig(endpoint=url, timeout_s=20, **row.config)
    trajectory = anyio.run(_converse, config, row.turns, notices, waits)
    stop = trajectory.stop
    is_fault = stop is not None and stop.reason in ("agent_error", "infrastructure")
    failure = stop.detail if stop and is_fault else ""
    answer = trajectory.turns[-1].steps[-1].text if trajectory.turns else None
    return Seen(server.asked, server.headers, notices, waits, answer, failure, trajectory)


async def _converse(config: AgentConfig, turns: int, notices: list[str], waits: list[float]) -> Trajectory:
    clock = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds
        waits.append(seconds)

    questions = tuple(f"question {n}" for n in range(turns))
    scenario = Scenario(id="s", name="s", turns=questions, tools={"look_up": {"returns": 1}})
    sample = Sample(key=SampleKey(scenario="s", agent="a"), scenario=scenario)
    transport = Transport(retry=RetryPolicy(sleep=sleep, clock=lambda: clock, jitter=lambda: 0.0))
    agents = HttpAgents(config, transport=transport, notify=lambda text, _key: notices.append(text))
    user, world = ScenarioUser(sample, max_turns=9), ToolWorld(sample, _no_function)
    growing = run_conversation(sample, user=user, make_agent=lambda: agents.make(sample), world=world)
    grown = [trajectory async for trajectory in growing]
    await transport.aclose()
    return grown[-1]


async def _no_function(*_: Any) -> Any:
    raise AssertionError


# ── servers that play agents ─────────────────────────────────────────────────────────────────────

CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


def bot(*calls: Json, content: Any = None, **message: Any) -> Play:
    """Asks for tools (one, unless told otherwise), and answers once it has the results."""
    asks = completion(content, finish_reason="tool_calls", tool_calls=list(calls) or [CALL], **message)

    def play(asked: Json) -> Reply:
        is_answered = asked["messages"][-1]["role"] == "tool"
        return Reply(completion("Done.") if is_answered else asks)

    return play


def calls(function: Any, **fields: Any) -> Play:
    """A bot whose call has these arguments, and fields in place of the usual ones; ``None`` leaves one
    out."""
    call = {**CALL, "function": {"name": "look_up", "arguments": function}, **fields}
    return bot({key: value for key, value in call.items() if value is not None})


def calls_alone() -> Play:
    """A bot whose message with calls has no ``content`` at all."""
    play = bot()

    def without(asked: Json) -> Reply | None:
        reply = play(asked)
        assert reply
        message = reply.body["choices"][0]["message"]
        if "tool_calls" in message:
            del message["content"]
        return reply

    return without


def silent(text: str = "", **message: Any) -> Play:
    """Answers the first question with nothing at all, and all others with a word."""

    def play(asked: Json) -> Reply:
        is_first = sum(message["role"] == "user" for message in asked["messages"]) == 1
        return Reply(completion(text if is_first else "Done.", **(message if is_first else {})))

    return play


def checks(told: str, holds: Callable[[Json], bool], *, status: int = 400) -> Play:
    """Refuses, with these words, every message that does not hold."""

    def play(asked: Json) -> Reply | None:
        return None if all(map(holds, asked["messages"])) else error(told, status=status)

    return play


def checks_all(told: str, holds: Callable[[list[Json]], bool], *, status: int = 400) -> Play:
    def play(asked: Json) -> Reply | None:
        return None if holds(asked["messages"]) else error(told, status=status)

    return play


def alternates(messages: list[Json]) -> bool:
    roles = [m["role"] for m in messages if m["role"] != "system"]
    return all(one != other for one, other in pairwise(roles))


def is_whole(messages: list[Json]) -> bool:
    """Each call has one result, in order, before anybody else speaks; ids are unique."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if not waiting or waiting.pop(0) != message["tool_call_id"]:
                return False
            if not isinstance(message["content"], str):
                return False
        elif waiting:
            return False
        for call in message.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
            if call["id"] in seen or call.get("type") != "function":
                return False
            waiting.append(call["id"])
        seen = set(waiting)
    return not waiting


def stream(*chunks: Any, comments: bool = False) -> Reply:
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
    body = (": keep-alive\n\n" if comments else "").join(["", *events])
    return Reply(body, headers={"Content-Type": "text/event-stream"})


def piece(content: str | None = None, *, usage: Any = None, reason: str | None = None) -> Json:
    choices = [] if usage else [{"index": 0, "delta": {"content": content}, "finish_reason": reason}]
    return {"choices": choices, **({"usage": usage} if usage else {})}


def streams_only(asked: Json) -> Reply | None:
    if not asked.get("stream"):
        return error("This endpoint only supports streaming requests; set 'stream' to true.")
    said, counts = json.dumps(GOOD), {"prompt_tokens": 7, "completion_tokens": 3}
    return stream(piece(said[:9]), piece(said[9:], reason="stop"), piece(usage=counts), comments=True)


def needs_field(name: str, told: str) -> Play:
    return lambda asked: None if name in asked else error(told)


# ── what was sent and read ──────────────────────────────────────────────────────────────────────


def calls_of(seen: Seen) -> list[Any]:
    return [call for turn in seen.trajectory.turns for step in turn.steps for call in step.tool_calls]


def first_call(seen: Seen) -> tuple[Any, Any]:
    call = calls_of(seen)[0]
    return call.args, call.raw_args


def sent_calls(messages: list[Json]) -> list[Json]:
    return [call for message in messages for call in message.get("tool_calls") or ()]


def is_as_sent(message: Json, content: str | None) -> bool:
    """Whether an assistant's message with calls has this content."""
    return not message.get("tool_calls") or message.get("content", 0) == content


def ids_of(messages: list[Json]) -> list[str]:
    asked = [call["id"] for call in sent_calls(messages)]
    return asked + [m["tool_call_id"] for m in messages if m["role"] == "tool"]


def is_nine(call_id: str) -> bool:
    return re.fullmatch("[a-zA-Z0-9]{9}", call_id) is not None
