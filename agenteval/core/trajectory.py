"""What happened in a conversation: messages, tool calls, steps, turns.

Values only. They carry no identity (that is ``SampleKey``), no storage and no display.
"""

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
    """Tokens that went in, those from the provider's cache included."""
    output_tokens: int = 0
    """Tokens that came out, those of thinking included."""
    cached_tokens: int = 0
    """Those of ``input_tokens`` that the provider took from its cache."""
    estimated: bool = False
    """Whether any part was not reported by a provider."""
    cost: float | None = None
    """In US dollars; ``None`` while the price is unknown."""
    cached_calls: int = 0
    """Questions that agenteval's own cache answered: they are no ``calls`` and cost nothing."""
    unsplit: Annotated[bool, Field(exclude_if=lambda unsplit: not unsplit)] = False
    """Of some of the tokens the provider reported the sum alone. They stand in ``output_tokens``; how many of
    them went in, and so what they cost, is not known."""

    @property
    def tokens(self) -> int:
        """In and out together."""
        return self.input_tokens + self.output_tokens

    @property
    def is_spent(self) -> bool:
        """Whether anything was asked, answers from the cache left out."""
        return bool(self.calls or self.input_tokens or self.output_tokens)

    def __add__(self, other: Usage) -> Usage:
        if not other.is_spent and not other.cached_calls:
            return self
        if not self.is_spent and not self.cached_calls:
            return other
        # What was not asked for has no price to be unknown.
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
    """The sum. Most parts of most conversations tell of none, and nothing is made of them."""
    total: Usage | None = None
    for usage in usages:
        if usage.is_spent or usage.cached_calls:
            total = usage if total is None else total + usage
    return total or _NOTHING


_NOTHING = Usage()


class ToolResult(Value):
    """What a tool gave back. ``value`` is any JSON value; an error is ``{"error": message}``. ``refused``:
    the call was not carried out, since there is no such tool, or its arguments could not be read or break the
    tool's schema."""

    value: Any = None
    is_error: bool = False
    refused: bool = False

    @property
    def text(self) -> str:
        """As it reaches the agent: a string as it is, all else as JSON."""
        return as_text(self.value)


class ToolCall(Value):
    """One call of a tool by the agent.

    ``args`` is ``None`` when the arguments could not be read as a JSON object; ``raw_args`` then
    keeps what the agent sent. ``observed``: the agent ran the tool itself and told us. ``given_up``: it did
    not wait for the result, which there is none of then. ``extra`` keeps fields that we do not know, since
    some providers want them echoed back. ``agent``: which of a multi-agent system made it; empty: not known.
    ``known``: the agent surely has such a tool, whatever the scenario declares.
    """

    name: str
    args: dict[str, Any] | None
    id: str = ""
    raw_args: str | None = None
    observed: bool = False
    given_up: bool = False
    result: ToolResult | None = None
    extra: dict[str, Any] = Field(default_factory=dict)  # made faster than a default is copied
    agent: str = ""
    known: Annotated[bool, Field(exclude_if=lambda known: not known)] = False
    attempted: Annotated[bool, Field(exclude_if=lambda attempted: not attempted)] = False
    """A person or the agent's own guard denied it before any tool ran, or it waits for an approval."""
    approved: Annotated[bool, Field(exclude_if=lambda approved: not approved)] = False
    """A person was asked for it and said yes, as the record has it."""
    of_unknown_turn: Annotated[bool, Field(exclude_if=lambda unknown: not unknown)] = False
    """It may have been made in another turn than the one that it stands in: it counts in the conversation."""

    @property
    def is_refused(self) -> bool:
        """Whether the call was attempted, and not made."""
        return self.attempted or (self.result is not None and self.result.refused)

    @property
    def was_made(self) -> bool:
        """Whether it counts where calls are expected; one that was only attempted does not."""
        return not self.is_refused


class Step(Value):
    """One reply of the agent: its text, the tools that it called at the same time, the cost.
    ``unread_usage``: what it told of its tokens that was not understood; ``usage`` is a guess then.
    ``agent``: which of a multi-agent system it is of; empty: not known. ``handed_by``: those that handed the
    conversation over just before it, and did nothing else."""

    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    latency_ms: float = 0.0
    usage: Usage = Usage()
    unread_usage: str = ""
    extra: dict[str, Any] = Field(default_factory=dict)
    agent: str = ""
    handed_by: Annotated[tuple[str, ...], Field(exclude_if=lambda handed_by: not handed_by)] = ()


class CallEvidence(StrEnum):
    """What a turn shows of the way in which the agent's tool calls reach agenteval."""

    ASKED = "asked"
    """The agent asked agenteval for a tool, or for the list of them."""
    REPORTED = "reported"
    """Its messages, its spans or a log hold a call."""
    RECORDED = "recorded"
    """Its model client offered tools in a request, and the answers were recorded."""
    LISTED = "listed"
    """The adapter of its framework, or the record of a log, names all of its tools."""


class ToolVisibility(StrEnum):
    """How much of an agent's tool calls a run sees; see ``agenteval.core.tool_visibility``."""

    ALL = "all"
    """Every call: that one was not seen means that it was not made."""
    PARTLY = "partly"
    """Some calls; the agent has other ways to its tools."""
    UNSEEN = "unseen"
    """None."""
    DECLARED_UNSEEN = "declared unseen"
    """Unseen, and the author takes the agent's word for what it did (``calls: unseen``)."""


class Turn(Value):
    """One user message and all that the agent did until its final text.

    ``latency_ms`` is the time from the user's message to the final text, tools included; waiting for a
    free slot, for a retry or for the agent's own turn on its thread is not. ``error`` is set on a turn
    that the agent or the network broke off. ``script`` is the entry of the scenario's ``turns`` that the
    message comes from; ``None``: the simulated user said it. Then ``user_model`` and ``user_usage`` tell
    of that model, and ``user_fault`` what was wrong with its first attempt (empty: nothing).
    """

    user: str
    steps: tuple[Step, ...] = ()
    latency_ms: float = 0.0
    error: str | None = None
    script: int | None = None
    user_model: str = ""
    user_usage: Usage = Usage()
    user_fault: str = ""
    evidence: Annotated[CallEvidence | None, Field(exclude_if=_is_none)] = None
    """What it shows of how the agent's calls are seen."""
    unplaced: Annotated[tuple[str, ...], Field(exclude_if=_is_empty)] = ()
    """What of its record nobody could place, each as a phrase: it may hold calls that were not seen."""

    @property
    def answer(self) -> str:
        """The final text: that of the last step, empty if there is none."""
        return (self.steps[-1].text or "") if self.steps else ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for step in self.steps for call in step.tool_calls)

    @property
    def without_unsure_calls(self) -> Turn:
        """The turn with those calls alone that are known to be of it."""
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
        """Which agents said or called something or handed over, in order, each by its name; empty: not known.
        Those in a row are one."""
        steps = (step for step in self.steps if step.agent or step.text or step.tool_calls)
        names = (name for step in steps for name in (*step.handed_by, step.agent))
        return tuple(name for name, _ in groupby(names))

    @property
    def agents(self) -> frozenset[str]:
        """The names of those that are known."""
        return frozenset(filter(None, self.spoken))

    @property
    def usage(self) -> Usage:
        return sum_usage(step.usage for step in self.steps)

    @property
    def unread_usage(self) -> str:
        """That of the first step that has one."""
        return next((step.unread_usage for step in self.steps if step.unread_usage), "")


class StopReason(StrEnum):
    """Why a conversation ended."""

    SCRIPT_DONE = "script_done"
    """Every scripted turn was answered."""
    USER_DONE = "user_done"
    """The simulated user said that it was done."""
    MAX_TURNS = "max_turns"
    AGENT_ERROR = "agent_error"
    """The agent raised, answered with an error status, or with something unreadable."""
    AGENT_TIMEOUT = "agent_timeout"
    TOOL_LOOP = "tool_loop"
    INFRASTRUCTURE = "infrastructure"
    """A fault that is not the agent's."""
    SIMULATOR = "simulator"
    """The simulated user did not behave as a user."""
    AUTHOR_ERROR = "author_error"
    """A mock broke, or an undeclared tool was called where no tool is declared."""
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    RECORDED = "recorded"
    """The end of a recorded conversation; the detail says where it is."""
    UNREADABLE = "unreadable"
    """A record that could not be read as a conversation."""


_NAMED = re.compile(r"\A(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?=:|\Z)|\bHTTP status \d{3}\b")
"""The class of an exception, or the status of a response, in a sentence about it."""


class Stop(Value):
    """Why a conversation ended, in a word and (for faults) in a sentence. ``user_usage``: of a call to
    the simulated user that ended it without a message. ``turn``: of a fault that is charged to a finished
    turn (from 0); otherwise it is that of the turn that broke off. ``is_final``: of a fault that is nobody's,
    for which the conversation is not played once more. ``hides_rest``: of a record that could not be read,
    whether the file ends or breaks there, so that nobody knows how many more it held."""

    reason: StopReason
    detail: str = ""
    user_usage: Usage = Usage()
    turn: Annotated[int | None, Field(exclude_if=lambda turn: turn is None)] = None
    is_final: Annotated[bool, Field(exclude_if=lambda is_final: not is_final)] = False
    hides_rest: Annotated[bool, Field(exclude_if=lambda hides_rest: not hides_rest)] = False

    @property
    def cause(self) -> str:
        """The reason, and what an exception or a response names: ``agent_error ValueError``. It is the same
        whenever the same happens."""
        named = _NAMED.search(self.detail)
        return f"{self.reason} {named[0]}" if named else str(self.reason)

    @property
    def is_cut_short(self) -> bool:
        """Whether the run ended it, and not the conversation: a resumed run holds it anew."""
        return self.reason in (StopReason.INTERRUPTED, StopReason.BUDGET)

    @property
    def is_loss(self) -> bool:
        """Whether it is lost to a fault that is neither the agent's nor the author's."""
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
    """The turns so far. A *prefix* has no ``stop`` yet; ``unfinished`` is the turn that broke."""

    turns: tuple[Turn, ...] = ()
    stop: Stop | None = None
    unfinished: Turn | None = None
    visibility: ToolVisibility | None = None
    """How much of the agent's calls is seen; ``None`` while the run has not found it out."""

    @property
    def all_calls_seen(self) -> bool:
        """Whether a call that is not here was not made."""
        return self.visibility is ToolVisibility.ALL and not any(turn.unplaced for turn in self.all_turns)

    @property
    def all_turns(self) -> tuple[Turn, ...]:
        """The finished turns and, last, the one that broke."""
        return (*self.turns, self.unfinished) if self.unfinished else self.turns

    @property
    def ends_at_a_call(self) -> bool:
        """Whether it is a record that ends with a call and without an answer, as it does at a hand-over."""
        last = self.unfinished
        is_recorded = self.stop is not None and self.stop.reason is StopReason.RECORDED
        return is_recorded and last is not None and bool(last.steps) and bool(last.steps[-1].tool_calls)

    @property
    def broken_turn(self) -> int:
        """The turn (from 0) that is charged with the fault which ended it."""
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
