"""The gate rows of a shard, which decides nothing that another shard could change, and of a run that was
merged from shards. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace

from agenteval.core.config import RATES
from agenteval.core.decision import MERGE, RERUN_FAILED, RESUME, GateRow
from agenteval.core.plan import Shard
from agenteval.core.plurals import join_names, plural
from agenteval.core.score import Verdict
from agenteval.verdict.report import Report

ALL_SHARDS = "all shards"
"""The name of the row that requires all shards of a run."""


def shard_rows(report: Report) -> Iterator[GateRow]:
    """Yield the row about the shards of a run. It is inconclusive in each single shard, and in a merged run
    as long as a shard is missing or did not finish."""
    if report.plan.shard:
        yield _single_row(report.plan.shard, report)
    elif report.run.merged:
        yield _merged_row(report)


def is_only_part(report: Report) -> bool:
    """Check whether the run is a shard, or was merged although a shard was missing or had not finished."""
    return report.plan.shard is not None or bool(report.run.merged and report.run.merged.incomplete)


def _single_row(shard: Shard, report: Report) -> GateRow:
    scenarios = f"{len(shard.scenarios):,} of {plural(len(report.plan.scenarios), 'scenario')}"
    limits = "".join(f"; {text}" for text in _describe_limits(report, shard))
    return GateRow(
        name=ALL_SHARDS,
        value=f"shard {shard}",
        bound=plural(shard.count, "shard"),
        basis=f"{scenarios}, {shard.samples:,} of {plural(shard.all_samples, 'planned sample')}{limits}",
        where="--shard",
        verdict=Verdict.INCONCLUSIVE,
        resolution=MERGE,
    )


def _describe_limits(report: Report, shard: Shard) -> Iterator[str]:
    """Yield the shard's part of each limit of the run."""
    budget, whole, config = report.plan.budget, report.plan.suite.budget, report.run.config
    paces = {"concurrency": config.concurrency, "agent_concurrency": config.agent_concurrency}
    for name in RATES:
        paces |= {f"{agent.name}: {name}": getattr(agent, name, None) for agent in config.all_agents}
        paces |= {f"{model.model}: {name}": getattr(model, name) for model in config.models.all}
    yield from (f"{name} {shard.pace_from(n):,} of {n:,}" for name, n in paces.items() if n is not None)
    for name, limit in budget.limits.items():
        yield f"{name} {limit:,.10g} of {whole.limits[name]:,.10g}"
    for role, allowance in budget.roles.items():
        for name, limit in allowance.limits.items():
            yield f"{role} {name} {limit:,.10g} of {whole.allowance_for(role).limits[name]:,.10g}"


def _merged_row(report: Report) -> GateRow:
    merged = report.run.merged
    assert merged
    open_ = [f"shard {number}/{merged.count} {why}" for number, why in merged.incomplete.items()]
    finished = merged.count - len(open_)
    return GateRow(
        name=ALL_SHARDS,
        value=f"{finished:,} finished",
        bound=plural(merged.count, "shard"),
        basis=join_names(open_) if open_ else "merged",
        where="merge",
        verdict=Verdict.INCONCLUSIVE if open_ else Verdict.PASSED,
        resolution=_finish_and_merge(report) if open_ else "",
    )


def _finish_and_merge(report: Report) -> str:
    """Return the next step that completes the shards of a merged run."""
    merged = report.run.merged
    assert merged
    absent = [number for number in merged.incomplete if number not in merged.runs]
    begun = [merged.runs[number] for number in merged.incomplete if number in merged.runs]
    again = shlex.join(["agenteval", *report.run.command])
    steps = [f"{again} --shard {number}/{merged.count}" for number in absent]
    steps += [f"agenteval run --resume {run}" for run in begun]
    return f"{'; '.join(steps)}; then merge again"


def resolve_in_shards(rows: Iterable[GateRow], report: Report) -> Iterator[GateRow]:
    """Yield the rows with next steps that are possible for a shard or a merged run. Only a shard can be
    resumed, and what a shard did not decide can be repeated only with the whole shard."""
    for row in rows:
        if report.plan.shard:
            again = f"run shard {report.plan.shard} again"
            yield replace(row, resolution=row.resolution.replace(RERUN_FAILED, again))
        elif report.run.merged:
            yield replace(row, resolution=row.resolution.replace(RESUME, _finish_and_merge(report)))
        else:
            yield row
