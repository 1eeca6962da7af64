"""What a run tells while it runs. The journal is these, a line each; all reports fold over them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from agenteval.config import Config
from agenteval.scenario import SampleKey, Scenario
from agenteval.score import Issue, MetricSpec, ScoreFailure, ScoreItem
from agenteval.trajectory import Stop, Turn, Usage
from agenteval.value import Value

SCHEMA_VERSION = 1
"""Of the journal. Raised when an old reader would misread a new journal."""


class RunStarted(Value):
    """The first event. ``config`` is without secrets; ``started_at`` is ISO 8601 in UTC. ``metrics``:
    all that are known; ``judged``: the names of those that were asked for; ``no_judge``: the run was told
    to ask no judge at all. ``prompts``: a hash of each prompt by name."""

    type: Literal["run_started"] = "run_started"
    schema_version: int = SCHEMA_VERSION
    run_id: str
    started_at: str
    config: Config
    scenarios: tuple[Scenario, ...]
    samples: tuple[SampleKey, ...]
    seed: int = 0
    versions: dict[str, str] = {}
    prompts: dict[str, str] = {}
    metrics: tuple[MetricSpec, ...] = ()
    judged: tuple[str, ...] = ()
    no_judge: bool = False
    command: tuple[str, ...] = ()


class SampleStarted(Value):
    type: Literal["sample_started"] = "sample_started"
    key: SampleKey


class TurnFinished(Value):
    """Turn ``index`` (from 0) is whole."""

    type: Literal["turn_finished"] = "turn_finished"
    key: SampleKey
    index: int
    turn: Turn


class Scored(Value):
    """What a scorer said; ``turn`` is ``None`` for the scope "conversation"."""

    type: Literal["scored"] = "scored"
    key: SampleKey
    turn: int | None
    items: tuple[ScoreItem, ...]


class SampleFinished(Value):
    """After this nothing more is said of the sample. ``unfinished`` is the turn that broke."""

    type: Literal["sample_finished"] = "sample_finished"
    key: SampleKey
    stop: Stop
    unfinished: Turn | None = None


class Notice(Value):
    """Something to tell that is no result: a retry, a switched-off sink, a parameter dropped."""

    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"] = "info"
    text: str
    key: SampleKey | None = None


class IssuesFound(Value):
    """The findings of the whole run, grouped by root cause. ``usage``: of the grouping model;
    ``failures``: where it broke, and code grouped alone. A later event replaces an earlier one."""

    type: Literal["issues_found"] = "issues_found"
    issues: tuple[Issue, ...]
    usage: Usage = Usage()
    failures: tuple[ScoreFailure, ...] = ()


class RunFinished(Value):
    """The last event. ``outcome``: every sample was run, or why not."""

    type: Literal["run_finished"] = "run_finished"
    finished_at: str
    outcome: Literal["complete", "interrupted", "fail_fast", "budget"] = "complete"
    elapsed_s: float = 0.0
    extra: dict[str, Any] = {}


Event: TypeAlias = Annotated[
    RunStarted | SampleStarted | TurnFinished | Scored | SampleFinished | Notice | IssuesFound | RunFinished,
    Field(discriminator="type"),
]
