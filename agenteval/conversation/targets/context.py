"""What a Python agent gets as its second argument, wherever it runs."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

_OVER = "the conversation is over; its tools cannot be called any more"


class Context:
    """``tools``: the declared tools as JSON Schemas in OpenAI's format. ``scenario_id``, ``turn`` and
    ``epoch`` (both from 0) and ``seed`` (63 bits, the sample's own) say where the agent is.

    ``ask(name, args, batch)`` makes a call; its future is cancelled where the conversation is over.
    """

    scenario_id: str
    epoch: int
    seed: int
    turn: int
    tools: list[dict[str, Any]]

    def __init__(self, ask: Callable[[Any, Any, int], Future[Any]], batches: Iterator[int]) -> None:
        self._ask = ask
        self._batches = batches
        self._lock = threading.Lock()
        self._in_flight = 0
        self._batch = 0

    async def call_tool(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """Call a tool of the scenario's world. Returns the value that its result stands for, an error
        as ``{"error": …}``; does not raise for one. Calls made at the same time are one step."""
        with self._flying() as batch:
            try:
                return await asyncio.wrap_future(self._ask(name, args, batch))
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task and getattr(task, "cancelling", int)():
                    raise  # the agent's own; before Python 3.11 nobody can tell
                raise asyncio.CancelledError(_OVER) from None

    def call_tool_sync(self, name: str, args: Mapping[str, Any] | str | None = None) -> Any:
        """The same for code that cannot await: from any thread."""
        with self._flying() as batch:
            try:
                return self._ask(name, args, batch).result()
            except CancelledError:
                raise SystemExit(_OVER) from None  # ends a thread without a word

    @contextmanager
    def _flying(self) -> Iterator[int]:
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
