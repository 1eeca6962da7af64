"""Which verdicts would fail a sample: by severity, by a threshold, and once a severity may be raised."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.plan import ScenarioRules, SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity
from agenteval.planning.plan_resolution import rules_for
from agenteval.scoring.judges.gating_policy import GatingPolicy

LOW, MEDIUM, HIGH, CRITICAL = Severity
SCENARIO = Scenario(id="s")


@pytest.mark.parametrize(
    ("fail_on", "may_be_raised", "gating"),
    [
        (CRITICAL, False, [CRITICAL]),
        (CRITICAL, True, [HIGH, CRITICAL]),
        (HIGH, False, [HIGH, CRITICAL]),
        (HIGH, True, [MEDIUM, HIGH, CRITICAL]),
        (LOW, False, [LOW, MEDIUM, HIGH, CRITICAL]),
        (LOW, True, [LOW, MEDIUM, HIGH, CRITICAL]),
        (None, False, []),
        (None, True, []),
    ],
)
def test_severities_that_fail_a_sample(
    fail_on: Severity | None, may_be_raised: bool, gating: list[Severity]
) -> None:
    policy = GatingPolicy(fail_on=fail_on, may_be_raised=may_be_raised)
    assert [severity for severity in Severity if policy.gates_at(severity)] == gating
    assert [severity for severity in Severity if policy.is_severe(severity, "m", SCENARIO)] == gating


@pytest.mark.parametrize(
    ("thresholds", "highest"),
    [
        ({}, None),
        ({"m": 0.9}, 0.9),
        ({"m": 0.0}, 0.0),
        ({"other": 0.9}, None),
        ({"m": {"min": 2}}, 2),
        ({"m": {"at_least": 3, "min": 2}}, 3),
    ],
)
def test_a_threshold_makes_each_failing_label_severe(thresholds: Any, highest: float | None) -> None:
    scenario = Scenario.model_validate({"id": "s", "thresholds": thresholds})
    applies = rules_for(scenario, SuitePolicy())
    policy = GatingPolicy(rules_for=lambda _: applies)
    assert policy.highest_threshold("m", scenario) == highest
    assert policy.is_severe(LOW, "m", scenario) is (highest is not None)
    assert not policy.gates_at(LOW)


def test_the_rules_are_those_of_the_scenario() -> None:
    asked: list[Scenario] = []

    def rules(scenario: Scenario) -> ScenarioRules:
        asked.append(scenario)
        return ScenarioRules()

    assert GatingPolicy(rules_for=rules).highest_threshold("m", SCENARIO) is None
    assert asked == [SCENARIO]


def test_the_defaults() -> None:
    policy = GatingPolicy()
    assert (policy.fail_on, policy.corroborate, policy.seed, policy.may_be_raised) == (
        CRITICAL,
        True,
        0,
        False,
    )
    assert policy.highest_threshold("m", SCENARIO) is None
    assert dict(policy.severities) == {}


@pytest.mark.parametrize(
    ("suite", "facts"),
    [
        ({}, (CRITICAL, {}, True, 0, False)),
        ({"fail_on_severity": "none"}, (None, {}, True, 0, False)),
        ({"fail_on_severity": "high", "seed": 7}, (HIGH, {}, True, 7, False)),
        ({"corroborate": False}, (CRITICAL, {}, False, 0, False)),
        ({"severity_from": "model"}, (CRITICAL, {}, True, 0, True)),
        ({"severities": {"x": "low"}}, (CRITICAL, {"x": LOW}, True, 0, False)),
    ],
)
def test_a_policy_of_the_suite(suite: dict[str, Any], facts: tuple[Any, ...]) -> None:
    made = GatingPolicy.from_suite(SuitePolicy.model_validate(suite), lambda _: ScenarioRules())
    found = (made.fail_on, dict(made.severities), made.corroborate, made.seed, made.may_be_raised)
    assert found == facts
