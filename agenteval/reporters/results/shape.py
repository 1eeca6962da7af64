"""The shape of ``results.json``, which is a public format. The file and its JSON Schema are both made from
it.

A field is read from the attribute of the same name of the value that it shows, or from the one that its alias
names; ``Shape.from_value`` takes the values found elsewhere. A new field needs no new ``schema_version``; a
removed, renamed or redefined one does. Fields with a default are left out of the file if they do not apply.
Measured numbers may be null, because an agent may report NaN or infinity, which JSON cannot represent."""

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
"""A field that is left out if it is null."""
IfAny: TypeAlias = Annotated[T | None, Field(exclude_if=not_)]
"""A field that is left out if it is null, empty or false."""


class Shape(BaseModel):
    """An object of the file. Writing an unknown field is an error, but readers must accept new ones."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        protected_namespaces=(),
        json_schema_extra=lambda schema: (schema.pop("additionalProperties", None), None)[1],
    )

    @classmethod
    def from_value(cls, value: object, **more: Any) -> Self:
        """Read each field from ``value``. ``more`` holds the fields that it lacks or that are shown
        differently."""
        names = cls.model_fields.keys() - more.keys()
        return cls.model_validate(
            {name: getattr(value, name) for name in names if hasattr(value, name)} | more
        )


class UsageShape(Shape):
    """Model calls and tokens."""

    calls: int
    """The number of model calls, without those answered from the cache."""
    cached_calls: int = 0
    """The number of calls answered from the cache."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    estimated: bool
    """True if any part was not reported by a provider."""
    cost: float | None
    """The cost in US dollars; null if a price is not known."""
    unsplit: bool = False
    """True if only the sum was reported for some tokens; these are in ``output_tokens``."""


def _those_given(references: CheckedReferences) -> dict[str, Any]:
    return {name: value for name, value in references if value not in (None, "")}


References: TypeAlias = Annotated[dict[str, int | str], BeforeValidator(_those_given)]


class VoteShape(Shape):
    """One of several answers of a judge to one question."""

    verdict: float | str | None
    """A number or a label; null for none."""
    against: bool
    """True if the answer would have failed something."""
    reason: str
    evidence: str
    references: References
    """The same as in a score."""


class SecondOpinionsShape(Shape):
    """Statistics of judges that were asked again."""

    corroborate: bool
    """True if judges are asked again at all."""
    doubted: int
    """The number of verdicts that would have failed something, and of goals that were ruled out or withdrawn.
    """
    upheld: int
    """The number of these that counted in the end."""
    sampled: int
    """The number of clean verdicts drawn at random to be asked again."""
    differed: int
    """The number of these whose second answer would have failed something."""
    usage: UsageShape
    """The usage of the calls beyond the first ones."""
    share: float
    """The share of these calls in the judges' tokens."""


class CheckShape(Shape):
    """A rule of the scenario."""

    name: str
    passed: bool | None
    """Null if the rule could not be decided."""
    detail: str
    where: str
    by: IfAny[str] = None
    """The judge's model, for a rule that a judge decides (``criteria``)."""
    scripted: IfKnown[bool] = None
    """True if no language model judged; only for a rule that a judge decides."""
    calibrated: IfKnown[bool] = None
    """True if the judge was compared with people's judgement; only for a rule that a judge decides."""
    arose: IfKnown[bool] = None
    """False if the rule passed because its condition never arose; otherwise absent."""
    votes: IfAny[list[VoteShape]] = None
    """All answers, if the judge was asked more than once."""
    fingerprints: IfAny[list[str]] = None
    """The failures that identify a broken rule in the next run."""
    covers: IfAny[list[str]] = None
    """What each of the fingerprints covers."""


class ScoreShape(Shape):
    """A judgement: a number or a label; for a goal both."""

    value: float | None
    """The number; null for a label, and for a goal whose outcome counts neither way."""
    label: str | None
    ok: bool | None
    """True if the label is not a failure; null for a number, a goal, and a label that decides nothing."""
    reason: str
    evidence: str
    by: str
    """The judge's model."""
    scripted: bool
    """True if the judge was not a language model."""
    calibrated: bool
    """True if the judge was compared with people's judgement."""
    references: IfAny[References] = None
    """What the judgement refers to in addition to its evidence (call, other_call, parameter, tool, source,
    rule, fact, difference), verified by code."""
    votes: IfAny[list[VoteShape]] = None
    """All answers, if the judge was asked more than once."""


def _by_metric(scores: Iterable[Score]) -> dict[str, Score]:
    return {score.metric: score for score in scores}


Scores: TypeAlias = Annotated[dict[str, ScoreShape], BeforeValidator(_by_metric)]


class ScoreFailureShape(Shape):
    """A judge that failed. There is no score, and this is not the agent's fault."""

    metric: str
    message: str
    raw: str
    """The judge's reply."""
    not_asked: bool = Field(validation_alias="refused")
    """True if the judge was not asked because the budget was used up or every earlier call had failed."""


class FindingShape(Shape):
    """A failing label."""

    detector: str
    """The name of the check in code, or ``judge``."""
    metric: str
    label: str
    severity: SeverityText
    turn: int | None
    """The turn, counted from 0; null for the whole conversation."""
    call: int | None
    """The tool call, counted from 0 within the conversation; null for none."""
    evidence: str
    explanation: str
    issue: str | None
    """The id of the issue that contains the finding; null if findings were not grouped."""
    fingerprint: str
    """The identity of the failure, the same in every run."""
    covers: str
    """What the fingerprint covers, which is all that an entry of the accept list would accept."""
    scripted: bool
    """True if no language model found it."""
    kind: IfKnown[Literal["permission", "disclosure", "style"]] = None
    """The kind of the policy rule that was broken."""
    criterion: IfAny[str] = None
    """The sentence that did not hold, if a criterion was judged."""
    span: IfKnown[tuple[int, int]] = None
    """The start and end of ``evidence`` in the answer of the turn, if it is quoted from there."""
    also: IfAny[list[str]] = None
    """The others that found the same, with their explanations."""
    references: IfAny[References] = None


class IssueExampleShape(Shape):
    """A finding of an issue, as an example."""

    scenario: str
    agent: str
    epoch: int
    variant: str
    turn: int | None
    """The same as in a finding."""
    call: int | None
    """The same as in a finding."""
    evidence: str


class IssueShape(Shape):
    """A root cause: findings of one agent that belong together. Each finding of a run is in exactly one
    issue."""

    id: str
    agent: str
    title: str
    explanation: str
    severity: SeverityText
    """The severity that counts."""
    proposed_severity: SeverityText | None
    """The severity that a model proposed, as an opinion."""
    not_the_agents_fault: str
    """The model's reason why nothing about the agent needs to change, as an opinion; empty if there is none.
    """
    labels: list[str]
    metrics: list[str]
    tools: list[str]
    findings: int
    """The number of findings in the whole run."""
    samples: int
    """The number of samples with such a finding."""
    scenarios: int
    """The number of scenarios with such a finding."""
    fingerprints: list[str]
    examples: list[IssueExampleShape]
    by: str
    """The model that grouped the findings; empty if code did."""
    scripted: bool
    """True if that model, or a judge behind a finding, was not a language model."""


class ToolCallShape(Shape):
    """A tool call."""

    name: str
    args: dict[str, Any] | None
    """The arguments; null if they could not be parsed."""
    result: Any
    observed: bool
    """True if the agent ran the tool itself."""
    raw_args: str | None = None
    """The arguments as they were sent, if they could not be parsed."""
    error: IfKnown[str] = None
    """The tool's error, or a note that the agent did not wait for the result."""
    agent: IfAny[str] = None
    """The agent of a multi-agent system that made the call, if it is known."""
    attempted: IfAny[bool] = None
    """True for a call that was denied before any tool ran, or that waits for an approval; otherwise absent.
    """


class TurnShape(Shape):
    """A user message and everything that the agent did until its answer."""

    user: str
    agent: str
    """The agent's answer."""
    tool_calls: list[ToolCallShape]
    steps: int
    latency_ms: float | None
    usage: UsageShape
    checks: list[CheckShape]
    scores: Scores
    score_failures: list[ScoreFailureShape]
    error: IfKnown[str] = None
    """The error, if the turn failed."""
    user_model: IfKnown[str] = None
    """The model that wrote the user's message, if the user was simulated."""
    user_usage: IfKnown[UsageShape] = None
    """The usage of that model, if the user was simulated."""
    user_fault: IfKnown[str] = None
    """What was wrong with the first attempt at the message, if the user was simulated; empty for nothing."""
    agents: IfAny[list[str | None]] = None
    """The agents of a multi-agent system that spoke, in order, if any is known; null for an unknown one."""
    unplaced: IfAny[list[str]] = None
    """The parts of the turn's record that no reader could place, so that calls in them may be unseen. Absent
    if there are none."""


class UserReviewsShape(Shape):
    """Statistics of reviewed conversations with a simulated user: those that failed, and a tenth of the
    others, drawn at random."""

    reviewed: int
    at_fault: int
    """The number of conversations in which the user was at fault."""
    rate: float
    """The share of conversations in which the user was at fault."""
    low: float
    """The lower end of the 95 % Wilson interval of the rate."""
    high: float
    """The upper end of the 95 % Wilson interval of the rate."""
    failed: int
    failed_at_fault: int
    passed: int
    passed_at_fault: int
    not_in_scenario: int
    """The number of conversations in which the facts known about the user do not decide whether it was at
    fault."""


class SimulatorShape(Shape):
    """The figures of the simulated user."""

    messages: int
    """The number of messages."""
    refused: int
    """The number of messages that were refused as not a user's, whether or not a second attempt succeeded."""
    errored: int
    """The number of samples that ended because the model did not act as a user."""
    models: list[str]
    """The models that played the user."""
    usage: UsageShape
    reviews: IfKnown[UserReviewsShape] = None
    """The statistics of judges' reviews, if there are any."""


class UserReviewShape(Shape):
    """A judge's review of the user in one conversation."""

    label: str
    """One of ``as it should``, ``hindered``, ``helped``, ``the scenario did not say`` and ``not clear``."""
    explains: bool
    """True if the conversation would have ended differently without the fault."""
    turn: int | None
    """The turn of the fault, counted from 0."""
    failed: bool
    """True if the conversation was reviewed because it failed; otherwise it was drawn at random."""
    reason: str
    evidence: str
    source: str
    """The text that the evidence contradicts."""
    by: str
    scripted: bool
    recorded: IfAny[bool] = None
    """True for a conversation from a log, whose user may have been a person; otherwise absent."""


class ViolationShape(Shape):
    """A rule that is broken or undecided."""

    name: str
    detail: str
    where: str
    """The place where the rule is written."""
    verdict: VerdictText
    epoch: int | None
    """The epoch; null for a rule over all samples of the scenario."""
    turn: int | None
    """The turn, counted from 0; null for a rule over a whole conversation."""
    fingerprints: list[str]
    """The failures of the sample that the violation reports."""
    covers: list[str]
    """What each of the fingerprints covers."""


class SampleShape(Shape):
    """One conversation."""

    epoch: int
    variant: str
    verdict: VerdictText
    fault: str | None
    reason: str
    """The reason why the sample did not pass; empty if it passed."""
    stop: str | None
    """The reason why the conversation ended; null if it never finished."""
    steps: int
    latency_ms: float | None
    usage: UsageShape
    checks: list[CheckShape]
    """The checks of the whole conversation."""
    scores: Scores
    """The scores of the whole conversation."""
    score_failures: list[ScoreFailureShape]
    """The judges that failed on the whole conversation."""
    findings: list[FindingShape]
    turns: list[TurnShape]
    scripted: bool
    """True if the part of a model in the conversation was scripted."""
    accepted: IfAny[list[ViolationShape]] = None
    """The broken rules that do not count because the accept list contains their failures."""
    simulator: IfKnown[SimulatorShape] = None
    """The figures of the simulated user, if a model played the user."""
    user_review: IfKnown[UserReviewShape] = None
    """The review of the user, if a judge made one."""
    tool_accuracy: float | None = None
    """Only for test cases."""
    output_correct: bool | None = None
    """Only for test cases."""
    robustness_pass: bool | None = None
    """Only for test cases."""


class AggregateShape(Shape):
    """A mean or a rate over several values."""

    value: float | None
    n: int
    """The number of values."""
    missing: int
    """The number of values that are missing."""
    of_samples: float | None
    """The mean of the means of each conversation."""
    undecided: IfAny[dict[str, int]] = None
    """The number of judgements that count neither way, by label, if there are any."""


class SpreadShape(Shape):
    """Mean, median and 95th percentile (nearest rank) over ``n`` conversations."""

    mean: float | None
    p50: float | None
    p95: float | None
    n: int


class RepeatsShape(Shape):
    """The statistics of a scenario's epochs."""

    successes: int
    decided: int
    """The number of the planned epochs that were decided."""
    planned: int
    rate: float | None
    low: float
    """The lower end of the 95 % score interval of the rate."""
    high: float
    """The upper end of the 95 % score interval of the rate."""
    stability: str


class ScenarioShape(Shape):
    """One scenario with one agent."""

    id: str
    name: str
    agent: str
    category: str
    tags: list[str]
    where: str
    """The place where the scenario is written, as ``file:line``."""
    row: str = ""
    """The place of the data row that the scenario was made from; empty for none."""
    verdict: VerdictText
    violations: list[ViolationShape]
    aggregates: dict[str, AggregateShape]
    issues: list[IssueShape]
    """The issues that occur in the scenario."""
    statistics: RepeatsShape
    samples: list[SampleShape]


class AskedShape(Shape):
    """A question to a judge."""

    epoch: int
    variant: str
    role: str
    metric: str
    turn: int | None
    """The turn, counted from 0; null for the whole conversation."""
    system: str
    prompt: str
    model: str
    scripted: bool
    answer: dict[str, Any] | None
    """The judge's answer; null if there was no usable one."""
    error: str
    """The reason why there is no usable answer."""


class ConversationShape(Shape):
    """The output of ``agenteval show --json``: conversations of one scenario with one agent."""

    run: str
    """The id of the run."""
    scenario: ScenarioShape
    asked: IfKnown[list[AskedShape]] = None
    """The questions to judges, with ``--judge``."""


class GateShape(Shape):
    """A rule that gated the run."""

    name: str
    value: float | str | None
    bound: float | str
    basis: str
    where: str
    verdict: VerdictText
    scenario: str
    """The scenario; empty for a gate over the whole run."""
    agent: str
    """The agent; empty for a gate over the whole run."""
    metric: str
    """The metric of a threshold; empty for another gate."""
    resolution: str
    """The change that would decide an undecided gate."""


class DimensionShape(Shape):
    category: str
    samples: int
    rates: dict[str, AggregateShape]
    spreads: dict[str, SpreadShape]


class AcceptedShape(Shape):
    """An entry of the accept list."""

    fingerprint: str
    state: Literal["accepted", "expired", "not met"]
    """accepted: the failure was met and fails no sample; expired: it counts again; not met: it did not occur
    in this run."""
    samples: int
    """The number of samples with the failure."""
    owner: str
    reason: str
    expires: str
    scenario: str
    what: str
    where: str


class CaveatShape(Shape):
    """A fact that did not gate, as the last line reports it."""

    kind: str
    """One of ``findings_high``, ``goals_missed``, ``goals_not_refused``, ``judges_failed``,
    ``samples_errored``, ``accepted``, ``replay``, ``not_judged`` and so on."""
    count: int
    """The number of occurrences."""
    text: str


class NoticeShape(Shape):
    """A message about the run that is not a result."""

    level: Literal["info", "warning", "error"]
    text: str
    sample: str | None
    """The conversation that the message is about, if there is one."""


class LedgerLineShape(Shape):
    """The usage of one model in one role."""

    role: str
    name: str
    """The model as ``PROVIDER/MODEL``, or the name of an agent."""
    usage: UsageShape


class ComparedNumberShape(Shape):
    """A measurement per conversation of an agent, compared with the reference."""

    name: str
    value: float
    reference: float
    ratio: float | None
    """The value divided by that of the reference."""
    low: float | None
    high: float | None
    reference_verdict: Literal["more", "less", "indistinguishable"]
    """Whether the value is more or less than that of the reference, or indistinguishable from it."""


class ComparedAgentShape(Shape):
    """An agent compared with the reference."""

    agent: str
    scenarios: int
    epochs: int
    success: float | None
    """The mean success rate over scenarios."""
    reference: float | None
    """The mean success rate of the reference."""
    change: float | None
    """The success rate minus that of the reference."""
    low: float
    high: float
    better_in: list[str]
    worse_in: list[str]
    epochs_to_decide: int | None
    numbers: list[ComparedNumberShape]
    reference_verdict: Literal["more", "less", "indistinguishable"]
    """Whether the agent succeeds more often than the reference, less often, or indistinguishably often."""


class ReferenceComparisonShape(Shape):
    """The agents of the run compared with the first one."""

    reference: str
    comparisons: int
    confidence: float
    """The confidence with which all intervals hold together."""
    agents: list[ComparedAgentShape]


class QuotationShape(Shape):
    """A quotation with the place where it was found."""

    scenario: str = Field(validation_alias=AliasPath("key", "scenario"))
    where: str
    """The file and line of the log."""
    turn: int | None
    """The turn, counted from 0; null for the whole conversation."""
    evidence: str
    explanation: str


class FailureRateShape(Shape):
    """The frequency of a label, for one finder."""

    label: str
    found_by: str
    """A detector, ``judge of METRIC`` or ``check NAME``."""
    metric: str
    severity: SeverityText | None
    """The worst severity; null for a check that does not hold."""
    severities: dict[str, int]
    """The number of conversations by the worst severity of each; empty for a check that does not hold."""
    conversations: int
    """The number of conversations with the label."""
    of: int
    """The number of conversations for which the answer is known."""
    unknown: int
    """The number of further conversations for which it is not known."""
    rate: float
    low: float = Field(validation_alias=AliasPath("interval", "low"))
    """The lower end of the 95 % Wilson interval of the rate."""
    high: float = Field(validation_alias=AliasPath("interval", "high"))
    """The upper end of the 95 % Wilson interval of the rate."""
    quotations: list[QuotationShape]
    """Quotations from the first three conversations."""


class FailureRatesShape(Shape):
    """What goes wrong in a log without scenarios."""

    records: int
    unreadable: list[str]
    """The places of the records that could not be read."""
    conversations: int
    """The number of records that could be read."""
    undecided: int
    """The number of conversations that were not decided."""
    not_fully_seen: int = Field(validation_alias="unplaced")
    """The number of conversations with parts that no reader could place."""
    by_severity: dict[str, int]
    """The number of conversations by their worst finding."""
    rows: list[FailureRateShape]


class SummaryShape(Shape):
    """The verdict and its basis."""

    verdict: RunVerdictText
    exit_code: int
    scripted: bool
    """True if any reply was fixed rather than a model's."""
    gates: list[GateShape]
    dimensions: dict[str, list[DimensionShape]]
    """The three dimensions, by agent."""
    agents_compared: ReferenceComparisonShape | None
    """The comparison of agents; null if there is only one."""
    statistics: dict[str, Any]
    usage: dict[str, UsageShape]
    """The usage by role."""
    ledger: list[LedgerLineShape]
    """The usage by role and model."""
    second_opinions: SecondOpinionsShape | None
    """The statistics of judges that were asked again; null if no language model judged."""
    issues: list[IssueShape]
    """All issues of the run, worst first."""
    issue_failures: list[ScoreFailureShape]
    """The failures of the model that groups issues."""
    simulator: SimulatorShape | None
    """The figures of the simulated user; null if no user was simulated."""
    caveats: list[CaveatShape]
    """The facts that did not gate and that a reader needs to know."""
    failure_rates: FailureRatesShape | None
    """The failure rates of a log without scenarios; otherwise null."""
    ungated: list[str]
    """The names of what was judged or measured and gates nothing."""
    author_errors: list[str]
    accepted: list[AcceptedShape]
    """The entries of the accept list with their state."""
    notices: list[NoticeShape]


class RunShape(Shape):
    """The facts about the run."""

    id: str
    started_at: str
    commit: str
    """The commit of the repository; empty if it is not known."""
    dirty: bool
    """True if files had changed since the commit."""
    elapsed_s: float | None
    """The duration in seconds; null if the run was cut off."""
    complete: bool
    """True if everything planned was run."""
    outcome: str | None
    """How the run ended; null if it was cut off."""
    seed: int
    versions: dict[str, str]
    config: dict[str, Any]
    prompts: dict[str, str]
    """The hash of the content of each prompt, by name."""
    prompts_overridden: dict[str, str]
    """The project's own file that replaced a shipped prompt, by the path of that prompt."""
    judged: list[str]
    """The metrics that were requested."""
    no_judge: bool
    """True if the run was started with all judges disabled."""
    command: list[str]
    calls_seen: dict[str, str]
    """How much of an agent's tool calls was seen (all, partly, unseen), by agent."""


class Results(Shape):
    """The results of a run of agenteval."""

    schema_version: Literal[4]
    run: RunShape
    summary: SummaryShape
    scenarios: list[ScenarioShape]
