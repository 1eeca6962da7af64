"""Input and output types for detectors. All of them are immutable values without side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from agenteval.core.call_outcomes import error_of
from agenteval.core.reasoning import blank_reasoning, reasoning_end
from agenteval.core.score import Severity
from agenteval.core.tool_effects import ToolEffect, effect_of_name
from agenteval.core.trajectory import ToolCall, Trajectory, Turn


@dataclass(frozen=True)
class LocatedCall:
    """A tool call with its location."""

    turn: int
    """The index of the turn, from 0."""
    step: int
    """The index of the step within the turn, from 0."""
    index: int
    """The index of the call among all calls in the conversation, from 0."""
    call: ToolCall

    @cached_property
    def error(self) -> str | None:
        """The error that the agent received, if the call failed."""
        return error_of(self.call.result)


@dataclass(frozen=True)
class ToolFacts:
    """The declared properties of a tool."""

    parameters: Mapping[str, Any] | None = None
    """The JSON Schema of the arguments."""
    reads: bool = False
    """True if the tool is marked as read-only."""
    writes: bool = False
    """True if the tool is marked as writing. If ``writes`` and ``reads`` are both false, the tool's effect is
    not declared."""
    destructive: bool = False
    """True if the tool writes and needs the user's consent."""

    @property
    def is_marked(self) -> bool:
        """True if the author declared the tool's effect."""
        return self.reads or self.writes or self.destructive


def get_tool_effect(name: str, facts: ToolFacts | None) -> ToolEffect:
    """Return the effect of a tool, based on the tool's mark or otherwise on its name. The severities of all
    findings use the same rule.

    The tool ``think``, which many agents call to write down a thought, has no effect."""
    if facts is not None and (facts.writes or facts.destructive):
        return ToolEffect.WRITES
    is_reading = name == "think" or (facts is not None and facts.reads)
    return ToolEffect.READS if is_reading else effect_of_name(name)


@dataclass(frozen=True)
class DetectorInput:
    """The input of a detector: everything that a code check may use."""

    turns: tuple[Turn, ...]
    """The finished turns, followed by the turn that was interrupted, if any. The ``answer`` of each turn
    contains everything that the agent wrote in that turn, beginning with the text that accompanies its calls.
    """
    history: tuple[Turn, ...] = ()
    """The turns before the conversation. They are known to the agent, and nothing in them is a failure."""
    tools: Mapping[str, ToolFacts] = field(default_factory=dict)
    """The declared tools, keyed by name. Empty if no tool is declared."""
    user_tools: frozenset[str] = frozenset()
    """The names of the user's own tools, which the agent does not have."""
    undeclared_exist: bool = True
    """True if the agent may have additional tools of its own."""
    policy: str = ""
    """The agent's instructions."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The secrets that the agent must never reveal, with their placeholders."""
    truths: tuple[str, ...] = ()
    """Statements from the profile, the goal, the knowledge and the facts, all of which are true."""
    beliefs: tuple[str, ...] = ()
    """The user's beliefs."""
    now: str = ""
    """The date and time of the conversation, as written."""
    observed: bool = True
    """True if all calls were observed, so any other call was certainly not made."""
    agreed: frozenset[int] = frozenset()
    """The numbers of the calls that need no (additional) consent from the user."""
    calls: tuple[LocatedCall, ...] = ()
    answers_at: Mapping[int, int] = field(default_factory=dict)
    """The position in each turn's ``answer`` at which the final text begins, or 0 if a turn is not listed."""

    @cached_property
    def _calls_by_turn(self) -> Mapping[int, Sequence[LocatedCall]]:
        return {turn: tuple(calls) for turn, calls in groupby(self.calls, key=attrgetter("turn"))}

    def calls_in_turn(self, turn: int) -> Sequence[LocatedCall]:
        """Return the calls in one turn, in order."""
        return self._calls_by_turn.get(turn, ())

    @staticmethod
    def from_trajectory(trajectory: Trajectory, **known: Any) -> DetectorInput:
        """Build the input from a trajectory; ``known`` sets the remaining fields."""
        turns, answers_at = trajectory.all_turns, {}
        for number, turn in enumerate(turns):
            if not turn.steps:
                continue
            *before, last = turn.steps
            if any(map(_TEXT, before)) or reasoning_end(last.text or ""):
                with_texts = _with_all_texts(turn)
                turns = (*turns[:number], with_texts, *turns[number + 1 :])
                answers_at[number] = len(with_texts.answer) - len(turn.answer)
        return DetectorInput(turns=turns, calls=tuple(_locate_calls(turns)), answers_at=answers_at, **known)


_TEXT = attrgetter("text")


def _with_all_texts(turn: Turn) -> Turn:
    """Return the turn with the text that accompanies the agent's calls prepended to its answer."""
    full_text = "\n\n".join(blank_reasoning(step.text) for step in turn.steps if step.text)
    last = turn.steps[-1].model_copy(update={"text": full_text})
    return turn.model_copy(update={"steps": (*turn.steps[:-1], last)})


def _locate_calls(turns: Iterable[Turn]) -> Iterable[LocatedCall]:
    index = 0
    for number, turn in enumerate(turns):
        for position, step in enumerate(turn.steps):
            for call in step.tool_calls:
                yield LocatedCall(number, position, index, call)
                index += 1


class Proof(NamedTuple):
    """A failure that code has proven."""

    turn: int
    """The turn, as in ``Finding``."""
    call: int | None
    """The call, as in ``Finding``."""
    evidence: str
    """A quotation from the text or the call."""
    explanation: str
    """One sentence that explains why the evidence shows a failure."""
    span: tuple[int, int] | None = None
    """The start and end of ``evidence`` in the turn's answer, if ``evidence`` is quoted from the answer."""
    severity: Severity | None = None
    """The severity of this case, if it is lower than that of other findings with the same label."""
    tool: str = ""
    """The name of the tool that was not called."""


DetectorFunction: TypeAlias = Callable[[DetectorInput], Iterable[Proof]]
"""A pure function that never raises an exception, regardless of the contents of a conversation."""
