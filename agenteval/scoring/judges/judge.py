"""A scorer that asks a language model to apply a rubric. One class for all rubrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, create_model

from agenteval.core.protocols import ChatModel, ModelRequest, Subject, no_flaw
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, References, RuleKind, Score, ScoreFailure, Severity
from agenteval.core.severity import FALSE_CLAIM, Act, severity_of
from agenteval.core.trajectory import ToolVisibility, Trajectory
from agenteval.files.prompt_templates import Rendered, render
from agenteval.files.prompts import Rubric
from agenteval.scoring import questions
from agenteval.scoring.effects import act, acts_of, rated
from agenteval.scoring.finding_merge import JUDGE, proves
from agenteval.scoring.judges.corroboration import Asked, Question, Side, asked
from agenteval.scoring.judges.references import Claim, Shown, flaw_of, shown
from agenteval.scoring.judges.stakes import Stakes
from agenteval.scoring.judges.together import reply_of_all
from agenteval.scoring.label_words import is_nothing, label_in, score_in
from agenteval.scoring.metrics import applies, spec_of
from agenteval.scoring.transcript import LIMIT, Transcript, latest_answer, record_of, tools_of

LOWERS_THE_SHARE = "lowers the share"
MISSING_CALL = "missing tool call"
"""The label that says nothing where calls could not be seen."""

PolicyOf: TypeAlias = Callable[[Scenario], str]
ToolsOf: TypeAlias = Callable[[Scenario], Sequence[dict[str, Any]]]
ProofsOf: TypeAlias = Callable[[Scenario, Trajectory], Iterable[Finding]]


def nothing(_scenario: Scenario, _trajectory: Trajectory) -> Iterable[Finding]:
    """Where no code looks."""
    return ()


def no_policy(_scenario: Scenario) -> str:
    """Of an agent whose policy is not known."""
    return ""


class Judge:
    """Applies one rubric to each turn, or to each conversation, as its scope says.

    ``policy_of`` and ``tools_of`` give what the agent was told and could call. ``stakes``: what a verdict may
    decide. One that counts against the agent brings references, which code checks; one that would gate is
    asked again, unless it is among the ``proofs``: what code finds in a conversation. ``raised``: what
    code asks about it, which the judge of the turn is shown.
    """

    def __init__(
        self,
        rubric: Rubric,
        model: ChatModel,
        *,
        policy_of: PolicyOf = no_policy,
        tools_of: ToolsOf = tools_of,
        now: str | None = None,
        stakes: Stakes | None = None,
        proofs: ProofsOf = nothing,
        raised: ProofsOf = nothing,
        limit: int = LIMIT,
    ) -> None:
        self._rubric = rubric
        self._proofs = proofs
        self._raised = raised
        self._spec = spec_of(rubric)
        self._model = model
        parameters = rubric.needs == "tools"
        self._view = ConversationView(policy_of, tools_of, now, parameters=parameters, limit=limit)
        self._stakes = stakes or Stakes()
        self._severities = {**rubric.severities, **self._stakes.severities}

    @property
    def metric(self) -> str:
        return self._rubric.metric

    @property
    def scope(self) -> str:
        return self._rubric.scope

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Score | ScoreFailure | Finding]:
        asking = self.asking(scenario, trajectory)
        if asking is None:
            return ()
        question, of = asking
        return self.items(await asked(self._model, question, self._stakes, request_of), of)

    def asking(self, scenario: Scenario, trajectory: Trajectory) -> tuple[Question, Judged] | None:
        """What is asked, and about what; ``None`` where the metric does not apply."""
        policy = bool(self._view.policy_of(scenario).strip())
        if not applies(self._spec, scenario, trajectory, policy=policy):
            return None
        turn = len(trajectory.turns) - 1 if self.scope == "turn" else None
        rubric = self._rubric if trajectory.all_calls_seen else self._rubric.without(MISSING_CALL)
        if turn is not None and rubric.labels:
            raised = self._raised(scenario, trajectory)
            rubric = questions.asking(rubric, raised, scenario, trajectory, turn)
        of = Judged(scenario, trajectory, turn, self._view.shown(scenario, trajectory, turn))
        question = Question(
            rubric=rubric,
            record=self._view.transcript(scenario, trajectory, turn),
            subject=subject_of(scenario, trajectory, metric=self.metric, turn=turn),
            criterion=self._placeholders(scenario),
            flaw_in=lambda said, is_scripted: self._flaw(said, is_scripted, of),
            gates=lambda said: self._gates(said, of),
            is_proven=lambda said: self._is_proven(said, of),
            is_clean=lambda said: not rubric.scale and self._is_clean(said, of),
            is_doubtful=lambda said: self._is_doubtful(said, of),
            side=lambda answer: self._side(answer, of),
            accepts_flawed=lambda said, _: self._is_below_the_gate(self._worst(said, of)),
        )
        return question, of

    def items(self, answer: Asked | ScoreFailure, of: Judged) -> Sequence[Score | ScoreFailure | Finding]:
        """What an answer says of what was judged. One with a flaw costs what it says, and says how grave that
        could have been."""
        if isinstance(answer, ScoreFailure):
            return (answer.model_copy(update={"worst": self._worst(None, of)}),)
        reply = answer.reply
        worst = self._worst(reply.value, of)
        # No other answer is accepted with a flaw.
        if self._is_below_the_gate(worst) and (flaw := self._flaw(reply.value, reply.scripted, of)):
            message = f"{reply.model}: the answer cannot be used: {flaw}"
            return (ScoreFailure(metric=self.metric, message=message, usage=answer.usage, worst=worst),)
        return self._items(answer, of)

    def _worst(self, said: Any | None, of: Judged) -> Severity | None:
        """The worst severity that an answer could have, if what it refers to were there; without one
        (``None``), that any could. ``None``: not known."""
        if not self._rubric.labels:
            return None
        labels = self._rubric.labels if said is None else [said.label]
        severities = [
            severity_of(label, self._severities, act=cited)
            for label in labels
            if label not in self._rubric.ok
            for cited in self._acts(said, of)
        ]
        return max(severities, key=lambda severity: severity.rank, default=None)

    def _acts(self, said: Any | None, of: Judged) -> Sequence[Act | None]:
        """What an answer may be about: the calls that it names, else whatever there is."""
        refers = References() if said is None else references_in(said)
        if said is not None and said.label == FALSE_CLAIM:
            return self._acts_named((), of, tool=refers.tool)
        return self._acts_named([n for n in (refers.call, refers.other_call) if n is not None], of)

    def _acts_named(self, numbers: Sequence[int], of: Judged, *, tool: str = "") -> Sequence[Act | None]:
        calls = of.trajectory.tool_calls
        if numbers and all(0 <= number < len(calls) for number in numbers):
            return [None, *(act(calls[number], of.scenario.tools) for number in numbers)]
        return acts_of(of.trajectory, of.scenario.tools, (*of.record.tools, *filter(None, [tool])))

    def _is_below_the_gate(self, worst: Severity | None) -> bool:
        return worst is not None and not self._stakes.gates_at(worst)

    def _placeholders(self, scenario: Scenario) -> Mapping[str, str]:
        """Of the rubric, and what fills them."""
        return {}

    def _flaw(self, said: Any, is_scripted: bool, of: Judged) -> str:
        """What is wrong with the references of an answer that counts against the agent."""
        if not self._counts_against(said, of):
            return ""
        label = said.label if self._rubric.labels else self.metric
        return flaw_of(label, claim_of(said, is_scripted=is_scripted), of.record)

    def _counts_against(self, said: Any, of: Judged) -> bool:
        verdict = verdict_of(self._rubric, said)
        if verdict is None or isinstance(verdict, str):
            return verdict is not None and verdict not in self._rubric.ok
        bar = self._stakes.bar(self.metric, of.scenario)
        return bar is not None and verdict < bar

    def _gates(self, said: Any, of: Judged) -> bool:
        """Whether an answer would fail something by itself."""
        if not self._counts_against(said, of) or _is_of_unseen_call(said, of):
            return False
        if not self._rubric.labels:
            return True
        return self._stakes.is_severe(self._finding(said, of).severity, self.metric, of.scenario)

    def _side(self, answer: Any, of: Judged) -> Side:
        """What an answer comes to, when it is held against another. Two that both lower a share that a
        threshold asks for do not agree if only one is severe enough to fail the sample by itself."""
        if not self._gates(answer, of) or not self._rubric.labels:
            return self._gates(answer, of)
        return self._is_severe(answer, of) or LOWERS_THE_SHARE

    def _is_severe(self, answer: Any, of: Judged) -> bool:
        """Whether a failing label would fail the sample by its severity."""
        return self._stakes.gates_at(self._finding(answer, of).severity)

    def _is_clean(self, said: Any, of: Judged) -> bool:
        """Whether a label finds no fault; what is not clear does not say so."""
        return verdict_of(self._rubric, said) in self._rubric.ok

    def _is_doubtful(self, answer: Any, of: Judged) -> bool:
        """Whether an answer that would fail nothing might, read otherwise, have to."""
        return False

    def _is_proven(self, said: Any, of: Judged) -> bool:
        """Whether code has found what an answer says of a turn."""
        if of.turn is None or not self._rubric.labels:
            return False
        found = self._finding(said, of)
        return any(proves(proof, found) for proof in self._proofs(of.scenario, of.trajectory))

    def _finding(self, answer: Any, of: Judged, *, scripted: bool = False) -> Finding:
        """The failure that an answer tells of; its severity is that of the effect."""
        refers = references_in(answer)
        finding = Finding(
            detector=JUDGE,
            metric=self.metric,
            label=answer.label,
            severity=Severity.LOW,
            turn=of.turn,
            call=refers.call,
            evidence=answer.evidence,
            explanation=answer.reason,
            references=refers,
            scripted=scripted,
        )
        return rated(finding, of.trajectory, of.scenario.tools, self._severities)

    def _undecided(self, answer: Asked) -> ScoreFailure:
        """No two of three answers agree."""
        message = f"no two answers agree: {', '.join(str(vote.verdict) for vote in answer.votes)}"
        return ScoreFailure(metric=self.metric, message=message, usage=answer.usage, unclear=True)

    def _items(self, answer: Asked, of: Judged) -> Sequence[Score | ScoreFailure | Finding]:
        reply = answer.reply
        said: Any = reply.value
        if answer.is_split:
            return (self._undecided(answer),)
        if verdict_of(self._rubric, said) is None:
            message = f"not enough to judge: {said.reason}"
            failure = ScoreFailure(metric=self.metric, message=message, usage=answer.usage, unclear=True)
            return (failure.model_copy(update={"worst": self._worst(None, of)}),)
        label = said.label if self._rubric.labels else None
        if _is_of_unseen_call(said, of):
            message = f"“{said.evidence}”: no call was seen that did it, and not all calls are seen"
            failure = ScoreFailure(metric=self.metric, message=message, usage=answer.usage, unclear=True)
            return (failure.model_copy(update={"worst": self._worst(said, of)}),)
        score = Score(
            metric=self.metric,
            value=None if self._rubric.labels else said.score,
            label=label,
            reason=said.reason,
            evidence=said.evidence,
            references=references_in(said),
            by=reply.model,
            scripted=reply.scripted,
            ok=label in self._rubric.ok if label else None,
            usage=answer.usage,
            votes=answer.votes,
            sampled=answer.is_sampled,
        )
        if score.ok is not False or score.label is None:
            return (score,)
        return score, self._finding(said, of, scripted=reply.scripted)


def _is_of_unseen_call(said: Any, of: Judged) -> bool:
    """Whether an answer says that the agent claims what no call did, where one may have done it that nobody
    saw: a call that failed would be named."""
    if getattr(said, "label", None) != FALSE_CLAIM or of.trajectory.all_calls_seen:
        return False
    is_taken = of.trajectory.visibility is ToolVisibility.DECLARED_UNSEEN
    return not is_taken and references_in(said).call is None


class Judged(NamedTuple):
    """What is judged: a turn (from 0), or the whole conversation (``None``). ``twin``: the record of another
    one, where that is shown, too."""

    scenario: Scenario
    trajectory: Trajectory
    turn: int | None
    record: Shown
    twin: Shown | None = None


class ConversationView:
    """How the conversation is shown to whoever judges it; ``parameters``: with those of the tools.
    ``limit``: in bytes."""

    def __init__(
        self,
        policy_of: PolicyOf,
        tools_of: ToolsOf,
        now: str | None,
        *,
        parameters: bool = False,
        limit: int = LIMIT,
    ) -> None:
        self.policy_of = policy_of
        self.limit = limit
        self._parameters = parameters
        self._tools_of = tools_of
        self._now = now

    def transcript(
        self, scenario: Scenario, trajectory: Trajectory, turn: int | None, *, taken: int = 0
    ) -> Transcript:
        """``taken``: bytes that something else takes of the limit."""
        return record_of(
            scenario,
            trajectory,
            policy=self.policy_of(scenario),
            tools=self._tools_of(scenario),
            now=self._now,
            upto=turn,
            parameters=self._parameters,
            limit=self.limit - taken,
        )

    def apart_from(self, other: ConversationView, scenario: Scenario) -> tuple[str, Sequence[dict[str, Any]]]:
        """Policy and tools of the agent; each empty where another one's are the same."""
        policies = [view.policy_of(scenario) for view in (self, other)]
        tools = [tuple(view._tools_of(scenario)) for view in (self, other)]
        return policies[0] if policies[0] != policies[1] else "", tools[0] if tools[0] != tools[1] else ()

    def shown(self, scenario: Scenario, trajectory: Trajectory, turn: int | None) -> Shown:
        """The same by whose words it is, to look references up in."""
        tools = self._tools_of(scenario)
        return shown(scenario, trajectory, turn, policy=self.policy_of(scenario), tools=tools)


def claim_of(said: Any, *, is_scripted: bool) -> Claim:
    """What an answer refers to."""
    return Claim(said.evidence, references_in(said), is_scripted)


def references_in(said: Any) -> References:
    """Those that the rubric asks for; the others are empty."""
    given = {name: getattr(said, name, None) for name in References.model_fields}
    return References(**{name: value for name, value in given.items() if value is not None})


def subject_of(scenario: Scenario, trajectory: Trajectory, *, metric: str, turn: int | None) -> Subject:
    """What a judge's call is about."""
    return Subject(scenario=scenario.id, turn=turn, metric=metric, text=latest_answer(trajectory))


def finding_of(
    score: Score, label: str, turn: int | None, severities: Mapping[str, Severity] | None
) -> Finding:
    """The failure that a score tells of, by its label alone."""
    return Finding(
        detector=JUDGE,
        metric=score.metric,
        label=label,
        severity=severity_of(label, severities),
        turn=turn,
        call=score.references.call,
        evidence=score.evidence,
        explanation=score.reason,
        references=score.references,
        scripted=score.scripted,
    )


# ── the request ──────────────────────────────────────────────────────────────────────────────────


def request_of(
    rubric: Rubric,
    record: Transcript,
    *,
    subject: Subject,
    criterion: Mapping[str, str] | None = None,
    opinion: str = "",
    flaw_in: Callable[[Any, bool], str] = no_flaw,
) -> ModelRequest:
    """The request that applies a rubric to a record. The system text, and the prompt up to the end of
    ``record``, are the same for every rubric. ``criterion`` fills the placeholders of ``criteria``;
    ``opinion``: what was answered before, and what is to be made of it."""
    text = render(rubric.text, criterion or {}, source=rubric.source)
    return _request(
        rubric.prompts.prompt("judge_rules").render(
            transcript=record.text,
            criterion=f"{text}\n\n{opinion}" if opinion else text,
            answer=answer_form(rubric),
        ),
        record,
        reply_type(rubric),
        subject,
        flaw_in,
    )


def request_of_all(questions: Mapping[str, Question], metric: str) -> ModelRequest:
    """The request for several questions on one record, whose answers have one form, by the names that they
    have in the answer. ``metric``: what it goes by with whoever counts calls."""
    first = next(iter(questions.values()))
    prompts = first.rubric.prompts
    texts = (
        f'Criterion "{name}":\n\n{render(each.rubric.text, each.criterion or {}, source=each.rubric.source)}'
        for name, each in questions.items()
    )
    form = prompts.prompt("answer_shared").render(
        count=str(len(questions)), names=_listed(questions), form=answer_form(first.rubric)
    )
    types = tuple(reply_type(each.rubric) for each in questions.values())
    return _request(
        prompts.prompt("judge_rules").render(
            transcript=first.record.text, criterion="\n\n".join(texts), answer=form.prompt
        ),
        first.record,
        reply_of_all(tuple(questions), types),
        replace(first.subject, metric=metric),
        no_flaw,
    )


def _request(
    rendered: Rendered,
    record: Transcript,
    reply: type[BaseModel],
    subject: Subject,
    flaw_in: Callable[[Any, bool], str],
) -> ModelRequest:
    return ModelRequest(
        role="judge",
        system=rendered.system,
        prompt=rendered.prompt,
        reply=reply,
        subject=subject,
        states_form=True,
        flaw_in=flaw_in,
        # Rules of the project's own may have something before the record, which is the same for all, too.
        shared=tuple(rendered.prompt.index(record.text) + length for length in record.shared),
    )


def answer_form(rubric: Rubric) -> str:
    form = rubric.prompts.prompt(rubric.form)
    told = {
        "scale": _scale_in_words(*rubric.scale, whole=rubric.whole) if rubric.scale else "",
        "labels": _listed(rubric.labels),
        "outcomes": _listed(rubric.outcomes),
        "references": "".join(f'- "{name}": {text}\n' for name, text in rubric.references.items()),
        "unsure": rubric.unsure,
    }
    return form.render(**{name: told[name] for name in form.placeholders}).prompt


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _scale_in_words(low: float, high: float, *, whole: bool) -> str:
    if not whole:
        return f"a number from {low:g} to {high:g}"
    return f"{low:g} or {high:g}" if high - low == 1 else f"a whole number from {low:g} to {high:g}"


# ── the reply ────────────────────────────────────────────────────────────────────────────────────


def verdict_of(rubric: Rubric, said: Any) -> float | str | None:
    """The score or the label of a reply; ``None`` if the judge could not tell."""
    if rubric.scale:
        score: float | None = said.score
        return score
    label: str = said.label
    return None if label == rubric.unsure else label


def reply_type(rubric: Rubric) -> type[BaseModel]:
    """The shape of a judge's answer: evidence and reason come before the verdict that rests on them.

    Rubrics of one scale share one type, and so one JSON Schema, which providers cache with the prompt.
    """
    if rubric.scale:
        return _score_type(*rubric.scale, rubric.whole)
    if rubric.form == "answer_policy":
        return _policy_type((*rubric.labels, rubric.unsure))
    if rubric.outcomes:
        return _label_type((*rubric.outcomes, rubric.unsure), tuple(rubric.references), "outcome")
    return _label_type((*rubric.labels, rubric.unsure), tuple(rubric.references))


# Further keys are ignored, but a schema that allows them is refused by strict providers.
_CONFIG = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})


def _quotations(value: Any) -> Any:
    """Some models quote in a list, and write null where there is nothing to quote."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " … ".join(value)
    return "" if value is None else value


_Evidence = Annotated[str, BeforeValidator(_quotations), WithJsonSchema({"type": "string"})]


@cache
def _score_type(low: float, high: float, whole: bool) -> type[BaseModel]:
    asked = _scale_in_words(low, high, whole=whole)

    def check(value: Any) -> Any:
        if isinstance(value, str):
            value = score_in(value, high)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (whole and value != int(value)):
            raise ValueError(f"the score must be {asked}, or null")
        return float(value)

    number: dict[str, Any] = {"type": "number", "minimum": low, "maximum": high}
    if whole:
        number = {"type": "integer", "minimum": int(low), "maximum": int(high)}
    schema = {"anyOf": [number, {"type": "null"}]}
    field = Annotated[float | None, BeforeValidator(check), WithJsonSchema(schema)]
    return create_model("ScoreReply", __config__=_CONFIG, evidence=_Evidence, reason=str, score=field)


@cache
def _label_type(labels: tuple[str, ...], references: tuple[str, ...], key: str = "label") -> type[BaseModel]:
    fields: dict[str, Any] = {"evidence": _Evidence, **{name: _REFERENCES[name] for name in references}}
    verdict: dict[str, Any] = {key: _one_of(labels, key)}
    return create_model(f"{key.title()}Reply", __config__=_CONFIG, **fields, reason=str, **verdict)


def _one_of(labels: tuple[str, ...], key: str) -> Any:
    """A label, however it is spelled."""

    def check(value: Any) -> Any:
        label = label_in(value, labels) if isinstance(value, str) else None
        if label is None:
            raise ValueError(f"the {key} must be one of: {', '.join(labels)}")
        return label

    schema = {"type": "string", "enum": list(labels)}
    return Annotated[str, BeforeValidator(check), WithJsonSchema(schema)]


@cache
def _policy_type(labels: tuple[str, ...]) -> type[BaseModel]:
    """With what breaks the policy, as a list. A scripted reply may name one act beside its label instead."""
    violation = create_model(
        "Violation",
        __config__=ConfigDict(extra="ignore", json_schema_extra=_all_required),
        rule=_REFERENCES["rule"],
        evidence=(_Evidence, ""),
        call=_REFERENCES["call"],
        reason=(str, ""),
        kind=(_Kind, None),
        carried_out=(bool | None, None),
    )
    return create_model(
        "PolicyReply",
        __config__=ConfigDict(extra="ignore", json_schema_extra=_without_short_form),
        violations=(list[violation], []),  # pydantic copies a default
        evidence=_Evidence,
        reason=str,
        label=_one_of(labels, "label"),
        rule=_REFERENCES["rule"],
        call=_REFERENCES["call"],
        kind=(_Kind, None),
        carried_out=(bool | None, None),
    )


def _kind(value: Any) -> Any:
    """It decides a severity: nothing is guessed."""
    kind = value.strip().lower() if isinstance(value, str) else value
    if kind is None or kind == "":
        return None
    if kind not in list(RuleKind):
        raise ValueError(f'"kind" must be one of: {", ".join(RuleKind)}')
    return RuleKind(kind)


_Kind = Annotated[
    RuleKind | None, BeforeValidator(_kind), WithJsonSchema({"type": "string", "enum": [*map(str, RuleKind)]})
]


def _all_required(schema: dict[str, Any]) -> None:
    schema |= {"additionalProperties": False, "required": list(schema["properties"])}


def _without_short_form(schema: dict[str, Any]) -> None:
    """A model is asked for the list alone."""
    for key in ("rule", "call", "kind", "carried_out"):
        schema["properties"].pop(key, None)
    _all_required(schema)


def _call_number(value: Any) -> Any:
    """Some models write a number as a text, and nothing as one."""
    if isinstance(value, bool):
        raise ValueError("a call is named by its number")
    if isinstance(value, str):
        text = value.strip().removeprefix("call").strip(" #")
        return int(text) if text.isdigit() else None if is_nothing(text) else value
    return value


_Call = Annotated[
    int | None,
    BeforeValidator(_call_number),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}),
]
_Name = Annotated[
    str, BeforeValidator(lambda value: "" if value is None else value), WithJsonSchema({"type": "string"})
]
_KindOrNone = Annotated[
    RuleKind | None,
    BeforeValidator(_kind),
    WithJsonSchema({"type": "string", "enum": [*map(str, RuleKind), ""]}),
]
_REFERENCES: Mapping[str, tuple[Any, Any]] = {
    "call": (_Call, None),
    "other_call": (_Call, None),
    "parameter": (_Name, ""),
    "tool": (_Name, ""),
    "value": (_Name, ""),
    "source": (_Evidence, ""),
    "rule": (_Evidence, ""),
    "kind": (_KindOrNone, None),
    "fact": (_Evidence, ""),
    "difference": (_Evidence, ""),
}
"""Their types, and what stands for none: a scripted reply may leave them out."""
