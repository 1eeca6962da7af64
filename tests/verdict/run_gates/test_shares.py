"""``gates.tool_accuracy``, ``output_accuracy`` and ``robustness``: shares of conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.config import GatesConfig
from agenteval.core.decision import RERUN_FAILED, GateRow
from agenteval.core.scenario import EpochRange, Scenario
from agenteval.core.score import Check, Severity, Verdict
from agenteval.core.trajectory import StopReason, ToolCall
from agenteval.verdict.run_gates import is_counted
from agenteval.verdict.run_gates.gate import PlannedRun
from agenteval.verdict.run_gates.shares import SHARES, ShareGate
from agenteval.verdict.sample_decisions import decide_samples
from tests.support.verdict_runs import (
    BROKEN,
    CUT,
    HELD,
    LOST,
    UNDECIDED,
    Played,
    finding,
    gate_rows,
    only_sample,
    only_scenario,
    report_of,
    whole,
)

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
GATES = {gate.name: gate for gate in SHARES}
ROBUST = {"category": "robustness"}
TOOLS = {"case": {"expected_tools": ["pay", "book"]}}
NO_TOOLS = {"case": {"expected_tools": "none"}}
OUTPUT = {"case": {"expected_output_contains": ["25"]}}
PAY, BOOK, OTHER = (ToolCall(name=name, args={}) for name in ("pay", "book", "other"))


def test_the_gates_and_their_order() -> None:
    assert [gate.name for gate in SHARES] == ["tool_accuracy", "output_accuracy", "robustness"]
    assert not any(gate.replaces_every_sample for gate in SHARES)


@pytest.mark.parametrize(
    ("written", "at_least"),
    [
        (0.9, 0.9),
        (1, 1.0),
        ({"at_least": 0.5}, 0.5),
        (0, None),
        (1.1, None),
        (True, None),
        ("0.9", None),
        ({}, None),
    ],
)
def test_which_settings_are_valid(written: Any, at_least: float | None) -> None:
    if at_least is None:
        with pytest.raises(ValidationError):
            ShareGate.model_validate(written)
    else:
        assert ShareGate.model_validate(written).at_least == at_least


def rows(
    gate: str,
    at_least: float,
    epochs: Mapping[str, Sequence[Played | None]],
    scenario: Mapping[str, Any] = ROBUST,
    **more: Any,
) -> list[GateRow]:
    scenarios = dict.fromkeys(epochs, typed(scenario))
    return gate_rows(report_of(epochs, gates={gate: at_least}, scenarios=scenarios, **more))


def typed(fields: Mapping[str, Any]) -> dict[str, Any]:
    scenario = Scenario.model_validate(fields)
    return {name: getattr(scenario, name) for name in fields}


GOOD, BAD = whole(HELD), whole(BROKEN)


@pytest.mark.parametrize(
    ("epochs", "at_least", "verdict", "value"),
    [
        ([GOOD, GOOD], 1.0, PASSED, 1.0),
        ([GOOD, BAD], 0.5, PASSED, 0.5),
        ([GOOD, BAD], 0.51, FAILED, 0.5),
        ([GOOD] * 9 + [BAD], 0.9, PASSED, 0.9),
        ([GOOD, Played(stop=StopReason.AGENT_ERROR)], 0.6, FAILED, 0.5),
        # Unknown values count once as misses and once as hits.
        ([GOOD, GOOD, LOST], 0.6, PASSED, 1.0),
        ([GOOD, GOOD, LOST], 0.7, OPEN, 1.0),
        ([GOOD, GOOD, None], 0.7, OPEN, 1.0),
        ([GOOD, GOOD, CUT], 0.7, OPEN, 1.0),
        ([GOOD, GOOD, whole(UNDECIDED)], 0.7, OPEN, 1.0),
        ([BAD, BAD, LOST], 0.3, OPEN, 0.0),
        ([BAD, BAD, LOST], 0.4, FAILED, 0.0),
        ([LOST], 0.5, OPEN, None),
        ([whole(BROKEN, HELD), whole(UNDECIDED, BROKEN)], 0.5, FAILED, 0.0),
    ],
)
def test_the_share_of_robustness(
    epochs: list[Played | None], at_least: float, verdict: Verdict, value: float | None
) -> None:
    (row,) = rows("robustness", at_least, {"a": epochs})
    assert (row.verdict, row.value, row.bound) == (verdict, value, at_least)
    assert (row.name, row.scenario, row.agent) == ("robustness", "", "")
    assert row.resolution == (RERUN_FAILED if verdict is OPEN else "")


def test_no_conversation_of_the_kind() -> None:
    (row,) = rows("robustness", 0.5, {"a": [GOOD]}, {"category": "capability"})
    assert (row.verdict, row.value, row.resolution) == (OPEN, None, "")


def test_the_share_is_of_all_conversations_and_names_the_lowest_scenarios() -> None:
    epochs = {
        "fine": [GOOD] * 4,
        "half": [GOOD, BAD],
        "never": [BAD],
        "some": [BAD, GOOD, GOOD],
        "few": [BAD],
    }
    (row,) = rows("robustness", 0.5, epochs)
    assert row.value == pytest.approx(7 / 11)
    places = [row.basis.find(name) for name in ("few 0", "never 0", "half 0.5")]
    assert places == sorted(places)
    assert -1 not in places
    assert "some" not in row.basis  # only three are named
    assert "fine" not in row.basis


def test_each_agent_has_its_share() -> None:
    found = rows("robustness", 0.5, {"a": [GOOD]}, agents=("x", "y"))
    assert [(row.agent, row.verdict) for row in found] == [("x", PASSED), ("y", PASSED)]


@pytest.mark.parametrize(
    ("calls", "scenario", "value"),
    [
        ((PAY, BOOK), TOOLS, 1.0),
        ((PAY,), TOOLS, 0.5),
        ((PAY, PAY, OTHER), TOOLS, 0.5),
        ((), TOOLS, 0.0),
        ((PAY.model_copy(update={"attempted": True}),), TOOLS, 0.0),
        ((), NO_TOOLS, 1.0),
        ((PAY,), NO_TOOLS, 0.0),
        ((PAY,), OUTPUT, None),
        ((PAY,), {"case": {"expected_tools": []}}, None),
        ((PAY,), {"goal": "x"}, None),
    ],
)
def test_the_share_of_expected_tools(calls: Any, scenario: Any, value: float | None) -> None:
    (row,) = rows("tool_accuracy", 0.5, {"a": [Played((), calls=calls)]}, scenario)
    assert row.value == value


@pytest.mark.parametrize(
    ("played", "scenario", "value"),
    [
        (GOOD, OUTPUT, 1.0),
        (BAD, OUTPUT, 0.0),
        (GOOD, TOOLS, 1.0),
        (Played(stop=StopReason.AGENT_ERROR), OUTPUT, 0.0),
        (whole(Check(name="output.contains", passed=None)), OUTPUT, None),
        (GOOD, {"goal": "x"}, None),
        (LOST, OUTPUT, None),
    ],
)
def test_the_share_of_right_outputs(played: Played, scenario: Any, value: float | None) -> None:
    (row,) = rows("output_accuracy", 0.5, {"a": [played]}, scenario)
    assert row.value == value


def test_calls_that_may_not_be_visible_are_unknown() -> None:
    agent = {"agent": {"name": "bot", "target": "a:b"}}
    (row,) = rows("tool_accuracy", 0.5, {"a": [Played(())]}, TOOLS, **agent)
    assert (row.verdict, row.value) == (OPEN, None)


@pytest.mark.parametrize(
    ("fields", "concerned"),
    [
        (ROBUST, {"robustness"}),
        ({"category": "efficiency"}, set()),
        (TOOLS, {"tool_accuracy", "output_accuracy"}),
        (NO_TOOLS, {"tool_accuracy", "output_accuracy"}),
        ({"case": {"expected_tools": []}}, {"output_accuracy"}),
        (OUTPUT, {"output_accuracy"}),
        ({**TOOLS, **ROBUST}, {"tool_accuracy", "output_accuracy", "robustness"}),
    ],
)
def test_which_scenarios_a_share_concerns(fields: Any, concerned: set[str]) -> None:
    scenario = Scenario.model_validate(fields)
    assert {name for name, gate in GATES.items() if gate.concerns(scenario)} == concerned


# ── failures that a share counts ─────────────────────────────────────────────────────────────────


def calls_check(*parts: str, passed: bool = False) -> Check:
    return Check(name="tool_calls", passed=passed, parts=parts)


EMPTY = Check(name="answer", passed=False)


@pytest.mark.parametrize(
    ("gate", "played", "scenario", "counted"),
    [
        ("tool_accuracy", Played((calls_check("missing book"),), calls=(PAY,)), TOOLS, True),
        ("tool_accuracy", Played((calls_check("missing book(id=1)"),), calls=(PAY,)), TOOLS, True),
        ("tool_accuracy", Played((calls_check("missing pay(id=1)"),), calls=(PAY,)), TOOLS, False),
        ("tool_accuracy", Played((calls_check("missing book", "extra other"),), calls=(PAY,)), TOOLS, False),
        ("tool_accuracy", Played((calls_check("missing other"),), calls=(PAY,)), TOOLS, False),
        ("tool_accuracy", Played((calls_check(),), calls=(PAY,)), TOOLS, False),
        ("tool_accuracy", Played((calls_check("extra pay"),), calls=(PAY,)), NO_TOOLS, True),
        ("tool_accuracy", Played((calls_check("extra other"),), calls=(PAY,)), NO_TOOLS, False),
        ("tool_accuracy", Played((calls_check("missing pay"),)), OUTPUT, False),
        ("tool_accuracy", Played((calls_check("missing pay"),)), {"goal": "x"}, False),
        ("tool_accuracy", BAD, TOOLS, False),
        ("output_accuracy", BAD, OUTPUT, True),
        ("output_accuracy", whole(Check(name="output.matches", passed=False)), OUTPUT, False),
        ("output_accuracy", whole(BROKEN, EMPTY), OUTPUT, True),
        ("output_accuracy", whole(EMPTY), OUTPUT, False),  # the answer has what was expected
        ("output_accuracy", BAD, {"goal": "x"}, False),
        ("robustness", BAD, ROBUST, True),
        ("robustness", BAD, OUTPUT, False),
        ("robustness", Played(stop=StopReason.AGENT_ERROR), ROBUST, True),
        ("robustness", whole(finding(Severity.CRITICAL)), ROBUST, False),
        ("robustness", whole(BROKEN, finding(Severity.CRITICAL)), ROBUST, False),
        ("robustness", whole(BROKEN, UNDECIDED), ROBUST, False),
        ("robustness", GOOD, ROBUST, False),
        ("robustness", LOST, ROBUST, False),
    ],
)
def test_whether_a_share_counts_all_that_a_sample_broke(
    gate: str, played: Played, scenario: Any, counted: bool
) -> None:
    report = report_of({"a": [played]}, scenarios={"a": typed(scenario)})
    sample = only_sample(report)
    decided = decide_samples(report)[sample.key]
    config = GatesConfig.model_validate({gate: 0.9})
    assert is_counted(sample, only_scenario(report).scenario, decided, config) is counted


def test_two_shares_together_may_count_everything() -> None:
    both = {"case": {"expected_tools": ["pay"], "expected_output_contains": ["25"]}}
    report = report_of({"a": [Played((BROKEN, calls_check("missing pay")))]}, scenarios={"a": typed(both)})
    sample, scenario = only_sample(report), only_scenario(report).scenario
    decided = decide_samples(report)[sample.key]
    found = [
        is_counted(sample, scenario, decided, GatesConfig.model_validate(dict.fromkeys(names, 0.9)))
        for names in (("tool_accuracy",), ("output_accuracy",), ("tool_accuracy", "output_accuracy"), ())
    ]
    assert found == [False, False, True, False]


def test_a_share_has_no_error_rate() -> None:
    found = GATES["robustness"].estimate_error_rates(
        ShareGate(at_least=0.9), PlannedRun([EpochRange(min=1, max=1)], "w")
    )
    assert (found.gate, found.where, found.is_known) == ("robustness", "w", False)
    assert GATES["robustness"].unapplied(ShareGate(at_least=0.9), repeats=False) == ""
