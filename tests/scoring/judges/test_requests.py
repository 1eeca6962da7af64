"""Requests to judges: what is in the prompt, in which order, and what all rubrics share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.protocols import Subject
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Step, Turn
from agenteval.files.prompts import Rubric, load_rubric
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.requests import (
    build_judge_request,
    build_question_request,
    build_shared_request,
    build_subject,
    render_answer_form,
)
from agenteval.scoring.transcript import JudgeTranscript
from tests.support.trajectories import seen

RECORD = JudgeTranscript("THE RECORD", shared=(3, 10))
SUBJECT = Subject(scenario="s", turn=1, metric="m", text="t")


def rubric(text: str = "Is it kind?", **more: Any) -> Rubric:
    fields = {"metric": "kind", "scope": "turn", "scale": (1.0, 5.0), "source": "kind.md", **more}
    return Rubric(text=text, **fields)


def question(text: str = "Is it kind?", **more: Any) -> JudgeQuestion:
    fields = {"subject": SUBJECT, "flaw_in": lambda *_: "", "gates": lambda _: False, **more}
    return JudgeQuestion(rubric(text), RECORD, **fields)


def test_the_subject_is_the_scenario_turn_metric_and_the_latest_answer() -> None:
    turns = (Turn(user="a", steps=(Step(text="One."),)), Turn(user="b", steps=(Step(text="Two."),)))
    found = build_subject(Scenario(id="s"), seen(turns=turns), metric="m", turn=1)
    assert (found.scenario, found.turn, found.metric, found.text) == ("s", 1, "m", "Two.")


# ── one rubric ───────────────────────────────────────────────────────────────────────────────────


def test_a_request_has_record_criterion_and_form_in_this_order() -> None:
    request = build_judge_request(rubric(), RECORD, subject=SUBJECT)
    assert (request.role, request.subject, request.states_form) == ("judge", SUBJECT, True)
    places = [request.prompt.index(each) for each in ("THE RECORD", "Is it kind?", '"score"')]
    assert places == sorted(places)
    assert request.system
    assert set(request.reply.model_json_schema()["properties"]) == {"evidence", "reason", "score"}


def test_all_rubrics_share_the_system_prompt_and_the_prompt_up_to_the_record() -> None:
    one, other = (
        build_judge_request(rubric(text), RECORD, subject=SUBJECT) for text in ("A?", "Something else?")
    )
    end = one.prompt.index("THE RECORD") + len("THE RECORD")
    assert one.system == other.system
    assert one.prompt[:end] == other.prompt[:end]
    assert one.prompt != other.prompt


def test_the_shared_lengths_are_those_of_the_record_within_the_prompt() -> None:
    request = build_judge_request(rubric(), RECORD, subject=SUBJECT)
    start = request.prompt.index("THE RECORD")
    assert request.shared == (start + 3, start + 10)
    assert build_judge_request(rubric(), JudgeTranscript("THE RECORD"), subject=SUBJECT).shared == ()


def test_a_criterion_fills_the_placeholders() -> None:
    request = build_judge_request(
        rubric("Does it hold: ${criterion}?"), RECORD, subject=SUBJECT, criterion={"criterion": "asks first"}
    )
    assert "Does it hold: asks first?" in request.prompt


@pytest.mark.parametrize("opinion", ["", "Somebody said no."])
def test_an_opinion_follows_the_criterion(opinion: str) -> None:
    prompt = build_judge_request(rubric(), RECORD, subject=SUBJECT, opinion=opinion).prompt
    assert ("Is it kind?\n\nSomebody said no." in prompt) is bool(opinion)


def test_what_checks_an_answer_goes_with_the_request() -> None:
    request = build_judge_request(rubric(), RECORD, subject=SUBJECT, flaw_in=lambda *_: "bad")
    assert request.flaw_in(None, False) == "bad"
    assert build_judge_request(rubric(), RECORD, subject=SUBJECT).flaw_in(None, False) == ""
    asked = question(flaw_in=lambda *_: "void", accepts_flawed=lambda *_: True)
    request = build_question_request(asked)
    assert (request.flaw_in(None, False), request.accepts_flawed(None, False)) == ("void", True)
    assert build_question_request(question()).accepts_flawed(None, False) is False


def test_a_question_is_asked_as_its_rubric() -> None:
    asked = question("Is ${criterion} so?", criterion={"criterion": "this"})
    request = build_question_request(asked, "An opinion.")
    expected = build_judge_request(
        asked.rubric, RECORD, subject=SUBJECT, criterion={"criterion": "this"}, opinion="An opinion."
    )
    assert request == expected
    assert request.prompt == expected.prompt


# ── several ──────────────────────────────────────────────────────────────────────────────────────


def test_a_shared_request_names_each_criterion() -> None:
    questions = {
        "kind": question("Is it kind?"),
        "clear": question(
            "Is ${criterion} clear?", criterion={"criterion": "all"}, subject=replace(SUBJECT, metric="x")
        ),
    }
    request = build_shared_request(questions, "shared")
    assert request.subject == replace(SUBJECT, metric="shared")
    parts = ('Criterion "kind":\n\nIs it kind?', 'Criterion "clear":\n\nIs all clear?', '"kind", "clear"')
    places = [request.prompt.index(part) for part in parts]
    assert places == sorted(places)
    assert "There are 2 criteria" in request.prompt
    assert request.prompt.count("THE RECORD") == 1
    schema = request.reply.model_json_schema()
    assert list(schema["properties"]) == ["kind", "clear"]
    assert schema["required"] == ["kind", "clear"]
    assert request.flaw_in(None, False) == ""
    assert (request.role, len(request.shared)) == ("judge", 2)


def test_a_shared_request_begins_as_a_single_one_does() -> None:
    shared = build_shared_request({"a": question(), "b": question()}, "shared")
    single = build_question_request(question())
    end = single.prompt.index("THE RECORD") + len("THE RECORD")
    assert (shared.system, shared.prompt[:end], shared.shared) == (
        single.system,
        single.prompt[:end],
        single.shared,
    )


# ── the form of the answer ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (rubric(), ['"score": a number from 1 to 5']),
        (rubric(whole=True), ["a whole number from 1 to 5"]),
        (rubric(scale=(0.0, 1.0), whole=True), ["0 or 1"]),
        (
            rubric(scale=None, form="answer_label", labels=("good", "bad"), unsure="cannot say"),
            ['exactly one of "good", "bad"', '"cannot say"'],
        ),
        (
            rubric(
                scale=None,
                form="answer_label",
                labels=("x",),
                references={"call": "its number", "rule": "the rule"},
            ),
            ['- "call": its number\n- "rule": the rule\n- "reason"'],
        ),
        (
            rubric(scale=None, form="answer_outcome", outcomes={"reached": 1.0, "withdrawn": None}),
            ['exactly one of "reached", "withdrawn"'],
        ),
    ],
    ids=["scale", "whole", "yes or no", "labels", "references", "outcomes"],
)
def test_the_form_says_what_may_be_answered(given: Rubric, facts: list[str]) -> None:
    form = render_answer_form(given)
    assert [fact for fact in facts if fact not in form] == []
    assert "${" not in form


@pytest.mark.parametrize(
    "name", ["helpfulness", "agent_behavior_failure", "goal_completion", "policy_adherence"]
)
def test_built_in_rubrics_have_a_form(name: str) -> None:
    given = load_rubric(name)
    form = render_answer_form(given)
    assert all(f'"{each}"' in form for each in (*given.labels, *given.outcomes))
