"""The spans of a trace as a tree: which stands in which, and which are of models, tools, agents. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from agenteval.messages.placed import Unplaced
from agenteval.messages.span_kinds import asks_for_tools, is_model, tool_in, unplaced_span
from agenteval.messages.spans import Span, attributes_of, id_of, parent_of, read_span, start_of

INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_AGENTS = ("gen_ai.agent.name", "agent.name")
_CONVERSATIONS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id")


class SpanTree:
    """Spans, each once, in the order of time; what a span holds is read once."""

    def __init__(self, spans: Sequence[Mapping[str, Any]]) -> None:
        once = {id_of(span) or str(at): span for at, span in enumerate(spans)}
        self.ordered = sorted(once.values(), key=self.start)
        self._by_id = once
        self._attributes = {id(span): attributes_of(span) for span in once.values()}
        self._read: dict[int, Span] = {}

    def start(self, span: Mapping[str, Any]) -> float:
        """When it began; 0 where that is not known."""
        return moment_of(start_of(span)) or 0

    def of(self, span: Mapping[str, Any]) -> Mapping[str, Any]:
        found = self._attributes.get(id(span))
        return attributes_of(span) if found is None else found

    def read(self, span: Mapping[str, Any]) -> Span:
        found = self._read.get(id(span))
        if found is None:
            found = self._read[id(span)] = read_span(span, self.of(span))
        return found

    def first(self, span: Mapping[str, Any], names: Iterable[str]) -> Any:
        found = self.of(span)
        return next((found[name] for name in names if found.get(name) is not None), None)

    def above(self, span: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        seen: set[str] = set()
        while (key := parent_of(span)) and key in self._by_id and key not in seen:
            seen.add(key)
            span = self._by_id[key]
            yield span

    def tool(self, span: Mapping[str, Any]) -> str:
        """The tool that a span is a call of; empty: it is of something else."""
        return tool_in(span, self.of(span))

    def is_within_tool(self, span: Mapping[str, Any], name: str) -> bool:
        """Whether it is how a call of the same tool was carried out."""
        return any(self.tool(each) == name for each in self.above(span))

    def models(self) -> list[Mapping[str, Any]]:
        """The innermost spans of models."""
        found = [span for span in self.ordered if self._is_model(span)]
        outer = {id_of(each) for span in found for each in self.above(span)}
        return [span for span in found if id_of(span) not in outer]

    def _is_model(self, span: Mapping[str, Any]) -> bool:
        known = is_model(self.of(span))
        if known is not None:
            return known
        return bool(self.read(span).answered) or self.first(span, INPUT_TOKENS) is not None

    def unplaced(self) -> Iterator[tuple[Mapping[str, Any], Unplaced]]:
        """The spans that nobody knows, and the answers of models that asked for tools and are not recorded
        where no span of a tool is either."""
        outermost = self._outermost()
        runs_tools = any(map(self.tool, self.ordered))
        for span in self.ordered:
            read = self.read(span)
            is_known = span is outermost or read.asked is not None or bool(read.answered)
            if found := unplaced_span(span, self.of(span), is_known=is_known):
                yield span, found
            elif not runs_tools and not read.answered and asks_for_tools(self.of(span)):
                name = str(span.get("name") or "")[:40]
                yield span, Unplaced(f"the calls of a model's answer, which the span '{name}' does not hold")

    def _outermost(self) -> Mapping[str, Any] | None:
        """The span that all others are in; ``None``: there is none."""
        tops = [span for span in self.ordered if parent_of(span) not in self._by_id]
        return tops[0] if len(tops) == 1 and len(self.ordered) > 1 else None

    def agent(self, span: Mapping[str, Any]) -> str:
        """The agent that a span belongs to: the innermost that is named."""
        return self._inherited(span, _AGENTS)

    def conversation(self, span: Mapping[str, Any]) -> str:
        """The id of the conversation that a span belongs to; empty: none is given."""
        return self._inherited(span, _CONVERSATIONS)

    def is_delegated(self, span: Mapping[str, Any]) -> bool:
        """Whether it is of an agent that a tool or another agent asked."""
        agent = self.agent(span)
        return any(self.tool(each) or self.agent(each) not in ("", agent) for each in self.above(span))

    def _inherited(self, span: Mapping[str, Any], names: Iterable[str]) -> str:
        found = (self.first(each, names) for each in (span, *self.above(span)))
        return next((text for text in found if isinstance(text, str) and text), "")


def moment_of(start: Any) -> float | None:
    """In nanoseconds, or as the trace counts; ``None`` where it does not say."""
    try:
        return int(start)
    except (TypeError, ValueError):
        pass
    try:
        return datetime.fromisoformat(start).timestamp() * 1e9
    except (TypeError, ValueError, OverflowError):
        return None


def conversations_named_in(spans: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of conversations that spans give."""
    values = (attributes_of(span).get(name) for span in spans for name in _CONVERSATIONS)
    return {value for value in values if isinstance(value, str) and value}
