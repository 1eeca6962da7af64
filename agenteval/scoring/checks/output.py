"""``expect.output``: what is in the agent's answers, and what is in nothing that it said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval.core import needles as texts
from agenteval.core.patterns import EndlessSearchError, is_in
from agenteval.scoring.checks.quoting import excerpt
from agenteval.scoring.checks.rule import Outcome, Rule, Seen, quoted


def contains(needles: Sequence[str], seen: Seen) -> Outcome:
    """Each text is in some answer."""
    missing = [n for n in needles if not any(texts.contains(answer, n) for answer in seen.answers)]
    if not missing:
        return Outcome(True, f"found {quoted(needles)}")
    return Outcome(
        False, f"missing {quoted(missing)} in {seen.shown}{found_by_stars(missing, seen)}", parts=missing
    )


def found_by_stars(missing: Sequence[str], seen: Seen) -> str:
    """Say what a star would have found of the needles that no answer holds; empty if nothing."""
    found = (
        next(filter(None, (texts.starred(answer, needle) for answer in seen.answers)), "")
        for needle in missing
    )
    near = [starred for starred in found if starred]
    return f"; {quoted(near)} would be found" if near else ""


def any_of(needles: Sequence[str], seen: Seen) -> Outcome:
    """At least one of the texts is in some answer."""
    found = [needle for needle in needles if any(texts.contains(answer, needle) for answer in seen.answers)]
    if found:
        return Outcome(True, f"found {quoted(found)}")
    detail = f"none of {quoted(needles)} in {seen.shown}{found_by_stars(needles, seen)}"
    return Outcome(False, detail, parts=(" or ".join(needles),))


def not_contains(needles: Sequence[str], seen: Seen) -> Outcome:
    """None of the texts is in anything that the agent said."""
    found = []
    first: int | None = None
    everywhere: dict[str, None] = {}
    for number, pieces in enumerate(seen.said, 1):
        turn = f" (answer {number})" if len(seen.said) > 1 else ""
        for said in pieces:
            if present := [needle for needle in needles if texts.mentions(said, needle)]:
                everywhere |= dict.fromkeys(present)
                found.append(f"found {quoted(present)} in {excerpt(said)}{turn}")
                first = number - 1 if first is None else first
    detail = "; ".join(found) or f"none of {quoted(needles)} found"
    return Outcome(not found, detail, parts=tuple(everywhere), is_lasting=bool(found), turn=first)


def matches(patterns: Sequence[str], seen: Seen) -> Outcome:
    """Each expression is found in some answer."""
    try:
        missing = [p for p in patterns if not any(is_in(p, answer, re.IGNORECASE) for answer in seen.answers)]
    except EndlessSearchError as endless:
        return Outcome(None, f"{endless} in {seen.shown}")
    listed = ", ".join(f"/{pattern}/" for pattern in missing or patterns)
    detail = f"found a match for {listed}"
    if missing:
        detail = f"no match for {listed} in {seen.shown}{broken_by_line_breaks(missing, seen)}"
    return Outcome(not missing, detail, parts=missing)


def broken_by_line_breaks(patterns: Sequence[str], seen: Seen) -> str:
    """Which of the expressions would be found if their ``.`` matched line breaks, and what to write."""
    try:
        near = [
            p for p in patterns if any(is_in(p, each, re.IGNORECASE | re.DOTALL) for each in seen.answers)
        ]
    except EndlessSearchError:
        return ""
    return "".join(f"; a line break is in between: /(?s){pattern}/ would match" for pattern in near[:1])


OUTPUT = (
    Rule("output.contains", contains, needs_answers=True),
    Rule("output.any_of", any_of, needs_answers=True),
    Rule("output.not_contains", not_contains, needs_answers=True),
    Rule("output.matches", matches, needs_answers=True),
)
