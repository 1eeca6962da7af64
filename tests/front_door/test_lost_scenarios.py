"""A scenario that lost more than half of its samples is inconclusive, whatever is tolerated of the run."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.kit import Done, Project
from tests.support.results import gates, has, last_line, verdicts

AGENT = """
LOST, WRONG = {lost}, {wrong!r}


def agent(messages, ctx):
    if ctx.scenario_id == "shaky" and ctx.epoch < LOST:
        raise ConnectionRefusedError("refused")
    return "sorry" if ctx.scenario_id == "shaky" and ctx.epoch in WRONG else "done"


def steady(messages, ctx):
    return "done"
"""
EXPECT = {"output": {"contains": ["done"]}}


def play(
    project: Project, lost: int, *flags: str, wrong: tuple[int, ...] = (), config: str = "epochs: 20\n"
) -> Done:
    project.agent(AGENT.format(lost=lost, wrong=wrong))
    project.config(f"metrics: []\nfault_tolerance: 1\n{config}" if "tolerance" not in config else config)
    entries = [{"id": name, "turns": ["hi"], "expect": EXPECT} for name in ("shaky", "fine")]
    project.scenarios(json.dumps({"scenarios": entries}))
    return project.run(*flags)


def tolerance(project: Project) -> list[tuple[str | None, Any, Any, str]]:
    """The rows of lost samples: of the run, then of each scenario that lost too many."""
    gates = [gate for gate in project.results()["summary"]["gates"] if gate["name"] == "fault_tolerance"]
    return [(gate.get("scenario") or None, gate["value"], gate["bound"], gate["verdict"]) for gate in gates]


BOTH_PASSED = {"shaky": "passed", "fine": "passed"}
SHAKY_IS_OPEN = {"shaky": "inconclusive", "fine": "passed"}


@pytest.mark.parametrize("lost", [20, 11, 10])
def test_at_most_half_of_a_scenario_may_be_lost(project: Project, lost: int) -> None:
    done = play(project, lost, "--report", "junit=junit.xml", "--report", "github")
    is_green = lost == 10
    whole = ElementTree.parse(project.root / "junit.xml").getroot()
    assert (whole.get("failures"), whole.get("errors")) == ("0", "0" if is_green else str(lost + 1))
    skipped = [case for case in whole.iter("testcase") if case.find("skipped") is not None]
    assert (whole.get("skipped"), len(skipped)) == ((str(lost), lost) if is_green else ("0", 0))
    assert all("refused" in case.find("skipped").get("message", "") for case in skipped)
    assert ("::error" in done.out) is not is_green
    assert done.code == (0 if is_green else 3)
    assert verdicts(project) == (BOTH_PASSED if is_green else SHAKY_IS_OPEN)
    run, *rows = tolerance(project)
    assert run == (None, lost / 40, 1.0, "passed")
    if is_green:
        assert rows == []
        assert has(last_line(done), "PASSED", "all 2 scenarios", "exit 0", "10 samples", "fault_tolerance")
        return
    ((scenario, value, _, verdict),) = rows
    assert (scenario, value, verdict) == ("shaky", lost / 20, "inconclusive")
    assert has(last_line(done), "INCONCLUSIVE", "1 of 2", "1 passed", "exit 3")
    assert has(done.out, "agenteval run --last-failed", "(fault_tolerance)", f"{lost} of 20")


def test_a_scenario_of_one_conversation_is_lost_with_it(project: Project) -> None:
    assert play(project, 1, config="epochs: 1\n").code == 3
    assert verdicts(project) == SHAKY_IS_OPEN
    assert play(project, 0, config="epochs: 1\n").code == 0


def test_the_report_the_score_and_the_next_run_decide_the_same(project: Project) -> None:
    play(project, 11)
    first = project.results()
    done = project.call("report", "latest", "--report", "json=results.json", "--report", "markdown=report.md")
    assert done.code == 3
    assert project.results()["summary"] == first["summary"]
    lines = (project.root / "report.md").read_text("utf-8").splitlines()
    assert any(has(line, "fault_tolerance", "shaky") for line in lines)
    journal = next(project.root.glob(".agenteval/runs/*/events.jsonl"))
    assert project.call("score", str(journal), "--report", "json=results.json").code == 3
    assert verdicts(project) == SHAKY_IS_OPEN
    project.agent(AGENT.format(lost=0, wrong=()))
    assert project.run("--last-failed").code == 0
    assert verdicts(project) == {"shaky": "passed"}


def test_undecided_may_be_neutral_and_failed_stays_failed(project: Project) -> None:
    done = play(project, 19, config="epochs: 20\non_undecided: neutral\n")
    assert done.code == 0
    assert has(last_line(done), "1 of 2", "inconclusive", "1 passed", "exit 0", "on_undecided")
    done = play(project, 19, wrong=(19,), config="epochs: 20\non_undecided: neutral\n")
    assert done.code == 1
    assert verdicts(project) == {"shaky": "failed", "fine": "passed"}


@pytest.mark.parametrize(("lost", "code", "verdict"), [(3, 3, "inconclusive"), (2, 0, "passed")])
def test_of_agents_side_by_side_the_one_that_lost_its_conversations_is_open(
    project: Project, lost: int, code: int, verdict: str
) -> None:
    compare = "epochs: 4\ncompare: [{name: steady, target: 'agent.py:steady'}]\n"
    assert play(project, lost, config=compare).code == code
    found = {(s["id"], s["agent"]): s["verdict"] for s in project.results()["scenarios"]}
    assert found.pop(("shaky", "bot")) == verdict
    assert set(found.values()) == {"passed"}


# ── gates over repeated runs ─────────────────────────────────────────────────────────────────────

RATE = "gates: {pass_rate: {at_least: 0.5, reject_below: 0.05}}\n"


def test_a_pass_rate_that_is_sure_of_the_rest_does_not_speak_for_what_was_lost(project: Project) -> None:
    for lost, code in ((5, 3), (4, 0)):
        assert play(project, lost, config=f"epochs: 9\n{RATE}").code == code
        rates = gates(project, "pass_rate").values()
        assert [gate["verdict"] for gate in rates] == ["passed", "passed"]
        assert verdicts(project)["shaky"] == ("inconclusive" if code else "passed")


def test_beyond_the_tolerance_of_the_run_the_scenario_is_open_too(project: Project) -> None:
    play(project, 5, config=f"metrics: []\nfault_tolerance: 0.1\nepochs: 9\n{RATE}")
    assert verdicts(project) == SHAKY_IS_OPEN
    assert [row[0] for row in tolerance(project)] == [None]


def test_what_a_further_epoch_replaced_began_and_was_lost(project: Project) -> None:
    """Each of three epochs is lost, and replaced by one of 20 to 22: six began, half of them were lost. With
    epoch 20 lost, too, it is more than half."""
    rate = "epochs: {min: 3, max: 20}\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.2}}\n"
    assert play(project, 3, config=rate).code == 0
    (shaky, _) = project.results()["scenarios"]
    assert [sample["verdict"] for sample in shaky["samples"]] == ["inconclusive"] * 3 + ["passed"] * 3
    assert play(project, 21, config=rate).code == 3
    rates = gates(project, "pass_rate").values()
    assert [gate["verdict"] for gate in rates] == ["passed", "passed"]
    assert verdicts(project) == SHAKY_IS_OPEN


# ── recorded conversations ───────────────────────────────────────────────────────────────────────


def recorded(id: str, scenario: str, *, lost: bool = False) -> dict[str, Any]:
    asked = [{"role": "user", "content": "hi"}]
    response = {"error": "boom"} if lost else {"content": "done", "role": "assistant"}
    return {"id": id, "labels": {"task": scenario}, "request": {"messages": asked}, "response": response}


def test_records_that_are_no_scenarios_are_tolerated_by_their_share(project: Project) -> None:
    """A line that cannot be read, or was not answered, stands for itself; epochs of one scenario do not."""
    lines = [recorded(f"r{n}", "task", lost=n < 2) for n in range(3)]
    project.write("log.jsonl", "\n".join(map(json.dumps, lines)))
    project.write("agenteval.yaml", "fault_tolerance: 0.9\nfail_on_severity: critical\n")
    assert project.call("score", "log.jsonl").code == 0
    assert project.call("score", "log.jsonl", "--scenario-from", "labels.task").code == 3
    project.write("log.jsonl", "\n".join(map(json.dumps, lines[1:])))
    assert project.call("score", "log.jsonl", "--scenario-from", "labels.task").code == 0
