"""What a run knows of the calls of a framework's object: all of them where its adapter lists its tools, only
those that were shown where it does not, and never those of an entry that nobody could place."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.suites import write_suite
from tests.support.toy import TOY_TOOLS, install_toy

CODE = """
def agent(play, **attributes):
    made = Agent(play, get_order, cancel_order)
    vars(made).update(attributes)
    return made

async def talks(run, text):
    return "Hello."

async def calls(run, text):
    order = await run.call("get_order", id="A-7")
    return f"It is {order['status']}."

# Tools may run without the adapter: some are known only in a run, or a node calls them itself.
listed = agent(talks)
unlisted, unlisted_calls = agent(talks, more=True), agent(calls, more=True)
own_code, own_code_calls = agent(talks, runs_own_code=True), agent(calls, runs_own_code=True)

async def unplaced_play(run, text):
    await run.call("get_order", id="A-7")
    if text != "placed":
        run.world.note_unseen_calls("agent 'billing' is used as a tool")
    if text == "broken":
        raise ValueError("it broke")
    return "Done."

unplaced = agent(unplaced_play)

async def completed_play(run, text):
    async def own():
        raise RuntimeError("real")

    answer = await run.world.call("get_order", {"id": "A-7", "verbose": False}, own, "c1")
    function = {"name": "get_order", "arguments": '{"id": "A-7"}'}
    run.messages += [
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": answer.text},
    ]
    return "Done."

completed = agent(completed_play)
"""
NAMES = ("listed", "unlisted", "unlisted_calls", "own_code", "own_code_calls", "unplaced", "completed")
FORBIDS = "expect: {tool_calls: {forbidden: [{name: cancel_order}]}}"
AFTER = "turns: [unplaced, {user: placed, expect: {tool_calls: {forbidden: [{name: cancel_order}]}}}]"
COMPLETED = "{match: strict, calls: [{name: get_order, args: {id: A-7, verbose: false}}]}"


class Row(NamedTuple):
    agent: str
    scenario: str
    verdict: str
    reason: str = ""


ROWS = {
    "an adapter that lists its tools": Row("listed", f"turns: [Hi], {FORBIDS}", "passed"),
    "unlisted tools, no call": Row("unlisted", f"turns: [Hi], {FORBIDS}", "inconclusive", "calls: all"),
    "unlisted tools, a call": Row("unlisted_calls", f"turns: [Hi], {FORBIDS}", "passed"),
    "own code, no call": Row("own_code", f"turns: [Hi], {FORBIDS}", "inconclusive", "calls: all"),
    "own code, a call": Row("own_code_calls", f"turns: [Hi], {FORBIDS}", "passed"),
    "calls that nobody sees": Row("unplaced", f"turns: [Hi], {FORBIDS}", "inconclusive", "'billing'"),
    "an expected call that was seen": Row("unplaced",
        "turns: [Hi], expect: {tool_calls: {calls: [{name: get_order}]}}", "passed"),
    "another turn than the unseen one": Row("unplaced", AFTER, "passed"),
    "a turn that broke": Row("unplaced", f"turns: [broken], {FORBIDS}", "failed"),
    "arguments that the framework completed": Row("completed",
        f"turns: [Hi], expect: {{tool_calls: {COMPLETED}}}", "passed"),
}  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("evidence"))
    install_toy(project)
    project.agent(TOY_TOOLS + CODE)
    mocks = "tools: {get_order: {returns: {status: shipped}}, cancel_order: {returns: {}}}"
    scenarios = {id: f"agent: {row.agent}, {mocks}, {row.scenario}" for id, row in ROWS.items()}
    write_suite(project, NAMES, scenarios)
    done = project.run()
    assert done.code == 1, done.all
    return project


@pytest.mark.parametrize("name", ROWS)
def test_what_is_known_of_calls_decides_the_verdict(ran: Project, name: str) -> None:
    sample = ran.sample(name)
    assert sample["verdict"] == ROWS[name].verdict, sample
    reasons = [str(check.get("detail")) for check in sample["checks"] if check["passed"] is None]
    assert bool(reasons) == (name == "a turn that broke" or sample["verdict"] == "inconclusive")
    assert all(ROWS[name].reason in each for each in reasons), reasons


def test_a_turn_that_broke_fails_for_its_error_alone(ran: Project) -> None:
    assert failed_checks(ran.sample("a turn that broke")) == {(None, "no_error")}


def test_a_call_whose_arguments_the_framework_completed_counts_once(ran: Project) -> None:
    (turn,) = ran.sample("arguments that the framework completed")["turns"]
    assert [call["observed"] for call in turn["tool_calls"]] == [False]
