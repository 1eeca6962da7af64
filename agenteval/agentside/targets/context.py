"""The second argument of a Python agent, which is used both in agenteval's process and in the agent's own
process."""

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

CONVERSATION_OVER = "the conversation is over, so its tools can no longer be called"


_BLOCKS: ContextVar[bool] = ContextVar("agenteval_blocks_its_loop", default=False)


def is_loop_blocked() -> bool:
    """Return whether the current call blocks the event loop that runs the agent and all of the author's async
    code. If so, nothing on the loop can finish before the call does."""
    return _BLOCKS.get()


@contextmanager
def mark_loop_blocked() -> Iterator[None]:
    """Mark a tool call whose caller waits without ``await``."""
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
    """Return the answer to a call. Raise ``CancelledError`` with the reason if the conversation is over."""
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task and getattr(task, "cancelling", int)():
            raise  # the agent's own cancellation; before Python 3.11 there is no way to tell
        raise asyncio.CancelledError(CONVERSATION_OVER) from None


class Context:
    """The current position in the run, and the tools of the scenario.

    ``ask(name, args, batch)`` makes a call and returns a future. The future is cancelled if the conversation
    is over."""

    scenario_id: str
    """The id of the scenario."""
    epoch: int
    """The zero-based index of this conversation among the conversations with the same scenario."""
    seed: int
    """The 63-bit random seed of this conversation."""
    turn: int
    """The zero-based index of the user's message."""
    database: str | None = None
    """The path of this conversation's SQLite file, if the scenario has `state: {expose: …}`."""
    on_direct_call: Callable[[Any, Any], None] = staticmethod(lambda name, args: None)
    """A callback that receives each call that the agent's code makes through this context."""
    has_listed_tools = False
    """True if the agent has read ``tools``. In that case, the agent knows no other tools."""

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
        """Call a tool in the scenario's world.

        Return the value of the result. An error is returned as ``{"error": …}``, not raised. Simultaneous
        calls count as one step."""
        self.on_direct_call(name, args)
        with self.open_batch() as batch:
            return (await await_answer(self.request_call(name, args, batch))).value

    def call_tool_sync(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """Do the same as ``call_tool``, but from any thread and for synchronous code."""
        self.on_direct_call(name, args)
        with self.open_batch() as batch, mark_loop_blocked():
            try:
                return self.request_call(name, args, batch).result().value
            except CancelledError:
                raise SystemExit(CONVERSATION_OVER) from None  # ends a thread silently

    def request_known_call(self, name: str, args: Any, batch: int) -> Future[ToolAnswer]:
        """Call a tool that the agent is known to have. If the scenario does not answer the call, the mistake
        is the scenario author's, not the agent's."""
        return self.request_call(name, args, batch)

    def mocks(self, name: str) -> bool:
        """Return whether the scenario contains an answer (a mock) for a tool."""
        return False

    def passes_through(self, name: str) -> bool:
        """Return whether the agent runs a tool itself (``unmocked_tools: passthrough``)."""
        return False

    def request_passthrough(
        self, name: str, args: dict[str, Any], batch: int, passthrough: Any
    ) -> Future[ToolAnswer]:
        """Announce a call that the agent runs itself (``tool_proxy.PassthroughCall``)."""
        raise NotImplementedError

    @contextmanager
    def open_batch(self) -> Iterator[int]:
        """Yield the batch for a call: the batch of calls in progress or, if there is none, a new batch."""
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
