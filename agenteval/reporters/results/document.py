"""Render the results as JSON for programs (the JSON report), including everything that is known about a run.

``python -m agenteval.reporters.results.document`` prints the JSON Schema that ships next to this module."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationError
from pydantic_core import to_json as to_json_bytes

from agenteval.core.decision import Decision
from agenteval.core.event import ModelAsked
from agenteval.core.sample_report import SampleReport, ScenarioReport, TurnReport
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import ToolCall, ToolResult, Trajectory
from agenteval.core.world_state import StateChanges
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results import shape
from agenteval.reporters.results.parts import (
    check_shapes,
    failures_by_sample,
    finding_shape,
    issue_shape,
)
from agenteval.reporters.words.call_visibility import calls_seen
from agenteval.reporters.words.failure import (
    NEVER_RAN,
    planned,
    reason,
    sample_violations,
    scenario_decision,
    scenario_violations,
)
from agenteval.reporters.words.issue import by_scenario, issues_text
from agenteval.reporters.words.judge import ReviewCounts, is_simulated, overridden_prompts, simulation
from agenteval.reporters.words.state_lines import state_lines
from agenteval.scoring.findings import get_sample_key
from agenteval.verdict.caveats import list_caveats
from agenteval.verdict.failure_rates import failure_rates
from agenteval.verdict.fault_table import fault_rows
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.reference_comparison import compare_with_reference
from agenteval.verdict.reliability import Repeats, ScenarioRepeats, means_over_scenarios, repeats_of
from agenteval.verdict.report import Report
from agenteval.verdict.second_opinions import second_opinions
from agenteval.verdict.variant_table import variant_rows

# Legal in JSON, but a terminal that shows the file would interpret or hide them. They are written as \uXXXX,
# which every JSON parser turns back into the same text.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_PIECE = 1 << 12
_DEEPEST = 100
"""The nesting depth at which the fallback serializer truncates a value, because many JSON parsers reject
deeper values."""

Groups: TypeAlias = dict[SampleKey, dict[int, str]]
"""The id of the issue to which each finding belongs, keyed by the sample and the index of the finding."""

_SURROGATES = re.compile("[\ud800-\udfff]")


def render(report: Report, decision: Decision, options: ReportOptions) -> str:
    """Render the results as JSON. NaN and infinite numbers become null, and the output is valid UTF-8."""
    return "".join(stream(report, decision, options, str))


def stream(
    report: Report, decision: Decision, options: ReportOptions, clean: Callable[[str], str]
) -> Iterator[str]:
    """Yield the same text piece by piece, so that only one scenario at a time is in memory. ``clean`` is
    applied to each piece while it is a JSON value of its own."""
    repeats = repeats_of(report, decision)
    head = clean(_escape_unseen(to_json(_results(report, decision, repeats, []), 2)))
    yield head.removesuffix("[]\n}")
    between = "[\n    "
    for scenario in _scenarios(report, decision, repeats):
        text = clean(_escape_unseen(to_json(scenario, 2)))
        yield between + text.replace("\n", "\n    ")
        between = ",\n    "
    yield "[]\n}\n" if between.startswith("[") else "\n  ]\n}\n"


def readable(text: str) -> str:
    """Escape characters that a terminal would interpret or hide in JSON text, and append a newline."""
    return _escape_unseen(text) + "\n"


def _escape_unseen(text: str) -> str:
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    if any(map(_may_hold_unseen, pieces)):
        text = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text


def _may_hold_unseen(piece: str) -> bool:
    # Most text is ASCII, which is cheap to check; searching each character takes eight times as long.
    return ("\x7f" in piece) if piece.isascii() else _UNSEEN.search(piece) is not None


def to_json(value: shape.Shape, indent: int | None = None, exclude: Any = None) -> str:
    """Return the object as JSON, without the fields in ``exclude``. NaN and infinite numbers become null."""
    try:
        return value.model_dump_json(indent=indent, exclude=exclude, exclude_unset=True, fallback=repr)
    except (PydanticSerializationError, UnicodeError):
        # Half of a surrogate pair, or a key that is not a string. Only these rare cases take the slow path.
        plain = _portable(value.model_dump(exclude=exclude, exclude_unset=True))
        return json.dumps(plain, ensure_ascii=False, indent=indent, allow_nan=False, default=repr)


def value_to_json(value: Any) -> str:
    """Return any value as JSON. What JSON cannot represent is replaced as in ``to_json``."""
    try:
        return to_json_bytes(value, inf_nan_mode="null", fallback=repr).decode()
    except (PydanticSerializationError, UnicodeError):
        return json.dumps(_portable(value), ensure_ascii=False, allow_nan=False, default=repr)


def _portable(value: Any, depth: int = 0) -> Any:
    """Return ``value``, replacing everything that JSON or UTF-8 cannot represent."""
    match value:
        case str():
            return _SURROGATES.sub("\ufffd", value)
        case Mapping() | list() | tuple() | set() | frozenset() if depth >= _DEEPEST:
            return "… nested too deeply"
        case Mapping():
            return {_portable(str(key)): _portable(item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_portable(item, depth + 1) for item in value]
        case float() if not isfinite(value):
            return None
    return value


def conversation_json(
    report: Report,
    decision: Decision,
    keys: Sequence[SampleKey],
    judge_answers: Sequence[ModelAsked] | None = None,
) -> str:
    """Render conversations of one scenario with one agent as JSON. The output contains the run's id and the
    scenario's entry from ``scenarios``, restricted to the requested ``samples``. The items in
    ``judge_answers`` are written to the field ``asked``, which is omitted if the argument is ``None``."""
    wanted = {(key.epoch, key.variant) for key in keys}
    scenarios = _scenarios(report, decision, repeats_of(report, decision))
    scenario = next(each for each in scenarios if (each.id, each.agent) == (keys[0].scenario, keys[0].agent))
    samples = [each for each in scenario.samples if (each.epoch, each.variant) in wanted]
    conversation = shape.ConversationShape(
        run=report.run.run_id,
        scenario=scenario.model_copy(update={"samples": samples}),
        asked=None if judge_answers is None else list(map(_asked_shape, judge_answers)),
    )
    return readable(to_json(conversation, 2))


def _asked_shape(asked: ModelAsked) -> shape.AskedShape:
    assert asked.key is not None  # only the grouping of issues has no conversation
    return shape.AskedShape.from_value(asked, epoch=asked.key.epoch, variant=asked.key.variant)


def results(report: Report, decision: Decision) -> shape.Results:
    """Return the content of ``results.json`` as a serializable object."""
    repeats = repeats_of(report, decision)
    return _results(report, decision, repeats, list(_scenarios(report, decision, repeats)))


def _results(
    report: Report, decision: Decision, repeats: Repeats, scenarios: list[shape.ScenarioShape]
) -> shape.Results:
    return shape.Results(
        schema_version=shape.RESULTS_VERSION,
        run=_run(report),
        summary=_summary(report, decision, repeats),
        scenarios=scenarios,
    )


def _run(report: Report) -> shape.RunShape:
    run, finished = report.run, report.finished
    return shape.RunShape.from_value(
        run,
        id=run.run_id,
        elapsed_s=finished.elapsed_s if finished else None,
        complete=finished is not None and finished.outcome == "complete",
        outcome=finished.outcome if finished else None,
        shard=str(run.plan.shard) if run.plan.shard else None,
        merged=shape.MergedShape.from_value(run.merged) if run.merged else None,
        seed=run.plan.suite.seed,
        # The folder is specific to one machine, and the line numbers are for messages.
        config=run.config.model_dump(exclude={"root", "lines", "columns"}),
        prompts_overridden=overridden_prompts(report),
        judged=run.plan.suite.judged,
        no_judge=run.plan.suite.no_judge,
        calls_seen=calls_seen(report),
    )


def _summary(report: Report, decision: Decision, repeats: Repeats) -> shape.SummaryShape:
    failures = failures_by_sample(report)
    return shape.SummaryShape.from_value(
        decision,
        verdict=decision.verdict_label,
        scripted=report.scripted,
        dimensions=report.dimensions,
        agents_compared=compare_with_reference(report, decision),
        statistics={
            "means": means_over_scenarios(report.scenarios),
            "pass_hat_k": {str(k): value for k, value in repeats.pass_hat_k.items()},
            "pass_at_k": {str(k): value for k, value in repeats.pass_at_k.items()},
            "rates": {name: estimate._asdict() for name, estimate in repeats.rates.items()},
        },
        usage=report.usage,
        ledger=report.ledger,
        second_opinions=_second_opinions(report),
        issues=[issue_shape(text, failures) for text in issues_text(report, decision)],
        issue_failures=report.issue_failures,
        simulator=_simulator(report.samples),
        caveats=list_caveats(report, decision),
        faults=[
            shape.FaultRowShape.from_value(row, outcomes={str(o): n for o, n in row.outcomes.items() if n})
            for row in fault_rows(report, decision)
        ],
        variants=[
            shape.VariantRowShape.from_value(row, **row.interval._asdict()) for row in variant_rows(report)
        ],
        failure_rates=failure_rates(report, decision),
        accepted=[
            shape.AcceptedShape.from_value(use.entry, state=use.state, samples=use.samples)
            for use in decision.accepted
        ],
        notices=[
            shape.NoticeShape.from_value(n, sample=str(n.key) if n.key else None) for n in report.notices
        ],
    )


def _second_opinions(report: Report) -> shape.SecondOpinionsShape | None:
    opinions = second_opinions(report)
    if not opinions.judges.is_spent:
        return None
    return shape.SecondOpinionsShape.from_value(opinions, corroborate=report.plan.suite.corroborate)


def _repeats(entry: ScenarioRepeats) -> shape.RepeatsShape:
    tally, interval = entry.tally, entry.interval
    return shape.RepeatsShape.from_value(
        tally,
        rate=None if tally.rate is None else float(tally.rate),
        low=interval.low,
        high=interval.high,
        stability=entry.stability,
    )


def _simulator(samples: Iterable[SampleReport]) -> shape.SimulatorShape | None:
    found = simulation(samples)
    if not found.messages and not found.errored and not found.reviews.all:
        return None
    return shape.SimulatorShape.from_value(
        found, reviews=_reviews(found.reviews) if found.reviews.all else None
    )


def _reviews(reviews: ReviewCounts) -> shape.UserReviewsShape:
    return shape.UserReviewsShape.from_value(
        reviews,
        reviewed=reviews.all,
        rate=reviews.at_fault / reviews.all,
        low=reviews.interval.low,
        high=reviews.interval.high,
    )


def _scenarios(report: Report, decision: Decision, repeats: Repeats) -> Iterator[shape.ScenarioShape]:
    failures = failures_by_sample(report)
    texts = issues_text(report, decision)
    groups = finding_groups(report)
    shapes = {text.issue.id: issue_shape(text, failures) for text in texts}
    issues = by_scenario(texts)
    for each in report.scenarios:
        pairing = (each.scenario.id, each.agent)
        found = [shapes[text.issue.id] for text in issues.get(pairing, ())]
        yield _scenario(each, decision, found, groups, repeats.scenarios[pairing])


def finding_groups(report: Report) -> Groups:
    """Return the issue of each finding."""
    groups: Groups = {}
    for issue in report.issues:
        for occurrence in issue.occurrences:
            places = groups.setdefault(get_sample_key(occurrence), {})
            places.update(dict.fromkeys(occurrence.findings, issue.id))
    return groups


def _scenario(
    scenario: ScenarioReport,
    decision: Decision,
    issues: list[shape.IssueShape],
    groups: Groups,
    repeats: ScenarioRepeats,
) -> shape.ScenarioShape:
    spec = scenario.scenario
    return shape.ScenarioShape.from_value(
        spec,
        agent=scenario.agent,
        where=spec.source,
        verdict=scenario_decision(decision, scenario).verdict,
        violations=_violations(scenario, decision),
        aggregates=scenario.aggregates,
        issues=issues,
        statistics=_repeats(repeats),
        samples=[
            sample_shape(scenario, key, sample, decision, groups.get(key, {}))
            for key, sample in planned(scenario)
        ],
    )


def _violations(scenario: ScenarioReport, decision: Decision) -> list[shape.ViolationShape]:
    """Return the violations of the samples in the order of their epochs, followed by the violations of the
    scenario."""
    of_samples = [
        shape.ViolationShape.from_value(violation, epoch=key.epoch)
        for key, _ in planned(scenario)
        for violation in decision.samples.get(key, NEVER_RAN).violations
    ]
    return of_samples + list(map(shape.ViolationShape.from_value, scenario_violations(scenario, decision)))


def sample_shape(
    scenario: ScenarioReport,
    key: SampleKey,
    sample: SampleReport | None,
    decision: Decision,
    issues: Mapping[int, str],
) -> shape.SampleShape:
    """Return the entry of a planned sample, which is ``None`` if it never ran. ``issues`` are those of its
    findings (see ``finding_groups``)."""
    decided = decision.samples.get(key, NEVER_RAN)
    why = sample_violations(sample, decided, scenario.scenario.source)
    shown = sample.in_full if sample else SampleReport(key, (), None, (), (), (), (), Trajectory())
    found = failures_of(shown, scenario.scenario)
    of_case = ("tool_accuracy", "output_correct", "robustness_pass")
    is_case = scenario.scenario.case is not None
    return shape.SampleShape.from_value(
        key,
        verdict=decided.verdict,
        fault=decided.fault,
        reason="; ".join(map(reason, why)),
        stop=shown.stop.reason if shown.stop else None,
        steps=shown.trajectory.steps,
        latency_ms=shown.trajectory.latency_ms or None,
        usage=shown.trajectory.usage,
        checks=check_shapes(shown.checks, found, turn=None),
        scores=shown.scores,
        score_failures=shown.score_failures,
        findings=[
            finding_shape(finding, issues.get(index), failure)
            for index, (finding, failure) in enumerate(zip(shown.findings, found.findings, strict=True))
        ],
        turns=[
            _turn(turn, check_shapes(turn.checks, found, turn=i), _state_before(shown, i))
            for i, turn in enumerate(shown.turns)
        ],
        scripted=shown.scripted,
        accepted=[shape.ViolationShape.from_value(each, epoch=key.epoch) for each in decided.accepted],
        simulator=_simulator([shown]),
        user_review=shown.review,
        **({name: getattr(shown, name) for name in of_case} if is_case else {}),
    )


def _state_before(sample: SampleReport, turn: int) -> StateChanges | None:
    return sample.turns[turn - 1].turn.state if turn else None


def _turn(
    report: TurnReport, checks: list[shape.CheckShape], state_before: StateChanges | None
) -> shape.TurnShape:
    turn = report.turn
    by_people = {} if is_simulated(turn) else dict.fromkeys(("user_model", "user_usage", "user_fault"))
    return shape.TurnShape.from_value(
        turn,
        agent=turn.answer,
        tool_calls=[_tool_call(call) for call in turn.tool_calls],
        user_tool_calls=[_tool_call(call) for call in turn.user_tool_calls] or None,
        steps=len(turn.steps),
        latency_ms=turn.latency_ms or None,
        checks=checks,
        scores=report.scores,
        score_failures=report.score_failures,
        agents=[agent or None for agent in turn.spoken] if any(turn.spoken) else None,
        state_changes=[*state_lines(state_before, turn.state)],
        **by_people,
    )


def _tool_call(call: ToolCall) -> shape.ToolCallShape:
    error = _error_text(call.result) if call.result and call.result.is_error else None
    if call.given_up:
        error = "the agent did not wait for the result"
    return shape.ToolCallShape(
        name=call.name,
        args=call.args,
        result=call.result.value if call.result else None,
        observed=call.observed,
        error=error,
        agent=call.agent,
        attempted=call.attempted,
        fault=call.result.fault.kind if call.result and call.result.fault else None,
        **({"raw_args": call.raw_args} if call.args is None else {}),
    )


def _error_text(result: ToolResult) -> str:
    value = result.value
    message = value.get("error") if isinstance(value, dict) else None
    return message if isinstance(message, str) else str(value)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the text that ``render`` returns."""
    from agenteval.files.editor_schema import help_of  # it reads sources, which no report needs

    dialect = "https://json-schema.org/draft/2020-12/schema"
    results_schema = shape.Results.model_json_schema(mode="serialization")
    for name, definition in [("Results", results_schema), *results_schema["$defs"].items()]:
        for field, text in help_of(getattr(shape, name)).items():
            if field in definition["properties"]:
                definition["properties"][field] |= {"description": text}
    return {"$schema": dialect, **results_schema, "title": "agenteval results"}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
