"""Merge the runs of all shards into one: check that they belong together, and combine their events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agenteval.core.config import BudgetConfig
from agenteval.core.errors import Problem
from agenteval.core.event import (
    Event,
    IssuesFound,
    MergedShards,
    Notice,
    RunFinished,
    RunResumed,
    RunStarted,
)
from agenteval.core.plan import Shard
from agenteval.core.plurals import join_first
from agenteval.verdict.resumption import list_changes

_MOST_REASONS = 5
_SAME_RUN = "merge shards of one run: the same suite, options, commit and version of agenteval"
_UNFINISHED = {
    "interrupted": "was interrupted",
    "budget": "was stopped by its part of the budget",
    "deadline": "exceeded `deadlines.run_s`",
    "fail_fast": "stopped at its first failure",
}


class ShardRun(NamedTuple):
    """The beginning and the end of a shard's run."""

    name: str
    """The name of the run in messages."""
    started: RunStarted
    shard: Shard
    resumed: RunResumed | None
    """The last time that the run was resumed, or ``None`` if it never was."""
    finished: RunFinished | None
    """The end of the run, or ``None`` if it was cut off."""


def find_merge_problems(runs: Sequence[ShardRun]) -> Iterator[Problem]:
    """Yield the reasons why the runs cannot be merged: they are shards of different runs, or two of them are
    runs of the same shard, of which nobody should choose the better one."""
    first, *others = runs
    known = {first.shard.number: first}
    for run in others:
        if run.shard.count != first.shard.count:
            what = f"{run.name} is shard {run.shard}, and {first.name} is shard {first.shard}"
            yield Problem(what, _SAME_RUN)
        elif (same := known.setdefault(run.shard.number, run)) is not run:
            what = f"{same.name} and {run.name} are both runs of shard {run.shard}"
            yield Problem(what, "leave out one of them, without regard to its result")
        elif reasons := _differences(first.started, run.started):
            more = join_first(reasons, _MOST_REASONS)
            yield Problem(f"{first.name} and {run.name} are shards of different runs: {more}", _SAME_RUN)


def _differences(first: RunStarted, other: RunStarted) -> list[str]:
    """Describe everything that differs between the runs of two shards, except for the shard itself."""
    found = list(list_changes(_without_own_exit(first), _without_own_exit(other)))
    if first.commit != other.commit:
        found.append(f"the commit differs: {first.commit or 'unknown'} and {other.commit or 'unknown'}")
    if first.versions.get("agenteval") != other.versions.get("agenteval"):
        found.append("the version of agenteval differs")
    if _without_id(first) != _without_id(other):
        found.append("the baseline differs")
    if not found and _whole_plan(first) != _whole_plan(other):
        found.append("the plan differs")
    return found


def _without_id(run: RunStarted) -> object:
    """Return the baseline's content. Its folder may have another name on another machine."""
    return run.baseline and run.baseline.model_copy(update={"run_id": ""})


def _whole_plan(run: RunStarted) -> object:
    return run.plan.whole.with_suite(budget=BudgetConfig(), on_undecided="fail", places={})


def _without_own_exit(run: RunStarted) -> RunStarted:
    """Return the run without ``on_undecided``, which may be set for the job that runs a shard."""
    config = run.config.model_copy(update={"on_undecided": "fail"})
    return run.model_copy(update={"config": config})


# ── the merged run ───────────────────────────────────────────────────────────────────────────────


def merge_starts(runs: Sequence[ShardRun], run_id: str, root: str) -> RunStarted:
    """Return the first event of the merged run, which belongs to the project in the folder ``root``. It is
    the event that the run would have had as a whole, except for the time and the shards themselves."""
    first = min(runs, key=lambda run: run.shard.number)
    started, count = first.started, first.shard.count
    config = started.config.model_copy(update={"root": root, "budget": _latest_budget(runs)})
    plan = started.plan.whole.with_suite(budget=config.budget)
    exits = {(run.started.config.on_undecided, "on_undecided" in run.started.config.origins) for run in runs}
    if exits != {("neutral", False)}:
        # It was set for the job that ran a shard. A merged run that is undecided must not look passed.
        config = config.model_copy(update={"on_undecided": "fail"})
        plan = plan.with_suite(on_undecided="fail")
    return started.model_copy(
        update={
            "run_id": run_id,
            # A failure that was accepted when an earlier shard began may not be accepted any more.
            "started_at": max(run.started.started_at for run in runs),
            "dirty": any(run.started.dirty for run in runs),
            "config": config,
            "plan": plan,
            "command": tuple(_without_shard(started.command)),
            "request": {**started.request, "shard": None},
            "merged": MergedShards(
                count=count,
                runs={run.shard.number: run.started.run_id for run in runs},
                incomplete=_incomplete({run.shard.number: run for run in runs}, count),
            ),
        }
    )


def _latest_budget(runs: Sequence[ShardRun]) -> BudgetConfig:
    """Return the budget of the run. It may have been raised to resume a shard."""
    resumed = max((run.resumed for run in runs if run.resumed), key=lambda event: event.at, default=None)
    return resumed.budget if resumed else runs[0].started.config.budget


def _without_shard(command: Iterable[str]) -> Iterator[str]:
    is_value = False
    for word in command:
        if not is_value and not word.startswith("--shard="):
            if word == "--shard":
                is_value = True
                continue
            yield word
        is_value = False


def _incomplete(runs: Mapping[int, ShardRun], count: int) -> dict[int, str]:
    """Return the shards that are missing or did not finish, with the reason."""
    found = {}
    for number in range(1, count + 1):
        run = runs.get(number)
        if run is None:
            found[number] = "is missing"
        elif run.finished is None:
            found[number] = "was cut off"
        elif run.finished.outcome != "complete":
            found[number] = _UNFINISHED[run.finished.outcome]
    return found


def merge_events(shards: Iterable[Iterable[Event]]) -> Iterator[Event]:
    """Yield the events of all shards that belong to the merged run: not the beginning and the end of a shard,
    nor its issues, which are found anew among the findings of all shards. A notice about the run is yielded
    once."""
    noticed: set[Notice] = set()
    for events in shards:
        for event in events:
            if isinstance(event, RunStarted | RunResumed | RunFinished | IssuesFound):
                continue
            if isinstance(event, Notice) and event.key is None:
                if event in noticed:
                    continue
                noticed.add(event)
            yield event


def merge_ends(runs: Sequence[ShardRun], finished_at: str) -> RunFinished:
    """Return the last event of the merged run. The run lasted as long as its longest shard. If a limit ended
    a shard, it ended the run."""
    ends = [run.finished for run in runs if run.finished]
    outcomes = {end.outcome for end in ends}
    return RunFinished(
        finished_at=finished_at,
        outcome=next((each for each in ("budget", "deadline", "fail_fast") if each in outcomes), "complete"),
        elapsed_s=max((end.elapsed_s for end in ends), default=0.0),
    )
