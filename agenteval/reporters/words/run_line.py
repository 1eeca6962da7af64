"""Describe what a run consisted of: its agents, its size, its duration, its cost and its judges."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.judge import is_scripted_model
from agenteval.reporters.words.spending import brief_sum
from agenteval.verdict.report import Report

_MOST_AGENTS = 4


def run_parts(facts: Facts) -> Iterator[str]:
    """Yield the version, the agents, the size, the profile, the seed, the duration and the cost of the run.
    Parts that do not apply are omitted."""
    report = facts.report
    parts = [
        f"agenteval {report.run.versions.get('agenteval', '')}".rstrip(),
        _agents(report),
        _counts(report, facts.decision),
    ]
    if report.plan.suite.profile:
        parts.append(f"profile {one_line(report.plan.suite.profile, 40)}")
    if report.plan.suite.seed:
        parts.append(f"seed {report.plan.suite.seed}")
    if report.finished:
        parts.append(elapsed_text(report.finished.elapsed_s))
    yield from filter(None, (*parts, brief_sum(report)))


def _agents(report: Report) -> str:
    names = [one_line(name, 40) for name in report.dimensions]
    more = [plural(len(names) - _MOST_AGENTS, "more agent")] if len(names) > _MOST_AGENTS else []
    return ", ".join([*names[:_MOST_AGENTS], *more])


def _counts(report: Report, decision: Decision) -> str:
    scenarios = len({each.scenario.id for each in report.scenarios})
    conversations = len(report.samples)
    if decision.without_scenarios:
        return plural(conversations, "record")
    return f"{plural(scenarios, 'scenario')}, {plural(conversations, 'conversation')}"


def elapsed_text(seconds: float) -> str:
    """Format a duration as ``5.1 s`` or ``3:05 min``."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def judges_text(report: Report) -> str:
    """Return a phrase such as ``judged by openai/gpt-5-mini, uncalibrated``, or an empty string if nothing
    was judged."""
    names = dict.fromkeys(score.by for sample in report.samples for score in sample.all_scores if score.by)
    names |= dict.fromkeys(check.by for sample in report.samples for check in sample.all_checks if check.by)
    if not names:
        return ""
    models = ["scripted replies" if is_scripted_model(name) else one_line(name, 40) for name in names]
    return f"judged by {', '.join(dict.fromkeys(models))}, uncalibrated"
