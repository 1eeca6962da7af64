"""The events of a run. A journal contains one event per line, and all reports are computed from the events
(event sourcing)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from agenteval.core.config import BudgetConfig, Config
from agenteval.core.plan import Plan, ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Issue, ScoreFailure, ScoreItem
from agenteval.core.trajectory import CallEvidence, Stop, Turn, Usage
from agenteval.core.value import Value, compact, copy_with
from agenteval.core.world_state import ReferenceState, StateChanges

SCHEMA_VERSION = 9
"""The version of the journal format. It is increased whenever the meaning or position of a field changes. A
journal with a different version is rejected."""


class Baseline(Value):
    """The baseline run that this run is compared with."""

    run_id: str
    outcomes: dict[str, dict[str, tuple[bool | None, ...]]]
    """The outcome of each epoch, keyed by agent and scenario: True if the epoch succeeded, or ``None`` if
    unknown. Only scenarios that are the same in both runs are listed."""
    changed: dict[str, dict[str, str]] = {}
    """The differences between the runs, keyed by agent and scenario. A scenario that is in neither mapping is
    new."""
    gone: tuple[str, ...] = ()
    """Scenarios that this run no longer contains."""
    reached: tuple[str, ...] = ()
    """Unchanged scenarios whose goal was reached at least once."""
    effort: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {}
    """The known tokens, latency and similar numbers of each conversation, keyed by agent and scenario."""


class MergedShards(Value):
    """The shards from which a run was merged."""

    count: int
    """The number of shards of the run."""
    runs: dict[int, str]
    """The id of each shard's run, keyed by the number of the shard (from 1)."""
    incomplete: dict[int, str] = {}
    """The shards that are missing or did not finish, each with a description of why, keyed by number."""


class RunStarted(Value):
    """The first event of a run."""

    type: Literal["run_started"] = "run_started"
    schema_version: int = SCHEMA_VERSION
    run_id: str
    started_at: str
    """The start time, in ISO 8601 format (UTC)."""
    commit: str = ""
    """The commit of the repository, or an empty string if unknown."""
    dirty: bool = False
    """True if files had been changed since the commit."""
    no_baseline: str = ""
    """The reason why ``--baseline merge-base`` found no baseline."""
    config: Config
    """The configuration as written, without secrets."""
    plan: Plan
    """The rules and settings that apply in this run."""
    scenarios: tuple[Annotated[Scenario, AfterValidator(compact)], ...]
    versions: dict[str, str] = {}
    prompts: dict[str, str] = {}
    """A hash of each prompt, keyed by name."""
    baseline: Baseline | None = None
    """The run specified by ``--baseline``."""
    command: tuple[str, ...] = ()
    request: dict[str, Any] = {}
    """The command line's request: all information that is needed to prepare a resumed run in the same way.
    Empty if the run cannot be resumed."""
    sources: dict[str, str] = {}
    """A hash of each file that the run depends on, other than scenarios and prompts."""
    merged: Annotated[MergedShards | None, Field(exclude_if=lambda merged: merged is None)] = None
    """The shards of which the run consists, or ``None`` for a run that was played as a whole."""

    @property
    def is_selection(self) -> bool:
        """True if the command line selected only some of the scenarios, or a shard of them, so that other
        scenarios were not requested. Choosing an agent for all scenarios is not a selection."""
        asked = self.request
        filters = {**(asked.get("filters") or {}), "agent": None}
        is_part = self.plan.shard is not None or bool(self.plan.needs_model)
        return bool(is_part or asked.get("paths") or asked.get("last_failed") or any(filters.values()))


class RunResumed(Value):
    """Reports that an interrupted run was resumed. Earlier events about the end of the run and its issues are
    superseded. Earlier events about a sample apply until the sample starts again."""

    type: Literal["run_resumed"] = "run_resumed"
    at: str
    budget: BudgetConfig = BudgetConfig()
    """The budget of the resumed run."""


# Defaults are not written, because a large suite has thousands of these.


def _is_none(value: object) -> bool:
    return value is None


def _is_false(value: int) -> bool:
    return not value


def _is_zero(value: int) -> bool:
    return not value


def _is_empty(value: dict[str, Any] | str) -> bool:
    return not value


class SampleStarted(Value):
    """Reports that a sample started, or started again because the run was resumed or the conversation was
    lost (``SampleFinished.again``)."""

    type: Literal["sample_started"] = "sample_started"
    key: SampleKey
    rules: Annotated[ScenarioRules | None, Field(exclude_if=_is_none)] = None
    """The rules for the sample, or ``None`` if the plan's ``default`` applies."""
    scenario: Annotated[Scenario | None, Field(exclude_if=_is_none)] = None
    """The scenario of a recorded conversation, which is known only after the conversation has been read."""


class ReferenceStatesMade(Value):
    """Reports the states with which the conversation's state is compared (``same_as``), if only the author's
    code can make them. They were made before the conversation."""

    type: Literal["reference_states_made"] = "reference_states_made"
    key: SampleKey
    states: tuple[ReferenceState, ...]


class TurnFinished(Value):
    """Reports that turn ``index`` (from 0) is complete."""

    type: Literal["turn_finished"] = "turn_finished"
    key: SampleKey
    index: int
    turn: Turn


class Scored(Value):
    """The result of a scorer."""

    type: Literal["scored"] = "scored"
    key: SampleKey
    turn: int | None
    """The turn (from 0), or ``None`` if the scope is "conversation"."""
    items: tuple[ScoreItem, ...]


class ModelAsked(Value):
    """A call to a judge or to the grouping model. Reports ignore this event.

    These events are stored in a separate file for people who inspect a conversation. The journal contains
    only the answers that may be reused when the run is judged again."""

    type: Literal["asked"] = "asked"
    key: SampleKey | None = None
    """The key of the sample, or ``None`` for a call to the grouping model."""
    role: str
    metric: str
    turn: int | None = None
    """The turn (from 0), or ``None`` for the entire conversation."""
    hash: Annotated[str, Field(exclude_if=_is_empty)] = ""
    """A hash of everything that may affect the answer: model, prompts, record, form of the answer, epoch."""
    system: Annotated[str, Field(exclude_if=_is_empty)] = ""
    prompt: Annotated[str, Field(exclude_if=_is_empty)] = ""
    record: Annotated[int, Field(exclude_if=_is_false)] = 0
    """The length, in characters, of the beginning of ``prompt`` that other requests share."""
    model: str = ""
    """The model that was called."""
    scripted: bool = False
    answer: dict[str, Any] | None = None
    error: Annotated[str, Field(exclude_if=_is_empty)] = ""
    """The reason why the call failed, or an empty string if it succeeded."""

    @property
    def for_journal(self) -> ModelAsked | None:
        """The event without its texts, or ``None`` if the answer may not be reused."""
        if self.answer is None or not self.hash:
            return None
        return copy_with(self, {"system": "", "prompt": "", "record": 0})


class Reconsidered(Value):
    """Reports that a judge's result for a finished sample was reviewed after all conversations in its
    scenario had ended. ``items`` replaces the results for ``metric`` for the entire conversation."""

    type: Literal["reconsidered"] = "reconsidered"
    key: SampleKey
    metric: str
    items: tuple[ScoreItem, ...]

    @property
    def is_over(self) -> bool:
        """True if a resumed run has nothing left to do for the sample. If a judge was not called, the sample
        is repeated."""
        return not any(isinstance(item, ScoreFailure) and item.refused for item in self.items)


class SampleFinished(Value):
    """The last event of a sample, unless a ``Reconsidered`` event follows."""

    type: Literal["sample_finished"] = "sample_finished"
    key: SampleKey
    stop: Stop
    unfinished: Annotated[Turn | None, Field(exclude_if=_is_none)] = None
    """The turn that was interrupted by a failure."""
    state: Annotated[StateChanges | None, Field(exclude_if=_is_none)] = None
    """The tool world's state in the end (``Trajectory.end_state``)."""
    again: Annotated[bool, Field(exclude_if=_is_false)] = False
    """True if the conversation was lost and will be repeated; its results do not count."""
    refused: Annotated[bool, Field(exclude_if=_is_false)] = False
    """True if a judge was not called, because the budget was used up or the judge had failed on every
    call."""
    took_s: Annotated[float | None, Field(exclude_if=_is_none)] = None
    """The time from the start of the sample until its last judge finished, in seconds."""
    names: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=_is_empty)] = {}
    """Maps the fingerprint of each failure in this event to the fingerprint, or fingerprints in order, that
    it had before secrets from the environment were masked. Only fingerprints that differ are listed."""

    @property
    def is_over(self) -> bool:
        """True if a resumed run has nothing left to do for the sample. Otherwise, the sample is repeated."""
        return not (self.stop.is_cut_short or self.refused or self.again)


class Notice(Value):
    """A message that is not a result, such as a retry (backoff), a disabled sink, or a dropped parameter."""

    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"] = "info"
    text: str
    key: SampleKey | None = None


class CallsSeen(Value):
    """Reports the first turn in the run that revealed the visibility of an agent's tool calls."""

    type: Literal["calls_seen"] = "calls_seen"
    agent: str
    evidence: CallEvidence
    key: SampleKey | None = None
    """The conversation that contains this turn, or ``None`` if the evidence comes from an earlier run, part
    of which this run repeats."""


class IssuesFound(Value):
    """The findings of the entire run, grouped into issues by root cause. A later event replaces an earlier
    one."""

    type: Literal["issues_found"] = "issues_found"
    issues: tuple[Issue, ...]
    usage: Usage = Usage()
    """The token usage of the grouping model."""
    failures: tuple[ScoreFailure, ...] = ()
    """Failures of the grouping model, after which the findings were grouped by code alone."""
    not_asked: Annotated[int, Field(exclude_if=_is_zero)] = 0
    """The number of findings (the least severe) that did not fit into one request and were therefore grouped
    by code."""


class RunFinished(Value):
    """The last event of a run."""

    type: Literal["run_finished"] = "run_finished"
    finished_at: str
    outcome: Literal["complete", "interrupted", "fail_fast", "budget", "deadline"] = "complete"
    """``complete`` if every sample was run. Otherwise, the reason why some samples were not run."""
    elapsed_s: float = 0.0
    """The time since the run was started or resumed, in seconds."""
    unmet: dict[str, str] = {}
    """The locations of the scenarios that should have matched a recorded conversation but did not, keyed by
    scenario id."""
    extra: dict[str, Any] = {}


Event: TypeAlias = Annotated[
    RunStarted
    | RunResumed
    | SampleStarted
    | ReferenceStatesMade
    | TurnFinished
    | Scored
    | ModelAsked
    | SampleFinished
    | Reconsidered
    | Notice
    | CallsSeen
    | IssuesFound
    | RunFinished,
    Field(discriminator="type"),
]
