"""Who spent what in a run, read from its records: a line for each role and model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agenteval.core.plan import Plan
from agenteval.core.score import Check, Score, ScoreFailure, UserReview
from agenteval.core.trajectory import Trajectory, Usage
from agenteval.verdict.ledger import ROLES, LedgerLine, price_of, priced


def lines_of_sample(
    agent: str,
    trajectory: Trajectory,
    judgements: Iterable[Check | Score | ScoreFailure | UserReview],
    plan: Plan,
) -> Iterator[LedgerLine]:
    """What one sample cost. Tokens of an agent that does not tell its cost are priced here, estimated ones
    too: they stay marked as such."""
    yield LedgerLine("agent", agent, priced(trajectory.usage, price_of(agent, plan.suite.prices)))
    user = plan.suite.model("user")
    for turn in trajectory.all_turns:
        yield LedgerLine("user", turn.user_model or user, turn.user_usage)
    if trajectory.stop:
        yield LedgerLine("user", user, trajectory.stop.user_usage)
    judge = plan.suite.model("judge")
    for item in judgements:
        if item.usage:
            yield LedgerLine("judge", getattr(item, "by", "") or judge, item.usage)


def dedup_line(usage: Usage, plan: Plan) -> LedgerLine:
    return LedgerLine("dedup", plan.suite.model("dedup"), usage)


def by_role(lines: Iterable[LedgerLine]) -> dict[str, Usage]:
    """The sums over all models of a role; every role has one."""
    sums = {role: Usage() for role in ROLES}
    for line in lines:
        sums[line.role] = sums[line.role] + line.usage
    return sums
