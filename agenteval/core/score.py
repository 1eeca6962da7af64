"""What scorers say of a conversation, and the words that verdicts are made of."""

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
        """One level more if ``proposed`` is above, whatever it is: an opinion never lowers."""
        raises = proposed is not None and proposed.rank > self.rank
        return list(Severity)[self.rank + 1] if raises else self


class Verdict(StrEnum):
    """The outcome of a sample, a scenario, a gate or a run."""

    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"

    @property
    def rank(self) -> int:
        """How bad it is, from 0."""
        return list(Verdict).index(self)

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """Failed beats inconclusive beats passed; of nothing: passed."""
        return max(verdicts, key=lambda verdict: verdict.rank, default=Verdict.PASSED)


class RuleKind(StrEnum):
    """What a rule of a policy is about. *Permission*: whether, for whom or how an act may be done.
    *Disclosure*: what the agent must say or ask on the way. *Style*: tone, order, courtesy."""

    PERMISSION = "permission"
    DISCLOSURE = "disclosure"
    STYLE = "style"


class References(Value):
    """Where a judge's verdict can be looked up, as the judge named it; code has checked what is there.

    ``call`` and ``other_call`` (the one that it repeats) count from 0 over all tool calls of the
    conversation; ``parameter`` is one of ``call``, ``tool`` one that was not called, or was not called for
    ``value``, which the agent names. ``source`` quotes what is not the agent's: what a claim contradicts, or
    where a withheld value stands. ``rule`` quotes the policy. Of a goal that was ruled out, ``fact`` quotes
    what brings this case under the rule, and ``difference`` what is not the same in a conversation that
    reached it.
    """

    call: int | None = None
    other_call: int | None = None
    parameter: str = ""
    tool: str = ""
    value: Annotated[str, Field(exclude_if=_is_empty)] = ""
    source: str = ""
    rule: str = ""
    fact: str = ""
    difference: str = ""


class Vote(Value):
    """One of several answers to one question, in the order in which they were given. ``against``: whether it
    would have counted against the agent."""

    verdict: float | str | None
    against: bool
    reason: str = ""
    evidence: str = ""
    references: References = References()
    usage: Usage | None = None


class Check(Value):
    """A rule of the scenario, held or not. A function of the author's returns one with ``name``, ``passed``
    and ``detail``; what else there is tells of the rules that are built in."""

    kind: Literal["check"] = "check"
    """What it is among all that scorers say."""
    name: str
    """The place of the rule under ``expect`` (``tool_calls``, ``output.contains``, ``limits.steps``), or
    ``no_error`` or ``answer``."""
    passed: bool | None
    """``None``: it could not be decided."""
    detail: str = ""
    """What held or did not, in words."""
    where: str = ""
    """The line that wrote it."""
    parts: tuple[str, ...] = ()
    """What of it did not hold, in the author's words and in names alone: the next run says the same."""
    if_all_seen: bool | None = None
    """Of a check that rests on the absence of a call: what it is (and ``detail`` and ``parts`` say) once it
    is known that all calls of the agent are seen; see ``agenteval.core.tool_visibility``."""
    turn: Annotated[int | None, Field(exclude_if=_is_none)] = None
    """Of a rule over a whole conversation, the turn (from 0) that broke it, where one shows it."""
    arose: bool = True
    """Of a criterion: whether its condition did. If not, nothing was decided by it."""
    by: str = ""
    """The model that judged it, if one did (``criteria``)."""
    scripted: bool = False
    """Whether that is no language model."""
    usage: Usage | None = None
    """What judging it cost."""
    votes: tuple[Vote, ...] = ()
    """What the model said each time that it was asked."""


OUTCOME = "outcome"
"""The check of a recorded conversation whose outcome is known: it decides what statistics count."""
MISSING_TURNS = "turns"
"""The check of a recorded conversation in which not all was said that a scenario expects something of."""


REACHED, MISSED, POLICY_BROKEN = "reached", "missed", "policy broken"
RULED_OUT, WITHDRAWN = "ruled out", "withdrawn"
"""What can become of a goal. *Policy broken*: reached by breaking a rule of kind permission. *Ruled out*: the
policy forbids it or the world does not allow it, and the agent said so plainly. *Withdrawn*: the user freely
gave it up."""
EXCUSES = (RULED_OUT, WITHDRAWN)
"""Outcomes that take a miss away: neither is one judge's word."""
NOT_CLEAR = "not clear"
"""What a judge says of a goal, a policy or a criterion that the record does not decide."""
_OPEN = frozenset((*EXCUSES, NOT_CLEAR))


class Score(Value):
    """A judgement: a number (``value``) or a label; of a goal both: the outcome and its value, which is
    ``None`` where it counts neither way. ``by`` names the judge's model.

    ``ok`` of a label: whether it is no failure (of a number, and of a label that decides nothing: ``None``).
    ``usage``: of the judge, in all. ``votes``: all its answers, where it was asked more than once; then this
    is the first that the majority agrees with. ``sampled``: it was asked again by lot, not since it would
    gate. ``twin``: of a goal that was ruled out, the conversation that reached it and that the judge was
    shown.
    """

    kind: Literal["score"] = "score"
    metric: str
    value: float | None = None
    label: str | None = None
    reason: str = ""
    evidence: str = ""
    references: References = References()
    by: str = ""
    scripted: bool = False
    ok: bool | None = None
    usage: Usage | None = None
    votes: tuple[Vote, ...] = ()
    sampled: bool = False
    twin: str = ""

    @property
    def calibrated(self) -> bool:
        """Whether its judge was compared with people's judgement: none is, until there are their labels."""
        return False

    @property
    def is_open(self) -> bool:
        """Whether it counts neither for the agent nor against it."""
        return self.value is None and self.ok is None and self.label in _OPEN


class ScoreFailure(Value):
    """A judge that failed. Never a score, never the agent's fault. ``raw`` is what it said. ``author``: it
    broke by the author's mistake (a scripted model without a rule), which ends the run with exit 2.
    ``refused``: the judge was not asked, since the budget was used up, or it had failed on every call.
    ``unclear``: it did not break, but answered that the record does not tell."""

    kind: Literal["failure"] = "failure"
    metric: str
    message: str
    raw: str = ""
    usage: Usage | None = None
    author: bool = False
    refused: bool = False
    unclear: bool = False
    unless_all_seen: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """It stands only if not all calls are seen."""
    worst: Annotated[Severity | None, Field(exclude_if=_is_none)] = None
    """The worst severity of what it might have found; ``None``: that is not known."""
    is_verdict: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """The judge had given a verdict that would gate. It was not upheld: its references are not there, or the
    second opinion on it was not given."""


AS_IT_SHOULD, HELPED, HINDERED = "as it should", "helped", "hindered"
"""How a simulated user acted."""
NOT_IN_SCENARIO = "the scenario did not say"
"""What is to be said of a user where nothing that is known of it settles whether it was at fault."""


class UserReview(Value):
    """What a judge said of the simulated user of a conversation. ``failed``: the conversation had, else it
    was drawn by lot. ``turn`` (from 0): where the fault lies; if it is the end, one more than there are.
    ``source``: what the ``evidence`` is at odds with. ``explains``: the conversation would have ended
    otherwise without it. ``recorded``: of a conversation in a log, whose user may have been a person."""

    kind: Literal["user_review"] = "user_review"
    label: str
    explains: bool = False
    turn: int | None = None
    failed: bool = True
    evidence: str = ""
    source: str = ""
    reason: str = ""
    by: str = ""
    scripted: bool = False
    usage: Usage | None = None
    recorded: Annotated[bool, Field(exclude_if=_is_empty)] = False

    @property
    def is_fault(self) -> bool:
        return self.label in (HELPED, HINDERED)

    @property
    def decides(self) -> bool:
        """Whether the outcome is the simulator's. A conversation that passed although it was hindered has."""
        return self.is_fault and self.explains and (self.failed or self.label == HELPED)

    @property
    def sentence(self) -> str:
        """Of a fault, in a sentence."""
        who = "the user" if self.recorded else "the simulated user"
        return f"{who} {self.label} the agent: {self.reason} (evidence: “{self.evidence}”)"


class Finding(Value):
    """One failing label on one turn.

    ``detector`` is the name of a check in code, or ``judge``. ``turn`` and ``call`` count from 0
    within the conversation, ``call`` over all its tool calls in order; ``None``: the whole of it.
    ``criterion`` is the sentence that did not hold, where a criterion is what was judged. ``span``:
    where ``evidence`` begins and ends in the answer of that turn, if it is quoted from there. ``also``:
    who else found it, each with what it said: ``judge: …``. ``references``: of a judge's, and the tool that a
    detector says was not called. ``rule_kind``: of the rule of the policy that was broken; ``None``: none
    was, or a scripted reply did not say. ``carried_out``: whether the words that break it do what it forbids,
    as a promise does and a refusal does not; ``None``: the judge did not say.
    """

    kind: Literal["finding"] = "finding"
    detector: str
    metric: str
    label: str
    severity: Severity
    turn: int | None = None
    call: int | None = None
    evidence: str = ""
    explanation: str = ""
    criterion: str = ""
    span: tuple[int, int] | None = None
    also: tuple[str, ...] = ()
    references: References = References()
    rule_kind: Annotated[RuleKind | None, Field(exclude_if=_is_empty)] = None
    carried_out: Annotated[bool | None, Field(exclude_if=_is_none)] = None
    scripted: bool = False
    if_all_seen: Annotated[bool, Field(exclude_if=_is_empty)] = False
    """It argues from a call that was not made, and stands only once all calls are known to be seen."""

    @property
    def found_by(self) -> str:
        """The name of the detector or ``judge``; of a finding of both, both."""
        return f"proven by code ({self.detector}), also found by the judge" if self.also else self.detector


class Occurrence(Value):
    """A sample in which an issue was found. ``findings`` are the places, from 0, of its findings in the
    sample's list of them."""

    scenario: str
    agent: str
    epoch: int = 0
    variant: str = ""
    findings: tuple[int, ...]


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
    """One root cause: findings of one agent that belong together. Each finding of a run is in exactly
    one issue.

    ``severity`` is the highest of its findings; ``proposed_severity`` a model's opinion. ``by`` names
    the model that grouped it, empty where code did. ``scripted``: the model, or a judge behind one of
    the findings, was no language model. ``examples`` are a few, from as many samples as possible.
    ``not_the_agents_fault``: why that model holds that another change than one of the agent would mend it; an
    opinion, which changes nothing else.
    """

    id: str
    agent: str
    title: str
    explanation: str = ""
    severity: Severity
    proposed_severity: Severity | None = None
    not_the_agents_fault: str = ""
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    tools: tuple[str, ...] = ()
    occurrences: tuple[Occurrence, ...]
    examples: tuple[IssueExample, ...] = ()
    by: str = ""
    scripted: bool = False

    @property
    def findings(self) -> int:
        """How many findings it has; a loop over eight turns of one sample is eight."""
        return sum(len(occurrence.findings) for occurrence in self.occurrences)

    @property
    def samples(self) -> int:
        """In how many samples it was found; a loop over eight turns of one sample is one."""
        return len(self.occurrences)

    @property
    def scenarios(self) -> int:
        """In how many scenarios it was found."""
        return len({occurrence.scenario for occurrence in self.occurrences})


Needs: TypeAlias = Literal["", "goal", "policy", "tools"]
"""Without what a metric is not judged: a goal of the scenario, a policy of the agent, tools at hand."""


class MetricSpec(Value):
    """What is known of a metric before anything is judged.

    ``kind`` says what its aggregate is: the ``mean`` of numbers on ``scale``, or a ``rate``: the share
    of goals completed, or of labels that are no failure (``ok``; empty ``labels``: any may be given).
    ``short``: the head of its column.
    """

    name: str
    scope: Literal["turn", "conversation"]
    kind: Literal["mean", "rate"]
    scale: tuple[float, float] = (0.0, 1.0)
    labels: tuple[str, ...] = ()
    ok: tuple[str, ...] = ()
    built_in: bool = False
    short: str = ""
    needs: Needs = ""

    @property
    def is_label(self) -> bool:
        """Whether it gives labels, whose failures become findings."""
        return bool(self.ok)


ScoreItem: TypeAlias = Annotated[
    Check | Score | ScoreFailure | Finding | UserReview, Field(discriminator="kind")
]
"""Anything a scorer may return."""
