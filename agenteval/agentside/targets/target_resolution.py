"""Decide how to call a target, based on its kind and its signature. Nothing in the target is called.

A target that does not have any of the forms in docs/agents.md is refused. The error message contains the
target's location and the accepted forms."""

from __future__ import annotations

import builtins
import contextlib
import copy
import inspect
import typing
from collections import abc
from functools import partial, partialmethod
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..frameworks.memory import find_shared_memory
from .faults import contain_exits, describe_error
from .loading import Method
from .signatures import (
    find_signature_mismatch,
    format_signature,
    is_async,
    is_context,
    parameters_of,
    source_location,
    underlying_function,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Optional

    from ..frameworks.memory import SharedMemory

    Recognizer = Callable[[Any], Optional[Any]]
    """A function that converts a framework object to a ``frameworks.FrameworkObject``."""

TEXT, MESSAGES, HISTORY, SESSION, CONTEXT = "text", "messages", "history", "session", "ctx"
"""The purposes of a parameter: the latest user message; the conversation so far; everything before the latest
user message; the conversation's id; the context."""

TEXT_NAMES = frozenset(
    ["question", "message", "user_message", "user_input", "prompt", "input", "text", "query"]
)
HISTORY_NAMES = frozenset(
    ["history", "chat_history", "message_history", "conversation_history", "previous_messages"]
)
LIST_NAMES = HISTORY_NAMES | {"messages", "conversation", "chat_messages"}
SESSION_NAMES = frozenset(["session_id", "thread_id", "conversation_id", "chat_id", "context_id"])
_FACTORY_PREFIXES = frozenset(["make", "create", "build", "get", "new", "init", "setup", "load", "from"])
"""The words that begin the names of agent factories."""
_FORMS = (
    "define it with `(messages)`, `(messages, ctx)`, `(message: str)` or `(message, history)`, and give any"
    " other parameter a default (docs/agents.md)"
)
_ROLE_DESCRIPTIONS = {
    TEXT: "the latest user message",
    MESSAGES: "the messages so far",
    HISTORY: "the earlier messages",
    SESSION: "the conversation ID",
    CONTEXT: "ctx",
}


class TargetRefusal(NamedTuple):
    """An explanation of why a target is not an agent, together with a remedy."""

    what: str
    remedy: str


class Role(NamedTuple):
    """The value that a parameter receives."""

    kind: str
    parameter: str = ""
    """The parameter's name if the value is passed by keyword. Empty if the value is passed by position."""


class ParameterBinding(NamedTuple):
    """The arguments of a call, bound to parameters."""

    roles: tuple[Role, ...]
    why: str = ""
    """The explanation of the choice between text and messages."""


class ResolvedTarget(NamedTuple):
    """A target that has been identified as an agent."""

    owner: Any
    """The object that is called, instantiated, copied or opened."""
    lifecycle: str
    """The way in which agents are created for conversations:

    - ``function``: the target is a function
    - ``class``: an instance is created for each conversation
    - ``factory``: a function creates the agent
    - ``copied``: an object is copied for each conversation
    - ``shared``: an object cannot be copied, so that all conversations share it
    - ``framework``: an adapter opens conversations with a framework object"""
    method: str = ""
    """The method of the owner to call. Empty if the owner itself is called."""
    binding: ParameterBinding = ParameterBinding(())
    is_async: bool = False
    name: str = ""
    why_shared: str = ""
    """The reason why the object cannot be copied."""
    tools: tuple[Any, ...] | None = None
    """The agent's tools, or ``None`` if the tools are unknown."""
    memory: SharedMemory | None = None
    """A stateful framework object that all conversations call."""

    @property
    def received_roles(self) -> frozenset[str]:
        return frozenset(role.kind for role in self.binding.roles)

    @property
    def is_forgetful(self) -> bool:
        """True if the agent receives only one message, with neither the earlier messages nor anything that
        identifies the conversation."""
        return TEXT in self.received_roles and not self.received_roles & {HISTORY, SESSION}

    @property
    def is_one_at_a_time(self) -> bool:
        """True if the agent would mix up two simultaneous conversations."""
        return self.memory is not None or (self.lifecycle == "shared" and self.is_forgetful)

    @property
    def no_history(self) -> TargetRefusal | None:
        """The reason why the agent cannot be given the messages before a conversation, or ``None`` if it can.
        For a factory, this is known only once it has created the agent."""
        if self.lifecycle == "framework":
            why = self.owner.no_history()
            remedy = "use a function that gets `messages` and calls it (docs/agents.md)"
            return (
                TargetRefusal(f"({_article(self.owner.framework.name)} agent) {why}", remedy) if why else None
            )
        if TEXT in self.received_roles and HISTORY not in self.received_roles:
            return TargetRefusal(
                "gets only the latest user message", "accept `messages` or `(message, history)`"
            )
        return None

    def to_summary(self, target: str) -> dict[str, Any]:
        """Return a summary as JSON that contains a description, the warning for a run, and the way in which
        conversations are kept apart. ``target`` is the target as the author wrote it."""
        return {
            "does": self._describe(target),
            "warning": self._warning(),
            "one_at_a_time": self.is_one_at_a_time,
            "no_history": self.no_history,
            "tools": None if self.tools is None else [tool._asdict() for tool in self.tools],
        }

    def _describe(self, target: str) -> str:
        if self.lifecycle == "factory":
            return (
                f"{target}, called once per conversation, creates the agent, whose type decides what it gets"
            )
        if self.lifecycle == "framework":
            return f"{target}, {_article(self.name)} agent, used as is; {_describe_tools(self.tools or ())}"
        kind = {
            "function": "an async function" if self.is_async else "a function",
            "class": "a new instance for each conversation",
            "copied": "copied for each conversation",
            "shared": "one object for all conversations",
        }[self.lifecycle]
        chosen = f".{self.method}" if self.method and not target.endswith(f".{self.method}") else ""
        received = [
            _ROLE_DESCRIPTIONS[kind] for kind in dict.fromkeys(role.kind for role in self.binding.roles)
        ]
        last = f" and {received.pop()}" if len(received) > 1 else ""
        why = f" ({self.binding.why})" if self.binding.why else ""
        return f"{target}{chosen}, {kind}, gets {', '.join(received)}{last}{why}"

    def _warning(self) -> str:
        if self.memory:
            name, kind, remedy = self.memory
            return (
                f"{self.name} calls {name} ({kind}), whose memory all conversations share:"
                " they run one at a time, and each sees the history of earlier ones;"
                f" {remedy}"
            )
        if self.is_one_at_a_time:
            return (
                f"{self.name} is one object for all conversations and cannot be copied ({self.why_shared}):"
                " they run one at a time, and each sees the state left by earlier ones;"
                " use its class, or a function that creates it, as the target"
            )
        if self.lifecycle == "function" and self.is_forgetful:
            return (
                f"{self.name} gets only the latest user message but is called for several turns, so all"
                " conversations share what it remembers; accept `messages` or `(message, history)`,"
                " use a class, or set `interpreter` with `keep: false` to keep conversations apart"
            )
        return ""


def describe_plan(
    summary: Mapping[str, Any], *, interpreter: str = "", intercepted: Iterable[str] = ()
) -> str:
    """Describe in one line how an agent will be called. ``summary`` is the result of
    ``ResolvedTarget.to_summary``. ``intercepted`` contains the tools whose functions the scenario mocks."""
    line = str(summary["does"]) + (f", in {interpreter}" if interpreter else "")
    if summary["one_at_a_time"]:
        apart = "each conversation has its own process" if interpreter else _ONE_AT_A_TIME
        line += f"; {apart}"
    tools = ", ".join(intercepted)
    return line + (f"; the scenario mocks {tools}" if tools else "")


_ONE_AT_A_TIME = "conversations run one at a time"


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"


def _describe_tools(tools: Iterable[Any]) -> str:
    known = [f"{tool.name} (hosted)" if tool.hosted else tool.name for tool in tools]
    names = [name for name in known if name]
    if len(names) < len(known):
        names.append("others known only at run time")
    return f"its tools: {', '.join(names)}" if names else "it has no tools"


def resolve_target(
    target: Any, written: str = "…", recognize: Recognizer = lambda _: None, *, has_deps: bool = False
) -> ResolvedTarget | TargetRefusal:
    """Decide how to call ``target``, which is an object or a ``Method``.

    ``written`` is the target as the author wrote it. ``recognize`` detects framework objects, some of which
    are callable and would run their real tools. ``has_deps`` is True if the author also specifies a function
    that creates the dependencies of such an object."""
    resolved = _resolve_framework_object(target, written, recognize, has_deps)
    if resolved:
        return resolved
    agent = _resolve_python_target(target, written)
    if has_deps and isinstance(agent, ResolvedTarget) and agent.lifecycle != "factory":
        what = f"`deps` requires a framework object, and {written} is not a recognized one"
        return TargetRefusal(what, "remove `deps`")
    return _with_memory(agent) if isinstance(agent, ResolvedTarget) else agent


def _with_memory(agent: ResolvedTarget) -> ResolvedTarget:
    """Add the memory that conversations share. An agent that a factory creates is examined after it has been
    created. For a copied object, only the class is examined, because the object's attributes are copied along
    with the object."""
    if agent.lifecycle == "factory":
        return agent
    owner = type(agent.owner) if agent.lifecycle == "copied" else agent.owner
    has_ids = agent.lifecycle == "class" or bool(agent.received_roles & {SESSION, CONTEXT})
    return agent._replace(memory=find_shared_memory(owner, has_ids=has_ids))


def check_deps_factory(found: Any, written: str) -> TargetRefusal | None:
    """Return the reason why the object specified as ``deps`` cannot create the dependencies, or ``None`` if
    it can create them."""
    if not callable(found):
        what = f"`deps`: {written} is a {type(found).__name__}, which all conversations would share"
        return TargetRefusal(what, "use a function that creates them, such as `def make_deps(): …`")
    shape = find_signature_mismatch(found, 0)
    if shape and not deps_take_context(found):
        what = f"`deps`: {shape} cannot be called without arguments, or with `ctx` alone"
        return TargetRefusal(what, "give each parameter but `ctx` a default")
    return None


def deps_take_context(make_deps: Callable[..., Any]) -> bool:
    """Return whether the function that creates the dependencies is called with the context: its first
    parameter is one, or has no default."""
    parameters = parameters_of(make_deps)
    if not parameters or find_signature_mismatch(make_deps, 1):
        return False
    return is_context(parameters[0]) or bool(find_signature_mismatch(make_deps, 0))


def _resolve_python_target(target: Any, written: str) -> ResolvedTarget | TargetRefusal:
    if isinstance(target, Method):
        return _resolve_class(target.owner, target.name)
    if inspect.isclass(target):
        return (
            _resolve_class(target, "__call__")
            if _defines(target, "__call__")
            else _refuse_without_call(target, written)
        )
    if isinstance(target, MethodType) and not isinstance(target.__self__, (type, ModuleType)):
        return _resolve_object(target.__self__, target.__name__)
    if isinstance(target, (FunctionType, MethodType, partial)) or _is_like_a_function(target):
        return _resolve_function(target)
    if _defines(type(target), "__call__"):
        return _resolve_object(target, "__call__")
    if type(target).__module__ == "builtins" or isinstance(target, ModuleType):
        what = f"the agent has type {type(target).__name__}; expected a function or a class"
        return TargetRefusal(what, "")
    return _refuse_without_call(type(target), written)


def _resolve_framework_object(
    target: Any, written: str, recognize: Recognizer, has_deps: bool
) -> ResolvedTarget | TargetRefusal | None:
    known = recognize(target)
    if known:
        try:
            known.require(has_deps=has_deps)
            tools = tuple(known.tools())
        except Exception as error:
            if getattr(error, "agenteval_kind", "") == "author":
                return TargetRefusal(error.what, error.remedy)  # type: ignore[attr-defined]
            what = f"the {known.framework.name} agent cannot be opened: {describe_error(error)}"
            return TargetRefusal(what, "use a function that calls it (docs/agents.md)")
        binding = ParameterBinding((Role(TEXT), Role(CONTEXT)))
        return ResolvedTarget(known, "framework", "", binding, True, known.name, tools=tools)
    owner = getattr(target, "__self__", None) if isinstance(target, MethodType) else None
    if owner is not None and (known := recognize(owner)):
        place = written.rpartition(".")[0]
        name = place.rpartition(":")[2] or place
        what = f"the target is {target.__name__}, a method of the {known.framework.name} object '{name}'"
        return TargetRefusal(
            what, f"set `target: {place}`, so that the scenario can mock the tools of that agent"
        )
    return None


def _is_like_a_function(target: Any) -> bool:
    """Return whether a callable has a ``__qualname__``, as classes and functions do. Functions include
    builtins, compiled functions and ``lru_cache`` wrappers."""
    return callable(target) and isinstance(getattr(target, "__qualname__", None), str)


def _refuse_without_call(cls: type, written: str) -> TargetRefusal:
    names = (name for name in dir(cls) if not name.startswith("_"))
    methods = [name for name in names if inspect.isroutine(inspect.getattr_static(cls, name))]
    has = f" (it has {', '.join(methods[:_MAX_METHODS])})" if methods else ""
    what = f"the agent has type {cls.__name__}, which has no `__call__` method{has}"
    named = f"{written}.{methods[0] if methods else 'METHOD'}"
    return TargetRefusal(what, f"use a method that takes a message, such as `target: {named}`")


_MAX_METHODS = 8


def _resolve_function(function: Callable[..., Any]) -> ResolvedTarget | TargetRefusal:
    name = _function_name(function)
    if _makes_an_agent(function, name):
        return ResolvedTarget(function, "factory", name=name)
    binding = bind_signature(function)
    if isinstance(binding, TargetRefusal):
        return binding
    return ResolvedTarget(function, "function", "", binding, is_async(function), name)


def _makes_an_agent(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function is a factory for agents.

    A factory requires no arguments and has no parameter for the user's message. Its name or its annotation
    indicates that the function creates something. If the function has parameters, both the name and the
    annotation must indicate this."""
    parameters = parameters_of(function)
    if parameters is None or any(p.default is p.empty or _is_for_the_user(p) for p in parameters):
        return False
    makes = getattr(function, "__annotations__", {}).get("return", "")
    signs = [makes not in ("", None, "None"), is_factory_name(name)]
    return makes not in (str, "str") and (all(signs) if parameters else any(signs))


def is_factory_name(name: str) -> bool:
    return name.strip("_").partition("_")[0].lower() in _FACTORY_PREFIXES


def _resolve_class(owner: type, method: str) -> ResolvedTarget | TargetRefusal:
    name = owner.__name__ if method == "__call__" else f"{owner.__name__}.{method}"
    if shape := find_signature_mismatch(owner, 0):
        what = f"the agent's class cannot be called without arguments: {shape}"
        made = f"`def make_agent(): return {owner.__name__}(…)`"
        remedy = f"give each `__init__` parameter a default, or use a function that creates it: {made}"
        return TargetRefusal(what, remedy)
    if inspect.isabstract(owner) or getattr(owner, "_is_protocol", False):
        return TargetRefusal(f"the agent's class {owner.__name__} is abstract and cannot be instantiated", "")
    entry = _entry_on_instance(owner, method)
    binding = bind_signature(entry)
    if isinstance(binding, TargetRefusal):
        return binding
    return ResolvedTarget(owner, "class", method.replace("__call__", ""), binding, is_async(entry), name)


def _resolve_object(owner: Any, method: str) -> ResolvedTarget | TargetRefusal:
    name = f"{type(owner).__name__}.{method}" if method != "__call__" else type(owner).__name__
    entry = owner if method == "__call__" else getattr(owner, method)
    binding = bind_signature(entry)
    if isinstance(binding, TargetRefusal):
        return binding
    why = explain_not_copyable(owner)
    lifecycle, method_name = ("shared" if why else "copied"), method.replace("__call__", "")
    return ResolvedTarget(owner, lifecycle, method_name, binding, is_async(entry), name, why)


def explain_not_copyable(value: Any) -> str:
    """Return the reason why an object cannot be copied for each conversation, or an empty string if it can be
    copied."""
    try:
        with contain_exits():
            return "its copy is the same object" if copy.deepcopy(value) is value else ""
    except Exception as error:
        return describe_error(error).partition(" (")[0]


def _function_name(function: Any) -> str:
    inner = function.func if isinstance(function, partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def _defines(cls: type, name: str) -> bool:
    """Return whether the class or one of its bases other than ``object`` defines the attribute."""
    return any(name in vars(each) for each in cls.__mro__ if each is not object)


def _entry_on_instance(owner: type, method: str) -> Any:
    """Return the method as it would be bound to an instance, without creating an instance."""
    found = inspect.getattr_static(owner, method)
    if isinstance(found, partialmethod):
        return found.__get__(object(), owner)
    return MethodType(found, object()) if inspect.isfunction(found) else getattr(owner, method)


# ── parameters ───────────────────────────────────────────────────────────────────────────────────


def bind_signature(function: Callable[..., Any]) -> ParameterBinding | TargetRefusal:
    """Return the value that each parameter of a function receives. A function without a readable signature
    receives the messages and the context."""
    all_parameters = parameters_of(function)
    parameters = [p for p in all_parameters or () if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if refusal := _refuse_history(parameters, function):
        return refusal
    kinds = {p.name: kind for p in parameters if (kind := _secondary_role(p, function))}
    main = _find_main_parameter(parameters, kinds)
    if main is None:
        takes_any = all_parameters is None or any(p.kind is p.VAR_POSITIONAL for p in all_parameters)
        return ParameterBinding((Role(MESSAGES), Role(CONTEXT))) if takes_any else _refuse(function)
    kinds.pop(main.name, None)
    choice = _text_or_messages(main, function, has_history=HISTORY in kinds.values())
    if isinstance(choice, TargetRefusal):
        return choice
    kinds[main.name], why = choice
    if kinds[main.name] == MESSAGES:
        kinds = _with_messages(parameters, kinds)
    return _build_binding(function, parameters, kinds, why)


def _refuse_history(parameters: list[inspect.Parameter], function: Any) -> TargetRefusal | None:
    for each in parameters:
        if _bare_name(each) in HISTORY_NAMES and _is_other_list(_annotation_of(each, function)):
            shown = f"{each.name}: {_format_annotation(each.annotation)}"
            return _refuse(function, f"{shown} does not accept a list of message dicts")
    return None


def _with_messages(parameters: list[inspect.Parameter], kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the roles if one parameter receives all messages. An optional history parameter is dropped,
    because the messages contain the history. A second parameter of unknown role receives the context."""
    needed = {p.name for p in parameters if p.default is p.empty}
    kinds = {name: kind for name, kind in kinds.items() if kind != HISTORY or name in needed}
    return {**kinds, **{p.name: CONTEXT for p in parameters[1:2] if _must_be_context(p, kinds)}}


def _build_binding(
    function: Any, parameters: list[inspect.Parameter], kinds: Mapping[str, str], why: str
) -> ParameterBinding | TargetRefusal:
    """Return the binding if the function can be called this way. Otherwise, return the refusal."""
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in kinds]
    if missing:
        return _refuse(function, f"no value is available for {missing[0]}")
    roles = tuple(_assign_roles(parameters, kinds))
    by_name = [role.parameter for role in roles if role.parameter]
    if find_signature_mismatch(function, len(roles) - len(by_name), by_name):
        return _refuse(function)
    return ParameterBinding(roles, why)


def _refuse(function: Callable[..., Any], why: str = "") -> TargetRefusal:
    what = f"the agent cannot be called with messages and ctx: {format_signature(function)}"
    what += source_location(function)
    return TargetRefusal(f"{what}: {why}" if why else what, _FORMS)


def _bare_name(parameter: inspect.Parameter) -> str:
    return parameter.name.strip("_").lower()


def _secondary_role(parameter: inspect.Parameter, function: Any) -> str:
    """Return the role of a parameter that does not receive the user's current message. Return an empty string
    for any other parameter."""
    if is_context(parameter):
        return CONTEXT
    admitted, name = _accepted_roles(parameter, function), _bare_name(parameter)
    if name in SESSION_NAMES and (admitted is None or TEXT in admitted):
        return SESSION
    return HISTORY if name in HISTORY_NAMES and (admitted is None or MESSAGES in admitted) else ""


def _find_main_parameter(
    parameters: list[inspect.Parameter], kinds: Mapping[str, str]
) -> inspect.Parameter | None:
    """Return the parameter that receives the user's message."""
    others = [p for p in parameters if p.name not in kinds]
    required = [p for p in others if p.default is p.empty]
    named = [p for p in required or others if _is_for_the_user(p)]
    histories = [p for p in parameters if kinds.get(p.name) == HISTORY]
    return next(iter((*named, *(required or histories or others))), None)


def _is_for_the_user(parameter: inspect.Parameter) -> bool:
    return _bare_name(parameter) in TEXT_NAMES | LIST_NAMES


def _must_be_context(second: inspect.Parameter, kinds: Mapping[str, str]) -> bool:
    """Return whether a second parameter must be the context: it is required, but neither its name nor an
    annotation identifies its role."""
    is_unmarked = second.annotation is second.empty and second.name not in kinds
    is_needed = second.default is second.empty and second.kind is not second.KEYWORD_ONLY
    return is_unmarked and is_needed and CONTEXT not in kinds.values()


def _text_or_messages(
    parameter: inspect.Parameter, function: Any, *, has_history: bool
) -> tuple[str, str] | TargetRefusal:
    """Decide whether a parameter receives the text of a message or all messages, and return the reason."""
    admitted, name = _accepted_roles(parameter, function), parameter.name
    if admitted is not None:
        shown = f"{name}: {_format_annotation(parameter.annotation)}"
        if not admitted:
            return _refuse(function, f"{shown} accepts neither a string nor a list of message dicts")
        both = ", which accepts both" if len(admitted) > 1 else ""
        return (MESSAGES if MESSAGES in admitted else TEXT), shown + both
    if _bare_name(parameter) in TEXT_NAMES:
        return TEXT, f"it is named {name}"
    if _bare_name(parameter) in LIST_NAMES:
        return MESSAGES, f"it is named {name}"
    if isinstance(_annotation_of(parameter, function), str):
        return _refuse(
            function, f"{name}: {_format_annotation(parameter.annotation)} cannot be evaluated by this Python"
        )
    if has_history:
        return TEXT, f"{name} is passed with a history"
    return MESSAGES, f"the default: {name} has no known name or type"


def _assign_roles(parameters: list[inspect.Parameter], kinds: Mapping[str, str]) -> Iterator[Role]:
    """Yield the roles. Values are passed by position until a parameter is skipped, and then by keyword."""
    is_by_name = False
    for parameter in parameters:
        if parameter.name not in kinds:
            is_by_name = True
            continue
        by_name = is_by_name or parameter.kind is parameter.KEYWORD_ONLY
        yield Role(kinds[parameter.name], parameter.name if by_name else "")


# ── annotations ──────────────────────────────────────────────────────────────────────────────────

_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable)


class _AnnotationNames(dict):  # type: ignore[type-arg]
    """A module's namespace for evaluating annotations. A name that is known only to type checkers may refer
    to anything."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, getattr(typing, name, Any))


def _accepted_roles(parameter: inspect.Parameter, function: Any) -> frozenset[str] | None:
    """Return the roles (text, messages or both) that an annotation accepts, or ``None`` if the annotation
    does not restrict the role."""
    annotation = _annotation_of(parameter, function)
    return None if annotation is parameter.empty else _roles_of_annotation(annotation)


def _annotation_of(parameter: inspect.Parameter, function: Any) -> Any:
    """Return the evaluated annotation, or the annotation as a string if this Python version cannot evaluate
    it."""
    annotation, names = (
        parameter.annotation,
        _AnnotationNames(getattr(underlying_function(function), "__globals__", {})),
    )
    with contextlib.suppress(Exception):
        for _ in range(2):  # twice if quoted in a module with ``from __future__ import annotations``
            if isinstance(annotation, str):
                with contain_exits():
                    annotation = eval(annotation, {}, names)
    return annotation


def _roles_of_annotation(annotation: Any) -> frozenset[str] | None:
    for name in ("__metadata__", "__supertype__", "__value__"):  # Annotated, NewType, an alias
        if hasattr(annotation, name):
            return _roles_of_annotation(getattr(annotation, name.replace("metadata", "origin")))
    origin, args = getattr(annotation, "__origin__", None), getattr(annotation, "__args__", ())
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        found = [_roles_of_annotation(each) for each in args if each is not type(None)]
        return frozenset().union(*filter(None, found)) or (None if None in found else frozenset())
    cls = origin or annotation
    if cls in (object, Any) or not isinstance(cls, type):
        return None
    if issubclass(cls, str):
        return frozenset([TEXT])
    return frozenset([MESSAGES] if cls in _LISTS and all(map(_are_messages, args)) else [])


def _is_other_list(annotation: Any) -> bool:
    """Return whether an annotation, or a member of a union, is a list whose items cannot be messages."""
    origin, args = getattr(annotation, "__origin__", None), getattr(annotation, "__args__", ())
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        admitted = _roles_of_annotation(annotation)
        return any(map(_is_other_list, args)) and admitted is not None and MESSAGES not in admitted
    is_list = isinstance(origin or annotation, type) and (origin or annotation) in _LISTS
    return is_list and not all(map(_are_messages, args))


def _are_messages(items: Any) -> bool:
    """Return whether the items in a list may be messages, according to the annotation of the items."""
    cls = getattr(items, "__origin__", items)
    return cls in (object, Any) or not isinstance(cls, type) or issubclass(cls, abc.Mapping)


def _format_annotation(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    is_plain = isinstance(annotation, type) and not getattr(annotation, "__args__", None)
    return annotation.__name__ if is_plain else str(annotation).replace("typing.", "")
