"""Agents that are programs that print their answer as text. Each turn runs in a new process."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn
from uuid import uuid4

import anyio
import anyio.to_thread

from agenteval.adapters.agents.mcp_server import environ_with_mcp_url
from agenteval.adapters.agents.process import (
    BOM,
    GRACE_S,
    OutputLine,
    Process,
    ProcessEnded,
    ProcessEvent,
    ProcessExited,
)
from agenteval.adapters.agents.request_template import fill_request_text, latest_user_content, names_in
from agenteval.adapters.transport.limits import CallRate
from agenteval.agentside.targets.reply_limit import MAX_REPLY_BYTES
from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.errors import AgentError, AuthorError, InfrastructureError, Place, Problem
from agenteval.core.protocols import AgentReply, DatabaseAccess, NoHistory, ReadReply, TurnTools
from agenteval.core.safe_text import one_line, strip_escapes
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import Message
from agenteval.core.value import Text, Value
from agenteval.files.environment import RUN_NAMES
from agenteval.messages import chat
from agenteval.messages.agent_reply import parse_reply

_SHOWN = 200
_BY_STDIN = "remove ${message} from `run`, so that the program gets it on standard input"
_MEMORY = frozenset(("session", "messages_file"))
"""The placeholders that give a process access to earlier parts of the conversation."""
_CANNOT_START = frozenset((errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR))
"""The error numbers that indicate a problem with the program itself, not with the machine."""


class TextProgramOptions(Value):
    """A program that prints its answer. The placeholders in ``RUN_NAMES`` are filled in for each turn."""

    run: tuple[Text, ...]
    """Program and its arguments; ${message}, ${session} and ${messages_file} are filled in for each turn."""

    EXAMPLE: ClassVar[str] = '{run: [./bot, "${message}"]}'

    @property
    def names(self) -> frozenset[str]:
        """The names of the placeholders that are filled in for a turn."""
        return frozenset(names_in(self.run)) & RUN_NAMES


@dataclass(frozen=True)
class TextProgram:
    """A description of how a program is started."""

    shown: str
    """The command in readable form."""
    path: str
    """The path of the program."""
    options: TextProgramOptions
    cwd: str
    env: Mapping[str, str] = field(repr=False)
    place: Place
    """The location of the program in the configuration."""

    @property
    def who(self) -> str:
        """The program's name as shown in messages."""
        return f"'{self.shown}'"

    @cached_property
    def names(self) -> frozenset[str]:
        return self.options.names

    def command(self, values: Mapping[str, Any]) -> list[str]:
        """Return the command for a turn."""
        return [self.path, *(fill_request_text(text, values) or "" for text in self.options.run[1:])]

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise an ``AuthorError`` that points to the program's location in the configuration."""
        raise AuthorError(Problem(f"{self.who}: {what}", remedy, self.place))


class TextAgents:
    """The agents of a run that use the same text program."""

    def __init__(
        self,
        program: TextProgram,
        *,
        timeout_s: float,
        rate: CallRate | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.program = program
        self.timeout_s = timeout_s
        self.rate = rate
        self._warn = warn
        self.database_remedy = ""

    @property
    def does(self) -> str:
        """A description of how the agent is run."""
        names = self.program.names
        where = "as an argument" if "message" in names else "on standard input"
        before = {"session": "agenteval's session", "messages_file": "a file with the messages so far"}
        means = [words for name, words in before.items() if name in names]
        more = f"with {' and '.join(means)}" if means else "by itself, without a session"
        return f"{self.program.shown}, one process per turn, gets each message {where}, {more}"

    @property
    def no_history(self) -> NoHistory | None:
        """The reason why the program cannot be given earlier messages, if there is one."""
        if "messages_file" in self.program.names:
            return None
        return NoHistory(
            "gets only the latest message, because `run` has no ${messages_file}", "add it to `run`"
        )

    def make(self, sample: Sample) -> TextAgent:
        return TextAgent(self)

    async def aclose(self) -> None:
        """Do nothing, because no process outlives its turn."""

    def warn(self, text: str) -> None:
        self._warn(f"{self.program.who} {text}")


class TextAgent:
    """The agent for one conversation."""

    def __init__(self, agents: TextAgents) -> None:
        self._agents = agents
        self._session = (
            uuid4().hex
        )  # unique across runs, because the agent may store what it knows of a session
        self._database: DatabaseAccess | None = None
        self.traceparent = ""
        """The span for the next process, in W3C's format; empty if there is none."""

    async def reply(self, messages: list[Message], tools: TurnTools) -> ReadReply:
        """Start a process with the latest message and read its output.

        Raise ``AgentError`` if the process fails, hangs or prints nothing, and ``AuthorError`` if the message
        cannot be passed as an argument or if the program cannot be started at all."""
        agents, program = self._agents, self._agents.program
        self._database = tools.database
        if agents.rate:
            await agents.rate.take()
        if tools.turn and program.names.isdisjoint(_MEMORY):
            agents.warn(
                "gets each message without the preceding conversation, because `run` has neither ${session}"
                " nor"
                " ${messages_file}"
            )
        message = chat.replace_surrogates(str(latest_user_content(messages, "")))
        values = {"message": message, "session": self._session, "turn": tools.turn}
        with _messages_file(messages if "messages_file" in program.names else None) as path:
            return await self._play(program.command({**values, "messages_file": path}), message)

    async def _play(self, command: Sequence[str], message: str) -> ReadReply:
        turn = await self._start(command, message)
        try:
            with anyio.move_on_after(self._agents.timeout_s):
                await turn.exited.wait()
            if not turn.exited.is_set():
                turn.process.kill()
                what = f"no answer within {self._agents.timeout_s:g} s{turn.process.quoted_log()}"
                raise AgentError(what, kind="timeout")
            with pause_deadlines():
                code = await turn.exit_code()
        finally:
            turn.process.kill()
        if turn.process.was_held_open:
            why = f"a process that it started kept its output open for {GRACE_S:g} s more"
            what = f"exited, but {why}, and was terminated"
            self._agents.warn(f"{what}; each turn waits that long for it")
        return parse_reply(AgentReply(turn.answer(self._agents.program.who, code), latency_ms=turn.took_ms))

    async def _start(self, command: Sequence[str], message: str) -> _TextProgramTurn:
        program, by_argument = self._agents.program, "message" in self._agents.program.names
        if by_argument and "\0" in message:
            program.refuse(
                "the message contains the character NUL, which an argument cannot contain", _BY_STDIN
            )
        loop = asyncio.get_running_loop()

        def start() -> _TextProgramTurn:
            stdin = None if by_argument else message.encode()
            return _TextProgramTurn(command, stdin, cwd=program.cwd, env=self._environment(), loop=loop)

        try:
            return await anyio.to_thread.run_sync(start)
        except OSError as error:
            if error.errno == errno.E2BIG and by_argument:
                size = len(message.encode())
                program.refuse(f"the message ({size:,} bytes) is too long for an argument", _BY_STDIN)
            if error.errno in _CANNOT_START:
                why = error.strerror or str(error)
                program.refuse(
                    f"it cannot be started: {why}", "check that its first line (#!…) names its interpreter"
                )
            raise InfrastructureError(f"{program.who} cannot be started: {error}") from error

    def _environment(self) -> dict[str, str]:
        more = {"TRACEPARENT": self.traceparent} if self.traceparent else {}
        if self._database:
            more[self._database.variable] = self._database.path
        return {**environ_with_mcp_url(self._agents.program.env), **more}


class _TextProgramTurn:
    """The process of one turn. The constructor raises ``OSError`` if the process cannot be started.

    ``stdin`` is the only line that the process can read from standard input. The object may be created in any
    thread; its own threads handle the process's events."""

    def __init__(
        self,
        command: Sequence[str],
        stdin: bytes | None,
        *,
        cwd: str,
        env: Mapping[str, str],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._loop = loop
        self.exited = asyncio.Event()
        """Set once the program itself has ended."""
        self._ended = asyncio.Event()
        """Set once nothing can write to the program's standard output any more."""
        self._end: ProcessEnded | None = None
        self._printed = bytearray()
        self._is_too_long = False
        self._began = loop.time()
        self.took_ms = 0.0
        self.process = Process(command, cwd=cwd, env=env, on_event=self._handle, by_line=False)
        self.process.listen()
        if stdin is not None:
            self.process.send(stdin)
        self.process.close_input()

    async def exit_code(self) -> int | None:
        """Wait for all output, and return the exit code. Output may still arrive after the exit, because
        child processes may also print."""
        self.took_ms = (self._loop.time() - self._began) * 1000
        await self._ended.wait()
        if self._end and self._end.code is not None:
            return self._end.code
        await anyio.to_thread.run_sync(self.process.over.wait)  # it had closed its output earlier
        return self.process.exit_code

    def answer(self, who: str, code: int | None) -> str:
        """Return the output as it would appear in a terminal. Raise ``AgentError`` if the output is not an
        answer."""
        log = self.process.quoted_log()
        if self._is_too_long:
            raise AgentError(f"{who} printed more than {MAX_REPLY_BYTES // 2**20} MiB{log}", kind="protocol")
        data = bytes(self._printed).removeprefix(BOM)
        if code:
            shown = one_line(data[: _SHOWN * 4].decode("utf-8", "replace"), _SHOWN)
            raise AgentError(f"{who} {ProcessEnded(code)}{log or (shown and f'; it printed: {shown}')}")
        try:
            text = strip_escapes(data.decode("utf-8"))
        except UnicodeDecodeError as error:
            shown = one_line(data[max(0, error.start - 20) :][:_SHOWN].decode("utf-8", "replace"), _SHOWN)
            what = f"{who} printed output that is not valid UTF-8, at byte {error.start:,}: {shown}"
            raise AgentError(what, kind="protocol") from None
        if not text.strip():
            raise AgentError(f"{who} exited without printing anything{log}", kind="protocol")
        return text.rstrip("\r\n")

    def _handle(self, event: ProcessEvent) -> None:
        """Handle an event sent by one of the process's threads."""
        match event:
            case OutputLine(data):
                self._take(data)
                self.process.acknowledge_line()
            case ProcessExited():
                self._set(self.exited)
            case ProcessEnded():
                self._end = event
                if event.code is not None:
                    self._set(self.exited)
                self._set(self._ended)

    def _take(self, piece: bytes) -> None:
        if len(self._printed) + len(piece) > MAX_REPLY_BYTES:
            self._is_too_long = True
            self.process.kill()
        elif not self._is_too_long:
            self._printed += piece

    def _set(self, event: asyncio.Event) -> None:
        with suppress(RuntimeError):  # the run is over, and its loop closed
            self._loop.call_soon_threadsafe(event.set)


@contextmanager
def _messages_file(messages: Sequence[Message] | None) -> Iterator[str]:
    """Create a file that contains the messages so far and exists for the duration of the turn. If
    ``messages`` is ``None``, do not create a file."""
    if messages is None:
        yield ""
        return
    try:
        number, path = tempfile.mkstemp(prefix="agenteval-messages-", suffix=".json")
        with open(number, "w", encoding="utf-8") as file:
            json.dump(messages, file)
    except OSError as error:
        raise InfrastructureError(f"the file for ${{messages_file}} cannot be written: {error}") from error
    try:
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)
