"""``agenteval score`` through the front door."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.event import SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.core.plan import Plan
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Finding, Severity
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, Turn
from agenteval.verdict import gates
from agenteval.verdict.report import build_report
from agenteval.verdict.retention import LEFT_OUT, RetainedEvents
from tests.support.kit import Done, Project, environment
from tests.support.plans import begun

ROOT = Path(__file__).parents[2]
AIRLINE = ROOT.parent / "shared" / "data" / "tau_airline.jsonl.gz"

GET_ORDER = {
    "name": "get_order",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
}


def conversation(name: str | None = None, *, calls: str = "get_order", **more: Any) -> dict[str, Any]:
    """One in which an order is looked up; ``calls``: by which tool."""
    function = {"name": calls, "arguments": '{"id": "ORD-42"}'}
    return {
        **({"id": name} if name else {}),
        "tools": [{"type": "function", "function": GET_ORDER}],
        "messages": [
            {"role": "user", "content": "Where is order ORD-42?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "1", "content": '{"status": "shipped"}'},
            {"role": "assistant", "content": "It has been shipped."},
        ],
        **more,
    }


def log(project: Project, *lines: Any, name: str = "log.jsonl") -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    project.write(name, "".join(f"{text}\n" for text in texts))


def score(project: Project, *arguments: str, **more: Any) -> Done:
    return project.call("score", "--report", "json=results.json", *arguments, **more)


def verdicts(project: Project) -> dict[str, str]:
    return {s["id"]: s["verdict"] for s in project.results()["scenarios"]}


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────


def test_a_log_without_failures_passes_and_says_that_nothing_was_judged(project: Project) -> None:
    log(project, conversation("a"), conversation("b"))
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    assert verdicts(project) == {"a": "passed", "b": "passed"}
    assert "nothing was judged" in done.out
    assert project.results()["summary"]["usage"]["judge"]["calls"] == 0


def test_logs_without_a_tool_call_say_that_there_was_nothing_to_prove(project: Project) -> None:
    bare = [
        {
            "id": name,
            "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
        }
        for name in "ab"
    ]
    log(project, *bare)
    told = "nothing to prove: no tool call in 2 conversations"
    done = score(project, "log.jsonl", "--no-judge")
    assert done.code == 0
    ends = "REPORTED: 2 conversations, nothing found (exit 0)"
    assert done.out.splitlines()[-1] == f"{ends} — with judges not asked; {told}"
    asides = project.results()["summary"]["caveats"]
    assert asides[-1] == {"kind": "nothing_to_prove", "count": 2, "text": told}
    # One call, or one expectation, is something to prove.
    project.write("s.yaml", "scenarios: [{id: a, turns: [x], expect: {output: {contains: Hello}}}]")
    assert "nothing to prove" not in score(project, "log.jsonl", "--scenarios", "s.yaml").out
    log(project, *bare, conversation("c", calls="find_order"))
    assert "nothing to prove" not in score(project, "log.jsonl").out


def test_the_bug_is_red_at_its_turn_and_its_fix_is_green(project: Project) -> None:
    log(project, conversation("bug", calls="find_order"), conversation("fix"))
    project.write("strict.yaml", "fail_on_severity: high\n")
    done = score(project, "log.jsonl", "-c", "strict.yaml")
    assert done.code == 1
    assert verdicts(project) == {"bug": "failed", "fix": "passed"}
    (finding,) = project.sample("bug")["findings"]
    assert (finding["detector"], finding["turn"], finding["call"]) == ("unknown_tool", 0, 0)
    assert "'find_order', which is not among the tools: get_order" in done.out
    assert "Re-run: agenteval score log.jsonl -c strict.yaml -s bug" in done.out
    assert score(project, "log.jsonl", "-c", "strict.yaml", "-s", "fix").code == 0
    assert score(project, "log.jsonl", "-c", "strict.yaml", "-s", "bug").code == 1


def test_a_part_of_an_id_that_no_conversation_has_is_not_hidden_by_another(project: Project) -> None:
    log(project, conversation("fix"), conversation("other"))
    done = score(project, "log.jsonl", "-s", "fix", "-s", "renamed")
    assert done.code == 2
    assert "-s renamed: no conversation has this text in its id" in done.out
    assert verdicts(project) == {"fix": "passed"}


def test_a_line_that_cannot_be_read_leaves_the_run_inconclusive(project: Project) -> None:
    log(project, conversation("a"), "{torn", {"id": "b"}, conversation("c"))
    done = score(project, "log.jsonl")
    assert done.code == 3, done.all
    assert verdicts(project) == {
        "a": "passed",
        "log.jsonl:2": "inconclusive",
        "log.jsonl:3": "inconclusive",
        "c": "passed",
    }
    assert "log.jsonl:2: not JSON" in done.out
    assert "log.jsonl:3: no messages" in done.out
    assert project.sample("log.jsonl:2")["fault"] == "recording"


def test_failed_beats_what_cannot_be_read_and_a_tolerance_allows_for_it(project: Project) -> None:
    log(project, conversation("a"), "{torn")
    project.write("agenteval.yaml", "fault_tolerance: 0.5\n")
    assert score(project, "log.jsonl").code == 0
    log(project, conversation("a", calls="x"), "{torn")
    assert score(project, "log.jsonl", "--max-rate", "high=1%").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["logs.jsonl"], 2, "logs.jsonl: there is no such file or folder — did you mean 'log.jsonl'?"),
        (["broken.jsonl"], 2, "broken.jsonl:1: not JSON"),
        (["empty.jsonl"], 5, "empty.jsonl: no conversation"),
        (["."], 0, ""),
        (["folder"], 2, "contains no recorded conversations"),
        (["log.jsonl", "--outcome-from", "labels.rewrd"], 2, "did you mean 'labels.reward'?"),
        (["log.jsonl", "--scenario-from", "labels"], 2, "expected a plain value — there is reward"),
        (["log.jsonl", "-s", "zzz"], 5, "-s zzz selects no conversation"),
        (["log.jsonl", "--scenarios", "none.yaml"], 2, "none.yaml"),
        (["log.jsonl", "-c", "none.yaml"], 2, "none.yaml"),
        (["log.jsonl", "--metric", "helpfulness"], 2, "judges were requested, but no model is set"),
        (["log.jsonl", "--metric", "helpfulnes", "-m", "openai/x"], 2, "did you mean 'helpfulness'?"),
    ],
)
def test_the_author_s_mistakes(project: Project, arguments: list[str], code: int, said: str) -> None:
    log(project, conversation("a", labels={"reward": 1}))
    (project.root / "folder").mkdir()
    if arguments != ["."]:
        log(project, "{torn", "also torn", name="broken.jsonl")
        log(project, name="empty.jsonl")
    done = project.call("score", *arguments)
    assert done.code == code, done.all
    assert said in done.all


def test_only_the_first_of_many_problems_are_told(project: Project) -> None:
    log(project, *["{torn"] * 100)
    done = project.call("score", "log.jsonl")
    assert done.code == 2
    assert len(done.err.splitlines()) == 6
    assert "and 95 more" in done.err


# ── where conversations come from ────────────────────────────────────────────────────────────────


def test_standard_input_and_packed_files(project: Project) -> None:
    (project.root / "log.jsonl.gz").write_bytes(gzip.compress(json.dumps(conversation("a")).encode()))
    command = [
        sys.executable,
        "-m",
        "agenteval",
        "score",
        "-",
        "log.jsonl.gz",
        "--report",
        "json=results.json",
    ]
    lines = f"{json.dumps(conversation('piped'))}\n{{torn\n"
    done = subprocess.run(
        command, cwd=project.root, env=environment(), input=lines, capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert verdicts(project) == {"piped": "passed", "<stdin>:2": "inconclusive", "a": "passed"}


def test_a_run_of_ours_is_scored_anew_with_what_it_expects(project: Project) -> None:
    project.config()
    project.agent("def agent(messages):\n    return 'It costs 99 EUR.'\n")
    project.scenarios(
        """
        scenarios:
          - {id: right, turns: [Price?], expect: {output: {contains: ["99"]}}}
          - {id: wrong, turns: [Price?, And now?], expect: {output: {contains: ["77"]}}}
        """
    )
    assert project.run().code == 1
    (run,) = (project.root / ".agenteval" / "runs").iterdir()
    for name in (run.name, f".agenteval/runs/{run.name}", f".agenteval/runs/{run.name}/events.jsonl"):
        done = score(project, name)
        assert done.code == 1, done.all
        assert verdicts(project) == {"right": "passed", "wrong": "failed"}
        assert [turn["user"] for turn in project.sample("wrong")["turns"]] == ["Price?", "And now?"]


def test_scoring_a_score_gives_the_same(project: Project) -> None:
    log(project, conversation("a"), conversation("b", calls="x"))
    score(project, "log.jsonl")
    first = project.results()["scenarios"]
    assert score(project, "latest").code == 0
    again = project.results()["scenarios"]
    assert [s["samples"][0]["findings"] for s in again] == [s["samples"][0]["findings"] for s in first]
    assert project.call("report", "latest").code == 0


def test_criteria_of_a_run_stay_undecided_without_a_judge(project: Project) -> None:
    project.config("models: {default: scripted/yes.yaml}\nmetrics: []\n")
    project.write(
        "yes.yaml", "replies: [{when: {metric: criteria}, reply: {evidence: '', reason: '', label: pass}}]\n"
    )
    project.agent("def agent(messages):\n    return 'Yes.'\n")
    project.scenarios("id: s\nturns: [Hi]\nexpect: {criteria: [Is polite.]}\n")
    assert project.run().code == 0
    assert score(project, "latest").code == 3
    judged = score(project, "previous", "-m", "scripted/yes.yaml")
    assert judged.code == 0, judged.all


# ── scenarios, epochs, outcomes ──────────────────────────────────────────────────────────────────


def test_known_outcomes_become_pass_hat_k_of_what_did_not_fail(project: Project) -> None:
    outcomes = {"easy": [1, True, 1.0], "mixed": [1, 0, 1], "hard": [0, 0.5, False]}
    lines = [
        conversation(f"{task}-{trial}", labels={"task": task, "trial": trial, "reward": reward})
        for task, rewards in outcomes.items()
        for trial, reward in enumerate(rewards)
    ]
    lines[0] = {**conversation(calls="no_such_tool"), "id": "easy-0", "labels": lines[0]["labels"]}
    log(project, *lines)
    paths = [
        "--scenario-from",
        "labels.task",
        "--epoch-from",
        "labels.trial",
        "--outcome-from",
        "labels.reward",
    ]
    done = score(project, "log.jsonl", *paths)
    assert done.code == 1
    hat = project.results()["summary"]["statistics"]["pass_hat_k"]
    assert hat == pytest.approx({"1": 4 / 9, "2": 2 / 9, "3": 0})
    found = {s["id"]: s for s in project.results()["scenarios"]}
    assert [s["epoch"] for s in found["mixed"]["samples"]] == [0, 1, 2]
    assert [s["verdict"] for s in found["mixed"]["samples"]] == ["passed", "failed", "passed"]
    assert found["easy"]["samples"][0]["verdict"] == "failed"  # by what was found
    assert "── mixed · 1 of 3 conversations · here mixed-1, epoch 2 ──" in done.out
    assert "outcome: labels.reward is 0" in done.out


def test_what_fails_here_is_no_success_whatever_outcome_is_known(project: Project) -> None:
    empty = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]}
    log(project, *({**empty, "t": "s", "r": 1} for _ in range(12)))
    gate = "gates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}\n"
    project.write("agenteval.yaml", gate)
    done = score(project, "log.jsonl", "--scenario-from", "t", "--outcome-from", "r")
    assert done.code == 1, done.all
    (scenario,) = project.results()["scenarios"]
    assert scenario["statistics"]["successes"] == 0


def test_a_score_of_a_score_keeps_the_known_outcome(project: Project) -> None:
    log(project, conversation("a", reward=0), conversation("b", reward=1))
    assert score(project, "log.jsonl", "--outcome-from", "reward").code == 1
    done = score(project, "latest")
    assert done.code == 1, done.all
    assert verdicts(project) == {"a": "failed", "b": "passed"}
    (outcome,) = [c for c in project.sample("a")["checks"] if c["name"] == "outcome"]
    assert (outcome["passed"], outcome["detail"]) == (False, "reward is 0")


def test_an_outcome_that_is_missing_is_told_and_in_no_rate(project: Project) -> None:
    log(project, *(conversation(f"c{n}", t=1, **({} if n == 2 else {"r": 1})) for n in range(3)))
    done = score(project, "log.jsonl", "--scenario-from", "t", "--outcome-from", "r")
    assert done.code == 0, done.all
    assert "no outcome at r: it is unknown whether the conversation succeeded (log.jsonl:3)" in done.out
    (scenario,) = project.results()["scenarios"]
    assert (scenario["statistics"]["successes"], scenario["statistics"]["decided"]) == (2, 2)


@pytest.mark.skipif(not AIRLINE.is_file(), reason="the recorded conversations are not at hand")
def test_the_airline_s_pass_hat_k(project: Project) -> None:
    paths = ["--scenario-from", "labels.task_id", "--epoch-from", "labels.trial"]
    done = score(project, str(AIRLINE), *paths, "--outcome-from", "labels.reward")
    assert done.code == 1, done.all
    hat = project.results()["summary"]["statistics"]["pass_hat_k"]
    assert {k: round(value, 3) for k, value in hat.items()} == {"1": 0.42, "2": 0.273, "3": 0.22, "4": 0.2}
    assert len(project.results()["scenarios"]) == 50


# ── expectations and judges ──────────────────────────────────────────────────────────────────────


def test_what_is_expected_is_checked(project: Project) -> None:
    log(project, conversation("held"), conversation("broken"), conversation("other"))
    project.write(
        "suite.yaml",
        """
        scenarios:
          - id: held
            turns:
              - user: Where is order ORD-42?
                expect: {tool_calls: {calls: [{name: get_order, args: {id: ORD-42}}]}}
          - {id: broken, goal: x, expect: {output: {contains: [delivered]}}}
          - {id: unmet, goal: x}
        """,
    )
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == 1, done.all
    assert verdicts(project) == {"held": "passed", "broken": "failed", "other": "passed"}
    assert [c["name"] for c in project.sample("held")["turns"][0]["checks"]] == ["answer", "tool_calls"]
    assert 'missing "delivered"' in done.out
    assert "scenario unmet of --scenarios matched no conversation" in done.out
    assert "--scenarios does not contain scenario other of the conversations" in done.out


def test_a_scenario_that_no_conversation_met_leaves_the_score_undecided(project: Project) -> None:
    log(project, conversation("held"))
    held = "scenarios:\n  - {id: held, goal: x, expect: {output: {contains: [shipped]}}}\n"
    project.write("suite.yaml", held + "  - {id: unmet, goal: x, expect: {limits: {steps: 9}}}\n")
    project.write("agenteval.yaml", "fault_tolerance: 1\n")
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == 3, done.all
    (gate,) = [g for g in project.results()["summary"]["gates"] if g["verdict"] == "inconclusive"]
    assert (gate["name"], gate["where"]) == ("every scenario met", "suite.yaml:3")
    assert gate["basis"] == "no recorded conversation matches unmet"
    assert "unmet" in done.out
    assert score(project, "log.jsonl", "--scenarios", "suite.yaml", "-s", "held").code == 0

    project.write("suite.yaml", held)
    assert score(project, "log.jsonl", "--scenarios", "suite.yaml").code == 0


SHIPPED = "scenarios: [{id: a, turns: [x], expect: {output: {contains: [shipped]}}}]\n"


@pytest.mark.parametrize("also", [{}, {"agent": "v2"}])
def test_every_conversation_of_an_id_meets_its_expectations(project: Project, also: dict[str, str]) -> None:
    broken = conversation("a", **also)
    broken["messages"][-1] = {"role": "assistant", "content": "I do not know."}
    log(project, conversation("a"), name="monday.jsonl")
    log(project, broken, name="tuesday.jsonl")
    project.write("suite.yaml", SHIPPED)
    done = score(project, "monday.jsonl", "tuesday.jsonl", "--scenarios", "suite.yaml")
    assert done.code == 1, done.all
    found = [(s["id"], s["agent"]) for s in project.results()["scenarios"]]
    assert found == [("a", "recorded"), *([("a", "v2")] if also else [])]
    broken["messages"][-1]["content"] = "It is shipped."
    log(project, broken, name="tuesday.jsonl")
    assert score(project, "monday.jsonl", "tuesday.jsonl", "--scenarios", "suite.yaml").code == 0


def test_expectations_that_meet_no_conversation_are_a_mistake(project: Project) -> None:
    log(project, conversation("c1"), conversation("c2"))
    project.write("suite.yaml", SHIPPED)
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == 2, done.all
    told = " ".join(done.out.split())
    assert "suite.yaml:1: --scenarios: no scenario has the id of a conversation" in told
    assert done.out.splitlines()[-1].startswith(
        "AUTHOR ERROR: 1 mistake, listed above; 2 conversations, nothing found"
    )


def test_expectations_may_stand_in_several_files(project: Project) -> None:
    broken = conversation("b")
    broken["messages"][-1] = {"role": "assistant", "content": "I do not know."}
    log(project, conversation("a"), broken)
    project.write("one.yaml", SHIPPED.replace("id: a", "id: b"))
    project.write("two.yaml", SHIPPED)
    for files in (("one.yaml", "two.yaml"), ("two.yaml", "one.yaml")):
        done = score(project, "log.jsonl", "--scenarios", files[0], "--scenarios", files[1])
        assert done.code == 1, done.all
        assert verdicts(project) == {"a": "passed", "b": "failed"}
    done = score(project, "log.jsonl", "--scenarios", "one.yaml", "--scenarios", "one.yaml")
    assert done.code == 1, done.all


@pytest.mark.parametrize(
    ("words", "code"), [("Where is order ORD-42?", 0), (" where is  order ord-42?", 0), ("Other words", 3)]
)
def test_what_is_expected_of_a_turn_that_nobody_said_is_not_decided(
    project: Project, words: str, code: int
) -> None:
    log(project, conversation("a"))
    turn = {"user": words, "expect": {"output": {"contains": ["shipped"]}}}
    project.write("suite.yaml", json.dumps({"scenarios": [{"id": "a", "turns": [turn]}]}))
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == code, done.all
    assert ("its expectations were not checked" in done.out) is (code == 3)


def test_a_limit_of_time_is_not_decided_where_no_times_were_recorded(project: Project) -> None:
    log(project, conversation("a"))
    suite = "scenarios: [{id: a, turns: [x], expect: {limits: {latency_ms: 1}}}]\n"
    project.write("suite.yaml", suite)
    done = score(project, "log.jsonl", "--scenarios", "suite.yaml")
    assert done.code == 3, done.all
    assert "no times were recorded" in done.out
    assert "the judge failed" not in done.out
    assert project.sample("a")["latency_ms"] is None
    ((dimension,),) = project.results()["summary"]["dimensions"].values()
    assert "steps" in dimension["spreads"]
    assert "latency_ms" not in dimension["spreads"]


def test_the_places_in_reports_are_those_of_the_records(project: Project) -> None:
    log(project, conversation("a", t="s"), conversation("b", t="s", calls="no_such_tool"))
    arguments = ["log.jsonl", "--scenario-from", "t", "--report", "junit=j.xml"]
    project.write("agenteval.yaml", "fail_on_severity: high\n")
    done = score(project, *arguments, "--report", "github")
    assert done.code == 1, done.all
    assert "file=log.jsonl,line=2" in done.out
    assert "file=log.jsonl,line=1" not in done.out
    cases = re.findall(r'<testcase name="(.+?)".*? line="(\d)"', (project.root / "j.xml").read_text())
    assert cases == [("s [a] · epoch 1", "1"), ("s [b] · epoch 2", "2")]


def test_a_rule_over_epochs_is_repeated_by_the_same_score(project: Project) -> None:
    log(project, *(conversation(t="s", r=n % 2) for n in range(12)))
    project.write("agenteval.yaml", "gates: {pass_rate: {at_least: 0.9, reject_below: 0.8}}\n")
    done = score(project, "log.jsonl", "--scenario-from", "t", "--outcome-from", "r")
    assert done.code == 1, done.all
    options = "--scenario-from t --outcome-from r -s s"
    assert f"agenteval score --report json=results.json log.jsonl {options}" in done.out
    assert "agenteval run" not in done.out


def test_reports_do_not_tell_a_secret_again(project: Project) -> None:
    key = "AKIA" + "Q7ZTE4WYX2MPLK9B"
    answer = {"role": "assistant", "content": f"The key is {key}."}
    log(project, {"id": "a", "messages": [{"role": "user", "content": "hi"}, answer]})
    project.write("agenteval.yaml", f"agent: {{target: 'agent.py:agent', secrets: [{key}]}}\n")
    done = score(project, "log.jsonl", "--report", "markdown=r.md", "--report", "junit=j.xml", "-v")
    assert done.code == 0, done.all
    for told in (done.out, *((project.root / name).read_text() for name in ("r.md", "j.xml"))):
        assert key not in told
        assert "unsafe state" in told
        assert "***" in told


def test_an_empty_file_beside_others_is_told(project: Project) -> None:
    log(project, conversation("a"))
    project.write("empty.jsonl", "")
    done = score(project, "log.jsonl", "empty.jsonl")
    assert done.code == 0, done.all
    assert "empty.jsonl is empty" in done.out


REPLIES = """
replies:
  - when: {metric: helpfulness, turn: 0}
    reply: {evidence: order ORD-42, reason: r, score: 4}
"""


def test_judges_are_asked_for_each_turn_where_they_are_asked_for(project: Project) -> None:
    project.write("replies.yaml", REPLIES)
    log(project, conversation("a"), conversation("b"))
    done = score(project, "log.jsonl", "-m", "scripted/replies.yaml", "--metric", "helpfulness")
    assert done.code == 0, done.all
    assert project.sample("a")["turns"][0]["scores"]["helpfulness"]["value"] == 4
    assert project.results()["scenarios"][0]["aggregates"]["helpfulness"]["value"] == 4
    assert "nothing was judged" not in done.out
    assert project.results()["summary"]["scripted"] is True


def test_a_model_that_is_set_for_runs_judges_nothing_here(project: Project) -> None:
    project.write("replies.yaml", REPLIES)
    config = "metrics: [helpfulness]\nthresholds: {helpfulness: 5}\nmodels: {%s: scripted/replies.yaml}\n"
    log(project, conversation("a"))
    project.write("agenteval.yaml", config % "default")
    done = score(project, "log.jsonl")
    assert done.code == 0, done.all
    assert "nothing was judged" in done.out
    project.write("agenteval.yaml", config % "judge")
    assert score(project, "log.jsonl").code == 1  # below its threshold
    # Who switches the judges off leaves what only they can hold undecided, as in a run.
    off = score(project, "log.jsonl", "--no-judge")
    assert off.code == 3, off.all
    assert "thresholds were not applied" not in off.out
    project.write("agenteval.yaml", "metrics: [helpfulness]\n")
    assert score(project, "log.jsonl", "--no-judge").code == 0


def test_a_configuration_that_is_named_judges_with_what_it_says(project: Project) -> None:
    project.write("replies.yaml", REPLIES)
    config = (
        "metrics: [helpfulness]\nthresholds: {helpfulness: BOUND}\nmodels: {default: scripted/replies.yaml}\n"
    )
    log(project, conversation("a"))
    project.write("agenteval.yaml", config.replace("BOUND", "5"))
    done = score(project, "log.jsonl", "-c", "agenteval.yaml")
    assert done.code == 1, done.all
    assert "nothing was judged" not in done.out
    project.write("agenteval.yaml", config.replace("BOUND", "3"))
    done = score(project, "log.jsonl", "-c", "agenteval.yaml")
    assert done.code == 0, done.all
    assert project.sample("a")["turns"][0]["scores"]["helpfulness"]["value"] == 4
    # Without a model nothing is to be judged, and --no-judge is over all.
    done = score(project, "log.jsonl", "-c", "agenteval.yaml", "--no-judge")
    assert done.code == 3, done.all
    project.write("agenteval.yaml", "metrics: [helpfulness]\n")
    done = score(project, "log.jsonl", "-c", "agenteval.yaml")
    assert done.code == 0, done.all
    assert "nothing was judged" in done.out


def test_a_judge_sees_the_policy_of_the_record(project: Project) -> None:
    project.write(
        "replies.yaml",
        """
        replies:
          - when: {metric: helpfulness}
            reply: {evidence: order ORD-42, reason: r, score: 4}
        """,
    )
    messages = [{"role": "system", "content": "Speak only of orders."}, *conversation()["messages"]]
    log(project, {**conversation("a"), "messages": messages})
    arguments = ["log.jsonl", "-m", "scripted/replies.yaml", "--metric", "helpfulness"]
    assert score(project, *arguments).code == 0
    (run,) = (project.root / ".agenteval" / "runs").iterdir()
    started = next(
        json.loads(line)
        for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()
        if '"sample_started"' in line
    )
    assert started["scenario"]["policy"] == "Speak only of orders."


# ── many of them ─────────────────────────────────────────────────────────────────────────────────


def test_a_thousand_conversations_are_told_in_a_few_lines(project: Project) -> None:
    lines = [conversation(f"c{n}", calls="x" if n % 2 else "get_order") for n in range(1000)]
    log(project, *lines)
    reported = project.call("score", "log.jsonl")
    assert reported.code == 0
    assert len(reported.out.splitlines()) < 20
    project.write("agenteval.yaml", "fail_on_severity: high\n")
    done = project.call("score", "log.jsonl")
    assert done.code == 1
    assert len(done.out.splitlines()) < 700  # a line for each that failed, and ten of them in full
    assert "500 of 1,000 scenarios failed, 500 passed" in done.out
    assert "… and 490 more, listed below" in done.out


def events_of(count: int) -> list[Any]:
    config = Config()
    told: list[Any] = [begun(config)]
    finding = Finding(detector="d", metric="m", label="l", severity=Severity.LOW, turn=0, call=0)
    for n in range(count):
        key = SampleKey(scenario=f"s{n}", agent="bot")
        step = Step(tool_calls=(ToolCall(name=f"tool-{n % 3}", args={"a": n}),))
        turn = Turn(user=f"question {n}", steps=(step, Step(text=f"answer {n}")))
        held = Check(name="answer", passed=n % 5 != 0, detail=f"detail {n}")
        told += [
            SampleStarted(key=key, scenario=Scenario(id=key.scenario, source=f"log:{n + 1}", facts=("x",))),
            TurnFinished(key=key, index=0, turn=turn),
            Scored(key=key, turn=0, items=(held, *([finding] if n % 7 == 0 else []))),
            SampleFinished(key=key, stop=Stop(reason=StopReason.RECORDED, detail=f"log:{n + 1}")),
        ]
    return told


def test_what_is_left_out_changes_no_verdict_and_no_figure() -> None:
    slim, whole = RetainedEvents(Plan(), most=3), RetainedEvents(Plan(), everything=True)
    for event in events_of(60):
        slim(event)
        whole(event)
    short, full = build_report(slim.events()), build_report(whole.events())
    assert full == build_report(events_of(60))
    assert short.dimensions == full.dimensions
    assert [s.findings for s in short.samples] == [s.findings for s in full.samples]
    assert [[c.passed for c in s.all_checks] for s in short.samples] == [
        [c.passed for c in s.all_checks] for s in full.samples
    ]
    assert gates.decide(short) == gates.decide(full)
    said = [sample.turns[0].turn.user for sample in short.samples]
    kept = [text for text in said if text != LEFT_OUT]
    assert kept == ["question 0", "question 5", "question 7", "question 10", "question 14", "question 21"]
    assert [s.trajectory.tool_calls[0].name for s in short.samples] == [f"tool-{n % 3}" for n in range(60)]


def test_what_is_alike_is_one_object() -> None:
    slim = RetainedEvents(Plan(), most=0)
    for event in events_of(31):
        slim(event)
    report = build_report(slim.events())
    found = [sample for sample in report.samples if sample.findings]
    others = [sample for sample in report.samples if not sample.findings]
    assert len({id(sample.turns[0].turn) for sample in others}) == 3
    # By the arguments of a call that is found fault with the failure is known.
    assert [sample.trajectory.tool_calls[0].args for sample in found] == [{"a": n} for n in range(0, 31, 7)]


# ── the example ──────────────────────────────────────────────────────────────────────────────────


def test_the_example_shows_what_is_wrong_with_each_version(project: Project) -> None:
    results = project.root / "results.json"
    done = Project(ROOT).call("score", "scenarios/wonderbot/recorded", "--report", f"json={results}")
    assert done.code == 1, done.all
    found = {
        (s["id"], f["detector"]) for s in project.results()["scenarios"] for f in s["samples"][0]["findings"]
    }
    assert {
        ("location", "wrong_arguments"),
        ("forecast", "unknown_tool"),
        ("instructions", "leak"),
    } <= found
    assert {name for name, _ in found} == {"location", "forecast", "instructions"}


def test_the_example_is_what_its_script_records(project: Project) -> None:
    folder = project.root / "wonderbot"
    folder.mkdir()
    source = ROOT / "scenarios" / "wonderbot"
    for name in ("agent.py", "tools.py", "record.py", "policy.md"):
        (folder / name).write_bytes((source / name).read_bytes())
    subprocess.run([sys.executable, str(folder / "record.py")], check=True, env=environment())
    for path in sorted((source / "recorded").glob("*.jsonl")):
        assert (folder / "recorded" / path.name).read_bytes() == path.read_bytes()


def test_the_expectations_of_the_page_hold(project: Project) -> None:
    page = (ROOT / "docs" / "score.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n# scenarios/expected.yaml\n(.*?)```", page, re.DOTALL)
    project.write("expected.yaml", block)
    log_ = ROOT / "scenarios" / "wonderbot" / "recorded" / "as-released.jsonl"
    done = score(project, str(log_), "-s", "two-cities", "--scenarios", "expected.yaml")
    assert done.code == 0, done.all
    sample = project.sample("two-cities")
    assert {check["name"] for check in sample["checks"]} >= {
        "tool_calls",
        "output.contains",
        "limits.tool_calls",
    }
    assert "expects of a turn" not in done.out


def test_what_would_decide_a_score_is_never_to_play_something_again(project: Project) -> None:
    done = {"role": "assistant", "content": "Done."}
    good = {"id": "a", "task": "t", "messages": [{"role": "user", "content": "Hi"}, done]}
    records = [good, {"id": "b", "task": "t", "messages": "none"}, {"id": "c", "task": "t", "messages": 1}]
    project.write("log.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    scored = project.call("score", "log.jsonl", "--no-judge")
    assert scored.code == 3, scored.all
    assert "agenteval run" not in scored.all
    assert "readable records in place of log.jsonl:2, log.jsonl:3" in " ".join(scored.out.split())

    project.write("log.jsonl", json.dumps(good) + "\n")
    project.write("expected.yaml", "{id: t, turns: [Hi], expect: {output: {contains: [Done]}}}\n")
    project.write("agenteval.yaml", "gates: {pass_rate: {at_least: 0.9, reject_below: 0.5}}\nmetrics: []\n")
    asked = ("log.jsonl", "--scenarios", "expected.yaml", "--scenario-from", "task", "-c", "agenteval.yaml")
    scored = project.call("score", *asked)
    assert scored.code == 3, scored.all
    assert "recorded conversations of each scenario (pass_rate)" in " ".join(scored.out.split())
    assert "epochs: " not in scored.out.partition("to decide:")[2]
    assert "agenteval run" not in scored.all
