"""What every gate over repeated runs shares: its settings, its places, and why it has no baseline."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.config import GatesConfig
from agenteval.core.decision import Violation
from agenteval.core.scenario import Scenario
from agenteval.core.score import Verdict
from agenteval.core.value import Value
from agenteval.verdict.run_gates.gate import VERDICT_OF, Evidence, RunGate, explain_no_baseline
from agenteval.verdict.statistics import StatisticalOutcome
from tests.support.verdict_runs import PASS, only_sample, report_of, with_suite


class Settings(Value):
    at_least: float


def never(*_: Any) -> Any:
    raise AssertionError


GATE = RunGate("pass_rate", "help", Settings, rows=never, estimate_error_rates=never)


def test_each_outcome_has_a_verdict() -> None:
    assert {str(outcome.name): VERDICT_OF[outcome] for outcome in StatisticalOutcome} == {
        "ACCEPT": Verdict.PASSED,
        "REJECT": Verdict.FAILED,
        "CONTINUE": Verdict.INCONCLUSIVE,
        "UNDECIDED": Verdict.INCONCLUSIVE,
    }


@pytest.mark.parametrize(
    ("written", "settings"),
    [
        ({}, None),
        ({"pass_rate": {"at_least": 0.5}}, Settings(at_least=0.5)),
        ({"pass_hat_k": {"k": 2}}, None),
    ],
)
def test_the_settings_of_a_gate(written: dict[str, Any], settings: Settings | None) -> None:
    assert GATE.parse_settings(GatesConfig.model_validate(written)) == settings


def test_settings_that_are_not_valid() -> None:
    with pytest.raises(ValidationError):
        GATE.parse_settings(GatesConfig.model_validate({"pass_rate": {"at_leest": 0.5}}))


def test_what_a_gate_does_unless_it_says_otherwise() -> None:
    settings, scenario = Settings(at_least=0.5), Scenario(id="a")
    sample = only_sample(report_of({"a": [PASS]}))
    assert GATE.replaces_every_sample
    assert not GATE.reads_baseline(settings)
    assert not GATE.counts(sample, scenario, Violation("output.contains", "", ""))
    assert GATE.concerns(scenario)
    assert GATE.unapplied(settings, repeats=False) == ""
    assert not GATE.decides_each(settings)


@pytest.mark.parametrize("known", [False, True])
def test_the_place_of_a_key_or_of_its_gate(known: bool) -> None:
    places = {"gates.pass_rate.at_least": "c.yaml:8"} if known else {}
    report = with_suite(report_of({"a": [PASS]}), places=places)
    evidence = Evidence(report, {}, {}, "c.yaml:7", others_decide=False)
    assert evidence.place("pass_rate", "at_least") == ("c.yaml:8" if known else "c.yaml:7")
    assert evidence.place("pass_rate", "other") == "c.yaml:7"


def test_why_there_is_no_baseline() -> None:
    assert "--baseline" in explain_no_baseline(report_of({"a": [PASS]}))
    report = report_of({"a": [PASS]}, run={"no_baseline": "no run at commit abc"})
    assert "no run at commit abc" in explain_no_baseline(report)
    assert "--baseline" not in explain_no_baseline(report)
