"""LangGraph and LangChain: graphs, and the agents of ``create_agent`` and others, which are graphs.

- A conversation has a copy of the graph: with a checkpointer of its own where the graph has one, else with
  the state carried from turn to turn; with a store and a cache of its own.
- Messages are told apart by their ids, so that a state that shrinks (summaries) hides and repeats nothing.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import inspect
import json
import sys
import uuid
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import hooks
from ..hooks.langchain_tools import function_of, injected_in, is_agent, is_handoff
from .call_marks import calls_in, with_asked_arguments
from .seam import LATER, MORE, Refused, Tool, Waits, hints_of, kinds, unsupported, with_partial

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..world import World

_TOOLS = "langchain_core.tools.base"
"""The module whose class of tools is hooked."""
_FUNCTION = "write a function that takes the messages and calls it (docs/agents.md)"


def _is(obj: Any, module: str, name: str) -> bool:
    """Whether it is an instance of such a class. (A graph's nodes name classes, too.)"""
    return not isinstance(obj, type) and any(
        kind.startswith(module) and kind.endswith("." + name) for kind in kinds(obj)
    )


def _is_of_library(obj: Any) -> bool:
    return _is_librarys(kinds(obj)[0])


def _is_graph(obj: Any) -> bool:
    return _is(obj, "langgraph.pregel", "Pregel")


def _is_builder(obj: Any) -> bool:
    return _is(obj, "langgraph.graph", "StateGraph")


def _is_runnable(obj: Any) -> bool:
    """Of a library's class: one of the author's own is called as any other object is."""
    return _is_of_library(obj) and _is(obj, "langchain_core.runnables", "Runnable")


def _is_tool(obj: Any) -> bool:
    return _is(obj, "langchain_core.tools", "BaseTool")


class LangGraph:
    name = "LangGraph"
    package = "langgraph"
    supports = "0.6 to 1.2"

    def matches(self, obj: Any) -> bool:
        if isinstance(obj, type):
            return kinds(obj)[0].startswith("langgraph.")
        return _is_graph(obj) or _is_builder(obj) or _is_runnable(obj)

    def tools(self, obj: Any) -> list[Tool]:
        graph = _compiled(obj)
        own = [_described(tool) for tool in _tools_of(graph).values() if not is_handoff(tool)]
        return [*own, MORE] if _has_own_code(graph) else own

    def runs_own_code(self, obj: Any) -> bool:
        return _has_own_code(_compiled(obj))

    def prompt(self, obj: Any) -> str | None:
        """It is known to the nodes alone."""
        return None

    def open(self, obj: Any, world: World, session: str, deps: Any) -> Conversation:
        graph = _compiled(obj)
        _require_messages(graph)
        given = _given(graph, deps)
        if not hooks.is_hooked(_TOOLS):
            raise unsupported(FRAMEWORK, "BaseTool.run and arun")
        known = _tools_of(graph)
        names = _Names(
            frozenset(known),
            frozenset(name for name, tool in known.items() if is_handoff(tool)),
            _agents_of(graph),
            _own_nodes(graph),
        )
        return Conversation(graph, world, session, given, names)


FRAMEWORK = LangGraph()


def _compiled(obj: Any) -> Any:
    if _is_graph(obj):
        return obj
    name = type(obj).__name__
    if _is_builder(obj):
        try:
            return obj.compile()
        except Exception as error:
            raise Refused(f"the {name} cannot be compiled: {error}") from error
    if name == "RemoteGraph":
        what = "the agent is a RemoteGraph, whose tools run at its server"
        raise Refused(what, "name the graph itself, or its server as an agent of type http")
    what = f"the agent is a {name} of LangChain; agenteval plays graphs, such as create_agent makes"
    raise Refused(what, "for others " + _FUNCTION)


def _require_messages(graph: Any) -> None:
    """Raises ``Refused`` for a graph that no message can be given to."""
    for attribute in ("channels", "nodes", "astream", "stream", "checkpointer"):
        if not hasattr(graph, attribute):
            raise unsupported(FRAMEWORK, "Pregel." + attribute)
    takes = _takes(graph)
    if "messages" in takes:
        return
    if not takes:
        raise Refused("the agent is a workflow of @entrypoint, which takes what its function does", _FUNCTION)
    what = f"the graph takes {', '.join(sorted(takes))} and no messages"
    remedy = "write a function of the user's message that calls it: its tools are answered there, too"
    raise Refused(what, f"{remedy} (docs/frameworks.md)")


def _takes(graph: Any) -> set[str]:
    """The keys of what it takes. ``builder`` knows them where a graph has an ``input_schema`` of its own; its
    JSON Schema is not asked for, since Pydantic makes none of some states."""
    builder = getattr(graph, "builder", None)
    schemas = getattr(builder, "schemas", None)
    taken = schemas.get(getattr(builder, "input_schema", None)) if isinstance(schemas, dict) else None
    return {key for key in taken or graph.channels if not key.startswith(("branch:", "__"))}


class _Given(NamedTuple):
    """What a graph gets beside its input."""

    context: Any = None
    config: dict[str, Any] = {}


def _given(graph: Any, deps: Any) -> _Given:
    """``deps`` as the graph's context, and for graphs that read them from the configuration there, too."""
    schema = getattr(graph, "context_schema", None)
    if deps is LATER:
        return _Given()
    if deps is None:
        return _Given(_made_of_defaults(schema))
    config: dict[str, Any] = {}
    if isinstance(deps, dict):
        config = deps if "configurable" in deps else {"configurable": deps}
    if schema is not None:
        return _Given(None if "configurable" in config and config is deps else deps, config)
    if not config:
        what = f"the graph has no context_schema for its deps, a {type(deps).__name__}"
        raise Refused(what, "return a dict, which is given as `configurable`")
    return _Given(None, config)


def _made_of_defaults(schema: Any) -> Any:
    """A context where none is given; a graph may do without one whose fields are a mapping's."""
    if dataclasses.is_dataclass(schema):
        missing = dataclasses.MISSING
        fields = [each for each in dataclasses.fields(schema) if each.init]
        needed = [each.name for each in fields if each.default is missing and each.default_factory is missing]
    elif isinstance(getattr(schema, "model_fields", None), dict):
        needed = [name for name, field in schema.model_fields.items() if field.is_required()]
    else:
        return None
    if needed:
        what = f"the graph needs a context of type {schema.__name__} ({', '.join(needed)})"
        raise Refused(what, "write target: {object: …, deps: FILE.py:FUNCTION}, a function that makes one")
    return schema()


# ── its tools ────────────────────────────────────────────────────────────────────────────────────

_DEEPEST = 24
_MOST = 500
_WHAT_IS_CALLED = (
    "bound",
    "func",
    "afunc",
    "coroutine",
    "steps",
    "mapper",
    "runnable",
    "subgraphs",
    "branches",
)
"""Where objects of LangChain and LangGraph keep what they call."""


def _tools_of(graph: Any) -> dict[str, Any]:
    """The tools that can be found, by name: of tool nodes, and what nodes hold or name; in graphs below, too.
    Nothing is called for it."""
    found: dict[str, Any] = {}
    for obj in _reached(graph):
        if _is_tool(obj):
            found.setdefault(obj.name, obj)
    return found


def _reached(graph: Any) -> Iterator[Any]:
    seen: dict[int, Any] = {}
    waiting: list[tuple[Any, int]] = [(graph, 0)]
    while waiting:
        obj, depth = waiting.pop(0)
        if id(obj) in seen or depth > _DEEPEST:
            continue
        seen[id(obj)] = obj
        yield obj
        waiting += [(each, depth + 1) for each in _held(obj)]


def _held(obj: Any) -> Iterable[Any]:
    """What an object leads to. Asked by ``type`` alone: ``isinstance`` wakes what loads itself when it is
    looked at."""
    cls = type(obj)
    if _is_graph(obj):
        return list(obj.nodes.values())
    if issubclass(cls, (dict, list, tuple, set, frozenset)):
        items = obj.values() if issubclass(cls, dict) else obj
        return [each for each in items if _may_lead_on(each)] if len(obj) <= _MOST else []
    if issubclass(cls, functools.partial):
        return [obj.func, *filter(_may_lead_on, (*obj.args, *obj.keywords.values()))]
    if cls is MethodType:
        return [obj.__func__, *_fields(obj.__self__)]
    if cls is FunctionType:
        return _named_in(obj)
    if type(getattr(cls, "tools_by_name", None)) is property:
        return [*obj.tools_by_name.values(), *_called_by(obj)]
    if _is_of_library(obj):
        return _called_by(obj)
    entry = None if issubclass(cls, type) else vars(cls).get("__call__")
    return [entry, *_fields(obj)] if type(entry) is FunctionType else []


def _called_by(obj: Any) -> list[Any]:
    """``getattr`` would ask a RunnableBinding's inner object, too."""
    own = getattr(obj, "__dict__", {})
    return [own[name] for name in _WHAT_IS_CALLED if own.get(name) is not None]


def _fields(owner: Any) -> list[Any]:
    own = {} if isinstance(owner, type) else getattr(owner, "__dict__", {})
    return [each for each in own.values() if _may_lead_on(each)]


def _named_in(function: Any) -> list[Any]:
    """What a function has in its closure; and, if it is not a library's, what of its module it names."""
    held = []
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    space = function.__globals__
    if not _is_librarys(str(space.get("__name__", ""))):
        held += [space[name] for name in _names(function.__code__) if name in space]
    return [each for each in held if _may_lead_on(each)]


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if hasattr(each, "co_names"):
            yield from _names(each)


_CONTAINERS = (dict, list, tuple, set, frozenset, functools.partial)


def _may_lead_on(obj: Any) -> bool:
    cls = type(obj)
    if cls in (FunctionType, MethodType):
        return not str(obj.__module__).startswith("langchain_core.")
    return issubclass(cls, _CONTAINERS) or (
        not issubclass(cls, type) and (_is_of_library(obj) or _is_tool(obj))
    )


def _has_own_code(graph: Any) -> bool:
    """Whether it runs code of the author's that may call tools which are found nowhere: in a node, or around
    the calls of an agent."""
    graphs = [each for each in _reached(graph) if _is_graph(each)]
    steps = [step for each in graphs for node in each.nodes.values() for step in _steps(node)]
    around = [wraps for each in graphs for wraps in _middleware(each)]
    return not all(map(_is_known, steps)) or not all(map(_is_shipped, around))


def _own_nodes(graph: Any) -> frozenset[str]:
    """The names of nodes that run code of the author's: they may carry out calls by hand."""
    return frozenset(
        name
        for each in _reached(graph)
        if _is_graph(each)
        for name, node in each.nodes.items()
        if not all(map(_is_known, _steps(node)))
    )


def _is_shipped(obj: Any) -> bool:
    """Of a class that stands in its library's module: a decorator makes others there of a function."""
    cls = type(obj)
    return (
        _is_librarys(cls.__module__) and getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls
    )


def _is_known(step: Any) -> bool:
    """A step whose calls are those of the tools in it: it is a library's own."""
    own = getattr(step, "__dict__", {})
    code = [each for name in ("func", "afunc") if (each := own.get(name)) is not None]
    if not code:
        return step is None or _is_graph(step) or _is(step, "langgraph", "ToolNode") or not own.get("steps")
    return all(
        _is_librarys(str(getattr(each, "__module__", "")))
        and (not inspect.ismethod(each) or _is_shipped(each.__self__))
        for each in code
    )


_LIBRARIES = ("langgraph", "langchain", "deepagents")


def _is_librarys(module: str) -> bool:
    """Whether a module is of LangChain's libraries: one of the author's own may have such a name, too."""
    root = module.partition(".")[0]
    found = sys.modules.get(root)
    if found is None or not root.startswith(_LIBRARIES):
        return False
    places = [getattr(found, "__file__", None) or "", *getattr(found, "__path__", ())]
    return any("-packages" in place for place in places)


def _described(tool: Any) -> Tool:
    described = Tool(tool.name, tool.description or "", _parameters(tool), hints=hints_of(tool))
    return described._replace(is_agent=is_agent(tool))


def _parameters(tool: Any) -> dict[str, Any] | None:
    """The JSON Schema of its arguments as a model sees them: without those that the graph puts in."""
    try:
        schema = tool.tool_call_schema
        if not isinstance(schema, dict):
            schema = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema.schema()
    except Exception:  # of some annotations none can be made
        return None
    known = {key: value for key, value in schema.items() if key not in ("description", "title")}
    injected = injected_in(tool)
    if isinstance(properties := known.get("properties"), dict) and injected & set(properties):
        known["properties"] = {key: value for key, value in properties.items() if key not in injected}
        known["required"] = [name for name in known.get("required", ()) if name not in injected]
    return known


# ── a conversation ───────────────────────────────────────────────────────────────────────────────


class _Names(NamedTuple):
    """Of the graph's tools; of those among them that are its own business; of nodes that are agents; of nodes
    of the author's own code."""

    tools: frozenset[str]
    internal: frozenset[str]
    agents: frozenset[str]
    own_nodes: frozenset[str]


class Conversation:
    def __init__(self, graph: Any, world: World, session: str, given: _Given, names: _Names) -> None:
        self._world = world
        self._given = given
        self._names = names
        self._thread = session or uuid.uuid4().hex
        self._graph = copy.copy(graph)
        self._keeps_state = graph.checkpointer is not None and graph.checkpointer is not False
        if self._keeps_state:
            self._graph.checkpointer = _saver_like(graph.checkpointer)
        self._graph.store = _store_like(graph)
        if getattr(graph, "cache", None) is not None:
            self._graph.cache = None
        self._is_sync = _has_no_async(graph)
        self._known = _Known()
        self._state: dict[str, Any] = {}
        self._takes = _takes(graph)

    async def close(self) -> None:
        """Nothing: what a run has started has ended with it."""

    async def reply(self, text: str) -> dict[str, Any]:
        from langchain_core.messages import HumanMessage

        message = HumanMessage(content=text, id=str(uuid.uuid4()))
        turn = _Turn(self._known, message.id, self._names)
        meter = _meter()
        try:
            await self._play(self._input(message), self._config(meter), turn)
        except Exception as error:
            with_partial(error, **self._reply(turn, turn.messages(), meter))
            raise
        self._state = turn.state
        if turn.waits:
            waits = Waits(turn.waits)
            with_partial(waits, **self._reply(turn, turn.messages(), meter))
            raise waits
        return self._reply(turn, turn.answer(), meter)

    def _reply(self, turn: _Turn, messages: list[dict[str, Any]], meter: Any) -> dict[str, Any]:
        for what in turn.unread:
            self._world.leave_unplaced(what)
        by_hand = [each for each in self._world.asked_now if not each.call_id]
        if by_hand:  # a node of the author's hands no id on, and may add arguments of its own
            messages, _ = with_asked_arguments(messages, by_hand)
        return {
            "messages": messages,
            "usage": meter.usage() or turn.usage(),
            "elsewhere": turn.carried_out_elsewhere(messages),
            "unknown": turn.refused_as_unknown(messages),
        }

    def _input(self, message: Any) -> dict[str, Any]:
        if self._keeps_state:
            return {"messages": [message]}
        kept = {key: value for key, value in self._state.items() if key in self._takes}
        return {**kept, "messages": [*(kept.get("messages") or ()), message]}

    def _config(self, meter: Any) -> Any:
        from langchain_core.runnables.config import merge_configs

        ours: Any = {"configurable": {"thread_id": self._thread}, "callbacks": [meter]}
        given: Any = self._given.config
        return merge_configs(getattr(self._graph, "config", None), given, ours)

    async def _play(self, given: Any, config: Any, turn: _Turn) -> None:
        options: dict[str, Any] = {"stream_mode": ["values", "updates"], "subgraphs": True}
        if self._given.context is not None:
            options["context"] = self._given.context
        if self._is_sync:

            def played() -> None:
                for event in self._graph.stream(given, config, **options):
                    turn.take(*event)

            await asyncio.to_thread(played)
            return
        stream = self._graph.astream(given, config, **options)
        try:
            async for event in stream:
                turn.take(*event)
        finally:
            await stream.aclose()


def _saver_like(saver: Any) -> Any:
    """In memory, which writes what it keeps as the graph's own one does."""
    from langgraph.checkpoint.memory import InMemorySaver

    serde = getattr(saver, "serde", None)
    return InMemorySaver(serde=serde) if serde is not None else InMemorySaver()


def _store_like(graph: Any) -> Any:
    """A copy of one in memory; a database is the author's to choose. A graph that has none and asks for one
    gets it, as from the platform on which it runs."""
    from langgraph.store.memory import InMemoryStore

    store = getattr(graph, "store", None)
    if store is None and any(map(_asks_for_store, _reached(graph))):
        return InMemoryStore()
    if not _is(store, "langgraph.store.memory", "InMemoryStore"):
        return store
    try:
        return copy.deepcopy(store)
    except Exception:  # a client in it, for embeddings
        return store


def _asks_for_store(obj: Any) -> bool:
    """Whether it is a function of the author's, or a tool, that has a graph's store put in or fetches it."""
    function = function_of(obj) if _is_tool(obj) else obj
    if type(function) is not FunctionType or _is_librarys(function.__module__):
        return False
    notes = " ".join(map(str, function.__annotations__.values()))
    used = set(_names(function.__code__))
    is_put_in = "BaseStore" in notes or "InjectedStore" in notes
    return is_put_in or "get_store" in used or ("Runtime" in notes and "store" in used)


def _agents_of(graph: Any) -> frozenset[str]:
    """The names of nodes that are agents: that are graphs, or call one."""
    return frozenset(
        name
        for each in _reached(graph)
        if _is_graph(each)
        for name, node in each.nodes.items()
        if name != "tools" and any(map(_is_graph, (*(getattr(node, "subgraphs", None) or ()), *_steps(node))))
    )


def _steps(node: Any) -> Iterator[Any]:
    bound = vars(node).get("bound")
    yield bound
    yield from getattr(bound, "__dict__", {}).get("steps") or ()


def _has_no_async(graph: Any) -> bool:
    """Whether a middleware wraps calls in a synchronous function alone: LangChain refuses to await such a
    one."""
    return any(
        getattr(cls, name) is not _base(cls, name) and getattr(cls, "a" + name) is _base(cls, "a" + name)
        for cls in map(type, _middleware(graph))
        for name in ("wrap_model_call", "wrap_tool_call")
        if hasattr(cls, "a" + name)
    )


def _base(cls: Any, name: str) -> Any:
    base = next(each for each in cls.__mro__ if each.__name__ == "AgentMiddleware")
    return getattr(base, name, None)


def _middleware(graph: Any) -> Iterator[Any]:
    """What wraps the calls of the model and the tools, out of the closures of the nodes that make them."""
    seen: dict[int, Any] = {}
    waiting = [
        found
        for name in ("model", "tools")
        if (node := graph.nodes.get(name)) is not None
        for step in _steps(node)
        for found in vars(step).values()
        if step is not None
    ]
    while waiting and len(seen) < _MOST:
        obj = waiting.pop(0)
        if id(obj) in seen:
            continue
        seen[id(obj)] = obj
        if _is(obj, "langchain.agents.middleware", "AgentMiddleware") and not isinstance(obj, type):
            yield obj
        elif inspect.ismethod(obj):
            waiting += [obj.__self__, obj.__func__]
        elif inspect.isfunction(obj):
            waiting += [cell.cell_contents for cell in obj.__closure__ or () if _is_filled(cell)]
        elif isinstance(obj, (list, tuple)):
            waiting += obj


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _meter() -> Any:
    """Counts the tokens of all models that are called below the graph, also of agents whose messages never
    come up."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Meter(BaseCallbackHandler):  # type: ignore[misc]
        run_inline = True

        def __init__(self) -> None:
            self._told: list[dict[str, Any]] = []

        def on_llm_end(self, response: Any, **_: Any) -> None:
            generation = next((each for row in response.generations for each in row), None)
            told = getattr(getattr(generation, "message", None), "usage_metadata", None)
            told = told or (response.llm_output or {}).get("token_usage")
            if isinstance(told, dict) and told:
                self._told.append(told)

        def usage(self) -> Any:
            return self._told or None

    return Meter()


# ── the messages of a turn ───────────────────────────────────────────────────────────────────────


class _Known:
    """The messages of a conversation, by what they are told apart by, in the order in which they came."""

    def __init__(self) -> None:
        self.keys: set[Any] = set()


class _Said(NamedTuple):
    message: Any
    agent: str
    is_of_graph: bool
    """It came up to the graph itself, and did not stay with an agent below."""


class _Turn:
    """What a turn's stream tells: the states after each step, of the graph and of those below it, and what
    each node wrote."""

    def __init__(self, known: _Known, user: Any, names: _Names) -> None:
        self._known = known
        self._user = user
        self._names = names
        self._said: dict[Any, _Said] = {}
        self._hidden: set[str] = set()
        self._by_library: set[str] = set()
        self.unread: dict[str, None] = {}
        self._wrote: set[str] = set()
        self._last: Any = None
        self._structured: Any = None
        self.state: dict[str, Any] = {}
        self.waits = ""

    def take(self, namespace: tuple[str, ...], mode: str, data: Any) -> None:
        if mode == "values":
            self._take_state(namespace, data)
        elif isinstance(data, dict):
            for node, written in data.items():
                if node == "__interrupt__":
                    self._take_interrupt(written)
                else:
                    for each in written if isinstance(written, (list, tuple)) else (written,):
                        self._take_update(namespace, each)
                        if node not in self._names.own_nodes:
                            self._by_library |= _answered_in(each)

    def _take_interrupt(self, interrupts: Any) -> None:
        asked = next((each.value for each in interrupts or ()), None)
        wanted = asked.get("action_requests") if isinstance(asked, dict) else None
        if isinstance(wanted, list) and wanted:  # the middleware for approvals
            shown = f"approval of {', '.join(str(each.get('name')) for each in wanted)}"
        else:
            shown = "a breakpoint" if asked is None else f"interrupt: {_short(asked)}"
        self.waits = f"the agent waits for a person ({shown}); agenteval cannot answer that yet"

    def _take_state(self, namespace: tuple[str, ...], data: Any) -> None:
        state = data if isinstance(data, dict) else getattr(data, "__dict__", {})
        messages = state.get("messages")
        listed = messages if isinstance(messages, (list, tuple)) else [messages] if messages else []
        if not namespace:
            self.state = {key: value for key, value in state.items() if key != "__interrupt__"}
        agent = self._agent_at(namespace)
        last = None
        for key, message in _keyed(listed):
            if key in self._known.keys and key not in self._said:
                continue
            before = self._said.get(key)
            of_graph = not namespace or (before is not None and before.is_of_graph)
            self._said[key] = _Said(message, before.agent if before else agent, of_graph)
            if _kind(message) == "ai":
                self.unread.update(dict.fromkeys(_unread_in(message)))
            self._known.keys.add(key)
            last = key
        if not namespace and last is not None:
            self._last = last

    def _agent_at(self, namespace: tuple[str, ...]) -> str:
        """The innermost node that is an agent."""
        names = [part.partition(":")[0] for each in namespace for part in each.split("|")]
        return next((name for name in reversed(names) if name in self._names.agents), "")

    def _take_update(self, namespace: tuple[str, ...], written: Any) -> None:
        """A node that lists a call together with its result asked no tool: so an agent of LangChain takes a
        model's structured answer."""
        if not isinstance(written, dict):
            return
        if not namespace:
            self._wrote |= {key for key, value in written.items() if value is not None}
            if written.get("structured_response") is not None:
                self._structured = written["structured_response"]
        messages = written.get("messages")
        if not isinstance(messages, list) or "structured_response" not in {*written, *self.state}:
            return
        answered = {getattr(each, "tool_call_id", None) for each in messages}
        for call in (call for each in messages for call in getattr(each, "tool_calls", None) or ()):
            if call["id"] in answered and call["name"] not in self._names.tools:
                self._hidden.add(call["id"])

    def carried_out_elsewhere(self, messages: list[dict[str, Any]]) -> set[str]:
        """The ids of calls that may have been carried out by a node of the author's own code, or were at the
        provider. Only what the library answers is known to have asked a tool, or to have refused it."""
        contents = [_field(said.message, "content") for said in self._said.values()]
        hosted = {call["id"] for content in contents for call in _server_calls(content)}
        if not self._names.own_nodes:
            return hosted
        called = {call.get("id") for each in messages for call in each.get("tool_calls") or ()}
        return (called - self._by_library) | hosted

    def refused_as_unknown(self, messages: list[dict[str, Any]]) -> set[str]:
        """The names of tools that the library has looked for in vain."""
        failed = {each["tool_call_id"] for each in messages if each.get("status") == "error"}
        refused = {call["id"]: call["function"]["name"] for call in calls_in(messages)}
        return {refused[each] for each in failed & self._by_library & {*refused}} - self._names.tools

    def messages(self) -> list[dict[str, Any]]:
        """In OpenAI's form."""
        return [written for said in self._said.values() for written in self._written(said)]

    def answer(self) -> list[dict[str, Any]]:
        """The messages, of which the last is what the graph answers."""
        listed = self.messages()
        if self._structured is not None:
            text = _as_json(self._structured)
            if not listed or not _is_same(listed[-1].get("content"), text):
                listed.append({"role": "assistant", "content": text})
            return listed
        last = self._said.get(self._last)
        if last is not None and not _is_assistant(last.message) and self._last != self._user:
            listed.append({"role": "assistant", "content": _text(_field(last.message, "content"))})
        if not any(each["role"] == "assistant" for each in listed):
            wrote = ", ".join(sorted(self._wrote - {"messages"}))
            told = f"; it wrote {wrote}" if wrote else ""
            raise RuntimeError("the graph added nothing to `messages`" + told)
        return listed

    def usage(self) -> Any:
        told = [_field(said.message, "usage_metadata") for said in self._said.values()]
        return [each for each in told if isinstance(each, dict) and each] or None

    def _written(self, said: _Said) -> Iterator[dict[str, Any]]:
        message = said.message
        kind = _kind(message)
        if _is_handed_back(message):
            return
        if kind == "tool":
            if _field(message, "tool_call_id") not in self._hidden and not self._is_of_handoff(message):
                yield _result(message)
        elif kind == "human":
            name = _field(message, "name")
            if said.is_of_graph and name and _field(message, "id") != self._user:
                yield {"role": "assistant", "content": _text(_field(message, "content")), "name": name}
        elif kind == "ai":
            calls = [call for call in _calls(message) if not self._is_left_out(call)]
            text = _text(_field(message, "content")) if said.is_of_graph else ""
            handed = any(call["function"]["name"] in self._names.internal for call in _calls(message))
            if text or calls or (handed and (_field(message, "name") or said.agent)):
                written: dict[str, Any] = {"role": "assistant", "content": text or None}
                if calls:
                    written["tool_calls"] = calls
                if name := _field(message, "name") or said.agent:
                    written["name"] = name
                yield written

    def _is_left_out(self, call: dict[str, Any]) -> bool:
        return call["id"] in self._hidden or call["function"]["name"] in self._names.internal

    def _is_of_handoff(self, message: Any) -> bool:
        return _field(message, "name") in self._names.internal


def _is_handed_back(message: Any) -> bool:
    """What a supervisor's library writes where an agent is done."""
    return bool((_field(message, "response_metadata") or {}).get("__is_handoff_back"))


def _keyed(messages: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Each message with what tells it apart: its id, else what it says and the how-manieth of these it is."""
    count: dict[Any, int] = {}
    for message in messages:
        key = _field(message, "id")
        if key is None:
            content, calls = _text(_field(message, "content")), repr(_field(message, "tool_calls"))
            said = (_kind(message), content, calls, _field(message, "tool_call_id"))
            count[said] = count.get(said, 0) + 1
            key = (*said, count[said])
        yield key, message


def _field(message: Any, name: str) -> Any:
    if isinstance(message, dict):
        return message.get(name)
    if isinstance(message, (str, tuple, list)):
        role, content = ("ai", message) if isinstance(message, str) else (message[0], message[-1])
        return {"role": role, "content": content}.get(name)
    return getattr(message, name, None)


def _kind(message: Any) -> str:
    """``human``, ``ai``, ``tool`` or something else."""
    kind = str(_field(message, "type") or _field(message, "role") or "")
    if kind == "chat":
        kind = str(_field(message, "role"))
    kind = kind.replace("MessageChunk", "").lower()
    return {"assistant": "ai", "user": "human", "function": "tool"}.get(kind, kind)


def _is_assistant(message: Any) -> bool:
    return _kind(message) == "ai"


def _text(content: Any) -> str:
    """The text of a message, of the blocks of some providers, too."""
    if isinstance(content, list):
        return "".join(each if isinstance(each, str) else _block(each) for each in content)
    return content if isinstance(content, str) else "" if content is None else _as_json(content)


def _block(block: Any) -> str:
    return str(block.get("text") or "") if isinstance(block, dict) and block.get("type") == "text" else ""


def _calls(message: Any) -> list[dict[str, Any]]:
    made = [_call(each, each["args"]) for each in _field(message, "tool_calls") or () if "args" in each]
    if isinstance(message, dict):
        made += [each for each in message.get("tool_calls") or () if "function" in each]
    made += _server_calls(_field(message, "content"))
    return made + [_call(each, each.get("args")) for each in _field(message, "invalid_tool_calls") or ()]


_AT_PROVIDER = ("server_tool_use", "server_tool_call", "mcp_tool_use")
_READ = frozenset(
    (
        *("text", "reasoning", "thinking", "redacted_thinking", "refusal", "citation", "input_json_delta"),
        *("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call"),
        *("image", "image_url", "audio", "input_audio", "video", "file", "document", "text-plain", "media"),
        *_AT_PROVIDER,
    )
)
"""The blocks of a reply that are read, that stand among its calls, too, or that hold none."""


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def _server_calls(content: Any) -> list[dict[str, Any]]:
    """The calls that the model's provider carried out, as some of them tell."""
    found = [each for each in _blocks(content) if each.get("type") in _AT_PROVIDER and "name" in each]
    return [_call({"id": None, **each}, each.get("args", each.get("input")) or {}) for each in found]


def _unread_in(message: Any) -> Iterator[str]:
    """What of a reply may tell of calls, and is not read."""
    for block in _blocks(_field(message, "content")):
        kind = str(block.get("type"))
        if kind not in _READ and not kind.endswith("_result"):
            yield f"a block '{kind}' of a message is not read"
    if (_field(message, "additional_kwargs") or {}).get("tool_outputs"):
        yield "the model used tools of its provider, whose calls are not read"


def _answered_in(written: Any) -> set[str]:
    """The ids of the calls whose results a node wrote."""
    messages = written.get("messages") if isinstance(written, dict) else None
    listed = messages if isinstance(messages, (list, tuple)) else [messages]
    return {str(call_id) for each in listed if (call_id := _field(each, "tool_call_id"))}


def _call(call: Any, args: Any) -> dict[str, Any]:
    written = args if isinstance(args, str) else json.dumps(args, default=str)
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": written}}


def _result(message: Any) -> dict[str, Any]:
    result = {
        "role": "tool",
        "tool_call_id": _field(message, "tool_call_id"),
        "content": _text(_field(message, "content")),
    }
    if name := _field(message, "name"):
        result["name"] = name
    if _field(message, "status") == "error":
        result["status"] = "error"
    return result


def _as_json(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_same(text: Any, other: str) -> bool:
    """Whether two texts are the same JSON."""
    try:
        return bool(json.loads(text) == json.loads(other))
    except (TypeError, ValueError):
        return False


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else _as_json(value)
    return text if len(text) <= 120 else text[:119] + "…"
