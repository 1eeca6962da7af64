"""List the scenarios that changed against the baseline, with the certainty of each difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line_message
from agenteval.core.score import Verdict
from agenteval.core.selection import full_id
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.failure import ReportedFailure, scenario_decision
from agenteval.reporters.words.row_groups import broken_rule_keys, template_key
from agenteval.verdict.digest import summary_of
from agenteval.verdict.statistics import Change, Pair, Tally, compare

NEW, STILL, FIXED, UNDECIDED, FAILING = "Newly failing", "Still failing", "Fixed", "Undecided", "Failing"
NOT_THERE, WORSE = "Failing, and not in the baseline", "Passing, but significantly less often"
KINDS = (NEW, WORSE, NOT_THERE, FAILING, UNDECIDED, STILL, FIXED)
"""The kinds of change, in the order in which they are listed."""

SIGNIFICANCE_NOTE = (
    "*Significant*: Fisher's exact test at 5 %, corrected across all scenarios. Any other difference"
    " may be due to chance; run more epochs to find out."
)


class ChangeRow(NamedTuple):
    """A scenario with an agent, or the first of several data rows of a scenario that all changed in the same
    way. ``rows`` is the number of such data rows."""

    kind: str
    name: str
    before: str
    """The number of successful epochs and the number of decided epochs in the baseline, such as ``2/3``."""
    after: str
    """The number of successful epochs and the number of decided epochs in this run, such as ``3/3``."""
    why: str
    confidence: str
    """The certainty of the change, such as ``significant``."""
    rows: int = 1
    scenario: str = ""
    """The id of the scenario. ``agent`` is the name of the agent."""
    agent: str = ""


def baseline_changes(facts: Facts) -> Iterator[ChangeRow]:
    """Yield the scenarios that a reviewer of the change needs to know about. Passing scenarios whose results
    have not changed are omitted."""
    report, decision = facts.report, facts.decision
    baseline = report.run.baseline
    summary = summary_of(report, decision)
    after = {(s.agent, s.id): Tally(s.successes, s.decided, s.planned) for s in summary.scenarios}
    before = {
        (agent, name): Tally.of(outcomes)
        for agent, scenarios in (baseline.outcomes if baseline else {}).items()
        for name, outcomes in scenarios.items()
    }
    changes = _changes(before, after)
    groups = {(each[0].agent, each[0].scenario): each for each in facts.decisive}
    several = facts.report.has_several_agents
    grouped: dict[tuple[object, ...], list[ChangeRow]] = {}
    for scenario in report.scenarios:
        key = (scenario.agent, scenario.scenario.id)
        verdict = scenario_decision(decision, scenario).verdict
        old, new, change = before.get(key), after[key], changes.get(key)
        is_new = baseline is not None and scenario.scenario.id not in baseline.changed.get(scenario.agent, {})
        if kind := _kind(verdict, old, new, change, has_baseline=baseline is not None, is_new=is_new):
            name = full_id(scenario.scenario) + (f" · {scenario.agent}" if several else "")
            group = groups.get(key, ())
            why = _first_gist(group) if group else ""
            row = ChangeRow(
                kind,
                name,
                _rate(old),
                _rate(new),
                why,
                _confidence(change, old, new),
                scenario=scenario.scenario.id,
                agent=scenario.agent,
            )
            grouped.setdefault((kind, template_key(scenario), broken_rule_keys(group)), []).append(row)
    for first, *others in grouped.values():
        more = f" and {plural(len(others), 'more row')}" if others else ""
        yield first._replace(name=first.name + more, rows=1 + len(others))


def _kind(
    verdict: Verdict,
    old: Tally | None,
    new: Tally,
    change: Change | None,
    *,
    has_baseline: bool,
    is_new: bool,
) -> str:
    """Return the kind of change, or an empty string if there is nothing to report. A scenario is fixed only
    if it succeeds more often than before, because a pass rate may tolerate failures in both runs."""
    if verdict is Verdict.INCONCLUSIVE:
        return UNDECIDED
    failed_before = old is not None and old.successes < old.decided
    if verdict is Verdict.PASSED:
        if change is Change.REGRESSED:
            return WORSE
        rose = old is not None and new.successes * old.decided > old.successes * new.decided
        return FIXED if rose else ""
    if old is None:
        return NOT_THERE if has_baseline and is_new else FAILING
    if not failed_before and new.successes == new.decided:
        return FAILING  # by a rule about all conversations, whose result in the baseline is not known
    return STILL if failed_before and change is not Change.REGRESSED else NEW


def _changes(
    before: Mapping[tuple[str, str], Tally], after: Mapping[tuple[str, str], Tally]
) -> dict[tuple[str, str], Change]:
    """Classify the change in the success rate of each scenario that occurs in both runs. Significance is
    corrected for multiple comparisons."""
    keys = [key for key in before if key in after and before[key].planned and after[key].planned]
    if not keys:
        return {}
    pairs = [Pair("\0".join(key), before[key], after[key]) for key in keys]
    found = {each.pair.scenario: each.change for each in compare(pairs).scenarios}
    return {key: found["\0".join(key)] for key in keys}


def _first_gist(failures: Sequence[ReportedFailure]) -> str:
    return one_line_message(failures[0].rules[0].gist, 140)


def _rate(tally: Tally | None) -> str:
    return "–" if tally is None else f"{tally.successes}/{tally.decided}"


def _confidence(change: Change | None, old: Tally | None, new: Tally) -> str:
    if change in (Change.REGRESSED, Change.IMPROVED):
        return "significant"
    if old is None or not (old.decided and new.decided):
        return "unknown"
    return "may be chance"
