"""Finds the steps of the current turn in a message list that an agent returned.

The list may repeat the whole conversation; messages that were sent to the agent earlier are dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from agenteval.core.trajectory import Message, Step, ToolCall, Turn
from agenteval.messages import chat
from agenteval.messages.message_adapters import drop_repeats, to_openai_messages, unplaced_phrases
from agenteval.messages.pairing import match_pairs
from agenteval.messages.parsed_message import PASSAGES
from agenteval.messages.unplaced_entries import quote_json


class ParsedTurn(NamedTuple):
    """The part of a message list that belongs to the current turn."""

    steps: tuple[Step, ...]
    unplaced: tuple[str, ...]
    """Descriptions of the entries that no parser recognizes."""


def read_turn(messages: Sequence[Any], sent: Sequence[Turn]) -> ParsedTurn:
    """Parse the steps of the current turn from a message list.

    ``sent`` contains the turns so far, ending with the current turn. Messages known from these turns are
    history. A call that is not known from these turns is never history, regardless of where it occurs in the
    list; the same applies to an entry that cannot be placed. Raise ``AgentError`` for a tool call that cannot
    be parsed."""
    read = drop_repeats(to_openai_messages(messages), sent[-1].tool_calls)
    lines = [_MessageText(message["role"], _message_text(message)) for message in read]
    start = _find_turn_start(lines, sent)
    known = {phrase for turn in sent[:-1] for phrase in turn.unplaced}
    unplaced = [*unplaced_phrases(read[start.position :]), *_orphan_results(read[start.position :], sent)]
    unplaced += [phrase for phrase in unplaced_phrases(read[: start.position]) if phrase not in known]
    steps = _steps_of(chat.parse_steps(read), lines, start, sent)
    is_open = bool(steps) and _ends_with_user(lines)
    return ParsedTurn((*steps, Step()) if is_open else steps, tuple(dict.fromkeys(unplaced)))


def _steps_of(
    steps: Sequence[Step], lines: Sequence[_MessageText], start: _TurnStart, sent: Sequence[Turn]
) -> tuple[Step, ...]:
    places = [at for at, line in enumerate(lines) if line.role == "assistant"]
    steps_before = sum(place < start.position for place in places)
    before, after = steps[:steps_before], steps[steps_before:]
    if start.position:
        history = _History(lines[: start.position - 1], sent, is_sure=start.is_sure)
        before = tuple(_without_history(zip(places, before, strict=False), history, is_sure=start.is_sure))
    return (*before, *_drop_echoed_calls(after, sent[-1].steps))


def _orphan_results(read: Sequence[Message], sent: Sequence[Turn]) -> Iterator[str]:
    """Yield a phrase for each tool result that shows an unknown call: one that is neither in the messages nor
    known from elsewhere."""
    ids = {call.id for turn in sent for call in turn.tool_calls}
    waiting = 0
    for message in read:
        if message["role"] == "assistant":
            calls = [chat.read_tool_call(call) for call in chat.collect_tool_calls(message)]
            ids.update(call.id for call in calls)
            waiting += len(calls)
        elif message["role"] == "tool" and waiting:
            waiting -= 1
        elif _is_orphan_result(message, ids):
            of_tool = f" from '{message['name']}'" if message.get("name") else ""
            result = chat.parse_tool_result(message.get("content"))
            yield f"the call for a tool result{of_tool}: {quote_json(result)}"


def _is_orphan_result(message: Message, ids: Collection[str]) -> bool:
    is_result = message["role"] == "tool" and message.get("type") != PASSAGES
    return is_result and str(message.get("tool_call_id") or "") not in set(ids) - {""}


class _TurnStart(NamedTuple):
    """The position in a message list at which the current turn begins."""

    position: int
    is_sure: bool
    """True if the position follows this turn's user message rather than a user message that a framework may
    have inserted."""


class _MessageText(NamedTuple):
    """The role and the text of a message."""

    role: str
    text: str


def _find_turn_start(lines: Sequence[_MessageText], sent: Sequence[Turn]) -> _TurnStart:
    """Return the position after this turn's user message.

    If several messages have the same text, choose the message that follows the previous answer, or otherwise
    the first."""
    users = [at for at, line in enumerate(lines) if line.role == "user"]
    user_text = _collapse_whitespace(sent[-1].user)
    matches = [at for at in users if lines[at].text == user_text]
    matches = matches or [at for at in users if user_text and user_text in lines[at].text]  # inside a prompt
    if not matches:
        return _TurnStart(users[-1] + 1 if users else 0, is_sure=False)
    answer = _MessageText("assistant", _collapse_whitespace(sent[-2].answer) if len(sent) > 1 else "")
    following = [at for at in matches if answer.text and at and lines[at - 1] == answer]
    return _TurnStart((following or matches[:1])[-1] + 1, is_sure=True)


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


def _message_text(message: Message) -> str:
    content = message.get("content")
    return _collapse_whitespace(chat.text_of(content) or "") if isinstance(content, str | list) else ""


class _History:
    """Identifies the calls before the current turn that are already known from earlier turns.

    A call is history only if it comes after a user message or before an answer of an earlier turn; any other
    call is new. If this turn's user message was not found (``is_sure`` is false), user messages from earlier
    turns are also ignored."""

    def __init__(self, lines: Sequence[_MessageText], sent: Sequence[Turn], *, is_sure: bool) -> None:
        last_steps = [step for turn in sent[:-1] for step in turn.steps[-1:]]
        user_texts = {_collapse_whitespace(turn.user) for turn in sent[:-1]} - {""}
        answer_texts = {_collapse_whitespace(step.text or "") for step in last_steps} - {""}
        users = [at for at, line in enumerate(lines) if line.role == "user" and line.text in user_texts]
        answers = [
            at for at, line in enumerate(lines) if line.role == "assistant" and line.text in answer_texts
        ]
        self._first = users[0] if users and is_sure else None
        self._last = max(answers, default=-1)
        self._calls = [call for turn in sent for call in turn.tool_calls]
        self.texts = user_texts | answer_texts

    def take(self, call: ToolCall, place: int) -> bool:
        """Return ``True`` if the call is known, and mark the known call as used."""
        if place >= self._last and (self._first is None or place < self._first):
            return False
        at = next((at for at, known in enumerate(self._calls) if _is_same(call, known)), None)
        return at is not None and bool(self._calls.pop(at))


def _is_same(call: ToolCall, known: ToolCall) -> bool:
    """Check whether two calls have the same name and arguments.

    Arguments that could not be parsed count as an empty object, because they are sent back to the agent in
    that form."""
    if call.args is None and known.raw_args != call.raw_args:
        return False
    return known.name == call.name and (call.args or {}) == (known.args or {})


def _without_history(
    placed: Iterable[tuple[int, Step]], history: _History, *, is_sure: bool
) -> Iterator[Step]:
    """Yield the steps, leaving out known calls and the texts that precede the user's message."""
    for place, step in placed:
        calls = tuple(call for call in step.tool_calls if not history.take(call, place))
        text = _collapse_whitespace(step.text or "")
        if calls or not (step.tool_calls or is_sure or not text or text in history.texts):
            yield step.model_copy(update={"tool_calls": calls})


def _drop_echoed_calls(steps: Sequence[Step], sent: Sequence[Step]) -> tuple[Step, ...]:
    """Yield the steps, leaving out calls in this turn that agenteval has already answered.

    Calls are matched by id, then by tool and arguments. Results are not compared, because the agent may have
    changed them."""
    known = [call for step in sent for call in step.tool_calls]
    listed = [call for step in steps for call in step.tool_calls if not call.attempted]
    echoes = {id(listed[at]) for at in match_pairs(listed, known, _has_id_of, _is_same)}
    kept: list[Step] = []
    for step in steps:
        calls = tuple(call for call in step.tool_calls if id(call) not in echoes)
        if calls or not step.tool_calls:
            kept.append(step.model_copy(update={"tool_calls": calls}))
    return tuple(kept)


def _has_id_of(call: ToolCall, known: ToolCall) -> bool:
    return bool(call.id) and known.id == call.id and known.name == call.name


def _ends_with_user(lines: Sequence[_MessageText]) -> bool:
    """Check whether the last message is an inserted user message that the agent has not answered yet."""
    last = next((line for line in reversed(lines) if line.role in ("user", "assistant")), None)
    return last is not None and last.role == "user" and bool(last.text)
