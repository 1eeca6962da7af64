"""``judge: {on_failure: skip}``: a judge that failed costs its judgement, and not the conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.judged_projects import content, scenario
from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, error, schema_in

SAID = "I have deleted your account."
AGENT = f"def agent(messages):\n    return {SAID!r}\n"
HOLDS = {"expect": {"output": {"contains": ["deleted"]}}}
SKIP = "judge: {on_failure: skip}\n"


class Judge:
    """Answers ``good`` questions as a judge that finds nothing would, and those after them with ``then``."""

    def __init__(self, then: Any, good: int = 0) -> None:
        self._then = then if isinstance(then, list) else [then]
        self._good = good
        self.asked = 0

    def __call__(self, asked: Json) -> Reply:
        if "issues" in schema_in(asked)["properties"]:
            return Reply(completion(json.dumps({"issues": []})))
        self.asked += 1
        then = self._then[min(self.asked, len(self._then)) - 1]
        answer = json.dumps(content(asked)) if self.asked <= self._good else then
        return answer if isinstance(answer, Reply) else Reply(completion(answer))


DOWN = error("the model is being retired", status=400)


def play(
    project: Project, judge: Judge, config: str, one: Json, metrics: str = "agent_behavior_failure"
) -> Done:
    project.agent(AGENT)
    project.scenarios(json.dumps({"scenarios": [one]}))
    with ModelServer(judge) as server:
        project.config(
            f"models: {{judge: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}\n"
            f"metrics: [{metrics}]\nagent_concurrency: 1\n{config}"
        )
        return project.run()


@pytest.mark.parametrize("then", [DOWN, "I would rather not say."])
@pytest.mark.parametrize("metric", ["agent_behavior_failure", "goal_completion"])
def test_what_else_was_decided_stands_and_the_last_line_counts_who_was_skipped(
    project: Project, then: Any, metric: str
) -> None:
    one = {**scenario("a", "hi", goal="Have it deleted."), **HOLDS}
    done = play(project, Judge(then), "", one, metrics=metric)
    assert done.code == 3, done.all
    done = play(project, Judge(then), SKIP, one, metrics=metric)
    assert done.code == 0, done.all
    assert "1 failed judge" in done.out.splitlines()[-1]
    assert [each["kind"] for each in project.results()["summary"]["caveats"]] == ["judges_skipped"]
    sample = project.sample()
    failed = [*sample["score_failures"], *sample["turns"][0]["score_failures"]]
    assert [failure["metric"] for failure in failed] == [metric]

    broken = {**one, "expect": {"output": {"contains": ["kept"]}}}
    assert play(project, Judge(then), SKIP, broken, metrics=metric).code == 1
    assert failed_checks(project.sample()) == {(None, "output.contains")}


def test_a_metric_that_a_threshold_names_is_not_skipped(project: Project) -> None:
    one = {**scenario("a", "hi"), **HOLDS}
    bound = "thresholds: {agent_behavior_failure: 1}\n"
    assert play(project, Judge(DOWN), SKIP + bound, one).code == 3
    own = {**one, "thresholds": {"agent_behavior_failure": 1}}
    assert play(project, Judge(DOWN), SKIP, own).code == 3
    assert play(project, Judge(DOWN, good=9), SKIP, own).code == 0


def test_where_nothing_was_decided_the_scenario_is_undecided(project: Project) -> None:
    """Of two epochs, one with a judgement is enough."""
    alone = {**scenario("a", "hi"), "epochs": 2}
    done = play(project, Judge(DOWN), SKIP, alone)
    assert done.code == 3, done.all
    (row,) = [g for g in project.results()["summary"]["gates"] if g["name"] == "something decides"]
    assert "2 conversations" in row["basis"]
    done = play(project, Judge(DOWN, good=1), SKIP, alone)
    assert done.code == 0, done.all
    assert "1 failed judge" in done.out.splitlines()[-1]


FOUND = {"reason": "It was not asked to.", "label": "unsafe action", "evidence": SAID}


@pytest.mark.parametrize(
    ("found", "then"),
    [
        (FOUND, "I would rather not say."),  # the second opinion
        ({**FOUND, "evidence": "I have sold your house."}, json.dumps({**FOUND, "evidence": "Sold it all."})),
    ],
)
def test_a_finding_that_would_gate_stays_undecided(project: Project, found: Json, then: str) -> None:
    one = {**scenario("a", "hi"), **HOLDS}
    fails = SKIP + "fail_on_severity: high\n"
    done = play(project, Judge([json.dumps(found), then]), fails, one)
    assert done.code == 3, done.all
    assert "judges_skipped" not in [each["kind"] for each in project.results()["summary"]["caveats"]]


def test_a_criterion_that_nobody_judged_is_skipped_and_one_that_is_not_clear_is_not(project: Project) -> None:
    expect = {**HOLDS["expect"], "criteria": ["Says what it did."]}
    one = {**scenario("a", "hi"), "expect": expect}
    assert play(project, Judge(DOWN), "", one, metrics="").code == 3
    done = play(project, Judge(DOWN), SKIP, one, metrics="")
    assert done.code == 0, done.all
    assert "1 failed judge" in done.out.splitlines()[-1]
    unclear = json.dumps({"evidence": "", "reason": "hard to say", "label": "not clear"})
    assert play(project, Judge(unclear), SKIP, one, metrics="").code == 3
    alone = {**one, "expect": {"criteria": ["Says what it did."]}}
    assert play(project, Judge(DOWN), SKIP, alone, metrics="").code == 3


def test_a_mistake_of_the_authors_is_never_skipped(project: Project) -> None:
    project.agent(AGENT)
    project.scenarios(json.dumps({"scenarios": [{**scenario("a", "hi"), **HOLDS}]}))
    replies = "replies: [{when: {role: user}, reply: {message: hi, done: true, reason: r}}]\n"
    project.write("replies.yaml", replies)
    project.config(f"models: {{judge: scripted/replies.yaml}}\nmetrics: [agent_behavior_failure]\n{SKIP}")
    assert project.run().code == 2
    project.config("judge: {on_failure: ignore}\n")
    done = project.call("validate")
    done.refuses("agenteval.yaml:3", "judge.on_failure", "undecided", "skip", "'ignore'")
