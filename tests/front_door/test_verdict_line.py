"""The last line of a run: its verdict, and what did not gate and a reader would want to know."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.kit import Done, Project

AGENT = """
def agent(messages, ctx):
    text = messages[-1]["content"]
    if text == "lose" and ctx.epoch == 0:
        raise ConnectionRefusedError("refused")
    if text == "once":
        return "WRONG it is" if ctx.epoch else "right"
    return text


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


def ends(done: Done, verdict: str, *facts: str, code: int) -> None:
    """Assert the verdict, its exit code and facts of the last line, and that it names no other number."""
    last = done.out.splitlines()[-1]
    assert done.code == code
    assert last.startswith(f"{verdict}: "), last
    assert [fact for fact in (f"exit {code}", *facts) if fact not in last] == [], last
    others = re.sub(
        "|".join(map(re.escape, sorted((f"exit {code}", *facts), key=len, reverse=True))), "", last
    )
    assert re.findall(r"\d+", others) == [], last


def caveats(project: Project) -> dict[str, int]:
    return {each["kind"]: each["count"] for each in project.results()["summary"]["caveats"]}


def test_findings_and_goals_below_the_gate_are_named_once_each(judging: Project) -> None:
    scenarios(judging, "wrong", "wrong", "wrong", "once")
    done = judging.run("--report", "markdown=report.md", "--report", "junit=junit.xml", "--report", "github")
    named = ("3 findings", "high", "1 goal")
    ends(done, "PASSED", "4 scenarios", *named, code=0)
    assert caveats(judging) == {"findings_high": 3, "goals_missed": 1}
    junit, markdown = (judging.root / name for name in ("junit.xml", "report.md"))
    for text, mark in (
        (markdown.read_text("utf-8"), "**With**: "),
        (junit.read_text("utf-8"), '<property name="with" '),
        (done.out, "::notice "),
    ):
        assert any(all(fact in line for fact in (mark, *named)) for line in text.splitlines()), text
    ends(judging.call("report", "latest"), "PASSED", "4 scenarios", *named, code=0)


def test_what_gates_and_what_was_not_found_is_no_caveat(judging: Project) -> None:
    configure(judging, "fail_on_severity: high\n")
    scenarios(judging, "wrong", "once")
    ends(judging.run(), "FAILED", "2 of 2", code=1)
    assert caveats(judging) == {}
    ends(judging.run("--agent", "fine"), "PASSED", "2 scenarios", code=0)
    assert caveats(judging) == {}


def test_where_no_severity_fails_a_critical_finding_is_named(judging: Project) -> None:
    configure(judging, "fail_on_severity: none\n")
    scenarios(judging, "harm", "wrong", expect={"output": {"matches": "\\w"}})
    ends(judging.run(), "PASSED", "2 scenarios", "1 finding of critical", "1 finding of high", code=0)


def test_a_failed_run_names_what_did_not_gate_too(judging: Project) -> None:
    scenarios(judging, "harm", "wrong")
    ends(judging.run(), "FAILED", "1 of 2", "1 passed", "1 finding of high", code=1)


def test_samples_that_were_lost_are_named_where_they_are_tolerated(judging: Project) -> None:
    scenarios(judging, "right", "right", "right", "lose")
    ends(judging.run(), "INCONCLUSIVE", "1 of 4", "3 passed", code=3)
    configure(judging, "fault_tolerance: 0.25\n")
    ends(judging.run(), "PASSED", "4 scenarios", "1 sample", "fault_tolerance", code=0)
    assert caveats(judging) == {"samples_errored": 1}


def test_judges_that_were_not_asked_are_named_where_some_would_have_been(judging: Project) -> None:
    scenarios(judging, "right", expect={"output": {"contains": ["right"]}})
    ends(judging.run("--no-judge"), "PASSED", "1 scenario", "judges", code=0)
    assert caveats(judging) == {"not_judged": 1}
    run = str(next((judging.root / ".agenteval/runs").iterdir()))
    ends(judging.call("score", run, "--no-judge"), "PASSED", "1 scenario", "judges", code=0)
    # Nobody asked for a judgement.
    for done in (judging.call("score", run), unjudged(judging)):
        ends(done, "PASSED", "1 scenario", code=0)
        assert "judges" not in done.out.splitlines()[-1]


def unjudged(project: Project) -> Done:
    project.config("metrics: []\n")
    return project.run("--no-judge")


def test_a_replay_is_named(judging: Project) -> None:
    scenarios(judging, "right")
    done = judging.run("--record", "tape.jsonl")
    ends(done, "PASSED", "1 scenario", code=0)
    assert "tape.jsonl" not in done.out.splitlines()[-1]
    ends(judging.run("--replay", "tape.jsonl"), "PASSED", "1 scenario", "tape.jsonl", code=0)


def test_all_kinds_stand_in_one_order(judging: Project) -> None:
    configure(judging, "fault_tolerance: 0.3\n")
    scenarios(judging, "wrong", "once", "lose", "right")
    judging.run("--record", "tape.jsonl")
    last = judging.run("--replay", "tape.jsonl").out.splitlines()[-1]
    order = ["1 finding of high", "1 goal", "1 sample", "fault_tolerance", "tape.jsonl"]
    assert sorted(order, key=last.index) == order


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


def test_a_run_that_tolerates_failures_never_reports_that_all_passed(project: Project) -> None:
    lucky(project, 3, s1=[7])
    project.config("epochs: 20\ngates: {pass_rate: {at_least: 0.9, reject_below: 0.7}}\n")
    ends(project.run(), "PASSED", "1 of 3", "2 passed", code=0)
    lucky(project, 3, s0=range(20), s1=[7])
    ends(project.run(), "FAILED", "1 of 3", ", 1 ", "1 passed", code=1)


def test_a_run_in_which_everything_fails_as_in_the_baseline_reports_that_none_passed(
    project: Project,
) -> None:
    lucky(project, 20, **{f"s{n}": [0] for n in range(20)})
    project.config("gates: {no_regression: {margin: 0.2}}\n")
    project.run()
    done = project.run("--baseline", "latest", "--report", "markdown=report.md")
    ends(done, done.out.splitlines()[-1].partition(":")[0], "20 of 20", code=done.code)
    assert "20 of 20" in (project.root / "report.md").read_text(encoding="utf-8")
