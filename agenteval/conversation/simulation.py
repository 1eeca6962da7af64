"""Run one simulated conversation (the conversation loop, or agent loop) between a user and an agent that
calls simulated tools. The trajectory is yielded again each time it has grown."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.to_thread

from agenteval.agentside.world import RequestedCall
from agenteval.conversation.deadlines import current_stopwatch
from agenteval.conversation.tool_faults import DrawnFault, FaultDraws, distort, failed_result, mark_played
from agenteval.conversation.tools import (
    FunctionCall,
    MethodCall,
    SqlCall,
    ToolState,
    UnmatchedCall,
    error_result,
    refused_result,
    resolve_tool_call,
    schemas_of,
    unknown_tool_result,
)
from agenteval.core.call_outcomes import json_key
from agenteval.core.errors import (
    AfterAnswerError,
    AgentError,
    AgentevalError,
    AuthorError,
    BudgetError,
    InfrastructureError,
    MissingFactError,
    SimulatorError,
)
from agenteval.core.json_text import as_text
from agenteval.core.protocols import (
    Agent,
    AgentExecutedCall,
    AgentReply,
    DatabaseAccess,
    ReadReply,
    TurnTools,
    User,
    UserMove,
    finish,
)
from agenteval.core.scenario import Sample
from agenteval.core.tokens import count_tokens
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.core.trajectory import (
    CallEvidence,
    Step,
    Stop,
    StopReason,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
    Usage,
)
from agenteval.messages import agent_messages as observed
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.agent_names import assign_agent, drop_silent_steps, read_agent_name
from agenteval.messages.reported_usage import read_usage, unread_usage

if TYPE_CHECKING:
    from agenteval.conversation.python_world import PythonWorld
    from agenteval.core.world_state import StateChanges
    from agenteval.world.database import WorldDatabase

MAX_TOOL_REPLIES = 50
"""The maximum number of replies with tool calls in one turn. If the agent exceeds this number, it is in an
infinite tool loop."""
MAX_CONTEXT_CALLS = 1000
"""The maximum number of calls through ``ctx`` in one turn. If the agent exceeds this number, it is in an
infinite tool loop."""
MAX_CALLS = 1000
"""The maximum number of calls in one reply. A reply with more calls is unreadable, and none of its calls are
carried out."""

FoundAnswer: TypeAlias = ToolResult | FunctionCall | MethodCall | SqlCall | UnmatchedCall
CallFunction: TypeAlias = Callable[[FunctionCall, Sample, int], Awaitable[ToolResult]]
"""Runs a mock function written in Python for a sample and a turn (from 0)."""


class ToolWorld:
    """The simulated tools (tool mocks) of one sample, and their state. Each conversation has its own tool
    world."""

    def __init__(
        self,
        sample: Sample,
        call_function: CallFunction,
        *,
        unmocked_tools: str = "error",
        sees_all_calls: bool = False,
        database: WorldDatabase | None = None,
        python_world: PythonWorld | None = None,
        start_over: Callable[[], Awaitable[ToolWorld]] | None = None,
    ) -> None:
        """Create the tools of ``sample``, with its ``database`` if the scenario has a state, and with its
        ``python_world`` if the scenario has a back end in Python. ``start_over`` creates the same tools in
        the start state. If ``sees_all_calls`` is true, the author declares that all calls are seen, so
        unrecognized content contains no calls."""
        self._sample = sample
        self.sees_all_calls = sees_all_calls
        self._list_asked = False
        self.intercepted_call_ids: set[str] = set()
        """The ids of calls that were observed."""
        self._call_function = call_function
        self._unmocked = unmocked_tools
        self._state = ToolState()
        self._database = database
        self.python_world = python_world
        self._start_over = start_over
        self._faults = FaultDraws(sample.seed)
        self._earlier_results: dict[tuple[str, Any], ToolResult] = {}
        """The latest results of the tools that may give a stale one, keyed by tool and arguments."""
        self._database_lock = anyio.Lock()
        self._read_state: StateChanges | None = None
        self.database_access = _access_to(sample, database)
        """The file of the database, if the agent's own tools work on it, too."""
        self._user_calls: list[ToolCall] = []
        self.schemas = schemas_of(sample.scenario.tools)
        self.watch = current_stopwatch()
        self.open_turn: _OpenTurn | None = None
        self.rounds: _Rounds | None = _Rounds(self, 0)
        self.on_late_call: Callable[[str], None] = lambda name: None
        self.on_warning: Callable[[str], None] = lambda text: None

    def is_intercepted(self, call: ToolCall) -> bool:
        """Check whether a call was intercepted, or observed, at the point where the agent carries it out.
        Such a call is not a message to the agent."""
        return call.known or (bool(call.id) and call.id in self.intercepted_call_ids)

    def note_tool_list_request(self) -> None:
        """Note that the agent requested the list of tools. May be called from any thread."""
        self._list_asked = True

    def take_tool_list_request(self) -> bool:
        """Return whether the agent has requested the list of tools since this method was last called."""
        was_requested, self._list_asked = self._list_asked, False
        return was_requested

    @property
    def answered_tools(self) -> frozenset[str] | None:
        """The tools whose calls the scenario answers, if the agent runs all other tools itself; otherwise
        ``None``."""
        return frozenset(self._sample.scenario.tools) if self._unmocked == "passthrough" else None

    @property
    def mocked_tools(self) -> frozenset[str]:
        """The tools for which the scenario has an answer."""
        return frozenset(name for name, tool in self._sample.scenario.tools.items() if tool.is_mocked)

    def is_passthrough(self, name: str) -> bool:
        """Check whether the agent runs a tool itself (``unmocked_tools: passthrough``)."""
        return self.answered_tools is not None and name not in self.answered_tools

    async def call(
        self, name: str, args: Any, batch: int, own: AgentExecutedCall | None = None, *, known: bool = False
    ) -> ToolResult:
        """Answer a tool call that the agent makes through ``ctx``.

        A call that arrives after the agent's answer belongs to the turn that is in progress at that time; if
        there is none, the call belongs to the next turn. After the conversation, the call never returns a
        result. If ``own`` is true, the agent carries out the call itself. If ``known`` is true, the agent
        certainly has such a tool."""
        if self.rounds is None:
            self.on_late_call(name)
            raise asyncio.CancelledError
        return await self.rounds.call(name, args, batch, own, known=known)

    async def resolve(self, call: ToolCall, turn: int) -> ToolResult:
        """Answer a call that the agent makes in a turn."""
        scenario = self._sample.scenario
        if call.name in scenario.user_tools and self._unmocked != "passthrough":
            return unknown_tool_result(call.name, scenario.tools)
        state, answer = self._find_answer(call, turn, self._state)
        tool = scenario.tools.get(call.name)
        is_refused = isinstance(answer, ToolResult) and answer.refused
        if tool is not None and tool.faults and not is_refused:
            drawn = self._faults.draw(call.name, call.args, tool.faults)
            if drawn is not None:
                with self.watch.track_activity(f"the tool '{call.name}'"):
                    return await self._answer_with_fault(drawn, call, turn, state, answer)
        self._state = state
        result = await self._answer(answer, turn)
        if tool is not None and any(fault.kind == "stale" for fault in tool.faults):
            self._earlier_results[call.name, json_key(call.args)] = result
        return result

    def _find_answer(self, call: ToolCall, turn: int, state: ToolState) -> tuple[ToolState, FoundAnswer]:
        return resolve_tool_call(
            self._sample.scenario.tools,
            state,
            call.name,
            call.args,
            unmocked_tools=self._unmocked,
            known=call.known,
            turn=turn,
        )

    async def call_user_tool(self, name: str, args: Any, turn: int) -> ToolCall:
        """Make a call of one of the user's tools, which becomes part of the turn whose message follows."""
        read, raw = chat.read_arguments(args)
        call = ToolCall(name=name, args=read, raw_args=raw)
        self._state, answer = resolve_tool_call(
            self._sample.scenario.user_tools, self._state, call.name, call.args, turn=turn
        )
        result = await self._answer(answer, turn)
        self._user_calls.append(call.model_copy(update={"result": result}))
        return self._user_calls[-1]

    def take_user_calls(self) -> tuple[ToolCall, ...]:
        """Return the user's calls since this method was last called."""
        calls, self._user_calls = tuple(self._user_calls), []
        return calls

    async def _answer(self, answer: FoundAnswer, turn: int, *, is_undone: bool = False) -> ToolResult:
        if isinstance(answer, UnmatchedCall):
            self.on_warning(f"tool '{answer.tool}': no rule matches the arguments {as_text(answer.args)}")
            return error_result("there is no result for these arguments")
        if isinstance(answer, ToolResult):
            return answer
        with self.watch.track_activity(f"the tool '{answer.tool}'"):
            return await self.answer_from_state(answer, turn, is_undone=is_undone)

    async def _answer_with_fault(
        self, drawn: DrawnFault, call: ToolCall, turn: int, state: ToolState, answer: FoundAnswer
    ) -> ToolResult:
        """Answer a call that has a fault. A call that is not carried out uses up no entry of a sequence."""
        fault, args = drawn.fault, call.args or {}
        if failed := failed_result(fault):
            return failed
        if fault.kind == "no_op":
            if isinstance(answer, SqlCall) and self._only_reads(answer):
                self._state = state  # there is nothing to keep from happening
                return await self._answer(answer, turn)
            return mark_played(await self._answer(answer, turn, is_undone=True), fault, "nothing was changed")
        if fault.kind == "stale":
            return await self._answer_stale(drawn, call, turn, answer)
        self._state = state
        if fault.kind == "latency":
            await anyio.sleep((fault.ms or 0) / 1000)
            return mark_played(await self._answer(answer, turn), fault, f"{fault.ms or 0:g} ms late")
        result = await self._answer(answer, turn)
        database = self._database
        return distort(result, drawn, args, database.column_values if database else lambda *_: ())

    def _only_reads(self, call: SqlCall) -> bool:
        from agenteval.conversation.sql_tools import only_reads  # most scenarios have no state

        return self._database is not None and only_reads(self._database, call)

    async def _answer_stale(
        self, drawn: DrawnFault, call: ToolCall, turn: int, answer: FoundAnswer
    ) -> ToolResult:
        """Answer a call with the previous answer to its arguments or, if there is none, with the answer over
        the start state. Nothing is carried out. An answer that is up to date is no fault."""
        current = await self._answer(answer, turn, is_undone=True)
        tool = self._sample.scenario.tools[call.name]
        is_reading = isinstance(answer, SqlCall) and self._only_reads(answer)
        may_change = tool.has_effects and effect_of(call.name, tool) is not ToolEffect.READS
        is_suppressed = may_change and not is_reading
        stale = self._earlier_results.get((call.name, json_key(call.args)))
        if stale is None and self._start_over is not None:
            start = await self._start_over()
            try:
                stale = await start._answer(start._find_answer(call, turn, ToolState())[1], turn)
            finally:
                start.close()
        if stale is None or (stale.value == current.value and not is_suppressed):
            return current
        return mark_played(stale, drawn.fault, "an earlier answer")

    async def answer_from_state(
        self, call: FunctionCall | MethodCall | SqlCall, turn: int, *, is_undone: bool = False
    ) -> ToolResult:
        """Answer a call that may read and change the state, on which one call works at a time. With
        ``is_undone``, nothing stays changed."""
        if isinstance(call, MethodCall):
            assert self.python_world  # only its methods are answered in this way
            async with self._database_lock:
                return await self.python_world.answer(call, turn, is_undone=is_undone)
        if self._database is None:
            assert isinstance(call, FunctionCall)  # a scenario with SQL has a state, even if it is empty
            return await self._call_function(call, self._sample, turn)
        from agenteval.conversation.sql_tools import answer_sql_call  # most scenarios have no state

        async with self._database_lock:
            if isinstance(call, SqlCall):
                return answer_sql_call(self._database, call, is_undone=is_undone)
            with self._database.transaction(call.tool) as transaction:
                with_state = call._replace(database=transaction)
                result = await self._call_function(with_state, self._sample, turn)
                if result.is_error or is_undone:
                    transaction.rollback()
                return result

    def close(self) -> None:
        """Free the copy of the state."""
        if self._database:
            self._database.close()

    def state_changes(self) -> StateChanges | None:
        """Return what differs from the start of the conversation, or ``None`` if the scenario has no
        state."""
        if self._database is None:
            return None
        if self.python_world and (why := self.python_world.unknown_because):
            from agenteval.core.world_state import StateChanges

            return StateChanges(is_complete=False, unknown_because=why)
        found, self._read_state = self._read_state, None
        return found or self._database.changes()

    async def read_exposed_state(self) -> StateChanges | None:
        """Return what differs now in a file on which the agent works, or ``None`` if there is none."""
        if self.database_access is None or self._database is None:
            return None
        return await anyio.to_thread.run_sync(self._database.changes)

    async def prepare_state(self) -> None:
        """Read the agent's file in a thread, because its size and locks are the agent's, for the next
        ``state_changes``."""
        self._read_state = await self.read_exposed_state()


def _access_to(sample: Sample, database: WorldDatabase | None) -> DatabaseAccess | None:
    path, state = database.path if database else None, sample.scenario.state
    if path is None or state is None or state.expose is None:
        return None
    return DatabaseAccess(state.expose, str(path))


DetachAgent: TypeAlias = Callable[[Agent | None], Awaitable[None]]
"""Detaches an agent after its last answer."""


async def _detach_nothing(_agent: Agent | None) -> None:
    """Do nothing, because the agent does not have to be detached."""


async def run_conversation(
    sample: Sample,
    *,
    user: User,
    make_agent: Callable[[], Agent],
    world: ToolWorld,
    detach: DetachAgent = _detach_nothing,
) -> AsyncIterator[Trajectory]:
    """Run a conversation, and yield its trajectory after each finished turn, without a stop. At the end,
    yield the trajectory exactly once more, with the stop and without a new turn.

    Faults end the conversation and are reported as its stop; none are raised. ``detach`` detaches the agent
    after its last answer and waits until the agent's later actions are known; it raises ``AgentError``."""
    trajectory = Trajectory()
    agent: Agent | None = None
    while True:
        world.watch.begin_turn()
        try:
            with world.watch.enforce_deadlines("the simulated user", _user_too_slow):
                move = await user.next(trajectory)
        except AgentevalError as error:
            yield await _end_without_user(trajectory, error, agent, world, detach)
            return
        if move.text is None:
            break
        turn = world.open_turn = _OpenTurn(len(trajectory.turns), move, world)
        try:
            agent = agent or make_agent()
            with world.watch.enforce_deadlines("the agent", _agent_too_slow):
                finished = await turn.run(agent, (*sample.scenario.history_turns, *trajectory.turns))
        except AgentevalError as error:
            world.open_turn = None
            yield turn.broken(trajectory, error)
            return
        world.open_turn = None
        trajectory = trajectory.model_copy(update={"turns": (*trajectory.turns, finished)})
        yield trajectory
        if move.stop:
            break
    yield await _finish_conversation(trajectory, move, agent, world, detach)


async def _finish_conversation(
    trajectory: Trajectory, last: UserMove, agent: Agent | None, world: ToolWorld, detach: DetachAgent
) -> Trajectory:
    """Return the trajectory of a conversation that its user ended."""
    unspoken = last.usage if last.text is None else Usage()
    stop = Stop(reason=last.stop or StopReason.USER_DONE, user_usage=unspoken)
    ended = await _await_agent_end(trajectory.model_copy(update={"stop": stop}), finish(agent), world)
    ended = with_late_calls(ended, world)
    if ended.stop and ended.stop.fault is None:
        ended = await _await_agent_end(ended, detach(agent), world)
    return await _with_end_state(ended, world)


async def _with_end_state(ended: Trajectory, world: ToolWorld) -> Trajectory:
    """Return the trajectory of a conversation whose agent was detached. Its process may have written to the
    database after the last answer, up to its end."""
    state = await world.read_exposed_state()
    if state is None or state == ended.final_state:
        return ended
    return ended.model_copy(update={"end_state": state})


async def _end_without_user(
    trajectory: Trajectory, error: AgentevalError, agent: Agent | None, world: ToolWorld, detach: DetachAgent
) -> Trajectory:
    """Return the trajectory of a conversation that ended because its user failed."""
    ended = trajectory.model_copy(update={"stop": _stop_of(error), "unfinished": _refused_turn(error, world)})
    if isinstance(error, InfrastructureError) and not isinstance(error, BudgetError):
        ended = await _await_agent_end(ended, finish(agent), world)
        ended = await _await_agent_end(ended, detach(agent), world)
    world.rounds = None
    return ended


async def _await_agent_end(ended: Trajectory, end: Awaitable[None], world: ToolWorld) -> Trajectory:
    """Return the trajectory of a conversation without additional messages. If the agent fails in its ``end``,
    the fault is attributed to the turn that contains its last answer."""
    try:
        with world.watch.track_activity("the agent's shutdown"):
            await end
    except AgentError as error:
        stop = _charged_stop(error, len(ended.turns) - 1, ended.stop.user_usage if ended.stop else Usage())
        return ended.model_copy(update={"stop": stop})
    except InfrastructureError as error:  # the calls seen in its turns may be another agent's
        spent = ended.stop.user_usage if ended.stop else Usage()
        return ended.model_copy(update={"stop": _stop_of(error).model_copy(update={"user_usage": spent})})
    return ended


def _charged_stop(error: AgentError, turn: int, unspoken: Usage) -> Stop:
    """Return the stop for a fault that is attributed to a finished turn. ``unspoken`` is the usage of a user
    message that was never sent."""
    return _stop_of(error).model_copy(update={"turn": turn, "user_usage": unspoken})


def with_late_calls(ended: Trajectory, world: ToolWorld) -> Trajectory:
    """Return the trajectory of a finished conversation. If the agent called tools after its last answer, the
    agent has failed."""
    steps = world.rounds.take() if world.rounds else []
    if not steps or not world.rounds:
        return ended
    names = ", ".join(dict.fromkeys(f"'{call.name}'" for step in steps for call in step.tool_calls))
    what = f"the agent called {names} after its last answer; await the calls before answering"
    fault = world.rounds.fault or AgentError(what)
    world.rounds = None
    late = Turn(user="", steps=tuple(steps), error=str(fault), evidence=CallEvidence.ASKED)
    broke = ended.stop is not None and ended.stop.fault == "agent"
    stop = ended.stop if broke else _stop_of(fault)
    return ended.model_copy(update={"stop": stop, "unfinished": late})


def _user_too_slow(what: str) -> AgentevalError:
    return InfrastructureError(what)


def _agent_too_slow(what: str) -> AgentevalError:
    return AgentError(what, kind="timeout")


def _refused_turn(error: AgentevalError, world: ToolWorld) -> Turn | None:
    """Return the turn that a refused message would have begun. The turn is kept as evidence and because it
    incurred a cost."""
    if not isinstance(error, SimulatorError):
        return None
    return Turn(
        user=error.rejected_text,
        error=str(error),
        user_usage=error.usage or Usage(),
        user_tool_calls=world.take_user_calls(),
        user_fault=str(error),
    )


def _stop_of(error: AgentevalError) -> Stop:
    match error:
        case AgentError(kind="timeout"):
            reason = StopReason.AGENT_TIMEOUT
        case AgentError(kind="tool_loop"):
            reason = StopReason.TOOL_LOOP
        case AgentError():
            reason = StopReason.AGENT_ERROR
        case AuthorError():
            reason = StopReason.AUTHOR_ERROR
        case SimulatorError():
            reason = StopReason.SIMULATOR
        case BudgetError():
            reason = StopReason.BUDGET
        case _:
            reason = StopReason.INFRASTRUCTURE
    spent = error.usage if isinstance(error, MissingFactError) else None
    is_final = isinstance(error, InfrastructureError) and error.is_final
    return Stop(reason=reason, detail=str(error), user_usage=spent or Usage(), is_final=is_final)


class _OpenTurn:
    """A turn in progress. It calls the agent, answers the agent's tool calls and records the events of the
    turn."""

    def __init__(self, index: int, move: UserMove, world: ToolWorld) -> None:
        self._index = index
        self._move = move
        self._user = move.text or ""
        self._user_calls = world.take_user_calls()
        self._world = world
        self._steps: list[Step] = []
        self._sent: Sequence[Turn] = ()
        self._evidence: CallEvidence | None = None
        self._unplaced: dict[str, None] = {}
        self._rounds = world.rounds = world.rounds or _Rounds(world, index)
        self._spent_ms = 0.0
        self._asked_at: float | None = None  # when the agent received the request
        self._answering: list[ToolCall] = []

    def close(self, error: str | None = None) -> Turn:
        self._keep_answers()
        self._steps += self._taken_rounds()
        if self._world.take_tool_list_request():
            self._record_evidence(CallEvidence.ASKED)
        self._world.rounds = None if error else _Rounds(self._world, self._index + 1)
        if self._asked_at is not None:
            self._spent_ms += (time.perf_counter() - self._asked_at) * 1000
        return Turn(
            user=self._user,
            user_wrote=self._move.wrote,
            steps=tuple(self._steps),
            latency_ms=self._spent_ms,
            error=error,
            script=self._move.script,
            user_model=self._move.model,
            user_usage=self._move.usage,
            user_tool_calls=self._user_calls,
            user_fault=self._move.fault,
            evidence=self._evidence,
            unplaced=() if self._world.sees_all_calls else tuple(self._unplaced),
            state=self._world.state_changes(),
        )

    def _record_evidence(self, evidence: CallEvidence | None) -> None:
        """Record evidence. Evidence that also covers the agent's own calls takes precedence over evidence
        that the agent requested a tool."""
        if evidence and self._evidence in (None, CallEvidence.ASKED):
            self._evidence = evidence

    @property
    def is_answered(self) -> bool:
        """True if the turn contains a reply from the agent."""
        return bool(self._steps)

    def broken(self, before: Trajectory, error: AgentevalError) -> Trajectory:
        """Return the trajectory of a conversation that ended within this turn."""
        if isinstance(error, AfterAnswerError) and before.turns and not self.is_answered:
            return self._unsent(before, error)
        self.keep(error.seen)
        turn = self.close(error=str(error))
        return before.model_copy(update={"stop": _stop_of(error), "unfinished": turn})

    def _unsent(self, before: Trajectory, error: AgentError) -> Trajectory:
        """Return the trajectory if the message was never sent because the agent failed after its answer to
        the previous message. Calls that arrived in the meantime are kept."""
        turn = self.close(error=str(error))
        stop = _charged_stop(error, self._index - 1, Usage() if turn.steps else turn.user_usage)
        return before.model_copy(update={"stop": stop, "unfinished": turn if turn.steps else None})

    async def run(self, agent: Agent, before: Sequence[Turn]) -> Turn:
        if self._rounds.fault:  # from a call before this turn
            raise self._rounds.fault
        for _ in range(MAX_TOOL_REPLIES + 1):
            sent = (*before, Turn(user=self._user, steps=tuple(self._steps)))
            self._sent, messages = sent, chat.to_chat_messages(sent, self._world.is_intercepted)
            tools = self._turn_tools()
            self._asked_at = time.perf_counter()
            reply = ReadReply.from_reply(await self._rounds.while_thinking(agent.reply(messages, tools)))
            latency_ms = reply.latency_ms
            if latency_ms is None:
                latency_ms = (time.perf_counter() - self._asked_at) * 1000
            self._spent_ms += latency_ms
            self._asked_at = None
            self._add_reply(reply, sent, latency_ms)
            if not await self._answer_calls():
                await self._world.prepare_state()
                return self.close()
        raise AgentError(
            f"tool loop: more than {MAX_TOOL_REPLIES} replies with tool calls in one turn", kind="tool_loop"
        )

    def _turn_tools(self) -> TurnTools:
        world = self._world
        return TurnTools(
            turn=self._index,
            schemas=world.schemas,
            call=world.call,
            answered=world.answered_tools,
            record=world.call,
            call_known=partial(world.call, known=True),
            list_asked=world.note_tool_list_request,
            mocked=world.mocked_tools,
            database=world.database_access,
        )

    def keep(self, seen: AgentReply | None) -> None:
        """Keep what the agent reported about the turn before it failed. Calls that it had requested by then
        remain unanswered."""
        if seen is None:
            return
        with suppress(AgentevalError):  # half a call, or none: the agent's failure is known already
            self._keep_answers()
            reply = ReadReply.from_reply(seen)
            read = observed.read_turn(reply.messages, self._sent)
            requested = _steps_of(ReadReply(tool_calls=reply.tool_calls), (), ())
            listed = _steps_of(replace(reply, tool_calls=()), read.steps, self._taken_rounds())
            steps = [
                step for step in (*listed, *map(_refused_step, requested)) if step.text or step.tool_calls
            ]
            self._note_reply_evidence(reply, read)
            self._steps += self._with_measured_usage(reply.usage, steps)

    def _taken_rounds(self, *, answered: bool = False) -> list[Step]:
        rounds = self._rounds.take(answered=answered)
        if rounds:
            self._record_evidence(CallEvidence.ASKED)
        return rounds

    def _note_reply_evidence(self, reply: ReadReply, read: observed.ParsedTurn) -> None:
        """Record what a reply reveals about the visibility of the agent's calls, and which parts of the reply
        were not recognized."""
        self._record_evidence(reply.evidence)
        self._world.intercepted_call_ids.update(reply.apart)
        if any(step.tool_calls for step in read.steps):
            self._record_evidence(CallEvidence.REPORTED)
        elif any(
            not call.attempted for call in map(chat.read_tool_call, map(foreign.as_call, reply.tool_calls))
        ):
            self._record_evidence(CallEvidence.ASKED)
        for entry in (*reply.unplaced, *read.unplaced):
            self._unplaced.setdefault(entry)
            if not self._world.sees_all_calls:
                self._world.on_warning(entry)

    def _add_reply(self, reply: ReadReply, sent: Sequence[Turn], latency_ms: float) -> None:
        """Add the steps of a reply to the messages in ``sent``. The last step carries the usage and latency
        of the reply."""
        read = observed.read_turn(reply.messages, sent)
        self._note_reply_evidence(reply, read)
        reply_steps = _steps_of(reply, read.steps, self._taken_rounds(answered=True))
        fault, steps = _find_unreadable_call(reply_steps), reply_steps
        if fault:
            steps = [_refused_step(step) for step in reply_steps]
        *before, last = self._with_measured_usage(reply.usage, steps)
        self._steps += [*before, last.model_copy(update={"latency_ms": latency_ms})]
        if fault:
            raise fault

    def _with_measured_usage(self, reported: Any, steps: Sequence[Step]) -> Sequence[Step]:
        """Return the steps of a reply with their usage: the total that the reply ``reported``, the usage
        reported by each of its messages (messages without a report count as zero), or an estimate, in that
        order of preference."""
        usage, unread = read_usage(reported), unread_usage(reported)
        if usage is not None:
            return _with_usage(steps, usage)
        if not unread and any(step.usage.is_spent or step.unread_usage for step in steps):
            return [
                self._estimated(steps, at, calls=1) if step.unread_usage else step
                for at, step in enumerate(steps)
            ]
        last = len(steps) - 1
        estimates = [self._estimated(steps, at, calls=int(at == last)) for at in range(len(steps))]
        return [
            step.model_copy(update={"unread_usage": unread if at == last else ""})
            for at, step in enumerate(estimates)
        ]

    def _estimated(self, steps: Sequence[Step], at: int, *, calls: int) -> Step:
        before = (*self._steps[-1:], *steps[:at])
        estimate = _estimate(self._user, before[-1] if before else None, steps[at], calls=calls)
        return steps[at].model_copy(update={"usage": estimate})

    async def _answer_calls(self) -> bool:
        """Answer the calls of the last step. Return ``False`` if there were no calls, which means that the
        turn is over."""
        step = self._steps[-1]
        open_indexes = [
            at
            for at, call in enumerate(step.tool_calls)
            if call.result is None and not (call.given_up or call.attempted)
        ]
        if not open_indexes:
            return False
        # If the turn is closed in the meantime, the answers so far count.
        calls = self._answering = list(step.tool_calls)
        answered = False
        for index in open_indexes:
            if self._world.is_passthrough(calls[index].name):
                calls[index] = calls[index].model_copy(update={"observed": True})
                continue
            answered = True
            began = time.perf_counter()
            result = await self._world.resolve(calls[index], self._index)
            self._spent_ms += (time.perf_counter() - began) * 1000
            calls[index] = calls[index].model_copy(update={"result": result, "observed": False})
        self._keep_answers()
        return answered

    def _keep_answers(self) -> None:
        """Store the answers received so far in the last step."""
        if self._answering:
            self._steps[-1] = self._steps[-1].model_copy(update={"tool_calls": tuple(self._answering)})
            self._answering = []


class _Rounds:
    """The calls that the agent makes through ``ctx`` while computing its reply. Each batch of calls is one
    round."""

    def __init__(self, world: ToolWorld, turn: int) -> None:
        self._world = world
        self._turn = turn
        self._rounds: dict[int, list[ToolCall]] = {}
        self._count = 0
        self.fault: AgentevalError | None = None
        self._thinking: anyio.CancelScope | None = None

    async def while_thinking(self, reply: Awaitable[AgentReply]) -> AgentReply:
        """Return the agent's reply. If a fault occurred in one of its calls, raise the fault at once,
        regardless of what the agent's code does with it: an agent that catches every exception must not hide
        the fault."""
        with anyio.CancelScope() as self._thinking:
            answer = await reply
        if self.fault:
            raise self.fault
        return answer

    async def call(
        self, name: str, args: Any, batch: int, own: AgentExecutedCall | None, *, known: bool = False
    ) -> ToolResult:
        read, raw = chat.read_arguments(args)
        is_agents = own is not None  # then the tool exists
        try:
            called = chat.require_tool_name(name, lambda: f"ctx.call_tool({name!r}, …)")
            call = ToolCall(
                name=called, args=read, raw_args=raw, observed=is_agents, known=known or is_agents
            )
            calls = self._rounds.setdefault(batch, [])
            position = len(calls)
            calls.append(call)
            self._count_call()
            if fault := _find_unreadable_call([Step(tool_calls=(call,))]):
                raise fault
            result = await (own() if own else self._world.resolve(call, self._turn))
        except AgentevalError as error:
            self.fault = self.fault or error
            if self._thinking:
                self._thinking.cancel()
            await anyio.sleep_forever()  # do not raise: the agent could catch it and call again for ever
        calls[position] = call.model_copy(update={"result": result})
        return result

    def _count_call(self) -> None:
        self._count += 1
        if self._count > MAX_CONTEXT_CALLS:
            raise AgentError(
                f"tool loop: more than {MAX_CONTEXT_CALLS:,} calls through ctx in one turn", kind="tool_loop"
            )

    def take(self, *, answered: bool = False) -> list[Step]:
        """Return the rounds since this method was last called, as steps. If the agent has ``answered``, calls
        that are still waiting for a result are given up."""
        rounds, self._rounds = self._rounds, {}
        return [
            Step(tool_calls=tuple(_give_up(call) if answered else call for call in calls))
            for calls in rounds.values()
        ]


def _give_up(call: ToolCall) -> ToolCall:
    return call if call.result else call.model_copy(update={"given_up": True})


def _steps_of(reply: ReadReply, listed: Sequence[Step], recorded: Sequence[Step]) -> list[Step]:
    """Return the steps of one reply: the calls through ``ctx``, the content of the reply's message list, and
    the reply's own text and calls. A call or text that is reported twice is included only once."""
    listed = drop_silent_steps([_refuse_unknown_tools(step, reply.unknown_tools) for step in listed])
    steps = _merge_recorded_calls(listed, _with_call_ids(recorded, reply.made))
    if reply.is_over:
        steps = [_give_up_unanswered(step) for step in steps]
    calls = tuple(chat.read_tool_call(foreign.as_call(call)) for call in reply.tool_calls)
    agent = read_agent_name(reply.agent)
    answered_ids = {call.id for step in steps for call in step.tool_calls if call.result is not None}
    calls = tuple(call for call in calls if not call.id or call.id not in answered_ids)
    is_already_listed = bool(listed) and not calls and reply.text in (None, "", steps[-1].text)
    if not is_already_listed:
        text = None if reply.text is None else chat.replace_surrogates(reply.text)
        steps.append(
            assign_agent(Step(text=text, tool_calls=calls, extra=chat.drop_unstorable(reply.extra)), agent)
        )
    return steps


def _with_usage(steps: Sequence[Step], usage: Usage) -> list[Step]:
    """Return the steps of a reply whose total usage is known. The last step carries the usage."""
    last = len(steps) - 1
    return [
        step.model_copy(update={"usage": usage if at == last else Usage(), "unread_usage": ""})
        for at, step in enumerate(steps)
    ]


def _find_unreadable_call(steps: Sequence[Step]) -> AgentError | None:
    """Return the error for calls in a reply that cannot be carried out as the agent intended."""
    for step in steps:
        if len(step.tool_calls) > MAX_CALLS:
            what = f"{len(step.tool_calls):,} tool calls in one reply; at most {MAX_CALLS:,} are allowed"
            return AgentError(f"unreadable reply: {what}", kind="protocol")
        for call in step.tool_calls:
            if call.raw_args is not None and (why := chat.describe_duplicate_key(call.raw_args)):
                what = f"unreadable arguments in a call to '{call.name}': {why}"
                return AgentError(what, kind="protocol")
    return None


def _refused_step(step: Step) -> Step:
    """Return the step for a reply that was not carried out. If the reply contains very many calls, only the
    first calls are kept."""
    refused = refused_result("not run: the reply is unreadable")
    calls = (
        call if call.result or call.given_up else call.model_copy(update={"result": refused})
        for call in step.tool_calls[:MAX_CALLS]
    )
    return step.model_copy(update={"tool_calls": tuple(calls)})


def _refuse_unknown_tools(step: Step, unknown: Collection[str]) -> Step:
    """Mark a step's failed calls to nonexistent (hallucinated) tools as refused and not run. Return the
    resulting step."""
    if not any(call.name in unknown for call in step.tool_calls):
        return step
    calls = (
        call.model_copy(
            update={"observed": False, "result": call.result.model_copy(update={"refused": True})}
        )
        if call.name in unknown and call.result and call.result.is_error
        else call
        for call in step.tool_calls
    )
    return step.model_copy(update={"tool_calls": tuple(calls)})


def _give_up_unanswered(step: Step) -> Step:
    """Return the step with all calls without a result marked as given up."""
    return step.model_copy(update={"tool_calls": tuple(map(_give_up, step.tool_calls))})


def _with_call_ids(recorded: Sequence[Step], requested: Sequence[RequestedCall]) -> list[Step]:
    """Return the recorded steps with the ids and agents that the framework uses for their calls."""
    waiting: dict[Any, deque[RequestedCall]] = {}
    for each in requested:
        args, _ = chat.read_arguments(each.arguments)
        waiting.setdefault((each.name, json_key(args)), deque()).append(each)

    def labelled(call: ToolCall) -> ToolCall:
        found = waiting.get((call.name, json_key(call.args)))
        known = found.popleft() if found else None
        return call.model_copy(update={"id": known.call_id, "agent": known.agent}) if known else call

    return [
        step.model_copy(update={"tool_calls": tuple(map(labelled, step.tool_calls))}) for step in recorded
    ]


def _merge_recorded_calls(listed: Sequence[Step], recorded: Sequence[Step]) -> list[Step]:
    """Merge the calls that an agent lists with the calls that were recorded.

    An agent that makes calls through ``ctx`` may list these calls too; if so, the recorded calls replace them
    in the list. Recorded calls that are not in the list are inserted after the listed call that was recorded
    before them (for example, after the call to an agent used as a tool, if that agent made them). If there is
    no such call, they are inserted at the front. A call that was only attempted never reached the scenario,
    so it never matches a recorded call."""
    doubles = _CallMatcher(recorded)
    merged = [doubles.merged(step, at) for at, step in enumerate(listed)]
    behind = doubles.unlisted()
    steps = behind.get(-1, [])
    for at, step in enumerate(merged):
        steps += [step, *behind.get(at, ())]
    return steps


class _CallMatcher:
    """Recorded calls, and the places where an agent lists them again. The place of a recorded call consists
    of its step's index and its index within that step."""

    def __init__(self, recorded: Sequence[Step]) -> None:
        self._recorded = recorded
        self._unmatched: dict[Any, deque[tuple[int, int]]] = {}
        """The places of the calls that are not matched yet, keyed by name and arguments."""
        self._listed_at: dict[tuple[int, int], int] = {}
        """The index of the listed step that also contains a recorded call, keyed by the place of that
        call."""
        for number, step in enumerate(recorded):
            for index, call in enumerate(step.tool_calls):
                self._unmatched.setdefault((call.name, json_key(call.args)), deque()).append((number, index))

    def merged(self, step: Step, at: int) -> Step:
        """Return a listed step with its calls replaced by the recorded calls."""
        if not (step.tool_calls and self._unmatched):
            return step
        calls = tuple(self._recorded_for(call, at) for call in step.tool_calls)
        return step.model_copy(update={"tool_calls": calls})

    def _recorded_for(self, call: ToolCall, at: int) -> ToolCall:
        places = None if call.attempted else self._unmatched.get((call.name, json_key(call.args)))
        if not places:
            return call
        place = places.popleft()
        self._listed_at[place] = at
        found = self._call_at(place)
        return found.model_copy(update={"id": call.id, "agent": call.agent or found.agent})

    def unlisted(self) -> dict[int, list[Step]]:
        """Convert recorded calls that no step lists to steps, and return them keyed by the listed step that
        they follow."""
        behind: dict[int, list[Step]] = {}
        last = -1
        for number, step in enumerate(self._recorded):
            places = [(number, index) for index in range(len(step.tool_calls))]
            last = max([last, *(self._listed_at.get(place, -1) for place in places)])
            unlisted_calls = [self._call_at(place) for place in places if place not in self._listed_at]
            if unlisted_calls:
                behind.setdefault(last, []).append(
                    step.model_copy(update={"tool_calls": tuple(unlisted_calls)})
                )
        return behind

    def _call_at(self, place: tuple[int, int]) -> ToolCall:
        number, index = place
        return self._recorded[number].tool_calls[index]


def _estimate(user: str, previous: Step | None, step: Step, *, calls: int) -> Usage:
    """Estimate the tokens of a step for which no provider reported usage (token counting). Each text is
    counted once. The user's message and the tool results count as input, and the text and calls of the reply
    count as output.

    A provider would count the entire context again at each step, but what the agent sends is unknown here.
    ``calls`` is 1 for each reply, regardless of the number of steps that it reports."""
    if previous is None:
        tokens_in = count_tokens(user)
    else:
        tokens_in = sum(count_tokens(call.result.text) for call in previous.tool_calls if call.result)
    tokens_out = count_tokens(step.text or "")
    for call in step.tool_calls:
        tokens_out += count_tokens(f"{call.name} {call.args if call.raw_args is None else call.raw_args}")
    return Usage(calls=calls, input_tokens=tokens_in, output_tokens=tokens_out, estimated=True)
