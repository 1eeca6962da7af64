"""Failures in how the agent uses its tools."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator, Sequence

from agenteval.detectors.again import is_meant_twice, is_polled, may_be_stale, was_done
from agenteval.detectors.calls import is_same, key_of, same_result, shown
from agenteval.detectors.conversation import Conversation, PlacedCall, Proof
from agenteval.detectors.empty_arguments import says_nothing
from agenteval.detectors.invented_identifiers import invented
from agenteval.detectors.schema import breaks
from agenteval.detectors.verbs import has_no_verb, is_marked, may_change, nature_of, surely_changes
from agenteval.expressions import expression
from agenteval.trajectory import ToolCall

MAX_RETRIES = 2
"""Identical calls at once after an error that may pass: so many are patience, more are not."""


# ── repeated_tool_call ───────────────────────────────────────────────────────────────────────────


def repeated_tool_call(conversation: Conversation) -> Iterator[Proof]:
    """A call with the name and arguments of an earlier one, although nothing could have changed between
    them. Never after an error. Where the results differ, something had changed, unless the call itself
    changes things; not if the user asked for several. In a later turn, only where the user did not ask for
    it again and the tool is marked ``reads`` or tells nothing that goes stale by itself (a time, a status, a
    price), or does once more what it had done."""
    names = [placed.call.name for placed in conversation.calls]
    if len(set(names)) == len(names):
        return
    often = {name for name, times in Counter(names).items() if times > 1}
    latest: dict[object, PlacedCall] = {}
    for placed in conversation.calls:
        if placed.call.name not in often or placed.call.args is None:
            continue
        key = (placed.call.name, key_of(placed.call.args))
        earlier = latest.get(key)
        latest[key] = placed
        if earlier is not None and _proves_nothing_new(conversation, earlier, placed):
            why = f"call {earlier.index + 1} (turn {earlier.turn + 1}) again, though nothing had changed"
            yield Proof(placed.turn, placed.index, shown(placed.call), why)


def _proves_nothing_new(conversation: Conversation, earlier: PlacedCall, placed: PlacedCall) -> bool:
    one, other = earlier.call, placed.call
    if not one.args and one.result is None and other.result is None:
        return False  # a log that holds neither arguments nor results does not tell what was called
    facts = conversation.tools.get(one.name)
    if earlier.error is not None or (nature_of(one.name).at_will and not is_marked(facts)):
        return False
    changes = surely_changes(one.name, facts)
    differ = one.result is not None and other.result is not None and not same_result(one.result, other.result)
    if differ and (not changes or placed.error is not None):
        return False
    if earlier.turn == placed.turn:
        if may_change(one.name, facts) and is_meant_twice(conversation, earlier, placed):
            return False
        if not changes and is_polled(conversation, earlier, placed):
            return False
    elif may_change(one.name, facts):
        if not changes or not was_done(conversation, earlier, placed):
            return False
    elif may_be_stale(conversation, earlier, placed):
        return False
    between = conversation.calls[earlier.index + 1 : placed.index]
    # What is done once more is not done because something may have changed.
    changing = surely_changes if changes else may_change
    return not any(
        changing(each.call.name, conversation.tools.get(each.call.name))
        and not is_same(each.call, one)
        and (each.turn, each.step) != (placed.turn, placed.step)
        and not _only_told(conversation, earlier, placed, each)
        for each in between
    )


def _only_told(
    conversation: Conversation, earlier: PlacedCall, placed: PlacedCall, between: PlacedCall
) -> bool:
    """Whether a call between two that are the same was of the same tool, which has neither mark nor verb and,
    as far as these calls show, only tells: in one turn, the same both times, in figures that none of them was
    given."""
    name = placed.call.name
    if between.call.name != name or not has_no_verb(name) or is_marked(conversation.tools.get(name)):
        return False
    if earlier.turn != placed.turn or not same_result(earlier.call.result, placed.call.result):
        return False
    return all(_told_figures(each) for each in (earlier, between))


def _told_figures(placed: PlacedCall) -> bool:
    """Whether the result of a call has figures that its arguments have not."""
    call = placed.call
    told = call.result.text if call.result and placed.error is None else ""
    given = set(_FIGURE.findall(shown(call, 20_000)))
    return any(figure not in given for figure in _FIGURE.findall(told[:4000]))


_FIGURE = expression(r"\d+")


# ── arguments and names ──────────────────────────────────────────────────────────────────────────


def wrong_arguments(conversation: Conversation) -> Iterator[Proof]:
    """Arguments that break the JSON Schema which the tool declares, that say nothing, or that name a thing by
    an identifier which nobody gave."""
    for placed in conversation.calls:
        if placed.call.args is None:
            continue
        facts = conversation.tools.get(placed.call.name)
        if facts is not None and (broken := breaks(facts.parameters or {}, placed.call.args)):
            why = f"the arguments break the schema of '{placed.call.name}': {broken}"
        elif nothing := says_nothing(conversation, placed):
            why = f"the arguments of '{placed.call.name}' say nothing: {nothing}"
        elif conversation.observed and (made_up := invented(conversation, placed)):
            why = f"an argument of '{placed.call.name}' is made up: {made_up}"
        else:
            continue
        yield Proof(placed.turn, placed.index, shown(placed.call), why)


def malformed_arguments(conversation: Conversation) -> Iterator[Proof]:
    """Arguments that are no JSON object. What a logger may have made of good ones (Python's ``repr``, the
    object written as JSON a second time) counts where other calls of the conversation are written in
    JSON: else it is how the log was written. Plain text counts for a tool with a schema or of which
    another call could be read: else it is what the tool takes."""
    odd = [placed for placed in conversation.calls if placed.call.raw_args is not None]
    if not odd:
        return
    readable = [each.call for each in conversation.calls if each.call.raw_args is None and each.call.args]
    for placed in odd:
        call = placed.call
        problem, habit = _written(call)
        if not (readable if habit else _was_to_be_json(conversation, call, readable)):
            continue
        raw = call.raw_args or ""
        yield Proof(
            placed.turn,
            placed.index,
            raw if len(raw) <= 300 else f"{raw[:299]}…",
            f"the arguments of '{call.name}' are {problem}",
        )


def _written(call: ToolCall) -> tuple[str, bool]:
    """What is wrong with arguments, and whether a logger may have written good ones so."""
    raw = call.raw_args or ""
    if raw.lstrip().startswith('"') and (call.args is not None or isinstance(_json(_json(raw)), dict)):
        return "a JSON object written as a JSON string", True
    if call.args is not None:
        return "Python's notation, not JSON", _is_repr(raw)
    return "not a JSON object", False


def _json(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _is_repr(raw: str) -> bool:
    """Whether Python's ``repr`` would write a dict so: it knows no comma after the last item, and no
    double quotes where single ones do."""
    try:
        written = repr(ast.literal_eval(raw))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return True
    return "".join(written.split()) == "".join(raw.split())


def _was_to_be_json(conversation: Conversation, call: ToolCall, readable: Sequence[ToolCall]) -> bool:
    raw = (call.raw_args or "").lstrip()
    facts = conversation.tools.get(call.name)
    return (
        raw[:1] in ("{", "[", '"', "}", "`")
        or (facts is not None and bool(facts.parameters))
        or any(other.name == call.name for other in readable)
    )


def unknown_tool(conversation: Conversation) -> Iterator[Proof]:
    """A call of a tool that is not declared, where all that exist are."""
    if not conversation.tools or conversation.undeclared_exist:
        return
    for placed in conversation.calls:
        name = placed.call.name
        if name not in conversation.tools:
            known = ", ".join(conversation.tools)
            why = f"called '{name}', which is not among the tools: {known}"
            yield Proof(placed.turn, placed.index, name, why)
