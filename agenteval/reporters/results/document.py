"""The results for programs: everything that is known of a run, as JSON.

``python -m agenteval.reporters.results.document`` prints the JSON Schema that ships beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationError

from agenteval.core.decision import Decision
from agenteval.core.event import Asked
from agenteval.core.sample_report import Aggregate, SampleReport, ScenarioReport, TurnReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import UserReview
from agenteval.core.trajectory import ToolCall, ToolResult, Trajectory, Turn
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results import shape
from agenteval.reporters.results.parts import (
    failures_by_sample,
    of_accepted,
    of_checks,
    of_finding,
    of_issue,
    of_score_failures,
    of_scores,
    of_usage,
    of_violation,
)
from agenteval.reporters.words.calls_seen import calls_seen
from agenteval.reporters.words.failure import (
    NEVER_RAN,
    planned,
    reason,
    sample_violations,
    scenario_decision,
    scenario_violations,
)
from agenteval.reporters.words.issue import issues_text
from agenteval.reporters.words.judge import Reviews, is_simulated, simulation
from agenteval.scoring.findings import sample_of
from agenteval.verdict.asides import asides
from agenteval.verdict.failure_rates import FailureRate, failure_rates
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.reliability import Repeats, ScenarioRepeats, means_over_scenarios, repeats_of
from agenteval.verdict.report import Dimension, Report
from agenteval.verdict.second_opinions import second_opinions
from agenteval.verdict.side_by_side import side_by_side

# Legal in JSON, but a terminal that shows the file obeys or hides them: written as \uXXXX, which any
# reader turns back into the same text.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_PIECE = 1 << 12
_DEEPEST = 100
"""Levels of a value that the slow way writes; more would not be read by many a JSON parser."""

Groups: TypeAlias = dict[SampleKey, dict[int, str]]
"""By sample and place among its findings: the id of the issue that the finding is in."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """The results as JSON text. No number is NaN or infinite (null instead); UTF-8 can hold it."""
    return readable(_dump(results(report, decision)))


def readable(text: str) -> str:
    """JSON that a terminal may show: what it would obey or hide is escaped. Ends in a newline."""
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    if any(map(_may_hold_unseen, pieces)):
        text = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text + "\n"


def _may_hold_unseen(piece: str) -> bool:
    # Most text is ASCII, and that is known at once: looking at each character takes eight times as long.
    return ("\x7f" in piece) if piece.isascii() else _UNSEEN.search(piece) is not None


def _dump(value: shape.Shape) -> str:
    try:
        return value.model_dump_json(indent=2, exclude_unset=True, fallback=repr)
    except (PydanticSerializationError, UnicodeError):
        # Half of a surrogate pair, or a key that is not a text. Rare, so only then the slow way.
        plain = _portable(value.model_dump(exclude_unset=True))
        return json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False, default=repr)


def _portable(value: Any, depth: int = 0) -> Any:
    """``value`` as JSON and UTF-8 can hold it."""
    match value:
        case str():
            return _SURROGATES.sub("\ufffd", value)
        case Mapping() | list() | tuple() | set() | frozenset() if depth >= _DEEPEST:
            return "… nested too deep"
        case Mapping():
            return {_portable(str(key)): _portable(item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_portable(item, depth + 1) for item in value]
        case float() if not isfinite(value):
            return None
    return value


def conversation_json(
    report: Report, decision: Decision, keys: Sequence[SampleKey], asked: Sequence[Asked] | None = None
) -> str:
    """Conversations of one scenario with one agent as JSON text: its entry of ``scenarios``, with no other
    ``samples``, and the run. ``asked``: what judges were asked; ``None``: that is not told."""
    wanted = {(key.epoch, key.variant) for key in keys}
    scenarios = _scenarios(report, decision, repeats_of(report, decision))
    of = next(each for each in scenarios if (each.id, each.agent) == (keys[0].scenario, keys[0].agent))
    samples = [each for each in of.samples if (each.epoch, each.variant) in wanted]
    told = [shape.AskedShape(**_asked(each)) for each in asked or ()]
    conversation = shape.Conversation(
        run=report.run.run_id,
        scenario=of.model_copy(update={"samples": samples}),
        **({} if asked is None else {"asked": told}),
    )
    return readable(_dump(conversation))


def _asked(asked: Asked) -> dict[str, Any]:
    key = {"epoch": asked.key.epoch, "variant": asked.key.variant} if asked.key else {}
    return {**key, **asked.model_dump(exclude={"type", "key", "record"})}


def results(report: Report, decision: Decision) -> shape.Results:
    """The content of the file as values."""
    repeats = repeats_of(report, decision)
    return shape.Results(
        schema_version=shape.RESULTS_VERSION,
        run=_run(report),
        summary=_summary(report, decision, repeats),
        scenarios=_scenarios(report, decision, repeats),
    )


def _run(report: Report) -> shape.RunShape:
    run, finished = report.run, report.finished
    return shape.RunShape(
        id=run.run_id,
        started_at=run.started_at,
        commit=run.commit,
        dirty=run.dirty,
        elapsed_s=finished.elapsed_s if finished else None,
        complete=finished is not None and finished.outcome == "complete",
        outcome=finished.outcome if finished else None,
        seed=run.plan.seed,
        versions=run.versions,
        # The folder is a fact of one machine, and the lines are for messages.
        config=run.config.model_dump(exclude={"root", "lines", "columns"}),
        prompts=run.prompts,
        prompts_overridden=run.config.prompts,
        judged=list(run.plan.judged),
        no_judge=run.plan.no_judge,
        command=list(run.command),
        calls_seen=calls_seen(report),
    )


def _summary(report: Report, decision: Decision, repeats: Repeats) -> shape.SummaryShape:
    failures = failures_by_sample(report)
    return shape.SummaryShape(
        verdict=decision.word,
        exit_code=decision.exit_code,
        scripted=report.scripted,
        gates=[shape.GateShape(**{**vars(gate), "verdict": gate.verdict.value}) for gate in decision.gates],
        dimensions={agent: [_dimension(row) for row in rows] for agent, rows in report.dimensions.items()},
        agents_compared=_agents_compared(report, decision),
        statistics=_statistics(repeats, report),
        usage={role: of_usage(usage) for role, usage in report.usage.items()},
        ledger=[
            shape.LedgerLineShape(role=line.role, name=line.name, usage=of_usage(line.usage))
            for line in report.ledger
        ],
        second_opinions=_second_opinions(report),
        issues=[of_issue(text, failures) for text in issues_text(report, decision)],
        issue_failures=of_score_failures(report.issue_failures),
        simulator=_simulator(report.samples),
        asides=[
            shape.AsideShape(kind=aside.kind, count=aside.count, text=aside.text)
            for aside in asides(report, decision)
        ],
        failure_rates=_failure_rates(report, decision),
        ungated=list(decision.ungated),
        author_errors=list(decision.author_errors),
        accepted=[of_accepted(use) for use in decision.accepted],
        notices=[
            shape.NoticeShape(level=n.level, text=n.text, sample=str(n.key) if n.key else None)
            for n in report.notices
        ],
    )


def _failure_rates(report: Report, decision: Decision) -> shape.FailureRatesShape | None:
    rates = failure_rates(report, decision)
    if rates is None:
        return None
    return shape.FailureRatesShape(
        records=rates.records,
        unreadable=list(rates.unreadable),
        conversations=rates.conversations,
        undecided=rates.undecided,
        not_fully_seen=rates.unplaced,
        by_severity={severity.value: count for severity, count in rates.by_severity.items()},
        rows=[_failure_rate(row) for row in rates.rows],
    )


def _failure_rate(row: FailureRate) -> shape.FailureRateShape:
    return shape.FailureRateShape(
        label=row.label,
        found_by=row.found_by,
        metric=row.metric,
        severity=row.severity.value if row.severity else None,
        severities={severity.value: count for severity, count in row.severities.items()},
        conversations=row.conversations,
        of=row.of,
        unknown=row.unknown,
        rate=row.rate,
        low=row.interval.low,
        high=row.interval.high,
        quotations=[
            shape.QuotationShape(
                scenario=each.key.scenario,
                where=each.where,
                turn=each.turn,
                evidence=each.evidence,
                explanation=each.explanation,
            )
            for each in row.quotations
        ],
    )


def _agents_compared(report: Report, decision: Decision) -> shape.SideBySideShape | None:
    both = side_by_side(report, decision)
    if both is None:
        return None
    told = both.model_dump(mode="json")
    for agent, values in zip(both.agents, told["agents"], strict=True):
        values["told"] = agent.told.value
        for number, own in zip(agent.numbers, values["numbers"], strict=True):
            own["told"] = number.told.value
    return shape.SideBySideShape.model_validate(told)


def _second_opinions(report: Report) -> shape.SecondOpinionsShape | None:
    told = second_opinions(report)
    if not told.judges.is_spent:
        return None
    return shape.SecondOpinionsShape(
        corroborate=report.plan.corroborate,
        doubted=told.doubted,
        upheld=told.upheld,
        sampled=told.sampled,
        differed=told.differed,
        usage=of_usage(told.usage),
        share=told.share,
    )


def _statistics(repeats: Repeats, report: Report) -> dict[str, Any]:
    return {
        "means": means_over_scenarios(report.scenarios),
        "pass_hat_k": {str(k): value for k, value in repeats.pass_hat_k.items()},
        "pass_at_k": {str(k): value for k, value in repeats.pass_at_k.items()},
        "rates": {name: estimate._asdict() for name, estimate in repeats.rates.items()},
    }


def _repeats(entry: ScenarioRepeats) -> shape.RepeatsShape:
    tally = entry.tally
    return shape.RepeatsShape(
        successes=tally.successes,
        decided=tally.decided,
        planned=tally.planned,
        rate=None if tally.rate is None else float(tally.rate),
        low=entry.interval.low,
        high=entry.interval.high,
        stability=entry.stability.value,
    )


def _dimension(row: Dimension) -> shape.DimensionShape:
    return shape.DimensionShape(
        category=row.category.value,
        samples=row.samples,
        rates={name: _aggregate(rate) for name, rate in row.rates.items()},
        spreads={name: shape.SpreadShape(**vars(spread)) for name, spread in row.spreads.items()},
    )


def _aggregate(aggregate: Aggregate) -> shape.AggregateShape:
    return shape.AggregateShape(
        value=aggregate.value,
        n=aggregate.n,
        missing=aggregate.missing,
        of_samples=aggregate.of_samples,
        **({"open": dict(aggregate.open)} if aggregate.open else {}),
    )


def _simulator(samples: Iterable[SampleReport]) -> shape.SimulatorShape | None:
    told = simulation(samples)
    if not told.messages and not told.lost and not told.reviews.all:
        return None
    return shape.SimulatorShape(
        messages=told.messages,
        refused=told.refused,
        lost=told.lost,
        models=list(told.models),
        usage=of_usage(told.usage),
        **({"reviews": _reviews(told.reviews)} if told.reviews.all else {}),
    )


def _reviews(told: Reviews) -> shape.UserReviewsShape:
    return shape.UserReviewsShape(
        reviewed=told.all,
        at_fault=told.at_fault,
        rate=told.at_fault / told.all,
        low=told.interval.low,
        high=told.interval.high,
        **told._asdict(),
    )


def _user_review(told: UserReview) -> shape.UserReviewShape:
    return shape.UserReviewShape(**told.model_dump(exclude={"kind", "usage"}))


def _scenarios(report: Report, decision: Decision, repeats: Repeats) -> list[shape.ScenarioShape]:
    issues: dict[tuple[str, str], list[shape.IssueShape]] = {}
    groups: Groups = {}
    failures = failures_by_sample(report)
    for text in issues_text(report, decision):
        issue = text.issue
        for occurrence in issue.occurrences:
            key = sample_of(occurrence)
            groups.setdefault(key, {}).update(dict.fromkeys(occurrence.findings, issue.id))
        for scenario in dict.fromkeys(occurrence.scenario for occurrence in issue.occurrences):
            issues.setdefault((scenario, issue.agent), []).append(of_issue(text, failures))
    return [
        _scenario(
            each,
            decision,
            issues.get((each.scenario.id, each.agent), []),
            groups,
            repeats.scenarios[each.scenario.id, each.agent],
        )
        for each in report.scenarios
    ]


def _scenario(
    scenario: ScenarioReport,
    decision: Decision,
    issues: list[shape.IssueShape],
    groups: Groups,
    repeats: ScenarioRepeats,
) -> shape.ScenarioShape:
    spec = scenario.scenario
    return shape.ScenarioShape(
        id=spec.id,
        name=spec.name,
        agent=scenario.agent,
        category=spec.category.value,
        tags=list(spec.tags),
        where=spec.source,
        row=spec.row,
        verdict=scenario_decision(decision, scenario).verdict.value,
        violations=_violations(scenario, decision),
        aggregates={metric: _aggregate(value) for metric, value in scenario.aggregates.items()},
        issues=issues,
        statistics=_repeats(repeats),
        samples=[
            _sample(scenario, key, sample, decision, groups.get(key, {})) for key, sample in planned(scenario)
        ],
    )


def _violations(scenario: ScenarioReport, decision: Decision) -> list[shape.ViolationShape]:
    """Those of the samples, in the order of epochs, then those of the scenario."""
    of_samples = [
        of_violation(violation, epoch=key.epoch)
        for key, _ in planned(scenario)
        for violation in decision.samples.get(key, NEVER_RAN).violations
    ]
    return of_samples + [of_violation(v, epoch=v.epoch) for v in scenario_violations(scenario, decision)]


def _sample(
    scenario: ScenarioReport,
    key: SampleKey,
    sample: SampleReport | None,
    decision: Decision,
    issues: Mapping[int, str],
) -> shape.SampleShape:
    decided = decision.samples.get(key, NEVER_RAN)
    why = sample_violations(sample, decided, scenario.scenario.source)
    told = sample or SampleReport(key, (), None, (), (), (), (), Trajectory())
    found = failures_of(told, scenario.scenario)
    of_case = {
        "tool_accuracy": told.tool_accuracy,
        "output_correct": told.output_correct,
        "robustness_pass": told.robustness_pass,
    }
    return shape.SampleShape(
        epoch=key.epoch,
        variant=key.variant,
        verdict=decided.verdict.value,
        fault=decided.fault,
        reason="; ".join(map(reason, why)),
        stop=told.stop.reason.value if told.stop else None,
        steps=told.trajectory.steps,
        latency_ms=told.trajectory.latency_ms or None,
        usage=of_usage(told.trajectory.usage),
        checks=of_checks(told.checks, found, turn=None),
        scores=of_scores(told.scores),
        score_failures=of_score_failures(told.score_failures),
        findings=[
            of_finding(finding, issues.get(index), failure)
            for index, (finding, failure) in enumerate(zip(told.findings, found.findings, strict=True))
        ],
        turns=[_turn(turn, of_checks(turn.checks, found, turn=i)) for i, turn in enumerate(told.turns)],
        scripted=told.scripted,
        **({"accepted": [of_violation(v, key.epoch) for v in decided.accepted]} if decided.accepted else {}),
        **({"simulator": simulator} if (simulator := _simulator([told])) else {}),
        **({"user_review": _user_review(told.review)} if told.review else {}),
        **(of_case if scenario.scenario.case is not None else {}),
    )


def _turn(told: TurnReport, checks: list[shape.CheckShape]) -> shape.TurnShape:
    turn = told.turn
    return shape.TurnShape(
        user=turn.user,
        agent=turn.answer,
        tool_calls=[_tool_call(call) for call in turn.tool_calls],
        steps=len(turn.steps),
        latency_ms=turn.latency_ms or None,
        usage=of_usage(turn.usage),
        checks=checks,
        scores=of_scores(told.scores),
        score_failures=of_score_failures(told.score_failures),
        **({} if turn.error is None else {"error": turn.error}),
        **({"agents": [agent or None for agent in turn.spoken]} if any(turn.spoken) else {}),
        **(_user_model(turn) if is_simulated(turn) else {}),
        **({"unplaced": list(turn.unplaced)} if turn.unplaced else {}),
    )


def _user_model(turn: Turn) -> dict[str, Any]:
    return {
        "user_model": turn.user_model,
        "user_usage": of_usage(turn.user_usage),
        "user_fault": turn.user_fault,
    }


def _tool_call(call: ToolCall) -> shape.ToolCallShape:
    error = _error_text(call.result) if call.result and call.result.is_error else None
    if call.given_up:
        error = "the agent did not wait for the result"
    return shape.ToolCallShape(
        name=call.name,
        args=call.args,
        result=call.result.value if call.result else None,
        observed=call.observed,
        **({"raw_args": call.raw_args} if call.args is None else {}),
        **({"error": error} if error is not None else {}),
        **({"agent": call.agent} if call.agent else {}),
        **({"attempted": True} if call.attempted else {}),
    )


def _error_text(result: ToolResult) -> str:
    value = result.value
    message = value.get("error") if isinstance(value, dict) else None
    return message if isinstance(message, str) else str(value)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what ``render`` gives."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **shape.Results.model_json_schema(), "title": "agenteval results"}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
