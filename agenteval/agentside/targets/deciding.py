"""How a target will be called, decided from what it is and from its signature; nothing of it is called.

By annotation first, by the parameter's name where that is silent; a list of messages where both are. What
cannot be decided is refused with what to write.
"""

from __future__ import annotations

import copy
import inspect
import re
from functools import partial, partialmethod
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from ..frameworks.memory import shared_memory
from .faults import contained, describe
from .finding import Method
from .module_files import is_installed
from .signatures import is_async, is_context, misfit, parameters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Optional

    from ..frameworks.memory import Shared

    Recognise = Callable[[Any], Optional[Any]]
    """What knows an object of a framework as ``frameworks.Recognised``."""

TEXT, MESSAGES, HISTORY, SESSION, CONTEXT = "text", "messages", "history", "session", "ctx"
PAIRS = "pairs"
"""What a parameter is for: the latest user message; the conversation so far; all before the latest user
message; the conversation's id; the context."""

METHODS = ("chat", "run", "invoke", "ask", "reply", "respond", "answer")
TEXT_NAMES = frozenset(
    ["question", "message", "user_message", "user_input", "prompt", "input", "text", "query"]
)
HISTORY_NAMES = frozenset(
    ["history", "chat_history", "message_history", "conversation_history", "previous_messages"]
)
LIST_NAMES = HISTORY_NAMES | {"messages", "conversation", "chat_messages"}
SESSION_NAMES = frozenset(["session_id", "thread_id", "conversation_id", "chat_id", "context_id"])
MAKES = re.compile(r"^_?(make|create|build|get|new|init|setup|load|from)(_|$)|factory", re.IGNORECASE)
_TOLD = {
    TEXT: "the latest user message",
    MESSAGES: "the messages so far",
    HISTORY: "the messages before it",
    PAIRS: "what was said before it in pairs, [user, assistant]",
    SESSION: "the conversation's id",
    CONTEXT: "ctx",
}


class Refusal(NamedTuple):
    """Why a target is not an agent, and what to do."""

    what: str
    remedy: str


class Role(NamedTuple):
    """What one parameter gets. ``parameter`` is its name if it is passed by name, else empty."""

    kind: str
    parameter: str = ""


class Takes(NamedTuple):
    """The arguments of a call. ``why``: what decided between text and messages, in words; ``guess``: how to
    say otherwise, where no annotation did."""

    roles: tuple[Role, ...]
    why: str = ""
    guess: str = ""


class Agent(NamedTuple):
    """A target as an agent.

    ``made``: ``function``; ``class``, an instance for each conversation; ``factory``, a function that makes
    it; ``copied``, an object that is copied for each; ``shared``, one that cannot be: ``why_shared``;
    ``framework``, an object of a framework, for which an adapter opens conversations.
    ``owner`` is what is called, made, copied or opened; ``method`` what is called of it, if it is not itself;
    ``tools``: what it has as tools, where that is known. ``memory``: an object of a framework that remembers,
    and that all conversations call.
    """

    owner: Any
    made: str
    method: str = ""
    takes: Takes = Takes(())
    is_async: bool = False
    name: str = ""
    why_shared: str = ""
    tools: tuple[Any, ...] | None = None
    memory: Shared | None = None

    @property
    def gets(self) -> frozenset[str]:
        return frozenset(role.kind for role in self.takes.roles)

    @property
    def is_forgetful(self) -> bool:
        """It gets one message without what came before, and nothing by which to keep conversations apart."""
        return TEXT in self.gets and not self.gets & {HISTORY, PAIRS, SESSION}

    @property
    def is_one_at_a_time(self) -> bool:
        """Two conversations at once would be mixed in it."""
        return self.memory is not None or (self.made == "shared" and self.is_forgetful)

    def described(self, target: str) -> dict[str, Any]:
        """What is said of it, as JSON: in words, what a run warns about, what keeps conversations apart.
        ``target``: as its author writes it."""
        return {
            "does": self._sentence(target),
            "warning": self._warning(),
            "one_at_a_time": self.is_one_at_a_time,
            "tools": None if self.tools is None else [tool._asdict() for tool in self.tools],
        }

    def _sentence(self, target: str) -> str:
        if self.made == "factory":
            return (
                f"{target}, called for each conversation, makes the agent; what that is decides what it gets"
            )
        if self.made == "framework":
            return f"{target}, {_article(self.name)} agent, as it is; {_has(self.tools or ())}"
        kind = {
            "function": "an async function" if self.is_async else "a function",
            "class": "made anew for each conversation",
            "copied": "copied for each conversation",
            "shared": "one object for all conversations",
        }[self.made]
        chosen = f".{self.method}" if self.method and not target.endswith(f".{self.method}") else ""
        told = [_TOLD[kind] for kind in dict.fromkeys(role.kind for role in self.takes.roles)]
        last = f" and {told.pop()}" if len(told) > 1 else ""
        why = f" ({self.takes.why})" if self.takes.why else ""
        return f"{target}{chosen}, {kind}, gets {', '.join(told)}{last}{why}"

    def _warning(self) -> str:
        if self.memory:
            name, kind, remedy = self.memory
            return (
                f"{self.name} calls {name}, one {kind} for all conversations, which keeps a memory of its"
                " own: they are played one at a time, and the history of one is there in the next;"
                f" {remedy}"
            )
        if self.is_one_at_a_time:
            return (
                f"{self.name} is one object for all conversations, and cannot be copied ({self.why_shared}):"
                " they are played one at a time, and what it keeps of one is there in the next; name its"
                " class, or a function that makes it"
            )
        if self.made == "function" and self.is_forgetful:
            return (
                f"{self.name} gets the latest user message alone, and is called for several turns: what it"
                " remembers it keeps for all conversations at once; take `messages`, or (message, history),"
                " or name a class; `interpreter` with `keep: false` keeps conversations apart, too"
            )
        return ""


def line_of(told: Mapping[str, Any], *, interpreter: str = "", intercepted: Iterable[str] = ()) -> str:
    """What will be done with an agent, in a line. ``told``: see ``Agent.described``. ``intercepted``: the
    tools whose functions the scenario answers for."""
    line = str(told["does"]) + (f", in {interpreter}" if interpreter else "")
    if told["one_at_a_time"]:
        apart = "each conversation has a process of its own" if interpreter else _ONE_AT_A_TIME
        line += f"; {apart}"
    tools = ", ".join(intercepted)
    return line + (f"; the scenario answers for {tools}" if tools else "")


_ONE_AT_A_TIME = "conversations are played one at a time"


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIO' else 'a'} {name}"


def _has(tools: Iterable[Any]) -> str:
    known = [f"{tool.name} (hosted)" if tool.hosted else tool.name for tool in tools]
    told = [name for name in known if name]
    if len(told) < len(known):
        told.append("others that only a run shows")
    return f"its tools: {', '.join(told)}" if told else "it has no tools"


def decide(
    target: Any, written: str = "…", recognise: Recognise = lambda _: None, *, has_deps: bool = False
) -> Agent | Refusal:
    """How ``target``, an object or a ``Method``, is called. ``written``: as its author names it.
    ``recognise`` knows the objects of frameworks: some of them can be called, and would run their real tools.
    ``has_deps``: what makes the dependencies of such an object is named beside it."""
    of_framework = _of_framework(target, written, recognise, has_deps)
    if of_framework:
        return of_framework
    agent = _plain(target, written)
    if has_deps and isinstance(agent, Agent) and agent.made != "factory":
        what = f"deps are for an object of a framework, and {written} is none that agenteval knows"
        return Refusal(what, "remove deps")
    return _with_memory(agent) if isinstance(agent, Agent) else agent


def _with_memory(agent: Agent) -> Agent:
    """What a function makes is decided upon when it is made; what holds an object and is copied copies it."""
    if agent.made == "factory":
        return agent
    owner = type(agent.owner) if agent.made == "copied" else agent.owner
    has_ids = agent.made == "class" or bool(agent.gets & {SESSION, CONTEXT})
    return agent._replace(memory=shared_memory(owner, has_ids=has_ids))


def no_maker(found: Any, written: str) -> Refusal | None:
    """Why what is named as ``deps`` cannot make them; ``None`` if it can."""
    if not callable(found):
        what = f"deps: {written} is a {type(found).__name__}, which all conversations would share"
        return Refusal(what, "name a function that makes them, def make_deps(): …")
    if shape := misfit(found, 0):
        return Refusal(f"deps: {shape} cannot be called without arguments", "give each parameter a default")
    return None


def _plain(target: Any, written: str) -> Agent | Refusal:
    if isinstance(target, Method):
        return _of_class(target.owner, target.name)
    if inspect.isclass(target):
        method = "__call__" if _defines(target, "__call__") else _chosen(target, written)
        return method if isinstance(method, Refusal) else _of_class(target, method)
    if isinstance(target, MethodType) and not isinstance(target.__self__, (type, ModuleType)):
        return _of_object(target.__self__, target.__name__)
    if isinstance(target, (FunctionType, MethodType, partial)) or _is_like_a_function(target):
        return _of_function(target)
    if _defines(type(target), "__call__"):
        return _of_object(target, "__call__")
    if type(target).__module__ == "builtins" or isinstance(target, ModuleType):
        found = f"the agent is a {type(target).__name__}; expected a function or a class"
        return Refusal(found, "")
    method = _chosen(type(target), written)
    return method if isinstance(method, Refusal) else _of_object(target, method)


def _of_framework(target: Any, written: str, recognise: Recognise, has_deps: bool) -> Agent | Refusal | None:
    known = recognise(target)
    if known:
        try:
            known.require(has_deps=has_deps)
            tools = tuple(known.tools())
        except Exception as error:
            if getattr(error, "agenteval_kind", "") == "author":
                return Refusal(error.what, error.remedy)  # type: ignore[attr-defined]
            what = f"the {known.framework.name} agent cannot be opened: {describe(error)}"
            return Refusal(what, "name a function that calls it (docs/agents.md)")
        takes = Takes((Role(TEXT), Role(CONTEXT)))
        return Agent(known, "framework", "", takes, True, known.name, tools=tools)
    owner = getattr(target, "__self__", None) if isinstance(target, MethodType) else None
    if owner is not None and (known := recognise(owner)):
        place = written.rpartition(".")[0]
        name = place.rpartition(":")[2] or place
        what = f"the target is {target.__name__}, a method of the {known.framework.name} object '{name}'"
        return Refusal(what, f"write target: {place}, and the scenario answers for the tools of that agent")
    return None


def _is_like_a_function(target: Any) -> bool:
    """Builtins, compiled functions, what ``lru_cache`` makes: only classes and functions have this name."""
    return callable(target) and isinstance(getattr(target, "__qualname__", None), str)


def _of_function(function: Callable[..., Any]) -> Agent | Refusal:
    name = _name(function)
    if _makes_an_agent(function, name):
        return _of_factory(function, name)
    takes = takes_of(function, name)
    if isinstance(takes, Refusal):
        return takes
    return Agent(function, "function", "", takes, is_async(function), name)


def _makes_an_agent(function: Callable[..., Any], name: str) -> bool:
    """Whether a function takes nothing; or can do without all that it takes, none of which is a message, and
    is named and annotated as one that makes an object."""
    parameters = parameters_of(function, all_kinds=True)
    if not parameters:
        return parameters == []
    makes = getattr(function, "__annotations__", {}).get("return", "")
    shown = _shown(makes).strip("'\"")
    is_object = bool(shown) and not _TEXT_ALIKE.fullmatch(shown) and not _PLAIN_VALUE.match(shown)
    can_do_without = all(p.default is not p.empty for p in parameters)
    is_talk = any(p.name.strip("_").lower() in TEXT_NAMES | LIST_NAMES for p in parameters)
    return is_object and can_do_without and not is_talk and bool(MAKES.search(name))


def _of_factory(function: Callable[..., Any], name: str) -> Agent | Refusal:
    """A function without parameters is not an agent; it may make one, as its name or annotation says."""
    makes = getattr(function, "__annotations__", {}).get("return", "")
    is_annotated = makes not in ("", None, "None", str, "str")
    if is_annotated or MAKES.search(name):
        return Agent(function, "factory", name=name)
    what = f"the agent cannot be called with messages and ctx: {name}()"
    remedy = (
        "let it take the user's message; call a function that makes the agent make_…, or annotate what it"
        " makes; a program that reads its input is a command"
    )
    return Refusal(what, remedy)


def _of_class(owner: type, method: str) -> Agent | Refusal:
    name = owner.__name__ if method == "__call__" else f"{owner.__name__}.{method}"
    if shape := misfit(owner, 0):
        what = f"the agent's class is called without arguments, and cannot be: {shape}"
        made = f"def make_agent(): return {owner.__name__}(…)"
        remedy = f"give each parameter of its __init__ a default, or name a function that makes it: {made}"
        return Refusal(what, remedy)
    if inspect.isabstract(owner) or getattr(owner, "_is_protocol", False):
        return Refusal(f"the agent's class {owner.__name__} is abstract: no instance can be made of it", "")
    entry = _unbound(owner, method)
    takes = takes_of(entry, name)
    if isinstance(takes, Refusal):
        return takes
    return Agent(owner, "class", method.replace("__call__", ""), takes, is_async(entry), name)


def _of_object(owner: Any, method: str) -> Agent | Refusal:
    name = f"{type(owner).__name__}.{method}" if method != "__call__" else type(owner).__name__
    entry = owner if method == "__call__" else getattr(owner, method)
    takes = takes_of(entry, name)
    if isinstance(takes, Refusal):
        return takes
    why = why_not_copied(owner)
    made, own = ("shared" if why else "copied"), method.replace("__call__", "")
    return Agent(owner, made, own, takes, is_async(entry), name, why)


def why_not_copied(value: Any) -> str:
    """Why there can be no copy of it for each conversation; empty if there can."""
    try:
        with contained():
            return "its class copies nothing" if copy.deepcopy(value) is value else ""
    except Exception as error:
        return describe(error).partition(" (")[0]


def _name(function: Any) -> str:
    inner = function.func if isinstance(function, partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def _defines(cls: type, name: str) -> bool:
    """Whether instances of the class have it, by what was written for it."""
    return any(name in vars(each) for each in cls.__mro__ if each is not object)


def _unbound(owner: type, method: str) -> Any:
    """The method as it is on an instance that has not been made."""
    found = inspect.getattr_static(owner, method)
    if isinstance(found, partialmethod):
        return found.__get__(object(), owner)
    return MethodType(found, object()) if inspect.isfunction(found) else getattr(owner, method)


# ── which method ─────────────────────────────────────────────────────────────────────────────────


def _chosen(cls: type, written: str) -> str | Refusal:
    """The one method of a class that talks."""
    name = cls.__name__
    found = [method for method in METHODS if _is_method(inspect.getattr_static(cls, method, None))]
    if is_installed(cls):  # what its ``run`` takes is for an adapter to know
        what = f"the agent is a {name} of {cls.__module__.partition('.')[0]}"
        return Refusal(what, "write a function that takes messages and calls it, or name its method")
    if len(found) == 1:
        return found[0]
    if found:
        what = f"the agent {name} has {_listed(found)}: which of them takes a message?"
        return Refusal(what, f"write target: {' or '.join(f'{written}.{method}' for method in found)}")
    public = [key for key, value in vars(cls).items() if inspect.isfunction(value) and key[0] != "_"]
    known = f"; it has {_listed(public[:8])}" if public else ""
    what = f"the agent class {name} has no __call__, and none of {', '.join(METHODS)}{known}"
    return Refusal(what, f"write target: {written}.{public[0] if public else 'METHOD'}")


def _is_method(found: Any) -> bool:
    return isinstance(found, (staticmethod, classmethod, partialmethod)) or callable(found)


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


# ── what it takes ────────────────────────────────────────────────────────────────────────────────


def takes_of(function: Callable[..., Any], name: str) -> Takes | Refusal:
    """What each parameter of a function gets."""
    parameters = parameters_of(function)
    if parameters is None:  # it does not say
        return Takes((Role(MESSAGES), Role(CONTEXT)))
    extra = {p.name: kind for p in parameters if (kind := _beside(p, function))}
    wanted = [p for p in parameters if p.name not in extra]
    required = [p for p in wanted if p.default is p.empty]
    main = _main(required or wanted, parameters)
    if main is None:
        if any(p.kind is p.VAR_POSITIONAL for p in parameters_of(function, all_kinds=True) or ()):
            return Takes((Role(MESSAGES), Role(CONTEXT)))
        return _cannot(function, name)
    extra.pop(main.name, None)
    has_history = not {HISTORY, PAIRS}.isdisjoint(extra.values())
    decided = _kind(main, function, has_history)
    if isinstance(decided, Refusal):
        return decided
    kind, why, guess = decided
    for other in required:
        if other is not main:
            is_second = other is parameters[1] and not _is_of_the_authors(other, function)
            if kind == TEXT or CONTEXT in extra.values() or not is_second:
                return _no_argument(other.name, function, name, main.name)
            extra[other.name] = CONTEXT
    if kind == MESSAGES:
        extra = {key: role for key, role in extra.items() if role != HISTORY or _is_needed(key, parameters)}
    roles = tuple(_roles(parameters, {**extra, main.name: kind}))
    places = sum(not role.parameter for role in roles)
    if shape := misfit(function, places, [role.parameter for role in roles if role.parameter]):
        return _cannot_be(shape)
    return Takes(roles, why, guess)


def _beside(parameter: inspect.Parameter, function: Any) -> str:
    """What a parameter gets that is not the message itself; empty for all others."""
    name = parameter.name.strip("_").lower()
    if is_context(parameter):
        return CONTEXT
    text, messages = _admits(parameter.annotation, function)
    if name in SESSION_NAMES and text is not False:
        return SESSION
    if name not in HISTORY_NAMES or messages is False:
        return ""
    items = re.search(r"\[\W*(?:typing\.)?(tuple|list|str)\b", _shown(parameter.annotation), re.IGNORECASE)
    if items is None:
        return HISTORY
    return "" if items[1].lower() == "str" else PAIRS  # as user interfaces had them before they had messages


def _is_of_the_authors(parameter: inspect.Parameter, function: Any) -> bool:
    """Whether a second parameter is for something else than a context, and says so."""
    text, messages = _admits(parameter.annotation, function)
    is_basic = getattr(parameter.annotation, "__module__", "") == "builtins"
    return parameter.kind is parameter.KEYWORD_ONLY or bool(text or messages or is_basic)


def _main(wanted: list[inspect.Parameter], every: list[inspect.Parameter]) -> inspect.Parameter | None:
    """The parameter that what the user said is for."""
    by_name = [p for p in wanted if p.name.strip("_").lower() in TEXT_NAMES | LIST_NAMES]
    by_place = [p for p in wanted if p.kind is not p.KEYWORD_ONLY] or wanted
    histories = [p for p in every if p.name.strip("_").lower() in HISTORY_NAMES]
    return next(iter(by_name or by_place or histories or every), None)


def _is_needed(name: str, parameters: list[inspect.Parameter]) -> bool:
    return any(p.name == name and p.default is p.empty for p in parameters)


def _roles(parameters: list[inspect.Parameter], kinds: dict[str, str]) -> Iterator[Role]:
    """By position as long as nothing is left out before it, by name after that."""
    is_by_name = False
    for parameter in parameters:
        if parameter.name not in kinds:
            is_by_name = True
            continue
        by_name = is_by_name or parameter.kind is parameter.KEYWORD_ONLY
        yield Role(kinds[parameter.name], parameter.name if by_name else "")


def _kind(parameter: inspect.Parameter, function: Any, has_history: bool) -> tuple[str, str, str] | Refusal:
    """Whether a parameter gets the text of a message or all messages; why; and how to say otherwise."""
    written = parameter.name
    name = written.strip("_").lower()
    text, messages = _admits(parameter.annotation, function)
    shown = _shown(parameter.annotation)
    if text is True and messages is not True:
        return TEXT, f"{written}: {shown}", ""
    if messages is True:
        both = ", which takes both" if text else ""
        is_of_others = "[" in shown and not _DICTS.search(shown)
        return MESSAGES, f"{written}: {shown}{both}", _AS_DICTS if is_of_others else ""
    as_list, as_text = f"annotate {written} `list` to get all messages", f"annotate {written} `str` to get it"
    if name in LIST_NAMES and not (has_history and name in HISTORY_NAMES):
        return MESSAGES, f"it is named {written}", ""
    if text is False and messages is False:
        what = (
            f"the agent's parameter {written} is annotated {shown}: agenteval has texts and lists of messages"
        )
        return Refusal(what, "name a function of one `str`, the user's message, that calls it")
    if name in TEXT_NAMES:
        return TEXT, f"it is named {written}", as_list
    if has_history:
        return TEXT, f"{written} has a history beside it", as_list
    return MESSAGES, f"nothing says what {written} is", f"{as_text.replace('it', 'the latest text alone')}"


def _cannot(function: Any, name: str) -> Refusal:
    return _cannot_be(misfit(function, 2) or f"{name}()")


def _cannot_be(shape: str) -> Refusal:
    what = f"the agent cannot be called with messages and ctx: {shape}"
    remedy = "let it take messages, or messages and ctx, by position; give other parameters a default"
    return Refusal(what, remedy)


def _no_argument(parameter: str, function: Any, name: str, main: str) -> Refusal:
    shape = misfit(function, 0) or name
    what = (
        f"the agent cannot be called with messages and ctx: {shape}: there is nothing to pass as {parameter}"
    )
    remedy = f"give {parameter} a default, or name a function of {main} alone that calls it"
    return Refusal(what, remedy)


# ── annotations ──────────────────────────────────────────────────────────────────────────────────

_DICTS = re.compile(r"\[.*(dict|Dict|Mapping|Any|Param)\b")
_AS_DICTS = "messages are dicts in OpenAI's format: name a function that converts them"
_TEXT_ALIKE = re.compile(r"(typing\.)?(Optional\[str\]|str|str *\| *None|None *\| *str|Annotated\[str,.*\])")
_PLAIN_VALUE = re.compile(
    r"(\w+\.)*(None|Any|object|dict|Dict|Mapping|int|float|bool|list|List|(Async)?(Iterator|Generator))\b"
)
"""Annotations of what is no object of the author's."""
_LIST_ALIKE = re.compile(r"(\w+\.)*(list|List|Sequence|MutableSequence|Iterable|Collection)\b.*", re.DOTALL)


def _admits(annotation: Any, function: Any) -> tuple[bool | None, bool | None]:
    """Whether an annotation admits a text, and a list of messages; ``None``: it does not say."""
    if annotation is inspect.Parameter.empty:
        return None, None
    if isinstance(annotation, str):
        annotation = _evaluated(annotation, function)
        if isinstance(annotation, str):
            text = annotation.strip().strip("'\"")
            is_text, is_list = bool(_TEXT_ALIKE.fullmatch(text)), bool(_LIST_ALIKE.fullmatch(text))
            return (is_text, is_list) if is_text or is_list else (None, None)
    return _type_admits(annotation)


def _evaluated(annotation: str, function: Any) -> Any:
    """What the annotation of a module with ``from __future__ import annotations`` stands for; itself, where
    that is not there when the program runs."""
    inner = inspect.unwrap(getattr(function, "__func__", function))
    inner = inner.func if isinstance(inner, partial) else inner
    inner = inner if hasattr(inner, "__globals__") else getattr(type(inner), "__call__", inner)  # noqa: B004
    try:
        with contained():
            return eval(annotation, dict(getattr(inner, "__globals__", {})))
    except Exception:
        return annotation


def _type_admits(annotation: Any) -> tuple[bool | None, bool | None]:
    if hasattr(annotation, "__metadata__"):  # Annotated
        return _type_admits(annotation.__origin__)
    if hasattr(annotation, "__supertype__"):  # NewType
        return _type_admits(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return _type_admits(annotation.__value__)
    origin = getattr(annotation, "__origin__", None)
    if origin is Union or type(annotation).__name__ == "UnionType":
        found = [_type_admits(each) for each in annotation.__args__ if each is not type(None)]
        return _either(text for text, _ in found), _either(messages for _, messages in found)
    if annotation is Any or annotation is object or type(annotation).__name__ == "TypeVar":
        return None, None
    cls = origin or annotation
    if not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
        return None, None
    if issubclass(cls, str):
        return True, False
    try:
        takes_list = issubclass(list, cls)
    except TypeError:  # a TypedDict
        takes_list = False
    return False, takes_list


def _either(found: Iterable[bool | None]) -> bool | None:
    values = list(found)
    return True if True in values else None if None in values else False


def _shown(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    is_plain = isinstance(annotation, type) and not getattr(annotation, "__args__", None)
    return annotation.__name__ if is_plain else str(annotation).replace("typing.", "")
