"""Runs with judges, a simulated user and issues, folded from events as a run would give them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import anyio

from agenteval.core.config import AgentConfig, Config
from agenteval.core.event import Event, IssuesFound, RunFinished
from agenteval.core.scenario import CaseSpec, SampleKey, Scenario
from agenteval.core.score import (
    Check,
    Finding,
    Issue,
    IssueExample,
    MetricSpec,
    Occurrence,
    Score,
    ScoreFailure,
    ScoreItem,
    Severity,
)
from agenteval.core.trajectory import Step, Stop, StopReason, Turn, Usage
from agenteval.scoring import metrics
from agenteval.scoring.findings import locate_findings
from agenteval.scoring.issues import deduplicate_findings
from agenteval.verdict import gates
from agenteval.verdict.report import build_report
from tests.support.report_samples import Told, conversation, started, weather_call

NUMBERS = ("helpfulness", "coherence", "relevance", "faithfulness", "verbosity")
LABELS = ("agent_behavior_failure", "tool_call_behavior_failure")
MODEL = "openai/gpt-5-mini"
SCRIPT = "scripted/replies.yaml"
USER_DONE = Stop(reason=StopReason.USER_DONE)
JUDGE_USAGE = Usage(calls=1, input_tokens=2000, output_tokens=80, cached_tokens=1500, cost=0.001)


def book(**more: Any) -> Scenario:
    base = Scenario(
        id="book-morning",
        name="user books a morning slot",
        goal="Book a haircut.",
        source="scenarios/booking.yaml:2",
        thresholds={"helpfulness": 3.5, "goal_completion": 0.5},
        tools={"get_weather": {"returns": 1}},
    )
    return base.model_copy(update=more)


REFUND = Scenario(id="refund", name="a refund", goal="Get money back.", source="scenarios/refund.yaml:1")
CASE = Scenario(
    id="C-01", name="C-01", source="cases.yaml:4", case=CaseSpec(expected_output_contains=("25",))
)


def by(scripted: bool) -> dict[str, Any]:
    model = {"by": SCRIPT if scripted else MODEL, "scripted": scripted}
    return {**model, "usage": Usage(calls=1) if scripted else JUDGE_USAGE}


def number(metric: str, value: float, *, scripted: bool = False, **more: Any) -> Score:
    told = {"reason": f"{metric} was weighed", "evidence": "Booked for 09:00.", **by(scripted), **more}
    return Score(metric=metric, value=value, **told)


def label(metric: str, name: str = "no failure", *, scripted: bool = False, **more: Any) -> Score:
    told = {"reason": f"{metric} was looked for", **by(scripted), **more}
    return Score(metric=metric, label=name, ok=name == "no failure", **told)


def finding(name: str, severity: Severity, turn: int | None, **more: Any) -> Finding:
    told = {"metric": LABELS[0], "evidence": "Booked!", "explanation": "nothing was booked", **more}
    return Finding(detector="judge", label=name, severity=severity, turn=turn, **told)


def turn_scores(*, scripted: bool = False, tools: bool = True, **values: float) -> tuple[Score, ...]:
    numbers = [number(metric, values.get(metric, 4), scripted=scripted) for metric in NUMBERS]
    labels = [label(metric, scripted=scripted) for metric in LABELS[: 1 + tools]]
    return (*numbers, *labels)


def simulated(
    user: str, answer: str | None, *calls: Any, fault: str = "", scripted: bool = False, **more: Any
) -> Turn:
    steps = [Step(tool_calls=calls)] if calls else []
    steps += [Step(text=answer, usage=Usage(calls=1, input_tokens=120, output_tokens=30))] if answer else []
    used = Usage(calls=2 if fault else 1) if scripted else Usage(calls=1, input_tokens=500, output_tokens=20)
    return Turn(
        user=user,
        steps=tuple(steps),
        latency_ms=1500.0,
        user_model=SCRIPT if scripted else MODEL,
        user_usage=used,
        user_fault=fault,
        **more,
    )


def _booking(scripted: bool) -> Iterator[Event]:
    key = SampleKey(scenario="book-morning", agent="wonderbot")
    fault = "spoke as the assistant ('How can I help you')"
    first = simulated("A cut on Tuesday?", "Booked for 09:00.", weather_call(), scripted=scripted)
    second = simulated("Thanks!", "You are welcome.", fault=fault, scripted=scripted)
    goal = number("goal_completion", 1, scripted=scripted, reason="it was booked")
    met = Check(name="criteria", passed=True, detail="Confirms the date — pass: it did", **by(scripted))
    told: dict[int | None, tuple[ScoreItem, ...]] = {
        0: turn_scores(scripted=scripted),
        1: turn_scores(scripted=scripted),
        None: (goal, met),
    }
    yield from conversation(key, (first, second), told, stop=USER_DONE)
    lie = label(
        LABELS[0], "false information", scripted=scripted, reason="nothing was booked", evidence="Booked!"
    )
    broken = ScoreFailure(
        metric="coherence", message="the reply is not JSON", raw='{"evidence": "…' + "x" * 400
    )
    bad = tuple(
        s
        for s in turn_scores(scripted=scripted, helpfulness=1, faithfulness=2)
        if s.metric not in ("coherence", LABELS[0])
    )
    unmet = Check(
        name="criteria",
        passed=False,
        detail="Confirms the date — fail: no date was named (evidence: “Booked!”)",
        where="scenarios/booking.yaml:14",
        **by(scripted),
    )
    missed = number("goal_completion", 0, scripted=scripted, reason="no booking was made")
    told = {
        0: (*bad, lie, broken, finding("false information", Severity.HIGH, 0, scripted=scripted)),
        None: (
            missed,
            unmet,
            finding("goal not completed", Severity.HIGH, None, metric="goal_completion", scripted=scripted),
            finding(
                "criterion not met",
                Severity.MEDIUM,
                None,
                metric="criteria",
                criterion="Confirms the date",
                scripted=scripted,
            ),
        ),
    }
    yield from conversation(
        key.model_copy(update={"epoch": 1}),
        (simulated("A cut on Tuesday?", "Booked!", scripted=scripted),),
        told,
        stop=USER_DONE,
    )


def _others(scripted: bool) -> Iterator[Event]:
    key = SampleKey(scenario="refund", agent="wonderbot")
    repeats = finding("repetition", Severity.LOW, 1, explanation="said the same again", evidence="As I said")
    told = {
        0: turn_scores(scripted=scripted, tools=False),
        1: (
            *turn_scores(scripted=scripted, tools=False)[:-1],
            label(LABELS[0], "repetition", scripted=scripted),
            repeats,
        ),
        None: (ScoreFailure(metric="goal_completion", message="the model timed out after 60 s"),),
    }
    turns = tuple(
        simulated(f"I want my money back, {n}", "As I said, no.", scripted=scripted) for n in range(2)
    )
    yield from conversation(key, turns, told, stop=USER_DONE)
    lost = Stop(reason=StopReason.SIMULATOR, detail="the simulated user said nothing, 2 times")
    yield from conversation(
        key.model_copy(update={"epoch": 1}),
        (),
        stop=lost,
        unfinished=Turn(user="", error=lost.detail, user_fault=lost.detail, user_usage=Usage(calls=2)),
    )
    held = tuple(Check(name=name, passed=True) for name in ("no_error", "answer", "output.contains"))
    yield from conversation(
        SampleKey(scenario="C-01", agent="wonderbot"),
        (Turn(user="Paris?", steps=(Step(text="25 degrees"),), latency_ms=900.0, script=0),),
        {0: turn_scores(scripted=scripted, tools=False), None: held},
    )


def run(
    scenarios: Sequence[Scenario],
    events: Sequence[Event],
    *,
    config: Config | None = None,
    issues: IssuesFound | None = None,
    samples: Sequence[SampleKey] | None = None,
    **more: Any,
) -> Told:
    """Fold and decide as ``agenteval run`` does; issues are grouped by code unless given."""
    keys = samples or tuple(dict.fromkeys(event.key for event in events if event.type == "sample_started"))
    specs: tuple[MetricSpec, ...] = more.pop("metrics", metrics.built_in_metrics())
    more = {"judged": tuple(spec.name for spec in specs), **more}
    chosen = config or Config(agent=AgentConfig(name="wonderbot", target="a.py:a", calls="all"))
    begin = started(tuple(scenarios), tuple(keys), metrics=specs, config=chosen, **more)
    told: list[Event] = [begin, *events]
    found = locate_findings((s.key, s.trajectory, s.findings) for s in build_report(told).samples)
    if issues is None and found:
        issues = anyio.run(deduplicate_findings, found)
    told += [issues] if issues else []
    told.append(RunFinished(finished_at="2026-11-21T10:16:00Z", elapsed_s=61.5))
    report = build_report(told)
    return report, gates.decide(report)


def lie_issue(*, scripted: bool = False) -> Issue:
    return Issue(
        id="I1",
        agent="wonderbot",
        title="Claims a booking that was never made",
        explanation="The agent says that it booked, but no tool was called.",
        severity=Severity.HIGH,
        proposed_severity=Severity.CRITICAL,
        labels=("false information", "goal not completed"),
        metrics=(LABELS[0], "goal_completion"),
        occurrences=(Occurrence(scenario="book-morning", agent="wonderbot", epoch=1, findings=(0, 2)),),
        examples=(
            IssueExample(scenario="book-morning", agent="wonderbot", epoch=1, turn=0, evidence="Booked!"),
        ),
        by=SCRIPT if scripted else MODEL,
        scripted=scripted,
    )


def small_issues() -> tuple[Issue, ...]:
    unmet = Issue(
        id="I2",
        agent="wonderbot",
        title="criterion not met: Confirms the date",
        explanation="no date was named",
        severity=Severity.MEDIUM,
        labels=("criterion not met",),
        metrics=("criteria",),
        occurrences=(Occurrence(scenario="book-morning", agent="wonderbot", epoch=1, findings=(1,)),),
        examples=(IssueExample(scenario="book-morning", agent="wonderbot", epoch=1),),
    )
    repeats = Issue(
        id="I3",
        agent="wonderbot",
        title="repetition",
        severity=Severity.LOW,
        labels=("repetition",),
        metrics=(LABELS[0],),
        occurrences=(Occurrence(scenario="refund", agent="wonderbot", findings=(0,)),),
        examples=(IssueExample(scenario="refund", agent="wonderbot", turn=1, evidence="As I said"),),
    )
    return unmet, repeats


def judged_run(*, scripted: bool = False, config: Config | None = None, **more: Any) -> Told:
    """Three scenarios, all metrics, a simulated user. Of ``book-morning`` one epoch is fine and one
    is not; of ``refund`` a judge failed and one sample was lost to the simulated user; a case passed."""
    found = IssuesFound(
        issues=(lie_issue(scripted=scripted), *small_issues()),
        usage=Usage(calls=1) if scripted else JUDGE_USAGE,
        failures=(ScoreFailure(metric="error_deduplication", message="HTTP 500", raw="oops"),),
    )
    events = [*_booking(scripted), *_others(scripted)]
    return run((book(), REFUND, CASE), events, config=config, issues=found, **more)
