"""Find the adapter that runs a framework object (the adapter registry for agent frameworks).

An adapter is registered under the import name of the package that defines the framework's classes. Therefore,
no adapter is imported for the author's own functions and objects. Adapters, including the built-in adapters,
are entry points in one group. An agent's own interpreter does not have agenteval installed. In that
interpreter, the built-in adapters are the modules in this module's package. Adapters from other packages take
precedence, so that a user can replace a built-in adapter."""

from __future__ import annotations

import inspect
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .seam import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

    from ..world import World
    from .seam import Framework, FrameworkConversation, Tool

GROUP = "agenteval.frameworks"
_PACKAGE = __name__.rpartition(".")[0]

BUILT_IN = {
    "agent_framework": "agent_framework",
    "agents": "openai_agents",
    "autogen_agentchat": "autogen",
    "crewai": "crewai",
    "google.adk": "google_adk",
    "langchain_core": "langgraph",
    "langgraph": "langgraph",
    "llama_index": "llamaindex",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
}
"""The modules in this package that define a ``FRAMEWORK``, keyed by the framework's package."""

_NEEDED = ("name", "package", "supports", "matches", "tools", "runs_own_code", "open")


def framework_of(obj: Any) -> Framework | None:
    """Return the framework of an object or, for a class, the framework of its instances. Return ``None`` if
    the object does not belong to a framework."""
    cls = obj if inspect.isclass(obj) else type(obj)
    modules = [str(each.__module__) for each in cls.__mro__ if each.__module__ != "builtins"]
    if not modules:
        return None  # a function, for example
    for entry in _registered(tuple(sys.path)):
        if any(_is_within(module, entry.name) for module in modules):
            framework = _load_adapter(entry, obj)
            if framework is not None:
                return framework
    return None


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@lru_cache(maxsize=None)
def _registered(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return all adapters that can be found on an import path, in order of precedence."""
    from importlib.metadata import EntryPoint  # slower to import than the rest of this package

    found = sorted(_entry_points(), key=lambda entry: (entry.name, entry.value))
    own_entries = [entry for entry in found if entry.value.startswith(_PACKAGE + ".")]
    # An editable install that is older than the checkout lists only some of the built-in adapters.
    listed = {entry.name for entry in own_entries}
    built_in = [
        EntryPoint(name, f"{_PACKAGE}.{module}:FRAMEWORK", GROUP)
        for name, module in BUILT_IN.items()
        if name not in listed
    ]
    others = [entry for entry in found if not entry.value.startswith("agenteval.")]
    return (*others, *own_entries, *built_in)


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import distributions, entry_points

    try:
        known: Any = entry_points()
    except Exception:  # the metadata of some package is broken: skip that package
        return [entry for each in distributions() for entry in _entry_points_of(each)]
    found: Iterable[EntryPoint]
    found = known.select(group=GROUP) if hasattr(known, "select") else known.get(GROUP, ())  # Python 3.8, 3.9
    return found


def _entry_points_of(package: Any) -> list[EntryPoint]:
    try:
        return [entry for entry in package.entry_points if entry.group == GROUP]
    except Exception:
        return []


def _load_adapter(entry: EntryPoint, obj: Any) -> Framework | None:
    """Return the adapter for an entry point if the adapter can run the object.

    An adapter that fails to decide also claims the object, because the object's tools would run if it were
    treated as a different kind of agent."""
    try:
        found = entry.load()
        is_maker = inspect.isroutine(found) or inspect.isclass(found)
        framework: Framework = found(sys.modules[_PACKAGE]) if is_maker else found
        if missing := next((name for name in _NEEDED if not hasattr(framework, name)), None):
            raise TypeError(f"it has no attribute '{missing}'")
        return framework if framework.matches(obj) else None
    except Exception as error:  # raised by code of another package
        return _BrokenAdapter(entry, error)


class _BrokenAdapter:
    """A broken adapter from another package. It refuses every object of its framework."""

    supports = ""

    def __init__(self, entry: EntryPoint, error: Exception) -> None:
        self.name = self.package = entry.name
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        self._what = f"the adapter for {entry.name} objects ({entry.value}) cannot be loaded: {why}"

    def matches(self, obj: Any) -> bool:
        return True

    def tools(self, obj: Any) -> list[Tool]:
        raise self._refusal()

    def runs_own_code(self, obj: Any) -> bool:
        raise self._refusal()

    def open(self, obj: Any, world: World, session: str, deps: Any) -> FrameworkConversation:
        raise self._refusal()

    def _refusal(self) -> Refused:
        return Refused(self._what, "fix or uninstall the package that contains the adapter")
