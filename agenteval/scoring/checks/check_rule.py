"""Defines ``CheckRule``, which declares all properties of one check in ``expect``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from agenteval.core.errors import Mistake
from agenteval.core.excerpts import excerpt
from agenteval.core.reasoning import agent_texts, final_answer
from agenteval.core.scenario import Expectation, Tool, has_expectation
from agenteval.core.trajectory import ToolCall, Turn
from agenteval.core.world_state import ReferenceState, StateChanges, StateSpec

_ANSWERS_SHOWN = 3


class CheckOutcome(NamedTuple):
    """The result of a rule for a conversation or for one of its turns."""

    passed: bool | None
    """``None`` if the rule could not be decided."""
    detail: str
    """The expected and the actual values."""
    parts: Sequence[str] = ()
    """The parts that failed, in the author's words and by name only; see ``Check.parts``."""
    is_lasting: bool = False
    """True if no later turn could undo this failure: the agent did or wrote something forbidden, or exceeded
    a limit. Such a failure counts even if the rest of the conversation errored."""
    is_by_absence: bool = False
    """True if the rule passes or fails only because no (additional) tool call was observed. If not all of the
    agent's calls are visible, such an outcome proves nothing."""
    subject: str = ""
    """The item that this outcome is about, if a rule checks several items. The subject becomes part of the
    check's name."""
    key_path: str = ""
    """The dotted path of the failed key, relative to the rule's own key. It is set if the failed key's line
    is more specific than the rule's line."""
    turn: int | None = None
    """The first checked turn that broke the rule, or ``None`` if the failure cannot be located in a single
    turn."""


@dataclass(frozen=True)
class CheckInput:
    """The input of a rule: one turn, or a whole conversation."""

    turns: Sequence[Turn]
    """The finished turns."""
    unfinished: Turn | None = None
    """The turn that was interrupted."""
    before: Sequence[Turn] = ()
    """The turns before the checked turn."""
    history: Sequence[Turn] = ()
    """The turns before the conversation, which are not checked."""
    is_ongoing: bool = False
    """True if more turns were to follow, so that the absence of something proves nothing."""
    scenario: str = ""
    """The id of the scenario, passed to the author's code."""
    base: str = ""
    """The folder against which the scenario's paths are resolved, or an empty path if the author's code must
    not be run."""
    observed: bool = True
    """True if the agent's calls are visible."""
    timeout_s: float = 60.0
    """The time limit for the author's code."""
    state: StateSpec | None = None
    """The state with which the conversation began."""
    end_state: StateChanges | None = None
    """What differed from this state in the end, if it is not what differed at the end of the last turn."""
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The scenario's tools."""
    references: Sequence[ReferenceState] = ()
    """The states that the calls of ``same_as`` leave, if only the author's code can make them."""
    user_tools: Mapping[str, Tool] = field(default_factory=dict)
    """The tools of the scenario's user."""

    @property
    def every_tool(self) -> Mapping[str, Tool]:
        """The tools of the agent and of the user."""
        return {**self.tools, **self.user_tools}

    @property
    def all_turns(self) -> Sequence[Turn]:
        return (*self.turns, self.unfinished) if self.unfinished else self.turns

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [call for turn in self.all_turns for call in turn.tool_calls]

    def turn_of(self, call: ToolCall) -> int | None:
        """Return the visible turn in which a call was made."""
        turns = enumerate(self.all_turns)
        return next((at for at, turn in turns if any(each is call for each in turn.tool_calls)), None)

    @cached_property
    def answers(self) -> list[str]:
        """The final text of each finished turn, excluding the model's reasoning."""
        return [final_answer(turn) for turn in self.turns]

    @cached_property
    def spoken_pieces(self) -> list[list[str]]:
        """Everything that the agent wrote in each finished turn, including text that accompanies its calls.
        Each turn is a list of pieces, because the texts before and after a call do not form one sentence."""
        return [agent_texts(turn) for turn in self.turns]

    @property
    def quoted_answers(self) -> str:
        """The latest answers, quoted."""
        if not self.answers:
            return "no answer at all"
        shown = " / ".join(map(excerpt, self.answers[-_ANSWERS_SHOWN:]))
        if len(self.answers) == 1:
            return f"the answer {shown}"
        more = f"; the last {_ANSWERS_SHOWN}" if len(self.answers) > _ANSWERS_SHOWN else ""
        return f"any of {len(self.answers)} answers{more}: {shown}"


def _no_mistakes(_written: Any) -> Iterator[Mistake]:
    yield from ()


@dataclass(frozen=True)
class CheckRule:
    """A check that an author can request.

    A rule is registered only in ``agenteval.scoring.checks.RULES``. Its name is the path of its field in
    ``Expectation``."""

    name: str
    """The name in results (``output.contains``): the path below ``expect`` at which the rule is requested."""
    decide: Callable[[Any, CheckInput], CheckOutcome] | None = None
    """A pure function that compares the expected behavior with the observed behavior. It may raise
    ``SearchTimeoutError``."""
    evaluate_async: Callable[[Any, CheckInput], Awaitable[Sequence[CheckOutcome]]] | None = None
    """A function used instead of ``decide`` if the rule calls the author's code. It returns one outcome for
    each checked item."""
    decide_each: Callable[[Any, CheckInput], Sequence[CheckOutcome]] | None = None
    """A pure function used instead of ``decide`` if the rule is a list of expectations, each of which is a
    check of its own. The outcomes have a ``subject`` and the ``key_path`` of their expectation."""
    needs_answers: bool = False
    """True if the rule checks answers. Such a rule is left undecided if the agent failed during the
    conversation."""

    find_mistakes: Callable[[Any], Iterator[Mistake]] = _no_mistakes
    """A function that yields the errors in the author's entry for the rule, in particular an entry that
    checks nothing. Empty lists are rejected for all rules."""

    def decide_all(self, expected: Any, seen: CheckInput) -> Sequence[CheckOutcome]:
        """Return all outcomes of the rule, or none if it calls the author's code."""
        if self.decide_each is not None:
            return self.decide_each(expected, seen)
        return () if self.decide is None else (self.decide(expected, seen),)

    def get_expected(self, expect: Expectation) -> Any:
        """Return the value that ``expect`` sets for this rule, or ``None`` if the rule is not requested."""
        found: Any = expect
        for key in self.name.split("."):
            found = getattr(found, key)
            if not has_expectation(found):
                return None
        return found


def quote_texts(texts: Iterable[str]) -> str:
    return ", ".join(excerpt(text, 80) for text in texts)
