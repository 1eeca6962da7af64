"""What finished turns prove stands, whatever became of the conversation later; so does a recorded call."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from agenteval.verdict.run_rows import is_tolerated
from tests.support.kit import Project, failed_checks
from tests.support.scripted import verdicts

AGENT = """
    import asyncio

    async def agent(messages, ctx):
        text = messages[-1]["content"]
        if text == "lose it":
            raise ConnectionRefusedError("the agent's database is down")
        if text.startswith("lose it after "):
            await ctx.call_tool(text.removeprefix("lose it after "), {})
            raise ConnectionRefusedError("the agent's database is down")
        if text == "break":
            raise ValueError("a defect")
        if text.startswith("call "):
            for name in text.removeprefix("call ").split():
                await ctx.call_tool(name, {})
            return "done"
        return text
"""
TOOLS = {name: {"returns": 1} for name in ("look", "book", "cancel")}


def lost(expect: dict[str, Any], *turns: Any, **more: Any) -> dict[str, Any]:
    return {"turns": [*turns, more.pop("end", "lose it")], "tools": TOOLS, "expect": expect, **more}


def calls(match: str, *names: str) -> dict[str, Any]:
    return {"tool_calls": {"match": match, "calls": [{"name": name} for name in names]}}


FORBIDDEN = {"tool_calls": {"forbidden": [{"name": "cancel"}]}}
HELLO = {"user": "hello", "expect": {"output": {"contains": ["goodbye"]}}}
LIMIT = {"limits": {"tool_calls": 2}}

PROVEN = {
    "turn": (lost({}, HELLO), {(0, "output.contains")}),
    "empty": (lost({}, "hello", "", checks="none"), {(1, "answer")}),
    "forbidden": (lost(FORBIDDEN, "call cancel"), {(None, "tool_calls")}),
    "extra-strict": (lost(calls("strict", "look"), "call look book"), {(None, "tool_calls")}),
    "astray-strict": (lost(calls("strict", "look", "book"), "call book"), {(None, "tool_calls")}),
    "extra-unordered": (lost(calls("unordered", "look", "book"), "call book book"), {(None, "tool_calls")}),
    "extra-within": (lost(calls("within", "look"), "call book"), {(None, "tool_calls")}),
    "not-contains": (lost({"output": {"not_contains": ["idiot"]}}, "you idiot"),
                     {(None, "output.not_contains")}),
    "limit": (lost(LIMIT, "call look look look"), {(None, "limits.tool_calls")}),
    "lost-turn": (lost(FORBIDDEN, "hello", end="lose it after cancel"), {(None, "tool_calls")}),
    "unknown": (lost({}, "call nonsense", checks="none"), {(None, "unknown_tool")}),
    "crash": (lost({"output": {"not_contains": ["idiot"]}}, "you idiot", end="break"),
              {(None, "no_error"), (None, "output.not_contains")}),
}  # fmt: skip
"""Scenarios, and what fails them."""
OPEN = {
    "nothing": lost({}, "hello", checks="none"),
    "missing": lost(calls("contains", "book"), "call look"),
    "missing-strict": lost(calls("strict", "look", "book"), "call look"),
    "missing-unordered": lost(calls("unordered", "look", "book"), "call book"),
    "astray-in-order": lost(calls("in_order", "look", "book"), "call book look"),
    "contains": lost({"output": {"contains": ["goodbye"]}}, "hello"),
    "matches": lost({"output": {"matches": "good(bye)"}}, "hello"),
    "limit-reached": lost(LIMIT, "call look look"),
    "lost-limit": lost({"limits": {"tool_calls": 0}}, "hello", end="lose it after look"),
    "never-said": lost({}, "lose it", {**HELLO}),
    "case": {"input": "lose it", "expected_tools": ["book"], "tools": TOOLS},
}
"""Scenarios of which nothing is proven."""


def project_of(project: Project, scenarios: dict[str, Any], config: str = "") -> None:
    project.agent(AGENT)
    project.config(config)
    entries = [{"id": name, **entry} for name, entry in scenarios.items() if "input" not in entry]
    cases = [{"id": name, **entry} for name, entry in scenarios.items() if "input" in entry]
    suite = {"scenarios": entries} | ({"cases": cases} if cases else {})
    project.scenarios(yaml.safe_dump(suite, sort_keys=False))


def test_what_a_finished_turn_breaks_for_good_fails_a_lost_sample(project: Project) -> None:
    project_of(project, {name: entry for name, (entry, _) in PROVEN.items()}, "fault_tolerance: 1\n")
    done = project.run("--report", "junit=junit.xml")
    assert done.code == 1, done.all
    assert verdicts(project) == dict.fromkeys(PROVEN, "failed")
    for name, (_, failed) in PROVEN.items():
        sample = project.sample(name)
        assert failed_checks(sample) - {(None, "answer")} == failed, name
        if name != "crash":
            assert (sample["stop"], sample["fault"]) == ("infrastructure", None)
    junit = (project.root / "junit.xml").read_text("utf-8")
    assert (junit.count("<failure"), junit.count("<error")) == (len(PROVEN), 0)


def test_what_a_later_turn_could_have_mended_is_not_held_against_a_lost_sample(project: Project) -> None:
    project_of(project, OPEN)
    done = project.run()
    assert done.code == 3, done.all
    assert verdicts(project) == dict.fromkeys(OPEN, "inconclusive")
    for name in OPEN:
        sample = project.sample(name)
        assert (failed_checks(sample), sample["fault"]) == (set(), "infrastructure")
    project_of(project, {**OPEN, "fine": {"turns": ["hello"], "checks": "none"}}, "fault_tolerance: 0.95\n")
    assert project.run().code == 3


# ── findings ─────────────────────────────────────────────────────────────────────────────────────

DESTRUCTIVE = {"cancel": {"destructive": True, "returns": {"ok": True}}}
BOOKED = {"book": {"writes": True, "returns": {"ok": True}}}


LIMITED = {"expect": {"limits": {"steps": 9}}}


@pytest.mark.parametrize(
    ("turns", "tools", "bound", "code"),
    [
        (["call book book", "lose it"], BOOKED, "high", 1),
        (["call book book", "lose it"], BOOKED, "none", 3),
        (["hello", "lose it after cancel"], DESTRUCTIVE, "high", 3),  # on the lost turn
    ],
)
def test_a_detectors_finding_on_a_finished_turn_stands(
    project: Project, turns: list[str], tools: Any, bound: str, code: int
) -> None:
    project_of(project, {"a": {"turns": turns, "tools": tools, **LIMITED}}, f"fail_on_severity: {bound}\n")
    assert project.run().code == code
    found = [(f["detector"], f["severity"], f["turn"]) for f in project.sample()["findings"]]
    assert found == [("repeated_tool_call", "high", 0)] * (tools is BOOKED)


SCRIPTED = "models: {default: scripted/replies.yaml}\n"
REPLIES = """
    replies:
      - when: {role: judge, metric: agent_behavior_failure, text: idiot}
        reply: {evidence: you idiot, reason: rude, label: disobey user request}
      - when: {role: judge, metric: agent_behavior_failure}
        reply: {evidence: "", reason: fine, label: no failure}
      - when: {role: user, turn: 1}
        reply: {message: "How may I help you today?", done: false}
"""


@pytest.mark.parametrize(("text", "bound", "code"), [("you idiot", "high", 1), ("you idiot", "critical", 3),
                                                      ("hello", "high", 3)])  # fmt: skip
def test_a_judges_finding_on_a_finished_turn_stands(
    project: Project, text: str, bound: str, code: int
) -> None:
    project.write("replies.yaml", REPLIES)
    head = f"{SCRIPTED}metrics: [agent_behavior_failure]\nfault_tolerance: 0.5\nfail_on_severity: {bound}\n"
    project_of(project, {"a": lost({}, text), "b": {"turns": ["hello"]}}, head)
    done = project.run()
    assert done.code == code, done.all
    violated = [v["name"] for s in project.results()["scenarios"] for v in s["violations"]]
    assert ("fail_on_severity" in violated) == (code == 1)


@pytest.mark.parametrize(("text", "code"), [("you idiot", 1), ("hello", 3)])
def test_turns_before_the_simulators_fault_stand(project: Project, text: str, code: int) -> None:
    project.write("replies.yaml", REPLIES)
    scenario = {"turns": [text, {"simulate": 2}], "goal": "To be greeted.",
                "expect": {"output": {"not_contains": ["idiot", "How may I help"]}}}  # fmt: skip
    project_of(project, {"a": scenario}, f"{SCRIPTED}metrics: []\nepochs: 1\n")
    assert project.run().code == code
    assert project.sample()["stop"] == "simulator"


# ── one function decides ─────────────────────────────────────────────────────────────────────────


def test_a_proven_failure_ends_a_run_that_is_to_fail_fast_and_a_mere_loss_does_not(project: Project) -> None:
    config = "agent_concurrency: 1\nfault_tolerance: 0.9\n"
    for name, started in (("forbidden", 1), ("open", 2)):
        entry = PROVEN[name][0] if name in PROVEN else lost(FORBIDDEN, "hello")
        project_of(project, {name: entry, "next": {"turns": ["hello"], "checks": "none"}}, config)
        project.run("--fail-fast")
        assert sum(bool(s["samples"][0]["turns"]) for s in project.results()["scenarios"]) == started


def test_an_accepted_failure_leaves_a_lost_sample_lost(project: Project) -> None:
    scenarios = {"a": PROVEN["forbidden"][0], "b": {"turns": ["hello"], "checks": "none"}}
    project_of(project, scenarios)
    assert project.run().code == 1
    (check,) = [c for c in project.sample("a")["checks"] if not c["passed"]]
    (name,) = check["fingerprints"]
    entry = {"fingerprint": name, "owner": "ann", "reason": "ticket 7", "expires": "2999-01-01"}
    project.write("accepted.yaml", json.dumps([entry]))
    for tolerance in ("0", "0.5"):
        project_of(project, scenarios, f"accepted: accepted.yaml\nfault_tolerance: {tolerance}\n")
        assert project.run().code == 3
        assert project.sample("a")["verdict"] == "inconclusive"


def test_the_report_and_a_score_of_the_journal_are_the_run_again(project: Project) -> None:
    project_of(project, {"a": PROVEN["forbidden"][0], "b": OPEN["missing"]}, "fault_tolerance: 1\n")
    assert project.run().code == 1
    before = project.results()
    assert project.call("report", "latest", "--report", "json=results.json").code == 1
    assert project.results()["scenarios"] == before["scenarios"]
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    done = project.call("score", str(journal), "--report", "json=scored.json")
    assert done.code == 1, done.all
    scored = json.loads((project.root / "scored.json").read_text("utf-8"))
    assert [s["samples"][0]["verdict"] for s in scored["scenarios"]] == ["failed", "inconclusive"]


@pytest.mark.parametrize("options", [(), ("-m", "scripted/replies.yaml")])
def test_a_score_lists_a_journal_in_the_order_of_the_suite_whatever_ended_first(
    project: Project, options: tuple[str, ...]
) -> None:
    names = [f"s-{number}" for number in (3, 1, 4, 2, 5)]
    scenarios = {name: {"turns": ["hello"], "epochs": 2, "checks": "none"} for name in names}
    project_of(project, {**scenarios, "lost": {**OPEN["missing"], "epochs": 2}}, "fault_tolerance: 1\n")
    project.write("replies.yaml", "replies: []\n")
    assert project.run().code in (0, 3)
    samples = [(s["id"], each["epoch"]) for s in project.results()["scenarios"] for each in s["samples"]]
    (journal,) = project.root.glob(".agenteval/runs/*/events.jsonl")
    lines = journal.read_text("utf-8").splitlines(keepends=True)
    of = {line: json.loads(line).get("key") for line in lines}
    for last_first in (False, True):
        ends = sorted(
            (line for line in lines if of[line]),
            key=lambda line: (of[line]["scenario"], of[line].get("epoch", 0)),
            reverse=last_first,
        )
        ends.sort(key=lambda line: json.loads(line)["type"] == "sample_finished")
        first, *rest = (line for line in lines if not of[line])
        project.write("moved.jsonl", "".join([first, *ends, *rest]))
        project.call("score", "moved.jsonl", "--report", "json=scored.json", *options)
        scored = json.loads((project.root / "scored.json").read_text("utf-8"))
        found = [(s["id"], each["epoch"]) for s in scored["scenarios"] for each in s["samples"]]
        assert found == samples


def test_a_deadline_of_the_run_takes_nothing_back(project: Project) -> None:
    project.agent("""
        import asyncio

        async def agent(messages, ctx):
            if messages[-1]["content"] == "wait":
                await asyncio.sleep(3600)
            await ctx.call_tool("cancel", {})
            return "done"
    """)
    for forbidden, code in (("cancel", 1), ("book", 3)):
        expect = {"tool_calls": {"forbidden": [{"name": forbidden}]}}
        scenario = {"id": "a", "turns": ["go", "wait"], "tools": TOOLS, "expect": expect}
        project.scenarios(yaml.safe_dump({"scenarios": [scenario]}))
        project.config("deadlines: {run_s: 1}\n")
        assert project.run().code == code
        assert project.sample()["fault"] == (None if code == 1 else "interrupted")


# ── losses ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lost", "begun", "bound", "tolerated"),
    [
        (0, 1, 0, True), (1, 2, 0, False), (1, 1, 1, False), (0, 0, 1, False),
        (1, 20, 0.05, True), (2, 39, 0.05, False), (2, 40, 0.05, True), (1, 19, 0.05, False),
        (3, 10, 0.3, True), (7, 10, 0.7, True), (4, 10, 0.3, False), (9, 10, 1, True),
    ],
)  # fmt: skip
def test_losses_are_tolerated_up_to_the_bound_and_never_all(
    lost: int, begun: int, bound: float, tolerated: bool
) -> None:
    assert is_tolerated(lost, begun, bound) is tolerated
