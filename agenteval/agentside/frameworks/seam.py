"""The interface that framework adapters implement.

An adapter is a module that defines an object named ``FRAMEWORK``. It writes plain dicts with a ``Transcript``
and uses only the standard library and the syntax of Python 3.8, because it is also run by path in the agent's
own interpreter (``agentside/start.py``). An adapter imports its framework inside functions, once it has
received a framework object. ``registry`` selects the adapter for an object."""

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
        """The adapter for an agent framework.

        The method ``no_history(obj)`` is optional. It returns why conversations with the agent cannot
        continue from earlier messages, as a phrase that follows the agent's name, or an empty string if they
        can. Without this method they cannot."""

        name: str
        """The framework's name, as used in messages."""
        package: str
        """The distribution whose version is used as the framework's version."""
        supports: str
        """The tested versions, such as "0.6 to 1.2"."""

        def matches(self, obj: Any) -> bool:
            """Return whether an object belongs to the framework, using ``kinds(obj)``. Neither import
            anything nor call the object."""

        def tools(self, obj: Any) -> list[Tool]:
            """Return the tools of the agent and of its subordinate agents, before anything runs.

            Exclude tools for the framework's own use, such as a final answer or a hand-off. If the list
            contains ``MORE``, there may be additional tools."""

        def runs_own_code(self, obj: Any) -> bool:
            """Return whether the agent runs the author's own code outside tools, such as a node in a graph or
            a method in a subclass. Such code may run a tool without the adapter. Code inside tools is
            ignored, because the scenario answers the calls to these tools."""

        def open(self, obj: Any, world: World, session: str, deps: Any) -> FrameworkConversation:
            """Return a conversation that has its own copy of the agent and uses the world for its tools.
            Raise ``Refused`` if this is impossible.

            Nothing is started at this point. Before a run, a conversation is opened once as a check and
            closed again. During this check, ``deps`` is ``LATER`` if dependencies will be supplied later."""

    class FrameworkConversation(Protocol):
        """A conversation with a framework object.

        The method ``load_history(messages)`` is required if ``no_history`` may return an empty string. It is
        called before the first turn, if at all. The messages are in OpenAI's format, begin with the user's
        and end with the agent's."""

        async def reply(self, text: str) -> dict[str, Any]:
            """Run one turn. Return ``messages``, ``usage`` and ``agent``. ``messages`` contains only the
            messages of this turn in OpenAI's format: calls, results and the answer. An error result has
            ``status: error``. ``usage`` is the token usage of this turn, or ``None``. ``agent`` is the
            speaker for messages that do not name an agent.

            The framework's own exceptions propagate; ``with_partial`` attaches the part of the turn that
            preceded the exception. The world and the messages receive arguments as the model wrote them. If a
            call did not reach the world, and has no result or an error result, it was refused before any tool
            ran. ``elsewhere`` contains the ids of calls that ran outside the world, either in a node with the
            author's code or on the provider's servers. ``unknown`` contains tool names that the framework
            refused because the agent has no tools with these names. ``unknown`` is used if ``tools`` may be
            incomplete."""

        async def close(self) -> None: ...


class Refused(Exception):  # noqa: N818
    """Raised for a mistake by the author that is detected before anything runs."""

    agenteval_kind = "author"

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(f"{what} — {remedy}" if remedy else what)
        self.what, self.remedy = what, remedy


class Waits(Exception):  # noqa: N818
    """Raised if the agent waits for human input (human-in-the-loop): an approval, an answer to an interrupt,
    or the result of a deferred call. The agent is not at fault, and no one is available to answer."""

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
    """True if the tool runs on the provider's servers, so that agenteval cannot answer its calls."""
    hints: dict[str, bool] = {}
    """The tool's own description of its effects. See ``hints_of``."""
    is_agent: bool = False
    """True if the tool is another agent. The agent runs unless the tool is mocked."""


_HINTS = {"readOnlyHint": "read_only_hint", "destructiveHint": "destructive_hint"}
_MCP_TOOL_ATTRIBUTES = ("mcp_tool", "raw_mcp_tool", "_mcp_tool")


def hints_of(tool: Any) -> dict[str, bool]:
    """Return a tool's own description of its effects, using the names of MCP tool annotations. A tool from an
    MCP server provides them in its ``annotations``, which each framework stores in a different location. Any
    other tool provides them in its ``metadata``."""
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
"""A placeholder for tools that are known only during a run, because a server offers them or a function
selects them."""


# ── for adapters ─────────────────────────────────────────────────────────────────────────────────


_MAX_FUNCTIONS = 200
"""The maximum number of functions to examine."""


def may_reach(function: Any, fits: Callable[[Any], bool], package: str) -> bool:
    """Return whether a function refers to a matching value, directly or through the functions that it refers
    to. Such a value is, for example, an agent or an agent class that the function may run.

    Nothing is called. Functions in the framework's ``package`` are not examined."""
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
    """Return the names used in code, including names in nested functions."""
    inner = [each for each in code.co_consts if hasattr(each, "co_names")]
    return set(code.co_names).union(*map(_names_in, inner))


def adds_code(obj: Any, package: str) -> bool:
    """Return whether the class of a framework object has methods that are defined outside ``package``."""
    for cls in type(obj).__mro__:
        if cls.__module__.partition(".")[0] == package:
            return False
        if any(not name.startswith("__") and _is_code_of(cls, each) for name, each in vars(cls).items()):
            return True
    return False


def _is_code_of(cls: type, value: Any) -> bool:
    """Return whether a method is defined in the class's module and was not added by a library."""
    function = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
    return inspect.isfunction(function) and function.__module__ == cls.__module__


def kinds(obj: Any) -> list[str]:
    """Return the classes of an object, including base classes, as ``module.Class``, starting with the
    object's own class. For a class, return the classes of its instances."""
    cls = obj if inspect.isclass(obj) else type(obj)
    return [f"{each.__module__}.{each.__qualname__}" for each in cls.__mro__]


def walk_tree(obj: Any, below: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Yield an object and all of its descendants according to ``below``, nearest first. Yield each object
    only once."""
    found = [obj]
    for each in found:
        yield each
        for one in below(each):
            if not any(one is known for known in found):
                found.append(one)


def is_instance_of(obj: Any, *names: str) -> bool:
    """Return whether an object is an instance of one of the given class names, as returned by ``kinds``."""
    return any(kind in names for kind in kinds(obj))


def with_partial(
    error: BaseException, messages: list[dict[str, Any]], usage: Any = None, **marks: Any
) -> None:
    """Attach the part of the turn that preceded an exception to that exception."""
    try:
        error.agenteval_partial = {"messages": messages, "usage": usage, **marks}  # type: ignore[attr-defined]
    except Exception:  # an exception with __slots__ is reported without its turn
        return


def version_of(package: str) -> str:
    """Return the installed version, or an empty string if the version is unknown."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def unsupported_version_error(framework: Framework, missing: str) -> Refused:
    """Return the error for a framework version that lacks ``missing``, which is a feature that the adapter
    requires."""
    installed = f"{framework.package} {version_of(framework.package)}".strip()
    what = f"{installed} has no {missing} (agenteval supports versions {framework.supports})"
    return Refused(what, "use a function as the target (docs/agents.md)")
