"""The accept list: which failures are accepted, when and where, and what came of each entry."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import AcceptedState, Violation
from agenteval.core.event import RunStarted
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.verdict.accepted_failures import (
    SHOWN_ID,
    accepted_fingerprints,
    accepted_uses,
    apply_accept_list,
    format_accept_list,
    waive_violations,
)
from tests.support.verdict_runs import PASS, report_of

DAY = "2026-11-21"
"""The day of the runs."""
A, B, C = (letter * 12 for letter in "abc")
LONG = "x" * SHOWN_ID + "y"


def entry(fingerprint: str = A, expires: str = "2026-12-31", **more: Any) -> AcceptedFailure:
    return AcceptedFailure(fingerprint=fingerprint, owner="me", reason="known", expires=expires, **more)


def run_with(*entries: AcceptedFailure, scenarios: tuple[str, ...] = ("s", "t")) -> RunStarted:
    return report_of({id: [PASS] for id in scenarios}, accepted_failures=entries).run


def test_a_run_is_of_its_day() -> None:
    assert run_with().started_at.startswith(DAY)


@pytest.mark.parametrize(
    ("entries", "scenario", "accepted"),
    [
        ([], "s", set()),
        ([entry(A)], "s", {A}),
        ([entry(A), entry(B)], "s", {A, B}),
        ([entry(expires=DAY)], "s", {A}),  # its last day
        ([entry(expires="2026-11-20")], "s", set()),
        ([entry(scenario="s")], "s", {A}),
        ([entry(scenario="t")], "s", set()),
        ([entry(A, scenario="t"), entry(B, scenario="s")], "s", {B}),
        ([entry(scenario=one_line(LONG, SHOWN_ID))], LONG, {A}),
        ([entry(scenario=LONG)], LONG, {A}),
        ([entry(scenario="two words")], "two\nwords", {A}),
        ([entry(scenario="s")], "s2", set()),
    ],
)
def test_which_failures_are_accepted(
    entries: list[AcceptedFailure], scenario: str, accepted: set[str]
) -> None:
    assert accepted_fingerprints(run_with(*entries), scenario) == accepted


def violation(*fingerprints: str, verdict: Verdict = Verdict.FAILED) -> Violation:
    return Violation("output.contains", "", "", verdict, fingerprints=fingerprints)


@pytest.mark.parametrize(
    ("broken", "accepted"),
    [
        (violation(A), True),
        (violation(A, B), True),
        (violation(C), False),
        (violation(A, C), False),
        (violation(), False),
        (violation(A, verdict=Verdict.INCONCLUSIVE), False),
    ],
)
def test_a_violation_is_accepted_if_every_failure_in_it_is(broken: Violation, accepted: bool) -> None:
    found = waive_violations([broken], {A, B})
    assert found == (((), (broken,)) if accepted else ((broken,), ()))


def test_violations_keep_their_order() -> None:
    first, second, third, fourth = violation(C), violation(A), violation(), violation(B)
    found = waive_violations([first, second, third, fourth], {A, B})
    assert found.remaining == (first, third)
    assert found.accepted == (second, fourth)
    assert waive_violations([], {A}) == ((), ())
    assert waive_violations([second], ()) == ((second,), ())


def test_two_runs_are_compared_under_one_list() -> None:
    earlier = report_of({"s": [PASS]}, accepted_failures=[entry(C)])
    then = run_with(entry(A, DAY, scenario="s"), entry(B, "2026-11-20"))
    found = apply_accept_list(earlier, then)
    (kept,) = found.plan.suite.accepted
    assert (kept.fingerprint, kept.scenario, kept.owner) == (A, "s", "me")
    assert kept.holds_on("2030-01-01")  # on whichever day the other run began
    assert found.scenarios == earlier.scenarios
    assert [each.fingerprint for each in earlier.plan.suite.accepted] == [C]


IN_FORCE, EXPIRED, UNUSED = AcceptedState.IN_FORCE, AcceptedState.EXPIRED, AcceptedState.UNUSED


@pytest.mark.parametrize(
    ("accepted", "occurred", "use"),
    [
        pytest.param(entry(), [], (UNUSED, 0, ""), id="not met"),
        pytest.param(entry(), [("s", {B})], (UNUSED, 0, ""), id="another failure"),
        pytest.param(entry(), [("s", {A, B})], (IN_FORCE, 1, ""), id="met"),
        pytest.param(entry(), [("s", {A}), ("s", {A}), ("t", {A})], (IN_FORCE, 3, ""), id="in three samples"),
        pytest.param(entry(expires=DAY), [("s", {A})], (IN_FORCE, 1, ""), id="on its last day"),
        pytest.param(entry(expires="2026-11-20"), [("s", {A})], (EXPIRED, 1, ""), id="expired"),
        pytest.param(entry(expires="2026-11-20"), [], (EXPIRED, 0, ""), id="expired and not met"),
        pytest.param(entry(scenario="s"), [("s", {A}), ("t", {A})], (IN_FORCE, 1, ""), id="in its scenario"),
        pytest.param(entry(scenario="s"), [("t", {A})], (UNUSED, 0, "t"), id="elsewhere"),
        pytest.param(entry(scenario="s"), [("u", {A}), ("t", {A})], (UNUSED, 0, "u"), id="first elsewhere"),
        pytest.param(
            entry(scenario="s", expires="2026-11-20"), [("t", {A})], (EXPIRED, 0, "t"), id="expired elsewhere"
        ),
        pytest.param(entry(scenario="gone"), [], None, id="its scenario was not run"),
        pytest.param(entry(scenario="gone"), [("t", {A})], (UNUSED, 0, "t"), id="not run, met elsewhere"),
    ],
)
def test_what_came_of_an_entry(
    accepted: AcceptedFailure,
    occurred: list[tuple[str, set[str]]],
    use: tuple[AcceptedState, int, str] | None,
) -> None:
    found = accepted_uses(run_with(accepted), occurred)
    assert [(each.state, each.samples, each.elsewhere) for each in found] == ([use] if use else [])
    assert all(each.entry.fingerprint == A for each in found)


def test_entries_keep_their_order() -> None:
    run = run_with(entry(C), entry(A, "2026-01-01"), entry(B, scenario="gone"))
    found = accepted_uses(run, [("s", {A}), ("t", {C})])
    assert [(each.entry.fingerprint, each.state) for each in found] == [(C, IN_FORCE), (A, EXPIRED)]
    assert accepted_uses(run_with(), [("s", {A})]) == ()


def test_the_printed_list_is_one_to_paste() -> None:
    failures = {A: ("it's", "says: 'no' # really"), B: ("- t", "x: [y")}
    read = yaml.safe_load(format_accept_list(failures))
    blank = dict.fromkeys(("owner", "reason", "expires"))
    assert read == [
        {"fingerprint": fingerprint, **blank, "scenario": scenario, "what": what}
        for fingerprint, (scenario, what) in failures.items()
    ]
    assert list(read[0]) == ["fingerprint", "owner", "reason", "expires", "scenario", "what"]
    assert format_accept_list({}) == ""


def test_a_fingerprint_of_digits_is_pasted_as_text() -> None:
    (read,) = yaml.safe_load(format_accept_list({"000000000012": ("s", "w")}))
    assert read["fingerprint"] == "000000000012"
