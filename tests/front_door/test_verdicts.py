"""Verdicts and exit codes through the command line: who fails what, and what outweighs what."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import LocalServer, closed_port, respond
from tests.support.patience import eventually
from tests.support.plans import begun
from tests.support.results import gate, verdicts

AGENT = """
import asyncio


async def agent(messages, ctx):
    text = messages[-1]["content"]
    if text == "boom":
        raise RuntimeError("boom")
    if text == "boom in epoch 1" and ctx.epoch == 1:
        raise RuntimeError("boom")
    if text == "refused in epoch 1" and ctx.epoch == 1:
        raise ConnectionRefusedError("refused")
    if text.startswith("call "):
        await ctx.call_tool(text.removeprefix("call "), {})
    if text == "wait":
        open("waiting", "w").close()
        await asyncio.sleep(60)
    return "fine"
"""

GREEN = "{id: green, turns: [hi], checks: none}"
RED = "{id: red, turns: [boom], checks: none}"
HALF = "{id: half, turns: [refused in epoch 1], checks: none, epochs: 2}"
DOWN = "{id: down, agent: down, turns: [hi], expect: {output: {contains: [never said]}}}"
UNDECLARED = "{id: undeclared, turns: [call nowhere, hi], checks: none}"
UNKNOWN = "{id: unknown, turns: [call nowhere], checks: none, tools: {real: {returns: 1}}}"
BROKEN_MOCK = "{id: mock, turns: [call it], checks: none, tools: {it: {python: 'mocks.py:crash'}}}"
Run: TypeAlias = Callable[..., int]


def suite(*entries: str) -> str:
    return "scenarios:\n" + "".join(f"  - {entry}\n" for entry in entries)


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    """The address of a server that lets nobody in: a fault that is not the agent's, and not retried."""
    with LocalServer(respond("who are you?", status=401)) as server:
        yield server.url


@pytest.fixture
def run(project: Project, locked: str) -> Run:
    """Play these scenarios; the exit code, which the results have as well."""

    def start(*entries: str, config: str = "", arguments: tuple[str, ...] = ()) -> int:
        project.agent(AGENT)
        project.config(f"agents: {{down: {{type: http, endpoint: '{locked}'}}}}\n{config}")
        project.scenarios(suite(*entries))
        mock = "def crash(args, ctx):\n    raise KeyError('a defect of the mock')\n"
        project.write("scenarios/mocks.py", mock)
        done = project.run(*arguments)
        assert project.results()["summary"]["exit_code"] == done.code, done.all
        return done.code

    return start


def test_a_fault_that_is_not_the_agents_is_inconclusive_and_its_expectations_are_not_evaluated(
    project: Project, run: Run
) -> None:
    assert run(GREEN, DOWN) == 3
    assert verdicts(project) == {"green": "passed", "down": "inconclusive"}
    assert project.results()["summary"]["verdict"] == "inconclusive"
    sample = project.sample("down")
    assert [sample[key] for key in ("verdict", "fault", "stop")] == [
        "inconclusive", "infrastructure", "infrastructure"
    ]  # fmt: skip
    assert failed_checks(sample) == set()
    assert not any(check["name"] == "output.contains" and check["passed"] for check in sample["checks"])


def test_a_refused_connection_is_not_the_agents_fault(project: Project) -> None:
    endpoint = f"http://127.0.0.1:{closed_port()}/v1/chat/completions"
    project.config(f"agent: {{endpoint: '{endpoint}', max_wait_s: 0}}\n", target="")
    project.scenarios(suite(GREEN))
    assert project.run().code == 3
    assert (project.sample()["verdict"], project.sample()["fault"]) == ("inconclusive", "infrastructure")


def test_failed_outweighs_inconclusive_be_it_tolerated_or_not(project: Project, run: Run) -> None:
    assert run(DOWN, GREEN, RED, config="fault_tolerance: 1\n") == 1
    assert verdicts(project) == {"down": "inconclusive", "green": "passed", "red": "failed"}
    assert project.results()["summary"]["verdict"] == "failed"


@pytest.mark.parametrize(("tolerance", "code"), [(0, 3), (0.49, 3), (0.5, 0)])
def test_fault_tolerance_is_a_share_of_the_runs_samples(
    tolerance: float, code: int, project: Project, run: Run
) -> None:
    assert run(HALF, config=f"fault_tolerance: {tolerance}\n") == code
    row = gate(project, "fault_tolerance")
    assert (row["value"], row["bound"]) == (0.5, tolerance)
    assert row["verdict"] == ("passed" if code == 0 else "inconclusive")


def test_mistakes_of_the_author_end_with_two_and_the_rest_finishes(project: Project, run: Run) -> None:
    """A tool where none is declared, and a mock that breaks."""
    assert run(UNDECLARED, BROKEN_MOCK, GREEN, RED) == 2
    found = verdicts(project)
    assert (found.pop("green"), found.pop("red")) == ("passed", "failed")
    assert "passed" not in found.values()
    for name in ("undeclared", "mock"):
        sample = project.sample(name)
        assert (sample["fault"], sample["stop"]) == ("author", "author_error")
    shown = project.call("report", "latest", "-v").out
    assert "a defect of the mock" in shown
    assert "mocks.py:2" in shown


def test_unmocked_tools_may_answer_with_nothing(project: Project, run: Run) -> None:
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
    config: str, severity: str, project: Project, run: Run
) -> None:
    assert run(UNKNOWN, GREEN, config=config) == 1
    (finding,) = project.sample("unknown")["findings"]
    assert {key: finding[key] for key in ("detector", "label", "severity", "turn", "call")} == {
        "detector": "unknown_tool", "label": "wrong tool", "severity": severity, "turn": 0, "call": 0
    }  # fmt: skip
    assert verdicts(project) == {"unknown": "failed", "green": "passed"}


def test_detectors_can_be_switched_off(project: Project, run: Run) -> None:
    run(UNKNOWN, config="detectors: []\n")
    assert project.sample("unknown")["findings"] == []


def test_the_gate_on_severity_names_its_value_and_bound(project: Project, run: Run) -> None:
    assert run(UNKNOWN, config="fail_on_severity: high\n") == 1
    row = gate(project, "fail_on_severity")
    assert row["verdict"] == "failed"
    assert "high" in str(row["value"])
    assert row["where"].startswith("agenteval.yaml:")


# ── scenarios that check nothing ─────────────────────────────────────────────────────────────────

VACUOUS = [
    "",
    "expect: {}",
    "expect: {output: {not_contains: [], matches: null}}",
    "expect: {limits: {}}",
    "expect: {criteria: []}",
    "tools: {a: {returns: 1}}",
    "turns: [{user: hi, expect: {}}]",
    "knowledge: [the sky is blue]",
    "expect: {tool_calls: {}}",
    "expect: {tool_calls: {match: in_order, calls: []}}",
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
    "tools: {a: {returns: 1}}, turns: [call a], expect: {tool_calls: {calls: [{name: a}]}}",
]


def entry(number: int, fields: str) -> str:
    turns = "" if " turns:" in f" {fields}" else "turns: [hi], "
    return f"{{id: s{number:02}, {turns}{fields}}}"


def test_scenarios_that_check_nothing_are_refused_all_at_once(project: Project) -> None:
    project.agent(AGENT)
    project.config("gates: {}\n")
    project.scenarios(suite(*(entry(number, fields) for number, fields in enumerate(VACUOUS))))
    done = project.call("validate")
    assert done.code == 2
    assert [f for line, f in enumerate(VACUOUS, 2) if f"suite.yaml:{line}:" not in done.err] == []


def test_a_scenario_that_checks_something_runs(project: Project, run: Run) -> None:
    assert run(*(entry(number, fields) for number, fields in enumerate(SOUND))) == 0
    assert len(verdicts(project)) == len(SOUND)


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
    models = "metrics: [agent_behavior_failure]\nmodels: {default: scripted/replies.yaml}\n"
    project.config(f"{models}{config}\n")
    project.write("replies.yaml", "replies: []\n")
    project.scenarios(f"{{id: a, turns: [hi]{scenario}}}")
    done = project.call("validate")
    assert done.code == code, done.all
    assert not code or ("'a'" in done.err and "fail_on_severity: none" in done.err)


# ── epochs, turns, and the end of a run ──────────────────────────────────────────────────────────

PLAIN, TWO = "{id: plain, turns: [hi], checks: none}", "{id: two, turns: [hi], checks: none, epochs: 2}"


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
    config: str, arguments: tuple[str, ...], plain: int, two: int, project: Project, run: Run
) -> None:
    assert run(PLAIN, TWO, config=config, arguments=arguments) == 0
    found = {s["id"]: [sample["epoch"] for sample in s["samples"]] for s in project.results()["scenarios"]}
    assert found == {"plain": list(range(plain)), "two": list(range(two))}


def test_one_failed_epoch_fails_the_scenario_and_the_others_stay_passed(project: Project, run: Run) -> None:
    assert run("{id: s, turns: [hi, boom in epoch 1], checks: none, epochs: 3}") == 1
    (scenario,) = project.results()["scenarios"]
    assert scenario["verdict"] == "failed"
    assert [s["verdict"] for s in scenario["samples"]] == ["passed", "failed", "passed"]
    assert "boom" in scenario["samples"][1]["turns"][1]["error"]


def test_max_turns_does_not_cut_scripted_turns(project: Project, run: Run) -> None:
    turns = [f"t{n}" for n in range(12)]
    assert run(f"{{id: s, turns: [{', '.join(turns)}], checks: none, max_turns: 2}}") == 0
    assert [turn["user"] for turn in project.sample()["turns"]] == turns


def test_fail_fast_starts_nothing_more_after_the_first_failure(project: Project, run: Run) -> None:
    entries = [RED, *(f"{{id: g{n}, turns: [hi], checks: none}}" for n in range(5))]
    assert run(*entries, config="agent_concurrency: 1\n", arguments=("--fail-fast",)) == 1
    assert "red" in verdicts(project)
    started = [s["id"] for s in project.results()["scenarios"] if any(x["turns"] for x in s["samples"])]
    assert started[0] == "red"
    assert len(started) < len(entries)
    assert run(*entries, config="agent_concurrency: 1\n") == 1
    assert verdicts(project) == {"red": "failed", **{f"g{n}": "passed" for n in range(5)}}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_keeps_what_is_done(project: Project) -> None:
    project.agent(AGENT)
    project.config("agent_concurrency: 1\n")
    project.scenarios(suite(GREEN, "{id: slow, turns: [wait], checks: none}"))
    process = project.start("run", "--report", "json=results.json")
    try:
        assert eventually((project.root / "waiting").exists)
        process.send(signal.SIGINT)
        done = process.wait()
    finally:
        process.kill()
    assert done.code == project.results()["summary"]["exit_code"] == 130, done.err
    assert "Traceback" not in done.all
    found = {s["id"]: [sample["verdict"] for sample in s["samples"]] for s in project.results()["scenarios"]}
    assert found["green"] == ["passed"]
    assert "passed" not in found.get("slow", [])
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    assert '"green"' in journal.read_text(encoding="utf-8")


# ── agents and checks that break ─────────────────────────────────────────────────────────────────

BROKEN = {
    # The body of an agent, and how its conversation ends.
    "raises": ("raise ValueError('agent defect')", "agent_error"),
    "returns_nonsense": ("return 42", "agent_error"),
    "returns_nothing": ("return None", None),
    "hangs_sync": ("time.sleep(3600)", "agent_timeout"),
    "exits": ("raise SystemExit(7)", "agent_error"),
    "async hangs": ("await asyncio.sleep(3600)", "agent_timeout"),
    "async cancels": ("raise asyncio.CancelledError", "agent_error"),
    "async interrupts": ("raise KeyboardInterrupt", "agent_error"),
}


def test_an_agent_that_breaks_fails_at_its_turn_and_in_its_own_sample(project: Project) -> None:
    functions, agents, entries = ["import asyncio, time\n"], ["agents:\n"], [GREEN]
    for name, (body, _) in BROKEN.items():
        is_async, own = name.startswith("async"), name.rpartition(" ")[2]
        functions.append(f"{'async ' * is_async}def {own}(messages, ctx):\n    {body}\n")
        agents.append(f"  {own}: {{target: 'broken.py:{own}', timeout_s: 1}}\n")
        entries.append(f"{{id: {name}, agent: {own}, turns: [hi], checks: none}}")
    project.agent(AGENT)
    project.write("broken.py", "\n".join(functions))
    project.config("".join(agents))
    project.scenarios(suite(*entries))
    assert project.run().code == 1
    assert verdicts(project) == {"green": "passed", **dict.fromkeys(BROKEN, "failed")}
    for name, (_, stop) in BROKEN.items():
        sample = project.sample(name)
        if stop is not None:
            assert (sample["fault"], sample["stop"]) == ("agent", stop), name
            assert {check for _, check in failed_checks(sample)} == {"no_error"}
            assert [bool(turn["error"]) for turn in sample["turns"]] == [True]


@pytest.mark.parametrize("severity", ["critical", "none"])
def test_a_check_in_code_that_breaks_leaves_its_sample_undecided(
    monkeypatch: pytest.MonkeyPatch, severity: str
) -> None:
    import anyio

    from agenteval.conversation.scored_sample import run_scorer
    from agenteval.core.config import Config
    from agenteval.core.event import RunFinished, SampleFinished, SampleStarted, Scored, TurnFinished
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
    report = build_report(
        [
            begun(Config(fail_on_severity=severity), (scenario,), (key,)),
            SampleStarted(key=key),
            TurnFinished(key=key, index=0, turn=turn),
            Scored(key=key, turn=None, items=tuple(items)),
            SampleFinished(key=key, stop=stop),
            RunFinished(finished_at="", elapsed_s=0),
        ]
    )
    assert decide(report).exit_code == 3
