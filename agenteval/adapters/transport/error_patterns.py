"""Classify refusals by the text of the server's message. The same rules apply to models and agents."""

from __future__ import annotations

import re

_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""Matches a word, also within a code such as ``insufficient_quota`` or ``InsufficientBalance``."""
_NO_CREDIT = frozenset(("quota", "quotas", "billing", "credit", "credits", "balance", "payment", "payments"))
_SPEND_LIMIT = re.compile(r"spend(ing)?.limit", re.IGNORECASE)
RATE_LIMIT_PATTERN = re.compile(
    r"per.?(second|minute)|\b[rt]pm\b|\brps\b|concurren|rate.?limit|too many requests|in flight",
    re.IGNORECASE,
)
_NOT_TODAY = re.compile(r"per.?(day|month)|daily|monthly|\b[rt]pd\b|request too large", re.IGNORECASE)

NO_SYSTEM_ROLE_PATTERN = re.compile(
    r"(system|developer)[ '\"]*(role|message|prompt|instruction)s?\b.{0,40}\bnot\b"
    r"|(unsupported|not supported|invalid|unknown).{0,40}\b(system|developer)\b|roles must alternate"
    r"|only (the )?['\"]?user['\"]? and ['\"]?assistant",
    re.IGNORECASE | re.DOTALL,
)
"""The pattern for messages that refuse the system or developer role."""

THROTTLE_STATUSES = frozenset((429, 503, 529))
"""The HTTP statuses with which a server reports that it is too busy."""


def is_quota_exhausted(text: str) -> bool:
    """Check whether an HTTP 429 reply with this text reports an exhausted quota or credit that waiting does
    not restore.

    A per-minute rate limit is restored by waiting, although some servers also use the word "quota" for such a
    limit."""
    if _NOT_TODAY.search(text):
        return True
    words = {word.lower() for word in _WORD.findall(text)}
    is_about_credit = not words.isdisjoint(_NO_CREDIT) or bool(_SPEND_LIMIT.search(text))
    return is_about_credit and not RATE_LIMIT_PATTERN.search(text)
