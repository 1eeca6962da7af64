"""What a program notes beside a turn for its judges: the calls with their outcome, and values of the answer
that stand nowhere before it. Notes are no verdicts: what was not found may be worked out, rounded or said in
other words by the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from agenteval.core.scenario import Scenario
from agenteval.core.speech import pieces_of
from agenteval.core.trajectory import ToolCall, Turn
from agenteval.scoring.detectors.facts import Fact, Kind, facts_in
from agenteval.scoring.detectors.given_facts import Given

MOST_VALUES = 12
"""Of one turn that are named."""
MOST_FACTS = 400
"""Of one turn that are looked for."""


def values_from_nowhere(
    scenario: Scenario, turns: Sequence[Turn], *, policy: str, tools: str, now: str | None
) -> Iterator[tuple[str, ...]]:
    """Of each turn the amounts, percentages, dates, times, identifiers and addresses that the agent says and
    that nobody had given: neither the author, the user nor a result, nor the agent itself in an earlier turn.
    Once a result is not in the record, none."""
    given = Given()
    for text in (scenario.goal, scenario.profile, *scenario.knowledge, *scenario.facts, policy, tools, now):
        given.add(text or "")
    for turn in turns:
        given.add(turn.user)
        for call in turn.tool_calls:
            if call.result is None:
                given.is_blind = True
            else:
                given.add(call.result.value)
        text = "\n".join(pieces_of(turn))
        facts = _facts_of(text)
        yield () if given.is_blind else tuple(_unknown(facts, given))
        given.say(facts, text)


@lru_cache(maxsize=256)
def _facts_of(text: str) -> tuple[Fact, ...]:
    """Each record of a conversation begins with that of the turn before."""
    return tuple(islice(facts_in(text), MOST_FACTS))


def _unknown(facts: Iterable[Fact], given: Given) -> list[str]:
    found = dict.fromkeys(fact.text.rstrip(".,") for fact in facts if not _is_given(fact, given))
    return list(found)[:MOST_VALUES]


def _is_given(fact: Fact, given: Given) -> bool:
    value: Any = fact.value
    if value is None or fact.kind is Kind.NUMBER:
        return True  # it can be read in two ways, or counts something
    if fact.kind is Kind.DATE:
        return given.has_day(value)
    if fact.kind is Kind.TIME:
        return given.has_time(value)
    if fact.kind is Kind.ADDRESS:
        return given.has_address(value)
    if fact.kind is Kind.IDENTIFIER:
        return given.has_name(value)
    return given.has_number(value)


def calls_of(calls: Sequence[ToolCall], first: int) -> str:
    """``0 find_order: a result; 1 cancel_order: an error``."""
    return "; ".join(f"{first + place} {call.name}: {_outcome(call)}" for place, call in enumerate(calls))


def _outcome(call: ToolCall) -> str:
    if call.given_up:
        return "not waited for"
    if call.result is None:
        return "not known"
    return "an error" if call.result.is_error else "a result"
