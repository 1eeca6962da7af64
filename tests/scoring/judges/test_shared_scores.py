"""Several judges of a turn in one call: who is asked alone, in which order, and who pays."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agenteval.core.plan import SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import Score, ScoreFailure
from agenteval.core.trajectory import Trajectory
from agenteval.files.prompts import load_rubric
from agenteval.planning.plan_resolution import rules_for
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge import Judge
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.judges.shared_scores import SharedScores
from tests.support.detector_samples import turn
from tests.support.panels import AnswerPanel
from tests.support.trajectories import seen

SCENARIO = Scenario(id="s")
TALK = seen((turn("Hello there", "Good morning to you."),))
NAMES = ("helpfulness", "coherence", "relevance")


def scored(
    *answers: Any,
    names: tuple[str, ...] = NAMES,
    talk: Trajectory = TALK,
    bars: dict[str, float] | None = None,
) -> tuple[list[Any], AnswerPanel]:
    panel = AnswerPanel(*answers)
    applies = rules_for(Scenario.model_validate({"id": "s", "thresholds": bars or {}}), SuitePolicy())
    inputs = JudgeInputs(panel, gating=GatingPolicy(rules_for=lambda _: applies))
    scorer = SharedScores([Judge(load_rubric(name), inputs) for name in names], inputs)
    assert scorer.scope == "turn"
    return list(anyio.run(scorer, SCENARIO, talk)), panel


def one(score: float | None, **more: Any) -> dict[str, Any]:
    return {"evidence": "", "reason": "r", "score": score, **more}


def values(items: list[Any]) -> dict[str, Any]:
    return {item.metric: item.value if isinstance(item, Score) else item.kind for item in items}


ALL = {"helpfulness": one(5), "coherence": one(4), "relevance": one(3)}


def test_one_call_for_all_in_the_order_of_the_judges() -> None:
    items, panel = scored(ALL)
    assert list(values(items).items()) == [("helpfulness", 5), ("coherence", 4), ("relevance", 3)]
    assert len(panel.requests) == 1
    assert [item.usage.calls for item in items] == [1, 0, 0]


@pytest.mark.parametrize(
    ("shared", "alone"),
    [
        ({**ALL, "coherence": None}, 1),
        ({name: ALL[name] for name in ("helpfulness", "relevance")}, 1),
        ({**ALL, "coherence": one(9)}, 1),
        ({**ALL, "coherence": {"score": 4}}, 1),
        ({}, 3),
    ],
)
def test_an_answer_that_is_not_there_is_asked_for_alone(shared: dict[str, Any], alone: int) -> None:
    items, panel = scored(shared, *[one(2)] * alone)
    assert len(panel.requests) == 1 + alone
    assert values(items)["coherence"] == 2
    assert values(items)["helpfulness"] == (2 if alone == 3 else 5)


def test_an_answer_that_would_fail_something_is_asked_for_again() -> None:
    low = one(2, evidence="Good morning to you.")
    items, panel = scored({**ALL, "coherence": low}, low, bars={"coherence": 3})
    assert values(items) == {"helpfulness": 5, "coherence": 2, "relevance": 3}
    assert [len(item.votes) for item in items] == [0, 2, 0]
    assert len(panel.requests) == 2
    fine, panel = scored({**ALL, "coherence": one(3)}, bars={"coherence": 3})
    assert (values(fine)["coherence"], len(panel.requests)) == (3, 1)


def test_an_unclear_answer_is_a_failure_of_its_metric_alone() -> None:
    items, _ = scored({**ALL, "coherence": one(None)})
    assert values(items) == {"helpfulness": 5, "coherence": "failure", "relevance": 3}
    (failure,) = [item for item in items if isinstance(item, ScoreFailure)]
    assert failure.unclear


def test_a_single_judge_is_asked_alone() -> None:
    items, panel = scored(one(4), names=("coherence",))
    assert (values(items), len(panel.requests)) == ({"coherence": 4}, 1)


@pytest.mark.parametrize("talk", [seen(()), seen((turn("a", "b"),), unfinished=turn("c"))])
def test_where_no_metric_applies_nobody_is_asked(talk: Trajectory) -> None:
    items, panel = scored(talk=talk)
    assert (items, panel.requests) == ([], [])


def test_only_metrics_that_apply_are_asked_for() -> None:
    names = ("agent_behavior_failure", "tool_call_behavior_failure")
    items, panel = scored({"evidence": "", "reason": "r", "label": "no failure"}, names=names)
    assert [item.metric for item in items] == ["agent_behavior_failure"]
    assert len(panel.requests) == 1
