"""The results of scorers, and the terms of verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from agenteval.core.trajectory import Usage
from agenteval.core.value import Value


def _is_empty(value: object) -> bool:
    return not value


def _is_none(value: object) -> bool:
    return value is None


class Severity(StrEnum):
    """How bad a failure is. Ordered by ``rank``: low 0, medium 1, high 2, critical 3."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)

    def raised_towards(self, proposed: Severity | None) -> Severity:
        """Return the next level if ``proposed`` is above this one, however far: an opinion never lowers a
        severity."""
        raises = proposed is not None and proposed.rank > self.rank
        return list(Severity)[self.rank + 1] if raises else self


class Verdict(StrEnum):
    """The outcome of a sample, a scenario, a gate or a run."""

    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"

    @property
    def rank(self) -> int:
        """How bad the verdict is, from 0."""
        return list(Verdict).index(self)

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """Return the worst verdict: failed beats inconclusive beats passed. Without any, return passed."""
        return max(verdicts, key=lambda verdict: verdict.rank, default=Verdict.PASSED)


class RuleKind(StrEnum):
    """What a rule of a policy is about. *Permission*: whether, for whom or how an act may be done.
    *Disclosure*: what the agent must say or ask on the way. *Style*: tone, order, courtesy."""

    PERMISSION = "permission"
    DISCLOSURE = "disclosure"
    STYLE = "style"


class References(Value):
    """What a judge's verdict refers to, as the judge named it; code has verified that it exists."""

    call: int | None = None
    """The tool call, counted from 0 over the whole conversation."""
    other_call: int | None = None
    """The call that ``call`` repeats."""
    parameter: str = ""
    """A parameter of ``call``."""
    tool: str = ""
    """A tool that was not called, or not called for ``value``."""
    value: Annotated[str, Field(exclude_if=_is_empty)] = ""
    """A value that the agent names."""
    source: str = ""
    """A quotation of something that is not the agent's: what a claim contradicts, or where a withheld value
    is."""
    rule: str = ""
    """A quotation of the policy."""
    fact: str = ""
    """For a goal that was ruled out, a quotation of what makes the rule apply to this case."""
    difference: str = ""
    """For a goal that was ruled out, what differs in a conversation that reached it."""


class Vote(Value):
    """One of several answers to one question, in the order in which they were given."""

    verdict: float | str | None
    against: bool
    """True if it would have counted against the agent."""
    reason: str = ""
    evidence: str = ""
    references: References = References()
    usage: Usage | None = None


class Check(Value):
    """The result of a rule of the scenario. An author's function returns one with ``name``, ``passed`` and
    ``detail``; the other fields are for built-in rules."""

    kind: Literal["check"] = "check"
    """Distinguishes it from other results of scorers."""
    name: str
    """The path of the rule under ``expect`` (``tool_calls``, ``output.contains``, ``limits.steps``), or
    ``no_error`` or ``answer``."""
    passed: bool | None
    """``None``: it could not be decided."""
    detail: str = ""
    """Why it held or did not, in words."""
    where: str = ""
    """The line of the rule."""
    parts: tuple[str, ...] = ()
    """The parts that did not hold, in the author's words and in names only, so that the next run gives the
    same."""
    if_all_seen: bool | None = None
    """For a check that depends on the absence of a call: the value of ``passed`` (described by ``detail`` and
    ``parts``) once all calls of the agent are known to be seen; see ``agenteval.core.tool_visibility``."""
    turn: Annotated[int | None, Field(exclude_if=_is_none)] = None
    """The turn (from 0) that broke a rule of the whole conversation, if one did."""
    arose: bool = True
    """False for a criterion whose condition did not arise, so that it decided nothing."""
    by: str = ""
    """The model that judged it, if one did (``criteria``)."""
    scripted: bool = False
    """True if that is not a language model."""
    usage: Usage | None = None
    """The cost of judging it."""
    votes: tuple[Vote, ...] = ()
    """The model's answers, if it was asked several times."""


OUTCOME = "outcome"
"""The check of a recorded conversation whose outcome is known; it decides what statistics count."""
MISSING_TURNS = "turns"
"""The check of a recorded conversation without some turn for which the scenario has expectations."""


REACHED, MISSED, POLICY_BROKEN = "reached", "missed", "policy broken"
RULED_OUT, WITHDRAWN = "ruled out", "withdrawn"
"""The outcomes of a goal. *Policy broken*: reached by breaking a rule of kind permission. *Ruled out*: the
policy forbids it or the world does not allow it, and the agent clearly stated that. *Withdrawn*: the user
gave it up voluntarily."""
EXCUSES = (RULED_OUT, WITHDRAWN)
"""Outcomes that excuse a missed goal; neither is decided by one judge alone."""
NOT_CLEAR = "not clear"
"""A judge's result for a goal, a policy or a criterion that the record does not decide."""
_OPEN = frozenset((*EXCUSES, NOT_CLEAR))


class Score(Value):
    """A judgement: a number (``value``) or a label. For a goal it has both, the outcome and its value, which
    is ``None`` if it counts neither way."""

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
    """For a label, true if it is not a failure. ``None`` for a number, and for a label that decides nothing.
    """
    usage: Usage | None = None
    """The total usage of the judge."""
    votes: tuple[Vote, ...] = ()
    """All answers, if the judge was asked more than once; the score is then the first that agrees with the
    majority."""
    sampled: bool = False
    """True if the judge was asked again as a random sample rather than because the score would gate."""
    twin: str = ""
    """For a goal that was ruled out, the conversation that reached it and that the judge was shown."""

    @property
    def calibrated(self) -> bool:
        """True if its judge was compared with human judgements; always false until there are human labels."""
        return False

    @property
    def is_open(self) -> bool:
        """True if it counts neither for nor against the agent."""
        return self.value is None and self.ok is None and self.label in _OPEN


class ScoreFailure(Value):
    """The failure of a judge. It is never a score and never the agent's fault."""

    kind: Literal["failure"] = "failure"
    metric: str
    message: str
    raw: str = ""
    """The judge's answer."""
    usage: Usage | None = None
    author: bool = False
    """True if the author caused it (a scripted model without a rule), which ends the run with exit code 2."""
    refused: bool = False
    """True if the judge was not asked, because the budget was used up or it had failed on every call."""
    unclear: bool = False
    """True if the judge did not fail but answered that the record does not decide the question."""
    unless_all_seen: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True if it applies only if not all calls are seen."""
    worst: Annotated[Severity | None, Field(exclude_if=_is_none)] = None
    """The worst severity that the judge might have found, or ``None`` if unknown."""
    is_verdict: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True if the judge had given a verdict that would gate but was not upheld, because its references do not
    exist or the second opinion was not given."""


AS_IT_SHOULD, HELPED, HINDERED = "as it should", "helped", "hindered"
"""The labels for how a simulated user acted."""
NOT_IN_SCENARIO = "the scenario did not say"
"""The label if nothing known about the user decides whether it was at fault."""


class UserReview(Value):
    """A judge's review of the simulated user of a conversation."""

    kind: Literal["user_review"] = "user_review"
    label: str
    explains: bool = False
    """True if the conversation would have ended differently without the fault."""
    turn: int | None = None
    """The turn (from 0) of the fault; if it is the end, the number of turns."""
    failed: bool = True
    """True if the conversation had failed; otherwise it was reviewed as a random sample."""
    evidence: str = ""
    source: str = ""
    """What the ``evidence`` contradicts."""
    reason: str = ""
    by: str = ""
    scripted: bool = False
    usage: Usage | None = None
    recorded: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True for a conversation in a log, whose user may have been a person."""

    @property
    def is_fault(self) -> bool:
        return self.label in (HELPED, HINDERED)

    @property
    def decides(self) -> bool:
        """True if the outcome is the simulator's fault. A conversation that passed although it was hindered
        still passes."""
        return self.is_fault and self.explains and (self.failed or self.label == HELPED)

    @property
    def sentence(self) -> str:
        """The fault as a sentence."""
        who = "the user" if self.recorded else "the simulated user"
        return f"{who} {self.label} the agent: {self.reason} (evidence: “{self.evidence}”)"


class Finding(Value):
    """One failing label on one turn."""

    kind: Literal["finding"] = "finding"
    detector: str
    """The name of a check in code, or ``judge``."""
    metric: str
    label: str
    severity: Severity
    turn: int | None = None
    """The turn, from 0; ``None``: the whole conversation."""
    call: int | None = None
    """The call, from 0 over all tool calls of the conversation in order."""
    evidence: str = ""
    explanation: str = ""
    criterion: str = ""
    """The sentence that did not hold, if a criterion was judged."""
    span: tuple[int, int] | None = None
    """The start and end of ``evidence`` in the answer of that turn, if it is quoted from there."""
    also: tuple[str, ...] = ()
    """Others that found the same, each with its explanation: ``judge: …``."""
    references: References = References()
    """The references of a judge, and the tool that a detector reports as not called."""
    rule_kind: Annotated[RuleKind | None, Field(exclude_if=_is_empty)] = None
    """The kind of the policy rule that was broken, or ``None`` if none was, or a scripted reply did not name it.
"""
    carried_out: Annotated[bool | None, Field(exclude_if=_is_none)] = None
    """True if the words that break the rule do what it forbids, as a promise does and a refusal does not, or
    ``None`` if the judge did not decide it."""
    scripted: bool = False
    if_all_seen: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """True if it depends on the absence of a call, so that it applies only once all calls are known to be
    seen."""

    @property
    def found_by(self) -> str:
        """The name of the detector, or ``judge``; both if both found it."""
        return f"proven by code ({self.detector}), also found by the judge" if self.also else self.detector


class Occurrence(Value):
    """A sample in which an issue was found."""

    scenario: str
    agent: str
    epoch: int = 0
    variant: str = ""
    findings: tuple[int, ...]
    """The indexes of its findings in the sample's list, from 0."""


class IssueExample(Value):
    """One finding of an issue, to be shown. ``turn`` and ``call`` as in ``Finding``."""

    scenario: str
    agent: str
    epoch: int = 0
    variant: str = ""
    turn: int | None = None
    call: int | None = None
    evidence: str = ""


class Issue(Value):
    """One root cause: findings of one agent that belong together. Each finding of a run is in exactly one
    issue."""

    id: str
    agent: str
    title: str
    explanation: str = ""
    severity: Severity
    """The highest severity of its findings."""
    proposed_severity: Severity | None = None
    """A model's opinion of the severity."""
    not_the_agents_fault: str = ""
    """Why the grouping model thinks that something other than the agent should be changed. It is only an
    opinion and has no effect."""
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    tools: tuple[str, ...] = ()
    occurrences: tuple[Occurrence, ...]
    examples: tuple[IssueExample, ...] = ()
    """A few of its findings, from as many samples as possible."""
    by: str = ""
    """The model that grouped it, or an empty string if code did."""
    scripted: bool = False
    """True if the model, or a judge behind one of the findings, was not a language model."""

    @property
    def findings(self) -> int:
        """The number of its findings; a loop over eight turns of one sample counts as eight."""
        return sum(len(occurrence.findings) for occurrence in self.occurrences)

    @property
    def samples(self) -> int:
        """The number of samples in which it was found; a loop over eight turns of a sample counts as one."""
        return len(self.occurrences)

    @property
    def scenarios(self) -> int:
        """The number of scenarios in which it was found."""
        return len({occurrence.scenario for occurrence in self.occurrences})


Needs: TypeAlias = Literal["", "goal", "policy", "tools"]
"""What a metric requires to be judged: a goal of the scenario, a policy of the agent, or available tools."""


class MetricSpec(Value):
    """A metric as it is known before anything is judged."""

    name: str
    scope: Literal["turn", "conversation"]
    kind: Literal["mean", "rate"]
    """The aggregate: the ``mean`` of numbers on ``scale``, or a ``rate``, the share of completed goals or of
    labels that are not failures."""
    scale: tuple[float, float] = (0.0, 1.0)
    labels: tuple[str, ...] = ()
    """The possible labels; if empty, any label may be given."""
    ok: tuple[str, ...] = ()
    """The labels that are not failures."""
    built_in: bool = False
    short: str = ""
    """The heading of its column."""
    needs: Needs = ""

    @property
    def is_label(self) -> bool:
        """True if it gives labels, whose failures become findings."""
        return bool(self.ok)


ScoreItem: TypeAlias = Annotated[
    Check | Score | ScoreFailure | Finding | UserReview, Field(discriminator="kind")
]
"""Anything a scorer may return."""
