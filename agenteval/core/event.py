"""What a run tells while it runs. The journal is these, a line each; all reports fold over them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from agenteval.core.config import BudgetConfig, Config
from agenteval.core.plan import Plan, ScenarioRules
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Issue, ScoreFailure, ScoreItem
from agenteval.core.trajectory import CallEvidence, Stop, Turn, Usage
from agenteval.core.value import Value

SCHEMA_VERSION = 8
"""Of the journal. Raised when it says something else, or elsewhere; one of another version is refused."""


class Baseline(Value):
    """The run that this one is compared with: by agent and scenario, whether each epoch succeeded (``None``:
    not known), of the scenarios that are the same in both runs. ``changed``: by agent and scenario, what is
    not the same; what is in neither is new. ``gone``: scenarios that this run no longer has. ``reached``: of
    those that are the same, the ones whose goal was reached at least once. ``effort``: by agent and scenario,
    what each conversation took (tokens, latency …), as far as that is known."""

    run_id: str
    outcomes: dict[str, dict[str, tuple[bool | None, ...]]]
    changed: dict[str, dict[str, str]] = {}
    gone: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    effort: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {}


class RunStarted(Value):
    """The first event. ``config`` is what the file said, without secrets; ``plan`` what applies.
    ``started_at`` is ISO 8601 in UTC. ``prompts``: a hash of each prompt by name. ``baseline``: of
    ``--baseline``. ``request``: what the command line asked for, all that a resumed run needs to be prepared
    as this one was; empty where nothing can be resumed. ``sources``: a hash of each file that the run rests
    on beyond scenarios and prompts. ``commit``: of the repository, empty if it is not known; ``dirty``: files
    had changed since. ``no_baseline``: why ``--baseline merge-base`` found none."""

    type: Literal["run_started"] = "run_started"
    schema_version: int = SCHEMA_VERSION
    run_id: str
    started_at: str
    commit: str = ""
    dirty: bool = False
    no_baseline: str = ""
    config: Config
    plan: Plan
    scenarios: tuple[Scenario, ...]
    versions: dict[str, str] = {}
    prompts: dict[str, str] = {}
    baseline: Baseline | None = None
    command: tuple[str, ...] = ()
    request: dict[str, Any] = {}
    sources: dict[str, str] = {}

    @property
    def is_selection(self) -> bool:
        """Whether the command line chose some of the scenarios: what else there is was not asked for. That
        it chose an agent for all of them is no such choice."""
        asked = self.request
        filters = {**(asked.get("filters") or {}), "agent": None}
        return bool(
            self.plan.needs_model or asked.get("paths") or asked.get("last_failed") or any(filters.values())
        )


class RunResumed(Value):
    """A run that had been cut off goes on. What was said of its end, and of its issues, no longer holds; what
    was said of samples does, until they are started anew. ``budget``: as it is now."""

    type: Literal["run_resumed"] = "run_resumed"
    at: str
    budget: BudgetConfig = BudgetConfig()


# What is as it mostly is, is not written: in a large suite there are thousands of these.


def _is_none(value: object) -> bool:
    return value is None


def _is_false(value: int) -> bool:
    return not value


def _is_zero(value: int) -> bool:
    return not value


def _is_empty(value: dict[str, Any] | str) -> bool:
    return not value


class SampleStarted(Value):
    """The sample begins; or begins anew, when a run goes on, or when its conversation was lost
    (``SampleFinished.again``). ``scenario``: of a recorded conversation, which is known only when it has been
    read; ``rules``: what applies to it, where that is not the plan's ``default``."""

    type: Literal["sample_started"] = "sample_started"
    key: SampleKey
    rules: Annotated[ScenarioRules | None, Field(exclude_if=_is_none)] = None
    scenario: Annotated[Scenario | None, Field(exclude_if=_is_none)] = None


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


class ModelAsked(Value):
    """A judge, or the grouping (``key`` is ``None``), was asked by a model call, and answered, or failed to
    (``error``). No report is made of it. ``turn`` counts from 0, ``None``: the whole. ``model``: who answers.
    ``record``: with how many characters of the ``prompt`` other requests begin, too.

    A file of its own keeps this for people who look at one conversation. The journal keeps the answers that
    may be taken again, for who judges the run anew. ``hash``: of all that such an answer may depend on: the
    model, prompts, record, the answer's shape, epoch."""

    type: Literal["asked"] = "asked"
    key: SampleKey | None = None
    role: str
    metric: str
    turn: int | None = None
    hash: Annotated[str, Field(exclude_if=_is_empty)] = ""
    system: Annotated[str, Field(exclude_if=_is_empty)] = ""
    prompt: Annotated[str, Field(exclude_if=_is_empty)] = ""
    record: Annotated[int, Field(exclude_if=_is_false)] = 0
    model: str = ""
    scripted: bool = False
    answer: dict[str, Any] | None = None
    error: Annotated[str, Field(exclude_if=_is_empty)] = ""

    @property
    def for_journal(self) -> ModelAsked | None:
        """Without the texts; ``None``: an answer that nobody may take again."""
        if self.answer is None or not self.hash:
            return None
        return self.model_copy(update={"system": "", "prompt": "", "record": 0})


class Reconsidered(Value):
    """What a judge had said of a finished sample was looked at once more, when all conversations of its
    scenario were over. ``items`` take the place of what was said of the whole conversation for ``metric``."""

    type: Literal["reconsidered"] = "reconsidered"
    key: SampleKey
    metric: str
    items: tuple[ScoreItem, ...]

    @property
    def is_over(self) -> bool:
        """Whether a resumed run has nothing left to do for the sample: where a judge was not asked, it is
        held anew."""
        return not any(isinstance(item, ScoreFailure) and item.refused for item in self.items)


class SampleFinished(Value):
    """After this nothing more is said of the sample, unless it is ``Reconsidered``. ``unfinished`` is the
    turn that broke. ``again``: its conversation was lost, and is played once more: what was said of it does
    not count. ``refused``: a judge of it was not asked: the budget had no room, or it had failed on
    every call. ``took_s``: from its start to its last judge. ``names``: by the fingerprint that a failure
    has as it is told here, those that it had before secrets of the environment were masked, in order; only
    where they differ."""

    type: Literal["sample_finished"] = "sample_finished"
    key: SampleKey
    stop: Stop
    unfinished: Annotated[Turn | None, Field(exclude_if=_is_none)] = None
    again: Annotated[bool, Field(exclude_if=_is_false)] = False
    refused: Annotated[bool, Field(exclude_if=_is_false)] = False
    took_s: Annotated[float | None, Field(exclude_if=_is_none)] = None
    names: Annotated[dict[str, tuple[str, ...]], Field(exclude_if=_is_empty)] = {}

    @property
    def is_over(self) -> bool:
        """Whether a resumed run has nothing left to do for it: else it is held anew."""
        return not (self.stop.is_cut_short or self.refused or self.again)


class Notice(Value):
    """Something to tell that is not a result: a retry, a switched-off sink, a parameter dropped."""

    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"] = "info"
    text: str
    key: SampleKey | None = None


class CallsSeen(Value):
    """A turn of an agent showed, for the first time in the run, that its tool calls reach agenteval in this
    way. ``key``: of the conversation that showed it; ``None``: an earlier run, of which this one plays a part
    again."""

    type: Literal["calls_seen"] = "calls_seen"
    agent: str
    evidence: CallEvidence
    key: SampleKey | None = None


class IssuesFound(Value):
    """The findings of the whole run, grouped by root cause. ``usage``: of the grouping model;
    ``failures``: where it broke, and code grouped alone; ``not_asked``: how many findings, the least severe,
    were more than one request holds, so that code grouped them. A later event replaces an earlier one."""

    type: Literal["issues_found"] = "issues_found"
    issues: tuple[Issue, ...]
    usage: Usage = Usage()
    failures: tuple[ScoreFailure, ...] = ()
    not_asked: Annotated[int, Field(exclude_if=_is_zero)] = 0


class RunFinished(Value):
    """The last event. ``outcome``: every sample was run, or why not. ``elapsed_s``: since the run began, or
    was resumed. ``unmet``: where each scenario stands, by id, that was to be met by a recorded conversation
    and was not."""

    type: Literal["run_finished"] = "run_finished"
    finished_at: str
    outcome: Literal["complete", "interrupted", "fail_fast", "budget", "deadline"] = "complete"
    elapsed_s: float = 0.0
    unmet: dict[str, str] = {}
    extra: dict[str, Any] = {}


Event: TypeAlias = Annotated[
    RunStarted
    | RunResumed
    | SampleStarted
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
