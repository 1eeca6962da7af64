"""Validates the values that an author wrote against the pydantic models (schema validation). Unknown keys
are refused. Every mistake is reported with its location and in terms that the author knows."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError

from agenteval.core.errors import Problem, did_you_mean
from agenteval.core.unsupported_keys import UNSUPPORTED_KEYS as NOT_YET
from agenteval.files.value_parts import Loc, iter_items, leaves
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import Mark, SourceDocument

M = TypeVar("M", bound=BaseModel)

NEVER_EMPTY: Mapping[str, tuple[str, ...]] = {
    "scenario": tuple(
        f"{at}expect.{key}"
        for at in ("", "turns.*.")
        for key in (
            *("tool_calls", "output", "limits", "limits.*"),
            *(
                f"tool_calls.{within}calls.*.{name}"
                for within in ("", "any_of.*.")
                for name in ("args", "times", "result")
            ),
        )
    ),
    "case": ("expected_tools", "expected_output_contains"),
    "config": ("gates.*",),
}
"""Keys that, without a value, would define a check or gate that never applies."""


def validate(
    model: type[M],
    value: Any,
    mark: Mark,
    *,
    kind: str,
    also: Iterable[str] = (),
    skip: Iterable[str] = (),
    found: Iterable[Problem] = (),
) -> tuple[M | None, list[Problem]]:
    """Validate ``value`` against the pydantic model ``model``. Return the instance, or all mistakes in the
    value.

    ``kind`` is the applicable part of ``agenteval.core.unsupported_keys``. When an unknown top-level key is
    reported, the names in ``also`` may be suggested as well, and the names in ``skip`` are not suggested.
    ``found`` contains mistakes that are already known; a number at the location of one of these is not
    reported twice."""
    early = {found.loc: found.problem(mark) for found in find_unsupported_keys(value, kind)}
    early.update(_empty_value_problems(value, mark, kind))
    names = (known_keys(model) | set(also)) - set(skip)
    early.update(_internal_key_problems(model, value, mark, names))
    problems = list(early.values())
    validated = None
    try:
        validated = model.model_validate(value)
    except ValidationError as error:
        problems += _translate_errors(error, model, mark, names, tuple(early))
    known = {problem.place for problem in (*found, *problems)}
    problems += (problem for problem in not_finite(value, mark) if problem.place not in known)
    return (None if problems else validated), problems


def _internal_key_problems(
    model: type[BaseModel], value: Any, mark: Mark, names: Iterable[str]
) -> Iterator[tuple[Loc, Problem]]:
    """Yield a problem for each field that is set only by the program and must not be written by an author."""
    for name in getattr(model, "INTERNAL", ()):
        if isinstance(value, Mapping) and name in value:
            yield (name,), unknown_key(name, names, mark.find((name,)))


def not_finite(value: Any, mark: Mark) -> Iterator[Problem]:
    """Yield a problem for each infinite or NaN value. No model checks the numbers in arguments, matchers,
    schemas, results and request bodies; NaN equals nothing, and JSON cannot contain these values."""
    for loc, item in leaves(value):
        if isinstance(item, float) and not isfinite(item):
            what = f"{_prefix(loc)}expected a finite number, got {display_value(item)}"
            yield Problem(what, "use a number, or quote it if it is a string", mark.find(loc).place)


def part_problems(
    model: type[BaseModel], value: Any, mark: Mark, at: Loc, *, is_whole: bool = True
) -> list[Problem]:
    """Return the mistakes in a part of a file that has its own model. ``mark`` is the mark of the file, and
    ``at`` is the path of the part in the file. If ``is_whole`` is false, the keys of the part are optional.
    """
    try:
        model.model_validate(value)
    except ValidationError as error:
        return _translate_errors(error, model, mark, known_keys(model), (), at, is_whole=is_whole)
    return []


def strict_problems(model: type[BaseModel], value: Mapping[str, Any], mark: Mark, at: Loc) -> list[Problem]:
    """Return the mistakes in a part whose model is from a different package and may allow unknown keys."""
    known = known_keys(model)
    found = [unknown_key(key, known, mark.find((*at, key))) for key in value if key not in known]
    return [*found, *part_problems(model, {k: v for k, v in value.items() if k in known}, mark, at)]


def unknown_key(name: str, known: Iterable[str], mark: Mark) -> Problem:
    return Problem(f"unknown key '{name}'", did_you_mean(name, known), mark.place)


def known_keys(model: type[BaseModel]) -> set[str]:
    """Return the keys that an author may use."""
    return set(model.model_fields) - set(getattr(model, "INTERNAL", ()))


# ── unsupported keys ─────────────────────────────────────────────────────────────────────────────


class UnsupportedKey(NamedTuple):
    """A key or value that is not supported yet."""

    loc: Loc
    """The location of the key or value."""
    name: str
    """The key or value as shown in messages."""
    remedy: str
    """The alternative to suggest to the author."""

    def problem(self, mark: Mark) -> Problem:
        return Problem(f"'{self.name}' is not supported yet", self.remedy, mark.find(self.loc).place)


def find_unsupported_keys(value: Any, kind: str) -> Iterator[UnsupportedKey]:
    """Yield the unsupported keys and values that an author wrote."""
    for pattern, remedy in NOT_YET.get(kind, {}).items():
        path, _, meant = pattern.partition("=")
        for loc in _matches(value, [*path.split("."), *([f"={meant}"] if meant else ())]):
            name = meant or next(part for part in reversed(loc) if isinstance(part, str))
            yield UnsupportedKey(loc, name, remedy)


def _empty_value_problems(value: Any, mark: Mark, kind: str) -> Iterator[tuple[Loc, Problem]]:
    for pattern in NEVER_EMPTY.get(kind, ()):
        for loc in _matches(value, [*pattern.split("."), "?"]):
            what = f"`{_dotted(loc)}` has no value"
            yield loc, Problem(what, "set a value, or remove the key", mark.find(loc).place)


def _matches(value: Any, pattern: list[str]) -> Iterator[Loc]:
    if not pattern:
        yield ()
        return
    head, *rest = pattern
    if head == "?":
        if value is None:
            yield ()
    elif head.startswith("="):
        if value == head[1:]:
            yield ()
    elif head == "*":
        for key, below in iter_items(value):
            yield from ((key, *loc) for loc in _matches(below, rest))
    elif isinstance(value, Mapping) and head in value:
        yield from ((head, *loc) for loc in _matches(value[head], rest))


# ── pydantic's errors, in the author's words ─────────────────────────────────────────────────────


def _translate_errors(
    error: ValidationError,
    model: type[BaseModel],
    mark: Mark,
    names: set[str],
    early: tuple[Loc, ...],
    at: Loc = (),
    *,
    is_whole: bool = True,
) -> list[Problem]:
    """Translate pydantic's validation errors into problems. ``early`` contains the locations that have
    already been reported. ``at`` is the location of the validated value."""
    found: dict[Loc, Problem] = {}
    for detail in error.errors(include_url=False):
        is_extra = detail["type"] == "extra_forbidden"
        loc, expected = _author_loc(model, detail["loc"], is_extra=is_extra)
        is_of_the_rest = detail["type"] == "missing" and not is_whole and len(loc) == 1
        if is_of_the_rest or loc in found or _is_consequence(detail, loc, early):
            continue
        where = mark.find((*at, *loc))
        if is_extra:
            known = names if len(loc) == 1 else _keys_of(expected)
            found[loc] = _misplaced_key(loc, expected, where) or unknown_key(str(loc[-1]), known, where)
        else:
            found[loc] = Problem(*_explain(detail, (*at, *loc), expected), where.place)
    return list(found.values())


def _is_consequence(detail: Any, loc: Loc, early: tuple[Loc, ...]) -> bool:
    """Check whether an error is only a consequence of an error that is reported separately."""
    match detail["type"]:
        case "too_short" if detail["input"]:  # an item is invalid
            return True
        case "missing" if any(seen[:-1] == loc[:-1] for seen in early):  # another key is there instead
            return True
    return any(loc[: len(reported)] == reported for reported in early)


def _author_loc(model: Any, loc: Sequence[str | int], *, is_extra: bool) -> tuple[Loc, Any]:
    """Return ``loc`` without the tags of unions, cut off at a union of plain types, along with the type that
    is expected at that location (for an unknown key, the type of the mapping that contains the key)."""
    expected: Any = model
    parts: list[str | int] = []
    path = loc[:-1] if is_extra else loc
    for index, part in enumerate(path):
        below = _type_at(expected, part)
        if below is not None:
            expected = below
            parts.append(part)
        elif not _models_in(expected):
            break
        elif is_extra or index < len(path) - 1:
            expected = _tagged_member(expected, part)
    return (*parts, loc[-1]) if is_extra else tuple(parts), expected


def _misplaced_key(loc: Loc, expected: Any, mark: Mark) -> Problem | None:
    """Return a problem for a key that belongs elsewhere, if the model of the surrounding value names a
    replacement."""
    name = str(loc[-1])
    for model in _models_in(expected):
        if remedy := getattr(model, "NOT_HERE", {}).get(name):
            around = [part for part in loc[:-1] if isinstance(part, str)]
            what = f"'{name}' is not allowed {f'in `{around[-1]}`' if around else 'here'}"
            return Problem(what, remedy, mark.place)
    return None


def members_of(annotation: Any) -> list[Any]:
    """Return the members of a union, excluding null. For any other type, return only the type itself."""
    if get_origin(annotation) is Annotated:
        return members_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [m for part in get_args(annotation) for m in members_of(part) if m is not type(None)]
    return [annotation]


def _tagged_member(annotation: Any, tag: str | int) -> Any:
    """Return the union member with the given tag, or the union itself if no member has the tag."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        is_it = any(isinstance(item, Tag) and item.tag == tag for item in metadata)
        return annotation if is_it else _tagged_member(inner, tag)
    if get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            found = _tagged_member(part, tag)
            if get_origin(found) is Annotated and found is not annotation:
                return found
    return annotation


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    return [m for m in members_of(annotation) if isinstance(m, type) and issubclass(m, BaseModel)]


def _keys_of(annotation: Any) -> set[str]:
    return {key for model in _models_in(annotation) for key in known_keys(model)}


def _type_at(annotation: Any, part: str | int) -> Any:
    """Return the type that is expected at ``part`` of a value of the given type, or ``None`` if there is no
    such part."""
    for member in members_of(annotation):
        origin, args = get_origin(member), get_args(member)
        if isinstance(part, int) and origin in (tuple, list):
            return args[0]
        if isinstance(part, str) and origin is dict:
            return args[1]
        if isinstance(member, type) and issubclass(member, BaseModel) and part in member.model_fields:
            return member.model_fields[str(part)].annotation
    return None


def _explain(detail: Any, loc: Loc, expected: Any) -> tuple[str, str]:
    """Describe a mistake and its correction."""
    prefix, value, context = _prefix(loc), detail["input"], detail.get("ctx", {})
    subject = prefix.replace("`: ", "` ")
    match detail["type"]:
        case "missing":
            parent = _dotted(loc[:-1])
            return f"`{loc[-1]}` is missing{f' in `{parent}`' if parent else ''}", ""
        case "value_error" | "assertion_error":
            what, _, remedy = str(context["error"]).partition("; ")
            return prefix + what, remedy
        case "too_short" | "string_too_short":
            return f"{subject}must not be empty", ""
        case kind if kind in _BOUNDS:
            bound, name = _BOUNDS[kind]
            return f"{subject}must be {bound} {context[name]}, got {display_value(value)}", ""
        case kind if kind.startswith(_PYDANTIC_MESSAGES):
            message = str(detail["msg"])
            return f"{prefix}{message[:1].lower()}{message[1:]}, got {display_value(value)}", ""
    return f"{prefix}expected {describe_expected_type(expected)}, got {display_value(value)}", _remedy(
        value, expected
    )


def _prefix(loc: Loc) -> str:
    """Return the dotted keys of a location as the beginning of a message, or an empty string for the root."""
    return f"`{name}`: " if (name := _dotted(loc)) else ""


def _dotted(loc: Loc) -> str:
    """Return the dotted keys of a location, without list positions."""
    return ".".join(part for part in loc if isinstance(part, str))


# Errors of types that occur only in options of other packages' adapters.
_PYDANTIC_MESSAGES = (
    *("string_pattern", "string_too_long", "too_long", "multiple_of", "url", "path", "date", "time", "uuid"),
    *("decimal", "ip_", "bytes", "callable", "is_instance", "is_subclass", "frozen_set", "set_"),
)
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("greater than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
"""The wording for each bound and the bound's key in the error context, keyed by pydantic's name of the
error."""


def _remedy(value: Any, expected: Any) -> str:
    choices = _choices(expected)
    if choices and isinstance(value, str):
        if meant := _intended_choice(value, expected):
            return f"did you mean '{meant}'?"
        near = did_you_mean(value, choices)
        return near if near.startswith("did you") else ""
    if value is None:
        return "set a value, or remove the key"
    if isinstance(value, dict) and str in members_of(expected):
        return "quote the string if it contains ': '"
    for model in _models_in(expected):
        if isinstance(value, str) and (key := _intended_key(value, model)):
            return f"use {{{key}: {value[:40]}}}"
        if hasattr(model, "EXAMPLE"):
            return f"use, for example, {model.EXAMPLE}"
    return ""


def _intended_choice(text: str, expected: Any) -> str:
    """Return the choice that is meant by a synonym, or an empty string if there is none."""
    words = (getattr(member, "MEANT", {}) for member in members_of(expected))
    return next((known[text.lower()] for known in words if text.lower() in known), "")


def _intended_key(text: str, model: type[BaseModel]) -> str:
    """Return the mapping key that was probably meant by a string written instead of the mapping, or an empty
    string if the key cannot be determined."""
    meant = getattr(model, "MEANT", {"": "name"} if "name" in model.model_fields else {})
    return next((key for part, key in meant.items() if part in text), "")


_PLAIN_TYPES = {str: "a string", bool: "true or false", int: "a whole number", float: "a number"}


def describe_expected_type(annotation: Any) -> str:
    """Describe a type in terms that the author knows, such as ``a list of strings``."""
    choices = _choices(annotation)
    others = [_describe_expected_member(m) for m in members_of(annotation) if not _choices_of(m)]
    if choices and not others:
        return f"one of {', '.join(choices)}" if len(choices) > 1 else f"'{choices[0]}'"
    shorter = [model.SHORT_FORM for model in _models_in(annotation) if hasattr(model, "SHORT_FORM")]
    return " or ".join(dict.fromkeys([*(f"'{choice}'" for choice in choices), *shorter, *others]))


def _describe_expected_member(member: Any) -> str:
    if member in _PLAIN_TYPES:
        return _PLAIN_TYPES[member]
    if get_origin(member) is not tuple:
        return "a mapping"
    if get_args(member)[0] is Any:
        return "a list"
    item = describe_expected_type(get_args(member)[0])
    return f"a list of {item.removeprefix('a ')}s" if " or " not in item else "a list"


def _choices(annotation: Any) -> list[str]:
    return [choice for member in members_of(annotation) for choice in _choices_of(member)]


def _choices_of(member: Any) -> list[str]:
    if get_origin(member) is Literal:
        return [str(arg) for arg in get_args(member)]
    if isinstance(member, type) and issubclass(member, Enum):
        return [str(item.value) for item in member]
    return []


# ── texts as they were written ───────────────────────────────────────────────────────────────────


def keep_scalar_text(
    document: SourceDocument,
    *,
    texts: frozenset[str],
    text_maps: frozenset[str] = frozenset(),
    opaque: frozenset[str] = frozenset(),
) -> Any:
    """Return the document's value, leaving numbers as written where a string is expected: ``1.50`` must not
    become ``1.5`` there. A string is expected at the keys ``texts`` (and in lists at these keys) and at any
    key of a mapping at ``text_maps``. Nothing is changed below an ``opaque`` key."""

    def walk(value: Any, mark: Mark, is_text: bool, is_map: bool) -> Any:
        if isinstance(value, dict):
            return {
                key: item
                if key in opaque
                else walk(item, mark.find((key,)), is_map or key in texts, key in text_maps)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [walk(item, mark.find((i,)), is_text, False) for i, item in enumerate(value)]
        return mark.text if is_text and mark.text is not None else value

    return walk(document.value, document.mark, False, False) if document.has_original_text else document.value
