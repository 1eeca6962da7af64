"""What a Python agent gets as its second argument, wherever it runs."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    from ..world import Answer

OVER = "the conversation is over; its tools cannot be called any more"


_BLOCKS: ContextVar[bool] = ContextVar("agenteval_blocks_its_loop", default=False)


def blocks_its_loop() -> bool:
    """Whether the call that is carried out holds up the event loop of the agent, and of all async code of the
    author's: nothing that has to run there ends before it."""
    return _BLOCKS.get()


@contextmanager
def waiting_for_it() -> Iterator[None]:
    """Around a call of a tool that its caller waits for without await."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        yield
        return
    token = _BLOCKS.set(True)
    try:
        yield
    finally:
        _BLOCKS.reset(token)


async def answer_of(asked: Future[Answer]) -> Answer:
    """What a call gave. Raises ``CancelledError``, with the reason where the conversation is over."""
    try:
        return await asyncio.wrap_future(asked)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task and getattr(task, "cancelling", int)():
            raise  # the agent's own; before Python 3.11 nobody can tell
        raise asyncio.CancelledError(OVER) from None


class Context:
    """Where the agent is, and the tools of its scenario.

    ``ask(name, args, batch)`` makes a call; its future is cancelled where the conversation is over.
    """

    scenario_id: str
    """The scenario's id."""
    epoch: int
    """Which conversation with this scenario it is, from 0."""
    seed: int
    """The conversation's own, of 63 bits."""
    turn: int
    """The number of the user's message, from 0."""
    note_asked: Callable[[Any, Any], None] = staticmethod(lambda name, args: None)
    """Hears of each call that the agent's code makes through this."""
    list_asked = False
    """Whether the agent has looked at ``tools``: then it knows of no others."""

    def __init__(
        self,
        ask: Callable[[Any, Any, int], Future[Answer]],
        batches: Iterator[int],
        tools: list[dict[str, Any]],
    ) -> None:
        self.ask = ask
        self._tools = tools
        self._batches = batches
        self._lock = threading.Lock()
        self._in_flight = 0
        self._batch = 0

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The declared tools as JSON Schemas in OpenAI's format."""
        self.list_asked = True
        return self._tools

    async def call_tool(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """Call a tool of the scenario's world. Returns the value that its result stands for, an error
        as ``{"error": …}``; does not raise for one. Calls made at the same time are one step."""
        self.note_asked(name, args)
        with self.flying() as batch:
            return (await answer_of(self.ask(name, args, batch))).value

    def call_tool_sync(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """The same for code that cannot await: from any thread."""
        self.note_asked(name, args)
        with self.flying() as batch, waiting_for_it():
            try:
                return self.ask(name, args, batch).result().value
            except CancelledError:
                raise SystemExit(OVER) from None  # ends a thread without a word

    def ask_known(self, name: str, args: Any, batch: int) -> Future[Answer]:
        """As ``ask``, for a tool that the agent is known to have: what the scenario does not answer is then
        its author's mistake."""
        return self.ask(name, args, batch)

    def mocks(self, name: str) -> bool:
        """Whether the scenario has an answer for a tool."""
        return False

    def leaves(self, name: str) -> bool:
        """Whether a tool is the agent's own to carry out (``unmocked_tools: passthrough``)."""
        return False

    def ask_own(self, name: str, args: dict[str, Any], batch: int, own: Any) -> Future[Answer]:
        """A call that is the agent's own to carry out (``own_calls.Own``)."""
        raise NotImplementedError

    @contextmanager
    def flying(self) -> Iterator[int]:
        """A call's batch: that of the calls which are under way, else a new one."""
        with self._lock:
            if not self._in_flight:
                self._batch = next(self._batches)
            self._in_flight += 1
            batch = self._batch
        try:
            yield batch
        finally:
            with self._lock:
                self._in_flight -= 1
