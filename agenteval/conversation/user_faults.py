"""Check in code whether a real user would write a message. The check is made before the agent sees the
message and does not depend on the outcome.

A simulated user may speak as the assistant, think aloud or invent an order number (hallucination); the agent
would then be blamed for the failure. A simulated user may also reveal what the agent has to find out; the
agent would then be credited with a success. Each rule is narrow, and two faults in succession make the sample
inconclusive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from pydantic import BaseModel

from agenteval.conversation.user_noise import find_thought
from agenteval.core.errors import Problem, parse_place
from agenteval.core.safe_text import one_line
from agenteval.core.scenario import Expectation, ExpectedCall, Scenario, ScriptedTurn
from agenteval.core.text_cache import keep_by_text
from agenteval.core.text_matching import contains
from agenteval.core.trajectory import Trajectory

_THINKING = re.compile(
    r"^\s*(?:user|assistant|agent|system|customer|human|you)\s*:"
    r"|\bas the (?:simulated )?user\b|\bthe user (?:wants|would|should|is)\b|\bmy persona\b"
    r"|\bi (?:should|need to|will) (?:now )?(?:respond|reply|answer) as\b|^\s*[{\[].*[}\]]\s*$",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_SAME = 0.9
_ASSISTANT = re.compile(
    r"\bhow (?:can|may) i (?:help|assist) you\b"
    r"|\bi(?:'m|'d be| am| would be) (?:here|happy|glad|more than happy) to (?:help|assist) you\b"
    r"|\bis there anything else i can (?:help|assist|do)\b|\blet me know if you need anything else\b"
    r"|\bas an ai\b|\bi(?:'m| am) an? (?:ai|virtual) |\bthank you for (?:contacting|reaching out|calling)\b"
    r"|\b(?:let me|i can|i'll|i will) look (?:that|it|this) up for you\b|\bone moment,? please\b"
    r"|\bwould you like me to (?:book|order|cancel|check|help|proceed|look)\b"
    r"|\bhere is a summary of your\b|\byour (?:order|booking|request) has been (?:booked|placed|processed)\b",
    re.IGNORECASE,
)
REPEATABLE_ANSWERS = frozenset(
    ("yes", "no", "ok", "okay", "sure", "right", "correct", "thanks", "thank you", "yes please", "no thanks")
)
"""Answers that may be given to several different questions, collected from conversations written by
people."""
_IDENTIFIER = re.compile(
    r"\b[A-Z]{2,}[-_#]?\d{2,}[A-Z0-9-]*\b"  # ORD-42, HAT136
    r"|\b(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{6,}\b"  # 4WQ150
    r"|\b\d{7,}\b|\b(?:\d[ -]?){13,19}\b"  # account and card numbers
    r"|[\w.+-]+@[\w-]+\.[\w.]+"
)


def find_user_fault(
    message: str,
    scenario: Scenario,
    trajectory: Trajectory,
    *,
    done: bool = False,
    now: str = "",
    reason: str = "",
    invented: str = "",
) -> str:
    """Return the reason why a user would not write ``message``, as the rest of a sentence that begins "the
    simulated user …". Return an empty string if there is no fault.

    An empty message is acceptable if the user is done, unless the conversation cannot begin without a
    message. ``trajectory`` includes the turns of the scenario's history. ``now`` is the date given to the
    user, ``reason`` is the model's own reason, and ``invented`` is the content that the user is permitted to
    make up."""
    text = message.strip()
    if not text:
        has_begun = len(trajectory.turns) > len(scenario.history_turns) or _has_script(scenario)
        return "" if done and has_begun else "said nothing"
    attempt = _Attempt(text, scenario, trajectory, now, reason, invented)
    return next(filter(None, (fault(attempt) for fault in _FAULTS)), "")


class _Attempt(NamedTuple):
    """A message that a simulated user is about to send, with the parameters of ``find_user_fault``."""

    text: str
    scenario: Scenario
    trajectory: Trajectory
    now: str
    reason: str
    invented: str


def _repetition(attempt: _Attempt) -> str:
    may_recur = _words(attempt.text) in REPEATABLE_ANSWERS
    is_repeated = not may_recur and any(
        _is_same_message(attempt.text, turn.original_user) for turn in attempt.trajectory.turns
    )
    return "repeated its message" if is_repeated else ""


def _role_words(attempt: _Attempt) -> str:
    found = _THINKING.search(attempt.text)
    return f"leaked reasoning or role words ({found[0].strip()[:40]!r})" if found else ""


def _thought(attempt: _Attempt) -> str:
    known = (*_visible_texts(attempt.scenario, attempt.trajectory), attempt.now)
    thought = find_thought(attempt.text, reason=attempt.reason, known=known)
    return f"thought aloud or wrote stage directions ({one_line(thought, 40)!r})" if thought else ""


def _assistant_words(attempt: _Attempt) -> str:
    found = _ASSISTANT.search(attempt.text)
    return f"spoke as the assistant ({found[0][:40]!r})" if found else ""


def _agents_answer(attempt: _Attempt) -> str:
    is_copy = any(_is_copy(attempt.text, turn.answer) for turn in attempt.trajectory.turns)
    return "spoke as the assistant (it repeated the agent's answer)" if is_copy else ""


def _unknown_identifier(attempt: _Attempt) -> str:
    known = _compact(" ".join((*_identifier_sources(attempt.scenario, attempt.trajectory), attempt.invented)))
    named = (found[0].rstrip(".") for found in _IDENTIFIER.finditer(attempt.text))
    unknown = next((name for name in named if _compact(name) not in known), "")
    return f"used an identifier that it could not know ({unknown})" if unknown else ""


def _leak(attempt: _Attempt) -> str:
    leaked = find_leaked_text(attempt.text, attempt.scenario, attempt.trajectory, now=attempt.now)
    return f"gave away what the checks look for, before anyone had said it ({leaked!r})" if leaked else ""


_FAULTS: tuple[Callable[[_Attempt], str], ...] = (
    _repetition,
    _role_words,
    _thought,
    _assistant_words,
    _agents_answer,
    _unknown_identifier,
    _leak,
)
"""The checks for a message, in the order in which they run. The first fault is reported."""


# ── what the agent has to find out ───────────────────────────────────────────────────────────────

_CODE = re.compile(r"[^\W\d_][\w-]*\d[\w-]*")  # bk-001, room2; not 9am, 10:30, 2026-03-04
_TEXTS_SOUGHT = ("contains", "any_of", "json")


def find_leaked_text(message: str, scenario: Scenario, trajectory: Trajectory, *, now: str = "") -> str:
    """Return the first string in ``message`` that contains a digit, is expected by the scenario's checks, and
    could not be known to the user (information leakage). Such a string appears neither in the scenario nor in
    the conversation so far. Return an empty string if there is no such string.

    Strings without digits are ignored, because a user may well come up with them."""
    sought = [needle for needle in dict.fromkeys(_checked_texts(scenario)) if contains(message, needle)]
    if not sought:
        return ""
    visible = "\n".join((*_visible_texts(scenario, trajectory), now))
    return next((needle for needle in sought if not _is_mentioned(needle, visible)), "")


def _is_mentioned(needle: str, visible: str) -> bool:
    # "order ORD 42" also mentions "ORD-42".
    return contains(visible, needle) or (
        _CODE.fullmatch(needle) is not None and _compact(needle) in _compact(visible)
    )


def _checked_texts(scenario: Scenario) -> Iterator[str]:
    """Yield the texts with a digit that checks look for. These include all texts in answers but only codes in
    the arguments of calls, because users express times and amounts in their own words ("at nine" for 09:00).
    """
    scenario = scenario.with_waived
    scripted = [entry.expect for entry in scenario.turns or () if isinstance(entry, ScriptedTurn)]
    texts: list[str] = list(scenario.case.keywords) if scenario.case else []
    for expect in filter(None, (scenario.expect, *scripted)):
        if expect.output:
            texts += _strings([getattr(expect.output, name, None) for name in _TEXTS_SOUGHT])
        calls = expect.tool_calls.expected_calls if expect.tool_calls else ()
        texts += filter(_CODE.fullmatch, _strings([call.args for call in calls]))
    yield from (text for text in texts if any(map(str.isdigit, text)))


def find_missing_fact(
    unknown: str, scenario: Scenario, trajectory: Trajectory, *, policy: str = ""
) -> Problem | None:
    """Return a description of the author's mistake if an expected call needs the fact ``unknown``, which the
    agent asked for and the user was not given.

    The call needs the fact if an argument with a matching name contains a code or an identifier that is not
    available anywhere. If any tool is implemented in the author's code, its results are unknown, so no
    mistake is reported."""
    if any(tool.calls_python for tool in scenario.every_tool.values()):
        return None
    world = "\n".join((policy, *(tool.model_dump_json() for tool in scenario.every_tool.values())))
    results = (call.result.text for call in trajectory.tool_calls if call.result)
    known = _compact("\n".join((*_identifier_sources(scenario, trajectory), world, *results)))
    requested = _name_words(unknown)
    for path, expect in scenario.with_waived.expectations:
        for call, name, value in _needed_codes(expect):
            is_asked = _shares_word(requested, _name_words(name) or _name_words(call.name))  # get_order(id)
            if is_asked and _compact(value) not in known:
                what = (
                    f'the agent asks the user for "{one_line(unknown, 80)}", which the scenario does not'
                    " provide;"
                )
                what += f" the expected call to '{call.name}' needs {name.strip()}: {value}"
                remedy = "add it to `knowledge`, or expect the call without it"
                return Problem(what, remedy, parse_place(scenario.where(f"{path}.tool_calls")))
    return None


def _needed_codes(expect: Expectation) -> Iterator[tuple[ExpectedCall, str, str]]:
    """Yield the codes and identifiers in the arguments of needed calls, each with its call and the name of
    its argument."""
    for call in _needed_calls(expect):
        for name, value in _named_strings(call.args, ""):
            if _CODE.fullmatch(value) or _IDENTIFIER.fullmatch(value):
                yield call, name, value


def _needed_calls(expect: Expectation) -> Iterator[ExpectedCall]:
    """Yield the calls that the expectation requires or, if it only limits the calls, the calls that it
    allows. Exclude alternatives and optional calls."""
    if tool_calls := expect.tool_calls:
        for call in tool_calls.calls or ():
            if call.times is None or call.bounds(tool_calls.match)[0]:
                yield call


def _named_strings(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield the strings in an argument, excluding alternatives, each with the names of its enclosing keys."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from () if str(key).startswith("$") else _named_strings(item, f"{name} {key}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named_strings(item, name)


_WORD = re.compile(r"[^\W\d_]+?(?=[A-Z][a-z]|[\W\d_]|$)")  # orderId, order_id: order, id


def _name_words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text) if len(word) > 2)


def _shares_word(words: Iterable[str], names: Iterable[str]) -> bool:
    """Check whether the two texts have a word in common. The word may be plural in one of the texts."""
    return any(one.startswith(other) or other.startswith(one) for one in words for other in names)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from () if name == "$regex" else _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _visible_texts(scenario: Scenario, trajectory: Trajectory) -> Iterator[str]:
    """Yield all texts that a simulated user is shown."""
    yield from (scenario.profile, scenario.goal, *scenario.knowledge)
    yield from (belief.belief for belief in scenario.beliefs)
    for turn in trajectory.turns:
        yield from (turn.original_user, *(step.text or "" for step in turn.steps))
        yield from (call.result.text for call in turn.user_tool_calls if call.result)


# ── small parts ──────────────────────────────────────────────────────────────────────────────────


def _has_script(scenario: Scenario) -> bool:
    return any(isinstance(entry, ScriptedTurn) for entry in scenario.turns or ())


def _is_same_message(one: str, other: str) -> bool:
    return _words(one) == _words(other)


@keep_by_text
def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _is_copy(text: str, answer: str) -> bool:
    """Check whether a long message copies the agent's answer almost word for word."""
    one, other = _words(text), _words(answer)
    if len(one) < 60 or len(other) < 60:
        return False
    one, other = one[:2000], other[:2000]
    # The lengths and the quick ratio are upper bounds, and are nearly always low enough.
    if 2 * min(len(one), len(other)) / (len(one) + len(other)) <= _SAME:
        return False
    alike = SequenceMatcher(None, one, other, autojunk=False)
    return alike.quick_ratio() > _SAME and alike.ratio() > _SAME


def _compact(text: str) -> str:
    """Remove separators and case differences, so that "ORD 42" and "ord-42" are the same order."""
    return re.sub(r"[-_# ]", "", text).upper()


def _identifier_sources(scenario: Scenario, trajectory: Trajectory) -> Iterable[str]:
    """Yield every text from which the user may know an identifier, including texts that the author wrote
    elsewhere."""
    yield scenario.name
    for entry in scenario.turns or ():
        if isinstance(entry, ScriptedTurn):
            yield entry.user
    yield from _visible_texts(scenario, trajectory)
