"""Determines the visibility of an agent's tool calls in a run, and the consequences for results that depend
on the absence of a call.

A run can decide that a call was not made only if all calls of the agent reach agenteval. A declaration of
tools does not prove that they do. The visibility is determined once per agent and run, from the agent's
behavior (``CallEvidence`` in its turns) or from the configuration (``KnownVisibility``). A turn with an entry
that could not be placed (``Turn.unplaced``) may contain calls that are not visible, regardless of the agent's
behavior elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, TypeVar, assert_never

from agenteval.core.score import Check, Finding, Score, ScoreFailure, ScoreItem, UserReview
from agenteval.core.trajectory import CallEvidence, ToolVisibility, Turn
from agenteval.core.value import Value, copy_with

_Item = TypeVar("_Item", bound=ScoreItem)


class VisibilitySource(StrEnum):
    """The source of prior knowledge about the visibility of an agent's tool calls."""

    AUTHOR = "author"
    """The configuration, in which the author set ``agent: {calls: all | unseen}``."""
    ADAPTER = "adapter"
    """The kind of agent and its options."""
    EARLIER_RUN = "earlier run"
    """An earlier run, part of which this run repeats."""


class KnownVisibility(Value):
    """The visibility of an agent's tool calls, to the extent that it is known before the agent runs."""

    calls: ToolVisibility
    """The extent to which the agent's tool calls are visible."""
    source: VisibilitySource = VisibilitySource.ADAPTER
    """The source of this knowledge."""
    why: str = ""
    """For an adapter that does not see all calls, the reason and the remedy, as a sentence."""

    @property
    def is_authors(self) -> bool:
        """True if the visibility is set in the configuration, which takes precedence over all evidence."""
        return self.source is VisibilitySource.AUTHOR


def declared_visibility(calls: Literal["all", "unseen"] | None) -> KnownVisibility | None:
    """Return the visibility declared in ``agent: {calls: …}``."""
    if calls is None:
        return None
    found = ToolVisibility.ALL if calls == "all" else ToolVisibility.DECLARED_UNSEEN
    return KnownVisibility(calls=found, source=VisibilitySource.AUTHOR)


def visibility_of(
    known: KnownVisibility | None, evidence: Collection[CallEvidence], *, passthrough: bool
) -> ToolVisibility:
    """Determine the extent to which an agent's calls are visible. ``evidence`` contains all evidence from the
    agent's turns. With ``passthrough``, or if only some of its calls are visible, the agent also has tools of
    its own. In this case, a request to agenteval for a tool proves nothing about the agent's own tools."""
    if known and (known.is_authors or known.calls is ToolVisibility.ALL):
        return known.calls
    has_other_ways = passthrough or (known is not None and known.calls is ToolVisibility.PARTLY)
    if set(evidence) - ({CallEvidence.ASKED} if has_other_ways else set()):
        return ToolVisibility.ALL
    if evidence:
        return ToolVisibility.PARTLY
    return known.calls if known else ToolVisibility.UNSEEN


def conversation_visibility(
    known: KnownVisibility | None, turns: Iterable[Turn], *, passthrough: bool = False
) -> ToolVisibility:
    """Determine the visibility of tool calls from one conversation alone, so that the result does not depend
    on other conversations in the run."""
    if known and known.source is VisibilitySource.EARLIER_RUN:
        known = None
    return visibility_of(known, evidence_in(turns), passthrough=passthrough)


# ── why a check is open, and what would decide it ────────────────────────────────────────────────

_WAYS_TO_SHOW_CALLS = (
    "make its calls visible (a returned list of messages, ctx, observed_messages, reply.messages, intercept)"
)
NO_CALL_SEEN = (
    f"no tool call of the agent was observed in this run — {_WAYS_TO_SHOW_CALLS}; set `agent: {{calls: all}}`"
    " only if the agent gets every tool from agenteval and runs none of its own"
)
NOT_OF_THE_LOG = (
    "the log contains neither tool calls nor the agent's tools — set `agent: {calls: all}` in the"
    " configuration if the log would contain any calls"
)
DECLARED_UNSEEN = "`agent: {calls: unseen}` declares that some tool calls may not be visible to agenteval"
OWN_TOOLS = (
    "with `unmocked_tools: passthrough`, the agent also runs its own tools, and those calls are not visible —"
    f" {_WAYS_TO_SHOW_CALLS}"
)


class OpenReasons(NamedTuple):
    """The reasons why a check of an agent's calls remains open, with the remedies."""

    unseen: str = ""
    """The reason why not all calls are visible."""
    unplaced: str = ""
    """The setting that overrides an entry that could not be placed."""


def explain_open(
    visibility: ToolVisibility | None, known: KnownVisibility | None, *, recorded: bool = False
) -> OpenReasons:
    """Return the reason why the absence of a call proves nothing about this agent, with the remedy."""
    overrules = "use `agenteval score --no-calls-in KEY`" if recorded else "set `agent: {calls: all}`"
    unplaced = f"if it contains no call, {overrules}"
    return OpenReasons(_why_unseen(visibility, known, recorded=recorded), unplaced)


def _why_unseen(visibility: ToolVisibility | None, known: KnownVisibility | None, *, recorded: bool) -> str:
    if known and known.is_authors:
        return DECLARED_UNSEEN
    if known and known.why:
        return known.why
    if visibility is ToolVisibility.PARTLY:
        return OWN_TOOLS
    return NOT_OF_THE_LOG if recorded else NO_CALL_SEEN


def unplaced_text(turns: Sequence[Turn]) -> str:
    """Describe the content that was not read in the first of ``turns`` that is not fully visible. Return an
    empty string if all turns are fully visible."""
    for turn in turns:
        if turn.unplaced:
            more = len(turn.unplaced) - 1
            return f"{turn.unplaced[0]}{f' (and {more:,} more)' if more else ''}"
    return ""


# ── checks that rest on the absence of a call ────────────────────────────────────────────────────


def mark_absence_based(check: Check) -> Check:
    """Leave a check open if it passes or fails only because no (additional) call was observed."""
    return check if check.passed is None else copy_with(check, {"passed": None, "if_all_seen": check.passed})


def settle_absence_checks(
    items: Sequence[_Item], visibility: ToolVisibility | None, turns: Sequence[Turn], why: OpenReasons
) -> Sequence[_Item]:
    """Decide the results that depend on the absence of a call in ``turns`` (a single turn, or all turns of a
    conversation), given the ``visibility`` of the agent. Other results are unchanged."""
    if not any(map(_is_open, items)):
        return items
    unplaced = unplaced_text(turns)
    if visibility is ToolVisibility.ALL and not unplaced:
        return tuple(_settle(item) for item in items if not getattr(item, "unless_all_seen", False))
    reason = f"not fully seen: {unplaced} — {why.unplaced}" if unplaced else f"not decided: {why.unseen}"
    remaining = (item for item in items if not (isinstance(item, Finding) and item.if_all_seen))
    return tuple(_leave_open(item, reason) for item in remaining)


def _is_open(item: ScoreItem) -> bool:
    match item:
        case Check():
            return item.if_all_seen is not None
        case Finding():
            return item.if_all_seen
        case ScoreFailure():
            return item.unless_all_seen
        case Score() | UserReview():
            return False
        case _:
            assert_never(item)


def _settle(item: _Item) -> _Item:
    if not _is_open(item):
        return item
    if isinstance(item, Finding):
        return copy_with(item, {"if_all_seen": False})
    return (
        copy_with(item, {"passed": item.if_all_seen, "if_all_seen": None})
        if isinstance(item, Check)
        else item
    )


def _leave_open(item: _Item, reason: str) -> _Item:
    if not _is_open(item):
        return item
    if isinstance(item, ScoreFailure):
        return copy_with(item, {"unless_all_seen": False})
    if not isinstance(item, Check):
        return item
    return copy_with(item, {"detail": reason, "parts": (), "if_all_seen": None})


# ── what a run found out ─────────────────────────────────────────────────────────────────────────


def evidence_in(turns: Iterable[Turn]) -> frozenset[CallEvidence]:
    """Return the evidence about call visibility in the turns of an agent."""
    return frozenset(turn.evidence for turn in turns if turn.evidence)
