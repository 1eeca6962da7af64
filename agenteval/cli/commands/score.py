"""Implements ``agenteval score`` (offline evaluation of recorded conversations)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout

from agenteval.cli.commands.output import (
    refuse_overwriting_inputs,
    resolve_targets,
    write_reports,
)
from agenteval.cli.safe_output import print_err
from agenteval.core.config import ReporterChoice
from agenteval.core.event import Event, SampleFinished
from agenteval.core.plurals import plural
from agenteval.core.protocols import Emit
from agenteval.planning.score_preparation import ScoreRequest, list_score_inputs
from agenteval.reporters.options import Detail
from agenteval.running.garbage_collection import reduce_garbage_collection
from agenteval.running.interrupt import finish_on_interrupt
from agenteval.running.log_scoring import open_scoring, score_log
from agenteval.running.observer import PendingLookup, nothing_pending

_HEARTBEAT_S = 5.0


def score(
    request: ScoreRequest,
    *,
    reports: Sequence[ReporterChoice] = (),
    detail: Detail = "usual",
    opens: bool = False,
) -> int:
    """Score recorded conversations (offline evaluation), write the reports and return the exit code. The exit
    codes have the same meaning as those of ``run``. Raise ``AuthorError`` if a file or the configuration is
    invalid."""
    with reduce_garbage_collection(), ExitStack() as ending:
        observer = _HeartbeatObserver()
        with redirect_stdout(sys.stderr), ExitStack() as stack:
            scoring = open_scoring(request, stack, observer)
            targets = resolve_targets(scoring.suite.config, reports)
            refuse_overwriting_inputs(targets, list_score_inputs(scoring.suite, scoring.sources))
            ending.enter_context(finish_on_interrupt())
            scored = score_log(scoring, observer)
        return write_reports(
            scored.report, scored.decision, targets, folder=scored.folder, detail=detail, opens=opens
        )


class _HeartbeatObserver:
    """Shows that scoring continues."""

    def show_line(self, text: str) -> None:
        print_err(text)

    @contextmanager
    def watch(
        self, total: int | None, *, past: Sequence[Event] = (), pending: PendingLookup = nothing_pending
    ) -> Iterator[Emit]:
        yield _Heartbeat()


class _Heartbeat:
    """A sink that periodically prints progress as a bare count, because the length of a stream is unknown."""

    def __init__(self) -> None:
        self._scored = 0
        self._last_line_s = time.monotonic()

    def __call__(self, event: Event) -> None:
        if isinstance(event, SampleFinished):
            self._scored += 1
            if time.monotonic() - self._last_line_s >= _HEARTBEAT_S:
                self._last_line_s = time.monotonic()
                print_err(f"{plural(self._scored, 'conversation')} scored")
