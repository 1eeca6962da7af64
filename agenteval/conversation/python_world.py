"""A world in Python: a class of the author, of which each sample has an instance. Its public methods are
tools, and ``snapshot()`` returns its state, which is copied into the sample's database after each call."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, NotRequired, Required
from weakref import WeakKeyDictionary

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from agenteval.agentside.targets.context import is_loop_blocked
from agenteval.agentside.targets.faults import describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch, is_async
from agenteval.conversation.mocks import ToolContext, answer_by_code, to_json_value
from agenteval.conversation.tools import MethodCall, refused_result
from agenteval.conversation.user_code import DeadlineError, call_user_code, import_target
from agenteval.core.errors import AuthorError, Place, Problem, locate_errors, parse_place
from agenteval.core.excerpts import one_line
from agenteval.core.json_schema import schema_mistakes
from agenteval.core.json_text import to_json
from agenteval.core.scenario import Sample, Tool
from agenteval.core.trajectory import ToolResult
from agenteval.core.value import compact
from agenteval.core.world_state import WorldTables
from agenteval.world import MARKS_ATTRIBUTE
from agenteval.world.database import WorldDatabase
from agenteval.world.snapshot_tables import TableRows, find_difference, mirror_snapshot, read_snapshot

_SNAPSHOT = "snapshot"
_STATE = "state"
_CONTEXT = "ctx"
_NO_COPY = "`world`: a copy of the instance, which the faults `no_op` and `stale` need,"
_COPY_IT = "define `__deepcopy__` in the class, or leave these faults out"


class WorldMethod(NamedTuple):
    """A method that is a tool."""

    name: str
    takes_context: bool
    arguments: TypeAdapter[Any]
    """Converts the arguments of a call to the types of the parameters."""
    tool: Tool


class WorldClass(NamedTuple):
    """The author's class."""

    target: str
    type: type
    methods: Mapping[str, WorldMethod]
    takes_state: bool
    needs_state: bool
    has_snapshot: bool

    @property
    def tools(self) -> dict[str, Tool]:
        return {name: method.tool for name, method in self.methods.items()}

    def constructor(self, rows: TableRows | None) -> Callable[[], Any]:
        """Return a function that makes an instance. ``rows`` is the state that the author wrote, if any."""
        kwargs = {_STATE: rows} if self.takes_state and rows is not None else {}
        return lambda: self.type(**kwargs)  # a partial would look like a class whose instances are called


def load_world_class(target: str, base: str, place: Place) -> WorldClass:
    """Import the author's class, and read its methods. Raise ``AuthorError`` with all mistakes."""
    found = import_target(target, base, what="`world`", place=place)
    if not inspect.isclass(found):
        what = f"`world`: {target} is not a class"
        raise AuthorError(Problem(what, "name a class, of which each sample gets an instance", place))
    if found not in _KNOWN:
        with locate_errors(place):
            _KNOWN[found] = _read_class(found, target)
    return _KNOWN[found]


_KNOWN: WeakKeyDictionary[type, WorldClass] = WeakKeyDictionary()


def _read_class(cls: type, target: str) -> WorldClass:
    problems: list[Problem] = []
    members = _public_members(cls)
    methods: dict[str, WorldMethod] = {}
    for name, method in members.items():
        try:
            methods[name] = _read_method(cls, name, method)
        except AuthorError as error:
            problems += error.problems
    state = _constructor_parameter(cls, problems)
    snapshot = getattr(cls, _SNAPSHOT, None)
    if snapshot is not None:
        problems += _snapshot_problems(cls, snapshot)
    if not members:
        what = f"`world`: {cls.__name__} has no public method, so that it has no tools"
        problems.append(Problem(what, "define methods without an underscore"))
    if problems:
        raise AuthorError(*problems)
    return WorldClass(
        target=target,
        type=cls,
        methods=methods,
        takes_state=state is not None,
        needs_state=state is not None and state.default is state.empty,
        has_snapshot=snapshot is not None,
    )


def _public_members(cls: type) -> dict[str, Any]:
    """Return the methods that are tools, in the order of their definition: those of the class and of its
    bases, less bases of the standard library and of pydantic."""
    found: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        if owner is cls or not _is_of_library(owner):
            found.update(vars(owner))
    return {
        name: member
        for name, member in found.items()
        if not name.startswith("_") and name != _SNAPSHOT and _is_method(member)
    }


def _is_of_library(owner: type) -> bool:
    package = owner.__module__.partition(".")[0]
    return package in sys.stdlib_module_names or package == "pydantic"


def _is_method(member: Any) -> bool:
    if isinstance(member, FunctionType):
        return True
    is_wrapped = callable(member) and hasattr(member, "__wrapped__")  # by a decorator that makes an object
    return is_wrapped and not isinstance(member, staticmethod | classmethod | type)


def _constructor_parameter(cls: type, problems: list[Problem]) -> inspect.Parameter | None:
    """Return the parameter ``state`` of the constructor, if it has one."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return None
    state = parameters.get(_STATE)
    state = state if state and state.kind in (state.POSITIONAL_OR_KEYWORD, state.KEYWORD_ONLY) else None
    if shape := find_signature_mismatch(cls, 0, [_STATE] if state else ()):
        what = f"`world`: {cls.__name__} cannot be made without arguments: {shape}"
        problems.append(Problem(what, "give its parameters defaults; only `state` is passed"))
    return state


def _snapshot_problems(cls: type, snapshot: Any) -> Iterable[Problem]:
    what = f"`world`: {cls.__name__}.{_SNAPSHOT}"
    if not callable(snapshot) or find_signature_mismatch(snapshot, 1):
        yield Problem(f"{what} cannot be called without arguments", "define it as `def snapshot(self)`")
    elif is_async(snapshot):
        yield Problem(f"{what} is async", "define it as `def snapshot(self)`, without `async`")


# ── methods as tools ─────────────────────────────────────────────────────────────────────────────


class _PlainSchema(GenerateJsonSchema):
    """Schemas without the titles that pydantic derives from the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _read_method(cls: type, name: str, method: Any) -> WorldMethod:
    where = f"`world`: {cls.__name__}.{name}"
    try:
        parameters = [*inspect.signature(method, eval_str=True).parameters.values()]
    except Exception as error:
        what = f"{where}: the types of its parameters cannot be read: {describe_error(error)}"
        raise AuthorError(Problem(what, "use names that the module imports")) from error
    fields: dict[str, Any] = {}
    is_open = False
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise AuthorError(Problem(f"{where} has no parameter `self`", f"define it as `def {name}(self, …)`"))
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
            what = f"{where} takes `{star}{parameter.name}` by position, but calls have names"
            raise AuthorError(Problem(what, "give it named parameters"))
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
        elif parameter.name != _CONTEXT:
            kind = Any if parameter.annotation is parameter.empty else parameter.annotation
            wrapper: Any = Required if parameter.default is parameter.empty else NotRequired
            fields[parameter.name] = wrapper[kind]
    try:
        adapter, schema = _make_schema(fields, is_open=is_open)
    except Exception as error:
        what = f"{where}: no JSON Schema can be made of its parameters: {one_line(str(error), 300)}"
        remedy = "give them types that JSON can represent, such as str, list[int], Literal or a dataclass"
        raise AuthorError(Problem(what, remedy)) from error
    _add_defaults(schema, parameters)
    for mistake, _ in schema_mistakes(schema):
        raise AuthorError(Problem(f"{where}: {mistake}", "use other types"))
    takes_context = any(parameter.name == _CONTEXT for parameter in parameters[1:])
    return WorldMethod(name, takes_context, adapter, _make_tool(where, name, method, schema))


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _make_schema(fields: Mapping[str, Any], *, is_open: bool) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    make_class: Any = TypedDict  # pydantic takes that of `typing` only since Python 3.12
    arguments = make_class("Arguments", dict(fields))
    arguments.__pydantic_config__ = ConfigDict(extra="allow" if is_open else "forbid")
    adapter: TypeAdapter[Any] = TypeAdapter(arguments)
    schema = adapter.json_schema(schema_generator=_PlainSchema)
    schema.pop("title", None)
    return adapter, schema


def _add_defaults(schema: dict[str, Any], parameters: Iterable[inspect.Parameter]) -> None:
    for parameter in parameters:
        described = schema.get("properties", {}).get(parameter.name)
        if described is not None and isinstance(parameter.default, str | int | float | bool):
            described["default"] = parameter.default


def _make_tool(where: str, name: str, method: Any, schema: dict[str, Any]) -> Tool:
    marks = getattr(method, MARKS_ATTRIBUTE, ())
    if "reads" in marks and len(marks) > 1:
        what = f"{where}: `@reads` cannot be combined with `@writes` or `@destructive`"
        raise AuthorError(Problem(what, "keep one of them"))
    described = {"description": inspect.getdoc(method) or None, "parameters": schema}
    return compact(Tool(**described, method=name, **dict.fromkeys(marks, True)))


# ── instances ────────────────────────────────────────────────────────────────────────────────────


def take_snapshot(instance: Any, what: str, place: Place) -> WorldTables:
    """Return the state of an instance. Raise ``AuthorError`` if it has another form."""
    value = instance.snapshot()
    if isinstance(value, Mapping):  # a view of a dictionary's values is as good as a list
        value = {table: _as_list(rows) for table, rows in value.items()}
    with locate_errors(place):
        return read_snapshot(to_json_value(value, what, place))


def _as_list(rows: Any) -> Any:
    is_rows = isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping)
    return list(rows) if is_rows else rows


async def open_python_world(
    sample: Sample,
    database: WorldDatabase | None,
    read_rows: Callable[[], TableRows | None],
    *,
    timeout_s: float,
) -> PythonWorld:
    """Make the instance of a sample. ``read_rows`` returns the state that the author wrote, which becomes the
    world's own. Raise ``AuthorError`` if it cannot be made, or does not begin as the one did that was made
    when the scenario was loaded."""
    scenario = sample.scenario
    place = parse_place(scenario.where("world"))
    cls = load_world_class(scenario.world, scenario.base, place)
    what = f"`world`: {cls.target}"
    rows = read_rows() if cls.takes_state else None
    instance = await _call(cls.constructor(rows), what, place, timeout_s)
    world = PythonWorld(sample, cls, instance, database, timeout_s=timeout_s)
    if cls.has_snapshot:
        first = await world.snapshot()
        expected = scenario.state.snapshot if scenario.state else {}
        if found := find_difference(expected, first):
            fault = (
                f"{what}: a new instance does not begin as the one did that was made when the scenario was"
                f" loaded: table '{found.table}': {found.text}"
            )
            remedy = "seed its random numbers, fix its times and ids, and share nothing between instances"
            raise AuthorError(Problem(fault, remedy, place))
    return world


async def _call(
    function: Callable[[], Any], what: str, place: Place, timeout_s: float, *, remedy: str = ""
) -> Any:
    try:
        return await call_user_code(function, timeout_s=timeout_s)
    except DeadlineError:
        raise AuthorError(Problem(f"{what} did not return within {timeout_s:g} s", remedy, place)) from None
    except AuthorError:
        raise
    except Exception as error:
        raise AuthorError(Problem(f"{what} raised {describe_error(error)}", remedy, place)) from error


class PythonWorld:
    """The instance of one sample. The caller makes one call at a time."""

    def __init__(
        self,
        sample: Sample,
        cls: WorldClass,
        instance: Any,
        database: WorldDatabase | None,
        *,
        timeout_s: float,
    ) -> None:
        self.instance = instance
        self._sample = sample
        self._class = cls
        self._database = database
        self._timeout_s = timeout_s
        self._place = parse_place(sample.scenario.where("world"))
        self._pending = ""
        """A description of the call that is not over. Until then nobody knows what it changes."""
        self._given_up = ""
        """A description of a call that was given up. It may have changed something, and may go on."""

    async def answer(self, call: MethodCall, turn: int, *, is_undone: bool = False) -> ToolResult:
        """Call a method, and copy the state that it leaves into the database, even if the result is an error.
        With ``is_undone``, call the method of a copy of the instance, and leave everything as it is. Raise
        ``AuthorError`` if the author's code fails."""
        method = self._class.methods[call.tool]
        try:
            arguments = method.arguments.validate_json(to_json(call.args))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = ".".join(map(str, first["loc"]))
            return refused_result(f"wrong arguments: {path}: {first['msg']}")
        if is_undone:
            copied = await _call(
                lambda: deepcopy(self.instance), _NO_COPY, self._place, self._timeout_s, remedy=_COPY_IT
            )
            return await self._call_method(copied, method, call, arguments, turn, is_undone=True)
        self._pending = f"a call to '{call.tool}' was not over, and what it changed is not known"
        try:
            result = await self._call_method(self.instance, method, call, arguments, turn)
            if self._class.has_snapshot:
                await self._mirror(method)
        except asyncio.CancelledError:
            self._given_up = self._pending
            raise
        finally:
            self._pending = ""
        return result

    async def _call_method(
        self,
        instance: Any,
        method: WorldMethod,
        call: MethodCall,
        arguments: dict[str, Any],
        turn: int,
        *,
        is_undone: bool = False,
    ) -> ToolResult:
        function = getattr(instance, method.name)
        what = f"the world's method '{call.tool}'"
        if is_loop_blocked() and is_async(function):
            fault = (
                f"the agent called '{call.tool}' without `await` in its event loop, but the method is async"
            )
            raise AuthorError(
                Problem(fault, "define the method with `def` instead of `async def`", self._place)
            )
        answer = partial(answer_by_code, what=what, place=self._place, timeout_s=self._timeout_s)
        if not method.takes_context:
            return await answer(partial(function, **arguments))
        context = ToolContext(call.call_index, turn, self._sample.key, self._sample.seed)
        if self._database is None:
            return await answer(partial(function, **arguments, ctx=context))
        with self._database.transaction(call.tool) as transaction:
            context = ToolContext(call.call_index, turn, self._sample.key, self._sample.seed, transaction)
            result = await answer(partial(function, **arguments, ctx=context))
            if result.is_error or is_undone:
                transaction.rollback()
            return result

    async def snapshot(self) -> WorldTables:
        """Return the state of the instance. Raise ``AuthorError``."""
        what = f"`world`: {self._class.type.__name__}.{_SNAPSHOT}"
        found: WorldTables = await _call(
            lambda: take_snapshot(self.instance, what, self._place), what, self._place, self._timeout_s
        )
        return found

    async def _mirror(self, method: WorldMethod) -> None:
        assert self._database  # a world with a snapshot has a state
        snapshot = await self.snapshot()
        if self._database.is_closed:  # nobody waited for the call
            return
        with locate_errors(self._place):
            changed = mirror_snapshot(self._database, snapshot)
        if changed and method.tool.reads:
            fault = (
                f"the world's method '{method.name}' is marked `@reads`, but changed the table '{changed}'"
            )
            raise AuthorError(
                Problem(fault, "remove the mark, or let the method change nothing", self._place)
            )

    @property
    def unknown_because(self) -> str:
        """The reason why the state is not known, or an empty string if it is: a call is not over, or was
        given up, and may have changed what has not been copied."""
        return self._given_up or self._pending
