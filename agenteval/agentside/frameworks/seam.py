"""The interface of adapters for frameworks.

An adapter is one module with one object, ``FRAMEWORK``. It writes plain dicts with a ``Transcript`` and uses
only the standard library and the syntax of Python 3.8, because it is also run by path in the agent's own
interpreter (``agentside/start.py``). It imports the framework inside functions, once there is an object of
it. ``registry`` decides which adapter plays an object."""

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
        """A framework."""

        name: str
        """The name in messages."""
        package: str
        """The distribution that determines the version."""
        supports: str
        """The tested versions, such as "0.6 to 1.2"."""

        def matches(self, obj: Any) -> bool:
            """Return whether an object belongs to the framework, by ``kinds(obj)``, without importing
            anything or calling the object."""

        def tools(self, obj: Any) -> list[Tool]:
            """Return the tools of the agent and of the agents below it, before anything runs.

            Tools that the framework itself needs (a final answer, a hand-off) are left out. ``MORE`` in the
            list means that there may be others."""

        def runs_own_code(self, obj: Any) -> bool:
            """Return whether code of the author's that may run a tool without the adapter takes part in how
            the agent answers: a node of a graph, a method of a class of its own. The code of tools does not
            count, since the scenario answers in its place."""

        def open(self, obj: Any, world: World, session: str, deps: Any) -> FrameworkConversation:
            """Return a conversation with a copy of its own and with the world for its tools. Raise
            ``Refused`` if there can be none.

            It starts nothing yet. Before a run it is opened once as a check, with ``deps`` as ``LATER`` if
            there will be any, and closed again."""

    class FrameworkConversation(Protocol):
        """One conversation with an object of a framework."""

        async def reply(self, text: str) -> dict[str, Any]:
            """Play one turn. Return ``messages``, in OpenAI's format, of this turn only (calls, results, the
            answer; a result that is an error has ``status: error``); ``usage`` of this turn, or ``None``;
            ``agent``, the speaker of messages that name nobody.

            The framework's own exceptions propagate; ``with_partial`` attaches what happened before them. The
            world and the messages get arguments as the model wrote them. A call that the world was not asked
            for, without a result or with an error as its result, was refused before any tool ran.
            ``elsewhere``: the ids of calls that ran without the world: in a node of the author's, or at the
            provider. ``unknown``: the names of tools that the framework refused because the agent has no tool
            of that name, in case ``tools`` does not know all."""

        async def close(self) -> None: ...


class Refused(Exception):  # noqa: N818
    """A mistake of the author's, known before anything runs."""

    agenteval_kind = "author"

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what} — {remedy}" if remedy else what)
        self.what, self.remedy = what, remedy


class Waits(Exception):  # noqa: N818
    """The agent waits for a person: for an approval, an answer to an interrupt, the result of a deferred
    call. This is not the agent's fault, and nobody is there to answer."""

    agenteval_kind = "infrastructure"


class PendingDeps:
    """A placeholder for the dependencies of a conversation that has not begun."""


LATER = PendingDeps()


class Tool(NamedTuple):
    """A tool of the agent."""

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    hosted: bool = False
    """True if it runs at the provider, so that agenteval cannot answer for it."""
    hints: dict[str, bool] = {}
    """The tool's own description of its effects; see ``hints_of``."""
    is_agent: bool = False
    """True if it is another agent, which runs unless it is mocked."""


_HINTS = {"readOnlyHint": "read_only_hint", "destructiveHint": "destructive_hint"}
_MCP_TOOL_ATTRIBUTES = ("mcp_tool", "raw_mcp_tool", "_mcp_tool")


def hints_of(tool: Any) -> dict[str, bool]:
    """Return a tool's own description of its effects, under the names of MCP: a server's tool has them in its
    ``annotations``, wherever the framework keeps these; any other tool in its ``metadata``."""
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
"""A placeholder for tools that are known only in a run: those of a server, or those that a function chooses.
"""


# ── for adapters ─────────────────────────────────────────────────────────────────────────────────


_MAX_FUNCTIONS = 200
"""The number of functions that are examined."""


def may_reach(function: Any, fits: Callable[[Any], bool], package: str) -> bool:
    """Return whether a function, directly or through the functions that it names, refers to a value that
    fits, such as an agent or the class of one, which it may run.

    Nothing is called; functions of the framework's ``package`` are not read."""
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
    """Return the names that code uses, including those in nested functions."""
    inner = [each for each in code.co_consts if hasattr(each, "co_names")]
    return set(code.co_names).union(*map(_names_in, inner))


def adds_code(obj: Any, package: str) -> bool:
    """Return whether the class of a framework's object has methods that are not its ``package``'s."""
    for cls in type(obj).__mro__:
        if cls.__module__.partition(".")[0] == package:
            return False
        if any(not name.startswith("__") and _is_code_of(cls, each) for name, each in vars(cls).items()):
            return True
    return False


def _is_code_of(cls: type, value: Any) -> bool:
    """Return whether a method is defined in the class's module, not added by a library."""
    function = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
    return inspect.isfunction(function) and function.__module__ == cls.__module__


def kinds(obj: Any) -> list[str]:
    """Return the classes of an object as ``module.Class``, its own first. For a class, return those of its
    instances."""
    cls = obj if inspect.isclass(obj) else type(obj)
    return [f"{each.__module__}.{each.__qualname__}" for each in cls.__mro__]


def walk_tree(obj: Any, below: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Yield an object and everything ``below`` it, however deep: the nearest first, and each once."""
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
    """Attach to an exception what happened in its turn before it."""
    try:
        error.agenteval_partial = {"messages": messages, "usage": usage, **marks}  # type: ignore[attr-defined]
    except Exception:  # an exception with __slots__ is reported without its turn
        return


def version_of(package: str) -> str:
    """Return the installed version; empty if none is known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def unsupported_version_error(framework: Framework, missing: str) -> Refused:
    """Return the error for a version without ``missing``, which the adapter needs."""
    installed = f"{framework.package} {version_of(framework.package)}".strip()
    what = f"{installed}: {missing} not found; agenteval supports {framework.supports}"
    return Refused(what, "use a function as target (docs/agents.md)")
