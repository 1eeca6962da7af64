"""``observe: openai``: agents whose calls are read off the requests of the ``openai`` client inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio

from agenteval.agentside.targets.openai_calls import (
    CannotObserveError,
    Recorder,
    install,
    recording,
    remove,
    told,
)
from agenteval.conversation.deadlines import is_in_sample
from agenteval.core.errors import AgentevalError, AuthorError, InfrastructureError, Place, Problem
from agenteval.core.protocols import Agent, AgentFactory, AgentReply, TurnTools, close, finish, settle
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message
from agenteval.messages.model_calls import turn_of, with_calls

DOES = "its tool calls are read off the requests of its openai client"

NEEDLESS = Problem(
    "observe: openai is for an agent of your own; of this framework's object all calls are seen without it",
    "remove observe",
)


class ClientCalls:
    """What the clients of one agent's conversations ask. ``otherwise``: tools whose calls are recorded where
    they are carried out."""

    def __init__(self, name: str, warn: Callable[[str], None], *, otherwise: Iterable[str] = ()) -> None:
        self._name = name
        self._warn = warn
        self._warned: set[str] = set()
        self._otherwise = frozenset(otherwise)

    def read(self, exchanges: Sequence[Mapping[str, Any]], reply: AgentReply) -> AgentReply:
        """The reply with what was asked for it."""
        turn = turn_of(exchanges)
        for unread in turn.unread:
            self.warn(f"{unread}; its calls are not observed")
        return with_calls(reply, turn, otherwise=self._otherwise)

    def silent(self) -> None:
        """A conversation is over, and no request was seen in it."""
        self.warn("no request of the openai client was seen in a conversation; does it use another one?")

    def warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(f"agent '{self._name}': {text}")


class ObservedAgents:
    """The same agents, observed in this process. Raises ``AuthorError`` where they cannot be."""

    def __init__(self, inner: AgentFactory, calls: ClientCalls, *, place: Place | None) -> None:
        self._inner = inner
        self._calls = calls
        try:
            install(is_in_sample)
        except CannotObserveError as error:
            raise AuthorError(Problem(f"observe: openai: {error.what}", error.remedy, place)) from error

    @property
    def does(self) -> str:
        """What is done with the agent, in words."""
        return f"{getattr(self._inner, 'does', '')}; {DOES}"

    def make(self, sample: Sample) -> ObservedAgent:
        return ObservedAgent(self._inner.make(sample), self._calls, str(sample.key))

    async def aclose(self) -> None:
        remove()
        await self._inner.aclose()


class ObservedAgent:
    """One conversation's agent."""

    def __init__(self, agent: Agent, calls: ClientCalls, name: str = "") -> None:
        self._agent = agent
        self._calls = calls
        self._fault = ""
        self._has_asked = False
        self._recorder = Recorder(self._hear, name)

    def _hear(self, said: str) -> None:
        self._fault = self._fault or said

    async def after_last_answer(self) -> None:
        await finish(self._agent)

    async def settle(self, none_follows: anyio.Event) -> None:
        await settle(self._agent, none_follows)

    def end_conversation(self) -> None:
        close(self._agent)
        self._recorder.end()
        self._recorder.hear = self._calls.warn
        if self._fault:
            self._calls.warn(self._fault)
        elif not self._has_asked and not self._recorder.take():
            self._calls.silent()

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        """Raises ``InfrastructureError`` after a request that may have been this conversation's, and was not
        noted: what was seen by then is not all."""
        try:
            with recording(self._recorder):
                reply = await self._agent.reply(messages, tools)
        except AgentevalError as error:
            error.seen = self._with_calls(error.seen or AgentReply())
            self._check(error.seen)
            raise
        reply = self._with_calls(reply)
        self._check(reply)
        return reply

    def _with_calls(self, reply: AgentReply) -> AgentReply:
        exchanges = told(self._recorder.take())
        self._has_asked |= bool(exchanges)
        return self._calls.read(exchanges, reply)

    def _check(self, seen: AgentReply) -> None:
        fault, self._fault = self._fault, ""
        if fault:
            raise InfrastructureError(fault, seen=seen, is_final=True)
