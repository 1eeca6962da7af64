"""The content of a conversation (its transcript, or agent trajectory): messages, tool calls, steps and turns.

The module contains only values, without identity (see ``SampleKey``), storage or display."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Sized
from enum import StrEnum
from functools import reduce
from itertools import groupby
from operator import add
from typing import Annotated, Any, TypeAlias, assert_never

from pydantic import Field

from agenteval.core.json_text import as_text
from agenteval.core.tool_faults import PlayedFault
from agenteval.core.value import Value
from agenteval.core.world_state import ReferenceState, StateChanges

Message: TypeAlias = dict[str, Any]
"""A chat message in OpenAI's format."""


def _is_none(value: object) -> bool:
    return value is None


def _is_empty(value: Sized) -> bool:
    return not value


class Usage(Value):
    """Token usage, cost and number of model calls."""

    calls: int = 0
    """The number of requests to a model."""
    input_tokens: int = 0
    """Input tokens, including tokens from the provider's cache."""
    output_tokens: int = 0
    """Output tokens, including reasoning tokens."""
    cached_tokens: int = 0
    """The part of ``input_tokens`` that came from the provider's cache."""
    estimated: bool = False
    """True if any part was not reported by a provider."""
    cost: float | None = None
    """The cost in US dollars, or ``None`` if the price is unknown."""
    cached_calls: int = 0
    """The number of requests that were answered from agenteval's own cache. They are not counted in ``calls``
    and cost nothing."""
    unsplit: Annotated[bool, Field(exclude_if=lambda unsplit: not unsplit)] = False
    """True if the provider reported only the sum for some tokens. Such tokens are counted as
    ``output_tokens``. The number of input tokens among them, and thus their cost, is unknown."""

    @property
    def tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    @property
    def reported_tokens(self) -> int | None:
        """The sum of input and output tokens, or ``None`` if no tokens were reported. Requests that were
        answered from agenteval's own cache used no tokens."""
        is_from_cache = bool(self.cached_calls) and not self.calls
        return self.tokens if self.tokens or is_from_cache else None

    @property
    def is_spent(self) -> bool:
        """True if at least one request was made that was not answered from the cache."""
        return bool(self.calls or self.input_tokens or self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        if not other.is_spent and not other.cached_calls:
            return self
        if not self.is_spent and not self.cached_calls:
            return other
        return _add((self, other))


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """Return the sum of several usages. Most parts of most conversations have no usage, so objects are
    created only when needed."""
    spent = [usage for usage in usages if usage.is_spent or usage.cached_calls]
    return _add(spent) if len(spent) > 1 else spent[0] if spent else _NOTHING


def _add(usages: Sequence[Usage]) -> Usage:
    counts = (
        (each.calls, each.cached_calls, each.input_tokens, each.output_tokens, each.cached_tokens)
        for each in usages
    )
    calls, cached_calls, input_tokens, output_tokens, cached_tokens = map(sum, zip(*counts, strict=True))
    costs = [each.cost for each in usages if each.is_spent]  # without a request there is no unknown price
    return Usage(
        calls=calls,
        cached_calls=cached_calls,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        estimated=any(each.estimated for each in usages),
        cost=None if None in costs else reduce(add, [each.cost or 0.0 for each in usages]),
        unsplit=any(each.unsplit for each in usages),
    )


_NOTHING = Usage()


class ToolResult(Value):
    """The result of a tool call."""

    value: Any = None
    """The result, which may be any JSON value. An error is represented as ``{"error": message}``."""
    is_error: bool = False
    refused: bool = False
    """True if the call was not carried out, because the tool does not exist (hallucinated tool), or because
    the arguments are unreadable or violate the tool's schema."""
    fault: Annotated[PlayedFault | None, Field(exclude_if=_is_none)] = None
    """The fault that the scenario gave this call."""

    @property
    def is_timeout(self) -> bool:
        """True if the call failed because the scenario let it time out."""
        return self.is_error and self.fault is not None and self.fault.kind == "timeout"

    @property
    def text(self) -> str:
        """The text that the agent receives: a string unchanged, and any other value as JSON."""
        return as_text(self.value)


class ToolCall(Value):
    """A tool call made by the agent."""

    name: str
    args: dict[str, Any] | None
    """The arguments, or ``None`` if they could not be parsed as a JSON object."""
    id: str = ""
    raw_args: str | None = None
    """The arguments as the agent sent them, if they could not be parsed."""
    observed: bool = False
    """True if the agent executed the tool itself and reported the call."""
    given_up: bool = False
    """True if the agent did not wait for the result. In this case there is no result."""
    result: ToolResult | None = None
    extra: dict[str, Any] = Field(default_factory=dict)  # faster than copying a default
    """Unknown fields, which some providers require to be sent back."""
    agent: str = ""
    """The agent in a multi-agent system that made the call, or an empty string if it is unknown."""
    known: Annotated[bool, Field(exclude_if=lambda known: not known)] = False
    """True if the agent certainly has this tool, regardless of the tools that the scenario declares."""
    attempted: Annotated[bool, Field(exclude_if=lambda attempted: not attempted)] = False
    """True if a person or the agent's own guardrail denied the call before any tool ran, or if the call is
    waiting for approval."""
    approved: Annotated[bool, Field(exclude_if=lambda approved: not approved)] = False
    """True if, according to the record, a person was asked to approve the call and did so."""
    of_unknown_turn: Annotated[bool, Field(exclude_if=lambda unknown: not unknown)] = False
    """True if the call may have been made in a different turn. It still counts for the conversation."""

    @property
    def is_refused(self) -> bool:
        """True if the call was attempted but not carried out."""
        return self.attempted or (self.result is not None and self.result.refused)

    @property
    def was_made(self) -> bool:
        """True if the call counts for expected calls. A call that was only attempted does not count."""
        return not self.is_refused


class Step(Value):
    """One reply of the agent: its text, the parallel tool calls in it, and its cost."""

    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    latency_ms: float = 0.0
    usage: Usage = Usage()
    unread_usage: str = ""
    """Token usage that the agent reported but that could not be parsed. In this case, ``usage`` is an
    estimate."""
    extra: dict[str, Any] = Field(default_factory=dict)
    agent: str = ""
    """The agent in a multi-agent system, or an empty string if it is unknown."""
    handed_by: Annotated[tuple[str, ...], Field(exclude_if=lambda handed_by: not handed_by)] = ()
    """The agents that handed over the conversation immediately before this step and did nothing else
    (handoff)."""


class CallEvidence(StrEnum):
    """Evidence in a turn about the visibility of the agent's tool calls."""

    ASKED = "asked"
    """The agent requested a tool call, or the list of tools, from agenteval."""
    REPORTED = "reported"
    """The agent's messages, its spans or a log contain a call."""
    RECORDED = "recorded"
    """The agent's model client offered tools in a request, and the responses were recorded."""
    LISTED = "listed"
    """The adapter for the agent's framework, or a log record, lists all of the agent's tools."""


class ToolVisibility(StrEnum):
    """The extent to which a run can observe an agent's tool calls. See ``agenteval.core.tool_visibility``."""

    ALL = "all"
    """All calls are visible: a call that is not visible was not made."""
    PARTLY = "partly"
    """Some calls are visible, but the agent has other ways to call its tools."""
    UNSEEN = "unseen"
    """No calls are visible."""
    DECLARED_UNSEEN = "declared unseen"
    """No calls are visible, and the author trusts the agent's statements about its own actions (``calls:
    unseen``)."""


class Turn(Value):
    """A user message and everything that the agent does up to its final text."""

    user: str
    steps: tuple[Step, ...] = ()
    latency_ms: float = 0.0
    """The time from the user's message to the final text in milliseconds, including tools. It excludes the
    time spent waiting for a free slot, a retry or the agent's thread."""
    error: str | None = None
    """The reason why the agent or the network interrupted the turn, or ``None`` if it was not interrupted."""
    script: int | None = None
    """The index of the message in the scenario's ``turns``, or ``None`` if the simulated user wrote it."""
    user_model: str = ""
    """The model of the simulated user. ``user_usage`` is the token usage of this model."""
    user_usage: Usage = Usage()
    user_tool_calls: Annotated[tuple[ToolCall, ...], Field(exclude_if=_is_empty)] = ()
    """The calls of the user's own tools that precede its message. The agent does not see them."""
    user_fault: str = ""
    """A description of the fault in the simulated user's first attempt, or an empty string if there was
    none."""
    evidence: Annotated[CallEvidence | None, Field(exclude_if=_is_none)] = None
    """Evidence in this turn about the visibility of the agent's calls."""
    unplaced: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    """Content of the record that could not be placed, as phrases. It may contain calls that are not
    visible."""

    user_wrote: Annotated[str | None, Field(exclude_if=_is_none)] = None
    """The user's message before a variant altered it (``run --variants``). ``None`` if it was not altered."""
    state: Annotated[StateChanges | None, Field(exclude_if=_is_none)] = None
    """What differed from the start of the conversation in the tool world's state, at the end of the turn.
    ``None`` if the scenario has no state."""

    @property
    def original_user(self) -> str:
        """The message as the user wrote it, whatever the agent received."""
        return self.user if self.user_wrote is None else self.user_wrote

    @property
    def answer(self) -> str:
        """The text of the last step, or an empty string if there are no steps."""
        return (self.steps[-1].text or "") if self.steps else ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for step in self.steps for call in step.tool_calls)

    @property
    def without_uncertain_calls(self) -> Turn:
        """The turn with only the calls that certainly belong to it."""
        if not any(call.of_unknown_turn for call in self.tool_calls):
            return self
        steps = [
            step.model_copy(
                update={"tool_calls": tuple(call for call in step.tool_calls if not call.of_unknown_turn)}
            )
            for step in self.steps
        ]
        return self.model_copy(update={"steps": tuple(steps)})

    @property
    def spoken(self) -> tuple[str, ...]:
        """The names of the agents that wrote text, called a tool or handed over, in order, without
        consecutive duplicates. An empty name represents an unknown agent."""
        steps = (step for step in self.steps if step.agent or step.text or step.tool_calls)
        names = (name for step in steps for name in (*step.handed_by, step.agent))
        return tuple(name for name, _ in groupby(names))

    @property
    def agents(self) -> frozenset[str]:
        """The names of the agents that are known to have replied in this turn."""
        return frozenset(filter(None, self.spoken))

    @property
    def usage(self) -> Usage:
        return sum_usage(step.usage for step in self.steps)

    @property
    def unread_usage(self) -> str:
        """The ``unread_usage`` of the first step in which it is set."""
        return next((step.unread_usage for step in self.steps if step.unread_usage), "")


class StopReason(StrEnum):
    """The reason why a conversation ended."""

    SCRIPT_DONE = "script_done"
    """All scripted turns were answered."""
    USER_DONE = "user_done"
    """The simulated user declared that it was done."""
    MAX_TURNS = "max_turns"
    AGENT_ERROR = "agent_error"
    """The agent raised an exception, or returned an error status or an unreadable response."""
    AGENT_TIMEOUT = "agent_timeout"
    TOOL_LOOP = "tool_loop"
    INFRASTRUCTURE = "infrastructure"
    """A failure occurred that is not the agent's fault."""
    SIMULATOR = "simulator"
    """The simulated user failed to act as a user."""
    AUTHOR_ERROR = "author_error"
    """A mock failed, or a tool was called although the scenario declares no tools."""
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    RECORDED = "recorded"
    """A recorded conversation ended. The detail is the location of the record."""
    UNREADABLE = "unreadable"
    """A record could not be read as a conversation."""


_NAMED = re.compile(r"\A(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?=:|\Z)|\bHTTP status \d{3}\b")
"""A pattern that matches an exception's class or a response's status in a sentence."""


class Stop(Value):
    """The end of a conversation: the reason and, for failures, a sentence."""

    reason: StopReason
    detail: str = ""
    user_usage: Usage = Usage()
    """The token usage of a call to the simulated user that ended the conversation without a message."""
    turn: Annotated[int | None, Field(exclude_if=lambda turn: turn is None)] = None
    """The finished turn (from 0) to which a failure is attributed, or ``None`` for the turn that was
    interrupted."""
    is_final: Annotated[bool, Field(exclude_if=lambda is_final: not is_final)] = False
    """True for a failure after which the conversation is not repeated, although neither the agent nor the
    author caused it."""
    hides_rest: Annotated[bool, Field(exclude_if=lambda hides_rest: not hides_rest)] = False
    """True for an unreadable record if the file ends or is damaged there, so that the number of remaining
    records is unknown."""

    @property
    def cause(self) -> str:
        """The reason, followed by the exception or response in the detail: ``agent_error ValueError``. The
        same failure always has the same cause."""
        match = _NAMED.search(self.detail)
        return f"{self.reason} {match[0]}" if match else str(self.reason)

    @property
    def is_cut_short(self) -> bool:
        """True if the conversation was ended by the run rather than on its own. A resumed run repeats it."""
        return self.reason in (StopReason.INTERRUPTED, StopReason.BUDGET)

    @property
    def is_loss(self) -> bool:
        """True if the conversation was lost to a failure that is neither the agent's nor the
        author's fault."""
        return self.reason in (StopReason.INFRASTRUCTURE, StopReason.SIMULATOR)

    @property
    def fault(self) -> str | None:
        """The party at fault for the end of the conversation: ``agent``, ``infrastructure``, ``simulator``,
        ``author``, ``recording``, ``budget``, ``interrupted``, or ``None``."""
        match self.reason:
            case StopReason.AGENT_ERROR | StopReason.AGENT_TIMEOUT | StopReason.TOOL_LOOP:
                return "agent"
            case StopReason.INFRASTRUCTURE:
                return "infrastructure"
            case StopReason.SIMULATOR:
                return "simulator"
            case StopReason.AUTHOR_ERROR:
                return "author"
            case StopReason.UNREADABLE:
                return "recording"
            case StopReason.BUDGET | StopReason.INTERRUPTED:
                return str(self.reason)
            case (
                StopReason.SCRIPT_DONE | StopReason.USER_DONE | StopReason.MAX_TURNS | StopReason.RECORDED
            ):  # fmt: skip
                return None
            case _:
                assert_never(self.reason)


class Trajectory(Value):
    """The turns of a conversation so far. A *prefix* of the conversation has no ``stop`` yet."""

    turns: tuple[Turn, ...] = ()
    stop: Stop | None = None
    unfinished: Turn | None = None
    """The turn that was interrupted by a failure."""
    visibility: ToolVisibility | None = None
    """The extent to which the agent's calls are visible, or ``None`` until the run has determined it."""
    references: Annotated[tuple[ReferenceState, ...], Field(exclude_if=_is_empty)] = ()
    """The states that the calls of ``same_as`` leave, if only the author's code can make them."""
    end_state: StateChanges | None = None
    """The state once the agent was detached, if it differs from the one at the end of the last turn."""

    @property
    def final_state(self) -> StateChanges | None:
        """What differed from the start in the tool world's state in the end. ``None`` if the scenario has no
        state."""
        return self.end_state or (self.all_turns[-1].state if self.all_turns else None)

    @property
    def all_calls_seen(self) -> bool:
        """True if all calls are known to be visible, so any call not in this trajectory was not made."""
        return self.visibility is ToolVisibility.ALL and not any(turn.unplaced for turn in self.all_turns)

    @property
    def all_turns(self) -> tuple[Turn, ...]:
        """The finished turns, followed by the interrupted turn if there is one."""
        return (*self.turns, self.unfinished) if self.unfinished else self.turns

    @property
    def ends_with_call(self) -> bool:
        """True for a record that ends with a call and without an answer, as it does at a handoff."""
        last = self.unfinished
        is_recorded = self.stop is not None and self.stop.reason is StopReason.RECORDED
        return is_recorded and last is not None and bool(last.steps) and bool(last.steps[-1].tool_calls)

    @property
    def broken_turn(self) -> int:
        """The turn (from 0) to which the failure that ended the conversation is attributed."""
        charged = self.stop.turn if self.stop else None
        return len(self.turns) if charged is None else charged

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for turn in self.all_turns for call in turn.tool_calls)

    @property
    def agents(self) -> frozenset[str]:
        """The names of all agents that are known to have replied."""
        return frozenset().union(*(turn.agents for turn in self.all_turns))

    @property
    def usage(self) -> Usage:
        return sum_usage(step.usage for turn in self.all_turns for step in turn.steps)

    @property
    def steps(self) -> int:
        return sum(len(turn.steps) for turn in self.all_turns)

    @property
    def latency_ms(self) -> float:
        return sum(turn.latency_ms for turn in self.all_turns)

    @property
    def tokens(self) -> int:
        return self.usage.tokens
