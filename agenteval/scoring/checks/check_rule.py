"""A check of ``expect``: one ``CheckRule`` that declares everything about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from agenteval.core.errors import Mistake
from agenteval.core.reasoning import agent_texts, final_answer
from agenteval.core.scenario import Expectation, has_expectation
from agenteval.core.trajectory import ToolCall, Turn
from agenteval.scoring.checks.excerpts import excerpt

_ANSWERS_SHOWN = 3


class CheckOutcome(NamedTuple):
    """The result of a rule for a conversation or for one of its turns."""

    passed: bool | None
    """``None`` if it could not be decided."""
    detail: str
    """Expected beside actual."""
    parts: Sequence[str] = ()
    """The parts that failed, in the author's words and in names alone; see ``Check.parts``."""
    is_lasting: bool = False
    """True if no later turn could undo this failure: the agent did or wrote what it must not, or exceeded a
    limit. Such a failure counts even if the rest of the conversation errored."""
    is_by_absence: bool = False
    """True if it passes or fails only because no (further) tool call was seen. If the agent's calls cannot be
    seen, it proves nothing."""
    subject: str = ""
    """The one thing that this is about, if a rule checks several; it becomes part of the name."""
    key_path: str = ""
    """The key below the rule's own that failed, as a dotted path, if its line is more specific."""
    turn: int | None = None
    """The turn that broke the rule first, among those that were checked; ``None`` if no single turn shows it.
    """


@dataclass(frozen=True)
class CheckInput:
    """The input of a rule: one turn, or a whole conversation."""

    turns: Sequence[Turn]
    """The finished turns."""
    unfinished: Turn | None = None
    """The turn that broke off."""
    before: Sequence[Turn] = ()
    """The turns ahead of the one that is checked."""
    is_ongoing: bool = False
    """True if more turns were to follow, so that a missing thing proves nothing."""
    scenario: str = ""
    """The id of the scenario, for the author's code."""
    base: str = ""
    """The folder from which the scenario's paths are resolved; empty if none of the author's code is to be
    run."""
    observed: bool = True
    """True if the agent's calls can be seen."""
    timeout_s: float = 60.0
    """The time limit of the author's code."""

    @property
    def all_turns(self) -> Sequence[Turn]:
        return (*self.turns, self.unfinished) if self.unfinished else self.turns

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [call for turn in self.all_turns for call in turn.tool_calls]

    def turn_of(self, call: ToolCall) -> int | None:
        """Return the turn in which a call was made, among those that are seen."""
        turns = enumerate(self.all_turns)
        return next((at for at, turn in turns if any(each is call for each in turn.tool_calls)), None)

    @cached_property
    def answers(self) -> list[str]:
        """The final text of each finished turn, without what the model thought."""
        return [final_answer(turn) for turn in self.turns]

    @cached_property
    def spoken_pieces(self) -> list[list[str]]:
        """Everything that the agent wrote in each finished turn, including text beside its calls, piece by
        piece: the texts before and after a call are not one sentence."""
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

    It is registered only in ``agenteval.scoring.checks.RULES``. Its name is the path of its field in
    ``Expectation``."""

    name: str
    """The name in results (``output.contains``): the path under ``expect`` where it is requested."""
    decide: Callable[[Any, CheckInput], CheckOutcome] | None = None
    """A pure function of what is expected and what was seen. It may raise ``SearchTimeoutError``."""
    evaluate_async: Callable[[Any, CheckInput], Awaitable[Sequence[CheckOutcome]]] | None = None
    """Takes the place of ``decide`` if the author's code is called: returns an outcome for each thing that is
    checked."""
    needs_answers: bool = False
    """True if it is about answers: it is not decided for a conversation in which the agent broke."""

    find_mistakes: Callable[[Any], Iterator[Mistake]] = _no_mistakes
    """Yields the mistakes in what an author wrote there, above all that it checks nothing. Empty lists are
    refused for all rules alike."""

    def get_expected(self, expect: Expectation) -> Any:
        """Return what ``expect`` requests of this rule; ``None`` if nothing."""
        found: Any = expect
        for key in self.name.split("."):
            found = getattr(found, key)
            if not has_expectation(found):
                return None
        return found


def quote_texts(texts: Iterable[str]) -> str:
    return ", ".join(excerpt(text, 80) for text in texts)
