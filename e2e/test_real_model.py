"""The whole pipeline over HTTP against a real language model: simulated user, nine judges, criteria,
de-duplication. What is asserted is that the books balance, never what the model thinks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

TURN_METRICS = {
    *("helpfulness", "coherence", "relevance", "faithfulness", "verbosity"),
    *("agent_behavior_failure", "tool_call_behavior_failure"),
}
LABEL_METRICS = {"agent_behavior_failure", "tool_call_behavior_failure"}

BRIEF = {"logit_bias": [['"', 5], ["]", 5]]}
"""The ends of texts and lists are made more likely: this model does not know when to stop."""

AGENT = '''
async def agent(messages, ctx):
    """Looks up the order whatever is said, and first calls a tool that does not exist."""
    order = await ctx.call_tool("get_order", {"id": "ORD-42"})
    if ctx.turn == 0:
        await ctx.call_tool("track_parcel", {"order": "ORD-42"})
    return f"Your order ORD-42 is {order['status']} and arrives on {order['arrives']}."
'''

TOOLS = """
defaults:
  tools:
    get_order:
      description: Looks up an order.
      parameters: {type: object, properties: {id: {type: string}}, required: [id]}
      returns: {id: "${args.id}", status: shipped, arrives: 3 May}
"""

SUITE = f"""
{TOOLS}
scenarios:
  - name: written, then simulated
    id: written
    profile: A customer in a hurry who writes one short sentence.
    goal: Find out when the order ORD-42 arrives.
    knowledge: [The order is ORD-42.]
    turns:
      - user: Where is my order ORD-42?
        expect: {{criteria: [Says that the order is shipped.]}}
      - simulate: 1
    expect:
      criteria: [Names the day on which the order arrives.]
      output: {{contains: [shipped]}}
"""

SMALL_SUITE = f"""
{TOOLS}
scenarios:
  - name: written, then simulated
    id: written
    goal: Find out when the order ORD-42 arrives.
    turns:
      - user: Where is my order ORD-42?
      - simulate: 1
    expect: {{criteria: [Says that the order is shipped.]}}
"""
"""It begins with a written turn: now and then this model says nothing that a user could say, and then there
would be nothing to judge."""


@dataclass(frozen=True)
class Done:
    code: int
    said: str
    results: dict[str, Any]
    events: Sequence[dict[str, Any]]

    @property
    def samples(self) -> Iterator[dict[str, Any]]:
        for scenario in self.results["scenarios"]:
            yield from scenario["samples"]

    @property
    def scopes(self) -> Iterator[dict[str, Any]]:
        """The conversations and their turns: whatever has scores."""
        for sample in self.samples:
            yield from (sample, *sample["turns"])


def run(
    root: Path, model: Mapping[str, Any], *, metrics: Any = "all", suite: str = SUITE, again: bool = False
) -> Done:
    """``again``: whether what would fail something is asked again. This model would fail much by chance."""
    config = {
        "agent": {"name": "shop", "target": "agent.py:agent", "policy": "You help customers of a shop."},
        "models": {"default": {"timeout_s": 120, "max_tokens": 400, **model}},  # some answers have no end
        "epochs": 1,
        "concurrency": 4,
        "agent_concurrency": 1,  # prompts of one conversation in a row share what the server has read
        "metrics": metrics,
        "thresholds": {"helpfulness": 1},
        "judge": {"corroborate": again},
        "severity_from": "model",  # one finding is asked about, too
    }
    (root / "scenarios").mkdir()
    (root / "scenarios" / "suite.yaml").write_text(suite, encoding="utf-8")
    (root / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")
    (root / "agent.py").write_text(AGENT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "agenteval", "run", "--report", "json=results.json"],
        cwd=root,
        env={name: value for name, value in os.environ.items() if not name.startswith("AGENTEVAL_")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=900,
    )
    said = done.stdout + done.stderr
    assert done.returncode in (0, 1, 3), said
    (journal,) = root.glob(".agenteval/runs/*/events.jsonl")
    events = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    results = json.loads((root / "results.json").read_text(encoding="utf-8"))
    return Done(done.returncode, said, results, events)


@pytest.fixture(scope="module")
def over_http(tmp_path_factory: pytest.TempPathFactory, llama_server: str) -> Done:
    model = {"model": "openai-compatible/smollm2", "base_url": f"{llama_server}/v1", "extra": BRIEF}
    # One of each form: half a minute each on one thread.
    metrics = ["helpfulness", "tool_call_behavior_failure", "goal_completion", "policy_adherence"]
    return run(tmp_path_factory.mktemp("http"), model, metrics=metrics)


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory, model_file: Path) -> Done:
    root = tmp_path_factory.mktemp("local")
    model = {"model": f"local/{model_file}", "extra": BRIEF}
    return run(root, model, metrics=["helpfulness"], suite=SMALL_SUITE, again=True)


@pytest.fixture(params=["over_http", "in_process"])
def done(request: pytest.FixtureRequest) -> Done:
    found: Done = request.getfixturevalue(request.param)
    return found


def test_it_ends_with_a_verdict_and_without_a_crash(done: Done) -> None:
    verdict = {0: "passed", 1: "failed", 3: "inconclusive"}[done.code]
    assert done.results["summary"]["verdict"] == verdict
    assert done.results["summary"]["exit_code"] == done.code
    assert done.results["run"]["complete"]
    assert "Traceback" not in done.said
    assert "defect of agenteval" not in done.said
    assert "agenteval's own error" not in done.said
    assert not done.results["summary"]["author_errors"]
    assert not done.results["summary"]["scripted"]


def test_the_results_fit_their_schema(done: Done) -> None:
    file = files("agenteval") / "reporters" / "results" / "results.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(done.results, schema)


def test_every_metric_of_every_turn_has_a_score_or_a_failure(done: Done) -> None:
    asked = set(done.results["run"]["judged"])
    judged_turns = 0
    for sample in done.samples:
        whole = [turn for turn in sample["turns"] if "error" not in turn]
        for turn in whole:
            assert answered(turn) - {"criteria"} == asked & TURN_METRICS
        judged_turns += len(whole)
        if not broken_off(sample) and "goal_completion" in asked:
            assert "goal_completion" in answered(sample)
    assert judged_turns >= 1


def broken_off(sample: dict[str, Any]) -> bool:
    """Whether the simulated user or a model ended the conversation: nothing is then said of it as a whole."""
    return sample["stop"] in ("simulator", "infrastructure")


def answered(scope: dict[str, Any]) -> set[str]:
    """What was scored, or known not to be; no metric may be both."""
    failed = [failure["metric"] for failure in scope["score_failures"] if failure["metric"] != "criteria"]
    assert not set(failed) & scope["scores"].keys()
    assert len(set(failed)) == len(failed)
    return {*failed, *scope["scores"]}


def test_every_score_is_valid(done: Done) -> None:
    labels = {m["name"]: m["labels"] for m in done.events[0]["plan"]["suite"]["metrics"]}
    for scope in done.scopes:
        for metric, score in scope["scores"].items():
            assert not score["scripted"]
            assert "smollm2" in score["by"].lower()
            if metric in LABEL_METRICS:
                assert score["label"] in labels[metric]
                assert score["value"] is None
            elif metric == "policy_adherence":
                assert score["label"] in ("pass", "fail", "not clear")
            elif metric == "goal_completion":
                assert score["label"] in ("reached", "missed", "ruled out", "policy broken", "not clear")
            else:
                assert 1 <= score["value"] <= 5
        for failure in scope["score_failures"]:
            assert failure["message"]


def test_every_criterion_is_decided_or_known_not_to_be(done: Done) -> None:
    checks = [c for scope in done.scopes for c in scope["checks"] if c["name"] == "criteria"]
    lost = [f for scope in done.scopes for f in scope["score_failures"] if f["metric"] == "criteria"]
    # A criterion is asked about a whole conversation; the simulated user may have broken it off.
    assert checks or all(map(broken_off, done.samples))
    # *Not clear* is an answer.
    assert sum(check["passed"] is None and not check.get("by") for check in checks) == len(lost)


def test_every_finding_is_in_exactly_one_issue(done: Done) -> None:
    issues = {issue["id"]: issue for issue in done.results["summary"]["issues"]}
    found = [finding for sample in done.samples for finding in sample["findings"]]
    counted = {name: sum(finding["issue"] == name for finding in found) for name in issues}
    assert counted == {name: issue["findings"] for name, issue in issues.items()}
    assert sum(counted.values()) == len(found)
    assert len(issues) == len(done.results["summary"]["issues"])
    # The agent called a tool that does not exist, which code sees: there is something to group.
    assert any(finding["detector"] == "unknown_tool" for finding in found)


def test_the_simulated_user_is_one_or_told_not_to_be(done: Done) -> None:
    (scenario,) = done.results["scenarios"]
    (sample,) = scenario["samples"]
    scripted = int(scenario["id"] == "written")  # turns before the model speaks
    if broken_off(sample):
        proven = [f for f in sample["findings"] if f["severity"] == "critical"]
        unmet = [c for scope in (sample, *sample["turns"]) for c in scope["checks"] if c["passed"] is False]
        assert sample["verdict"] == ("failed" if proven or unmet else "inconclusive")  # finished turns stand
        return
    assert sample["stop"] in ("max_turns", "user_done", "script_done")
    for turn in sample["turns"][scripted:]:
        assert turn["user"].strip()
        assert "smollm2" in turn["user_model"].lower()


def test_the_servers_tokens_are_counted_by_role(done: Done) -> None:
    usage = done.results["summary"]["usage"]
    # On a busy machine a deadline may pass before any reply is whole: then the report has it as a failure.
    is_grouped = not done.results["summary"]["issue_failures"]
    for role in ("user", "judge", *(["dedup"] if is_grouped else [])):
        assert usage[role]["calls"] > 0, role
        assert usage[role]["input_tokens"] > 100, role
        assert usage[role]["output_tokens"] > 0, role
        assert not usage[role]["estimated"], role
    assert usage["agent"]["estimated"]
