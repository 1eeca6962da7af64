"""Watch the import of the author's code, which may run the agent if a script lacks a ``__main__`` guard.

The import runs in a separate world, in which tools that the suite declares do not run. Tool calls made during
the import are reported."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from .world import ToolAnswer, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator


class ImportWatch:
    """Watches the import of ``target``.

    ``declared`` contains the tools that the suite declares. ``runs_others`` is True if undeclared tools run
    (``unmocked_tools: passthrough``)."""

    def __init__(self, target: str, base: str, declared: Collection[str], *, runs_others: bool) -> None:
        self._file = target.rpartition(":")[0] or target
        self._base = base
        self._declared = frozenset(declared)
        self._runs_others = runs_others
        self._call_counts: dict[_ImportCall, int] = {}
        self._place = ""
        self._requests = 0
        self._fault = ""

    @contextmanager
    def watch_imports(self) -> Iterator[None]:
        """Watch the imports inside the ``with`` block."""
        world = World()
        try:
            with world.turn(self):
                yield
        finally:
            world.close()
            world.forget()
            self._requests += len(world.take_exchanges())
            self._fault = self._fault or world.take_fault()

    @property
    def import_warning(self) -> str:
        """A warning about calls made during the import. Empty if no calls were made."""
        if not (self._call_counts or self._requests or self._fault):
            return ""
        place = f" ({self._place})" if self._place else ""
        parts = []
        if self._call_counts:
            parts.append(
                "tools were called: " + ", ".join(_describe_call(*each) for each in self._call_counts.items())
            )
        if self._requests:
            parts.append(f"{self._requests} model request{'s' * (self._requests > 1)} sent")
        if self._fault:
            parts.append(self._fault)
        what = f"importing {self._file} runs the agent{place} before any conversation: {'; '.join(parts)}"
        return f'{what} — move the code that runs it under `if __name__ == "__main__":`'

    # ── the calls of a turn (``world.TurnCalls``)

    def mocks(self, name: str) -> bool:
        return name in self._declared

    async def call(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> ToolAnswer:
        return ToolAnswer(await run_real()) if self._may_run(name) else self._refusal_answer(name)

    def call_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> ToolAnswer:
        return ToolAnswer(run_real()) if self._may_run(name) else self._refusal_answer(name)

    async def record(self, name: str, args: Any, run_real: Callable[[], Awaitable[Any]]) -> Any:
        self._count_call(name, ran=True)
        return await run_real()

    def record_sync(self, name: str, args: Any, run_real: Callable[[], Any]) -> Any:
        self._count_call(name, ran=True)
        return run_real()

    def _may_run(self, name: str) -> bool:
        ran = self._runs_others and name not in self._declared
        self._count_call(name, ran=ran)
        return ran

    def _refusal_answer(self, name: str) -> ToolAnswer:
        what = (
            f"{name} was called during the import of {self._file}, before any conversation, and was not run"
        )
        return ToolAnswer({"error": what}, is_error=True)

    def _count_call(self, name: str, *, ran: bool) -> None:
        call = _ImportCall(name, ran)
        self._call_counts[call] = self._call_counts.get(call, 0) + 1
        self._place = self._place or _importing_line(self._base)


class _ImportCall(NamedTuple):
    name: str
    ran: bool


def _describe_call(call: _ImportCall, count: int) -> str:
    times = f"{count} times, " if count > 1 else ""
    return f"{call.name} ({times}{'the real tool ran' if call.ran else 'not run'})"


def _importing_line(base: str) -> str:
    """Return the file and line of the module code that is being executed, or an empty string if the call
    comes from a different thread."""
    frame = sys._getframe()
    found: Any = frame
    while found is not None:
        file = found.f_code.co_filename
        if found.f_code.co_name == "<module>" and os.path.isfile(file):
            inside = os.path.realpath(file).startswith(os.path.realpath(base) + os.sep)
            shown = os.path.relpath(os.path.realpath(file), os.path.realpath(base)) if inside else file
            return f"{shown}:{found.f_lineno}"
        found = found.f_back
    return ""
