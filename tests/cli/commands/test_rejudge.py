"""``agenteval report --rejudge --dry-run``: what would be asked, and what it would cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.traffic.recorded_answers import AnswerCounts
from agenteval.cli.commands.output import make_report_options
from agenteval.cli.commands.rejudge import _render, rejudge
from agenteval.core.config import Config, ReporterChoice
from agenteval.core.errors import AuthorError
from agenteval.files.prompts import CRITERIA
from agenteval.planning.forecast import REPLY_TOKENS
from agenteval.planning.score_preparation import ScoreRequest
from agenteval.reporters.terminal.screen import render_parts
from tests.support.plans import plan_for

M = "openai/m"
PRICED: dict[str, Any] = {"prices": {M: {"input": 1.0, "output": 2.0}}}


def lines(
    reused: dict[str, int],
    calls: dict[str, int],
    tokens: dict[str, int],
    *,
    conversations: int = 2,
    classes: Sequence[str] = (),
    **config: Any,
) -> list[str]:
    tally = AnswerCounts()
    tally.reused.update(reused)
    tally.calls.update(calls)
    tally.tokens.update(tokens)
    plan = plan_for(Config.model_validate({"models": {"default": M}, **config}))
    options = make_report_options(ReporterChoice(name="terminal", path="x"), folder=Path())
    text = render_parts(_render(tally, conversations, classes, plan), options)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def notes(found: list[str]) -> list[str]:
    return [line for line in found if line.startswith("note: ")]


def test_what_is_kept_and_what_would_be_asked() -> None:
    found = lines({"b": 3, "c": 1}, {"a": 1000, "b": 1}, {"a": 2000, "b": 5}, **PRICED)
    assert found[0].startswith("2 conversations, judged by openai/m;")
    assert found[1:5] == ["metric kept calls tokens in", "a 0 1,000 ≈2,000", "b 3 1 ≈5", "c 1 0 0"]
    out = 1001 * REPLY_TOKENS["judge"]
    cost = (2005 * 1.0 + out * 2.0) / 1e6
    assert found[5] == f"1,001 calls, ≈2,005 tokens in, ≈{out:,} out, cost ≈{cost:.4f} USD"


def test_nothing_would_be_asked() -> None:
    found = lines({"a": 1}, {}, {}, conversations=1)
    assert found[0].startswith("1 conversation,")
    assert found[2:4] == ["a 1 0 0", "0 calls"]
    assert len(notes(found)) == 1


def test_without_a_price_it_is_said_how_to_set_one() -> None:
    (line,) = [line for line in lines({}, {"a": 1}, {"a": 5}) if line.startswith("1 call,")]
    assert "cost unknown" in line
    assert "prices" in line


@pytest.mark.parametrize(
    ("reused", "calls", "more", "facts"),
    [
        ({"a": 1}, {}, {}, []),
        ({}, {"a": 1}, {}, ["none of these requests"]),
        ({"a": 1}, {}, {"classes": ("x", "y")}, ["x, y"]),
        ({"a": 1}, {CRITERIA: 2}, {}, [CRITERIA]),
        ({"a": 1}, {CRITERIA: 1}, {}, []),
    ],
)
def test_notes(reused: dict[str, int], calls: dict[str, int], more: dict[str, Any], facts: list[str]) -> None:
    found = notes(lines(reused, calls, calls, judge={"corroborate": False}, **more))
    assert len(found) == len(facts) + 1  # issues are grouped again
    for fact in facts:
        assert any(fact in line for line in found)


def test_second_opinions_are_noted_where_there_is_a_call() -> None:
    assert len(notes(lines({"a": 1}, {"a": 1}, {"a": 1}))) == 2
    assert len(notes(lines({"a": 1}, {}, {}))) == 1


def test_a_dry_run_writes_no_report() -> None:
    with pytest.raises(AuthorError) as error:
        rejudge("r1", ScoreRequest(files=()), dry=True, reports=[ReporterChoice(name="json")])
    assert "--dry-run" in str(error.value)
