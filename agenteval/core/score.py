"""The results of scorers, and the vocabulary of verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from agenteval.core.tool_faults import FaultOutcome
from agenteval.core.trajectory import Usage
from agenteval.core.value import Value


def _is_empty(value: object) -> bool:
    return not value


def _is_none(value: object) -> bool:
    return value is None


class Severity(StrEnum):
    """The severity of a failure. Severities are ordered by ``rank``: low 0, medium 1, high 2, critical 3."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)

    def raised_towards(self, proposed: Severity | None) -> Severity:
        """Return the next higher severity if ``proposed`` is above this severity, regardless of the distance.
        Otherwise, return this severity."""
        raises = proposed is not None and proposed.rank > self.rank
        return list(Severity)[self.rank + 1] if raises else self


class Verdict(StrEnum):
    """The outcome of a sample, a scenario, a gate or a run."""

    PASSED = "passed"
    """Every rule holds."""
    INCONCLUSIVE = "inconclusive"
    """It could not be decided, for example because the agent could not be reached."""
    FAILED = "failed"
    """A rule is broken."""

    @property
    def rank(self) -> int:
        """The rank of the verdict, from 0 (best) upward."""
        return list(Verdict).index(self)

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """Return the worst verdict: failed takes precedence over inconclusive, and inconclusive over passed.
        If there are no verdicts, return passed."""
        return max(verdicts, key=lambda verdict: verdict.rank, default=Verdict.PASSED)


class RuleKind(StrEnum):
    """The kind of a rule in a policy. *Permission*: whether, for whom or how an action may be taken.
    *Disclosure*: information that the agent must give or request in the process. *Style*: tone, order,
    courtesy."""

    PERMISSION = "permission"
    DISCLOSURE = "disclosure"
    STYLE = "style"


class References(Value):
    """The calls, values and quotations that a judge's verdict refers to. Code has verified that
    they exist."""

    call: int | None = None
    """The tool call, counted from 0 across the entire conversation."""
    other_call: int | None = None
    """The earlier call that ``call`` repeats."""
    parameter: str = ""
    """A parameter of ``call``."""
    tool: str = ""
    """A tool that was not called, or that was not called for ``value``."""
    value: Annotated[str, Field(exclude_if=_is_empty)] = ""
    """A value mentioned by the agent."""
    source: str = ""
    """A quotation from someone other than the agent: the text that contradicts a claim, or that contains a
    withheld value."""
    rule: str = ""
    """A quotation from the policy."""
    fact: str = ""
    """For a goal that was ruled out, a quotation that shows that the rule applies to this case."""
    difference: str = ""
    """For a goal that was ruled out, the difference from a conversation that reached the goal."""


class Vote(Value):
    """One of several answers to the same question. Votes are stored in the order in which the answers were
    given."""

    verdict: float | str | None
    against: bool
    """True if the answer would have counted against the agent."""
    reason: str = ""
    evidence: str = ""
    references: References = References()
    usage: Usage | None = None


class Check(Value):
    """The result of checking a rule (assertion) of the scenario. A function written by an author returns a
    ``Check`` with ``name``, ``passed`` and ``detail``. The other fields are for built-in rules."""

    kind: Literal["check"] = "check"
    """The discriminator between checks and other scorer results."""
    name: str
    """The path of the rule under ``expect`` (``tool_calls``, ``output.contains``, ``limits.steps``),
    ``no_error``, or ``answer``."""
    passed: bool | None
    """True if the check passed; ``None`` if this could not be decided."""
    detail: str = ""
    """A free-text explanation of why the check passed or failed."""
    where: str = ""
    """The line of the rule."""
    parts: tuple[str, ...] = ()
    """The parts of the rule that did not hold. They contain only the author's words and names, so that they
    are the same in the next run."""
    if_all_seen: bool | None = None
    """For a check that depends on the absence of a call: the value of ``passed`` (described by ``detail`` and
    ``parts``) to be used once all calls of the agent are known to be visible. See
    ``agenteval.core.tool_visibility``."""
    turn: Annotated[int | None, Field(exclude_if=_is_none)] = None
    """The turn (from 0) that broke a rule for the entire conversation, if there is one."""
    outcome: Annotated[FaultOutcome | None, Field(exclude_if=_is_none)] = None
    """What the agent made of a fault, for the check ``fault``."""
    arose: bool = True
    """False for a criterion whose condition did not occur, so that the criterion did not decide anything."""
    by: str = ""
    """The model that judged the check, if there is one (``criteria``)."""
    scripted: bool = False
    """True if the model in ``by`` is not a language model."""
    usage: Usage | None = None
    """The tokens used to judge the check."""
    votes: tuple[Vote, ...] = ()
    """The answers of the model if it was called several times."""


OUTCOME = "outcome"
"""The check for a recorded conversation whose outcome is known. This check determines the outcome that is
used in statistics."""
VARIANT = "variant"
"""The check for a conversation with altered user messages (``run --variants``): it compares the conversation
with those of the scenario that was written, so it is made for the report of a run."""
MISSING_TURNS = "turns"
"""The check for a recorded conversation that lacks turns for which the scenario contains expectations."""


REACHED, MISSED, POLICY_BROKEN = "reached", "missed", "policy broken"
RULED_OUT, WITHDRAWN = "ruled out", "withdrawn"
"""The outcomes of a goal. *Policy broken*: reached by breaking a rule of kind permission. *Ruled out*: the
policy forbids it or the world does not allow it, and the agent clearly stated that. *Withdrawn*: the user
gave it up voluntarily."""
EXCUSES = (RULED_OUT, WITHDRAWN)
"""Outcomes that excuse a missed goal. Neither is decided by a single judge."""
NOT_CLEAR = "not clear"
"""A judge's result if the record is not sufficient for a decision about a goal, a policy or a criterion."""
_OPEN = frozenset((*EXCUSES, NOT_CLEAR))


class Score(Value):
    """A judgment: a number (``value``) or a label. A goal has both: its outcome as the label, and a value,
    which is ``None`` if the outcome counts neither for nor against the agent."""

    kind: Literal["score"] = "score"
    metric: str
    value: float | None = None
    label: str | None = None
    reason: str = ""
    evidence: str = ""
    references: References = References()
    by: str = ""
    """The judge's model."""
    scripted: bool = False
    ok: bool | None = None
    """For a label, true if the label is not a failure. ``None`` for a number, and for a label that does not
    decide anything."""
    usage: Usage | None = None
    """The total token usage of the judge."""
    votes: tuple[Vote, ...] = ()
    """All answers, if the judge was called more than once. The score is then the first answer that agrees
    with the majority."""
    sampled: bool = False
    """True if the judge was called again as a random sample rather than because the score would affect a
    gate."""
    twin: str = ""
    """For a goal that was ruled out, a conversation that reached the goal and was shown to the judge."""

    @property
    def calibrated(self) -> bool:
        """True if the judge was calibrated against human judgments. Always false until human labels exist."""
        return False

    @property
    def is_open(self) -> bool:
        """True if the score counts neither for nor against the agent."""
        return self.value is None and self.ok is None and self.label in _OPEN


class ScoreFailure(Value):
    """A failure of a judge. It is never a score, and never the agent's fault."""

    kind: Literal["failure"] = "failure"
    metric: str
    message: str
    raw: str = ""
    """The raw text of the judge's answer."""
    usage: Usage | None = None
    author: bool = False
    """True if the author caused the failure (such as a scripted model that has no rule), which ends the run
    with exit code 2."""
    refused: bool = False
    """True if the judge was not called, because the budget was used up or the judge had failed on every
    call."""
    unclear: bool = False
    """True if the judge did not fail, but answered that the record is not sufficient to decide the
    question."""
    unless_all_seen: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True if the failure applies only when some calls may not be visible."""
    worst: Annotated[Severity | None, Field(exclude_if=_is_none)] = None
    """The worst severity that the judge might have found, or ``None`` if it is unknown."""
    is_verdict: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True if the judge's verdict would gate but was not upheld, because its references do not exist or no
    second opinion was obtained."""


AS_IT_SHOULD, HELPED, HINDERED = "as it should", "helped", "hindered"
"""The labels for how a simulated user acted."""
NOT_IN_SCENARIO = "the scenario did not say"
"""The label used if nothing known about the user determines whether the user was at fault."""


class UserReview(Value):
    """A judge's review of the simulated user in a conversation."""

    kind: Literal["user_review"] = "user_review"
    label: str
    explains: bool = False
    """True if the conversation would have ended differently without the fault."""
    turn: int | None = None
    """The turn (from 0) of the fault. For a fault at the end of the conversation, this is the number of
    turns."""
    failed: bool = True
    """True if the conversation had failed. Otherwise, it was reviewed as a random sample."""
    evidence: str = ""
    source: str = ""
    """The text that ``evidence`` contradicts."""
    reason: str = ""
    by: str = ""
    scripted: bool = False
    usage: Usage | None = None
    recorded: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True for a conversation from a log. Its user may have been a person."""

    @property
    def is_fault(self) -> bool:
        return self.label in (HELPED, HINDERED)

    @property
    def decides(self) -> bool:
        """True if the outcome is the simulated user's fault. A conversation that passed although the user
        hindered the agent still passes."""
        return self.is_fault and self.explains and (self.failed or self.label == HELPED)

    @property
    def sentence(self) -> str:
        """A description of the fault, as a sentence."""
        who = "the user" if self.recorded else "the simulated user"
        return f"{who} {self.label} the agent: {self.reason} (evidence: “{self.evidence}”)"


class Finding(Value):
    """A failing label for one turn."""

    kind: Literal["finding"] = "finding"
    detector: str
    """The name of the detector (a check in code), or ``judge``."""
    metric: str
    label: str
    severity: Severity
    turn: int | None = None
    """The turn, counted from 0, or ``None`` for the entire conversation."""
    call: int | None = None
    """The tool call, counted from 0 across all tool calls in the conversation."""
    evidence: str = ""
    explanation: str = ""
    criterion: str = ""
    """The statement that did not hold, if a criterion was judged."""
    span: tuple[int, int] | None = None
    """The start and end of ``evidence`` in the answer of that turn, if ``evidence`` is quoted from the
    answer."""
    also: tuple[str, ...] = ()
    """Other detectors or judges that found the same failure, each with its explanation: ``judge: …``."""
    references: References = References()
    """The references given by a judge, and the tool that a detector reports as not called."""
    rule_kind: Annotated[RuleKind | None, Field(exclude_if=_is_empty)] = None
    """The kind of the policy rule that was broken. ``None`` if no rule was broken, or if a scripted reply did
    not specify the kind."""
    carried_out: Annotated[bool | None, Field(exclude_if=_is_none)] = None
    """True if the quoted words themselves do what the rule forbids, as a promise does and a refusal does not.
    ``None`` if the judge did not decide this."""
    scripted: bool = False
    if_all_seen: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True if the finding depends on the absence of a call, so that it applies only once all calls are known
    to be visible."""

    @property
    def found_by(self) -> str:
        """The name of the detector, or ``judge``, or both names if both found the failure."""
        return f"proven by code ({self.detector}), also found by the judge" if self.also else self.detector


class Occurrence(Value):
    """A sample in which an issue was found."""

    scenario: str
    agent: str
    epoch: int = 0
    variant: str = ""
    findings: tuple[int, ...]
    """The indexes of the issue's findings in the sample's list, counted from 0."""


class IssueExample(Value):
    """A finding that is shown as an example of an issue. ``turn`` and ``call`` have the same meaning as in
    ``Finding``."""

    scenario: str
    agent: str
    epoch: int = 0
    variant: str = ""
    turn: int | None = None
    call: int | None = None
    evidence: str = ""


class Issue(Value):
    """A group of findings for one agent that have the same root cause. Each finding in a run belongs to
    exactly one issue."""

    id: str
    agent: str
    title: str
    explanation: str = ""
    severity: Severity
    """The highest severity of its findings."""
    proposed_severity: Severity | None = None
    """A severity proposed by a model."""
    not_the_agents_fault: str = ""
    """The reason why the grouping model believes that something other than the agent should be changed. It is
    only an opinion and has no effect."""
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    tools: tuple[str, ...] = ()
    occurrences: tuple[Occurrence, ...]
    examples: tuple[IssueExample, ...] = ()
    """A few of the issue's findings, from as many samples as possible."""
    by: str = ""
    """The model that grouped the findings, or an empty string if they were grouped by code."""
    scripted: bool = False
    """True if the grouping model, or a judge that contributed a finding, was not a language model."""

    @property
    def findings(self) -> int:
        """The number of findings in the issue. A loop that spans eight turns of a sample counts as eight."""
        return sum(len(occurrence.findings) for occurrence in self.occurrences)

    @property
    def samples(self) -> int:
        """The number of samples in which the issue was found. A loop that spans eight turns of a sample
        counts as one."""
        return len(self.occurrences)

    @property
    def scenarios(self) -> int:
        """The number of scenarios in which the issue was found."""
        return len({occurrence.scenario for occurrence in self.occurrences})


Needs: TypeAlias = Literal["", "goal", "policy", "tools"]
"""A prerequisite for judging a metric: a goal in the scenario, a policy of the agent, or available tools."""


class MetricSpec(Value):
    """The definition of a metric, known before anything is judged."""

    name: str
    scope: Literal["turn", "conversation"]
    kind: Literal["mean", "rate"]
    """The kind of aggregate: the ``mean`` of numbers on ``scale``, or a ``rate``, which is the share of
    completed goals or of labels that are not failures."""
    scale: tuple[float, float] = (0.0, 1.0)
    labels: tuple[str, ...] = ()
    """The possible labels. If empty, any label may be returned."""
    ok: tuple[str, ...] = ()
    """The labels that are not failures."""
    built_in: bool = False
    short: str = ""
    """The heading of the metric's column."""
    needs: Needs = ""

    @property
    def is_label(self) -> bool:
        """True if the metric has labels. The failures of such a metric become findings."""
        return bool(self.ok)


ScoreItem: TypeAlias = Annotated[
    Check | Score | ScoreFailure | Finding | UserReview, Field(discriminator="kind")
]
"""Any result that a scorer may return."""
