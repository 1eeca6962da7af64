"""An agent that is a Python function or class of the author's."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable, Coroutine, Mapping, Sequence
from inspect import isclass
from typing import Any

import anyio

from agenteval import chat
from agenteval.errors import AgentError, AgentevalError, AuthorError, InfrastructureError
from agenteval.protocols import AgentReply, TurnTools
from agenteval.scenario import Sample
from agenteval.trajectory import Message, ToolResult
from agenteval.user_code import call, describe, positional_parameters

_INFRASTRUCTURE_STATUS = {401, 403, 407, 429, 502, 503, 504, 529}


class AgentContext:
    """What a Python agent gets as its second argument.

    ``tools``: the declared tools as JSON Schemas in OpenAI's format. ``scenario_id``, ``turn`` and
    ``epoch`` (both from 0) and ``seed`` (63 bits, the sample's own) say where it is.
    """

    def __init__(self, sample: Sample, tools: TurnTools, loop: asyncio.AbstractEventLoop) -> None:
        self._tools = tools
        self._loop = loop
        self.scenario_id = sample.key.scenario
        self.epoch = sample.key.epoch
        self.seed = sample.seed
        self.turn = tools.turn
        self.tools: list[dict[str, Any]] = json.loads(json.dumps(tools.schemas))

    async def call_tool(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """Call a tool of the scenario's world. Returns the value that its result stands for, an error
        as ``{"error": …}``; does not raise for one. Calls made at the same time are one step."""
        return (await self._tools.call(name, args)).value

    def call_tool_sync(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """The same for code that cannot await: from any thread."""
        coroutine: Coroutine[Any, Any, ToolResult] = self._tools.call(name, args)  # type: ignore[assignment]
        try:
            on_the_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            on_the_loop = False
        if on_the_loop:
            return _drive(coroutine).value
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result().value


def _drive(coroutine: Coroutine[Any, Any, ToolResult]) -> ToolResult:
    """Run a coroutine to its end on the event loop's own thread; it may yield but not wait."""
    try:
        while coroutine.send(None) is None:
            pass
    except StopIteration as stop:
        result: ToolResult = stop.value
        return result
    coroutine.close()
    raise RuntimeError("call_tool_sync cannot wait in an async agent; write: await ctx.call_tool(…)")


class PythonAgents:
    """Makes agents from a function, or from a class (one instance for each sample)."""

    def __init__(self, target: Any, *, timeout_s: float) -> None:
        if not callable(target):
            raise AuthorError(f"the agent is a {type(target).__name__}; expected a function or a class")
        self._target = target
        self._timeout_s = timeout_s

    def make(self, sample: Sample) -> PythonAgent:
        function = self._target
        if isclass(function):
            try:
                function = function()
            except Exception as error:
                raise AgentError(f"making the agent failed: {describe(error)}") from error
            if not callable(function):
                raise AuthorError(f"the agent class {self._target.__name__} has no __call__(messages, ctx)")
        return PythonAgent(function, sample, timeout_s=self._timeout_s)

    async def aclose(self) -> None:
        """Nothing is held."""


class PythonAgent:
    def __init__(self, function: Callable[..., Any], sample: Sample, *, timeout_s: float) -> None:
        self._function = function
        self._takes_context = positional_parameters(function) >= 2
        self._sample = sample
        self._timeout_s = timeout_s

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        arguments: tuple[Any, ...] = (messages,)
        if self._takes_context:
            arguments += (AgentContext(self._sample, tools, asyncio.get_running_loop()),)
        try:
            with anyio.fail_after(self._timeout_s) as deadline:
                value = await call(self._function, *arguments)
        except (AgentevalError, KeyboardInterrupt):
            raise
        except (Exception, SystemExit) as error:
            if isinstance(error, TimeoutError) and deadline.cancelled_caught:
                raise AgentError(f"no answer within {self._timeout_s:g} s", kind="timeout") from None
            raise whose_fault(error) from error
        return read_reply(value)


def whose_fault(error: BaseException) -> AgentError | InfrastructureError:
    """An exception of the agent's code is the agent's fault, unless it tells of a network, of access
    or of a provider that is down: those would hit any agent."""
    status = getattr(error, "status_code", None)
    no_connection = isinstance(error, ConnectionError | socket.gaierror | ssl.SSLError)
    # Client libraries have types of their own for it; importing them all to ask is no option.
    named = any(cls.__name__ in ("APIConnectionError", "ConnectError") for cls in type(error).__mro__)
    timed_out = any("Timeout" in cls.__name__ for cls in type(error).__mro__)
    if status in _INFRASTRUCTURE_STATUS or ((no_connection or named) and not timed_out):
        return InfrastructureError(describe(error))
    return AgentError(describe(error), kind="timeout" if timed_out else "exception")


def read_reply(value: Any) -> AgentReply:
    """Any of the documented return styles as an ``AgentReply``. Raises ``AgentError`` for others."""
    if isinstance(value, AgentReply):
        if isinstance(value.text, str | None):
            return value
        inner = read_reply(value.text)
        return AgentReply(
            inner.text, inner.tool_calls or value.tool_calls, inner.messages or value.messages, value.usage
        )
    if value is None or isinstance(value, str):
        return AgentReply(text=value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return AgentReply(messages=[chat.as_message(message) for message in value])
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        return _read_mapping(value)
    raise AgentError(
        f"the agent returned {type(value).__name__}; expected the answer's text, an assistant message, the"
        " list of this turn's messages, or an AgentReply",
        kind="protocol",
    )


def _read_mapping(value: Mapping[str, Any]) -> AgentReply:
    if choices := value.get("choices"):  # a whole completion of a client library
        return _read_mapping({**choices[0]["message"], "usage": value.get("usage")})
    if not value.keys() & {"role", "content", "tool_calls", "messages", "function_call", "refusal"}:
        raise AgentError(
            f"the agent returned a mapping with {', '.join(map(str, list(value)[:5])) or 'nothing'};"
            " expected an assistant message with content or tool_calls",
            kind="protocol",
        )
    if isinstance(value.get("messages"), Sequence) and "content" not in value:
        return AgentReply(messages=[chat.as_message(m) for m in value["messages"]], usage=value.get("usage"))
    message = chat.as_message(value)
    calls = list(message.get("tool_calls") or ())
    if legacy := message.get("function_call"):
        calls.append(legacy)
    step = chat.step_of({**message, "tool_calls": None, "function_call": None})
    return AgentReply(step.text, calls, usage=value.get("usage"), extra=step.extra)
