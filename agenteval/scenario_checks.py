"""Checks of a scenario that its models cannot make: templates, matchers and schemas, each at its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from agenteval.detectors.schema import dangling
from agenteval.errors import Problem, did_you_mean
from agenteval.expressions import expression
from agenteval.patterns import misuse
from agenteval.scenario import MatchMode, Tool
from agenteval.validation import known_keys, shown, unknown_key
from agenteval.yaml_source import Mark

MATCHERS = ("$any", "$in", "$regex", "$approx")
_APPROX_KEYS = ("value", "abs", "rel")

# As `tools.fill` reads them: `$${` is an escape, and a reference ends at the first `}`.
_REFERENCE = expression(r"\$\$\{|\$\{(?P<name>[^}]*)(?P<end>\}?)")

Found: TypeAlias = Iterator[Problem]


# ── the tool world ───────────────────────────────────────────────────────────────────────────────


def tool_problems(tool: Any, mark: Mark) -> Found:
    """What is wrong with a tool's ``parameters``, with its answers and with the ``${…}`` in them."""
    if not isinstance(tool, Mapping):
        return
    if "base" in tool:
        yield unknown_key("base", known_keys(Tool), mark.find(("base",)))
    parameters = tool.get("parameters")
    if isinstance(parameters, Mapping):
        yield from _schema_problems(parameters, mark.find(("parameters",)))
    known = _argument_names(parameters)
    yield from _answer_problems(tool, mark, known)
    sequence = tool.get("sequence")
    for index, step in enumerate(sequence if isinstance(sequence, list) else ()):
        if isinstance(step, Mapping):
            yield from _answer_problems(step, mark.find(("sequence", index)), known)


def _answer_problems(step: Mapping[str, Any], mark: Mark, known: frozenset[str] | None) -> Found:
    for key in ("error", "sequence", "python"):
        if key in step and step[key] is None:
            remedy = "write a value, or drop the key; `returns: null` answers null"
            yield Problem(f"{key}: null does not say how the tool answers", remedy, mark.find((key,)).place)
    for key in ("returns", "error"):
        if key in step:
            yield from _template_problems(step[key], mark.find((key,)), known)


def _argument_names(parameters: Any) -> frozenset[str] | None:
    """The only names that arguments may have; ``None`` where others are possible."""
    if not isinstance(parameters, Mapping) or not isinstance(parameters.get("properties"), Mapping):
        return None
    if parameters.get("additionalProperties") or "patternProperties" in parameters:
        return None
    return frozenset(parameters["properties"])


def _template_problems(template: Any, mark: Mark, known: frozenset[str] | None) -> Found:
    if isinstance(template, str):
        if "${" in template:
            yield from _reference_problems(template, mark, known)
    elif isinstance(template, Mapping):
        for key, value in template.items():
            yield from _template_problems(value, mark.find((key,)), known)
    elif isinstance(template, list):
        for index, value in enumerate(template):
            yield from _template_problems(value, mark.find((index,)), known)


def _reference_problems(text: str, mark: Mark, known: frozenset[str] | None) -> Found:
    for match in _REFERENCE.finditer(text):
        name = match["name"]
        if name is None:
            continue
        if not match["end"]:
            remedy = "close it with '}', or write $${ for the characters themselves"
            yield Problem(f"'${{{name[:40]}' is not closed", remedy, mark.place)
            continue
        root, *path = name.strip().split(".")
        if root != "args" or not all(path):
            yield Problem(f"'${{{name}}}' names nothing", _template_remedy(root, path), mark.place)
        elif path and known is not None and path[0] not in known:
            what = f"'${{{name}}}': the tool's parameters have no '{path[0]}'"
            yield Problem(what, did_you_mean(path[0], known), mark.place)


def _template_remedy(root: str, path: list[str]) -> str:
    near = did_you_mean(root, ("args",))
    if root != "args" and near.startswith("did you"):
        return f"did you mean '${{{'.'.join(('args', *filter(None, path)))}}}'?"
    return "write ${args.NAME} for an argument of the call, or $${ for the characters themselves"


def _schema_problems(schema: Mapping[str, Any], mark: Mark) -> Found:
    for what, path in _schema_mistakes(json.dumps(schema, sort_keys=True)):
        where = mark.find(path)
        yield Problem(f"parameters: {what}", "write a JSON Schema of type object", where.place)


@lru_cache(maxsize=4096)
def _schema_mistakes(text: str) -> tuple[tuple[str, tuple[str | int, ...]], ...]:
    """By content: thousands of scenarios may share one schema, and checking takes milliseconds."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator

    schema = json.loads(text)
    if schema.get("type") != "object":
        kind = shown(schema.get("type")) if "type" in schema else "missing"
        return ((f"its type must be object, and is {kind}", ("type",)),)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return ((f"not a JSON Schema: {error.message[:200]}", tuple(error.absolute_path)),)
    nowhere = "leads nowhere: only what is in these parameters can be referred to"
    return tuple((f"the reference '{to}' {nowhere}", path) for to, path in dangling(schema))


# ── expected calls ───────────────────────────────────────────────────────────────────────────────


def expectation_problems(expect: Any, mark: Mark) -> Found:
    """What is wrong with the criteria, and with the names and matchers of expected and forbidden calls; and
    lists that hold nothing."""
    if not isinstance(expect, Mapping):
        return
    yield from _empty_lists(expect, mark)
    criteria = mark.find(("criteria",))
    yield from blank_problems(expect.get("criteria"), criteria, "criteria: an empty criterion asks nothing")
    if isinstance(calls := expect.get("tool_calls"), Mapping):
        for group in ("calls", "forbidden"):
            yield from _call_problems(calls.get(group), mark.find(("tool_calls", group)))


def blank_problems(value: Any, mark: Mark, what: str) -> Found:
    """``what`` for each text of a list, or for a text alone, in which nothing is written."""
    for index, text in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(text, str) and not text.strip():
            where = mark.find((index,)) if isinstance(value, list) else mark
            yield Problem(what, "write the text that is meant, or drop it", where.place)


def _empty_lists(expect: Mapping[str, Any], mark: Mark, within: str = "") -> Found:
    """A list in which nothing is asked for checks nothing. No call at all (``calls: []``) is something to ask
    for, but not where further calls are allowed."""
    for key, value in expect.items():
        if key in ("output", "tool_calls") and isinstance(value, Mapping) and not within:
            yield from _empty_lists(value, mark.find((key,)), f"{key}.")
        elif value == [] and not (key == "calls" and _calls_may_be_empty(expect)):
            remedy = "write what is to be checked, or drop the key; null takes away what defaults say"
            yield Problem(f"{within}{key}: an empty list checks nothing", remedy, mark.find((key,)).place)


def _calls_may_be_empty(tool_calls: Mapping[str, Any]) -> bool:
    """Where they say that there is to be none; and where the whole is refused for saying nothing."""
    closed = (MatchMode.STRICT, MatchMode.UNORDERED, MatchMode.WITHIN)
    return tool_calls.get("match") in closed or not tool_calls.get("forbidden")


def _call_problems(entries: Any, mark: Mark) -> Found:
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, Mapping):
            continue
        where = mark.find((index,))
        yield from blank_problems(entry.get("name"), where.find(("name",)), "no tool has an empty name")
        if "args" in entry:
            yield from _matcher_problems(entry["args"], where.find(("args",)))


def _matcher_problems(value: Any, mark: Mark) -> Found:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _matcher_problems(item, mark.find((index,)))
    if not isinstance(value, Mapping):
        return
    reserved = [key for key in value if key.startswith("$")]
    if not reserved:
        for key, item in value.items():
            yield from _matcher_problems(item, mark.find((key,)))
        return
    for key in reserved:
        where = mark.find((key,))
        if key not in MATCHERS:
            yield Problem(f"unknown matcher '{key}'", did_you_mean(key, MATCHERS), where.place)
        elif fault := _operand_fault(key, value[key]):
            yield Problem(f"{key}: {fault[0]}", fault[1], where.place)
        elif key == "$in":
            yield from _matcher_problems(value[key], where)
    if len(value) > 1:
        what = f"a matcher stands alone in its mapping, and '{reserved[0]}' does not"
        yield Problem(what, "keys that begin with '$' are reserved for matchers", mark.place)


def _operand_fault(matcher: str, operand: Any) -> tuple[str, str] | None:
    """What is wrong with what a matcher was given, and a remedy."""
    if matcher == "$any" and operand is not True:
        return f"expected true, got {shown(operand)}", "write {$any: true}"
    if matcher == "$in" and not (isinstance(operand, list) and operand):
        got = "an empty list" if operand == [] else shown(operand)
        return f"expected a list of values, got {got}", "write {$in: [one, two]}"
    if matcher == "$regex":
        if not isinstance(operand, str):
            return f"expected a text, got {shown(operand)}", "put it in quotes"
        what, _, remedy = misuse(operand).partition("; ")
        return (what, remedy) if what else None
    if matcher == "$approx":
        return _approx_fault(operand)
    return None


def _approx_fault(operand: Any) -> tuple[str, str] | None:
    example = "write {$approx: 3.5} or {$approx: {value: 3.5, abs: 0.1}}"
    if _is_number(operand):
        return None
    if not isinstance(operand, Mapping):
        return f"expected a number or a mapping, got {shown(operand)}", example
    for key, value in operand.items():
        if key not in _APPROX_KEYS:
            return f"unknown key '{key}'", did_you_mean(key, _APPROX_KEYS)
        if not _is_number(value) or (key != "value" and value < 0):
            return f"{key}: expected a number, got {shown(value)}", example
    return None if "value" in operand else ("'value' is missing", example)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
