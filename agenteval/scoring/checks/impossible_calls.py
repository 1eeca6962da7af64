"""Finds expected tool calls that can never be made as expected, because the scenario itself makes them
impossible."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from agenteval.core.json_schema import schema_violations
from agenteval.core.scenario import (
    NO_CALL,
    ArgsMatch,
    CallPattern,
    CallsExpectation,
    ExpectedCall,
    ForbiddenCall,
    Scenario,
)
from agenteval.files.value_matching import describe_expected, matches_value, may_be_absent


class ImpossibleCall(NamedTuple):
    """An expected call that cannot be made."""

    path: str
    """The path of the expectation."""
    tool: str
    why: str
    """The reason; it completes "expects a call of pay, but …"."""


def find_impossible_calls(
    scenario: Scenario, other_tools: Collection[str] | None
) -> Iterator[ImpossibleCall]:
    """Yield the expectations in a scenario that cannot be satisfied, each with one reason.

    ``other_tools`` are additional tools that the scenario's agents are known to have, or ``None`` if the
    agents may have any tools."""
    for place in _places(scenario):
        reasons = [_find_reason(each, place, scenario, other_tools) for each in place.alternatives]
        if reasons and all(reasons):
            tool, why = next(filter(None, reasons))
            yield ImpossibleCall(place.path, tool, why)


class _Place(NamedTuple):
    """A place in the scenario where calls are expected."""

    path: str
    alternatives: tuple[CallsExpectation, ...]
    """The alternatives. Satisfying any one of them is enough."""
    forbidden: tuple[ForbiddenCall, ...]
    """The calls that are forbidden at this place, including the calls that are forbidden in the whole
    conversation."""
    no_call: str
    """The path that forbids every call at this place, if that path is not the place's own path; otherwise an
    empty string."""


def _places(scenario: Scenario) -> Iterator[_Place]:
    conversation_rule = scenario.expect.tool_calls
    everywhere = conversation_rule.forbidden if conversation_rule else ()
    no_call = _without_calls(scenario)
    for path, expect in scenario.expectations:
        if (rule := expect.tool_calls) is not None:
            forbidden = everywhere if rule is conversation_rule else (*rule.forbidden, *everywhere)
            elsewhere = "" if no_call == f"{path}.tool_calls" else no_call
            yield _Place(f"{path}.tool_calls", rule.alternatives, forbidden, elsewhere)
    if scenario.case and (named := scenario.case.tool_calls):
        elsewhere = "" if no_call == _SHORT_FORM else no_call
        yield _Place(_SHORT_FORM, named.alternatives, everywhere, elsewhere)


_SHORT_FORM = "expected_tools"


def _without_calls(scenario: Scenario) -> str:
    """Return the path that forbids all calls in the whole conversation, or an empty string if there is no
    such path."""
    if scenario.case and scenario.case.allows_no_call:
        return _SHORT_FORM
    conversation_rule = scenario.expect.tool_calls
    closed = (
        conversation_rule is not None
        and conversation_rule.any_of is None
        and conversation_rule.is_closed
        and conversation_rule.calls == ()
    )
    return "expect.tool_calls" if closed else ""


def _find_reason(
    expected: CallsExpectation, place: _Place, scenario: Scenario, other_tools: Collection[str] | None
) -> tuple[str, str] | None:
    """Find the first required call in an alternative that cannot be made. Return the name of its tool, and
    the reason."""
    for call in expected.calls or ():
        if call.bounds(expected.match)[0] == 0:
            continue
        if place.no_call:
            return call.name, f"`{place.no_call}: {NO_CALL}` allows no calls"
        if any(_covers(rule, call) for rule in place.forbidden):
            return call.name, "forbids the same call"
        if why := _explain_undeclared(call, scenario, other_tools) or _explain_excluded(call, scenario):
            return call.name, why
    return None


def _covers(rule: CallPattern, call: ExpectedCall) -> bool:
    """Check whether every call that matches the expectation is also forbidden."""
    if rule.name != call.name or rule.agent not in (None, call.agent):
        return False
    if rule.mode is ArgsMatch.IGNORE:
        return True
    if call.mode is ArgsMatch.IGNORE or (rule.mode is ArgsMatch.EXACT and call.mode is ArgsMatch.PARTIAL):
        return False
    forbidden, expected = rule.args or {}, call.args or {}
    if rule.mode is ArgsMatch.EXACT and forbidden.keys() != expected.keys():
        return False
    return all(key in expected and _is_always(value, expected[key]) for key, value in forbidden.items())


def _is_always(forbidden: Any, expected: Any) -> bool:
    """Check whether every argument that matches ``expected`` also matches ``forbidden``."""
    is_within = expected == forbidden or (_is_literal(expected) and matches_value(forbidden, expected))
    return is_within and not may_be_absent(expected)


def _explain_undeclared(call: ExpectedCall, scenario: Scenario, other_tools: Collection[str] | None) -> str:
    """Explain that the scenario declares other tools, but not this one.

    If the agent may have any tools, report a name only if it closely resembles the name of a declared tool.
    """
    if not scenario.tools or call.name in scenario.tools or call.name in (other_tools or ()):
        return ""
    cutoff = NEARLY_THE_SAME if other_tools is None else _ALIKE
    if near := get_close_matches(call.name, scenario.tools, n=1, cutoff=cutoff):
        return f"declares no such tool — did you mean '{near[0]}'?"
    if other_tools is None:
        return ""
    return "declares no such tool — add it to `tools`, unless the agent has its own"


def _explain_excluded(call: ExpectedCall, scenario: Scenario) -> str:
    """Explain which arguments the tool's schema rejects. A call with such arguments returns an error, so
    return an empty string if an error is expected."""
    tool = scenario.tools.get(call.name)
    if tool is None or not tool.parameters or call.result == "error" or call.mode is ArgsMatch.IGNORE:
        return ""
    missing = _explain_missing(tool.parameters, call.args or {}) if call.mode is ArgsMatch.EXACT else ""
    return _explain_refused(tool.parameters, call.args or {}) or missing


def _explain_refused(parameters: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    schema = {key: value for key, value in parameters.items() if key in _OF_EACH_KEY}
    for key, value in args.items():
        if why := _find_schema_break(schema, key, value):
            return f"the tool's parameters do not allow `{key}: {describe_expected(value, 60)}` ({why})"
    return ""


def _explain_missing(parameters: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    required = parameters.get("required")
    missing = [key for key in required if key not in args] if isinstance(required, list) else []
    if missing and all(isinstance(key, str) for key in missing):
        return f"the tool's parameters require {', '.join(missing)}"
    return ""


_OF_EACH_KEY = ("type", "properties", "patternProperties", "additionalProperties", "$defs", "definitions")
_OF_ITS_TYPE: Mapping[str, Any] = {"$regex": "", "$approx": 0}
"""An example value of the type that a matcher requires."""
NEARLY_THE_SAME = 0.85
"""The minimum similarity at which one tool name is considered a typo of another."""
_ALIKE = 0.6
"""The minimum similarity at which a declared tool is suggested for a tool name that is known to be wrong."""


def _find_schema_break(schema: Mapping[str, Any], key: str, value: Any) -> str:
    """Return the reason why a schema rejects every expected value of a key, or an empty string if some
    expected value may be valid."""
    if _is_literal(value):
        return schema_violations(schema, {key: value})
    name, operand = next(iter(value.items())) if isinstance(value, Mapping) else ("", None)
    if name == "$optional":
        return ""
    if name == "$in" and _is_literal(operand):
        found = [schema_violations(schema, {key: option}) for option in operand or ()]
        return found[0] if all(found) else ""
    return schema_violations(_keep_types(schema), {key: _OF_ITS_TYPE[name]}) if name in _OF_ITS_TYPE else ""


def _keep_types(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    known = properties.items() if isinstance(properties, Mapping) else ()
    kinds = {
        key: {"type": subschema["type"]} if isinstance(subschema, Mapping) and "type" in subschema else {}
        for key, subschema in known
    }
    return {**schema, "properties": kinds}


def _is_literal(value: Any) -> bool:
    """Check whether a value contains no matcher."""
    if isinstance(value, Mapping):
        return all(not str(key).startswith("$") and _is_literal(item) for key, item in value.items())
    return not isinstance(value, list | tuple) or all(map(_is_literal, value))
