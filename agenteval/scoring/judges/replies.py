"""Defines the types for the replies of an LLM judge (structured output), and parses the verdict in a judge
reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema, create_model

from agenteval.core.digits import parse_digits
from agenteval.core.score import References, RuleKind
from agenteval.files.prompts import Rubric
from agenteval.scoring.judges.references import Claim
from agenteval.scoring.verdict_parsing import means_nothing, parse_label, parse_score


def build_claim(answer: Any, *, is_scripted: bool) -> Claim:
    """Return the claim that an answer makes, with its references."""
    return Claim(answer.evidence, read_references(answer), is_scripted)


def read_references(answer: Any) -> References:
    """Return the references that the rubric requires. All other references are empty."""
    values = {name: vars(answer).get(name) for name in References.model_fields}
    return References(**{name: value for name, value in values.items() if value is not None})


def read_verdict(rubric: Rubric, answer: Any) -> float | str | None:
    """Return the verdict (score or label) in a judge reply, or ``None`` if the judge could not decide."""
    if rubric.scale:
        score: float | None = answer.score
        return score
    label: str = answer.label
    return None if label == rubric.unsure else label


def build_reply_type(rubric: Rubric) -> type[BaseModel]:
    """Return the type for a judge's answer (structured output). The evidence and the reason precede the
    verdict that is based on them.

    All rubrics with the same scale share one type, and therefore one JSON Schema, which providers cache with
    the prompt."""
    if rubric.scale:
        return _score_type(*rubric.scale, rubric.whole)
    if rubric.form == "answer_policy":
        return _policy_type((*rubric.labels, rubric.unsure))
    if rubric.outcomes:
        return _label_type((*rubric.outcomes, rubric.unsure), tuple(rubric.references), "outcome")
    return _label_type((*rubric.labels, rubric.unsure), tuple(rubric.references))


# Further keys are ignored, but strict providers refuse a schema that allows them.
_CONFIG = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})


def _quotations(value: Any) -> Any:
    """Join quotations. Some models return a list of quotations, or null if there is nothing to quote."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " … ".join(value)
    return "" if value is None else value


_Evidence = Annotated[str, BeforeValidator(_quotations), WithJsonSchema({"type": "string"})]


def describe_scale(low: float, high: float, *, whole: bool) -> str:
    """Describe a scale in a phrase, such as ``a whole number from 1 to 5``."""
    if not whole:
        return f"a number from {low:g} to {high:g}"
    return f"{low:g} or {high:g}" if high - low == 1 else f"a whole number from {low:g} to {high:g}"


@cache
def _score_type(low: float, high: float, whole: bool) -> type[BaseModel]:
    scale_text = describe_scale(low, high, whole=whole)

    def check(value: Any) -> Any:
        if isinstance(value, str):
            value = parse_score(value, high)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or (whole and value != int(value)):
            raise ValueError(f"the score must be {scale_text}, or null")
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


def _number(word: str) -> Any:
    """Return the type for a number by which the record counts. Some models return it as a string, or return a
    string to state that there is none."""

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError(f"a {word} must be given as its number")
        if isinstance(value, str):
            text = value.strip().lower().removeprefix(word).strip(" #")
            number = parse_digits(text)
            return number if number is not None else None if means_nothing(text) else value
        return value

    return BeforeValidator(read)


def _one_of(labels: tuple[str, ...], key: str) -> Any:
    """Return the type for a label. The type accepts any spelling of the label."""

    def check(value: Any) -> Any:
        label = parse_label(value, labels) if isinstance(value, str) else None
        if label is None:
            raise ValueError(f"the {key} must be one of: {', '.join(labels)}")
        return label

    schema = {"type": "string", "enum": list(labels)}
    return Annotated[str, BeforeValidator(check), WithJsonSchema(schema)]


@cache
def _policy_type(labels: tuple[str, ...]) -> type[BaseModel]:
    """Return the type for a policy judge's answer, including a list of violations.

    A scripted reply may instead contain a single violation along with its label."""
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
        violations=(list[violation], []),  # pydantic copies the default
        evidence=_Evidence,
        reason=str,
        label=_one_of(labels, "label"),
        rule=_REFERENCES["rule"],
        call=_REFERENCES["call"],
        kind=(_Kind, None),
        carried_out=(bool | None, None),
    )


def _kind(value: Any) -> Any:
    """Parse the kind of a rule. Nothing is guessed, because the kind determines a severity."""
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
    """Remove the short form from the schema, because models are asked only for the list."""
    for key in ("rule", "call", "kind", "carried_out"):
        schema["properties"].pop(key, None)
    _all_required(schema)


_Call = Annotated[
    int | None,
    _number("call"),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}),
]
_Turn = Annotated[int, _number("turn"), WithJsonSchema({"type": "integer", "minimum": 1})]
_Question = Annotated[
    int | None,
    _number("question"),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}),
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
"""The types of references, and their default values for scripted replies, which may leave references out."""


# ── several answers in one ───────────────────────────────────────────────────────────────────────


@cache
def build_shared_reply_type(names: tuple[str, ...], types: tuple[type[BaseModel], ...]) -> type[BaseModel]:
    """Return the type of an object that contains one answer for each name.

    An answer that does not conform to its type becomes ``None`` and does not invalidate the remaining
    answers."""
    fields: dict[str, Any] = {
        name: (_optional_reply(reply_type), None) for name, reply_type in zip(names, types, strict=True)
    }
    return create_model(
        "SharedReply",
        __config__=ConfigDict(
            extra="ignore", json_schema_extra={"additionalProperties": False, "required": list(names)}
        ),
        **fields,
    )


def build_review_reply_type(rubrics: Sequence[Rubric]) -> type[BaseModel]:
    """Return the type of an object that contains a list of findings for each rubric. A finding has the keys
    of an answer to its rubric, and the number of its turn. Notes on all turns precede the findings."""
    return _review_type(
        tuple(
            (rubric.metric, (*rubric.labels, rubric.unsure), tuple(rubric.references)) for rubric in rubrics
        )
    )


@cache
def _review_type(rubrics: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]) -> type[BaseModel]:
    lists: dict[str, Any] = {}
    for metric, labels, references in rubrics:
        fields: dict[str, Any] = {name: _REFERENCES[name] for name in references}
        finding = create_model(
            f"{metric}_finding",
            __config__=_CONFIG,
            turn=_Turn,
            question=(_Question, None),
            evidence=_Evidence,
            **fields,
            reason=str,
            label=_one_of(labels, "label"),
        )
        lists[metric] = list[finding]
    return create_model("ReviewReply", __config__=_CONFIG, reason=str, **lists)


def read_finding(finding: BaseModel, rubric: Rubric) -> BaseModel:
    """Return a finding in a review as an answer to its rubric. Raise ``ValidationError`` if the rubric does
    not offer its label."""
    return build_reply_type(rubric).model_validate(finding.model_dump())


def build_clean_reply(rubric: Rubric) -> BaseModel:
    """Return the answer of a rubric's judge about a turn in which a review finds no failure."""
    label = next(label for label in rubric.labels if label in rubric.ok)
    return build_reply_type(rubric).model_validate({"evidence": "", "reason": _CLEAN_REASON, "label": label})


_CLEAN_REASON = "The review of all turns found nothing in this one."


def _optional_reply(reply_type: type[BaseModel]) -> Any:
    def read(value: Any) -> Any:
        try:
            return reply_type.model_validate(value)
        except ValidationError:
            return None

    schema = reply_type.model_json_schema()
    schema.pop("title", None)
    return Annotated[reply_type | None, BeforeValidator(read), WithJsonSchema(schema)]
