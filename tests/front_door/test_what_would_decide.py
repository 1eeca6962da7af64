"""``to decide:`` names what would really decide a run, and never what brings the same again."""

from __future__ import annotations

import pytest

from tests.support.kit import Project
from tests.support.local_servers import LocalServer, respond

AGAIN = "to decide:   agenteval run --last-failed (fault_tolerance)"
MENDED = "to decide:   agenteval doctor shows what is wrong; once that is fixed, agenteval run --last-failed"


@pytest.mark.parametrize(("status", "line"), [(401, MENDED), (403, MENDED), (503, AGAIN), (429, AGAIN)])
def test_access_is_mended_and_not_tried_again(project: Project, status: int, line: str) -> None:
    with LocalServer(respond("no", status=status)) as server:
        agent = f"{{name: bot, endpoint: '{server.address}/v1/chat/completions', max_wait_s: 0}}"
        project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
        project.scenarios("{id: a, turns: [Hello], expect: {output: {contains: [Hello]}}}")
        done = project.run()
    assert done.code == 3, done.all
    assert line in " ".join(done.out.split()).replace("to decide: ", "to decide:   "), done.out


def test_a_judge_that_fails_is_mended(project: Project) -> None:
    project.agent("def agent(message: str): return 'Hello.'")
    model = "{model: openai/x, base_url: 'http://127.0.0.1:9/v1', max_wait_s: 0}"
    project.config(f"metrics: [agent_behavior_failure]\nmodels: {{default: {model}}}")
    project.scenarios("{id: a, turns: [Hello], expect: {output: {contains: [Hello]}}}")
    done = project.run(env={"OPENAI_API_KEY": "none"})
    assert done.code == 3, done.all
    assert MENDED in " ".join(done.out.split()).replace("to decide: ", "to decide:   "), done.out
    assert project.run("--no-judge").code == 0
