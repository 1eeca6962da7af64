"""Several questions in one call: `judge: {calls: shared}`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.support.judged_projects import KEY, model_config
from tests.support.kit import Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Play, Reply, schema_in

AGENT = "def agent(messages):\n    return 'We open at nine, and close at six.'\n"
SCENARIO = {
    "id": "hours",
    "turns": ["When do you open?"],
    "goal": "Learn the hours.",
    "expect": {"criteria": ["Names an hour.", "Is polite.", "Offers help."]},
}
SCORES = ("helpfulness", "coherence", "relevance", "verbosity")
QUOTED = "We open at nine"


def score(value: float = 5) -> Json:
    return {"evidence": QUOTED, "reason": "because", "score": value}


def label(value: str = "pass") -> Json:
    return {"evidence": QUOTED, "reason": "because", "label": value, "source": "", "call": None}


class Judge:
    """Answers what is asked, and counts by what. ``alone``: other answers, by name; ``shared``: only in a
    call for several."""

    def __init__(self, alone: dict[str, Any] | None = None, shared: dict[str, Any] | None = None) -> None:
        self.alone, self.shared = alone or {}, shared or {}
        self.asked: Counter[str] = Counter()

    def __call__(self, asked: Json) -> Reply:
        fields = schema_in(asked)["properties"]
        prompt = asked["messages"][1]["content"]
        if "issues" in fields:
            return Reply(completion('{"issues": []}'))
        if set(fields) <= {*SCORES, "criterion_1", "criterion_2", "criterion_3"}:
            self.asked[" ".join(fields)] += 1
            answers = {name: label() if name.startswith("crit") else score() for name in fields}
            answers = {**answers, **self.shared}
            reply = {name: answers[name] for name in fields if answers[name] is not None}
            return Reply(completion(json.dumps(reply)))
        name = next(
            name
            for name in (*SCORES, "faithfulness", "goal completion", "set by")
            if f"riterion: {name}" in prompt or f"riterion {name}" in prompt
        )
        self.asked[name] += 1
        if "outcome" in fields:
            reply = {
                "evidence": QUOTED,
                "reason": "r",
                "outcome": "reached",
                "call": None,
                "rule": "",
                "source": "",
            }
        else:
            reply = self.alone.get(name) or (label() if "label" in fields else score())
        return Reply(completion(json.dumps(reply)))


def run(
    project: Project,
    judge: Play,
    config: str = "",
    calls: str = "shared",
    *,
    scenario: Json = SCENARIO,
    metrics: tuple[str, ...] = (*SCORES, "faithfulness", "goal_completion"),
) -> int:
    project.agent(AGENT)
    project.scenarios(json.dumps(scenario))
    with ModelServer(judge) as server:
        how = f"metrics: [{', '.join(metrics)}]\njudge: {{calls: {calls}}}\n"
        project.config(model_config(server, how + config))
        return project.run(env=KEY).code


def scores(project: Project) -> dict[str, float]:
    turn = project.sample()["turns"][0]["scores"]
    return {name: turn[name]["value"] for name in SCORES}


ALL_SCORES, ALL_CRITERIA = " ".join(SCORES), "criterion_1 criterion_2 criterion_3"


def test_scores_are_one_call_and_criteria_another(project: Project) -> None:
    judge = Judge(shared={"coherence": score(3)})
    assert run(project, judge) == 0
    # The goal was drawn by lot, or not: that is asked again by itself.
    assert judge.asked.pop("goal completion") in (1, 2)
    assert judge.asked == {ALL_SCORES: 1, ALL_CRITERIA: 1, "faithfulness": 1}
    assert scores(project) == {"helpfulness": 5, "coherence": 3, "relevance": 5, "verbosity": 5}
    passed = [check["passed"] for check in project.sample()["checks"] if check["name"] == "criteria"]
    assert passed == [True, True, True]
    separate = Judge()
    assert run(project, separate, calls="separate") == 0
    assert separate.asked["set by"] == 3
    assert all(separate.asked[name] == 1 for name in SCORES)


@pytest.mark.parametrize("instead", [None, {"reason": "no score"}, {**score(), "score": 9}, "5"])
def test_what_is_missing_or_does_not_fit_is_asked_alone(project: Project, instead: Any) -> None:
    judge = Judge(alone={"coherence": score(2)}, shared={"coherence": instead})
    assert run(project, judge) == 0
    assert judge.asked[ALL_SCORES] == 1
    assert [judge.asked[name] for name in SCORES] == [0, 1, 0, 0]
    assert scores(project)["coherence"] == 2


FORGED = {**score(1), "evidence": "We never open at all"}


@pytest.mark.parametrize(
    ("name", "alone", "shared", "code", "asked"),
    [
        pytest.param("helpfulness", score(), {"helpfulness": score(1)}, 0, 2, id="refuted"),
        pytest.param("helpfulness", score(1), {"helpfulness": score(1)}, 1, 1, id="upheld"),
        # A quotation that stands nowhere makes the answer void, and no other.
        pytest.param("helpfulness", score(), {"helpfulness": FORGED}, 0, 1, id="forged"),
        pytest.param("set by", label(), {"criterion_2": label("fail")}, 0, 2, id="criterion"),
    ],
)
def test_what_would_fail_something_is_asked_again_alone(
    project: Project, name: str, alone: Json, shared: Json, code: int, asked: int
) -> None:
    bound = "thresholds: {helpfulness: 4}\n" if name == "helpfulness" else ""
    judge = Judge(alone={name: alone}, shared=shared)
    assert run(project, judge, bound) == code
    assert judge.asked[name] == asked


def test_a_shared_call_that_fails_is_made_good_one_by_one(project: Project) -> None:
    judge = Judge()

    def broken(asked: Json) -> Reply:
        fields = schema_in(asked)["properties"]
        return Reply(completion("I am sorry.")) if set(fields) <= set(SCORES) else judge(asked)

    one = {**SCENARIO, "expect": {"output": {"contains": ["nine"]}}}
    assert run(project, broken, scenario=one, metrics=SCORES) == 0
    assert scores(project) == dict.fromkeys(SCORES, 5)
    assert [judge.asked[name] for name in SCORES] == [1, 1, 1, 1]
    # The shared call and its repair were paid for, too.
    assert project.results()["summary"]["usage"]["judge"]["calls"] == 6


def test_scripted_judges_answer_one_by_one(project: Project) -> None:
    project.agent(AGENT)
    project.scenarios(json.dumps(SCENARIO))
    project.config(
        "models: {default: scripted/r.yaml}\nmetrics: [helpfulness, coherence]\njudge: {calls: shared}\n"
    )
    project.write(
        "r.yaml",
        """
        replies:
          - {when: {role: judge, metric: criteria}, reply: {evidence: "", reason: r, label: pass}}
          - {when: {role: judge}, reply: {evidence: "", reason: r, score: 4}}
        """,
    )
    assert project.run().code == 0
    values = {name: each["value"] for name, each in project.sample()["turns"][0]["scores"].items()}
    assert values == {"helpfulness": 4, "coherence": 4}


def test_the_plan_counts_the_calls_that_are_made(project: Project) -> None:
    judge = Judge()
    assert run(project, judge) == 0
    made = sum(judge.asked.values()) - (judge.asked["goal completion"] - 1)  # drawn by lot
    done = project.call("plan", "--report", "json=plan.json", env=KEY)
    assert done.code == 0, done.all
    rows = json.loads((project.root / "plan.json").read_text("utf-8"))["rows"]
    assert [row["calls"]["least"] for row in rows if row["role"] == "judge"] == [made] == [4]
