"""The shape of ``results.json``: the public format. The file and its JSON Schema are both made from it.

A field is read from the attribute of its name of the value that it shows, or from the one that its alias
names; ``Shape.from_value`` is given what is found elsewhere. A field may be added without a new
``schema_version``; a removed, renamed or newly read one needs it. Fields with a default here are left out
of the file where they do not apply. Measured numbers may be null: an agent may report what is no number,
and JSON cannot write that.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import not_
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from agenteval.core.score import References as CheckedReferences
from agenteval.core.score import Score

RESULTS_VERSION = 4

VerdictText = Literal["passed", "failed", "inconclusive"]
RunVerdictText = Literal["passed", "failed", "inconclusive", "reported"]
"""``reported``: of a log without scenarios; nothing was to pass."""
SeverityText = Literal["low", "medium", "high", "critical"]

T = TypeVar("T")
IfKnown: TypeAlias = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""Left out where there is none."""
IfAny: TypeAlias = Annotated[T | None, Field(exclude_if=not_)]
"""Left out where it is empty or false, too."""


class Shape(BaseModel):
    """An object of the file. We write no field by accident; a reader must let new ones pass."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        protected_namespaces=(),
        json_schema_extra=lambda schema: (schema.pop("additionalProperties", None), None)[1],
    )

    @classmethod
    def from_value(cls, value: object, **more: Any) -> Self:
        """Read each field from ``value``; ``more``: those that it does not have, or not as they are shown."""
        names = cls.model_fields.keys() - more.keys()
        return cls.model_validate(
            {name: getattr(value, name) for name in names if hasattr(value, name)} | more
        )


class UsageShape(Shape):
    """Model calls and tokens; ``cost`` is null while a price is unknown, ``estimated`` true if any
    part was not reported by a provider; ``cached_calls`` were answered from the cache and are not in
    ``calls``. ``unsplit``: of some tokens, which stand in ``output_tokens``, the sum alone was reported."""

    calls: int
    cached_calls: int = 0
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    estimated: bool
    cost: float | None
    unsplit: bool = False


def _those_given(references: CheckedReferences) -> dict[str, Any]:
    return {name: value for name, value in references if value not in (None, "")}


References: TypeAlias = Annotated[dict[str, int | str], BeforeValidator(_those_given)]


class VoteShape(Shape):
    """One of several answers of a judge to one question. ``verdict``: a number or a label, null for none;
    ``against``: whether it would have failed something. ``references`` as in a score."""

    verdict: float | str | None
    against: bool
    reason: str
    evidence: str
    references: References


class SecondOpinionsShape(Shape):
    """How judges were asked again. ``corroborate``: whether they were at all. ``doubted``: verdicts that
    would have failed something, and goals that were ruled out or withdrawn; ``upheld`` of them counted.
    ``sampled``: clean ones, asked again by lot, in ``differed`` of which the second answer would have failed
    something. ``usage`` is that of the calls beyond the first, ``share`` its share of the judges' tokens."""

    corroborate: bool
    doubted: int
    upheld: int
    sampled: int
    differed: int
    usage: UsageShape
    share: float


class CheckShape(Shape):
    """A rule of the scenario; ``passed`` is null when it could not be decided. ``by``, ``scripted`` and
    ``calibrated`` are there where a judge decided (``criteria``), as for a score, and so are ``votes``;
    ``arose`` where it passed since its condition never did. ``fingerprints`` where it does not hold: the
    failures by which the next run knows it again, and ``covers``: what each of them covers."""

    name: str
    passed: bool | None
    detail: str
    where: str
    by: IfAny[str] = None
    scripted: IfKnown[bool] = None
    calibrated: IfKnown[bool] = None
    arose: IfKnown[bool] = None
    votes: IfAny[list[VoteShape]] = None
    fingerprints: IfAny[list[str]] = None
    covers: IfAny[list[str]] = None


class ScoreShape(Shape):
    """A judgement: a number or a label; of a goal both, its value null where the outcome counts neither way.
    ``ok``: whether the label is no failure (null for a number, a goal, and a label that decides nothing).
    ``by`` names the judge's model; ``scripted``: it was no language model; ``calibrated``: whether that
    judge was compared with people's judgement. ``references``: what it refers to beside its evidence (call,
    other_call, parameter, tool, source, rule, fact, difference), checked by code; ``votes``: all answers,
    where the judge was asked more than once."""

    value: float | None
    label: str | None
    ok: bool | None
    reason: str
    evidence: str
    by: str
    scripted: bool
    calibrated: bool
    references: IfAny[References] = None
    votes: IfAny[list[VoteShape]] = None


def _by_metric(scores: Iterable[Score]) -> dict[str, Score]:
    return {score.metric: score for score in scores}


Scores: TypeAlias = Annotated[dict[str, ScoreShape], BeforeValidator(_by_metric)]


class ScoreFailureShape(Shape):
    """A judge that failed: no score, and not the agent's fault. ``raw`` is what it said. ``not_asked``: the
    budget was used up, or it had failed on every call before."""

    metric: str
    message: str
    raw: str
    not_asked: bool = Field(validation_alias="refused")


class FindingShape(Shape):
    """One failing label. ``detector`` is a check in code or ``judge``; ``turn`` and ``call`` count
    from 0 within the conversation, null for the whole of it. ``issue`` is the id of the issue that it
    belongs to, null where nothing was grouped. ``fingerprint``: the same for the same failure in every run;
    ``covers``: what it covers, all that an entry of the accept list would accept.
    ``criterion``: the sentence that did not hold, where one was judged. ``span``: where ``evidence`` begins
    and ends in the answer of that turn, if it is quoted from there. ``also``: who else found it, and what
    they said. ``scripted``: no language model found it. ``kind``: of the rule of the policy that was
    broken."""

    detector: str
    metric: str
    label: str
    severity: SeverityText
    turn: int | None
    call: int | None
    evidence: str
    explanation: str
    issue: str | None
    fingerprint: str
    covers: str
    scripted: bool
    kind: IfKnown[Literal["permission", "disclosure", "style"]] = None
    criterion: IfAny[str] = None
    span: IfKnown[tuple[int, int]] = None
    also: IfAny[list[str]] = None
    references: IfAny[References] = None


class IssueExampleShape(Shape):
    """A finding of an issue, to be shown. ``turn`` and ``call`` as in a finding."""

    scenario: str
    agent: str
    epoch: int
    variant: str
    turn: int | None
    call: int | None
    evidence: str


class IssueShape(Shape):
    """A root cause: findings of one agent that belong together. Each finding of a run is in one issue.

    ``severity`` is the one that counts, ``proposed_severity`` a model's opinion, and so is
    ``not_the_agents_fault``: why it holds that nothing of the agent need change, or empty. ``findings``,
    ``samples`` and ``scenarios`` count its occurrences over the whole run. ``by`` names the model that
    grouped it, empty where code did. ``scripted``: that model, or a judge behind it, was none."""

    id: str
    agent: str
    title: str
    explanation: str
    severity: SeverityText
    proposed_severity: SeverityText | None
    not_the_agents_fault: str
    labels: list[str]
    metrics: list[str]
    tools: list[str]
    findings: int
    samples: int
    scenarios: int
    fingerprints: list[str]
    examples: list[IssueExampleShape]
    by: str
    scripted: bool


class ToolCallShape(Shape):
    """A tool call. ``args`` is null when they could not be read: ``raw_args`` then holds what was
    sent. ``observed``: the agent ran the tool itself. ``error``: what the tool failed with, or that
    the agent did not wait for its result. ``agent``: which of a multi-agent system made it, where that is
    known."""

    name: str
    args: dict[str, Any] | None
    result: Any
    observed: bool
    raw_args: str | None = None
    error: IfKnown[str] = None
    agent: IfAny[str] = None
    attempted: IfAny[bool] = None
    """True for a call that was denied before any tool ran, or that waits for an approval; else absent."""


class TurnShape(Shape):
    """A user message and all that the agent did until its answer (``agent``). ``error`` is there on
    a turn that broke; the last three where a model played the user. ``user_fault``: what was wrong with
    its first attempt at this message (empty: nothing). ``agents``: who of a multi-agent system spoke, in
    order, where any is known; null for one that is not."""

    user: str
    agent: str
    tool_calls: list[ToolCallShape]
    steps: int
    latency_ms: float | None
    usage: UsageShape
    checks: list[CheckShape]
    scores: Scores
    score_failures: list[ScoreFailureShape]
    error: IfKnown[str] = None
    user_model: IfKnown[str] = None
    user_usage: IfKnown[UsageShape] = None
    user_fault: IfKnown[str] = None
    agents: IfAny[list[str | None]] = None
    unplaced: IfAny[list[str]] = None
    """What of the turn's record nobody could place: calls in it may be unseen. Absent if there is nothing."""


class UserReviewsShape(Shape):
    """How many conversations of simulated users were reviewed and in how many the user was at fault
    (``rate``, with its 95 % interval by Wilson): of those that failed, and of a tenth of the others, drawn by
    lot. ``not_in_scenario``: in how many nothing that is known of the user says whether it was."""

    reviewed: int
    at_fault: int
    rate: float
    low: float
    high: float
    failed: int
    failed_at_fault: int
    passed: int
    passed_at_fault: int
    not_in_scenario: int


class SimulatorShape(Shape):
    """The simulated user: how many messages it wrote, how many were refused as no user's (once or for
    good), in how many samples it was no user at all, and which models played it. ``reviews`` is there where
    a judge looked at it."""

    messages: int
    refused: int
    errored: int
    models: list[str]
    usage: UsageShape
    reviews: IfKnown[UserReviewsShape] = None


class UserReviewShape(Shape):
    """What a judge said of the user of one conversation: ``as it should``, ``hindered``, ``helped``, ``the
    scenario did not say`` or ``not clear``. ``recorded`` (else absent): of a log, whose user may have been a
    person. ``turn`` (from 0): where its fault lies; ``source``: what the evidence is at odds with;
    ``explains``: the conversation would have ended otherwise without it. ``failed``: it was reviewed since it
    had failed, else by lot."""

    label: str
    explains: bool
    turn: int | None
    failed: bool
    reason: str
    evidence: str
    source: str
    by: str
    scripted: bool
    recorded: IfAny[bool] = None


class ViolationShape(Shape):
    """A broken or undecided rule, and where it was written. ``epoch`` is null for a rule over all
    samples of the scenario, ``turn`` (from 0) for one over a whole conversation. ``fingerprints``: the
    failures of the sample that it tells of; ``covers``: what each of them covers."""

    name: str
    detail: str
    where: str
    verdict: VerdictText
    epoch: int | None
    turn: int | None
    fingerprints: list[str]
    covers: list[str]


class SampleShape(Shape):
    """One conversation. ``stop`` is null for one that never finished; ``reason`` says why it did not
    pass (empty if it did). ``checks``, ``scores`` and ``score_failures`` are those of the whole
    conversation; ``scripted``: whether a model's part in it was scripted. ``accepted`` is there where broken
    rules do not count, since the accept list knows their failures; ``simulator`` where a model played the
    user, ``user_review`` where a judge looked at it, the last three fields for test cases only."""

    epoch: int
    variant: str
    verdict: VerdictText
    fault: str | None
    reason: str
    stop: str | None
    steps: int
    latency_ms: float | None
    usage: UsageShape
    checks: list[CheckShape]
    scores: Scores
    score_failures: list[ScoreFailureShape]
    findings: list[FindingShape]
    turns: list[TurnShape]
    scripted: bool
    accepted: IfAny[list[ViolationShape]] = None
    simulator: IfKnown[SimulatorShape] = None
    user_review: IfKnown[UserReviewShape] = None
    tool_accuracy: float | None = None
    output_correct: bool | None = None
    robustness_pass: bool | None = None


class AggregateShape(Shape):
    """A mean or a rate over ``n`` values; ``missing`` could not be had. ``of_samples``: the mean of the means
    of each conversation. ``undecided``: by label, how many judgements count neither way, where there are any.
    """

    value: float | None
    n: int
    missing: int
    of_samples: float | None
    undecided: IfAny[dict[str, int]] = None


class SpreadShape(Shape):
    """Mean, median and 95th percentile (nearest rank) over ``n`` conversations."""

    mean: float | None
    p50: float | None
    p95: float | None
    n: int


class RepeatsShape(Shape):
    """Of ``planned`` epochs ``decided`` were; ``low`` and ``high``: the 95 % score interval of the rate."""

    successes: int
    decided: int
    planned: int
    rate: float | None
    low: float
    high: float
    stability: str


class ScenarioShape(Shape):
    """One scenario with one agent. ``where`` is the ``file:line`` that it was written at, ``row`` that of the
    data that it was made of (empty: none). ``issues``: those that occur in it."""

    id: str
    name: str
    agent: str
    category: str
    tags: list[str]
    where: str
    row: str = ""
    verdict: VerdictText
    violations: list[ViolationShape]
    aggregates: dict[str, AggregateShape]
    issues: list[IssueShape]
    statistics: RepeatsShape
    samples: list[SampleShape]


class AskedShape(Shape):
    """A judge was asked. ``turn`` counts from 0, null: the whole; ``answer``: what it said, null if it gave
    no answer that could be used (``error``)."""

    epoch: int
    variant: str
    role: str
    metric: str
    turn: int | None
    system: str
    prompt: str
    model: str
    scripted: bool
    answer: dict[str, Any] | None
    error: str


class Conversation(Shape):
    """What ``agenteval show --json`` prints: conversations of one scenario with one agent. ``run``: its id;
    ``asked``: with ``--judge``."""

    run: str
    scenario: ScenarioShape
    asked: IfKnown[list[AskedShape]] = None


class GateShape(Shape):
    """A rule that gated the run. ``scenario`` and ``agent`` are empty for one over the whole run, ``metric``
    for one that is no threshold; ``resolution``: what would decide one that is not decided."""

    name: str
    value: float | str | None
    bound: float | str
    basis: str
    where: str
    verdict: VerdictText
    scenario: str
    agent: str
    metric: str
    resolution: str


class DimensionShape(Shape):
    category: str
    samples: int
    rates: dict[str, AggregateShape]
    spreads: dict[str, SpreadShape]


class AcceptedShape(Shape):
    """An entry of the accept list. ``state``: accepted (met in ``samples`` samples, and fails none of them),
    expired (it counts again), or not met in this run."""

    fingerprint: str
    state: Literal["accepted", "expired", "not met"]
    samples: int
    owner: str
    reason: str
    expires: str
    scenario: str
    what: str
    where: str


class CaveatShape(Shape):
    """Something that did not gate, as the last line tells it: ``findings_high``, ``goals_missed``,
    ``goals_not_refused``, ``judges_failed``, ``samples_lost``, ``accepted``, ``replay``, ``not_judged``
    and so on, and of how many."""

    kind: str
    count: int
    text: str


class NoticeShape(Shape):
    """Something to tell that is no result. ``sample`` names the conversation, if it was one."""

    level: Literal["info", "warning", "error"]
    text: str
    sample: str | None


class LedgerLineShape(Shape):
    """What one role spent with one model; ``name`` is ``PROVIDER/MODEL``, or the name of an agent."""

    role: str
    name: str
    usage: UsageShape


class ComparedNumberShape(Shape):
    """What a conversation takes of an agent, and how many times as much as of the reference.
    ``reference_verdict``: more, less or indistinguishable."""

    name: str
    value: float
    reference: float
    ratio: float | None
    low: float | None
    high: float | None
    reference_verdict: Literal["more", "less", "indistinguishable"]


class ComparedAgentShape(Shape):
    """An agent beside the reference. ``success``: the mean rate over scenarios, ``change``: minus that of the
    reference; ``reference_verdict``: whether it succeeds more often."""

    agent: str
    scenarios: int
    epochs: int
    success: float | None
    reference: float | None
    change: float | None
    low: float
    high: float
    better_in: list[str]
    worse_in: list[str]
    epochs_to_decide: int | None
    numbers: list[ComparedNumberShape]
    reference_verdict: Literal["more", "less", "indistinguishable"]


class ReferenceComparisonShape(Shape):
    """The agents of the run beside the first one; all intervals hold together with ``confidence``."""

    reference: str
    comparisons: int
    confidence: float
    agents: list[ComparedAgentShape]


class QuotationShape(Shape):
    """Where something was found: file and line of the log, and the turn (from 0; null: the whole
    conversation)."""

    scenario: str = Field(validation_alias=AliasPath("key", "scenario"))
    where: str
    turn: int | None
    evidence: str
    explanation: str


class FailureRateShape(Shape):
    """A label and who found it (a detector, ``judge of METRIC``, ``check NAME``): in how many
    ``conversations`` ``of`` those of which it is known, with the ``rate`` and its 95 % interval by Wilson;
    ``unknown``: of how many more it is not known. ``severity`` is the worst, ``severities`` says how many
    conversations by the worst of each; null and empty for a check that does not hold. ``quotations``: of the
    first three conversations."""

    label: str
    found_by: str
    metric: str
    severity: SeverityText | None
    severities: dict[str, int]
    conversations: int
    of: int
    unknown: int
    rate: float
    low: float = Field(validation_alias=AliasPath("interval", "low"))
    high: float = Field(validation_alias=AliasPath("interval", "high"))
    quotations: list[QuotationShape]


class FailureRatesShape(Shape):
    """What goes wrong in a log without scenarios. ``conversations``: the records that could be read;
    ``undecided`` and ``not_fully_seen``: how many of these; ``by_severity``: by the worst finding."""

    records: int
    unreadable: list[str]
    conversations: int
    undecided: int
    not_fully_seen: int = Field(validation_alias="unplaced")
    by_severity: dict[str, int]
    rows: list[FailureRateShape]


class SummaryShape(Shape):
    """The verdict and what it rests on. ``scripted``: some reply was fixed, not a model's. ``dimensions`` is
    by agent, ``usage`` by role, ``ledger`` by role and model. ``issues`` are all of the run, the worst first;
    ``issue_failures`` tell where the model that groups them broke. ``simulator`` is null if no user was
    simulated, ``second_opinions`` if no language model judged, ``agents_compared`` if there is one agent.
    ``caveats``: what did not gate and a reader would want to know. ``ungated`` names what was judged and
    gates nothing; ``accepted``: what became of each entry of the accept list. ``failure_rates``: of a log
    without scenarios, else null."""

    verdict: RunVerdictText
    exit_code: int
    scripted: bool
    gates: list[GateShape]
    dimensions: dict[str, list[DimensionShape]]
    agents_compared: ReferenceComparisonShape | None
    statistics: dict[str, Any]
    usage: dict[str, UsageShape]
    ledger: list[LedgerLineShape]
    second_opinions: SecondOpinionsShape | None
    issues: list[IssueShape]
    issue_failures: list[ScoreFailureShape]
    simulator: SimulatorShape | None
    caveats: list[CaveatShape]
    failure_rates: FailureRatesShape | None
    ungated: list[str]
    author_errors: list[str]
    accepted: list[AcceptedShape]
    notices: list[NoticeShape]


class RunShape(Shape):
    """``complete``: everything planned was run. ``outcome`` and ``elapsed_s`` are null for a run that
    was cut off. ``prompts`` maps the name of a prompt to the hash of its content,
    ``prompts_overridden`` the path of a shipped one to the project's own file that was sent in its place.
    ``commit``: of the repository, empty if not known, ``dirty``: files had changed since.
    ``judged``: the metrics that were asked for; ``no_judge``: the run was told to ask no judge at all.
    ``calls_seen``: by agent, how much of its tool calls was seen (all, partly, unseen)."""

    id: str
    started_at: str
    commit: str
    dirty: bool
    elapsed_s: float | None
    complete: bool
    outcome: str | None
    seed: int
    versions: dict[str, str]
    config: dict[str, Any]
    prompts: dict[str, str]
    prompts_overridden: dict[str, str]
    judged: list[str]
    no_judge: bool
    command: list[str]
    calls_seen: dict[str, str]


class Results(Shape):
    """The results of a run of agenteval."""

    schema_version: Literal[4]
    run: RunShape
    summary: SummaryShape
    scenarios: list[ScenarioShape]
