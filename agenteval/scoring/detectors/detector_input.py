"""The input and the output of detectors. Pure values."""

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
    """A tool call and where it is."""

    turn: int
    """The turn, from 0."""
    step: int
    """The step within the turn, from 0."""
    index: int
    """The number over all calls of the conversation, from 0."""
    call: ToolCall

    @cached_property
    def error(self) -> str | None:
        """The error that the agent got if the call failed."""
        return error_of(self.call.result)


@dataclass(frozen=True)
class ToolFacts:
    """The declared properties of a tool."""

    parameters: Mapping[str, Any] | None = None
    """The JSON Schema of the arguments."""
    reads: bool = False
    """True if it is marked to only read."""
    writes: bool = False
    """True if it is marked to write. If this and ``reads`` are false, its effect is not declared."""
    destructive: bool = False
    """True if it writes and needs the user's consent."""

    @property
    def is_marked(self) -> bool:
        """True if the author declared its effect."""
        return self.reads or self.writes or self.destructive


def get_tool_effect(name: str, facts: ToolFacts | None) -> ToolEffect:
    """Return the effect of a tool: by its mark, otherwise by its name, as for every finding's severity.

    ``think``, which many agents call to write down a thought, does nothing."""
    if facts is not None and (facts.writes or facts.destructive):
        return ToolEffect.WRITES
    is_reading = name == "think" or (facts is not None and facts.reads)
    return ToolEffect.READS if is_reading else effect_of_name(name)


@dataclass(frozen=True)
class DetectorInput:
    """The input of a detector: everything that a check in code may know."""

    turns: tuple[Turn, ...]
    """The finished turns and, last, the one that broke off. The ``answer`` of each is everything that the
    agent said in it; text beside its calls comes first."""
    tools: Mapping[str, ToolFacts] = field(default_factory=dict)
    """The declared tools by name; empty if none is declared."""
    undeclared_exist: bool = True
    """True if the agent may have further tools of its own."""
    policy: str = ""
    """The agent's instructions."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The secrets that the agent must never reveal, with their placeholders."""
    truths: tuple[str, ...] = ()
    """True sentences: profile, goal, knowledge and facts."""
    beliefs: tuple[str, ...] = ()
    """The user's beliefs."""
    now: str = ""
    """The date and time of the conversation, as written."""
    observed: bool = True
    """True if a call that is not here was not made."""
    agreed: frozenset[int] = frozenset()
    """The numbers of the calls that need no (further) consent of the user."""
    calls: tuple[LocatedCall, ...] = ()
    answers_at: Mapping[int, int] = field(default_factory=dict)
    """Where the final text begins in a turn's ``answer``; 0 if the turn is left out."""

    @cached_property
    def _calls_by_turn(self) -> Mapping[int, Sequence[LocatedCall]]:
        return {turn: tuple(calls) for turn, calls in groupby(self.calls, key=attrgetter("turn"))}

    def calls_in_turn(self, turn: int) -> Sequence[LocatedCall]:
        """Return the calls of one turn, in order."""
        return self._calls_by_turn.get(turn, ())

    @staticmethod
    def from_trajectory(trajectory: Trajectory, **known: Any) -> DetectorInput:
        """Build the input from a trajectory; ``known`` sets the other fields."""
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
    """Return the turn with what the agent said beside its calls before its answer."""
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
    """As in ``Finding``."""
    call: int | None
    """As in ``Finding``."""
    evidence: str
    """A quotation of the text or the call."""
    explanation: str
    """One sentence that names what the evidence conflicts with."""
    span: tuple[int, int] | None = None
    """Where ``evidence`` begins and ends in the answer of that turn, if it is quoted from there."""
    severity: Severity | None = None
    """The severity of this case, if it is less severe than others with its label."""
    tool: str = ""
    """The tool that was not called."""


DetectorFunction: TypeAlias = Callable[[DetectorInput], Iterable[Proof]]
"""A pure function. It never raises, whatever a conversation contains."""
