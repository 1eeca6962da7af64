"""Render the history of a suite as JSON for programs. ``docs/comparing.md`` documents the fields."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasPath, Field

from agenteval.reporters.options import ReportOptions
from agenteval.reporters.results.document import readable
from agenteval.reporters.results.shape import RunVerdictText, Shape, SpreadShape
from agenteval.verdict.history import RunHistory

HISTORY_VERSION: Literal[1] = 1
"""The version of the format. Adding a field does not change it; removing, renaming or redefining one does."""


class MetricMeanShape(Shape):
    """The mean of a judged metric."""

    metric: str
    value: float | None
    """The mean over the scenarios, each of which has the same weight."""
    n: int
    """The number of conversations that have a score."""


class AgentFiguresShape(Shape):
    """The results of one agent in one run."""

    agent: str
    passed: int
    """The number of scenarios that passed."""
    failed: int
    inconclusive: int
    successes: int = Field(validation_alias=AliasPath("tally", "successes"))
    """The number of conversations that passed and whose goal, if judged, was completed."""
    decided: int = Field(validation_alias=AliasPath("tally", "decided"))
    """The number of planned conversations that were decided."""
    planned: int = Field(validation_alias=AliasPath("tally", "planned"))
    rate: float | None
    """The share of the decided conversations that succeeded; null if none was decided."""
    low: float = Field(validation_alias=AliasPath("interval", "low"))
    """The lower bound of the 95 % Wilson interval for the rate."""
    high: float = Field(validation_alias=AliasPath("interval", "high"))
    """The upper bound of the 95 % Wilson interval for the rate."""
    means: list[MetricMeanShape]
    latency_ms: SpreadShape | None
    """The latency of a conversation; null if any is unknown, as are ``tokens`` and ``cost``."""
    tokens: SpreadShape | None
    """The tokens that the agent used in a conversation."""
    cost: SpreadShape | None
    """The cost of the agent in a conversation, in US dollars."""


class HistoryPointShape(Shape):
    """One run of the suite."""

    run: str = Field(validation_alias="run_id")
    started_at: str
    commit: str
    """The commit of the repository; empty if unknown."""
    dirty: bool
    """True if files had been modified since the commit."""
    verdict: RunVerdictText
    exit_code: int
    complete: bool = Field(validation_alias="is_complete")
    """True if everything that was planned was run."""
    outcome: str | None
    """How the run ended; null if the run ended abruptly."""
    agents: list[AgentFiguresShape]
    judges: list[str]
    """The models that judged."""
    users: list[str]
    """The models that simulated the user."""
    scripted: bool
    """True if any reply was scripted rather than produced by a model."""
    cost: float | None
    """The cost of the run in US dollars; null if any part of it is unknown."""
    tokens: int | None
    """The tokens of the run; null if any part of them is unknown."""
    estimated: bool
    """True if any part of the tokens and of the cost was not reported by a provider."""
    elapsed_s: float | None
    """The duration in seconds; null if the run ended abruptly."""
    changes: list[str]
    """The changes since the preceding run that make the two runs not comparable."""


class LeftOutRunsShape(Shape):
    """The runs that are left out for the same reason."""

    reason: str
    runs: list[str] = Field(validation_alias="run_ids")
    details: list[str]


class HistoryShape(Shape):
    """The history of a suite."""

    schema_version: Literal[1] = HISTORY_VERSION
    config: str
    """The name of the configuration file; empty if there is none."""
    profile: str
    """The profile of the configuration; empty if none was selected."""
    points: list[HistoryPointShape]
    """The runs, oldest first."""
    left_out: list[LeftOutRunsShape]
    older: int
    """The number of older runs that were not read."""


def render(history: RunHistory, options: ReportOptions) -> str:
    """Render all fields of the history as JSON."""
    return readable(HistoryShape.model_validate(history).model_dump_json(indent=2))
