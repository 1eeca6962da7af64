"""Notes that code adds to each turn for its judges: the calls with their outcomes, and the identifiers in the
answer that do not occur earlier. Notes are not verdicts: the agent may know an identifier from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.core.reasoning import agent_texts
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import ToolCall, Turn
from agenteval.scoring.detectors.identifiers import SourceTexts

MAX_NOTED_VALUES = 12
"""The maximum number of values that are noted for one turn."""


def find_ungrounded_values(
    scenario: Scenario, turns: Sequence[Turn], *, policy: str, tools: str, now: str | None
) -> Iterator[tuple[str, ...]]:
    """Yield, for each turn, the ungrounded identifiers and addresses: those in the agent's text that no
    source had provided.

    As in the detector ``ungrounded_value``, the sources are the author, the user, results, and the agent
    itself in an earlier turn. After a call whose result is not in the record, yield nothing."""
    known = (scenario.goal, scenario.profile, *scenario.knowledge, *scenario.facts, policy, tools, now)
    sources = SourceTexts(*(text for text in known if text))
    sources.add_turns(scenario.history_turns)
    for turn in turns:
        sources.add(turn.user)
        for call in turn.tool_calls:
            sources.add_result(call)
        answer_text = "\n".join(agent_texts(turn))
        found = dict.fromkeys(each.text for each, _ in sources.find_ungrounded(answer_text))
        yield tuple(found)[:MAX_NOTED_VALUES]
        sources.add_agent_text(answer_text)


def format_call_outcomes(calls: Sequence[ToolCall], first: int) -> str:
    """Format calls with their outcomes, as in ``0 find_order: a result; 1 cancel_order: an error``."""
    return "; ".join(f"{first + place} {call.name}: {_outcome(call)}" for place, call in enumerate(calls))


def _outcome(call: ToolCall) -> str:
    if call.given_up:
        return "not waited for"
    if call.result is None:
        return "not known"
    return "an error" if call.result.is_error else "a result"
