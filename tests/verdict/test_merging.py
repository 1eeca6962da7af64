"""Which runs of shards belong together."""

from __future__ import annotations

import pytest

from agenteval.core.event import Baseline, RunFinished, RunStarted
from agenteval.core.plan import Shard
from agenteval.verdict.merging import ShardRun, find_merge_problems, merge_ends, merge_starts
from tests.support.plans import begun


def shard_run(
    number: int, *, count: int = 2, outcome: str | None = "complete", **changes: object
) -> ShardRun:
    shard = Shard(number=number, count=count, scenarios=(), before=0, samples=1, all_samples=2)
    start = begun()
    plan = start.plan.model_copy(update={"shard": shard})
    start = start.model_copy(update={"plan": plan, "run_id": f"run{number}", **changes})
    end = (
        RunFinished.model_validate({"finished_at": "t", "outcome": outcome, "elapsed_s": number})
        if outcome
        else None
    )
    return ShardRun(start.run_id, start, shard, None, end)


CHANGES = {
    "commit": "b1946ac92492",
    "versions": {"agenteval": "0.0.9"},
    "prompts": {"helpfulness": "other"},
    "sources": {"agent.py": "other"},
    "baseline": Baseline(run_id="base", outcomes={"bot": {"a": (True,)}}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_is_named(name: str) -> None:
    (problem,) = find_merge_problems([shard_run(1), shard_run(2, **{name: CHANGES[name]})])
    assert "different runs" in problem.what


def test_what_differs_between_machines_is_no_difference() -> None:
    here = shard_run(1, baseline=Baseline(run_id="one", outcomes={}), started_at="2026-11-30T08:00:00Z")
    there = shard_run(2, baseline=Baseline(run_id="two", outcomes={}), started_at="2026-11-30T09:00:00Z")
    assert not list(find_merge_problems([here, there]))


def merged(*runs: ShardRun) -> RunStarted:
    return merge_starts(runs, "merged", "/here")


def test_a_failure_must_be_accepted_on_the_day_of_the_latest_shard() -> None:
    days = ("2026-11-29T23:00:00Z", "2026-11-30T01:00:00Z")
    runs = [shard_run(number, started_at=day) for number, day in enumerate(days, 1)]
    assert merged(*runs).started_at == merged(*reversed(runs)).started_at == days[1]


def test_the_shards_that_did_not_finish() -> None:
    start = merged(
        shard_run(1, count=4), shard_run(3, count=4, outcome=None), shard_run(4, count=4, outcome="deadline")
    )
    assert start.merged
    assert start.merged.runs == {1: "run1", 3: "run3", 4: "run4"}
    assert list(start.merged.incomplete) == [2, 3, 4]
    assert "missing" in start.merged.incomplete[2]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (("complete", "complete"), "complete"),
        (("complete", "deadline"), "deadline"),
        (("deadline", "budget"), "budget"),
        (("fail_fast", "complete"), "fail_fast"),
        (("interrupted", None), "complete"),  # which the row of the shards says
    ],
)
def test_how_a_merged_run_ended(outcomes: tuple[str, str | None], expected: str) -> None:
    runs = [shard_run(number, outcome=outcome) for number, outcome in enumerate(outcomes, 1)]
    end = merge_ends(runs, "now")
    assert end.outcome == expected
    assert end.elapsed_s == max(run.finished.elapsed_s for run in runs if run.finished)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("run", "--shard", "1/2", "-s", "x"), ("run", "-s", "x")),
        (("run", "--shard=1/2"), ("run",)),
        (("run", "-s", "1/2"), ("run", "-s", "1/2")),
    ],
)
def test_the_command_of_the_run_as_a_whole(command: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert merged(shard_run(1, command=command)).command == expected
