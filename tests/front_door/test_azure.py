"""``azure/DEPLOYMENT``: a judge that scores, and all that can be wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.azure_server import DEPLOYMENT, KEY, VERSION, WRONG_KEY, AzureServer
from tests.support.judged_projects import AGENT, contented, judged_project, scenario
from tests.support.kit import Done, Project
from tests.support.local_servers import plain_environment

MODEL = f"azure/{DEPLOYMENT}"
CONFIG = f"metrics: [helpfulness]\nthresholds: {{helpfulness: 3}}\nmodels:\n  judge: {MODEL}\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def run(project: Project, server: AzureServer, command: str = "run", more: str = "", **env: str) -> Done:
    judged_project(project, [scenario("talk", "Hello")], CONFIG + more, AGENT)
    known = {"AZURE_OPENAI_ENDPOINT": server.address, "OPENAI_API_VERSION": VERSION}
    done = project.call(command, env={**known, "AZURE_OPENAI_API_KEY": KEY, **env})
    assert KEY not in done.all
    return done


def test_a_judge_on_azure_scores(project: Project) -> None:
    with AzureServer(contented()) as server:
        done = run(project, server, more=f"prices: {{{MODEL}: {{input: 2, output: 8}}}}\n")
        assert len(server.asked) == 1
    assert done.code == 0, done.all
    assert "5.0" in done.out
    assert "0.0003 USD" in done.out


def test_a_wrong_key_is_reported_in_azures_words(project: Project) -> None:
    with AzureServer(contented()) as server:
        done = run(project, server, AZURE_OPENAI_API_KEY="another-key-0123456789")
    assert done.code == 3, done.all
    assert WRONG_KEY[:40] in " ".join(done.all.split())
    assert "another-key" not in done.all


def test_what_is_missing_is_named_at_its_place(project: Project) -> None:
    with AzureServer(contented()) as server:
        done = run(project, server, AZURE_OPENAI_ENDPOINT="", OPENAI_API_VERSION="")
        assert not server.requests
    done.refuses("agenteval.yaml:5:3", "AZURE_OPENAI_ENDPOINT", "base_url")
    done.refuses("agenteval.yaml:5:3", "OPENAI_API_VERSION")


def test_doctor_asks_it(project: Project) -> None:
    with AzureServer() as server:
        done = run(project, server, "doctor")
    assert done.code == 0, done.all
    assert f"{MODEL}: " in done.out
    assert "json_schema" in done.out
    with AzureServer(contented()) as server:
        done = run(project, server, "doctor", AZURE_OPENAI_API_KEY="another-key-0123456789")
    assert done.code == 3
    assert WRONG_KEY[:40] in done.out


@pytest.mark.parametrize("command", ["plan", "show-prompts"])
def test_what_asks_nothing_needs_no_endpoint_and_no_key(project: Project, command: str) -> None:
    with AzureServer() as server:
        done = run(project, server, command, AZURE_OPENAI_ENDPOINT="", AZURE_OPENAI_API_KEY="")
        assert not server.requests
    assert done.code == 0, done.all


def test_answers_of_one_resource_are_not_those_of_another(project: Project) -> None:
    """The same deployment's name may stand for another model elsewhere."""
    with AzureServer(contented()) as one, AzureServer(contented()) as other:
        for server in (one, one, other):
            assert run(project, server, more="cache: true\n").code == 0
        assert len(one.asked) == len(other.asked) == 1


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        (f"{{model: {MODEL}, client: http}}", ["azure", "openai"]),
        ("{model: openai/m, client: curl}", ["models.judge.client", "curl"]),
        ("{model: scripted/replies.yaml, client: sdk}", ["scripted", "`client`"]),
    ],
)
def test_a_client_that_does_not_fit_is_refused_at_its_place(
    project: Project, entry: str, facts: list[str]
) -> None:
    judged_project(project, [scenario("talk", "Hello")], f"models: {{judge: {entry}}}\n", AGENT)
    project.call("run").refuses("agenteval.yaml:2", *facts)
