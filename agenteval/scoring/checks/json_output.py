"""``expect.output.json_schema`` and ``expect.output.json``: checks for structured (JSON) output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from agenteval.core.errors import Mistake
from agenteval.core.excerpts import excerpt, one_line
from agenteval.core.json_schema import build_schema_checker, schema_mistakes
from agenteval.core.json_text import finite_number
from agenteval.core.plurals import plural
from agenteval.files.value_matching import find_differences, find_matcher_mistakes, may_be_absent
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule

Path: TypeAlias = tuple[str | int, ...]

_FENCED = re.compile(r"(`{3,}|~{3,})[^\n`]*\n(.*)\n[ \t]*\1", re.DOTALL)
_PART = re.compile(r'(?:(?:\A|(?<!\A)\.)(?P<name>[^.\[\]"]+)|\[(?P<index>\d{1,9})\]|\["(?P<key>[^"]*)"\])')
_KEYS_SHOWN = 20
_FAULTS_SHOWN = 5


# ── the JSON of an answer ────────────────────────────────────────────────────────────────────────


class _NoJsonError(ValueError):
    """Raised for an answer that is not JSON. The message explains why."""


def _parse_json(answer: str) -> Any:
    """Parse an answer as JSON.

    A code fence that encloses the entire answer is removed; JSON surrounded by other text is rejected. Raise
    ``_NoJsonError`` if the answer is not JSON."""
    text = answer.strip()
    if fenced := _FENCED.fullmatch(text):
        text = fenced[2]
    try:
        return json.loads(
            text,
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_no_constant,
            parse_float=_float,
        )
    except RecursionError:
        raise _NoJsonError("is nested too deeply") from None
    except _NoJsonError:
        raise
    except json.JSONDecodeError as error:
        raise _NoJsonError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None
    except ValueError as error:
        raise _NoJsonError(f"is not JSON ({error})") from None


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object and reject duplicate keys, because parsers differ in which value they use."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NoJsonError(f"is ambiguous: the key {excerpt(twice, 40)} is duplicated")
    return made


def _no_constant(name: str) -> Any:
    raise _NoJsonError(f"is not JSON ({name})")


def _float(digits: str) -> float:
    try:
        return finite_number(digits)
    except ValueError:
        raise _NoJsonError(f"is not usable JSON ({one_line(digits, 40)} is infinite)") from None


# ── json_schema ──────────────────────────────────────────────────────────────────────────────────


def check_json_schema(schema: Mapping[str, Any], seen: CheckInput) -> CheckOutcome:
    """Check that an answer is JSON and is valid under the JSON Schema."""
    find_fault = build_schema_checker(json.dumps(schema, sort_keys=True))
    faults = []
    for answer in seen.answers:
        try:
            fault = find_fault(_parse_json(answer))
        except _NoJsonError as error:
            fault = f"it {error}"
        except RecursionError:
            return CheckOutcome(None, "the schema or the answer is nested too deeply")
        if not fault:
            return CheckOutcome(True, f"matches the schema: {excerpt(answer, 80)}")
        faults.append(fault)
    reason = f": {one_line(faults[-1], 600)}" if faults else ""
    return CheckOutcome(False, f"no JSON that matches the schema{reason}; in {seen.quoted_answers}")


def find_schema_mistakes(written: Any) -> Iterator[Mistake]:
    if written == {}:
        yield Mistake(
            "`output.json_schema` is empty and checks nothing",
            "add constraints, or remove the key",
        )
    for what, path in schema_mistakes(written) if isinstance(written, Mapping) else ():
        yield Mistake(f"`output.json_schema`: {what}", "use a valid JSON Schema", path)


# ── json ─────────────────────────────────────────────────────────────────────────────────────────


def check_json_values(expected_values: Mapping[str, Any], seen: CheckInput) -> CheckOutcome:
    """Check that an answer is JSON that has the expected value at every path (JSON path)."""
    nearest: dict[str, str] | None = None
    not_json = ""
    for answer in seen.answers:
        try:
            value = _parse_json(answer)
        except _NoJsonError as error:
            not_json = f"it {error}"
            continue
        faults = {
            path: fault
            for path, expected in expected_values.items()
            if (fault := _find_fault(path, expected, value))
        }
        if not faults:
            return CheckOutcome(True, f"matches {_format_keys(list(expected_values))}: {excerpt(answer, 80)}")
        if nearest is None or len(faults) < len(nearest):
            nearest = faults
    if nearest is None:
        detail = f"{not_json}; " if not_json else ""
        return CheckOutcome(
            False,
            f"no JSON for {_format_keys(list(expected_values))}: {detail}{seen.quoted_answers}",
            parts=list(expected_values),
        )
    detail = "; ".join(list(nearest.values())[:_FAULTS_SHOWN])
    more = len(nearest) - _FAULTS_SHOWN
    also = f"; and {more} more" if more > 0 else ""
    return CheckOutcome(
        False, f"{one_line(detail, 1000)}{also}; in {seen.quoted_answers}", parts=list(nearest)
    )


_HOLDERS: Mapping[type, tuple[Any, str]] = {int: (list, "a list"), str: (dict, "an object")}
"""The container type that each type of path part requires, along with the name of that container type."""


def _find_fault(path: str, expected: Any, value: Any) -> str:
    """Describe what is wrong at ``path``, or return an empty string if nothing is wrong."""
    so_far = ""
    for part in _parts(path) or ():
        where = so_far or "the answer"
        kind, name = _HOLDERS[type(part)]
        if not isinstance(value, kind):
            return f"{path}: {where} is not {name}"
        if absence := _absence(part, value):
            return "" if may_be_absent(expected) else f"{path}: {where} has {absence}"
        value = value[part]
        so_far = f"{so_far}[{part}]" if isinstance(part, int) else f"{so_far}.{part}" if so_far else part
    return "; ".join(map(str, find_differences(expected, value, path=path)))


def _absence(part: str | int, value: Any) -> str:
    """Describe the contents of a list or an object that does not contain the part. Return an empty string if
    it contains the part."""
    if isinstance(part, int):
        return "" if part < len(value) else plural(len(value), "item")
    if part in value:
        return ""
    keys = f"; its keys are {_format_keys(list(value))}" if value else ""
    return f"no {excerpt(part, 40)}{keys}"


def _parts(path: str) -> Path | None:
    """Parse a path such as ``items[0].price`` into keys and indexes, or return ``None`` if the string is not
    a path.

    A key that contains a dot or a bracket is written in ``["…"]``."""
    found: list[str | int] = []
    at = 0
    while at < len(path):
        part = _PART.match(path, at)
        if part is None:
            return None
        found.append(int(part["index"]) if part["index"] else part["name"] or part["key"] or "")
        at = part.end()
    return tuple(found) or None


def _format_keys(names: Sequence[str]) -> str:
    more = f" and {len(names) - _KEYS_SHOWN} more" if len(names) > _KEYS_SHOWN else ""
    return one_line(", ".join(names[:_KEYS_SHOWN]), 400) + more


def find_json_value_mistakes(written: Any) -> Iterator[Mistake]:
    if written == {}:
        yield Mistake("`output.json` is empty and checks nothing", "add values to check, or remove the key")
    for path, expected in written.items() if isinstance(written, Mapping) else ():
        if str(path).startswith("$"):
            remedy = "start with a key of the answer, such as `items[0].price`"
            yield Mistake(f"`output.json`: '{path}' is not a valid path", remedy, (path,))
        elif _parts(str(path)) is None:
            remedy = (
                'use a path such as `items[0].price` or `[0].price`; put other keys in brackets: `["a.b"]`'
            )
            yield Mistake(f"`output.json`: '{path}' is not a valid path", remedy, (path,))
        yield from find_matcher_mistakes(expected, (path,))


JSON = (
    CheckRule(
        "output.json_schema", check_json_schema, needs_answers=True, find_mistakes=find_schema_mistakes
    ),
    CheckRule("output.json", check_json_values, needs_answers=True, find_mistakes=find_json_value_mistakes),
)
