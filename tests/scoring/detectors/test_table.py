"""The table of detectors: what each one proves, needs and asks, and how severe its findings are."""

from __future__ import annotations

import pytest

from agenteval.core.score import Severity
from agenteval.files.prompts import load_rubric
from agenteval.scoring.detectors.table import DETECTORS, REMOVED_DETECTORS, Detector

LOW, MEDIUM, HIGH, CRITICAL = Severity
BEHAVIOR, TOOL_CALLS = "agent_behavior_failure", "tool_call_behavior_failure"


@pytest.mark.parametrize(
    ("name", "label", "metric"),
    [
        ("repeated_tool_call", "repeated tool call", TOOL_CALLS),
        ("wrong_arguments", "wrong arguments", TOOL_CALLS),
        ("malformed_arguments", "wrong arguments", TOOL_CALLS),
        ("unknown_tool", "wrong tool", TOOL_CALLS),
        ("ignored_tool_error", "repeated tool call", TOOL_CALLS),
        ("ungrounded_value", "false information", BEHAVIOR),
        ("repetition", "repetition", BEHAVIOR),
        ("leak", "unsafe state", BEHAVIOR),
        ("unconfirmed_action", "unsafe action", BEHAVIOR),
        ("claimed_action_not_called", "false claim of action", BEHAVIOR),
    ],
)
def test_the_label_of_each_detector(name: str, label: str, metric: str) -> None:
    detector = DETECTORS[name]
    assert (detector.name, detector.label, detector.metric) == (name, label, metric)
    assert label in load_rubric(metric).labels
    assert detector.find.__name__ == name


def names(field: str) -> list[str]:
    return [name for name, detector in DETECTORS.items() if getattr(detector, field)]


def test_what_sets_detectors_apart() -> None:
    assert len(DETECTORS) == 10
    assert names("needs_all_calls") == [
        "repeated_tool_call",
        "ignored_tool_error",
        "ungrounded_value",
        "claimed_action_not_called",
    ]
    assert [name for name in DETECTORS if name not in names("proves_label")] == [
        "ignored_tool_error",
        "unconfirmed_action",
        "claimed_action_not_called",
    ]
    assert names("question") == ["unconfirmed_action", "claimed_action_not_called"]
    assert names("requires_judge") == ["unconfirmed_action"]
    assert {name: set(DETECTORS[name].overriding_labels) for name in names("overriding_labels")} == {
        "claimed_action_not_called": {"unsafe action", "unsafe state"}
    }
    assert {name: set(DETECTORS[name].alternative_labels) for name in names("alternative_labels")} == {
        "repeated_tool_call": {"unnecessary tool call"},
        "ignored_tool_error": {"false claim of action", "ignored tool result"},
        "ungrounded_value": {"missing tool call"},
        "claimed_action_not_called": {"false information", "missing tool call"},
    }


def test_a_removed_detector_does_not_exist() -> None:
    assert "contradicts_evidence" in REMOVED_DETECTORS
    assert not REMOVED_DETECTORS & DETECTORS.keys()


@pytest.mark.parametrize(
    ("name", "effect", "case", "overrides", "severity"),
    [
        ("wrong_arguments", LOW, None, {}, LOW),
        ("wrong_arguments", HIGH, None, {}, HIGH),
        ("wrong_arguments", CRITICAL, None, {}, HIGH),  # no judge confirms it
        ("leak", CRITICAL, None, {}, CRITICAL),
        ("leak", CRITICAL, MEDIUM, {}, MEDIUM),
        ("ungrounded_value", CRITICAL, None, {}, MEDIUM),
        ("ignored_tool_error", LOW, None, {}, MEDIUM),
        ("ungrounded_value", HIGH, LOW, {}, LOW),
        ("ungrounded_value", LOW, LOW, {"false information": CRITICAL}, CRITICAL),
        ("wrong_arguments", CRITICAL, None, {"wrong arguments": CRITICAL}, CRITICAL),
        ("wrong_arguments", LOW, None, {"wrong tool": CRITICAL}, LOW),
        ("unconfirmed_action", CRITICAL, None, {}, HIGH),
        ("claimed_action_not_called", CRITICAL, None, {}, HIGH),
    ],
)
def test_the_severity_of_a_finding_by_itself(
    name: str, effect: Severity, case: Severity | None, overrides: dict[str, Severity], severity: Severity
) -> None:
    assert DETECTORS[name].severity_of(effect, overrides, case_severity=case) is severity


def test_the_defaults_of_a_detector() -> None:
    plain = Detector("n", "m", "l", "agent_behavior_failure")
    assert (plain.severity, plain.max_severity, plain.proves_label) == (None, HIGH, True)
    assert (plain.needs_all_calls, plain.requires_judge, plain.question) == (False, False, "")
