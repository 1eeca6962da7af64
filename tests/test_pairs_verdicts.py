"""Verdicts and exit codes through the command line: who fails what, and what outweighs what."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from kit import Project, environment, failed_checks

AGENT = """
import asyncio

COUNT = 0


async def agent(messages, ctx):
    said = messages[-1]["content"]
    if said == "boom":
        raise RuntimeError("boom")
    if said == "boom in epoch 1" and ctx.epoch == 1:
        raise RuntimeError("boom")
    if said.startswith("call "):
        await ctx.call_tool(said.removeprefix("call "), {})
    if said == "wait":
        open("waiting", "w").close()
        await asyncio.sleep(60)
    return "fine"
"""

REFUSED = "agents: {down: {type: http, endpoint: 'http://127.0.0.1:9/v1/chat/completions', timeout_s: 5}}\n"
GREEN = "{id: green, name: green, turns: [hi], checks: none}"
RED = "{id: red, name: red, turns: [boom], checks: none}"
DOWN = "{id: down, name: down, agent: down, turns: [hi], expect: {output: {contains: [never said]}}}"
UNDECLARED = "{id: undeclared, name: undeclared, turns: [call nowhere, hi], checks: none}"
UNKNOWN = "{id: unknown, name: unknown, turns: [call nowhere], checks: none, tools: {real: {returns: 1}}}"
BROKEN_MOCK = "{id: mock, name: mock, turns: [call it], checks: none, tools: {it: {python: 'mocks.py:crash'}}}"


def suite(*entries: str) -> str:
    return "scenarios:\n" + "".join(f"  - {entry}\n" for entry in entries)


def verdicts(project: Project) -> dict[str, str]:
    return {s["id"]: s["verdict"] for s in project.results()["scenarios"]}


@pytest.fixture
def run(project: Project) -> Any:
    def start(*entries: str, config: str = "", arguments: tuple[str, ...] = ()) -> int:
        project.agent(AGENT)
        project.config(REFUSED + config)
        project.scenarios(suite(*entries))
        project.write("scenarios/mocks.py", "def crash(args, ctx):\n    raise KeyError('a defect of the mock')\n")
        done = project.run(*arguments)
        summary = project.results()["summary"]
        assert summary["exit_code"] == done.code or done.code == 2, done.all
        return done.code

    return start


def test_a_fault_that_is_not_the_agents_is_inconclusive_and_its_expectations_are_not_evaluated(project: Project, run: Any) -> None:
    assert run(GREEN, DOWN) == 3
    assert verdicts(project) == {"green": "passed", "down": "inconclusive"}
    assert project.results()["summary"]["verdict"] == "inconclusive"
    sample = project.sample("down")
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("inconclusive", "infrastructure", "infrastructure")
    assert failed_checks(sample) == set()
    assert not any(check["name"] == "output.contains" and check["passed"] for check in sample["checks"])


def test_failed_outweighs_inconclusive(project: Project, run: Any) -> None:
    assert run(DOWN, GREEN, RED) == 1
    assert verdicts(project) == {"down": "inconclusive", "green": "passed", "red": "failed"}
    assert project.results()["summary"]["verdict"] == "failed"


@pytest.mark.parametrize(("tolerance", "code"), [(0, 3), (0.49, 3), (0.5, 0), (1, 0)])
def test_fault_tolerance_is_a_share_of_the_runs_samples(tolerance: float, code: int, project: Project, run: Any) -> None:
    assert run(GREEN, DOWN, config=f"fault_tolerance: {tolerance}\n") == code
    gate = next(g for g in project.results()["summary"]["gates"] if g["name"] == "fault_tolerance")
    assert (gate["value"], gate["bound"]) == (0.5, tolerance)
    assert gate["verdict"] == ("passed" if code == 0 else "inconclusive")


def test_tolerated_faults_do_not_hide_a_failure(run: Any) -> None:
    assert run(GREEN, DOWN, RED, config="fault_tolerance: 1\n") == 1


def test_an_undeclared_tool_where_none_is_declared_is_the_authors_error_and_the_rest_finishes(project: Project, run: Any) -> None:
    assert run(UNDECLARED, GREEN, RED) == 2
    found = verdicts(project)
    assert (found["green"], found["red"]) == ("passed", "failed")
    sample = project.sample("undeclared")
    assert (sample["fault"], sample["stop"]) == ("author", "author_error")
    assert sample["verdict"] != "passed"
    assert project.results()["summary"]["exit_code"] == 2


def test_a_mock_that_breaks_is_the_authors_error_and_says_where(project: Project) -> None:
    project.agent(AGENT)
    project.config()
    project.scenarios(suite(GREEN, BROKEN_MOCK))
    project.write("scenarios/mocks.py", "def crash(args, ctx):\n    raise KeyError('a defect of the mock')\n")
    done = project.run()
    assert done.code == 2
    assert "a defect of the mock" in done.all
    assert "mocks.py:2" in done.all


@pytest.mark.parametrize(("mode", "code"), [("error", 2), ("empty", 0)])
def test_unmocked_tools_where_none_is_declared(mode: str, code: int, project: Project, run: Any) -> None:
    assert run(UNDECLARED, config=f"unmocked_tools: {mode}\n") == code
    if mode == "empty":
        assert project.sample()["turns"][0]["tool_calls"][0]["result"] == {}
        assert project.sample()["findings"] == []


@pytest.mark.parametrize(
    ("config", "severity"),
    [
        ("", "high"),
        ("fail_on_severity: high\n", "high"),
        ("severities: {wrong tool: critical}\n", "critical"),
        ("severities: {wrong tool: low}\nfail_on_severity: none\n", "low"),
        ("metrics: []\n", "high"),
    ],
)
def test_an_unknown_tool_is_a_finding_and_fails_its_sample(config: str, severity: str, project: Project, run: Any) -> None:
    assert run(UNKNOWN, GREEN, config=config) == 1
    (finding,) = project.sample("unknown")["findings"]
    assert (finding["detector"], finding["label"], finding["severity"]) == ("unknown_tool", "wrong tool", severity)
    assert (finding["turn"], finding["call"]) == (0, 0)
    assert verdicts(project) == {"unknown": "failed", "green": "passed"}


@pytest.mark.parametrize("detectors", ["[]", "[repeated_tool_call]"])
def test_detectors_that_are_not_named_find_nothing(detectors: str, project: Project, run: Any) -> None:
    run(UNKNOWN, config=f"detectors: {detectors}\n")
    assert project.sample("unknown")["findings"] == []


def test_the_gate_on_severity_names_its_value_and_bound(project: Project, run: Any) -> None:
    assert run(UNKNOWN, config="fail_on_severity: high\n") == 1
    gate = next(g for g in project.results()["summary"]["gates"] if g["name"] == "fail_on_severity")
    assert gate["verdict"] == "failed"
    assert "high" in str(gate["value"])
    assert gate["where"].startswith("agenteval.yaml:")


VACUOUS = [
    "",
    "expect: {}",
    "expect: {tool_calls: {}}",
    "expect: {tool_calls: {calls: []}}",
    "expect: {tool_calls: {match: in_order, calls: []}}",
    "expect: {tool_calls: {forbidden: []}}",
    "expect: {output: {contains: []}}",
    "expect: {output: {not_contains: [], matches: null}}",
    "expect: {limits: {}}",
    "expect: {criteria: []}",
    "tools: {a: {returns: 1}}",
    "turns: [{user: hi, expect: {}}]",
    "knowledge: [the sky is blue]",
]
SOUND = [
    "checks: none",
    "expect: {tool_calls: {match: strict, calls: []}}",
    "expect: {tool_calls: {match: within, calls: []}}",
    "expect: {tool_calls: {match: unordered, calls: []}}",
    "expect: {tool_calls: {forbidden: [{name: a}]}}",
    "expect: {output: {not_contains: [no]}}",
    "expect: {limits: {steps: 9}}",
    "turns: [hi, {user: hi, expect: {output: {contains: [fine]}}}]",
]


def entry(number: int, fields: str) -> str:
    turns = "" if "turns:" in fields else "turns: [hi], "
    return f"{{id: s{number:02}, name: s{number:02}, {turns}{fields}}}"


def test_a_scenario_whose_every_check_is_vacuous_is_refused(project: Project) -> None:
    project.agent(AGENT)
    project.config("gates: {}\n")
    project.scenarios(suite(*(entry(number, fields) for number, fields in enumerate(VACUOUS))))
    done = project.call("validate")
    assert done.code == 2
    spared = [fields for number, fields in enumerate(VACUOUS) if f"s{number:02}" not in done.err]
    assert spared == []
    assert "scenarios/suite.yaml:2" in done.err
    assert "checks: none" in done.err


def test_a_scenario_that_checks_something_runs(project: Project, run: Any) -> None:
    assert run(*(entry(number, fields) for number, fields in enumerate(SOUND))) == 0
    assert len(verdicts(project)) == len(SOUND)


EPOCHS = [
    "{id: plain, name: plain, turns: [hi], checks: none}",
    "{id: two, name: two, turns: [hi], checks: none, epochs: 2}",
]


@pytest.mark.parametrize(
    ("config", "arguments", "plain", "two"),
    [("", (), 1, 2), ("epochs: 3\n", (), 3, 2), ("epochs: 3\n", ("--epochs", "4"), 4, 4), ("", ("--epochs", "1"), 1, 1)],
)
def test_epochs_flag_outweighs_scenario_outweighs_configuration(
    config: str, arguments: tuple[str, ...], plain: int, two: int, project: Project, run: Any
) -> None:
    assert run(*EPOCHS, config=config, arguments=arguments) == 0
    found = {s["id"]: [sample["epoch"] for sample in s["samples"]] for s in project.results()["scenarios"]}
    assert found == {"plain": list(range(plain)), "two": list(range(two))}


def test_one_failed_epoch_fails_the_scenario_and_its_fellows_stay_passed(project: Project, run: Any) -> None:
    assert run("{id: s, name: s, turns: [hi, boom in epoch 1], checks: none, epochs: 3}") == 1
    (scenario,) = project.results()["scenarios"]
    assert scenario["verdict"] == "failed"
    assert [s["verdict"] for s in scenario["samples"]] == ["passed", "failed", "passed"]
    assert "1" in scenario["samples"][1]["reason"] or scenario["samples"][1]["turns"][1]["error"]


def test_max_turns_does_not_cut_scripted_turns(project: Project, run: Any) -> None:
    turns = ", ".join(f"t{n}" for n in range(12))
    assert run(f"{{id: s, name: s, turns: [{turns}], checks: none, max_turns: 2}}") == 0
    assert [turn["user"] for turn in project.sample()["turns"]] == [f"t{n}" for n in range(12)]


def test_fail_fast_starts_nothing_more_after_the_first_failure(project: Project, run: Any) -> None:
    entries = [RED, *(f"{{id: g{n}, name: g{n}, turns: [hi], checks: none}}" for n in range(5))]
    assert run(*entries, config="agent_concurrency: 1\n", arguments=("--fail-fast",)) == 1
    assert "red" in verdicts(project)
    ran = [s["id"] for s in project.results()["scenarios"] if s["samples"]]
    assert ran == ["red"] or len(ran) < len(entries)
    assert run(*entries, config="agent_concurrency: 1\n") == 1
    assert len([s for s in project.results()["scenarios"] if s["samples"]]) == 6


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_keeps_what_is_done(project: Project) -> None:
    project.agent(AGENT)
    project.config("agent_concurrency: 1\n")
    project.scenarios(suite(GREEN, "{id: slow, name: slow, turns: [wait], checks: none}"))
    process = subprocess.Popen(
        [sys.executable, "-m", "agenteval", "run", "--report", "json=results.json"],
        cwd=project.root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not (project.root / "waiting").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in out + err
    assert project.results()["summary"]["exit_code"] == 130
    found = {s["id"]: [sample["verdict"] for sample in s["samples"]] for s in project.results()["scenarios"]}
    assert found["green"] == ["passed"]
    assert "passed" not in found.get("slow", [])
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    assert '"green"' in journal.read_text(encoding="utf-8")
