"""The content of a conversation: messages, tool calls, steps, turns.

Values only, without identity (see ``SampleKey``), storage or display."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sized
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Any, TypeAlias, assert_never

from pydantic import Field

from agenteval.core.json_text import as_text
from agenteval.core.value import Value

Message: TypeAlias = dict[str, Any]
"""A chat message in OpenAI's format."""


def _is_none(value: object) -> bool:
    return value is None


def _is_empty(value: Sized) -> bool:
    return not value


class Usage(Value):
    """Tokens and calls."""

    calls: int = 0
    """Requests to a model."""
    input_tokens: int = 0
    """Input tokens, including those from the provider's cache."""
    output_tokens: int = 0
    """Output tokens, including those of reasoning."""
    cached_tokens: int = 0
    """The part of ``input_tokens`` that came from the provider's cache."""
    estimated: bool = False
    """True if any part was not reported by a provider."""
    cost: float | None = None
    """US dollars, or ``None`` if the price is unknown."""
    cached_calls: int = 0
    """Requests that agenteval's own cache answered. They do not count as ``calls`` and cost nothing."""
    unsplit: Annotated[bool, Field(exclude_if=lambda unsplit: not unsplit)] = False
    """True if the provider reported only the sum of some tokens. They are counted as ``output_tokens``; how
    many of them are input, and thus their cost, is unknown."""

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    @property
    def is_spent(self) -> bool:
        """True if anything was requested, other than from the cache."""
        return bool(self.calls or self.input_tokens or self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        if not other.is_spent and not other.cached_calls:
            return self
        if not self.is_spent and not self.cached_calls:
            return other
        # Without a request there is no unknown price.
        known = all(usage.cost is not None for usage in (self, other) if usage.is_spent)
        return Usage(
            cached_calls=self.cached_calls + other.cached_calls,
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            estimated=self.estimated or other.estimated,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            unsplit=self.unsplit or other.unsplit,
        )


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """Return the sum. Most parts of most conversations have no usage, so objects are made only if needed."""
    total: Usage | None = None
    for usage in usages:
        if usage.is_spent or usage.cached_calls:
            total = usage if total is None else total + usage
    return total or _NOTHING


_NOTHING = Usage()


class ToolResult(Value):
    """The result of a tool call."""

    value: Any = None
    """Any JSON value; an error is ``{"error": message}``."""
    is_error: bool = False
    refused: bool = False
    """True if the call was not carried out, because there is no such tool, or its arguments are unreadable or
    violate the tool's schema."""

    @property
    def text(self) -> str:
        """The text that reaches the agent: a string as it is, anything else as JSON."""
        return as_text(self.value)


class ToolCall(Value):
    """One call of a tool by the agent."""

    name: str
    args: dict[str, Any] | None
    """The arguments, or ``None`` if they could not be read as a JSON object."""
    id: str = ""
    raw_args: str | None = None
    """The arguments as the agent sent them, if they could not be read."""
    observed: bool = False
    """True if the agent ran the tool itself and reported it."""
    given_up: bool = False
    """True if the agent did not wait for the result; there is none then."""
    result: ToolResult | None = None
    extra: dict[str, Any] = Field(default_factory=dict)  # faster than copying a default
    """Unknown fields, because some providers require them to be sent back."""
    agent: str = ""
    """The agent of a multi-agent system that made it, or an empty string if unknown."""
    known: Annotated[bool, Field(exclude_if=lambda known: not known)] = False
    """True if the agent certainly has such a tool, whatever the scenario declares."""
    attempted: Annotated[bool, Field(exclude_if=lambda attempted: not attempted)] = False
    """True if a person or the agent's own guard denied it before any tool ran, or it waits for an approval.
    """
    approved: Annotated[bool, Field(exclude_if=lambda approved: not approved)] = False
    """True if, according to the record, a person was asked and approved it."""
    of_unknown_turn: Annotated[bool, Field(exclude_if=lambda unknown: not unknown)] = False
    """True if it may have been made in another turn than the one it is in; it still counts in the
    conversation."""

    @property
    def is_refused(self) -> bool:
        """True if the call was attempted but not made."""
        return self.attempted or (self.result is not None and self.result.refused)

    @property
    def was_made(self) -> bool:
        """True if it counts for expected calls; one that was only attempted does not."""
        return not self.is_refused


class Step(Value):
    """One reply of the agent: its text, the tools that it called at the same time, and the cost."""

    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    latency_ms: float = 0.0
    usage: Usage = Usage()
    unread_usage: str = ""
    """What it reported about its tokens that could not be parsed; ``usage`` is then an estimate."""
    extra: dict[str, Any] = Field(default_factory=dict)
    agent: str = ""
    """The agent of a multi-agent system, or an empty string if unknown."""
    handed_by: Annotated[tuple[str, ...], Field(exclude_if=lambda handed_by: not handed_by)] = ()
    """The agents that handed the conversation over just before it and did nothing else."""


class CallEvidence(StrEnum):
    """What a turn shows about how the agent's tool calls reach agenteval."""

    ASKED = "asked"
    """The agent asked agenteval for a tool or for the list of tools."""
    REPORTED = "reported"
    """Its messages, its spans or a log contain a call."""
    RECORDED = "recorded"
    """Its model client offered tools in a request, and the responses were recorded."""
    LISTED = "listed"
    """The adapter of its framework, or the record of a log, lists all of its tools."""


class ToolVisibility(StrEnum):
    """How much of an agent's tool calls a run sees; see ``agenteval.core.tool_visibility``."""

    ALL = "all"
    """Every call: one that was not seen was not made."""
    PARTLY = "partly"
    """Some calls; the agent has other ways to call its tools."""
    UNSEEN = "unseen"
    """No calls."""
    DECLARED_UNSEEN = "declared unseen"
    """No calls, and the author trusts the agent's word for what it did (``calls: unseen``)."""


class Turn(Value):
    """One user message and everything that the agent did until its final text."""

    user: str
    steps: tuple[Step, ...] = ()
    latency_ms: float = 0.0
    """The time from the user's message to the final text, including tools. Waiting for a free slot, for a
    retry or for the agent's turn on its thread does not count."""
    error: str | None = None
    """Why the agent or the network broke off the turn, or ``None`` if it did not break."""
    script: int | None = None
    """The index of the message in the scenario's ``turns``, or ``None`` if the simulated user wrote it."""
    user_model: str = ""
    """The model of the simulated user; ``user_usage`` is its usage."""
    user_usage: Usage = Usage()
    user_fault: str = ""
    """What was wrong with the simulated user's first attempt, or an empty string if nothing was."""
    evidence: Annotated[CallEvidence | None, Field(exclude_if=_is_none)] = None
    """What it shows about how the agent's calls are seen."""
    unplaced: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    """Content of its record that could not be placed, as phrases: it may contain calls that were not seen."""

    @property
    def answer(self) -> str:
        """The text of the last step, or an empty string if there is none."""
        return (self.steps[-1].text or "") if self.steps else ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for step in self.steps for call in step.tool_calls)

    @property
    def without_uncertain_calls(self) -> Turn:
        """The turn with only those calls that certainly belong to it."""
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
        """The names of the agents that wrote, called a tool or handed over, in order, without consecutive
        repetitions; an empty name is an unknown agent."""
        steps = (step for step in self.steps if step.agent or step.text or step.tool_calls)
        names = (name for step in steps for name in (*step.handed_by, step.agent))
        return tuple(name for name, _ in groupby(names))

    @property
    def agents(self) -> frozenset[str]:
        """The names of the known agents."""
        return frozenset(filter(None, self.spoken))

    @property
    def usage(self) -> Usage:
        return sum_usage(step.usage for step in self.steps)

    @property
    def unread_usage(self) -> str:
        """The ``unread_usage`` of the first step that has one."""
        return next((step.unread_usage for step in self.steps if step.unread_usage), "")


class StopReason(StrEnum):
    """Why a conversation ended."""

    SCRIPT_DONE = "script_done"
    """Every scripted turn was answered."""
    USER_DONE = "user_done"
    """The simulated user declared that it was done."""
    MAX_TURNS = "max_turns"
    AGENT_ERROR = "agent_error"
    """The agent raised an exception or returned an error status or something unreadable."""
    AGENT_TIMEOUT = "agent_timeout"
    TOOL_LOOP = "tool_loop"
    INFRASTRUCTURE = "infrastructure"
    """A fault that is not the agent's."""
    SIMULATOR = "simulator"
    """The simulated user did not act as a user."""
    AUTHOR_ERROR = "author_error"
    """A mock failed, or an undeclared tool was called although no tool is declared."""
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    RECORDED = "recorded"
    """The end of a recorded conversation; the detail is its place."""
    UNREADABLE = "unreadable"
    """A record that could not be read as a conversation."""


_NAMED = re.compile(r"\A(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?=:|\Z)|\bHTTP status \d{3}\b")
"""The class of an exception, or the status of a response, in a sentence about it."""


class Stop(Value):
    """Why a conversation ended: the reason and, for faults, a sentence."""

    reason: StopReason
    detail: str = ""
    user_usage: Usage = Usage()
    """The usage of a call to the simulated user that ended the conversation without a message."""
    turn: Annotated[int | None, Field(exclude_if=lambda turn: turn is None)] = None
    """The finished turn (from 0) that a fault is charged to; ``None``: the turn that broke off."""
    is_final: Annotated[bool, Field(exclude_if=lambda is_final: not is_final)] = False
    """True for a fault after which the conversation is not repeated, although neither agent nor author caused
    it."""
    hides_rest: Annotated[bool, Field(exclude_if=lambda hides_rest: not hides_rest)] = False
    """True for an unreadable record if the file ends or breaks there, so that it is unknown how many more
    records it held."""

    @property
    def cause(self) -> str:
        """The reason, and the exception or response in the detail: ``agent_error ValueError``. It is the same
        whenever the same thing happens."""
        match = _NAMED.search(self.detail)
        return f"{self.reason} {match[0]}" if match else str(self.reason)

    @property
    def is_cut_short(self) -> bool:
        """True if the run rather than the conversation ended it; a resumed run repeats it."""
        return self.reason in (StopReason.INTERRUPTED, StopReason.BUDGET)

    @property
    def is_loss(self) -> bool:
        """True if it was lost to a fault that is neither the agent's nor the author's."""
        return self.reason in (StopReason.INFRASTRUCTURE, StopReason.SIMULATOR)

    @property
    def fault(self) -> str | None:
        """Whose fault ended it: ``agent``, ``infrastructure``, ``simulator``, ``author``, ``recording``,
        ``budget``, ``interrupted``, or ``None``."""
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
    """The turns so far. A *prefix* has no ``stop`` yet."""

    turns: tuple[Turn, ...] = ()
    stop: Stop | None = None
    unfinished: Turn | None = None
    """The turn that broke."""
    visibility: ToolVisibility | None = None
    """How many of the agent's calls are seen; ``None`` until the run has found out."""

    @property
    def all_calls_seen(self) -> bool:
        """True if every call that is not here was not made."""
        return self.visibility is ToolVisibility.ALL and not any(turn.unplaced for turn in self.all_turns)

    @property
    def all_turns(self) -> tuple[Turn, ...]:
        """The finished turns and, last, the one that broke."""
        return (*self.turns, self.unfinished) if self.unfinished else self.turns

    @property
    def ends_with_call(self) -> bool:
        """True for a record that ends with a call and without an answer, as it does at a hand-over."""
        last = self.unfinished
        is_recorded = self.stop is not None and self.stop.reason is StopReason.RECORDED
        return is_recorded and last is not None and bool(last.steps) and bool(last.steps[-1].tool_calls)

    @property
    def broken_turn(self) -> int:
        """The turn (from 0) that is charged with the fault that ended it."""
        charged = self.stop.turn if self.stop else None
        return len(self.turns) if charged is None else charged

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for turn in self.all_turns for call in turn.tool_calls)

    @property
    def agents(self) -> frozenset[str]:
        """The names of all agents that are known to have spoken."""
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
