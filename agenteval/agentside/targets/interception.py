"""Intercept calls to the agent's functions (``intercept``) and answer them from the scenario, without
changing the agent's source code.

An intercepted function keeps its identity, but its code is monkeypatched during a run. Interception therefore
works through every name, table and decorator that refers to the function. The world determines which
conversation a call belongs to (``world.current_world()``). If the conversation is unknown, the call raises an
exception, the original code does not run, and none of the conversations that were open at that time can be
evaluated."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from ..hooks.tool_methods import enter_direct_call, is_inside_call
from ..world import UntrackedCallError, current_world, is_detached, untracked_call_error
from .loading import TargetError, load_object
from .tool_proxy import NOT_JSON, to_json_argument, to_json_arguments
from .wrapped_functions import functions_in

if TYPE_CHECKING:
    from ..world import ToolAnswer, World


class ToolError(RuntimeError):
    """Raised by an intercepted function if its tool fails."""


class ToolTimeoutError(ToolError, TimeoutError):
    """Raised by an intercepted function if its tool times out. Code that handles timeouts expects a
    ``TimeoutError``."""


class CannotInterceptError(Exception):
    """Raised for a function that cannot be intercepted. ``tool`` is the name of the tool that the function
    implements."""

    def __init__(self, tool: str, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.tool, self.what, self.remedy = tool, what, remedy


_LOCK = threading.RLock()
_ARGS, _KWARGS, _CALLED = "_agenteval_args", "_agenteval_kwargs", "_agenteval_called"
_MARK = "agenteval intercepts this call"


class FunctionInterceptor:
    """The intercepted functions of one agent, keyed by the tools that they implement. The constructor raises
    ``CannotInterceptError`` if a function cannot be intercepted."""

    def __init__(self, targets: Mapping[str, str], base: str) -> None:
        self._tools: dict[int, str] = {}
        self._functions: list[tuple[str, _InterceptableFunction]] = []
        self._sources = {name: _locate_source(name, target, base) for name, target in targets.items()}
        self._attributes = {name: target.rpartition(":")[2] for name, target in targets.items()}
        self._base = base
        self._module_count = -1
        self._find_new_functions()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools as the author writes them."""
        return tuple(self._sources)

    def _find_new_functions(self) -> list[str]:
        """Return the tools that were found in modules loaded since the last call to this method."""
        if self._module_count == len(sys.modules):
            return []
        self._module_count = len(sys.modules)
        found = []
        for name, path in self._sources.items():
            for module in _module_names(path):
                located = _locate_function(name, f"{module}:{self._attributes[name]}", self._base)
                for function in _interceptable_functions(name, located):
                    other = self._tools.get(id(function.function))
                    if other is None:
                        self._tools[id(function.function)] = name
                        self._functions.append((name, function))
                        found.append(name)
                    elif other != name:
                        what = f"`intercept`: '{other}' and '{name}' are the same function"
                        raise CannotInterceptError(name, what, "remove one of them")
        return found

    def install(self) -> None:
        for _, function in self._functions:
            _PatchedFunction.for_function(function).users.append(self)

    def restore(self) -> None:
        for _, function in self._functions:
            _PatchedFunction.for_function(function).release(self)

    def check_second_copy(self) -> str:
        """Return a message if a tool's function was loaded again under a different name, or an empty string
        otherwise. The second copy is then also intercepted."""
        known = len(self._functions)
        added = self._find_new_functions()
        for _, function in self._functions[known:]:
            _PatchedFunction.for_function(function).users.append(self)
        if not added:
            return ""
        what = f"the module of the intercepted tool '{added[0]}' was loaded twice under different names"
        return f"{what}; import it in the agent's module"

    @property
    def tools(self) -> Mapping[int, str]:
        """The tools, keyed by the identity of their functions. The mapping grows as modules are loaded."""
        return self._tools


# ── finding functions ────────────────────────────────────────────────────────────────────────────


def _locate_source(name: str, target: str, base: str) -> str:
    """Return the file of the module that a target names, or the module's name if the module has no file.

    The module is loaded under the name that the agent would use to import it, because a file may belong to a
    package."""
    location, _, _ = target.rpartition(":")
    if location.endswith(".py") or "/" in location:
        path = os.path.realpath(os.path.join(base, location))
        if not _module_names(path):
            _import_in_package(path, base)
        if not _module_names(path):
            _load_function(name, target, base)
        return path
    _load_function(name, target, base)
    source = getattr(sys.modules.get(location), "__file__", None)
    return os.path.realpath(source) if source else location


def _import_in_package(path: str, base: str) -> None:
    root = os.path.realpath(base)
    if base not in sys.path:
        sys.path.insert(0, base)
    if not path.startswith(root + os.sep):
        return
    parts = Path(path[len(root) + 1 :]).with_suffix("").parts
    dotted = ".".join(parts)
    try:
        spec = find_spec(dotted) if all(part.isidentifier() for part in parts) else None
        if spec and spec.origin and os.path.realpath(spec.origin) == path:
            import_module(dotted)
    except Exception:
        return  # loading it by its path reports the error


def _module_names(source: str) -> list[str]:
    """Return the names under which a file is loaded as a module."""
    if source in sys.modules:
        return [source]
    last = os.path.basename(source)
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if module is not None else None
        if isinstance(file, str) and os.path.basename(file) == last and os.path.realpath(file) == source:
            found.append(name)
    return found


def _load_function(name: str, target: str, base: str) -> Any:
    try:
        return load_object(target, base)
    except TargetError as error:
        known = ", ".join(sorted(error.attribute_names))
        remedy = error.remedy or (f"available: {known}" if known else "")
        raise CannotInterceptError(name, f"`intercept` '{name}'{error.what}", remedy) from error


def _locate_function(name: str, target: str, base: str) -> _LocatedFunction:
    found = _load_function(name, target, base)
    location, _, attribute = target.rpartition(":")
    holder, _, last = attribute.rpartition(".")
    owner = _load_function(name, f"{location}:{holder}", base) if holder else None
    if not inspect.isclass(owner):
        return _LocatedFunction(found, isinstance(found, MethodType))
    static = inspect.getattr_static(owner, last, None)
    return _LocatedFunction(found, isinstance(found, MethodType) or not isinstance(static, staticmethod))


class _LocatedFunction(NamedTuple):
    """A function that a target names."""

    found: Any
    takes_self: bool
    """True for a method, whose first parameter does not belong to the tool."""


class _InterceptableFunction:
    """A function that can be intercepted."""

    def __init__(self, name: str, located: _LocatedFunction) -> None:
        found = located.found
        self.function: Any = found.__func__ if isinstance(found, MethodType) else found
        self.takes_self = located.takes_self
        if reason := _explain_refusal(self.function):
            remedy = "use the function that it calls, such as FILE.py:NAME or FILE.py:CLASS.METHOD"
            if hasattr(self.function, "cache_info"):
                remedy = "move its work into a separate function, and intercept that one"
            raise CannotInterceptError(name, f"`intercept` '{name}': {reason}", remedy)


def _interceptable_functions(name: str, located: _LocatedFunction) -> list[_InterceptableFunction]:
    """Return the functions that a target names. For a framework tool, return the author's functions in the
    tool. A tool may contain both a synchronous and an async function."""
    if not (
        isinstance(located.found, (FunctionType, MethodType)) or _explain_refusal(located.found, is_tool=True)
    ):
        inner = [_LocatedFunction(each, isinstance(each, MethodType)) for each in functions_in(located.found)]
        if inner:
            return [_InterceptableFunction(name, each) for each in inner]
    return [_InterceptableFunction(name, located)]


def _explain_refusal(found: Any, *, is_tool: bool = False) -> str:
    """Return the reason why an object cannot be intercepted, or an empty string if it can be intercepted. If
    ``is_tool`` is True, an object that may contain a function is accepted."""
    if inspect.isclass(found):
        return f"{found.__name__} is a class"
    if hasattr(found, "cache_info"):
        name = getattr(found, "__name__", "it")
        return f"{name} uses functools.lru_cache, so calls answered from the cache are not recorded"
    if is_tool:
        return ""
    if not isinstance(found, FunctionType):
        return f"it is a {type(found).__name__}, which neither is nor wraps a Python function"
    if inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found):
        return f"{found.__name__} is a generator function"
    return ""


# ── patching functions ───────────────────────────────────────────────────────────────────────────


class _PatchedFunction:
    """A function whose code was replaced, and the interceptors that use it."""

    patched: dict[int, _PatchedFunction] = {}

    def __init__(self, function: Any, takes_self: bool) -> None:
        self.function = function
        self.users: list[FunctionInterceptor] = []
        self._takes_self = takes_self
        self._code = function.__code__
        self._original_signature = function.__dict__.get("__signature__")
        self.name = function.__qualname__
        self.original = _copy_function(function)
        self._signatures = [
            signature
            for signature in (_signature(function, wrapped=True), _signature(function, wrapped=False))
            if signature is not None
        ]
        is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        replacement = functools.partial(_run_intercepted_async if is_async else _run_intercepted, self)
        function.__code__ = _stub(function, replacement)
        if self._signatures:
            function.__signature__ = self._signatures[0]

    @classmethod
    def for_function(cls, function: _InterceptableFunction) -> _PatchedFunction:
        with _LOCK:
            if id(function.function) not in cls.patched:
                cls.patched[id(function.function)] = cls(function.function, function.takes_self)
            return cls.patched[id(function.function)]

    def release(self, user: FunctionInterceptor) -> None:
        with _LOCK:
            if user in self.users:
                self.users.remove(user)
            if self.users:
                return
            self.function.__code__ = self._code
            if self._original_signature is None:
                self.function.__dict__.pop("__signature__", None)
            else:
                self.function.__signature__ = self._original_signature
            self.patched.pop(id(self.function), None)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call as JSON, keyed by parameter name.

        A value that can be represented neither as JSON nor as text, such as a database connection, is not an
        argument of the tool."""
        named = {}
        for name, (value, kind) in self._bind(args, kwargs).items():
            if kind is inspect.Parameter.VAR_KEYWORD:
                named.update(to_json_arguments(value))
            elif (found := to_json_argument(value)) is not NOT_JSON:
                named[name] = found
        return named

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        fault: TypeError | None = None
        for signature in self._signatures:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                fault = fault or error
                continue
            named = {
                name: (value, signature.parameters[name].kind) for name, value in bound.arguments.items()
            }
            if self._takes_self and named:
                named.pop(next(iter(named)))
            return named
        raise TypeError(f"{self.name}() {fault}")

    def find_call_world(self) -> tuple[str, World] | None:
        """Return the tool and the tool world for a call.

        Return ``None`` if the function is not intercepted in this conversation, or if the call is part of a
        known call. Raise ``UntrackedCallError`` if the conversation is unknown."""
        world = current_world()
        if world is not None:
            name = world.intercepted.get(id(self.function))
            return (name, world) if name is not None and not is_inside_call(name) else None
        if is_detached():
            what = f"{self.name} was called by a mock that replaces it, and was not run"
            raise UntrackedCallError(what)
        raise untracked_call_error(self.name, may_call=lambda world: id(self.function) in world.intercepted)


def _signature(function: Any, *, wrapped: bool) -> inspect.Signature | None:
    try:
        return inspect.signature(function, follow_wrapped=wrapped)
    except (TypeError, ValueError):
        return None


def _copy_function(function: Any) -> Any:
    """Return a copy of the function with its original code."""
    copied = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__qualname__ = function.__qualname__
    return copied


def _stub(function: Any, replacement: Any) -> CodeType:
    """Build code that passes its arguments to ``replacement``.

    The code declares the same free variables as the function without using them, because Python requires the
    same number of free variables."""
    free = function.__code__.co_freevars
    is_async = inspect.iscoroutinefunction(function)
    lines = [
        "def outer():",
        *(f"    {name} = None" for name in free),
        f"    {'async ' if is_async else ''}def stub(*{_ARGS}, **{_KWARGS}):",
        *(f"        if 0: {name}" for name in free),
        f"        {_CALLED} = {_MARK!r}",
        f"        return {'await ' if is_async else ''}{_CALLED}(*{_ARGS}, **{_KWARGS})",
    ]
    (outer,) = (c for c in compile("\n".join(lines), __file__, "exec").co_consts if isinstance(c, CodeType))
    (stub,) = (c for c in outer.co_consts if isinstance(c, CodeType))
    assert stub.co_freevars == free
    constants = tuple(replacement if each == _MARK else each for each in stub.co_consts)
    real = function.__code__
    where = {"co_filename": real.co_filename, "co_firstlineno": real.co_firstlineno}
    return stub.replace(co_consts=constants, co_name=real.co_name, **where)


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


def _run_intercepted(patched: _PatchedFunction, /, *args: Any, **kwargs: Any) -> Any:
    found = patched.find_call_world()
    if found is None:
        return patched.original(*args, **kwargs)
    name, world = found
    arguments = patched.arguments(args, kwargs)

    def run_real() -> Any:
        with enter_direct_call(name, arguments):
            return patched.original(*args, **kwargs)

    return _return_or_raise(world.call_sync(name, arguments, run_real))


async def _run_intercepted_async(patched: _PatchedFunction, /, *args: Any, **kwargs: Any) -> Any:
    found = patched.find_call_world()
    if found is None:
        return await patched.original(*args, **kwargs)
    name, world = found
    arguments = patched.arguments(args, kwargs)

    async def run_real() -> Any:
        with enter_direct_call(name, arguments):
            return await patched.original(*args, **kwargs)

    return _return_or_raise(await world.call(name, arguments, run_real))


def _return_or_raise(answer: ToolAnswer) -> Any:
    """Return the answer's value, or raise ``ToolError`` if the tool failed."""
    if not answer.is_error:
        return answer.value
    value = answer.value
    is_plain = isinstance(value, dict) and list(value) == ["error"]
    failure = ToolTimeoutError if answer.is_timeout else ToolError
    raise failure(str(value["error"] if is_plain else value))
