"""Records that are longer than the judge's model can read, through the command line."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agenteval.core.config import ModelConfig
from tests.support.judged_projects import KEY, MODEL, contented, judged_project, scenario
from tests.support.kit import Project
from tests.support.model_servers import Json, ModelServer, Reply

LONG = """
def agent(messages, ctx):
    ctx.call_tool_sync("look", {"q": ctx.turn})
    return f"Answer number {ctx.turn}."
"""


def config(server: ModelServer, more: str = "", metrics: str = "helpfulness, goal_completion") -> str:
    entry = f"{{model: {MODEL}, base_url: '{server.base_url}', api_key_env: MODEL_KEY{more}}}"
    return f"models: {{default: {entry}}}\nmetrics: [{metrics}]\njudge: {{corroborate: false}}\n"


def failures_of(project: Project) -> list[str]:
    sample = project.sample()
    scored: list[Json] = [*sample["turns"], sample]
    return [each["message"] for place in scored for each in place["score_failures"]]


@pytest.mark.parametrize(("context", "is_cut"), [("", False), (", context: 20000", True)])
def test_old_results_are_shortened_to_the_context_of_the_model(
    project: Project, context: str, is_cut: bool
) -> None:
    tools = {"look": {"returns": "w" * 30_000}}
    with ModelServer(contented()) as server:
        suite = [scenario("a", "One.", "Two.", "Three.", tools=tools, goal="A lamp.")]
        judged_project(project, suite, config(server, context), LONG)
        done = project.run(env=KEY)
        texts: list[Any] = [asked["messages"][1]["content"] for asked in server.asked]
    assert done.code in (0, 3), done.all
    assert failures_of(project) == []
    whole = [text for text in texts if "The conversation as a whole" in text]
    assert len(whole) == 1
    assert (len(whole[0]) < 3 * 30_000) == is_cut
    assert bool(re.search(r"^\[… [\d,]+ ", whole[0], re.MULTILINE)) == is_cut
    assert ("hold nothing against it because you do not see it" in whole[0]) == is_cut
    assert (max(map(len, texts)) <= 4 * 20_000) == is_cut


@pytest.mark.parametrize(("context", "fits"), [(", context: 8000", False), ("", True)])
def test_a_record_that_does_not_fit_is_a_failure_that_names_the_key(
    project: Project, context: str, fits: bool
) -> None:
    with ModelServer(contented()) as server:
        more: Json = {"knowledge": ["k" * 40_000], "expect": {"criteria": ["Is kind."]}}
        judged_project(project, [scenario("a", "One.", goal="A lamp.", **more)], config(server, context))
        done = project.run(env=KEY)
        assert bool(server.asked) == fits
    named = [each for each in failures_of(project) if "`context`" in each]
    assert len(named) == (0 if fits else 3)
    assert (done.code == 3) == (not fits), done.all


def test_a_refusal_of_the_model_s_server_for_length_names_the_key(project: Project) -> None:
    def play(_: Json) -> Reply:
        what = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"
        return Reply({"error": {"message": what, "code": "context_length_exceeded"}}, status=400)

    with ModelServer(play) as server:
        judged_project(project, [scenario("a", "One.")], config(server, metrics="helpfulness"))
        project.run(env=KEY)
    (message,) = failures_of(project)
    assert "`context`" in message


@pytest.mark.parametrize(
    ("known", "tokens"),
    [
        ({"model": "openai/x"}, 75_000),
        ({"model": "openai/x", "context": 128_000}, 123_000),
        ({"model": "openai/x", "context": 4000}, 2000),
        ({"model": "local/x.gguf"}, 4096),
        ({"model": "local/x.gguf", "extra": {"n_ctx": 32_000}}, 27_000),
    ],
)
def test_what_a_context_leaves_for_the_record(known: Json, tokens: int) -> None:
    assert ModelConfig.model_validate(known).record_tokens == tokens


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ([], "the agent's answer"),
        ([{"role": "user", "content": "And my lamp?"}], "the user's message"),
    ],
)
def test_judges_of_a_recording_know_what_it_ends_with(project: Project, more: list[Json], end: str) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}, *more]
    project.write("log.jsonl", json.dumps({"id": "a", "messages": said}) + "\n")
    project.write("suite.yaml", "id: a\ngoal: Find the lamp.\nturns: [Hi]\n")
    with ModelServer(contented()) as server:
        project.write("agenteval.yaml", config(server).replace("default", "judge"))
        options = ("--scenarios", "suite.yaml", "--scenario-from", "id")
        done = project.call("score", "log.jsonl", *options, env=KEY)
        texts: list[Any] = [asked["messages"][1]["content"] for asked in server.asked]
    assert done.code in (0, 3), done.all
    (whole,) = [text for text in texts if "The conversation as a whole" in text]
    assert f"The conversation as a whole. The recording ends with {end}." in whole
