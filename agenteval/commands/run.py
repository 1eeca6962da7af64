"""``agenteval run``: run the plan, keep the journal, decide, write the reports, say the exit code."""

from __future__ import annotations

import platform
import secrets as random_secrets
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import anyio

from agenteval import __version__, gates, judging, pipeline, report
from agenteval.commands.interrupt import interruptible
from agenteval.commands.output import targets_of, write_reports
from agenteval.commands.prepare import Prepared, Request, prepare
from agenteval.config import ReporterChoice
from agenteval.decision import Decision
from agenteval.errors import AuthorError, Problem
from agenteval.event import Event, IssuesFound, Notice, RunFinished, RunStarted
from agenteval.findings import located
from agenteval.journal import Journal
from agenteval.pipeline import Control
from agenteval.progress import progress_for
from agenteval.protocols import Emit
from agenteval.redact import redacting
from agenteval.report import Report
from agenteval.score import ScoreFailure


def run(request: Request, *, reports: Sequence[ReporterChoice] = (), verbose: bool = False) -> int:
    """Returns the exit code. What the author's code prints goes to stderr: stdout is for results."""
    with redirect_stdout(sys.stderr):
        prepared = prepare(request)
        targets = targets_of(prepared.config, reports)
        finished, decision, folder = _run(prepared)
    written = write_reports(finished, decision, targets, folder=folder, verbose=verbose)
    return decision.exit_code if written or decision.exit_code else 3


def _run(prepared: Prepared) -> tuple[Report, Decision, Path]:
    folder = _new_folder(Path(prepared.config.root))
    events: list[Event] = []
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(folder / "events.jsonl"))
        progress = stack.enter_context(progress_for(sys.stderr, len(prepared.samples)))
        emit = redacting(Fan([events.append, journal, progress]), prepared.resources.secrets)
        _execute(prepared, folder.name, emit, events)
    finished = report.fold(events)
    return finished, gates.decide(finished), folder


class Fan:
    """One sink made of many. One that fails is switched off and told once: a broken display must not
    kill a run that costs money."""

    def __init__(self, sinks: Iterable[Emit]) -> None:
        self._sinks = list(sinks)

    def __call__(self, event: Event) -> None:
        for sink in list(self._sinks):
            try:
                sink(event)
            except Exception as error:
                self._sinks.remove(sink)
                name = type(sink).__name__
                self(Notice(level="error", text=f"{name} failed and is switched off: {error!r}"))


def _new_folder(root: Path) -> Path:
    """A folder for this run alone, whatever else runs in the same second."""
    home = root / ".agenteval"
    name = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{random_secrets.token_hex(3)}"
    folder = home / "runs" / name
    try:
        folder.mkdir(parents=True, mode=0o700)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        what = f"cannot make the folder of the run, {folder}: {error.strerror}"
        raise AuthorError(Problem(what, "agenteval keeps a journal of each run there")) from None
    return folder


def _execute(prepared: Prepared, run_id: str, emit: Emit, events: Sequence[Event]) -> None:
    control = Control()
    started = time.monotonic()
    emit(
        RunStarted(
            run_id=run_id,
            started_at=_now(),
            config=prepared.public,
            scenarios=prepared.scenarios,
            samples=tuple(sample.key for sample in prepared.samples),
            seed=prepared.config.seed,
            versions={"agenteval": __version__, "python": platform.python_version()},
            prompts=judging.hashes_of(prepared.metrics),
            metrics=tuple(prepared.metrics.known.values()),
            judged=tuple(spec.name for spec in prepared.metrics.asked),
            no_judge=prepared.resources.no_judge,
            command=tuple(sys.argv[1:]),
        )
    )
    try:
        anyio.run(_run_and_close, prepared, emit, control, events)
    except KeyboardInterrupt:
        control.stop("interrupted")
    emit(
        RunFinished(
            finished_at=_now(), outcome=control.outcome, elapsed_s=round(time.monotonic() - started, 3)
        )
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _run_and_close(prepared: Prepared, emit: Emit, control: Control, events: Sequence[Event]) -> None:
    prepared.resources.emit = emit
    try:
        with interruptible(control):
            await pipeline.run(prepared.plan, emit, control)
            await _find_issues(prepared, emit, control, events)
    finally:
        with anyio.CancelScope(shield=True):
            for factory in prepared.plan.agents.values():
                await factory.aclose()
            await prepared.resources.aclose()


async def _find_issues(prepared: Prepared, emit: Emit, control: Control, events: Sequence[Event]) -> None:
    """Group the findings of the run; by code alone where it was interrupted."""
    samples = report.fold(events).samples
    found = located((sample.key, sample.trajectory, sample.findings) for sample in samples)
    if not found:
        return
    from agenteval.issues import deduplicate

    model = None if control.stopping else prepared.resources.model("dedup")
    try:
        grouped = await deduplicate(found, model)
    except AuthorError as error:
        grouped = await deduplicate(found)
        failure = ScoreFailure(metric="error_deduplication", message=str(error), author=True)
        grouped = grouped._replace(failures=(failure,))
    emit(IssuesFound(issues=grouped.issues, usage=grouped.usage, failures=grouped.failures))
