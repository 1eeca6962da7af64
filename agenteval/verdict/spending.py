"""Compute the spending (tokens and cost) of a run from its records, with one line for each role and model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from agenteval.core.config import Price
from agenteval.core.plan import ROLES as MODEL_ROLES
from agenteval.core.plan import ModelRole, Plan
from agenteval.core.sample_report import SampleReport
from agenteval.core.trajectory import Usage
from agenteval.verdict.ledger import ROLES, LedgerLine, lines_of, price_of, price_usage


def ledger_of(samples: Iterable[SampleReport], grouping: Usage, plan: Plan) -> tuple[LedgerLine, ...]:
    """Return the spending on samples and on the grouping of findings. This includes errored conversations
    that were repeated."""
    models = {role: plan.suite.model(role) for role in MODEL_ROLES}
    sample_lines = (
        line
        for last in samples
        for sample in (*last.lost_attempts, last)
        for line in _lines_of(sample, models, plan.suite.prices)
    )
    return lines_of(chain(sample_lines, [LedgerLine("dedup", models["dedup"], grouping)]))


def _lines_of(
    sample: SampleReport, models: Mapping[ModelRole, str], prices: Mapping[str, Price]
) -> list[LedgerLine]:
    """Return the spending on one sample. If an agent does not report its cost, its tokens are priced here.
    Estimated tokens are also priced and remain marked as estimated."""
    agent, user, judge = sample.key.agent, models["user"], models["judge"]
    usage, turns, stop = sample.trajectory.usage, sample.trajectory.all_turns, sample.stop
    lines = [LedgerLine("agent", agent, price_usage(usage, price_of(agent, prices)))]
    lines += [LedgerLine("user", turn.user_model or user, turn.user_usage) for turn in turns]
    if stop:
        lines.append(LedgerLine("user", user, stop.user_usage))
    for item in sample.judgements:
        if item.usage:
            lines.append(LedgerLine("judge", getattr(item, "by", "") or judge, item.usage))
    return lines


def by_role(lines: Iterable[LedgerLine]) -> dict[str, Usage]:
    """Sum the usage of each role across its models. Every role has an entry."""
    sums = {role: Usage() for role in ROLES}
    for line in lines:
        sums[line.role] = sums[line.role] + line.usage
    return sums
