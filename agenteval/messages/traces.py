"""The conversations of a trace: what its spans hold of them, each once. Pure.

The spans of a model repeat what was said before, and those of an agent what was said in all. What is the same
conversation, a little further on, is read where it is longest; another one, of an agent that was asked by an
agent, is a record of its own. A tool that ran in a span and is in no message was called, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations, takewhile
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem
from agenteval.core.trajectory import ToolCall
from agenteval.messages.calls import Call
from agenteval.messages.entry import Entry, Record, Unreadable
from agenteval.messages.exchanges import Logged
from agenteval.messages.growing import Uttered, Words, goes_on, words_of
from agenteval.messages.message import said_in
from agenteval.messages.placed import Unplaced, unplaced_in_record
from agenteval.messages.said import UNPLACED, Said, marked
from agenteval.messages.span_calls import calls_shown_in, shown_by_spans_alone
from agenteval.messages.span_tree import SpanTree, conversations_named_in, moment_of
from agenteval.messages.span_turns import SpanTurns
from agenteval.messages.spans import Span, id_of, is_span, parent_of, start_of, trace_of
from agenteval.messages.speakers import is_agents

_SPANS = "spans"
_EXPORTED = ("resourceSpans", "resource_spans")


@dataclass(slots=True, eq=False)
class _Talk:
    """A conversation as far as it was heard. ``places``: of its spans in the trace; ``words``: those of users
    and models in each message, by which it is known again, ``spoken`` all of them; ``turns``: how many
    messages users had written when the span at a place ended. ``has_history``: something was said before its
    first span. ``is_open``: another conversation of the trace may be how it went on, or began."""

    messages: list[Any]
    words: list[Words]
    places: list[int]
    parent: str
    request: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    turns: dict[int, int] = field(default_factory=dict)
    has_history: bool = False
    is_open: bool = False
    spoken: Words = ()

    def say(self, messages: list[Any], words: list[Words]) -> None:
        self.messages, self.words = messages, words
        self.spoken = [word for each in words for word in each]


def spans_in(value: Any) -> list[Any] | None:
    """The spans of a document: in a list, by themselves, or as OpenTelemetry exports them."""
    if isinstance(value, dict):
        if is_span(value):
            return [value]
        groups = next((value[key] for key in _EXPORTED if key in value), None)
        value = list(_exported(groups)) if isinstance(groups, list) else value.get(_SPANS)
    return value if isinstance(value, list) and value and all(map(is_span, value)) else None


def _exported(groups: Iterable[Any]) -> Iterator[Any]:
    for group in groups:
        for key in ("scopeSpans", "scope_spans"):
            scopes = group.get(key) if isinstance(group, dict) else None
            for scope in scopes if isinstance(scopes, list) else ():
                yield from (scope.get(_SPANS) or ()) if isinstance(scope, dict) else ()


def whole_traces(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Spans that are entries of their own put together by their trace or by the conversation that they name,
    and traces taken apart by their conversations; all else as it is."""
    held: list[Record] = []
    traces: set[str] = set()
    named: set[str] = set()
    for entry in entries:
        trace, conversations = _named_by_bare(entry)
        if held and trace not in traces and not conversations & named:
            yield from _put_together(held)
            held, traces, named = [], set(), set()
        if isinstance(entry, Unreadable):
            yield entry
        elif trace:
            held.append(entry)
            traces.add(trace)
            named |= conversations
        else:
            yield from _taken_apart(entry)
    if held:
        yield from _put_together(held)


def _named_by_bare(entry: Entry) -> tuple[str, set[str]]:
    """The trace and the conversations of a span that is an entry of its own; empty if it is none, or names no
    trace."""
    if isinstance(entry, Unreadable) or not is_span(entry.value) or _has_messages(entry.value):
        return "", set()
    trace = trace_of(entry.value)
    return trace, conversations_named_in([entry.value]) if trace else set()


def _has_messages(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("messages"), list)


def _put_together(held: Sequence[Record]) -> Iterator[Record]:
    if len(held) == 1:
        yield held[0]
    else:
        yield from _taken_apart(held[0]._replace(value={_SPANS: [each.value for each in held]}))


def _taken_apart(record: Record) -> Iterator[Record]:
    value = record.value
    spans = spans_in(value)
    if spans is None or (isinstance(value, dict) and _has_messages(value)):
        yield record
        return
    traces = _by_conversation(spans)
    for each in traces:
        tree = SpanTree(each)
        talks = _talks_in(each, tree)
        if len(talks) < 2 and len(traces) == 1 and isinstance(value, dict):
            yield record
            continue
        read = (_SPANS, *_EXPORTED)
        fields = {k: v for k, v in value.items() if k not in read} if isinstance(value, dict) else {}
        shared = zip(talks, _shared_out(each, talks), strict=True)
        calls = _calls_of_trace(tree, talks) if len(talks) > 1 else ()
        for talk, places in shared if talks else [(None, list(range(len(each))))]:
            around = (*record.around, *([MAY_GO_ON] if talk and talk.is_open else []))
            value_of_one = {**fields, _SPANS: [each[at] for at in places]}
            yield record._replace(value=value_of_one, around=around, elsewhere=calls)


def _calls_of_trace(tree: SpanTree, talks: Sequence[_Talk]) -> tuple[ToolCall, ...]:
    said = (said_in(talk.messages, lambda _: None) for talk in talks)
    ran = (ToolCall(name=call.name, args=call.args, id=call.id) for call in calls_shown_in(tree))
    return (*_calls_of(said), *ran)


def _by_conversation(spans: Sequence[Any]) -> list[list[Any]]:
    """The spans of each trace; of traces that name the same conversation, together."""
    traces: dict[str, list[Any]] = {}
    for span in spans:
        traces.setdefault(trace_of(span), []).append(span)
    groups: list[tuple[set[str], list[Any]]] = []
    for trace in traces.values():
        named = conversations_named_in(trace) if len(traces) > 1 else set()
        group = next((group for group in groups if named & group[0]), None)
        if group is None:
            groups.append((named, list(trace)))
        else:
            group[0].update(named)
            group[1].extend(trace)
    return [group for _, group in groups]


def _shared_out(spans: Sequence[Any], talks: Sequence[_Talk]) -> list[list[int]]:
    """The places of the spans of each conversation. A span that none of them was heard in belongs to the one
    whose spans stand around it, or beside it; where that is not known, to all."""
    places = [set(talk.places) for talk in talks]
    at_id = {id_of(span): at for at, span in enumerate(spans)}
    for at, span in enumerate(spans):
        if any(at in own for own in places):
            continue
        owners = _owners(span, spans, talks, at_id)
        same = [n for n, talk in enumerate(talks) if trace_of(spans[talk.places[0]]) == trace_of(span)]
        for number in owners or same or range(len(talks)):
            places[number].add(at)
    return [sorted(own) for own in places]


def _owners(
    span: Any, spans: Sequence[Any], talks: Sequence[_Talk], at_id: Mapping[str, int]
) -> Sequence[int]:
    seen: set[str] = set()
    while (parent := parent_of(span)) and parent not in seen:
        seen.add(parent)
        near = [
            number
            for number, talk in enumerate(talks)
            if any(parent in (id_of(spans[at]), parent_of(spans[at])) for at in talk.places)
        ]
        if near or parent not in at_id:
            return near
        span = spans[at_id[parent]]
    return ()


def logged_in_trace(record: Mapping[str, Any], elsewhere: Sequence[ToolCall] = ()) -> Logged | None:
    """The conversation of a trace; ``None``: it is none. ``elsewhere``: the calls in the others of the same
    trace. Raises ``AuthorError`` (without a place) for one whose spans tell of none."""
    spans = spans_in(record)
    if spans is None:
        return None
    tree = SpanTree(spans)
    talks = _talks_in(spans, tree)
    if not talks:
        what = "let the tracer record them, as gen_ai.input.messages and gen_ai.output.messages"
        raise AuthorError(Problem("a trace without messages", what))
    talk = max(talks, key=lambda each: len(each.messages))
    is_lost = bool(talk.error) and not is_agents(talk.messages[-1])
    lost = f"the trace reports an error: {talk.error}" if is_lost else ""
    notes = ("a trace with several conversations: only the longest was read",) if len(talks) > 1 else ()
    around = () if is_span(record) else tuple(unplaced_in_record(record, {_SPANS, *_EXPORTED}))
    around += (MAY_GO_ON,) if talk.is_open else ()
    logged = Logged([], (talk.request,), {"id": trace_of(spans[0])}, lost, notes, around)
    return _with_span_calls(logged, talk, spans, tree, elsewhere)


# ── what spans tell, and messages do not ─────────────────────────────────────────────────────────


def _with_span_calls(
    logged: Logged, talk: _Talk, spans: Sequence[Any], tree: SpanTree, elsewhere: Sequence[ToolCall]
) -> Logged:
    """The messages with the calls of tools that ran in spans alone, and what of the spans nobody knows, each
    in its turn. A call that may be of one of several turns stands in the last of them, and is named as such;
    those turns are not fully seen."""
    said = [list(said_in([message], lambda _: None)) for message in talk.messages]
    counts = list(accumulate(sum(map(_is_users, each)) for each in said))
    turns = SpanTurns(tree, {id(spans[at]): turn for at, turn in talk.turns.items()}, counts[-1])
    begin = next((at for at, count in enumerate(counts) if count >= turns.first), 0)
    known = [(at, call) for at in range(begin, len(said)) for each in said[at] for call in each.calls]
    calls = [_tool_call(call) for _, call in known]
    added: dict[int, list[Any]] = {}
    shown = shown_by_spans_alone(tree, calls, [*elsewhere, *_calls_of(said[:begin])])
    met = {each.value.phrase for some in said for each in some if each.role == UNPLACED}
    unplaced_at = [(turns.of(span), unplaced) for span, unplaced in shown.unplaced]
    unplaced_at += [([*range(turns.first, turns.of(span)[-1])], each) for span, each in shown.earlier]
    for of, unplaced in unplaced_at:
        for turn in of if unplaced.phrase not in met else ():
            added.setdefault(_end_of(turn, counts, said), []).append(marked(unplaced))
    unsure = set()
    for each in shown.calls:
        *others, turn = turns.of(each.span)
        end = _end_of(turn, counts, said)
        later = [at for at in (known[place][0] for place in each.later) if counts[at] == turn and at < end]
        added.setdefault(min(later, default=end), []).extend(each.messages)
        if others:
            unsure.add(each.id)
            what = marked(Unplaced(f"the turn of a call of '{each.name[:40]}' in a span"))
            for maybe in (*others, turn):
                added.setdefault(_end_of(maybe, counts, said), []).append(what)
    messages = [
        message
        for at in range(len(talk.messages) + 1)
        for message in (*added.get(at, ()), *talk.messages[at : at + 1])
    ]
    return logged._replace(messages=messages, of_unknown_turn=frozenset(unsure))


def _calls_of(said: Iterable[Iterable[Said]]) -> list[ToolCall]:
    return [_tool_call(call) for some in said for each in some for call in each.calls]


def _tool_call(call: Call) -> ToolCall:
    return ToolCall(name=call.name, args=call.args, raw_args=call.raw_args, id=call.id)


def _end_of(turn: int, counts: Sequence[int], said: Sequence[Sequence[Said]]) -> int:
    """The place in a turn before its answer, or where none is, its end."""
    end = bisect_right(counts, turn)
    return end - 1 if end and counts[end - 1] == turn and _is_answer(said[end - 1]) else end


def _is_users(said: Said | Uttered) -> bool:
    return said.role == "user" and bool(said.text and said.text.strip())


def _is_answer(said: Sequence[Said]) -> bool:
    return any(each.role == "assistant" for each in said) and not any(each.calls for each in said)


# ── the conversations of one trace ───────────────────────────────────────────────────────────────


def _talks_in(spans: Sequence[Any], tree: SpanTree) -> list[_Talk]:
    talks: list[_Talk] = []
    for at in _in_order(spans):
        _hear(tree.read(spans[at]), at, talks)
    kept = [talk for n, talk in enumerate(talks) if not _is_told_again(n, talks)]
    for talk in talks:
        if talk not in kept:
            _add_to(kept, talk)
            if len(kept) == 1:
                kept[0].places += talk.places
    return _put_in_turns(kept, spans, tree) if len(kept) > 1 else kept


def _add_to(kept: Sequence[_Talk], talk: _Talk) -> None:
    """What the spans of a conversation tell of those that say it again: the turns, the tools."""
    words = talk.spoken
    for other in kept:
        if (ends := _ends_within(words, other.spoken)) is None:
            continue
        other.request = {**talk.request, **other.request}
        users = {sum(map(_is_users, other.spoken[:end])) for end in ends}
        if len(users) == 1:
            before = users.pop() - sum(map(_is_users, words))
            for at, turn in talk.turns.items():
                other.turns.setdefault(at, before + turn)


# ── one conversation, or several ─────────────────────────────────────────────────────────────────

MAY_GO_ON = Unplaced(
    "what another conversation of the trace may hold of this one (gen_ai.conversation.id would join the two)"
)
"""Spans whose messages do not repeat what was said before may be of one conversation: only an id says it."""


class _Whose(NamedTuple):
    """Whose a conversation is. ``conversation``: its id; ``begin``, ``end``: when its first and last span
    began, in order; ``is_delegated``: another agent or a tool asked for it."""

    agent: str
    conversation: str
    system: Any
    begin: float | None
    end: float | None
    is_delegated: bool


def _put_in_turns(talks: Sequence[_Talk], spans: Sequence[Any], tree: SpanTree) -> list[_Talk]:
    """The conversations of a trace, those together that are successive turns of one."""
    heard = {id(spans[at]): talk for talk in talks for at in talk.places}
    whole: list[tuple[_Talk, _Whose]] = []
    for talk in talks:
        whose = _whose(talk, spans, tree, heard)
        before = next(
            (n for n, (each, its) in reversed([*enumerate(whole)]) if _is_next(each, its, talk, whose)), None
        )
        if before is None:
            whole.append((talk, whose))
        else:
            first, its = whole[before]
            _join(first, talk)
            whole[before] = (first, its._replace(end=whose.end))
    for (one, its), (other, others) in combinations(whole, 2):
        if _may_be_one(its, others):
            one.is_open = other.is_open = True
    return [talk for talk, _ in whole]


def _whose(talk: _Talk, spans: Sequence[Any], tree: SpanTree, heard: Mapping[int, _Talk]) -> _Whose:
    first = spans[talk.places[0]]
    starts = [moment_of(start_of(spans[at])) for at in talk.places]
    known = [start for start in starts if start is not None]
    is_timed = len(known) == len(starts)
    system = [word.text for word in talk.spoken if word.role == "system"]
    return _Whose(
        agent=tree.agent(first),
        conversation=tree.conversation(first),
        system=talk.request.get("system") or system,
        begin=min(known) if is_timed else None,
        end=max(known) if is_timed else None,
        is_delegated=tree.is_delegated(first)
        or any(heard.get(id(each), talk) is not talk for each in tree.above(first)),
    )


def _may_be_one(one: _Whose, other: _Whose) -> bool:
    """Whether two conversations may be turns of one, the second after the first."""
    if one.is_delegated or other.is_delegated or _is_parallel(one, other):
        return False
    if one.conversation and other.conversation and one.conversation != other.conversation:
        return False
    if one.agent and other.agent:
        return one.agent == other.agent or bool(one.conversation and other.conversation)
    return bool(one.system == other.system)


def _is_parallel(one: _Whose, other: _Whose) -> bool:
    return one.end is not None and other.begin is not None and one.end >= other.begin


def _is_next(talk: _Talk, its: _Whose, other: _Talk, others: _Whose) -> bool:
    """Whether it is known that a conversation goes on with another one."""
    return (
        _may_be_one(its, others)
        and bool(its.conversation)
        and its.conversation == others.conversation
        and its.agent == others.agent
        and None not in (its.end, others.begin)
        and not other.has_history
        and _asked_in(talk)[-1:] != _asked_in(other)[:1]  # it may have been tried again
    )


def _asked_in(talk: _Talk) -> list[str]:
    return [word.text for word in talk.spoken if _is_users(word)]


def _join(talk: _Talk, other: _Talk) -> None:
    users = sum(map(_is_users, talk.spoken))
    instructions = [each for each in talk.spoken if each.role == "system"]
    rest = [
        (message, words)
        for message, words in zip(other.messages, other.words, strict=True)
        if not words or any(word not in instructions for word in words)
    ]
    talk.say([*talk.messages, *(each for each, _ in rest)], [*talk.words, *(words for _, words in rest)])
    talk.places += other.places
    talk.turns.update({at: users + turn for at, turn in other.turns.items()})
    talk.request = {**talk.request, **other.request}
    talk.error = other.error


def _in_order(spans: Sequence[Any]) -> list[int]:
    starts = [moment_of(start_of(span)) for span in spans]
    if None in starts:
        return list(range(len(spans)))
    return sorted(range(len(spans)), key=lambda at: starts[at] or 0)


def _hear(span: Span, at: int, talks: list[_Talk]) -> None:
    if span.asked or (span.asked is not None and span.answered):
        _hear_all(span, at, talks)
        return
    last = next(
        (talk for talk in reversed(talks) if talk.parent == span.parent), talks[-1] if talks else None
    )
    if span.result is not None:
        if last and _is_waiting(last.messages):
            last.messages.append(span.result)
            last.words.append([])
            last.places.append(at)
    elif span.answered:
        if last is None:
            last = _Talk([], [], [], span.parent)
            talks.append(last)
        messages = [*last.messages, *span.answered]
        _go_on(last, messages, _words_of(messages, [last]), span, at)


def _hear_all(span: Span, at: int, talks: list[_Talk]) -> None:
    messages = [*(span.asked or ()), *span.answered]
    words = _words_of(messages, talks)
    spoken = [word for each in words for word in each]
    talk = next((talk for talk in reversed(talks) if goes_on(talk.spoken, spoken)), None)
    if talk is None:
        asked = words[: len(span.asked or ())]
        has_history = any(word.role == "assistant" for each in asked for word in each)
        talk = _Talk([], [], [], span.parent, has_history=has_history)
        talks.append(talk)
    _go_on(talk, messages, words, span, at)


def _words_of(messages: Sequence[Any], talks: Iterable[_Talk]) -> list[Words]:
    """The words of each message. Spans repeat what was said before: its words are known."""
    known: list[Words] = []
    for talk in talks:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(talk.messages, messages, strict=False))
        if (shared := sum(1 for _ in same)) > len(known):
            known = talk.words[:shared]
    new = (words_of([message], results=False) for message in messages[len(known) :])
    return [*known, *([word for word in words if not _is_silent(word)] for words in new)]


def _is_silent(word: Uttered) -> bool:
    """Whether it is a model's answer that is empty, or whose calls are not recorded: no history has it."""
    return word.role == "assistant" and not word.text and not word.calls


def _go_on(talk: _Talk, messages: list[Any], words: list[Words], span: Span, at: int) -> None:
    talk.say(messages, words)
    talk.places.append(at)
    talk.turns[at] = sum(map(_is_users, talk.spoken))
    talk.request = {**talk.request, **span.request}
    talk.error = span.error


def _is_waiting(messages: Sequence[Any]) -> bool:
    """Whether a tool that was called has not answered yet."""
    said = words_of(messages)
    return sum(len(each.calls) for each in said) > sum(each.role == "tool" for each in said)


def _is_told_again(number: int, talks: Sequence[_Talk]) -> bool:
    """Whether all of a conversation is said in another one, in that order: of two that are the same, the
    later is."""
    own = talks[number].spoken
    for n, other in enumerate(talks):
        spoken = other.spoken
        is_longer = len(spoken) > len(own) or (len(spoken) == len(own) and n < number)
        if is_longer and _ends_within(own, spoken):
            return True
    return False


def _ends_within(own: Words, other: Words) -> tuple[int, int] | None:
    """Where one conversation ends within another one that says all of it in that order, at the earliest and
    at the latest; ``None``: it does not."""
    earliest = _end_within(own, other)
    if earliest is None:
        return None
    latest = max(at for at, word in enumerate(other) if word == own[-1]) + 1 if own else 0
    return earliest, latest


def _end_within(own: Words, other: Words) -> int | None:
    at = 0
    for word in own:
        while at < len(other) and other[at] != word:
            at += 1
        if at == len(other):
            return None
        at += 1
    return at
