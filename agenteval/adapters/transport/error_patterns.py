"""What servers mean by their refusals, read off their own words; the same for models and for agents."""

from __future__ import annotations

import re

_NO_CREDIT = re.compile(r"quota|billing|credit|balance|payment|spend(ing)?.limit", re.IGNORECASE)
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
"""A role for instructions that the server does not know."""

THROTTLE_STATUSES = frozenset((429, 503, 529))
"""Statuses by which a server says that it has too much to do."""


def is_quota_exhausted(text: str) -> bool:
    """Whether a 429 with these words tells of a quota or credit that no waiting brings back. A quota of a
    minute does come back; some servers call that a quota too."""
    if _NOT_TODAY.search(text):
        return True
    return bool(_NO_CREDIT.search(text)) and not RATE_LIMIT_PATTERN.search(text)
