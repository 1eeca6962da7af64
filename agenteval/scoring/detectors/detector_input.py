"""A conversation as detectors see it, and what they say of it. Pure values."""

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
    """A tool call and where it is: ``turn`` and ``step`` (within the turn) from 0, ``index`` over all
    calls of the conversation."""

    turn: int
    step: int
    index: int
    call: ToolCall

    @cached_property
    def error(self) -> str | None:
        """What it was told if it failed."""
        return error_of(self.call.result)


@dataclass(frozen=True)
class ToolFacts:
    """What is declared of a tool. ``parameters``: its JSON Schema. ``reads`` and ``writes``: whether it
    was marked to do only the one or (also) the other; both false: nobody said. ``destructive``: it writes,
    and needs the user's yes."""

    parameters: Mapping[str, Any] | None = None
    reads: bool = False
    writes: bool = False
    destructive: bool = False

    @property
    def is_marked(self) -> bool:
        """Whether its author said what it does."""
        return self.reads or self.writes or self.destructive


def get_tool_effect(name: str, facts: ToolFacts | None) -> ToolEffect:
    """What a tool does: by its mark, else by its name, as for every finding's severity; and ``think``, which
    many agents have to write down a thought, does nothing."""
    if facts is not None and (facts.writes or facts.destructive):
        return ToolEffect.WRITES
    is_reading = name == "think" or (facts is not None and facts.reads)
    return ToolEffect.READS if is_reading else effect_of_name(name)


@dataclass(frozen=True)
class DetectorInput:
    """All that a check in code may know.

    ``turns``: those that were finished and, last, the one that broke; the ``answer`` of each is all that the
    agent said in it, what stood beside its calls first, and ``answers_at`` says where its final text begins
    in there (0 if it is left out). ``tools``: by name; empty where
    none is declared. ``undeclared_exist``: the agent may have further tools of its own. ``policy``: the
    agent's instructions. ``secrets``: what it must never say, with what stands for it.
    ``truths``: sentences that hold (profile, goal, knowledge, facts). ``beliefs``:
    what the user thinks. ``now``: the date and time of the conversation, as it was written.
    ``observed``: a call that is not here was not made. ``agreed``: the calls, by their number, that need no
    (further) yes of the user.
    """

    turns: tuple[Turn, ...]
    tools: Mapping[str, ToolFacts] = field(default_factory=dict)
    undeclared_exist: bool = True
    policy: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    truths: tuple[str, ...] = ()
    beliefs: tuple[str, ...] = ()
    now: str = ""
    observed: bool = True
    agreed: frozenset[int] = frozenset()
    calls: tuple[LocatedCall, ...] = ()
    answers_at: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def _calls_by_turn(self) -> Mapping[int, Sequence[LocatedCall]]:
        return {turn: tuple(calls) for turn, calls in groupby(self.calls, key=attrgetter("turn"))}

    def calls_in_turn(self, turn: int) -> Sequence[LocatedCall]:
        """Those of one turn, in their order."""
        return self._calls_by_turn.get(turn, ())

    @staticmethod
    def from_trajectory(trajectory: Trajectory, **known: Any) -> DetectorInput:
        """A trajectory with what else is ``known`` (the fields above)."""
        turns, answers_at = trajectory.all_turns, {}
        for number, turn in enumerate(turns):
            if not turn.steps:
                continue
            *before, last = turn.steps
            if any(map(_TEXT, before)) or reasoning_end(last.text or ""):
                whole = _with_all_texts(turn)
                turns = (*turns[:number], whole, *turns[number + 1 :])
                answers_at[number] = len(whole.answer) - len(turn.answer)
        return DetectorInput(turns=turns, calls=tuple(_placed(turns)), answers_at=answers_at, **known)


_TEXT = attrgetter("text")


def _with_all_texts(turn: Turn) -> Turn:
    """The turn, its answer preceded by what the agent said beside its calls."""
    said = "\n\n".join(blank_reasoning(step.text) for step in turn.steps if step.text)
    last = turn.steps[-1].model_copy(update={"text": said})
    return turn.model_copy(update={"steps": (*turn.steps[:-1], last)})


def _placed(turns: Iterable[Turn]) -> Iterable[LocatedCall]:
    index = 0
    for number, turn in enumerate(turns):
        for position, step in enumerate(turn.steps):
            for call in step.tool_calls:
                yield LocatedCall(number, position, index, call)
                index += 1


class Proof(NamedTuple):
    """A failure that code has proven. ``turn`` and ``call`` as in ``Finding``. ``evidence`` quotes the
    text or call; ``span``: where ``evidence`` begins and ends in the answer of that turn, if it is
    quoted from there. ``explanation``: one sentence with what it stands against. ``severity``: of this
    case, where it is not as bad as others of its label. ``tool``: one that was not called."""

    turn: int
    call: int | None
    evidence: str
    explanation: str
    span: tuple[int, int] | None = None
    severity: Severity | None = None
    tool: str = ""


DetectorFunction: TypeAlias = Callable[[DetectorInput], Iterable[Proof]]
"""A pure function. It never raises for anything that a conversation can hold."""
