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

    from ..world import ToolAnswer

CONVERSATION_OVER = "the conversation is over; its tools cannot be called any more"


_BLOCKS: ContextVar[bool] = ContextVar("agenteval_blocks_its_loop", default=False)


def is_loop_blocked() -> bool:
    """Whether the call that is carried out holds up the event loop of the agent, and of all async code of the
    author's: nothing that has to run there ends before it."""
    return _BLOCKS.get()


@contextmanager
def mark_loop_blocked() -> Iterator[None]:
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


async def await_answer(future: Future[ToolAnswer]) -> ToolAnswer:
    """What a call gave. Raises ``CancelledError``, with the reason where the conversation is over."""
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task and getattr(task, "cancelling", int)():
            raise  # the agent's own; before Python 3.11 nobody can tell
        raise asyncio.CancelledError(CONVERSATION_OVER) from None


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
    on_direct_call: Callable[[Any, Any], None] = staticmethod(lambda name, args: None)
    """Hears of each call that the agent's code makes through this."""
    has_listed_tools = False
    """Whether the agent has looked at ``tools``: then it knows of no others."""

    def __init__(
        self,
        ask: Callable[[Any, Any, int], Future[ToolAnswer]],
        batches: Iterator[int],
        tools: list[dict[str, Any]],
    ) -> None:
        self.request_call = ask
        self._tools = tools
        self._batches = batches
        self._lock = threading.Lock()
        self._in_flight = 0
        self._batch = 0

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The declared tools as JSON Schemas in OpenAI's format."""
        self.has_listed_tools = True
        return self._tools

    async def call_tool(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """Call a tool of the scenario's world. Returns the value that its result stands for, an error
        as ``{"error": …}``; does not raise for one. Calls made at the same time are one step."""
        self.on_direct_call(name, args)
        with self.open_batch() as batch:
            return (await await_answer(self.request_call(name, args, batch))).value

    def call_tool_sync(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """The same for code that cannot await: from any thread."""
        self.on_direct_call(name, args)
        with self.open_batch() as batch, mark_loop_blocked():
            try:
                return self.request_call(name, args, batch).result().value
            except CancelledError:
                raise SystemExit(CONVERSATION_OVER) from None  # ends a thread without a word

    def request_known_call(self, name: str, args: Any, batch: int) -> Future[ToolAnswer]:
        """As ``ask``, for a tool that the agent is known to have: what the scenario does not answer is then
        its author's mistake."""
        return self.request_call(name, args, batch)

    def mocks(self, name: str) -> bool:
        """Whether the scenario has an answer for a tool."""
        return False

    def passes_through(self, name: str) -> bool:
        """Whether a tool is the agent's own to carry out (``unmocked_tools: passthrough``)."""
        return False

    def request_passthrough(
        self, name: str, args: dict[str, Any], batch: int, passthrough: Any
    ) -> Future[ToolAnswer]:
        """A call that is the agent's own to carry out (``own_calls.PassthroughCall``)."""
        raise NotImplementedError

    @contextmanager
    def open_batch(self) -> Iterator[int]:
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
