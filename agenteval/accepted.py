"""Accepted failures: known ones that fail nothing until their last day. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from agenteval.config import AcceptedFailure
from agenteval.decision import AcceptedState, AcceptedUse, Violation
from agenteval.event import RunStarted
from agenteval.report import Report
from agenteval.score import Verdict

_NEVER = "9999-12-31"


class Waived(NamedTuple):
    """``kept`` count, ``accepted`` do not."""

    kept: tuple[Violation, ...]
    accepted: tuple[Violation, ...]


def in_force(run: RunStarted) -> frozenset[str]:
    """The fingerprints that are accepted on the day on which the run began."""
    day = run.started_at[:10]
    return frozenset(e.fingerprint for e in run.config.accepted_failures if e.holds_on(day))


def as_accepted_by(report: Report, run: RunStarted) -> Report:
    """``report`` with the accept list that is in force for ``run``: two runs are compared under one, or a
    failure that was accepted in between would look mended."""
    names = in_force(run)
    entries = tuple(
        entry.model_copy(update={"expires": _NEVER})
        for entry in run.config.accepted_failures
        if entry.fingerprint in names
    )
    config = report.run.config.model_copy(update={"accepted_failures": entries})
    return replace(report, run=report.run.model_copy(update={"config": config}))


def waive(violations: Iterable[Violation], names: Collection[str]) -> Waived:
    """Broken rules are accepted if every failure that they tell of is: one that is not known breaks
    through. What could not be decided is no failure."""
    kept: list[Violation] = []
    accepted: list[Violation] = []
    for violation in violations:
        known = bool(violation.fingerprints) and set(violation.fingerprints) <= set(names)
        (accepted if known and violation.verdict is Verdict.FAILED else kept).append(violation)
    return Waived(tuple(kept), tuple(accepted))


def uses_of(run: RunStarted, met: Sequence[Collection[str]]) -> tuple[AcceptedUse, ...]:
    """What became of each entry. ``met``: the fingerprints of each sample that is not lost. Of an entry whose
    scenario was not run nothing is said."""
    day, scenarios = run.started_at[:10], {scenario.id for scenario in run.scenarios}
    return tuple(
        _use(entry, day, sum(entry.fingerprint in names for names in met))
        for entry in run.config.accepted_failures
        if not entry.scenario or entry.scenario in scenarios
    )


def _use(entry: AcceptedFailure, day: str, samples: int) -> AcceptedUse:
    if not entry.holds_on(day):
        return AcceptedUse(entry, AcceptedState.EXPIRED, samples)
    return AcceptedUse(entry, AcceptedState.IN_FORCE if samples else AcceptedState.UNUSED, samples)


def yaml_of(failures: Mapping[str, tuple[str, str]]) -> str:
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
