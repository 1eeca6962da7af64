"""Detects hallucinated actions: actions that the agent claims to have carried out, although no call that it
made could have done so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agenteval.core.tool_effects import ToolEffect, words_of
from agenteval.scoring.detectors.detector_input import DetectorInput, Proof, ToolFacts, get_tool_effect


def claimed_action_not_called(conversation: DetectorInput) -> Iterator[Proof]:
    """Find false claims of completed actions, such as "I've cancelled …" or "… has been successfully
    cancelled".

    A claim contains the participle of the verb in a declared tool's name. The claim is reported only if the
    conversation, and what came before it, contains no call that may have changed anything."""
    tools = conversation.tools
    calls = (
        *(call for turn in conversation.history for call in turn.tool_calls),
        *(placed.call for placed in conversation.calls),
    )
    made = (call.name for call in calls if call.was_made)
    if any(get_tool_effect(name, tools.get(name)) is not ToolEffect.READS for name in made):
        return
    participles = _participles(tools)
    if not participles:
        return
    for number, turn in enumerate(conversation.turns):
        for found in _CLAIM.finditer(turn.answer[:_LONGEST]):
            word = (found["did"] or found["done"]).lower()
            if tool := participles.get(word.replace("ll", "l")):
                why = f"claims to have done what '{tool}' does, but made no call that could do it"
                yield Proof(number, None, found[0], why, found.span(), tool=tool)
                break


_LONGEST = 20_000
_CLAIM = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)?\s+(?:(?:now|just|already|also|successfully)\s+){0,2}"
    r"[*_]{0,3}(?P<did>[a-z]{4,20})\b"
    r"|\b(?:has|have) (?:now )?been successfully\s+[*_]{0,3}(?P<done>[a-z]{4,20})\b",
    re.IGNORECASE,
)
_IRREGULAR = {
    "send": "sent",
    "pay": "paid",
    "make": "made",
    "put": "put",
    "set": "set",
    "buy": "bought",
    "sell": "sold",
    "reset": "reset",
    "withdraw": "withdrawn",
    "overwrite": "overwritten",
}


def _participles(tools: Mapping[str, ToolFacts]) -> dict[str, str]:
    """Return a mapping from participles to tools. Each participle is formed from the verb in the name of a
    declared tool that changes something."""
    found: dict[str, str] = {}
    for name, facts in tools.items():
        verb = next(iter(words_of(name)), "")
        if verb and get_tool_effect(name, facts) is ToolEffect.WRITES:
            found.setdefault(_participle(verb).replace("ll", "l"), name)
    return found


def _participle(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    return (
        f"{verb}{verb[-1]}ed"
        if verb in ("ship", "drop", "submit", "transfer", "refer", "stop", "ban")
        else f"{verb}ed"
    )
