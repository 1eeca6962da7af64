"""Is this what a user would write? Checked in code, before the agent sees it and blind to the outcome.

A simulated user that speaks as the assistant, thinks aloud or invents an order number would be booked
as the agent's failure. Each rule is narrow: a fault found twice makes the sample inconclusive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from agenteval.expressions import expression
from agenteval.scenario import Scenario, ScriptedTurn
from agenteval.trajectory import Trajectory

_THINKING = expression(
    r"</?think(?:ing)?>|<\|[a-z_]+\|>|^\s*(?:user|assistant|agent|system|customer|human|you)\s*:"
    r"|\bas the (?:simulated )?user\b|\bthe user (?:wants|would|should|is)\b|\bmy persona\b"
    r"|\bi (?:should|need to|will) (?:now )?(?:respond|reply|answer) as\b|^\s*[{\[].*[}\]]\s*$",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_SAME = 0.9
_ASSISTANT = expression(
    r"\bhow (?:can|may) i (?:help|assist) you\b"
    r"|\bi(?:'m|'d be| am| would be) (?:here|happy|glad|more than happy) to (?:help|assist) you\b"
    r"|\bis there anything else i can (?:help|assist|do)\b|\blet me know if you need anything else\b"
    r"|\bas an ai\b|\bi(?:'m| am) an? (?:ai|virtual) |\bthank you for (?:contacting|reaching out|calling)\b"
    r"|\b(?:let me|i can|i'll|i will) look (?:that|it|this) up for you\b|\bone moment,? please\b"
    r"|\bwould you like me to (?:book|order|cancel|check|help|proceed|look)\b"
    r"|\bhere is a summary of your\b|\byour (?:order|booking|request) has been (?:booked|placed|processed)\b",
    re.IGNORECASE,
)
_MAY_RECUR = frozenset(
    ("yes", "no", "ok", "okay", "sure", "right", "correct", "thanks", "thank you", "yes please", "no thanks")
)
"""Answers that different questions may get; found in conversations that people wrote."""
_IDENTIFIER = expression(
    r"\b[A-Z]{2,}[-_#]?\d{2,}[A-Z0-9-]*\b"  # ORD-42, HAT136
    r"|\b(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{6,}\b"  # 4WQ150
    r"|\b\d{7,}\b|\b(?:\d[ -]?){13,19}\b"  # account and card numbers
    r"|[\w.+-]+@[\w-]+\.[\w.]+"
)


def fault_in(message: str, scenario: Scenario, trajectory: Trajectory, *, done: bool = False) -> str:
    """What makes ``message`` no user's message, as the rest of a sentence that begins "the simulated
    user …"; empty if nothing does. An empty message is fine for a user that is done, unless there is no
    conversation without it."""
    text = message.strip()
    if not text:
        return "" if done and (trajectory.turns or _has_script(scenario)) else "said nothing"
    if _words(text) not in _MAY_RECUR and any(_same(text, turn.user) for turn in trajectory.turns):
        return "repeated its message"
    if found := _THINKING.search(text):
        return f"leaked reasoning or role words ({found[0].strip()[:40]!r})"
    if found := _ASSISTANT.search(text):
        return f"spoke as the assistant ({found[0][:40]!r})"
    if any(_is_copy(text, turn.answer) for turn in trajectory.turns):
        return "spoke as the assistant (it repeated the agent's answer)"
    known = _compact(" ".join(_known(scenario, trajectory)))
    unknown = [found[0].rstrip(".") for found in _IDENTIFIER.finditer(text)]
    unknown = [found for found in unknown if _compact(found) not in known]
    return f"used an identifier that it could not know ({unknown[0]})" if unknown else ""


def _has_script(scenario: Scenario) -> bool:
    return any(isinstance(entry, ScriptedTurn) for entry in scenario.turns or ())


def _same(one: str, other: str) -> bool:
    return _words(one) == _words(other)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _is_copy(text: str, answer: str) -> bool:
    """A long message that is the agent's answer, all but word for word."""
    one, other = _words(text), _words(answer)
    if len(one) < 60 or len(other) < 60:
        return False
    alike = SequenceMatcher(None, one[:2000], other[:2000], autojunk=False)
    # The quick ones are upper bounds, and nearly always low enough.
    return alike.real_quick_ratio() > _SAME and alike.quick_ratio() > _SAME and alike.ratio() > _SAME


def _compact(text: str) -> str:
    """Whether it was said as "ORD 42" or as "ord-42", it is the same order."""
    return re.sub(r"[-_# ]", "", text).upper()


def _known(scenario: Scenario, trajectory: Trajectory) -> Iterable[str]:
    """All that the user may have an identifier from."""
    yield from (scenario.name, scenario.profile, scenario.goal, *scenario.knowledge, *scenario.beliefs)
    for entry in scenario.turns or ():
        if isinstance(entry, ScriptedTurn):
            yield entry.user
    for turn in trajectory.turns:
        yield from (turn.user, *(step.text or "" for step in turn.steps))
