"""Monkeypatch the one place where each agent framework runs a tool, for every agent in this process.

``install()`` runs before the agent's code is imported. From then on, the method that runs tools is patched at
class level, once, in each framework that is imported or will be imported. A patched method looks up the tool
world of the conversation in which it runs (``world.current_world()``). If there is no world, the method
behaves as before. If the scenario mocks a tool, the scenario answers the call, and the tool's own code never
runs.

To add a hook, add a module with a function ``install(module)`` to this package. In ``HOOKS``, list the
framework modules that contain the code to patch. Add ``PACKAGES`` to the module if the framework's code is
spread over several packages. A hook uses only public attributes, and is tested with the oldest and the newest
supported release (``.ci/frameworks.py``)."""

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
"""The modules that are patched when they are imported, mapped to the module in this package that patches
them."""

_NON_FRAMEWORK_HOOKS = ("http_clients",)
"""The hooks for libraries that are not agent frameworks."""
_installed: set[str] = set()
_failed: dict[str, str] = {}


def install() -> None:
    """Install the hooks that monkeypatch tool calls, for modules that are already imported and for modules
    that are imported later. Additional calls in the same process have no effect."""
    from .. import threads

    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        threads.install()
    for name in HOOKS:
        if name in sys.modules:
            _hook(sys.modules[name])


def list_failures() -> list[str]:
    """Return a sentence for each framework that could not be hooked. Calls to that framework's tools are not
    intercepted."""
    return list(_failed.values())


def is_hooked(module: str) -> bool:
    """Return whether a framework module or a module below it was hooked."""
    return any(name == module or name.startswith(module + ".") for name in _installed)


def hooked_packages() -> tuple[str, ...]:
    """Return the import names of the packages of the hooked frameworks."""
    hooked = [name for name in list(_installed) if HOOKS[name] not in _NON_FRAMEWORK_HOOKS]
    return tuple(dict.fromkeys(each for name in hooked for each in _packages(name)))


def _packages(name: str) -> Sequence[str]:
    """Return the packages that a hook declares (``PACKAGES``). If a hook declares none, return the outermost
    package that is not just a namespace package."""
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
        _failed[name] = f"{package} tool calls cannot be intercepted in this release ({what}); {remedy}"


class _Finder:
    """An import finder that runs before all other finders and hooks each module as soon as the module is
    imported."""

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
    """A loader that runs a module's own loader and then the hook."""

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
