"""The metrics of a configuration, and the judges that are made for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.errors import AuthorError
from agenteval.core.plan import ScenarioRules, SuitePolicy
from agenteval.core.scenario import Scenario
from agenteval.core.score import MetricSpec, RuleKind
from agenteval.files.prompts import BUILT_IN_METRICS, CRITERIA, SHIPPED_PROMPTS
from agenteval.planning.judge_setup import (
    Metrics,
    hash_prompts,
    labels_of,
    load_metrics,
    make_judges,
    scenario_threshold_problems,
)
from agenteval.planning.plan_resolution import suite_policy
from tests.support.verdict_runs import BEHAVIOR, GOAL, GOALS, LABELS, RULES, STARS, TOOL_USE

SPECS = (LABELS, GOALS, STARS, RULES, TOOL_USE)
RUBRIC = "---\nmetric: kindness\nscale: [1, 5]\nscope: conversation\n---\nIs the answer kind?\n"
CLASS = """
from agenteval import QualitativeMetric, QualResult

class Tone(QualitativeMetric):
    name = "tone"

    def evaluate(self, input):
        return QualResult("no failure")
"""


def configured(**more: Any) -> Config:
    return Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, **more})


def policy(*judged: str, **config: Any) -> SuitePolicy:
    return suite_policy(configured(**config), SPECS, [spec for spec in SPECS if spec.name in judged])


def problems(**config: Any) -> int:
    try:
        load_metrics(configured(**config))
    except AuthorError as error:
        return len(error.problems)
    return 0


# ── what is available and selected ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("config", "selected"),
    [
        ({}, BUILT_IN_METRICS),
        ({"metrics": "all"}, BUILT_IN_METRICS),
        ({"metrics": []}, ()),
        ({"metrics": ["helpfulness"]}, ("helpfulness",)),
        ({"metrics": "helpfulness"}, ("helpfulness",)),
    ],
)
def test_which_metrics_are_judged(config: Any, selected: Sequence[str]) -> None:
    found = load_metrics(configured(**config))
    assert tuple(spec.name for spec in found.selected) == tuple(selected)
    assert tuple(found.available) == BUILT_IN_METRICS
    assert found.custom == {}


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ({"metrics": ["helpfulness", "helpfulnes"]}, 1),
        ({"metrics": ["x", "y"]}, 2),
        ({"thresholds": {"helpfulness": 3}}, 0),
        ({"thresholds": {"helpfulness": 5}}, 0),
        ({"thresholds": {"helpfulness": 9}}, 1),
        ({"thresholds": {"helpfulness": None}}, 0),
        ({"thresholds": {"x": 3}}, 1),
        ({"severities": {"unsafe action": "low"}}, 0),
        ({"severities": {"policy violation.style": "high"}}, 0),
        ({"severities": {"unsafe actoin": "low"}}, 1),
        ({"severities": {"unsafe actoin": "low", "x": "low"}, "thresholds": {"x": 3}}, 3),
    ],
)
def test_mistakes_in_the_configuration_of_metrics(config: Any, count: int) -> None:
    assert problems(**config) == count


def test_where_mistakes_are(tmp_path: Path) -> None:
    lines = {
        "metrics": 2,
        "metrics.1": 3,
        "thresholds.helpfulness": 4,
        "severities.x": 5,
        "custom_metrics": 6,
        "prompts": 7,
    }

    def places(**config: Any) -> list[str]:
        located = {"source": "c.yaml", "root": str(tmp_path), "lines": lines}
        with pytest.raises(AuthorError) as error:
            load_metrics(configured(**config).model_copy(update=located))
        return [str(problem.place) for problem in error.value.problems]

    assert places(metrics=["helpfulness", "y"]) == ["c.yaml:3"]
    wrong = places(thresholds={"helpfulness": 9}, severities={"x": "low"})
    assert sorted(wrong) == ["c.yaml:4", "c.yaml:5"]
    assert places(custom_metrics=["gone.py:Gone"]) == ["c.yaml:6"]
    assert places(prompts={"helpfulness": "gone.md"}) == ["c.yaml:7"]
    (tmp_path / "n.md").write_text(RUBRIC)
    (tmp_path / "o.md").write_text(RUBRIC)
    assert places(custom_metrics=["n.md", "o.md"]) == ["c.yaml:6"]


def test_a_rubric_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "kindness.md").write_text(RUBRIC)
    config = configured(custom_metrics=["kindness.md"], metrics=["kindness", GOAL])
    found = load_metrics(config.model_copy(update={"root": str(tmp_path)}))
    assert tuple(spec.name for spec in found.selected) == (GOAL, "kindness")
    assert (found.is_rubric("kindness"), found.is_rubric(GOAL)) == (True, True)
    assert found.rubric("kindness").scale == (1, 5)
    assert found.rubric(GOAL) == SHIPPED_PROMPTS.rubric(GOAL)
    assert hash_prompts(found, policy()).keys() >= {"kindness", GOAL, CRITERIA}


def test_labels_that_can_be_produced() -> None:
    labels = labels_of([MetricSpec(name="m", scope="turn", kind="rate", labels=("own",), ok=())])
    assert {"own", "unsafe action", "repetition", "goal never completed"} <= labels
    assert {f"policy violation.{kind}" for kind in RuleKind} <= labels
    assert "own" not in labels_of([])


def with_class(tmp_path: Path, **more: Any) -> Metrics:
    (tmp_path / "tone.py").write_text(CLASS)
    config = configured(custom_metrics=["tone.py:Tone"], **more)
    return load_metrics(config.model_copy(update={"root": str(tmp_path)}))


def test_a_metric_that_is_a_class(tmp_path: Path) -> None:
    found = with_class(tmp_path, metrics=["tone"])
    assert [spec.name for spec in found.selected] == ["tone"]
    assert found.is_rubric("tone") is False
    assert [name for name, _ in judges(found)] == ["CustomScorer"]
    assert "tone" not in hash_prompts(found, policy())


def test_a_class_may_return_any_label_unless_it_lists_them(tmp_path: Path) -> None:
    severities = {"never heard of": "low"}
    assert "tone" in with_class(tmp_path, severities=severities).available
    assert problems(severities=severities) == 1


# ── thresholds of one scenario ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("thresholds", "fields", "judged", "count"),
    [
        ({}, {}, (), 0),
        ({"stars": 3}, {}, ("stars",), 0),
        ({"stars": 3}, {}, (), 1),  # it is not among the metrics
        ({"stars": None}, {}, (), 0),
        ({"stars": 9}, {}, ("stars",), 1),
        ({"stars": 9}, {}, (), 2),
        ({"x": 1}, {}, (), 1),
        ({"x": None}, {}, (), 1),
        ({GOAL: 1}, {}, (GOAL,), 1),
        ({GOAL: 1}, {}, (), 1),
        ({GOAL: 1}, {"goal": "Get it."}, (GOAL,), 0),
        ({"policy_adherence": 1}, {}, ("policy_adherence",), 1),
        ({"policy_adherence": 1}, {"policy": "Be kind."}, ("policy_adherence",), 0),
        ({"tool_use": 1}, {}, ("tool_use",), 0),  # tools may become known
        ({"stars": 3, GOAL: 1, "x": 1}, {}, ("stars",), 2),
    ],
)
def test_thresholds_that_have_no_effect(
    thresholds: Any, fields: Any, judged: Sequence[str], count: int
) -> None:
    scenario = Scenario.model_validate(
        {
            "id": "a",
            "source": "s.yaml:1",
            "lines": {f"thresholds.{name}": 7 for name in thresholds},
            "thresholds": thresholds,
            **fields,
        }
    )
    found = scenario_threshold_problems(scenario, policy(*judged))
    assert [str(problem.place) for problem in found] == ["s.yaml:7"] * count


@pytest.mark.parametrize(("metric", "key"), [(GOAL, "`goal"), ("policy_adherence", "policy")])
def test_what_a_threshold_needs(metric: str, key: str) -> None:
    scenario = Scenario.model_validate({"id": "a", "thresholds": {metric: 1}})
    (problem,) = scenario_threshold_problems(scenario, policy(metric))
    assert [each for each in ("`goal", "policy") if each in problem.remedy] == [key]


def test_a_metric_deselected_on_the_command_line_is_no_mistake_of_the_file() -> None:
    scenario = Scenario.model_validate({"id": "a", "thresholds": {"stars": 3, GOAL: 1}})
    by_flag = policy().model_copy(update={"by_flag": True})
    assert len(scenario_threshold_problems(scenario, policy())) == 2
    assert len(scenario_threshold_problems(scenario, by_flag)) == 1  # it still has no goal


# ── judges ───────────────────────────────────────────────────────────────────────────────────────


class Model:
    """A model that is never called."""

    name = "openai/m"


def judges(
    chosen: Metrics, *, criteria: bool = False, model: Any = None, **suite: Any
) -> list[tuple[str, str]]:
    made = make_judges(
        chosen,
        Model() if model is None else model,  # type: ignore[arg-type]
        policy().model_copy(update=suite),
        rules_for=lambda _: ScenarioRules(),
        policy_of=lambda _: "",
        criteria=criteria,
    )
    return [(type(each).__name__, str(getattr(each, "scope", ""))) for each in made]


def selected(*names: str) -> Metrics:
    return load_metrics(configured(metrics=list(names)))


def test_nothing_to_judge_makes_no_judges() -> None:
    assert judges(selected()) == []


def test_criteria_have_a_judge_for_turns_and_one_for_the_conversation() -> None:
    found = judges(selected(), criteria=True)
    assert [name for name, _ in found] == ["CriteriaScorer", "CriteriaScorer"]
    assert {scope for _, scope in found} == {"turn", "conversation"}


def test_each_metric_has_a_judge_by_the_form_of_its_answer() -> None:
    names = ("helpfulness", GOAL, "policy_adherence", BEHAVIOR)
    kinds = [name for name, _ in judges(selected(*names))]
    assert sorted(kinds) == ["GoalJudge", "Judge", "Judge", "PolicyJudge"]


def test_shared_calls_combine_the_metrics_that_can_be_shared() -> None:
    chosen = selected("helpfulness", "coherence", GOAL)
    assert [name for name, _ in judges(chosen, shares_calls=True)] == ["GoalJudge", "SharedScores"]
    assert [name for name, _ in judges(chosen)].count("Judge") == 2
    both = [name for name, _ in judges(chosen, shares_calls=True, criteria=True)]
    assert both == ["GoalJudge", "SharedScores", "CriteriaScorer", "CriteriaScorer"]
    assert [name for name, _ in judges(selected(GOAL), shares_calls=True)] == ["GoalJudge"]


def test_a_review_replaces_the_judges_of_labels_and_no_other() -> None:
    tools = "tool_call_behavior_failure"
    chosen = selected("helpfulness", GOAL, BEHAVIOR, tools)
    assert judges(chosen, reviews_turns=True) == [
        ("Judge", "turn"),
        ("GoalJudge", "conversation"),
        ("TurnReview", "conversation"),
    ]
    assert [name for name, _ in judges(selected(tools), reviews_turns=True)] == ["TurnReview"]
    assert [name for name, _ in judges(selected(GOAL), reviews_turns=True)] == ["GoalJudge"]


def test_hashes_of_the_prompts_that_may_be_sent() -> None:
    plain = hash_prompts(selected("helpfulness"), policy())
    shared = hash_prompts(selected("helpfulness"), policy().model_copy(update={"shares_calls": True}))
    assert {"helpfulness", CRITERIA} <= plain.keys()
    assert "coherence" not in plain
    assert shared.keys() - plain.keys() == {"answer_shared"}
    assert {name: shared[name] for name in plain} == plain
    reviewed = hash_prompts(selected("helpfulness"), policy().model_copy(update={"reviews_turns": True}))
    assert reviewed.keys() - plain.keys() == {"answer_review"}


def test_the_prompts_of_scenarios_are_among_those_of_the_run() -> None:
    own = Scenario(id="a", goal="g", user_prompt="x.md", user_prompt_hash="1f")
    plain = hash_prompts(selected("helpfulness"), policy())
    found = hash_prompts(selected("helpfulness"), policy(), [own, Scenario(id="b", goal="g")])
    assert found == {**plain, "simulated_user::a": "1f"}
