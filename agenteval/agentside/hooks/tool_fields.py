"""Patch the field in which each tool stores the object that runs the tool, so that the tool world is called
first."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_CALL = "__call__"


def patch_field(
    cls: Any, field: str, change: Callable[[Any], Any], methods: tuple[str, ...] = (_CALL,)
) -> None:
    """Patch the methods of the object in a field, for all instances of a class and its subclasses, regardless
    of when and how the field was set.

    ``change`` is the same as in ``tool_methods.hook``, but its functions receive the tool as their first
    argument. The patched methods are always async, because the framework must await the result if the result
    is awaitable."""
    before, kept = cls.__getattribute__, f"_agenteval_{field}"

    def __getattribute__(tool: Any, name: str) -> Any:  # noqa: N807 - what Python calls
        value = before(tool, name)
        if name != field or value is None:
            return value
        value = value._agenteval_held if type(value) is PatchedField else value
        fields = before(tool, "__dict__")
        known = fields.get(kept)
        if (
            type(known) is not PatchedField
            or known._agenteval_tool is not tool
            or known._agenteval_held != value
        ):
            known = fields[kept] = PatchedField(tool, value, change, methods)
        return known

    cls.__getattribute__ = __getattribute__


class PatchedField:
    """A stand-in for the object in a tool's field. It has the attributes of that object, but its methods are
    patched."""

    def __init__(self, tool: Any, value: Any, change: Callable[[Any], Any], methods: tuple[str, ...]) -> None:
        self._agenteval_tool = tool
        self._agenteval_held = value
        self._agenteval_changed = {name: _patched_method(value, name, change) for name in methods}

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return await _await_fully(self._agenteval_changed[_CALL](self._agenteval_tool, *args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        changed = self._agenteval_changed.get(name)
        if changed is None:
            return getattr(self._agenteval_held, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await _await_fully(changed(self._agenteval_tool, *args, **kwargs))

        return call

    def __eq__(self, other: Any) -> bool:
        value = other._agenteval_held if type(other) is PatchedField else other
        return bool(self._agenteval_held == value)

    def __hash__(self) -> int:
        return hash(self._agenteval_held)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _identity, (self._agenteval_held,)  # a copy copies the value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._agenteval_held)


def _identity(value: Any) -> Any:
    return value


def _patched_method(value: Any, name: str, change: Callable[[Any], Any]) -> Any:
    async def real(tool: Any, *args: Any, **kwargs: Any) -> Any:
        return await _await_fully((value if name == _CALL else getattr(value, name))(*args, **kwargs))

    return change(real)


async def _await_fully(value: Any) -> Any:
    """Await a value and any awaitable result, because the author's function that formats an error may be
    async."""
    while inspect.isawaitable(value):
        value = await value
    return value
