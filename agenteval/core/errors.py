"""Everything that can go wrong, split by whose fault it is.

::

    AgentevalError                       exit code, problems with a place and a remedy
    ├─ AuthorError             exit 2    the author: configuration, scenario, prompt, unknown name
    │  ├─ NothingSelectedError exit 5    the filters left no scenario
    │  └─ MissingFactError               a check needs a fact that the simulated user is not given
    ├─ AgentError              a result  the agent under test broke; the sample fails
    │  └─ AfterAnswerError               … after an answer, whose turn it is charged to
    └─ InfrastructureError     exit 3    us, the network or a provider; the sample is inconclusive
       ├─ SimulatorError                 the simulated user was no user; the sample is inconclusive
       ├─ RequestSkippedError            a judge that had failed on every call was not asked
       │  └─ BudgetError                 the budget is used up, so the call was not made
       └─ UnreadableReplyError           a model's answer had not the asked shape; carries the raw text

``ToolError`` stands apart: a mock raises it to hand the agent an error result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where in a file something is written. Lines and columns count from 1; 0 means unknown."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.path]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


def parse_place(where: str) -> Place:
    """``file:line`` read back into a ``Place``."""
    path, _, line = where.rpartition(":")
    return Place(path, int(line)) if line.isdigit() else Place(where)


class Problem(NamedTuple):
    """One mistake of an author."""

    what: str
    """What is wrong."""
    remedy: str = ""
    """What to do about it; empty if that is plain."""
    place: Place | None = None
    """Where it is, if that is known."""

    @property
    def order(self) -> tuple[int, int]:
        """By what the mistakes of a file are sorted: line and column."""
        return (self.place.line, self.place.column) if self.place else (0, 0)

    def __str__(self) -> str:
        text = f"{self.place}: {self.what}" if self.place else self.what
        return f"{text}{REMEDY}{self.remedy}" if self.remedy else text


REMEDY = " — "
"""Stands before what to do about a mistake, wherever a message names both."""


def split_remedy(text: str) -> tuple[str, str]:
    """A message as what it is about and what to do (empty if it names nothing), as ``Problem`` joins them. A
    quotation after the dash is none."""
    what, _, remedy = text.partition(REMEDY)
    return (text, "") if remedy.startswith('"') else (what, remedy)


class Mistake(NamedTuple):
    """A ``Problem`` whose place is not known yet."""

    what: str
    """What is wrong."""
    remedy: str = ""
    """What to do about it; empty if that is plain."""
    path: tuple[str | int, ...] = ()
    """The keys and positions that lead to it, within what was looked at."""


class AgentevalError(Exception):
    """Base of all errors that agenteval raises on purpose."""

    exit_code = 3
    """Of a command that it ends."""
    seen: Any = None
    """What an agent had reported of its turn before it broke (an ``AgentReply``): evidence, of which nothing
    is answered or carried out."""


class AuthorError(AgentevalError):
    """The author's mistake."""

    exit_code = 2
    """Of a command that it ends."""
    problems: tuple[Problem, ...]
    """Every problem found, so that one run shows them all."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem(p) for p in problems)
        super().__init__("\n".join(map(str, self.problems)))


@contextmanager
def locate_errors(place: Place) -> Iterator[None]:
    """Gives the author's mistakes that are raised within the place, those that have none of their own."""
    try:
        yield
    except AuthorError as error:
        problems = (p if p.place else p._replace(place=place) for p in error.problems)
        raise AuthorError(*problems) from error


class NothingSelectedError(AuthorError):
    """No scenario is left to run. Not a pass: a CI that runs nothing must not be green."""

    exit_code = 5


class MissingFactError(AuthorError):
    """The agent asked the simulated user for what a check needs, and nothing tells it: its sample is
    inconclusive, by the author. ``usage``: what the question cost (a ``trajectory.Usage``)."""

    def __init__(self, problem: Problem, *, usage: Any = None) -> None:
        self.usage = usage
        super().__init__(problem)


class AgentError(AgentevalError):
    """The agent under test broke: its sample fails."""

    kind: str
    """``exception``, ``timeout``, ``http_status``, ``protocol`` or ``tool_loop``."""

    def __init__(self, message: str, *, kind: str = "exception", seen: Any = None) -> None:
        self.kind = kind
        self.seen = seen
        super().__init__(message)


class AfterAnswerError(AgentError):
    """The agent broke after an answer, before it was asked again. The turn of that answer is charged with it;
    nothing that it answers from then on can be trusted."""

    def __init__(self, message: str, *, kind: str = "protocol", seen: Any = None) -> None:
        super().__init__(message, kind=kind, seen=seen)


class InfrastructureError(AgentevalError):
    """A fault that is not the agent's: its sample is inconclusive."""

    is_final: bool
    """To try once more would bring the same (access, a name, a certificate), might carry out twice what was
    sent, or would forget what the agent may have done where nobody saw it."""

    def __init__(self, message: str, *, seen: Any = None, is_final: bool = False) -> None:
        self.seen = seen
        self.is_final = is_final
        super().__init__(message)


class SimulatorError(InfrastructureError):
    """The simulated user did not behave as a user, twice, or its model gave no message that could be used:
    its sample is inconclusive. ``said`` is what was refused, ``usage`` what it cost (a
    ``trajectory.Usage``)."""

    def __init__(self, message: str, *, rejected_text: str = "", usage: Any = None) -> None:
        self.rejected_text = rejected_text
        self.usage = usage
        super().__init__(message)


class RequestSkippedError(InfrastructureError):
    """A judge had failed on every call before this one, which was not made."""


class BudgetError(RequestSkippedError):
    """The budget is used up: the call was not made, and its sample is inconclusive."""


class UnreadableReplyError(InfrastructureError):
    """A model answered, and what it said cannot be used."""

    raw: str
    """The beginning of what it said."""
    usage: Any
    """What it cost (a ``Usage``); ``None``: not known."""
    is_flawed: bool
    """It had the asked shape, and was wrong in another way."""

    def __init__(
        self,
        message: str,
        *,
        raw: str = "",
        usage: Any = None,
        is_flawed: bool = False,
        is_final: bool = False,
    ) -> None:
        self.raw = raw
        self.usage = usage
        self.is_flawed = is_flawed
        super().__init__(message, is_final=is_final)


class ToolError(Exception):
    """Raised by a mock written in Python: the agent gets ``{"error": message}`` as the result."""


def innermost(error: BaseException) -> str:
    """The class and the message of an exception, or of the first one in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the nearest known name, else the list of them (empty if none)."""
    from difflib import get_close_matches

    names = sorted(set(known))
    near = get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if near:
        match = next(n for n in names if n.lower() == near[0])
        return f"did you mean '{match}'?"
    return f"known: {', '.join(names)}" if names else ""
