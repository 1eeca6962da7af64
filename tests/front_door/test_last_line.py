"""The last line of a run: its verdict, and what did not gate and a reader would want to know."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Done, Project

AGENT = """
def agent(messages, ctx):
    said = messages[-1]["content"]
    if said == "lose" and ctx.epoch == 0:
        raise ConnectionRefusedError("refused")
    if said == "once":
        return "WRONG it is" if ctx.epoch else "right"
    return said


def fine(messages, ctx):
    return "right"
"""


def judged(metric: str, text: str, **reply: Any) -> dict[str, Any]:
    reply = {"evidence": "WRONG it is" if text == "WRONG" else text, "reason": "because", **reply}
    return {"when": {"role": "judge", "metric": metric, "text": text}, "reply": reply}


REPLIES = [
    judged("agent_behavior_failure", "wrong", label="false information"),
    judged("agent_behavior_failure", "harm", label="unsafe action"),
    {
        "when": {"role": "judge", "metric": "agent_behavior_failure"},
        "reply": {"evidence": "", "reason": "fine", "label": "no failure"},
    },
    judged("goal_completion", "WRONG", score=0),
    {
        "when": {"role": "judge", "metric": "goal_completion"},
        "reply": {"evidence": "right", "reason": "done", "score": 1},
    },
    {"when": {"role": "dedup"}, "reply": {"issues": []}},
]


@pytest.fixture
def judging(project: Project) -> Project:
    """Turns that say ``wrong`` are false information, ``harm`` an unsafe action; ``once`` misses the goal in
    the second of two conversations; ``lose`` loses the first of two."""
    project.agent(AGENT)
    project.write("replies.yaml", json.dumps({"replies": REPLIES}))
    configure(project)
    return project


def configure(project: Project, more: str = "") -> None:
    project.config(
        "agents: {fine: {target: 'agent.py:fine'}}\nmodels: {default: scripted/replies.yaml}\n"
        f"metrics: [agent_behavior_failure, goal_completion]\n{more}"
    )


def scenarios(project: Project, *turns: str, **more: Any) -> None:
    entries: list[dict[str, Any]] = [{"id": f"{turn}-{n}", "turns": [turn]} for n, turn in enumerate(turns)]
    for entry in entries:
        entry |= {"goal": "To know.", "epochs": 2} if entry["turns"] == ["once"] else {}
        entry |= {"epochs": 2} if entry["turns"] == ["lose"] else {}
        entry |= more
    project.scenarios(json.dumps({"scenarios": entries}))


def last(done: Done) -> str:
    return done.out.splitlines()[-1]


def asides(project: Project) -> dict[str, int]:
    return {aside["kind"]: aside["count"] for aside in project.results()["summary"]["caveats"]}


def test_findings_and_goals_below_the_gate_are_named_once_each(judging: Project) -> None:
    scenarios(judging, "wrong", "wrong", "wrong", "once")
    done = judging.run("--report", "markdown=report.md", "--report", "junit=junit.xml", "--report", "github")
    assert done.code == 0, done.all
    beside = "3 findings of high severity and 1 goal missed below the gate"
    line = f"PASSED: all 4 scenarios passed (exit 0) — with {beside}"
    assert last(done) == line
    assert asides(judging) == {"findings_high": 3, "goals_missed": 1}
    assert f"**With**: {beside}." in (judging.root / "report.md").read_text(encoding="utf-8")
    assert f'<property name="with" value="{beside}"' in (judging.root / "junit.xml").read_text("utf-8")
    assert f"::notice title=passed%2C with::{beside}" in done.out
    assert last(judging.call("report", "latest")) == line


@pytest.mark.parametrize("flags", [(), ("--agent", "fine")], ids=["the gate", "nothing found"])
def test_what_gates_and_what_is_not_there_is_no_aside(judging: Project, flags: tuple[str, ...]) -> None:
    configure(judging, "fail_on_severity: high\n")
    scenarios(judging, "wrong", "once")
    told = "PASSED: all 2 scenarios passed (exit 0)" if flags else "FAILED: 2 of 2 scenarios failed (exit 1)"
    assert last(judging.run(*flags)) == told
    assert asides(judging) == {}


def test_where_no_severity_fails_a_critical_finding_is_named(judging: Project) -> None:
    configure(judging, "fail_on_severity: none\n")
    scenarios(judging, "harm", "wrong", expect={"output": {"matches": "\\w"}})
    beside = "1 finding of critical severity and 1 finding of high severity below the gate"
    assert last(judging.run()) == f"PASSED: all 2 scenarios passed (exit 0) — with {beside}"


def test_a_failed_run_names_what_did_not_gate_too(judging: Project) -> None:
    scenarios(judging, "harm", "wrong")
    beside = "1 finding of high severity below the gate"
    assert last(judging.run()) == f"FAILED: 1 of 2 scenarios failed, 1 passed (exit 1) — with {beside}"


def test_samples_that_were_lost_are_named_where_they_are_tolerated(judging: Project) -> None:
    scenarios(judging, "right", "right", "right", "lose")
    assert last(judging.run()) == "INCONCLUSIVE: 1 of 4 scenarios inconclusive, 3 passed (exit 3)"
    configure(judging, "fault_tolerance: 0.25\n")
    done = judging.run()
    ends = "PASSED: all 4 scenarios passed (exit 0)"
    assert last(done) == f"{ends} — with 1 sample errored within fault_tolerance"
    assert asides(judging) == {"samples_errored": 1}


def test_judges_that_were_not_asked_are_named_where_some_would_have_been(judging: Project) -> None:
    scenarios(judging, "right", expect={"output": {"contains": ["right"]}})
    line = "PASSED: 1 scenario passed (exit 0)"
    assert last(judging.run("--no-judge")) == f"{line} — with judges not asked"
    assert asides(judging) == {"not_judged": 1}
    run = str(next((judging.root / ".agenteval/runs").iterdir()))
    assert last(judging.call("score", run, "--no-judge")) == f"{line} — with judges not asked"
    # Nobody asked for a judgement: that nothing was judged is told above.
    assert last(judging.call("score", run)) == line
    judging.config("metrics: []\n")
    assert last(judging.run("--no-judge")) == line


def test_a_replay_is_named(judging: Project) -> None:
    scenarios(judging, "right")
    line = "PASSED: 1 scenario passed (exit 0)"
    assert last(judging.run("--record", "tape.jsonl")) == line
    assert last(judging.run("--replay", "tape.jsonl")) == f"{line} — with a replay of tape.jsonl"


def test_all_kinds_stand_in_one_order(judging: Project) -> None:
    configure(judging, "fault_tolerance: 0.3\n")
    scenarios(judging, "wrong", "once", "lose", "right")
    judging.run("--record", "tape.jsonl")
    beside = "1 finding of high severity and 1 goal missed below the gate"
    lost = "1 sample errored within fault_tolerance"
    told = f" — with {beside}; {lost}; a replay of tape.jsonl"
    assert last(judging.run("--replay", "tape.jsonl")).endswith(told)


# ── gates over repeated runs ─────────────────────────────────────────────────────────────────────

LUCK = """
FAILS = {fails!r}


def agent(messages, ctx):
    return "sorry" if ctx.epoch in FAILS.get(ctx.scenario_id, ()) else "done"
"""


def lucky(project: Project, ids: int, **fails: Any) -> None:
    project.agent(LUCK.format(fails={name: tuple(epochs) for name, epochs in fails.items()}))
    entries = [
        {"id": f"s{n}", "turns": ["hi"], "expect": {"output": {"contains": ["done"]}}} for n in range(ids)
    ]
    project.scenarios(json.dumps({"scenarios": entries}))


def test_a_run_that_tolerates_failures_never_says_that_all_passed(project: Project) -> None:
    lucky(project, 3, s1=[7])
    project.config("epochs: 20\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.7}}\n")
    told = "1 of 3 scenarios did not pass every conversation, 2 passed"
    assert last(project.run()) == f"PASSED: {told} (exit 0)"
    lucky(project, 3, s0=range(20), s1=[7])
    told = "1 of 3 scenarios failed, 1 did not pass every conversation, 1 passed"
    assert last(project.run()) == f"FAILED: {told} (exit 1)"


def test_everything_fails_as_the_baseline_did(project: Project) -> None:
    lucky(project, 20, **{f"s{n}": [0] for n in range(20)})
    project.config("gates: {no_regression: {margin: 0.2}}\n")
    project.run()
    done = project.run("--baseline", "latest", "--report", "markdown=report.md")
    told = "20 of 20 scenarios passed no conversation"
    assert last(done).endswith(f"{told} (exit {done.code})"), last(done)
    assert told in (project.root / "report.md").read_text(encoding="utf-8")
