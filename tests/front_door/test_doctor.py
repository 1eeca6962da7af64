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


def row(done: Done, what: str, state: str = "", *facts: str) -> str:
    """The line of one thing, with what to do about it: it has this state, and names these facts."""
    lines = done.out.splitlines()
    found = [index for index, line in enumerate(lines) if f" {what} " in f"{line} "]
    assert len(found) == 1, done.out
    after = lines[found[0] + 1 : found[0] + 2]
    text = "\n".join([lines[found[0]], *(line for line in after if "→" in line)]).strip()
    assert text.startswith(state), text
    assert [fact for fact in facts if fact not in text] == [], text
    return text


ALL_ROLES = "model user, judge, dedup"


def doctor(project: Project, *arguments: str, code: int = 0, **env: str) -> Done:
    done = project.call("doctor", *arguments, env=env)
    assert KEY not in done.all
    assert done.code == code, done.all
    return done


def with_model(project: Project, *plays: Any, more: str = "", code: int = 0, **env: str) -> Done:
    """A configuration with one model for all, which plays so."""
    with ModelServer(*plays) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}', {more}}}"
        project.write("agenteval.yaml", f"models: {{default: {model}}}")
        return doctor(project, code=code, **env)


def http_agent(
    project: Project, behaviour: Behaviour, *, more: str = "", code: int = 0, **env: str
) -> tuple[Done, LocalServer]:
    with LocalServer(behaviour) as server:
        project.write("agenteval.yaml", f"agent: {{name: bot, endpoint: '{server.url}', {more}}}\n")
        return doctor(project, code=code, **env), server


# ── models ───────────────────────────────────────────────────────────────────────────────────────


def test_all_that_works_is_listed_and_the_end_is_good(project: Project) -> None:
    project.agent("def agent(messages): return 'Hi'")
    with ModelServer() as server:
        project.config(f"models: {{default: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}")
        done = doctor(project)
        assert len(server.asked) == 1
    row(done, "configuration", "ok", "agenteval.yaml")
    for what in ("prompts", "agent bot"):
        row(done, what, "ok")
    assert "tokens" in done.out
    row(done, ALL_ROLES, "ok", "openai-compatible/m", "json_schema")


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
    assert "estimates" not in row(done, "model user, dedup", "ok")
    row(done, "model judge", "", "usage", "estimates")
    row(done, "agent", "note")


def test_parameters_that_a_model_does_not_take_are_named(project: Project) -> None:
    plays = refuses("temperature"), refuses_format("json_schema"), answers()
    done = with_model(project, *plays, more="temperature: 0")
    row(done, ALL_ROLES, "", "json_object", "`temperature`")


def test_a_model_that_thinks_long_is_alive(project: Project) -> None:
    done = with_model(project, thinks_too_long(4000), answers(), more="max_tokens: 5")
    row(done, ALL_ROLES, "", "2 attempts")


BAD_MODELS: dict[str, tuple[Any, str]] = {  # what the server plays, and what is named
    "a wrong key": (says({"error": f"bad key {KEY}"}, status=401), "MY_KEY"),
    "no such model": (says({"error": "no model m"}, status=404), "404"),
    "a web page": (says("<html>Sign in</html>"), "web page"),
    "never an answer that fits": (answers("I am fine, thanks."), "I am fine, thanks."),
    "no credit": (says({"error": "insufficient_quota"}, status=429), "quota"),
}


@pytest.mark.parametrize(("play", "fact"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_a_model_that_does_not_work_fails(project: Project, play: Any, fact: str) -> None:
    done = with_model(project, play, more="api_key_env: MY_KEY", code=3, MY_KEY=KEY)
    row(done, ALL_ROLES, "FAIL", fact)


def test_a_server_that_is_not_there_fails_for_agents_and_models(project: Project) -> None:
    gone = f"http://127.0.0.1:{closed_port()}/v1"
    model = f"{{default: {{model: openai-compatible/m, base_url: '{gone}'}}}}"
    project.write("agenteval.yaml", f"agent: {{name: bot, endpoint: '{gone}'}}\nmodels: {model}")
    done = doctor(project, code=3)
    for what in ("agent bot", ALL_ROLES):
        row(done, what, "FAIL", "connection refused", "→")


def test_a_missing_key_is_a_mistake_of_the_configuration(project: Project) -> None:
    project.write("agenteval.yaml", "models: {default: openai/gpt-5-mini}")
    row(doctor(project, code=2, OPENAI_API_KEY=""), ALL_ROLES, "FAIL", "OPENAI_API_KEY")


def test_a_broken_configuration_is_refused_as_everywhere(project: Project) -> None:
    project.write("agenteval.yaml", "agnet: {}")
    done = doctor(project, code=2)
    done.refuses("agenteval.yaml:1:1", "'agnet'", "'agent'")
    assert done.out == ""


def test_without_any_configuration(project: Project) -> None:
    done = doctor(project)
    row(done, "configuration", "note")
    row(done, "models", "note")


def test_a_scripted_model_is_not_called(project: Project) -> None:
    project.write("replies.yaml", "replies: []")
    project.write("agenteval.yaml", "models: {default: scripted/replies.yaml, judge: scripted/gone.yaml}")
    done = doctor(project, code=2)
    row(done, "model user, dedup", "ok", "scripted/replies.yaml")
    row(done, "model judge", "FAIL")


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_over_http_is_asked_once(project: Project) -> None:
    done, server = http_agent(project, chat("Hi"))
    text = row(done, "agent bot", "ok", "usage", "tools", "not streamed")
    assert "estimates" not in text
    assert len(server.requests) == 1
    assert server.requests[0].json["messages"] == [{"role": "user", "content": "Hello"}]


CALL = {"id": "1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}
TOOLS_REFUSED = respond_json({"error": "tools are not supported"}, status=400)
QUIRKS: dict[str, tuple[Behaviour, str, str, tuple[str, ...]]] = {  # of an agent that works: its row
    "streams and reports no usage": (
        sse(delta("Hi"), delta(finish_reason="stop")),
        "streaming: true, send_tools: false",
        "ok",
        ("usage", "estimates", "; streamed"),
    ),
    "calls tools": (chat(None, tool_calls=[CALL]), "", "ok", ("(get_order)",)),
    "takes no tools": (
        answer(lambda request: TOOLS_REFUSED if "tools" in request.json else chat("Hi")),
        "",
        "note",
        ("send_tools: false",),
    ),
    "answers nothing": (respond_json(completion("")), "", "", ("empty",)),
}


@pytest.mark.parametrize("kind", QUIRKS)
def test_how_an_agent_answers_stands_in_its_row(project: Project, kind: str) -> None:
    behaviour, more, state, facts = QUIRKS[kind]
    done, server = http_agent(project, behaviour, more=more)
    row(done, "agent bot", state, *facts)
    assert len(server.requests) == (2 if kind == "takes no tools" else 1)


BAD_AGENTS = {
    "401": (respond("", status=401), "headers"),
    "404": (respond("", status=404), "/v1"),
    "500": (respond("oops", status=500), "500: oops"),
    "page": (respond("<html>"), "web page"),
    "hang": (hang(), "`timeout_s`"),
}


@pytest.mark.parametrize(("behaviour", "fact"), BAD_AGENTS.values(), ids=BAD_AGENTS)
def test_an_agent_that_does_not_answer_fails(project: Project, behaviour: Behaviour, fact: str) -> None:
    headers = 'headers: {Authorization: "Bearer ${BOT_KEY}"}, timeout_s: 1.5'
    done, server = http_agent(project, behaviour, more=headers, code=3, BOT_KEY=KEY)
    row(done, "agent bot", "FAIL", fact)
    assert len(server.requests) == 1


def test_an_agent_in_python_has_no_tools_and_its_prints_go_to_stderr(project: Project) -> None:
    project.agent(
        """
        async def agent(messages, ctx):
            print("talking")
            result = await ctx.call_tool("book", {})
            assert result["error"]
            return messages[-1]["content"]
        """
    )
    project.config()
    done = doctor(project)
    row(done, "agent bot", "ok", "(book)")
    assert "talking" in done.err


@pytest.mark.parametrize(
    ("text", "code", "fact"),
    [
        ("def agent(m): raise ValueError('no')", 3, "ValueError: no (agent.py:1, in agent)"),
        ("def agent(m): raise ConnectionError('gone')", 3, "ConnectionError: gone"),
        ("def other(m): pass", 2, "'agent'"),
    ],
)
def test_an_agent_in_python_that_does_not_work_fails(
    project: Project, text: str, code: int, fact: str
) -> None:
    project.agent(text)
    project.config()
    row(doctor(project, code=code), "agent bot", "FAIL", fact)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
@pytest.mark.parametrize(("last", "code"), [("", 0), ("echo bye", 3)])
def test_a_command_that_writes_more_than_its_answer_fails(project: Project, last: str, code: int) -> None:
    project.write("bot.sh", f'read -r line\necho \'{{"text": "hi"}}\'\nread -r line\n{last}\n')
    project.write("agenteval.yaml", "agent: {name: bot, command: [sh, bot.sh]}\n")
    done = doctor(project, code=code)
    assert ("bye" in row(done, "agent bot")) == bool(code)


def test_agents_may_be_left_alone_or_asked_by_name(project: Project) -> None:
    project.agent("def agent(m): open('acted', 'w').close()")
    project.config("agents: {other: {target: 'agent.py:agent'}}")
    done = doctor(project, "--no-agent")
    for name in ("bot", "other"):
        row(done, f"agent {name}")
    assert not (project.root / "acted").exists()
    project.agent("def agent(m): return 'Hi'")
    assert "agent bot" not in doctor(project, "--agent", "other").out
    doctor(project, "--agent", "nobody", code=2).refuses("agenteval", "'nobody'")


# ── the vocabulary ───────────────────────────────────────────────────────────────────────────────


def test_the_vocabulary_is_fetched_when_asked_for_and_never_otherwise(
    project: Project, tmp_path: Path
) -> None:
    project.agent("def agent(messages): return 'Hi'")
    project.config("")
    cache = tmp_path / "cache"
    with LocalServer(respond("", status=503)) as proxy:
        env = {"TIKTOKEN_CACHE_DIR": str(cache), "HTTPS_PROXY": proxy.address}
        row(doctor(project, **env), "tokens  ", "", "--fetch-vocabulary")
        assert not proxy.requests
        done = doctor(project, "--fetch-vocabulary", code=3, **env)
        assert [request.method for request in proxy.requests] == ["CONNECT"]
    row(done, "tokens  ", "FAIL", "503", f"{cache}")
    assert not cache.exists()


def test_without_a_folder_for_it_no_vocabulary_is_fetched(project: Project) -> None:
    project.agent("def agent(messages): return 'Hi'")
    project.config("")
    done = doctor(project, "--fetch-vocabulary", code=2, TIKTOKEN_CACHE_DIR="")
    row(done, "tokens  ", "FAIL", "TIKTOKEN_CACHE_DIR")


# ── another model ────────────────────────────────────────────────────────────────────────────────

MODELS = "models: {{default: {{model: openai-compatible/m, base_url: '{url}', api_key_env: SHOP_KEY}}}}\n"


@pytest.mark.parametrize(
    ("flags", "env"),
    [(("-m", "openai-compatible/other"), {}), ((), {"AGENTEVAL_MODEL": "openai-compatible/other"})],
)
def test_another_model_of_the_same_provider_is_asked_at_the_configured_address(
    project: Project, flags: tuple[str, ...], env: dict[str, str]
) -> None:
    project.agent("def agent(messages): return 'Hi'")
    with ModelServer() as server:
        project.config(MODELS.format(url=server.base_url))
        doctor(project, *flags, **env, SHOP_KEY="sk-shop-123456")
        assert [asked["model"] for asked in server.asked] == ["other"]
        assert server.headers[0]["authorization"] == "Bearer sk-shop-123456"


def test_a_model_of_another_provider_takes_nothing_of_the_configurations(project: Project) -> None:
    project.agent("def agent(messages): return 'Hi'")
    with ModelServer() as server:
        project.config(MODELS.format(url=server.base_url))
        done = doctor(project, "-m", "openai/gpt-5-mini", code=2, SHOP_KEY="sk-shop-123456")
        assert server.asked == []
    assert "OPENAI_API_KEY" in done.all
    # Where no address is to be kept, one has to be written.
    project.config("models: {default: openai/gpt-5-mini}\n")
    done = doctor(project, "-m", "openai-compatible/other", code=2)
    done.refuses("agenteval", "openai-compatible", "base_url")
