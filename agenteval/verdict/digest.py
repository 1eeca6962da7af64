"""Summarize a report as a digest: the data that a later run needs for a comparison with this run. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from agenteval.core.config import ModelConfig
from agenteval.core.decision import Decision
from agenteval.core.plan import Plan
from agenteval.core.run_summary import FailureSummary, RunSummary, ScenarioSummary
from agenteval.core.sample_report import SampleReport, ScenarioReport, means_of_samples
from agenteval.core.scenario import Scenario
from agenteval.core.value import compact
from agenteval.scoring.goals import GOAL
from agenteval.verdict.epochs import epoch_outcomes, sample_success
from agenteval.verdict.fingerprints import FingerprintedFailure, failures_of
from agenteval.verdict.report import Report
from agenteval.verdict.resource_usage import MEASURES, known_measure
from agenteval.verdict.statistics import Tally
from agenteval.verdict.thresholds import NOT_THE_AGENTS, is_errored

_CONTENT = (
    "profile", "goal", "goal_outcome", "knowledge", "facts", "beliefs", "tools", "expect", "turns", "case",
    "max_turns", "min_turns", "history", "user_tools", "state",
)  # fmt: skip
"""The fields of a scenario that the agent, the user or a judge sees. These exclude its name, tags, epochs and
thresholds."""

_SETTINGS = (
    "fail_on_severity", "severities", "severity_from", "detectors", "unmocked_tools", "now", "max_turns",
)  # fmt: skip
"""Settings that determine whether a sample fails and how its conversation proceeds."""


def summary_of(report: Report, decision: Decision | None) -> RunSummary:
    """Summarize the run. If the run has only just begun (there is only its first event and no ``decision``),
    the summary contains the data with which other runs can be compared."""
    run, plan = report.run, report.plan
    return RunSummary(
        run_id=run.run_id,
        started_at=run.started_at,
        prompts=run.prompts,
        judged=() if plan.suite.no_judge else tuple(sorted(plan.suite.judged)),
        decisive=() if plan.suite.no_judge else _decisive(plan),
        judge=_describe_model(plan.suite.models.get("judge"), run.sources),
        user=_describe_model(plan.suite.models.get("user"), run.sources),
        judged_by=_judged_by(report),
        played_by=_names(t.turn.user_model for s in report.samples for t in s.turns),
        settings=_settings(plan),
        scenarios=tuple(_summarize_scenario(scenario, decision, plan) for scenario in report.scenarios),
        is_selection=run.is_selection,
    )


def _decisive(plan: Plan) -> tuple[str, ...]:
    labels = {spec.name for spec in plan.suite.metrics if spec.is_label}
    matter = {GOAL} | (labels if plan.suite.fail_on_severity != "none" else set())
    return tuple(sorted(matter & set(plan.suite.judged)))


def _describe_model(chosen: ModelConfig | None, sources: Mapping[str, str]) -> dict[str, Any]:
    """Describe a model, excluding the settings that only determine how the model is reached. A scripted model
    is identified by the content of its file."""
    if chosen is None:
        return {}
    identity = chosen.model_dump(include={"model", "base_url", "temperature", "extra"})
    replies = sources.get(chosen.name) if chosen.provider == "scripted" else None
    return {**identity, "replies": replies[:12]} if replies else identity


def _judged_by(report: Report) -> tuple[str, ...]:
    scores = (score.by for sample in report.samples for score in sample.all_scores)
    checks = (check.by for sample in report.samples for check in sample.all_checks)
    return _names((*scores, *checks))


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(filter(None, names))))


def _settings(plan: Plan) -> dict[str, Any]:
    return plan.suite.model_dump(mode="json", include=set(_SETTINGS))


def hash_content(scenario: Scenario) -> dict[str, str]:
    """Hash each non-empty part of the scenario, independently of the file that contains the scenario."""
    content = scenario.model_dump(mode="json", include=set(_CONTENT))
    for tool in (*content.get("tools", {}).values(), *content.get("user_tools", {}).values()):
        tool.pop("base", None)
    if state := content.get("state"):
        del state["base"]
    if scenario.user_prompt is not None:
        content["user_prompt"] = scenario.user_prompt_hash
    if scenario.variant is not None and scenario.variant.texts:
        content["paraphrase"] = scenario.variant.texts
    if scenario.goal_outcome == "reached":  # the default, which older runs do not record
        del content["goal_outcome"]
    return {name: _hash(part) for name, part in sorted(content.items()) if part not in (None, "", [], {})}


def _hash(value: Any) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=8).hexdigest()


def _summarize_scenario(scenario: ScenarioReport, decision: Decision | None, plan: Plan) -> ScenarioSummary:
    spec = scenario.scenario
    samples = decision.samples if decision else {}
    decided = decision.scenarios.get((spec.id, scenario.agent)) if decision else None
    outcomes = [sample_success(sample, samples[sample.key].verdict) for sample in scenario.samples]
    tally = Tally.of(epoch_outcomes(scenario, outcomes).fixed)
    present = [s for s in scenario.samples if samples[s.key].fault not in NOT_THE_AGENTS]
    complete = [sample for sample in present if not is_errored(sample)]
    summary = ScenarioSummary(
        id=spec.id,
        agent=scenario.agent,
        content=hash_content(spec),
        verdict=decided.verdict if decided else None,
        simulated=not spec.is_scripted,
        criteria=bool(spec.all_criteria),
        successes=tally.successes,
        decided=tally.decided,
        planned=tally.planned,
        known=len(present),
        scores=means_of_samples(complete),
        effort={name: values for name in MEASURES if (values := _known_measures(name, complete, spec, plan))},
        failures=failures_in(present, spec),
    )
    return compact(summary)


def _known_measures(
    name: str, samples: Iterable[SampleReport], scenario: Scenario, plan: Plan
) -> tuple[float, ...]:
    """Return the value of a measure for each conversation. If any value is unknown, return an empty result,
    because the known conversations might be the cheap ones."""
    values = [known_measure(name, sample, scenario, plan) for sample in samples]
    return () if None in values else tuple(value for value in values if value is not None)


def failures_in(samples: Sequence[SampleReport], scenario: Scenario) -> tuple[FailureSummary, ...]:
    """Return each failure in these samples of one scenario, with the number of samples that contain it."""
    found: dict[str, FingerprintedFailure] = {}
    occurrences: Counter[str] = Counter()
    for sample in samples:
        for failure in failures_of(sample, scenario).all:
            occurrences[failure.fingerprint] += 1
            found.setdefault(failure.fingerprint, failure)
    return tuple(_summarize_failure(found[name], occurrences[name]) for name in sorted(occurrences))


def _summarize_failure(failure: FingerprintedFailure, epochs: int) -> FailureSummary:
    return FailureSummary(
        fingerprint=failure.fingerprint,
        what=failure.what,
        metric=failure.metric,
        severity=failure.severity,
        epochs=epochs,
    )
