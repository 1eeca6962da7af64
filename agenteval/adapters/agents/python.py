"""Agents in the author's own code: Python functions, classes or any other Python callable, and framework
objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from itertools import count
from typing import Annotated, Any

import anyio
from pydantic import Field

from agenteval.adapters.agents import AgentResources
from agenteval.adapters.agents.observe_options import observe_mistakes
from agenteval.adapters.agents.observed_requests import ObservedRequests, parse_agent_tools
from agenteval.adapters.transport.limits import CallRate, agent_rate
from agenteval.agentside import hooks, model_requests
from agenteval.agentside.frameworks import recognize_object
from agenteval.agentside.import_watch import ImportWatch
from agenteval.agentside.targets.context import Context
from agenteval.agentside.targets.faults import classify_error, contain_exits, get_partial_reply
from agenteval.agentside.targets.interception import CannotInterceptError, FunctionInterceptor
from agenteval.agentside.targets.loading import load_agent
from agenteval.agentside.targets.reply_limit import TOO_LARGE_TEXT, is_too_large
from agenteval.agentside.targets.target_resolution import (
    CONTEXT,
    ResolvedTarget,
    TargetRefusal,
    check_deps_factory,
    deps_take_context,
    describe_plan,
    resolve_target,
)
from agenteval.agentside.targets.target_session import TargetSession
from agenteval.agentside.targets.tool_proxy import PassthroughCall
from agenteval.agentside.world import (
    ActiveTurn,
    ToolAnswer,
    World,
    detach_from_world,
    find_shared_threads,
    record_shared_threads,
    set_non_agent_check,
)
from agenteval.conversation.deadlines import current_stopwatch, is_in_sample, pause_deadlines
from agenteval.conversation.shared_loop import shared_loop
from agenteval.conversation.user_code import DeadlineError, import_target, time_user_code
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
from agenteval.core.protocols import AgentAdapter, AgentFactory, AgentReply, NoHistory, ReadReply, TurnTools
from agenteval.core.scenario import Sample
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import Message, ToolResult, ToolVisibility
from agenteval.core.value import Text, Value
from agenteval.messages import chat
from agenteval.messages.agent_reply import parse_reply, read_or_none
from agenteval.messages.model_calls import KnownCalls


class _ToolTime:
    """Measures the time that tools spend working for the agent. This time does not count as agent time."""

    def __init__(self) -> None:
        self._now = current_stopwatch().conversation_clock.now
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
    """The second argument passed to a Python agent; see ``Context``."""

    def __init__(
        self,
        sample: Sample,
        tools: TurnTools,
        loop: asyncio.AbstractEventLoop,
        batches: Iterator[int] | None = None,
    ) -> None:
        super().__init__(self._begin, batches or count(1), deepcopy(list(tools.schemas)))
        self.turn_tools = tools
        self.tool_time = _ToolTime()
        self._loop = loop
        self.scenario_id = sample.key.scenario
        self.epoch = sample.key.epoch
        self.seed = sample.seed
        self.turn = tools.turn
        self.database = tools.database.path if tools.database else None

    def request_known_call(self, name: str, args: Any, batch: int) -> Future[ToolAnswer]:
        return self._begin(name, args, batch, known=True)

    def mocks(self, name: str) -> bool:
        return name in self.turn_tools.mocked

    def passes_through(self, name: str) -> bool:
        return self.turn_tools.record is not None and self.turn_tools.leaves(name)

    def request_passthrough(
        self, name: str, args: dict[str, Any], batch: int, own: PassthroughCall
    ) -> Future[ToolAnswer]:
        return self._submitted(self._recorded(name, deepcopy(args), batch, own))

    def _begin(self, name: Any, args: Any, batch: int, *, known: bool = False) -> Future[ToolAnswer]:
        read, raw = chat.read_arguments(args)  # at once, because the agent may change them later
        called = chat.replace_surrogates(name) if isinstance(name, str) else name
        return self._submitted(self._resolved(called, read if raw is None else raw, batch, known=known))

    def _submitted(self, call: Coroutine[Any, Any, ToolAnswer]) -> Future[ToolAnswer]:
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop)
        except RuntimeError:  # the run is over, and its loop closed
            call.close()
            (gone := Future[ToolAnswer]()).cancel()
            return gone

    async def _resolved(self, name: str, args: Any, batch: int, *, known: bool = False) -> ToolAnswer:
        """Call the tool and return a copy of the result. The agent may change the copy without changing the
        record."""
        detach_from_world()
        call = self.turn_tools.call_known if known and self.turn_tools.call_known else self.turn_tools.call
        with self.tool_time.running():
            result = await call(name, args, batch)
        return ToolAnswer(deepcopy(result.value), result.is_error, result.is_timeout)

    async def _recorded(
        self, name: str, args: dict[str, Any], batch: int, own: PassthroughCall
    ) -> ToolAnswer:
        """Record a call that the agent executes itself. The duration of the call counts as agent time."""
        assert self.turn_tools.record

        async def result() -> ToolResult:
            answered: ToolAnswer = await own()
            return ToolResult(value=chat.to_storable(answered.value), is_error=answered.is_error)

        recorded = await self.turn_tools.record(name, args, batch, result)
        return ToolAnswer(recorded.value, recorded.is_error)


class PythonAgents:
    """A factory that creates agents from a target: a function, an object, or a class (one instance per
    sample).

    ``warn`` is called if conversations with several turns share state."""

    def __init__(
        self,
        target: Any,
        *,
        written: str,
        place: Place,
        name: str,
        timeout_s: float,
        rate: CallRate | None,
        intercepts: FunctionInterceptor | None,
        warn: Callable[[str], None],
        make_deps: Callable[..., Any] | None,
    ) -> None:
        agent = resolve_target(target, written, recognize_object, has_deps=make_deps is not None)
        if isinstance(agent, TargetRefusal):
            raise AuthorError(Problem(*agent, place))
        described = agent.to_summary(written)
        self.agent = agent
        self.does = describe_plan(described, intercepted=intercepts.names if intercepts else ())
        """A description of how the agent is run."""
        self.tools = parse_agent_tools(described)
        self.no_history = NoHistory(*agent.no_history) if agent.no_history else None
        self.timeout_s = timeout_s
        self.rate = rate
        self.intercepts = intercepts
        self.warn = warn
        self.observed = ObservedRequests(name, warn)
        self.only = asyncio.Lock() if agent.is_one_at_a_time else None
        """Allows one conversation at a time; ``None`` if several may run at once."""
        self.closings: set[Future[None]] = set()
        """The work that earlier conversations have yet to finish."""
        self.database_remedy = _database_remedy(agent, make_deps)
        self._make_deps = make_deps
        self._warning = described["warning"]
        if intercepts:
            intercepts.install()

    def make(self, sample: Sample) -> PythonAgent:
        if self._warning and (self.only or sample.scenario.has_several_turns):
            self.warn(self._warning)
        world = World(str(sample.key), self.intercepts.tools if self.intercepts else None)
        return PythonAgent(self, TargetSession(self.agent, recognize_object, self._make_deps, world), sample)

    async def aclose(self) -> None:
        if self.intercepts:
            self.intercepts.restore()
        closings = [asyncio.wrap_future(each) for each in self.closings if not each.done()]
        if closings:
            await asyncio.wait(closings, timeout=_CLOSING_S)


def _database_remedy(agent: ResolvedTarget, make_deps: Callable[..., Any] | None) -> str:
    """Return how an author can give this agent the path of a database, or an empty string if it gets it. All
    agents in this process share its environment, so that a variable cannot name the database of each."""
    if agent.lifecycle == "factory":
        return "set `interpreter`, whose processes get the variable"
    if agent.lifecycle == "framework":
        if make_deps is not None and deps_take_context(make_deps):
            return ""
        return "set `interpreter`, whose processes get the variable, or `deps` with `def make_deps(ctx)`"
    if CONTEXT in agent.received_roles:
        return ""
    return "add the parameter `ctx` (`ctx.database` is the path), or set `interpreter`"


_CLOSING_S = 2.0
"""The maximum time, in seconds, that a run waits at its end for conversations to release their resources."""


class PythonAgent:
    """The agent for one conversation."""

    def __init__(self, agents: PythonAgents, played: TargetSession, sample: Sample) -> None:
        self._agents = agents
        self._played = played
        self._sample = sample
        self._has_turn = False
        """True if this is the one conversation that may run now."""
        self._batches = count(1)

    def end_conversation(self) -> None:
        """End the conversation. Calls made after the last answer are reported but not judged."""
        world = self._played.world
        world.close()
        if (fault := world.take_fault()) and fault != world.shared_thread_fault:
            self._agents.warn(fault)
        if self._played.has_open_conversation:
            closing = asyncio.run_coroutine_threadsafe(self._played.close(), shared_loop().loop)
            self._agents.closings.add(closing)
        if self._agents.only and self._has_turn:
            self._has_turn = False
            self._agents.only.release()

    async def reply(self, messages: list[Message], tools: TurnTools) -> ReadReply:
        if self._agents.only and not self._has_turn:
            with pause_deadlines():
                self._has_turn = await self._agents.only.acquire()
        if self._agents.rate:
            await self._agents.rate.take()
        context = AgentContext(self._sample, tools, asyncio.get_running_loop(), self._batches)
        with _settled() as ending:
            try:
                with self._played.turn(context) as ending.turn:
                    reply = await self._answer(messages, context)
            except AgentevalError as error:
                await ending.wait()
                error.seen = self._add_observed(error.seen)
                if isinstance(error, AgentError):
                    self._require_tracked(error.seen)  # the runner may be the cause, not the agent
                raise
            await ending.wait()
        observed = self._add_observed(reply)
        self._require_tracked(observed)
        return observed or reply

    def _add_observed(self, reply: ReadReply | None) -> ReadReply | None:
        """Add the agent's model requests to the complete or partial reply."""
        world = self._played.world
        exchanges = model_requests.exchanges_to_json(world.take_exchanges())
        known = KnownCalls(
            world.take_calls(),
            world.hooked_tools,
            self._sample.scenario.tools_named,
            world.take_all_calls(),
            world.has_hooked_calls,
            self._played.is_of_framework,
        )
        return self._agents.observed.enrich_reply(reply, exchanges, known)

    async def settle(self, _none_follows: anyio.Event) -> None:
        """Wait until it is known whether a thread that belongs to another conversation made calls for this
        conversation.

        Raise ``InfrastructureError`` if such a thread may have made calls."""
        for ends in self._played.world.unsettled_threads:
            await asyncio.wait(map(asyncio.wrap_future, ends), return_when=asyncio.FIRST_COMPLETED)
        if fault := self._played.world.shared_thread_fault:
            raise InfrastructureError(fault, is_final=True)

    def _require_tracked(self, seen: AgentReply | None) -> None:
        """Raise ``InfrastructureError`` if a call that may belong to this conversation was neither answered
        nor recorded.

        After such a call, the absence of a call no longer proves anything. ``seen`` is the agent's reply."""
        if self._agents.intercepts and (copied := self._agents.intercepts.check_second_copy()):
            raise InfrastructureError(copied, seen=seen, is_final=True)
        if fault := self._played.world.take_fault():
            raise InfrastructureError(fault, seen=seen, is_final=True)

    async def _answer(self, messages: list[Message], context: AgentContext) -> ReadReply:
        try:
            return await self._call_target(messages, context)
        finally:
            if context.has_listed_tools:
                context.turn_tools.list_asked()

    async def _call_target(self, messages: list[Message], context: AgentContext) -> ReadReply:
        try:
            value, elapsed_s = await time_user_code(
                self._played.entry(),
                messages,
                context,
                timeout_s=self._agents.timeout_s,
                excused_s=context.tool_time,
            )
            with contain_exits():
                reply = _parse_bounded(value)
        except (AgentevalError, asyncio.CancelledError):
            raise
        except DeadlineError:
            what = f"no answer within {self._agents.timeout_s:g} s"
            raise AgentError(what, kind="timeout", seen=_read_partial(self._played.partial_answer)) from None
        except Exception as error:
            raise classify_exception(error, self._played.partial_answer) from error
        return reply if reply.latency_ms is not None else replace(reply, latency_ms=elapsed_s * 1000)


_LINGERING_S = 1.0
"""The maximum time in seconds that a thread that called tools may outlive its turn without being considered
shared."""


class _Ending:
    """The end of a turn. A conversation is abandoned if a thread that outlives the turn may have called tools
    for the conversation."""

    turn: ActiveTurn

    async def wait(self) -> None:
        if carriers := find_shared_threads(self.turn):
            await asyncio.wait([asyncio.wrap_future(each.done) for each in carriers], timeout=_LINGERING_S)
        self.settle()

    def settle(self) -> None:
        record_shared_threads(find_shared_threads(self.turn))
        self.turn.settle()


@contextmanager
def _settled() -> Iterator[_Ending]:
    """Release everything that is waiting for the end of the turn, whether the turn succeeds or fails."""
    ending = _Ending()
    try:
        yield ending
    finally:
        ending.settle()


def classify_exception(error: BaseException, partial: Any = None) -> AgentevalError:
    """Convert an exception raised by the agent's code to one of agenteval's errors.

    ``partial`` is the partial answer so far. It is used if the exception does not contain a partial answer.
    """
    fault, reported = classify_error(error), get_partial_reply(error)
    seen = _read_partial(partial if reported is None else reported)
    if fault.kind == "author":
        return AuthorError(fault.text)
    if fault.kind == "infrastructure":
        return InfrastructureError(fault.text, seen=seen, is_final=fault.is_final)
    return AgentError(fault.text, kind=fault.kind, seen=seen)


def _parse_bounded(value: Any) -> ReadReply:
    """Parse the agent's return value. Raise ``AgentError`` if the value exceeds the size limit for the
    replies of other agents."""
    if not is_too_large(value) and not is_too_large(reply := parse_reply(value)):
        return reply
    raise AgentError(f"the agent's reply is {TOO_LARGE_TEXT}", kind="protocol")


def _read_partial(partial: Any) -> ReadReply | None:
    if partial is None:
        return None
    with suppress(Exception), contain_exits():  # the objects are the author's
        return read_or_none(lambda: _parse_bounded(partial))
    return None


# ── the adapter ──────────────────────────────────────────────────────────────────────────────────

_EXAMPLE = "target: my_agent.py:agent"


class ObjectOptions(Value):
    """A target and the dependencies that it needs."""

    object: Text
    """Framework object, specified as file.py:attribute or package.module:attribute."""
    deps: Text | None = None
    """Function that creates the dependencies for one conversation, specified as file.py:function."""


class PythonOptions(Value):
    """The options specific to a Python agent."""

    target: str | ObjectOptions | None = None
    """Function, class or object (file.py:name or package.module:name), or {object, deps} for a framework
    object."""
    intercept: dict[str, Text] = {}
    """Functions (file.py:name) to intercept (monkeypatch) so that the scenario answers instead, keyed by
    tool."""
    interpreter: Annotated[Text, Field(min_length=1)] | None = None
    """Python interpreter that runs the target, if it is not the interpreter that runs agenteval."""
    keep: bool | None = None
    """True if one process of the interpreter is reused for several conversations, one after another."""
    observe: Any = None
    """No effect: openai is accepted, but the requests of model clients are always observed."""

    @property
    def target_name(self) -> str:
        """The name of the target object."""
        return self.target.object if isinstance(self.target, ObjectOptions) else self.target or ""

    @property
    def deps(self) -> str:
        """The name of the function that creates the dependencies, or an empty string if no function is
        configured."""
        return (self.target.deps or "") if isinstance(self.target, ObjectOptions) else ""


def _mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    yield from observe_mistakes(options.get("observe"), "python")
    target = options.get("target")
    if target == "":
        yield Mistake("the agent's `target` is empty", f"set {_EXAMPLE}", ("target",))
    elif not target:
        yield Mistake("an agent of type python requires `target`", f"set {_EXAMPLE}", ("target",))
    elif isinstance(target, str):
        yield from _name_mistakes("the target", target, "target")
    elif isinstance(target, Mapping):
        yield from _name_mistakes("the target's object", target.get("object"), "target", "object")
        yield from _name_mistakes("the deps factory", target.get("deps"), "target", "deps")
    yield from _intercept_mistakes(options)
    if options.get("keep") is not None and not options.get("interpreter"):
        what = "`keep` applies only to an agent with its own `interpreter`"
        yield Mistake(what, "set `interpreter`, or remove `keep`", ("keep",))


def _name_mistakes(what: str, written: Any, *path: str) -> Iterator[Mistake]:
    if isinstance(written, str) and not all(written.rpartition(":")):
        remedy = "use file.py:name or package.module:name"
        yield Mistake(f"{what} does not name an attribute", remedy, path)


def _intercept_mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    written = options.get("intercept")
    for name, target in (written if isinstance(written, Mapping) else {}).items():
        yield from _name_mistakes(f"the function of '{name}'", target, "intercept", name)


def _intercepts(
    agent: AgentConfig, options: PythonOptions, resources: AgentResources
) -> FunctionInterceptor | None:
    if not options.intercept:
        return None
    try:
        return FunctionInterceptor(options.intercept, resources.config.root)
    except CannotInterceptError as error:
        place = resources.place_of(agent, f"intercept.{error.tool}")
        raise AuthorError(Problem(error.what, error.remedy, place)) from error


def _agents(agent: AgentConfig, options: PythonOptions, resources: AgentResources) -> AgentFactory:
    if options.interpreter:
        return _interpreter_agents(agent, options, options.interpreter, resources)
    place = resources.place_of(agent, "target")
    written, what = options.target_name, f"agent '{agent.name}'"
    hooks.install()
    set_non_agent_check(is_in_sample)
    with _watching_imports(agent, written, resources):
        target = import_target(written, resources.config.root, what=what, place=place, finder=load_agent)
        make_deps = _load_deps_factory(agent, options, resources)
        intercepts = _intercepts(agent, options, resources)
    return PythonAgents(
        target,
        written=written,
        place=place,
        name=agent.name,
        timeout_s=agent.timeout_s,
        rate=resources.limits().rate(agent_rate(agent)),
        intercepts=intercepts,
        warn=resources.warn,
        make_deps=make_deps,
    )


@contextmanager
def _watching_imports(agent: AgentConfig, target: str, resources: AgentResources) -> Iterator[None]:
    """Watch the imports inside the ``with`` block.

    If an import runs the agent, issue a warning. If the import also fails, add the warning to the error
    instead."""
    runs_others = resources.config.unmocked_tools == "passthrough"
    root, declared = resources.config.root, resources.declared_tools
    importing = ImportWatch(target, root, declared, runs_others=runs_others)
    try:
        with importing.watch_imports():
            yield
    except AuthorError as error:
        found = (
            each._replace(what="; ".join(filter(None, (each.what, importing.import_warning))))
            for each in error.problems
        )
        raise AuthorError(*found) from error
    if importing.import_warning:
        resources.warn(f"agent '{agent.name}': {importing.import_warning}")


def _load_deps_factory(
    agent: AgentConfig, options: PythonOptions, resources: AgentResources
) -> Callable[..., Any] | None:
    if not options.deps:
        return None
    place, what = resources.place_of(agent, "target.deps"), f"agent '{agent.name}': deps"
    made = import_target(options.deps, resources.config.root, what=what, place=place)
    if refused := check_deps_factory(made, options.deps):
        raise AuthorError(Problem(*refused, place))
    maker: Callable[..., Any] = made
    return maker


def _interpreter_agents(
    agent: AgentConfig, options: PythonOptions, interpreter: str, resources: AgentResources
) -> AgentFactory:
    from agenteval.adapters.agents.interpreter import interpreter_agents

    return interpreter_agents(
        agent,
        target=options.target_name,
        deps=options.deps,
        interpreter=interpreter,
        intercept=options.intercept,
        keep=options.keep,
        resources=resources,
    )


def _visibility(options: PythonOptions, tools: frozenset[str]) -> KnownVisibility | None:
    """Return the visibility of tool calls with ``intercept``: only calls to the intercepted functions are
    visible."""
    if not options.intercept:
        return None
    missing = sorted(tools - options.intercept.keys())
    if not missing:
        return KnownVisibility(calls=ToolVisibility.ALL)
    named = ", ".join(missing[:_MOST_NAMED]) + (" …" if len(missing) > _MOST_NAMED else "")
    why = (
        f"`intercept` does not list every tool of the suite (missing: {named}), so some calls may not be"
        " visible"
    )
    remedy = (
        "add them to `intercept`, or set `agent: {calls: all}` if the agent has no other way to call tools"
    )
    return KnownVisibility(calls=ToolVisibility.PARTLY, why=f"{why} — {remedy}")


_MOST_NAMED = 5

ADAPTER = AgentAdapter(
    _agents,
    PythonOptions,
    _mistakes,
    visibility=_visibility,
    hears_mcp_url=lambda options: options.interpreter is not None,
    example=_EXAMPLE,
)
