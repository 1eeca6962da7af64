"""Who spent what in a run, read from its records: a line for each role and model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from agenteval.core.config import Config
from agenteval.core.score import Check, Score, ScoreFailure, UserReview
from agenteval.core.trajectory import Trajectory, Usage
from agenteval.verdict.ledger import ROLES, LedgerLine, price_of, priced


def lines_of_sample(
    agent: str,
    trajectory: Trajectory,
    judgements: Iterable[Check | Score | ScoreFailure | UserReview],
    config: Config,
) -> Iterator[LedgerLine]:
    """What one sample cost. Tokens of an agent that does not tell its cost are priced here, estimated ones
    too: they stay marked as such."""
    yield LedgerLine("agent", agent, priced(trajectory.usage, price_of(agent, config.prices)))
    user = model_of("user", config)
    for turn in trajectory.all_turns:
        yield LedgerLine("user", turn.user_model or user, turn.user_usage)
    if trajectory.stop:
        yield LedgerLine("user", user, trajectory.stop.user_usage)
    judge = model_of("judge", config)
    for item in judgements:
        if item.usage:
            yield LedgerLine("judge", getattr(item, "by", "") or judge, item.usage)


def dedup_line(usage: Usage, config: Config) -> LedgerLine:
    return LedgerLine("dedup", model_of("dedup", config), usage)


def model_of(role: Literal["user", "judge", "dedup"], config: Config) -> str:
    """The model that is configured for a role; empty if none is."""
    chosen = config.models.of(role)
    return chosen.model if chosen else ""


def by_role(lines: Iterable[LedgerLine]) -> dict[str, Usage]:
    """The sums over all models of a role; every role has one."""
    sums = {role: Usage() for role in ROLES}
    for line in lines:
        sums[line.role] = sums[line.role] + line.usage
    return sums
