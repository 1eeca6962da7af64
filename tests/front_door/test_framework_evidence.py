"""What a run knows of the calls of a framework's object: all of them where its adapter lists its tools, only
those that were shown where it does not, and never those of an entry that nobody could place."""

from __future__ import annotations

import pytest

from tests.support.kit import Done, Project, failed_checks
from tests.support.toy import install_toy

CODE = """
import toy
from toy import Agent

def get_order(id):
    toy.mark("get_order", id)
    return {"status": "real"}

def cancel_order(id):
    toy.mark("cancel_order", id)
    return {"cancelled": "really"}

async def talks(run, text):
    return "Hello."

async def calls(run, text):
    order = await run.call("get_order", id="A-7")
    return f"It is {order['status']}."

"""
NO_CALL = """
id: it
turns: [hello]
tools: {get_order: {returns: {status: shipped}}, cancel_order: {returns: {cancelled: true}}}
expect: {tool_calls: {forbidden: [{name: cancel_order}]}}
"""


def run(project: Project, code: str, scenario: str = NO_CALL, more: str = "") -> Done:
    install_toy(project)
    project.agent(CODE + code)
    project.config(f"agent: {{name: bot, target: 'agent.py:agent'}}\nmetrics: []\n{more}", target="")
    project.scenarios(scenario)
    return project.run()


def test_an_agent_whose_adapter_lists_its_tools_is_seen_without_a_call(project: Project) -> None:
    done = run(project, "agent = Agent(talks, get_order, cancel_order)\n")
    assert done.code == 0, done.all


@pytest.mark.parametrize("unlisted", ["more", "runs_own_code"])
def test_where_tools_may_run_without_the_adapter_only_a_call_shows_that_calls_are_seen(
    project: Project, unlisted: str
) -> None:
    """``more``: its tools are known only in a run; ``runs_own_code``: a node may call them itself."""
    done = run(project, f"agent = Agent(talks, get_order, cancel_order)\nagent.{unlisted} = True\n")
    assert done.code == 3, done.all
    assert "no call of the agent was seen in this run" in done.all
    done = run(project, f"agent = Agent(calls, get_order, cancel_order)\nagent.{unlisted} = True\n")
    assert done.code == 0, done.all


UNPLACED = """
async def play(run, text):
    await run.call("get_order", id="A-7")
    run.world.note_unplaced("agent 'billing' is used as a tool: calls within it are not seen")
    return "Done."

agent = Agent(play, get_order, cancel_order)
"""


def test_a_turn_with_calls_that_nobody_sees_is_not_fully_seen(project: Project) -> None:
    done = run(project, UNPLACED)
    assert done.code == 3, done.all
    assert "not fully seen: agent 'billing' is used as a tool: calls within it are not seen" in done.all
    expected = NO_CALL.replace("forbidden: [{name: cancel_order}]", "calls: [{name: get_order}]")
    assert run(project, UNPLACED, expected).code == 0  # what was seen counts


def test_that_a_turn_is_not_fully_seen_says_nothing_of_the_others(project: Project) -> None:
    code = UNPLACED.replace("    run.world", "    if text == 'first':\n        run.world")
    turns = """
id: it
turns:
  - first
  - user: second
    expect: {tool_calls: {forbidden: [{name: cancel_order}]}}
tools: {get_order: {returns: {status: shipped}}, cancel_order: {returns: {cancelled: true}}}
"""
    done = run(project, code, turns)
    assert done.code == 0, done.all


def test_what_a_turn_that_broke_could_not_place_is_known_too(project: Project) -> None:
    code = UNPLACED.replace('    return "Done."', '    raise ValueError("it broke")')
    assert run(project, code).code == 1
    assert failed_checks(project.sample()) == {(None, "no_error")}


CHANGED = """
def listed(run, number, args, text, **more):
    function = {"name": "get_order", "arguments": args}
    run.messages += [
        {"role": "assistant", "tool_calls": [{"id": number, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": number, "content": text, **more},
    ]

async def play(run, text):
    async def own():
        raise RuntimeError("real")

    answer = await run.world.call("get_order", {"id": "A-7", "verbose": False}, own, "c1")
    listed(run, "c1", '{"id": "A-7"}', answer.text)
    return "Done."

agent = Agent(play, get_order, cancel_order)
"""


def test_a_call_whose_arguments_the_framework_completed_counts_once(project: Project) -> None:
    scenario = NO_CALL.replace(
        "forbidden: [{name: cancel_order}]",
        "match: strict, calls: [{name: get_order, args: {id: A-7, verbose: false}}]",
    )
    done = run(project, CHANGED, scenario)
    assert done.code == 0, done.all
    assert [call["observed"] for call in project.sample()["turns"][0]["tool_calls"]] == [False]
