"""Plays a prepared run in a new folder, or the rest of an interrupted run in the folder of that run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agenteval import __version__
from agenteval.conversation.runtime import RunControl
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem, RunLockedError
from agenteval.core.event import CallsSeen, Event, RunResumed, RunStarted
from agenteval.core.protocols import Emit
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import CallEvidence
from agenteval.files import runs
from agenteval.files.journal import Journal, lock_run
from agenteval.files.runs import JOURNAL_FILE
from agenteval.planning.request import Backend, restore_request
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.planning.sample_order import order_samples
from agenteval.running.baseline import attach_baseline
from agenteval.running.baseline_store import NoBaselineError, save_baseline
from agenteval.running.execution import (
    execute,
    make_run_folder,
    make_run_started,
    redact_run_started,
    utc_timestamp,
)
from agenteval.running.observer import Observer
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import DecidedRun
from agenteval.verdict import gates
from agenteval.verdict import report as reporting
from agenteval.verdict.resumption import finished_samples, is_complete, list_changes

_MOST_REASONS = 12
_UNDO_OR_RESTART = "undo the change, or start a new run"


def plan_start(prepared: PreparedRun, observer: Observer, run_id: str | None = None) -> RunStarted:
    """Create the first event of a run, with the results of the baseline run if one was requested. The run
    gets a new id unless ``run_id`` is given. Raise ``AuthorError`` if there is no such baseline."""
    started, request = make_run_started(prepared, run_id), prepared.suite.request
    if request.baseline is None:
        return started
    try:
        # The journal of the baseline contains no secrets, so the redacted event is compared with it.
        written = redact_run_started(prepared, started)
        written = written.model_copy(update={"plan": written.plan.whole})
        root = Path(started.config.root)
        compared = attach_baseline(written, request.baseline, root, selected=written.is_selection)
        return started.model_copy(update={"baseline": compared.baseline})
    except NoBaselineError as missing:
        observer.show_line(f"warning: {missing}")
        return started.model_copy(update={"no_baseline": str(missing)})


def play(
    prepared: PreparedRun,
    started: RunStarted,
    observer: Observer,
    control: RunControl | None = None,
    also: Sequence[Emit] = (),
) -> DecidedRun:
    """Play a run in a new folder. ``control`` lets another thread stop the run. ``also`` are further sinks
    for its events. Raise ``RunLockedError`` if another process is playing the same run."""
    order_samples(prepared)
    with _open_backend(prepared, observer) as playable:
        folder = make_run_folder(Path(prepared.suite.settings.config.root), started.run_id)
        with lock_run(folder):
            if (folder / JOURNAL_FILE).exists():
                raise RunLockedError(Problem(f"the run {started.run_id} was played by another process"))
            with Journal(folder / JOURNAL_FILE) as journal:
                report, decision = execute(
                    playable, journal, started, observer=observer, control=control, also=also
                )
    played = DecidedRun(report, decision, folder)
    _keep_as_baseline(prepared, played, observer)
    return played


def _open_backend(prepared: PreparedRun, observer: Observer) -> AbstractContextManager[PreparedRun]:
    if prepared.suite.request.backend is None:
        return nullcontext(prepared)
    from agenteval.running.cluster.opening import open_backend  # a run in this process needs none of it

    return open_backend(prepared, observer.show_line)


def _keep_as_baseline(prepared: PreparedRun, played: DecidedRun, observer: Observer) -> None:
    if prepared.suite.request.keep_baseline:
        root = Path(prepared.suite.settings.config.root)
        observer.show_line(save_baseline(played.report, played.folder, root))


# ── the rest of an interrupted run ───────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Resumable:
    """An interrupted run that is about to continue, or a complete one."""

    folder: Path
    events: Sequence[Event]
    prepared: PreparedRun | None
    """The rest of the run. None if the run is complete."""

    @property
    def started(self) -> RunStarted:
        run = self.events[0]
        assert isinstance(run, RunStarted)
        return run

    @property
    def config(self) -> Config:
        return self.prepared.suite.settings.config if self.prepared else self.started.config

    @property
    def scenarios(self) -> Sequence[Scenario]:
        return self.prepared.wired.scenarios if self.prepared else self.started.scenarios


@contextmanager
def reopen(folder: Path, flags: Mapping[str, Any], backend: Backend | None = None) -> Iterator[Resumable]:
    """Open an interrupted run to resume it, lock its folder, and work in the folder in which it was started.

    The rest is played by ``backend``, whatever played the beginning. ``flags`` contains the configuration
    keys that may differ from those of the run. Raise ``AuthorError`` before anything is called if the
    resumed run would measure something different."""
    here = os.getcwd()
    try:
        with lock_run(folder):
            events = runs.load_run(folder)
            run = _require_resumable(events)
            prepared = None if is_complete(events) else _prepare_remaining(run, flags, events, backend)
            yield Resumable(folder, events, prepared)
    finally:
        os.chdir(here)


def play_remaining(
    resumable: Resumable,
    observer: Observer,
    control: RunControl | None = None,
    also: Sequence[Emit] = (),
) -> DecidedRun:
    """Play the rest of a run and return the whole run. If the run is complete, only decide it. ``also`` are
    further sinks, which get the events of the whole run."""
    folder, events, prepared = resumable.folder, resumable.events, resumable.prepared
    if prepared is None:
        for event in events:
            for sink in also:
                sink(event)
        report = reporting.fold_run(runs.StoredRun(folder)).report()
        return DecidedRun(report, gates.decide(report), folder)
    _carry_over_usage(prepared, events)
    with (
        _open_backend(prepared, observer) as playable,
        Journal.reopen(folder / JOURNAL_FILE) as journal,
    ):
        begin = RunResumed(at=utc_timestamp(), budget=prepared.suite.settings.public.budget)
        report, decision = execute(
            playable, journal, begin, events, observer=observer, control=control, also=also
        )
    played = DecidedRun(report, decision, folder)
    _keep_as_baseline(prepared, played, observer)
    return played


def count_done(resumable: Resumable) -> tuple[int, int]:
    """Return how many samples of the run are done, and how many there are."""
    done = len(finished_samples(resumable.events))
    return done, max(done, len(resumable.prepared.plan.samples) if resumable.prepared else 0)


def _require_resumable(events: Sequence[Event]) -> RunStarted:
    run = events[0]
    assert isinstance(run, RunStarted)
    if run.merged:
        what = f"the run {run.run_id} was merged from shards"
        raise AuthorError(Problem(what, "resume the shards that did not finish, and merge again"))
    if not run.request:
        what = f"the journal of the run {run.run_id} contains no request"
        raise AuthorError(
            Problem(what, "only runs started by this version of `agenteval run` can be resumed")
        )
    begun_by = run.versions.get("agenteval")
    if begun_by != __version__:
        what = f"the run {run.run_id} was started by agenteval {begun_by}, but this is {__version__}"
        raise AuthorError(Problem(what, "resume with that version, or start a new run"))
    return run


def _restore_working_directory(run: RunStarted) -> None:
    """Change to the original working directory of the run so that the agent finds its files."""
    try:
        os.chdir(run.request["cwd"])
    except OSError as error:
        what = f"the working directory of the run, {run.request['cwd']}, cannot be used: {error.strerror}"
        raise AuthorError(Problem(what, "start a new run")) from None


def _prepare_remaining(
    run: RunStarted, flags: Mapping[str, Any], events: Sequence[Event], backend: Backend | None
) -> PreparedRun:
    """Prepare the rest of the run. Raise ``AuthorError`` with a list of changes if anything has changed since
    the run started."""
    _restore_working_directory(run)
    wanted = restore_request(run)
    wanted = replace(
        wanted,
        flags={**wanted.flags, **flags},
        visibility=dict(run.plan.visibility),
        backend=backend,
    )
    prepared = prepare(wanted, REGISTRIES)
    # The journal has no secrets, so that they must not count as changes here.
    reasons = list_changes(run, redact_run_started(prepared, make_run_started(prepared)))
    if reasons:
        problems = [Problem(f"the run {run.run_id} cannot be resumed: {reasons[0]}", _UNDO_OR_RESTART)]
        problems += [Problem(f"also: {reason}") for reason in reasons[1:_MOST_REASONS]]
        if len(reasons) > _MOST_REASONS:
            problems.append(Problem(f"and {len(reasons) - _MOST_REASONS} more"))
        raise AuthorError(*problems)
    return _with_evidence(prepared, events)


def _with_evidence(prepared: PreparedRun, events: Sequence[Event]) -> PreparedRun:
    """Add the evidence of tool-call visibility that the finished part of the run collected."""
    evidence: dict[str, set[CallEvidence]] = {}
    for event in events:
        if isinstance(event, CallsSeen):
            evidence.setdefault(event.agent, set()).add(event.evidence)
    wired = prepared.wired
    return replace(prepared, wired=replace(wired, runtime=replace(wired.runtime, evidence=evidence)))


def _carry_over_usage(prepared: PreparedRun, events: Sequence[Event]) -> None:
    if ledger := prepared.wired.resources.traffic.ledger:
        for line in reporting.build_report(events).ledger:
            ledger.carry_over(line.usage, line.role)
