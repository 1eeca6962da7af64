"""What a program notes beside a turn for its judges: the calls with their outcome, and identifiers of the
answer that stand nowhere before it. Notes are no verdicts: the agent may have one from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.core.reasoning import agent_texts
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import ToolCall, Turn
from agenteval.scoring.detectors.identifiers import SourceTexts

MAX_NOTED_VALUES = 12
"""Of one turn that are named."""


def find_ungrounded_values(
    scenario: Scenario, turns: Sequence[Turn], *, policy: str, tools: str, now: str | None
) -> Iterator[tuple[str, ...]]:
    """Of each turn the identifiers and addresses that the agent says and that nobody had given, as the
    detector ``ungrounded_value`` finds them: neither the author, the user nor a result, nor the agent itself
    in an earlier turn. Once a result is not in the record, none."""
    known = (scenario.goal, scenario.profile, *scenario.knowledge, *scenario.facts, policy, tools, now)
    sources = SourceTexts(*(text for text in known if text))
    for turn in turns:
        sources.add(turn.user)
        for call in turn.tool_calls:
            sources.add_result(call)
        said = "\n".join(agent_texts(turn))
        found = dict.fromkeys(each.text for each, _ in sources.find_ungrounded(said))
        yield tuple(found)[:MAX_NOTED_VALUES]
        sources.add_agent_text(said)


def format_call_outcomes(calls: Sequence[ToolCall], first: int) -> str:
    """``0 find_order: a result; 1 cancel_order: an error``."""
    return "; ".join(f"{first + place} {call.name}: {_outcome(call)}" for place, call in enumerate(calls))


def _outcome(call: ToolCall) -> str:
    if call.given_up:
        return "not waited for"
    if call.result is None:
        return "not known"
    return "an error" if call.result.is_error else "a result"
