"""``expect.criteria``: a call each, a check each, a finding where one does not hold; and what becomes of
criteria whose condition never arose, or that are not clear."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from agenteval.core.errors import AuthorError, InfrastructureError
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check, Finding, ScoreFailure, Severity
from agenteval.core.trajectory import Step, Stop, StopReason, Trajectory, Turn
from agenteval.files.prompts import load_rubric
from agenteval.scoring.judges.criteria import CriteriaScorer
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.transcript import render_transcript
from tests.support.fake_models import USAGE, FakeModel
from tests.support.kit import Project
from tests.support.patience import HANG_S
from tests.support.scripted import by_id, gates, judge, script, verdicts

SCENARIO = Scenario.model_validate(
    {
        "id": "salon",
        "turns": [{"user": "Nine?", "expect": {"criteria": ["Asks for a name"]}}, "Thanks"],
        "expect": {"criteria": ["Confirms first", "Stays ${polite}"]},
        "source": "s.yaml:1",
        "lines": {"expect.criteria": 7, "turns.0.expect.criteria": 4},
    }
)
TURNS = (
    Turn(user="Nine?", steps=(Step(text="Booked."),), script=0),
    Turn(user="Thanks", steps=(Step(text="Bye."),), script=1),
)
WHOLE = Trajectory(turns=TURNS, stop=Stop(reason=StopReason.SCRIPT_DONE))


def judged(
    model: ChatModel, *, scope: str = "conversation", trajectory: Trajectory = WHOLE, **more: Any
) -> list[Any]:
    criteria = CriteriaScorer(load_rubric("criteria"), JudgeInputs(model, **more), scope=scope)
    return list(anyio.run(criteria, SCENARIO, trajectory))


def say(label: str, evidence: str = "“Booked.”") -> dict[str, str]:
    return {"evidence": evidence, "reason": "it did", "label": label}


def test_a_criterion_that_is_met() -> None:
    model = FakeModel(say("Pass"))
    first, second = judged(model)
    assert first == Check(
        name="criteria",
        passed=True,
        detail="Confirms first — pass: it did (evidence: ““Booked.””)",
        where="s.yaml:7",
        by="fake/model",
        scripted=True,
        usage=USAGE,
    )
    assert second.detail.startswith("Stays ${polite} — pass: ")
    context = render_transcript(SCENARIO, WHOLE, tools=())
    for request, criterion in zip(model.requests, ("Confirms first", "Stays ${polite}"), strict=True):
        assert request.prompt.startswith(context)
        assert request.prompt.count(f"\n\n{criterion}\n\n") == 1
        assert (request.subject.metric, request.subject.turn) == ("criteria", None)


def test_a_criterion_that_is_not_met_is_a_finding() -> None:
    check, finding, *_ = judged(
        FakeModel(say("fail")), gating=GatingPolicy(severities={"criterion not met": Severity.HIGH})
    )
    assert check.passed is False
    assert finding == Finding(
        detector="judge",
        metric="criteria",
        label="criterion not met",
        severity=Severity.HIGH,
        evidence="“Booked.”",
        explanation="it did",
        criterion="Confirms first",
        scripted=True,
    )
    assert judged(FakeModel(say("fail")))[1].severity is Severity.MEDIUM


def test_of_a_turn_the_criteria_of_its_script() -> None:
    model = FakeModel(say("fail"))
    check, finding = judged(model, scope="turn", trajectory=Trajectory(turns=TURNS[:1]))
    assert (check.where, finding.turn) == ("s.yaml:4", 0)
    assert model.requests[0].subject.turn == 0
    assert judged(model, scope="turn", trajectory=Trajectory(turns=TURNS)) == []


@pytest.mark.parametrize("label", ["not clear", "Not_Clear"])
def test_a_criterion_that_is_not_clear_is_not_decided(label: str) -> None:
    items = judged(FakeModel(say(label)))
    assert [(type(item), item.passed) for item in items] == [(Check, None)] * 2  # and no judge failed


def test_a_criterion_that_did_not_arise_holds_and_is_marked() -> None:
    check, *_ = judged(FakeModel(say("did not arise")))
    assert (check.passed, check.arose) == (True, False)
    assert check.detail.startswith("Confirms first — did not arise: it did")


@pytest.mark.parametrize(
    "reply", [InfrastructureError("no quota"), say("passed"), say("5"), {"label": "pass"}, {"score": 1}]
)
def test_a_judge_that_failed_leaves_the_check_undecided(reply: Any) -> None:
    items = judged(FakeModel(reply))
    assert [type(item) for item in items] == [Check, ScoreFailure, Check, ScoreFailure]
    assert items[0].passed is None
    assert items[0].detail.startswith("Confirms first — not judged: ")


def test_one_broken_call_does_not_take_the_others_along() -> None:
    def reply(request: ModelRequest) -> Any:
        return say("pass") if "Confirms" in request.prompt else InfrastructureError("down")

    assert [item.passed for item in judged(FakeModel(reply)) if isinstance(item, Check)] == [True, None]


def test_a_mistake_of_the_author_is_raised_as_it_is() -> None:
    with pytest.raises(AuthorError, match="no reply fits"):
        judged(FakeModel(AuthorError("no reply fits")))


def test_all_criteria_are_asked_at_once() -> None:
    class Waiting(FakeModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            self.requests.append(request)
            with anyio.fail_after(HANG_S):
                while len(self.requests) < 2:  # alone, one call would wait for ever
                    await anyio.lowlevel.checkpoint()
            return ModelReply(request.reply.model_validate(say("pass")), USAGE, "fake/model")

    assert len(judged(Waiting({}))) == 2


@pytest.mark.parametrize("reason", [StopReason.AGENT_ERROR, StopReason.INFRASTRUCTURE, StopReason.SIMULATOR])
def test_a_conversation_that_broke_off_is_not_asked_about(reason: StopReason) -> None:
    model = FakeModel(say("pass"))
    assert judged(model, trajectory=WHOLE.model_copy(update={"stop": Stop(reason=reason)})) == []
    assert not model.requests


# ── through the command line ─────────────────────────────────────────────────────────────────────

AGENT = "def agent(messages, ctx):\n    return f'Booked, in epoch {ctx.epoch}.'\n"
BEFORE, POLITE = "Confirms the date before it cancels.", "Stays polite."


def suite(project: Project, scenarios: list[dict[str, Any]], *rules: tuple[dict[str, Any], str]) -> None:
    project.agent(AGENT)
    project.config("models: {default: scripted/replies.yaml}\nmetrics: []\n")
    reply = {"evidence": "Booked, in epoch", "reason": "so it is"}
    script(project, *(judge({**reply, "label": label}, **when) for when, label in rules))
    project.scenarios(json.dumps({"scenarios": [{"turns": ["hi"], **each} for each in scenarios]}))


def test_a_criterion_that_did_not_arise_in_any_conversation_decides_nothing(project: Project) -> None:
    output = {"output": {"contains": ["Booked"]}}
    rows: dict[str, tuple[dict[str, Any], str]] = {
        "alone": ({"expect": {"criteria": [BEFORE]}}, "inconclusive"),
        "beside": ({"expect": {"criteria": [BEFORE], **output}}, "passed"),
        "turn": ({"turns": [{"user": "hi", "expect": {"criteria": [BEFORE]}}], "expect": output}, "passed"),
        "once": ({"epochs": 2, "expect": {"criteria": [BEFORE]}}, "passed"),
        "failed": ({"expect": {"criteria": [BEFORE]}}, "failed"),
    }
    suite(
        project,
        [{"id": name, **own} for name, (own, _) in rows.items()],
        ({"scenario": "once", "text": "epoch 1"}, "pass"),
        ({"scenario": "failed"}, "fail"),
        ({"metric": "criteria"}, "did not arise"),
    )
    done = project.run()
    assert done.code == 1, done.all
    results = project.results()
    scenarios = by_id(project)
    assert verdicts(project) == {name: verdict for name, (_, verdict) in rows.items()}
    (check,) = (c for c in scenarios["beside"]["samples"][0]["checks"] if c["name"] == "criteria")
    assert (check["passed"], check["arose"]) == (True, False)
    assert check["detail"].startswith(f"{BEFORE} — did not arise: so it is")
    assert all("arose" not in c for c in scenarios["once"]["samples"][1]["checks"])
    ((name, row),) = gates(project, "something decides").items()
    assert (name, row["verdict"]) == ("alone", "inconclusive")
    assert BEFORE in row["basis"]
    never = {caveat["kind"]: caveat for caveat in results["summary"]["caveats"]}["never_arose"]
    assert never["count"] == 3
    last = done.out.splitlines()[-1]
    assert "3 criteria" in last
    assert BEFORE in last
    assert any(BEFORE in text for text in results["summary"]["ungated"])
    assert project.run("-s", "beside", "-s", "once").code == 0


def test_a_criterion_that_is_not_clear_is_undecided_and_no_judge_failed(project: Project) -> None:
    polite = {"expect": {"criteria": [POLITE]}}
    rules = [({"scenario": "unclear"}, "not clear"), ({"scenario": "broken"}, "rather so")]
    turn = {"turns": [{"user": "hi", "expect": {"criteria": [BEFORE]}}]}
    suite(project, [{"id": "unclear", **polite, **turn}, {"id": "broken", **polite}], *rules)
    names = ("markdown", "junit", "github")
    done = project.run("-v", "-s", "unclear", *(f"--report={name}={name}.out" for name in names))
    assert done.code == 3
    sample = project.sample()
    assert (sample["verdict"], sample["fault"], sample["score_failures"]) == ("inconclusive", "undecided", [])
    for text in (done.all, *((project.root / f"{name}.out").read_text("utf-8") for name in names)):
        assert "judge_broke" not in text
        assert [each for each in (BEFORE, POLITE) if f"{each} — not clear: so it is" not in text] == []
    assert project.run("-s", "broken", "--report=junit=junit.out").code == 3
    assert project.sample()["fault"] == "judge"
    assert "judge_broke" in (project.root / "junit.out").read_text("utf-8")
