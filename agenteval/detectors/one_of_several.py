"""Of which of several things an answer speaks, where one tool was called for each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.detectors.calls import numbered_apart
from agenteval.detectors.claims import Claim
from agenteval.detectors.conversation import PlacedCall
from agenteval.detectors.identifiers import ids_of, others_of_its_kind
from agenteval.detectors.values import stands_in
from agenteval.expressions import expression
from agenteval.trajectory import ToolCall


def is_for_another(done: ToolCall, failed: ToolCall) -> bool:
    """Whether a call did the same for another thing of its kind: ``cancel_order`` for ORD-2, not for
    ORD-1."""
    if done.name != failed.name:
        return False
    mine, others = ids_of(failed.args or {}), ids_of(done.args or {})
    if numbered_apart(done, failed):
        return True
    return mine.isdisjoint(others) and bool(others_of_its_kind(others, mine))


def names_only(claim: Claim, done: Sequence[ToolCall], failed: ToolCall) -> bool:
    """Whether a claim names what calls of the same tool were ``done`` for, and nothing of the one that
    failed."""
    return claim.named.isdisjoint(ids_of(failed.args or {})) and any(
        claim.named & ids_of(each.args or {}) for each in done
    )


def is_of_another(
    claim: Claim, done: Sequence[ToolCall], failed: ToolCall, own_words: frozenset[str]
) -> bool:
    """Whether a claim speaks of what another call of the tool was ``done`` for ("Bo is registered"), and of
    the one that failed not at all, or in the ``own_words`` of its error."""
    text, mine = claim.text.lower(), short_values(failed.args)
    others = frozenset(value for each in done for value in short_values(each.args))
    if not any(stands_in(value, text) for value in others - mine):
        return False
    return not any(stands_in(value, text) for value in mine - others) or any(
        word in text for word in own_words
    )


def short_values(value: Any) -> frozenset[str]:
    """The texts and numbers in arguments that a sentence may name, in lower case."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return frozenset(text for each in value for text in short_values(each))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return frozenset()
    text = str(value).strip().lower()
    return frozenset({text}) if 0 < len(text) <= _LONGEST_NAME else frozenset()


_LONGEST_NAME = 60


def includes(claim: Claim, failed: ToolCall, alike: Sequence[PlacedCall], *, late: bool) -> bool:
    """Whether a claim speaks of what a call failed to do, and not only of what was done ``alike`` for
    another thing. ``late``: some of that after it."""
    if not alike:
        return True
    mine = ids_of(failed.args or {})
    if claim.named & mine:
        return claim.named <= mine or any(group & mine for group in claim.listed)
    if any(claim.named & ids_of(each.call.args or {}) for each in alike):
        return False
    if any(numbered_apart(each.call, failed) for each in alike):
        return _ALL.search(claim.text) is not None or _is_of_this(claim, failed, alike)
    return not late or _ALL.search(claim.text) is not None


def _is_of_this(claim: Claim, failed: ToolCall, alike: Sequence[PlacedCall]) -> bool:
    text, mine = claim.text.lower(), short_values(failed.args)
    others = frozenset(value for each in alike for value in short_values(each.call.args))
    named = {value for value in mine ^ others if stands_in(value, text)}
    return bool(named) and named <= mine


_ALL = expression(
    r"\bboth\b(?! (?:your|the) (?:e-?mail|address|name|phone))|\ball (?:of )?(?:them|these|those|the|your|"
    r"two|three|"
    r"four|\d)\b",
    re.IGNORECASE,
)
