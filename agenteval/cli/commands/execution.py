"""A run that is prepared is carried out: its events reach journal and screen, a signal or a deadline ends it.
``run`` begins one, ``resume`` continues one, and ``score`` has folders and sinks as they do."""

from __future__ import annotations

import platform
import secrets as random_secrets
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import anyio

from agenteval import __version__
from agenteval.cli import wiring
from agenteval.cli.commands.baseline import reached_before
from agenteval.cli.commands.garbage import few_collections
from agenteval.cli.commands.interrupt import bounded, interruptible
from agenteval.cli.commands.prepare import Prepared, Request
from agenteval.cli.commands.second_look import SecondLook, goal_judges
from agenteval.cli.fail_fast import FailFast
from agenteval.cli.git import checkout_of
from agenteval.cli.progress import progress_for
from agenteval.cli.run_files import file_hashes, stand_in_files
from agenteval.conversation import pipeline
from agenteval.conversation.pipeline import Control
from agenteval.core.decision import Decision
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, IssuesFound, Notice, RunFinished, RunResumed, RunStarted
from agenteval.core.protocols import Emit
from agenteval.files import runs
from agenteval.files.asked_file import ASKED, AskedFile
from agenteval.files.journal import EventLog, Journal
from agenteval.files.redact import redacting
from agenteval.scoring import judging, resolve
from agenteval.scoring.issues import find_issues
from agenteval.scoring.judges.excused_goals import ExcusedGoals
from agenteval.verdict import gates, report
from agenteval.verdict.remaining import kept
from agenteval.verdict.report import Report
from agenteval.verdict.stable_names import StableNames


def started_of(prepared: Prepared, request: Request) -> RunStarted:
    """What is to be run, before any of it is."""
    checkout = checkout_of(Path(prepared.config.root))
    return RunStarted(
        run_id=new_id(),
        started_at=now(),
        commit=checkout.commit if checkout else "",
        dirty=checkout is not None and checkout.is_dirty,
        config=prepared.public,
        plan=resolve.as_written(prepared.plan, prepared.public),
        scenarios=prepared.scenarios,
        versions={"agenteval": __version__, "python": platform.python_version()},
        prompts=judging.hashes_of(prepared.metrics, prepared.plan),
        command=tuple(sys.argv[1:]),
        request=request.to_keep(prepared.config),
        sources=file_hashes(prepared.config, prepared.public, prepared.scenarios, prepared.resources.secrets),
    )


def as_written(prepared: Prepared, started: RunStarted) -> RunStarted:
    """As the journal has it, to be compared with others."""
    known: list[Event] = []
    resources = prepared.resources
    redacting(known.append, resources.secrets, marked=resources.marked.all)(started)
    (masked,) = known
    assert isinstance(masked, RunStarted)
    return masked


def execute(
    prepared: Prepared, journal: Journal, begin: RunStarted | RunResumed, past: Sequence[Event] = ()
) -> tuple[Report, Decision]:
    """Run what is left. ``begin`` is told first; ``past`` is what the journal holds already, of a run that
    goes on."""
    events = EventLog(past)
    over = tuple(kept(past))
    for event in over:
        prepared.runtime.queue(event)
    pending = prepared.runtime.deadlines.pending
    with (
        AskedFile(journal.path.with_name(ASKED)) as asked,
        closing(progress_for(sys.stderr, len(prepared.samples), past=over, pending=pending)) as progress,
    ):
        again = _second_look(prepared, begin if isinstance(begin, RunStarted) else past[0])
        for event in over:
            again(event)
        sinks: list[Emit] = [events, journal, asked, prepared.runtime.queue, progress, again]
        control = Control()
        if prepared.runtime.fail_fast:
            sinks.append(_fail_fast(control, over))
        secrets = prepared.resources.secrets
        fixed = stand_in_files(secrets, prepared.config, prepared.suite)
        emit = redacting(
            Fan(sinks),
            secrets,
            StableNames(secret for secret in secrets if secret not in fixed),
            marked=prepared.resources.marked.all,
        )
        with few_collections():
            _execute(prepared, begin, emit, control, events, again)
    finished = report.fold(events.taken())
    return finished, gates.decide(finished)


def _second_look(prepared: Prepared, run: Event) -> SecondLook:
    judges = goal_judges(prepared.runtime.judges)
    before = reached_before(run.baseline if isinstance(run, RunStarted) else None, prepared.config.root)
    return SecondLook(ExcusedGoals(judges.get, prepared.plan.corroborate, before))


class Fan:
    """One sink made of many. One that fails is switched off and told once: a broken display must not
    kill a run that costs money."""

    def __init__(self, sinks: Iterable[Emit]) -> None:
        self._sinks = list(sinks)

    def __call__(self, event: Event) -> None:
        for sink in self._sinks:
            try:
                sink(event)
            except Exception as error:
                self._sinks = [each for each in self._sinks if each is not sink]
                name = type(sink).__name__
                self(Notice(level="error", text=f"{name} failed and is switched off: {error!r}"))


def new_id() -> str:
    """The name of a run, its own whatever else begins in the same second."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{random_secrets.token_hex(3)}"


def new_folder(root: Path, name: str) -> Path:
    """The folder of the run ``name``."""
    folder = root / ".agenteval" / "runs" / name
    try:
        runs.home_of(root)
        folder.mkdir(parents=True, mode=0o700)
    except OSError as error:
        what = f"cannot make the folder of the run, {folder}: {error.strerror}"
        raise AuthorError(Problem(what, "agenteval keeps a journal of each run there")) from None
    return folder


def _fail_fast(control: Control, over: Iterable[Event]) -> Emit:
    """A run that goes on may have met its first failure: then nothing more is started."""
    sink = FailFast(control)
    for event in over:
        sink(event)
    return sink


def _execute(
    prepared: Prepared,
    begin: RunStarted | RunResumed,
    emit: Emit,
    control: Control,
    events: Iterable[Event],
    again: SecondLook,
) -> None:
    started = time.monotonic()
    emit(begin)
    for text in prepared.remarks if isinstance(begin, RunStarted) else ():
        emit(Notice(level="warning", text=text))
    try:
        anyio.run(_run_and_close, prepared, emit, control, events, again)
    except KeyboardInterrupt:
        control.stop("interrupted")
    elapsed_s = round(time.monotonic() - started, 3)
    emit(RunFinished(finished_at=now(), outcome=control.outcome, elapsed_s=elapsed_s))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _run_and_close(
    prepared: Prepared, emit: Emit, control: Control, events: Iterable[Event], again: SecondLook
) -> None:
    prepared.resources.attach(emit, control)
    try:
        with interruptible(control), bounded(control, prepared.plan.deadlines.run_s):
            await pipeline.run(prepared.runtime, emit, control)
            while await again.take(events, emit, control):  # which may leave a gate that is not decided yet
                await pipeline.run(prepared.runtime, emit, control)
            await _find_issues(prepared, emit, control, events)
    finally:
        with anyio.CancelScope(shield=True):
            for factory in prepared.runtime.agents.values():
                await factory.aclose()
            await prepared.resources.aclose()


async def _find_issues(prepared: Prepared, emit: Emit, control: Control, events: Iterable[Event]) -> None:
    """Group the findings of the run; by code alone where it was interrupted."""
    scenarios = report.fold(events).scenarios
    found: IssuesFound | None = None
    with anyio.CancelScope() as scope:
        asks = not control.stopping
        control.attach(scope)
        found = await find_issues(
            scenarios,
            prepared.resources.model("dedup") if asks else None,
            prompt=prepared.metrics.prompts.prompt("error_deduplication"),
            policies=wiring.policies_of(prepared.config, prepared.runtime.agents),
            weighs=prepared.plan.severity_from == "model",
        )
    if scope.cancelled_caught:
        found = await find_issues(scenarios)
    if found:
        emit(found)
