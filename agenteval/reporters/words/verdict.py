"""The verdict of a run in one line, in the same words for every format."""

from __future__ import annotations

from collections import Counter

from agenteval.core.decision import Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Verdict
from agenteval.reporters.words.failure import scenario_decision
from agenteval.reporters.words.failure_rates import reported_text
from agenteval.verdict.asides import asides_text
from agenteval.verdict.report import Report

INCOMPLETE, AUTHOR_ERROR = "INCOMPLETE", "AUTHOR ERROR"


def verdict_line(report: Report, decision: Decision) -> tuple[str, str]:
    """``PASSED`` and ``all 4 scenarios passed (exit 0) — with 1 accepted failure``."""
    beside = asides_text(report, decision)
    told = f"{ends_text(report, decision)} (exit {decision.exit_code}{_why_zero(decision)})"
    return _word(report, decision), f"{told} — with {beside}" if beside else told


def _why_zero(decision: Decision) -> str:
    neutral = decision.verdict is Verdict.INCONCLUSIVE and decision.exit_code == 0
    return ", since on_undecided is neutral" if neutral else ""


def resolutions(decision: Decision) -> tuple[str, ...]:
    """What would end that the run is not decided, each once, with the gates that it would: ``epochs: 9
    (pass_rate)``."""
    gates: dict[str, dict[str, None]] = {}
    for row in decision.gates:
        if row.verdict is Verdict.INCONCLUSIVE and row.resolution:
            gates.setdefault(row.resolution, {})[row.name] = None
    return tuple(f"{line} ({', '.join(names)})" for line, names in gates.items())


def ends_text(report: Report, decision: Decision) -> str:
    """How many scenarios ended how, and what was not done."""
    mistakes = len(decision.author_errors)
    parts = [f"{plural(mistakes, 'mistake')}, listed above"] if mistakes else []
    parts.append(reported_text(report, decision) if decision.is_reported else _counted(report, decision))
    return "; ".join(filter(None, (*parts, _unrun(report))))


def _word(report: Report, decision: Decision) -> str:
    if report.finished is None or report.finished.outcome == "interrupted":
        return INCOMPLETE
    return AUTHOR_ERROR if decision.author_errors else decision.word.upper()


TOLERATED = "did not pass every conversation"
NEVER = "passed no conversation"
_ENDS = ("failed", "inconclusive", NEVER, TOLERATED, "passed")


def _counted(report: Report, decision: Decision) -> str:
    """``2 of 13 scenarios failed, 11 passed``. With several agents, each result counts."""
    agents, total = len(report.dimensions), len(report.scenarios)
    noun = "scenario" if agents <= 1 else "result"
    ends = Counter(end_of(scenario, decision) for scenario in report.scenarios)
    scenarios = len({scenario.scenario.id for scenario in report.scenarios})
    across = f", over {plural(scenarios, 'scenario')} and {agents} agents" if agents > 1 else ""
    if not total:
        return "no scenario was run"
    is_told = decision.verdict is Verdict.PASSED or ends[decision.verdict.value] > 0
    rule = "" if is_told else _rule_over_all(decision)
    if ends["passed"] == total:
        despite = f"{rule}, although " if rule else ""
        return f"{despite}{'all ' if total > 1 else ''}{plural(total, noun)} passed{across}"
    (count, state), *rest = [(count, state) for state in _ENDS if (count := ends[state])]
    first = f"{count:,} of {plural(total, noun)} {state}"
    words = ", ".join([first, *(f"{n:,} {word}" for n, word in rest)]) + across
    return f"{rule}; {words}" if rule else words


def end_of(scenario: ScenarioReport, decision: Decision) -> str:
    """A gate over repeated runs lets a scenario pass in which a conversation failed, or each: what fails as
    ever has got no worse. That is not the same as one in which all passed."""
    verdict = scenario_decision(decision, scenario).verdict
    decided = {one.verdict for sample in scenario.samples if (one := decision.samples.get(sample.key))}
    if verdict is Verdict.PASSED and Verdict.FAILED in decided:
        return TOLERATED if Verdict.PASSED in decided else NEVER
    return verdict.value


def _rule_over_all(decision: Decision) -> str:
    """The gate over the run that decided, while no scenario ended so badly."""
    name = next((row.name for row in decision.gates if row.verdict is decision.verdict), "")
    state = "failed" if decision.verdict is Verdict.FAILED else "was not decided"
    return f"{one_line(name, 80)} {state}" if name else ""


def _unrun(report: Report) -> str:
    """What of the plan was not done, and why; empty if all was."""
    missing = sum(len(scenario.missing) for scenario in report.scenarios)
    cut = sum(sample.stop is None for sample in report.samples)
    why = (
        {
            "fail_fast": "stopped at the first failure",
            "budget": "the budget stopped the run",
            "deadline": "the run took longer than deadlines.run_s",
            "interrupted": "interrupted",
        }.get(report.finished.outcome, "")
        if report.finished
        else "the run was cut off"
    )
    counts = [f"{plural(missing, 'sample')} never ran"] if missing else []
    counts += [f"{cut:,} cut off"] if cut else []
    return ": ".join(part for part in (why, ", ".join(counts)) if part)
