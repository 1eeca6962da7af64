"""Failures have an identity that the next run gives again: a hash of names, never of a judge's prose.

A finding is its scenario, metric, label, detector, criterion, tool, the names of the tool's arguments and the
rule of the policy that a judge quotes; a critical one of a judge its quotation, too, since who accepts one
unsafe act accepts no other. A broken check is its scenario, the written turn that it belongs to, its name and
what of the rule did not hold (``Check.parts``), each part a failure of its own: who knows of one missing call
does not know of a second. Neither the agent nor the epoch is part of it: the same failure of another agent is
the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple
from unicodedata import normalize

from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Severity
from agenteval.core.trajectory import Turn
from agenteval.files.prompts import CRITERIA
from agenteval.scoring.finding_merge import JUDGE
from agenteval.scoring.findings import Located, located

LENGTH = 12
"""Hexadecimal digits: among 10,000 failures two collide with a chance of about one in 5 million."""


class Failure(NamedTuple):
    """``what`` says it in names: ``tool_calls: missing book(…)``. ``severity`` is a finding's, ``None`` for a
    broken check; ``metric`` a finding's, or the name of the check. ``quoted``: the name that a judge's
    finding would have if it was critical."""

    fingerprint: str
    what: str
    metric: str
    severity: Severity | None = None
    quoted: str = ""

    def name_in(self, names: Collection[str]) -> str:
        """Its fingerprint, or the narrower name if ``names`` holds that: who accepts it as critical accepts
        it where it is less."""
        return self.quoted if self.quoted in names else self.fingerprint


@dataclass(frozen=True)
class SampleFailures:
    """``findings`` are in the order of the sample's; ``checks`` by turn (``None``: the whole) and place."""

    findings: tuple[Failure, ...]
    checks: Mapping[tuple[int | None, int], tuple[Failure, ...]]

    @property
    def all(self) -> tuple[Failure, ...]:
        """Each once. What both a check and a finding tell is the check's: it fails the sample."""
        told = [failure for failures in self.checks.values() for failure in failures]
        return tuple({failure.fingerprint: failure for failure in (*self.findings, *told)}.values())

    @property
    def names(self) -> frozenset[str]:
        """Whatever an entry may know them by."""
        told = [*self.findings, *self.all]
        return frozenset(name for failure in told for name in (failure.fingerprint, failure.quoted) if name)


def fingerprint(found: Located) -> str:
    """Of a finding, twelve hexadecimal digits."""
    is_critical = found.finding.severity is Severity.CRITICAL
    return (_quoted(found) if is_critical else "") or _hash(*_names(found))


def _names(found: Located) -> tuple[str, ...]:
    cause = found.cause
    detector = found.finding.detector
    names = (found.key.scenario, cause.metric, cause.label, detector, cause.criterion, cause.tool)
    # Only where there is one: the names of all other findings stay what they were.
    rule = ("rule", cause.rule) if cause.rule else ()
    return ("finding", *names, *found.arguments, *rule)


def _quoted(found: Located) -> str:
    """Of a judge's finding, the name that holds its quotation; empty for one of code. How the quotation is
    broken into lines does not matter."""
    if found.finding.detector != JUDGE:
        return ""
    return _hash("quoted", *_names(found), " ".join(normalize("NFC", found.finding.evidence).split()))


def _hash(*names: str) -> str:
    # As JSON, so that no two lists of names make one text.
    return blake2b(json.dumps(names).encode(), digest_size=LENGTH // 2).hexdigest()


def failures_of(sample: SampleReport, scenario: Scenario) -> SampleFailures:
    """Every failure of a sample, whether or not it gates anything.

    A check that findings tell more of (an unknown tool, a criterion) has their identity. A turn's check
    belongs to the written turn: where the simulated user speaks, its number says nothing."""
    own = _checks(sample)
    if not sample.findings and all(check.passed is not False for _, checks in own for check in checks):
        return SampleFailures((), {})
    placed = {each.index: each for each in located([(sample.key, sample.trajectory, sample.findings)])}
    found = [placed[index] for index in sorted(placed)]
    failures = tuple(map(_of_finding, found))
    checks = {
        (turn, index): _of_check(check, turn, sample, scenario, list(zip(found, failures, strict=True)))
        for turn, told in own
        for index, check in enumerate(told)
        if check.passed is False
    }
    return SampleFailures(failures, checks)


def _checks(sample: SampleReport) -> list[tuple[int | None, Sequence[Check]]]:
    whole: list[tuple[int | None, Sequence[Check]]] = [(None, sample.checks)]
    return whole + [(index, told.checks) for index, told in enumerate(sample.turns)]


def _of_finding(found: Located) -> Failure:
    finding = found.finding
    about = finding.criterion or (f"{found.tool}({', '.join(found.arguments)})" if found.tool else "")
    what = f"{finding.label or finding.metric}: {about}" if about else finding.label or finding.metric
    names = fingerprint(found), one_line(what, 160), finding.metric
    return Failure(*names, finding.severity, _quoted(found))


def _of_check(
    check: Check,
    turn: int | None,
    sample: SampleReport,
    scenario: Scenario,
    found: Sequence[tuple[Located, Failure]],
) -> tuple[Failure, ...]:
    own = [
        failure._replace(severity=None)
        for each, failure in found
        if each.finding.detector == check.name or _is_criterion(check, each, turn)
    ]
    if own:
        return tuple(dict.fromkeys(own))
    if check.name == "answer" and turn is None:
        # An empty answer is told by its turn and by the whole: one failure.
        return tuple(_empty_answers(sample, scenario))
    parts = check.parts or (criterion_of(check, scenario),)
    place = _broken_place(sample) if check.name == "no_error" else _place(turn, sample)
    return tuple(
        Failure(
            _hash("check", scenario.id, place, check.name, part),
            one_line(f"{check.name}{place and f' ({place})'}: {part}" if part else check.name, 160),
            check.name,
        )
        for part in parts
    )


def _empty_answers(sample: SampleReport, scenario: Scenario) -> Iterator[Failure]:
    for turn, told in enumerate(sample.turns):
        for check in told.checks:
            if check.name == "answer" and check.passed is False:
                yield from _of_check(check, turn, sample, scenario, ())


def _is_criterion(check: Check, found: Located, turn: int | None) -> bool:
    finding = found.finding
    return (
        check.name == finding.metric == CRITERIA
        and finding.turn == turn
        and check.detail.startswith(f"{finding.criterion} — ")
    )


def criterion_of(check: Check, scenario: Scenario) -> str:
    """The author's sentence that a check of criteria is about: what follows it is the judge's."""
    if check.name != CRITERIA:
        return ""
    said = (c for c in scenario.all_criteria if check.detail.startswith(f"{c} — "))
    return max(said, key=len, default="")


def _place(turn: int | None, sample: SampleReport) -> str:
    if turn is None:
        return ""
    return _written(sample.turns[turn].turn)


def _written(turn: Turn) -> str:
    return "simulated turn" if turn.script is None else f"turn {turn.script + 1}"


def _broken_place(sample: SampleReport) -> str:
    """Where the agent broke; nowhere, if that was before the first message or by a call after the last
    answer."""
    turns, at = sample.trajectory.all_turns, sample.trajectory.broken_turn
    turn = turns[at] if at < len(turns) else None
    return _written(turn) if turn and turn.user else ""


def agent_broke(sample: SampleReport, scenario: Scenario) -> Failure:
    """The failure of a sample whose agent broke before any check could say so."""
    cause = sample.stop.cause if sample.stop else ""
    check = Check(name="no_error", passed=False, parts=(cause,))
    return _of_check(check, None, sample, scenario, ())[0]
