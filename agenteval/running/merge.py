"""Merges the runs of all shards into one run in a new folder, and decides it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import anyio

from agenteval.conversation.runtime import RunControl
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event, IssuesFound, RunResumed, RunStarted
from agenteval.core.plurals import plural
from agenteval.core.protocols import Emit
from agenteval.files import runs
from agenteval.files.journal import Journal, event_from_json, lock_run
from agenteval.files.judge_request_log import JUDGE_REQUESTS_FILE
from agenteval.files.regular_files import open_file, private_opener
from agenteval.files.runs import JOURNAL_FILE, StoredRun
from agenteval.planning import judge_setup
from agenteval.planning.plan_resolution import suite_policy
from agenteval.planning.request import restore_request
from agenteval.planning.suite import Settings, load_config, make_settings
from agenteval.planning.wiring import make_resources
from agenteval.running.execution import (
    FanOut,
    JournalFold,
    RunSetup,
    RunSteps,
    make_run_folder,
    new_run_id,
    open_emitter,
    perform_run,
    utc_timestamp,
)
from agenteval.running.garbage_collection import reduce_garbage_collection
from agenteval.running.goal_recheck import GoalRecheck
from agenteval.running.observer import Observer
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import DecidedRun
from agenteval.verdict import gates
from agenteval.verdict.merging import ShardRun, find_merge_problems, merge_ends, merge_events, merge_starts
from agenteval.verdict.report import Report
from agenteval.verdict.resumption import list_changes, run_ending
from agenteval.verdict.stable_fingerprints import StableFingerprints

_END_OF_RUN = (b'{"type":"run_resumed"', b'{"type":"run_finished"')


class StoredShard:
    """The run of a shard in its folder."""

    def __init__(self, folder: Path, run: ShardRun) -> None:
        self.folder = folder
        self.run = run

    def events(self) -> Iterator[Event]:
        return (event for event, _ in StoredRun(self.folder).events())


def find_shards(names: Iterable[str], root: Path, observer: Observer) -> tuple[StoredShard, ...]:
    """Return the runs of shards called ``names``, ordered by the number of the shard. A name is that of a
    run, or a folder, below which the runs of all shards are used. Raise ``AuthorError`` if there is no such
    run, or if a run that was named is not that of a shard."""
    found = {shard.folder: shard for name in names for shard in _find_shards(name, root, observer)}
    return tuple(sorted(found.values(), key=lambda each: each.run.shard.number))


def _find_shards(name: str, root: Path, observer: Observer) -> Iterator[StoredShard]:
    path = Path(name)
    if not path.is_dir() or (path / JOURNAL_FILE).is_file():
        found = runs.find_run(name, root)
        yield _require_shard(found if found.is_dir() else found.parent)
        return
    folders = sorted(file.parent for file in path.rglob(JOURNAL_FILE))
    shards = [shard for folder in folders if (shard := _read_shard(folder.resolve()))]
    if not shards:
        what = f"the folder {name} contains no run of a shard"
        raise AuthorError(Problem(what, f"a run has a file {JOURNAL_FILE}; merge needs `run --shard i/n`"))
    if others := len(folders) - len(shards):
        observer.show_line(f"{name}: left out {plural(others, 'run')} that {_ARE[others > 1]} of no shard")
    yield from shards


_ARE = ("is", "are")


def _require_shard(folder: Path) -> StoredShard:
    if shard := _read_shard(folder.resolve()):
        return shard
    run = runs.load_run_start(folder)
    kind = "was merged from shards already" if run.merged else "is not the run of a shard"
    what = f"{run.run_id} in {folder} {kind}"
    raise AuthorError(Problem(what, "merge the runs of `agenteval run --shard i/n`"))


def _read_shard(folder: Path) -> StoredShard | None:
    """Return the shard whose run is in the folder, or ``None`` for another run."""
    started = runs.load_run_start(folder)
    if started.plan.shard is None:
        return None
    ends = list(_read_ends(folder / JOURNAL_FILE))
    resumed = [event for event in ends if isinstance(event, RunResumed)]
    last = resumed[-1] if resumed else None
    name = f"{started.run_id} in {folder}"
    return StoredShard(folder, ShardRun(name, started, started.plan.shard, last, run_ending(ends)))


def _read_ends(journal: Path) -> Iterator[Event]:
    """Yield the events about the end of a run, without parsing the others."""
    with open_file(journal) as file:
        yield from (event_from_json(line) for line in file if line.startswith(_END_OF_RUN))


def merge_shards(
    shards: Sequence[StoredShard], root: Path, config: str | None, observer: Observer
) -> DecidedRun:
    """Merge the runs of shards into a new run of the project in the folder ``root``, and decide it.
    ``config`` names the configuration, which is needed only if a model groups the findings; by default, it is
    searched for. Raise ``AuthorError`` if the shards do not belong together."""
    if problems := list(find_merge_problems([shard.run for shard in shards])):
        raise AuthorError(*problems)
    started = merge_starts([shard.run for shard in shards], new_run_id(), str(root))
    asks_model = _has_grouping_model(started)
    settings = _load_settings(started, config) if asks_model or config else None
    folder = make_run_folder(root, started.run_id)
    with lock_run(folder), Journal(folder / JOURNAL_FILE) as journal, reduce_garbage_collection():
        fold = JournalFold(journal)
        emit = FanOut([journal, fold])
        emit(started)
        for event in merge_events(shard.events() for shard in shards):
            emit(event)
        _copy_judge_requests(shards, folder)
        if settings and asks_model:
            _find_issues(settings, started, fold, folder, [journal, fold], observer)
        elif found := anyio.run(_find_issues_by_code, fold.report()):
            emit(found)
        emit(merge_ends([shard.run for shard in shards], utc_timestamp()))
    report = fold.report()
    return DecidedRun(report, gates.decide(report), folder)


def _copy_judge_requests(shards: Iterable[StoredShard], folder: Path) -> None:
    """Append the shards' requests to judges. The format allows it, because each file defines its own
    strings."""
    for shard in shards:
        source = shard.folder / JUDGE_REQUESTS_FILE
        if source.is_file():
            with open(folder / JUDGE_REQUESTS_FILE, "ab", opener=private_opener) as file:
                file.write(source.read_bytes())


# ── issues of all shards together ────────────────────────────────────────────────────────────────


def _has_grouping_model(started: RunStarted) -> bool:
    suite = started.plan.suite
    return not suite.no_judge and bool(suite.model("dedup"))


def _load_settings(started: RunStarted, config: str | None) -> Settings:
    """Load the configuration of the run on this machine. Raise ``AuthorError`` if it differs from that of the
    shards."""
    request = replace(restore_request(started), config=config)
    loaded = load_config(request, REGISTRIES)
    metrics = judge_setup.load_metrics(loaded.config)
    # A shard may have a setting of its own for undecided runs; it does not affect the grouping.
    here = loaded.public.model_copy(update={"on_undecided": started.config.on_undecided})
    if changes := list_changes(started, started.model_copy(update={"config": here})):
        what = f"the configuration differs from that of the shards: {changes[0]}"
        raise AuthorError(Problem(what, "merge in a checkout of the same commit, or name it with --config"))
    policy = suite_policy(loaded.config, metrics.available.values(), metrics.selected)
    return make_settings(loaded, metrics, policy, request.recording)


def _find_issues(
    settings: Settings,
    started: RunStarted,
    fold: JournalFold,
    folder: Path,
    sinks: Sequence[Emit],
    observer: Observer,
) -> None:
    """Group the findings of all shards with the model of the run."""
    resources = make_resources(settings)
    with open_emitter(resources, folder, sinks, StableFingerprints(resources.secrets)) as emit:
        perform_run(
            RunSetup(settings, started.plan, resources),
            RunSteps(_play_nothing, GoalRecheck(None), fold.report),
            emit,
            RunControl(),
            observer.show_line,
        )


async def _play_nothing(_emit: Emit, _control: RunControl) -> None:
    """Return at once: the shards have played all conversations."""


async def _find_issues_by_code(report: Report) -> IssuesFound | None:
    from agenteval.scoring.issues import find_issues  # a run without findings needs none of it

    return await find_issues(report.scenarios)
