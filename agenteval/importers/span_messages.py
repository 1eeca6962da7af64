"""Merges the messages in the spans of a trace, or of all traces in a session, so that each message appears
once and in the correct turn. Pure.

The span of a model contains all earlier messages and its answer; the span of an agent contains the user's
request and the final answer. All messages form a tree. A span whose input is known follows the tree and adds
the messages that come next. The order of spans is therefore irrelevant, and a question that was asked twice
has two answers in one turn.

- A message is recognized by the ids of its calls or, if there are no ids, by its role, text and calls.
- The spans of the outermost agent contain the conversation. The spans of an agent that was called by a tool
  or by another agent are separate, unless they begin with all messages so far (a handoff).
- A span that encloses other spans of its agent repeats their messages; its additional messages are inserted
  between them. If an agent's answer is only a text attribute of its span, the answer is used only if no
  nested span contains an answer. If a span is a complete request (``WHOLE_REQUEST``), its input is the user's
  message, and models with different inputs are separate.
- An empty answer does not appear in any later input. It is inserted before the next user message, or at the
  end. If no span contains the answer there, the turn is not fully visible.
- A span whose input does not begin with the messages so far is appended, and the gap before it is not fully
  visible. The span is known to be the next turn in either of two cases: it belongs to another invocation or
  another trace and names the same conversation, or a span that encloses both contains all user messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from agenteval.core.call_outcomes import json_key
from agenteval.importers.span_kinds import WHOLE_REQUEST, is_known_tool
from agenteval.importers.span_tree import SpanTree
from agenteval.importers.spans import Span
from agenteval.messages.json_fields import list_at
from agenteval.messages.message_parser import parse_messages
from agenteval.messages.parsed_message import UNPLACED, ParsedMessage, mark_unplaced, unplaced_in
from agenteval.messages.unplaced_entries import Unplaced


class SpanMessages(NamedTuple):
    """The conversation found in the spans of a trace."""

    messages: list[Any]
    turns: Mapping[Span, int]
    """The number of user messages up to the end of each span, keyed by span."""
    separate_spans: Sequence[Span]
    """The spans whose messages are not part of the user's conversation."""
    request: Mapping[str, Any]
    """Other parts of the requests to models, such as tools."""
    error: str
    """The reason why the last span failed, or an empty string if it did not fail."""


def messages_of(tree: SpanTree) -> SpanMessages | None:
    """Return the messages in a trace, or ``None`` if no span contains any."""
    with_messages = [span for span in tree.ordered if tree.holds_messages(span)]
    if not with_messages:
        return None
    outermost, others = _outermost(with_messages, tree)
    reader = _ItemReader()
    outer = _outer_spans(with_messages, outermost, tree, reader)
    conversation = _ConversationTree(tree, reader)
    included: list[Span] = []
    separate: list[Span] = []
    for span in (each for each in with_messages if each not in outer):
        is_included = span in outermost or (span in others and conversation.hand_over(span))
        if span in outermost:
            conversation.add(span)
        (included if is_included else separate).append(span)
    separate = [span for span in separate if not (span in others and conversation.take_over(span))]
    conversation.put_in_turns()
    outer_first = sorted(outer, key=lambda each: -sum(1 for _ in tree.ancestors(each)))
    for span in outer_first:
        conversation.add_outer(span)
    request = _request_of([*reversed(outer_first), *included], tree)
    error = included[-1].error if included else ""
    return SpanMessages(conversation.messages(), conversation.turns(), separate, request, error)


def _outermost(spans: Sequence[Span], tree: SpanTree) -> tuple[set[Span], set[Span]]:
    """Return the spans of the outermost agent, and the spans of other agents that were not called
    by a tool."""
    depth = {span: tree.depth(span) for span in spans}
    outermost = min(depth.values())
    level = {span for span in spans if depth[span][0] == outermost[0]}
    own = {span for span in level if depth[span] == outermost}
    return own, level - own


def _request_of(spans: Iterable[Span], tree: SpanTree) -> dict[str, Any]:
    """Return other parts of the requests to models. Later spans take precedence."""
    request: dict[str, Any] = {}
    for span in spans:
        request |= tree.contents_of(span).request
    return {**request, "tools": _tools_in(tree)}


def _tools_in(tree: SpanTree) -> list[Any]:
    """Return the tools that are declared in any span, and the tools that were executed."""
    tools: list[Any] = []
    for span in tree.ordered:
        tools += [each for each in list_at(tree.contents_of(span).request, "tools") if each not in tools]
    known = (span for span in tree.ordered if not span.error or is_known_tool(span.attributes))
    ran = {span.tool for span in known} - {""}
    return [*sorted(ran), *tools] if tools else []


def _outer_spans(
    with_messages: Sequence[Span], own: set[Span], tree: SpanTree, reader: _ItemReader
) -> list[Span]:
    """Return the enclosing spans that repeat the messages of the spans nested in them. A span without a user
    message does not say that its nested spans were asked in other words, so it is one of them.

    Two kinds of spans are removed from ``own``: nested spans that share no message with the enclosing span,
    and an enclosing span that contains only the request and the answer of an agent whose models have their
    own answers."""
    ordered = [span for span in with_messages if span in own]
    inner = tree.nested_spans(ordered)
    units = {span: _user_units(reader.units(span, tree)) for span in ordered if inner}
    found = []
    for outer, spans in inner.items():
        if outer not in own:
            continue  # removed because of a span around it
        others = [span for span in spans if not _shares(units[span], units[outer])]
        has_user = any(each.role == "user" for each in units[outer])
        repeats_inner = not has_user or len(others) < len(spans)
        if repeats_inner:
            found.append(outer)
        elif tree.contents_of(outer).is_agent_io and any(
            tree.contents_of(each).output_messages for each in spans
        ):
            own.remove(outer)
            continue
        if has_user and (not repeats_inner or outer.raw.get(WHOLE_REQUEST)):
            own.difference_update(others)
    return [span for span in found if span in own]


def _shares(some: Sequence[_Unit], others: Sequence[_Unit]) -> bool:
    return any(_is_same(one, other) for one in some for other in others)


def _user_units(units: list[_Unit]) -> list[_Unit]:
    """Return the user messages or, if there are none, all messages."""
    return [each for each in units if each.role == "user"] or units


# ── one message ──────────────────────────────────────────────────────────────────────────────────


class _Unit(NamedTuple):
    """A single message of a user or an agent."""

    role: str
    text: str
    ids: frozenset[str]
    """The ids of the calls."""
    calls: tuple[Any, ...]
    """The names and arguments of the calls."""


class _Item(NamedTuple):
    """A message as it was written, together with its comparable content."""

    unit: _Unit | None
    """The comparable content. ``None`` for messages that do not appear in later inputs: instructions,
    results, content that could not be placed, and answers that are empty or whose calls were not
    recorded."""
    message: Any
    is_system: bool = False
    is_silent: bool = False
    """True for an answer that is empty or whose calls were not recorded."""
    is_unplaced: bool = False
    """True if a part of the message could not be placed."""


def _parse_item(message: Any) -> _Item:
    found = list(parse_messages([message]))
    parsed = [each for each in found if each.role not in (UNPLACED, "tool")]
    if spoken := [each for each in parsed if each.calls or (each.role != "system" and each.has_text)]:
        return _Item(_to_unit(spoken), message)
    roles = [each.role for each in parsed]
    is_unplaced = any(each.role == UNPLACED for each in found)
    return _Item(None, message, roles[:1] == ["system"], "assistant" in roles, is_unplaced)


def _to_unit(spoken: Sequence[ParsedMessage]) -> _Unit:
    calls = [call for each in spoken for call in each.calls]
    ids = frozenset(call.id for call in calls) - {""}
    called = tuple((call.name, call.raw_args if call.args is None else json_key(call.args)) for call in calls)
    text = "\n".join((each.text or "").strip() for each in spoken)
    return _Unit(spoken[0].role, text, ids if len(ids) == len(calls) else frozenset(), called)


def _is_same(one: _Unit, other: _Unit, *, is_new: bool = False) -> bool:
    """Check whether two messages are the same by comparing the ids of their calls. A repeated message may
    have different ids if its content and position are the same. A new message (``is_new``) has ids that do
    not occur elsewhere."""
    if one.ids and other.ids and (is_new or not one.ids.isdisjoint(other.ids)):
        return not one.ids.isdisjoint(other.ids)
    return (one.role, one.calls) == (other.role, other.calls) and one.text == other.text


class _ItemReader:
    """Parses messages. Spans repeat earlier messages, so messages at the beginning that are equal to those in
    the previous list are not parsed again."""

    def __init__(self) -> None:
        self._last: list[_Item] = []

    def items(self, messages: Sequence[Any]) -> list[_Item]:
        last, same = self._last, 0
        while same < min(len(last), len(messages)) and last[same].message == messages[same]:
            same += 1
        self._last = [*last[:same], *map(_parse_item, messages[same:])]
        return self._last

    def units(self, span: Span, tree: SpanTree) -> list[_Unit]:
        read = tree.contents_of(span)
        return [
            each.unit
            for each in self.items([*(read.input_messages or ()), *read.output_messages])
            if each.unit
        ]


# ── the tree of messages ─────────────────────────────────────────────────────────────────────────


@dataclass(slots=True, eq=False)
class _MessageNode:
    """A message in the message tree."""

    unit: _Unit
    message: Any
    parent: _MessageNode | None
    turn: int
    next_nodes: list[_MessageNode] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    """The results of the message's calls, and content that could not be placed."""
    silent: list[Any] = field(default_factory=list)
    """An empty answer, or a placeholder for an answer that no span contains."""
    is_end: bool = False
    """True if this message is the last message of a span."""
    is_open: bool = False
    """True if the answer to this message was not recorded."""
    gap: Unplaced | None = None
    """A note about messages that may be missing before this message."""

    def next(self, unit: _Unit, *, is_new: bool = False) -> _MessageNode | None:
        """Return the following node that contains the same message. Some spans write the calls of one answer
        as several messages."""
        if unit.ids and unit.ids <= self.unit.ids:
            return self
        found = next(
            (each for each in reversed(self.next_nodes) if _is_same(each.unit, unit, is_new=is_new)), None
        )
        left = frozenset[str]()
        if found and not found.unit.ids.isdisjoint(unit.ids):
            left = unit.ids - found.unit.ids
        while left and found:
            found = next((each for each in found.next_nodes if not left.isdisjoint(each.unit.ids)), None)
            left = left - found.unit.ids if found else left
        return found

    def attach(self, items: Sequence[_Item]) -> None:
        self.silent = [each.message for each in items if each.is_silent] or self.silent
        after = [each.message for each in items if not (each.is_system or each.is_silent)]
        self.after = max(self.after, after, key=len)

    @property
    def is_unanswered(self) -> bool:
        is_silent = any(unplaced_in(message) is None for message in self.silent)
        return not is_silent and bool(self.unit.calls or self.unit.role == "user")

    def leave_unanswered(self, before: Span) -> None:
        """Mark the agent's answer to this message as missing, because a span continues without the answer."""
        if self.is_unanswered:
            what = f"the answer before the span '{before.name[:40]}' (not in any span)"
            self.silent = [mark_unplaced(Unplaced(what))]


class _ConversationTree:
    """The tree of messages, built span by span.

    ``_start_nodes`` contains the nodes after which the messages of a span may begin. ``_last_node_in`` maps
    each enclosing span to the last node added by its nested spans."""

    def __init__(self, tree: SpanTree, reader: _ItemReader) -> None:
        self._tree = tree
        self._reader = reader
        self._root = _MessageNode(_Unit("", "", frozenset(), ()), None, None, 0)
        self._start_nodes = [self._root]
        self._systems: list[Any] = []
        self._last_node = self._root
        self._nodes: list[_MessageNode] = []
        self._end_nodes: dict[Span, _MessageNode] = {}
        self._last_node_in: dict[Span, _MessageNode] = {}
        self._previous_span: Span | None = None

    def add(self, span: Span) -> None:
        input_items = self._reader.items(self._tree.contents_of(span).input_messages or ())
        start, gap = self._start_of([each.unit for each in input_items if each.unit], span)
        self._add(span, input_items, start, gap)

    def _add(
        self, span: Span, input_items: Sequence[_Item], start: _MessageNode, gap: Unplaced | None
    ) -> None:
        first = len(self._nodes)
        read = self._tree.contents_of(span)
        output_items = self._reader.items([*(read.input_messages or ()), *read.output_messages])[
            len(read.input_messages or ()) :
        ]
        last_input = self._append(start, input_items)
        end = self._append(last_input, output_items, is_new=True)
        end.is_end, end.is_open = True, end.is_open or end is last_input
        (self._nodes[first] if first < len(self._nodes) else end).gap = gap
        self._last_node, self._previous_span = end, span
        self._end_nodes[span] = end
        self._last_node_in.update(dict.fromkeys(self._tree.ancestors(span), end))

    def take_over(self, span: Span) -> bool:
        """Check whether another agent answers instead of the outermost agent, which called a tool and did not
        continue. The input of the other agent rephrases all messages so far. If so, add the span of the other
        agent."""
        is_open = bool(self._last_node.unit.calls) and not self._last_node.next_nodes
        goes_on = is_open and self._previous_span is not None and self._previous_span.is_before(span)
        if goes_on:
            self._add(span, (), self._last_node, _maybe_missing(span))
        return goes_on

    def hand_over(self, span: Span) -> bool:
        """Check whether another agent continues after all messages so far (a handoff). If so, add
        its span."""
        units = [
            each.unit
            for each in self._reader.items(self._tree.contents_of(span).input_messages or ())
            if each.unit
        ]
        goes_on = bool(self._nodes) and self._reach(self._root, units)[0] is self._last_node
        if goes_on:
            self.add(span)
        return goes_on

    def _start_of(self, units: Sequence[_Unit], span: Span) -> tuple[_MessageNode, Unplaced | None]:
        """Return the node where the messages of a span begin, and a note about messages that may be missing
        before them."""
        if not self._nodes:
            return self._root, None
        if not units:
            return self._last_node, None
        start = max(reversed(self._start_nodes), key=lambda each: self._reach(each, units)[1])
        node, known = self._reach(start, units)
        if known and not (
            self._is_invoked_again(span) and len(self._start_nodes) > 1 and self._is_next(span)
        ):
            return start, None if self._is_continuous(node, units[known:], span) else _maybe_missing(span)
        for each in _path_to(self._last_node):
            if self._reach(each, units)[0] is self._last_node:
                return each, _maybe_missing(span)  # only the last messages are repeated
        self._start_nodes.append(self._last_node)
        self._last_node.leave_unanswered(span)
        return self._last_node, None if self._is_next(span) else _maybe_missing(span, _CONVERSATION_ID_HINT)

    def _is_continuous(self, node: _MessageNode, left: Sequence[_Unit], span: Span) -> bool:
        """Check that no message is missing between the last known message and the remaining messages of a
        span, whose number is ``left``."""
        if not left:
            return not self._is_invoked_again(span)
        return node.is_open or (node.is_end and all(each.role == "user" for each in left))

    def _reach(self, node: _MessageNode, units: Sequence[_Unit]) -> tuple[_MessageNode, int]:
        """Follow the known messages, starting at a node. Return the last known message and the number of
        known messages."""
        for known, unit in enumerate(units):
            found = node.next(unit)
            if found is None:
                return node, known
            node = found
        return node, len(units)

    def _append(self, node: _MessageNode, items: Sequence[_Item], *, is_new: bool = False) -> _MessageNode:
        self._add_instructions(items)
        between: list[_Item] = []
        for item in items:
            if item.unit is None:
                between.append(item)
                continue
            node.attach(between)
            between = []
            found = node.next(item.unit, is_new=is_new)
            if found is None:
                found = _MessageNode(item.unit, item.message, node, node.turn + (item.unit.role == "user"))
                node.next_nodes.append(found)
                self._nodes.append(found)
            node = found
        node.attach(between)
        return node

    def _add_instructions(self, items: Iterable[_Item]) -> None:
        """Add the instructions once, at the beginning, although every model request repeats them."""
        self._systems += [e.message for e in items if e.is_system and e.message not in self._systems]

    def _is_invoked_again(self, span: Span) -> bool:
        """Check whether an agent is invoked again with known messages. This is possible because users may
        repeat a message."""
        before, tree = self._previous_span, self._tree
        if before is None or tree.agent(before) != tree.agent(span):
            return False
        return before.trace != span.trace or tree.invocation(before) is not tree.invocation(span)

    def _is_next(self, span: Span) -> bool:
        """Check whether a span is known to be the next turn."""
        before, tree = self._previous_span, self._tree
        if before is None or not tree.conversation(span) or not before.is_before(span):
            return False
        invocation = tree.invocation(span)
        is_other = invocation is not None and invocation is not tree.invocation(before)
        return (
            tree.conversation(span) == tree.conversation(before)
            and tree.agent(span) == tree.agent(before)
            and (is_other or before.trace != span.trace)
        )

    # ── what it comes to ──

    def put_in_turns(self) -> None:
        self._nodes.sort(key=lambda node: node.turn)

    def add_outer(self, span: Span) -> None:
        """Add an enclosing span: each of its messages is either known or inserted at its position."""
        last = self._last_node_in.get(span, self._root)
        input_count, items = self._outer_items(span)
        self._add_instructions(items)
        at = self._start_of_outer([each.unit for each in items if each.unit], last)
        if self._tree.contents_of(span).is_agent_io and not last.is_unanswered:
            items = items[:input_count]
        ids = frozenset(key for each in self._nodes for key in each.unit.ids)
        node, known = self._root, list[_MessageNode]()
        between: list[_Item] = []
        for number, item in enumerate(items):
            if item.unit is None:
                between += (item,) if item.is_unplaced else ()
                continue
            node.attach(between)
            between = []
            place = self._place_of(item.unit, at, ids)
            if place is not None:
                known.append(self._nodes[place])
            elif item.unit.ids and item.unit.ids <= ids:
                continue  # a part of an answer that was written as several messages
            else:
                is_end = number == len(items) - 1 and not item.unit.calls
                place = at if number < input_count else self._place_of_answer(at, last, is_end=is_end)
                self._nodes.insert(place, _MessageNode(item.unit, item.message, node, node.turn))
            node, at = self._nodes[place], place + 1
        node.attach(between)
        self._end_nodes[span] = node
        self._close_gaps(known)

    def _outer_items(self, span: Span) -> tuple[int, list[_Item]]:
        """Return the number of input messages in an enclosing span, and all its input and output messages."""
        read = self._tree.contents_of(span)
        input_messages, output_messages = (
            read.input_messages or [],
            [] if span.raw.get(WHOLE_REQUEST) == "object" else read.output_messages,
        )
        return len(input_messages), self._reader.items([*input_messages, *output_messages])

    def _close_gaps(self, known: Sequence[_MessageNode]) -> None:
        """Remove the notes about gaps if a single span contains all user messages."""
        if all(each in known for each in self._nodes if each.unit.role == "user"):
            for each in self._nodes:
                each.gap = None

    def _place_of(self, unit: _Unit, at: int, ids: frozenset[str]) -> int | None:
        """Return the position of a known message, searching from ``at``. ``ids`` contains the ids of all
        known calls. A message with any other id is new."""
        left = range(at, len(self._nodes)) if unit.ids <= ids else ()
        return next((n for n in left if _is_same(self._nodes[n].unit, unit)), None)

    def _place_of_answer(self, at: int, last: _MessageNode, *, is_end: bool) -> int:
        """Return the position for an answer that no other span contains. ``last`` is the last message in the
        nested spans."""
        if last in self._nodes:
            return max(at, self._nodes.index(last) + 1)
        return self._end_of_turn(at) if is_end else at

    def _start_of_outer(self, units: Sequence[_Unit], last: _MessageNode) -> int:
        """Return the position at which the messages of an enclosing span begin. ``last`` is the last message
        in the nested spans; it is required because users may repeat a message in several turns."""
        if last not in self._nodes or [each.role for each in units].count("user") != 1:
            return 0
        at = self._nodes.index(last)
        while at and self._nodes[at].unit.role != "user":
            at -= 1
        return at if _is_same(self._nodes[at].unit, units[0]) else 0

    def _end_of_turn(self, at: int) -> int:
        """Return the position of the next user message, or the end of the conversation."""
        left = range(at, len(self._nodes))
        return next((n for n in left if self._nodes[n].unit.role == "user"), len(self._nodes))

    def messages(self) -> list[Any]:
        written = [*self._systems, *self._root.after]
        following: list[_MessageNode | None] = [*self._nodes[1:], None]
        for node, then in zip(self._nodes, following, strict=False):
            mark = [mark_unplaced(node.gap)] if node.gap else []
            is_left = then is None or then.unit.role == "user"
            written += [*mark, node.message, *mark, *node.after, *(node.silent if is_left else ())]
        return written if self._nodes else [*written, *self._root.silent]

    def turns(self) -> dict[Span, int]:
        users = accumulate(node.unit.role == "user" for node in self._nodes)
        at = dict(zip(self._nodes, users, strict=True))
        return {span: at.get(node, 0) for span, node in self._end_nodes.items()}


def _path_to(node: _MessageNode) -> list[_MessageNode]:
    """Return the nodes that precede ``node``, starting with the first."""
    path = []
    while node.parent:
        node = node.parent
        path.append(node)
    return path[::-1]


_CONVERSATION_ID_HINT = " (set gen_ai.conversation.id to join them)"


def _maybe_missing(span: Span, hint: str = "") -> Unplaced:
    name = span.name[:40]
    return Unplaced(
        f"possible missing messages before the span '{name}', whose input does not continue them{hint}"
    )
