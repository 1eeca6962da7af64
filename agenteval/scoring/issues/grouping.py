"""Groups findings by cause to the extent that code can: it determines which findings are about the same
fault, under one or more labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from agenteval.core.folding import fold
from agenteval.core.score import Finding, Severity
from agenteval.core.severity import FALSE_CLAIM, POLICY_VIOLATION
from agenteval.files.prompts import CRITERIA
from agenteval.scoring.findings import Cause, LocatedFinding
from agenteval.scoring.goals import GOAL
from agenteval.scoring.metrics import TOOL_CALL_BEHAVIOR

_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def group_by(key: Callable[[_Item], _Key], items: Iterable[_Item]) -> dict[_Key, list[_Item]]:
    """Group items by key. Keys and items keep their order."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


@dataclass(frozen=True)
class Proposal:
    """A model's proposal for a group."""

    title: str = ""
    explanation: str = ""
    severity: Severity | None = None
    excuse: str = ""
    """The reason why the failure may not be the agent's fault."""
    by: str = ""
    """The name of the model."""
    scripted: bool = False


NO_PROPOSAL = Proposal()


@dataclass(frozen=True)
class FindingGroup:
    """One agent's findings that are assumed to have the same cause."""

    members: tuple[LocatedFinding, ...]
    """The findings, ordered by number."""
    effects: tuple[LocatedFinding, ...] = ()
    """Findings about the same faults under other labels."""
    proposal: Proposal = NO_PROPOSAL

    @property
    def all_findings(self) -> tuple[LocatedFinding, ...]:
        return (*self.members, *self.effects)

    @property
    def cause(self) -> Cause:
        """The cause of the first finding. A model may have merged several causes."""
        return self.members[0].cause

    @property
    def causes(self) -> frozenset[Cause]:
        return frozenset(each.cause for each in self.members)

    @property
    def severity(self) -> Severity:
        return max((each.finding.severity for each in self.all_findings), key=lambda severity: severity.rank)

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """The sort key: the worst and most frequent groups come first."""
        samples = len({each.key for each in self.all_findings})
        return -self.severity.rank, -samples, -len(self.all_findings), self.members[0].number

    def with_effects(self, *more: LocatedFinding) -> FindingGroup:
        return replace(self, effects=sort_findings((*self.effects, *more)))


def sort_findings(findings: Iterable[LocatedFinding]) -> tuple[LocatedFinding, ...]:
    return tuple(sorted(findings, key=lambda each: each.number))


def merge_groups(groups: Sequence[FindingGroup], proposal: Proposal = NO_PROPOSAL) -> FindingGroup:
    """Merge several groups into one."""
    return FindingGroup(
        members=sort_findings(each for group in groups for each in group.members),
        effects=sort_findings(each for group in groups for each in group.effects),
        proposal=proposal,
    )


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


def build_candidates(findings: Sequence[LocatedFinding]) -> list[FindingGroup]:
    """Return the groups that are sent to a model.

    Each group contains the findings from one scenario that code cannot tell apart, along with the findings
    that code knows to be about the same faults. Groups with the same cause are adjacent, and the worst cause
    comes first."""
    scenarios = group_by(lambda each: each.key.scenario, findings).values()
    groups = [
        group
        for scenario_findings in scenarios
        for group in _goals_with_their_causes(_faults(scenario_findings))
    ]
    rank: dict[Cause, int] = {}
    for group in groups:
        cause = group.cause
        rank[cause] = max(group.severity.rank, rank.get(cause, 0))
    return sorted(groups, key=lambda group: (-rank[group.cause], group.cause, group.members[0].number))


def _faults(findings: Sequence[LocatedFinding]) -> list[FindingGroup]:
    alike = group_by(lambda each: (each.cause, each.finding.detector), findings)
    return _labels_of_one_fault(FindingGroup(tuple(members)) for members in alike.values())


def group_by_cause(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """Group the findings that no model grouped.

    Create one group per cause across all scenarios. Findings about the same faults under different labels are
    merged into one group."""
    alike = group_by(lambda group: group.cause, groups)
    return _labels_of_one_fault(merge_groups(each) for each in alike.values())


def _labels_of_one_fault(groups: Iterable[FindingGroup]) -> list[FindingGroup]:
    """Merge groups about the same faults under several labels into the group that is nearest to the cause."""
    merged: list[FindingGroup] = []
    for group in sorted(groups, key=_nearness_to_the_cause):
        home = next((place for place, other in enumerate(merged) if _are_the_same_faults(group, other)), None)
        if home is None:
            merged.append(group)
        else:
            merged[home] = merged[home].with_effects(*group.all_findings)
    return merged


_FROM_CAUSE_TO_EFFECT = (
    (TOOL_CALL_BEHAVIOR, ""),
    ("", "unsafe state"),
    ("", "unsafe action"),
    ("", POLICY_VIOLATION),
    ("", "failure to ask for clarification"),
    ("", "disobey user request"),
    ("", FALSE_CLAIM),
    ("", "false information"),
    ("", "lack of specific information"),
    (CRITERIA, ""),
    (GOAL, ""),
)
"""Metrics or labels, in the order in which a fault becomes visible in them: a wrong call precedes a statement
about the call, and both precede the missed goal."""
_OF_ANY_OTHER = _FROM_CAUSE_TO_EFFECT.index((CRITERIA, ""))


def _nearness_to_the_cause(group: FindingGroup) -> tuple[int, int]:
    cause = group.cause
    rows = ((cause.metric, ""), ("", cause.label))
    places = [place for place, row in enumerate(_FROM_CAUSE_TO_EFFECT) if row in rows]
    return min(places, default=_OF_ANY_OTHER), group.members[0].number


def _goals_with_their_causes(groups: Sequence[FindingGroup]) -> list[FindingGroup]:
    """Merge each missed goal in a scenario with its cause.

    The cause is a fault in the same conversation, about the same call or words. A fault is not necessarily
    the cause merely because no other fault was found: a model may draw that conclusion, but code cannot."""
    goals = [group for group in groups if group.cause.metric == GOAL]
    made = [group for group in groups if group.cause.metric != GOAL]
    by_conversation: dict[Hashable, list[int]] = {}
    for place, group in enumerate(made):
        for key in {each.key for each in group.all_findings}:
            by_conversation.setdefault(key, []).append(place)

    def place_of_cause(missed: LocatedFinding) -> int | None:
        near = by_conversation.get(missed.key, ())
        return next((place for place in near if _is_fault_of(missed, made[place])), None)

    for goal in goals:
        alone: list[LocatedFinding] = []
        for missed in goal.all_findings:
            home = place_of_cause(missed)
            if home is None:
                alone.append(missed)
            else:
                made[home] = made[home].with_effects(missed)
        if alone:
            made.append(FindingGroup(tuple(alone)))
    return made


# ── one fault ────────────────────────────────────────────────────────────────────────────────────


def _are_the_same_faults(group: FindingGroup, cause: FindingGroup) -> bool:
    """Check whether each finding in ``group`` is about the same fault as a finding in ``cause`` with a
    different label."""
    others = group_by(lambda each: each.key, cause.all_findings)
    return all(
        any(_is_same_fault(each, other) for other in others.get(each.key, ())) for each in group.all_findings
    )


def _is_fault_of(one: LocatedFinding, group: FindingGroup) -> bool:
    return any(one.key == other.key and _is_same_fault(one, other) for other in group.all_findings)


_REPETITION = "repetition"
_ABOUT_A_RESULT = frozenset((FALSE_CLAIM, "ignored tool result"))
"""Labels that cite a call because of its result. If several calls failed, such a label may cite any of
them."""


def _is_same_fault(one: LocatedFinding, other: LocatedFinding) -> bool:
    """Check whether two findings in one conversation are about the same fault.

    This is the case if they are about the same call, or about the same words in one turn or in the whole
    conversation. It is also the case if they are about the same tool and one of them states that this tool
    was not called."""
    first, second = one.finding, other.finding
    if first.call is not None and second.call is not None:
        if first.call == second.call:
            return True
        if not {first.label, second.label} <= _ABOUT_A_RESULT:
            return False
    if _REPETITION in (first.label, second.label):
        return False  # a fault in the words differs from the fault of repeating them
    if None not in (first.turn, second.turn) and first.turn != second.turn:
        return False
    return _are_about_a_missing_call(one, other) or _share_a_quotation(first, second)


def _are_about_a_missing_call(one: LocatedFinding, other: LocatedFinding) -> bool:
    """Check whether both findings are about the same tool and at least one of them cites no call.

    A goal belongs to no turn, so a common tool alone proves nothing."""
    first, second = one.finding, other.finding
    if None not in (first.call, second.call) or GOAL in (first.metric, second.metric):
        return False
    return bool(one.tool) and one.tool == other.tool


_ENOUGH = 8
"""The minimum length, in characters, of a shared quotation for two findings to be considered to be about the
same fault."""


def _share_a_quotation(first: Finding, second: Finding) -> bool:
    short, long = sorted((fold(first.evidence), fold(second.evidence)), key=len)
    return len(short) >= _ENOUGH and short in long
