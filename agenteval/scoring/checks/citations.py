"""``expect.output.cites``: texts that the agent must state and that must originate from a tool result
(grounding)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agenteval.core.errors import Mistake
from agenteval.core.text_matching import contains as is_in
from agenteval.core.trajectory import Turn
from agenteval.messages.json_fields import read_json
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule, quote_texts
from agenteval.scoring.checks.output import describe_wildcard_matches


def check_citations(needles: Sequence[str], seen: CheckInput) -> CheckOutcome:
    """Check that an answer contains each text, and that a tool result returned before that answer also
    contains the text.

    The check thereby ensures that the text is neither made up (hallucinated) nor merely the user's own words.
    """
    unsaid, uncited = [], []
    for needle in needles:
        answers_with_it = [at for at, answer in enumerate(seen.answers) if is_in(answer, needle)]
        if not answers_with_it:
            unsaid.append(needle)
        elif not any(
            is_in(text, needle)
            for text in _results((*seen.history, *seen.before, *seen.turns[: answers_with_it[-1] + 1]))
        ):
            uncited.append(needle)
    details = (
        [f"missing {quote_texts(unsaid)} in {seen.quoted_answers}{describe_wildcard_matches(unsaid, seen)}"]
        if unsaid
        else []
    )
    if uncited:
        details.append(
            f"{quote_texts(uncited)}: answered, but not in any earlier tool result"
            f" ({_describe_call_count(seen)})"
        )
    return CheckOutcome(
        not details,
        "; ".join(details) or f"answered, and found in an earlier tool result: {quote_texts(needles)}",
        parts=(*unsaid, *uncited),
        is_by_absence=bool(uncited) and not unsaid,
    )


def _describe_call_count(seen: CheckInput) -> str:
    calls = sum(len(turn.tool_calls) for turn in (*seen.before, *seen.turns))
    return f"{calls} tool call{'' if calls == 1 else 's'}" if calls else "no tool was called"


def _results(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield the text of each result, and each string (including keys) and number in the result.

    Skip a result that the agent did not wait for. Also skip the refusal of a call that was not carried out,
    because the refusal repeats what the agent sent."""
    for turn in turns:
        for call in turn.tool_calls:
            if call.result is not None and not call.given_up and not call.is_refused:
                yield call.result.text
                # Parsed, because ``\n`` and ``\u00e9`` are escape sequences in the JSON text.
                yield from _leaf_values(read_json(call.result.value))


def _leaf_values(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, str):
            yield item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)
            # As amounts are usually written. An integer may be too large for a float.
            yield f"{item}.00" if isinstance(item, int) else f"{item:.2f}"


def find_citation_mistakes(written: Any) -> Iterator[Mistake]:
    """Yield an error if the value is a description of this key, such as ``tool results only``, instead of a
    string."""
    if isinstance(written, str) and written.strip().casefold() in _DESCRIPTIONS:
        remedy = "list strings that the answer must contain and a tool must return: `cites: [BK-001]`"
        yield Mistake(f"`output.cites` must list strings to look for, not '{written}'", remedy)


_DESCRIPTIONS = frozenset(("tool results only", "tool results", "tool_results", "tools"))

CITES = (
    CheckRule("output.cites", check_citations, needs_answers=True, find_mistakes=find_citation_mistakes),
)
