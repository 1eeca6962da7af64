"""Reports and decisions for the tests of the reporters, folded from events as a run would give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agenteval.core.config import AgentConfig, Config
from agenteval.core.decision import Decision, GateRow, SampleDecision, ScenarioDecision, Violation
from agenteval.core.event import (
    Event,
    IssuesFound,
    Notice,
    RunFinished,
    RunStarted,
    SampleFinished,
    SampleStarted,
    Scored,
    TurnFinished,
)
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import CaseSpec, Category, EpochRange, SampleKey, Scenario
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
    Verdict,
)
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Turn, Usage
from agenteval.verdict.report import Report, build_report
from tests.support.plans import plan_for

Told = tuple[Report, Decision]

DONE = Stop(reason=StopReason.SCRIPT_DONE)
USAGE = Usage(calls=1, input_tokens=120, output_tokens=30, estimated=True)


def started(
    scenarios: tuple[Scenario, ...],
    samples: tuple[SampleKey, ...],
    *,
    config: Config | None = None,
    metrics: tuple[MetricSpec, ...] = (),
    judged: tuple[str, ...] = (),
    no_judge: bool = False,
    epochs: Mapping[str, EpochRange] | None = None,
    unapplied: Mapping[str, str] | None = None,
    **more: Any,
) -> RunStarted:
    agent = AgentConfig(name="wonderbot", target="agent.py:agent", calls="all")
    config = config or Config(agent=agent, root="/secret/place")
    plan = plan_for(
        config,
        scenarios,
        samples,
        metrics=metrics,
        judged=judged,
        no_judge=no_judge,
        epochs=epochs,
        unapplied=unapplied,
    )
    return RunStarted(
        run_id="20261121-101500-ab12",
        started_at="2026-11-21T10:15:00Z",
        config=config,
        plan=plan,
        scenarios=scenarios,
        **{"versions": {"agenteval": "0.1.0"}, "command": ("agenteval", "run"), **more},
    )


def turn(user: str, answer: str | None, *calls: ToolCall, error: str | None = None) -> Turn:
    steps = [Step(tool_calls=calls, latency_ms=400.0, usage=USAGE)] if calls else []
    if answer is not None:
        steps.append(Step(text=answer, latency_ms=600.0, usage=USAGE))
    return Turn(user=user, steps=tuple(steps), latency_ms=1500.0, error=error, script=0)


def conversation(
    key: SampleKey,
    turns: tuple[Turn, ...],
    said: Mapping[int | None, tuple[ScoreItem, ...]] | None = None,
    *,
    stop: Stop | None = DONE,
    unfinished: Turn | None = None,
) -> Iterator[Event]:
    yield SampleStarted(key=key)
    for index, each in enumerate(turns):
        yield TurnFinished(key=key, index=index, turn=each)
    for place, items in (said or {}).items():
        yield Scored(key=key, turn=place, items=items)
    if stop is not None:
        yield SampleFinished(key=key, stop=stop, unfinished=unfinished)


def judged(sample: SampleReport) -> SampleDecision:
    """A plain reading of a sample, enough for a reporter: its stop, its checks, its severe findings."""
    fault = sample.stop.fault if sample.stop else "interrupted"
    if fault not in (None, "agent"):
        return SampleDecision(Verdict.INCONCLUSIVE, fault)
    broken = [
        Violation(check.name, check.detail, check.where, turn=index)
        for index, checks in [*enumerate(t.checks for t in sample.turns), (None, sample.checks)]
        for check in checks
        if check.passed is False
    ]
    broken += [
        Violation("severity", f"{found.label}: {found.explanation}", "default", turn=found.turn)
        for found in sample.findings
        if found.severity is Severity.CRITICAL
    ]
    if fault:
        broken.append(Violation("no_error", sample.stop.detail if sample.stop else "", ""))
    return SampleDecision(Verdict.FAILED if broken else Verdict.PASSED, fault, tuple(broken))


def decide(report: Report, *gates: GateRow, **more: Any) -> Decision:
    """A decision over ``report`` in which each scenario is as bad as the worst of its samples."""
    samples = {sample.key: judged(sample) for sample in report.samples}
    for scenario in report.scenarios:
        samples |= {key: SampleDecision(Verdict.INCONCLUSIVE, "interrupted") for key in scenario.missing}
    scenarios: dict[tuple[str, str], ScenarioDecision] = {}
    for scenario in report.scenarios:
        name = (scenario.scenario.id, scenario.agent)
        own = tuple(
            Violation(
                gate.name,
                f"{gate.name} is {gate.value}, not {gate.bound}",
                gate.where,
                gate.verdict,
                metric=gate.metric,
            )
            for gate in gates
            if (gate.scenario, gate.agent) == name and gate.verdict is not Verdict.PASSED
        )
        keys = [sample.key for sample in scenario.samples] + list(scenario.missing)
        parts = [samples[key].verdict for key in keys] + [violation.verdict for violation in own]
        scenarios[name] = ScenarioDecision(Verdict.worst(parts), own)
    verdict = Verdict.worst(decided.verdict for decided in scenarios.values())
    code = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCONCLUSIVE: 3}[verdict]
    return replace(Decision(verdict, code, gates, samples, scenarios), **more)


def weather_call(city: str = "Paris") -> ToolCall:
    return ToolCall(name="get_weather", args={"city": city}, result=ToolResult(value={"temp": 20}))


BOOKING = Scenario(
    id="book-morning",
    name="user books a morning slot",
    tags=("booking",),
    goal="Book a haircut.",
    source="scenarios/booking.yaml:2",
    epochs=3,
)
REFUND = Scenario(
    id="refund", name="a refund", category=Category.ROBUSTNESS, source="scenarios/refund.yaml:1"
)
CASE = Scenario(
    id="C-01",
    name="C-01",
    source="scenarios/cases.yaml:4",
    case=CaseSpec(expected_tools=("get_weather",), expected_output_contains=("25",)),
)


def _booking(agent: str) -> Iterator[Event]:
    good = Score(metric="helpfulness", value=4.0, reason="clear", evidence="09:00", by="openai/gpt-5-mini")
    key = SampleKey(scenario="book-morning", agent=agent)
    booked = turn("A cut on Tuesday morning?", "Booked for 09:00.", weather_call())
    yield from conversation(key, (booked, turn("Thanks", "You are welcome.")), {0: (good,), 1: (good,)})
    missing = Check(
        name="tool_calls",
        passed=False,
        detail="missing: create_booking(time=09:00)\nactual: get_weather(city=Paris)",
        where="scenarios/booking.yaml:12",
    )
    lie = Finding(
        detector="judge",
        metric="agent_behavior_failure",
        label="false information",
        severity=Severity.HIGH,
        turn=0,
        evidence="Booked!",
        explanation="nothing was booked",
    )
    told = {0: (good.model_copy(update={"value": 2.0}), lie), None: (missing,)}
    yield from conversation(key.model_copy(update={"epoch": 1}), (booked,), told)


def _others(agent: str) -> Iterator[Event]:
    down = Stop(reason=StopReason.INFRASTRUCTURE, detail="http://localhost:9 refused the connection")
    yield from conversation(
        SampleKey(scenario="refund", agent=agent),
        (),
        {None: (ScoreFailure(metric="goal_completion", message="the judge was not reached", raw="{"),)},
        stop=down,
        unfinished=turn("I want my money back", None, error="connection refused"),
    )
    unread = ToolCall(
        name="get_weather",
        args=None,
        raw_args="{oops",
        result=ToolResult(value={"error": "bad"}, is_error=True),
    )
    wrong = Check(
        name="output.contains", passed=False, detail="expected 25 in: It is 20.", where="cases.yaml:9"
    )
    label = Score(metric="agent_behavior_failure", label="no failure", reason="fine", scripted=True)
    key = SampleKey(scenario="C-01", agent=agent)
    yield from conversation(key, (turn("Paris?", "It is 20.", unread, weather_call()),), {0: (wrong, label)})


def mixed(*agents: str) -> Told:
    """Three scenarios (with each of ``agents``): one fails in the second of three epochs, of which
    the third never ran; one is inconclusive; and a test case fails."""
    agents = agents or ("wonderbot",)
    keys = [
        SampleKey(scenario=scenario, agent=agent, epoch=epoch)
        for agent in agents
        for scenario, epochs in (("book-morning", 3), ("refund", 1), ("C-01", 1))
        for epoch in range(epochs)
    ]
    named = {name: AgentConfig(name=name, target="agent.py:agent", calls="all") for name in agents}
    (first, *_) = named.values()
    config = Config(agent=first, agents=named, root="/secret/place")
    events: list[Event] = [started((BOOKING, REFUND, CASE), tuple(keys), config=config)]
    for agent in agents:
        events += [*_booking(agent), *_others(agent)]
    events += [
        Notice(level="warning", text="temperature is not supported and was dropped"),
        RunFinished(finished_at="2026-11-21T10:16:00Z", outcome="interrupted", elapsed_s=61.5),
    ]
    gate = GateRow(
        name="helpfulness",
        value=3.33,
        bound=3.5,
        basis="3 turns",
        where="agenteval.yaml:8",
        verdict=Verdict.FAILED,
        scenario="book-morning",
        agent=agents[0],
        metric="helpfulness",
    )
    report = build_report(events)
    return report, decide(report, gate, ungated=("agent_behavior_failure",))


def passing(count: int = 1) -> Told:
    """``count`` test cases that passed."""
    scenarios = tuple(
        Scenario(id=f"C-{index}", name=f"C-{index}", case=CASE.case, source=f"cases.yaml:{index + 1}")
        for index in range(count)
    )
    keys = tuple(SampleKey(scenario=scenario.id, agent="wonderbot") for scenario in scenarios)
    held = tuple(Check(name=name, passed=True) for name in ("no_error", "answer", "output.contains"))
    events: list[Event] = [started(scenarios, keys)]
    for key in keys:
        events += conversation(key, (turn("Paris?", "25 degrees", weather_call()),), {None: held})
    events.append(RunFinished(finished_at="2026-11-21T10:16:00Z", elapsed_s=2.0))
    report = build_report(events)
    return report, decide(report)


def hostile(text: str) -> Told:
    """A run in which every free text is ``text``: names, messages, arguments, results, reasons."""
    scenario = Scenario(
        id=text, name=text, tags=(text,), goal=text, source=f"{text}:3", case=CaseSpec(expected_tools=(text,))
    )
    key = SampleKey(scenario=text, agent=text)
    calls = (
        ToolCall(name=text, args={text: [text, {text: text}]}, result=ToolResult(value={text: text})),
        ToolCall(
            name=text, args=None, raw_args=text, result=ToolResult(value={"error": text}, is_error=True)
        ),
    )
    items: tuple[ScoreItem, ...] = (
        Check(name=text, passed=False, detail=text, where=f"{text}:7"),
        Check(name="output.contains", passed=False, detail=text, where=text),
        Check(name="criteria", passed=False, detail=text, where=text, by=text, scripted=True),
        Score(metric=text, value=1.5, reason=text, evidence=text, by=text, scripted=True),
        Score(metric=f"{text} label", label=text, ok=False, reason=text, evidence=text, by=text),
        ScoreFailure(metric=text, message=text, raw=text),
        *(
            Finding(
                detector=text, metric=text, label=text, severity=severity, turn=0, call=0, evidence=text,
                explanation=text, criterion=text,
            )
            for severity in Severity
        ),
    )  # fmt: skip
    simulated = turn(text, text).model_copy(update={"user_model": text, "user_fault": text, "script": None})
    turns = (turn(text, text, *calls), simulated)
    metric = MetricSpec(name=text, scope="turn", kind="mean", scale=(1, 5))
    events: list[Event] = [
        started(
            (scenario,),
            (key, key.model_copy(update={"epoch": 1})),
            prompts={text: text},
            metrics=(metric,),
            judged=(text,),
        ),
        *conversation(
            key,
            turns,
            {0: items, None: items},
            stop=Stop(reason=StopReason.AGENT_ERROR, detail=text),
            unfinished=turn(text, text, error=text),
        ),
        Notice(level="error", text=text, key=key),
        IssuesFound(
            issues=tuple(_hostile_issue(text, key, severity) for severity in Severity),
            failures=(ScoreFailure(metric=text, message=text, raw=text),),
        ),
    ]
    report = build_report(events)
    gates = [
        GateRow(text, text, text, text, f"{text}:9", verdict, scope, scope)
        for scope in (text, "")
        for verdict in Verdict
    ]
    return report, decide(report, *gates, ungated=(text,), author_errors=(text,))


def _hostile_issue(text: str, key: SampleKey, severity: Severity) -> Issue:
    place = key.model_dump()
    return Issue(
        id=text,
        agent=key.agent,
        title=text,
        explanation=text,
        severity=severity,
        proposed_severity=Severity.LOW,
        labels=(text,),
        metrics=(text,),
        tools=(text,),
        occurrences=(Occurrence(**place, findings=(severity.rank,)),),
        examples=(IssueExample(**place, turn=0, call=0, evidence=text),),
        by=text,
    )
