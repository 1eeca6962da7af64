"""The seam between a run and its caller: the command line shows progress; other callers are silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeAlias

from agenteval.core.event import Event
from agenteval.core.protocols import Emit
from agenteval.core.scenario import SampleKey

PendingLookup: TypeAlias = Callable[[SampleKey], str]
"""Returns a description of the agent or model that a running sample is waiting for. Returns an empty string
if the sample is not known to be waiting. The function is called from another thread."""


def nothing_pending(_key: SampleKey) -> str:
    """Return that nothing is known to be pending."""
    return ""


class Observer(Protocol):
    """Is told about a run while it is going on, and changes nothing in it."""

    def show_line(self, text: str) -> None:
        """Receive a line that is meant for a person and is not an event of the run."""

    def watch(
        self, total: int | None, *, past: Sequence[Event] = (), pending: PendingLookup = nothing_pending
    ) -> AbstractContextManager[Emit]:
        """Return the sink of all events of the run. ``total`` is the number of samples, or None for a log,
        whose length is unknown. ``past`` contains the earlier events of a resumed run."""


class SilentObserver:
    """An observer that shows nothing."""

    def show_line(self, text: str) -> None:
        """Ignore the line."""

    @contextmanager
    def watch(
        self, total: int | None, *, past: Sequence[Event] = (), pending: PendingLookup = nothing_pending
    ) -> Iterator[Emit]:
        yield lambda event: None
