"""Accepted failures (an allowlist of known issues): known failures that do not fail a run until the
acceptance expires. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import AcceptedState, AcceptedUse, Violation
from agenteval.core.event import RunStarted
from agenteval.core.safe_text import one_line
from agenteval.core.score import Verdict
from agenteval.verdict.report import Report

SHOWN_ID = 120
"""The maximum length, in characters, of a scenario id in the printed accept-list entries."""

_NEVER = "9999-12-31"


class WaivedViolations(NamedTuple):
    """Violations, split by whether the accept list covers them."""

    remaining: tuple[Violation, ...]
    """The violations that still count."""
    accepted: tuple[Violation, ...]
    """The violations that do not count."""


def accepted_fingerprints(run: RunStarted, scenario: str) -> frozenset[str]:
    """Return the fingerprints of failures that are accepted in the scenario on the day when the run began."""
    return frozenset(e.fingerprint for e in _valid_entries(run) if _applies_to(e, scenario))


def _valid_entries(run: RunStarted) -> Iterator[AcceptedFailure]:
    day = run.started_at[:10]
    return (entry for entry in run.plan.suite.accepted if entry.holds_on(day))


def _applies_to(entry: AcceptedFailure, scenario: str) -> bool:
    """Check whether an entry applies to the scenario. An entry may be restricted to one scenario, whose id is
    given in the form that is printed for pasting."""
    return entry.scenario in ("", scenario, one_line(scenario, SHOWN_ID))


def apply_accept_list(report: Report, run: RunStarted) -> Report:
    """Return ``report`` with the accept list of ``run`` applied. Two runs are compared under the same list;
    otherwise, a failure that was accepted between the two runs would appear to be fixed."""
    entries = tuple(entry.model_copy(update={"expires": _NEVER}) for entry in _valid_entries(run))
    plan = report.plan.with_suite(accepted=entries)
    return replace(report, run=report.run.model_copy(update={"plan": plan}))


def waive_violations(violations: Iterable[Violation], names: Collection[str]) -> WaivedViolations:
    """Split violations by whether they are accepted. A violation is accepted only if every failure in it is
    known. A check that could not be decided is not a failure, so it is never accepted."""
    remaining: list[Violation] = []
    accepted: list[Violation] = []
    for violation in violations:
        known = bool(violation.fingerprints) and set(violation.fingerprints) <= set(names)
        (accepted if known and violation.verdict is Verdict.FAILED else remaining).append(violation)
    return WaivedViolations(tuple(remaining), tuple(accepted))


def accepted_uses(
    run: RunStarted, occurrences: Sequence[tuple[str, Collection[str]]]
) -> tuple[AcceptedUse, ...]:
    """Return the status of each accept-list entry: whether, and where, its failure occurred.

    ``occurrences`` pairs the scenario of each sample that did not error with the fingerprints found in that
    sample. An entry whose scenario was not run is left out, unless its failure occurred in another scenario.
    """
    day = run.started_at[:10]
    uses = (_entry_use(entry, day, occurrences) for entry in run.plan.suite.accepted)
    return tuple(use for use in uses if use.elsewhere or _was_run(use.entry, run))


def _was_run(entry: AcceptedFailure, run: RunStarted) -> bool:
    shard = run.plan.shard
    played = shard.scenarios if shard else (scenario.id for scenario in run.scenarios)
    return any(_applies_to(entry, scenario) for scenario in played)


def _entry_use(
    entry: AcceptedFailure, day: str, occurrences: Sequence[tuple[str, Collection[str]]]
) -> AcceptedUse:
    scenarios = [scenario for scenario, names in occurrences if entry.fingerprint in names]
    samples = sum(_applies_to(entry, scenario) for scenario in scenarios)
    elsewhere = scenarios[0] if scenarios and not samples else ""
    if not entry.holds_on(day):
        return AcceptedUse(entry, AcceptedState.EXPIRED, samples, elsewhere)
    state = AcceptedState.IN_FORCE if samples else AcceptedState.UNUSED
    return AcceptedUse(entry, state, samples, elsewhere)


def format_accept_list(failures: Mapping[str, tuple[str, str]]) -> str:
    """Format entries to paste into the accept list, with placeholders to fill in. ``failures`` maps a
    fingerprint to its scenario and description."""
    lines = []
    for fingerprint, (scenario, what) in failures.items():
        lines += [
            f'- fingerprint: "{fingerprint}"',
            "  owner: ",
            "  reason: ",
            "  expires: ",
            f"  scenario: {_quoted(scenario)}",
            f"  what: {_quoted(what)}",
        ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Format a one-line string as a single-quoted YAML scalar, in which only the quotes need escaping."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
