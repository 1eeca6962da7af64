"""Arranges the OpenTelemetry spans of a trace as a tree, and finds the spans of models, tools and agents.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agenteval.importers.span_contents import SpanContents, contents_of
from agenteval.importers.span_kinds import (
    UNSEEN,
    asks_for_tools,
    is_agent,
    is_auxiliary,
    is_model,
    unplaced_span,
)
from agenteval.importers.spans import RawSpan, Span
from agenteval.messages.unplaced_entries import Unplaced

INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_AGENTS = ("gen_ai.agent.name", "agent.name")
_CONVERSATIONS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_INVOKES = "invoke_agent "


class SpanTree:
    """Spans without duplicate ids, in chronological order (or in the given order if any time is missing). The
    content of each span is parsed once."""

    def __init__(self, raw: Sequence[RawSpan]) -> None:
        spans = map(Span, raw)
        self._by_id = {(span.trace, span.id or at): span for at, span in enumerate(spans)}
        self.ordered = [*self._by_id.values()]
        if all(span.start is not None for span in self.ordered):
            self.ordered.sort(key=lambda span: span.start or 0)
        self._contents: dict[Span, SpanContents] = {}
        self._is_nested_by_time: dict[Span, bool] = {}
        self._agents = [span for span in self.ordered if is_agent(span.kind)]
        self._conversations: dict[str, set[str]] = {}
        for span in self.ordered:
            self._conversations.setdefault(span.trace, set()).update(conversations_in(span.attributes))

    def contents_of(self, span: Span) -> SpanContents:
        if span not in self._contents:
            self._contents[span] = contents_of(span)
        return self._contents[span]

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield the ancestors of a span, innermost first."""
        trace, seen = span.trace, {span.id}
        while (parent := span.parent) and parent not in seen and (trace, parent) in self._by_id:
            seen.add(parent)
            span = self._by_id[trace, parent]
            yield span

    def self_and_ancestors(self, span: Span) -> Iterator[Span]:
        """Yield the span itself, then its ancestors, innermost first."""
        yield span
        yield from self.ancestors(span)

    def nested_spans(self, spans: Sequence[Span]) -> dict[Span, list[Span]]:
        """Return the given spans that enclose other given spans, each with the spans nested in it."""
        found: dict[Span, list[Span]] = {}
        members = set(spans)
        for span in spans:
            for outer in filter(members.__contains__, self.ancestors(span)):
                found.setdefault(outer, []).append(span)
        return found

    def is_within_tool(self, span: Span, name: str) -> bool:
        """Check whether a span is nested in another call of the same tool. If so, this span carries out that
        call."""
        return any(each.tool == name for each in self.ancestors(span))

    def models(self) -> list[Span]:
        """Return the innermost model spans."""
        return self._innermost([span for span in self.ordered if self._is_model(span)])

    def answers(self) -> list[Span]:
        """Return the innermost spans that contain an answer."""
        return self._innermost([span for span in self.ordered if self.contents_of(span).output_messages])

    def _innermost(self, spans: Sequence[Span]) -> list[Span]:
        outer = self.nested_spans(spans)
        return [span for span in spans if span not in outer]

    def holds_messages(self, span: Span) -> bool:
        contents = self.contents_of(span)
        return bool(contents.input_messages or contents.output_messages) and not span.tool

    def _is_model(self, span: Span) -> bool:
        if span.kind:
            return is_model(span.kind)
        return bool(self.contents_of(span).output_messages) or span.first_attribute(INPUT_TOKENS) is not None

    def unplaced(self) -> Iterator[tuple[Span, Unplaced]]:
        """Yield spans of unknown kind, absent spans that other spans refer to, and unrecorded model answers
        that requested tools. These answers are omitted if any tool span was recorded."""
        outermost = self._outermost()
        runs_tools = any(span.tool for span in self.ordered)
        parents = {(span.trace, span.parent) for span in self.ordered}
        for span in self.ordered:
            yield from ((span, Unplaced(what)) for what in self._unseen(span, parents))
            contents = self.contents_of(span)
            is_known = (
                span is outermost or contents.input_messages is not None or bool(contents.output_messages)
            )
            if found := unplaced_span(span.raw, span.attributes, is_known=is_known):
                yield span, found
            elif not runs_tools and not contents.output_messages and asks_for_tools(span.attributes):
                what = f"the calls in a model's answer that are missing from the span '{span.name[:40]}'"
                yield span, Unplaced(what)

    def _unseen(self, span: Span, parents: Collection[tuple[str, str]]) -> Iterator[str]:
        """Yield the absent steps that a step of another tracer refers to. ``around`` contains the spans that
        enclose other spans."""
        for unseen in span.raw.get(UNSEEN) or ():
            ids = unseen["unless"]
            seen = parents if ids is None else self._by_id
            if not all((span.trace, each) in seen for each in ([span.id] if ids is None else ids)):
                yield unseen["what"]

    def _outermost(self) -> Span | None:
        """Return the span that encloses all other spans, or ``None`` if there is none."""
        tops = [span for span in self.ordered if next(self.ancestors(span), None) is None]
        return tops[0] if len(tops) == 1 and len(self.ordered) > 1 else None

    def agent(self, span: Span) -> str:
        """Return the name of the innermost named agent that a span belongs to, or an empty string if there is
        none."""
        return next(filter(None, map(self._own_agent, self.self_and_ancestors(span))), "")

    def _own_agent(self, span: Span) -> str:
        name = span.first_attribute(_AGENTS)
        if isinstance(name, str) and name:
            return name
        return span.name.removeprefix(_INVOKES) if is_agent(span.kind) else ""

    def invocation(self, span: Span) -> Span | None:
        """Return the agent span that a span belongs to. This may be the span itself. Return ``None`` if there
        is none."""
        return next((each for each in self.self_and_ancestors(span) if is_agent(each.kind)), None)

    def depth(self, span: Span) -> tuple[int, int]:
        """Return the nesting depth of a span: the number of enclosing tools, guardrails and similar steps,
        and the number of other enclosing agents."""
        names = [*filter(None, map(self._own_agent, self.self_and_ancestors(span)))]
        others = sum(one != other for one, other in pairwise(names))
        if (invocation := self.invocation(span)) and self._ran_within_another_agent(invocation):
            others += 1
        steps = sum(is_auxiliary(each.kind) for each in self.self_and_ancestors(span))
        return steps + sum(bool(each.tool) for each in self.ancestors(span)), others

    def _ran_within_another_agent(self, invocation: Span) -> bool:
        """Check whether another agent was running at the same time, even though its span is not an
        ancestor."""
        if invocation not in self._is_nested_by_time:
            above, name = {*self.ancestors(invocation)}, self._own_agent(invocation)
            self._is_nested_by_time[invocation] = any(
                invocation.is_during(each) and each not in above and self._own_agent(each) != name
                for each in self._agents
                if each.trace == invocation.trace
            )
        return self._is_nested_by_time[invocation]

    def conversation(self, span: Span) -> str:
        """Return the id of the conversation that a span belongs to. Return an empty string if there is none,
        or if the trace contains several."""
        found = (each.first_attribute(_CONVERSATIONS) for each in self.self_and_ancestors(span))
        if identity := next((text for text in found if isinstance(text, str) and text), ""):
            return identity
        of_trace = self._conversations[span.trace]
        return next(iter(of_trace)) if len(of_trace) == 1 else ""


def conversations_in(attributes: Mapping[str, Any]) -> set[str]:
    """Return the conversation ids in the attributes of a span."""
    values = map(attributes.get, _CONVERSATIONS)
    return {value for value in values if isinstance(value, str) and value}
