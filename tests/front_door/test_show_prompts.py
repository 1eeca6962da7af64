"""``show-prompts``: what it prints is what is sent."""

from __future__ import annotations

import re

import anyio
import pytest

from agenteval.cli.commands.show_prompts import render_prompts, template_of
from agenteval.core.errors import AuthorError, InfrastructureError
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Step, Stop, StopReason, Turn
from agenteval.files.prompts import BUILT_IN_METRICS, Rubric, load_rubric
from agenteval.scoring.judges.criteria import CriteriaScorer
from agenteval.scoring.judges.goal import GoalJudge
from agenteval.scoring.judges.judge import Judge
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.judges.policy import PolicyJudge
from agenteval.scoring.transcript import render_transcript
from tests.support.fake_models import FakeModel
from tests.support.trajectories import seen

NAMES = (
    *BUILT_IN_METRICS,
    *("criteria", "review", "fault_response", "error_deduplication", "simulated_user", "user_review"),
)
PARTS = ("judge_refute", "judge_decide", "judge_refute_withdrawn", "answer_shared", "answer_review")
SCENARIO = Scenario.model_validate(
    {"id": "x", "goal": "g", "tools": {"t": {}}, "expect": {"criteria": ["Is ${kind} and $${fair}"]}}
)
TURNS = (Turn(user="Hi ${user}", steps=(Step(text="Hello ${criterion} ${answer}"),)),)


@pytest.mark.parametrize("name", [*BUILT_IN_METRICS, "criteria"])
def test_a_judge_sends_what_is_shown(name: str) -> None:
    model = FakeModel(InfrastructureError("enough"))
    rubric = load_rubric(name)
    is_turn = rubric.scope == "turn"
    trajectory = seen(TURNS, None if is_turn else Stop(reason=StopReason.USER_DONE))
    kind = {"goal_completion": GoalJudge, "policy_adherence": PolicyJudge}.get(name, Judge)
    policy = "Be ${kind}." if name == "policy_adherence" else ""
    inputs = JudgeInputs(model, policy_of=lambda _: policy)
    scorer = (
        CriteriaScorer(rubric, inputs, scope="conversation") if name == "criteria" else kind(rubric, inputs)
    )
    anyio.run(scorer, SCENARIO, trajectory)
    (sent,) = model.requests
    shown = template_of(rubric)
    prompt = shown.prompt.replace("${criterion}", "Is ${kind} and $${fair}")
    prompt = prompt.replace("${span}", "over the whole conversation")
    prompt = prompt.replace("\n${right_end}", "\n")
    record = render_transcript(SCENARIO, trajectory, policy=policy, upto=0 if is_turn else None)
    prompt = prompt.replace("${transcript}", record)
    assert (sent.system, sent.prompt, sent.reply) == (shown.system, prompt, shown.reply)


def test_all_of_them_are_shown() -> None:
    out = render_prompts(None)
    for name in (*NAMES, *PARTS):
        assert f": {name}\n" in out
    assert out.count("── system ──") == out.count("── reply (JSON Schema) ──") == len(NAMES)
    for placeholder in ("transcript", "criterion", "findings", "profile", "goal", "knowledge", "beliefs"):
        assert f"${{{placeholder}}}" in out


@pytest.mark.parametrize("name", NAMES)
def test_one_of_them_is_shown(name: str) -> None:
    out = render_prompts(name)
    assert f": {name}\n" in out
    assert out.count("── prompt ──") == 1
    assert re.search(r"\nversion: \d\n", out)
    assert "\nhash: " in out


@pytest.mark.parametrize("name", PARTS)
def test_a_part_names_where_it_stands(name: str) -> None:
    out = render_prompts(name)
    assert f"prompt: {name}\nstands: " in out
    assert out.count("── part of a prompt ──") == 1


def test_an_authors_rubric_is_shown() -> None:
    rubric = Rubric(metric="brand", scope="turn", text="On brand?", scale=(1, 3), source="brand.md")
    out = render_prompts("brand", custom=[rubric])
    assert "On brand?" in out
    assert all(bound in out for bound in ('"minimum": 1', '"maximum": 3'))


def test_a_typo_gets_a_suggestion() -> None:
    with pytest.raises(AuthorError, match="'error_deduplication'"):
        render_prompts("error_dedup")


def test_the_form_of_the_answer_is_stated_once() -> None:
    """No prompt of ours states the schema as well: what is asked of a judge, a user, a grouping model."""
    for name in (*BUILT_IN_METRICS, "criteria"):
        request = template_of(load_rubric(name))
        assert request.states_form
        assert "JSON object" in request.prompt, name
        assert all(f'- "{key}"' in request.prompt for key in request.reply.model_fields), name
