"""Describe the verdict of a run on one line, in the same words for every format."""

from __future__ import annotations

from collections import Counter

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import NONE_PASSED, SOME_FAILED
from agenteval.reporters.words.failure_rates import reported_text
from agenteval.verdict.caveats import format_caveats
from agenteval.verdict.report import Report

INCOMPLETE, AUTHOR_ERROR, NOT_DECIDED = "INCOMPLETE", "AUTHOR ERROR", "NOT DECIDED"


def verdict_line(facts: Facts) -> tuple[str, str]:
    """Return the verdict, and an explanation with the exit code, such as ``PASSED`` and ``all 4 scenarios
    passed (exit 0) — with 1 accepted failure``."""
    report, decision = facts.report, facts.decision
    caveats = format_caveats(report, decision)
    word = _verdict_word(report, decision)
    ends = f"{_describe_shard(report, word)}{ends_text(facts)}"
    text = f"{ends} (exit {decision.exit_code}{_why_zero(decision)})"
    return word, f"{text} — with {caveats}" if caveats else text


def _describe_shard(report: Report, word: str) -> str:
    """Return the beginning of the line for a shard, which alone never decides its run."""
    if report.plan.shard is None:
        return ""
    rest = "" if word == NOT_DECIDED else f"; the rest is {NOT_DECIDED}"
    return f"shard {report.plan.shard}, to be decided by `agenteval merge`{rest}; "


def _why_zero(decision: Decision) -> str:
    neutral = decision.verdict is Verdict.INCONCLUSIVE and decision.exit_code == 0
    return ", because `on_undecided` is neutral" if neutral else ""


def resolutions(decision: Decision) -> tuple[str, ...]:
    """Return each change of settings that would decide an undecided run, followed by the gates that it would
    decide, such as ``epochs: 9 (pass_rate)``."""
    gates: dict[str, dict[str, None]] = {}
    for row in decision.gates:
        if row.verdict is Verdict.INCONCLUSIVE and row.resolution:
            gates.setdefault(row.resolution, {})[row.name] = None
    return tuple(f"{line} ({', '.join(names)})" for line, names in gates.items())


def ends_text(facts: Facts) -> str:
    """Return the number of scenarios for each outcome, and the part of the plan that did not run."""
    decision = facts.decision
    mistakes = len(decision.author_errors)
    parts = [f"{plural(mistakes, 'mistake')}, listed above"] if mistakes else []
    rates = facts.rates if decision.is_reported else None
    parts.append(reported_text(rates, decision) if rates else _count_outcomes(facts))
    return "; ".join(filter(None, (*parts, _describe_unrun(facts.report))))


def _verdict_word(report: Report, decision: Decision) -> str:
    if report.finished is None or report.finished.outcome == "interrupted":
        return INCOMPLETE
    if decision.author_errors:
        return AUTHOR_ERROR
    is_open_shard = report.plan.shard is not None and decision.verdict is Verdict.INCONCLUSIVE
    return NOT_DECIDED if is_open_shard else decision.verdict_label.upper()


_ENDS = ("failed", "inconclusive", NONE_PASSED, SOME_FAILED, "passed")


def _count_outcomes(facts: Facts) -> str:
    """Count the scenarios for each outcome, such as ``2 of 13 scenarios failed, 11 passed``. If there are
    several agents, each combination of scenario and agent is counted."""
    if not facts.outcomes:
        return "no scenarios were run"
    ends, total = Counter(facts.outcomes.values()), len(facts.outcomes)
    noun, across = _counted_things(facts)
    is_shown = _is_shown_by(ends, facts.decision) or facts.report.plan.shard is not None
    rule = "" if is_shown else _rule_over_all(facts.decision)
    if ends["passed"] == total:
        despite = f"{rule}, although " if rule else ""
        return f"{despite}{'all ' if total > 1 else ''}{plural(total, noun)} passed{across}"
    (count, state), *rest = [(count, state) for state in _ENDS if (count := ends[state])]
    first = f"{count:,} of {plural(total, noun)} {state}"
    words = ", ".join([first, *(f"{n:,} {word}" for n, word in rest)]) + across
    return f"{rule}; {words}" if rule else words


def _counted_things(facts: Facts) -> tuple[str, str]:
    """Return the noun for the counted items. If there are several agents, also return the number of scenarios
    and agents."""
    agents = len(facts.report.dimensions)
    if agents <= 1:
        return "scenario", ""
    scenarios = len({scenario for scenario, _ in facts.outcomes})
    return "result", f", over {plural(scenarios, 'scenario')} and {agents} agents"


def _is_shown_by(ends: Counter[str], decision: Decision) -> bool:
    """Check whether the outcome of the run matches the outcome of any scenario."""
    return decision.verdict is Verdict.PASSED or ends[decision.verdict.value] > 0


def _rule_over_all(decision: Decision) -> str:
    """Describe the run-level gate that determined the verdict, for a run whose outcome does not match the
    outcome of any scenario."""
    name = next((row.name for row in decision.gates if row.verdict is decision.verdict), "")
    state = "failed" if decision.verdict is Verdict.FAILED else "was not decided"
    return f"{one_line(name, 80)} {state}" if name else ""


def _describe_unrun(report: Report) -> str:
    """Describe the part of the plan that did not run, along with the reason. Return an empty string if
    everything ran."""
    missing = sum(len(scenario.missing) for scenario in report.scenarios)
    cut = sum(sample.stop is None for sample in report.samples)
    why = (
        {
            "fail_fast": "stopped at the first failure",
            "budget": "the budget stopped the run",
            "deadline": "the run exceeded `deadlines.run_s`",
            "interrupted": "interrupted",
        }.get(report.finished.outcome, "")
        if report.finished
        else "the run was cut off"
    )
    counts = [f"{plural(missing, 'sample')} never ran"] if missing else []
    counts += [f"{cut:,} cut off"] if cut else []
    return ": ".join(part for part in (why, ", ".join(counts)) if part)
