"""Models and agents with a recorder behind them, and those that only play a recording."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import anyio
from anyio.lowlevel import checkpoint
from pydantic import ValidationError

from agenteval.adapters.traffic.cassettes import Player, Recorder, Spot, spot_of
from agenteval.agentside.world import AskedCall
from agenteval.conversation.current_sample import current
from agenteval.core.errors import (
    AfterAnswerError,
    AgentError,
    AuthorError,
    BudgetError,
    InfrastructureError,
    NotAskedError,
    Place,
    Problem,
    UnreadableReplyError,
)
from agenteval.core.protocols import (
    Agent,
    AgentFactory,
    AgentReply,
    ChatModel,
    ModelReply,
    ModelRequest,
    OwnCall,
    TurnTools,
    close,
    finish,
    settle,
)
from agenteval.core.scenario import Sample, SampleKey
from agenteval.core.trajectory import CallEvidence, Message, ToolCall, ToolResult, Usage
from agenteval.messages import chat
from agenteval.messages.reported_usage import read_usage, unread_usage

# ── what went wrong, as JSON and back ────────────────────────────────────────────────────────────


def fault_of(error: BaseException) -> dict[str, Any]:
    """What a recording keeps of an exception, so that a replay ends as the run did."""
    fault: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    match error:
        case AgentError():
            fault["kind"] = error.kind
        case UnreadableReplyError():
            fault |= {"raw": error.raw, "is_flawed": error.is_flawed, "is_final": error.is_final}
        case InfrastructureError():
            fault |= {"is_final": True} if error.is_final else {}
        case AuthorError():
            fault["problems"] = [
                [p.what, p.remedy, list(p.place) if p.place else None] for p in error.problems
            ]
    usage, seen = getattr(error, "usage", None), getattr(error, "seen", None)
    fault |= {"usage": usage.model_dump()} if isinstance(usage, Usage) else {}
    told = _told(seen) if isinstance(seen, AgentReply) else {}
    return fault | ({"seen": told["reply"]} if "reply" in told else {})


def error_of(fault: Mapping[str, Any]) -> Exception:
    """The exception that ``fault_of`` described; one of its name where it is none of ours."""
    message = str(fault.get("message", ""))
    usage = Usage.model_validate(fault["usage"]) if fault.get("usage") else None
    seen = _agents_reply(fault["seen"]) if fault.get("seen") else None
    match fault.get("type"):
        case "AfterAnswerError":
            return AfterAnswerError(message, kind=str(fault.get("kind", "protocol")), seen=seen)
        case "AgentError":
            return AgentError(message, kind=str(fault.get("kind", "exception")), seen=seen)
        case "UnreadableReplyError":
            raw, is_flawed, is_final = (fault.get(key) for key in ("raw", "is_flawed", "is_final"))
            return UnreadableReplyError(
                message, raw=str(raw or ""), usage=usage, is_flawed=bool(is_flawed), is_final=bool(is_final)
            )
        case "BudgetError":
            return BudgetError(message)
        case "NotAskedError":
            return NotAskedError(message)
        case "AuthorError":
            problems = fault.get("problems") or [[message, "", None]]
            return AuthorError(*(Problem(w, r, Place(*place) if place else None) for w, r, place in problems))
        case name if name in _OURS:
            return InfrastructureError(message, seen=seen, is_final=bool(fault.get("is_final")))
    made: Exception = type(str(fault.get("type")), (Exception,), {})(message)
    return made


_CANCELLED = "Cancelled"
_OURS = frozenset(("InfrastructureError", "RefusedError", "SimulatorError", "AgentevalError"))


# ── models ───────────────────────────────────────────────────────────────────────────────────────


def _question(request: ModelRequest) -> dict[str, Any]:
    names = list(request.reply.model_fields)
    return {"system": request.system, "prompt": request.prompt, "reply": names}


def _spot(request: ModelRequest) -> Spot:
    key = None if request.role == "dedup" else current()
    return spot_of(key, request.role, request.subject.metric, request.subject.turn)


class RecordedModel:
    """A ``ChatModel`` whose questions and answers are written down."""

    def __init__(self, model: ChatModel, recorder: Recorder) -> None:
        self._model = model
        self._recorder = recorder

    async def complete(self, request: ModelRequest) -> ModelReply:
        spot, question = _spot(request), _question(request)
        digest = self._recorder.digest(question)
        number = self._recorder.number(spot, digest)
        answer: dict[str, Any]
        try:
            reply = await self._model.complete(request)
        except Exception as error:
            answer = {"error": fault_of(error)}
            self._recorder.write(spot, question, digest=digest, number=number, answer=answer)
            raise
        answer = {
            "model": reply.model,
            "scripted": reply.scripted,
            "usage": reply.usage.model_dump(),
            "value": reply.value.model_dump(mode="json"),
        }
        told = self._recorder.without_secrets(answer)
        self._recorder.write(spot, question, digest=digest, number=number, answer=told)
        return reply if told is answer else _reply_of(told, request)

    async def aclose(self) -> None:
        await self._model.aclose()


class PlayedModel:
    """A ``ChatModel`` that asks no one. Raises what was raised then, and ``AuthorError`` for a question
    that was not asked."""

    def __init__(self, player: Player) -> None:
        self._player = player

    async def complete(self, request: ModelRequest) -> ModelReply:
        spot = _spot(request)
        question = _question(request)
        answer = self._player.answer(spot, question)
        await checkpoint()
        if answer.get("error"):
            # A recording that has it once is of a judge that was asked once.
            more = {} if self._player.has_next(spot, question) else {"is_final": True}
            raise error_of({**answer["error"], **more})
        try:
            reply = _reply_of(answer, request)
        except (ValidationError, LookupError) as error:
            what = f"{self._player.path.name}: the recorded answer of {spot} cannot be read: {error}"
            raise AuthorError(Problem(what, "record it again with --record")) from error
        if flaw := request.flaw_left_in(reply.value, reply.scripted):
            what = f"{self._player.path.name}: the recorded answer of {spot} cannot be used: {flaw}"
            raw = json.dumps(answer["value"], ensure_ascii=False)[:500]
            raise UnreadableReplyError(what, raw=raw, usage=reply.usage, is_flawed=True)
        return reply

    async def aclose(self) -> None:
        """Nothing is open."""


def _reply_of(answer: Mapping[str, Any], request: ModelRequest) -> ModelReply:
    return ModelReply(
        request.reply.model_validate(answer["value"]),
        Usage.model_validate(answer["usage"]),
        str(answer["model"]),
        scripted=bool(answer["scripted"]),
    )


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def _asked(messages: Sequence[Message], tools: TurnTools) -> dict[str, Any]:
    """A copy: the agent may do to its messages what it likes."""
    asked: dict[str, Any] = chat.jsonable({"messages": list(messages), "tools": list(tools.schemas)})
    return asked


class RecordedAgents:
    """The agents of a run, each of their replies written down with the calls that were made for it."""

    def __init__(self, agents: AgentFactory, recorder: Recorder) -> None:
        self._agents = agents
        self._recorder = recorder

    def make(self, sample: Sample) -> Agent:
        return _RecordedAgent(self._agents.make(sample), sample, self._recorder)

    async def aclose(self) -> None:
        await self._agents.aclose()


class _RecordedAgent:
    def __init__(self, agent: Agent, sample: Sample, recorder: Recorder) -> None:
        self._agent = agent
        self._sample = sample
        self._recorder = recorder
        self._calls: list[dict[str, Any]] = []  # one that is made between two replies is of the later
        self._list_asked = False

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        spot = spot_of(self._sample.key, "agent", turn=tools.turn)
        asked = _asked(messages, tools)

        async def made_of(name: str, args: Any, batch: int, ask: CallTool, *, known: bool) -> ToolResult:
            read, raw = chat.read_arguments(args)
            called = chat.whole(name) if isinstance(name, str) else None
            made = {"batch": batch, "name": called, "args": read, "raw": raw, "done": False}
            self._calls.append({**made, "known": True} if known else made)
            made = self._calls[-1]
            result = await ask(name, args, batch)
            made["done"] = True
            return result

        async def carried_out(name: str, args: Any, batch: int, own: OwnCall) -> ToolResult:
            """A call that the agent carries out itself: played again, its result is the recorded one."""
            read, raw = chat.read_arguments(args)
            made = {"batch": batch, "name": name, "args": read, "raw": raw, "done": False, "own": None}
            self._calls.append(made)
            assert tools.record
            result = await tools.record(name, args, batch, own)
            made.update(done=True, own={"value": result.value, "is_error": result.is_error})
            return result

        known = tools.call_known or tools.call
        noted = replace(
            tools,
            call=lambda name, args, batch: made_of(name, args, batch, tools.call, known=False),
            call_known=lambda name, args, batch: made_of(name, args, batch, known, known=True),
            record=carried_out if tools.record else None,
            list_asked=lambda: self._note_list_asked(tools),
        )
        # Cancelled, by a fault that one of its calls met, or at the end of the run: nothing was answered.
        answer: Mapping[str, Any] = {"error": {"type": _CANCELLED}}
        try:
            reply = await self._agent.reply(messages, noted)
            told = _told(reply)
            answer = self._recorder.without_secrets(told)
            return reply if answer is told else _agents_reply(answer["reply"])
        except Exception as error:
            answer = {"error": fault_of(error)}
            raise
        finally:
            digest = self._recorder.digest(asked)
            number = self._recorder.number(spot, digest)
            answer = {"calls": self._calls, **({"list_asked": True} if self._list_asked else {}), **answer}
            self._calls, self._list_asked = [], False
            self._recorder.write(spot, asked, digest=digest, number=number, answer=answer)

    def _note_list_asked(self, tools: TurnTools) -> None:
        self._list_asked = True
        tools.list_asked()

    async def after_last_answer(self) -> None:
        """Where nothing happens after it, nothing is written down."""
        await self._note_fault(finish(self._agent), _AT_THE_END)

    async def settle(self, none_follows: anyio.Event) -> None:
        await self._note_fault(settle(self._agent, none_follows), _AFTERWARDS)

    async def _note_fault(self, end: Awaitable[None], what: Mapping[str, Any]) -> None:
        answer: dict[str, Any] = {}
        try:
            await end
        except Exception as error:
            answer = {"error": fault_of(error)}
            raise
        finally:
            if answer or self._calls:
                digest = self._recorder.digest(what)
                spot = spot_of(self._sample.key, "agent")
                answer, self._calls = {"calls": self._calls, **answer}, []
                self._recorder.write(spot, what, digest=digest, number=0, answer=answer)

    def end_conversation(self) -> None:
        close(self._agent)


_AT_THE_END: dict[str, Any] = {"messages": []}
"""In place of what was asked: after the last answer nothing is."""
_AFTERWARDS: dict[str, Any] = {"messages": [], "over": True}
"""The same for what a kept process does once its conversation is over."""


_PLAYED_AGAIN: dict[str, Any] = {"messages": [], "again": True}
"""In place of what was asked: the conversation was lost, and played once more. What was asked in it again has
the next number."""


def note_played_again(recorder: Recorder, key: SampleKey) -> None:
    digest = recorder.digest(_PLAYED_AGAIN)
    recorder.write(spot_of(key, "agent"), _PLAYED_AGAIN, digest=digest, number=0, answer={})


def is_played_again(player: Player, key: SampleKey) -> bool:
    """Whether a conversation that was lost was played once more when it was recorded."""
    return player.has(spot_of(key, "agent"), _PLAYED_AGAIN)


def _told(reply: AgentReply) -> dict[str, Any]:
    """A reply as JSON. What JSON cannot hold is reported in place of it."""
    usage = read_usage(reply.usage)
    try:
        return {
            "reply": {
                "text": reply.text,
                "tool_calls": [chat.jsonable(_call(call)) for call in reply.tool_calls],
                "messages": [chat.jsonable(message) for message in reply.messages],
                "usage": usage.model_dump() if usage else unread_usage(reply.usage) or None,
                "latency_ms": reply.latency_ms,
                "extra": chat.storable(reply.extra),
                **({"alone": True} if reply.alone else {}),
                **({"agent": reply.agent} if reply.agent else {}),
                **({"evidence": reply.evidence} if reply.evidence else {}),
                **({"unplaced": list(reply.unplaced)} if reply.unplaced else {}),
                **({"apart": sorted(reply.apart)} if reply.apart else {}),
                **({"made": [list(each) for each in reply.made]} if reply.made else {}),
            }
        }
    except ValueError as error:
        return {"error": {"type": "AuthorError", "message": f"the agent's reply cannot be recorded: {error}"}}


def _agents_reply(told: Mapping[str, Any]) -> AgentReply:
    evidence = CallEvidence(told["evidence"]) if told.get("evidence") else None
    made = [AskedCall(*each) for each in told.get("made") or ()]
    return AgentReply(**{**told, "evidence": evidence, "made": made})


def _call(call: Any) -> Any:
    """A tool call as a server would write it."""
    if not isinstance(call, ToolCall):
        return call.model_dump(exclude_none=True) if hasattr(call, "model_dump") else call
    arguments = call.args if call.raw_args is None else call.raw_args
    return {**call.extra, "id": call.id, "function": {"name": call.name, "arguments": arguments}}


CallTool: TypeAlias = Callable[[str, Any, int], Awaitable[ToolResult]]


class PlayedAgents:
    """Makes agents that only repeat what was recorded."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def make(self, sample: Sample) -> Agent:
        return _PlayedAgent(sample, self._player)

    async def aclose(self) -> None:
        """Nothing is open."""


class _PlayedAgent:
    """Makes the same calls of the same tools, which answer anew, and then the same reply."""

    def __init__(self, sample: Sample, player: Player) -> None:
        self._sample = sample
        self._player = player
        self._tools: TurnTools | None = None

    async def after_last_answer(self) -> None:
        await self._play_end(_AT_THE_END)

    async def settle(self, _none_follows: anyio.Event) -> None:
        await self._play_end(_AFTERWARDS)

    async def _play_end(self, what: Mapping[str, Any]) -> None:
        spot = spot_of(self._sample.key, "agent")
        if self._tools is None or not self._player.has(spot, what):
            return
        answer = self._player.answer(spot, what)
        await _make(answer.get("calls") or (), self._tools, to_the_end=False)
        if fault := answer.get("error"):
            raise error_of(fault)

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        self._tools = tools
        spot = spot_of(self._sample.key, "agent", turn=tools.turn)
        answer = self._player.answer(spot, _asked(messages, tools))
        await checkpoint()
        if answer.get("list_asked"):
            tools.list_asked()
        fault = answer.get("error")
        interrupted = fault is not None and fault.get("type") == _CANCELLED
        await _make(answer.get("calls") or (), tools, to_the_end=interrupted)
        if interrupted:
            what = f"the recording {self._player.path.name} ends within a reply of {spot}: it was interrupted"
            raise AuthorError(Problem(what, "record it again with --record"))
        if fault:
            raise error_of(fault)
        return _agents_reply(answer["reply"])


async def _make(calls: Sequence[Mapping[str, Any]], tools: TurnTools, *, to_the_end: bool) -> None:
    """The calls through the tool world. Those that did not come to their end then are begun and left,
    unless it was one of them that ended the reply."""
    async with anyio.create_task_group() as unfinished:
        for call in calls:
            arguments = call["args"] if call["raw"] is None else call["raw"]
            ask = _asking(call, tools)
            if call["done"]:
                await ask(call["name"], arguments, call["batch"])
            else:
                unfinished.start_soon(_begin, ask, call["name"], arguments, call["batch"])
                await checkpoint()
        if not to_the_end:
            unfinished.cancel_scope.cancel()


def _asking(call: Mapping[str, Any], tools: TurnTools) -> CallTool:
    """By what a recorded call is made again."""
    if "own" not in call or not tools.record:
        return (tools.call_known if call.get("known") else None) or tools.call
    record, told = tools.record, call["own"]

    async def own() -> ToolResult:
        if told is None:  # it had no end
            await anyio.sleep_forever()
        return ToolResult(value=told["value"], is_error=told["is_error"])

    return lambda name, args, batch: record(name, args, batch, own)


async def _begin(ask: CallTool, name: str, arguments: Any, batch: int) -> None:
    await ask(name, arguments, batch)
