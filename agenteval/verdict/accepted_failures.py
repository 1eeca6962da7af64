"""Accepted failures: known ones that fail nothing until their last day. Pure."""

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
"""So many characters of a scenario's id stand in the entries that are printed."""

_NEVER = "9999-12-31"


class WaivedViolations(NamedTuple):
    """``kept`` count, ``accepted`` do not."""

    remaining: tuple[Violation, ...]
    accepted: tuple[Violation, ...]


def accepted_fingerprints(run: RunStarted, scenario: str) -> frozenset[str]:
    """The fingerprints that are accepted in the scenario on the day on which the run began."""
    return frozenset(e.fingerprint for e in _valid(run) if _speaks_of(e, scenario))


def _valid(run: RunStarted) -> Iterator[AcceptedFailure]:
    day = run.started_at[:10]
    return (entry for entry in run.plan.suite.accepted if entry.holds_on(day))


def _speaks_of(entry: AcceptedFailure, scenario: str) -> bool:
    """An entry may name the one scenario that it is for, as it is printed to be pasted."""
    return entry.scenario in ("", scenario, one_line(scenario, SHOWN_ID))


def apply_accept_list(report: Report, run: RunStarted) -> Report:
    """``report`` with the accept list that is in force for ``run``: two runs are compared under one, or a
    failure that was accepted in between would look fixed."""
    entries = tuple(entry.model_copy(update={"expires": _NEVER}) for entry in _valid(run))
    plan = report.plan.with_suite(accepted=entries)
    return replace(report, run=report.run.model_copy(update={"plan": plan}))


def waive_violations(violations: Iterable[Violation], names: Collection[str]) -> WaivedViolations:
    """Broken rules are accepted if every failure that they tell of is: one that is not known breaks
    through. What could not be decided is not a failure."""
    kept: list[Violation] = []
    accepted: list[Violation] = []
    for violation in violations:
        known = bool(violation.fingerprints) and set(violation.fingerprints) <= set(names)
        (accepted if known and violation.verdict is Verdict.FAILED else kept).append(violation)
    return WaivedViolations(tuple(kept), tuple(accepted))


def accepted_uses(run: RunStarted, met: Sequence[tuple[str, Collection[str]]]) -> tuple[AcceptedUse, ...]:
    """What became of each entry. ``met``: of each sample that is not lost its scenario and the fingerprints.
    Of an entry whose scenario was not run nothing is said, unless its failure was met in another one."""
    day = run.started_at[:10]
    uses = (_use(entry, day, met) for entry in run.plan.suite.accepted)
    return tuple(use for use in uses if use.elsewhere or _was_run(use.entry, run))


def _was_run(entry: AcceptedFailure, run: RunStarted) -> bool:
    return any(_speaks_of(entry, scenario.id) for scenario in run.scenarios)


def _use(entry: AcceptedFailure, day: str, met: Sequence[tuple[str, Collection[str]]]) -> AcceptedUse:
    at = [scenario for scenario, names in met if entry.fingerprint in names]
    samples = sum(_speaks_of(entry, scenario) for scenario in at)
    elsewhere = at[0] if at and not samples else ""
    if not entry.holds_on(day):
        return AcceptedUse(entry, AcceptedState.EXPIRED, samples, elsewhere)
    state = AcceptedState.IN_FORCE if samples else AcceptedState.UNUSED
    return AcceptedUse(entry, state, samples, elsewhere)


def format_accept_list(failures: Mapping[str, tuple[str, str]]) -> str:
    """What to paste into the accept list, to be filled in: by fingerprint, scenario and what it is."""
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
    """A text of one line as a scalar in single quotes, in which nothing but these means anything."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
