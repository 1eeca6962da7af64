"""What an adapter for a framework gets, and what it gives.

An adapter is one module with one object, ``FRAMEWORK``. It writes plain dicts with a ``Transcript``, for the
standard library alone and in the syntax of Python 3.8: it also runs, by path, in the interpreter of the
agent's own (``agentside/start.py``). The framework itself is imported inside functions, once an
object of it is there. Which object asks which adapter: ``registry``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..closures import closure_variables
from ..world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    class Framework(Protocol):
        """A framework. ``name`` stands in messages; ``package`` is the distribution whose version counts;
        ``supports`` says which versions were tried, such as "0.6 to 1.2"."""

        name: str
        package: str
        supports: str

        def matches(self, obj: Any) -> bool:
            """Whether it is one of its objects, by ``kinds(obj)``; nothing is imported, and nothing of the
            object is called."""

        def tools(self, obj: Any) -> list[Tool]:
            """The tools that the agent has, and those of agents below it, before anything runs. What the
            framework itself needs (a final answer, a hand-off) is not among them. ``MORE`` among them: there
            may be others."""

        def runs_own_code(self, obj: Any) -> bool:
            """Return whether code of the author's, which may run a tool without the adapter, takes part in
            how the agent answers: a node of a graph, a method of a class of its own. The code of tools does
            not count: the scenario answers in its place."""

        def open(self, obj: Any, world: World, session: str, deps: Any) -> FrameworkConversation:
            """A conversation of its own: of a copy, with the world for its tools. Raises ``Refused``.

            It starts nothing yet. Before a run it is tried once, with ``deps`` as ``LATER`` if there will be
            any, and closed again.
            """

    class FrameworkConversation(Protocol):
        async def reply(self, text: str) -> dict[str, Any]:
            """What one turn gave: ``messages``, in OpenAI's format, of this turn alone (calls, results, the
            answer; a result that is an error has ``status: error``); ``usage`` of this turn, or ``None``;
            ``agent``: who speaks where a message names nobody.

            The framework's own exceptions go through; ``with_partial`` keeps what happened before them.
            Arguments are given to the world, and stand in the messages, as the model wrote them. A call that
            the world was not asked for, without a result or with one that is an error, was refused before any
            tool ran. ``elsewhere``: the ids of calls that were carried out without it: by a node of the
            author's, at the provider. ``unknown``: the names of tools that the framework refused since the
            agent has none of that name, where ``tools`` does not know all.
            """

        async def close(self) -> None: ...


class Refused(Exception):  # noqa: N818
    """The author's mistake, known before anything runs."""

    agenteval_kind = "author"

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what} — {remedy}" if remedy else what)
        self.what, self.remedy = what, remedy


class Waits(Exception):  # noqa: N818
    """The agent waits for a person: for an approval, an answer to an interrupt, the result of a deferred
    call. That is no fault of its own, and nobody is there to answer."""

    agenteval_kind = "infrastructure"


class PendingDeps:
    """Stands for the dependencies of a conversation that has not begun."""


LATER = PendingDeps()


class Tool(NamedTuple):
    """A tool that the agent has. ``hosted``: it runs at the provider, so that nobody here can answer it.
    ``hints``: see ``hints_of``. ``is_agent``: another agent, which runs unless it is mocked."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    hosted: bool = False
    hints: dict[str, bool] = {}
    is_agent: bool = False


_HINTS = {"readOnlyHint": "read_only_hint", "destructiveHint": "destructive_hint"}
_MCP_TOOL_ATTRIBUTES = ("mcp_tool", "raw_mcp_tool", "_mcp_tool")


def hints_of(tool: Any) -> dict[str, bool]:
    """What a tool says that it does, under the names of MCP: a tool of a server's in its ``annotations``,
    wherever the framework keeps them; any other in its ``metadata``."""
    for each in (tool, *(getattr(tool, name, None) for name in _MCP_TOOL_ATTRIBUTES)):
        metadata = getattr(each, "metadata", None)
        nested = metadata.get("annotations") if isinstance(metadata, dict) else None
        for source in (getattr(each, "annotations", None), nested, metadata):
            found = {name: _hint(source, name, other) for name, other in _HINTS.items()}
            hints = {name: value for name, value in found.items() if isinstance(value, bool)}
            if hints:
                return hints
    return {}


def _hint(source: Any, *names: str) -> Any:
    get = source.get if isinstance(source, Mapping) else lambda name: getattr(source, name, None)
    return next((value for value in map(get, names) if value is not None), None)


MORE = Tool("")
"""Stands for tools that are known only in a run: those of a server, or those that a function chooses."""


# ── for adapters ─────────────────────────────────────────────────────────────────────────────────


_MAX_FUNCTIONS = 200
"""So many functions are looked at."""


def may_reach(function: Any, fits: Callable[[Any], bool], package: str) -> bool:
    """Return whether a function, or one that it names, names something that fits, such as an agent or the
    class of one, which it may run. Nothing is called; functions of the framework's ``package`` are not read.
    """
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_FUNCTIONS:
        each = inspect.unwrap(getattr(waiting[0], "__func__", waiting[0]))
        del waiting[0]
        code = getattr(each, "__code__", None)
        if code is None or id(each) in seen or (each.__module__ or "").partition(".")[0] == package:
            continue
        seen.add(id(each))
        global_values = [each.__globals__[name] for name in _names_in(code) if name in each.__globals__]
        values = [*global_values, *closure_variables(each).values()]
        if any(map(fits, values)):
            return True
        waiting += [value for value in values if inspect.isroutine(value)]
    return False


def _names_in(code: Any) -> set[str]:
    """The names that code uses, with the functions in it."""
    inner = [each for each in code.co_consts if hasattr(each, "co_names")]
    return set(code.co_names).union(*map(_names_in, inner))


def adds_code(obj: Any, package: str) -> bool:
    """Return whether the class of an object of a framework has methods that are not its ``package``'s."""
    for cls in type(obj).__mro__:
        if cls.__module__.partition(".")[0] == package:
            return False
        if any(not name.startswith("__") and _is_code_of(cls, each) for name, each in vars(cls).items()):
            return True
    return False


def _is_code_of(cls: type, value: Any) -> bool:
    """Whether a method is written there, and not put in by a library."""
    function = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
    return inspect.isfunction(function) and function.__module__ == cls.__module__


def kinds(obj: Any) -> list[str]:
    """``module.Class`` of the classes that an object is of, its own first. Of a class: of those that its
    instances are of."""
    cls = obj if inspect.isclass(obj) else type(obj)
    return [f"{each.__module__}.{each.__qualname__}" for each in cls.__mro__]


def walk_tree(obj: Any, below: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Yield an object and what is ``below`` it, however deep: the nearest first, and each once."""
    found = [obj]
    for each in found:
        yield each
        for one in below(each):
            if not any(one is known for known in found):
                found.append(one)


def is_instance_of(obj: Any, *names: str) -> bool:
    """Return whether an object is of one of these classes, by ``kinds``."""
    return any(kind in names for kind in kinds(obj))


def with_partial(
    error: BaseException, messages: list[dict[str, Any]], usage: Any = None, **marks: Any
) -> None:
    """Keeps with an exception what happened in its turn before."""
    try:
        error.agenteval_partial = {"messages": messages, "usage": usage, **marks}  # type: ignore[attr-defined]
    except Exception:  # one with __slots__: then it is known without its turn
        return


def version_of(package: str) -> str:
    """The version that is installed; empty if none is known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def unsupported_version_error(framework: Framework, missing: str) -> Refused:
    """For a version that lacks what the adapter stands on."""
    installed = f"{framework.package} {version_of(framework.package)}".strip()
    what = f"{installed}: {missing} not found; agenteval supports {framework.supports}"
    return Refused(what, "use a function as target (docs/agents.md)")
