"""Define the JSON format of ``results.json``, which is public. Both the file and its JSON Schema are
generated from these models.

By default, a field is read from the attribute with the same name on the object that it represents. If the
field has a validation alias, it is read from the attribute named by the alias instead. Values from other
sources are passed to ``Shape.from_value``. Adding a field does not change ``schema_version``; removing,
renaming or redefining a field does. Fields with a default are omitted from the file if they do not apply.
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
"""The verdict of a run. ``reported`` is the verdict for a log without scenarios, which has no
expectations."""
SeverityText = Literal["low", "medium", "high", "critical"]

T = TypeVar("T")
IfKnown: TypeAlias = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A field that is omitted if its value is null."""
IfAny: TypeAlias = Annotated[T | None, Field(exclude_if=not_)]
"""A field that is omitted if its value is null, empty or false."""


class Shape(BaseModel):
    """A JSON object in the file. Writing an unknown field is an error, but readers must accept unknown
    fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        protected_namespaces=(),
        json_schema_extra=lambda schema: (schema.pop("additionalProperties", None), None)[1],
    )

    @classmethod
    def from_value(cls, value: object, **more: Any) -> Self:
        """Read each field from ``value``. ``more`` contains the fields that ``value`` lacks or represents
        differently."""
        names = cls.model_fields.keys() - more.keys()
        return cls.model_validate(
            {name: getattr(value, name) for name in names if hasattr(value, name)} | more
        )


class UsageShape(Shape):
    """The number of model calls and tokens, and their cost."""

    calls: int
    """The number of model calls, excluding calls answered from the cache."""
    cached_calls: int = 0
    """The number of calls answered from the cache."""
    tokens: int | None = Field(validation_alias="reported_tokens")
    """The sum of input and output tokens; null if no tokens were reported."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    estimated: bool
    """True if any part of the usage was not reported by a provider."""
    cost: float | None
    """The cost in US dollars; null if a price is unknown."""
    unsplit: bool = False
    """True if some tokens were reported only as the sum of input and output tokens. These tokens are included
    in ``output_tokens``."""


def _those_given(references: CheckedReferences) -> dict[str, Any]:
    return {name: value for name, value in references if value not in (None, "")}


References: TypeAlias = Annotated[dict[str, int | str], BeforeValidator(_those_given)]


class VoteShape(Shape):
    """One of several answers that a judge gave to the same question."""

    verdict: float | str | None
    """A number or a label; null if the answer contains neither."""
    against: bool
    """True if the answer would have caused a failure."""
    reason: str
    evidence: str
    references: References
    """The references in the answer, in the same format as in a score."""


class SecondOpinionsShape(Shape):
    """Statistics about judges that were asked a second time."""

    corroborate: bool
    """True if asking judges for a second opinion is enabled."""
    doubted: int
    """The number of verdicts for which a judge was asked a second time because the verdict would have caused
    a failure, or would have ruled out or withdrawn a goal."""
    upheld: int
    """The number of doubted verdicts that were upheld."""
    sampled: int
    """The number of verdicts that would not have caused a failure and were drawn at random for a second
    answer."""
    differed: int
    """The number of sampled verdicts for which the second answer would have caused a failure."""
    usage: UsageShape
    """The token usage of all judge calls after the first call for each question."""
    share: float
    """The share of the judges' tokens that these additional calls account for."""


class CheckShape(Shape):
    """The result of a rule in the scenario."""

    name: str
    passed: bool | None
    """True if the rule is satisfied; null if the rule could not be decided."""
    detail: str
    where: str
    by: IfAny[str] = None
    """The judge's model. Present only for a rule that is decided by a judge (``criteria``)."""
    scripted: IfKnown[bool] = None
    """True if the judge's answer did not come from a language model. Present only for a rule that is decided
    by a judge."""
    calibrated: IfKnown[bool] = None
    """True if the judge was compared with human judgment. Present only for a rule that is decided by a
    judge."""
    arose: IfKnown[bool] = None
    """False if the rule passed because its condition never arose; otherwise omitted."""
    votes: IfAny[list[VoteShape]] = None
    """All answers of the judge, if the judge was asked more than once."""
    fingerprints: IfAny[list[str]] = None
    """The fingerprints of the failures that broke the rule. A fingerprint identifies the same failure in
    later runs."""
    covers: IfAny[list[str]] = None
    """The description of the failure for each fingerprint."""


class ScoreShape(Shape):
    """A judge's score: a number or a label, or both for a goal."""

    value: float | None
    """The number; null for a label, and for a goal whose outcome counts neither as a success nor as a
    failure."""
    label: str | None
    ok: bool | None
    """True if the label is not a failure; null for a number, for a goal, and for a label that decides
    nothing."""
    reason: str
    evidence: str
    by: str
    """The judge's model."""
    scripted: bool
    """True if the answer did not come from a language model."""
    calibrated: bool
    """True if the judge was compared with human judgment."""
    references: IfAny[References] = None
    """The references given in addition to the evidence (call, other_call, parameter, tool, source, rule,
    fact, difference). They were verified by code."""
    votes: IfAny[list[VoteShape]] = None
    """All answers of the judge, if the judge was asked more than once."""


def _by_metric(scores: Iterable[Score]) -> dict[str, Score]:
    return {score.metric: score for score in scores}


Scores: TypeAlias = Annotated[dict[str, ScoreShape], BeforeValidator(_by_metric)]


class ScoreFailureShape(Shape):
    """A judge that failed. There is no score, and the agent is not at fault."""

    metric: str
    message: str
    raw: str
    """The judge's reply."""
    not_asked: bool = Field(validation_alias="refused")
    """True if the judge was not asked because the budget was used up or because every earlier call had
    failed."""


class FindingShape(Shape):
    """A label that reports a failure."""

    detector: str
    """The name of the detector that found the failure in code, or ``judge``."""
    metric: str
    label: str
    severity: SeverityText
    turn: int | None
    """The turn, counted from 0; null for the whole conversation."""
    call: int | None
    """The tool call, counted from 0 within the conversation; null if the finding is not about a call."""
    evidence: str
    explanation: str
    issue: str | None
    """The id of the issue that contains the finding; null if the findings were not grouped."""
    fingerprint: str
    """The fingerprint that identifies the failure. The same failure has the same fingerprint in every run."""
    covers: str
    """The description of the failure that is covered by the fingerprint. An entry in the accept list accepts
    only this failure."""
    scripted: bool
    """True if the finding did not come from a language model."""
    kind: IfKnown[Literal["permission", "disclosure", "style"]] = None
    """The kind of policy rule that was broken."""
    criterion: IfAny[str] = None
    """The criterion that was not met, if the finding comes from a judged criterion."""
    span: IfKnown[tuple[int, int]] = None
    """The start and end of ``evidence`` in the turn's answer, if the evidence is quoted from the answer."""
    also: IfAny[list[str]] = None
    """The other detectors or judges that reported the same failure, along with their explanations."""
    references: IfAny[References] = None


class IssueExampleShape(Shape):
    """An example of a finding that belongs to the issue."""

    scenario: str
    agent: str
    epoch: int
    variant: str
    turn: int | None
    """The turn, counted from 0; null for the whole conversation."""
    call: int | None
    """The tool call, counted from 0 within the conversation; null if the finding is not about a call."""
    evidence: str


class IssueShape(Shape):
    """A root cause: a group of related findings for one agent. Each finding in a run belongs to exactly one
    issue."""

    id: str
    agent: str
    title: str
    explanation: str
    severity: SeverityText
    """The effective severity."""
    proposed_severity: SeverityText | None
    """The severity proposed by a model, which is only an opinion."""
    not_the_agents_fault: str
    """A model's reason, as an opinion, for leaving the agent unchanged; empty if there is none."""
    labels: list[str]
    metrics: list[str]
    tools: list[str]
    findings: int
    """The number of findings in the issue, counted across the whole run."""
    samples: int
    """The number of samples with a finding in the issue."""
    scenarios: int
    """The number of scenarios with a finding in the issue."""
    fingerprints: list[str]
    examples: list[IssueExampleShape]
    by: str
    """The model that grouped the findings; empty if code grouped them."""
    scripted: bool
    """True if the answer that grouped the findings, or a judge's answer behind any finding, did not come from
    a language model."""


class ToolCallShape(Shape):
    """A tool call."""

    name: str
    args: dict[str, Any] | None
    """The arguments; null if they could not be parsed."""
    result: Any
    observed: bool
    """True if the agent ran the tool itself."""
    raw_args: str | None = None
    """The arguments as sent by the model, if they could not be parsed."""
    error: IfKnown[str] = None
    """The error returned by the tool, or a note that the agent did not wait for the result."""
    agent: IfAny[str] = None
    """The agent in a multi-agent system that made the call, if known."""
    attempted: IfAny[bool] = None
    """True for a call that was denied before any tool ran or that is waiting for approval; otherwise
    omitted."""
    fault: IfAny[str] = None
    """The kind of the fault that the scenario gave the call, if any."""


class TurnShape(Shape):
    """A user message and all actions of the agent up to its answer."""

    user: str
    user_wrote: IfKnown[str] = None
    """The message before a variant altered it; omitted if it was not altered."""
    agent: str
    """The agent's answer."""
    tool_calls: list[ToolCallShape]
    user_tool_calls: IfAny[list[ToolCallShape]] = None
    """The calls of the user's own tools that preceded the message. Omitted if there are none."""
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
    """The token usage of the model that wrote the user's message, if the user was simulated."""
    user_fault: IfKnown[str] = None
    """The fault in the first attempt to write the message, if the user was simulated; empty if there was no
    fault."""
    agents: IfAny[list[str | None]] = None
    """The agents in a multi-agent system that spoke, in order. An unknown agent is null; the field is omitted
    if no agent is known."""
    state_changes: IfAny[list[str]] = None
    """The rows of the tool world's state that changed in the turn, as text. Omitted if there are none."""
    unplaced: IfAny[list[str]] = None
    """The parts of the turn's record that no parser recognized, so calls in them may have been missed.
    Omitted if there are no such parts."""


class UserReviewsShape(Shape):
    """Statistics about the review of simulated users. All failed conversations and a random tenth of the
    other conversations are reviewed."""

    reviewed: int
    at_fault: int
    """The number of conversations in which the user was at fault."""
    rate: float
    """The share of conversations in which the user was at fault."""
    low: float
    """The lower bound of the 95 % Wilson interval for the rate."""
    high: float
    """The upper bound of the 95 % Wilson interval for the rate."""
    failed: int
    failed_at_fault: int
    passed: int
    passed_at_fault: int
    not_in_scenario: int
    """The number of conversations in which the known facts about the user do not determine whether the user
    was at fault."""


class SimulatorShape(Shape):
    """Statistics about the simulated user."""

    messages: int
    """The number of messages from the simulated user."""
    refused: int
    """The number of messages that were rejected because they did not resemble a user's message, whether or
    not a second attempt succeeded."""
    errored: int
    """The number of samples that ended because the model did not behave like a user."""
    models: list[str]
    """The models that simulated the user."""
    usage: UsageShape
    reviews: IfKnown[UserReviewsShape] = None
    """Statistics about the judges' reviews of the user; omitted if there are no reviews."""


class UserReviewShape(Shape):
    """A judge's review of the user in a conversation."""

    label: str
    """The judge's label: ``as it should``, ``hindered``, ``helped``, ``the scenario did not say`` or ``not
    clear``."""
    explains: bool
    """True if the conversation would have ended differently without the user's fault."""
    turn: int | None
    """The turn in which the fault occurred, counted from 0."""
    failed: bool
    """True if the conversation was reviewed because it failed; false if the conversation was drawn at
    random."""
    reason: str
    evidence: str
    source: str
    """The source text that the evidence contradicts."""
    by: str
    scripted: bool
    recorded: IfAny[bool] = None
    """True for a conversation from a log (its user may have been a person); otherwise omitted."""


class ViolationShape(Shape):
    """A rule that was broken or could not be evaluated."""

    name: str
    detail: str
    where: str
    """The location of the rule."""
    verdict: VerdictText
    epoch: int | None
    """The epoch; null for a rule that applies to all samples of the scenario."""
    turn: int | None
    """The turn, counted from 0; null for a rule that applies to the whole conversation."""
    fingerprints: list[str]
    """The fingerprints of the sample's failures that the violation reports."""
    covers: list[str]
    """The description of the failure for each fingerprint."""


class SampleShape(Shape):
    """One conversation of a scenario with an agent."""

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
    """The checks that apply to the whole conversation."""
    scores: Scores
    """The scores for the whole conversation."""
    score_failures: list[ScoreFailureShape]
    """The judges that failed to score the whole conversation."""
    findings: list[FindingShape]
    turns: list[TurnShape]
    scripted: bool
    """True if a reply in the conversation or in its evaluation was scripted rather than produced by a
    model."""
    accepted: IfAny[list[ViolationShape]] = None
    """The broken rules that are ignored because their failures are in the accept list."""
    simulator: IfKnown[SimulatorShape] = None
    """Statistics about the simulated user, if a model simulated the user."""
    user_review: IfKnown[UserReviewShape] = None
    """A judge's review of the user, if the user was reviewed."""
    tool_accuracy: float | None = None
    """The share of the expected tools that were called. Present only for test cases."""
    output_correct: bool | None = None
    """True if the final answer contains all expected keywords. Present only for test cases."""
    robustness_pass: bool | None = None
    """True if all checks passed in a robustness test. Present only for test cases."""


class AggregateShape(Shape):
    """A mean or a rate calculated from several values."""

    value: float | None
    n: int
    """The number of values."""
    missing: int
    """The number of missing values."""
    of_samples: float | None
    """The mean of the means per conversation."""
    undecided: IfAny[dict[str, int]] = None
    """The number of judgments for each label that counts neither as a success nor as a failure; omitted if
    there are none."""


class SpreadShape(Shape):
    """The mean, the median and the 95th percentile (nearest-rank method) across ``n`` conversations."""

    mean: float | None
    p50: float | None
    p95: float | None
    n: int


class RepeatsShape(Shape):
    """Statistics about the repeated runs (epochs) of a scenario."""

    successes: int
    decided: int
    """The number of planned epochs that were decided."""
    planned: int
    rate: float | None
    low: float
    """The lower bound of the 95 % score interval for the rate."""
    high: float
    """The upper bound of the 95 % score interval for the rate."""
    stability: str


class ScenarioShape(Shape):
    """The results of one scenario with one agent."""

    id: str
    name: str
    agent: str
    category: str
    tags: list[str]
    note: IfAny[str] = None
    """The author's description of what the scenario tests; omitted if there is none."""
    where: str
    """The location of the scenario, as ``file:line``."""
    row: str = ""
    """The location of the data row from which the scenario was generated; empty if the scenario has no data
    row."""
    verdict: VerdictText
    violations: list[ViolationShape]
    aggregates: dict[str, AggregateShape]
    issues: list[IssueShape]
    """The issues that occur in the scenario."""
    statistics: RepeatsShape
    samples: list[SampleShape]

    def __repr__(self) -> str:
        """Return a short text, because a scenario contains whole conversations."""
        return f"<{self.id} with {self.agent}: {self.verdict}>"


class AskedShape(Shape):
    """A question to a judge and the judge's answer."""

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
    """The judge's answer; null if there was no valid answer."""
    error: str
    """The reason for the lack of a valid answer."""


class ConversationShape(Shape):
    """The output of ``agenteval show --json``: conversations of one scenario with one agent."""

    run: str
    """The id of the run."""
    scenario: ScenarioShape
    asked: IfKnown[list[AskedShape]] = None
    """The questions to judges. Present only with ``--judge``, and only if the run recorded them."""


class GateShape(Shape):
    """A gate: a rule that determines whether the run passes."""

    name: str
    value: float | str | None
    bound: float | str
    basis: str
    where: str
    verdict: VerdictText
    scenario: str
    """The scenario; empty for a gate on the whole run."""
    agent: str
    """The agent; empty for a gate on the whole run."""
    metric: str
    """The metric to which a threshold applies; empty for any other gate."""
    resolution: str
    """The change to the settings that would decide an undecided gate."""


class DimensionShape(Shape):
    category: str
    samples: int
    rates: dict[str, AggregateShape]
    spreads: dict[str, SpreadShape]


class AcceptedShape(Shape):
    """An entry in the accept list."""

    fingerprint: str
    state: Literal["accepted", "expired", "not met"]
    """The state of the entry. ``accepted``: the failure occurred and does not make a sample fail.
    ``expired``: the entry has expired, so the failure makes samples fail again. ``not met``: the failure did
    not occur in this run."""
    samples: int
    """The number of samples in which the failure occurred."""
    owner: str
    reason: str
    expires: str
    scenario: str
    what: str
    where: str


class CaveatShape(Shape):
    """A fact that did not affect the verdict but is mentioned in the last line."""

    kind: str
    """The kind of fact, such as ``findings_high``, ``goals_missed``, ``goals_not_refused``,
    ``judges_failed``, ``samples_errored``, ``accepted``, ``replay`` or ``not_judged``."""
    count: int
    """The number of occurrences."""
    text: str


class NoticeShape(Shape):
    """A message about the run that is not a result."""

    level: Literal["info", "warning", "error"]
    text: str
    sample: str | None
    """The conversation that the message is about; null if the message is not about a single conversation."""


class LedgerLineShape(Shape):
    """The token usage and cost of one model in one role."""

    role: str
    name: str
    """The model as ``PROVIDER/MODEL``, or the name of an agent."""
    usage: UsageShape


class ComparedNumberShape(Shape):
    """A per-conversation measurement of an agent, compared with the reference agent."""

    name: str
    value: float
    reference: float
    ratio: float | None
    """The agent's value divided by the reference agent's value."""
    low: float | None
    high: float | None
    reference_verdict: Literal["more", "less", "indistinguishable"]
    """The result of the comparison: ``more`` or ``less`` if the agent's value is higher or lower than the
    reference agent's value, or ``indistinguishable``."""


class ComparedAgentShape(Shape):
    """An agent compared with the reference agent."""

    agent: str
    scenarios: int
    epochs: int
    success: float | None
    """The mean success rate across scenarios."""
    reference: float | None
    """The mean success rate of the reference agent."""
    change: float | None
    """The agent's success rate minus the reference agent's success rate."""
    low: float
    high: float
    better_in: list[str]
    worse_in: list[str]
    epochs_to_decide: int | None
    numbers: list[ComparedNumberShape]
    reference_verdict: Literal["more", "less", "indistinguishable"]
    """The result of the comparison: ``more`` or ``less`` if the agent succeeds more or less often than the
    reference agent, or ``indistinguishable``."""


class ReferenceComparisonShape(Shape):
    """The comparison of the run's agents with the first agent, which is the reference."""

    reference: str
    comparisons: int
    confidence: float
    """The confidence level at which all intervals hold simultaneously."""
    agents: list[ComparedAgentShape]


class QuotationShape(Shape):
    """A quotation and the location where it was found."""

    scenario: str = Field(validation_alias=AliasPath("key", "scenario"))
    where: str
    """The file and line in the log."""
    turn: int | None
    """The turn, counted from 0; null for the whole conversation."""
    evidence: str
    explanation: str


class FailureRateShape(Shape):
    """The frequency of a label that was reported by one detector, judge or check."""

    label: str
    found_by: str
    """The source of the label: the name of a detector, ``judge of METRIC`` or ``check NAME``."""
    metric: str
    severity: SeverityText | None
    """The worst severity; null for a check, which has no severity."""
    severities: dict[str, int]
    """The number of conversations for each severity. Each conversation is counted once, under its worst
    severity. Empty for a check."""
    conversations: int
    """The number of conversations with the label."""
    of: int
    """The number of conversations for which it is known whether the label applies."""
    unknown: int
    """The number of additional conversations for which it is not known whether the label applies."""
    rate: float
    low: float = Field(validation_alias=AliasPath("interval", "low"))
    """The lower bound of the 95 % Wilson interval for the rate."""
    high: float = Field(validation_alias=AliasPath("interval", "high"))
    """The upper bound of the 95 % Wilson interval for the rate."""
    quotations: list[QuotationShape]
    """Quotations from the first three conversations with the label."""


class FailureRatesShape(Shape):
    """The failure rates in a log without scenarios."""

    records: int
    unreadable: list[str]
    """The locations of the records that could not be read."""
    conversations: int
    """The number of records that could be read."""
    undecided: int
    """The number of conversations that could not be decided."""
    not_fully_seen: int = Field(validation_alias="unplaced")
    """The number of conversations with parts that no parser recognized."""
    by_severity: dict[str, int]
    """The number of conversations for each severity. Each conversation is counted once, under the severity of
    its worst finding."""
    rows: list[FailureRateShape]


class FaultRowShape(Shape):
    """What an agent made of one fault of one tool, over all scenarios."""

    agent: str
    tool: str
    fault: str
    """The name of the fault, such as timeout-1x."""
    conversations: int
    reached: int
    """The number of conversations in which a call had the fault."""
    outcomes: dict[str, int]
    """The number of conversations with each outcome."""
    recovered: int
    """The number of conversations that recovered, of those that passed without the fault."""
    compared: int
    """The number of conversations that reached the fault and passed without it."""
    low: float
    """The lower bound of the 95 % Wilson interval for recovered / compared."""
    high: float
    """The upper bound of this interval."""


class VariantRowShape(Shape):
    """What an agent did after user messages that were altered in one way, over all scenarios."""

    agent: str
    variant: str
    """The way in which messages were altered, such as typos."""
    conversations: int
    altered: int
    """The number of conversations in which a message was altered."""
    same: int
    """The number of altered conversations that were as they should be: with the calls and the end state of a
    conversation without the alteration or, for empty messages, with no call that writes."""
    different: int
    """The number of altered conversations that were not."""
    undecided: int
    low: float
    """The lower bound of the 95 % Wilson interval for same / (same + different)."""
    high: float
    """The upper bound of this interval."""


class SummaryShape(Shape):
    """The verdict and the evidence for it."""

    verdict: RunVerdictText
    exit_code: int
    scripted: bool
    """True if any reply was scripted rather than produced by a model."""
    gates: list[GateShape]
    dimensions: dict[str, list[DimensionShape]]
    """The results in the three dimensions for each agent."""
    agents_compared: ReferenceComparisonShape | None
    """The comparison of the agents; null if the run has only one agent."""
    statistics: dict[str, Any]
    usage: dict[str, UsageShape]
    """The token usage and cost for each role."""
    ledger: list[LedgerLineShape]
    """The token usage and cost for each role and model."""
    second_opinions: SecondOpinionsShape | None
    """Statistics about judges that were asked a second time; null if no language model judged."""
    issues: list[IssueShape]
    """All issues of the run, worst first."""
    issue_failures: list[ScoreFailureShape]
    """The errors that occurred while a model grouped findings into issues."""
    simulator: SimulatorShape | None
    """Statistics about the simulated user; null if no user was simulated."""
    caveats: list[CaveatShape]
    """The facts that did not affect the verdict but that a reader needs to know."""
    faults: IfAny[list[FaultRowShape]] = None
    """What the agents made of the faults of their tools; omitted in a run without faults."""
    variants: IfAny[list[VariantRowShape]] = None
    """What the agents did after altered user messages; omitted in a run without them."""
    failure_rates: FailureRatesShape | None
    """The failure rates in a log without scenarios; null if there are scenarios."""
    ungated: list[str]
    """The names of judged or measured metrics that no gate uses."""
    author_errors: list[str]
    accepted: list[AcceptedShape]
    """The entries in the accept list, each with its state."""
    notices: list[NoticeShape]


class MergedShape(Shape):
    """The shards from which a run was merged."""

    count: int
    runs: dict[int, str]
    """The id of each shard's run, keyed by the number of the shard."""
    incomplete: dict[int, str]
    """The reason why a shard is not part of the run as a whole, keyed by its number."""


class RunShape(Shape):
    """Facts about the run."""

    id: str
    started_at: str
    commit: str
    """The commit of the repository; empty if unknown."""
    dirty: bool
    """True if files had been modified since the commit."""
    elapsed_s: float | None
    """The duration in seconds; null if the run ended abruptly."""
    complete: bool
    """True if everything that was planned was run."""
    outcome: str | None
    """How the run ended; null if the run ended abruptly."""
    shard: str | None
    """The part of the run that was played, such as ``2/4``; null for a whole run."""
    merged: MergedShape | None
    """The shards from which the run was merged; null for a run that was played as a whole."""
    seed: int
    versions: dict[str, str]
    config: dict[str, Any]
    prompts: dict[str, str]
    """The hash of each prompt's content, keyed by prompt name."""
    prompts_overridden: dict[str, str]
    """The project's replacement file for each overridden built-in prompt, keyed by the path of the built-in
    prompt; for a scenario's own user prompt, by that path and the scenario's id (``PATH::ID``)."""
    judged: list[str]
    """The requested metrics."""
    no_judge: bool
    """True if the run was started with all judges disabled."""
    command: list[str]
    calls_seen: dict[str, str]
    """The visibility of each agent's tool calls (``all``, ``partly`` or ``unseen``), keyed by the name of the
    agent."""


class Results(Shape):
    """The results of an agenteval run."""

    schema_version: Literal[4]
    run: RunShape
    summary: SummaryShape
    scenarios: list[ScenarioShape]
