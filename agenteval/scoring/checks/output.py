"""``expect.output`` (expected output): texts that the agent's answers must contain, and texts that the agent
must never write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval.core import text_matching as texts
from agenteval.core.excerpts import excerpt
from agenteval.core.patterns import SearchTimeoutError, pattern_matches
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule, quote_texts


def check_contains(needles: Sequence[str], seen: CheckInput) -> CheckOutcome:
    """Check that the output contains the texts: each text must be contained in at least one answer."""
    missing = [n for n in needles if not any(texts.contains(answer, n) for answer in seen.answers)]
    if not missing:
        return CheckOutcome(True, f"found {quote_texts(needles)}")
    return CheckOutcome(
        False,
        f"missing {quote_texts(missing)} in {seen.quoted_answers}{describe_wildcard_matches(missing, seen)}",
        parts=missing,
    )


def describe_wildcard_matches(missing: Sequence[str], seen: CheckInput) -> str:
    """Describe which of the missing texts would match if they contained a wildcard, or return an empty string
    if none would match."""
    found = (
        next(filter(None, (texts.suggest_starred(answer, needle) for answer in seen.answers)), "")
        for needle in missing
    )
    near = [starred for starred in found if starred]
    return f"; {quote_texts(near)} would match" if near else ""


def check_any_of(needles: Sequence[str], seen: CheckInput) -> CheckOutcome:
    """Check that at least one of the texts is contained in at least one answer."""
    found = [needle for needle in needles if any(texts.contains(answer, needle) for answer in seen.answers)]
    if found:
        return CheckOutcome(True, f"found {quote_texts(found)}")
    detail = f"found none of {quote_texts(needles)} in {seen.quoted_answers}"
    detail += describe_wildcard_matches(needles, seen)
    return CheckOutcome(False, detail, parts=(" or ".join(needles),))


def check_not_contains(needles: Sequence[str], seen: CheckInput) -> CheckOutcome:
    """Check that none of the texts occurs in anything that the agent wrote."""
    found = []
    first: int | None = None
    everywhere: dict[str, None] = {}
    for number, pieces in enumerate(seen.spoken_pieces, 1):
        turn = f" (answer {number})" if len(seen.spoken_pieces) > 1 else ""
        for piece in pieces:
            if present := [needle for needle in needles if texts.mentions(piece, needle)]:
                everywhere |= dict.fromkeys(present)
                found.append(f"found {quote_texts(present)} in {excerpt(piece)}{turn}")
                first = number - 1 if first is None else first
    detail = "; ".join(found) or f"none of {quote_texts(needles)} found"
    return CheckOutcome(not found, detail, parts=tuple(everywhere), is_lasting=bool(found), turn=first)


def check_matches(patterns: Sequence[str], seen: CheckInput) -> CheckOutcome:
    """Check that each regular expression (regex) matches at least one answer."""
    try:
        missing = [
            p
            for p in patterns
            if not any(pattern_matches(p, answer, re.IGNORECASE) for answer in seen.answers)
        ]
    except SearchTimeoutError as endless:
        return CheckOutcome(None, f"{endless} in {seen.quoted_answers}")
    listed = ", ".join(f"/{pattern}/" for pattern in missing or patterns)
    detail = f"found a match for {listed}"
    if missing:
        detail = f"no match for {listed} in {seen.quoted_answers}{describe_line_break_misses(missing, seen)}"
    return CheckOutcome(not missing, detail, parts=missing)


def describe_line_break_misses(patterns: Sequence[str], seen: CheckInput) -> str:
    """Describe a regular expression that would match if its ``.`` matched line breaks, and suggest a
    correction. Return an empty string if there is no such expression."""
    try:
        near = [
            p
            for p in patterns
            if any(pattern_matches(p, each, re.IGNORECASE | re.DOTALL) for each in seen.answers)
        ]
    except SearchTimeoutError:
        return ""
    return "".join(f"; the text contains a line break: /(?s){pattern}/ would match" for pattern in near[:1])


OUTPUT = (
    CheckRule("output.contains", check_contains, needs_answers=True),
    CheckRule("output.any_of", check_any_of, needs_answers=True),
    CheckRule("output.not_contains", check_not_contains, needs_answers=True),
    CheckRule("output.matches", check_matches, needs_answers=True),
)
