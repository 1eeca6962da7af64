"""Inspect a graph before anything runs: its tools, its agents and the author's code in the graph. Nothing in
the graph is called."""

from __future__ import annotations

import functools
import inspect
import sys
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...closures import closure_variables
from ...hooks.langchain_tools import injected_arguments, is_agent, is_handoff, wrapped_function
from ..seam import Tool, hints_of, kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# ── kinds of objects ─────────────────────────────────────────────────────────────────────────────


def is_instance(obj: Any, module: str, name: str) -> bool:
    """Return whether an object is an instance of the class ``name`` in ``module``. Classes themselves are
    excluded, because a graph's nodes also refer to classes."""
    return not isinstance(obj, type) and any(
        kind.startswith(module) and kind.endswith("." + name) for kind in kinds(obj)
    )


def is_graph(obj: Any) -> bool:
    return is_instance(obj, "langgraph.pregel", "Pregel")


def is_builder(obj: Any) -> bool:
    return is_instance(obj, "langgraph.graph", "StateGraph")


def is_runnable(obj: Any) -> bool:
    """Return whether an object is an instance of a ``Runnable`` class that belongs to LangChain's libraries.
    An instance of the author's own ``Runnable`` class is called like any other object."""
    return _is_library_object(obj) and is_instance(obj, "langchain_core.runnables", "Runnable")


def _is_tool(obj: Any) -> bool:
    return is_instance(obj, "langchain_core.tools", "BaseTool")


def _is_library_object(obj: Any) -> bool:
    return _is_library_module(kinds(obj)[0])


def _is_shipped(obj: Any) -> bool:
    """Return whether an object's class is defined in a library module. Classes that a decorator creates from
    functions are excluded, although they also belong to that module."""
    cls = type(obj)
    return (
        _is_library_module(cls.__module__)
        and getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls
    )


_LIBRARIES = ("langgraph", "langchain", "deepagents")


def _is_library_module(module: str) -> bool:
    """Return whether a module belongs to LangChain's libraries. The name alone is not sufficient, because an
    author's own module may have a similar name."""
    root = module.partition(".")[0]
    found = sys.modules.get(root)
    if found is None or not root.startswith(_LIBRARIES):
        return False
    places = [getattr(found, "__file__", None) or "", *getattr(found, "__path__", ())]
    return any("-packages" in place for place in places)


# ── input and contents ───────────────────────────────────────────────────────────────────────────


class GraphNames(NamedTuple):
    """The names of the tools and nodes in a graph."""

    tools: frozenset[str]
    """The names of all tools."""
    internal: frozenset[str]
    """The names of the tools that belong to the graph's control flow."""
    agents: frozenset[str]
    """The names of the nodes that are agents."""
    own_nodes: frozenset[str]
    """The names of the nodes that contain the author's own code."""


def collect_names(graph: Any) -> GraphNames:
    tools = collect_tools(graph)
    internal = frozenset(name for name, tool in tools.items() if is_handoff(tool))
    agents = frozenset(name for name, node in _nodes(graph) if name != "tools" and _is_agent(node))
    return GraphNames(frozenset(tools), internal, agents, _own_nodes(graph))


def input_keys(graph: Any) -> set[str]:
    """Return the keys of the graph's input.

    If a graph has its own ``input_schema``, the keys are read from ``builder``. The JSON Schema of
    ``input_schema`` is not used, because Pydantic cannot generate it for some state types."""
    builder = getattr(graph, "builder", None)
    schemas = getattr(builder, "schemas", None)
    taken = schemas.get(getattr(builder, "input_schema", None)) if isinstance(schemas, dict) else None
    return {key for key in taken or graph.channels if not key.startswith(("branch:", "__"))}


def collect_tools(graph: Any) -> dict[str, Any]:
    """Return all discoverable tools, keyed by name: the tools in tool nodes, and the tools that other nodes
    contain or refer to, including nodes of subgraphs."""
    found: dict[str, Any] = {}
    for obj in _walk_reachable(graph):
        if _is_tool(obj):
            found.setdefault(obj.name, obj)
    return found


def has_own_code(graph: Any) -> bool:
    """Return whether the graph runs the author's own code, either in a node or around the calls of an agent.
    Such code may call undiscovered tools."""
    around = (wraps for each in _walk_reachable(graph) if is_graph(each) for wraps in _middleware(each))
    return bool(_own_nodes(graph)) or not all(map(_is_shipped, around))


def needs_store(graph: Any) -> bool:
    """Return whether any part of the graph requires a store."""
    return any(map(_asks_for_store, _walk_reachable(graph)))


def has_no_async(graph: Any) -> bool:
    """Return whether a middleware wraps calls only in a synchronous function. LangChain cannot run such a
    graph asynchronously."""
    return any(
        getattr(cls, name) is not _base(cls, name) and getattr(cls, "a" + name) is _base(cls, "a" + name)
        for cls in map(type, _middleware(graph))
        for name in ("wrap_model_call", "wrap_tool_call")
        if hasattr(cls, "a" + name)
    )


def _base(cls: Any, name: str) -> Any:
    base = next(each for each in cls.__mro__ if each.__name__ == "AgentMiddleware")
    return getattr(base, name, None)


def _own_nodes(graph: Any) -> frozenset[str]:
    """Return the names of the nodes that run the author's code, which may execute calls itself."""
    return frozenset(name for name, node in _nodes(graph) if not all(map(_is_known, _steps(node))))


def _is_agent(node: Any) -> bool:
    """Return whether a node is a graph or calls a graph."""
    return any(map(is_graph, (*(getattr(node, "subgraphs", None) or ()), *_steps(node))))


def _is_known(step: Any) -> bool:
    """Return whether a step is one of the library's own steps, so that all of its calls are made by its
    tools."""
    attributes = getattr(step, "__dict__", {})
    code = [each for name in ("func", "afunc") if (each := attributes.get(name)) is not None]
    if code:
        return all(map(_is_code_of_library, code))
    is_ready = step is None or is_graph(step) or is_instance(step, "langgraph", "ToolNode")
    return is_ready or not attributes.get("steps")


def _is_code_of_library(function: Any) -> bool:
    is_of_author = inspect.ismethod(function) and not _is_shipped(function.__self__)
    return _is_library_module(str(getattr(function, "__module__", ""))) and not is_of_author


def _asks_for_store(obj: Any) -> bool:
    """Return whether an object is a tool or one of the author's functions that fetches a store or receives an
    injected store."""
    function = wrapped_function(obj) if _is_tool(obj) else obj
    if type(function) is not FunctionType or _is_library_module(function.__module__):
        return False
    notes = " ".join(map(str, function.__annotations__.values()))
    used = set(_names_of_code(function.__code__))
    is_injected = "BaseStore" in notes or "InjectedStore" in notes
    return is_injected or "get_store" in used or ("Runtime" in notes and "store" in used)


# ── tool descriptions ────────────────────────────────────────────────────────────────────────────


def describe_tool(tool: Any) -> Tool:
    described = Tool(tool.name, tool.description or "", _parameters(tool), hints=hints_of(tool))
    return described._replace(is_agent=is_agent(tool))


def _parameters(tool: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of a tool's arguments as a model sees it, excluding arguments that the graph
    injects."""
    try:
        schema = tool.tool_call_schema
        if not isinstance(schema, dict):
            schema = schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema.schema()
    except Exception:  # some annotations have no schema
        return None
    known = {key: value for key, value in schema.items() if key not in ("description", "title")}
    injected = injected_arguments(tool)
    if isinstance(properties := known.get("properties"), dict) and injected & set(properties):
        known["properties"] = {key: value for key, value in properties.items() if key not in injected}
        known["required"] = [name for name in known.get("required", ()) if name not in injected]
    return known


# ── walking the objects ──────────────────────────────────────────────────────────────────────────

_MAX_DEPTH = 24
_MAX_OBJECTS = 500
_CALLED_ATTRIBUTES = (
    *("bound", "func", "afunc", "coroutine"),
    *("steps", "mapper", "runnable", "subgraphs", "branches"),
)
"""The attributes in which LangChain and LangGraph objects store the objects that they call."""
_CONTAINERS = (dict, list, tuple, set, frozenset)


def _nodes(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield each node in a graph and its subgraphs, along with the node's name."""
    for each in _walk_reachable(graph):
        if is_graph(each):
            yield from each.nodes.items()


def _steps(node: Any) -> Iterator[Any]:
    bound = vars(node).get("bound")
    yield bound
    yield from getattr(bound, "__dict__", {}).get("steps") or ()


def _walk_reachable(graph: Any) -> Iterator[Any]:
    """Yield the objects that are reachable from a graph, nearest first."""
    seen: dict[int, Any] = {}
    waiting: list[tuple[Any, int]] = [(graph, 0)]
    while waiting:
        obj, depth = waiting.pop(0)
        if id(obj) in seen or depth > _MAX_DEPTH:
            continue
        seen[id(obj)] = obj
        yield obj
        waiting += [(each, depth + 1) for each in _references_of(obj)]


def _references_of(obj: Any) -> Iterable[Any]:
    """Return the objects that an object refers to. Use only ``type`` to inspect them, because ``isinstance``
    triggers lazy loading."""
    cls = type(obj)
    if is_graph(obj):
        return list(obj.nodes.values())
    if issubclass(cls, _CONTAINERS):
        return _items(obj.values() if issubclass(cls, dict) else obj)
    if issubclass(cls, functools.partial):
        return [obj.func, *filter(_is_worth_following, (*obj.args, *obj.keywords.values()))]
    if cls is MethodType:
        return [obj.__func__, *_fields(obj.__self__)]
    if cls is FunctionType:
        return _referenced_by_function(obj)
    if type(getattr(cls, "tools_by_name", None)) is property:
        return [*obj.tools_by_name.values(), *_called_parts(obj)]
    if _is_library_object(obj):
        return _called_parts(obj)
    entry = None if issubclass(cls, type) else vars(cls).get("__call__")
    return [entry, *_fields(obj)] if type(entry) is FunctionType else []


def _is_worth_following(obj: Any) -> bool:
    cls = type(obj)
    if cls in (FunctionType, MethodType):
        return not str(obj.__module__).startswith("langchain_core.")
    if issubclass(cls, (*_CONTAINERS, functools.partial)):
        return True
    return not issubclass(cls, type) and (_is_library_object(obj) or _is_tool(obj))


def _items(items: Any) -> list[Any]:
    """Return the relevant items in a collection. Return nothing if the collection is so large that it must
    contain data."""
    return list(filter(_is_worth_following, items)) if len(items) <= _MAX_OBJECTS else []


def _called_parts(obj: Any) -> list[Any]:
    """Return the objects that an object calls. Do not use ``getattr``, because a ``RunnableBinding`` would
    also look up the attributes in the object that it wraps."""
    attributes = getattr(obj, "__dict__", {})
    return [attributes[name] for name in _CALLED_ATTRIBUTES if attributes.get(name) is not None]


def _fields(owner: Any) -> list[Any]:
    attributes = {} if isinstance(owner, type) else getattr(owner, "__dict__", {})
    return list(filter(_is_worth_following, attributes.values()))


def _referenced_by_function(function: Any) -> list[Any]:
    """Return the values in a function's closure. For functions outside the libraries, also return the global
    variables that the function refers to."""
    values = list(closure_variables(function).values())
    space = function.__globals__
    if not _is_library_module(str(space.get("__name__", ""))):
        values += [space[name] for name in _names_of_code(function.__code__) if name in space]
    return list(filter(_is_worth_following, values))


def _names_of_code(code: Any) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if hasattr(each, "co_names"):
            yield from _names_of_code(each)


def _middleware(graph: Any) -> Iterator[Any]:
    """Yield the middleware around model calls and tool calls. The middleware is read from the closures of the
    nodes that make these calls."""
    nodes = [graph.nodes[name] for name in ("model", "tools") if graph.nodes.get(name) is not None]
    steps = [step for node in nodes for step in _steps(node) if step is not None]
    waiting = [value for step in steps for value in vars(step).values()]
    seen: dict[int, Any] = {}
    while waiting and len(seen) < _MAX_OBJECTS:
        obj = waiting.pop(0)
        if id(obj) in seen:
            continue
        seen[id(obj)] = obj
        if is_instance(obj, "langchain.agents.middleware", "AgentMiddleware"):
            yield obj
        else:
            waiting += _wrapped_in(obj)


def _wrapped_in(obj: Any) -> list[Any]:
    if inspect.ismethod(obj):
        return [obj.__self__, obj.__func__]
    if inspect.isfunction(obj):
        return list(closure_variables(obj).values())
    return list(obj) if isinstance(obj, (list, tuple)) else []
