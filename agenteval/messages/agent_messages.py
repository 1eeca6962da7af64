"""What the list of messages that an agent returns tells of this turn: all but what it was sent before."""

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
    """What a list of messages holds of one turn. ``unplaced``: entries that no reader knows, as phrases."""

    steps: tuple[Step, ...]
    unplaced: tuple[str, ...]


def read_turn(messages: Sequence[Any], sent: Sequence[Turn]) -> ParsedTurn:
    """Read the steps of this turn in a list of messages. ``sent``: the turns so far, this one as the last;
    what is known from them is history. A call that is not known is not a history, wherever it stands, and
    neither is an entry that nobody can place. Raises ``AgentError`` for a tool call that cannot be read."""
    read = drop_repeats(to_openai_messages(messages), sent[-1].tool_calls)
    lines = [_MessageWords(message["role"], _words(message)) for message in read]
    cut = _cut(lines, sent)
    known = {phrase for turn in sent[:-1] for phrase in turn.unplaced}
    unplaced = [*unplaced_phrases(read[cut.place :]), *_without_calls(read[cut.place :], sent)]
    unplaced += [phrase for phrase in unplaced_phrases(read[: cut.place]) if phrase not in known]
    steps = _steps_of(chat.parse_steps(read), lines, cut, sent)
    is_open = bool(steps) and _ends_with_user(lines)
    return ParsedTurn((*steps, Step()) if is_open else steps, tuple(dict.fromkeys(unplaced)))


def _steps_of(
    steps: Sequence[Step], lines: Sequence[_MessageWords], cut: _Cut, sent: Sequence[Turn]
) -> tuple[Step, ...]:
    places = [at for at, line in enumerate(lines) if line.role == "assistant"]
    here = sum(place < cut.place for place in places)
    before, after = steps[:here], steps[here:]
    if cut.place:
        history = _History(lines[: cut.place - 1], sent, is_sure=cut.is_sure)
        before = tuple(_unknown(zip(places, before, strict=False), history, is_sure=cut.is_sure))
    return (*before, *_without_echo(after, sent[-1].steps))


def _without_calls(read: Sequence[Message], sent: Sequence[Turn]) -> Iterator[str]:
    """The results of calls that are neither among the messages nor known: each shows that one was made."""
    ids = {call.id for turn in sent for call in turn.tool_calls}
    waiting = 0
    for message in read:
        if message["role"] == "assistant":
            calls = [chat.read_tool_call(call) for call in chat.collect_tool_calls(message)]
            ids.update(call.id for call in calls)
            waiting += len(calls)
        elif message["role"] == "tool" and waiting:
            waiting -= 1
        elif _is_missing_its_call(message, ids):
            of = f" of '{message['name']}'" if message.get("name") else ""
            result = chat.parse_tool_result(message.get("content"))
            yield f"the call of a tool's result{of}: {quote_json(result)}"


def _is_missing_its_call(message: Message, ids: Collection[str]) -> bool:
    is_result = message["role"] == "tool" and message.get("type") != PASSAGES
    return is_result and str(message.get("tool_call_id") or "") not in set(ids) - {""}


class _Cut(NamedTuple):
    """Where the turn begins in a list. ``is_sure``: behind the user's message, and not merely behind one
    that a framework may have put in."""

    place: int
    is_sure: bool


class _MessageWords(NamedTuple):
    """Who says what in a message."""

    role: str
    words: str


def _cut(lines: Sequence[_MessageWords], sent: Sequence[Turn]) -> _Cut:
    """Behind the user's message: of several that say the same, the one behind the answer before it."""
    users = [at for at, line in enumerate(lines) if line.role == "user"]
    wanted = _plain(sent[-1].user)
    same = [at for at in users if lines[at].words == wanted]
    same = same or [at for at in users if wanted and wanted in lines[at].words]  # within a prompt
    if not same:
        return _Cut(users[-1] + 1 if users else 0, is_sure=False)
    answer = _MessageWords("assistant", _plain(sent[-2].answer) if len(sent) > 1 else "")
    following = [at for at in same if answer.words and at and lines[at - 1] == answer]
    return _Cut((following or same[:1])[-1] + 1, is_sure=True)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _words(message: Message) -> str:
    content = message.get("content")
    return _plain(chat.text_of(content) or "") if isinstance(content, str | list) else ""


class _History:
    """What is known of a conversation, against what a list of messages holds before the turn. A call is
    known only behind a message of the user's or in front of an answer of earlier turns: else it is a new one.
    Where the user's message of this turn is not found (``is_sure``), the others are not there either.
    """

    def __init__(self, lines: Sequence[_MessageWords], sent: Sequence[Turn], *, is_sure: bool) -> None:
        asked = {_plain(turn.user) for turn in sent[:-1]} - {""}
        answered = {_plain(step.text or "") for turn in sent[:-1] for step in turn.steps[-1:]} - {""}
        users = [at for at, (role, words) in enumerate(lines) if role == "user" and words in asked]
        answers = [at for at, (role, words) in enumerate(lines) if role == "assistant" and words in answered]
        self._first = users[0] if users and is_sure else None
        self._last = max(answers, default=-1)
        self._calls = [call for turn in sent for call in turn.tool_calls]
        self.texts = asked | answered

    def take(self, call: ToolCall, place: int) -> bool:
        """Whether a call is known; each counts once."""
        if place >= self._last and (self._first is None or place < self._first):
            return False
        at = next((at for at, known in enumerate(self._calls) if _is_same(call, known)), None)
        return at is not None and bool(self._calls.pop(at))


def _is_same(call: ToolCall, known: ToolCall) -> bool:
    """Arguments that could not be read are sent back as none at all."""
    if call.args is None and known.raw_args != call.raw_args:
        return False
    return known.name == call.name and (call.args or {}) == (known.args or {})


def _unknown(placed: Iterable[tuple[int, Step]], history: _History, *, is_sure: bool) -> Iterator[Step]:
    """The steps without what is history: calls that are known, and texts in front of the user's message."""
    for place, step in placed:
        calls = tuple(call for call in step.tool_calls if not history.take(call, place))
        words = _plain(step.text or "")
        if calls or not (step.tool_calls or is_sure or not words or words in history.texts):
            yield step.model_copy(update={"tool_calls": calls})


def _without_echo(steps: Sequence[Step], sent: Sequence[Step]) -> tuple[Step, ...]:
    """Steps without those calls of this turn that agenteval has answered: by their ids, else by tool and
    arguments, whatever the agent made of their results."""
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


def _ends_with_user(lines: Sequence[_MessageWords]) -> bool:
    """Whether the agent still owes an answer to a message that somebody put in."""
    last = next((line for line in reversed(lines) if line.role in ("user", "assistant")), None)
    return last is not None and last.role == "user" and bool(last.words)
