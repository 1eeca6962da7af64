"""The one configuration that every value of agenteval shares, and the kinds of fields that authors write."""

from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError


class Value(BaseModel):
    """A frozen record. An unknown field is an error: nothing that an author writes is ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)
    """Models are built when they are first used: most commands use few of them."""


class AlternativeSchema:
    """What an author may write instead, as JSON Schema, where a validator takes more than the type says."""

    def __init__(self, **short: Any) -> None:
        self.short = short

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        long = handler(core_schema)
        return {"anyOf": [self.short, long]} if handler.mode == "validation" else long


ValueT = TypeVar("ValueT", bound=Value)
Item = TypeVar("Item")
_set = object.__setattr__


def copy_with(blank: ValueT, fields: dict[str, Any]) -> ValueT:
    """``blank`` with other ``fields``, of types known to be right. As ``model_copy``, in half the time: what
    is not among them, the two share, and what counts as given is what ``blank`` was given."""
    made = object.__new__(type(blank))
    _set(made, "__dict__", blank.__dict__ | fields)
    _set(made, "__pydantic_fields_set__", blank.__pydantic_fields_set__)
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


def reject_duplicate_numbers(value: Any) -> Any:
    """Checks that no key of a mapping is the number of another one (``5`` and ``5.0``), of which one alone
    would be kept. Raises ``ValueError``; what is not a number at all is told of as such elsewhere."""
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
    """YAML reads ``25`` as a number and ``true`` as a truth value; where text is asked for, the
    author meant the text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return value


def _to_texts(value: Any) -> Any:
    """One text stands for a list of one."""
    value = _to_text(value)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(_to_text(item) for item in value)
    return value


def _number(value: Any) -> Any:
    """``true`` is not a number, although Python would count it as one."""
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "true and false are not numbers")
    return value


_SCALAR = AlternativeSchema(type=["number", "boolean"])
_ONE = AlternativeSchema(type=["string", "number", "boolean"])
Text: TypeAlias = Annotated[str, BeforeValidator(_to_text), _SCALAR]
Texts: TypeAlias = Annotated[tuple[Annotated[str, _SCALAR], ...], BeforeValidator(_to_texts), _ONE]
ListOf: TypeAlias = Annotated[tuple[Annotated[Item, _SCALAR], ...], BeforeValidator(_to_texts), _ONE]
"""Of texts of a kind; one stands for a list of one."""
Count: TypeAlias = Annotated[int, BeforeValidator(_number)]
Number: TypeAlias = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
