"""An agent that is a Python function or class of the author's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from itertools import count
from math import inf
from typing import Any

from agenteval.adapters.agents import AgentResources
from agenteval.adapters.transport.limits import Rate
from agenteval.conversation.deadlines import current
from agenteval.conversation.targets.calling import Played, refusal_of
from agenteval.conversation.targets.context import Context
from agenteval.conversation.targets.faults import contained, fault_of
from agenteval.conversation.user_code import DeadlineError, load, timed_call
from agenteval.core.config import AgentConfig
from agenteval.core.errors import (
    AgentError,
    AgentevalError,
    AuthorError,
    InfrastructureError,
    Mistake,
    Place,
    Problem,
)
from agenteval.core.protocols import AgentAdapter, AgentReply, TurnTools
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message
from agenteval.core.value import Value
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.endings import cut_of, last_answer


class _ToolTime:
    """How long tools were at work for the agent: that is their time, as for a call that it returns."""

    def __init__(self) -> None:
        self._now = current().share.now
        self._running = 0
        self._since = self._ended_s = 0.0

    def __call__(self) -> float:
        return self._ended_s + (self._now() - self._since if self._running else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._ended_s, self._since = self(), self._now()
        self._running += 1
        try:
            yield
        finally:
            self._ended_s, self._since = self(), self._now()
            self._running -= 1


class AgentContext(Context):
    """What a Python agent gets as its second argument; see ``Context``."""

    def __init__(
        self,
        sample: Sample,
        tools: TurnTools,
        loop: asyncio.AbstractEventLoop,
        batches: Iterator[int] | None = None,
    ) -> None:
        super().__init__(self._begin, batches or count(1))
        self._turn = tools
        self.tool_time = _ToolTime()
        self._loop = loop
        self.scenario_id = sample.key.scenario
        self.epoch = sample.key.epoch
        self.seed = sample.seed
        self.turn = tools.turn
        self.tools = deepcopy(list(tools.schemas))

    def _begin(self, name: Any, args: Any, batch: int) -> Future[Any]:
        read, raw = chat.read_arguments(args)  # here and now: the agent may change them afterwards
        called = chat.whole(name) if isinstance(name, str) else name
        call = self._resolved(called, read if raw is None else raw, batch)
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop)
        except RuntimeError:  # the run is over, and its loop closed
            call.close()
            (gone := Future[Any]()).cancel()
            return gone

    async def _resolved(self, name: str, args: Any, batch: int) -> Any:
        """The agent may do to a result what it likes; the record stays as it was."""
        with self.tool_time.running():
            return deepcopy((await self._turn.call(name, args, batch)).value)


class PythonAgents:
    """Makes agents from a function, or from a class (one instance for each sample)."""

    def __init__(
        self, target: Any, *, timeout_s: float, place: Place | None = None, rate: Rate | None = None
    ) -> None:
        if refused := refusal_of(target):
            raise AuthorError(Problem(*refused, place))
        self._target = target
        self._timeout_s = timeout_s
        self._rate = rate

    def make(self, sample: Sample) -> PythonAgent:
        return PythonAgent(self._target, sample, timeout_s=self._timeout_s, rate=self._rate)

    async def aclose(self) -> None:
        """Nothing is held."""


class PythonAgent:
    """One conversation's agent."""

    def __init__(
        self, target: Callable[..., Any], sample: Sample, *, timeout_s: float, rate: Rate | None = None
    ) -> None:
        self._played = Played(target)
        self._sample = sample
        self._timeout_s = timeout_s
        self._rate = rate
        self._batches = count(1)

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        if self._rate:
            (await self._rate.book()).sent()
        context = AgentContext(self._sample, tools, asyncio.get_running_loop(), self._batches)
        try:
            value, elapsed_s = await timed_call(
                self._played.entry(),
                messages,
                context,
                timeout_s=self._timeout_s,
                excused_s=context.tool_time,
            )
            with contained():
                reply = read_reply(value)
        except (AgentevalError, asyncio.CancelledError):
            raise
        except DeadlineError:
            what = f"no answer within {self._timeout_s:g} s"
            raise AgentError(what, kind="timeout") from None
        except Exception as error:
            raise whose_fault(error) from error
        return reply if reply.latency_ms is not None else replace(reply, latency_ms=elapsed_s * 1000)


def whose_fault(error: BaseException) -> AgentError | InfrastructureError:
    """What an exception of the agent's code is to a run."""
    fault = fault_of(error)
    if fault.kind == "infrastructure":
        return InfrastructureError(fault.text)
    return AgentError(fault.text, kind=fault.kind)


def read_reply(value: Any) -> AgentReply:
    """Any of the documented return styles as an ``AgentReply``. Raises ``AgentError`` for others."""
    if isinstance(value, AgentReply):
        return _read_agent_reply(value)
    if value is None or isinstance(value, str):
        return AgentReply(text=value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return AgentReply(messages=_read_messages(value))
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return _read_mapping(value)
    raise AgentError(
        f"the agent returned {type(value).__name__}; expected the answer's text, an assistant message, the"
        " list of this turn's messages, or an AgentReply",
        kind="protocol",
    )


def _read_agent_reply(reply: AgentReply) -> AgentReply:
    """Checked; ``text`` may be any of the other return styles."""
    inner = AgentReply(reply.text) if isinstance(reply.text, str | None) else read_reply(reply.text)
    listed: Any = reply.messages or ()
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        raise AgentError(f"AgentReply.messages is {type(listed).__name__}, expected a list", kind="protocol")
    return AgentReply(
        inner.text,
        [
            *inner.tool_calls,
            *(call for call in chat.calls_of(reply.tool_calls) if call not in inner.tool_calls),
        ],
        _both(_read_messages(listed), inner.messages),
        reply.usage if reply.usage is not None else inner.usage,
        latency_ms=_time(reply.latency_ms),
        extra=reply.extra,
        alone=reply.alone or (inner.alone and not listed),
    )


def _read_messages(listed: Sequence[Any], around: Any = None) -> list[Message]:
    """Messages of a turn, of which the last is the answer; ``around``: what they came in."""
    messages = [foreign.as_message(message) for message in listed]
    _check_whole(last_answer(listed), around)
    return messages


def _check_whole(answer: Any, around: Any = None) -> None:
    """Raises ``AgentError`` for an answer that was cut off, whatever of it there is."""
    if cut := cut_of(answer, around):
        remedy = " — raise the agent's token limit?" if cut.at_limit else ""
        raise AgentError(f"the agent's reply {cut.what}{remedy}", kind="protocol")


def _both(listed: Sequence[Message], more: Sequence[Message]) -> Sequence[Message]:
    """Two lists of messages as one. Who gives a list twice, or its last message once more, means it once."""
    return listed if not more or list(more) == list(listed[-len(more) :]) else [*listed, *more]


def _time(value: Any) -> float | None:
    """A time that an agent told, if it is one: we take our own else. JSON, and so the journal, has no NaN."""
    return value if isinstance(value, int | float) and 0 <= value < inf else None


def _read_mapping(value: Mapping[str, Any]) -> AgentReply:
    if "choices" in value:  # a whole completion of a client library
        return _read_completion(value)
    if not value.keys() & {"role", "content", "tool_calls", "messages", "function_call", "refusal"}:
        raise AgentError(
            f"the agent returned a mapping with {', '.join(map(str, list(value)[:5])) or 'nothing'};"
            " expected an assistant message with content or tool_calls",
            kind="protocol",
        )
    if isinstance(listed := value.get("messages"), Sequence) and not isinstance(listed, str):
        return _read_listed(listed, {key: told for key, told in value.items() if key != "messages"})
    _check_whole(value)
    message, is_plain = foreign.answer_in(value)
    if not is_plain:
        usage = value.get("usage") or value.get("usage_metadata")
        return AgentReply(messages=[message], usage=usage, alone=True)
    calls = list(chat.calls_of(message.get("tool_calls")))
    if legacy := message.get("function_call"):
        calls.append(legacy)
    step = chat.step_of({**message, "tool_calls": None, "function_call": None})
    usage = value.get("usage") or value.get("usage_metadata")
    return AgentReply(step.text, calls, usage=usage, extra=step.extra)


def _read_listed(listed: Sequence[Any], beside: Mapping[str, Any]) -> AgentReply:
    """Messages, as graphs return them in their state; with ``content``, a message that has its turn's."""
    reply = AgentReply(messages=_read_messages(listed, beside), usage=beside.get("usage"))
    if "content" not in beside:
        return reply
    inner = _read_mapping(beside)
    return replace(inner, messages=_both(reply.messages, inner.messages), alone=False)


def _read_completion(value: Mapping[str, Any]) -> AgentReply:
    try:
        choice = value["choices"][0]
        message = choice["message"]
        _check_whole(message, choice)
        return _read_mapping({**message, "usage": value.get("usage")})
    except (LookupError, TypeError):
        raise AgentError(
            "the agent returned a completion without choices[0].message", kind="protocol"
        ) from None


# ── the adapter ──────────────────────────────────────────────────────────────────────────────────

_EXAMPLE = "target: my_agent.py:agent"


class PythonOptions(Value):
    """What an author writes of an agent in Python, beside what is asked of every agent."""

    target: str | None = None


def _mistakes(own: Mapping[str, Any]) -> Iterator[Mistake]:
    target = own.get("target")
    if target == "":
        yield Mistake("the agent's target is empty", f"write {_EXAMPLE}", ("target",))
    elif not target:
        yield Mistake("an agent of type python needs target", f"write {_EXAMPLE}", ("target",))
    elif isinstance(target, str):
        location, colon, attribute = target.rpartition(":")
        if not (location and colon and attribute):
            remedy = "write file.py:name or package.module:name"
            yield Mistake("the target names no attribute", remedy, ("target",))


def _agents(agent: AgentConfig, options: PythonOptions, resources: AgentResources) -> PythonAgents:
    place = resources.place_of(agent, "target")
    target = load(options.target or "", resources.config.root, what=f"agent '{agent.name}'", place=place)
    rate = resources.limits().rate("agent", agent.name, requests=agent.requests_per_minute)
    return PythonAgents(target, timeout_s=agent.timeout_s, place=place, rate=rate)


ADAPTER = AgentAdapter(_agents, PythonOptions, _mistakes, example=_EXAMPLE)
