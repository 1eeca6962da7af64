"""A score is on its scale, ends included, or the reply is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agenteval.scoring.judges.replies import _score_type, describe_scale


@pytest.mark.parametrize(
    ("scale", "value", "score"),
    [
        ((1, 5, True), 1, 1),
        ((1, 5, True), 5, 5),
        ((1, 5, True), "4/5", 4),
        ((1, 5, True), None, None),
        ((0, 1, True), 0, 0),
        ((0, 1, False), 0, 0),
        ((0, 1, False), 0.5, 0.5),
        ((0, 1, False), 1, 1),
    ],
)
def test_a_score_on_the_scale(scale: tuple[float, float, bool], value: Any, score: float | None) -> None:
    reply = _score_type(*scale).model_validate({"evidence": "", "reason": "", "score": value})
    assert reply.score == score  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("scale", "value"),
    [
        ((1, 5, True), 0),
        ((1, 5, True), 6),
        ((1, 5, True), 2.5),
        ((1, 5, True), True),
        ((1, 5, True), "good"),
        ((0, 1, False), -0.1),
        ((0, 1, False), 1.1),
    ],
)
def test_a_score_off_the_scale(scale: tuple[float, float, bool], value: Any) -> None:
    with pytest.raises(ValidationError):
        _score_type(*scale).model_validate({"evidence": "", "reason": "", "score": value})


def test_a_scale_in_a_phrase() -> None:
    assert describe_scale(0, 1, whole=True) == "0 or 1"
    assert "1 to 5" in describe_scale(1, 5, whole=True)
    assert "whole" not in describe_scale(1, 5, whole=False)
