"""Checks a scenario for mistakes that its models cannot find, in templates, schemas and the values of rules,
and reports the location of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from agenteval.core.errors import Problem, did_you_mean
from agenteval.core.json_schema import schema_mistakes, schema_violations
from agenteval.core.protocols import ExpectRule
from agenteval.core.scenario import Scenario, ScriptedTurn, Tool, UserToolCall
from agenteval.files.validation import known_keys, unknown_key
from agenteval.files.value_matching import find_matcher_mistakes
from agenteval.files.value_parts import leaves, list_at, value_at
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import Mark

# The syntax of `tools.fill`: `$${` is an escape, and a reference ends at the first `}`.
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^}]*)(?P<end>\}?)")

Problems: TypeAlias = Iterator[Problem]


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def tool_problems(tool: Any, mark: Mark) -> Problems:
    """Yield the mistakes in a tool's ``parameters``, in its mocked answers, and in the ``${…}`` references in
    these answers."""
    if not isinstance(tool, Mapping):
        return
    for key in Tool.INTERNAL & tool.keys():
        yield unknown_key(key, known_keys(Tool), mark.find((key,)))
    parameters = tool.get("parameters")
    if isinstance(parameters, Mapping):
        yield from _schema_problems(parameters, mark.find(("parameters",)))
    known = argument_names(parameters)
    yield from _answers_problems(tool, mark, known)
    for index, rule in enumerate(rules := list_at(tool, "rules")):
        if isinstance(rule, Mapping):
            yield from _answers_problems(rule, mark.find(("rules", index)), known)
            yield from _condition_problems(rule.get("when"), mark.find(("rules", index, "when")), known)
            if "when" not in rule and index < len(rules) - 1:
                what = "the rules below are never used, because this one answers every call"
                yield Problem(what, "add `when`, or make it the last rule", mark.find(("rules", index)).place)


def _answers_problems(answer: Mapping[str, Any], mark: Mark, known: frozenset[str] | None) -> Problems:
    yield from _answer_problems(answer, mark, known)
    for index, step in enumerate(list_at(answer, "sequence")):
        if isinstance(step, Mapping):
            yield from _answer_problems(step, mark.find(("sequence", index)), known)


def _condition_problems(when: Any, mark: Mark, known: frozenset[str] | None) -> Problems:
    """Yield the mistakes in the arguments of a condition: misused matchers, and unknown parameters."""
    args = when.get("args") if isinstance(when, Mapping) else None
    if not isinstance(args, Mapping):
        return
    for mistake in find_matcher_mistakes(args):
        yield Problem(mistake.what, mistake.remedy, mark.find(("args", *mistake.path)).place)
    for name in args:
        if known is not None and isinstance(name, str) and not name.startswith("$") and name not in known:
            what = f"`when`: the tool has no parameter '{name}'"
            yield Problem(what, did_you_mean(name, known), mark.find(("args", name)).place)


def _answer_problems(step: Mapping[str, Any], mark: Mark, known: frozenset[str] | None) -> Problems:
    for key in ("error", "sequence", "python", "rules"):
        if key in step and step[key] is None:
            remedy = "set a value, or remove the key (for a null result, use `returns: null`)"
            yield Problem(
                f"`{key}: null` does not define how the tool answers", remedy, mark.find((key,)).place
            )
    has_row = "sql" in step
    for key in ("returns", "error"):
        if key in step:
            yield from _template_problems(step[key], mark.find((key,)), known, has_row=has_row)
    none = step.get("none")
    for key, template in none.items() if isinstance(none, Mapping) else ():
        yield from _template_problems(template, mark.find(("none", key)), known)


def argument_names(parameters: Any) -> frozenset[str] | None:
    """Return the names that arguments may have, or ``None`` if any other names are possible."""
    if not isinstance(parameters, Mapping) or not isinstance(parameters.get("properties"), Mapping):
        return None
    if parameters.get("additionalProperties") or "patternProperties" in parameters:
        return None
    return frozenset(parameters["properties"])


def _template_problems(
    template: Any, mark: Mark, known: frozenset[str] | None, *, has_row: bool = False
) -> Problems:
    """Yield the mistakes in the references of a template. With ``has_row``, it may refer to the first row
    that SQL found."""
    for loc, text in leaves(template):
        if isinstance(text, str) and "${" in text:
            yield from _reference_problems(text, mark.find(loc), known, has_row=has_row)


def _reference_problems(text: str, mark: Mark, known: frozenset[str] | None, *, has_row: bool) -> Problems:
    for match in _REFERENCE.finditer(text):
        name = match["name"]
        if name is None:
            continue
        if not match["end"]:
            remedy = "close it with '}', or use $${ for a literal ${"
            yield Problem(f"'${{{name[:40]}' is not closed", remedy, mark.place)
            continue
        root, *path = name.strip().split(".")
        if has_row and root == "result" and len(path) == 1 and path[0]:
            continue
        if root != "args" or not all(path):
            yield Problem(f"'${{{name}}}' is not a valid reference", _template_remedy(root, path), mark.place)
        elif path and known is not None and path[0] not in known:
            what = f"'${{{name}}}' refers to the unknown parameter '{path[0]}'"
            yield Problem(what, did_you_mean(path[0], known), mark.place)


def _template_remedy(root: str, path: list[str]) -> str:
    near = did_you_mean(root, ("args",))
    if root != "args" and near.startswith("did you"):
        return f"did you mean '${{{'.'.join(('args', *filter(None, path)))}}}'?"
    return "use ${args.NAME} for an argument of the call, or $${ for a literal ${"


def _schema_problems(schema: Mapping[str, Any], mark: Mark) -> Problems:
    remedy = "use a JSON Schema of type object"
    if schema.get("type") != "object":
        kind = display_value(schema.get("type")) if "type" in schema else "missing"
        what = f"`parameters.type` must be object, but is {kind}"
        yield Problem(what, remedy, mark.find(("type",)).place)
        return
    for what, path in schema_mistakes(schema):
        yield Problem(f"`parameters`: {what}", remedy, mark.find(path).place)


def user_tool_problems(scenario: Scenario, mark: Mark) -> Problems:
    """Yield the mistakes in the tools of a scenario's user, and in the calls that scripted turns make."""
    for name, tool in scenario.user_tools.items():
        where = mark.find(("user_tools", name))
        if name in scenario.tools:
            what = f"'{name}' is a tool of both the agent and the user"
            yield Problem(what, "rename one of them", where.place)
        if not tool.is_mocked:
            remedy = "add `returns`, `error`, `sequence`, `rules`, `sql` or `python`"
            yield Problem(f"the user's tool '{name}' has no answer", remedy, where.place)
        for key in ("reads", "writes", "destructive", "faults"):
            if getattr(tool, key):
                what = f"`{key}` has no effect for a tool of the user"
                yield Problem(what, "remove it", where.find((key,)).place)
    if scenario.user_tools:
        yield from _calls_of_user_tools(scenario, mark)
    for index, turn in enumerate(scenario.turns or ()):
        for at, call in enumerate(turn.tool_calls if isinstance(turn, ScriptedTurn) else ()):
            yield from _user_call_problems(call, scenario, mark.find(("turns", index, "tool_calls", at)))


def _calls_of_user_tools(scenario: Scenario, mark: Mark) -> Problems:
    """Yield the expectations that the agent calls a tool of the user, which it cannot."""
    for path, expect in scenario.expectations:
        for call in expect.tool_calls.expected_calls if expect.tool_calls else ():
            if call.name in scenario.user_tools and call.name not in scenario.tools:
                keys = [int(key) if key.isdecimal() else key for key in path.split(".")]
                what = f"'{call.name}' is a tool of the user, which the agent cannot call"
                remedy = "expect its effect by `state`, or move it to `tools`"
                yield Problem(what, remedy, mark.find((*keys, "tool_calls")).place)


def _user_call_problems(call: UserToolCall, scenario: Scenario, mark: Mark) -> Problems:
    tool = scenario.user_tools.get(call.name)
    if tool is None:
        what = f"the user has no tool '{call.name}'"
        remedy = did_you_mean(call.name, scenario.user_tools) or "declare it under `user_tools`"
        yield Problem(what, remedy, mark.find(("name",)).place)
    elif tool.parameters is not None and (
        broken := schema_violations(tool.parameters, call.args, nullable=False)
    ):
        what = f"the arguments violate the schema of '{call.name}': {broken}"
        yield Problem(what, "correct them", mark.find(("args",)).place)


# ── expectations ─────────────────────────────────────────────────────────────────────────────────


def expectation_problems(expect: Any, mark: Mark, rules: Iterable[ExpectRule]) -> Problems:
    """Yield a problem for each mistake in the criteria, for each mistake in the value of a rule, and for each
    empty list."""
    if not isinstance(expect, Mapping):
        return
    yield from _empty_lists(expect, mark)
    criteria = mark.find(("criteria",))
    yield from blank_problems(expect.get("criteria"), criteria, "an empty criterion checks nothing")
    for rule in rules:
        path = rule.name.split(".")
        written = value_at(expect, path)
        for mistake in rule.find_mistakes(written) if written is not None else ():
            where = mark.find((*path, *mistake.path))
            yield Problem(mistake.what, mistake.remedy, where.place)


def blank_problems(value: Any, mark: Mark, what: str) -> Problems:
    """Yield the problem ``what`` for each blank string in a list, or for a single blank string."""
    for index, text in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(text, str) and not text.strip():
            where = mark.find((index,)) if isinstance(value, list) else mark
            yield Problem(what, "specify the text to look for, or remove it", where.place)


_EMPTY_LISTS_OF_MODEL = ("tool_calls", "tool_calls.calls", "tool_calls.any_of")
"""Lists that the model itself checks if they are empty. The model determines when an empty list means that no
call is expected."""


def _empty_lists(expect: Mapping[str, Any], mark: Mark, within: str = "") -> Problems:
    """Find empty lists of expectations, which check nothing."""
    for key, value in expect.items():
        if key in ("output", "tool_calls") and isinstance(value, Mapping) and not within:
            yield from _empty_lists(value, mark.find((key,)), f"{key}.")
        elif value == [] and f"{within}{key}" not in _EMPTY_LISTS_OF_MODEL:
            remedy = "specify what to check, or remove the key (null overrides `defaults`)"
            yield Problem(
                f"`{within}{key}` is an empty list, which checks nothing", remedy, mark.find((key,)).place
            )
