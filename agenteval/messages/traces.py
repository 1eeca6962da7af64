"""The conversations of a trace: what its spans hold of them, each once. Pure.

The spans of a model repeat what was said before, and those of an agent what was said in all. What is the same
conversation, a little further on, is read where it is longest; another one, of an agent that was asked by an
agent, is a record of its own. A tool that ran in a span and is in no message was called, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.core.errors import AuthorError, Problem
from agenteval.core.trajectory import ToolCall
from agenteval.messages.entry import Entry, Record, Unreadable
from agenteval.messages.exchanges import Logged
from agenteval.messages.growing import Words, goes_on, words_of
from agenteval.messages.message import said_in
from agenteval.messages.placed import Unplaced, unplaced_in_record
from agenteval.messages.said import UNPLACED, Said, marked
from agenteval.messages.span_calls import calls_beside
from agenteval.messages.spans import Span, id_of, is_span, parent_of, read_span, start_of, trace_of
from agenteval.messages.speakers import is_agents

_SPANS = "spans"
_EXPORTED = ("resourceSpans", "resource_spans")


@dataclass(slots=True)
class _Talk:
    """A conversation as far as it was heard. ``places``: of its spans in the trace; ``words``: those of
    models, by which it is known again; ``turns``: of how many messages of the user its spans tell."""

    messages: list[Any]
    words: Words
    places: list[int]
    parent: str
    request: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    turns: set[int] = field(default_factory=set)


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
    """Spans that are entries of their own put together by their trace, and traces taken apart by their
    conversations; all else as it is."""
    held: list[Record] = []
    for entry in entries:
        trace = _trace_of_bare(entry)
        if held and (not trace or trace != trace_of(held[0].value)):
            yield from _put_together(held)
            held = []
        if isinstance(entry, Unreadable):
            yield entry
        elif trace:
            held.append(entry)
        else:
            yield from _taken_apart(entry)
    if held:
        yield from _put_together(held)


def _trace_of_bare(entry: Entry) -> str:
    """The trace of a span that is an entry of its own; empty if it is none, or names no trace."""
    if isinstance(entry, Unreadable) or not is_span(entry.value) or _has_messages(entry.value):
        return ""
    return trace_of(entry.value)


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
    traces: dict[str, list[Any]] = {}
    for span in spans:
        traces.setdefault(trace_of(span), []).append(span)
    for each in traces.values():
        talks = _talks_in(each)
        if len(talks) < 2 and len(traces) == 1 and isinstance(value, dict):
            yield record
            continue
        read = (_SPANS, *_EXPORTED)
        fields = {k: v for k, v in value.items() if k not in read} if isinstance(value, dict) else {}
        for places in _shared_out(each, talks) or [list(range(len(each)))]:
            yield record._replace(value={**fields, _SPANS: [each[at] for at in places]})


def _shared_out(spans: Sequence[Any], talks: Sequence[_Talk]) -> list[list[int]]:
    """The places of the spans of each conversation. A span that none of them was heard in belongs to the one
    whose spans stand around it, or beside it; where that is not known, to all."""
    places = [set(talk.places) for talk in talks]
    at_id = {id_of(span): at for at, span in enumerate(spans)}
    for at, span in enumerate(spans):
        if any(at in own for own in places):
            continue
        owners = _owners(span, spans, talks, at_id)
        for number in owners or range(len(talks)):
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


def logged_in_trace(record: Mapping[str, Any]) -> Logged | None:
    """The conversation of a trace; ``None``: it is none. Raises ``AuthorError`` (without a place) for one
    whose spans tell of none."""
    spans = spans_in(record)
    if spans is None:
        return None
    talks = _talks_in(spans)
    if not talks:
        what = "let the tracer record them, as gen_ai.input.messages and gen_ai.output.messages"
        raise AuthorError(Problem("a trace without messages", what))
    talk = max(talks, key=lambda each: len(each.messages))
    is_lost = bool(talk.error) and not is_agents(talk.messages[-1])
    lost = f"the trace reports an error: {talk.error}" if is_lost else ""
    notes = ("a trace with several conversations: only the longest was read",) if len(talks) > 1 else ()
    around = () if is_span(record) else unplaced_in_record(record, {_SPANS, *_EXPORTED})
    messages, unplaced = _with_span_calls(talk, spans)
    logged = Logged(messages, (talk.request,), {"id": trace_of(spans[0])}, lost, notes)
    return logged._replace(unplaced=(*unplaced, *around))


# ── what spans tell, and messages do not ─────────────────────────────────────────────────────────


def _with_span_calls(talk: _Talk, spans: Sequence[Any]) -> tuple[list[Any], list[Unplaced]]:
    """The messages with the calls of tools that ran in spans alone, and what of the spans nobody knows. Of
    which turn a call is, is known where the trace is of one, which is the last."""
    said = [list(said_in([message], lambda _: None)) for message in talk.messages]
    is_one = len(talk.turns) < 2
    begin = max((at for at, each in enumerate(said) if _is_users(each)), default=0) if is_one else 0
    known = [(at, call) for at in range(begin, len(said)) for each in said[at] for call in each.calls]
    calls = [ToolCall(name=c.name, args=c.args, raw_args=c.raw_args, id=c.id) for _, c in known]
    beside, unplaced = calls_beside(spans, calls)
    met = {each.value.phrase for some in said for each in some if each.role == UNPLACED}
    unplaced = [each for each in unplaced if each.phrase not in met]
    if not is_one:
        more = [Unplaced(f"a call of '{each.name[:40]}' in a span", (each.name,)) for each in beside]
        return talk.messages, [*unplaced, *more]
    end = len(said) - (1 if said and _is_answer(said[-1]) else 0)
    added: dict[int, list[Any]] = {end: [marked(each) for each in unplaced]}
    for each in beside:
        added.setdefault(end if each.before is None else known[each.before][0], []).extend(each.messages)
    places = range(len(talk.messages) + 1)
    return [message for at in places for message in (*added.get(at, ()), *talk.messages[at : at + 1])], []


def _is_users(said: Sequence[Said]) -> bool:
    return any(each.role == "user" and each.text for each in said)


def _is_answer(said: Sequence[Said]) -> bool:
    return any(each.role == "assistant" for each in said) and not any(each.calls for each in said)


# ── the conversations of one trace ───────────────────────────────────────────────────────────────


def _talks_in(spans: Sequence[Any]) -> list[_Talk]:
    talks: list[_Talk] = []
    for at in _in_order(spans):
        _hear(read_span(spans[at]), at, talks)
    kept = [talk for n, talk in enumerate(talks) if not _is_told_again(n, talks)]
    others = [at for talk in talks for at in talk.places if talk not in kept]
    if len(kept) == 1:
        kept[0].places += others
    return kept


def _in_order(spans: Sequence[Any]) -> list[int]:
    starts = [start_of(span) for span in spans]
    if len({isinstance(start, str) for start in starts}) > 1 or None in starts:
        return list(range(len(spans)))
    return sorted(range(len(spans)), key=lambda at: starts[at])


def _hear(span: Span, at: int, talks: list[_Talk]) -> None:
    if span.asked:
        _hear_all(span, at, talks)
        return
    last = next(
        (talk for talk in reversed(talks) if talk.parent == span.parent), talks[-1] if talks else None
    )
    if span.result is not None:
        if last and _is_waiting(last.messages):
            last.messages.append(span.result)
            last.places.append(at)
    elif span.answered:
        if last is None:
            last = _Talk([], [], [], span.parent)
            talks.append(last)
        _go_on(last, [*last.messages, *span.answered], span, at)


def _hear_all(span: Span, at: int, talks: list[_Talk]) -> None:
    messages = [*span.asked, *span.answered]
    words = words_of(messages, results=False)
    turns = sum(each.role == "user" for each in words)
    talk = next((talk for talk in reversed(talks) if goes_on(talk.words, words)), None)
    if talk is None:
        talk = _Talk([], [], [], span.parent)
        talks.append(talk)
    _go_on(talk, messages, span, at)
    talk.turns |= {turns} - {0}


def _go_on(talk: _Talk, messages: list[Any], span: Span, at: int) -> None:
    talk.messages, talk.words = messages, words_of(messages, results=False)
    talk.places.append(at)
    talk.request = {**talk.request, **span.request}
    talk.error = span.error


def _is_waiting(messages: Sequence[Any]) -> bool:
    """Whether a tool that was called has not answered yet."""
    said = words_of(messages)
    return sum(len(each.calls) for each in said) > sum(each.role == "tool" for each in said)


def _is_told_again(number: int, talks: Sequence[_Talk]) -> bool:
    """Whether all of a conversation is said in another one, in that order: of two that are the same, the
    later is."""
    own = talks[number].words
    for n, other in enumerate(talks):
        is_longer = len(other.words) > len(own) or (len(other.words) == len(own) and n < number)
        if is_longer and _is_within(own, other.words):
            return True
    return False


def _is_within(own: Words, other: Words) -> bool:
    rest = iter(other)
    return all(any(word == each for each in rest) for word in own)
