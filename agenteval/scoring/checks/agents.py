"""``expect.agents``: checks which agents of a multi-agent system spoke, and in which order (handoffs)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from agenteval.core.errors import Mistake
from agenteval.core.excerpts import one_line
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule

NAMELESS = "set the agent name on each message (`name: billing`), or return `AgentReply(…, agent='billing')`"
"""The remedy that is shown if it is not known which agent spoke or made a call."""
_UNKNOWN = ""
_SHOWN = 30


def check_agents(expected: Sequence[str], seen: CheckInput) -> CheckOutcome:
    """Check that the agents of a multi-agent system spoke in the expected order.

    Consecutive steps of the same agent count as one step. If some steps do not name their agent, the check is
    decided only if those steps cannot change the result."""
    spoken = _list_speakers(seen)
    comparison = f"expected: {_format_agents(expected)}; spoke: {_format_agents(spoken)}"
    if not any(spoken):
        return CheckOutcome(None, f"{comparison}; no step names its agent — {NAMELESS}")
    ends = _reachable_ends(expected, spoken)
    can_go_on = bool(ends)
    if can_go_on and (seen.is_ongoing or len(expected) in ends):
        if _UNKNOWN in spoken:
            return CheckOutcome(None, f"{comparison}; some steps do not name their agent — {NAMELESS}")
        return CheckOutcome(True, comparison)
    return CheckOutcome(
        False,
        comparison,
        parts=(_difference(expected, spoken),),
        is_lasting=not can_go_on,
        is_by_absence=_is_subsequence(spoken, expected),
    )


def _list_speakers(seen: CheckInput) -> list[str]:
    """List the agents that spoke or made a call, in order."""
    return [agent for agent, _ in groupby(agent for turn in seen.all_turns for agent in turn.spoken)]


def _reachable_ends(expected: Sequence[str], spoken: Sequence[str]) -> frozenset[int]:
    """Return the possible numbers of expected agents that have spoken by the end of the conversation.

    An empty set means that an agent spoke out of turn. An unnamed agent may be any one of the expected
    agents, or several of them."""
    ends = frozenset({0})
    for agent in spoken:
        if agent == _UNKNOWN:
            ends = frozenset(range(min(ends), len(expected) + 1)) if ends else ends
        else:
            stay = {end for end in ends if end and expected[end - 1] == agent}
            ends = frozenset(stay | {end + 1 for end in ends if expected[end : end + 1] == (agent,)})
    return ends


def _is_subsequence(spoken: Sequence[str], expected: Sequence[str]) -> bool:
    """Check whether missing agents are the only fault. The missing agents may have spoken without being
    recorded."""
    remaining = iter(expected)
    return all(any(agent == each for each in remaining) for agent in spoken if agent)


def _difference(expected: Sequence[str], spoken: Sequence[str]) -> str:
    """Describe the first position at which the two sequences differ."""
    place = next(
        (at for at, pair in enumerate(zip(expected, spoken, strict=False)) if pair[0] != pair[1]), None
    )
    place = min(len(expected), len(spoken)) if place is None else place
    wanted, found = (each[place] if place < len(each) else "nobody" for each in (expected, spoken))
    return f"{wanted}, not {found}"


def _format_agents(names: Sequence[str]) -> str:
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = (one_line(name, 80) or "(not named)" for name in names[:_SHOWN])
    return (", ".join(shown) or "nobody") + more


def find_agent_name_mistakes(written: Any) -> Iterator[Mistake]:
    names = written if isinstance(written, list) else [written]
    for at, name in enumerate(names):
        path = (at,) if isinstance(written, list) else ()
        if isinstance(name, str) and not name.strip():
            yield Mistake("`agents` must not contain an empty name", "set an agent name, or remove it", path)
        elif at and name == names[at - 1]:
            what = f"`agents` lists '{name}' twice in a row, but consecutive steps count as one"
            yield Mistake(what, "list it once", path)


AGENTS = (CheckRule("agents", check_agents, needs_answers=True, find_mistakes=find_agent_name_mistakes),)
