"""All errors (exceptions), classified by the party at fault, with their exit codes.

::

    AgentevalError                       exit code, problems with a location and a remedy
    ├─ AuthorError             exit 2    the author: configuration, scenario, prompt, unknown name
    │  ├─ NothingSelectedError exit 5    the filters excluded all scenarios
    │  └─ MissingFactError               a check needs a fact that the simulated user does not have
    ├─ AgentError              a result  the agent under test failed; the sample fails
    │  └─ AfterAnswerError               … after an answer, to whose turn the failure is attributed
    └─ InfrastructureError     exit 3    agenteval, the network or a provider; the sample is inconclusive
       ├─ SimulatorError                 the simulated user did not act as a user
       ├─ RequestSkippedError            a judge that had failed on every call was not called again
       │  └─ BudgetError                 the budget is used up, so the call was not made
       └─ UnreadableReplyError           a model's answer had the wrong shape; contains the raw text

``ToolError`` is separate: a mock raises it to return an error result to the agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from agenteval.core.digits import parse_digits


class Place(NamedTuple):
    """A position in a file (file, line, column). Lines and columns are counted from 1; 0 means unknown."""

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
    number = parse_digits(line)
    return Place(where) if number is None else Place(path, number)


class Problem(NamedTuple):
    """An author's mistake, with its remedy and its location."""

    what: str
    """A description of the mistake."""
    remedy: str = ""
    """The remedy, or an empty string if it is obvious."""
    place: Place | None = None
    """The location of the mistake, or ``None`` if it is unknown."""

    @property
    def order(self) -> tuple[int, int]:
        """The sort key for mistakes in a file: line and column."""
        return (self.place.line, self.place.column) if self.place else (0, 0)

    def __str__(self) -> str:
        text = f"{self.place}: {self.what}" if self.place else self.what
        return f"{text}{REMEDY}{self.remedy}" if self.remedy else text


REMEDY = " — "
"""The separator between a mistake and its remedy in every message that contains both."""


def split_remedy(text: str) -> tuple[str, str]:
    """Split a message into a description and a remedy, reversing what ``Problem`` does to join them. The
    remedy is an empty string if the message contains none. A quotation after the dash is not a remedy."""
    what, _, remedy = text.partition(REMEDY)
    return (text, "") if remedy.startswith('"') else (what, remedy)


class Mistake(NamedTuple):
    """A ``Problem`` whose location is not yet known."""

    what: str
    """A description of the mistake."""
    remedy: str = ""
    """The remedy, or an empty string if it is obvious."""
    path: tuple[str | int, ...] = ()
    """The keys and positions that lead to the mistake within the checked value."""


class AgentevalError(Exception):
    """Base class of all errors that agenteval raises intentionally."""

    exit_code = 3
    """The exit code of a command that ends with this error."""
    seen: Any = None
    """The part of the turn that the agent had reported before it failed (an ``AgentReply``). It serves only
    as evidence: the calls in it are not answered."""


class AuthorError(AgentevalError):
    """A mistake made by the author."""

    exit_code = 2
    """The exit code of a command that ends with this error."""
    problems: tuple[Problem, ...]
    """All problems that were found, so that a single run reports all of them."""

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem(p) for p in problems)
        super().__init__("\n".join(map(str, self.problems)))


@contextmanager
def locate_errors(place: Place) -> Iterator[None]:
    """Add the location to author errors that are raised in this context without one."""
    try:
        yield
    except AuthorError as error:
        problems = (p if p.place else p._replace(place=place) for p in error.problems)
        raise AuthorError(*problems) from error


class RunLockedError(AuthorError):
    """Raised when another process is writing to the folder of a run."""


class NothingSelectedError(AuthorError):
    """Raised when no scenario is left to run. An empty selection does not count as a pass, because a CI job
    that runs nothing must not succeed."""

    exit_code = 5


class MissingFactError(AuthorError):
    """Raised when the agent asks the simulated user for a fact that a check requires but the user does not
    have. The sample is inconclusive, and the author is at fault. ``usage`` is the cost of the question (a
    ``trajectory.Usage``)."""

    def __init__(self, problem: Problem, *, usage: Any = None) -> None:
        self.usage = usage
        super().__init__(problem)


class AgentError(AgentevalError):
    """Raised when the agent under test fails (crashes, times out or returns something unusable). The sample
    fails."""

    kind: str
    """The kind of failure: ``exception``, ``timeout``, ``http_status``, ``protocol`` or ``tool_loop``."""

    def __init__(self, message: str, *, kind: str = "exception", seen: Any = None) -> None:
        self.kind = kind
        self.seen = seen
        super().__init__(message)


class AfterAnswerError(AgentError):
    """Raised when the agent fails after an answer, before the next message. The failure is attributed to the
    turn of that answer, and no later answer of the agent can be trusted."""

    def __init__(self, message: str, *, kind: str = "protocol", seen: Any = None) -> None:
        super().__init__(message, kind=kind, seen=seen)


class InfrastructureError(AgentevalError):
    """A failure that is not the agent's fault. The sample is inconclusive."""

    is_final: bool
    """True if a retry would fail in the same way (access, a host name, a certificate), might repeat an
    action, or would hide unseen actions of the agent."""

    def __init__(self, message: str, *, seen: Any = None, is_final: bool = False) -> None:
        self.seen = seen
        self.is_final = is_final
        super().__init__(message)


class SimulatorError(InfrastructureError):
    """Raised when the simulated user fails twice to act as a user, or its model returns no usable message.
    The sample is inconclusive. ``rejected_text`` is the rejected message, and ``usage`` is its cost (a
    ``trajectory.Usage``)."""

    def __init__(self, message: str, *, rejected_text: str = "", usage: Any = None) -> None:
        self.rejected_text = rejected_text
        self.usage = usage
        super().__init__(message)


class RequestSkippedError(InfrastructureError):
    """Raised when a call is skipped because the judge has failed on every previous call."""


class BudgetError(RequestSkippedError):
    """Raised when a call is not made because the budget (cost limit) would be exceeded (over budget). The
    sample is inconclusive."""


class UnreadableReplyError(InfrastructureError):
    """Raised when a model's answer cannot be used, for example because it does not match the requested
    schema."""

    raw: str
    """The beginning of the answer."""
    usage: Any
    """The cost of the answer (a ``Usage``), or ``None`` if it is unknown."""
    is_flawed: bool
    """True if the answer had the requested shape but was wrong in another way."""

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
    """Return the class and the message of an exception. For an exception group, return those of its first
    exception."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the most similar known name. If there is no similar name, return the
    list of known names, or an empty string if no names are known."""
    from difflib import get_close_matches

    names = sorted(set(known))
    near = get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if near:
        match = next(n for n in names if n.lower() == near[0])
        return f"did you mean '{match}'?"
    return f"known: {', '.join(names)}" if names else ""
