"""Gates over repeated runs, through the command line: agents of known luck, and what each gate decides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.results import gates, has, reports, verdicts

AGENT = """
FAILS, LOST = {fails!r}, {lost!r}

def agent(messages, ctx):
    if ctx.epoch in LOST:
        raise ConnectionRefusedError("the agent's database is down")
    return "sorry" if ctx.epoch in FAILS.get(ctx.scenario_id, ()) else "done"
"""


def suite(project: Project, *ids: str, lost: set[int] | None = None, **fails: Any) -> None:
    """Scenarios whose agent fails in the given epochs; in those of ``lost`` it cannot be reached."""
    project.agent(
        AGENT.format(fails={name: tuple(epochs) for name, epochs in fails.items()}, lost=lost or ())
    )
    lines = [f"  - {{id: {id}, turns: [hi], expect: {{output: {{contains: [done]}}}}}}" for id in ids]
    project.scenarios("scenarios:\n" + "\n".join(lines) + "\n")


def config(project: Project, text: str, epochs: str = "20", more: str = "") -> None:
    project.config(f"epochs: {epochs}\ngates: {{{text}}}\n{more}")


RATE = "pass_rate: {at_least: 0.9, reject_below: 0.7}"


def epochs_of(project: Project, scenario: str = "a") -> list[int]:
    (found,) = [s for s in project.results()["scenarios"] if s["id"] == scenario]
    return [sample["epoch"] for sample in found["samples"]]


# ── pass_rate ────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_in_twenty_is_green_with_a_rate_and_red_without(project: Project) -> None:
    suite(project, "a", a=[7])
    project.config("epochs: 20\n")
    assert project.run().code == 1
    config(project, RATE)
    done = project.run()
    assert done.code == 0, done.out
    assert gates(project, "pass_rate")["a"]["verdict"] == "passed"
    assert "every sample passes" not in done.out
    assert "✓ scenarios/suite.yaml" in done.out
    assert "1 of 1" in done.out
    assert "(tolerated)" in project.call("report", "latest", "-v").out


@pytest.mark.parametrize(
    ("failures", "epochs", "code", "verdict", "facts"),
    [
        # At a true rate of 0.7, 18 or more of 20 have a chance of 3.5 %, 17 or more of 10.7 %; at 0.9, 14 or
        # fewer of 20 have one of 1.1 % (one scenario: 5 % allowed), 15 or fewer of 4.3 %, 16 of 13.3 %.
        (2, "20", 0, "passed", ()),
        (3, "20", 3, "inconclusive", ()),
        (4, "20", 3, "inconclusive", ()),
        (5, "20", 1, "failed", ()),
        # Too few epochs decide nothing, and what would is named.
        (0, "3", 3, "inconclusive", ("9 epochs",)),
        (2, "10", 3, "inconclusive", ("more",)),
    ],
)
def test_the_exact_test_of_a_rate(
    project: Project, failures: int, epochs: str, code: int, verdict: str, facts: tuple[str, ...]
) -> None:
    suite(project, "a", a=range(failures))
    config(project, RATE, epochs=epochs)
    assert project.run().code == code
    row = gates(project, "pass_rate")["a"]
    assert row["verdict"] == verdict
    assert has(row["basis"], *facts), row


def test_an_agent_below_the_rate_is_red_only_in_its_scenario(project: Project) -> None:
    suite(project, "fine", "worse", worse=range(0, 20, 2))
    config(project, RATE)
    assert project.run().code == 1
    assert verdicts(project) == {"fine": "passed", "worse": "failed"}
    found = gates(project, "pass_rate")
    assert {name: row["verdict"] for name, row in found.items()} == verdicts(project)
    assert found["worse"]["value"] == 0.5


def test_a_critical_finding_fails_the_run_whatever_the_rate_and_a_lesser_one_its_sample(
    project: Project,
) -> None:
    project.agent("""
        async def agent(messages, ctx):
            if ctx.epoch == 3:
                await ctx.call_tool("drop_table", {})
            return "done"
    """)
    check = "tools: {look: {returns: 1}}, expect: {output: {contains: [done]}}"
    project.scenarios(f"scenarios:\n  - {{id: a, turns: [hi], {check}}}\n")
    config(project, RATE, more="fail_on_severity: high\n")
    assert project.run().code == 0  # wrong tool: high
    assert gates(project, "pass_rate")["a"]["value"] == 0.95
    config(project, RATE, more="fail_on_severity: high\nseverities: {wrong tool: critical}\n")
    assert project.run().code == 1
    assert gates(project, "fail_on_severity")[""]["verdict"] == "failed"
    assert verdicts(project) == {"a": "failed"}
    assert gates(project, "pass_rate")["a"]["verdict"] == "passed"


# ── sequential epochs ────────────────────────────────────────────────────────────────────────────


def test_a_scenario_ends_when_its_gate_is_decided_and_the_journal_decides_the_same(project: Project) -> None:
    from agenteval.files import journal
    from agenteval.verdict import gates as rules
    from agenteval.verdict import report

    suite(project, "good", "poor", poor=range(50))
    config(project, RATE, epochs="{min: 3, max: 40}")
    assert project.run().code == 1
    # 12 successes in a row: (0.9 / 0.7)^12 > 20; 4 failures: (0.1 / 0.3)^4 < 0.05 / 2.
    assert (epochs_of(project, "good"), len(epochs_of(project, "poor"))) == (list(range(12)), 4)
    found = {name: row["verdict"] for name, row in gates(project, "pass_rate").items()}
    assert found == {"good": "passed", "poor": "failed"}

    (path,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    decision = rules.decide(report.build_report(journal.read_journal(path)))
    summary = json.loads((project.root / "results.json").read_text(encoding="utf-8"))["summary"]
    assert str(decision.verdict) == summary["verdict"]
    assert [g.basis for g in decision.gates] == [g["basis"] for g in summary["gates"]]


def test_slow_failures_count_at_their_place(project: Project) -> None:
    """Each failing conversation takes longer than all others together: by order of completion the gate
    would have accepted before it saw one."""
    suite(project, "a")
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
    config(project, RATE, epochs="{min: 3, max: 40}")
    assert project.run().code == 1
    assert "2 of 6 epochs" in gates(project, "pass_rate")["a"]["basis"]


def test_no_epoch_is_run_that_the_test_could_have_done_without(project: Project) -> None:
    suite(project, "a", a=[2])
    config(project, RATE, epochs="{min: 3, max: 60}")
    project.run("--concurrency", "50")
    row = gates(project, "pass_rate")["a"]
    assert row["verdict"] == "passed"
    assert f"of {len(epochs_of(project))} epochs" in row["basis"]


@pytest.mark.parametrize(
    ("lost", "tolerance", "code", "played", "value"),
    [
        ({4}, 0.2, 0, {20}, 1 / 13),
        # Decided, whatever the lost one would have brought: its replacement is not replaced.
        ({4, 20}, 0.2, 0, {20}, None),
        ({4, 20}, 0.1, 3, {20}, None),
    ],
)
def test_a_lost_epoch_is_replaced_once(
    project: Project, lost: set[int], tolerance: float, code: int, played: set[int], value: float | None
) -> None:
    suite(project, "a", lost=lost)
    config(project, RATE, epochs="{min: 3, max: 20}", more=f"fault_tolerance: {tolerance}\n")
    assert project.run().code == code
    assert {epoch for epoch in epochs_of(project) if epoch >= 20} == played
    row = gates(project, "fault_tolerance")[""]
    if value is not None:
        assert "1 errored and replaced" in gates(project, "pass_rate")["a"]["basis"]
        assert row["value"] == value
        assert has(row["basis"], "1 inconclusive of 13", "1 of them replaced")


@pytest.mark.parametrize(("lost", "code", "value"), [(2, 0, 2 / 50), (3, 3, 3 / 51)])
def test_epochs_that_are_replaced_tolerate_one_loss_in_twenty_by_default(
    project: Project, lost: int, code: int, value: float
) -> None:
    suite(project, *[f"s{n}" for n in range(4)])
    project.agent(f"""
        def agent(messages, ctx):
            if ctx.scenario_id == "s0" and ctx.epoch in (2, 4, 6)[:{lost}]:
                raise ConnectionRefusedError("down")
            return "done"
    """)
    config(project, RATE, epochs="{min: 3, max: 20}")
    assert project.run().code == code
    row = gates(project, "fault_tolerance")[""]
    assert (row["value"], row["bound"]) == (value, 0.05)
    assert "epochs: {max}" in row["where"]


def test_of_a_fixed_number_of_epochs_none_may_be_lost(project: Project) -> None:
    suite(project, "a")
    config(project, RATE)
    project.run()
    row = gates(project, "fault_tolerance")[""]
    assert (row["bound"], row["where"]) == (0, "default")


@pytest.mark.parametrize(("fault", "code"), [("ConnectionRefusedError", 3), ("ValueError", 1)])
def test_half_of_the_epochs_lost_and_replaced_is_not_green(project: Project, fault: str, code: int) -> None:
    suite(project, "a")
    project.agent(f"""
        def agent(messages, ctx):
            if ctx.epoch < 12 and ctx.epoch % 2:
                raise {fault}("down")
            return "done"
    """)
    config(project, RATE, epochs="{min: 3, max: 20}")
    assert project.run().code == code
    if code == 3:
        assert gates(project, "pass_rate")["a"]["verdict"] == "passed"
        assert gates(project, "fault_tolerance")[""]["verdict"] == "inconclusive"


def test_an_epoch_that_had_failed_when_it_was_lost_is_not_replaced(project: Project) -> None:
    project.agent("""
        def agent(messages, ctx):
            if messages[-1]["content"] == "more" and ctx.epoch < 6:
                raise ConnectionRefusedError("down")
            return "sorry" if ctx.epoch < 6 else "done"
    """)
    project.scenarios("id: a\nturns: [{user: hi, expect: {output: {contains: [done]}}}, more]\n")
    config(project, RATE, epochs="{min: 3, max: 20}")
    assert project.run().code == 1
    (scenario,) = project.results()["scenarios"]
    assert {sample["verdict"] for sample in scenario["samples"]} == {"failed"}
    assert max(epochs_of(project)) < 20
    assert gates(project, "fault_tolerance")[""]["value"] == 0


def test_the_number_on_the_command_line_is_fixed(project: Project) -> None:
    suite(project, "a")
    config(project, RATE, epochs="{min: 3, max: 40}")
    assert project.run("--epochs", "9").code == 0
    assert len(epochs_of(project)) == 9


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("epochs: {min: 3, max: 20}", ("epochs", "pass_rate")),  # no gate can end a scenario early
        ("epochs: {min: 3}", ("epochs", "max")),
        ("epochs: {min: 9, max: 3}", ("min", "(9)", "max", "(3)")),
        ("epochs: {min: 0, max: 3}", ("min", "1", "0")),
        ("epochs: {min: 1, max: 3, most: 4}", ("'most'",)),
        (
            "gates: {pass_rate: {at_least: 0.7, reject_below: 0.9}}",
            ("reject_below", "(0.9)", "at_least", "(0.7)"),
        ),
        ("gates: {pass_rate: {at_least: 90, reject_below: 0.7}}", ("at_least", "90")),
        ("gates: {pass_rate: {at_least: 0.9}}", ("pass_rate", "reject_below")),
        ("gates: {pass_rat: {}}", ("'pass_rat'", "'pass_rate'")),
        ("gates: {pass_hat_k: {k: 0, at_least: 0.5}}", ("k", "1", "0")),
        ("gates: {pass_hat_k: {k: 3, at_least: 0.5, over: agent}}", ("over", "scenario, suite", "'agent'")),
        ("gates: {no_regression: {margin: 0}}", ("margin", "0")),
        ("gates: {no_regression: 0.05}", ("no_regression", "0.05")),
        ("thresholds: {helpfulness: {}}", ("helpfulness",)),
        ("thresholds: {helpfulness: {share_below: {}}}", ("share_below",)),
        ("thresholds: {helpfulness: {share_below: {2: 1.5}}}", ("share_below", "1.5")),
        ("thresholds: {helpfulness: {min: 9}}", ("'helpfulness'", " 9", " 1 ", " 5")),
        ("thresholds: {helpfulness: {share_below: {9: 0.1}}}", ("'helpfulness'", " 9", " 1 ", " 5")),
    ],
)
def test_mistakes_are_refused_at_their_place(text: str, facts: tuple[str, ...], project: Project) -> None:
    suite(project, "a")
    project.config(text + "\n")
    done = project.call("validate")
    assert (done.code, reports(done, "agenteval.yaml:", *facts)) == (2, True), done.err


# ── pass_hat_k ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "code", "values"),
    [
        # C(3, 3) / C(5, 3) for the flaky one; over the suite it is the mean.
        ("{k: 3, at_least: 0.2}", 1, {"flaky": (0.1, "failed"), "sure": (1, "passed")}),
        ("{k: 3, at_least: 0.1}", 0, {"flaky": (0.1, "passed"), "sure": (1, "passed")}),
        ("{k: 3, at_least: 0.5, over: suite}", 0, {"": (0.55, "passed")}),
        ("{k: 3, at_least: 0.6, over: suite}", 1, {"": (0.55, "failed")}),
    ],
)
def test_pass_hat_k_of_each_scenario_or_over_the_suite(
    project: Project, rule: str, code: int, values: dict[str, tuple[float, str]]
) -> None:
    suite(project, "sure", "flaky", flaky=[1, 3])
    config(project, f"pass_hat_k: {rule}", epochs="5")
    assert project.run().code == code
    found = gates(project, "pass_hat_k")
    assert {name: (row["value"], row["verdict"]) for name, row in found.items()} == {
        name: (pytest.approx(value), verdict) for name, (value, verdict) in values.items()
    }


NO_BASELINE = "no_regression: {margin: 0.1}"


@pytest.mark.parametrize(
    ("rules", "flaky", "code"),
    [
        (NO_BASELINE, "inconclusive", 3),
        ("pass_hat_k: {k: 9, at_least: 0.1, over: suite}", "inconclusive", 3),  # too few epochs
        (f"{NO_BASELINE}, pass_hat_k: {{k: 1, at_least: 0.1}}", "passed", 3),  # tolerated by its own gate
        ("pass_hat_k: {k: 1, at_least: 0.1, over: suite}", "passed", 0),
    ],
)
def test_what_a_gate_over_all_scenarios_has_not_decided_is_not_tolerated(
    project: Project, rules: str, flaky: str, code: int
) -> None:
    suite(project, "sure", "flaky", flaky=[1, 3])
    config(project, rules, epochs="5")
    done = project.run()
    assert (verdicts(project), done.code) == ({"sure": "passed", "flaky": flaky}, code)


def test_pass_hat_k_of_fewer_epochs_is_not_estimable(project: Project) -> None:
    suite(project, "a")
    config(project, "pass_hat_k: {k: 3, at_least: 0.5}", epochs="2")
    assert project.run().code == 3
    assert "2 epochs" in gates(project, "pass_hat_k")["a"]["basis"]


@pytest.mark.parametrize(("at_least", "code"), [(0.5, 3), (0.2, 0)])
def test_a_lost_epoch_enters_by_its_worst_and_best_case(project: Project, at_least: float, code: int) -> None:
    """1/4 if it had failed, 1 if it had succeeded."""
    suite(project, "a", lost={2})
    config(project, f"pass_hat_k: {{k: 3, at_least: {at_least}}}", epochs="4", more="fault_tolerance: 0.5\n")
    assert project.run().code == code


# ── thresholds beyond the mean ───────────────────────────────────────────────────────────────────

JUDGE = """
replies:
  - when: {role: judge, metric: helpfulness, text: sorry}
    reply: {evidence: sorry, reason: r, score: 1}
  - when: {role: judge, metric: helpfulness}
    reply: {evidence: "", reason: r, score: 5}
"""


@pytest.mark.parametrize(
    ("rule", "code", "value"),
    [
        ("3.5", 0, None),
        ("{at_least: 3.5, min: 2}", 1, 1),
        ("{min: 1}", 0, None),
        ("{share_below: {2: 0.05}}", 1, 0.1),
        ("{share_below: {2: 0.1}}", 0, None),
        ("{share_below: {1: 0}}", 0, None),
    ],
)
def test_a_mean_hides_one_terrible_turn_and_other_bounds_do_not(
    rule: str, code: int, value: float | None, project: Project
) -> None:
    suite(project, "a", a=[3])
    project.scenarios("scenarios:\n  - {id: a, turns: [hi]}\n")
    project.write("judge.yaml", JUDGE)
    models = "metrics: [helpfulness]\nmodels: {default: scripted/judge.yaml}\n"
    project.config(f"epochs: 10\n{models}thresholds: {{helpfulness: {rule}}}\n")
    done = project.run()
    assert done.code == code, done.all
    failed = [r for r in project.results()["summary"]["gates"] if r["verdict"] == "failed"]
    assert [(r["metric"], r["value"]) for r in failed] == ([("helpfulness", value)] if code else [])


# ── what is reported before a run ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("command", "text", "facts", "absent"),
    [
        # 1 - 0.95^60 of runs are red by chance.
        ("plan", "epochs: 3\n", ("every sample passes", "95 %", "95.4 %", "coin"), ()),
        ("plan", f"epochs: {{min: 3, max: 50}}\ngates: {{{RATE}}}\n", ("pass_rate",), ("coin",)),
        # Validation speaks of chances only where a gate asks for it.
        ("validate", "epochs: 3\n", (), ("95 %", "coin")),
        ("validate", f"epochs: {{min: 3, max: 50}}\ngates: {{{RATE}}}\n", ("pass_rate", "95 %", "70 %"), ()),
        ("validate", "epochs: 3\ngates: {pass_hat_k: {k: 3, at_least: 0.5}}\n", ("coin",), ()),
        ("validate", f"epochs: 3\ngates: {{{RATE}}}\n", ("pass_rate", "9 epochs"), ()),  # never green
    ],
)
def test_how_often_a_gate_decides_by_chance(
    project: Project, command: str, text: str, facts: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    suite(project, *(f"s{number}" for number in range(20)))
    project.config(text)
    shown = " ".join(project.call(command).out.split())
    assert has(shown, *facts), shown
    assert not any(fact in shown for fact in absent), shown
