"""List accepted failures so that they are not overlooked, and suggest accept-list entries for new ones."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.core.decision import AcceptedState, AcceptedUse, Decision
from agenteval.core.plurals import plural
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.reporters.sections.section import Section, StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.accepted_failures import SHOWN_ID, format_accept_list
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.report import Report

_STATE_ORDER = (AcceptedState.EXPIRED, AcceptedState.IN_FORCE, AcceptedState.UNUSED)


def sections(facts: Facts) -> Iterator[Section]:
    """Yield the section on accepted failures (the accept list), or nothing if the accept list is empty."""
    if lines := accepted_lines(facts.decision):
        count = sum(use.state is AcceptedState.IN_FORCE for use in facts.decision.accepted)
        title = plural(count, "accepted failure")
        yield Section(title, notes=tuple(StyledText(line, Tone.OPEN) for line in lines))


def accepted_lines(decision: Decision) -> tuple[str, ...]:
    """Return a line for each entry in the accept list. Expired entries come first, then entries in force,
    then unused entries."""
    uses = sorted(decision.accepted, key=lambda use: _STATE_ORDER.index(use.state))
    return tuple(map(accepted_line, uses))


def accepted_line(use: AcceptedUse) -> str:
    return f"{use.entry.fingerprint} {_describe_use(use)}"


def _describe_use(use: AcceptedUse) -> str:
    entry = use.entry
    owner, sample_count = one_line(entry.owner, 60), plural(use.samples, "sample")
    about = ": ".join(one_line(part, 120) for part in (entry.scenario, entry.what) if part)
    about = f" ({about})" if about else ""
    if use.elsewhere:
        met_in = f"its failure belongs to '{one_line(use.elsewhere, SHOWN_ID)}'"
        return f"accepts nothing{about}: {met_in}; correct `scenario` or remove the entry (owner {owner})"
    match use.state:
        case AcceptedState.EXPIRED:
            counts = (
                f"it counts again, in {sample_count}" if use.samples else "it did not occur; remove the entry"
            )
            return f"expired on {entry.expires}, owner {owner}{about}: {counts}"
        case AcceptedState.IN_FORCE:
            why = one_line(entry.reason, 160)
            return f"accepted until {entry.expires} by {owner}{about}: {why} — occurred in {sample_count}"
        case AcceptedState.UNUSED:
            return f"did not occur in this run{about}; remove the entry if it is fixed (owner {owner})"


def accept_list_entries(report: Report, decision: Decision) -> str:
    """Return accept-list entries for all failures that made a sample fail, or an empty string if there are no
    such failures."""
    found: dict[str, tuple[str, str]] = {}
    for scenario in report.scenarios:
        for sample in scenario.samples:
            decided = decision.samples.get(sample.key)
            if decided is None or decided.verdict is not Verdict.FAILED:
                continue
            names = {name for violation in decided.violations for name in violation.fingerprints}
            for failure in failures_of(sample, scenario.scenario).all:
                if failure.fingerprint in names:
                    about = (one_line(scenario.scenario.id, SHOWN_ID), failure.what)
                    found.setdefault(failure.fingerprint, about)
    return format_accept_list(found)
