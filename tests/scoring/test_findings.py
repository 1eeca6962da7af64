"""Findings of a whole run: their numbers, tools and causes, a varied choice, and effective severities."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import SampleKey
from agenteval.core.score import Finding, Issue, Occurrence, References, Severity
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.findings import (
    LocatedFinding,
    build_issue_example,
    effective_severities,
    get_sample_key,
    locate_findings,
    pick_varied_findings,
)
from tests.support.detector_samples import call, turn

LOW, MEDIUM, HIGH, CRITICAL = Severity
TALK = Trajectory(turns=(turn("a", call("get"), "x"), turn("b", call("book"), "y")))


def key(scenario: str = "s", agent: str = "a", epoch: int = 0, variant: str = "") -> SampleKey:
    return SampleKey(scenario=scenario, agent=agent, epoch=epoch, variant=variant)


def finding(label: str = "wrong tool", **more: Any) -> Finding:
    base = {"detector": "judge", "metric": "tool_call_behavior_failure", "severity": HIGH, **more}
    return Finding(label=label, **base)


# ── location ─────────────────────────────────────────────────────────────────────────────────────


def evidences(*samples: tuple[SampleKey, list[Finding]]) -> list[str]:
    found = locate_findings((at, TALK, findings) for at, findings in samples)
    assert [each.number for each in found] == list(range(1, len(found) + 1))
    assert [each.id for each in found] == [f"F{each.number}" for each in found]
    return [each.finding.evidence for each in found]


SORTED = [
    (key("z"), {"turn": 5}),
    (key("a", agent="b"), {}),
    (key("a", agent="b", epoch=1), {"turn": None, "call": 1}),
    (key("a", agent="b", epoch=1), {"turn": 0}),
    (key("a", agent="b", epoch=1), {"turn": 0, "call": 0, "detector": "leak"}),
    (key("a", agent="b", epoch=1), {"turn": 0, "call": 0, "label": "b"}),
    (key("a", agent="b", epoch=1), {"turn": 0, "call": 0, "label": "c"}),
    (key("a", agent="b", epoch=1), {"turn": 0, "call": 1, "detector": "a"}),
    (key("a", agent="b", epoch=1), {"turn": 1}),
    (key("a", agent="b", variant="v"), {}),
]


def test_numbers_do_not_depend_on_the_order_of_samples() -> None:
    samples = [
        (at, [finding(**{"detector": "m", **more, "evidence": str(number)})])
        for number, (at, more) in enumerate(SORTED)
    ]
    expected = list(map(str, range(len(SORTED))))
    assert evidences(*samples) == expected
    assert evidences(*reversed(samples)) == expected


def test_equal_findings_keep_their_order_and_their_index() -> None:
    same = [finding("b", evidence="1"), finding("a", evidence="2"), finding("b", evidence="1")]
    found = locate_findings([(key(), TALK, same)])
    assert [(each.index, each.finding.label) for each in found] == [(1, "a"), (0, "b"), (2, "b")]


@pytest.mark.parametrize(
    ("more", "tool"),
    [
        ({"call": 0}, "get"),
        ({"call": 1}, "book"),
        ({"call": 2}, ""),  # there is no such call
        ({"call": 1, "references": References(tool="pay")}, "book"),
        ({"label": "missing tool call", "turn": 0, "references": References(tool="pay")}, "pay"),
        ({"turn": 1}, "book"),
        ({}, ""),
    ],
)
def test_the_tool_of_a_finding(more: dict[str, Any], tool: str) -> None:
    (found,) = locate_findings([(key(), TALK, [finding(**more)])])
    assert (found.tool, found.cause.tool) == (tool, tool)


def test_a_call_of_an_interrupted_turn_counts() -> None:
    talk = Trajectory(turns=TALK.turns[:1], unfinished=TALK.turns[1])
    (found,) = locate_findings([(key(), talk, [finding(call=1)])])
    assert found.tool == "book"


@pytest.mark.parametrize(
    ("rule", "folded"),
    [
        ("Never refund.", "never refund"),
        ('  "Never  refund"!', "never refund"),
        ("NEVER REFUND; ", "never refund"),
        ("", ""),
    ],
)
def test_a_cause_is_made_of_names_and_the_folded_rule(rule: str, folded: str) -> None:
    made = finding("l", criterion="c", references=References(rule=rule), explanation="prose", evidence="e")
    cause = LocatedFinding(1, key(), 0, made, "t").cause
    assert cause == ("tool_call_behavior_failure", "l", "t", "c", folded)


# ── choice and examples ──────────────────────────────────────────────────────────────────────────


def located(*places: tuple[str, int]) -> list[LocatedFinding]:
    return [
        LocatedFinding(number, key(scenario, epoch=epoch), 0, finding())
        for number, (scenario, epoch) in enumerate(places, 1)
    ]


@pytest.mark.parametrize(
    ("limit", "numbers"),
    [
        (0, []),
        (1, [1]),
        (2, [1, 6]),  # another scenario first
        (3, [1, 3, 6]),  # then another sample of a scenario
        (4, [1, 3, 5, 6]),
        (5, [1, 2, 3, 5, 6]),  # then a second finding of a sample
        (6, [1, 2, 3, 4, 5, 6]),
        (9, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_choice_is_as_varied_as_possible(limit: int, numbers: list[int]) -> None:
    members = located(("s", 0), ("s", 0), ("s", 1), ("s", 1), ("s", 2), ("t", 0))
    assert [each.number for each in pick_varied_findings(members, limit)] == numbers


def test_an_example_names_the_place_and_shortens_the_evidence() -> None:
    at = key("s", "a", 2, "v")
    made = build_issue_example(LocatedFinding(1, at, 0, finding(turn=3, call=4, evidence="a\n b")))
    assert (made.turn, made.call, made.evidence) == (3, 4, "a b")
    assert get_sample_key(made) == at
    long = build_issue_example(LocatedFinding(1, at, 0, finding(evidence="x" * 300)))
    assert long.evidence == "x" * 199 + "…"


# ── effective severities ─────────────────────────────────────────────────────────────────────────


def effective(
    found: Finding, proposed: Severity | None, overrides: dict[str, Severity] | None = None
) -> Severity:
    occurrence = Occurrence(scenario="s", agent="a", findings=(0,))
    issue = Issue(
        id="i",
        agent="a",
        title="t",
        severity=found.severity,
        proposed_severity=proposed,
        labels=(),
        metrics=(),
        occurrences=(occurrence,),
    )
    ((severity,),) = effective_severities([issue], {key(): [found]}, overrides).values()
    return severity


PROOF = {"detector": "leak"}
RULE = {"label": "policy violation", "rule_kind": "style"}


@pytest.mark.parametrize(
    ("more", "proposed", "overrides", "severity"),
    [
        ({"severity": LOW}, CRITICAL, {}, MEDIUM),  # by one level
        ({"severity": HIGH}, CRITICAL, {}, CRITICAL),
        ({"severity": HIGH}, HIGH, {}, HIGH),
        ({"severity": HIGH}, LOW, {}, HIGH),
        ({"severity": LOW}, None, {}, LOW),
        ({"severity": CRITICAL}, CRITICAL, {}, CRITICAL),
        ({"severity": HIGH}, CRITICAL, {"wrong tool": HIGH}, HIGH),
        ({"severity": HIGH}, CRITICAL, {"repetition": HIGH}, CRITICAL),
        ({**PROOF, "severity": HIGH}, CRITICAL, {}, HIGH),  # no judge confirms it
        ({**PROOF, "severity": MEDIUM}, CRITICAL, {}, HIGH),
        ({**PROOF, "severity": HIGH, "also": ("judge: x",)}, CRITICAL, {}, CRITICAL),
        ({**RULE, "severity": LOW}, HIGH, {"policy violation.style": LOW}, LOW),
        ({**RULE, "severity": LOW}, HIGH, {"policy violation.permission": LOW}, MEDIUM),
    ],
)
def test_a_proposal_raises_by_one_level(
    more: dict[str, Any], proposed: Severity | None, overrides: dict[str, Severity], severity: Severity
) -> None:
    label = more.get("label", "wrong tool")
    found = finding(label, **{name: value for name, value in more.items() if name != "label"})
    assert effective(found, proposed, overrides) is severity


def test_severities_are_kept_for_each_sample_in_order() -> None:
    findings = {
        key(): [finding(severity=LOW), finding(severity=HIGH)],
        key(epoch=1): [finding(severity=LOW)],
        key("quiet"): [],
    }
    issue = Issue(
        id="i",
        agent="a",
        title="t",
        severity=HIGH,
        proposed_severity=CRITICAL,
        labels=(),
        metrics=(),
        occurrences=(
            Occurrence(scenario="s", agent="a", findings=(1, 2)),  # there is no third finding
            Occurrence(scenario="unknown", agent="a", findings=(0,)),
        ),
    )
    assert effective_severities([issue], findings) == {
        key(): (LOW, CRITICAL),
        key(epoch=1): (LOW,),
        key("quiet"): (),
    }
    assert effective_severities([], findings)[key()] == (LOW, HIGH)
