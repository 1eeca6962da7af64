"""Every documented key and value is built or refused as "not supported yet", at its place and in one line: it
is never unknown and never ignored. The lists are those of the formats, top to bottom."""

from __future__ import annotations

import re

import pytest

from agenteval.core.unsupported_keys import UNSUPPORTED_KEYS
from tests.support.kit import Project

AGENT = "def agent(messages): return 'Done.'\n"

CONFIGURATION = """
agent:
  name: wonderbot
  type: python
  target: agent.py:agent
  timeout_s: 60
  calls: null
  intercept: {get_order: "agent.py:get_order"}
  policy: Be kind.
agents:
  web:
    type: http
    endpoint: "${AGENT_URL:-http://localhost:3000/v1/chat/completions}"
    headers: {Authorization: "Bearer ${AGENT_API_KEY:-k}"}
    body: {model: my-model, messages: [{role: system, content: Be brief.}]}
    streaming: false
    send_tools: true
    observed_messages: null
  api:
    type: http
    endpoint: http://localhost:3000/x
    request: {message: "${message}", session: "${session}", m: "${messages}", tools: "${tools}", n: "${turn}"}
    reply: {text: data.reply, tool_calls: data.calls, session: data.id}
  program: {type: command, command: [sh, bot.sh], observe: otlp}
  own: {target: "agent.py:agent", interpreter: /usr/bin/python3, mcp: true}
compare: []
models:
  default: openai/gpt-5-mini
  user: null
  judge: {model: openai/x, base_url: "http://localhost:1", api_key_env: K, timeout_s: 1, temperature: 0,
    max_tokens: 10}
  dedup: null
epochs: 3
max_turns: 8
concurrency: 20
agent_concurrency: null
metrics: all
custom_metrics: []
profiles: {pr: {tags: [smoke], epochs: 3, budget: {max_cost: 1}}}
thresholds: {helpfulness: {at_least: 3.5, share_below: {2: 0.1}}, goal_completion: 0.8}
fail_on_severity: critical
severities: {wrong tool: low}
severity_from: table
fault_tolerance: 0
judge: {corroborate: true, calls: shared}
gates: {tool_accuracy: 0.9, output_accuracy: 0.9, robustness: 0.9, latency_ms: {p95: 4000},
  tokens: {mean: 1000}, steps: {max: 9}, tool_calls: {p50: 4}, cost: {max: 1}}
budget: {max_calls: 1, max_tokens: 1, max_cost: 1}
prices: {openai/gpt-5-mini: {input: 1, output: 1}, openai/x: {input: 1, output: 1}}
unmocked_tools: error
now: null
accepted: null
detectors: all
prompts: {}
on_undecided: fail
include: ["scenarios/**/*.yaml"]
exclude: []
reporters: [terminal, json, csv, junit=j.xml, github, markdown]
"""
GATES = """
gates:
  pass_rate: {at_least: 0.9, reject_below: 0.7, confidence: 0.95}
  pass_hat_k: {k: 3, at_least: 0.5, over: scenario}
epochs: {min: 3, max: 20}
on_undecided: neutral
"""
SCENARIOS = """
defaults: {tags: [all]}
scenarios:
  - name: user books a morning slot
    id: book-morning
    category: capability
    note: what it tests
    profile: Busy professional.
    goal: Book a haircut.
    goal_outcome: reached
    knowledge: [The salon is open.]
    facts: []
    beliefs: []
    history: [{role: user, content: a}, {role: assistant, content: b}]
    user_tools: {restart: {description: d, parameters: {type: object}, returns: 1}}
    turns: [{user: Hi, tool_calls: [{name: restart, args: {}}], expect: {output: {contains: [Done]}}}, And?,
      {simulate: 2}]
    tools:
      check: {description: d, parameters: {type: object}, returns: {available: true}, reads: true}
      create: {sequence: [{error: busy}, {returns: {ok: true}}], writes: true}
      flaky: {error: timeout, destructive: true}
      lookup: {python: "../agent.py:lookup"}
    expect:
      tool_calls:
        match: in_order
        calls:
          - {name: check, times: {at_least: 1, at_most: 2}, result: ok}
          - name: create
            args: {a: {$in: [1]}, b: {$any: true}, c: {$regex: x}, d: {$approx: 1}, e: {$optional: 1}}
            args_match: partial
            agent: x
        forbidden: [{name: flaky}]
      output: {contains: [Done], not_contains: [], matches: D, any_of: [Done], json_schema: {type: object},
               json: {"items[0].price": {$approx: 9.5}}, cites: [BK]}
      python: ../agent.py:polite
      agents: [triage]
      criteria: [Confirms it.]
      limits: {steps: 6, tool_calls: 4, tokens: 4000, latency_ms: 8000}
      allow_empty: true
    epochs: 3
    max_turns: 8
    min_turns: 3
    thresholds: {helpfulness: null}
  - {id: none, turns: [Hi], expect: {tool_calls: none}}
  - {id: ways, turns: [Hi], expect: {tool_calls: {any_of: [none, {match: strict, calls: [{name: a}]}]}}}
  - {id: nothing, turns: [Hi], checks: none}
cases:
  - {id: C-01, category: robustness, input: Hi, expected_tools: [a], expected_output_contains: ["25", sunny]}
  - {id: C-02, input: Hi, expected_tools: none}
"""


def test_a_suite_with_every_key_that_is_built_is_valid(project: Project) -> None:
    code = "def agent(messages): return 'Done.'\ndef get_order(id): ...\ndef lookup(args, ctx): ...\n"
    project.agent(f"{code}def polite(conversation): return True\n")
    project.write("bot.sh", "echo\n")
    project.scenarios(SCENARIOS.replace("not_contains: []", "not_contains: [x]"))
    for text in (CONFIGURATION, f"agent: {{target: 'agent.py:agent'}}\nmodels: {{default: openai/x}}{GATES}"):
        project.config(text, target="")
        done = project.call("validate", env={"OPENAI_API_KEY": "k", "K": "k"})
        assert done.code == 0, done.all


OF_SCENARIOS = {  # what is written, and what is named as not supported yet
    "thresholds: {goal_completion: {at_least: 0.8, votes: 3}}": "thresholds.*.votes",
    "include: other.yaml": "include",
    "unreviewed: true": "unreviewed",
}


def test_keys_of_scenarios_that_are_not_built_are_refused_with_what_to_write_instead(
    project: Project,
) -> None:
    assert sorted(OF_SCENARIOS.values()) == sorted(UNSUPPORTED_KEYS["scenario"])
    project.agent(AGENT)
    project.config()
    entries = [
        f"- {{id: s{at}, {'' if text.startswith('turns') else 'turns: [Hi], '}checks: none, {text}}}"
        for at, text in enumerate(OF_SCENARIOS)
    ]
    project.scenarios("\n".join(["scenarios:", *entries]) + "\n")
    done = project.call("validate")
    assert len(done.err.splitlines()) == len(entries), done.err
    for line, pattern in enumerate(OF_SCENARIOS.values(), 2):
        name = pattern.rpartition(".")[2]
        done.refuses("agenteval", f"suite.yaml:{line}:", f"'{name}'", UNSUPPORTED_KEYS["scenario"][pattern])


OF_CONFIGURATIONS = {
    "thresholds: {helpfulness: {at_least: 3, votes: 3}}": "thresholds.*.votes",
    "judge: {votes: 1}": "judge.votes",
    "judge: {votes_near: 0.5}": "judge.votes_near",
    "judge: {models: [openai/x]}": "judge.models",
    "judge: {cascade: openai/x}": "judge.cascade",
    "gates: {require_calibrated: true}": "gates.require_calibrated",
}


@pytest.mark.parametrize("text", OF_CONFIGURATIONS)
def test_keys_of_configurations_that_are_not_built_are_refused_with_what_to_write_instead(
    project: Project, text: str
) -> None:
    assert {*OF_CONFIGURATIONS.values()} == set(UNSUPPORTED_KEYS["config"])
    project.agent(AGENT)
    project.scenarios("{id: a, turns: [Hi], checks: none}\n")
    project.config(text)
    pattern = OF_CONFIGURATIONS[text]
    name = pattern.rpartition("=")[2].rpartition(".")[2]
    done = project.call("validate")
    line = 3 if "metrics" in (project.root / "agenteval.yaml").read_text("utf-8") else 2
    done.refuses("agenteval", f"agenteval.yaml:{line}:", f"'{name}'", UNSUPPORTED_KEYS["config"][pattern])
    assert done.err.count("\n") == 1


BUILT_OPTIONS = {
    "run": "-c --config -s --scenario --tag --category --agent -m --model --no-judge --metric --epochs -n"
    " --concurrency --report -v --verbose --fail-fast --resume --baseline --seed -k --first --sample --lf"
    " --last-failed --record --replay --cache -x --profile --open",
    "score": "--scenario-from --epoch-from --outcome-from --scenarios --report -m --metric --no-judge"
    " --no-calls-in --open",
    "show-prompts": "--metric",
    "show": "--judge",
    "list": "--json",
    "report": "--report --open",
}


@pytest.mark.parametrize("command", BUILT_OPTIONS)
def test_all_other_options_are_built(project: Project, command: str) -> None:
    listed = set(re.findall(r"(?<!\S)-[-\w]+", project.call(command, "--help").out))
    assert set(BUILT_OPTIONS[command].split()) <= listed
