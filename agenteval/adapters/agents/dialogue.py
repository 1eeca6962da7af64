"""Exchange JSON lines (JSONL) with a program: one request, one answer, and tool calls between them.

::

    to the program      {"session", "turn", "message", "messages", "tools"}                a request
                        {"tool_result": {"id", "result"}}                                  a call's result
    from the program    {"tool_call": {"id", "name", "arguments", "batch", "session"}}     a call
                        (to and from agenteval's worker, also what ``agentside/targets/worker.py`` documents)
                        anything else                                              the request's answer

After an unrequested line, answers could no longer be matched to requests, so the program is terminated at
once."""

from __future__ import annotations

import asyncio
import contextvars
import json
import math
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio

from agenteval.adapters.agents.process import (
    BOM,
    GRACE_S,
    MAX_LINE,
    LineTooLong,
    OutputLine,
    Process,
    ProcessEnded,
    ProcessEvent,
    ProcessExited,
    RequestAccepted,
)
from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.errors import AfterAnswerError, AgentError, AgentevalError, InfrastructureError
from agenteval.core.json_text import finite_number
from agenteval.core.protocols import TurnTools
from agenteval.core.safe_text import one_line
from agenteval.core.trajectory import ToolResult
from agenteval.messages import chat

QUIET_S = 0.1
"""The minimum time, in seconds, that a command is left idle after a conversation. Any later output cannot be
distinguished from the output of the next conversation."""
_SHOWN = 200
_RULE = (
    "print one JSON object per line and per request to standard output, and log to standard error; for a"
    ' program that prints its answer as text, use command: {run: [PROGRAM, "${message}"]}'
)
_WHOLE_CONVERSATION = "one process handles a whole conversation; it must read requests until its input ends"
_KEPT_NOTE = " (the process is kept: the line may belong to an earlier conversation)"
_ANSWER_KEYS = frozenset(("text", "messages", "tool_calls", "error", "content", "value"))


class _ProtocolViolation(Exception):  # noqa: N818  # it becomes an AgentError where the program is known
    """Raised for a line that violates the protocol. ``what`` completes the sentence "it wrote …"; ``text`` is
    the text of the line."""

    def __init__(self, what: str, text: str = "") -> None:
        self.shown = one_line(text, _SHOWN) if text else what
        self.what = f"{what}: {self.shown}" if text else what


@dataclass(frozen=True)
class Program:
    """A description of how a program is started."""

    who: str
    """The program's name as shown in messages."""
    command: Sequence[str]
    cwd: str
    env: Mapping[str, str] = field(repr=False)
    is_worker: bool = False
    """True if the program is agenteval's worker. The worker's first line states, before any request, whether
    the worker is ready."""


class RequestNotAcceptedError(Exception):
    """Raised if the program exited or failed after the last answer of the previous conversation.

    The request must then be sent to another process."""


class Aftermath:
    """A program's behavior after the last answer of a conversation, available once it is known.

    ``fault`` is set if the program failed; ``remark`` is a sentence about any other unusual behavior."""

    def __init__(self) -> None:
        self.known = asyncio.Event()
        self.fault: AgentevalError | None = None
        self.remark = ""


class Dialogue:
    """A running program and its current conversation. The constructor raises ``OSError`` if the program
    cannot be started.

    A dialogue may be created in any thread. From the first request on, it belongs to that request's event
    loop. An error that ends the dialogue is stored as ``fault`` and raised by the current or the next
    request. After that, no more requests can be sent.

    Anything that the program does between two conversations is attributed to the earlier conversation until
    the program has read the first request of the later conversation. The ``Aftermath`` of the earlier
    conversation is not known before then."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self.greeting: Future[dict[str, Any]] = Future()
        self.fault: AgentevalError | None = None
        self.is_ending = False
        self.is_of_one_conversation = False
        """True if the program's environment names what belongs to one conversation."""
        self._requests = 0
        self._earlier_requests = 0
        """The number of requests in earlier conversations."""
        self._has_answered = False
        """True if the program has answered in the current conversation."""
        self._has_exited = False
        """True if the program itself has ended; processes that it started may still be running."""
        self._aftermath: Aftermath | None = None
        """The pending aftermath of the previous conversation, until it is known."""
        self._detached_at = 0.0
        """The time at which the previous conversation ended, according to the monotonic clock."""
        self._timeout_s = 0.0
        """The time limit of the current request."""
        self._is_charged = False
        """True if the fault was attributed to an earlier conversation."""
        self._acceptance: asyncio.Future[None] | None = None
        self._closed: asyncio.Event | None = None
        """Set once agenteval's worker has closed its conversation."""
        self._end: ProcessEnded | None = None
        self._has_ended = asyncio.Event()
        self._answer: asyncio.Future[dict[str, Any]] | None = None
        self._calls = _ProgramToolCalls(self, is_worker=program.is_worker)
        self._process = Process(program.command, cwd=program.cwd, env=program.env, on_event=self._receive)
        if not program.is_worker:
            self.greeting.set_result({})
        self._process.listen()

    async def ask(
        self, request: Mapping[str, Any], tools: TurnTools, *, timeout_s: float
    ) -> tuple[dict[str, Any], float]:
        """Send a request. Return the answer and the seconds that the program spent on it, excluding the time
        spent in tools.

        Raise ``AgentError`` if no readable answer arrives within ``timeout_s``, ``AfterAnswerError`` if an
        unrequested line followed the previous answer, and ``RequestNotAcceptedError`` if the program failed
        or exited after an earlier conversation. A caller that is cancelled here must call ``kill``, because
        the program is still working on an answer that is no longer needed."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._loop = loop
        if self._end and not self.fault:
            self.fault = AgentError(self._describe_end(self._end))
        if self.fault:
            await asyncio.sleep(0)  # lets earlier calls start, so that they are recorded
            raise self.fault
        self._answer = loop.create_future()
        self._requests += 1
        self._timeout_s = timeout_s
        is_next = self._aftermath is not None
        with anyio.move_on_after(math.inf if is_next else timeout_s) as scope:
            self._calls.begin(tools, scope, session=request.get("session"))
            if self._program.is_worker:
                answered = None if tools.answered is None else sorted(tools.answered)
                request = {**request, "answered": answered, "mocked": sorted(tools.mocked)}
                if tools.database:
                    request["database"] = tools.database.path
            self._process.request(_encode(request))
            if is_next:
                await self._hand_over()
            elif self._has_exited:
                self._process.kill()
            return await self._answer, self._calls.end()
        if self.fault:
            raise self.fault
        raise AgentError(f"no answer within {timeout_s:g} s{self._process.quoted_log()}", kind="timeout")

    async def _hand_over(self) -> None:
        """Wait until the program has read the first request of a conversation. The program's time is measured
        from then on.

        Raise ``RequestNotAcceptedError`` if the program exits or does not read the request in time."""
        self._acceptance = asyncio.get_running_loop().create_future()
        if self._has_exited:
            self._refuse()
        with pause_deadlines(), anyio.move_on_after(GRACE_S):
            await self._acceptance
            return
        what = f"did not read the next request within {GRACE_S:g} s, and was terminated"
        self._conclude(remark=f"{self._program.who} {what}; it was kept for several conversations")
        self.kill()
        raise RequestNotAcceptedError

    def _accept(self) -> None:
        if self._aftermath is None or self._has_exited or not self.awaits_answer:
            return
        self._conclude()
        self._has_answered = False
        self._calls.start_clock(self._timeout_s)
        if self._acceptance and not self._acceptance.done():
            self._acceptance.set_result(None)

    def _refuse(self) -> None:
        """Reject the request so that it is sent to another process."""
        if self._acceptance and not self._acceptance.done():
            self._acceptance.set_exception(RequestNotAcceptedError())
        self._answer = None

    def _conclude(self, fault: AgentevalError | None = None, *, remark: str = "") -> None:
        """Publish the outcome of the previous conversation."""
        aftermath, self._aftermath = self._aftermath, None
        if aftermath:
            self._is_charged = fault is not None
            aftermath.fault, aftermath.remark = fault, remark
            aftermath.known.set()

    async def wait_quiet_period(self) -> None:
        """Wait long enough for all threads in the program to finish writing output that belongs to the
        previous conversation."""
        if not self.is_worker:
            with pause_deadlines():
                await anyio.sleep(max(0.0, self._detached_at + QUIET_S - time.monotonic()))

    def settle(self) -> None:
        """Stop waiting for more output, and conclude that nothing has gone wrong."""
        self._conclude()

    async def close_conversation(self) -> None:
        """Close the conversation in agenteval's worker after the last answer. An error in the agent's code
        may still fail the conversation at this point.

        Only the worker supports this request; other programs do not."""
        if self._program.is_worker:
            self._closed = asyncio.Event()
            self.send({"over": True})
            with anyio.move_on_after(GRACE_S):
                await self._closed.wait()

    async def finish(self) -> str:
        """Close the program's input after the last answer, and read the program's output until the program
        exits, for up to ``GRACE_S``.

        Return a sentence about an exit that is unusual but not a fault, or an empty string. Raise
        ``AgentError`` for an unrequested line, and if the program was terminated by a signal that agenteval
        did not send."""
        self._process.close_input()
        with anyio.move_on_after(GRACE_S):
            await self._has_ended.wait()
        if fault := self.idle_fault:
            raise fault
        if self._end is None and not self.is_over:
            self.kill()
            what = f"did not exit within {GRACE_S:g} s after the end of its input, and was terminated"
            if self._has_exited:
                why = f"a process that it started kept its output open for {GRACE_S:g} s more"
                what = f"exited, but {why}, and was terminated"
            return f"{self._program.who} {what}; each conversation waits that long for it"
        return self._odd_end

    @property
    def _odd_end(self) -> str:
        """A remark about an exit that is unusual but not a fault, or an empty string."""
        if self._end is None or self._end.by_us or self._end.is_by_signal or not self._end.code:
            return ""
        return f"{self._program.who} {self._end} after its last answer{self._process.quoted_log()}"

    @property
    def idle_fault(self) -> AgentevalError | None:
        """The fault that ended the dialogue while no request was open: an unrequested line, or a signal that
        agenteval did not send."""
        if self.fault is None and self._end and self._end.is_by_signal:
            return AgentError(self._describe_end(self._end))
        return self.fault

    @property
    def is_usable(self) -> bool:
        """True if another conversation can be started with this program."""
        return not (self.fault or self._has_exited or self._end or self.is_over or self.awaits_answer)

    @property
    def is_worker(self) -> bool:
        """True if the program is agenteval's worker."""
        return self._program.is_worker

    @property
    def unattributed_fault(self) -> AgentevalError | None:
        """The fault that ended the dialogue at a time when it could not be attributed to any conversation."""
        return None if self._aftermath or self._is_charged else self.idle_fault

    @property
    def has_exited(self) -> bool:
        """True if the program itself has exited."""
        return self._has_exited or self.is_over

    @property
    def is_over(self) -> bool:
        """True if the program and all of its child processes have exited."""
        return self._process.over.is_set()

    @property
    def awaits_answer(self) -> bool:
        """True if a request is waiting for its answer."""
        return self._answer is not None and not self._answer.done()

    def detach_conversation(self) -> Aftermath:
        """End the conversation. Tool calls are no longer executed."""
        self._calls.close()
        self._earlier_requests, self._detached_at = self._requests, time.monotonic()
        self._aftermath = aftermath = Aftermath()
        if self._end or self.fault:
            self._conclude(self.idle_fault, remark=self._odd_end)
        return aftermath

    def kill(self) -> None:
        self.fault = self.fault or AgentError(f"{self._program.who} was terminated")
        self._calls.close()
        self._process.kill()

    def end(self) -> None:
        """Ask the program to exit. This call blocks; see ``Process.end``."""
        self._process.end()

    def send(self, value: Mapping[str, Any]) -> None:
        self._process.send(_encode(value))

    # ── events of the process ────────────────────────────────────────────────────────────────────

    def _receive(self, event: ProcessEvent) -> None:
        """Handle an event sent by one of the process's threads.

        Events that arrive before the first request are handled at once."""
        with self._lock:
            if self._loop is None and not self.greeting.done():
                self._greet(event)
                return
            if self._loop is None:
                self._handle(event)
                return
        try:
            self._loop.call_soon_threadsafe(self._handle, event)
        except RuntimeError:  # the run is over, and its loop closed
            self._process.acknowledge_line()

    def _greet(self, event: ProcessEvent) -> None:
        """Read the worker's greeting. Any earlier output was written before agenteval's own code started."""
        if isinstance(event, ProcessExited):
            self._process.kill()
            return
        if isinstance(event, ProcessEnded):
            self.fault = AgentError(f"{event}{self._process.quoted_log()}")
            self.greeting.set_exception(self.fault)
            return
        self._process.acknowledge_line()
        with suppress(_ProtocolViolation):
            if isinstance(event, OutputLine):
                self.greeting.set_result(_parse_object(_decode(event.data)))

    def _handle(self, event: ProcessEvent) -> None:
        match event:
            case RequestAccepted():
                self._accept()
            case ProcessExited():
                self._has_exited = True
                if self._aftermath:
                    self._refuse()
                elif self.awaits_answer:  # only the program itself could answer
                    self._process.kill()
            case ProcessEnded():
                self._handle_end(event)
            case _:
                self._handle_line(event)

    def _handle_end(self, end: ProcessEnded) -> None:
        self._end = end
        self._has_ended.set()
        if self._closed:
            self._closed.set()
        if self._aftermath:
            by_signal = AgentError(self._describe_end(end)) if end.is_by_signal else None
            self._conclude(by_signal, remark=self._odd_end)
            self._refuse()
        elif self.awaits_answer and not self.fault:
            self.fail(AgentError(self._describe_end(end)))

    def _handle_line(self, line: OutputLine | LineTooLong) -> None:
        self._process.acknowledge_line()
        if self.fault:
            return
        is_answer = self.awaits_answer and line.requests == self._requests
        try:
            if isinstance(line, LineTooLong):
                raise _ProtocolViolation(f"a line longer than {MAX_LINE // 2**20} MiB")
            if text := _decode(line.data).strip():
                self._read(text, line.requests, is_answer=is_answer)
        except _ProtocolViolation as unreadable:
            self.fail(self._protocol_fault(unreadable, is_answer=is_answer))

    def _read(self, text: str, requests: int, *, is_answer: bool) -> None:
        """Handle a line of JSON. ``requests`` is the number of requests sent before the line was written."""
        value = _parse_object(text)
        if "tool_call" in value and (is_answer or (requests and self._program.is_worker)):
            if others := sorted(_ANSWER_KEYS & value.keys()):
                raise _ProtocolViolation(
                    f"a line with both `tool_call` and `{others[0]}`, a call and an answer", text
                )
            self._calls.handle_call(value["tool_call"], is_over=requests <= self._earlier_requests)
        elif "tool_done" in value and self._program.is_worker:
            self._calls.handle_result(value["tool_done"])
        elif "over" in value and self._closed:
            self._closed.set()
        elif is_answer and self._answer:
            self._has_answered = True
            self._answer.set_result(value)
        else:
            raise _ProtocolViolation("a JSON object", text)

    def _protocol_fault(self, unreadable: _ProtocolViolation, *, is_answer: bool) -> AgentError:
        """Return the error for a line that is not an answer.

        An unrequested line never counts as an answer, regardless of its content. It is attributed to the
        preceding answer, if any."""
        who = self._program.who
        rule = f"{_RULE}{_KEPT_NOTE}" if self._earlier_requests and not self._aftermath else _RULE
        if is_answer:
            return AgentError(f"{who} wrote {unreadable.what} — {rule}", kind="protocol")
        if self._has_answered:
            what = f"{who} wrote an unrequested line after its answer: {unreadable.shown}"
            return AfterAnswerError(f"{what} — {rule}")
        what = f"{who} wrote a line before the conversation's first request: {unreadable.shown}"
        return AgentError(f"{what} — {_RULE}", kind="protocol")

    def fail(self, fault: AgentevalError) -> None:
        """Record a fault, and terminate the program."""
        self.fault = self.fault or fault
        if self._aftermath:
            self._conclude(self.fault)
            self._refuse()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self.fault)
        self._process.kill()

    def _describe_end(self, ended: ProcessEnded) -> str:
        what = f"{self._program.who} {ended}{self._process.quoted_log()}"
        if ended.code != 0:
            return what
        return f"{what} — {_WHOLE_CONVERSATION if self._has_answered else _RULE}"


class _ProgramToolCalls:
    """The tool calls that arrive while a program is working on a request or after it has answered."""

    def __init__(self, dialogue: Dialogue, *, is_worker: bool) -> None:
        self._dialogue = dialogue
        self._is_worker = is_worker
        self._worker_calls: dict[Any, asyncio.Future[ToolResult]] = {}
        """The calls that the worker carries out, by ID."""
        self._recording_tasks: set[asyncio.Task[None]] = set()
        self._tools: TurnTools | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: Any = None
        self._scope: anyio.CancelScope | None = None
        self._context: contextvars.Context | None = None
        self._batches = count(1)
        self._batch_numbers: dict[str, int] = {}
        self._began = self._tools_s = 0.0
        self._since = 0.0
        self._left_s = math.inf

    def begin(self, tools: TurnTools, scope: anyio.CancelScope, *, session: Any) -> None:
        """Begin a request. The clock of ``scope`` stops while a call of this request is executed."""
        self._session = session
        self._tools, self._scope, self._context = tools, scope, contextvars.copy_context()
        self._batch_numbers.clear()
        self._began, self._tools_s = asyncio.get_running_loop().time(), 0.0
        if self._tasks:
            self._stop_clock()

    def start_clock(self, timeout_s: float) -> None:
        """Restart the clock, because the program has only just received the request."""
        self._began = asyncio.get_running_loop().time()
        if self._scope:
            self._scope.deadline = self._began + timeout_s

    def end(self) -> float:
        """End a request and return the seconds that the program spent on it."""
        now = asyncio.get_running_loop().time()
        waited = now - self._since if self._tasks else 0.0
        self._scope = None
        return max(0.0, now - self._began - self._tools_s - waited)

    def close(self) -> None:
        self._tools = None
        for task in (*self._tasks, *self._recording_tasks):
            task.cancel()

    def handle_call(self, call: Any, *, is_over: bool) -> None:
        """Handle a tool call. ``is_over`` is true for a call that was made in an earlier conversation."""
        tools = None if is_over else self._tools
        session = call.get("session", self._session) if isinstance(call, Mapping) else self._session
        if tools is None or session != self._session:  # its conversation is over
            self._send_result(call, {"over": True})
            return
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        function = function if isinstance(function, Mapping) else {}
        arguments = function.get("arguments", function.get("args"))
        name = function.get("name")
        batch = self._batch(call.get("batch") if isinstance(call, Mapping) else None)
        if self._is_worker and call.get("own"):
            self._record(call, tools, batch)
            return
        self._start(self._carry_out(call, tools, name, arguments, batch))

    def handle_result(self, outcome: Any) -> None:
        """Handle the result of a call that the worker has executed."""
        result = self._worker_calls.pop(outcome["id"], None)
        if result is not None and not result.done():
            value = chat.to_storable(outcome["result"])
            result.set_result(ToolResult(value=value, is_error=bool(outcome["is_error"])))

    def _record(self, call: Mapping[str, Any], tools: TurnTools, batch: int) -> None:
        """Record a call that the worker executes. The duration of the call counts as the agent's time."""
        done = asyncio.get_running_loop().create_future()
        self._worker_calls[call["id"]] = done

        async def execute() -> ToolResult:
            self._send_result(call, {"go": True})
            result: ToolResult = await done
            return result

        async def record() -> None:
            assert tools.record
            result = await tools.record(call["name"], call["arguments"], batch, execute)
            self._send_result(call, {"result": result.value})

        task = asyncio.get_running_loop().create_task(record(), context=self._context)
        self._recording_tasks.add(task)
        task.add_done_callback(self._recording_tasks.discard)
        task.add_done_callback(self._report_task_fault)

    def _batch(self, label: Any) -> int:
        """Return the batch number. Calls with the same batch were made in parallel; a call without a batch
        was made alone."""
        if label is None:
            return next(self._batches)
        return self._batch_numbers.setdefault(json.dumps(label), next(self._batches))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        if not self._tasks:
            self._stop_clock()
        task = asyncio.get_running_loop().create_task(work, context=self._context)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._report_task_fault(task)
        if not self._tasks:
            self._tools_s += asyncio.get_running_loop().time() - self._since
            if self._scope:
                self._scope.deadline = asyncio.get_running_loop().time() + self._left_s

    def _report_task_fault(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self._dialogue.fail(InfrastructureError(f"internal error in agenteval: {error!r}"))

    def _stop_clock(self) -> None:
        self._since = asyncio.get_running_loop().time()
        if self._scope:
            self._left_s = self._scope.deadline - self._since
            self._scope.deadline = math.inf

    async def _carry_out(self, call: Any, tools: TurnTools, name: Any, arguments: Any, batch: int) -> None:
        read, raw = chat.read_arguments(arguments)
        called = chat.replace_surrogates(name) if isinstance(name, str) else name
        carry_out = tools.call
        if self._is_worker and call.get("known"):
            carry_out = tools.call_known or tools.call
        try:
            result = await carry_out(called, read if raw is None else raw, batch)
        except asyncio.CancelledError:
            self._send_result(call, {"over": True})
            raise
        flags = {"is_error": result.is_error, "is_timeout": result.is_timeout} if self._is_worker else {}
        raised = {name: True for name, is_raised in flags.items() if is_raised}
        self._send_result(call, {"result": result.value, **raised})

    def _send_result(self, call: Any, outcome: Mapping[str, Any]) -> None:
        call_id = call.get("id") if isinstance(call, Mapping) else None
        self._dialogue.send({"tool_result": {"id": call_id, **outcome}})


def _encode(value: Mapping[str, Any]) -> bytes:
    """Encode a line as ASCII, so that it contains no other line breaks or lone surrogates."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _decode(data: bytes) -> str:
    try:
        return data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError:
        raise _ProtocolViolation("invalid UTF-8", data[: _SHOWN * 4].decode("utf-8", "replace")) from None


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(
            text,
            object_pairs_hook=chat.keep_duplicate_keys,
            parse_constant=_reject_constant,
            parse_float=finite_number,
        )
    except RecursionError:
        raise _ProtocolViolation("JSON that is nested too deeply", text) from None
    except ValueError:
        raise _ProtocolViolation("invalid JSON", text) from None
    if not isinstance(value, dict):
        raise _ProtocolViolation("JSON that is not an object", text)
    if isinstance(value, chat.DuplicateKeyObject):
        raise _ProtocolViolation("JSON with a duplicate key", text)
    return value


def _reject_constant(name: str) -> None:
    raise ValueError(name)
