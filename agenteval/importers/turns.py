"""Assembles recorded messages into turns and steps, pairs tool calls with results, and collects the agent's
policy (system prompt)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem
from agenteval.core.json_text import as_text
from agenteval.core.plurals import plural
from agenteval.core.reasoning import blank_reasoning
from agenteval.core.scenario import Tool
from agenteval.core.trajectory import CallEvidence, Step, ToolCall, ToolResult, Trajectory, Turn
from agenteval.core.value import copy_with
from agenteval.importers.exchanges import LoggedMessages
from agenteval.messages.agent_names import apply_handoffs, assign_agent
from agenteval.messages.calls import OnWarning, ParsedCall, ReadCallIndex, find_final_answer
from agenteval.messages.json_fields import drop_empty, object_of
from agenteval.messages.log_entry import IMPORTER_REMEDY
from agenteval.messages.message_parser import is_already_read, parse_messages
from agenteval.messages.pairing import WaitingCalls
from agenteval.messages.parsed_message import ParsedMessage, unplaced_in
from agenteval.messages.reported_usage import attach_usage
from agenteval.messages.text_tool_calls import mark_text_calls
from agenteval.messages.texts import join_texts
from agenteval.messages.unplaced_entries import CallFreeNames, Unplaced

_NO_TOOLS: Mapping[str, Tool] = {}
_NO_NAMES = CallFreeNames()
CUT_OFF = "the recording ends before an answer"
READ_IT = f"{IMPORTER_REMEDY}; if it contains neither calls nor answers, pass it to `--no-calls-in`"
_MOST_KEYS = 8


class ParsedConversation(NamedTuple):
    """A conversation that has not been named yet."""

    trajectory: Trajectory
    policy: str
    """The system and developer messages."""
    orphans: tuple[str, ...]
    """Descriptions of orphaned results (results without calls in the record)."""
    is_partial: bool
    """True if a turn other than the last ends with tool calls, so that it is unknown whether the agent wrote
    nothing or the log omits its answer."""
    coverage: Coverage
    provider_tools: frozenset[str] = frozenset()
    """The names of tools that were executed by the provider (hosted tools)."""


class Coverage(NamedTuple):
    """The number of messages, and the number of messages that were read."""

    messages: int
    read: int


def parse_conversation(
    logged: LoggedMessages,
    warn: OnWarning,
    *,
    tools: Mapping[str, Tool] = _NO_TOOLS,
    no_calls_in: CallFreeNames = _NO_NAMES,
) -> ParsedConversation:
    """Parse recorded messages in any known form into turns. ``warn`` is called for all content that is
    skipped.

    ``tools`` contains the declared tools. ``no_calls_in`` specifies content that contains no calls although
    it cannot be placed. Raise ``AuthorError`` (without a location) if most messages, or all messages of an
    agent, could not be read."""
    messages, lost, unsure = logged.messages, logged.lost, logged.of_unknown_turn
    draft = _ConversationDraft(no_calls_in)
    for message in mark_text_calls(parse_messages(messages, warn), tools):
        draft.add(message)
    draft.close(logged.unplaced)
    coverage = draft.coverage_of(messages)
    _require_read(draft, coverage, lost=lost)
    for remark in draft.remarks:
        warn(remark)
    if draft.orphans:
        warn("a tool result without its call is kept as a fact")
    finished, unfinished = draft.turns, None
    # A single turn that was cut off at a tool call is evaluated as it is, because there is no other.
    if finished[-1].is_open and (len(finished) > 1 or lost):
        *finished, last = finished
        unfinished = last.to_turn(sees_all=bool(tools), of_unknown_turn=unsure, error=lost or CUT_OFF)
    turns = tuple(turn.to_turn(sees_all=bool(tools), of_unknown_turn=unsure) for turn in finished)
    return ParsedConversation(
        Trajectory(turns=turns, unfinished=unfinished),
        "\n\n".join(draft.policy),
        tuple(draft.orphans),
        any(turn.ends_in_calls for turn in finished),
        coverage,
        frozenset(draft.provider_tools),
    )


def _require_read(draft: _ConversationDraft, coverage: Coverage, *, lost: str) -> None:
    """Raise ``AuthorError`` if too little of the record was read to evaluate it."""
    if coverage.read * 2 < coverage.messages:
        raise AuthorError(Problem(_describe_unread(draft, coverage), READ_IT))
    if not any(turn.steps for turn in draft.turns) and not (lost and draft.turns):
        what = "nothing that an agent wrote or did" if draft.turns else "no message from a user or an agent"
        raise AuthorError(Problem(f"the record contains {what}, so there is nothing to check"))
    if unread := next((turn for turn in draft.turns if turn.is_unread), None):
        parts = " ".join((unread.steps[-1].message.text or "").split())
        what = f"no part of an answer from the agent could be parsed: {parts[:80]}"
        raise AuthorError(Problem(what, IMPORTER_REMEDY))
    if draft.unread and not lost and not any(turn.has_answer for turn in draft.turns):
        raise AuthorError(
            Problem(f"no answer from the agent could be parsed: {next(iter(draft.notes))}", READ_IT)
        )


def _describe_unread(draft: _ConversationDraft, coverage: Coverage) -> str:
    why = ", ".join(f"{note} ({times:,}×)" for note, times in draft.notes.most_common(2))
    keys = ", ".join(list(draft.unread_keys)[:_MOST_KEYS])
    key_list = f"; their keys are {keys}" if keys else ""
    return (
        f"only {coverage.read:,} of {plural(coverage.messages, 'message')} could be parsed: {why}{key_list}"
    )


@dataclass(slots=True, eq=False)
class _StepDraft:
    """A step being assembled."""

    message: ParsedMessage
    results: dict[int, ToolResult] = field(default_factory=dict)
    """The results of the step's calls, keyed by the position of the call."""

    def to_step(self) -> Step:
        message = self.message
        calls: tuple[ToolCall, ...] = ()
        if message.calls:
            calls = tuple(
                [_to_tool_call(call, self.results.get(at)) for at, call in enumerate(message.calls)]
            )
        step = assign_agent(
            copy_with(_STEP, {"text": message.text, "tool_calls": calls, "extra": {}}), message.agent
        )
        return attach_usage(step, message.usage)


def _to_tool_call(call: ParsedCall, result: ToolResult | None) -> ToolCall:
    name, args, raw_args, identity, _, attempted, approved = call
    fields = {"name": name, "args": args, "raw_args": raw_args, "id": identity, "result": result, "extra": {}}
    return copy_with(_CALL, fields | drop_empty({"attempted": attempted, "approved": approved}))


_TURN = Turn(user="", steps=(), error=None, evidence=None, unplaced=())
_STEP = Step(text=None, tool_calls=())
_CALL = ToolCall(name="", args=None, raw_args=None, id="", observed=True, result=None)


@dataclass(slots=True)
class _TurnDraft:
    user: list[str]
    steps: list[_StepDraft] = field(default_factory=list)
    unplaced: dict[str, None] = field(default_factory=dict)

    @property
    def ends_in_calls(self) -> bool:
        """True if no text follows the last calls, because a widget displayed the answer or because the log is
        incomplete."""
        last = self.steps[-1].message if self.steps else None
        return last is not None and bool(last.calls) and not blank_reasoning(last.text or "").strip()

    @property
    def is_open(self) -> bool:
        """True if the agent has not answered yet."""
        return not self.steps or self.ends_in_calls

    @property
    def is_unread(self) -> bool:
        """True if the agent wrote texts but none of them could be read."""
        spoken = [step.message for step in self.steps if (step.message.text or "").strip()]
        return bool(spoken) and all(message.is_unread for message in spoken)

    @property
    def has_answer(self) -> bool:
        """True if the agent did anything other than calling tools, even if its answer was empty."""
        return any(step.message.text or not step.message.calls for step in self.steps)

    def to_turn(
        self, *, sees_all: bool, of_unknown_turn: Collection[str] = (), error: str | None = None
    ) -> Turn:
        """Return the finished turn. If ``sees_all`` is true, the record declares its tools, so it would
        contain any calls to these tools. ``of_unknown_turn`` contains the ids of calls that may belong to a
        different turn."""
        steps = apply_handoffs([step.to_step() for step in self.steps])
        evidence = CallEvidence.LISTED if sees_all else None
        if any(step.tool_calls for step in steps):
            evidence = CallEvidence.REPORTED
        if of_unknown_turn:
            steps = tuple(_with_unknown_turn(step, of_unknown_turn) for step in steps)
        fields = {
            "user": "\n".join(self.user),
            "steps": steps,
            "error": error,
            "evidence": evidence,
            "unplaced": tuple(self.unplaced),
        }
        return copy_with(_TURN, fields)


def _with_unknown_turn(step: Step, ids: Collection[str]) -> Step:
    calls = [
        copy_with(call, {"of_unknown_turn": True}) if call.id in ids else call for call in step.tool_calls
    ]
    return copy_with(step, {"tool_calls": tuple(calls)})


class _ConversationDraft:
    """A conversation being assembled.

    ``notes`` counts the content that could not be placed, by kind. ``remarks`` describes the same content,
    with a remedy. ``unread`` is the number of messages that could not be read at all, and ``unread_keys``
    contains the keys of these messages."""

    def __init__(self, no_calls_in: CallFreeNames) -> None:
        self.turns: list[_TurnDraft] = []
        self.policy: list[str] = []
        self.orphans: list[str] = []
        self.provider_tools: set[str] = set()
        self.notes: Counter[str] = Counter()
        self.remarks: dict[str, None] = {}
        self.unread = 0
        self.unread_keys: dict[str, None] = {}
        self._no_calls_in = no_calls_in
        self._waiting = WaitingCalls[_StepDraft]()
        self._ids: set[str] = set()
        self._unplaced_before: list[str] = []

    def add(self, message: ParsedMessage) -> None:
        match message.role:
            case "assistant":
                self._assistant(message)
            case "user":
                self._user(message.text or "")
            case "tool":
                self._result(message)
            case "system":
                self.policy += [message.text] if message.text and message.has_text else []
            case "unplaced":
                self._unplaced(message.value, is_whole_message=message.is_unread)

    def close(self, around: Sequence[Unplaced]) -> None:
        """Assign unplaced content to turns: content before the first turn goes to the first turn, and the
        content in ``around``, which surrounds the messages, goes to every turn."""
        for turn in self.turns[:1]:
            turn.unplaced |= dict.fromkeys(self._unplaced_before)
        read = ReadCallIndex(
            call for turn in self.turns for step in turn.steps for call in step.message.calls
        )
        unread = [
            each for each in around if not (is_already_read(each, read) or self._no_calls_in.accepts(each))
        ]
        for each in unread:
            self._note(each)
        for turn in self.turns:
            turn.unplaced |= dict.fromkeys([each.phrase for each in unread])

    def coverage_of(self, messages: Sequence[Any]) -> Coverage:
        total = sum(unplaced_in(message) is None for message in messages)
        return Coverage(total, total - self.unread)

    def _note(self, unplaced: Unplaced) -> None:
        self.notes[unplaced.note] += 1
        self.remarks.setdefault(unplaced.remark)

    def _unplaced(self, unplaced: Unplaced, *, is_whole_message: bool) -> None:
        if self._no_calls_in.accepts(unplaced):
            return
        self._note(unplaced)
        if is_whole_message:
            self.unread += 1
            self.unread_keys |= dict.fromkeys(str(key)[:40] for key in object_of(unplaced.entry))
        if self.turns:
            self.turns[-1].unplaced.setdefault(unplaced.phrase)
        else:
            self._unplaced_before.append(unplaced.phrase)

    def _user(self, text: str) -> None:
        """Add a user message. Consecutive messages before the agent's answer form one turn."""
        if self.turns and not self.turns[-1].steps:
            self.turns[-1].user.append(text)
        else:
            self.turns.append(_TurnDraft([text]))

    def _assistant(self, message: ParsedMessage) -> None:
        if not self.turns:
            self.turns.append(_TurnDraft([""]))  # the agent greets first
        if message.calls and (answer := find_final_answer(message.calls)):
            message = message._replace(text=join_texts(filter(None, (message.text, answer))))
        step = _StepDraft(message)
        self.turns[-1].steps.append(step)
        if message.calls:
            self._waiting.add(step, {at: (call.id, call.name) for at, call in enumerate(message.calls)})
            self._ids.update([call.id for call in message.calls])
            self.provider_tools.update([call.name for call in message.calls if call.is_provider_executed])

    def _result(self, message: ParsedMessage) -> None:
        found = self._waiting.take(message.id, message.name)
        if found is None:
            self.orphans.append(_orphan(message))
            if not (message.is_passage or (message.id and message.id in self._ids)):
                self._unplaced(_without_call(message), is_whole_message=False)
            return
        step, at = found
        step.results[at] = ToolResult(value=message.value, is_error=message.is_error)


def _without_call(result: ParsedMessage) -> Unplaced:
    """Return the unplaced call that a result belongs to. The result shows that a call was made that is not in
    the record. If the result names the tool, the call is certain, so the author cannot declare that no call
    was made."""
    of = f" from '{result.name[:40]}'" if result.name else ""
    return Unplaced(f"the call for a tool result{of}", () if result.name else ("tool",), result.value)


def _orphan(result: ParsedMessage) -> str:
    by = f"The tool {result.name}" if result.name else "A tool"
    return f"{by} answered (its call is not in the record): {as_text(result.value)}"
