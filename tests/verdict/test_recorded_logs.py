"""Logs without scenarios: which ones they are, and how many of their records may be unreadable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.decision import SampleDecision
from agenteval.core.event import Event, RunFinished, SampleFinished, SampleStarted, Scored
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import HINDERED, OUTCOME, Check, ScoreItem, UserReview, Verdict
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.recorded_logs import (
    MOST_UNREADABLE,
    READABLE,
    SEVERE,
    is_unreadable,
    is_without_scenarios,
    named_places,
    names_severity,
    readable_row,
    undecided_in,
    unreadable_places,
)
from agenteval.verdict.report import Report, build_report
from tests.support.report_samples import started
from tests.support.verdict_runs import PASS, report_of

PASSED, OPEN = Verdict.PASSED, Verdict.INCONCLUSIVE
LINE = {"expect": 3}


def stop(reason: StopReason, detail: str = "", **more: Any) -> Stop:
    return Stop(reason=reason, detail=detail, **more)


def unreadable(line: int, **more: Any) -> Stop:
    return stop(StopReason.UNREADABLE, f"log.jsonl:{line}: no messages", **more)


RECORDED = stop(StopReason.RECORDED, "log.jsonl:1")
LOST = stop(StopReason.INFRASTRUCTURE, "a judge")


def log(
    *stops: Stop | None,
    items: tuple[ScoreItem, ...] = (),
    lines: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    origins: Mapping[str, str] | None = None,
    **run: Any,
) -> Report:
    """A log of which each record, named by its number, ended like this. ``items``: of the first."""
    settings = {"agent": {"name": "bot", "target": "a:b", "calls": "all"}, **(config or {})}
    chosen = Config.model_validate(settings).model_copy(
        update={"lines": dict(lines or {}), "source": "c.yaml"}
    )
    events: list[Event] = [started((), (), config=chosen, **run)]
    for number, each in enumerate(stops):
        key = SampleKey(scenario=f"r{number}", agent="bot")
        events.append(SampleStarted(key=key, scenario=Scenario(id=f"r{number}")))
        if not number and items:
            events.append(Scored(key=key, turn=None, items=items))
        events += [SampleFinished(key=key, stop=each)] if each else []
    return build_report([*events, RunFinished(finished_at="")])


OF_USER = UserReview(label=HINDERED)


@pytest.mark.parametrize(
    ("report", "without"),
    [
        pytest.param(log(RECORDED), True, id="recorded"),
        pytest.param(log(), False, id="nothing"),
        pytest.param(log(RECORDED, request={"paths": ["x"]}), False, id="a run"),
        pytest.param(log(RECORDED, unreadable(2), LOST), True, id="ends of records"),
        pytest.param(log(RECORDED, None), True, id="cut off"),
        pytest.param(
            log(RECORDED, stop(StopReason.BUDGET), stop(StopReason.INTERRUPTED)), True, id="cut short"
        ),
        *(
            pytest.param(log(RECORDED, stop(reason)), False, id=f"ended as a run does: {reason}")
            for reason in (StopReason.SCRIPT_DONE, StopReason.AGENT_ERROR, StopReason.SIMULATOR)
        ),
        pytest.param(log(RECORDED, items=(Check(name=OUTCOME, passed=True),)), False, id="a known outcome"),
        pytest.param(log(RECORDED, items=(Check(name="answer", passed=True),)), True, id="another check"),
        pytest.param(report_of({"a": [PASS]}), False, id="scenarios"),
    ],
)
def test_which_logs_have_no_scenarios(report: Report, without: bool) -> None:
    assert is_without_scenarios(report) is without


@pytest.mark.parametrize(("decides", "without"), [(True, True), (False, False)])
def test_a_user_at_fault_in_a_record(decides: bool, without: bool) -> None:
    report = log(stop(StopReason.SIMULATOR))
    (scenario,) = report.scenarios
    review = OF_USER.model_copy(update={"explains": decides})
    samples = tuple(replace(each, review=review) for each in scenario.samples)
    assert is_without_scenarios(replace(report, scenarios=(replace(scenario, samples=samples),))) is without


def test_a_written_scenario_is_one() -> None:
    report = log(RECORDED, RECORDED)
    first, second = report.scenarios
    written = replace(second, scenario=second.scenario.model_copy(update={"lines": LINE}))
    unmet = replace(second, missing=(SampleKey(scenario="r1", agent="bot", epoch=1),))
    for each in (written, unmet):
        assert not is_without_scenarios(replace(report, scenarios=(first, each)))


@pytest.mark.parametrize(("lines", "named"), [({}, False), ({"fail_on_severity": 4}, True)])
def test_a_configuration_names_a_severity(lines: dict[str, int], named: bool) -> None:
    assert names_severity(log(RECORDED, lines=lines).plan) is named
    assert SEVERE == "fail_on_severity"


def test_which_records_are_unreadable() -> None:
    report = log(RECORDED, unreadable(2), None, LOST, unreadable(5))
    assert [is_unreadable(each) for each in report.samples] == [False, True, False, False, True]
    assert unreadable_places(report) == ("log.jsonl:2", "log.jsonl:5")
    assert unreadable_places(log()) == ()


def answered(count: int) -> list[Stop]:
    return [RECORDED] * count


WRITTEN = {"fault_tolerance": 2}


@pytest.mark.parametrize(
    ("stops", "tolerance", "value", "bound", "decided"),
    [
        pytest.param(answered(1), None, 0.0, MOST_UNREADABLE, True, id="all readable"),
        pytest.param([*answered(19), unreadable(2)], None, 0.05, MOST_UNREADABLE, True, id="at the limit"),
        pytest.param([*answered(18), unreadable(2)], None, 1 / 19, MOST_UNREADABLE, False, id="above it"),
        pytest.param([RECORDED, unreadable(2)], 0.5, 0.5, 0.5, True, id="at that of the configuration"),
        pytest.param([RECORDED, unreadable(2)], 0.49, 0.5, 0.49, False, id="above that of the configuration"),
        pytest.param([*answered(19), unreadable(2)], 0, 0.05, 0, False, id="none tolerated"),
        pytest.param([unreadable(1)], 1, 1.0, 1, False, id="nothing known"),
        pytest.param([LOST], None, 0.0, MOST_UNREADABLE, False, id="no answer"),
        pytest.param([LOST, RECORDED], None, 0.0, MOST_UNREADABLE, True, id="one answer"),
        pytest.param([], None, None, MOST_UNREADABLE, False, id="no record"),
        pytest.param(
            [*answered(30), unreadable(2, hides_rest=True)], None, 1 / 31, MOST_UNREADABLE, False, id="hidden"
        ),
        pytest.param(
            [RECORDED, unreadable(2, hides_rest=True)], 1, 0.5, 1, False, id="hidden, all tolerated"
        ),
    ],
)
def test_how_many_records_may_be_unreadable(
    stops: list[Stop], tolerance: float | None, value: float | None, bound: float, decided: bool
) -> None:
    config = {} if tolerance is None else {"fault_tolerance": tolerance}
    found = readable_row(log(*stops, config=config, lines={} if tolerance is None else WRITTEN))
    assert (found.name, found.value, found.bound) == (READABLE, value, bound)
    assert found.verdict is (PASSED if decided else OPEN)
    assert bool(found.resolution) is not decided
    assert found.where == ("default" if tolerance is None else "c.yaml:2")
    assert (found.scenario, found.agent) == ("", "")


def test_unreadable_records_are_named() -> None:
    found = readable_row(log(*map(unreadable, range(1, 5)), RECORDED))
    for text in (found.basis, found.resolution):
        assert [f"log.jsonl:{line}" in text for line in range(1, 5)] == [True, True, True, False]
        assert "1 more" in text
    assert "4 unreadable of 5 records" in found.basis
    assert "answer" not in found.basis
    assert found.resolution.startswith("replace ")


def test_where_nothing_answers_records_with_an_answer_are_needed() -> None:
    found = readable_row(log(LOST))
    assert "0 unreadable of 1 record" in found.basis
    assert "answer" in found.basis
    assert "answers" in found.resolution


def test_the_record_after_which_nothing_is_known_is_named() -> None:
    found = readable_row(log(RECORDED, unreadable(7, hides_rest=True)))
    assert "follows log.jsonl:7" in found.basis
    assert "follows" not in readable_row(log(RECORDED, unreadable(7))).basis


@pytest.mark.parametrize(
    ("count", "text"), [(0, ""), (1, "p0"), (3, "p0, p1, p2"), (4, "p0, p1, p2 and 1 more")]
)
def test_only_the_first_places_are_named(count: int, text: str) -> None:
    assert named_places([f"p{n}" for n in range(count)]) == text


def test_undecided_conversations_are_readable_ones() -> None:
    report = log(RECORDED, unreadable(2), RECORDED, LOST)
    verdicts = [PASSED, OPEN, OPEN, OPEN]
    samples = {
        sample.key: SampleDecision(verdict) for sample, verdict in zip(report.samples, verdicts, strict=True)
    }
    assert undecided_in(report, samples) == 2
    assert undecided_in(log(), {}) == 0
