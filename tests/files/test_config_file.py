"""The configuration: found, layered, expanded, checked, and shown without its secrets."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.core.config import Config, ModelConfig, ReporterChoice
from agenteval.core.errors import AuthorError
from agenteval.core.providers import PROVIDERS
from agenteval.core.score import Severity
from agenteval.files.config_file import LoadedConfig, find_config, load_config
from agenteval.running.registries import REGISTRIES
from tests.support.kit import Project

Env = Mapping[str, str]


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, text: str, name: str = "agenteval.yaml") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def load(self, text: str, *, name: str = "agenteval.yaml", **more: Any) -> LoadedConfig:
        path = self.write(text, name)
        return load_config(
            path, REGISTRIES, environ=more.get("env", {}), flags=more.get("flags", {}), cwd=self.root
        )

    def config(self, text: str, **more: Any) -> Config:
        return self.load(text, **more).config

    def complaints(self, text: str, **more: Any) -> list[str]:
        with pytest.raises(AuthorError) as caught:
            self.load(text, **more)
        return [line.removeprefix("agenteval.yaml:") for line in str(caught.value).splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


AGENT = "agent: {name: bot, target: 'agent.py:agent'}\n"


# ── finding ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["agenteval.yaml", "agenteval.yml"])
def test_it_is_found_upward(folder: Folder, name: str) -> None:
    path = folder.write(AGENT, name)
    (folder.root / "a/b").mkdir(parents=True)
    assert find_config(folder.root / "a/b") == path
    assert find_config(folder.root) == path


def test_the_nearest_one_counts(folder: Folder) -> None:
    folder.write(AGENT)
    inner = folder.write("[tool.agenteval]\nepochs = 2\n", "a/pyproject.toml")
    (folder.root / "a/b").mkdir()
    assert find_config(folder.root / "a/b") == inner


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        ("[tool.agenteval]\nepochs = 2\n", True),
        ("[tool.agenteval.agent]\nname = 'x'\n", True),
        ("tool.agenteval.epochs = 2\n", True),
        ("[tool.agenteval\n", True),
        ("[project]\ndependencies = ['agenteval']\n", False),
        ("broken = \n# agenteval\n", False),
        ("tool = 3\n# agenteval\n", False),
    ],
)
def test_whose_pyproject_it_is(folder: Folder, text: str, *, is_ours: bool) -> None:
    path = folder.write(text, "a/pyproject.toml")
    outer = folder.write(AGENT)
    assert find_config(folder.root / "a") == (path if is_ours else outer)


def test_two_side_by_side_are_refused(folder: Folder) -> None:
    folder.write(AGENT)
    folder.write(AGENT, "agenteval.yml")
    with pytest.raises(AuthorError) as caught:
        find_config(folder.root)
    assert (
        str(caught.value)
        == f"{folder.root} contains both agenteval.yaml and agenteval.yml — remove one of them"
    )


def test_none_at_all(tmp_path: Path) -> None:
    assert find_config(tmp_path) is None
    config = load_config(None, REGISTRIES, environ={}, flags={"epochs": 2}, cwd=tmp_path).config
    assert (config.agent, config.epochs, config.source, config.root) == (None, 2, "", str(tmp_path))
    assert config.where("epochs") == "--epochs"
    assert config.where("concurrency") == "default"


def test_a_file_that_does_not_exist(folder: Folder) -> None:
    with pytest.raises(AuthorError) as caught:
        load_config(Path("no.yaml"), REGISTRIES, environ={}, flags={}, cwd=folder.root)
    assert str(caught.value) == "no.yaml: the configuration cannot be read: No such file or directory"


# ── what it says ─────────────────────────────────────────────────────────────────────────────────


def test_everything_that_is_documented(folder: Folder) -> None:
    config = folder.config("""
        agent:
          name: wonderbot
          type: python
          target: scenarios/agent.py:agent
          timeout_s: 30
          policy: null
        agents: {other: {endpoint: "https://example.com/v1", headers: {X-Version: 1.10, X-On: true}}}
        models:
          default: openai/gpt-5-mini
          judge: {model: openai-compatible/Qwen/Qwen3, base_url: "http://localhost:1/v1", temperature: 0}
          user: null
        epochs: 3
        max_turns: 8
        concurrency: 20
        agent_concurrency: null
        metrics: all
        custom_metrics: [tone.md]
        thresholds: {helpfulness: 3.5, goal_completion: {at_least: 0.8}, verbosity: null}
        fail_on_severity: none
        severities: {repetition: high}
        severity_from: model
        fault_tolerance: 0.1
        judge: {}
        gates: {}
        budget: {}
        unmocked_tools: passthrough
        now: 2026-11-21T10:00:00Z
        include: ["scenarios/**/*.yaml"]
        exclude: drafts
        detectors: []
        reporters: [terminal, json=out.json, {name: junit, path: j.xml}]
    """)
    assert config.agent is not None
    assert (config.agent.kind, config.agent.timeout_s) == ("python", 30)
    other = config.agents["other"]
    assert (other.name, other.kind, other.headers) == ("other", "http", {"X-Version": "1.10", "X-On": "true"})
    assert config.models.model_for("user") == ModelConfig(model="openai/gpt-5-mini")
    judge = config.models.model_for("judge")
    assert judge is not None
    assert (judge.provider, judge.name, judge.timeout_s) == ("openai-compatible", "Qwen/Qwen3", 120)
    assert (config.fail_on_severity, config.severities) == ("none", {"repetition": Severity.HIGH})
    assert (config.now, config.exclude, config.detectors) == ("2026-11-21T10:00:00Z", ("drafts",), ())
    assert config.reporters[1:] == (
        ReporterChoice(name="json", path="out.json"),
        ReporterChoice(name="junit", path="j.xml"),
    )


def test_where_things_are_written(folder: Folder) -> None:
    config = folder.config(
        AGENT + "thresholds:\n  helpfulness: 3\nepochs: 3\n",
        env={"AGENTEVAL_FAIL_ON_SEVERITY": "high", "AGENTEVAL_MODEL": "openai/x"},
        flags={"epochs": 4, "concurrency": None},
    )
    assert config.source == "agenteval.yaml"
    assert config.root == str(folder.root)
    assert config.where("thresholds.helpfulness") == "agenteval.yaml:3"
    assert config.where("thresholds.other") == "agenteval.yaml:2"
    assert config.where("agent.target") == "agenteval.yaml:1"
    assert config.where("fail_on_severity") == "AGENTEVAL_FAIL_ON_SEVERITY"
    assert config.where("models.default") == "AGENTEVAL_MODEL"
    assert config.where("epochs") == "--epochs"
    assert config.where("concurrency") == "default"


def test_precedence(folder: Folder) -> None:
    text = AGENT + "epochs: 2\nconcurrency: 2\nmax_turns: 2\nmodels: {default: openai/a, judge: openai/b}\n"
    env = {"AGENTEVAL_EPOCHS": "3", "AGENTEVAL_CONCURRENCY": "3", "AGENTEVAL_MODEL": "ollama/c"}
    config = folder.config(text, env=env, flags={"epochs": 4})
    assert (config.epochs, config.concurrency, config.max_turns, config.seed) == (4, 3, 2, 0)
    assert config.models.default == ModelConfig(model="ollama/c")
    assert config.models.judge == ModelConfig(model="openai/b")
    flagged = folder.config(text, env=env, flags={"models": {"default": "local/x.gguf"}})
    assert flagged.models.default == ModelConfig(model="local/x.gguf")
    assert flagged.where("models.default") == "--model"


def test_variables_are_typed_like_yaml(folder: Folder) -> None:
    env = {
        "AGENTEVAL_FAULT_TOLERANCE": "1e-1", "AGENTEVAL_SEED": " 010 ", "AGENTEVAL_NOW": "2026-11-21",
        "AGENTEVAL_AGENT_CONCURRENCY": "null", "AGENTEVAL_EPOCHS": "",
    }  # fmt: skip
    config = folder.config(AGENT + "epochs: 5\nagent_concurrency: 3\n", env=env)
    assert (config.fault_tolerance, config.seed, config.now) == (0.1, 10, "2026-11-21")
    assert (config.agent_concurrency, config.epochs) == (None, 5)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"AGENTEVAL_EPOCHS": "many"},
         "AGENTEVAL_EPOCHS: `epochs`: expected a whole number or a mapping, got 'many'"),
        ({"AGENTEVAL_EPOCHS": "0"}, "AGENTEVAL_EPOCHS: `epochs` must be at least 1, got 0"),
        ({"AGENTEVAL_EPOCHZ": "1"}, "AGENTEVAL_EPOCHZ: unknown environment variable — did you mean"
                                    " 'AGENTEVAL_EPOCHS'?"),
        ({"AGENTEVAL_METRICS": "x"}, "AGENTEVAL_METRICS: 'metrics' cannot be set by an environment"
                                     " variable — set it in the configuration file"),
        ({"AGENTEVAL_SEED": "9" * 5000}, "AGENTEVAL_SEED: a number with 5,000 digits is too long"),
        ({"AGENTEVAL_MODEL": "opnai/x"}, "AGENTEVAL_MODEL: no provider is named 'opnai' — did you mean"
        " 'openai'?"),
        ({"AGENTEVAL_FAIL_ON_SEVERITY": "hihg"}, "AGENTEVAL_FAIL_ON_SEVERITY: `fail_on_severity`:"
                                                 " expected one of low, medium, high, critical, none,"
                                                 " got 'hihg' — did you mean 'high'?"),
    ],
)  # fmt: skip
def test_errors_name_the_variable(folder: Folder, env: Env, message: str) -> None:
    found = folder.complaints(AGENT, env=env)
    assert found[0] == message


def test_errors_name_the_flag(folder: Folder) -> None:
    assert folder.complaints(AGENT, flags={"agent_concurrency": 0}) == [
        "--agent-concurrency: `agent_concurrency` must be at least 1, got 0"
    ]


def test_a_variable_that_the_file_mentions_is_known(folder: Folder) -> None:
    text = "agent: {endpoint: '${AGENTEVAL_URL}'}"
    config = folder.config(text, env={"AGENTEVAL_URL": "http://localhost:1"})
    assert config.agent is not None
    assert config.agent.endpoint == "http://localhost:1"


# ── expansion and secrets ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${X}", "ex"),
        ("a ${X} ${X}", "a ex ex"),
        ("${UNSET:-d f}", "d f"),
        ("${UNSET:-}", ""),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("$${X}", "${X}"),
        ("$X $ {X} $$", "$X $ {X} $$"),
        ("${NESTED}", "${X} $${X}"),
        ("${UNSET:-$X}", "$X"),
    ],
)
def test_expansion_is_done_once(folder: Folder, text: str, expected: str) -> None:
    env = {"X": "ex", "EMPTY": "", "NESTED": "${X} $${X}"}
    config = folder.config(f"agent: {{target: 'a:b', policy: '{text}'}}", env=env)
    assert config.agent is not None
    assert config.agent.policy == expected


def test_numbers_and_lists_may_come_from_variables(folder: Folder) -> None:
    loaded = folder.load(AGENT + "epochs: ${N}\ninclude: ['${DIR}/*.yaml']\n", env={"N": "4", "DIR": "a"})
    assert (loaded.config.epochs, loaded.config.include) == (4, ("a/*.yaml",))
    assert (loaded.public.epochs, loaded.public.include) == (4, ("${DIR}/*.yaml",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${UNSET}", "2:1: the environment variable UNSET is not set — set it, or use ${UNSET:-default}"),
        ("x ${", "2:1: '${' is not a valid variable reference — use ${NAME} or ${NAME:-default}, or $${"
                 " for a literal ${"),
        ("${1X}",
         "2:1: '${1X}' is not a valid variable reference — use ${NAME} or ${NAME:-default}, or $${ for"
         " a literal ${"),
        ("${X-y}",
         "2:1: '${X-y}' is not a valid variable reference — use ${NAME} or ${NAME:-default}, or $${ for"
         " a literal ${"),
    ],
)  # fmt: skip
def test_references_that_are_wrong(folder: Folder, text: str, message: str) -> None:
    assert folder.complaints(AGENT + f"now: '{text}'\n") == [message]


SECRET = """
    agent:
      name: ${WHO}
      endpoint: ${URL}
      headers:
        Authorization: Bearer ${KEY}
        X-Api-Key: literal-key
        X-Auth-Token: ${KEY:-fallback-token}
        Cookie: session=${KEY}
        X-Org: ${ORG}
        X-Plain: plain
      body: {model: m, password: hunter22, nested: [{client_secret: nested-secret}], max_tokens: 5}
    models:
      default: {model: "${MODEL}", base_url: "https://me:pass-word@host/v1?key=query-secret&a=b"}
"""
SECRET_ENV = {"WHO": "wonderbot", "URL": "http://u.example/x", "KEY": "sk-12345678", "ORG": "org-77",
              "MODEL": "openai/gpt-5-mini"}  # fmt: skip


def test_secrets_do_not_get_into_what_is_written(folder: Folder) -> None:
    loaded = folder.load(SECRET, env=SECRET_ENV)
    assert loaded.config.agent is not None
    assert loaded.config.agent.headers["Authorization"] == "Bearer sk-12345678"
    text = loaded.public.model_dump_json()
    for secret in ("sk-12345678", "literal-key", "hunter22", "nested-secret", "pass-word", "query-secret",
                   "fallback-token", "u.example"):  # fmt: skip
        assert secret not in text
    public = loaded.public.agent
    assert public is not None
    assert public.headers == {
        "Authorization": "Bearer ${KEY}", "X-Api-Key": "***", "X-Auth-Token": "***", "Cookie": "***",
        "X-Org": "${ORG}", "X-Plain": "plain",
    }  # fmt: skip
    assert (public.name, public.endpoint) == ("${WHO}", "${URL}")
    nested = [{"client_secret": "***"}]
    assert public.body == {"model": "m", "password": "***", "nested": nested, "max_tokens": 5}
    assert loaded.public.models.default == ModelConfig(
        model="openai/gpt-5-mini", base_url="https://***:***@host/v1?key=***&a=b"
    )
    assert loaded.public.source == "agenteval.yaml"


def test_secrets_are_named_for_whoever_redacts(folder: Folder) -> None:
    assert set(folder.load(SECRET, env=SECRET_ENV).secrets) == {
        "Bearer sk-12345678", "session=sk-12345678", "sk-12345678", "literal-key", "hunter22",
        "nested-secret",
        "http://u.example/x", "org-77", "pass-word", "query-secret",
    }  # fmt: skip


def test_short_texts_are_no_secrets(folder: Folder) -> None:
    text = "agent: {endpoint: 'http://x', headers: {Authorization: Basic abc, X: '${K}'}}"
    assert folder.load(text, env={"K": "12345"}).secrets == ("Basic abc",)


def test_a_variable_of_a_telling_name_is_secret_anywhere(folder: Folder) -> None:
    text = "agent: {target: 'a:b', policy: 'Never say ${VAULT_TOKEN}.'}\nnow: ${DAY}"
    loaded = folder.load(text, env={"VAULT_TOKEN": "open-sesame", "DAY": "2026-11-21"})
    assert loaded.secrets == ("open-sesame",)
    assert loaded.public.agent is not None
    assert loaded.public.agent.policy == "Never say ${VAULT_TOKEN}."


def test_messages_hide_secrets(folder: Folder) -> None:
    text = "agent: {endpoint: '${KEY}', headers: {X: '${KEY}', Y: {a: b}}, body: '${KEY}'}"
    found = "\n".join(folder.complaints(text, env={"KEY": "sk-12345678"}))
    assert "sk-1234" not in found
    assert "`agent.body`: expected a mapping, got '***'" in found


# ── agents ───────────────────────────────────────────────────────────────────────────────────────

NEITHER = (
    "the agent has no target, endpoint or command — set target: my_agent.py:agent (Python), endpoint:"
    " http://localhost:3000/v1/chat/completions or command: [node, bot.js]"
)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("{name: x}", f"1:1: {NEITHER}"),
        ("{target: 'a:b', endpoint: 'http://x'}",
         "1:9: the agent has both an endpoint and a target — keep one, or set `type: http` or `type:"
         " python`"),
        ("{type: http, target: 'a:b', endpoint: 'http://x'}",
         "1:21: an agent of type http does not support 'target' — remove it, or change `type`"),
        ("{type: python, target: 'a:b', streaming: true}",
         "1:38: an agent of type python does not support 'streaming' — remove it, or change `type`"),
        ("{type: http}", "1:1: an agent of type http requires `endpoint` — set endpoint:"
                         " http://localhost:3000/v1/chat/completions"),
        ("{type: python}", "1:1: an agent of type python requires `target` — set target:"
                           " my_agent.py:agent"),
        ("{type: htp, endpoint: 'http://x'}", "1:9: no agent type is named 'htp' — did you mean 'http'?"),
        ("{target: agent.py}",
         "1:9: the target does not name an attribute — use file.py:name or package.module:name"),
        ("{endpoint: 'localhost:3000'}",
         "1:9: expected an http or https URL — use, for example, http://localhost:3000/…"),
        ("{endpoint: 'ftp://x'}",
         "1:9: expected an http or https URL — use, for example, http://localhost:3000/…"),
        ("{endpoint: 'http://[x'}",
         "1:9: expected an http or https URL — use, for example, http://localhost:3000/…"),
        ("{endpoint: 'http://x:99999'}",
         "1:9: expected an http or https URL — use, for example, http://localhost:3000/…"),
        ("{endpoint: 'http://x', headers: {'a b': 1}}",
         "1:41: 'a b' is not a valid header name — use letters, digits and dashes"),
        ('{endpoint: "http://x", headers: {A: "b\\r\\nX: y"}}', "1:41: the header 'A' contains a line break"
         " or control character — remove it; a variable read from a file may end in one"),
        ("{endpoint: 'http://x', headers: {A: null}}",
         "1:41: `agent.headers.A`: expected a string, got null — set a value, or remove the key"),
        ("{endpoint: 'http://x', heders: {}}", "1:31: unknown key 'heders' — did you mean 'headers'?"),
        ("{target: 'a:b', timeout_s: 0}", "1:24: `agent.timeout_s` must be greater than 0, got 0"),
        ("{target: 'a:b', timeout_s: true}", "1:24: `agent.timeout_s`: expected a number, got true"),
        ("bot", "1:1: `agent`: expected a mapping, got 'bot' — use {name: bot}"),
        ("bot.py:agent", "1:1: `agent`: expected a mapping, got 'bot.py:agent' — use {target:"
                         " bot.py:agent}"),
        ("http://x/v1", "1:1: `agent`: expected a mapping, got 'http://x/v1' — use {endpoint:"
                        " http://x/v1}"),
        ("{endpoint: '${NOWHERE}'}",
         "1:9: the environment variable NOWHERE is not set — set it, or use ${NOWHERE:-default}"),
        ("{endpoint: '${NOWHERE:-}'}",
         "1:9: the agent's `endpoint` is empty — set endpoint:"
         " http://localhost:3000/v1/chat/completions"),
        ("{type: python, target: ''}",
         "1:23: the agent's `target` is empty — set target: my_agent.py:agent"),
    ],
)  # fmt: skip
def test_agents_that_are_wrong(folder: Folder, agent: str, message: str) -> None:
    assert folder.complaints(f"agent: {agent}\n") == [message]


def test_header_values_that_come_with_a_line_break(folder: Folder) -> None:
    text = "agent:\n  endpoint: http://x\n  headers:\n    Authorization: Bearer ${K}\n"
    assert folder.complaints(text, env={"K": "secret-key\n"}) == [
        "4:5: the header 'Authorization' contains a line break or control character — remove it; a variable"
        " read from a file may end in one"
    ]


def test_compare_entries_are_overrides(folder: Folder) -> None:
    config = folder.config("""
        agent: {name: a, endpoint: "http://x", headers: {A: 1, B: 2}, body: {model: m, n: 1}, timeout_s: 9}
        compare:
          - {name: b, body: {model: n}}
          - {name: c, endpoint: "http://y", headers: {B: "3"}}
    """)
    first, second, third = config.compare
    assert first == config.agent
    assert (second.name, second.endpoint, second.body) == ("b", "http://x", {"model": "n", "n": 1})
    assert (third.endpoint, third.headers, third.timeout_s) == ("http://y", {"A": "1", "B": "3"}, 9)
    assert config.where("compare.1.body.model") == "agenteval.yaml:3"
    assert config.where("compare.1.endpoint") == "agenteval.yaml:1"


@pytest.mark.parametrize(
    "entry",
    ["{name: b, target: 'a.py:b'}", "{name: b, type: python, target: 'a.py:b'}",
     "{name: b, type: http, endpoint: 'http://y'}"],
)  # fmt: skip
def test_a_whole_agent_inherits_nothing(folder: Folder, entry: str) -> None:
    secret = "headers: {Authorization: 'Bearer abcdefgh'}, timeout_s: 9"
    config = folder.config(f"agent: {{name: a, endpoint: 'http://x', {secret}}}\ncompare: [{entry}]\n")
    whole = config.compare[1]
    assert (whole.adapter_options.get("headers", {}), whole.timeout_s) == ({}, 60)


def test_naming_the_type_again_changes_nothing(folder: Folder) -> None:
    config = folder.config(
        "agent: {name: a, target: 'x:y'}\ncompare: [{name: b, type: python, timeout_s: 3}]"
    )
    assert (config.compare[1].target, config.compare[1].timeout_s) == ("x:y", 3)


@pytest.mark.parametrize(
    ("agent", "entry", "place"),
    [
        ("name: a, target: 'x:y'", "name: a, target: 'x:z'", "1:9"),
        ("name: a, target: 'x:y'", "name: a, timeout_s: 4", "1:9"),
        ("name: a, target: 'x:y'", "name: a, endpoint: 'http://x'", "1:9"),
        ("name: a, target: 'x:y'", "name: a", "1:9"),
        ("target: 'x:y'", "name: agent, target: 'x:z'", "1:1"),
    ],
)
def test_an_entry_of_the_agents_name_would_hide_the_agent(
    folder: Folder, agent: str, entry: str, place: str
) -> None:
    name = "agent" if "name: agent" in entry else "a"
    text = f"agent: {{{agent}}}\ncompare: [{{name: b, timeout_s: 3}}, {{{entry}}}]"
    assert folder.complaints(text) == [
        f"2:37: the agent name '{name}' is already used at agenteval.yaml:{place} — give each agent a"
        " different name"
    ]


def test_compare_without_a_primary_agent(folder: Folder) -> None:
    text = "compare: [{name: a, target: 'x:y'}, {name: b, endpoint: 'http://x'}]"
    assert [agent.kind for agent in folder.config(text).compare] == ["python", "http"]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("compare:\n  - {timeout_s: 3}", ["3:5: an agent in `compare` needs a name — add `name`"]),
        ("compare:\n  - {name: b}\n  - {name: b}",
         ["4:6: the agent name 'b' is already used at agenteval.yaml:3:6 — give each agent a different"
          " name"]),
        ("compare: [3]", ["2:11: `compare`: expected a mapping, got 3"]),
        ("compare: {name: b}", ["2:1: `compare`: expected a list of mappings, got a mapping"]),
        ("agents: {bot: {target: 'a:b'}}",
         ["2:10: the agent name 'bot' is already used at agenteval.yaml:1:9 — give each agent a different"
          " name"]),
        ("agents: {x: {name: y, target: 'a:b'}}",
         ["2:14: the agent's key is 'x', but its `name` is 'y' — remove `name`"]),
        ("agents: {x: {}}", [f"2:10: {NEITHER}"]),
        ("agents: {x: 3}", ["2:10: `agents.x`: expected a mapping, got 3"]),
    ],
)  # fmt: skip
def test_further_agents_that_are_wrong(folder: Folder, text: str, messages: list[str]) -> None:
    assert folder.complaints(AGENT + text) == messages


def test_what_compare_inherits_wrong_is_told_once(folder: Folder) -> None:
    text = "agent: {target: 'a:b', timeout_s: -1, zz: 1}\ncompare: [{name: b}, {name: c}]\n"
    assert folder.complaints(text) == [
        "1:24: `agent.timeout_s` must be greater than 0, got -1",
        "1:39: unknown key 'zz' — known: calls, intercept, interpreter, keep, mcp, name, observe, policy,"
        " requests_per_minute, secrets, target, timeout_s, type",
    ]


# ── everything else that can be wrong ────────────────────────────────────────────────────────────

LATER_GATES = ("require_calibrated",)
KNOWN_PROVIDERS = f"known: {', '.join(sorted(PROVIDERS))}"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("thresholdz: {}", "1: unknown key 'thresholdz' — did you mean 'thresholds'?"),
        ("source: x", "1: unknown key 'source' — known: accepted, agent, agent_concurrency, agents,"
         " budget, cache, code_only, compare, concurrency, custom_metrics, deadlines, detectors, epochs,"
         " exclude, fail_on_severity, fault_tolerance, gates, include, judge, max_turns, metrics, models,"
         " now, on_undecided, prices, profiles, prompts, reporters, seed, severities, severity_from,"
         " thresholds, unmocked_tools"),
        ("epochs: {min: 3}", "1: `max` is missing in `epochs`"),
        *(
            (f"judge: {{{key}: 3}}", f"9: '{key}' is not supported yet — remove it")
            for key in ("votes", "votes_near", "models", "cascade")
        ),
        ("gates: {pass_rate: 1}",
         "9: `gates.pass_rate`: expected a mapping, got 1 — use, for example, {at_least: 0.9,"
         " reject_below: 0.7}"),
        ("gates: {pass_rate: {at_least: 1}}", "9: `reject_below` is missing in `gates.pass_rate`"),
        ("gates: {no_regression: }",
         "9: `gates.no_regression` has no value — set a value, or remove the key"),
        *((f"gates: {{{name}: {{p95: 4000}}}}",
           f"9: '{name}' is not supported yet — use `thresholds` or `pass_rate`") for name in LATER_GATES),
        ("judge: openai/x", "1: `judge`: expected a mapping, got 'openai/x'"),
        ("judge: {corroborate: maybe}", "9: `judge.corroborate`: expected true or false, got 'maybe'"),
        ("thresholds: {a: {share_below: 1}}", "18: `thresholds.a.share_below`: expected a mapping, got"
                                              " 1"),
        ("thresholds: {a: {at_least: 1, votes: 1}}",
         "31: 'votes' is not supported yet — use only `at_least`"),
        ("reporters: [jsn=x]", "13: no reporter is named 'jsn' — did you mean 'json'?"),
        ("reporters: [3]", "13: `reporters`: expected a name or a mapping, got 3"),
        ("reporters: {a: 1}", "1: `reporters`: expected a list, got a mapping"),
        ("metrics: {a: 1}", "1: `metrics`: expected 'all' or a list of strings, got a mapping"),
        ("fail_on_severity: sever",
         "1: `fail_on_severity`: expected one of low, medium, high, critical, none, got 'sever'"),
        ("severities: {a: hihg}",
         "14: `severities.a`: expected one of low, medium, high, critical, got 'hihg' — did you mean"
         " 'high'?"),
        ("severity_from: modl", "1: `severity_from`: expected one of table, model, got 'modl' — did you"
                                " mean 'model'?"),
        ("fault_tolerance: 1.5", "1: `fault_tolerance` must be at most 1, got 1.5"),
        ("concurrency: no", "1: `concurrency`: expected a whole number, got 'no'"),
        ("unmocked_tools: passthru",
         "1: `unmocked_tools`: expected one of error, passthrough, empty, got 'passthru' — did you mean"
         " 'passthrough'?"),
        ("models: openai/x",
         "1: `models`: expected a mapping, got 'openai/x' — use {default: openai/x}"),
        ("models: {usr: openai/x}", "10: unknown key 'usr' — did you mean 'user'?"),
        ("models: {default: opnai/x}", "10: no provider is named 'opnai' — did you mean 'openai'?"),
        ("models: {default: zz/x}", f"10: no provider is named 'zz' — {KNOWN_PROVIDERS}"),
        ("models: {default: gpt-5}",
         "10: `models.default.model`: 'gpt-5' is not in the form PROVIDER/MODEL — use, for example,"
         " openai/gpt-5-mini"),
        ("models: {default: [a]}", "10: `models.default`: expected PROVIDER/MODEL or a mapping, got a"
                                   " list"),
        ("models: {default: {model: openai-compatible/x}}",
         "10: `models.default`: openai-compatible requires `base_url` — use {model: …, base_url:"
         " https://…/v1}"),
        ("models: {default: {model: openai/x, base_url: host}}",
         "37: expected an http or https URL — use, for example, http://localhost:3000/…"),
        ("models: {default: {model: openai/x, api_key_env: sk-abc-123}}",
         "37: `api_key_env` is not a variable name — use the name of the environment variable that"
         " contains the key, not the key itself"),
        ("models: {default: {model: openai/x, api_key: k}}",
         "37: unknown key 'api_key' — did you mean 'api_key_env'?"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_configuration(folder: Folder, line: str, message: str) -> None:
    assert folder.complaints(AGENT + line) == [f"2:{message}"]


def test_a_command_is_missing(folder: Folder) -> None:
    (complaint,) = folder.complaints("agent: {type: command}")
    assert "an agent of type command requires `command` — set command: [node, bot.js]" in complaint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "1:1: expected a mapping, got a list — use, for example, agent: {target: my_agent.py:agent}"),
        ("# all commented\n", " the file is empty"),
        ("agent: {\n", "1:9: "),
        ("epochs: 1\nepochs: 2\n", "2:1: the key 'epochs' appears twice, first on line 1 —"),
    ],
)
def test_a_file_that_is_no_configuration(folder: Folder, text: str, message: str) -> None:
    (found,) = folder.complaints(text)
    assert found.startswith(message)


def test_all_mistakes_at_once_in_their_order(folder: Folder) -> None:
    text = "agnt: {}\nagent:\n  targt: x\n  headers: {A: [1]}\nepochs: 0\nnow: ${UNSET}\n"
    assert folder.complaints(text, env={"AGENTEVAL_SEDE": "1"}) == [
        "AGENTEVAL_SEDE: unknown environment variable — did you mean 'AGENTEVAL_SEED'?",
        "1:1: unknown key 'agnt' — did you mean 'agent'?",
        "3:3: unknown key 'targt' — did you mean 'target'?",
        "4:13: `agent.headers.A`: expected a string, got a list",
        "5:1: `epochs` must be at least 1, got 0",
        "6:1: the environment variable UNSET is not set — set it, or use ${UNSET:-default}",
    ]


# ── pyproject.toml ───────────────────────────────────────────────────────────────────────────────

TOML = """
    [project]
    name = "x"
    epochs = "not ours"

    [tool.agenteval]
    epochs = 3
    now = 2026-11-21T10:00:00Z
    models.default = "openai/x"

    [tool.agenteval.agent]
    name = "bot"
    endpoint = "http://localhost:1"
    headers = { Authorization = "Bearer ${KEY}", "X-A" = 1.5 }

    [[tool.agenteval.compare]]
    name = "b"

    [[tool.agenteval.compare]]
    name = "c"
    timeout_s = 3
"""


def test_a_pyproject(folder: Folder) -> None:
    config = folder.config(TOML, name="pyproject.toml", env={"KEY": "sk-12345678"})
    assert config.agent is not None
    assert config.agent.headers == {"Authorization": "Bearer sk-12345678", "X-A": "1.5"}
    assert (config.epochs, config.now) == (3, "2026-11-21T10:00:00+00:00")
    assert [agent.name for agent in config.compare] == ["bot", "b", "c"]
    keys = ("epochs", "models.default", "agent.endpoint", "compare.2.name")
    assert {key: config.where(key) for key in keys} == {
        "epochs": "pyproject.toml:6",
        "models.default": "pyproject.toml:8",
        "agent.endpoint": "pyproject.toml:12",
        "compare.2.name": "pyproject.toml:19",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epochs = 3", "epochs = 0", "6:1: `epochs` must be at least 1, got 0"),
        ("timeout_s = 3", "timout_s = 3", "20:1: unknown key 'timout_s' — did you mean 'timeout_s'?"),
        (
            '"X-A" = 1.5',
            '"X A" = 1.5',
            "13:46: 'X A' is not a valid header name — use letters, digits and dashes",
        ),
        ('"openai/x"', '"opnai/x"', "8:1: no provider is named 'opnai' — did you mean 'openai'?"),
        ("epochs = 3", "epochs = ", "6:10: not valid TOML: Invalid value"),
        ("epochs = 3", "epochs = 3\nepochs = 4", "7:11: not valid TOML: Cannot overwrite a value"),
    ],
)
def test_mistakes_in_a_pyproject(folder: Folder, old: str, new: str, message: str) -> None:
    text = textwrap.dedent(TOML).replace(old, new)
    found = folder.complaints(text, name="pyproject.toml", env={"KEY": "k"})
    assert found == [f"pyproject.toml:{message}"]


def test_a_pyproject_without_the_table(folder: Folder) -> None:
    found = folder.complaints("[project]\nname = 'x'\n", name="pyproject.toml")
    assert found == ["pyproject.toml: the file has no [tool.agenteval] table — add it"]


@pytest.mark.parametrize(
    "text",
    [
        "[tool.agenteval]\nx = " + "[" * 5000,
        "[tool.agenteval]\nx = " + "[" * 150 + "]" * 150,
        "[tool.agenteval]\n" + ".".join("a" * 2000) + " = 1\n",
    ],
)
def test_a_pyproject_that_nests_without_end(folder: Folder, text: str) -> None:
    (found,) = folder.complaints(text, name="pyproject.toml")
    assert found == "pyproject.toml: not valid TOML: nested too deeply"


# ── nothing crashes ──────────────────────────────────────────────────────────────────────────────

LEAF = st.sampled_from([None, True, 0, -1, 2.5, "", "x", "${X}", "${", "openai/x", "a:b", "http://x", "all"])
KEYS = st.sampled_from((
    *(*Config.model_fields, "name", "type", "target", "endpoint", "headers", "body", "default", "model"),
    *("base_url", "api_key_env", "at_least", "min"),
))  # fmt: skip
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, VALUE, min_size=1, max_size=5))
def test_no_configuration_crashes_it(folder: Folder, value: dict[str, Any]) -> None:
    import json

    try:
        loaded = folder.load(json.dumps(value), env={"X": "some-value"})
    except AuthorError as error:
        text = str(error)
    else:
        assert isinstance(loaded.public, Config)
        return
    assert text
    assert "Input should" not in text


@pytest.mark.parametrize("policy", ["policy.md", "rules", "."])
def test_a_policy_that_is_named_like_a_file_is_one(project: Project, policy: str) -> None:
    project.agent("def agent(messages):\n    return 'Hello.'\n")
    project.config(
        f"agent: {{name: bot, target: 'agent.py:agent', policy: {policy}}}\nmetrics: []\n", target=""
    )
    project.scenarios("id: greet\nturns: [Hi]\nexpect: {output: {contains: [hello]}}\n")
    done = project.run()
    if policy == "rules":
        assert done.code == 0  # a text of one word
    else:
        assert done.code == 2
        assert f"the policy of agent 'bot' is not a file: {policy}" in done.err
        assert "Traceback" not in done.all
        project.write("policy.md", "Be kind.")
