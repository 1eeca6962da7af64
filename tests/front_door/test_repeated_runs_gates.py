"""Gates over repeated runs, through the command line: agents of known luck, and what each gate says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Project

AGENT = """
FAILS = {fails!r}

def agent(messages, ctx):
    fails = FAILS.get(ctx.scenario_id, ())
    return "sorry" if ctx.epoch in fails else "done"
"""


def suite(project: Project, *ids: str, **fails: Any) -> None:
    """Scenarios whose agent fails in the given epochs."""
    project.agent(
        AGENT.format(fails={name.replace("_", "-"): tuple(epochs) for name, epochs in fails.items()})
    )
    lines = [f"  - {{id: {id}, turns: [hi], expect: {{output: {{contains: [done]}}}}}}" for id in ids]
    project.scenarios("scenarios:\n" + "\n".join(lines) + "\n")


def gates(project: Project, text: str, epochs: str = "20") -> None:
    project.config(f"epochs: {epochs}\ngates: {{{text}}}\n")


RATE = "pass_rate: {at_least: 0.9, reject_below: 0.7}"


def rows(project: Project, name: str) -> dict[str, dict[str, Any]]:
    found = [row for row in project.results()["summary"]["gates"] if row["name"] == name]
    return {row["scenario"]: row for row in found}


# ── pass_rate ────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_in_twenty_is_green_with_a_rate_and_red_without(project: Project) -> None:
    suite(project, "a", a=[7])
    project.config("epochs: 20\n")
    assert project.run().code == 1
    gates(project, RATE)
    done = project.run()
    assert done.code == 0, done.out
    assert rows(project, "pass_rate")["a"]["verdict"] == "passed"
    assert "every sample passes" not in done.out
    assert "✓ scenarios/suite.yaml" in done.out
    assert "1 of 1 passed only some conversations" in done.out
    assert "(tolerated)" in project.call("report", "latest", "-v").out


def test_an_agent_below_the_rate_is_red_in_its_scenario_alone(project: Project) -> None:
    suite(project, "fine", "worse", worse=range(0, 20, 2))
    gates(project, RATE)
    done = project.run()
    assert done.code == 1
    found = rows(project, "pass_rate")
    assert found["worse"]["verdict"] == "failed"
    assert found["worse"]["value"] == 0.5
    assert found["fine"]["verdict"] == "passed"
    verdicts = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert verdicts == {"fine": "passed", "worse": "failed"}


def test_too_few_epochs_decide_nothing_and_say_how_many_would(project: Project) -> None:
    suite(project, "a")
    gates(project, RATE, epochs="3")
    done = project.run()
    assert done.code == 3
    told = rows(project, "pass_rate")["a"]
    assert told["verdict"] == "inconclusive"
    assert "it takes 9 epochs" in told["basis"]


def test_a_rate_between_the_bounds_says_how_many_more_would_decide(project: Project) -> None:
    suite(project, "a", a=[1, 5])
    gates(project, RATE, epochs="10")
    assert project.run().code == 3
    assert "more would decide" in rows(project, "pass_rate")["a"]["basis"]


def test_the_edges_of_the_exact_test_of_twenty(project: Project) -> None:
    """At a true rate of 0.7, 18 or more of 20 have a chance of 3.5 %, 17 or more of 10.7 %; at 0.9, 14 or
    fewer of 20 have one of 1.1 % (one scenario: 5 % allowed), 15 or fewer of 4.3 %, 16 or fewer of 13.3 %."""
    expected = {2: "passed", 3: "inconclusive", 4: "inconclusive", 5: "failed"}
    for failures, verdict in expected.items():
        suite(project, "a", a=range(failures))
        gates(project, RATE)
        project.run()
        assert rows(project, "pass_rate")["a"]["verdict"] == verdict, failures


def test_a_critical_finding_fails_the_run_whatever_the_rate_and_a_lesser_one_its_sample(
    project: Project,
) -> None:
    project.agent("""
async def agent(messages, ctx):
    if ctx.epoch == 3:
        await ctx.call_tool("drop_table", {})
    return "done"
""")
    project.scenarios("scenarios:\n  - {id: a, turns: [hi], tools: {look: {returns: 1}}, "
                      "expect: {output: {contains: [done]}}}\n")  # fmt: skip
    gates(project, RATE)
    head = f"epochs: 20\ngates: {{{RATE}}}\nfail_on_severity: high\n"
    project.config(head)
    assert project.run().code == 0  # wrong tool: high
    assert rows(project, "pass_rate")["a"]["value"] == 0.95
    project.config(head + "severities: {wrong tool: critical}\n")
    assert project.run().code == 1
    assert rows(project, "fail_on_severity")[""]["verdict"] == "failed"
    assert project.results()["scenarios"][0]["verdict"] == "failed"
    assert rows(project, "pass_rate")["a"]["verdict"] == "passed"


# ── sequential epochs ────────────────────────────────────────────────────────────────────────────


def samples(project: Project, scenario: str) -> list[dict[str, Any]]:
    (found,) = [s for s in project.results()["scenarios"] if s["id"] == scenario]
    return list(found["samples"])


def test_a_scenario_ends_when_its_gate_is_decided(project: Project) -> None:
    suite(project, "good", "poor", poor=range(50))
    gates(project, RATE, epochs="{min: 3, max: 40}")
    done = project.run()
    assert done.code == 1
    assert len(samples(project, "good")) == 12  # 12 successes in a row: (0.9 / 0.7)^12 > 20
    assert len(samples(project, "poor")) == 4  # 4 failures: (0.1 / 0.3)^4 < 0.05 / 2
    assert [s["epoch"] for s in samples(project, "good")] == list(range(12))
    assert rows(project, "pass_rate")["poor"]["verdict"] == "failed"
    assert rows(project, "pass_rate")["good"]["verdict"] == "passed"


def test_slow_failures_count_at_their_place(project: Project) -> None:
    """Each failing conversation takes longer than all others together: by order of completion the gate
    would have accepted before it saw one."""
    project.agent("""
import asyncio
from pathlib import Path

async def agent(messages, ctx):
    if ctx.epoch in (0, 2, 4, 5):
        for _ in range(400):
            await asyncio.sleep(0.005)
            if len(list(Path("done").glob("*"))) >= ctx.epoch - 3:
                break
        return "sorry"
    Path("done").mkdir(exist_ok=True)
    Path("done", str(ctx.epoch)).touch()
    return "done"
""")
    project.scenarios("scenarios:\n  - {id: a, turns: [hi], expect: {output: {contains: [done]}}}\n")
    gates(project, RATE, epochs="{min: 3, max: 40}")
    assert project.run().code == 1
    assert "2 of 6 epochs" in rows(project, "pass_rate")["a"]["basis"]


def test_no_epoch_is_run_that_the_test_could_have_done_without(project: Project) -> None:
    suite(project, "a", a=[2])
    gates(project, RATE, epochs="{min: 3, max: 60}")
    project.run("--concurrency", "50")
    told = rows(project, "pass_rate")["a"]
    assert told["verdict"] == "passed"
    assert f"of {len(samples(project, 'a'))} epochs" in told["basis"]


LOSES = """
def agent(messages, ctx):
    if ctx.epoch in {lost}:
        raise ConnectionRefusedError("the agent's database is down")
    return "done"
"""


def test_a_lost_epoch_is_replaced_once(project: Project) -> None:
    project.agent(LOSES.format(lost="{4}"))
    project.scenarios("scenarios:\n  - {id: a, turns: [hi], expect: {output: {contains: [done]}}}\n")
    tolerant = f"epochs: {{min: 3, max: 20}}\ngates: {{{RATE}}}\nfault_tolerance: 0.2\n"
    project.config(tolerant)
    done = project.run()
    assert done.code == 0, done.out
    assert 20 in [s["epoch"] for s in samples(project, "a")]
    assert "1 errored and replaced" in rows(project, "pass_rate")["a"]["basis"]
    told = rows(project, "fault_tolerance")[""]
    assert (told["value"], told["basis"]) == (1 / 13, "1 inconclusive of 13 samples, 1 of them replaced")

    project.agent(LOSES.format(lost="{4, 20}"))
    assert project.run().code == 0  # decided, whatever the lost one would have brought
    assert 21 not in [s["epoch"] for s in samples(project, "a")]
    project.config(tolerant.replace("0.2", "0.1"))
    assert project.run().code == 3


def test_epochs_that_are_replaced_tolerate_one_loss_in_twenty_unless_told_otherwise(
    project: Project,
) -> None:
    suite(project, *[f"s{n}" for n in range(4)])
    told = {}
    for lost in (2, 3):  # of 48 successes and as many more
        project.agent(f"""
            def agent(messages, ctx):
                if ctx.scenario_id == "s0" and ctx.epoch in (2, 4, 6)[:{lost}]:
                    raise ConnectionRefusedError("down")
                return "done"
        """)
        gates(project, RATE, epochs="{min: 3, max: 20}")
        code = project.run().code
        told[lost] = (code, rows(project, "fault_tolerance")[""])
    assert [code for code, _ in told.values()] == [0, 3]
    assert [row["value"] for _, row in told.values()] == [2 / 50, 3 / 51]
    assert {row["bound"] for _, row in told.values()} == {0.05}
    assert told[2][1]["where"] == "default of epochs: {max}"
    gates(project, RATE, epochs="20")
    project.run()
    assert rows(project, "fault_tolerance")[""]["bound"] == 0
    assert rows(project, "fault_tolerance")[""]["where"] == "default"


@pytest.mark.parametrize(("fault", "code"), [("ConnectionRefusedError", 3), ("ValueError", 1)])
def test_half_of_the_epochs_lost_and_replaced_is_not_green(project: Project, fault: str, code: int) -> None:
    project.agent(f"""
        def agent(messages, ctx):
            if ctx.epoch < 12 and ctx.epoch % 2:
                raise {fault}("down")
            return "done"
    """)
    project.scenarios("id: a\nturns: [hi]\nexpect: {output: {contains: [done]}}\n")
    gates(project, RATE, epochs="{min: 3, max: 20}")
    assert project.run().code == code
    if code == 3:
        assert rows(project, "pass_rate")["a"]["verdict"] == "passed"
        assert rows(project, "fault_tolerance")[""]["verdict"] == "inconclusive"


def test_an_epoch_that_had_failed_when_it_was_lost_is_not_replaced(project: Project) -> None:
    project.agent("""
        def agent(messages, ctx):
            if messages[-1]["content"] == "more" and ctx.epoch < 6:
                raise ConnectionRefusedError("down")
            return "sorry" if ctx.epoch < 6 else "done"
    """)
    turns = "[{user: hi, expect: {output: {contains: [done]}}}, more]"
    project.scenarios(f"id: a\nturns: {turns}\n")
    gates(project, RATE, epochs="{min: 3, max: 20}")
    assert project.run().code == 1
    assert {s["verdict"] for s in samples(project, "a")} == {"failed"}
    assert max(s["epoch"] for s in samples(project, "a")) < 20
    assert rows(project, "fault_tolerance")[""]["value"] == 0


def test_the_number_on_the_command_line_is_fixed(project: Project) -> None:
    suite(project, "a")
    gates(project, RATE, epochs="{min: 3, max: 40}")
    assert project.run("--epochs", "9").code == 0
    assert len(samples(project, "a")) == 9


def test_a_range_of_epochs_needs_a_gate_that_ends_early(project: Project) -> None:
    suite(project, "a")
    project.config("epochs: {min: 3, max: 20}\n")
    done = project.run()
    assert done.code == 2
    assert "needs a gate that can end a scenario early" in done.err
    assert "pass_rate" in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("epochs: {min: 3}", "'max' is missing"),
        ("epochs: {min: 9, max: 3}", "min (9) is above max (3)"),
        ("epochs: {min: 0, max: 3}", "at least 1"),
        ("epochs: {min: 1, max: 3, most: 4}", "unknown key 'most'"),
        ("gates: {pass_rate: {at_least: 0.7, reject_below: 0.9}}", "must be less than at_least (0.7)"),
        ("gates: {pass_rate: {at_least: 90, reject_below: 0.7}}", "at most 1"),
        ("gates: {pass_rate: {at_least: 0.9}}", "'reject_below' is missing"),
        ("gates: {pass_rat: {}}", "did you mean 'pass_rate'"),
        ("gates: {pass_hat_k: {k: 0, at_least: 0.5}}", "at least 1"),
        ("gates: {pass_hat_k: {k: 3, at_least: 0.5, over: agent}}", "one of scenario, suite"),
        ("gates: {no_regression: {margin: 0}}", "more than 0"),
        ("gates: {no_regression: 0.05}", "expected a mapping"),
        ("thresholds: {helpfulness: {}}", "is empty"),
        ("thresholds: {helpfulness: {share_below: {}}}", "must not be empty"),
        ("thresholds: {helpfulness: {share_below: {2: 1.5}}}", "less than 1"),
        ("thresholds: {helpfulness: {min: 9}}", "its scores are from 1 to 5"),
        ("thresholds: {helpfulness: {share_below: {9: 0.1}}}", "its scores are from 1 to 5"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_its_place(text: str, told: str, project: Project) -> None:
    suite(project, "a")
    project.config(text + "\n")
    done = project.call("validate")
    assert done.code == 2
    assert told in done.err
    assert "agenteval.yaml:" in done.err


# ── pass_hat_k ───────────────────────────────────────────────────────────────────────────────────


def test_pass_hat_k_of_each_scenario(project: Project) -> None:
    suite(project, "sure", "flaky", flaky=[1, 3])
    gates(project, "pass_hat_k: {k: 3, at_least: 0.2}", epochs="5")
    done = project.run()
    assert done.code == 1
    found = rows(project, "pass_hat_k")
    assert found["flaky"]["value"] == pytest.approx(0.1)  # C(3, 3) / C(5, 3)
    assert (found["flaky"]["verdict"], found["sure"]["verdict"]) == ("failed", "passed")
    gates(project, "pass_hat_k: {k: 3, at_least: 0.1}", epochs="5")
    assert project.run().code == 0


def test_pass_hat_k_over_the_suite_is_the_mean(project: Project) -> None:
    suite(project, "sure", "flaky", flaky=[1, 3])
    gates(project, "pass_hat_k: {k: 3, at_least: 0.5, over: suite}", epochs="5")
    assert project.run().code == 0
    assert rows(project, "pass_hat_k")[""]["value"] == pytest.approx(0.55)
    gates(project, "pass_hat_k: {k: 3, at_least: 0.6, over: suite}", epochs="5")
    assert project.run().code == 1


NO_BASELINE = "no_regression: {margin: 0.1}"
TOO_FEW = "pass_hat_k: {k: 9, at_least: 0.1, over: suite}"


@pytest.mark.parametrize(
    ("rules", "flaky"),
    [
        (NO_BASELINE, "inconclusive"),
        (TOO_FEW, "inconclusive"),
        (f"{NO_BASELINE}, pass_hat_k: {{k: 1, at_least: 0.1}}", "passed"),  # tolerated by its own gate
        ("pass_hat_k: {k: 1, at_least: 0.1, over: suite}", "passed"),
    ],
)
def test_what_a_gate_over_all_scenarios_has_not_decided_is_not_tolerated(
    project: Project, rules: str, flaky: str
) -> None:
    suite(project, "sure", "flaky", flaky=[1, 3])
    gates(project, rules, epochs="5")
    done = project.run()
    found = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert found == {"sure": "passed", "flaky": flaky}
    assert done.code == (0 if rules.endswith("suite}") and rules != TOO_FEW else 3)


def test_pass_hat_k_of_fewer_epochs_is_not_estimable(project: Project) -> None:
    suite(project, "a")
    gates(project, "pass_hat_k: {k: 3, at_least: 0.5}", epochs="2")
    assert project.run().code == 3
    assert "not estimable from 2 epochs" in rows(project, "pass_hat_k")["a"]["basis"]


def test_a_lost_epoch_enters_by_its_worst_and_best_case(project: Project) -> None:
    project.agent(LOSES.format(lost="{2}"))
    project.scenarios("scenarios:\n  - {id: a, turns: [hi], expect: {output: {contains: [done]}}}\n")
    tolerant = "epochs: 4\nfault_tolerance: 0.5\n"
    project.config(tolerant + "gates: {pass_hat_k: {k: 3, at_least: 0.5}}\n")
    assert project.run().code == 3  # 1/4 if it had failed, 1 if it had succeeded
    project.config(tolerant + "gates: {pass_hat_k: {k: 3, at_least: 0.2}}\n")
    assert project.run().code == 0


# ── thresholds beyond the mean ───────────────────────────────────────────────────────────────────

JUDGE = """
replies:
  - when: {role: judge, metric: helpfulness, text: sorry}
    reply: {evidence: sorry, reason: r, score: 1}
  - when: {role: judge, metric: helpfulness}
    reply: {evidence: "", reason: r, score: 5}
"""


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("3.5", 0),
        ("{at_least: 3.5, min: 2}", 1),
        ("{min: 1}", 0),
        ("{share_below: {2: 0.05}}", 1),
        ("{share_below: {2: 0.1}}", 0),
        ("{share_below: {1: 0}}", 0),
    ],
)
def test_a_mean_hides_one_terrible_turn_and_other_bounds_do_not(
    rule: str, code: int, project: Project
) -> None:
    suite(project, "a", a=[3])
    project.scenarios("scenarios:\n  - {id: a, turns: [hi]}\n")
    (project.root / "judge.yaml").write_text(JUDGE, encoding="utf-8")
    project.config(
        "epochs: 10\nmetrics: [helpfulness]\nmodels: {default: scripted/judge.yaml}\n"
        f"thresholds: {{helpfulness: {rule}}}\n"
    )
    done = project.run()
    assert done.code == code, done.out + done.err
    if code:
        (row,) = [r for r in project.results()["summary"]["gates"] if r["verdict"] == "failed"]
        assert row["metric"] == "helpfulness"
        assert row["value"] == (1 if "min" in row["name"] else 0.1)


# ── what is reported before a run ────────────────────────────────────────────────────────────────────


def test_plan_tells_a_gate_that_is_a_coin(project: Project) -> None:
    suite(project, *(f"s{number}" for number in range(20)))
    project.config("epochs: 3\n")
    told = " ".join(project.call("plan").out.split())
    assert "every sample passes: an agent that truly succeeds in 95 % of" in told
    assert "red by chance in 95.4 % of runs" in told  # 1 - 0.95^60
    assert "little better than tossing a coin" in told
    project.config(f"epochs: {{min: 3, max: 50}}\ngates: {{{RATE}}}\n")
    told = project.call("plan").out
    assert "pass_rate" in told
    assert "a coin" not in told


def test_validate_speaks_of_chances_where_a_gate_asks_for_it(project: Project) -> None:
    suite(project, *(f"s{number}" for number in range(20)))
    project.config("epochs: 3\n")
    assert "by chance" not in project.call("validate").out
    project.config(f"epochs: {{min: 3, max: 50}}\ngates: {{{RATE}}}\n")
    told = project.call("validate").out
    assert "pass_rate: an agent that truly succeeds in 95 % of conversations is red by chance in" in told
    assert "one that truly succeeds in 70 % in one scenario is green by chance in" in told
    project.config("epochs: 3\ngates: {pass_hat_k: {k: 3, at_least: 0.5}}\n")
    assert "tossing a coin" in project.call("validate").out


def test_validate_tells_a_gate_that_can_never_be_green(project: Project) -> None:
    suite(project, "a")
    gates(project, RATE, epochs="3")
    assert "no run can be green: it takes 9 epochs" in project.call("validate").out


def test_the_journal_decides_the_same(project: Project, tmp_path: Path) -> None:
    from agenteval.files import journal
    from agenteval.verdict import gates as rules
    from agenteval.verdict import report

    suite(project, "a", "b", b=[1])
    gates(project, RATE, epochs="{min: 3, max: 30}")
    project.run()
    (path,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    found = report.build_report(journal.read_journal(path))
    decision = rules.decide(found)
    told = json.loads((project.root / "results.json").read_text())["summary"]
    assert str(decision.verdict) == told["verdict"]
    assert [g.basis for g in decision.gates] == [g["basis"] for g in told["gates"]]
