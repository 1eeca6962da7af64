"""The severity of a failure by its effect, its label and the kind of the rule."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.call_outcomes import CallOutcome
from agenteval.core.score import RuleKind, Severity
from agenteval.core.severity import LABELS_AGAINST_A_CALL, Act, labels_with_severity, severity_of
from agenteval.core.tool_effects import ToolEffect

LOW, MEDIUM, HIGH, CRITICAL = Severity
WROTE = Act(ToolEffect.WRITES, CallOutcome.SUCCEEDED)
OPEN = Act(ToolEffect.WRITES, CallOutcome.OPEN)
FAILED = Act(ToolEffect.WRITES, CallOutcome.FAILED)
NOT_CALLED = Act(ToolEffect.WRITES)
READ = Act(ToolEffect.READS, CallOutcome.SUCCEEDED)
UNKNOWN = Act(ToolEffect.UNKNOWN, CallOutcome.SUCCEEDED)

LABELS = {
    CRITICAL: ("unsafe action", "unsafe state", "goal never completed"),
    HIGH: (
        "false claim of action", "false information", "disobey user request", "wrong tool", "wrong order",
        "ignored tool result", "missing tool call", "goal not completed",
    ),
    MEDIUM: (
        "failure to ask for clarification", "lack of specific information", "unnecessary tool call",
        "wrong arguments", "repeated tool call", "criterion not met", "policy violation",
    ),
    LOW: ("repetition",),
}  # fmt: skip
AGAINST_A_CALL = {
    "disobey user request", "failure to ask for clarification", "repeated tool call", "unnecessary tool call",
    "unsafe action", "wrong arguments", "wrong tool", "policy violation", "goal not completed",
}  # fmt: skip


@pytest.mark.parametrize("severity", LABELS)
def test_nothing_was_changed(severity: Severity) -> None:
    for act in (None, READ, UNKNOWN):
        assert {severity_of(label, act=act) for label in LABELS[severity]} == {severity}


def test_a_label_that_nobody_knows() -> None:
    assert severity_of("my own label") is MEDIUM
    assert severity_of("my own label", act=WROTE) is MEDIUM


@pytest.mark.parametrize(
    ("act", "changed"),
    [(WROTE, True), (OPEN, True), (FAILED, False), (NOT_CALLED, False), (READ, False), (UNKNOWN, False)],
)
def test_a_call_that_should_not_have_been_made(act: Act, changed: bool) -> None:
    assert act.may_have_changed_something is changed
    known = {label: severity for severity, labels in LABELS.items() for label in labels}
    for label, severity in known.items():
        if label != "false claim of action":
            expected = CRITICAL if changed and label in AGAINST_A_CALL else severity
            assert severity_of(label, act=act) is expected, label
    assert AGAINST_A_CALL == LABELS_AGAINST_A_CALL


@pytest.mark.parametrize(
    ("act", "severity"),
    [
        *((act, HIGH) for act in (None, READ, UNKNOWN)),
        *((act, CRITICAL) for act in (WROTE, FAILED, NOT_CALLED)),
    ],
)
def test_a_false_claim_is_worst_about_what_writes(act: Act | None, severity: Severity) -> None:
    assert severity_of("false claim of action", act=act) is severity


@pytest.mark.parametrize(
    ("kind", "more", "severity"),
    [
        # words alone carry it out, unless it is known that they do not
        ("permission", {}, CRITICAL),
        ("permission", {"carried_out": True}, CRITICAL),
        ("permission", {"carried_out": None}, CRITICAL),
        ("permission", {"carried_out": False}, HIGH),
        ("permission", {"act": READ}, HIGH),
        ("permission", {"act": READ, "in_words": True}, CRITICAL),
        ("permission", {"act": READ, "in_words": True, "carried_out": False}, HIGH),
        ("permission", {"act": FAILED}, HIGH),
        ("permission", {"act": WROTE, "carried_out": False}, CRITICAL),
        ("permission", {"act": OPEN}, CRITICAL),
        ("disclosure", {}, MEDIUM),
        ("disclosure", {"act": WROTE}, MEDIUM),
        ("style", {}, LOW),
        ("style", {"act": WROTE, "in_words": True, "carried_out": True}, LOW),
    ],
)
def test_a_broken_rule(kind: str, more: dict[str, Any], severity: Severity) -> None:
    assert severity_of("policy violation", kind=RuleKind(kind), **more) is severity


@pytest.mark.parametrize(
    ("overrides", "kind", "severity"),
    [
        ({"policy violation": LOW}, RuleKind.PERMISSION, LOW),
        ({"policy violation.permission": LOW}, RuleKind.PERMISSION, LOW),
        ({"policy violation.permission": LOW}, RuleKind.STYLE, LOW),
        ({"policy violation.style": HIGH}, RuleKind.STYLE, HIGH),
        ({"policy violation": HIGH, "policy violation.style": MEDIUM}, RuleKind.STYLE, MEDIUM),
        ({"policy violation": HIGH, "policy violation.style": MEDIUM}, RuleKind.DISCLOSURE, HIGH),
        ({"policy violation.style": HIGH}, None, CRITICAL),
        ({"wrong tool": LOW}, None, CRITICAL),
        ({}, None, CRITICAL),
        (None, None, CRITICAL),
    ],
)
def test_the_authors_own_severities(
    overrides: dict[str, Severity] | None, kind: RuleKind | None, severity: Severity
) -> None:
    assert severity_of("policy violation", overrides, act=WROTE, kind=kind) is severity


def test_labels_an_author_may_rate() -> None:
    names = labels_with_severity()
    assert set(names) == {label for labels in LABELS.values() for label in labels} | {
        "policy violation.permission",
        "policy violation.disclosure",
        "policy violation.style",
    }
    assert len(names) == len(set(names))
