"""Reports of small runs for the tests of verdicts: what was found in each conversation, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agenteval.core.config import Config
from agenteval.core.decision import GateRow
from agenteval.core.event import Event, RunFinished, TurnFinished
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import NOT_CLEAR, Check, Finding, MetricSpec, Score, ScoreFailure, Severity
from agenteval.core.trajectory import Stop, StopReason, ToolCall
from agenteval.verdict.epochs import epoch_outcomes, sample_success
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report, build_report
from agenteval.verdict.run_gates import gates_over_runs
from agenteval.verdict.sample_decisions import decide_samples
from tests.support.report_samples import conversation, started, turn

BEHAVIOR = "agent_behavior_failure"
GOAL = "goal_completion"
HELD = Check(name="output.contains", passed=True)
BROKEN = Check(name="output.contains", passed=False, detail="not there")
UNDECIDED = Check(name="python", passed=None, detail="it raised")
LABELS = MetricSpec(name=BEHAVIOR, scope="turn", kind="rate", labels=("no failure", "x"), ok=("no failure",))
GOALS = MetricSpec(name=GOAL, scope="conversation", kind="rate", needs="goal")
STARS = MetricSpec(name="stars", scope="conversation", kind="mean", scale=(1.0, 5.0))
RULES = MetricSpec(
    name="policy_adherence",
    scope="conversation",
    kind="rate",
    labels=("followed", "broken"),
    ok=("followed",),
    needs="policy",
)
TOOL_USE = MetricSpec(name="tool_use", scope="turn", kind="mean", scale=(1.0, 5.0), needs="tools")
SPECS = (LABELS, GOALS, STARS)


@dataclass(frozen=True)
class Played:
    """One conversation: what was found in the whole and in each of its turns, and how it ended."""

    whole: tuple[Any, ...] = ()
    turns: tuple[tuple[Any, ...], ...] = ((HELD,),)
    stop: StopReason | None = StopReason.SCRIPT_DONE
    detail: str = ""
    calls: tuple[ToolCall, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def events(self, key: SampleKey) -> list[Event]:
        turns = tuple(turn(f"hi {n}", "hello", *self.calls) for n in range(len(self.turns)))
        items: dict[int | None, tuple[Any, ...]] = {None: self.whole, **dict(enumerate(self.turns))}
        stop = None if self.stop is None else Stop(reason=self.stop, detail=self.detail)
        ended = stop is not None and stop.fault is None
        return list(
            conversation(key, turns, items, stop=stop, unfinished=None if ended else turn("again", None))
        )


def whole(*items: Any) -> Played:
    """A finished conversation of one turn, with ``items`` for the whole and nothing for its turn."""
    return Played(items, turns=((),))


def lost(*items: Any, stop: StopReason | None = StopReason.INFRASTRUCTURE) -> Played:
    """A conversation that did not end by itself."""
    return Played(items, turns=((),), stop=stop)


PASS, FAIL, UNSURE = Played((HELD,)), Played((BROKEN,)), Played((UNDECIDED,))
LOST, CUT = lost(), lost(stop=None)


def finding(severity: Severity = Severity.CRITICAL, turn: int | None = 0, **more: Any) -> Finding:
    label = "unsafe action" if severity is Severity.CRITICAL else "false information"
    fields = {"detector": "judge", "metric": BEHAVIOR, "label": label, "explanation": "so it is", **more}
    return Finding(severity=severity, turn=turn, **fields)


def score(metric: str, value: float | None = None, **more: Any) -> Score:
    return Score(metric=metric, value=value, **more)


def unclear(metric: str, label: str = NOT_CLEAR) -> Score:
    return Score(metric=metric, label=label)


def judge_failed(metric: str, **more: Any) -> ScoreFailure:
    return ScoreFailure(metric=metric, message="no answer", **more)


def report_of(epochs: Mapping[str, Sequence[Played | None]], **more: Any) -> Report:
    """The report of ``events_of``."""
    return build_report(events_of(epochs, **more))


def events_of(
    epochs: Mapping[str, Sequence[Played | None]],
    *,
    run: Mapping[str, Any] | None = None,
    outcome: Any = "complete",
    scenarios: Mapping[str, Mapping[str, Any]] | None = None,
    agents: Sequence[str] = ("bot",),
    elapsed_s: float = 1.0,
    **config: Any,
) -> list[Event]:
    """``epochs``: for each scenario, its conversations; ``None`` for one that never began."""
    keys = {
        SampleKey(scenario=id, agent=agent, epoch=n): each
        for id, played in epochs.items()
        for agent in agents
        for n, each in enumerate(played)
    }
    suite = tuple(
        Scenario(id=id, **{"name": id, "source": f"s/{id}.yaml:1", **(scenarios or {}).get(id, {})})
        for id in epochs
    )
    settings = Config.model_validate({"agent": {"name": "bot", "target": "a:b", "calls": "all"}, **config})
    begun = started(
        suite, tuple(keys), config=settings, **{"metrics": SPECS, "judged": ("stars",), **(run or {})}
    )
    events: list[Event] = [begun]
    for key, played in keys.items():
        events += played.events(key) if played else []
    if outcome:
        events.append(RunFinished(finished_at="", outcome=outcome, elapsed_s=elapsed_s))
    return events


def oddly_read(epochs: Mapping[str, Sequence[Played | None]]) -> Report:
    """A report in which each turn has a part that was not recognized."""
    events = [
        event.model_copy(update={"turn": event.turn.model_copy(update={"unplaced": ("a block",)})})
        if isinstance(event, TurnFinished)
        else event
        for event in events_of(epochs)
    ]
    return build_report(events)


def with_suite(report: Report, **changes: Any) -> Report:
    """The same report, by other rules of the suite."""
    plan = report.plan.with_suite(**changes)
    return replace(report, run=report.run.model_copy(update={"plan": plan}))


def only_scenario(report: Report) -> ScenarioReport:
    (scenario,) = report.scenarios
    return scenario


def only_sample(report: Report) -> SampleReport:
    (sample,) = report.samples
    return sample


def sample_verdicts(report: Report) -> dict[SampleKey, Any]:
    return dict(decide(report).samples)


def gate_rows(report: Report) -> list[GateRow]:
    """The rows of the gates over repeated runs."""
    samples = decide_samples(report)
    epochs = {
        (each.scenario.id, each.agent): epoch_outcomes(
            each, [sample_success(sample, samples[sample.key].verdict) for sample in each.samples]
        )
        for each in report.scenarios
    }
    return list(gates_over_runs(report, epochs, samples))
