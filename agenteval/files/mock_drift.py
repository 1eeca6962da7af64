"""Compares a mock's answer with the answer of the real tool, and collects the mocks of a scenario that can be
compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import json_key
from agenteval.core.errors import Place
from agenteval.core.folding import nfc
from agenteval.core.json_text import to_json
from agenteval.core.scenario import Scenario, Tool, ToolAnswer, ToolRule
from agenteval.files.redaction import MASK
from agenteval.files.scenario_checks import argument_names
from agenteval.files.value_parts import leaves
from agenteval.files.yaml_source import Mark

# ── the mocks of a scenario ──────────────────────────────────────────────────────────────────────


class ComparableMock(NamedTuple):
    """A mock with literal arguments and a literal answer."""

    tool: str
    definition: Tool
    args: Mapping[str, Any]
    value: Any
    """The result, or the text of the error."""
    is_error: bool
    place: Place

    @property
    def key(self) -> Any:
        """A hashable key that is equal for the same mock of several scenarios, as ``defaults`` give it."""
        return self.tool, self.place, json_key(self.args), json_key(self.value), self.is_error


class OpaqueMock(NamedTuple):
    """A mock that cannot be compared with the real tool."""

    tool: str
    reason: str
    place: Place


def mocks_of(scenario: Scenario, mark: Mark) -> Iterator[ComparableMock | OpaqueMock]:
    """Yield the mocks of a scenario, which was written at ``mark``."""
    for name, tool in scenario.tools.items():
        where = mark.find(("tools", name))
        if tool.rules is None:
            if tool.is_mocked:
                yield _classify(name, tool, tool, where.place)
            continue
        for index, rule in enumerate(tool.rules):
            yield _classify(name, tool, rule, where.find(("rules", index)).place)


def _classify(name: str, tool: Tool, answer: Tool | ToolRule, place: Place) -> ComparableMock | OpaqueMock:
    args = _literal_args(tool, answer)
    if isinstance(args, str):
        return OpaqueMock(name, args, place)
    if reason := _why_opaque(answer):
        return OpaqueMock(name, reason, place)
    is_error = answer.error is not None
    value = _unescape(answer.error if is_error else answer.returns)
    return ComparableMock(name, tool, args, value, is_error, place)


_NOTHING = {"$optional": None}
"""The condition that an argument is not given, as a recording writes it."""


def _literal_args(tool: Tool, answer: Tool | ToolRule) -> Mapping[str, Any] | str:
    """Return the arguments of the calls that a mock answers, or the reason why they are not known."""
    when = answer.when if isinstance(answer, ToolRule) else None
    if when is None:
        if argument_names(tool.parameters) == frozenset():
            return {}
        return "it answers calls with any arguments"
    if when.call is not None or when.turn is not None:
        return "its answer depends on the number of the call or turn"
    args = {name: value for name, value in (when.args or {}).items() if value != _NOTHING}
    if _has_matcher(args):
        return "its arguments have matchers"
    if MASK in to_json(args):
        return f"its arguments contain {MASK}, in place of a secret"
    return args


def _has_matcher(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(str(key).startswith("$") or _has_matcher(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(map(_has_matcher, value))


_REFERENCE = re.compile(r"\$\$\{|(\$\{)")


def _why_opaque(answer: ToolAnswer) -> str:
    given = answer.model_fields_set
    for key, reason in _ANSWERS_WITHOUT_VALUE.items():
        if key in given:
            return reason
    template = answer.error if answer.error is not None else answer.returns
    texts = (text for _, text in leaves(template) if isinstance(text, str))
    if any(found[1] for text in texts for found in _REFERENCE.finditer(text)):
        return "its answer refers to the call (${…})"
    return ""


_ANSWERS_WITHOUT_VALUE = {
    "python": "a function answers",
    "sql": "SQL answers",
    "sequence": "its answers follow each other (sequence)",
}


def _unescape(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("$${", "${")
    if isinstance(value, Mapping):
        return {key: _unescape(item) for key, item in value.items()}
    return [_unescape(item) for item in value] if isinstance(value, list | tuple) else value


# ── differences ──────────────────────────────────────────────────────────────────────────────────


class DriftKind(StrEnum):
    """The kind of a difference between a mock and the real tool."""

    VALUES = "values"
    """The value is a different one of the same type."""
    FIELDS = "fields"
    """A field is missing or new."""
    TYPES = "types"
    """The JSON type of a value changed."""
    ERROR = "error"
    """One answers with an error, and the other does not."""


ABSENT = object()
"""A marker for a field that one side does not have."""


class Drift(NamedTuple):
    """A difference between a mock's answer and that of the real tool."""

    kind: DriftKind
    path: str
    """The path of the value, such as ``items[0].price``, or an empty string for the whole answer."""
    mock: Any
    real: Any


class IgnoredFields:
    """The fields that are left out of the comparison: names, which count at any depth, and dotted paths from
    the top of the answer, in which positions of lists are left out."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._used: set[str] = set()

    def covers(self, path: Sequence[str | int]) -> bool:
        """Check whether the value at ``path`` is left out."""
        if not path or isinstance(path[-1], int):
            return False
        dotted = ".".join(part for part in path if isinstance(part, str))
        found = [each for each in self._fields if each == (dotted if "." in each else path[-1])]
        self._used.update(found)
        return bool(found)

    @property
    def unused(self) -> list[str]:
        """The fields that no compared answer contains."""
        return [each for each in self._fields if each not in self._used]


def find_drift(mock: Any, real: Any, ignored: IgnoredFields) -> Iterator[Drift]:
    """Yield the differences between two results. A text that contains JSON equals this JSON, because agents
    receive results as text."""
    parsed = _parse_text(mock), _parse_text(real)
    if not any(isinstance(each, str) for each in parsed):
        mock, real = parsed
    yield from _compare(mock, real, (), ignored)


def find_error_drift(mock: str, real: str, ignored: IgnoredFields) -> Iterator[Drift]:
    """Yield the difference between the texts of two errors, unless the field ``error`` is left out."""
    if not ignored.covers(("error",)) and not _is_same_text(mock.strip(), real.strip()):
        yield Drift(DriftKind.VALUES, "error", mock, real)


def _parse_text(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _compare(mock: Any, real: Any, path: tuple[str | int, ...], ignored: IgnoredFields) -> Iterator[Drift]:
    if ignored.covers(path):
        return
    if json_type(mock) != json_type(real):
        yield Drift(DriftKind.TYPES, _shown(path), mock, real)
    elif isinstance(mock, Mapping):
        yield from _compare_fields(mock, real, path, ignored)
    elif isinstance(mock, list | tuple):
        yield from _compare_items(mock, real, path, ignored)
    elif not (_is_same_text(mock, real) if isinstance(mock, str) else mock == real):
        yield Drift(DriftKind.VALUES, _shown(path), mock, real)


def _is_same_text(mock: str, real: str) -> bool:
    """Check whether two texts are equal. Where a secret was masked in the mock, anything may stand."""
    mock, real = nfc(mock), nfc(real)
    if MASK not in mock:
        return mock == real
    pattern = ".*".join(map(re.escape, mock.split(MASK)))
    return re.fullmatch(pattern, real, re.DOTALL) is not None


def _compare_fields(
    mock: Mapping[str, Any], real: Mapping[str, Any], path: tuple[str | int, ...], ignored: IgnoredFields
) -> Iterator[Drift]:
    for key in dict.fromkeys((*mock, *real)):
        below = (*path, key)
        if key in mock and key in real:
            yield from _compare(mock[key], real[key], below, ignored)
        elif not ignored.covers(below):
            yield Drift(DriftKind.FIELDS, _shown(below), mock.get(key, ABSENT), real.get(key, ABSENT))


def _compare_items(
    mock: Sequence[Any], real: Sequence[Any], path: tuple[str | int, ...], ignored: IgnoredFields
) -> Iterator[Drift]:
    """Compare lists item by item. An item that one list has and the other has not is a different value of the
    list, not a field."""
    for index, (one, other) in enumerate(zip_longest(mock, real, fillvalue=ABSENT)):
        if one is ABSENT or other is ABSENT:
            yield Drift(DriftKind.VALUES, _shown((*path, index)), one, other)
        else:
            yield from _compare(one, other, (*path, index), ignored)


def json_type(value: Any) -> str:
    """Return the name of a value's JSON type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
    return "array"


_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def _shown(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{to_json(part)}]"
    return text
