"""A circuit breaker for judges, which stops calls to a judge that fails on every call, and immediately
reports the judge's remaining checks as skipped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar

import anyio

from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.errors import AuthorError, InfrastructureError, RequestSkippedError, UnreadableReplyError
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.safe_text import one_line

FAILURES = 5
"""The number of consecutive failed calls after which a rubric is no longer used. The retries of a call are
not counted separately.

Until the rubric receives its first answer, at most this number of calls are in progress. All other calls wait
until it is known whether the rubric receives answers at all."""


class RubricCircuit(AbstractAsyncContextManager[None]):
    """The circuit breaker's state for one rubric with one model, each of whose calls is made within
    ``async with``.

    A call fails if the server returns no answer. For a rubric that has never received a readable answer, an
    unreadable answer is also a failure. After the first readable answer, an unreadable answer is attributed
    to the record being judged. A readable answer with a flaw counts as an answer here, because the flaw
    concerns only that record."""

    def __init__(self) -> None:
        self.has_answered = False
        self.closed_for = ""
        """The reason why the rubric is no longer used; empty while it is used."""
        self._in_a_row = 0
        self._in_flight = 0
        self._one_ended = anyio.Event()
        self._is_awaited = False

    async def __aenter__(self) -> None:
        """Wait until a call may start, which is then in flight until the block ends."""
        while self._in_flight + self._in_a_row >= FAILURES and not (self.has_answered or self.closed_for):
            self._is_awaited = True
            with pause_deadlines():
                await self._one_ended.wait()
        self._in_flight += 1

    async def __aexit__(self, *_: object) -> None:
        self._in_flight -= 1
        if self._is_awaited:
            self._is_awaited = False
            self._one_ended.set()
            self._one_ended = anyio.Event()

    def record_success(self) -> None:
        """Record an answer. The answer to a call that was already in flight may close the circuit again."""
        self.has_answered, self._in_a_row, self.closed_for = True, 0, ""

    def record_failure(self, error: Exception) -> bool:
        """Record a failure, and return whether this failure opened the circuit."""
        if self.has_answered and isinstance(error, UnreadableReplyError):
            return False
        self._in_a_row += 1
        if self.closed_for or self._in_a_row < FAILURES:
            return False
        self.closed_for = one_line(str(error), 300)
        return True


class RubricCall:
    """A call for a rubric. The call may have to wait a long time before it is sent."""

    def __init__(self, rubric: RubricCircuit, what: str) -> None:
        self.rubric = rubric
        self._what = what
        self._is_sent = False

    def require_open(self) -> None:
        """Raise an error if the rubric is no longer used.

        The error is ``RequestSkippedError`` if the call was never sent, and ``InfrastructureError`` if it was
        sent before."""
        if self.rubric.closed_for and self._is_sent:
            raise InfrastructureError(f"not retried: {self._what}: {self.rubric.closed_for}")
        if self.rubric.closed_for:
            raise RequestSkippedError(f"not called: {self._what}: {self.rubric.closed_for}")

    def send(self) -> None:
        """Mark the call as sent, or raise an error as ``require_open`` does."""
        self.require_open()
        self._is_sent = True


# Requests are sent deep inside a model's adapter; this variable identifies the call that they belong to.
CURRENT_RUBRIC_CALL: ContextVar[RubricCall | None] = ContextVar("agenteval_asked_rubric", default=None)


class CircuitBreakerModel:
    """A ``ChatModel`` for judges with a circuit breaker, which stops calls for a rubric that always fails.

    Raises ``RequestSkippedError`` if the request's rubric has failed ``FAILURES`` times in a row. ``warn`` is
    called once for each such rubric."""

    def __init__(self, model: ChatModel, name: str, *, warn: Callable[[str], None]) -> None:
        self._model = model
        self._name = name
        self._warn = warn
        self._rubrics: defaultdict[str, RubricCircuit] = defaultdict(RubricCircuit)

    async def complete(self, request: ModelRequest) -> ModelReply:
        metric = request.subject.metric
        rubric = self._rubrics[metric]
        what = f"{self._name} failed {FAILURES} times in a row on {metric}"
        async with rubric:
            call = RubricCall(rubric, what)
            call.require_open()
            token = CURRENT_RUBRIC_CALL.set(call)
            try:
                reply = await self._model.complete(request)
            except (AuthorError, RequestSkippedError):
                raise
            except Exception as error:
                if isinstance(error, UnreadableReplyError) and error.is_flawed:
                    rubric.record_success()
                elif rubric.record_failure(error):
                    self._warn(f"{what}, and is no longer called for it: {rubric.closed_for}")
                raise
            finally:
                CURRENT_RUBRIC_CALL.reset(token)
            rubric.record_success()
            return reply

    async def aclose(self) -> None:
        await self._model.aclose()
