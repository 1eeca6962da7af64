"""The spans of a trace as a tree: which stands in which, and which are of models, tools, agents. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agenteval.messages.placed import Unplaced
from agenteval.messages.span_kinds import (
    UNSEEN,
    asks_for_tools,
    is_agent,
    is_apart,
    is_model,
    tool_in,
    unplaced_span,
)
from agenteval.messages.spans import (
    RawSpan,
    Span,
    attributes_of,
    id_of,
    is_during,
    parent_of,
    read_span,
    start_of,
    trace_of,
)

INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_AGENTS = ("gen_ai.agent.name", "agent.name")
_CONVERSATIONS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")
_INVOKES = "invoke_agent "


class SpanTree:
    """Spans, each once by its id, in the order of time (where one has none: as they came); what a span holds
    is read once."""

    def __init__(self, spans: Sequence[RawSpan]) -> None:
        once = {(trace_of(span), id_of(span) or at): span for at, span in enumerate(spans)}
        starts = {id(span): start_of(span) for span in once.values()}
        is_timed = None not in starts.values()
        self.ordered = (
            sorted(once.values(), key=lambda each: starts[id(each)] or 0) if is_timed else [*once.values()]
        )
        self._by_id = once
        self._attributes = {id(span): attributes_of(span) for span in self.ordered}
        self._read: dict[int, Span] = {}
        self._tools: dict[int, str] = {}
        self._conversations: dict[str, set[str]] = {}
        self._agents: dict[str, list[RawSpan]] = {}
        self._meanwhile: dict[int, bool] = {}
        for span in self.ordered:
            named = conversations_in(self.of(span))
            self._conversations.setdefault(trace_of(span), set()).update(named)
            agents = self._agents.setdefault(trace_of(span), [])
            agents += [span] if is_agent(self.of(span)) else []

    def start(self, span: RawSpan) -> float:
        """When it began; 0 where that is not known."""
        return start_of(span) or 0

    def of(self, span: RawSpan) -> Mapping[str, Any]:
        found = self._attributes.get(id(span))
        return attributes_of(span) if found is None else found

    def read(self, span: RawSpan) -> Span:
        found = self._read.get(id(span))
        if found is None:
            found = self._read[id(span)] = read_span(span, self.of(span))
        return found

    def first(self, span: RawSpan, names: Iterable[str]) -> Any:
        found = self.of(span)
        return next((found[name] for name in names if found.get(name) is not None), None)

    def above(self, span: RawSpan) -> Iterator[RawSpan]:
        """The spans that it stands in, the innermost first."""
        trace, seen = trace_of(span), {id_of(span)}
        while (parent := parent_of(span)) and parent not in seen and (trace, parent) in self._by_id:
            seen.add(parent)
            span = self._by_id[trace, parent]
            yield span

    def tool(self, span: RawSpan) -> str:
        """The tool that a span is a call of; empty: it is of something else."""
        found = self._tools.get(id(span))
        if found is None:
            found = self._tools[id(span)] = tool_in(span, self.of(span))
        return found

    def is_within_tool(self, span: RawSpan, name: str) -> bool:
        """Whether it is how a call of the same tool was carried out."""
        return any(self.tool(each) == name for each in self.above(span))

    def models(self) -> list[RawSpan]:
        """The innermost spans of models."""
        return self._innermost([span for span in self.ordered if self._is_model(span)])

    def answers(self) -> list[RawSpan]:
        """The innermost spans that hold an answer."""
        return self._innermost([span for span in self.ordered if self.read(span).answered])

    def _innermost(self, spans: Sequence[RawSpan]) -> list[RawSpan]:
        outer = {id(each) for span in spans for each in self.above(span)}
        return [span for span in spans if id(span) not in outer]

    def holds_messages(self, span: RawSpan) -> bool:
        read = self.read(span)
        return bool(read.asked or read.answered) and not self.tool(span)

    def _is_model(self, span: RawSpan) -> bool:
        known = is_model(self.of(span))
        if known is not None:
            return known
        return bool(self.read(span).answered) or self.first(span, INPUT_TOKENS) is not None

    def unplaced(self) -> Iterator[tuple[RawSpan, Unplaced]]:
        """The spans that nobody knows, those that others name and are not there, and the answers of models
        that asked for tools and are not recorded where no span of a tool is either."""
        outermost = self._outermost()
        runs_tools = any(map(self.tool, self.ordered))
        around = {(trace_of(span), parent_of(span)) for span in self.ordered}
        for span in self.ordered:
            trace = trace_of(span)
            for unseen in span.get(UNSEEN) or ():
                ids = unseen["unless"]
                is_around = (trace, id_of(span)) in around
                is_seen = is_around if ids is None else all((trace, each) in self._by_id for each in ids)
                if not is_seen:
                    yield span, Unplaced(unseen["what"])
            read = self.read(span)
            is_known = span is outermost or read.asked is not None or bool(read.answered)
            if found := unplaced_span(span, self.of(span), is_known=is_known):
                yield span, found
            elif not runs_tools and not read.answered and asks_for_tools(self.of(span)):
                name = str(span.get("name") or "")[:40]
                yield span, Unplaced(f"the calls of a model's answer, which the span '{name}' does not hold")

    def _outermost(self) -> RawSpan | None:
        """The span that all others are in; ``None``: there is none."""
        tops = [span for span in self.ordered if next(self.above(span), None) is None]
        return tops[0] if len(tops) == 1 and len(self.ordered) > 1 else None

    def agent(self, span: RawSpan) -> str:
        """The agent that a span belongs to: the innermost that is named."""
        return next(filter(None, map(self._own_agent, (span, *self.above(span)))), "")

    def _own_agent(self, span: RawSpan) -> str:
        named = self.first(span, _AGENTS)
        if isinstance(named, str) and named:
            return named
        return str(span.get("name") or "").removeprefix(_INVOKES) if is_agent(self.of(span)) else ""

    def invocation(self, span: RawSpan) -> RawSpan | None:
        """The span of the agent that it is of, which may be itself."""
        return next((each for each in (span, *self.above(span)) if is_agent(self.of(each))), None)

    def depth(self, span: RawSpan) -> tuple[int, int]:
        """How many tools, guardrails and the like, and how many other agents it is carried out for."""
        names = [*filter(None, map(self._own_agent, (span, *self.above(span))))]
        others = sum(one != other for one, other in pairwise(names))
        if (own := self.invocation(span)) and self._is_asked_meanwhile(own):
            others += 1
        steps = sum(is_apart(self.of(each)) for each in (span, *self.above(span)))
        return steps + sum(bool(self.tool(each)) for each in self.above(span)), others

    def _is_asked_meanwhile(self, own: RawSpan) -> bool:
        """Whether another agent's run went on around it, although it does not stand in that."""
        found = self._meanwhile.get(id(own))
        if found is None:
            above, name = set(map(id, self.above(own))), self._own_agent(own)
            found = self._meanwhile[id(own)] = any(
                is_during(own, each) and id(each) not in above and self._own_agent(each) != name
                for each in self._agents[trace_of(own)]
            )
        return found

    def conversation(self, span: RawSpan) -> str:
        """The id of the conversation that a span belongs to; empty: none, or its trace has several."""
        if found := self._inherited(span, _CONVERSATIONS):
            return found
        of_trace = self._conversations[trace_of(span)]
        return next(iter(of_trace)) if len(of_trace) == 1 else ""

    def _inherited(self, span: RawSpan, names: Iterable[str]) -> str:
        found = (self.first(each, names) for each in (span, *self.above(span)))
        return next((text for text in found if isinstance(text, str) and text), "")


def conversations_in(attributes: Mapping[str, Any]) -> set[str]:
    """The ids of conversations that the attributes of a span give."""
    values = map(attributes.get, _CONVERSATIONS)
    return {value for value in values if isinstance(value, str) and value}
