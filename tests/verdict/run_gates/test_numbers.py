"""``gates.latency_ms``, ``tokens``, ``steps``, ``tool_calls`` and ``cost``: limits on what an agent uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.config import Config
from agenteval.core.decision import RERUN_FAILED, GateRow
from agenteval.core.event import Baseline, Event, RunFinished
from agenteval.core.scenario import EpochRange, SampleKey, Scenario
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, Turn, Usage
from agenteval.verdict.report import Report, build_report
from agenteval.verdict.run_gates.gate import BASELINE, PlannedRun
from agenteval.verdict.run_gates.numbers import NUMBERS, NumberGate, format_bound
from tests.support.report_samples import conversation, started
from tests.support.verdict_runs import gate_rows

PASSED, FAILED, OPEN = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
GATES = {gate.name: gate for gate in NUMBERS}


def test_the_gates_and_their_order() -> None:
    assert list(GATES) == ["latency_ms", "tokens", "steps", "tool_calls", "cost"]
    assert not any(gate.replaces_every_sample for gate in NUMBERS)


@pytest.mark.parametrize(
    ("written", "bounds"),
    [
        ({"mean": 5}, {"mean": 5}),
        ({"mean": 0}, {"mean": 0}),
        (
            {"max": 4, "p95": 3, "p50": 2, "mean": 1},
            {"mean": 1, "p50": 2, "p95": 3, "max": 4},
        ),
        ({"no_worse_than": 1.2}, {}),
        ({"no_worse_than": 100}, {}),
        ({}, None),
        ({"mean": -1}, None),
        ({"no_worse_than": 0}, None),
        ({"no_worse_than": 101}, None),
    ],
)
def test_which_settings_are_valid(written: Any, bounds: Any) -> None:
    if bounds is None:
        with pytest.raises(ValidationError):
            NumberGate.model_validate(written)
    else:
        found = NumberGate.model_validate(written).bounds
        assert found == bounds
        assert list(found) == list(bounds)


# ── conversations with numbers ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Used:
    """A conversation of one turn, and what the agent used in it."""

    ms: float = 1000.0
    tokens: int = 100
    calls: int = 0
    cost: float | None = None
    estimated: bool = False
    stop: StopReason | None = StopReason.SCRIPT_DONE


def ms(*values: float) -> list[Used | None]:
    return [Used(ms=value) for value in values]


LOST = Used(stop=StopReason.INFRASTRUCTURE)
BROKE = Used(ms=3000, stop=StopReason.AGENT_ERROR)


def report_of(
    epochs: Mapping[str, Sequence[Used | None]],
    gates: Any,
    *,
    agents: Sequence[str] = ("bot",),
    baseline: Baseline | None = None,
    ranges: Mapping[str, EpochRange] | None = None,
    calls: str | None = "all",
    **config: Any,
) -> Report:
    agent = {"name": "bot", "target": "a:b", **({"calls": calls} if calls else {})}
    settings = Config.model_validate({"agent": agent, "gates": gates, **config})
    keys = {
        SampleKey(scenario=id, agent=name, epoch=n): used
        for id, each in epochs.items()
        for name in agents
        for n, used in enumerate(each)
    }
    suite = tuple(Scenario(id=id, name=id) for id in epochs)
    events: list[Event] = [started(suite, tuple(keys), config=settings, epochs=ranges, baseline=baseline)]
    for key, used in keys.items():
        if used is None:
            continue
        usage = Usage(calls=1, input_tokens=used.tokens, cost=used.cost, estimated=used.estimated)
        step = Step(text="x", tool_calls=(ToolCall(name="t", args={}),) * used.calls, usage=usage)
        turn = Turn(user="hi", steps=(step,), latency_ms=used.ms)
        stop = None if used.stop is None else Stop(reason=used.stop)
        events += conversation(key, (turn,), stop=stop)
    events.append(RunFinished(finished_at=""))
    return build_report(events)


def rows(epochs: Any, gate: Any, name: str = "latency_ms", **more: Any) -> list[GateRow]:
    made = epochs if isinstance(epochs, dict) else {"a": epochs}
    return gate_rows(report_of(made, {name: gate}, **more))


@pytest.mark.parametrize(
    ("epochs", "gate", "verdict", "value"),
    [
        (ms(1000, 2000), {"mean": 1500}, PASSED, 1500),
        (ms(1000, 2000), {"mean": 1499}, FAILED, 1500),
        (ms(1000, 2000, 9000), {"p50": 2000}, PASSED, 2000),
        (ms(1000, 2000, 9000), {"p50": 1999}, FAILED, 2000),
        (ms(1000, 2000, 9000), {"max": 9000}, PASSED, 9000),
        (ms(1000, 2000, 9000), {"max": 8999}, FAILED, 9000),
        (ms(*range(100, 2100, 100)), {"p95": 1900}, PASSED, 1900),
        (ms(*range(100, 2100, 100)), {"p95": 1899}, FAILED, 1900),
        (ms(*range(100, 2000, 100)), {"p95": 1900}, PASSED, 1900),  # of 19, the highest
        # A latency that was not recorded may be any.
        (ms(1000, 0), {"mean": 5000}, OPEN, 1000),
        (ms(6000, 0), {"mean": 2999}, FAILED, 3000),
        (ms(1000, 1000, 0), {"p50": 1000}, PASSED, 1000),
        (ms(1000, 1000, 0), {"max": 1000}, OPEN, 1000),
        (ms(0), {"max": 1000}, OPEN, None),
        # Lost conversations do not count; those that the agent broke off do.
        ([*ms(1000), LOST, None], {"mean": 1000}, PASSED, 1000),
        ([*ms(1000), Used(ms=9000, stop=None)], {"mean": 1000}, PASSED, 1000),
        ([*ms(1000), BROKE], {"mean": 2000}, PASSED, 2000),
        ([*ms(1000), BROKE], {"mean": 1999}, FAILED, 2000),
        ([LOST], {"mean": 1000}, OPEN, None),
        ([None], {"mean": 1000}, OPEN, None),
    ],
)
def test_a_statistic_and_its_bound(epochs: Any, gate: Any, verdict: Verdict, value: float | None) -> None:
    (row,) = rows(epochs, gate)
    ((statistic, bound),) = gate.items()
    assert (row.verdict, row.value) == (verdict, value)
    assert (row.name, row.bound) == (f"latency_ms.{statistic}", f"at most {bound:,} ms")
    assert (row.scenario, row.agent) == ("", "")
    assert bool(row.resolution) is (verdict is OPEN)


@pytest.mark.parametrize(
    ("name", "used", "bound", "verdict"),
    [
        ("tokens", Used(tokens=100), 100, PASSED),
        ("tokens", Used(tokens=101), 100, FAILED),
        ("tokens", Used(tokens=0), 100, OPEN),  # they were not counted
        ("steps", Used(), 1, PASSED),
        ("steps", Used(), 0, FAILED),
        ("tool_calls", Used(calls=2), 2, PASSED),
        ("tool_calls", Used(calls=2), 1, FAILED),
        ("cost", Used(cost=0.5), 0.5, PASSED),
        ("cost", Used(cost=0.5), 0.4, FAILED),
        ("cost", Used(), 0.5, OPEN),
    ],
)
def test_each_measure(name: str, used: Used, bound: float, verdict: Verdict) -> None:
    (row,) = rows([used], {"mean": bound}, name)
    assert (row.name, row.verdict) == (f"{name}.mean", verdict)


def test_calls_that_may_not_be_visible() -> None:
    (row,) = rows([Used(calls=1)], {"max": 3}, "tool_calls", calls=None)
    assert (row.verdict, row.value) == (OPEN, None)
    (row,) = rows([Used(calls=5)], {"max": 3}, "tool_calls", calls=None)
    assert (row.verdict, row.value) == (FAILED, 5)


def test_what_would_decide() -> None:
    (gone,) = rows([LOST], {"mean": 1})
    assert gone.resolution == RERUN_FAILED
    (unpriced,) = rows([Used()], {"mean": 1}, "cost")
    assert "prices" in unpriced.resolution


def test_each_bound_and_each_agent_has_a_row() -> None:
    found = rows(ms(1000), {"max": 900, "mean": 1100}, agents=("x", "y"))
    assert [(row.agent, row.name, row.verdict) for row in found] == [
        ("x", "latency_ms.mean", PASSED),
        ("x", "latency_ms.max", FAILED),
        ("y", "latency_ms.mean", PASSED),
        ("y", "latency_ms.max", FAILED),
    ]


def test_only_the_first_epochs_of_a_range_are_measured() -> None:
    (row,) = rows(ms(1000, 1000, 9000), {"mean": 1000}, ranges={"a": EpochRange(min=2, max=5)})
    assert (row.verdict, row.value) == (PASSED, 1000)
    (row,) = rows([LOST, *ms(1000, 2000, 9000)], {"mean": 1500}, ranges={"a": EpochRange(min=2, max=5)})
    assert (row.verdict, row.value) == (PASSED, 1500)


def test_the_numbers_of_the_basis() -> None:
    (row,) = rows([*ms(1000, 1000), BROKE, LOST, None], {"p95": 1000})
    assert row.verdict is FAILED
    assert row.basis.startswith("3 conversations")
    assert ", 1 ended" in row.basis
    assert "2 errored" in row.basis
    assert "p95" in row.basis
    assert "p95" not in rows(ms(*[1000] * 20), {"p95": 1000})[0].basis
    assert "errored" not in rows(ms(1000), {"mean": 1000})[0].basis


def test_tokens_that_were_estimated_are_noted() -> None:
    (some,) = rows([Used(), Used(estimated=True)], {"mean": 500}, "tokens")
    (none,) = rows([Used(), Used()], {"mean": 500}, "tokens")
    assert ["estimated" in row.basis for row in (some, none)] == [True, False]


def test_the_highest_scenarios_are_named_first() -> None:
    epochs = {"a": ms(1000), "b": ms(4000), "c": ms(2000, 4000), "d": ms(9000)}
    (row,) = rows(epochs, {"mean": 10})
    places = [row.basis.find(text) for text in ("d 9,000 ms", "b 4,000 ms", "c 3,000 ms")]
    assert -1 not in places
    assert places == sorted(places)
    assert "a 1,000" not in row.basis
    (passed,) = rows(epochs, {"mean": 10_000})
    assert "9,000" not in passed.basis


@pytest.mark.parametrize(
    ("name", "bound", "text"),
    [
        ("latency_ms", 1500, "1,500 ms"),
        ("cost", 0.25, "0.25 USD"),
        ("tokens", 12000.0, "12,000"),
        ("steps", 3.5, "3.5"),
    ],
)
def test_a_bound_as_written(name: str, bound: float, text: str) -> None:
    assert format_bound(name, bound) == text


# ── against the baseline ─────────────────────────────────────────────────────────────────────────


def before(**scenarios: Sequence[float]) -> Baseline:
    effort = {id: {"latency_ms": tuple(values)} for id, values in scenarios.items()}
    return Baseline(run_id="r0", outcomes={}, effort={"bot": effort})


MANY = {f"s{n}": [1000.0 + n] * 4 for n in range(12)}


def now(factor: float, **more: Any) -> dict[str, Any]:
    return {**{id: ms(*(factor * value for value in values)) for id, values in MANY.items()}, **more}


def ratio(factor: float, bound: float = 1.2, **more: Any) -> GateRow:
    (row,) = rows(now(factor, **more), {"no_worse_than": bound}, baseline=before(**MANY))
    return row


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, PASSED), (0.5, PASSED), (1.5, FAILED), (1.2, OPEN)])
def test_the_ratio_to_the_baseline(factor: float, verdict: Verdict) -> None:
    row = ratio(factor)
    assert (row.name, row.verdict, row.bound) == ("latency_ms.no_worse_than", verdict, "at most × 1.2")
    assert row.value == pytest.approx(factor)
    assert bool(row.resolution) is (verdict is OPEN)


def test_no_baseline() -> None:
    (row,) = rows(now(1), {"no_worse_than": 1.2})
    assert (row.verdict, row.value, row.resolution) == (OPEN, None, BASELINE)


def test_no_common_scenario() -> None:
    (row,) = rows({"new": ms(1000)}, {"no_worse_than": 1.2}, baseline=before(**MANY))
    assert (row.verdict, row.value, row.resolution) == (OPEN, None, "")
    (row,) = rows(now(1), {"no_worse_than": 1.2}, baseline=before(**MANY), agents=("x",))
    assert (row.verdict, row.value) == (OPEN, None)


def test_new_scenarios_are_not_compared() -> None:
    row = ratio(1.0, new=ms(9000), newer=ms(9000))
    assert (row.verdict, row.value) == (PASSED, pytest.approx(1.0))
    assert "; 2 scenarios" in row.basis
    assert "; 2 scenarios" not in ratio(1.0).basis


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"s3": [LOST]}, "s3"),
        ({"s3": [None]}, "s3"),
        ({"s3": ms(0)}, "s3"),
        ({"s3": ms(1000, 0)}, "s3"),
    ],
)
def test_unknown_numbers_leave_the_ratio_open(changed: Any, named: str) -> None:
    row = ratio(1.0, **changed)
    assert (row.verdict, row.value) == (OPEN, None)
    assert named in row.resolution


def test_a_baseline_without_the_number() -> None:
    (row,) = rows(now(1), {"no_worse_than": 1.2}, baseline=before(**{**MANY, "s3": []}))
    assert (row.verdict, row.value) == (OPEN, None)
    assert "s3" in row.resolution


@pytest.mark.parametrize(("unknown", "named", "more"), [(3, 3, ""), (5, 3, "2 more")])
def test_the_first_unknown_scenarios_are_named(unknown: int, named: int, more: str) -> None:
    row = ratio(1.0, **{f"s{n}": [LOST] for n in range(unknown)})
    assert sum(f"of s{n} " in row.basis for n in range(unknown)) == named
    assert more in row.basis
    assert ("more" in row.basis) is bool(more)


def test_one_scenario_alone_decides_nothing() -> None:
    (row,) = rows({"s0": ms(1000)}, {"no_worse_than": 1.2}, baseline=before(s0=[1000]))
    assert (row.verdict, row.value) == (OPEN, 1.0)


def test_bounds_come_before_the_baseline() -> None:
    found = rows(now(1), {"no_worse_than": 1.2, "max": 1}, baseline=before(**MANY))
    assert [(row.name, row.verdict) for row in found] == [
        ("latency_ms.max", FAILED),
        ("latency_ms.no_worse_than", PASSED),
    ]


# ── before a run ─────────────────────────────────────────────────────────────────────────────────

BOUNDS, PAIRED = NumberGate(mean=5), NumberGate(no_worse_than=1.2)
BOTH = NumberGate(mean=5, no_worse_than=1.2)


def test_what_the_gates_read() -> None:
    gate = GATES["cost"]
    assert [gate.reads_baseline(each) for each in (BOUNDS, PAIRED, BOTH)] == [False, True, True]
    for repeats in (False, True):
        found = [bool(gate.unapplied(each, repeats=repeats)) for each in (BOUNDS, PAIRED, BOTH)]
        assert found == [False, True, False]


@pytest.mark.parametrize(
    ("gate", "scenarios", "facts", "absent"),
    [
        (BOUNDS, 3, [], ["no_worse_than"]),
        (PAIRED, 3, ["no_worse_than", "1.2", "5 %"], [";  "]),
        (PAIRED, 1, ["no_worse_than", "at least 2"], ["1.2"]),
        (BOTH, 3, ["no_worse_than", "; "], []),
        (NumberGate(no_worse_than=1.0), 3, ["no_worse_than"], ["vary"]),
        (NumberGate(no_worse_than=1.3), 3, ["vary", "%"], []),
    ],
)
def test_error_rates_are_not_known(
    gate: NumberGate, scenarios: int, facts: list[str], absent: list[str]
) -> None:
    planned = PlannedRun([EpochRange(min=1, max=1)] * scenarios, "w")
    found = GATES["cost"].estimate_error_rates(gate, planned)
    assert (found.gate, found.where, found.is_known) == ("cost", "w", False)
    assert [fact for fact in facts if fact not in found.advice] == []
    assert [fact for fact in absent if fact in found.advice] == []
