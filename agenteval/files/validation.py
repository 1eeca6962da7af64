"""Validates what an author wrote against the models. Every mistake is reported at its place, in the author's
words."""

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
"""Keys that, without a value, would be a check or gate that never applies to anything."""


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
    """Return ``value`` as a ``model``, or everything that is wrong with it.

    ``kind`` is the part of ``agenteval.core.unsupported_keys`` that applies. ``also`` and ``skip`` are names
    that a suggestion for an unknown top-level key may and may not contain. ``found`` are mistakes that are
    already known; a number at the place of one is not reported twice."""
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
    """Yield a problem for each field that only the program fills in."""
    for name in getattr(model, "INTERNAL", ()):
        if isinstance(value, Mapping) and name in value:
            yield (name,), unknown_key(name, names, mark.find((name,)))


def not_finite(value: Any, mark: Mark) -> Iterator[Problem]:
    """Yield a problem for each infinite number or NaN. No model checks numbers in arguments, matchers,
    schemas, results and bodies of requests, nothing equals them, and JSON cannot contain them."""
    for loc, item in leaves(value):
        if isinstance(item, float) and not isfinite(item):
            what = f"{_dotted(loc)}: expected a finite number, got {display_value(item)}"
            yield Problem(what, "write a number, or put it in quotes if it is text", mark.find(loc).place)


def part_problems(
    model: type[BaseModel], value: Any, mark: Mark, at: Loc, *, is_whole: bool = True
) -> list[Problem]:
    """Return what is wrong with a part of a file that has a model of its own. ``mark`` is that of the file;
    ``at`` is the path from there to the part. If it is not ``is_whole``, its keys are not required."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        return _translate_errors(error, model, mark, known_keys(model), (), at, is_whole=is_whole)
    return []


def strict_problems(model: type[BaseModel], value: Mapping[str, Any], mark: Mark, at: Loc) -> list[Problem]:
    """Return what is wrong with a part whose model is of another package and may allow unknown keys."""
    known = known_keys(model)
    found = [unknown_key(key, known, mark.find((*at, key))) for key in value if key not in known]
    return [*found, *part_problems(model, {k: v for k, v in value.items() if k in known}, mark, at)]


def unknown_key(name: str, known: Iterable[str], mark: Mark) -> Problem:
    return Problem(f"unknown key '{name}'", did_you_mean(name, known), mark.place)


def known_keys(model: type[BaseModel]) -> set[str]:
    """Return the keys that an author may write."""
    return set(model.model_fields) - set(getattr(model, "INTERNAL", ()))


# ── unsupported keys ─────────────────────────────────────────────────────────────────────────────


class UnsupportedKey(NamedTuple):
    """A key or value that is not supported yet."""

    loc: Loc
    """Its location."""
    name: str
    """The key or value, for messages."""
    remedy: str
    """What to do instead."""

    def problem(self, mark: Mark) -> Problem:
        return Problem(f"'{self.name}' is not supported yet", self.remedy, mark.find(self.loc).place)


def find_unsupported_keys(value: Any, kind: str) -> Iterator[UnsupportedKey]:
    """Yield the unsupported keys and values in what an author wrote."""
    for pattern, remedy in NOT_YET.get(kind, {}).items():
        path, _, meant = pattern.partition("=")
        for loc in _matches(value, [*path.split("."), *([f"={meant}"] if meant else ())]):
            name = meant or next(part for part in reversed(loc) if isinstance(part, str))
            yield UnsupportedKey(loc, name, remedy)


def _empty_value_problems(value: Any, mark: Mark, kind: str) -> Iterator[tuple[Loc, Problem]]:
    for pattern in NEVER_EMPTY.get(kind, ()):
        for loc in _matches(value, [*pattern.split("."), "?"]):
            what = f"{_dotted(loc)}: it has no value"
            yield loc, Problem(what, "write a value, or remove the key", mark.find(loc).place)


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
    """Translate pydantic's errors. ``early`` has the locations that are reported already. ``at`` is the
    location of the model's value."""
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
    """Check whether an error only follows from one that is reported on its own."""
    match detail["type"]:
        case "too_short" if detail["input"]:  # an item is invalid
            return True
        case "missing" if any(seen[:-1] == loc[:-1] for seen in early):  # another key is there instead
            return True
    return any(loc[: len(reported)] == reported for reported in early)


def _author_loc(model: Any, loc: Sequence[str | int], *, is_extra: bool) -> tuple[Loc, Any]:
    """Return ``loc`` without the tags of unions and cut at a union of plain types, and the type that is
    expected there (for an unknown key: around it)."""
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
    """Return a problem for a key that belongs elsewhere, if the surrounding model names a replacement."""
    name = str(loc[-1])
    for model in _models_in(expected):
        if remedy := getattr(model, "NOT_HERE", {}).get(name):
            around = [part for part in loc[:-1] if isinstance(part, str)]
            what = (
                f"{around[-1]}: '{name}' is not allowed here" if around else f"'{name}' is not allowed here"
            )
            return Problem(what, remedy, mark.place)
    return None


def members_of(annotation: Any) -> list[Any]:
    """Return the members of a union without null; any other type is its own only member."""
    if get_origin(annotation) is Annotated:
        return members_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [m for part in get_args(annotation) for m in members_of(part) if m is not type(None)]
    return [annotation]


def _tagged_member(annotation: Any, tag: str | int) -> Any:
    """Return the member of a union that has a tag; the union itself if none has."""
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
    """Return the type that is expected at ``part`` of a value of this type; ``None`` if there is no such
    part."""
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
    """Return what is wrong and what to do."""
    prefix, value, context = _prefix(loc), detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return f"{_prefix(loc[:-1])}'{loc[-1]}' is missing", ""
        case "value_error" | "assertion_error":
            what, _, remedy = str(context["error"]).partition("; ")
            return prefix + what, remedy
        case "too_short" | "string_too_short":
            return f"{prefix}must not be empty", ""
        case kind if kind in _BOUNDS:
            bound, name = _BOUNDS[kind]
            return f"{prefix}must be {bound} {context[name]}, got {display_value(value)}", ""
        case kind if kind.startswith(_PYDANTIC_MESSAGES):
            message = str(detail["msg"])
            return f"{prefix}{message[:1].lower()}{message[1:]}, got {display_value(value)}", ""
    return f"{prefix}expected {describe_expected_type(expected)}, got {display_value(value)}", _remedy(
        value, expected
    )


def _prefix(loc: Loc) -> str:
    """Return the dotted keys of a location as the beginning of a message; empty for the root."""
    return f"{name}: " if (name := _dotted(loc)) else ""


def _dotted(loc: Loc) -> str:
    """Return the keys of a location, without the positions of lists."""
    return ".".join(part for part in loc if isinstance(part, str))


# Errors of types that occur only in options of other packages' adapters.
_PYDANTIC_MESSAGES = (
    *("string_pattern", "string_too_long", "too_long", "multiple_of", "url", "path", "date", "time", "uuid"),
    *("decimal", "ip_", "bytes", "callable", "is_instance", "is_subclass", "frozen_set", "set_"),
)
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
"""The words for a bound and its key in the error's context, by pydantic's name of the error."""


def _remedy(value: Any, expected: Any) -> str:
    choices = _choices(expected)
    if choices and isinstance(value, str):
        if meant := _intended_choice(value, expected):
            return f"did you mean '{meant}'?"
        near = did_you_mean(value, choices)
        return near if near.startswith("did you") else ""
    if value is None:
        return "write a value, or remove the key"
    if isinstance(value, dict) and str in members_of(expected):
        return "put the text in quotes if ': ' is part of it"
    for model in _models_in(expected):
        if isinstance(value, str) and (key := _intended_key(value, model)):
            return f"write {{{key}: {value[:40]}}}"
        if hasattr(model, "EXAMPLE"):
            return f"write for example {model.EXAMPLE}"
    return ""


def _intended_choice(text: str, expected: Any) -> str:
    """Return the choice that another word for it means; empty if there is none."""
    words = (getattr(member, "MEANT", {}) for member in members_of(expected))
    return next((known[text.lower()] for known in words if text.lower() in known), "")


def _intended_key(text: str, model: type[BaseModel]) -> str:
    """Return the key of a mapping for which a text in place of the mapping was probably meant; empty if
    unknown."""
    meant = getattr(model, "MEANT", {"": "name"} if "name" in model.model_fields else {})
    return next((key for part, key in meant.items() if part in text), "")


_PLAIN_TYPES = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def describe_expected_type(annotation: Any) -> str:
    """Describe a type in the author's words: ``a list of texts``."""
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
    """Return the document's value with numbers as they were written where text is expected: ``1.50`` is not
    ``1.5`` there. Text is expected at the keys ``texts`` (and in lists there) and at any key of a mapping at
    ``text_maps``; nothing is changed below an ``opaque`` key."""

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
