"""Is a text English: what is read in English only must leave the rest alone."""

from __future__ import annotations

import re

from agenteval.core.expressions import expression

_ENGLISH = expression(
    r"\b(?:the|and|you|your|my|is|are|was|it|i|i'm|i'd|to|of|for|with|that|this|what|how|can|could|"
    r"please|would|"
    r"have|has|on|be|me|want|need|do|does|not|will|cancel|delete|remove|book|send|transfer|change|pay|order|"
    r"update|refund|when|where|which|who|if|about|from|hi|hello|thanks|hey|yes|yeah|sure)\b",
    re.IGNORECASE,
)
_FOREIGN = expression(
    r"[^\x00-\x7f\u2010-\u203a\u20a0-\u20bf\u00a0-\u00bf\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]"
    r"|\b(?:el|la|los|las|que|por|para|una|und|der|die|das|ist|ich|nicht|bitte|le|les|des|est|je|pour|il|che|"
    r"een|het|van|voor|ik|jag|och|att|saya|yang|untuk|dan|con|del|ou|em|um|uma)\b"
    # English counts by it ("94 euros per night"), Italian speaks with it.
    r"|\bper\b(?! (?:night|day|hour|minute|second|week|month|year|annum|person|guest|room|head|unit|item|"
    r"piece|user|seat|passenger|ticket|order|transaction|call|request|mile|km|kg|litre|liter|gallon|cent|se|our|"
    r"your)\b)",
    re.IGNORECASE,
)


def is_english(text: str) -> bool:
    """Whether a text has words of English and none of another language."""
    text = text[:2000].replace("’", "'")
    return _ENGLISH.search(text) is not None and _FOREIGN.search(text) is None


def is_foreign(text: str) -> bool:
    """Whether a text has a word of another language."""
    return _FOREIGN.search(text[:2000].replace("’", "'")) is not None


def is_mostly_english(text: str) -> bool:
    """Whether more is English in it than not; names may be of elsewhere."""
    text = text[:4000].replace("’", "'")
    return len(_ENGLISH.findall(text)) > 2 * len(_FOREIGN.findall(text))
