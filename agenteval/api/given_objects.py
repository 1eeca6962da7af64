"""Makes objects that were given in Python loadable by name, because a configuration and a scenario name the
code that they use.

The name of the object ``agent`` is ``agenteval.api.given_objects:agent_1``. It is valid only in this process,
which is why such a run cannot be resumed from the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from agenteval.core.errors import AuthorError, Place, Problem

_OBJECTS: dict[str, Any] = {}
_NUMBERS = count(1)


def __getattr__(name: str) -> Any:
    if name in _OBJECTS:
        return _OBJECTS[name]
    if name.partition("_")[0] in ("agent", "function"):
        raise RuntimeError("the object was given in Python, in another process; repeat the run there")
    raise AttributeError(name)


def register(value: Any, kind: str) -> str:
    """Return a target that names ``value`` in this process. ``kind`` is ``agent`` or ``function``. The same
    object always has the same name."""
    for known, item in _OBJECTS.items():
        if item is value and known.startswith(kind):
            return f"{__name__}:{known}"
    name = f"{kind}_{next(_NUMBERS)}"
    _OBJECTS[name] = value
    return f"{__name__}:{name}"


def to_plain(value: Any, place: Place, key: str = "") -> Any:
    """Return ``value`` in the form in which a file contains it: mappings, lists, texts, numbers, booleans and
    None. A function is replaced by its target, and a path by its text. Raise ``AuthorError`` for any other
    object."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Path():
            return str(value)
        case Mapping():
            return {str(name): to_plain(item, place, _join(key, name)) for name, item in value.items()}
        case list() | tuple():
            return [to_plain(item, place, _join(key, index)) for index, item in enumerate(value)]
        case Callable():
            return register(value, "function")
    what = f"`{key}`: a file cannot contain a {type(value).__name__}" if key else f"a {type(value).__name__}"
    raise AuthorError(Problem(what, "use a mapping, list, text, number, boolean, None or function", place))


def _join(key: str, part: object) -> str:
    return f"{key}.{part}" if key else str(part)
