"""Executes a prepared run: sends events to the journal and the observer, and stops the run on a signal or at
its deadline. ``live_run`` starts and continues runs; ``log_scoring`` uses the same steps for recorded
conversations."""

from __future__ import annotations

import asyncio
import platform
import secrets as random_secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agenteval import __version__
from agenteval.conversation import pipeline
from agenteval.conversation.runtime import RunControl
from agenteval.core.config import Config
from agenteval.core.decision import Decision
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, IssuesFound, Notice, RunFinished, RunResumed, RunStarted
from agenteval.core.plan import Plan
from agenteval.core.protocols import AgentFactory, Emit
from agenteval.core.score import ScoreFailure
from agenteval.files import runs
from agenteval.files.journal import Journal
from agenteval.files.judge_request_log import JUDGE_REQUESTS_FILE, JudgeRequestLog
from agenteval.files.redaction import redact_events
from agenteval.files.runs import StoredRun
from agenteval.planning import judge_setup, plan_resolution, wiring
from agenteval.planning.run_files import file_hashes, find_secrets_in_files
from agenteval.planning.run_preparation import PreparedRun
from agenteval.planning.suite import Settings
from agenteval.planning.wiring import Resources
from agenteval.running.baseline import find_baseline_successes
from agenteval.running.fail_fast import FailFast
from agenteval.running.garbage_collection import reduce_garbage_collection
from agenteval.running.git import checkout_of
from agenteval.running.goal_recheck import GoalRecheck, goal_judges
from agenteval.running.interrupt import enforce_deadline, handle_interrupts
from agenteval.running.observer import Observer
from agenteval.verdict import gates
from agenteval.verdict.report import Fold, Report
from agenteval.verdict.resumption import events_to_keep
from agenteval.verdict.stable_fingerprints import StableFingerprints


def make_run_started(prepared: PreparedRun, run_id: str | None = None) -> RunStarted:
    """Create the first event of a run, which describes the planned run. The run gets a new id unless
    ``run_id`` is given."""
    settings, scenarios = prepared.suite.settings, prepared.wired.scenarios
    config = settings.config
    checkout = checkout_of(Path(config.root))
    return stamp_run_started(
        settings.public,
        prepared.plan,
        run_id or new_run_id(),
        prepared.suite.request.command,
        commit=checkout.commit if checkout else "",
        dirty=checkout is not None and checkout.is_dirty,
        scenarios=scenarios,
        prompts=judge_setup.hash_prompts(settings.metrics, prepared.plan.suite, scenarios),
        request=prepared.suite.request.to_json(config),
        sources=file_hashes(config, settings.public, scenarios, prepared.wired.resources.secrets),
    )


def stamp_run_started(
    public: Config, plan: Plan, run_id: str, command: Sequence[str], **more: Any
) -> RunStarted:
    """Create the first event of a run. ``public`` is the configuration without secrets, ``command`` contains
    the arguments of the command line, and ``more`` contains additional event fields."""
    return RunStarted(
        run_id=run_id,
        started_at=utc_timestamp(),
        config=public,
        plan=plan_resolution.redact_plan(plan, public),
        versions={"agenteval": __version__, "python": platform.python_version()},
        command=tuple(command),
        **more,
    )


def redact_run_started(prepared: PreparedRun, started: RunStarted) -> RunStarted:
    """Return the event with secrets masked, in the form in which it is written to the journal. The result can
    be compared with journal events."""
    captured: list[Event] = []
    resources = prepared.wired.resources
    redact_events(captured.append, resources.secrets, marked=resources.marked.all)(started)
    (masked,) = captured
    assert isinstance(masked, RunStarted)
    return masked


def execute(
    prepared: PreparedRun,
    journal: Journal,
    begin: RunStarted | RunResumed,
    past: Sequence[Event] = (),
    *,
    observer: Observer,
    control: RunControl | None = None,
    also: Sequence[Emit] = (),
) -> tuple[Report, Decision]:
    """Execute the remaining part of the run and return its report and decision. ``begin`` is the first event
    to emit. ``past`` contains the events that are already in the journal of a resumed run. ``control`` lets
    another thread stop the run. ``also`` are further sinks, which get every event that counts."""
    runtime, resources, suite = prepared.wired.runtime, prepared.wired.resources, prepared.suite
    control = control or RunControl()
    fold = JournalFold(journal)
    if past:
        fold.add_stored(StoredRun(journal.path))
    goal_recheck = _make_goal_recheck(prepared, begin if isinstance(begin, RunStarted) else past[0])
    sinks: list[Emit] = [runtime.queue, goal_recheck, *also]
    if runtime.fail_fast:  # a resumed run may already have its first failure
        sinks.append(FailFast(control))
    past_events = tuple(events_to_keep(past))
    for sink in sinks:
        for event in past_events:
            sink(event)
    pending = runtime.deadlines.pending
    secrets = resources.secrets
    fixed = find_secrets_in_files(secrets, suite.settings.config, suite.scenarios, cwd=suite.request.cwd)
    names = StableFingerprints(secret for secret in secrets if secret not in fixed)
    count = len(prepared.plan.samples)
    with (
        observer.watch(count, past=past_events, pending=pending) as progress,
        open_emitter(resources, journal.path.parent, [journal, fold, progress, *sinks], names) as emit,
        reduce_garbage_collection(),
    ):
        started = time.monotonic()
        emit(begin)
        for text in prepared.remarks if isinstance(begin, RunStarted) else ():
            emit(Notice(level="warning", text=text))
        steps = RunSteps(
            partial(pipeline.run_samples, runtime),
            goal_recheck,
            fold.report,
            agents=runtime.agents,
            deadline_s=prepared.plan.suite.deadlines.run_s,
        )
        perform_run(
            RunSetup(suite.settings, prepared.plan, resources), steps, emit, control, observer.show_line
        )
        emit(stamp_run_finished(control, started))
    report = fold.report()
    return report, gates.decide(report)


def _make_goal_recheck(prepared: PreparedRun, run: Event) -> GoalRecheck:
    judges, root = goal_judges(prepared.wired.runtime.judges), prepared.suite.settings.config.root
    if not judges:
        return GoalRecheck(None)
    from agenteval.scoring.judges.excused_goals import ExcusedGoalReviewer

    before = find_baseline_successes(run.baseline if isinstance(run, RunStarted) else None, root)
    return GoalRecheck(ExcusedGoalReviewer(judges.get, prepared.plan.suite.corroborate, before))


class JournalFold(Fold):
    """A sink that folds the events of a run, and follows the journal in the order of sinks: what the journal
    contains is read from there again. If it can no longer be written, texts are kept from then on."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self._written = journal

    def __call__(self, event: Event) -> None:
        self.add(event, self._written.place_of(event))

    def add_stored(self, run: StoredRun) -> None:
        """Take in the events that the journal contains already."""
        for event, place in run.events():
            self.add(event, place)


class FanOut:
    """Combines several sinks into one. A sink that fails is disabled, and the failure is reported once,
    because a broken display must not abort a run that costs money."""

    def __init__(self, sinks: Iterable[Emit]) -> None:
        self._sinks = list(sinks)

    def __call__(self, event: Event) -> None:
        failures = []
        for sink in self._sinks:
            try:
                sink(event)
            except Exception as error:
                self._sinks = [each for each in self._sinks if each is not sink]
                failures.append(f"{type(sink).__name__} failed and was disabled: {error!r}")
        for text in failures:  # after the event, because the sinks that still work have seen it by then
            self(Notice(level="error", text=text))


def new_run_id() -> str:
    """Return a new run id, which is unique even if several runs start in the same second."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{random_secrets.token_hex(3)}"


def make_run_folder(root: Path, name: str) -> Path:
    """Create the folder for the run ``name``. Raise ``AuthorError`` if the folder cannot be created."""
    folder = root / ".agenteval" / "runs" / name
    try:
        runs.ensure_project_folder(root)
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    except OSError as error:
        what = f"cannot create the run folder {folder}: {error.strerror}"
        raise AuthorError(Problem(what, "agenteval keeps a journal of each run there")) from None
    return folder


def utc_timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp_run_finished(
    control: RunControl, started: float, unmet: dict[str, str] | None = None
) -> RunFinished:
    """Create the last event of a run. ``started`` is the start time according to the monotonic clock."""
    elapsed_s = round(time.monotonic() - started, 3)
    return RunFinished(
        finished_at=utc_timestamp(), outcome=control.outcome, elapsed_s=elapsed_s, unmet=unmet or {}
    )


# ── conversations are played, or were recorded ───────────────────────────────────────────────────


@dataclass(frozen=True)
class RunSetup:
    """The settings, plan and resources of a run. They are needed for both live and recorded conversations."""

    settings: Settings
    plan: Plan
    resources: Resources


@dataclass(frozen=True)
class RunSteps:
    """The steps between the first and the last event of a run."""

    play: Callable[[Emit, RunControl], Awaitable[None]]
    """Plays all remaining conversations. It is called again if a gate is undecided after the goals have been
    rechecked."""
    goal_recheck: GoalRecheck
    report: Callable[[], Report]
    """Returns the report of the run so far."""
    agents: Mapping[str, AgentFactory] = field(default_factory=dict)
    deadline_s: float | None = None
    """The time in seconds after which the run is stopped."""
    failures: Callable[[], Iterable[ScoreFailure]] = tuple
    """Returns the failures of the run as a whole. It is called after all conversations have finished."""


@contextmanager
def open_emitter(
    resources: Resources, folder: Path, sinks: Iterable[Emit], names: StableFingerprints
) -> Iterator[Emit]:
    """Yield a function that sends events to all sinks and also writes judge requests to a file in ``folder``.
    Secrets are removed first."""
    with JudgeRequestLog(folder / JUDGE_REQUESTS_FILE) as asked:
        yield redact_events(FanOut([*sinks, asked]), resources.secrets, names, marked=resources.marked.all)


def perform_run(
    setup: RunSetup, steps: RunSteps, emit: Emit, control: RunControl, show_line: Callable[[str], None]
) -> None:
    """Play all conversations, recheck the goals, and group the findings. ``show_line`` shows a line if the
    deadline ends the run."""
    try:
        anyio.run(_play_and_close, setup, steps, emit, control, show_line)
    except KeyboardInterrupt:
        control.stop("interrupted")


async def _play_and_close(
    setup: RunSetup, steps: RunSteps, emit: Emit, control: RunControl, show_line: Callable[[str], None]
) -> None:
    setup.resources.attach(emit, control)
    control.attach_loop(asyncio.get_running_loop())
    try:
        with handle_interrupts(control), enforce_deadline(control, steps.deadline_s, show_line):
            await steps.play(emit, control)
            while await steps.goal_recheck.recheck(steps.report, emit, control):
                await steps.play(emit, control)
            await _find_issues(setup, steps, emit, control)
    finally:
        with anyio.CancelScope(shield=True):
            for factory in steps.agents.values():
                await factory.aclose()
            await setup.resources.aclose()


async def _find_issues(setup: RunSetup, steps: RunSteps, emit: Emit, control: RunControl) -> None:
    """Group the findings of the run into issues (deduplication). The findings of an interrupted run are
    grouped by code alone."""
    scenarios = steps.report().scenarios
    failures = () if control.is_stopping else tuple(steps.failures())
    found: IssuesFound | None = None
    if any(sample.findings for each in scenarios for sample in each.samples):
        from agenteval.scoring.issues import find_issues  # a run without findings needs none of it

        with anyio.CancelScope() as scope:
            # The findings of a shard are grouped with those of the others.
            asks = not control.is_stopping and setup.plan.shard is None
            control.attach(scope)
            found = await find_issues(
                scenarios,
                setup.resources.model("dedup") if asks else None,
                prompt=setup.settings.metrics.prompts.prompt("error_deduplication"),
                policies=wiring.policies_of(setup.settings.config, setup.plan.agents),
                uses_model_severity=setup.plan.suite.severity_from == "model",
            )
        if scope.cancelled_caught:
            found = await find_issues(scenarios)
    if found or failures:
        found = found or IssuesFound(issues=())
        emit(found.model_copy(update={"failures": (*found.failures, *failures)}))
