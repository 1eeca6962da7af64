"""``agenteval doctor``: real calls through the front door, and no word too much."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Done, Project
from tests.support.local_servers import (
    Behaviour,
    LocalServer,
    answer,
    chat,
    closed_port,
    completion,
    delta,
    hang,
    plain_environment,
    respond,
    respond_json,
    sse,
)
from tests.support.model_servers import ModelServer, answers, refuses, refuses_format, says, thinks_too_long

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def row(done: Done, what: str) -> str:
    """What is told of one thing, with what to do about it."""
    lines = done.out.splitlines()
    found = [index for index, line in enumerate(lines) if f" {what} " in f"{line} "]
    assert len(found) == 1, done.out
    after = lines[found[0] + 1 : found[0] + 2]
    return "\n".join([lines[found[0]], *(line for line in after if "→" in line)]).strip()


def doctor(project: Project, *arguments: str, **env: str) -> Done:
    done = project.call("doctor", *arguments, env=env)
    assert KEY not in done.all
    return done


def http_agent(
    project: Project, behaviour: Behaviour, *, more: str = "", **env: str
) -> tuple[Done, LocalServer]:
    with LocalServer(behaviour) as server:
        project.write("agenteval.yaml", f"agent: {{name: bot, endpoint: '{server.url}', {more}}}\n")
        return doctor(project, **env), server


def test_all_that_works_is_told_and_the_end_is_good(project: Project) -> None:
    project.agent("def agent(messages): return 'Hi'")
    with ModelServer() as server:
        project.config(f"models: {{default: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}")
        done = doctor(project)
        assert len(server.asked) == 1
    assert done.code == 0
    assert row(done, "configuration").startswith("ok")
    assert "agenteval.yaml" in row(done, "configuration")
    assert row(done, "prompts").startswith("ok")
    assert "tokens" in done.out
    assert row(done, "agent bot").startswith("ok")
    told = row(done, "model user, judge, dedup")
    assert told.startswith("ok")
    assert "openai-compatible/m: answered in" in told
    assert "answers by json_schema; usage reported" in told


def test_each_role_that_has_a_model_of_its_own_is_asked(project: Project) -> None:
    with ModelServer() as one, ModelServer(answers(usage=None)) as other:
        project.write(
            "agenteval.yaml",
            f"""
            models:
              default: {{model: openai-compatible/a, base_url: '{one.base_url}'}}
              judge: {{model: openai-compatible/b, base_url: '{other.base_url}'}}
            """,
        )
        done = doctor(project)
        assert (len(one.asked), len(other.asked)) == (1, 1)
    assert done.code == 0
    assert row(done, "model user, dedup").startswith("ok")
    assert "usage not reported, tokens are estimates" in row(done, "model judge")
    assert row(done, "agent").startswith("note")


def test_what_a_model_does_not_take_is_told(project: Project) -> None:
    plays = refuses("temperature"), refuses_format("json_schema"), answers()
    with ModelServer(*plays) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}', temperature: 0}}"
        project.write("agenteval.yaml", f"models: {{default: {model}}}")
        done = doctor(project)
    assert done.code == 0
    assert "answers by json_object" in row(done, "model user, judge, dedup")
    assert "`temperature` is refused" in row(done, "model user, judge, dedup")


def test_a_model_that_thinks_long_is_alive(project: Project) -> None:
    with ModelServer(thinks_too_long(4000), answers()) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}', max_tokens: 5}}"
        project.write("agenteval.yaml", f"models: {{default: {model}}}")
        done = doctor(project)
    assert done.code == 0
    assert "2 answers until one was valid" in done.out


BAD_MODELS: dict[str, tuple[Any, int, str]] = {
    "a wrong key": (says({"error": f"bad key {KEY}"}, status=401), 3, "→ is the key in MY_KEY right?"),
    "no such model": (says({"error": "no model m"}, status=404), 3, "→ is the model's name right?"),
    "a web page": (says("<html>Sign in</html>"), 3, "it is a web page"),
    "never an answer that fits": (answers("I am fine, thanks."), 3, "I am fine, thanks."),
    "no credit": (says({"error": "insufficient_quota"}, status=429), 3, "→ the account's quota"),
}


@pytest.mark.parametrize(("play", "code", "told"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_a_model_that_does_not_work(project: Project, play: Any, code: int, told: str) -> None:
    with ModelServer(play) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}', api_key_env: MY_KEY}}"
        project.write("agenteval.yaml", f"models: {{default: {model}}}")
        done = doctor(project, MY_KEY=KEY)
    assert done.code == code
    assert row(done, "model user, judge, dedup").startswith("FAIL")
    assert told in row(done, "model user, judge, dedup")


def test_nobody_there_is_told_soon(project: Project) -> None:
    gone = f"http://127.0.0.1:{closed_port()}/v1"
    model = f"{{default: {{model: openai-compatible/m, base_url: '{gone}'}}}}"
    project.write("agenteval.yaml", f"agent: {{name: bot, endpoint: '{gone}'}}\nmodels: {model}")
    done = doctor(project)
    assert done.code == 3
    for what in ("agent bot", "model user, judge, dedup"):
        assert "connection refused" in row(done, what)
        assert "→ is the server running" in row(done, what)


def test_a_missing_key_is_a_mistake_of_the_configuration(project: Project) -> None:
    project.write("agenteval.yaml", "models: {default: openai/gpt-5-mini}")
    done = doctor(project, OPENAI_API_KEY="")
    assert done.code == 2
    assert "→ set OPENAI_API_KEY" in row(done, "model user, judge, dedup")


def test_a_broken_configuration_is_told_as_everywhere(project: Project) -> None:
    project.write("agenteval.yaml", "agnet: {}")
    done = doctor(project)
    assert (done.code, done.out) == (2, "")
    assert "agent" in done.err


def test_without_any_configuration(project: Project) -> None:
    done = doctor(project)
    assert done.code == 0
    assert row(done, "configuration").startswith("note")
    assert row(done, "models").startswith("note")


def test_a_scripted_model_is_not_called(project: Project) -> None:
    project.write("replies.yaml", "replies: []")
    project.write("agenteval.yaml", "models: {default: scripted/replies.yaml, judge: scripted/gone.yaml}")
    done = doctor(project)
    assert done.code == 2
    assert "no model is called" in row(done, "model user, dedup")
    assert row(done, "model judge").startswith("FAIL")


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_over_http(project: Project) -> None:
    done, server = http_agent(project, chat("Hi"))
    assert done.code == 0
    told = row(done, "agent bot")
    for words in ("ok", "answered in", "usage reported", "accepts tools", "not streamed"):
        assert words in told
    assert len(server.requests) == 1
    assert server.requests[0].json["messages"] == [{"role": "user", "content": "Hello"}]


def test_an_agent_that_streams_and_tells_no_usage(project: Project) -> None:
    done, _ = http_agent(
        project, sse(delta("Hi"), delta(finish_reason="stop")), more="streaming: true, send_tools: false"
    )
    assert "usage not reported, tokens are estimates; streamed" in row(done, "agent bot")


def test_an_agent_that_calls_tools(project: Project) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}
    done, _ = http_agent(project, chat(None, tool_calls=[call]))
    assert done.code == 0
    assert "calls tools (get_order)" in row(done, "agent bot")


def test_an_agent_that_takes_no_tools(project: Project) -> None:
    refusal = respond_json({"error": "tools are not supported"}, status=400)
    done, server = http_agent(project, answer(lambda r: refusal if "tools" in r.json else chat("Hi")))
    assert done.code == 0
    assert row(done, "agent bot").startswith("note")
    assert "send_tools: false" in row(done, "agent bot")
    assert len(server.requests) == 2


def test_an_empty_answer_is_noted(project: Project) -> None:
    done, _ = http_agent(project, respond_json(completion("")))
    assert done.code == 0
    assert "the answer is empty" in row(done, "agent bot")


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (respond("", status=401), "→ check the key in the headers"),
        (respond("", status=404), "→ does the URL lack /v1"),
        (respond("oops", status=500), "HTTP status 500: oops"),
        (respond("<html>"), "is a web page"),
        (hang(), "→ raise `timeout_s`?"),
    ],
    ids=["401", "404", "500", "page", "hang"],
)
def test_an_agent_that_does_not_answer(project: Project, behaviour: Behaviour, told: str) -> None:
    headers = 'headers: {Authorization: "Bearer ${BOT_KEY}"}, timeout_s: 1.5'
    done, server = http_agent(project, behaviour, more=headers, BOT_KEY=KEY)
    assert done.code == 3
    assert row(done, "agent bot").startswith("FAIL")
    assert told in row(done, "agent bot")
    assert len(server.requests) == 1


def test_an_agent_in_python(project: Project) -> None:
    project.agent(
        """
        async def agent(messages, ctx):
            print("talking")
            result = await ctx.call_tool("book", {})
            assert "there are no tools" in result["error"]
            return messages[-1]["content"]
        """
    )
    project.config()
    done = doctor(project)
    assert done.code == 0
    assert "calls tools (book)" in row(done, "agent bot")
    assert "talking" in done.err


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("def agent(m): raise ValueError('no')", 3, "ValueError: no (agent.py:1, in agent)"),
        ("def agent(m): raise ConnectionError('gone')", 3, "ConnectionError: gone"),
        ("def other(m): pass", 2, "has no 'agent'"),
    ],
)
def test_an_agent_in_python_that_does_not_work(project: Project, text: str, code: int, told: str) -> None:
    project.agent(text)
    project.config()
    done = doctor(project)
    assert done.code == code
    assert told in row(done, "agent bot")


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
@pytest.mark.parametrize(("last", "code"), [("", 0), ("echo bye", 3)])
def test_a_command_that_writes_more_than_its_answer(project: Project, last: str, code: int) -> None:
    project.write("bot.sh", f'read -r line\necho \'{{"text": "hi"}}\'\nread -r line\n{last}\n')
    project.write("agenteval.yaml", "agent: {name: bot, command: [sh, bot.sh]}\n")
    done = doctor(project)
    assert done.code == code, done.all
    assert ("wrote a line that no request asked for, after its answer: bye" in done.out) == bool(code)


def test_agents_may_be_left_alone(project: Project) -> None:
    project.agent("def agent(m): open('acted', 'w').close()")
    project.config("agents: {other: {target: 'agent.py:agent'}}")
    done = doctor(project, "--no-agent")
    assert done.code == 0
    assert "not asked" in row(done, "agent bot")
    assert "not asked" in row(done, "agent other")
    assert not (project.root / "acted").exists()


def test_one_agent_by_its_name(project: Project) -> None:
    project.agent("def agent(m): return 'Hi'")
    project.config("agents: {other: {target: 'agent.py:agent'}}")
    assert "agent bot" not in doctor(project, "--agent", "other").out
    assert doctor(project, "--agent", "nobody").code == 2


# ── the vocabulary ───────────────────────────────────────────────────────────────────────────────


def test_the_vocabulary_is_fetched_when_asked_for_and_never_otherwise(
    project: Project, tmp_path: Path
) -> None:
    project.agent("def agent(messages): return 'Hi'")
    project.config("")
    with LocalServer(respond("", status=503)) as proxy:
        env = {"TIKTOKEN_CACHE_DIR": str(tmp_path / "cache"), "HTTPS_PROXY": proxy.address}
        done = doctor(project, **env)
        assert done.code == 0
        assert "--fetch-vocabulary" in row(done, "tokens  ")
        assert not proxy.requests
        done = doctor(project, "--fetch-vocabulary", **env)
        assert [request.method for request in proxy.requests] == ["CONNECT"]
    assert done.code == 3
    assert row(done, "tokens  ").startswith("FAIL")
    assert "cannot be fetched: 503" in row(done, "tokens  ")
    assert f"yourself to {tmp_path / 'cache'}" in row(done, "tokens  ")
    assert not (tmp_path / "cache").exists()


def test_tiktoken_may_be_told_to_keep_no_vocabulary(project: Project) -> None:
    project.agent("def agent(messages): return 'Hi'")
    project.config("")
    done = doctor(project, "--fetch-vocabulary", TIKTOKEN_CACHE_DIR="")
    assert done.code == 2
    assert "TIKTOKEN_CACHE_DIR is empty" in row(done, "tokens  ")


MODELS = "models: {{default: {{model: openai-compatible/m, base_url: '{url}', api_key_env: SHOP_KEY}}}}\n"


@pytest.mark.parametrize(
    ("flags", "env"),
    [(("-m", "openai-compatible/other"), {}), ((), {"AGENTEVAL_MODEL": "openai-compatible/other"})],
)
def test_another_model_of_the_same_provider_is_asked_where_the_configuration_says(
    project: Project, flags: tuple[str, ...], env: dict[str, str]
) -> None:
    project.agent("def agent(messages): return 'Hi'")
    with ModelServer() as server:
        project.config(MODELS.format(url=server.base_url))
        done = project.call("doctor", *flags, env={**env, "SHOP_KEY": "sk-shop-123456"})
        assert done.code == 0, done.all
        assert [asked["model"] for asked in server.asked] == ["other"]
        assert server.headers[0]["authorization"] == "Bearer sk-shop-123456"


def test_a_model_of_another_provider_takes_nothing_of_the_configurations(project: Project) -> None:
    project.agent("def agent(messages): return 'Hi'")
    with ModelServer() as server:
        project.config(MODELS.format(url=server.base_url))
        done = project.call("doctor", "-m", "openai/gpt-5-mini", env={"SHOP_KEY": "sk-shop-123456"})
        assert server.asked == []
    assert "OPENAI_API_KEY" in done.all
    # Where no address is to be kept, one has to be written.
    project.config("models: {default: openai/gpt-5-mini}\n")
    done = project.call("doctor", "-m", "openai-compatible/other")
    assert (done.code, "openai-compatible needs base_url" in done.err) == (2, True), done.all
