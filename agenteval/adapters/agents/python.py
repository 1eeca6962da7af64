"""An agent that is a Python function or class of the author's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from inspect import getattr_static, isclass, isfunction
from itertools import count
from math import inf
from types import MethodType
from typing import Any

from agenteval.adapters.agents.client_errors import is_infrastructure, is_timeout
from agenteval.adapters.transport.limits import Rate
from agenteval.conversation.deadlines import current
from agenteval.conversation.user_code import (
    DeadlineError,
    QuitError,
    contained,
    describe,
    is_async,
    misfit,
    takes_context,
    timed_call,
)
from agenteval.core.errors import (
    AgentError,
    AgentevalError,
    AuthorError,
    InfrastructureError,
    Place,
    Problem,
)
from agenteval.core.protocols import AgentReply, TurnTools
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message, ToolResult
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


class AgentContext:
    """What a Python agent gets as its second argument.

    ``tools``: the declared tools as JSON Schemas in OpenAI's format. ``scenario_id``, ``turn`` and
    ``epoch`` (both from 0) and ``seed`` (63 bits, the sample's own) say where it is.
    """

    def __init__(
        self,
        sample: Sample,
        tools: TurnTools,
        loop: asyncio.AbstractEventLoop,
        batches: Iterator[int] | None = None,
    ) -> None:
        self._tools = tools
        self._tool_time = _ToolTime()
        self._batches = batches or count(1)
        self._loop = loop
        self._lock = threading.Lock()
        self._in_flight = 0
        self._batch = 0
        self.scenario_id = sample.key.scenario
        self.epoch = sample.key.epoch
        self.seed = sample.seed
        self.turn = tools.turn
        self.tools: list[dict[str, Any]] = deepcopy(list(tools.schemas))

    async def call_tool(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """Call a tool of the scenario's world. Returns the value that its result stands for, an error
        as ``{"error": …}``; does not raise for one. Calls made at the same time are one step."""
        with self._flying() as batch:
            try:
                return _copied(await asyncio.wrap_future(self._ask(name, args, batch)))
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) and task.cancelling():
                    raise  # the agent's own
                raise asyncio.CancelledError(_OVER) from None

    def call_tool_sync(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """The same for code that cannot await: from any thread."""
        with self._flying() as batch:
            try:
                return _copied(self._ask(name, args, batch).result())
            except CancelledError:
                raise SystemExit(_OVER) from None  # ends a thread without a word

    def _ask(self, name: str, args: Any, batch: int) -> Future[ToolResult]:
        read, raw = chat.read_arguments(args)  # here and now: the agent may change them afterwards
        called = chat.whole(name) if isinstance(name, str) else name
        call = self._resolved(called, read if raw is None else raw, batch)
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop)
        except RuntimeError:  # the run is over, and its loop closed
            call.close()
            (gone := Future[ToolResult]()).cancel()
            return gone

    async def _resolved(self, name: str, args: Any, batch: int) -> ToolResult:
        with self._tool_time.running():
            return await self._tools.call(name, args, batch)

    @contextmanager
    def _flying(self) -> Iterator[int]:
        """A call's batch: that of the calls which are under way, else a new one."""
        with self._lock:
            if not self._in_flight:
                self._batch = next(self._batches)
            self._in_flight += 1
            batch = self._batch
        try:
            yield batch
        finally:
            with self._lock:
                self._in_flight -= 1


_OVER = "the conversation is over; its tools cannot be called any more"


def _copied(result: ToolResult) -> Any:
    """The agent may do to a result what it likes; the record stays as it was."""
    return deepcopy(result.value)


class PythonAgents:
    """Makes agents from a function, or from a class (one instance for each sample)."""

    def __init__(
        self, target: Any, *, timeout_s: float, place: Place | None = None, rate: Rate | None = None
    ) -> None:
        if not callable(target):
            what = f"the agent is a {type(target).__name__}; expected a function or a class"
            raise AuthorError(Problem(what, "", place))
        if isclass(target) and not any("__call__" in vars(cls) for cls in target.__mro__):
            raise AuthorError(Problem(f"the agent class {target.__name__} has no __call__", "", place))
        if problem := _misfit(target):
            raise AuthorError(Problem(*problem, place))
        self._target = target
        self._timeout_s = timeout_s
        self._rate = rate

    def make(self, sample: Sample) -> PythonAgent:
        return PythonAgent(self._target, sample, timeout_s=self._timeout_s, rate=self._rate)

    async def aclose(self) -> None:
        """Nothing is held."""


def _misfit(target: Callable[..., Any]) -> tuple[str, str] | None:
    """Why an agent cannot be called, and a remedy; where its signature tells."""
    entry: Callable[..., Any] = target
    if isclass(target):
        if shape := misfit(target, 0):
            remedy = "give each parameter of its __init__ a default, or name a function that makes it"
            return f"the agent's class is called without arguments, and cannot be: {shape}", remedy
        method = getattr_static(target, "__call__")
        if not isfunction(method):
            return None
        entry = MethodType(method, object())
    if shape := misfit(entry, 1 + takes_context(entry)):
        remedy = "let it take messages, or messages and ctx, by position; give other parameters a default"
        return f"the agent cannot be called with messages and ctx: {shape}", remedy
    return None


class PythonAgent:
    """One conversation's agent. An instance of a class is made when the first message comes, where
    the author's code runs, under the same deadline."""

    def __init__(
        self, target: Callable[..., Any], sample: Sample, *, timeout_s: float, rate: Rate | None = None
    ) -> None:
        self._target = target
        self._instance: Callable[..., Any] | None = None if isclass(target) else target
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
                self._entry(), messages, context, timeout_s=self._timeout_s, excused_s=context._tool_time
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

    def _entry(self) -> Callable[..., Any]:
        """The agent as a function of messages and context, async as the agent is."""
        if is_async(self._target):

            async def ask(messages: list[Message], context: AgentContext) -> Any:
                return await self._made()(*self._arguments(messages, context))

            return ask
        return lambda messages, context: self._made()(*self._arguments(messages, context))

    def _made(self) -> Callable[..., Any]:
        if self._instance is None:
            self._instance = self._target()
        return self._instance

    def _arguments(self, messages: list[Message], context: AgentContext) -> tuple[Any, ...]:
        return (messages, context) if takes_context(self._made()) else (messages,)


def whose_fault(error: BaseException) -> AgentError | InfrastructureError:
    """An exception of the agent's code is the agent's fault, unless it tells of a network, of access
    or of a provider that is down: those would hit any agent. One that was raised ``from`` such an exception
    tells of it, too; one that merely came up while it was handled does not."""
    causes = list(_leaf_errors(error))
    if causes and all(map(_tells_of_infrastructure, causes)):
        return InfrastructureError(describe(causes[0]))
    timed_out = all(map(is_timeout, causes))
    return AgentError(describe(causes[0]), kind="timeout" if timed_out else "exception")


def _tells_of_infrastructure(error: BaseException) -> bool:
    return any(all(map(is_infrastructure, _leaf_errors(each))) for each in _chain(error))


def _leaf_errors(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaf_errors(inner)
    elif isinstance(error, QuitError) and error.__cause__:
        yield from _leaf_errors(error.__cause__)
    else:
        yield error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that it was explicitly raised from."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__


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
