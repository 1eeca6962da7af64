"""``expect.python``: the author's own checks. What they return decides; one that breaks decides nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks

AGENT = """
async def agent(messages, ctx):
    text = messages[-1]["content"]
    if text == "look":
        await ctx.call_tool("get_order", {"id": "ORD-1", "list": [1]})
        return "<think>hm</think>Shipped."
    return f"You said {text}"
"""
CHECKS = '''
import asyncio, sys, time
from types import SimpleNamespace

import numbers_of_ours
from agenteval import Check, Conversation

def holds(conversation: Conversation) -> bool:
    return True

def fails(conversation):
    return False

def reason(conversation):
    return "too short: " + conversation.answer

async def waits(conversation):
    await asyncio.sleep(0)
    return conversation.turns[-1].user != "rude"

def made(conversation):
    return Check(name="tone", passed=len(conversation.turns) < 2, detail="of two turns", parts=("tone",))

def not_sure(conversation):
    return Check(name="tone", passed=None, detail="hard to say")

def unseen(conversation):
    return not conversation.observed

def nothing(conversation):
    pass

def number(conversation):
    return 1

def empty(conversation):
    return "  "

def breaks(conversation):
    return conversation.turns[99].answer

async def breaks_later(conversation):
    await asyncio.sleep(0)
    raise KeyError("no such key")

def quits(conversation):
    sys.exit(0)

def blocks(conversation):
    time.sleep(600)

async def blocks_the_loop(conversation):
    time.sleep(600)

def spoils(conversation):
    """What it does to what it is given is nobody else's concern."""
    call = conversation.tool_calls[0]
    call.args["list"].append(2)
    call.result["status"] = "lost"
    conversation.messages[0]["content"] = "spoilt"
    try:
        conversation.turns[0].user = "spoilt"
    except AttributeError:
        return True
    return False

def sees(conversation):
    first, last = conversation.turns
    (call,) = conversation.tool_calls
    found = (
        (first.user, first.answer, first.text, last.user, last.answer, conversation.answer),
        (call.name, call.args, call.result, first.tool_calls == (call,), last.tool_calls),
        [message["role"] for message in conversation.messages],
        (conversation.scenario, conversation.text, conversation.observed),
    )
    wanted = (
        ("look", "Shipped.", "Shipped.", "bye", "You said bye", "You said bye"),
        ("get_order", {"id": "ORD-1", "list": [1]}, {"status": "shipped"}, True, ()),
        ["user", "assistant", "tool", "assistant", "user", "assistant"],
        ("sees", "Shipped.\\n\\nYou said bye", True),
    )
    return found == wanted or repr(found)

holder = SimpleNamespace(inner=holds)
constant = 3

def two(conversation, more):
    return True
'''
PLACES = {
    name: f"checks.py:{number}"
    for number, line in enumerate(CHECKS.lstrip("\n").splitlines(), 1)
    for name, part in (("breaks", "turns[99]"), ("breaks_later", "raise KeyError"))
    if part in line
}
PASS = ["holds", "waits", "holder.inner", "made", ["holds", "waits"]]
FAIL: dict[str, tuple[str, ...]] = {
    "fails": ("../checks.py:fails",),
    "reason": ("../checks.py:reason", "too short: You said hi"),
}
UNDECIDED: dict[str, tuple[str, ...]] = {
    "not_sure": ("hard to say",),
    "nothing": ("None", "True, False"),
    "number": ("int", "True"),
    "empty": ("empty",),
    "breaks": ("IndexError: tuple index out of range", PLACES["breaks"], "breaks"),
    "breaks_later": ("KeyError: 'no such key'", PLACES["breaks_later"], "breaks_later"),
    "quits": ("SystemExit",),
}


@pytest.fixture
def suite(project: Project) -> Project:
    project.agent(AGENT)
    project.write("checks.py", CHECKS)
    project.write("numbers_of_ours.py", "ONE = 1\n")
    project.config()
    return project


def write(project: Project, *scenarios: dict[str, Any]) -> None:
    tools = {"get_order": {"returns": {"status": "shipped"}}}
    each = [{"turns": ["hi"], "tools": tools, **scenario} for scenario in scenarios]
    project.scenarios("scenarios:\n" + "".join(f"- {json.dumps(one)}\n" for one in each))


def expect(*names: str) -> dict[str, Any]:
    targets = [f"../checks.py:{name}" for name in names]
    return {"python": targets if len(targets) > 1 else targets[0]}


def python_checks(sample: dict[str, Any]) -> list[dict[str, Any]]:
    checks = [*sample["checks"], *(check for turn in sample["turns"] for check in turn["checks"])]
    return [check for check in checks if check["name"].split(".")[0] == "python"]


def test_what_a_check_returns_decides(suite: Project) -> None:
    good = [
        {"id": f"p{i}", "expect": expect(*([n] if isinstance(n, str) else n))} for i, n in enumerate(PASS)
    ]
    good.append({"id": "sees", "turns": ["look", "bye"], "expect": expect("sees")})
    good.append({"id": "unseen", "tools": {}, "expect": expect("unseen")})
    good.append({"id": "spoils", "turns": ["look"], "expect": expect("spoils", "spoils")})
    bad = [{"id": name, "expect": expect(name)} for name in [*FAIL, *UNDECIDED]]
    write(suite, *good, *bad)
    assert suite.run().code == 1
    for one in good:
        sample = suite.sample(one["id"])
        assert sample["verdict"] == "passed", sample
        assert all(check["passed"] for check in python_checks(sample))
    assert len(python_checks(suite.sample("p4"))) == 2
    assert [check["name"] for check in python_checks(suite.sample("p3"))] == ["python.tone"]
    for name, facts in FAIL.items():
        sample = suite.sample(name)
        assert failed_checks(sample) == {(None, "python")}
        assert all(fact in python_checks(sample)[0]["detail"] for fact in facts)
    for name, facts in UNDECIDED.items():
        sample = suite.sample(name)
        (check,) = python_checks(sample)
        assert (sample["verdict"], check["passed"]) == ("inconclusive", None), name
        assert all(fact in check["detail"] for fact in facts), (name, check)
    call = suite.sample("spoils")["turns"][0]["tool_calls"][0]
    assert (call["args"]["list"], call["result"]) == ([1], {"status": "shipped"})


def test_one_that_blocks_holds_up_nothing_but_its_own_sample(suite: Project) -> None:
    suite.config("agent_concurrency: 1\n")
    config = (suite.root / "agenteval.yaml").read_text("utf-8")
    suite.write("agenteval.yaml", config.replace("}", ", timeout_s: 3}", 1))
    names = ["blocks", "holds", "blocks_the_loop", "waits"]
    write(suite, *({"id": name, "expect": expect(name)} for name in names))
    assert suite.run().code == 3
    verdicts = {name: suite.sample(name)["verdict"] for name in names}
    assert verdicts == dict(zip(names, ["inconclusive", "passed"] * 2, strict=True))
    for name in ("blocks", "blocks_the_loop"):
        assert "3 s" in python_checks(suite.sample(name))[0]["detail"]


def test_at_a_turn_it_is_about_that_turn_and_names_its_line(suite: Project) -> None:
    suite.scenarios(
        """
        id: turns
        turns:
          - kind
          - user: rude
            expect:
              python:
                - ../checks.py:holds
                - ../checks.py:waits
          - {user: kind, expect: {python: "../checks.py:waits"}}
        expect: {python: "../checks.py:made"}
        """
    )
    assert suite.run().code == 1
    sample = suite.sample()
    assert failed_checks(sample) == {(1, "python"), (None, "python.tone")}
    wheres = [check["where"].partition(":")[2] for check in python_checks(sample)]
    assert wheres == ["10", "7", "8", "9"]


@pytest.mark.parametrize(("output", "code"), [("hi", 3), ("ho", 1)])
def test_a_check_that_breaks_leaves_no_run_green(suite: Project, output: str, code: int) -> None:
    write(suite, {"id": "one", "expect": {**expect("breaks"), "output": {"contains": output}}})
    assert suite.run().code == code


def test_what_cannot_be_loaded_or_called_is_reported_before_anything_runs(suite: Project) -> None:
    suite.write("broken.py", "import nothing_of_that_name\n")
    rows = {
        "../no.py:polite": ("'../no.py'",),
        "../checks.py:holdz": ("'../checks.py'", "'holdz'", "'holds'"),
        "../checks.py:constant": ("../checks.py:constant", "function"),
        "../checks.py:two": ("two(conversation, more)",),
        "../checks.py": ("../checks.py",),
        "../broken.py:x": ("'../broken.py'",),
        "no.such.module:x": ("'no.such.module'",),
    }
    write(suite, {"id": "blank", "expect": {"python": " "}})
    suite.call("validate").refuses("suite.yaml:2:107", "python")
    in_turn = {"turns": [{"user": "hi", "expect": {"python": "../no.py:polite"}}]}
    write(suite, *({"id": target, "expect": {"python": target}} for target in rows), {"id": "t", **in_turn})
    for command in ("validate", "run"):
        done = suite.call(command)
        assert done.code == 2
        for line, facts in enumerate([*rows.values(), rows["../no.py:polite"]], 2):
            messages = [text for text in done.err.splitlines() if f"suite.yaml:{line}" in text]
            assert any(all(fact in text for fact in facts) for text in messages), (facts, done.err)


def test_its_file_is_one_that_the_run_rests_on(suite: Project) -> None:
    write(suite, {"id": "one", "expect": expect("holds")})
    assert suite.run().code == 0
    before = (suite.root / "checks.py").read_bytes()
    refused = suite.call("run", "--report", "json=checks.py")
    assert refused.code == 2
    assert (suite.root / "checks.py").read_bytes() == before
    journal = next((suite.root / ".agenteval/runs").glob("*/events.jsonl"))
    started = json.loads(journal.read_text("utf-8").splitlines()[0])
    assert {"checks.py", "numbers_of_ours.py"} <= set(started["sources"])


def test_recorded_conversations_meet_it_by_their_scenario_and_no_journal_brings_code(suite: Project) -> None:
    write(suite, {"id": "one", "turns": ["rude"], "expect": expect("waits")})
    assert suite.run().code == 1
    log = {
        "id": "one",
        "messages": [{"role": "user", "content": "rude"}, {"role": "assistant", "content": "Yes."}],
    }
    suite.write("log.jsonl", json.dumps(log) + "\n")
    by_id = ("--scenario-from", "id", "--scenarios", "scenarios/suite.yaml")
    assert suite.call("score", "log.jsonl", *by_id).code == 1
    write(suite, {"id": "one", "expect": expect("no_such")})
    assert suite.call("score", "log.jsonl", *by_id).code == 2
    done = suite.call("score", "latest", "--report", "json=results.json")
    assert done.code == 3, done.all
    (check,) = python_checks(suite.sample())
    assert (check["passed"], "journal" in check["detail"]) == (None, True)


def test_an_undecided_check_has_neither_held_nor_failed(project: Project) -> None:
    """Nor is it counted: of four conversations, one held and two failed."""
    project.agent(AGENT)
    project.config("fault_tolerance: 0")
    checks = "def raises(c):\n    raise KeyError\n\n\ndef fine(c):\n    return len(c.answer) > 3\n"
    project.write("scenarios/checks.py", checks)
    cases = {
        "held": "expect: {python: 'checks.py:fine'}",
        "failed": "expect: {python: 'checks.py:fine', limits: {tokens: 0}}",
        "undecided": "expect: {python: 'checks.py:raises'}",
        "both": "expect: {python: 'checks.py:raises', output: {contains: [nowhere]}}",
    }
    entries = [f"  - {{id: {id}, input: hello, category: robustness, {e}}}" for id, e in cases.items()]
    project.scenarios("\n".join(["cases:", *entries]))
    assert project.run().code == 1
    found = {each["id"]: each for each in project.results()["scenarios"]}
    verdicts = {"held": "passed", "failed": "failed", "undecided": "inconclusive", "both": "failed"}
    assert {id: each["verdict"] for id, each in found.items()} == verdicts
    held = {id: each["samples"][0]["robustness_pass"] for id, each in found.items()}
    assert held == {"held": True, "failed": False, "undecided": None, "both": False}
    assert "robustness_pass" not in found["undecided"]["aggregates"]
    (dimension,) = project.results()["summary"]["dimensions"]["bot"]
    for name in ("robustness_pass", "checks_passed"):
        assert dimension["rates"][name]["n"] == 3
        assert dimension["rates"][name]["value"] == pytest.approx(1 / 3)
