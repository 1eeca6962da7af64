"""Detects ungrounded (hallucinated) identifiers in answers: identifiers that no source provided. The other
hallucination detectors are in ``claims`` and ``tool_use``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.scoring.detectors.detector_input import DetectorInput, LocatedCall, Proof
from agenteval.scoring.detectors.identifiers import SourceTexts


def ungrounded_value(conversation: DetectorInput) -> Iterator[Proof]:
    """Find ungrounded (hallucinated) values in an answer: identifiers or addresses that no source provided.

    The sources are the author (the policy, the knowledge and the values that a schema lists), the user, any
    earlier call or result, and the agent itself in an earlier turn. After a call whose result is not in the
    record, nothing is reported."""
    sources = collect_sources(conversation)
    for number, turn in enumerate(conversation.turns):
        sources.add(turn.user)
        for placed in conversation.calls_in_turn(number):
            sources.add(_arguments(placed))
            sources.add_result(placed.call)
        for each, near in sources.find_ungrounded(turn.answer):
            why = f"{each.text} has no source" + (f"; '{near}' was given" if near else "")
            yield Proof(number, None, each.text, why, (each.start, each.end))
        sources.add_agent_text(turn.answer)


def collect_sources(conversation: DetectorInput) -> SourceTexts:
    """Return the sources that exist before the conversation begins."""
    sources = SourceTexts(
        conversation.policy,
        conversation.now,
        *conversation.truths,
        *conversation.beliefs,
        *(value for tool in conversation.tools.values() for value in _listed_values(tool.parameters)),
    )
    sources.add_turns(conversation.history)
    return sources


def _listed_values(schema: Any) -> Iterator[Any]:
    """Yield the values that a schema lists. The agent may choose these values, but not an example in a
    description."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            yield from (part[key] for key in ("enum", "const", "default") if key in part)
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)


def _arguments(placed: LocatedCall) -> Any:
    return placed.call.args if placed.call.args is not None else placed.call.raw_args or ""
