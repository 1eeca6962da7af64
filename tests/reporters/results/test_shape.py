"""The format of the results: fields that are read, left out and refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.core.score import References, Score, ScoreFailure
from agenteval.core.trajectory import Usage
from agenteval.reporters.results.shape import (
    RESULTS_VERSION,
    CheckShape,
    NoticeShape,
    Results,
    ScoreFailureShape,
    ScoreShape,
    Shape,
    UsageShape,
    VoteShape,
)


@dataclass
class Given:
    level: str = "info"
    text: str = "t"
    other: int = 3


def test_fields_are_read_from_the_value_and_from_what_is_given() -> None:
    found = NoticeShape.from_value(Given(), sample="s")
    assert found.model_dump() == {"level": "info", "text": "t", "sample": "s"}
    assert NoticeShape.from_value(Given(), sample=None, text="mine").text == "mine"


def test_a_field_that_nobody_gives_is_missing() -> None:
    with pytest.raises(ValidationError):
        NoticeShape.from_value(Given())


def test_an_unknown_field_is_refused_when_writing_and_allowed_to_readers() -> None:
    with pytest.raises(ValidationError):
        NoticeShape(level="info", text="t", sample=None, more=1)  # type: ignore[call-arg]
    assert "additionalProperties" not in NoticeShape.model_json_schema(mode="serialization")
    assert issubclass(NoticeShape, Shape)


@pytest.mark.parametrize(
    ("field", "value", "is_shown"),
    [
        ("by", "m", True),
        ("by", "", False),
        ("by", None, False),
        ("scripted", False, True),
        ("scripted", None, False),
        ("arose", False, True),
        ("fingerprints", [], False),
        ("fingerprints", ["f"], True),
    ],
)
def test_a_field_that_does_not_apply_is_left_out(field: str, value: Any, is_shown: bool) -> None:
    check = CheckShape(name="n", passed=None, detail="", where="", **{field: value})
    assert (field in check.model_dump()) is is_shown


def test_references_have_only_what_was_given() -> None:
    references = References(call=0, rule="r")
    vote = VoteShape.from_value(
        Given(), verdict=4, against=True, reason="", evidence="", references=references
    )
    assert vote.references == {"call": 0, "rule": "r"}


def test_a_judge_that_was_not_asked_says_so() -> None:
    for refused in (True, False):
        failure = ScoreFailure(metric="m", message="x", refused=refused)
        assert ScoreFailureShape.model_validate(failure).not_asked is refused


def test_scores_and_usage_are_read_as_they_are() -> None:
    assert ScoreShape.model_validate(Score(metric="m", value=4.0, reason="r")).model_dump() == {
        "value": 4.0,
        "label": None,
        "ok": None,
        "reason": "r",
        "evidence": "",
        "by": "",
        "scripted": False,
        "calibrated": False,
    }
    usage = UsageShape.model_validate(Usage(calls=2, cached_calls=1, input_tokens=3)).model_dump()
    assert (usage["calls"], usage["cached_calls"], usage["input_tokens"], usage["cost"]) == (2, 1, 3, None)


def test_the_version_is_that_of_the_format() -> None:
    assert Results.model_json_schema()["properties"]["schema_version"]["const"] == RESULTS_VERSION
