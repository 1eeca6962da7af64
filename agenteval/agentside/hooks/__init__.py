"""Hooks: patch the one place where each framework runs a tool, for every agent in this process.

``install()`` runs before the agent's code is imported. From then on the method that runs tools is patched at
class level, once, in each framework that is or will be imported. A patched method asks for the tool world of
the conversation it runs in (``world.current_world()``); without one it behaves as before. A tool that the
scenario mocks is answered by the scenario, and its own code never runs.

To add a hook: put a module here with a function ``install(module)``, and list in ``HOOKS`` the framework's
modules that contain what it patches. Add ``PACKAGES`` to the module if the framework's code has further
packages. A hook uses public attributes only, and is tested with the oldest and the newest supported release
(``.ci/frameworks.py``)."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

HOOKS: dict[str, str] = {
    "autogen_core.tools": "autogen",
    "crewai.tools.base_tool": "crewai",
    "crewai.tools.structured_tool": "crewai",
    "google.adk.tools.base_tool": "google_adk",
    "agent_framework._tools": "agent_framework",
    "agents.computer": "openai_agents_computer",
    "agents.tool": "openai_agents",
    "langchain_core.tools.base": "langchain",
    "mcp.client.session": "mcp",
    "httpx": "http_clients",
    "httpx2": "http_clients",
    "llama_index.core.tools.types": "llamaindex",
    "pydantic_ai.toolsets.abstract": "pydantic_ai",
    "smolagents.agents": "smolagents",
    "smolagents.tools": "smolagents",
    "strands.tools.decorator": "strands_functions",
    "strands.types.tools": "strands",
}
"""The modules that are patched once they are imported, and the module here that patches them."""

_NON_FRAMEWORK_HOOKS = ("http_clients",)
"""Hooks for libraries that are not agent frameworks."""
_installed: set[str] = set()
_failed: dict[str, str] = {}


def install() -> None:
    """Install the hooks for modules that are imported and for those that will be. Another call in the same
    process has no effect."""
    from .. import threads

    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        threads.install()
    for name in HOOKS:
        if name in sys.modules:
            _hook(sys.modules[name])


def list_failures() -> list[str]:
    """Return a sentence for each framework that could not be hooked: calls of its tools are not
    intercepted."""
    return list(_failed.values())


def is_hooked(module: str) -> bool:
    """Return whether a module of a framework, or the package that it names, was hooked."""
    return any(name == module or name.startswith(module + ".") for name in _installed)


def hooked_packages() -> tuple[str, ...]:
    """Return the import names of the packages of the hooked frameworks."""
    hooked = [name for name in list(_installed) if HOOKS[name] not in _NON_FRAMEWORK_HOOKS]
    return tuple(dict.fromkeys(each for name in hooked for each in _packages(name)))


def _packages(name: str) -> Sequence[str]:
    """Return the packages that a hook declares (``PACKAGES``), otherwise the outermost one that is not a mere
    namespace."""
    if declared := getattr(sys.modules.get(f"{__name__}.{HOOKS[name]}"), "PACKAGES", ()):
        return tuple(declared)
    parts = name.split(".")
    outer = [".".join(parts[: at + 1]) for at in range(len(parts))]
    return (next((each for each in outer if getattr(sys.modules.get(each), "__file__", None)), name),)


def _hook(module: ModuleType) -> None:
    name = module.__name__
    if name in _installed or name in _failed:
        return
    _installed.add(name)
    try:
        import_module(f".{HOOKS[name]}", __name__).install(module)
    except Exception as error:  # a release without the attributes that are patched
        _installed.discard(name)
        what = f"{type(error).__name__}: {error}"
        package = name.partition(".")[0]
        remedy = "use a release listed in docs/frameworks.md"
        _failed[name] = f"tool calls of {package} cannot be intercepted in this release ({what}); {remedy}"


class _Finder:
    """A finder that runs before all others and hooks each module as soon as it is imported."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name not in HOOKS or name in _installed:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """A module's own loader, followed by the hook."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _hook(module)
