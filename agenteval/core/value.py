"""The base class of agenteval's values, and the types of fields that authors write."""

from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError

_MOST_SHARED = 29
"""Python shares the names of up to so many attributes among the instances of a class."""
_set = object.__setattr__


class Value(BaseModel):
    """A frozen (immutable) value. An unknown field is an error, so that nothing that an author writes is
    ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)
    """Pydantic models are built on first use, because most commands use only a few of them."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Name the fields of the class to Python. It shares the table of the names that it has seen when the
        first few instances of a class are made: ``compact`` would come too late."""
        blank = object.__new__(cls)
        for name in tuple(cls.model_fields)[:_MOST_SHARED]:
            _set(blank, name, None)


class AlternativeSchema:
    """The JSON Schema of an alternative form that an author may write, for a field whose validator accepts
    more than its type."""

    def __init__(self, **short: Any) -> None:
        self.short = short

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        long = handler(core_schema)
        return {"anyOf": [self.short, long]} if handler.mode == "validation" else long


ValueT = TypeVar("ValueT", bound=Value)
Item = TypeVar("Item")


def copy_with(blank: ValueT, fields: dict[str, Any]) -> ValueT:
    """Return a copy of ``blank`` with different ``fields``. The types of these fields are not validated. The
    function does the same as ``model_copy`` in half the time: both instances share the remaining values, and
    the fields recorded as set are those of ``blank``."""
    made = object.__new__(type(blank))
    _set(made, "__dict__", blank.__dict__ | fields)
    _set(made, "__pydantic_fields_set__", blank.__pydantic_fields_set__)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


def compact(value: ValueT) -> ValueT:
    """Return an equal value that takes up a third of the memory, for values of which there are thousands. A
    value in the compact form is returned unchanged.

    The instances of a class then share the table of their fields' names, and the set of the fields that were
    written, which alone is larger than most values. Parts with only default fields are one object."""
    if id(value.__pydantic_fields_set__) in _SHARED_SETS:
        return value
    made = object.__new__(type(value))
    kind, is_plain = type(value), not value.__pydantic_extra__
    defaults = _DEFAULTS.get(kind) or _defaults_of(kind)
    fields = {}
    for name, item in value.__dict__.items():
        if name in defaults:  # a cached property is computed again when it is needed
            fields[name] = kept = item if type(item) in _ATOMS else _compact_part(item)
            is_plain = is_plain and (kept is defaults[name] or (not kept and kept == defaults[name]))
    if len(fields) > _MOST_SHARED:
        _set(made, "__dict__", fields.copy())
    else:
        for name, item in fields.items():
            _set(made, name, item)
    _set(made, "__pydantic_fields_set__", _shared_set(value.__pydantic_fields_set__))
    _set(made, "__pydantic_extra__", value.__pydantic_extra__)
    _set(made, "__pydantic_private__", value.__pydantic_private__)
    if is_plain:
        return _PLAIN_VALUES.setdefault((kind, id(made.__pydantic_fields_set__)), made)  # type: ignore[return-value]
    return made


_ATOMS = frozenset((str, int, float, bool, type(None)))
_NO_ITEMS: dict[Any, Any] = {}
_DEFAULTS: dict[type[Value], dict[str, Any]] = {}
_SETS: dict[frozenset[str], set[str]] = {}
_SHARED_SETS: set[int] = set()
_PLAIN_VALUES: dict[tuple[type[Value], int], Value] = {}
"""These grow with the number of classes and of ways to write their fields, not with that of values."""


def _shared_set(names: set[str]) -> set[str]:
    key = frozenset(names)
    shared = _SETS.get(key) or _SETS.setdefault(key, set(key))
    _SHARED_SETS.add(id(shared))
    return shared


def _defaults_of(kind: type[Value]) -> dict[str, Any]:
    found = {name: field.default for name, field in kind.model_fields.items()}
    return _DEFAULTS.setdefault(kind, found)


def _compact_part(part: Any) -> Any:
    kind = type(part)
    if kind in _ATOMS:
        return part
    if isinstance(part, Value):
        return compact(part)
    if kind is tuple:
        return tuple(map(_compact_part, part)) if part else ()
    if kind is dict:
        return {key: _compact_part(each) for key, each in part.items()} if part else _NO_ITEMS
    return part


def reject_duplicate_numbers(value: Any) -> Any:
    """Check that no two keys of a mapping are the same number (``5`` and ``5.0``), because only one of them
    would be kept. Raise ``ValueError``. Keys that are not numbers are reported elsewhere."""
    first: dict[float, Any] = {}
    for key in value if isinstance(value, dict) else ():
        try:
            other = first.setdefault(float(key), key)
        except (TypeError, ValueError, OverflowError):
            continue
        if other is not key:
            raise ValueError(f"'{other}' and '{key}' are the same number; keep one")
    return value


def _to_text(value: Any) -> Any:
    """Convert a scalar to a string. YAML reads ``25`` as a number and ``true`` as a boolean, but where a
    string is required, the author meant the string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return value


def _to_texts(value: Any) -> Any:
    """Expand a single string to a list."""
    value = _to_text(value)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(_to_text(item) for item in value)
    return value


def _number(value: Any) -> Any:
    """Reject ``true``, which Python would accept as a number."""
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "true and false are not numbers")
    return value


_SCALAR = AlternativeSchema(type=["number", "boolean"])
_ONE = AlternativeSchema(type=["string", "number", "boolean"])
Text: TypeAlias = Annotated[str, BeforeValidator(_to_text), _SCALAR]
Texts: TypeAlias = Annotated[tuple[Annotated[str, _SCALAR], ...], BeforeValidator(_to_texts), _ONE]
ListOf: TypeAlias = Annotated[tuple[Annotated[Item, _SCALAR], ...], BeforeValidator(_to_texts), _ONE]
"""A list of strings of one type. A single string is expanded to a list with one element."""
Count: TypeAlias = Annotated[int, BeforeValidator(_number)]
Number: TypeAlias = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
