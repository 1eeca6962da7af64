"""Everything that can go wrong, split by whose fault it is.

::

    AgentevalError                       exit code, problems with a place and a remedy
    ├─ AuthorError             exit 2    the author: configuration, scenario, prompt, unknown name
    │  ├─ NothingSelectedError exit 5    the filters left no scenario
    │  └─ MissingFactError               a check needs a fact that the simulated user does not have
    ├─ AgentError              a result  the agent under test broke; the sample fails
    │  └─ AfterAnswerError               … after an answer, whose turn it is charged to
    └─ InfrastructureError     exit 3    agenteval, the network or a provider; the sample is inconclusive
       ├─ SimulatorError                 the simulated user did not act as a user
       ├─ RequestSkippedError            a judge that had failed on every call was not asked
       │  └─ BudgetError                 the budget is used up, so the call was not made
       └─ UnreadableReplyError           a model's answer had the wrong shape; carries the raw text

``ToolError`` is separate: a mock raises it to give the agent an error result."""

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
    """Parse ``file:line`` into a ``Place``."""
    path, _, line = where.rpartition(":")
    return Place(path, int(line)) if line.isdigit() else Place(where)


class Problem(NamedTuple):
    """One mistake of an author."""

    what: str
    """What is wrong."""
    remedy: str = ""
    """What to do about it, or an empty string if that is obvious."""
    place: Place | None = None
    """Where it is, or ``None`` if unknown."""

    @property
    def order(self) -> tuple[int, int]:
        """The sort key of mistakes in a file: line and column."""
        return (self.place.line, self.place.column) if self.place else (0, 0)

    def __str__(self) -> str:
        text = f"{self.place}: {self.what}" if self.place else self.what
        return f"{text}{REMEDY}{self.remedy}" if self.remedy else text


REMEDY = " — "
"""Separates a mistake from its remedy in every message that has both."""


def split_remedy(text: str) -> tuple[str, str]:
    """Split a message into what it is about and what to do (empty if it has no remedy), as ``Problem`` joins
    them. A quotation after the dash is not a remedy."""
    what, _, remedy = text.partition(REMEDY)
    return (text, "") if remedy.startswith('"') else (what, remedy)


class Mistake(NamedTuple):
    """A ``Problem`` whose place is not known yet."""

    what: str
    """What is wrong."""
    remedy: str = ""
    """What to do about it, or an empty string if that is obvious."""
    path: tuple[str | int, ...] = ()
    """The keys and positions that lead to it within the checked value."""


class AgentevalError(Exception):
    """Base of all errors that agenteval raises on purpose."""

    exit_code = 3
    """The exit code of a command that this error ends."""
    seen: Any = None
    """What an agent had reported of its turn before it broke (an ``AgentReply``). It is evidence only: its
    calls are not answered."""


class AuthorError(AgentevalError):
    """A mistake of the author."""

    exit_code = 2
    """The exit code of a command that this error ends."""
    problems: tuple[Problem, ...]
    """Every problem found, so that one run shows them all."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem(p) for p in problems)
        super().__init__("\n".join(map(str, self.problems)))


@contextmanager
def locate_errors(place: Place) -> Iterator[None]:
    """Add the place to author errors raised in this context that have none."""
    try:
        yield
    except AuthorError as error:
        problems = (p if p.place else p._replace(place=place) for p in error.problems)
        raise AuthorError(*problems) from error


class NothingSelectedError(AuthorError):
    """No scenario is left to run. This is not a pass, because a CI job that runs nothing must not succeed."""

    exit_code = 5


class MissingFactError(AuthorError):
    """The agent asked the simulated user for a fact that a check needs and that the user does not have. The
    sample is inconclusive by the author's fault. ``usage`` is the cost of the question (a
    ``trajectory.Usage``)."""

    def __init__(self, problem: Problem, *, usage: Any = None) -> None:
        self.usage = usage
        super().__init__(problem)


class AgentError(AgentevalError):
    """The agent under test broke; its sample fails."""

    kind: str
    """``exception``, ``timeout``, ``http_status``, ``protocol`` or ``tool_loop``."""

    def __init__(self, message: str, *, kind: str = "exception", seen: Any = None) -> None:
        self.kind = kind
        self.seen = seen
        super().__init__(message)


class AfterAnswerError(AgentError):
    """The agent broke after an answer, before the next message. The fault is charged to the turn of that
    answer, and nothing that the agent answers afterwards can be trusted."""

    def __init__(self, message: str, *, kind: str = "protocol", seen: Any = None) -> None:
        super().__init__(message, kind=kind, seen=seen)


class InfrastructureError(AgentevalError):
    """A fault that is not the agent's; its sample is inconclusive."""

    is_final: bool
    """True if a retry would fail in the same way (access, a name, a certificate), might repeat an action, or
    would hide unseen actions of the agent."""

    def __init__(self, message: str, *, seen: Any = None, is_final: bool = False) -> None:
        self.seen = seen
        self.is_final = is_final
        super().__init__(message)


class SimulatorError(InfrastructureError):
    """The simulated user twice failed to act as a user, or its model gave no usable message; the sample is
    inconclusive. ``rejected_text`` is the rejected message, ``usage`` its cost (a ``trajectory.Usage``)."""

    def __init__(self, message: str, *, rejected_text: str = "", usage: Any = None) -> None:
        self.rejected_text = rejected_text
        self.usage = usage
        super().__init__(message)


class RequestSkippedError(InfrastructureError):
    """A call was not made because the judge had failed on every call before it."""


class BudgetError(RequestSkippedError):
    """A call was not made because the budget is used up; its sample is inconclusive."""


class UnreadableReplyError(InfrastructureError):
    """A model's answer cannot be used."""

    raw: str
    """The beginning of the answer."""
    usage: Any
    """Its cost (a ``Usage``), or ``None`` if unknown."""
    is_flawed: bool
    """True if it had the requested shape but was wrong in another way."""

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
    """Raised by a mock in Python to return ``{"error": message}`` to the agent."""


def innermost(error: BaseException) -> str:
    """Return the class and the message of an exception, or of the first one in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the nearest known name, or else the list of known names (empty if
    there are none)."""
    from difflib import get_close_matches

    names = sorted(set(known))
    near = get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if near:
        match = next(n for n in names if n.lower() == near[0])
        return f"did you mean '{match}'?"
    return f"known: {', '.join(names)}" if names else ""
