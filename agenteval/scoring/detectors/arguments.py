"""Detects wrong tool-call arguments: arguments that violate the schema, cannot be read, or contain values
that no source provided (hallucinated values)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

from agenteval.core.call_outcomes import abbreviate_call
from agenteval.core.json_schema import schema_violations
from agenteval.core.json_text import iter_leaves, parse_or
from agenteval.core.tool_effects import words_of
from agenteval.scoring.detectors.detector_input import DetectorInput, LocatedCall, Proof, ToolFacts
from agenteval.scoring.detectors.identifiers import SourceTexts
from agenteval.scoring.detectors.ungrounded import collect_sources


def wrong_arguments(conversation: DetectorInput) -> Iterator[Proof]:
    """Find tool-call arguments that violate the tool's schema, are empty, or contain an ungrounded
    (hallucinated) identifier or address.

    A list or object that was written as a string and accepted by the tool is considered a peculiarity of the
    log and is not reported."""
    sources = collect_sources(conversation)
    for number, turn in enumerate(conversation.turns):
        sources.add(turn.user)
        turn_calls = conversation.calls_in_turn(number)
        for _, step in groupby(turn_calls, key=attrgetter("step")):
            together = tuple(step)  # made at the same time: none depends on the result of another
            for placed in together:
                if why := _find_wrong_argument(conversation, placed, sources):
                    yield Proof(placed.turn, placed.index, abbreviate_call(placed.call), why)
                sources.add_agent_text(abbreviate_call(placed.call, 20_000))
            for placed in together:
                sources.add_result(placed.call)
        sources.add_agent_text(turn.answer)


def _find_wrong_argument(conversation: DetectorInput, placed: LocatedCall, sources: SourceTexts) -> str:
    call = placed.call
    if call.args is None:
        return ""
    facts = conversation.tools.get(call.name)
    if facts is not None and (broken := _find_schema_break(facts, placed)):
        return f"the arguments violate the schema of '{call.name}': {broken}"
    if nothing := _find_empty_arguments(facts, call.args):
        return f"the arguments of '{call.name}' contain no value: {nothing}"
    if not conversation.observed:
        return ""
    texts = ((path, leaf) for path, leaf in iter_leaves(call.args) if isinstance(leaf, str))
    reasons = (_ungrounded(*text, placed, sources) for text in texts if 0 < len(text[1]) <= _LONGEST_VALUE)
    return next(filter(None, reasons), "")


def _find_schema_break(facts: ToolFacts, placed: LocatedCall) -> str:
    """Describe the schema violation, unless it is a value that was written as JSON text and accepted by the
    tool."""
    args = placed.call.args or {}
    broken = schema_violations(facts.parameters or {}, args)
    if not broken or placed.error is not None or placed.call.result is None:
        return broken
    decoded = {key: _decoded(value) for key, value in args.items()}
    return schema_violations(facts.parameters or {}, decoded) if decoded != args else broken


def _decoded(value: Any) -> Any:
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    return parse_or(value, value)


def _find_empty_arguments(facts: ToolFacts | None, args: Mapping[str, Any]) -> str:
    """Describe why a call's arguments are considered empty: a required string and all other strings are
    empty, or a placeholder was not filled in."""
    texts = {key: value for key, value in args.items() if isinstance(value, str)}
    if unfilled := next(filter(_PLACEHOLDER.fullmatch, texts.values()), ""):
        return f"the placeholder '{unfilled}'"
    if len(texts) < len(args) or any(map(str.strip, texts.values())):
        return ""
    required = (facts.parameters or {}).get("required") if facts else None
    empty = [key for key in texts if key in required] if isinstance(required, list) else []
    return f"'{empty[0]}' is empty" if empty else ""


_PLACEHOLDER = re.compile(r"<[a-z]+_[a-z_]+>|YOUR_[A-Z_]+")


_LONGEST_VALUE = 120
_FILLED_IN = re.compile(
    r"session|token|auth|secret|api_?key|trace|request_?id|idempoten|tenant|context|nonce|uuid", re.I
)
_OF_THE_USER = re.compile(r"(?:^|[._])(?:user|customer|account|member|client|caller)(?:_?id|Id)?\Z")
"""Parameters that identify the user. They are often filled in by the code around the agent."""
_MAKES = frozenset(["create", "generate", "register", "add", "new", "make", "issue", "reset", "set"])
"""Words in a tool's name that indicate that calls to the tool may introduce a new name."""


def _ungrounded(path: str, value: str, placed: LocatedCall, sources: SourceTexts) -> str:
    """Return the reason why an identifier cannot come from the given sources, or an empty string if it can.

    Parameters that are filled in by the code around the agent need no source, nor do the names of things that
    a call creates."""
    if _FILLED_IN.search(path):
        return ""
    identifier, near = next(sources.find_ungrounded(value), (None, ""))
    if identifier is None or identifier.text != value:
        return ""
    if not near and not identifier.is_address and not _MAKES.isdisjoint(words_of(placed.call.name)):
        return ""
    if placed.error is None and _OF_THE_USER.search(path) and not sources.has_known_shape(value):
        return ""
    return f"'{value}' ({path}) has no source" + (f"; '{near}' was given" if near else "")


# ── arguments that cannot be read ────────────────────────────────────────────────────────────────


def malformed_arguments(conversation: DetectorInput) -> Iterator[Proof]:
    """Find arguments that are not a JSON object.

    If any call in the conversation has ordinary JSON arguments, report all malformed arguments. Otherwise, do
    not report Python notation, doubly encoded JSON, or a nonstandard notation that several calls use and with
    which the call succeeds, because the log may simply be written in this format."""
    odd = [placed for placed in conversation.calls if placed.call.raw_args is not None]
    plainly = any(each.call.raw_args is None and each.call.args for each in conversation.calls)
    for placed in odd:
        call = placed.call
        raw = call.raw_args or ""
        what, may_be_log = _describe_malformed(raw, call.args is not None)
        succeeds = placed.error is None and call.result is not None
        is_habit = len(odd) > 1 and succeeds and not _looks_like_json(raw)
        if plainly or not (may_be_log or is_habit):
            text = raw if len(raw) <= 300 else f"{raw[:299]}…"
            yield Proof(placed.turn, placed.index, text, f"the arguments of '{call.name}' are {what}")


def _looks_like_json(raw: str) -> bool:
    return raw.lstrip()[:1] in ("{", "[", '"', "}", "`")


def _describe_malformed(raw: str, was_read: bool) -> tuple[str, bool]:
    """Describe what is wrong with arguments, and state whether a logger may have written valid arguments this
    way."""
    inner = parse_or(raw)
    if isinstance(inner, str) and (was_read or isinstance(parse_or(inner), dict)):
        return "a JSON object written as a JSON string", True
    if was_read:
        return "in Python notation, not JSON", _is_repr(raw)
    return "not a JSON object", False


def _is_repr(raw: str) -> bool:
    """Check whether Python's ``repr`` would write a dict this way: without a comma after the last item."""
    try:
        written = repr(ast.literal_eval(raw))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return True
    return "".join(written.split()) == "".join(raw.split())
