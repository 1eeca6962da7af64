"""Agents that are programs (subprocesses). Each conversation has its own program, or a program is kept and
reused for one conversation after another."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as LateError
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias
from uuid import uuid4

import anyio
import anyio.to_thread

from agenteval.adapters.agents.dialogue import Aftermath, Dialogue, Program, RequestNotAcceptedError
from agenteval.adapters.agents.mcp_server import environ_with_mcp_url, mcp_url
from agenteval.adapters.agents.request_template import latest_user_content
from agenteval.adapters.transport.limits import CallRate
from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError, Place, Problem
from agenteval.core.protocols import AgentTool, DatabaseAccess, NoHistory, ReadReply, TurnTools
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message

START_S = 120.0
"""The startup timeout in seconds for a program that sends a greeting. Frameworks take 2 to 18 seconds to
load."""

AnswerParser: TypeAlias = Callable[[Mapping[str, Any]], ReadReply]
"""Parses a program's answer. May raise ``AgentevalError``."""


class ProgramPool:
    """The pool of one agent's running programs. With ``keep``, a program may be reused for several
    conversations, unless its environment names the database of one of them."""

    def __init__(
        self,
        program: Program,
        *,
        keep: bool,
        start_s: float = START_S,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._program = program
        self._warn = warn
        self._warned: set[str] = set()
        self._keep = keep
        self._start_s = start_s
        self._idle: list[Dialogue] = []
        self._all: set[Dialogue] = set()
        self._endings: list[threading.Thread] = []
        self._limiter: anyio.CapacityLimiter | None = None

    def start(self, variables: Mapping[str, str] = MappingProxyType({})) -> Dialogue:
        """Start one more program, with more environment variables, and wait until it is ready. This call
        blocks.

        Raise ``OSError`` if the program cannot be started, and ``AgentError`` if it does not become ready."""
        self._all = {each for each in tuple(self._all) if not each.is_over}
        program = _with_mcp(self._program)
        dialogue = Dialogue(replace(program, env={**program.env, **variables}))
        dialogue.is_of_one_conversation = bool(variables)
        self._all.add(dialogue)
        try:
            dialogue.greeting.result(self._start_s)
        except LateError:
            dialogue.kill()
            raise AgentError(f"was not ready within {self._start_s:g} s", kind="timeout") from None
        except BaseException:
            dialogue.kill()
            raise
        return dialogue

    async def acquire(self, database: DatabaseAccess | None = None) -> Dialogue:
        """Return a program for a conversation, a new one if the conversation has a ``database``.

        Imports use a lot of CPU time, so the number of programs that start simultaneously is limited to the
        number of processors. A kept program that has failed or exited in the meantime is replaced, and the
        failure is attributed to its last conversation. Raise ``AgentError`` if a program cannot be started.
        """
        while self._idle and database is None:
            dialogue = self._idle.pop(0)  # the longest idle: it has had the most time to break
            try:
                if dialogue.is_usable:
                    await dialogue.wait_quiet_period()
            except BaseException:
                self._idle.append(dialogue)  # its last conversation still waits for its aftermath
                raise
            if dialogue.is_usable:
                return dialogue
            self._drop(dialogue)
        self._limiter = self._limiter or anyio.CapacityLimiter(os.cpu_count() or 1)
        start = partial(self.start, {database.variable: database.path} if database else {})
        with pause_deadlines():
            try:
                return await anyio.to_thread.run_sync(start, abandon_on_cancel=True, limiter=self._limiter)
            except OSError as error:
                raise AgentError(f"{self._program.who} cannot be started: {error}") from error
            except AgentError as error:
                raise AgentError(f"{self._program.who} {error}", kind=error.kind) from error

    def _drop(self, dialogue: Dialogue) -> None:
        if fault := dialogue.unattributed_fault:
            self._warn_once(
                f"{fault} (the process was kept, and no conversation was in progress at the time)"
            )
        if not dialogue.has_exited:
            dialogue.kill()

    async def finish(self, dialogue: Dialogue) -> None:
        """Finish a conversation after its last answer. Raise ``AgentError`` for a fault that only now becomes
        visible."""
        is_kept = self._keep and not dialogue.is_of_one_conversation
        if is_kept and dialogue.is_usable:
            await dialogue.close_conversation()
        if not (is_kept and dialogue.is_usable):
            await self._finish(dialogue)

    async def _finish(self, dialogue: Dialogue) -> None:
        if remark := await dialogue.finish():
            self._warn_once(remark)

    async def settle(self, dialogue: Dialogue, aftermath: Aftermath, none_follows: anyio.Event) -> None:
        """Wait until a kept program's behavior after its conversation is known.

        The behavior is known once the program has started another conversation or has exited. If no
        conversation follows, a command is asked to exit. agenteval's worker, which has already closed the
        conversation, keeps running. Raise ``AgentError`` if the program failed."""
        await _first_of(aftermath.known, none_follows)
        if not aftermath.known.is_set() and dialogue in self._idle:
            if not dialogue.is_worker:
                self._idle.remove(dialogue)
                await self._finish(dialogue)
                return
            if dialogue.is_usable:
                dialogue.settle()
        await aftermath.known.wait()
        if aftermath.remark:
            self._warn_once(aftermath.remark)
        if aftermath.fault:
            raise aftermath.fault

    def _warn_once(self, remark: str) -> None:
        """Warn once about conversations that all end in the same way. Show the log of only one of them."""
        what = remark.partition(";")[0]
        if what not in self._warned:
            self._warned.add(what)
            self._warn(remark)

    def disable_reuse(self) -> None:
        """Give each conversation its own process, regardless of the configuration."""
        self._keep = False

    def put_prestarted(self, dialogue: Dialogue) -> None:
        """Add a program that was started in advance for the first conversation."""
        self._idle.append(dialogue)

    def release(self, dialogue: Dialogue) -> Aftermath | None:
        """Release a program whose conversation is over or has not begun. This call never blocks.

        Return the aftermath to wait for if the program is kept."""
        aftermath = dialogue.detach_conversation()
        if aftermath.known.is_set() or dialogue.awaits_answer:
            dialogue.kill()
        elif self._keep and not dialogue.is_of_one_conversation:
            self._idle.append(dialogue)  # even if it has exited: its output is not read yet
            return aftermath
        else:
            self._end(dialogue)
        return None

    def _end(self, dialogue: Dialogue) -> None:
        dialogue.is_ending = True
        self._endings = [each for each in self._endings if each.is_alive()]
        ending = threading.Thread(target=dialogue.end, daemon=True, name="agenteval-process-end")
        self._endings.append(ending)
        ending.start()

    async def aclose(self) -> None:
        """End all programs. Kill those that are still in a conversation, and wait until all others have
        exited."""
        idle, self._idle = self._idle, []
        for dialogue in self._all.difference(idle):
            if not dialogue.is_ending:
                dialogue.kill()
        for dialogue in idle:
            self._end(dialogue)
        await anyio.to_thread.run_sync(self._wait_for_endings)
        for dialogue in idle:
            if fault := dialogue.unattributed_fault:
                self._warn_once(
                    f"{fault} (the process was kept, and no conversation was in progress at the time)"
                )

    def _wait_for_endings(self) -> None:
        for ending in self._endings:
            ending.join()


async def _first_of(*events: anyio.Event | asyncio.Event) -> None:
    """Wait until at least one of the events has happened."""
    async with anyio.create_task_group() as group:

        async def one(event: anyio.Event | asyncio.Event) -> None:
            await event.wait()
            group.cancel_scope.cancel()

        for event in events:
            group.start_soon(one, event)


def _with_mcp(program: Program) -> Program:
    return replace(program, env=environ_with_mcp_url(program.env))


def should_reuse_process(agent: str, keep: bool | None, place: Place, *, default: bool) -> bool:
    """Return whether a process may be reused for several conversations, one after another.

    A process that finds its tools at the address in its environment cannot be reused, because it keeps that
    address until it exits. Raise ``AuthorError`` if the author requests the reuse of such a process."""
    if keep and mcp_url():
        what = (
            f"agent '{agent}': `keep` cannot be combined with `mcp`, because each conversation has its own"
            " address"
        )
        raise AuthorError(Problem(what, "remove one of them", place))
    return default if keep is None and not mcp_url() else bool(keep)


class ProcessAgents:
    """The agents of a run that are programs.

    ``reader(sample)`` returns the parser for the answers in one conversation; ``request_fields(sample)``
    returns the additional fields of its requests."""

    def __init__(
        self,
        programs: ProgramPool,
        *,
        reader: Callable[[Sample], AnswerParser],
        timeout_s: float,
        rate: CallRate | None = None,
        request_fields: Callable[[Sample], Mapping[str, Any]] = lambda _: {},
    ) -> None:
        self.programs = programs
        self.reader = reader
        self.timeout_s = timeout_s
        self.rate = rate
        self.request_fields = request_fields
        self.does = ""
        """A description of how the agent is run."""
        self.tools: tuple[AgentTool, ...] | None = None
        """The agent's tools; ``None`` if they are unknown."""
        self.database_remedy = ""
        self.no_history: NoHistory | None = None
        """The reason why the agent cannot be given earlier messages; ``None`` if it can."""

    def make(self, sample: Sample) -> ProcessAgent:
        return ProcessAgent(self, sample)

    async def aclose(self) -> None:
        await self.programs.aclose()


class ProcessAgent:
    """The agent for one conversation. Its program is started or reused when the first message arrives."""

    def __init__(self, agents: ProcessAgents, sample: Sample) -> None:
        self._agents = agents
        self._programs = agents.programs
        self._parse = agents.reader(sample)
        self._request_fields = agents.request_fields(sample)
        self._session = (
            uuid4().hex
        )  # unique across runs, because the agent may store what it knows of a session
        self._dialogue: Dialogue | None = None
        self._released: tuple[Dialogue, Aftermath] | None = None
        """The program that the agent used, and the outcome to wait for."""
        self.traceparent = ""
        """The span for the next requests, in W3C's format; empty if there is none."""

    async def reply(self, messages: list[Message], tools: TurnTools) -> ReadReply:
        if self._agents.rate:
            await self._agents.rate.take()
        request = self._request(messages, tools)
        while True:
            dialogue = self._dialogue = self._dialogue or await self._programs.acquire(tools.database)
            try:
                answer, elapsed_s = await dialogue.ask(request, tools, timeout_s=self._agents.timeout_s)
                break
            except RequestNotAcceptedError:
                self._dialogue = None
            except BaseException:
                dialogue.kill()
                raise
        if dialogue.is_worker and answer.get("missed"):
            dialogue.kill()  # what was refused may be missing in later conversations
        reply = self._parse(answer)
        return reply if reply.latency_ms is not None else replace(reply, latency_ms=elapsed_s * 1000)

    def _request(self, messages: list[Message], tools: TurnTools) -> dict[str, Any]:
        return {
            "session": self._session,
            "turn": tools.turn,
            "message": latest_user_content(messages, ""),
            "messages": messages,
            "tools": list(tools.schemas),
            **({"traceparent": self.traceparent} if self.traceparent else {}),
            **self._request_fields,
        }

    async def after_last_answer(self) -> None:
        if self._dialogue:
            await self._programs.finish(self._dialogue)

    def end_conversation(self) -> None:
        dialogue, self._dialogue = self._dialogue, None
        if dialogue and (aftermath := self._programs.release(dialogue)):
            self._released = dialogue, aftermath

    async def settle(self, none_follows: anyio.Event) -> None:
        if self._released:
            await self._programs.settle(*self._released, none_follows)


def parse_program_error(reported: Any, *, seen: ReadReply | None = None) -> AgentevalError:
    """Parse the error that a program reports: a string, or a mapping with ``message`` and ``kind``.

    ``seen`` is the partial reply that the program reports along with the error."""
    if not isinstance(reported, Mapping):
        return AgentError(str(reported), seen=seen)
    message, kind = str(reported.get("message") or "no message"), reported.get("kind")
    if kind == "infrastructure":
        return InfrastructureError(message, seen=seen, is_final=reported.get("final") is True)
    return AgentError(message, kind="timeout" if kind == "timeout" else "exception", seen=seen)
