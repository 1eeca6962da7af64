"""Record the traffic with models and agents, and replay recordings instead of calling them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import anyio
from anyio.lowlevel import checkpoint
from pydantic import ValidationError

from agenteval.adapters.traffic.answer_stores import Question, reply_from_entry, reply_to_entry
from agenteval.adapters.traffic.cassettes import (
    AnswerRecorder,
    CassettePlayer,
    CassettePosition,
    CassetteRecorder,
    position_of,
)
from agenteval.agentside.world import RequestedCall
from agenteval.conversation.current_sample import current_sample_key
from agenteval.core.errors import (
    AfterAnswerError,
    AgentError,
    AgentevalError,
    AuthorError,
    BudgetError,
    InfrastructureError,
    Place,
    Problem,
    RequestSkippedError,
    UnreadableReplyError,
)
from agenteval.core.protocols import (
    Agent,
    AgentExecutedCall,
    AgentReply,
    ModelReply,
    ModelRequest,
    ReadReply,
    TurnTools,
    close,
    finish,
    settle,
)
from agenteval.core.scenario import Sample
from agenteval.core.trajectory import CallEvidence, Message, ToolCall, ToolResult, Usage
from agenteval.messages import chat
from agenteval.messages.reported_usage import read_usage, unread_usage

# ── errors as JSON ───────────────────────────────────────────────────────────────────────────────

_CANCELLED = "Cancelled"
_ERRORS: Mapping[str, Callable[[str], AgentevalError]] = {
    "AfterAnswerError": AfterAnswerError,
    "AgentError": AgentError,
    "UnreadableReplyError": UnreadableReplyError,
    "BudgetError": BudgetError,
    **dict.fromkeys(("RequestSkippedError", "NotAskedError"), RequestSkippedError),
    "AuthorError": AuthorError,
    **dict.fromkeys(("InfrastructureError", "RefusedError", "SimulatorError"), InfrastructureError),
    "AgentevalError": InfrastructureError,
}
"""The error classes, keyed by their name in a recording. ``NotAskedError`` is an older name for
``RequestSkippedError``. An exception whose name is not listed here was raised by the agent's code."""
_FIELDS = ("kind", "raw", "is_flawed", "is_final")
"""The fields of errors that are recorded without conversion."""


def serialize_error(error: BaseException) -> dict[str, Any]:
    """Return the representation of an exception in a recording, so that a replay ends in the same way as the
    run."""
    fault: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, AgentevalError):
        fault |= {name: value for name in _FIELDS if (value := getattr(error, name, None))}
    if isinstance(error, AuthorError):
        fault["problems"] = [[p.what, p.remedy, list(p.place) if p.place else None] for p in error.problems]
    usage, seen = getattr(error, "usage", None), getattr(error, "seen", None)
    fault |= {"usage": usage.model_dump()} if isinstance(usage, Usage) else {}
    written = _reply_json(ReadReply.from_reply(seen)) if isinstance(seen, AgentReply) else {}
    return fault | ({"seen": written["reply"]} if "reply" in written else {})


def deserialize_error(fault: Mapping[str, Any]) -> Exception:
    """Return the exception that ``serialize_error`` described. If the name of its class is unknown, create a
    class with that name."""
    name, message = str(fault.get("type")), str(fault.get("message", ""))
    if name not in _ERRORS:
        made: Exception = type(name, (Exception,), {})(message)
        return made
    if name == "AuthorError":
        problems = fault.get("problems") or [[message, "", None]]
        return AuthorError(*(Problem(w, r, Place(*place) if place else None) for w, r, place in problems))
    error = _ERRORS[name](message)
    read = {field: fault[field] for field in _FIELDS if field in fault}
    read |= {"usage": Usage.model_validate(fault["usage"])} if fault.get("usage") else {}
    read |= {"seen": _parse_reply(fault["seen"])} if fault.get("seen") else {}
    vars(error).update(read)
    return error


# ── models ───────────────────────────────────────────────────────────────────────────────────────


def _question(request: ModelRequest) -> dict[str, Any]:
    names = list(request.reply.model_fields)
    return {"system": request.system, "prompt": request.prompt, "reply": names}


def _position(request: ModelRequest) -> CassettePosition:
    key = None if request.role == "dedup" else current_sample_key()
    return position_of(key, request.role, request.subject.metric, request.subject.turn)


class CassetteAnswers:
    """An ``AnswerStore`` that only writes answers to a recording and never reads answers."""

    def __init__(self, recorder: CassetteRecorder) -> None:
        self._recorder = recorder
        self._open: dict[Question, AnswerRecorder] = {}

    def get(self, question: Question) -> None:
        request = question.request
        self._open[question] = self._recorder.ask(_position(request), _question(request))

    def put(self, question: Question, reply: ModelReply) -> ModelReply:
        answer = {**reply_to_entry(reply), "usage": reply.usage.model_dump()}
        seen = self._open.pop(question)(answer)
        return reply if seen is answer else reply_from_entry(seen, question.request)

    def failed(self, question: Question, error: Exception) -> None:
        self._open.pop(question)({"error": serialize_error(error)})


class ReplayedModel:
    """A ``ChatModel`` that replays answers from a recording.

    Raises the errors that were recorded, and ``AuthorError`` for a question that was not recorded."""

    def __init__(self, player: CassettePlayer) -> None:
        self._player = player

    async def complete(self, request: ModelRequest) -> ModelReply:
        spot = _position(request)
        question = _question(request)
        answer = self._player.answer(spot, question)
        await checkpoint()
        if answer.get("error"):
            # If the recording contains it once, the judge was called once.
            more = {} if self._player.has_next(spot, question) else {"is_final": True}
            raise deserialize_error({**answer["error"], **more})
        try:
            reply = reply_from_entry(answer, request)
        except (ValidationError, LookupError) as error:
            what = f"{self._player.path.name}: the recorded answer from {spot} cannot be read: {error}"
            raise AuthorError(Problem(what, "record it again with --record")) from error
        if flaw := request.flaw_left_in(reply.value, reply.scripted):
            what = f"{self._player.path.name}: the recorded answer from {spot} cannot be used: {flaw}"
            raw = json.dumps(answer["value"], ensure_ascii=False)[:500]
            raise UnreadableReplyError(what, raw=raw, usage=reply.usage, is_flawed=True)
        return reply

    async def aclose(self) -> None:
        """Do nothing, because no connection is open."""


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def _to_request(messages: Sequence[Message], tools: TurnTools) -> dict[str, Any]:
    """Copy the request to the agent, because the agent may change its messages."""
    asked: dict[str, Any] = chat.jsonable({"messages": list(messages), "tools": list(tools.schemas)})
    return asked


class RecordingAgent:
    """An agent whose replies are recorded, along with the tool calls made for each reply."""

    def __init__(self, agent: Agent, sample: Sample, recorder: CassetteRecorder) -> None:
        self._agent = agent
        self._sample = sample
        self._recorder = recorder
        self._calls: list[dict[str, Any]] = []  # a call between two replies belongs to the later one
        self._list_asked = False

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        spot = position_of(self._sample.key, "agent", turn=tools.turn)
        note = self._recorder.ask(spot, _to_request(messages, tools))
        # If it is cancelled (a call met a fault, or the run ends), there is no answer.
        answer: Mapping[str, Any] = {"error": {"type": _CANCELLED}}
        try:
            reply = await self._agent.reply(messages, self._with_recording(tools))
            answer = _reply_json(ReadReply.from_reply(reply))
        except Exception as error:
            answer = {"error": serialize_error(error)}
            raise
        finally:
            answer = {"calls": self._calls, **({"list_asked": True} if self._list_asked else {}), **answer}
            self._calls, self._list_asked = [], False
            seen = note(answer)
        return reply if seen is answer or "reply" not in seen else _parse_reply(seen["reply"])

    def _with_recording(self, tools: TurnTools) -> TurnTools:
        """Return tools that record each call when it is made, and record whether the call finished."""

        def noted(ask: ToolInvoker, **more: Any) -> ToolInvoker:
            async def call(name: str, args: Any, batch: int) -> ToolResult:
                made = self._log_call(name, args, batch, **more)
                result = await ask(name, args, batch)
                made["done"] = True
                return result

            return call

        async def record(name: str, args: Any, batch: int, execute: AgentExecutedCall) -> ToolResult:
            """Record a call that the agent executes itself, so that a replay uses the recorded result."""
            made = self._log_call(name, args, batch, own=None)
            assert tools.record
            result = await tools.record(name, args, batch, execute)
            made.update(done=True, own={"value": result.value, "is_error": result.is_error})
            return result

        def list_asked() -> None:
            self._list_asked = True
            tools.list_asked()

        return replace(
            tools,
            call=noted(tools.call),
            call_known=noted(tools.call_known or tools.call, known=True),
            record=record if tools.record else None,
            list_asked=list_asked,
        )

    def _log_call(self, name: Any, args: Any, batch: int, **more: Any) -> dict[str, Any]:
        read, raw = chat.read_arguments(args)
        called = chat.replace_surrogates(name) if isinstance(name, str) else None
        made = {"batch": batch, "name": called, "args": read, "raw": raw, "done": False, **more}
        self._calls.append(made)
        return made

    async def after_last_answer(self) -> None:
        """Finish the agent's turn. Record it only if something happens after the agent's last answer."""
        await self._note_fault(finish(self._agent), _AT_THE_END)

    async def settle(self, none_follows: anyio.Event) -> None:
        await self._note_fault(settle(self._agent, none_follows), _AFTERWARDS)

    async def _note_fault(self, end: Awaitable[None], what: Mapping[str, Any]) -> None:
        note = self._recorder.ask(position_of(self._sample.key, "agent"), what)
        answer: dict[str, Any] = {}
        try:
            await end
        except Exception as error:
            answer = {"error": serialize_error(error)}
            raise
        finally:
            if answer or self._calls:
                answer, self._calls = {"calls": self._calls, **answer}, []
                note(answer)

    def end_conversation(self) -> None:
        close(self._agent)


_AT_THE_END: dict[str, Any] = {"messages": []}
"""Recorded instead of a request after the last answer, when no other question follows."""
_AFTERWARDS: dict[str, Any] = {"messages": [], "over": True}
"""Recorded instead of a request for the behavior of a kept process after its conversation has ended."""


def _reply_json(reply: ReadReply) -> dict[str, Any]:
    """Convert a reply to JSON. If the reply cannot be represented as JSON, convert it to an error."""
    usage = read_usage(reply.usage)
    try:
        always = {
            "text": reply.text,
            "tool_calls": [chat.jsonable(_call(call)) for call in reply.tool_calls],
            "messages": [chat.jsonable(message) for message in reply.messages],
            "usage": usage.model_dump() if usage else unread_usage(reply.usage) or None,
            "latency_ms": reply.latency_ms,
            "extra": chat.drop_unstorable(reply.extra),
        }
        mostly_empty = {
            "agent": reply.agent,
            "evidence": reply.evidence,
            "unplaced": list(reply.unplaced),
            "unknown_tools": sorted(reply.unknown_tools),
            "is_over": reply.is_over,
            "apart": sorted(reply.apart),
            "made": [list(each) for each in reply.made],
        }
    except ValueError as error:
        return {"error": {"type": "AuthorError", "message": f"the agent's reply cannot be recorded: {error}"}}
    return {"reply": {**always, **{name: value for name, value in mostly_empty.items() if value}}}


def _parse_reply(fields: Mapping[str, Any]) -> ReadReply:
    """Convert a recorded reply back to an object. Keys that are no longer fields are ignored."""
    known = {key: value for key, value in fields.items() if key in ReadReply.__dataclass_fields__}
    evidence = CallEvidence(fields["evidence"]) if fields.get("evidence") else None
    made = [RequestedCall(*each) for each in fields.get("made") or ()]
    return ReadReply(**{**known, "evidence": evidence, "made": made})


def _call(call: Any) -> Any:
    """Return a tool call in the format that servers use."""
    if not isinstance(call, ToolCall):
        return call.model_dump(exclude_none=True) if hasattr(call, "model_dump") else call
    arguments = call.args if call.raw_args is None else call.raw_args
    return {**call.extra, "id": call.id, "function": {"name": call.name, "arguments": arguments}}


ToolInvoker: TypeAlias = Callable[[str, Any, int], Awaitable[ToolResult]]


class ReplayedAgents:
    """A factory of agents that replay their recorded behavior."""

    def __init__(self, player: CassettePlayer) -> None:
        self._player = player

    def make(self, sample: Sample) -> Agent:
        return _ReplayedAgent(sample, self._player)

    async def aclose(self) -> None:
        """Do nothing, because no connection is open."""


class _ReplayedAgent:
    """An agent that makes the recorded tool calls and then returns the recorded reply. The calls are executed
    again by the tools of this run."""

    def __init__(self, sample: Sample, player: CassettePlayer) -> None:
        self._sample = sample
        self._player = player
        self._tools: TurnTools | None = None

    async def after_last_answer(self) -> None:
        await self._play_end(_AT_THE_END)

    async def settle(self, _none_follows: anyio.Event) -> None:
        await self._play_end(_AFTERWARDS)

    async def _play_end(self, what: Mapping[str, Any]) -> None:
        answer = self._player.find(position_of(self._sample.key, "agent"), what)
        if self._tools is None or answer is None:
            return
        await _repeat_calls(answer.get("calls") or (), self._tools, to_the_end=False)
        if fault := answer.get("error"):
            raise deserialize_error(fault)

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        self._tools = tools
        spot = position_of(self._sample.key, "agent", turn=tools.turn)
        answer = self._player.answer(spot, _to_request(messages, tools))
        await checkpoint()
        if answer.get("list_asked"):
            tools.list_asked()
        fault = answer.get("error")
        interrupted = fault is not None and fault.get("type") == _CANCELLED
        await _repeat_calls(answer.get("calls") or (), tools, to_the_end=interrupted)
        if interrupted:
            what = (
                f"the recording {self._player.path.name} ends within a reply from {spot}, because it was"
                " interrupted"
            )
            raise AuthorError(Problem(what, "record it again with --record"))
        if fault:
            raise deserialize_error(fault)
        return _parse_reply(answer["reply"])


async def _repeat_calls(calls: Sequence[Mapping[str, Any]], tools: TurnTools, *, to_the_end: bool) -> None:
    """Make the recorded calls with the scenario's simulated tools.

    Calls that did not finish in the recording are started and abandoned, unless one of them ended the reply.
    """
    async with anyio.create_task_group() as unfinished:
        for call in calls:
            arguments = call["args"] if call["raw"] is None else call["raw"]
            ask = _invoker(call, tools)
            if call["done"]:
                await ask(call["name"], arguments, call["batch"])
            else:
                unfinished.start_soon(_begin, ask, call["name"], arguments, call["batch"])
                await checkpoint()
        if not to_the_end:
            unfinished.cancel_scope.cancel()


def _invoker(call: Mapping[str, Any], tools: TurnTools) -> ToolInvoker:
    """Return the function that repeats a recorded call."""
    if "own" not in call or not tools.record:
        return (tools.call_known if call.get("known") else None) or tools.call
    record, recorded = tools.record, call["own"]

    async def recorded_result() -> ToolResult:
        if recorded is None:  # it never finished
            await anyio.sleep_forever()
        return ToolResult(value=recorded["value"], is_error=recorded["is_error"])

    return lambda name, args, batch: record(name, args, batch, recorded_result)


async def _begin(ask: ToolInvoker, name: str, arguments: Any, batch: int) -> None:
    await ask(name, arguments, batch)
