"""Verdicts and exit codes through the command line: who fails what, and what outweighs what."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import LocalServer, closed_port, respond
from tests.support.patience import eventually
from tests.support.plans import begun

AGENT = """
import asyncio


async def agent(messages, ctx):
    said = messages[-1]["content"]
    if said == "boom":
        raise RuntimeError("boom")
    if said == "boom in epoch 1" and ctx.epoch == 1:
        raise RuntimeError("boom")
    if said == "refused in epoch 1" and ctx.epoch == 1:
        raise ConnectionRefusedError("refused")
    if said.startswith("call "):
        await ctx.call_tool(said.removeprefix("call "), {})
    if said == "wait":
        open("waiting", "w").close()
        await asyncio.sleep(60)
    return "fine"
"""

DOWN_AGENT = "agents: {{down: {{type: http, endpoint: '{url}'}}}}\n"
GREEN = "{id: green, name: green, turns: [hi], checks: none}"
RED = "{id: red, name: red, turns: [boom], checks: none}"
HALF = "{id: half, name: half, turns: [refused in epoch 1], checks: none, epochs: 2}"
DOWN = "{id: down, name: down, agent: down, turns: [hi], expect: {output: {contains: [never said]}}}"
UNDECLARED = "{id: undeclared, name: undeclared, turns: [call nowhere, hi], checks: none}"
UNKNOWN = "{id: unknown, name: unknown, turns: [call nowhere], checks: none, tools: {real: {returns: 1}}}"
BROKEN_MOCK = (
    "{id: mock, name: mock, turns: [call it], checks: none, tools: {it: {python: 'mocks.py:crash'}}}"
)


def suite(*entries: str) -> str:
    return "scenarios:\n" + "".join(f"  - {entry}\n" for entry in entries)


def verdicts(project: Project) -> dict[str, str]:
    return {s["id"]: s["verdict"] for s in project.results()["scenarios"]}


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    """The address of a server that lets nobody in: a fault that is not the agent's, and not retried."""
    with LocalServer(respond("who are you?", status=401)) as server:
        yield server.url


@pytest.fixture
def run(project: Project, locked: str) -> Any:
    def start(*entries: str, config: str = "", arguments: tuple[str, ...] = ()) -> int:
        project.agent(AGENT)
        project.config(DOWN_AGENT.format(url=locked) + config)
        project.scenarios(suite(*entries))
        project.write(
            "scenarios/mocks.py", "def crash(args, ctx):\n    raise KeyError('a defect of the mock')\n"
        )
        done = project.run(*arguments)
        summary = project.results()["summary"]
        assert summary["exit_code"] == done.code or done.code == 2, done.all
        return done.code

    return start


def test_a_fault_that_is_not_the_agents_is_inconclusive_and_its_expectations_are_not_evaluated(
    project: Project, run: Any
) -> None:
    assert run(GREEN, DOWN) == 3
    assert verdicts(project) == {"green": "passed", "down": "inconclusive"}
    assert project.results()["summary"]["verdict"] == "inconclusive"
    sample = project.sample("down")
    assert (sample["verdict"], sample["fault"], sample["stop"]) == (
        "inconclusive",
        "infrastructure",
        "infrastructure",
    )
    assert failed_checks(sample) == set()
    assert not any(check["name"] == "output.contains" and check["passed"] for check in sample["checks"])


def test_a_refused_connection_is_not_the_agents_fault(project: Project) -> None:
    project.config(
        f"agent: {{endpoint: 'http://127.0.0.1:{closed_port()}/v1/chat/completions'}}\n", target=""
    )
    project.scenarios(suite(GREEN))
    assert project.run().code == 3
    assert (project.sample()["verdict"], project.sample()["fault"]) == ("inconclusive", "infrastructure")


def test_failed_outweighs_inconclusive_be_it_tolerated_or_not(project: Project, run: Any) -> None:
    assert run(DOWN, GREEN, RED, config="fault_tolerance: 1\n") == 1
    assert verdicts(project) == {"down": "inconclusive", "green": "passed", "red": "failed"}
    assert project.results()["summary"]["verdict"] == "failed"


@pytest.mark.parametrize(("tolerance", "code"), [(0, 3), (0.49, 3), (0.5, 0)])
def test_fault_tolerance_is_a_share_of_the_runs_samples(
    tolerance: float, code: int, project: Project, run: Any
) -> None:
    assert run(HALF, config=f"fault_tolerance: {tolerance}\n") == code
    gate = next(g for g in project.results()["summary"]["gates"] if g["name"] == "fault_tolerance")
    assert (gate["value"], gate["bound"]) == (0.5, tolerance)
    assert gate["verdict"] == ("passed" if code == 0 else "inconclusive")


def test_an_undeclared_tool_where_none_is_declared_is_the_authors_error_and_the_rest_finishes(
    project: Project, run: Any
) -> None:
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


def test_unmocked_tools_may_answer_with_nothing(project: Project, run: Any) -> None:
    assert run(UNDECLARED, config="unmocked_tools: empty\n") == 0
    assert project.sample()["turns"][0]["tool_calls"][0]["result"] == {}
    assert project.sample()["findings"] == []


@pytest.mark.parametrize(
    ("config", "severity"),
    [
        ("", "high"),
        ("severities: {wrong tool: critical}\n", "critical"),
        ("severities: {wrong tool: low}\nfail_on_severity: none\n", "low"),
    ],
)
def test_an_unknown_tool_is_a_finding_and_fails_its_sample(
    config: str, severity: str, project: Project, run: Any
) -> None:
    assert run(UNKNOWN, GREEN, config=config) == 1
    (finding,) = project.sample("unknown")["findings"]
    assert (finding["detector"], finding["label"], finding["severity"]) == (
        "unknown_tool",
        "wrong tool",
        severity,
    )
    assert (finding["turn"], finding["call"]) == (0, 0)
    assert verdicts(project) == {"unknown": "failed", "green": "passed"}


def test_detectors_can_be_switched_off(project: Project, run: Any) -> None:
    run(UNKNOWN, config="detectors: []\n")
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
    "expect: {output: {contains: []}}",
    "expect: {output: {not_contains: [], matches: null}}",
    "expect: {limits: {}}",
    "expect: {criteria: []}",
    "tools: {a: {returns: 1}}",
    "turns: [{user: hi, expect: {}}]",
    "knowledge: [the sky is blue]",
]
VACUOUS_CALLS = [
    "expect: {tool_calls: {}}",
    "expect: {tool_calls: {calls: []}}",
    "expect: {tool_calls: {match: in_order, calls: []}}",
    "expect: {tool_calls: {match: within, calls: []}}",
    "expect: {tool_calls: {match: unordered, calls: []}}",
    "expect: {tool_calls: {forbidden: []}}",
]
SOUND = [
    "checks: none",
    "tools: {a: {returns: 1}}, expect: {tool_calls: {match: strict, calls: []}}",
    "tools: {a: {returns: 1}}, expect: {tool_calls: none}",
    "tools: {a: {returns: 1}}, expect: {tool_calls: {any_of: [none, {calls: [{name: a}]}]}}",
    "tools: {a: {returns: 1}}, expect: {tool_calls: {forbidden: [{name: a}]}}",
    "tools: {a: {returns: 1}}, expect: {limits: {steps: 9}}",
    "turns: [hi, {user: hi, expect: {output: {contains: [fine]}}}]",
]


LABELS_ALONE = "metrics: [agent_behavior_failure]\nmodels: {default: scripted/replies.yaml}\n"


@pytest.mark.parametrize(
    ("config", "scenario", "code"),
    [
        ("fail_on_severity: none", "", 2),
        ("fail_on_severity: low", "", 0),
        ("", "", 0),
        ("fail_on_severity: none", ", checks: none", 0),
        ("fail_on_severity: none", ", expect: {limits: {steps: 9}}", 0),
        ("fail_on_severity: none\nthresholds: {agent_behavior_failure: 0.5}", "", 0),
        ("fail_on_severity: none\ngates: {pass_hat_k: {k: 1, at_least: 0.5}}", "", 2),
    ],
)
def test_labels_that_no_severity_makes_fail_check_nothing(
    config: str, scenario: str, code: int, project: Project
) -> None:
    project.agent(AGENT)
    project.config(f"{LABELS_ALONE}{config}\n")
    project.write("replies.yaml", "replies: []\n")
    project.scenarios(f"{{id: a, turns: [hi]{scenario}}}")
    done = project.call("validate")
    assert done.code == code, done.all
    if code:
        assert "scenario 'a': nothing is checked; with fail_on_severity: none, no label fails" in done.err


def entry(number: int, fields: str) -> str:
    turns = "" if fields.startswith("turns:") else "turns: [hi], "
    return f"{{id: s{number:02}, name: s{number:02}, {turns}{fields}}}"


@pytest.mark.parametrize("entries", [VACUOUS, VACUOUS_CALLS, [*VACUOUS, *VACUOUS_CALLS]])
def test_scenarios_whose_every_check_is_vacuous_are_refused_all_at_once(
    entries: list[str], project: Project
) -> None:
    project.agent(AGENT)
    project.config("gates: {}\n")
    project.scenarios(suite(*(entry(number, fields) for number, fields in enumerate(entries))))
    done = project.call("validate")
    assert done.code == 2
    assert [
        fields for line, fields in enumerate(entries, 2) if f"suite.yaml:{line}:" not in done.err
    ] == [], done.err


def test_a_scenario_that_checks_something_runs(project: Project, run: Any) -> None:
    asks = "tools: {a: {returns: 1}}, turns: [call a], expect: {tool_calls: {calls: [{name: a}]}}"
    entries = [entry(number, fields) for number, fields in enumerate(SOUND)]
    assert run(*entries, f"{{id: asks, {asks}}}") == 0
    assert len(verdicts(project)) == len(SOUND) + 1


EPOCHS = [
    "{id: plain, name: plain, turns: [hi], checks: none}",
    "{id: two, name: two, turns: [hi], checks: none, epochs: 2}",
]


@pytest.mark.parametrize(
    ("config", "arguments", "plain", "two"),
    [
        ("", (), 1, 2),
        ("epochs: 3\n", (), 3, 2),
        ("epochs: 3\n", ("--epochs", "4"), 4, 4),
        ("", ("--epochs", "1"), 1, 1),
    ],
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
    assert "boom" in scenario["samples"][1]["turns"][1]["error"]


def test_max_turns_does_not_cut_scripted_turns(project: Project, run: Any) -> None:
    turns = ", ".join(f"t{n}" for n in range(12))
    assert run(f"{{id: s, name: s, turns: [{turns}], checks: none, max_turns: 2}}") == 0
    assert [turn["user"] for turn in project.sample()["turns"]] == [f"t{n}" for n in range(12)]


def test_fail_fast_starts_nothing_more_after_the_first_failure(project: Project, run: Any) -> None:
    entries = [RED, *(f"{{id: g{n}, name: g{n}, turns: [hi], checks: none}}" for n in range(5))]
    assert run(*entries, config="agent_concurrency: 1\n", arguments=("--fail-fast",)) == 1
    assert "red" in verdicts(project)
    started = [
        s["id"] for s in project.results()["scenarios"] if any(sample["turns"] for sample in s["samples"])
    ]
    assert started[0] == "red"
    assert len(started) < len(entries)
    assert run(*entries, config="agent_concurrency: 1\n") == 1
    assert len(verdicts(project)) == 6
    assert "inconclusive" not in verdicts(project).values()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_keeps_what_is_done(project: Project) -> None:
    project.agent(AGENT)
    project.config("agent_concurrency: 1\n")
    project.scenarios(suite(GREEN, "{id: slow, name: slow, turns: [wait], checks: none}"))
    process = project.start("run", "--report", "json=results.json")
    try:
        assert eventually((project.root / "waiting").exists)
        process.send(signal.SIGINT)
        done = process.wait()
    finally:
        process.kill()
    assert done.code == 130, done.err
    assert "Traceback" not in done.all
    assert project.results()["summary"]["exit_code"] == 130
    found = {s["id"]: [sample["verdict"] for sample in s["samples"]] for s in project.results()["scenarios"]}
    assert found["green"] == ["passed"]
    assert "passed" not in found.get("slow", [])
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    assert '"green"' in journal.read_text(encoding="utf-8")


BROKEN = """
import asyncio
import time


def raises(messages, ctx):
    raise ValueError("agent defect")


def returns_nonsense(messages, ctx):
    return 42


def returns_nothing(messages, ctx):
    return None


async def hangs(messages, ctx):
    await asyncio.sleep(3600)


def hangs_sync(messages, ctx):
    time.sleep(3600)


def exits(messages, ctx):
    raise SystemExit(7)


async def cancels(messages, ctx):
    raise asyncio.CancelledError


async def interrupts(messages, ctx):
    raise KeyboardInterrupt
"""


STOPS = {
    "raises": "agent_error",
    "returns_nonsense": "agent_error",
    "hangs": "agent_timeout",
    "hangs_sync": "agent_timeout",
    "exits": "agent_error",
}


def run_broken(project: Project, *names: str) -> dict[str, dict[str, Any]]:
    """The sample of each of these agents, and of one that is sound, all in one run."""
    project.agent(AGENT)
    project.write("broken.py", BROKEN)
    agents = "".join(f"  {name}: {{target: 'broken.py:{name}', timeout_s: 1}}\n" for name in names)
    project.config("agents:\n" + agents)
    project.scenarios(
        suite(GREEN, *(f"{{id: {n}, name: {n}, agent: {n}, turns: [hi], checks: none}}" for n in names))
    )
    done = project.run()
    assert done.code == 1, done.all
    return {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}


def test_an_agent_that_breaks_fails_at_its_turn(project: Project) -> None:
    samples = run_broken(project, *STOPS, "returns_nothing")
    assert samples["green"]["verdict"] == "passed"
    assert samples["returns_nothing"]["verdict"] == "failed"
    for name, stop in STOPS.items():
        sample = samples[name]
        assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", stop)
        assert {check for _, check in failed_checks(sample)} == {"no_error"}
        assert [bool(turn["error"]) for turn in sample["turns"]] == [True]


@pytest.mark.parametrize("name", ["cancels", "interrupts"])
def test_an_agents_cancellation_is_its_own_and_no_other_samples(name: str, project: Project) -> None:
    samples = run_broken(project, name)
    assert samples["green"]["verdict"] == "passed"
    assert (samples[name]["verdict"], samples[name]["stop"]) == ("failed", "agent_error")


@pytest.mark.parametrize("severity", ["critical", "none"])
def test_a_check_in_code_that_breaks_leaves_its_sample_undecided(
    monkeypatch: pytest.MonkeyPatch, severity: str
) -> None:
    import anyio

    from agenteval.conversation.scored_sample import run_scorer
    from agenteval.core.config import Config
    from agenteval.core.event import (
        RunFinished,
        SampleFinished,
        SampleStarted,
        Scored,
        TurnFinished,
    )
    from agenteval.core.scenario import SampleKey, Scenario
    from agenteval.core.trajectory import Step, Stop, StopReason, Trajectory, Turn
    from agenteval.scoring.checks import expectations
    from agenteval.verdict.gates import decide
    from agenteval.verdict.report import build_report

    def broken(*_: object) -> None:
        raise NameError("no such name")

    scenario, key = Scenario(id="s", name="s"), SampleKey(scenario="s", agent="a")
    turn, stop = Turn(user="x", steps=(Step(text="y"),)), Stop(reason=StopReason.SCRIPT_DONE)
    monkeypatch.setattr(expectations, "conversation_checks", broken)
    items = anyio.run(
        run_scorer, expectations.ConversationExpectations(), scenario, Trajectory(turns=(turn,), stop=stop)
    )
    told = build_report(
        [
            begun(Config(fail_on_severity=severity), (scenario,), (key,)),
            SampleStarted(key=key),
            TurnFinished(key=key, index=0, turn=turn),
            Scored(key=key, turn=None, items=tuple(items)),
            SampleFinished(key=key, stop=stop),
            RunFinished(finished_at="", elapsed_s=0),
        ]
    )
    assert decide(told).exit_code == 3
