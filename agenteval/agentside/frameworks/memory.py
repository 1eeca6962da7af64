"""Find stateful framework objects that the author's code uses.

If a function calls an object that is stored in a module, the object is not recreated for each conversation,
and conversations share its memory. Such an object is found through the names in the code: global variables,
closures, defaults, and the values that can be reached from these. Nothing is called."""

from __future__ import annotations

import dis
import inspect
import sys
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..closures import closure_variables
from ..targets.module_files import is_installed
from .seam import kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    NamedValues = Iterable[tuple[str, Any]]


class StatefulClass(NamedTuple):
    """A class whose objects remember earlier calls."""

    package: str
    """The package that contains the class. Modules between the package and the class are ignored."""
    name: str
    memory_attribute: str = ""
    """The attribute that contains the memory, for classes whose objects remember only if this attribute is
    set."""
    is_keyed_by_id: bool = False
    """True if the objects keep conversations apart by an id that is passed to each call."""
    is_agent: bool = False

    def is_class_of(self, obj: Any) -> bool:
        for kind in kinds(obj):
            module, _, name = kind.rpartition(".")
            if name == self.name and (module == self.package or module.startswith(self.package + ".")):
                return not self.memory_attribute or bool(getattr(obj, self.memory_attribute, None))
        return False


STATEFUL_CLASSES = (
    StatefulClass("strands.agent", "Agent", is_agent=True),
    StatefulClass("strands.multiagent", "MultiAgentBase"),
    StatefulClass("autogen_agentchat.agents", "BaseChatAgent", is_agent=True),
    StatefulClass("autogen_agentchat.teams", "BaseGroupChat"),
    StatefulClass("autogen_core.model_context", "ChatCompletionContext"),
    StatefulClass("langgraph.pregel", "Pregel", memory_attribute="checkpointer", is_keyed_by_id=True),
    StatefulClass("langchain_core.runnables.history", "RunnableWithMessageHistory", is_keyed_by_id=True),
    StatefulClass("langchain_core.chat_history", "BaseChatMessageHistory"),
    StatefulClass("agents.memory", "SessionABC"),
    StatefulClass("google.adk.runners", "Runner", is_keyed_by_id=True),
    StatefulClass("smolagents.agents", "MultiStepAgent", is_agent=True),
    StatefulClass("workflows.context", "Context"),
    StatefulClass("llama_index.core.memory", "BaseMemory"),
    StatefulClass("llama_index.core.chat_engine", "BaseChatEngine"),
    StatefulClass("agent_framework", "AgentSession"),
    StatefulClass("agent_framework", "AgentThread"),
    StatefulClass("crewai", "Crew", memory_attribute="memory", is_agent=True),
    StatefulClass("crewai", "Agent", memory_attribute="memory", is_agent=True),
)
"""The known stateful classes. The agents of Pydantic AI, the OpenAI Agents SDK and ADK are not listed, and
neither are LlamaIndex workflows, because they store no conversation history themselves."""

_MAX_DEPTH = 6
_MAX_OBJECTS = 2000
_MAX_ITEMS = 50
_NEW_IDS = ("uuid", "secrets")
"""The modules that create ids. Code that uses such a module may use a new id for each call."""


class SharedMemory(NamedTuple):
    """An object that remembers data across conversations."""

    name: str
    """The name by which the code refers to the object."""
    kind: str
    """The object's class."""
    remedy: str
    """The change to the code that would keep conversations apart."""


def find_shared_memory(code: Any, *, has_ids: bool = False) -> SharedMemory | None:
    """Return the object that shares its memory across all calls to ``code``, or ``None`` if there is no such
    object. ``code`` is a function, a class or an object that the author wrote.

    ``has_ids`` is True if the code receives or creates an id for each conversation."""
    walk = _Walk()
    found = [(keeper, shared) for shared, keeper in walk.keepers("", code, 0)]
    has_ids = has_ids or walk.makes_ids
    return next((shared for keeper, shared in found if not (keeper.is_keyed_by_id and has_ids)), None)


class _Walk:
    def __init__(self) -> None:
        self.makes_ids = False
        self._seen: dict[int, Any] = {}

    def keepers(self, name: str, value: Any, depth: int) -> Iterator[tuple[SharedMemory, StatefulClass]]:
        if depth > _MAX_DEPTH or len(self._seen) > _MAX_OBJECTS or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, (FunctionType, ModuleType)):
            module = value.__name__ if isinstance(value, ModuleType) else value.__module__
            self.makes_ids |= module in _NEW_IDS
        if not inspect.isclass(value) and (keeper := _stateful_class_of(value)):
            kind = type(value).__name__
            yield SharedMemory(name, kind, _remedy(keeper, kind)), keeper
            return
        for inner, each in _named_values_in(value):
            yield from self.keepers(inner or name, each, depth + 1)


def _remedy(keeper: StatefulClass, kind: str) -> str:
    if keeper.is_keyed_by_id:
        return "add a `session_id` parameter to the target and use it as the conversation ID"
    if keeper.is_agent:
        made = f"`def make_agent(): return {kind}(…)`"
        options = f"use {made} as the target, or a class that creates it in `__init__`"
        return f"create a new one for each conversation: {options}"
    return "create a new one for each conversation: use a class as the target, and create it in `__init__`"


def _stateful_class_of(value: Any) -> StatefulClass | None:
    if type(value).__module__ == "builtins":
        return None
    return next((each for each in STATEFUL_CLASSES if each.is_class_of(value)), None)


def _named_values_in(value: Any) -> NamedValues:
    """Yield the values that can be reached directly from a value, with their names. Values from libraries are
    excluded."""
    read = next(read for kind, read in _READERS if isinstance(value, kind))
    return read(value)


def _read_function(function: Any) -> NamedValues:
    if is_installed(function) and not hasattr(function, "__wrapped__"):
        return
    yield "", getattr(function, "__wrapped__", None)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    yield from ((names[at - len(defaults)], each) for at, each in enumerate(defaults))
    yield from (function.__kwdefaults__ or {}).items()
    yield from closure_variables(function).items()
    yield from _read_code(function.__code__, function.__globals__)


def _read_class(cls: Any) -> NamedValues:
    if not is_installed(cls) and cls.__module__ != "builtins":
        for each in cls.__mro__[:-1]:
            yield from vars(each).items()


def _read_object(obj: Any) -> NamedValues:
    if not is_installed(type(obj)):
        yield from getattr(obj, "__dict__", {}).items()
        yield "", type(obj)


def _unnamed(values: Iterable[Any]) -> NamedValues:
    return [("", each) for each in values]


_READERS: tuple[tuple[Any, Callable[[Any], NamedValues]], ...] = (
    (FunctionType, _read_function),
    (MethodType, lambda method: _unnamed([method.__func__, method.__self__])),
    (partial, lambda made: [*_unnamed([made.func, *made.args]), *made.keywords.items()]),
    ((staticmethod, classmethod), lambda method: _unnamed([method.__func__])),
    (property, lambda found: _unnamed([found.fget])),
    (dict, lambda found: [(str(key), each) for key, each in [*found.items()][:_MAX_ITEMS]]),
    ((list, tuple, set, frozenset), lambda found: _unnamed([*found][:_MAX_ITEMS])),
    (type, _read_class),
    (ModuleType, lambda module: ()),  # _read_code finds the attributes that code reads
    (object, _read_object),
)
"""The functions that read a value, keyed by type. The first match is used."""


def _read_code(code: CodeType, known: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the global variables that code reads, and the attributes that it reads from loaded modules."""
    module: Any = None
    for step in dis.get_instructions(code):
        name = str(step.argval)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            module = known.get(name)
            if name in known:
                yield name, module
        elif step.opname == "IMPORT_NAME":
            module = sys.modules.get(name)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") and isinstance(module, ModuleType):
            found = vars(module).get(name)
            yield name, found
            module = module if step.opname == "IMPORT_FROM" else found
        elif step.opname not in ("STORE_FAST", "STORE_NAME", "CACHE", "PUSH_NULL"):
            module = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _read_code(constant, known)
