"""Could the agent's tool calls be seen? And what follows, where they could not, for what is based on them.

A rule that a call was made, or was not, can be decided only of an agent whose calls are seen. Each turn
records how they could be (``Turn.sight``); a conversation is *observed* if they could in any of its turns.
That depends on the conversation alone, so that a part of a run says the same as the whole of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from agenteval.core.config import AgentConfig
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, ScoreItem
from agenteval.core.trajectory import Sight, Trajectory
from agenteval.core.value import changed

UNSEEN = (
    "not observed: no call of the agent could be seen. Return the list of the turn's messages, call through"
    " ctx, declare tools in the scenario, set observed_messages or reply.messages, or write agent: {tools:"
    " visible}"
)
HIDDEN = (
    "not observed: agent: {tools: none} says that its calls cannot be seen. Without it: return the list of"
    " the turn's messages, call through ctx, or declare tools in the scenario"
)
UNTRACED = (
    "not observed: the spans of a turn did not come, or do not tell what was called with what. Let the agent"
    " export them and take up the header traceparent, with the contents of messages and calls"
)

PARTIAL = (
    "not observed: `intercept` does not name every tool that the scenario names, so the agent may call the"
    " others unseen. Add them to intercept, or write agent: {tools: visible} if it calls them through ctx"
)

UNREAD = (
    "not observed: `observe: openai` saw a request that it does not understand, so calls may have been"
    " missed. Let the agent report its calls, or call tools through ctx"
)

_SEEN = frozenset((Sight.TRACED, Sight.TOOLS, Sight.EMPTY, Sight.MESSAGES, Sight.CALLS, Sight.VISIBLE))
_HINTS = {Sight.HIDDEN: HIDDEN, Sight.UNTRACED: UNTRACED, Sight.UNREAD: UNREAD, Sight.PARTIAL: PARTIAL}
"""One turn of these makes the conversation one that is not observed."""
_Item = TypeVar("_Item", bound=ScoreItem)


def declared_sight(agent: AgentConfig) -> Sight | None:
    """What ``tools`` says of an agent's calls, whatever the agent returns."""
    if not agent.tools:
        return None
    return Sight.VISIBLE if agent.tools == "visible" else Sight.HIDDEN


def is_observed(scenario: Scenario, trajectory: Trajectory) -> bool:
    """Whether a call that is not in the conversation was not made. Once true of a prefix, it stays true; but
    for an agent whose spans tell of its calls, each turn has to come with them."""
    sights = {turn.sight for turn in trajectory.all_turns}
    if not sights.isdisjoint(_HINTS):
        return False
    if not sights.isdisjoint(_SEEN) or trajectory.tool_calls:
        return True
    return bool(scenario.tools) and (not sights or Sight.UNKNOWN in sights)


def seen_as(trajectory: Trajectory, sight: Sight) -> Trajectory:
    """A recorded conversation of which more is known than its record says."""
    turns = tuple(changed(turn, {"sight": sight}) for turn in trajectory.turns)
    broken = trajectory.unfinished and changed(trajectory.unfinished, {"sight": sight})
    return changed(trajectory, {"turns": turns, "unfinished": broken})


def resting_on_unseen(check: Check) -> Check:
    """A check that holds, or fails, only because no call was seen, in a conversation that is not observed
    yet."""
    return check if check.passed is None else changed(check, {"passed": None, "if_observed": check.passed})


def settled(items: Sequence[_Item], scenario: Scenario, trajectory: Trajectory) -> Sequence[_Item]:
    """The last word on such checks, by the whole conversation; all else as it is."""
    if not any(isinstance(item, Check) and item.if_observed is not None for item in items):
        return items
    observed = is_observed(scenario, trajectory)
    sights = {turn.sight for turn in trajectory.all_turns}
    hint = next((why for sight, why in _HINTS.items() if sight in sights), UNSEEN)
    return tuple(_settled(item, observed, hint) for item in items)


def _settled(item: _Item, observed: bool, hint: str) -> _Item:
    if not isinstance(item, Check) or item.if_observed is None:
        return item
    if observed:
        return changed(item, {"passed": item.if_observed, "if_observed": None})
    return changed(item, {"detail": hint, "parts": (), "if_observed": None})


def never_seen(conversations: Iterable[tuple[str, Scenario, Trajectory]]) -> tuple[str, ...]:
    """The agents of which no call was seen in any of the ``conversations`` (each with the agent's name),
    though tools were declared in some."""
    declared: dict[str, None] = {}
    seen = set()
    for agent, scenario, trajectory in conversations:
        if trajectory.tool_calls:
            seen.add(agent)
        elif trajectory.all_turns and (
            scenario.tools or any(turn.sight is Sight.TOOLS for turn in trajectory.all_turns)
        ):
            declared[agent] = None
    return tuple(agent for agent in declared if agent not in seen)
