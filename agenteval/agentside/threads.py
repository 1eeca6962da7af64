"""Propagate a conversation's world into threads that an agent or its framework starts, because Python does
not propagate context variables into threads.

Two methods are monkeypatched for this: ``Thread.start`` and ``ThreadPoolExecutor.submit``."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from .world import bind_world, current_world

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future


def install() -> None:
    """Start propagating the world of a conversation into threads, once per process and permanently."""
    start: Any = threading.Thread.start
    submit: Any = ThreadPoolExecutor.submit
    if hasattr(start, "agenteval_carries"):
        return

    @functools.wraps(start)
    def start_carried(thread: threading.Thread) -> None:
        # A pool's worker outlives the job that started it; each job carries its own world.
        if current_world() is not None and not _is_of_pool(thread):
            thread.run = bind_world(_quiet(thread.run))  # type: ignore[method-assign]
        start(thread)

    @functools.wraps(submit)
    def submit_carried(
        pool: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        submitted: Future[Any] = submit(pool, bind_world(fn), *args, **kwargs)
        return submitted

    start_carried.agenteval_carries = True  # type: ignore[attr-defined]
    threading.Thread.start = start_carried  # type: ignore[method-assign,assignment]
    ThreadPoolExecutor.submit = submit_carried  # type: ignore[method-assign,assignment]


def _quiet(run: Callable[[], None]) -> Callable[[], None]:
    """Wrap the target of a thread so that the thread ends silently if its conversation ends during a tool
    call."""

    def run_quietly() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            run()

    return run_quietly


def _is_of_pool(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", "") == "concurrent.futures.thread"
