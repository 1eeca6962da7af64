"""Each check of ``expect`` is one object, and says what later turns and unseen calls mean for it."""

from typing import Any

import pytest

from agenteval.core.scenario import Expectation
from agenteval.core.trajectory import Step, ToolCall, Turn, Usage
from agenteval.core.value import Value
from agenteval.scoring.checks import RULES
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome

_NO_RULES = {"criteria", "allow_empty"}
"""A judge's, and what waives a check."""


def paths(model: type[Value], prefix: str = "") -> set[str]:
    """The dotted paths of what can be asked. A model with a rule of its own is asked as a whole."""
    found = set()
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        below = [m for m in getattr(field.annotation, "__args__", ()) if isinstance(m, type)]
        models = [m for m in below if issubclass(m, Value)]
        is_whole = any(rule.name == path for rule in RULES)
        found |= paths(models[0], f"{path}.") if models and not is_whole else {path}
    return found


def test_each_field_of_expect_is_one_rule_and_each_rule_a_field() -> None:
    names = [rule.name for rule in RULES]
    assert sorted(names) == sorted(set(names))
    assert set(names) == paths(Expectation) - _NO_RULES


def turn(answer: str, *calls: str, tokens: int = 10) -> Turn:
    made = tuple(ToolCall(name=name, args={}) for name in calls)
    usage = Usage(calls=1, input_tokens=tokens)
    steps = (*((Step(tool_calls=made, usage=usage),) if made else ()), Step(text=answer, usage=usage))
    return Turn(user="hi", steps=steps, latency_ms=100)


def outcome(expect: dict[str, Any], *turns: Turn) -> CheckOutcome:
    """Of the only rule that ``expect`` asks for."""
    wanted = Expectation.model_validate(expect)
    ((rule, asked),) = [(rule, asked) for rule in RULES if (asked := rule.get_expected(wanted)) is not None]
    return rule.decide(asked, CheckInput(turns))


def calls(match: str, *names: str, forbidden: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"match": match, "calls": [{"name": name} for name in names]}
    return {"tool_calls": {**found, "forbidden": [{"name": forbidden}] if forbidden else []}}


@pytest.mark.parametrize(
    ("expect", "lasting"),
    [
        (calls("contains", forbidden="a"), True),
        (calls("strict", "b"), True),
        (calls("unordered", "b"), True),
        (calls("within", "b"), True),
        (calls("contains", "b"), False),
        (calls("in_order", "a", "b"), False),
        (calls("strict", "a", "b"), False),
        ({"output": {"not_contains": ["said"]}}, True),
        ({"output": {"contains": ["else"]}}, False),
        ({"output": {"matches": ["else"]}}, False),
        ({"limits": {"steps": 1}}, True),
        ({"limits": {"tool_calls": 0}}, True),
        ({"limits": {"tokens": 19}}, True),
        ({"limits": {"latency_ms": 99}}, True),
    ],
)
def test_a_failure_lasts_where_no_later_turn_could_undo_it(expect: dict[str, Any], lasting: bool) -> None:
    found = outcome(expect, turn("said", "a"))
    assert (found.passed, found.is_lasting) == (False, lasting)


@pytest.mark.parametrize(
    ("expect", "passed", "by_absence"),
    [
        (calls("contains", forbidden="x"), True, True),
        (calls("strict", "a"), True, True),
        (calls("unordered", "a"), True, True),
        (calls("within", "a"), True, True),
        (calls("contains", "a"), True, False),
        (calls("in_order", "a"), True, False),
        (calls("contains", "x"), False, True),
        (calls("strict", "a", "x"), False, True),
        (calls("contains", "x", forbidden="a"), False, False),
        (calls("strict", "x"), False, False),
        (calls("within", "x"), False, False),
        ({"limits": {"steps": 2}}, True, True),
        ({"limits": {"tool_calls": 1}}, True, True),
        ({"limits": {"tool_calls": 0}}, False, False),
        ({"limits": {"tokens": 20}}, True, False),
        ({"output": {"not_contains": ["else"]}}, True, False),
    ],
)
def test_what_rests_on_calls_that_were_not_seen_says_so(
    expect: dict[str, Any], passed: bool, by_absence: bool
) -> None:
    found = outcome(expect, turn("said", "a"))
    assert (found.passed, found.is_by_absence) == (passed, by_absence)
