"""``expect.output``: what is, and is not, in the agent's answers."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.patterns import EndlessSearchError
from agenteval.scorers.checks.rule import Outcome, Rule, Seen, quoted
from agenteval.scorers.text import contains as is_in
from agenteval.scorers.text import excerpt
from agenteval.scorers.text import matches as is_found


def contains(needles: Sequence[str], seen: Seen) -> Outcome:
    """Each text is in some answer."""
    missing = [needle for needle in needles if not any(is_in(answer, needle) for answer in seen.answers)]
    detail = f"missing {quoted(missing)} in {seen.shown}" if missing else f"found {quoted(needles)}"
    return Outcome(not missing, detail, parts=missing)


def not_contains(needles: Sequence[str], seen: Seen) -> Outcome:
    """None of the texts is in any answer."""
    found = []
    everywhere: dict[str, None] = {}
    for number, answer in enumerate(seen.answers, 1):
        present = [needle for needle in needles if is_in(answer, needle)]
        everywhere |= dict.fromkeys(present)
        if present:
            turn = f" (answer {number})" if len(seen.answers) > 1 else ""
            found.append(f"found {quoted(present)} in {excerpt(answer)}{turn}")
    detail = "; ".join(found) or f"none of {quoted(needles)} found"
    return Outcome(not found, detail, parts=tuple(everywhere), is_lasting=bool(found))


def matches(patterns: Sequence[str], seen: Seen) -> Outcome:
    """Each expression is found in some answer."""
    try:
        missing = [p for p in patterns if not any(is_found(answer, p) for answer in seen.answers)]
    except EndlessSearchError as endless:
        return Outcome(None, f"{endless} in {seen.shown}")
    listed = ", ".join(f"/{pattern}/" for pattern in missing or patterns)
    detail = f"no match for {listed} in {seen.shown}" if missing else f"found a match for {listed}"
    return Outcome(not missing, detail, parts=missing)


OUTPUT = (
    Rule("output.contains", contains, needs_answers=True),
    Rule("output.not_contains", not_contains, needs_answers=True),
    Rule("output.matches", matches, needs_answers=True),
)
