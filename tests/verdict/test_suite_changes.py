"""What changed between two runs, other than the agent."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.config import AcceptedFailure
from agenteval.verdict.gates import decide
from agenteval.verdict.suite_changes import RunBasis, basis_of, changes_between
from tests.support.verdict_runs import PASS, Played, report_of


def basis(ids: str = "ab", **more: Any) -> RunBasis:
    """Of a run with these scenarios, each of one letter."""
    epochs: dict[str, list[Played | None]] = {id: [PASS] for id in ids}
    report = report_of(epochs, **more)
    return basis_of(report, decide(report))


def change(before: RunBasis, after: RunBasis) -> str:
    (text,) = changes_between(before, after)
    return text


GATE = {"pass_rate": {"at_least": 0.5, "reject_below": 0.1}}
ASKS_OTHERWISE = {"scenarios": {"b": {"turns": ("hi",), "profile": "a child"}}}


def test_the_same_suite_has_no_changes() -> None:
    more = {"gates": GATE, "thresholds": {"stars": 3}}
    assert changes_between(basis(**more), basis(**more)) == ()


@pytest.mark.parametrize(
    ("more", "other"),
    [
        ({}, {"scenarios": {"b": {"tags": ("x",), "note": "new"}}}),
        ({"run": {"commit": "1" * 40}}, {"run": {"commit": "2" * 40}}),
        ({"agents": ("bot",)}, {"agents": ("other",)}),
        ({"agents": ("bot", "other"), "thresholds": {"stars": 3}}, {"thresholds": {"stars": 3}}),
    ],
)
def test_what_is_no_change_of_the_suite(more: dict[str, Any], other: dict[str, Any]) -> None:
    assert changes_between(basis(**more), basis(**other)) == ()


def test_epochs_are_no_change() -> None:
    one, three = report_of({"a": [PASS]}), report_of({"a": [PASS] * 3})
    assert changes_between(basis_of(one, decide(one)), basis_of(three, decide(three))) == ()


@pytest.mark.parametrize(
    ("before", "after", "facts"),
    [
        (basis("ab"), basis("abcd"), ["2 scenarios added", "c, d"]),
        (basis("ab"), basis("a"), ["1 scenario removed", "b"]),
        (basis("ab"), basis("ab", **ASKS_OTHERWISE), ["1 scenario changed", "b (profile, turns)"]),
        (basis("a"), basis("abcdefgh"), ["7 scenarios added", "b, c, d, e, f and 2 more"]),
        (basis(thresholds={"stars": 3}), basis(thresholds={"stars": 4}), ["thresholds"]),
        (basis(), basis(thresholds={"stars": 3}), ["thresholds"]),
        (basis(), basis(gates=GATE), ["gates"]),
        (basis(), basis(fault_tolerance=0.5), ["gates"]),
        (basis(), basis(on_undecided="neutral"), ["gates"]),
        (basis(run={"versions": {"agenteval": "1"}}), basis(run={"versions": {}}), ["1 and unknown"]),
        (basis(run={"prompts": {"stars": "1"}}), basis(run={"prompts": {"stars": "2"}}), ["prompt 'stars'"]),
        (basis(), basis(fail_on_severity="high"), ["fail_on_severity", "critical and high"]),
        (basis(agents=("x", "y")), basis(agents=("z", "v")), ["no agent"]),
    ],
)  # fmt: skip
def test_each_change_is_named(before: RunBasis, after: RunBasis, facts: list[str]) -> None:
    text = change(before, after)
    assert all(fact in text for fact in facts), text


def test_several_changes_are_all_named_scenarios_first() -> None:
    texts = changes_between(basis("ab"), basis("bc", thresholds={"stars": 3}, **ASKS_OTHERWISE))
    assert [text.split(":")[0] for text in texts] == [
        "1 scenario added", "1 scenario removed", "1 scenario changed",
    ]  # fmt: skip
    texts = changes_between(basis("ab"), basis("abc", thresholds={"stars": 3}))
    assert [text.split(":")[0] for text in texts] == ["1 scenario added", "the thresholds differ"]


def test_a_scenario_of_two_agents_counts_once() -> None:
    both = {"agents": ("x", "y")}
    assert "1 scenario added: c" in change(basis("ab", **both), basis("abc", **both))


def entry(**more: Any) -> dict[str, Any]:
    fields = {
        "fingerprint": "0123456789ab",
        "owner": "me",
        "reason": "known",
        "expires": "2026-11-21",
        **more,
    }
    return AcceptedFailure(**fields).model_dump()


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ([], [entry()], True),
        ([entry()], [entry(owner="you", reason="still known")], False),
        ([entry()], [entry(scenario="a")], True),
        # The runs took place on 2026-11-21: by then, an earlier entry had expired.
        ([], [entry(expires="2026-11-20")], False),
        ([entry()], [entry(expires="2026-11-20")], True),
    ],
)
def test_what_is_accepted_is_a_rule(
    before: list[dict[str, Any]], after: list[dict[str, Any]], differs: bool
) -> None:
    texts = changes_between(basis(accepted_failures=before), basis(accepted_failures=after))
    assert ["accept list" in text for text in texts] == [True] * differs
