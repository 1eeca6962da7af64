"""Compares values with those that an author wrote: deep JSON equality, with matchers.

``1`` equals ``1.0`` but not ``true``. ``null`` equals only ``null``. The order of list items matters. NaN
equals NaN. Strings are compared after NFC normalization. A mapping whose only key is ``$any``, ``$in``,
``$regex``, ``$approx`` or ``$optional`` is a matcher at any depth. All keys that begin with ``$`` are
reserved: any other such key is an error."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.call_outcomes import ARGUMENTS_NOT_KNOWN
from agenteval.core.errors import AuthorError, Mistake, Problem, did_you_mean
from agenteval.core.excerpts import one_line
from agenteval.core.folding import nfc
from agenteval.core.patterns import pattern_matches, pattern_mistake
from agenteval.files.yaml_scalars import display_value

Path: TypeAlias = tuple[str | int, ...]
_ABSENT = object()
"""A marker for an absent value."""
_APPROX_KEYS = ("value", "abs", "rel")
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


class Difference(NamedTuple):
    """A path at which the actual arguments differ from the expected arguments."""

    path: str
    expected: Any
    actual: Any

    def __str__(self) -> str:
        if self.actual is _ABSENT:
            return f"{self.path}: missing, expected {describe_expected(self.expected)}"
        if self.expected is _ABSENT:
            return f"{self.path}: unexpected, got {describe_expected(self.actual, literal=True)}"
        actual = describe_expected(self.actual, literal=True)
        return f"{self.path}: expected {describe_expected(self.expected)}, got {actual}"


def matches_value(expected: Any, actual: Any) -> bool:
    """Check whether ``actual`` matches ``expected``, which may contain matchers.

    Raise ``AuthorError`` for an unknown or misused matcher. The matchers in a scenario file are checked when
    the file is loaded; expectations created in code reach this function unchecked."""
    return next(find_differences(expected, actual), None) is None


def find_differences(
    expected: Any, actual: Any, *, path: str = "args", partial: bool = False
) -> Iterator[Difference]:
    """Yield the differences between ``actual`` and ``expected``; either may be ``_ABSENT``.

    If ``partial`` is true, additional keys are allowed at this level."""
    if matcher := _matcher(expected):
        kind, operand = matcher
        if not kind.holds(operand, actual):
            yield Difference(path, expected, actual)
    elif isinstance(expected, Mapping) and isinstance(actual, Mapping):
        yield from _keys(expected, actual, path, partial=partial)
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        yield from _items(expected, actual, path)
    elif not _same(expected, actual):
        yield Difference(path, expected, actual)


def describe_expected(expected: Any, limit: int = 160, *, literal: bool = False) -> str:
    """Format an expected value as JSON, with a description of each matcher in plain language.

    If ``literal`` is true, the value contains no matchers."""
    if isinstance(expected, UnreadableArguments):
        return str(expected)
    return one_line(_json(expected) if literal else _words(expected), limit)


class UnreadableArguments(NamedTuple):
    """The arguments of a call that could not be read. They match nothing."""

    raw: str | None

    def __str__(self) -> str:
        if self.raw is None:
            return ARGUMENTS_NOT_KNOWN
        return f"unreadable arguments {one_line(self.raw, 80)}".rstrip()


class _Matcher(NamedTuple):
    holds: Callable[[Any, Any], bool]
    words: Callable[[Any], str]
    misuse: Callable[[Any], tuple[str, str] | None]
    """A function that returns a description of what is wrong with the operand, and a remedy."""


def _keys(
    expected: Mapping[Any, Any], actual: Mapping[Any, Any], path: str, *, partial: bool
) -> Iterator[Difference]:
    expected, actual = _normalize_keys(expected), _normalize_keys(actual)
    for key, value in expected.items():
        yield from find_differences(value, actual.get(key, _ABSENT), path=_join(path, key))
    if not partial:
        for key in (key for key in actual if key not in expected):
            yield Difference(_join(path, key), _ABSENT, actual[key])


def _normalize_keys(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Normalize the keys to NFC, unless two of them would become identical."""
    if all(not isinstance(key, str) or key.isascii() for key in value):
        return value
    made = {nfc(key) if isinstance(key, str) else key: item for key, item in value.items()}
    return made if len(made) == len(value) else value


def _items(expected: Any, actual: Any, path: str) -> Iterator[Difference]:
    for index, (one, other) in enumerate(zip_longest(expected, actual, fillvalue=_ABSENT)):
        yield from find_differences(one, other, path=f"{path}[{index}]")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(expected: Any, actual: Any) -> bool:
    if _is_number(expected) and _is_number(actual):
        return bool(expected == actual or (expected != expected and actual != actual))  # NaN != NaN
    if isinstance(expected, str) and isinstance(actual, str):
        return expected == actual or nfc(expected) == nfc(actual)
    return type(expected) is type(actual) and bool(expected == actual)


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(str(key)) else f"{path}[{_json(key)}]"


def _matcher(expected: Any) -> tuple[_Matcher, Any] | None:
    if not isinstance(expected, Mapping) or not any(str(key).startswith("$") for key in expected):
        return None
    if wrong := next(find_matcher_mistakes(expected), None):
        raise AuthorError(Problem(f"args: {wrong.what}", wrong.remedy))
    ((name, operand),) = expected.items()
    return _MATCHERS[name], operand


def find_matcher_mistakes(value: Any, path: Path = ()) -> Iterator[Mistake]:
    """Yield the errors in the matchers of an author's expected value."""
    reserved = [key for key in value if str(key).startswith("$")] if isinstance(value, Mapping) else []
    if not reserved:
        for key, item in _iter_items(value):
            yield from find_matcher_mistakes(item, (*path, key))
        return
    for key in reserved:
        yield from _find_operand_mistakes(key, value[key], (*path, key))
    if len(value) > 1:
        what = f"a matcher must be the only key of its mapping, but '{reserved[0]}' is not"
        yield Mistake(what, "keys that begin with '$' are reserved for matchers", path)


def _iter_items(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return the items of a mapping or a list with their keys or indexes, or nothing for any other value."""
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list | tuple) else ()


def _find_operand_mistakes(matcher: str, operand: Any, path: Path) -> Iterator[Mistake]:
    """Yield the errors in one matcher."""
    if matcher not in _MATCHERS:
        yield Mistake(f"unknown matcher '{matcher}'", did_you_mean(str(matcher), _MATCHERS), path)
    elif fault := _MATCHERS[matcher].misuse(operand):
        yield Mistake(f"{matcher}: {fault[0]}", fault[1], path)
    elif matcher == "$optional":
        yield from find_matcher_mistakes(operand, path)
    elif matcher == "$in":
        yield from find_matcher_mistakes(operand, path)
        for index, option in enumerate(operand):
            if isinstance(option, Mapping) and "$optional" in option:
                what = "`$optional` is not allowed inside `$in`"
                yield Mistake(what, "use `{$optional: {$in: [one, two]}}`", (*path, index))


def find_optional_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths in an expected value at which the actual value may be absent."""
    for key, item in _iter_items(value):
        if key == "$optional":
            yield (*path, key)
        yield from find_optional_paths(item, (*path, key))


def may_be_absent(expected: Any) -> bool:
    """Check whether ``expected`` allows the value to be absent."""
    return matches_value(expected, _ABSENT)


def _in(options: Any, actual: Any) -> bool:
    return any(matches_value(option, actual) for option in options)


def _any_misuse(operand: Any) -> tuple[str, str] | None:
    return None if operand is True else (f"expected true, got {display_value(operand)}", "use `{$any: true}`")


def _in_misuse(options: Any) -> tuple[str, str] | None:
    if isinstance(options, list | tuple) and options:
        return None
    got = "an empty list" if options == [] else display_value(options)
    return f"expected a list of values, got {got}", "use `{$in: [one, two]}`"


def _optional(expected: Any, actual: Any) -> bool:
    return actual is None or actual is _ABSENT or matches_value(expected, actual)


def _regex(pattern: str, actual: Any) -> bool:
    return isinstance(actual, str) and pattern_matches(pattern, actual)


def _regex_misuse(pattern: Any) -> tuple[str, str] | None:
    if not isinstance(pattern, str):
        return f"expected a string, got {display_value(pattern)}", "put it in quotes"
    what, _, remedy = pattern_mistake(pattern).partition("; ")
    return (what, remedy) if what else None


def _approx(operand: Any, actual: Any) -> bool:
    """Check whether ``|actual - value| <= max(abs, rel * |value|)``.

    The comparison uses the decimals exactly as written, so that 0.4 is within 0.1 of 0.3."""
    value, absolute, relative = _tolerances(operand)
    if not _is_number(actual):
        return False
    if not (_is_finite(value) and _is_finite(actual)):
        return _same(value, actual)
    bound = max(_exact(absolute), _exact(relative) * abs(_exact(value)))
    return abs(_exact(actual) - _exact(value)) <= bound


def _tolerances(operand: Any) -> tuple[Any, Any, Any]:
    """Return the value, the absolute tolerance and the relative tolerance. If only ``abs`` is set, ``rel`` is
    0."""
    if not isinstance(operand, Mapping):
        operand = {"value": operand}
    relative = 0 if "abs" in operand else 1e-6
    return operand["value"], operand.get("abs", 1e-9), operand.get("rel", relative)


def _is_finite(number: Any) -> bool:
    return isinstance(number, int) or math.isfinite(number)


def _exact(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _approx_misuse(operand: Any) -> tuple[str, str] | None:
    example = "use `{$approx: 3.5}` or `{$approx: {value: 3.5, abs: 0.1}}`"
    if _is_number(operand):
        return None
    if not isinstance(operand, Mapping):
        return f"expected a number or a mapping, got {display_value(operand)}", example
    for key, value in operand.items():
        if key not in _APPROX_KEYS:
            return f"unknown key '{key}'", did_you_mean(str(key), _APPROX_KEYS)
        is_bound = key != "value"
        if not _is_number(value) or (is_bound and not _is_finite(value)):
            return f"`{key}` must be a number, got {display_value(value)}", example
        if is_bound and value < 0:
            return f"`{key}` must not be negative, got {display_value(value)}", example
    return None if "value" in operand else ("'value' is missing", example)


def _approx_words(operand: Any) -> str:
    if not isinstance(operand, Mapping):
        return f"about {_json(operand)}"
    bounds = [f"{name} {_json(operand[name])}" for name in ("abs", "rel") if name in operand]
    return f"about {_json(operand['value'])}" + (f" (± {', '.join(bounds)})" if bounds else "")


_MATCHERS: dict[str, _Matcher] = {
    "$any": _Matcher(lambda _, actual: actual is not _ABSENT, lambda _: "anything", _any_misuse),
    "$in": _Matcher(_in, lambda options: f"one of {_words(options)}", _in_misuse),
    "$regex": _Matcher(_regex, lambda pattern: f"text matching /{pattern}/", _regex_misuse),
    "$approx": _Matcher(_approx, _approx_words, _approx_misuse),
    "$optional": _Matcher(_optional, lambda expected: f"{_words(expected)} or absent", lambda _: None),
}


def _words(expected: Any) -> str:
    if matcher := _matcher(expected):
        return matcher[0].words(matcher[1])
    if isinstance(expected, Mapping):
        return "{" + ", ".join(f"{_json(key)}: {_words(value)}" for key, value in expected.items()) + "}"
    if isinstance(expected, list | tuple):
        return "[" + ", ".join(map(_words, expected)) + "]"
    return _json(expected)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, TypeError, ValueError):  # nested too deeply, or keys that JSON does not allow
        return f"a {type(value).__name__} that cannot be displayed"
