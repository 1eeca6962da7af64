"""Groups the OpenTelemetry (OTLP) spans of a log by trace and by session, and reads each group as one
conversation. Pure.

A document or a line may contain the spans of one trace, of several traces, or of part of a trace (a batch).
Spans are grouped by trace id, even if other spans occur between them. Traces with the same session id are
joined. The conversation consists of the messages of the outermost agent (``span_messages``) and of the calls
in any span (``span_calls``), each assigned to its turn (``span_turns``)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.errors import AuthorError, Problem
from agenteval.core.trajectory import Message, ToolCall
from agenteval.importers import langfuse, langsmith
from agenteval.importers.exchanges import LoggedMessages
from agenteval.importers.span_calls import SpanOnlyContent, find_span_only_content
from agenteval.importers.span_messages import SpanMessages, messages_of
from agenteval.importers.span_tree import SpanTree, conversations_in
from agenteval.importers.span_turns import SpanTurns
from agenteval.importers.spans import Span, is_span, trace_of
from agenteval.messages.json_fields import list_of, object_of, objects_of
from agenteval.messages.log_entry import LogEntry, Record, UnreadableRecord
from agenteval.messages.message_adapters import to_openai_messages_lenient
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.parsed_message import UNPLACED, ParsedMessage, mark_unplaced
from agenteval.messages.record_paths import MISSING
from agenteval.messages.roles import is_agent_message
from agenteval.messages.unplaced_entries import Unplaced, unplaced_in_record

_SPANS = "spans"
_PAGES = ("data", "runs")
"""Keys under which tracer APIs return a page of traces, observations or runs."""
_EXPORTED = ("resourceSpans", "resource_spans")
_SCOPES = ("scopeSpans", "scope_spans")
_SPAN_CONTEXT_KEYS = {"resource": "resource", "scope": "scope", "instrumentationLibrary": "scope"}
"""Fields that an export stores outside its spans, each with the key of the corresponding field in a span."""
_MOST_BETWEEN = 1_000
"""The maximum number of unrelated spans between two spans of the same trace or session. Longer gaps would
require too much memory."""


class _ExportedSpans(NamedTuple):
    """Steps of other tracers, converted to spans."""

    spans: list[Any]
    documents: Mapping[str, Any]
    """Complete traces as they were written, keyed by id."""
    around: tuple[Unplaced, ...] = ()
    """Other content of the page that could not be placed."""


def _parse_other_tracers(value: Any) -> _ExportedSpans | None:
    if langsmith.is_langsmith_run(value):
        return _ExportedSpans(langsmith.parse_langsmith_spans(value), langsmith.outermost_in(value))
    if langfuse.is_langfuse_record(value):
        spans = langfuse.parse_langfuse_spans(value)
        return _ExportedSpans(spans, {trace_of(spans[0]): value} if langfuse.is_trace(value) else {})
    key = next((key for key in _PAGES if key in object_of(value)), "")
    listed = list_of(value[key] if key else value)
    if not listed or not all(map(is_tracer_record, listed)):
        return None
    found = [each for each in map(_parse_other_tracers, listed) if each]
    spans = [span for each in found for span in each.spans]
    documents = {trace: each.documents[trace] for each in found for trace in each.documents}
    return _ExportedSpans(spans, documents, tuple(unplaced_in_record(value, {key})) if key else ())


def is_tracer_record(value: Any) -> bool:
    """Check whether a value is a step or a trace of a tracer other than OpenTelemetry."""
    return langsmith.is_langsmith_run(value) or langfuse.is_langfuse_record(value)


def find_spans(value: Any) -> list[Any] | None:
    """Return the spans in a document, which is a list of spans, a single span, or an OpenTelemetry export
    (OTLP). Return ``None`` if the document contains no spans."""
    if isinstance(value, dict):
        if is_span(value):
            return [value]
        groups = next((value[key] for key in _EXPORTED if key in value), None)
        if isinstance(groups, list):
            spans = (span for scope in _scopes_in(groups) for span in objects_of(scope.get(_SPANS)))
            return _with_context([{"attributes": [], **span} for span in spans], groups) or None
        value = value.get(_SPANS)
    return value if isinstance(value, list) and value and all(map(is_span, value)) else None


def _scopes_in(groups: list[Any]) -> Iterator[Mapping[str, Any]]:
    for group in objects_of(groups):
        yield from (scope for key in _SCOPES for scope in objects_of(group.get(key)))


def _with_context(spans: Sequence[dict[str, Any]], groups: list[Any]) -> list[dict[str, Any]]:
    """Add all content that the export stores outside its spans to each span, because it is unknown which span
    the content belongs to."""
    context: dict[str, Any] = {}
    for group in (*objects_of(groups), *_scopes_in(groups)):
        for key, value in group.items():
            if key in (_SPANS, *_SCOPES) or not isinstance(value, dict | list) or not value:
                continue
            place = _SPAN_CONTEXT_KEYS.get(key, f"{key} around")
            if value not in context.setdefault(place, []):
                context[place].append(value)
    return [{**context, **span} for span in spans]


# ── the records of a log ─────────────────────────────────────────────────────────────────────────


TracePlaces: TypeAlias = dict[tuple[str, str], str]
"""The locations of traces and sessions, keyed by kind ("trace", "session") and id."""


def group_traces(entries: Iterable[LogEntry], elsewhere: TracePlaces | None = None) -> Iterator[LogEntry]:
    """Group spans by their trace or session. Other entries pass through unchanged. ``elsewhere`` holds the
    traces of earlier files; the traces of this file are added to it. Spans are not grouped across files."""
    groups = _SpanGroups({} if elsewhere is None else elsewhere)
    for entry in entries:
        if isinstance(entry, Record) and (others := _parse_other_tracers(entry.value)):
            entry = entry._replace(around=(*entry.around, *others.around))
            yield from groups.add(entry, others.spans, others.documents)
            continue
        spans = (
            None
            if isinstance(entry, UnreadableRecord) or _has_messages(entry.value)
            else find_spans(entry.value)
        )
        if isinstance(entry, UnreadableRecord) or spans is None:
            yield from groups.close()
            yield entry
        elif _document_fields(entry.value) or not all(map(trace_of, spans)):
            yield from groups.close()
            yield from _records_in_document(entry, spans)
        else:
            yield from groups.add(entry, spans)
    yield from groups.close()
    groups.hand_on_places()


def _records_in_document(record: Record, spans: Sequence[Any]) -> Iterator[Record]:
    """Split a document into its traces if it has fields in addition to its spans."""
    groups = _SpanGroups({}, most_between=len(spans))
    found = [each for each in (*groups.add(record, spans), *groups.close()) if isinstance(each, Record)]
    for each in found if len(found) > 1 else ():
        yield each._replace(value={**_document_fields(record.value), _SPANS: find_spans(each.value)})
    if len(found) < 2:
        yield record


def _has_messages(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("messages"), list)


def _document_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a document other than its spans."""
    if not isinstance(value, dict) or is_span(value):
        return {}
    return {key: each for key, each in value.items() if key not in (_SPANS, *_EXPORTED)}


@dataclass(eq=False)
class _SpanGroup:
    """Spans of one trace or session."""

    record: Record
    """The record of the first span."""
    number: int
    """The number of spans that preceded the first span of the group."""
    last: int
    """The number of the last span."""
    spans: list[Any] = field(default_factory=list)
    keys: set[tuple[str, str]] = field(default_factory=set)
    documents: dict[str, Any] = field(default_factory=dict)
    """The documents of complete traces, keyed by id."""

    def to_record(self) -> Record:
        if len(self.spans) == 1 and self.record.value is self.spans[0]:
            return self.record
        first = min(self.spans, key=lambda span: Span(span).start or 0)
        document = self.documents.get(trace_of(first), MISSING)
        fields = langfuse.fields_of(document) if langfuse.is_trace(document) else {}
        return self.record._replace(value={**fields, _SPANS: self.spans}, logged=document)

    def add_context(self, record: Record) -> None:
        """Add the unplaced content of the document that contains some of the group's spans."""
        if record.around != self.record.around:
            unplaced = {each.phrase: each for each in (*self.record.around, *record.around)}
            self.record = self.record._replace(around=(*unplaced.values(),))


class _SpanGroups:
    """The groups that may still receive spans, ordered by the time of their last addition."""

    def __init__(self, elsewhere: TracePlaces, most_between: int = _MOST_BETWEEN) -> None:
        self._earlier_files = elsewhere
        self._most_between = most_between
        self._open: dict[int, _SpanGroup] = {}
        self._by_key: dict[tuple[str, str], _SpanGroup] = {}
        self._closed: TracePlaces = {}
        self._reported_late: set[tuple[str, str]] = set()
        self._span_count = 0

    def add(
        self, record: Record, spans: Sequence[Any], documents: Mapping[str, Any] | None = None
    ) -> Iterator[LogEntry]:
        late: dict[str, str] = {}
        for span in spans:
            trace = ("trace", trace_of(span))
            keys = {trace, *(("session", name) for name in conversations_in(Span(span).attributes))}
            self._span_count += 1
            if trace in self._closed:
                if trace not in self._reported_late:
                    late[trace[1]] = self._closed[trace]
                self._reported_late.add(trace)
                continue
            group = self._group_of(keys, record)
            group.spans.append(span)
            group.last = self._span_count
            group.add_context(record)
            if documents and trace[1] in documents:
                group.documents[trace[1]] = documents[trace[1]]
        for name, where in late.items():
            problem = f"more spans of trace {name[:40]}, which began far earlier, at {where}"
            yield UnreadableRecord(record.where, f"{problem}; sort the log by trace")
        while self._open and self._span_count - next(iter(self._open.values())).last > self._most_between:
            yield self._close(next(iter(self._open.values())))

    def _group_of(self, keys: set[tuple[str, str]], record: Record) -> _SpanGroup:
        found = {id(group): group for key in keys if (group := self._by_key.get(key))}
        first, *others = sorted(found.values(), key=lambda group: group.number) or [self._new(keys, record)]
        for other in others:
            first.spans += other.spans
            first.keys |= other.keys
            first.documents |= other.documents
            first.add_context(other.record)
            del self._open[id(other)]
        first.keys |= keys
        self._by_key.update(dict.fromkeys(first.keys, first))
        self._open.pop(id(first), None)
        self._open[id(first)] = first
        return first

    def _new(self, keys: set[tuple[str, str]], record: Record) -> _SpanGroup:
        for places, distance in (
            (self._closed, "far from this trace"),
            (self._earlier_files, "in another file"),
        ):
            for kind, name in sorted(keys & places.keys(), reverse=True)[
                :1
            ]:  # the trace rather than its session
                what = f"the part of the {kind} {name[:40]} at {places[kind, name]}, {distance}"
                record = record._replace(around=(*record.around, Unplaced(what)))
        return _SpanGroup(record, self._span_count, self._span_count)

    def _close(self, group: _SpanGroup) -> Record:
        del self._open[id(group)]
        for key in group.keys:
            del self._by_key[key]
            self._closed[key] = group.record.where
        return group.to_record()

    def close(self) -> Iterator[Record]:
        for group in sorted(self._open.values(), key=lambda group: group.number):
            yield self._close(group)

    def hand_on_places(self) -> None:
        self._earlier_files.update(self._closed)


# ── the conversation of one record ───────────────────────────────────────────────────────────────


def find_trace_messages(record: Mapping[str, Any]) -> LoggedMessages | None:
    """Return the conversation in the traces of a record, or ``None`` if the record contains no traces. Raise
    ``AuthorError`` (without a location) if no span contains a message."""
    spans = find_spans(record)
    if spans is None:
        return None
    tree = SpanTree(langfuse.complete_spans(spans))
    trace_messages = messages_of(tree)
    if trace_messages is None:
        raise AuthorError(_without_messages(tree))
    is_lost = bool(trace_messages.error) and not is_agent_message(trace_messages.messages[-1])
    lost = f"the trace reports an error: {trace_messages.error}" if is_lost else ""
    unplaced = () if is_span(record) else tuple(unplaced_in_record(record, {_SPANS, *_EXPORTED}))
    logged = LoggedMessages([], (trace_messages.request,), {"id": tree.ordered[0].trace}, lost, (), unplaced)
    return _with_span_calls(logged, trace_messages, tree)


def _without_messages(tree: SpanTree) -> Problem:
    names = dict.fromkeys(span.name[:40] for span in tree.ordered)
    shown = ", ".join(f"'{name}'" for name in list(names)[:3]) + (", …" if len(names) > 3 else "")
    what = f"the trace has no messages: none of its spans ({shown}) contains a request or an answer"
    remedy = (
        "configure the tracer to record `gen_ai.input.messages` and `gen_ai.output.messages` "
        "(OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true)"
    )
    return Problem(what, remedy)


def _with_span_calls(logged: LoggedMessages, trace_messages: SpanMessages, tree: SpanTree) -> LoggedMessages:
    """Add calls that appear only in spans, and content that could not be placed, to the turns to which they
    belong. A call that may belong to one of several turns is added to the last of these turns and marked, and
    these turns are not fully visible."""
    conversation = _TraceMessages(trace_messages.messages)
    turns = SpanTurns(tree, trace_messages.turns, conversation.counts[-1])
    begin = next((at for at, count in enumerate(conversation.counts) if count >= turns.first), 0)
    places = [
        at
        for at in range(begin, len(conversation.parsed))
        for each in conversation.parsed[at]
        for _ in each.calls
    ]
    calls, before = [*_calls_of(conversation.parsed[begin:])], [*_calls_of(conversation.parsed[:begin])]
    shown = find_span_only_content(tree, calls, before, trace_messages.separate_spans)
    _add_unplaced(conversation, shown, turns)
    unsure = set()
    for each in shown.calls:
        *others, turn = turns.turns_of(each.span)
        end = conversation.end_of(turn)
        later = [at for at in (places[n] for n in each.later) if conversation.counts[at] == turn and at < end]
        conversation.added[min(later, default=end)] += each.messages
        if others:
            unsure.add(each.id)
            what = mark_unplaced(Unplaced(f"the turn of a call to '{each.name[:40]}' in a span"))
            conversation.add((*others, turn), what)
    written = _with_results(conversation, places, shown.results)
    return logged._replace(messages=written, of_unknown_turn=frozenset(unsure))


class _TraceMessages:
    """The messages in a trace.

    ``parsed`` is the content of each message. ``counts`` is the number of user messages up to each message.
    ``added`` is the content of spans to be inserted, keyed by the position before which it is inserted."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self.messages = messages
        self.parsed = [list(parse_messages([message])) for message in messages]
        self.counts = list(accumulate(sum(one.is_user_text for one in each) for each in self.parsed))
        self.added = defaultdict[int, list[Any]](list)

    def add(self, turns: Iterable[int], message: Any) -> None:
        for turn in turns:
            self.added[self.end_of(turn)].append(message)

    def end_of(self, turn: int) -> int:
        """Return the position before the answer in a turn or, if there is no answer, the end of the turn."""
        end = bisect_right(self.counts, turn)
        spoken = (
            at for at in reversed(range(end)) if any(each.role in _SPEAKERS for each in self.parsed[at])
        )
        last = next(spoken, -1)
        return last if last >= 0 and self.counts[last] == turn and _is_answer(self.parsed[last]) else end


def _add_unplaced(conversation: _TraceMessages, shown: SpanOnlyContent, turns: SpanTurns) -> None:
    known = {each.value.phrase for some in conversation.parsed for each in some if each.role == UNPLACED}
    unplaced = [(turns.turns_of(span), each) for span, each in shown.unplaced]
    unplaced += [([*range(turns.first, turns.turns_of(span)[-1])], each) for span, each in shown.earlier]
    for in_turns, each in unplaced:
        if each.phrase not in known:
            conversation.add(in_turns, mark_unplaced(each))


def _with_results(
    conversation: _TraceMessages, places: Sequence[int], results: Mapping[int, Message]
) -> list[Any]:
    """Return the messages with missing results added. A result that no message contains is inserted after the
    call with the same id. A call without an id is given the id from its span."""
    parsed = conversation.parsed
    answered_ids = {each.id for some in parsed for each in some if each.role == "tool" and each.id}
    written = [[message] for message in conversation.messages]
    for number, result in results.items():
        at = places[number]
        place = number - bisect_left(places, at)
        calls = [call for each in parsed[at] for call in each.calls]
        own = calls[place].id
        if own in answered_ids or _results_without_id(parsed[at + 1 :]) >= len(calls):
            continue
        identity = own or result["tool_call_id"] or f"span_result_{number}"
        if not own:
            written[at][:1] = _with_id(written[at][0], place, identity)
        written[at].append({**result, "tool_call_id": identity})
    return [
        message
        for at, own in enumerate([*written, []])
        for message in (*conversation.added.get(at, ()), *own)
    ]


def _results_without_id(following_messages: Iterable[Sequence[ParsedMessage]]) -> int:
    """Count the immediately following results that do not specify the id of a call."""
    following = takewhile(lambda some: some and all(each.role == "tool" for each in some), following_messages)
    return sum(not each.id for some in following for each in some)


def _with_id(message: Any, number: int, identity: str) -> list[Any]:
    """Convert a message to OpenAI's format and set the id of the given call."""
    *before, last = to_openai_messages_lenient([message])
    calls = [dict(call) for call in last.get("tool_calls") or ()]
    if number < len(calls):
        calls[number]["id"] = identity
    return [*before, {**last, "tool_calls": calls}]


def _calls_of(messages: Iterable[Iterable[ParsedMessage]]) -> Iterator[ToolCall]:
    for call in (call for some in messages for each in some for call in each.calls):
        yield ToolCall(name=call.name, args=call.args, raw_args=call.raw_args, id=call.id)


_SPEAKERS = ("user", "assistant", "tool")


def _is_answer(messages: Sequence[ParsedMessage]) -> bool:
    return any(each.role == "assistant" for each in messages) and not any(each.calls for each in messages)
