"""What a check of ``expect`` is made of: each is one ``Rule`` that says all there is to be known of it."""

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
    """What a rule says of a conversation, or of a turn of it."""

    passed: bool | None
    """``None``: it could not be decided."""
    detail: str
    """Expected beside actual."""
    parts: Sequence[str] = ()
    """What did not hold, in the author's words and in names alone; see ``Check.parts``."""
    is_lasting: bool = False
    """Whether no later turn could undo this failure: something was done or said that was not to be, or a
    limit was exceeded. Such a failure stands also where the rest of the conversation was lost."""
    is_by_absence: bool = False
    """Whether it holds or fails only because no (further) tool call was seen. Where the agent's calls cannot
    be seen, it says nothing."""
    subject: str = ""
    """Of several things that one rule is asked for, which this is about; it becomes part of the name."""
    key_path: str = ""
    """The key below the rule's own that did not hold, as a dotted path, where its line says more."""
    turn: int | None = None
    """In which of the turns that it looked at it was broken first, where one of them shows it."""


@dataclass(frozen=True)
class CheckInput:
    """What a rule looks at: one turn, or a whole conversation. ``turns`` are finished, ``unfinished`` is the
    one that broke; ``before``: of a turn, those that came ahead of it. ``goes_on``: more turns were to
    follow, so that what is missing says nothing. For the author's code: the id of the ``scenario``, the
    folder where its paths start (``base``; empty: none is to be run), whether the agent's calls are
    ``observed``, how long it may take.
    """

    turns: Sequence[Turn]
    unfinished: Turn | None = None
    before: Sequence[Turn] = ()
    is_ongoing: bool = False
    scenario: str = ""
    base: str = ""
    observed: bool = True
    timeout_s: float = 60.0

    @property
    def all_turns(self) -> Sequence[Turn]:
        return (*self.turns, self.unfinished) if self.unfinished else self.turns

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [call for turn in self.all_turns for call in turn.tool_calls]

    def turn_of(self, call: ToolCall) -> int | None:
        """The turn that a call was made in, among those that are seen."""
        turns = enumerate(self.all_turns)
        return next((at for at, turn in turns if any(each is call for each in turn.tool_calls)), None)

    @cached_property
    def answers(self) -> list[str]:
        """The final text of each finished turn, without what the model thought."""
        return [final_answer(turn) for turn in self.turns]

    @cached_property
    def spoken_pieces(self) -> list[list[str]]:
        """All that the agent said in each finished turn, beside its calls too, piece by piece: what it said
        before a call and after it is no one sentence."""
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


def _none(_written: Any) -> Iterator[Mistake]:
    yield from ()


@dataclass(frozen=True)
class CheckRule:
    """One check that an author can ask for. It is registered in ``agenteval.scoring.checks.RULES`` and
    nowhere else; its field is that of ``Expectation`` which its name is the path of."""

    name: str
    """In results (``output.contains``); the path under ``expect`` where it is asked for."""
    decide: Callable[[Any, CheckInput], CheckOutcome] | None = None
    """A pure function of what is asked and what was seen. It may raise ``SearchTimeoutError``."""
    evaluate_async: Callable[[Any, CheckInput], Awaitable[Sequence[CheckOutcome]]] | None = None
    """In place of ``decide``, for what calls the author's code: an outcome for each thing that is asked."""
    needs_answers: bool = False
    """Whether it is about answers: of a conversation in which the agent broke it is not decided."""

    find_mistakes: Callable[[Any], Iterator[Mistake]] = _none
    """What is wrong with what an author wrote there, above all that it checks nothing. Empty lists are
    refused for all rules alike."""

    def get_expected(self, expect: Expectation) -> Any:
        """What ``expect`` asks of it; ``None`` if nothing."""
        found: Any = expect
        for key in self.name.split("."):
            found = getattr(found, key)
            if not has_expectation(found):
                return None
        return found


def quote_texts(texts: Iterable[str]) -> str:
    return ", ".join(excerpt(text, 80) for text in texts)
